# Written by tools/handles.py. Do not edit.
"""Operations on a conversation's turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import ConversationPartHandle, load
from langchain_supabase_memory.operations.turns import TEMPLATE

if TYPE_CHECKING:
    import builtins
    from collections.abc import Iterable
    from datetime import datetime

    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import FoundSignal, Signal, Turn


class ConversationTurns(ConversationPartHandle):
    """A conversation's complete turns: the user's message and the final answer."""

    def list(
        self,
        *,
        last: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        retention: Retention | None = None,
    ) -> builtins.list[Turn]:
        """List the complete turns, oldest first: the user's query and the final answer, without tool calls in between.

        Args:
            last: Only this many of the newest turns.
            since: Only turns asked at or after this time, with a time zone.
            until: Only turns asked before this time, with a time zone.
            before: Only turns that begin before the message with this number. To get the previous page, pass the
                `from_sequence` of the page's first turn.
            retention: Turns beyond this retention are not returned; by default the memory's retention.

        Raises:
            InvalidInputError: `last` or `before` is negative, or a time is naive.
        """
        from langchain_supabase_memory.operations.turns import list_turns

        return self._services.run(
            list_turns(
                self._key,
                last=last,
                since=since,
                until=until,
                before=before,
                retention=retention or self._services.settings.retention,
            )
        )

    async def alist(
        self,
        *,
        last: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        retention: Retention | None = None,
    ) -> builtins.list[Turn]:
        """The async twin of `list`."""
        await load("langchain_supabase_memory.operations.turns")
        from langchain_supabase_memory.operations.turns import list_turns

        return await self._services.arun(
            list_turns(
                self._key,
                last=last,
                since=since,
                until=until,
                before=before,
                retention=retention or self._services.settings.retention,
            )
        )

    def get(self, number: int) -> Turn | None:
        """Return one complete turn by its number; a negative number counts from the end.

        Args:
            number: 1 is the oldest retained turn; -1 is the newest.

        Returns:
            The turn; `None` if there is no turn with this number.

        Raises:
            InvalidInputError: The number is 0 or not a whole number.
        """
        from langchain_supabase_memory.operations.turns import read_turn

        return self._services.run(read_turn(self._key, number, retention=self._services.settings.retention))

    async def aget(self, number: int) -> Turn | None:
        """The async twin of `get`."""
        await load("langchain_supabase_memory.operations.turns")
        from langchain_supabase_memory.operations.turns import read_turn

        return await self._services.arun(read_turn(self._key, number, retention=self._services.settings.retention))

    def as_text(
        self,
        *,
        template: str = TEMPLATE,
        separator: str = "\n\n",
        last: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        retention: Retention | None = None,
    ) -> str:
        """Render the complete turns as text for a prompt, with each query and answer in a template.

        Args:
            template: The format string of a turn, over `number`, `speaker`, `user_query`, `ai_response`, `created_at`.
                The speaker is `User`, or in a space what its members call who asked.
            separator: The text between two turns.
            last: Only this many of the newest turns.
            since: Only turns asked at or after this time, with a time zone.
            until: Only turns asked before this time, with a time zone.
            retention: Turns beyond this retention are left out; by default the memory's retention.

        Raises:
            InvalidInputError: `last` is negative, a time is naive, or the template uses an unknown name.
        """
        from langchain_supabase_memory.operations.turns import turns_as_text

        return self._services.run(
            turns_as_text(
                self._key,
                template=template,
                separator=separator,
                last=last,
                since=since,
                until=until,
                retention=retention or self._services.settings.retention,
            )
        )

    async def aas_text(
        self,
        *,
        template: str = TEMPLATE,
        separator: str = "\n\n",
        last: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        retention: Retention | None = None,
    ) -> str:
        """The async twin of `as_text`."""
        await load("langchain_supabase_memory.operations.turns")
        from langchain_supabase_memory.operations.turns import turns_as_text

        return await self._services.arun(
            turns_as_text(
                self._key,
                template=template,
                separator=separator,
                last=last,
                since=since,
                until=until,
                retention=retention or self._services.settings.retention,
            )
        )

    def signals(
        self,
        *,
        only: Iterable[Signal | str] | None = None,
        from_sequence: int | None = None,
        to_sequence: int | None = None,
        limit: int | None = None,
        retention: Retention | None = None,
    ) -> builtins.list[FoundSignal]:
        """List what the user's words tell about how the conversation goes, with the words, in order.

        Args:
            only: Only these signals, such as `["complaint"]`; `None` means all.
            from_sequence: The first message to look at; `None` means the beginning.
            to_sequence: The last one; `None` means the end.
            limit: The maximum number of messages with signals; `None` means all.
            retention: The retention to apply; by default all messages are retained.

        Raises:
            InvalidInputError: `only` has something that is no signal, or `limit` is negative.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.operations.signals import signals

        return self._services.run(
            signals(
                self._key,
                only=only,
                from_sequence=from_sequence,
                to_sequence=to_sequence,
                limit=limit,
                retention=retention or self._services.settings.retention,
            )
        )

    async def asignals(
        self,
        *,
        only: Iterable[Signal | str] | None = None,
        from_sequence: int | None = None,
        to_sequence: int | None = None,
        limit: int | None = None,
        retention: Retention | None = None,
    ) -> builtins.list[FoundSignal]:
        """The async twin of `signals`."""
        await load("langchain_supabase_memory.operations.signals")
        from langchain_supabase_memory.operations.signals import signals

        return await self._services.arun(
            signals(
                self._key,
                only=only,
                from_sequence=from_sequence,
                to_sequence=to_sequence,
                limit=limit,
                retention=retention or self._services.settings.retention,
            )
        )
