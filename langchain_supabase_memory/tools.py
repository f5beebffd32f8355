"""The individual tools of an agent; `SupabaseMemoryToolkit` has all of those that read."""

from langchain_supabase_memory.agents.tools import (
    get_conversation_summary_tool,
    get_profile_tool,
    get_turn_tool,
    read_messages_tool,
    recall_context_tool,
    remember_tool,
    search_conversation_history_tool,
    share_with_team_tool,
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
