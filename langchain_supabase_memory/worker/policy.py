"""How a worker works: how much at once, how fast, how patiently."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, TypeAlias

from langchain_supabase_memory.checks import number, positive_duration
from langchain_supabase_memory.errors import ConfigurationError

JobKind: TypeAlias = Literal["index", "summarize", "board", "promote"]
"""What is done for a conversation that is due."""

DUTIES: Final[tuple[JobKind, ...]] = ("index", "summarize", "board", "promote")
"""All of it, in the order in which it is done."""


@dataclass(frozen=True)
class WorkerPolicy:
    """How a worker works.

    Attributes:
        concurrency: How many conversations it works on at once; it takes no more than it can begin.
        duties: What it does for each. What needs a model, an embedder or a long-term memory is left out without one;
            chunks are found by their words without an embedder.
        model_concurrency: The most calls of the summary model at once; `concurrency` by default.
        model_calls_per_minute: The most calls of the summary model a minute, of this worker.
        embedder_concurrency: The most calls of the embedder at once; `concurrency` by default.
        lease_seconds: How long a conversation is held without a heartbeat, in seconds: so long after a worker was
            killed, another takes over. A heartbeat goes out after a third of it.
        debounce_seconds: How long a conversation is left alone after it became due, in seconds, so that a burst of
            messages is one piece of work.
        poll_seconds: How often to look for work, in seconds give or take a quarter, where no notification comes.
        max_attempts: After so many failures in a row a conversation is given up, until it is retried.
        retry_seconds: The wait after the first failure, in seconds, half of it jitter; it doubles up to an hour.
        grace_seconds: How long a worker that is stopped, or whose time to drain is up, lets what has begun come to an
            end, in seconds.
        archive_after: Conversations without a message for so long are summarized completely and archived; `None` means
            never.
        sweep_every: How often what has expired is removed, and what is idle looked for.
        reconcile_every: How often all conversations are compared with what is marked as due.
        alert_seconds: An alert is given when something has been due for longer than so many seconds.

    Raises:
        ConfigurationError: A number is not positive, or a duty is none.
    """

    concurrency: int = 4
    duties: tuple[JobKind, ...] = DUTIES
    model_concurrency: int | None = None
    model_calls_per_minute: float | None = None
    embedder_concurrency: int | None = None
    lease_seconds: float = 60.0
    debounce_seconds: float = 1.0
    poll_seconds: float = 2.0
    max_attempts: int = 8
    retry_seconds: float = 30.0
    grace_seconds: float = 30.0
    archive_after: timedelta | None = None
    sweep_every: timedelta = timedelta(minutes=15)
    reconcile_every: timedelta = timedelta(hours=1)
    alert_seconds: float = 300.0

    def __post_init__(self) -> None:
        for name in ("concurrency", "max_attempts"):
            number(name, getattr(self, name), integer=True, optional=False, example=4)
        for name in ("model_concurrency", "embedder_concurrency"):
            number(name, getattr(self, name), integer=True, example=4)
        number("model_calls_per_minute", self.model_calls_per_minute, example=60)
        for name in ("lease_seconds", "poll_seconds", "retry_seconds", "alert_seconds"):
            number(name, getattr(self, name), optional=False, example=60)
        for name in ("debounce_seconds", "grace_seconds"):
            number(name, getattr(self, name), above=False, optional=False, example=0)
        positive_duration("archive_after", self.archive_after)
        for name in ("sweep_every", "reconcile_every"):
            positive_duration(name, getattr(self, name), optional=False)
        if not isinstance(self.duties, (tuple, list)) or not all(duty in DUTIES for duty in self.duties):
            raise ConfigurationError("duties has something that is none.", hint=f"Duties are {', '.join(DUTIES)}.")


DEFAULT_WORK: Final = WorkerPolicy()
"""Four conversations at once, all duties."""
