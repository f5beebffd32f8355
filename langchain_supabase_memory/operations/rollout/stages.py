"""The stages between a history cut at its last messages and the memory's context, and what says which one holds."""

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

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from langchain_supabase_memory.operations.rollout.comparison import Comparison
    from langchain_supabase_memory.values import ConversationKey

Stage: TypeAlias = Literal["off", "parallel", 25, 15, 10, 5, "on"]
"""What an agent receives.

`"off"`: the last messages. `"parallel"`: the same, with the pack computed beside them. 25, 15, 10, 5: the pack with at
most so many recent messages. `"on"`: the pack, within its whole budget.
"""

STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
"""All stages, from none of the memory's context to all of it."""

if TYPE_CHECKING:
    Flag: TypeAlias = Callable[[ConversationKey], Stage | str | Awaitable[Stage | str]]
    """A function, sync or async, that says the stage of a conversation: your own feature flags."""

    OnComparison: TypeAlias = Callable[[Comparison], Any]
    """A function that is handed each comparison."""
else:
    Flag = OnComparison = Annotated[Any, Named]

_BY_NAME: Final[dict[str, Stage]] = {str(stage): stage for stage in STAGES}
_BITS: Final = 48


@dataclass(frozen=True)
class Rollout:
    """How an agent moves from its last messages to the memory's context, and back at once.

    The stage is asked for anew at every call of the model, so a change, and a rollback above all, holds from the next
    call on, without a deployment. If the flag or the database fails, or gives what is no stage, the last stage known of
    this user holds, or `"off"` where none is; that is logged.

    Attributes:
        stage: What holds where there is no flag and the database says nothing of the agent.
        flag: Says the stage, from a service of yours; then the database is not asked. It is waited for at most two
            seconds. Beside a sync agent an async one runs in a loop of its own.
        last_messages: How many of the last messages the old context has, the turn under way among them. A tool's
            results stay with their calls and the turn under way stays whole, so it may be fewer or more.
        on_comparison: Is handed each comparison: numbers and ids, no content. It must be quick.
        record: Whether comparisons are stored, for `memory.rollout.report()`.
        cache_seconds: How long what the database said holds in this process, in seconds: the longest that a rollback
            by `memory.rollout.set` takes. 0 asks at every call of the model.

    Raises:
        ConfigurationError: An argument is none of its choices.

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
            raise ConfigurationError("stage is none of the stages.", hint=_HINT)
        function("flag", self.flag, "a function of the conversation's key")
        number("last_messages", self.last_messages, integer=True, optional=False, example=50)
        function("on_comparison", self.on_comparison, "a function of a Comparison")
        boolean("record", self.record)
        number("cache_seconds", self.cache_seconds, above=False, optional=False, example=2)


@dataclass(frozen=True)
class Decision:
    """That somebody set the stage of an agent.

    Attributes:
        agent_id: The agent.
        version: The number of the decision, from 1; the highest of an agent holds.
        stage: What the share of the users receives.
        share: The share of the users, from 0 to 1.
        rest: What the others receive.
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
    """The stage that a value means, such as `25` or `"25"`; `None` if it means none."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    return _BY_NAME.get(str(value).strip().lower())


def is_in_share(user_id: str, share: float) -> bool:
    """Whether a user is among the share: always the same answer, and never out again while the share grows.

    Args:
        user_id: The user.
        share: The share of all users, from 0 to 1.
    """
    drawn = int(hashlib.sha256(user_id.encode()).hexdigest()[: _BITS // 4], 16)
    return drawn < share * (1 << _BITS)


def read_decision(agent_id: str, user_id: str | None) -> Flow[Mapping[str, Any] | None]:
    """What the database says of an agent; `None` if nobody has decided.

    Args:
        agent_id: The agent.
        user_id: The user whose stage is `mine`; `None` means the subject of the caller's token.
    """
    found: Mapping[str, Any] | None = yield from call("memory_rollout", {"p_agent_id": agent_id, "p_user_id": user_id})
    return found


def stage_from_state(document: Mapping[str, Any], user_id: str | None) -> Stage | None:
    """A user's stage by what the database said of the agent, perhaps to another user.

    Args:
        document: What it said.
        user_id: The user; `None` means whom it was said to.
    """
    if user_id is None:
        return stage_of(document["stage"] if document["mine"] is None else document["mine"])
    return stage_of(document["stage"] if is_in_share(user_id, document["share"]) else document["rest"])


def set_stage(agent_id: str, stage: Stage, *, actor: str, share: float = 1.0, rest: Stage = "off") -> Flow[Decision]:
    """Set the stage of an agent, for all servers: at once, or within the `cache_seconds` of their `Rollout`.

    Args:
        agent_id: The agent; the memory's by default.
        stage: The stage.
        actor: Who decides; it is noted, with the time.
        share: The share of the users, from 0 to 1, that receive it. Who is among them is drawn by their ids, so
            that a user stays on their side, and stays inside while the share grows.
        rest: What the others receive.

    Returns:
        The decision, as it was noted.

    Raises:
        InvalidInputError: The stage or the share is none, or nobody is named.
        PermissionDeniedError: Only servers may.
    """
    chosen, others = stage_of(stage), stage_of(rest)
    if chosen is None or others is None:
        raise InvalidInputError("That is no stage.", hint=_HINT)
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        raise InvalidInputError("share must be a number from 0 to 1.", hint="Pass share=0.1 for a tenth of the users.")
    named = {"p_agent_id": agent_id, "p_stage": str(chosen), "p_share": float(share), "p_rest": str(others)}
    row = yield from call("memory_worker_set_rollout", {**named, "p_by": check_actor(actor)})
    return _decision(row)


def stage(agent_id: str, user_id: str | None) -> Flow[Stage | None]:
    """What the database says of an agent now, uncached.

    Args:
        agent_id: The agent; the memory's by default.
        user_id: Whose stage; by default the memory's user, or the token's, or the stage of the share.

    Returns:
        The stage; `None` if nobody has decided.
    """
    document = yield from read_decision(agent_id, user_id)
    return None if document is None else stage_from_state(document, user_id)


def history(agent_id: str, *, last: int = 100) -> Flow[list[Decision]]:
    """Who set the stage of an agent to what, and when: the newest decisions, in order.

    Args:
        agent_id: The agent; the memory's by default.
        last: How many.

    Raises:
        PermissionDeniedError: Only servers may.
    """
    rows = yield from call(
        "memory_worker_rollouts", {"p_agent_id": agent_id, "p_limit": check_limit("last", last, optional=False)}
    )
    return [_decision(row) for row in rows]


def _decision(row: Mapping[str, Any]) -> Decision:
    stages = {name: _BY_NAME[row[name]] for name in ("stage", "rest")}
    return Decision(**{**row, **stages, "set_at": datetime.fromisoformat(row["set_at"])})


_HINT: Final = f"Stages are {', '.join(map(repr, STAGES))}."
