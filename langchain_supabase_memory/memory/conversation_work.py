# Written by tools/handles.py. Do not edit.
"""Background work on one conversation."""

from __future__ import annotations

from langchain_supabase_memory.memory.handle import ConversationPartHandle
from langchain_supabase_memory.operations.work import ConversationStatus, retry_one, status_of


class ConversationWork(ConversationPartHandle):
    """Background work on one conversation."""

    def status(self) -> ConversationStatus | None:
        """Return the state of the conversation's work and how far it is covered; `None` if it does not exist."""
        return self._services.run(status_of(self._key))

    async def astatus(self) -> ConversationStatus | None:
        """The async twin of `status`."""
        return await self._services.arun(status_of(self._key))

    def retry(self) -> int:
        """Retry this conversation's work that workers have given up; requires a server's rights.

        Returns:
            The number of conversations: 1 or 0.
        """
        return self._services.run(retry_one(self._key))

    async def aretry(self) -> int:
        """The async twin of `retry`."""
        return await self._services.arun(retry_one(self._key))
