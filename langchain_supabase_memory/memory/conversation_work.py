# Written by tools/handles.py. Do not edit.
"""Background work on one conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import ConversationPartHandle, load

if TYPE_CHECKING:
    from langchain_supabase_memory.operations.work import ConversationStatus


class ConversationWork(ConversationPartHandle):
    """Background work on one conversation."""

    def status(self) -> ConversationStatus | None:
        """Return the state of the conversation's work and how far it is covered; `None` if it does not exist."""
        from langchain_supabase_memory.operations.work import status_of

        return self._services.run(status_of(self._key))

    async def astatus(self) -> ConversationStatus | None:
        """The async twin of `status`."""
        await load("langchain_supabase_memory.operations.work")
        from langchain_supabase_memory.operations.work import status_of

        return await self._services.arun(status_of(self._key))

    def retry(self) -> int:
        """Retry this conversation's work that workers have given up; requires a server's rights.

        Returns:
            The number of conversations: 1 or 0.
        """
        from langchain_supabase_memory.operations.work import retry_one

        return self._services.run(retry_one(self._key))

    async def aretry(self) -> int:
        """The async twin of `retry`."""
        await load("langchain_supabase_memory.operations.work")
        from langchain_supabase_memory.operations.work import retry_one

        return await self._services.arun(retry_one(self._key))
