"""Checks of the work queue: whether workers run, how long work waits, what was given up, whether data expires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.memory.doctor.finding import Finding, duration_text, green, red, yellow

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_supabase_memory.settings import Retention

_ALIVE_SECONDS: Final = 300.0
"""A running worker is seen at least every two minutes."""

_LATE_SECONDS: Final = 300.0
_TOO_LATE_SECONDS: Final = 3600.0
_DAY_SECONDS: Final = 86_400.0
_RUN: Final = "Run `supabase-memory worker`."
_MOST_DEAD: Final = 100


def worker(now: datetime, seen_at: datetime | None, wait_seconds: float) -> Finding:
    """Check whether a worker is running.

    Args:
        now: The server's time.
        seen_at: When a worker was last seen; `None` means never.
        wait_seconds: How long the oldest work has waited, in seconds.
    """
    name = "worker"
    if seen_at is None:
        if wait_seconds <= _LATE_SECONDS:
            return green(name, "No worker has run here yet, and nothing waits for one.")
        words = (
            "No worker has run here: what is due is done before an answer, or not at all, and boards are not revised."
        )
        return yellow(name, words, _RUN)
    silent = (now - seen_at).total_seconds()
    if silent <= _ALIVE_SECONDS:
        return green(name, f"A worker was seen {duration_text(max(silent, 0))} ago.")
    words = f"No worker was seen for {duration_text(silent)}"
    if wait_seconds > _LATE_SECONDS:
        return red(name, f"{words}, and work waits.", f"{_RUN} Its log says why the last one ended.")
    return yellow(name, f"{words}; nothing waits for one.", f"{_RUN} Scheduled ones come back by themselves.")


def lag(wait_seconds: float, *, has_run: bool) -> Finding:
    """Check how long work waits.

    Args:
        wait_seconds: How long the oldest work has waited, in seconds.
        has_run: Whether a worker was ever seen.
    """
    if wait_seconds <= _LATE_SECONDS:
        return green(
            "lag", f"The oldest work has waited {duration_text(wait_seconds)}." if wait_seconds else "No work waits."
        )
    words = f"The oldest work has waited {duration_text(wait_seconds)}."
    action = "Run more workers, or give them a higher concurrency; `supabase-memory status` shows what waits."
    return (red if has_run and wait_seconds > _TOO_LATE_SECONDS else yellow)("lag", words, action)


def dead(count: int) -> Finding:
    """Report work that was given up.

    Args:
        count: The number of conversations, at most a hundred.
    """
    if not count:
        return green("dead work", "Nothing was given up.")
    many = f"{count} or more" if count >= _MOST_DEAD else str(count)
    action = "Mend what `supabase-memory status --state dead` names, then run `supabase-memory retry`."
    return red("dead work", f"Work on {many} conversation{'s' * (count != 1)} was given up.", action)


def retention(policy: Retention | None, now: datetime, expired_at: datetime | None) -> Finding:
    """Check whether expired data is deleted.

    Args:
        policy: The memory's retention; `None` means everything.
        now: The server's time.
        expired_at: When a worker last deleted expired data; `None` means never.
    """
    name = "retention"
    if policy is None:
        return green(name, "This memory keeps everything; chunks that have an end go at it.")
    words = "This memory keeps only a part of what is said"
    action = "Run `supabase-memory worker --app` with this memory, or schedule `memory.forget_expired()`."
    if expired_at is None:
        return yellow(name, f"{words}, and no worker has removed the rest yet.", action)
    since = (now - expired_at).total_seconds()
    if since > _DAY_SECONDS:
        return red(name, f"{words}, and no worker has removed the rest for {duration_text(since)}.", action)
    return green(name, f"{words}; a worker removed the rest {duration_text(max(since, 0))} ago.")
