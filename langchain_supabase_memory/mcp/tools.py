"""The table of tools: what a server offers, and the option that enables each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from mcp.types import ToolAnnotations

from langchain_supabase_memory.mcp import forget_tool, read_tools, share_tools, write_tools

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain_supabase_memory.mcp.answers import ToolReply

Access: TypeAlias = Literal["read", "write", "forget", "withdraw"]
"""How a tool accesses a memory."""


@dataclass(frozen=True)
class MemoryTool:
    """A tool.

    Attributes:
        function: Answers a call. A model sees its name, its arguments and its docstring.
        title: What a client calls it before a person.
        access: How it accesses the memory: a tool that reads is always offered, one that writes or withdraws with
            `--write`, and one that forgets with `--destructive`.
        of_spaces: Whether it is about spaces, and so only offered with `--spaces`.
    """

    function: Callable[..., Awaitable[ToolReply]]
    title: str
    access: Access = "read"
    of_spaces: bool = False

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.function.__name__


TOOLS: Final = (
    MemoryTool(read_tools.search_conversation_history, "Search past conversations"),
    MemoryTool(read_tools.get_context, "Get context for an answer"),
    MemoryTool(read_tools.list_conversations, "List conversations"),
    MemoryTool(read_tools.get_conversation_summary, "Read a conversation's summary"),
    MemoryTool(read_tools.get_profile, "Read the profile"),
    MemoryTool(read_tools.get_insights, "Read insights"),
    MemoryTool(read_tools.read_messages, "Read messages"),
    MemoryTool(read_tools.get_turn, "Read one turn"),
    MemoryTool(write_tools.save_turn, "Save a turn", "write"),
    MemoryTool(write_tools.remember, "Remember something", "write"),
    MemoryTool(forget_tool.forget, "Forget permanently", "forget"),
    MemoryTool(share_tools.list_spaces, "List spaces", of_spaces=True),
    MemoryTool(share_tools.read_space_board, "Read a space's board", of_spaces=True),
    MemoryTool(share_tools.share_with_space, "Share with a space", "write", of_spaces=True),
    MemoryTool(share_tools.withdraw_from_space, "Take back from a space", "withdraw", of_spaces=True),
)
"""All tools, in the order in which a server lists them. `docs/mcp.md` has a row for each."""

ANNOTATIONS: Final[dict[Access, ToolAnnotations]] = {
    "read": ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    "write": ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False),
    "forget": ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
    "withdraw": ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    ),
}
"""The annotations that a client receives."""
