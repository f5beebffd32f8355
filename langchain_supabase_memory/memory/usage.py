# Written by tools/handles.py. Do not edit.
"""What a user's conversations came to on each day, in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import MemoryHandle, load

if TYPE_CHECKING:
    from datetime import date

    from langchain_supabase_memory.operations.usage import Insights, UsageDay


class DailyUsage(MemoryHandle):
    """What conversations came to on each day, in numbers alone: `memory.usage`."""

    def by_day(
        self, *, since: date | None = None, until: date | None = None, agent_id: str | None = None
    ) -> list[UsageDay]:
        """List what the user's conversations came to on each day, the oldest day first.

        A day without anything has no row. Today's numbers are those that were counted so far.

        Args:
            since: The first day, in UTC; by default 30 days up to `until`.
            until: The last day, in UTC; by default today.
            agent_id: Only conversations with this agent; by default each agent has its own rows.

        Raises:
            InvalidInputError: A day is no date, or a time.
        """
        from langchain_supabase_memory.operations.usage import by_day

        return self._services.run(by_day(self._services.owner(), since=since, until=until, agent_id=agent_id))

    async def aby_day(
        self, *, since: date | None = None, until: date | None = None, agent_id: str | None = None
    ) -> list[UsageDay]:
        """The async twin of `by_day`."""
        await load("langchain_supabase_memory.operations.usage")
        from langchain_supabase_memory.operations.usage import by_day

        return await self._services.arun(by_day(self._services.owner(), since=since, until=until, agent_id=agent_id))

    def update(self) -> int:
        """Count what was said, sent and found since it was counted last.

        A worker does it by itself. It may be killed and repeated at any time: nothing is counted twice. It needs server
        permissions.

        Returns:
            How many messages were counted.
        """
        from langchain_supabase_memory.operations.usage import update

        return self._services.run(update(self._services.served_user_id))

    async def aupdate(self) -> int:
        """The async twin of `update`."""
        await load("langchain_supabase_memory.operations.usage")
        from langchain_supabase_memory.operations.usage import update

        return await self._services.arun(update(self._services.served_user_id))

    def insights(
        self, *, since: date | None = None, until: date | None = None, agent_id: str | None = None, k: int | None = None
    ) -> Insights:
        """Count users over all users by whole day: how many talked, had each signal, or got nothing from recall.

        The counts have noise, so that nobody can tell by them whether somebody is among them. Users who refuse
        analytics are in none. It needs server permissions.

        Args:
            since: The first day, in UTC; by default 30 days up to `until`.
            until: The last day, in UTC; by default yesterday, which is also the last possible day.
            agent_id: Only users of this agent.
            k: Leaves out more counts than the database does by itself; a smaller number has no effect.

        Raises:
            InvalidInputError: A day is no date, or k is negative.
        """
        from langchain_supabase_memory.operations.usage import insights

        return self._services.run(insights(since=since, until=until, agent_id=agent_id, k=k))

    async def ainsights(
        self, *, since: date | None = None, until: date | None = None, agent_id: str | None = None, k: int | None = None
    ) -> Insights:
        """The async twin of `insights`."""
        await load("langchain_supabase_memory.operations.usage")
        from langchain_supabase_memory.operations.usage import insights

        return await self._services.arun(insights(since=since, until=until, agent_id=agent_id, k=k))
