"""The individual tools of an agent; `SupabaseMemoryToolkit` has all of those that read."""

from langchain_supabase_memory.agents.tools import (
    SupabaseMemoryToolkit,  # noqa: F401  # the package has it from here
    get_conversation_summary_tool,
    get_profile_tool,
    get_turn_tool,
    read_messages_tool,
    recall_context_tool,
    remember_tool,
    search_conversation_history_tool,
    share_with_team_tool,
    structured_tool,  # noqa: F401  # slow to import: not where a tool is made, which may be in an event loop
)

__all__ = [
    "get_conversation_summary_tool",
    "get_profile_tool",
    "get_turn_tool",
    "read_messages_tool",
    "recall_context_tool",
    "remember_tool",
    "search_conversation_history_tool",
    "share_with_team_tool",
]
