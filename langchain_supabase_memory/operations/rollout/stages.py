"""The stages from a truncated history to the memory's context, and the decision which stage applies."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, get_args

from langchain_supabase_memory.checks import boolean, function, number
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError
from langchain_supabase_memory.json_types import Named
from langchain_supabase_memory.operations.arguments import check_actor, check_limit
from langchain_supabase_memory.operations.rows import value_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from langchain_supabase_memory.operations.rollout.comparison import Comparison
    from langchain_supabase_memory.values import ConversationKey

Stage: TypeAlias = Literal["off", "parallel", 25, 15, 10, 5, "on"]
"""What an agent receives.

`"off"`: the last messages. `"parallel"`: the last messages, while the pack is computed for comparison. 25, 15, 10, 5:
the pack with at most this many recent messages. `"on"`: the pack, within its whole budget.
"""

STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
"""All stages, from no memory context to all of it."""

if TYPE_CHECKING:
    Flag: TypeAlias = Callable[[ConversationKey], Stage | str | Awaitable[Stage | str]]
    """A sync or async function that returns the stage of a conversation: your own feature flags."""

    OnComparison: TypeAlias = Callable[[Comparison], Any]
    """A function that receives each comparison."""
else:
    Flag = OnComparison = Annotated[Any, Named]

_BY_NAME: Final[dict[str, Stage]] = {str(stage): stage for stage in STAGES}
_BITS: Final = 48


@dataclass(frozen=True)
class Rollout:
    """How an agent moves from its last messages to the memory's context, and back at once.

    The stage is read again at every model call, so a change, and above all a rollback, applies from the next call
    on, without a deployment. If the flag or the database fails, or returns an unknown stage, the user's last known
    stage applies, or `"off"` if none is known; this is logged.

    Attributes:
        stage: The stage if there is no flag and the database has none for the agent.
        flag: Returns the stage, from your own service; then the database is not called. It may take at most two
            seconds. With a sync agent, an async flag runs in its own event loop.
        last_messages: How many of the last messages the old context has, including the current turn. Tool results
            stay with their calls and the current turn stays whole, so there may be fewer or more.
        on_comparison: Receives each comparison: numbers and ids, no content. It must be fast.
        record: Whether to store comparisons, for `memory.rollout.report()`.
        cache_seconds: How long the database's answer is cached in this process, in seconds: the maximum delay of a
            rollback by `memory.rollout.set`. With 0, every model call reads it.

    Raises:
        ConfigurationError: An argument is not one of its choices.

    Example:
        ```python
        middleware = SupabaseMemoryMiddleware(memory, rollout=Rollout())
        memory.rollout.set("parallel", actor="ana")  # compare, and change nothing
        print(memory.rollout.report())
        memory.rollout.set(25, actor="ana", share=0.1)  # a tenth of the users
        memory.rollout.set("off", actor="ana")  # back
        ```
    """

    stage: Stage = "off"
    flag: Flag | None = field(default=None, repr=False)
    last_messages: int = 50
    on_comparison: OnComparison | None = field(default=None, repr=False)
    record: bool = True
    cache_seconds: float = 2.0

    def __post_init__(self) -> None:
        if stage_of(self.stage) != self.stage:
            raise ConfigurationError("stage is not one of the stages.", hint=_HINT)
        function("flag", self.flag, "a function of the conversation's key")
        number("last_messages", self.last_messages, integer=True, optional=False, example=50)
        function("on_comparison", self.on_comparison, "a function of a Comparison")
        boolean("record", self.record)
        number("cache_seconds", self.cache_seconds, above=False, optional=False, example=2)


@dataclass(frozen=True)
class Decision:
    """A decision on the stage of an agent.

    Attributes:
        agent_id: The agent.
        version: The number of the decision, from 1; an agent's highest one applies.
        stage: The stage of the users in the share.
        share: The share of the users, from 0 to 1.
        rest: The stage of the other users.
        set_by: Who decided.
        set_at: When.
    """

    agent_id: str
    version: int
    stage: Stage
    share: float
    rest: Stage
    set_by: str
    set_at: datetime


def stage_of(value: object) -> Stage | None:
    """Parse a stage, such as `25` or `"25"`; `None` if it is not one."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    return _BY_NAME.get(str(value).strip().lower())


def is_in_share(user_id: str, share: float) -> bool:
    """Return whether a user is in the share. The answer is stable, and stays true while the share grows.

    Args:
        user_id: The user.
        share: The share of all users, from 0 to 1.
    """
    drawn = int(hashlib.sha256(user_id.encode()).hexdigest()[: _BITS // 4], 16)
    return drawn < share * (1 << _BITS)


def read_decision(agent_id: str, user_id: str | None) -> Flow[Mapping[str, Any] | None]:
    """Read the decision for an agent from the database; `None` if there is none.

    Args:
        agent_id: The agent.
        user_id: The user whose stage is `mine`; `None` means the subject of the caller's token.
    """
    found: Mapping[str, Any] | None = yield from call("memory_rollout", {"p_agent_id": agent_id, "p_user_id": user_id})
    return found


def stage_from_state(document: Mapping[str, Any], user_id: str | None) -> Stage | None:
    """Return a user's stage from the database's answer for the agent, which may have been read for another user.

    Args:
        document: The database's answer.
        user_id: The user; `None` means the user that it was read for.
    """
    if user_id is None:
        return stage_of(document["stage"] if document["mine"] is None else document["mine"])
    return stage_of(document["stage"] if is_in_share(user_id, document["share"]) else document["rest"])


def set_stage(agent_id: str, stage: Stage, *, actor: str, share: float = 1.0, rest: Stage = "off") -> Flow[Decision]:
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
    chosen, others = stage_of(stage), stage_of(rest)
    if chosen is None or others is None:
        name = "stage" if chosen is None else "rest"
        raise InvalidInputError(f"{name} is no stage.", hint=_HINT)
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        raise InvalidInputError("share must be a number from 0 to 1.", hint="Pass share=0.1 for a tenth of the users.")
    named = {"p_agent_id": agent_id, "p_stage": str(chosen), "p_share": float(share), "p_rest": str(others)}
    row = yield from call("memory_worker_set_rollout", {**named, "p_by": check_actor(actor)})
    return _decision(row)


def stage(agent_id: str, user_id: str | None) -> Flow[Stage | None]:
    """Read the stage of an agent from the database, uncached.

    Args:
        agent_id: The agent; the memory's by default.
        user_id: The user whose stage to return; by default the memory's user, or the token's, or the stage of the
            share.

    Returns:
        The stage; `None` if there is no decision.
    """
    document = yield from read_decision(agent_id, user_id)
    return None if document is None else stage_from_state(document, user_id)


def history(agent_id: str, *, last: int = 100) -> Flow[list[Decision]]:
    """List the newest decisions on an agent's stage, in order, with who made each and when.

    Args:
        agent_id: The agent; the memory's by default.
        last: The maximum number to return.

    Raises:
        PermissionDeniedError: Only servers may.
    """
    rows = yield from call(
        "memory_worker_rollouts", {"p_agent_id": agent_id, "p_limit": check_limit("last", last, optional=False)}
    )
    return [_decision(row) for row in rows]


def _decision(row: Mapping[str, Any]) -> Decision:
    return value_of(Decision, row, **{name: _BY_NAME[row[name]] for name in ("stage", "rest")})


_HINT: Final = f"Stages are {', '.join(map(repr, STAGES))}."
