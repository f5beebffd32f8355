# Written by tools/handles.py. Do not edit.
"""Operations on messages that a graph has left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import ConversationPartHandle, load

if TYPE_CHECKING:
    import builtins
    from collections.abc import Sequence

    from langchain_supabase_memory.operations.conversations import Column
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import StoredMessage


class SupersededMessages(ConversationPartHandle):
    """The messages that a graph has left, because it was forked or they were removed from its state."""

    def list(
        self,
        *,
        from_sequence: int | None = None,
        to_sequence: int | None = None,
        columns: Sequence[Column] | None = None,
        retention: Retention | None = None,
    ) -> builtins.list[StoredMessage]:
        """List the messages that a graph has left, in order; `reinstate` restores them.

        Args:
            from_sequence: Only messages with this number or a higher one.
            to_sequence: Only messages with this number or a lower one.
            columns: The columns to read, as for `read`; by default `payload`.
            retention: Messages beyond this retention are not returned.

        Returns:
            The messages, oldest first.

        Raises:
            InvalidInputError: A bound is negative, or a column is unknown.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.operations.conversations import read_superseded

        return self._services.run(
            read_superseded(
                self._key,
                from_sequence=from_sequence,
                to_sequence=to_sequence,
                columns=columns,
                retention=retention or self._services.settings.retention,
            )
        )

    async def alist(
        self,
        *,
        from_sequence: int | None = None,
        to_sequence: int | None = None,
        columns: Sequence[Column] | None = None,
        retention: Retention | None = None,
    ) -> builtins.list[StoredMessage]:
        """The async twin of `list`."""
        await load("langchain_supabase_memory.operations.conversations")
        from langchain_supabase_memory.operations.conversations import read_superseded

        return await self._services.arun(
            read_superseded(
                self._key,
                from_sequence=from_sequence,
                to_sequence=to_sequence,
                columns=columns,
                retention=retention or self._services.settings.retention,
            )
        )

    def reinstate(self, message_ids: Sequence[str]) -> builtins.list[int]:
        """Restore messages that a graph has left, because it was forked or they were removed from its state.

        They return to their own numbers, and no graph state can remove them any more.

        Args:
            message_ids: The ids of superseded messages, as `list` gives them.

        Returns:
            The numbers of the restored messages. Ids that are not superseded are skipped.

        Raises:
            InvalidInputError: `message_ids` is not a list.
        """
        from langchain_supabase_memory.operations.conversations import reinstate

        return self._services.run(reinstate(self._key, message_ids))

    async def areinstate(self, message_ids: Sequence[str]) -> builtins.list[int]:
        """The async twin of `reinstate`."""
        await load("langchain_supabase_memory.operations.conversations")
        from langchain_supabase_memory.operations.conversations import reinstate

        return await self._services.arun(reinstate(self._key, message_ids))
