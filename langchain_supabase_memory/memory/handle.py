"""The ids behind a conversation's handle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.flows.conversation import ConversationFlows
from langchain_supabase_memory.unpicklable import Unpicklable

if TYPE_CHECKING:
    from langchain_supabase_memory.memory.services import Services
    from langchain_supabase_memory.values import ConversationKey


class Handle(Unpicklable):
    """One conversation's ids, and the memory whose it is.

    Args:
        memory: The memory.
        key: What names the conversation.
    """

    def __init__(self, memory: Services, key: ConversationKey) -> None:
        self._memory = memory
        self._flows = ConversationFlows(memory, key)
        self.key = key

    def __repr__(self) -> str:
        """Its ids."""
        key = self.key
        return f"Conversation({key.thread_id!r}, user_id={key.user_id!r}, agent_id={key.agent_id!r})"
