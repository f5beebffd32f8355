"""Prompts that a person picks in a client: continue a conversation, and what is open."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from langchain_supabase_memory.agents.tools import history
from langchain_supabase_memory.mcp import read_tools
from langchain_supabase_memory.mcp.run_tools import describe_conversation

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_Id = Annotated[str | None, Field(description="Which conversation; the newest by default.")]


def add_to(server: MCPServer[Any]) -> None:
    """Add the prompts to a server."""
    server.prompt(title="Continue a conversation", description="Continue a conversation where it stopped.")(
        continue_conversation
    )
    server.prompt(title="What is open", description="What is left to do, and what was never answered.")(what_is_open)


async def continue_conversation(conversation_id: _Id = None) -> str:
    """Go on where a conversation stopped."""
    text, _ = await read_tools.context("", conversation_id or None, read_tools.TOKENS)
    return f"Let us continue this conversation. Say in two sentences where we stopped.\n\n{text}"


async def what_is_open(conversation_id: _Id = None) -> str:
    """What is left to do, and what was never answered."""
    parts = []
    for kind in ("action_items", "questions"):
        text, _ = await describe_conversation(
            conversation_id or None, partial(history.recall_context, context_type=kind)
        )
        parts.append(text)
    return "\n\n".join(["What is still open here? List it, the most urgent first.", *parts])
