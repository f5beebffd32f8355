"""Alerts about problems that need attention, counted and logged; ids and counts, never content."""

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
"""The kind of problem: a summary of low quality, a conversation that was given up, work that is overdue.

A worker's `on_alert` receives these.
"""

CountedAlert: TypeAlias = Alert | Literal["rollout"]
"""The kinds that `memory_alerts_total` counts: these, and a rollout whose phase could not be read.

The latter is logged where the agent runs, and no worker receives it.
"""

_OF_THREAD: Final = "thread {memory_thread_id!r} (user {memory_user_id!r}, agent {memory_agent_id!r})"
_SAID: Final[dict[Alert, str]] = {
    "quality": "quality {memory_quality} of " + _OF_THREAD,
    "dead": "dead after {memory_attempts} attempts ({memory_error}): " + _OF_THREAD,
    "lag": "lag of {memory_lag_seconds} s, {memory_depth} due",
}


def alert(metrics: NoMetrics, kind: Alert, facts: Mapping[str, Any]) -> None:
    """Log a warning, and increment `memory_alerts_total`.

    Args:
        metrics: The metrics that count it.
        kind: The kind of problem.
        facts: Ids and counts about it.
    """
    metrics.alert(kind)
    _logger.warning("Memory needs a look: %s", _SAID[kind].format_map(facts), extra={"memory_alert": kind, **facts})


def is_poor(quality: float | None, minimum: float | None) -> bool:
    """Return whether a summary's quality is below the minimum."""
    return quality is not None and minimum is not None and quality < minimum


def of_quality(key: ConversationKey, quality: float) -> dict[str, Any]:
    """Return the facts of an alert about a summary of low quality."""
    return {**conversation_fields(key), "memory_quality": round(quality, 3)}
