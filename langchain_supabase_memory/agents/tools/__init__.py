"""Tools for agents that read what is stored of the current user only, and two that ask the person and then write.

- `binding`: the conversation's owner, how a call runs, and how it fails.
- `output_limit`: results within a number of characters, dated and fenced as data.
- `history`: search, the summary, and recall by kind.
- `exact_search`: search for an exact text.
- `board_recall`: recall by kind, from the board and by rules over chunks.
- `turns`: one turn by its number.
- `messages`: the original messages of a range.
- `profile`: what is known of the user, and something to remember about them, after asking the person.
- `share`: a quote of the conversation for a space, after asking the person.
- `toolkit`: all of the tools that read.
"""

from langchain_supabase_memory.agents.tools.history import (
    get_conversation_summary_tool,
    recall_context_tool,
    search_conversation_history_tool,
)
from langchain_supabase_memory.agents.tools.messages import read_messages_tool
from langchain_supabase_memory.agents.tools.profile import get_profile_tool, remember_tool
from langchain_supabase_memory.agents.tools.share import share_with_team_tool
from langchain_supabase_memory.agents.tools.toolkit import SupabaseMemoryToolkit
from langchain_supabase_memory.agents.tools.turns import get_turn_tool

__all__ = [
    "SupabaseMemoryToolkit",
    "get_conversation_summary_tool",
    "get_profile_tool",
    "get_turn_tool",
    "read_messages_tool",
    "recall_context_tool",
    "remember_tool",
    "search_conversation_history_tool",
    "share_with_team_tool",
]
