"""Alerts: what somebody should look at, counted and logged; ids and counts, never content."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from langchain_supabase_memory.adapters.telemetry.logs import conversation_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.adapters.telemetry.metrics import NoMetrics
    from langchain_supabase_memory.values import ConversationKey

_logger = logging.getLogger(__name__)

Alert: TypeAlias = Literal["quality", "dead", "lag"]
"""What is wrong with the work: a poor summary, a conversation that was given up, work that has been due for too long.
A worker's `on_alert` hears these."""

CountedAlert: TypeAlias = Alert | Literal["rollout"]
"""What `memory_alerts_total` counts: these, and a rollout whose stage could not be read. That is noticed and logged
where the agent runs, and no worker hears of it."""

_OF_THREAD: Final = "thread {memory_thread_id!r} (user {memory_user_id!r}, agent {memory_agent_id!r})"
_SAID: Final[dict[Alert, str]] = {
    "quality": "quality {memory_quality} of " + _OF_THREAD,
    "dead": "dead after {memory_attempts} attempts ({memory_error}): " + _OF_THREAD,
    "lag": "lag of {memory_lag_seconds} s, {memory_depth} due",
}


def alert(metrics: NoMetrics, kind: Alert, facts: Mapping[str, Any]) -> None:
    """Give an alert: a warning in the log, and one more in `memory_alerts_total`.

    Args:
        metrics: Where to count it.
        kind: What is wrong.
        facts: Ids and counts about it.
    """
    metrics.alert(kind)
    _logger.warning("Memory needs a look: %s", _SAID[kind].format_map(facts), extra={"memory_alert": kind, **facts})


def is_poor(quality: float | None, minimum: float | None) -> bool:
    """Whether a summary holds too little of its source."""
    return quality is not None and minimum is not None and quality < minimum


def of_quality(key: ConversationKey, quality: float) -> dict[str, Any]:
    """The facts of an alert about a poor summary."""
    return {**conversation_fields(key), "memory_quality": round(quality, 3)}
