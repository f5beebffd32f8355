"""Check that an argument is a memory."""

from __future__ import annotations

from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.memory.argument_checks import HOW_TO_OPEN, wrong_constructor
from langchain_supabase_memory.memory.memory import SupabaseMemory


def require_memory(memory: object) -> SupabaseMemory:
    """Return the argument if it is a memory.

    Args:
        memory: The argument.

    Raises:
        ConfigurationError: It is not a memory.
    """
    if isinstance(memory, SupabaseMemory):
        return memory
    raise wrong_type("memory", "a SupabaseMemory", memory, HOW_TO_OPEN if memory is None else wrong_constructor(memory))
