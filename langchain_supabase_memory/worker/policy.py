"""The worker's policy: concurrency, rates and retries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, TypeAlias

from langchain_supabase_memory.checks import number, positive_duration
from langchain_supabase_memory.errors import ConfigurationError

JobKind: TypeAlias = Literal["index", "summarize", "board", "promote"]
"""A kind of work for a due conversation."""

DUTIES: Final[tuple[JobKind, ...]] = ("index", "summarize", "board", "promote")
"""All duties, in the order in which they run."""


@dataclass(frozen=True)
class WorkerPolicy:
    """The policy of a worker.

    Attributes:
        concurrency: How many conversations it processes at once; it claims no more than it can start.
        duties: What it does for each conversation. A duty whose model, embedder or long-term memory is missing is
            skipped; without an embedder, chunks are only searchable by keyword.
        model_concurrency: The maximum number of concurrent summary model calls; `concurrency` by default.
        model_calls_per_minute: The maximum number of summary model calls per minute of this worker.
        embedder_concurrency: The maximum number of concurrent embedder calls; `concurrency` by default.
        lease_seconds: How long a lease lasts without a heartbeat, in seconds; another worker takes over this long
            after a worker was killed. A heartbeat is sent after a third of it.
        debounce_seconds: How long to wait after a conversation becomes due, in seconds, so that a burst of messages is
            one job.
        poll_seconds: How often to poll for work without a notification, in seconds, plus or minus a quarter.
        max_attempts: A conversation is given up after this many failures in a row, until it is retried.
        retry_seconds: The wait after the first failure, in seconds, half of it jitter; it doubles up to an hour.
        grace_seconds: How long running jobs may take to finish after a stop or the end of the drain time, in seconds.
        archive_after: Conversations without a message for this long are completely summarized and archived; `None`
            means never.
        sweep_every: How often to remove expired data and look for idle conversations.
        reconcile_every: How often to compare all conversations with those marked as due.
        alert_seconds: An alert is sent when a job has been due for longer than this, in seconds.

    Raises:
        ConfigurationError: A number is not positive, or there is no such duty.
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
            raise ConfigurationError("duties has an unknown duty.", hint=f"Duties are {', '.join(DUTIES)}.")


DEFAULT_WORK: Final = WorkerPolicy()
"""The default policy: four conversations at once, all duties."""
