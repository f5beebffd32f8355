"""Conversations by all of their ids, like a row of the database."""

from __future__ import annotations

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.types import Conversation


def conversation_of(
    memory: SupabaseMemory, thread_id: str, *, user_id: str | None = None, agent_id: str | None = None
) -> Conversation:
    """Return the handle of a user's conversation; the memory's user by default."""
    return (memory if user_id is None else memory.for_user(user_id)).conversation(thread_id, agent_id=agent_id)
