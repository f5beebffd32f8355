"""Checks of the work queue: running workers, the oldest work, dead work, and the deletion of expired data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.humanize import duration
from langchain_supabase_memory.memory.doctor.finding import Finding, green, red, yellow

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_supabase_memory.settings import Retention

_ALIVE_SECONDS: Final = 300.0
"""A running worker is seen at least every two minutes."""

_LAG_YELLOW_SECONDS: Final = 300.0
_LAG_RED_SECONDS: Final = 3600.0
_DAY_SECONDS: Final = 86_400.0
_RUN: Final = "Run `supabase-memory worker`."
_MAX_COUNTED: Final = 100


def worker(now: datetime, seen_at: datetime | None, wait_seconds: float) -> Finding:
    """Check whether a worker is running.

    Args:
        now: The server's time.
        seen_at: When a worker was last seen; `None` means never.
        wait_seconds: How long the oldest work has waited, in seconds.
    """
    name = "worker"
    if seen_at is None:
        if wait_seconds <= _LAG_YELLOW_SECONDS:
            return green(name, "No worker has run yet, and no work is overdue.")
        words = "No worker has run yet. Summaries are written before an answer or not at all; boards are not revised."
        return yellow(name, words, _RUN)
    silent = (now - seen_at).total_seconds()
    if silent <= _ALIVE_SECONDS:
        return green(name, f"A worker was seen {duration(max(silent, 0))} ago.")
    words = f"The last worker was seen {duration(silent)} ago"
    if wait_seconds > _LAG_YELLOW_SECONDS:
        return red(name, f"{words}, and work is overdue.", f"{_RUN} The last worker's log says why it stopped.")
    return yellow(name, f"{words}; no work is overdue.", f"{_RUN} Ignore this if workers run on a schedule.")


def lag(wait_seconds: float, *, has_run: bool) -> Finding:
    """Check how long work has been waiting.

    Args:
        wait_seconds: How long the oldest work has waited, in seconds.
        has_run: Whether a worker was ever seen.
    """
    words = f"The oldest work has been waiting for {duration(wait_seconds)}." if wait_seconds else "No work waits."
    if wait_seconds <= _LAG_YELLOW_SECONDS:
        return green("lag", words)
    action = "Run more workers, or raise their concurrency. `supabase-memory status` shows the queue."
    return (red if has_run and wait_seconds > _LAG_RED_SECONDS else yellow)("lag", words, action)


def dead(count: int) -> Finding:
    """Report dead work.

    Args:
        count: The number of conversations, at most a hundred.
    """
    if not count:
        return green("dead work", "No work was given up.")
    many = f"{count} or more" if count >= _MAX_COUNTED else str(count)
    action = "Fix the errors that `supabase-memory status --state dead` shows, then run `supabase-memory retry`."
    return red("dead work", f"Work on {many} conversation{'s' * (count != 1)} was given up.", action)


def retention(policy: Retention | None, now: datetime, expired_at: datetime | None) -> Finding:
    """Check whether expired data is deleted.

    Args:
        policy: The memory's retention; `None` means no limit.
        now: The server's time.
        expired_at: When a worker last deleted expired data; `None` means never.
    """
    name = "retention"
    if policy is None:
        return green(name, "This memory has no retention limit. Chunks with an expiry time are deleted at that time.")
    words = "This memory has a retention limit"
    action = "Run `supabase-memory worker --app` with this memory, or schedule `memory.forget_expired()`."
    if expired_at is None:
        return yellow(name, f"{words}, but no worker has deleted expired data yet.", action)
    since = (now - expired_at).total_seconds()
    if since > _DAY_SECONDS:
        return red(name, f"{words}, but no worker has deleted expired data for {duration(since)}.", action)
    return green(name, f"{words}. A worker deleted expired data {duration(max(since, 0))} ago.")
