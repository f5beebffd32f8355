"""What was passed as a memory, if it is one: for what is made over a memory."""

from __future__ import annotations

from langchain_supabase_memory.checks import wrong
from langchain_supabase_memory.memory.memory import SupabaseMemory
from langchain_supabase_memory.memory.misuse import HOW_TO_OPEN, instead_of


def opened(memory: object) -> SupabaseMemory:
    """What was passed as a memory.

    Args:
        memory: What was passed.

    Raises:
        ConfigurationError: It is none.
    """
    if isinstance(memory, SupabaseMemory):
        return memory
    raise wrong("memory", "a SupabaseMemory", memory, HOW_TO_OPEN if memory is None else instead_of(memory))
