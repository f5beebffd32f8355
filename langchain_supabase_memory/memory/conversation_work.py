# Written by tools/handles.py. Do not edit.
"""What workers have to do for a conversation."""

from __future__ import annotations

from langchain_supabase_memory.memory.handle import ConversationHandle
from langchain_supabase_memory.operations.work import ConversationStatus, retry_one, status_of


class ConversationWork(ConversationHandle):
    """What workers have to do for a conversation."""

    def status(self) -> ConversationStatus | None:
        """What of it is due, running, waiting or dead, and how far it is covered; `None` if there is no such one."""
        return self._services.run(status_of(self._key))

    async def astatus(self) -> ConversationStatus | None:
        """The async twin of `status`."""
        return await self._services.arun(status_of(self._key))

    def retry(self) -> int:
        """Try again what workers have given up here; it needs a server's rights.

        Returns:
            How many conversations: 1 or 0.
        """
        return self._services.run(retry_one(self._key))

    async def aretry(self) -> int:
        """The async twin of `retry`."""
        return await self._services.arun(retry_one(self._key))
