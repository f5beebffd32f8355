"""Serves the MCP server over HTTP in its own process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import uvicorn

from langchain_supabase_memory.mcp.http_app import app
from langchain_supabase_memory.mcp.tokens import SigningKeys

if TYPE_CHECKING:
    from socket import socket

    from langchain_supabase_memory.mcp.http_app import AuthSite
    from langchain_supabase_memory.mcp.request_memory import ServerOptions
    from langchain_supabase_memory.memory.memory import SupabaseMemory


async def serve(shared: SupabaseMemory, site: AuthSite, options: ServerOptions, host: str, port: int) -> None:
    """Serve until the process is stopped.

    Args:
        shared: A memory with the publishable key; it is closed at the end.
        site: The server's address, and the issuer that signs its users in.
        options: The options of the server.
        host: The address to listen on.
        port: The port.

    Raises:
        ConfigurationError: The project's tokens cannot be verified.
        UnavailableError: Its keys cannot be fetched.
    """
    async with shared:
        keys = SigningKeys(site.keys)
        await keys.load()
        config = uvicorn.Config(app(shared, site, options, keys=keys), host=host, port=port, log_level="warning")
        await _McpServer(config, site.address).serve()


class _McpServer(uvicorn.Server):
    """A server that reports when it listens.

    Args:
        config: The server's configuration.
        address: Its address, as clients know it.
    """

    def __init__(self, config: uvicorn.Config, address: str) -> None:
        super().__init__(config)
        self._address = address

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Start listening, and report it."""
        await super().startup(sockets)
        if self.started:
            click.echo(f"Listening at {self._address}", err=True)
