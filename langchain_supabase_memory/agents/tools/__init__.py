"""Tools for agents: what was said in the conversations of the one they work for, and nobody else's.

- `bound`: whose conversation it is, how a call runs, and how it fails.
- `bounded`: results within a number of characters, dated, fenced as data.
- `history`: search, the summary, and what may be recalled by its kind.
- `derived`: what can be recalled by its kind, by rules over chunks.
- `turns`: one turn by its number.
- `messages`: the originals of a range.
- `toolkit`: all of them.
"""

from langchain_supabase_memory.agents.tools.history import (
    get_conversation_summary_tool,
    recall_context_tool,
    search_conversation_history_tool,
)
from langchain_supabase_memory.agents.tools.messages import read_messages_tool
from langchain_supabase_memory.agents.tools.toolkit import SupabaseMemoryToolkit
from langchain_supabase_memory.agents.tools.turns import get_turn_tool

__all__ = [
    "SupabaseMemoryToolkit",
    "get_conversation_summary_tool",
    "get_turn_tool",
    "read_messages_tool",
    "recall_context_tool",
    "search_conversation_history_tool",
]
