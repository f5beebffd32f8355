# Written by tools/handles.py. Do not edit.
"""Operations on a rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import MemoryHandle, load

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_supabase_memory.operations.rollout.comparison import Comparison, RolloutReport
    from langchain_supabase_memory.operations.rollout.stages import Decision, Stage


class Rollouts(MemoryHandle):
    """The rollout of the memory to agents in stages, and comparisons of old and new context: `memory.rollout`.

    See `Rollout` for the stages.
    """

    def set(
        self, stage: Stage, *, agent_id: str | None = None, actor: str, share: float = 1.0, rest: Stage = "off"
    ) -> Decision:
        """Set the stage of an agent on all servers: at once, or within the `cache_seconds` of their `Rollout`.

        Args:
            agent_id: The agent; the memory's by default.
            stage: The stage.
            actor: Who decides; recorded with the time.
            share: The share of the users, from 0 to 1, that receive it. A hash of the user id decides, so a user's side
                is stable, and users stay in the share while it grows.
            rest: The stage of the other users.

        Returns:
            The recorded decision.

        Raises:
            InvalidInputError: The stage or the share is not valid, or the actor is empty.
            PermissionDeniedError: Only servers may.
        """
        from langchain_supabase_memory.operations.rollout.stages import set_stage

        return self._services.run(set_stage(self._services.agent(agent_id), stage, actor=actor, share=share, rest=rest))

    async def aset(
        self, stage: Stage, *, agent_id: str | None = None, actor: str, share: float = 1.0, rest: Stage = "off"
    ) -> Decision:
        """The async twin of `set`."""
        await load("langchain_supabase_memory.operations.rollout.stages")
        from langchain_supabase_memory.operations.rollout.stages import set_stage

        return await self._services.arun(
            set_stage(self._services.agent(agent_id), stage, actor=actor, share=share, rest=rest)
        )

    def stage(self, *, agent_id: str | None = None) -> Stage | None:
        """Read the stage of an agent from the database, uncached.

        Args:
            agent_id: The agent; the memory's by default.

        Returns:
            The stage; `None` if there is no decision.
        """
        from langchain_supabase_memory.operations.rollout.stages import stage

        return self._services.run(stage(self._services.agent(agent_id), self._services.served_user_id))

    async def astage(self, *, agent_id: str | None = None) -> Stage | None:
        """The async twin of `stage`."""
        await load("langchain_supabase_memory.operations.rollout.stages")
        from langchain_supabase_memory.operations.rollout.stages import stage

        return await self._services.arun(stage(self._services.agent(agent_id), self._services.served_user_id))

    def history(self, *, agent_id: str | None = None, last: int = 100) -> list[Decision]:
        """List the newest decisions on an agent's stage, in order, with who made each and when.

        Args:
            agent_id: The agent; the memory's by default.
            last: The maximum number to return.

        Raises:
            PermissionDeniedError: Only servers may.
        """
        from langchain_supabase_memory.operations.rollout.stages import history

        return self._services.run(history(self._services.agent(agent_id), last=last))

    async def ahistory(self, *, agent_id: str | None = None, last: int = 100) -> list[Decision]:
        """The async twin of `history`."""
        await load("langchain_supabase_memory.operations.rollout.stages")
        from langchain_supabase_memory.operations.rollout.stages import history

        return await self._services.arun(history(self._services.agent(agent_id), last=last))

    def comparisons(self, thread_id: str, *, agent_id: str | None = None, last: int = 100) -> list[Comparison]:
        """List the newest comparisons of a rollout in a conversation, in order. They are retained for 30 days.

        Args:
            thread_id: The conversation's thread.
            agent_id: The agent; the memory's by default.
            last: The maximum number to return.
        """
        from langchain_supabase_memory.operations.rollout.comparison import comparisons

        return self._services.run(comparisons(self._services.key(thread_id, None, agent_id), last=last))

    async def acomparisons(self, thread_id: str, *, agent_id: str | None = None, last: int = 100) -> list[Comparison]:
        """The async twin of `comparisons`."""
        await load("langchain_supabase_memory.operations.rollout.comparison")
        from langchain_supabase_memory.operations.rollout.comparison import comparisons

        return await self._services.arun(comparisons(self._services.key(thread_id, None, agent_id), last=last))

    def report(self, *, agent_id: str | None = None, since: datetime | None = None) -> RolloutReport:
        """Aggregate the comparisons by stage.

        Args:
            agent_id: Only this agent's comparisons; `None` means all agents.
            since: Only comparisons from this time on, with a time zone.

        Raises:
            InvalidInputError: The time is naive.
        """
        from langchain_supabase_memory.operations.rollout.comparison import report

        return self._services.run(report(user_id=self._services.scope_text(), agent_id=agent_id, since=since))

    async def areport(self, *, agent_id: str | None = None, since: datetime | None = None) -> RolloutReport:
        """The async twin of `report`."""
        await load("langchain_supabase_memory.operations.rollout.comparison")
        from langchain_supabase_memory.operations.rollout.comparison import report

        return await self._services.arun(report(user_id=self._services.scope_text(), agent_id=agent_id, since=since))
