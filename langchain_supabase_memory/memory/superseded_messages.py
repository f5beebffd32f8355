# Written by tools/handles.py. Do not edit.
"""What is done with messages that a graph has left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import ConversationHandle
from langchain_supabase_memory.operations.conversations import read_superseded, reinstate

if TYPE_CHECKING:
    import builtins
    from collections.abc import Sequence

    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import StoredMessage


class SupersededMessages(ConversationHandle):
    """The messages that a graph has left, because it was forked or they were removed from its state."""

    def list(self, *, retention: Retention | None = None) -> builtins.list[StoredMessage]:
        """The messages that a graph has left, in order; `reinstate` brings them back.

        Args:
            retention: What is kept; what is beyond it is not shown.

        Returns:
            The messages, oldest first.

        Raises:
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(read_superseded(self._key, retention=retention or self._services.settings.retention))

    async def alist(self, *, retention: Retention | None = None) -> builtins.list[StoredMessage]:
        """The async twin of `list`."""
        return await self._services.arun(
            read_superseded(self._key, retention=retention or self._services.settings.retention)
        )

    def reinstate(self, message_ids: Sequence[str]) -> builtins.list[int]:
        """Bring messages back that a graph has left, because it was forked or they were removed from its state.

        They stand at their own numbers again, and no state of a graph takes them away any more.

        Args:
            message_ids: The ids of superseded messages, as `list` gives them.

        Returns:
            The numbers of those that are back. An id that is not superseded is passed over.

        Raises:
            InvalidInputError: `message_ids` is no list.
        """
        return self._services.run(reinstate(self._key, message_ids))

    async def areinstate(self, message_ids: Sequence[str]) -> builtins.list[int]:
        """The async twin of `reinstate`."""
        return await self._services.arun(reinstate(self._key, message_ids))
