"""What is done with a rollout by who holds a memory: a sync and an async method for each verb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.models import check_id
from langchain_supabase_memory.rollout.comparison import comparisons, report
from langchain_supabase_memory.rollout.stages import decide, decisions, stage_in, standing

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.models import ConversationKey
    from langchain_supabase_memory.rollout.comparison import Comparison, RolloutReport
    from langchain_supabase_memory.rollout.stages import Decision, Stage

T = TypeVar("T")


class Runner(Protocol):
    """What drives the flows: a memory."""

    user_id: str | None
    agent_id: str

    def key(self, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> ConversationKey:
        """The conversation that ids name."""

    def run(self, flow: Flow[T]) -> T:
        """Drive a flow."""

    async def arun(self, flow: Flow[T]) -> T:
        """Drive a flow."""


class Rollouts:
    """The verbs over rollouts. See `Rollout` for the stages.

    Args:
        memory: The memory.
    """

    def __init__(self, memory: Runner) -> None:
        self._memory = memory

    def set(
        self, stage: Stage, *, by: str, agent_id: str | None = None, share: float = 1.0, rest: Stage = "off"
    ) -> Decision:
        """Set the stage of an agent, for all servers: at once, or within the `cache_seconds` of their `Rollout`.

        Args:
            stage: The stage.
            by: Who decides; it is noted, with the time.
            agent_id: The agent; the memory's by default.
            share: The share of the users, from 0 to 1, that receive it. Who is among them is drawn by their ids, so
                that a user stays on their side, and stays inside while the share grows.
            rest: What the others receive.

        Returns:
            The decision, as it was noted.

        Raises:
            InvalidInputError: The stage or the share is none, or nobody is named.
            PermissionDeniedError: Only servers may.
        """
        return self._memory.run(decide(self._agent(agent_id), stage, share, rest, by))

    async def aset(
        self, stage: Stage, *, by: str, agent_id: str | None = None, share: float = 1.0, rest: Stage = "off"
    ) -> Decision:
        """The async twin of `set`."""
        return await self._memory.arun(decide(self._agent(agent_id), stage, share, rest, by))

    def stage(self, *, agent_id: str | None = None, user_id: str | None = None) -> Stage | None:
        """What the database says of an agent now, uncached.

        Args:
            agent_id: The agent; the memory's by default.
            user_id: Whose stage; by default the memory's user, or the token's, or the stage of the share.

        Returns:
            The stage; `None` if nobody has decided.
        """
        return self._memory.run(self._stage(agent_id, user_id))

    async def astage(self, *, agent_id: str | None = None, user_id: str | None = None) -> Stage | None:
        """The async twin of `stage`."""
        return await self._memory.arun(self._stage(agent_id, user_id))

    def history(self, *, agent_id: str | None = None, last: int = 100) -> list[Decision]:
        """Who set the stage of an agent to what, and when: the newest so many decisions, in order.

        Raises:
            PermissionDeniedError: Only servers may.
        """
        return self._memory.run(decisions(self._agent(agent_id), _count(last)))

    async def ahistory(self, *, agent_id: str | None = None, last: int = 100) -> list[Decision]:
        """The async twin of `history`."""
        return await self._memory.arun(decisions(self._agent(agent_id), _count(last)))

    def comparisons(
        self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None, last: int = 100
    ) -> list[Comparison]:
        """The newest so many comparisons of a conversation, in order. They are kept for 30 days."""
        return self._memory.run(comparisons(self._memory.key(thread_id, user_id, agent_id), _count(last)))

    async def acomparisons(
        self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None, last: int = 100
    ) -> list[Comparison]:
        """The async twin of `comparisons`."""
        return await self._memory.arun(comparisons(self._memory.key(thread_id, user_id, agent_id), _count(last)))

    def report(
        self, *, user_id: str | None = None, agent_id: str | None = None, since: datetime | None = None
    ) -> RolloutReport:
        """What the comparisons come to, by stage.

        Args:
            user_id: Only this user's; `None` means everybody's that the caller may see.
            agent_id: Only this agent's; `None` means all agents'.
            since: Only those made since, with a time zone.

        Raises:
            InvalidInputError: The time is naive.
        """
        return self._memory.run(report(user_id, agent_id, since))

    async def areport(
        self, *, user_id: str | None = None, agent_id: str | None = None, since: datetime | None = None
    ) -> RolloutReport:
        """The async twin of `report`."""
        return await self._memory.arun(report(user_id, agent_id, since))

    def _agent(self, agent_id: str | None) -> str:
        chosen = self._memory.agent_id if agent_id is None else agent_id
        check_id("agent_id", chosen)
        return chosen

    def _stage(self, agent_id: str | None, user_id: str | None) -> Flow[Stage | None]:
        owner = user_id or self._memory.user_id
        document = yield from standing(self._agent(agent_id), owner)
        return None if document is None else stage_in(document, owner)


def _count(last: int) -> int:
    if isinstance(last, bool) or not isinstance(last, int) or last < 0:
        raise InvalidInputError("last must be a whole number from 0.", hint="Pass last=20, for example.")
    return last
