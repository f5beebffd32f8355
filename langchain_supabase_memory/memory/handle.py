"""What handles hold: a memory, and the ids of a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.unpicklable import Unpicklable

if TYPE_CHECKING:
    from langchain_supabase_memory.memory.services import Services
    from langchain_supabase_memory.values import ConversationKey


class MemoryHandle(Unpicklable):
    """A part of what a memory does.

    Args:
        memory: The memory.
    """

    def __init__(self, memory: Services) -> None:
        self._memory = memory


class ConversationHandle(Unpicklable):
    """One conversation's ids, and the memory whose it is.

    Args:
        memory: The memory.
        key: What names the conversation.
    """

    def __init__(self, memory: Services, key: ConversationKey) -> None:
        self._memory = memory
        self._key = key

    @property
    def key(self) -> ConversationKey:
        """What names the conversation."""
        return self._key

    def __repr__(self) -> str:
        """Its ids."""
        key = self._key
        return f"{type(self).__name__}({key.thread_id!r}, user_id={key.user_id!r}, agent_id={key.agent_id!r})"
