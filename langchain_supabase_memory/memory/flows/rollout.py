"""What is done with a rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.operations.rollout import comparison, stages
from langchain_supabase_memory.values import check_id

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory.services import Services
    from langchain_supabase_memory.operations.rollout.comparison import RolloutReport
    from langchain_supabase_memory.operations.rollout.stages import Decision, Stage


class RolloutFlows:
    """The stage at which agents are that are introduced to the memory, and how the contexts compare: `memory.rollout`.

    See `Rollout` for the stages, and `Conversation.comparisons` for those of one conversation.
    """

    def __init__(self, memory: Services) -> None:
        self._memory = memory

    def set(
        self, stage: Stage, *, actor: str, agent_id: str | None = None, share: float = 1.0, rest: Stage = "off"
    ) -> Flow[Decision]:
        """Set the stage of an agent, for all servers: at once, or within the `cache_seconds` of their `Rollout`.

        Args:
            stage: The stage.
            actor: Who decides; it is noted, with the time.
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
        return (yield from stages.decide(self._agent(agent_id), stage, share, rest, actor))

    def stage(self, *, agent_id: str | None = None, user_id: str | None = None) -> Flow[Stage | None]:
        """What the database says of an agent now, uncached.

        Args:
            agent_id: The agent; the memory's by default.
            user_id: Whose stage; by default the memory's user, or the token's, or the stage of the share.

        Returns:
            The stage; `None` if nobody has decided.
        """
        owner = self._memory.scope_text(user_id)
        document = yield from stages.read_decision(self._agent(agent_id), owner)
        return None if document is None else stages.stage_from_state(document, owner)

    def history(self, *, agent_id: str | None = None, last: int = 100) -> Flow[list[Decision]]:
        """Who set the stage of an agent to what, and when: the newest decisions, in order.

        Args:
            agent_id: The agent; the memory's by default.
            last: How many.

        Raises:
            PermissionDeniedError: Only servers may.
        """
        return (yield from stages.decisions(self._agent(agent_id), last))

    def report(
        self, *, user_id: str | None = None, agent_id: str | None = None, since: datetime | None = None
    ) -> Flow[RolloutReport]:
        """What the comparisons come to, by stage.

        Args:
            user_id: Only this user's; `None` means everybody's that the caller may see.
            agent_id: Only this agent's; `None` means all agents'.
            since: Only those made since, with a time zone.

        Raises:
            InvalidInputError: The time is naive.
        """
        return (yield from comparison.report(user_id, agent_id, since))

    def _agent(self, agent_id: str | None) -> str:
        chosen = self._memory.agent_id if agent_id is None else agent_id
        check_id("agent_id", chosen)
        return chosen
