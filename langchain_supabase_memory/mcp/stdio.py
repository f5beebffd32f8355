"""Serves the MCP server over standard input and output, for one person, started by their client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.mcp.request_memory import OneOwner
from langchain_supabase_memory.mcp.server import MemoryServer

if TYPE_CHECKING:
    from langchain_supabase_memory.mcp.request_memory import ServerOptions
    from langchain_supabase_memory.memory.memory import SupabaseMemory


async def serve(memory: SupabaseMemory, options: ServerOptions) -> None:
    """Serve until the client disconnects. Standard output only carries the protocol.

    Args:
        memory: The person's memory; it is closed at the end.
        options: The options of the server.
    """
    async with memory:
        await MemoryServer(OneOwner(memory), options).run_stdio_async()
