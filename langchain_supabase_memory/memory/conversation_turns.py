# Written by tools/handles.py. Do not edit.
"""What is done with a conversation's turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import ConversationHandle
from langchain_supabase_memory.operations.turns import TEMPLATE, list_turns, read_turn, turns_as_text

if TYPE_CHECKING:
    import builtins
    from datetime import datetime

    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import Turn


class ConversationTurns(ConversationHandle):
    """A conversation's complete turns: what the user said and the final answer."""

    def list(
        self,
        *,
        last: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        retention: Retention | None = None,
    ) -> builtins.list[Turn]:
        """The complete turns, oldest first: what was asked and the final answer, without what tools did in between.

        Args:
            last: Only the newest so many.
            since: Only those asked at or after this time, with a time zone.
            until: Only those asked before this time, with a time zone.
            before: Only those that begin before the message with this number: the `from_sequence` of the first turn of
                a page, for the page before it.
            retention: What is kept; what is beyond it is not shown. The memory's by default.

        Raises:
            InvalidInputError: `last` or `before` is negative, or a time is naive.
        """
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
        """One complete turn by its number; from the end, if it is negative.

        Args:
            number: From 1 for the oldest that is kept; -1 is the newest.

        Returns:
            The turn; `None` if there is none of this number.

        Raises:
            InvalidInputError: The number is 0 or none.
        """
        return self._services.run(read_turn(self._key, number, retention=self._services.settings.retention))

    async def aget(self, number: int) -> Turn | None:
        """The async twin of `get`."""
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
        """The complete turns as text for a prompt, query and answer in a template.

        Args:
            template: How one is written: a format string over `number`, `user_query`, `ai_response` and `created_at`.
            separator: What stands between two.
            last: Only the newest so many.
            since: Only those asked at or after this time, with a time zone.
            until: Only those asked before this time, with a time zone.
            retention: What is kept; what is beyond it is not shown. The memory's by default.

        Raises:
            InvalidInputError: `last` is negative, a time is naive, or the template names something else.
        """
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
