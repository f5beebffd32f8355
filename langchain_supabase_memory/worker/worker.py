"""The worker: claims due conversations, processes them in the background, and releases them."""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import random
import socket
import threading
import time
import uuid
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from langchain_supabase_memory import fork
from langchain_supabase_memory.adapters.telemetry.alerts import alert, of_quality
from langchain_supabase_memory.adapters.telemetry.logs import conversation_fields, error_fields
from langchain_supabase_memory.adapters.transports.event_loop import run
from langchain_supabase_memory.checks import function, number, require_type
from langchain_supabase_memory.errors import ConfigurationError, SupabaseMemoryError, UnavailableError
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.operations import work
from langchain_supabase_memory.unpicklable import Unpicklable
from langchain_supabase_memory.worker.job import JobResult
from langchain_supabase_memory.worker.job import run_job as do_work
from langchain_supabase_memory.worker.maintenance import ChoreSchedule, run_maintenance
from langchain_supabase_memory.worker.policy import DEFAULT_WORK, WorkerPolicy
from langchain_supabase_memory.worker.rate_limits import LimitedEmbedder, LimitedModel, RateLimiter
from langchain_supabase_memory.worker.wake import Wake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from langchain_supabase_memory.adapters.embedder import EmbeddingModel
    from langchain_supabase_memory.adapters.summarizer import SummaryModel
    from langchain_supabase_memory.adapters.telemetry.alerts import Alert
    from langchain_supabase_memory.adapters.telemetry.metrics import NoMetrics
    from langchain_supabase_memory.long_term.memories import LongTerm
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.work import Lease, Outcome

_logger = logging.getLogger(__name__)

_LONGEST_PAUSE_SECONDS: Final = 30.0
_GAUGE_SECONDS: Final = 15.0
_RELEASE_SECONDS: Final = 5.0


@dataclass
class WorkerStats:
    """A worker's statistics since its creation.

    Attributes:
        outcomes: How many jobs had each outcome.
        summaries: How many segments were written.
        boards: How many boards were revised.
        chunks: How many chunks were stored.
        promoted: How many items of users' profiles were promoted to long-term memory.
        model_calls: How often the model was called, including failed calls.
    """

    outcomes: dict[str, int] = field(default_factory=dict)
    summaries: int = 0
    boards: int = 0
    chunks: int = 0
    promoted: int = 0
    model_calls: int = 0

    @property
    def pieces(self) -> int:
        """How many jobs have ended."""
        return sum(self.outcomes.values())


class Worker(Unpicklable):
    """Keep every conversation's index, summary and board up to date in the background.

    Run any number of workers on any number of machines: they share the work through leases in the database and never
    duplicate it. A killed worker loses nothing: its leases expire, and another continues from the last commit. The
    memory needs server permissions: a direct connection, or the Data API's secret key.

    Args:
        memory: The memory, with the model, the embedder and the policies to use.
        policy: The worker's policy.
        long_term: A (sync or async) function from a user's id to their long-term memory, to which what their profile
            holds is promoted.
        name: The worker's name in the queue; by default the host, the process id and a random part.
        on_alert: Called with the alert (`quality`, `dead` or `lag`) and its ids and counts, never content. The
            `rollout` alert, which `memory_alerts_total` also counts, is raised where the agent runs, not here.

    Raises:
        ConfigurationError: The memory acts as a user, or an argument has the wrong type.

    Example:
        ```python
        @asynccontextmanager
        async def lifespan(app: FastAPI):
            async with Worker(memory):
                yield
        ```
    """

    def __init__(
        self,
        memory: SupabaseMemory,
        *,
        policy: WorkerPolicy = DEFAULT_WORK,
        long_term: Callable[[str], LongTerm] | None = None,
        name: str | None = None,
        on_alert: Callable[[Alert, Mapping[str, Any]], None] | None = None,
    ) -> None:
        require_memory(memory)
        require_type("policy", policy, WorkerPolicy, "policy=WorkerPolicy(concurrency=4), for example")
        function("long_term", long_term, "a function from a user's id to their long-term memory")
        function("on_alert", on_alert, "a function of an alert and its facts")
        user_id = memory._services.fixed_user_id
        if memory._services.transport.acts_as_user:
            raise ConfigurationError(
                "A worker processes all users' conversations and cannot act as one user.",
                hint="Create its memory with a direct connection, or with the project's secret key.",
            )
        self.policy = policy
        self.user_id = user_id
        self._own_name = name
        self._given = memory
        self._long_term = long_term
        self._on_alert = on_alert
        self._running: dict[asyncio.Task[None], Lease] = {}
        self._claiming: asyncio.Task[list[Lease]] | None = None
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        """Reset the state: a child process has none of its parent's leases, threads or tasks."""
        if self._running or self._claiming:
            fork.leave_to_parent((self._running, self._claiming))
        self.name = self._own_name or f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:6]}"
        self.stats = WorkerStats()
        self._stop: asyncio.Event | None = None
        self._wake: Wake | None = None
        self._running = {}
        self._task: asyncio.Task[None] | None = None
        self._memory = self._given
        self._model: SummaryModel | None = None
        self._last_error: str | None = None
        self._more = False
        self._has_begun = False
        self._ending: set[str] = set()
        self._claiming = None
        self._unbegun: list[Lease] = []
        self._turns = ChoreSchedule(self._given)
        self._stopped_at = 0.0

    @property
    def memory(self) -> SupabaseMemory:
        """The memory that the worker was created with."""
        return self._given

    @property
    def metrics(self) -> NoMetrics:
        """The worker's metrics."""
        return self._given._services.metrics

    async def run(self) -> None:
        """Run until `stop` is called or the task is cancelled; then running jobs finish or are released.

        The worker waits for an unavailable database. A job that fails is retried with increasing delays.

        Raises:
            ConfigurationError: The worker is already running.
            SupabaseMemoryError: At the start, the database refused the worker: its key has no server permissions, or
                the schema is missing.
        """
        await self._work(drain=False)

    async def drain(self, seconds: float | None = None) -> WorkerStats:
        """Run until no work is due now, and return. Use it in a scheduled task, such as one of `pg_cron`.

        Due chores run first.

        Args:
            seconds: Start no new job after this many seconds. Running jobs then have the policy's `grace_seconds` to
                finish, as after `stop`, and are released after that. Allow a few more seconds for the release.

        Returns:
            The statistics.

        Raises:
            ConfigurationError: The worker is already running, or `seconds` is not positive.
            SupabaseMemoryError: The database refused the request or could not be reached.
        """
        number("seconds", seconds, example=45)
        await self._work(drain=True, seconds=seconds)
        return self.stats

    def stop(self) -> None:
        """Claim no more work, finish running jobs, and return from `run`. Call it from the worker's event loop."""
        if self._stop is not None and not self._stop.is_set():
            self._stopped_at = time.monotonic()
            self._stop.set()
        if self._wake is not None:
            self._wake.ring()

    @contextmanager
    def in_thread(self) -> Iterator[Worker]:
        """Run in a separate thread, for an application without an event loop.

        Raises:
            ConfigurationError: The worker is already running.
            SupabaseMemoryError: Raised at the end if the worker could not start; see `run`.
        """
        self._refuse_twice()
        started = threading.Event()
        loops: list[asyncio.AbstractEventLoop] = []
        failed: list[BaseException] = []

        async def main() -> None:
            loops.append(asyncio.get_running_loop())
            started.set()
            try:
                await self.run()
            except Exception as error:  # re-raised after the thread has ended
                failed.append(error)

        thread = threading.Thread(target=lambda: run(main()), name="supabase-memory-worker", daemon=True)
        thread.start()
        started.wait()
        try:
            yield self
        finally:
            if thread.is_alive():  # not in a child process, which inherits no thread
                with suppress(RuntimeError):  # the loop has already ended
                    loops[0].call_soon_threadsafe(self.stop)
            thread.join()
        if failed:
            raise failed[0]

    async def __aenter__(self) -> Worker:
        self._refuse_twice()
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        await asyncio.sleep(0)
        self.stop()
        await self._task

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Return whether the worker is healthy, with its counts, for `MetricsServer`."""
        is_well = self._stop is not None and not self._stop.is_set() and self._last_error is None
        return is_well, {
            "worker": self.name,
            "running": len(self._running),
            "error": self._last_error,
            **self.stats.outcomes,
        }

    def _refuse_twice(self) -> None:
        if self._stop is not None:
            raise ConfigurationError("This worker is running already.", hint="Make another Worker for the same memory.")

    async def _work(self, *, drain: bool, seconds: float | None = None) -> None:
        self._refuse_twice()
        self._stop = asyncio.Event()
        time_is_up = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self.stop)
        self._has_begun = False
        self._memory, self._model = self._limited()
        self._turns.memory = self._memory
        tasks: list[asyncio.Task[None]] = []
        try:
            async with Wake(
                self._memory._services.transport, self.policy.poll_seconds, self.policy.debounce_seconds
            ) as wake:
                self._wake = wake
                tasks.append(asyncio.create_task(self._hold()))
                if drain:
                    tasks.append(asyncio.create_task(run_maintenance(self._turns, self.policy, self._model)))
                    if await self._has_ended(tasks[-1]):
                        await tasks[-1]
                else:
                    tasks += [asyncio.create_task(self._sweep()), asyncio.create_task(self._gauge())]
                _logger.info("A worker has started", extra={"memory_worker": self.name})
                await self._take(wake, drain=drain)
                await self._finish()
        except SupabaseMemoryError as error:
            # Inside an application, nothing may read the task's error before the end.
            self._last_error = type(error).__name__
            _logger.error("A worker could not continue", extra={"memory_worker": self.name, **error_fields(error)})
            raise
        finally:
            if time_is_up is not None:
                time_is_up.cancel()
            # After a cancellation, wait only until the leases are released.
            for task in tasks:
                task.cancel()
            try:
                await asyncio.shield(self._give_back())
                if tasks:
                    await asyncio.wait(tasks, timeout=_RELEASE_SECONDS)
            finally:
                self._stop = self._wake = None
            _logger.info("A worker has stopped", extra={"memory_worker": self.name, "memory_pieces": self.stats.pieces})

    def _limited(self) -> tuple[SupabaseMemory, SummaryModel | None]:
        """Return the memory with rate-limited models; the limits belong to the event loop that creates them."""
        policy, given = self.policy, self._given
        services = copy.copy(given._services)
        services.user_id = self.user_id  # all users by default, not the memory's default user
        if services.embeddings is not None:
            limits = RateLimiter(policy.embedder_concurrency or policy.concurrency)
            services.embeddings = cast("EmbeddingModel", LimitedEmbedder(services.embeddings, limits))
        if services.model is None:
            return given._over(services), None
        limits = RateLimiter(policy.model_concurrency or policy.concurrency, policy.model_calls_per_minute)
        services.model = cast("SummaryModel", LimitedModel(services.model, limits, self._count_model_call))
        return given._over(services), services.model

    def _count_model_call(self) -> None:
        self.stats.model_calls += 1

    async def _take(self, wake: Wake, *, drain: bool) -> None:
        """Claim work while there are free slots."""
        assert self._stop is not None
        pause = 1.0
        while not self._stop.is_set():
            free = self.policy.concurrency - len(self._running)
            leases: list[Lease] = []
            if free > 0:
                try:
                    leases = await self._claimed(free, 0 if drain else self.policy.debounce_seconds)
                except SupabaseMemoryError as error:
                    # A refusal at the start is a setup mistake; later it may be temporary, such as during an upgrade.
                    if drain or not (self._has_begun or isinstance(error, UnavailableError)):
                        raise
                    self._last_error = type(error).__name__
                    self._warn("No work could be claimed", error, {"memory_worker": self.name})
                    await wake.wait(pause * random.uniform(0.5, 1))
                    pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
                    continue
                pause, self._last_error, self._has_begun = 1.0, None, True
            # A full claim means there may be more: then the next free slot claims at once.
            self._more = drain or len(leases) == free
            for lease in leases:
                task = asyncio.create_task(self._run_job(lease))
                self._running[task] = lease
                task.add_done_callback(self._ended)
            if drain and not self._running:
                return
            if len(leases) < free or len(self._running) >= self.policy.concurrency:
                await wake.wait()

    async def _claimed(self, limit: int, debounce_seconds: float) -> list[Lease]:
        """Claim leases. If the worker is cancelled or stopped meanwhile, the claimed leases are still released."""
        self._claiming = asyncio.create_task(
            self._memory._services.arun(
                work.claim(
                    self.name,
                    limit=limit,
                    lease_seconds=self.policy.lease_seconds,
                    debounce_seconds=debounce_seconds,
                    user_id=self.user_id,
                    slots=self.policy.concurrency,
                    limits=Counter(str(lease.key.user_id) for lease in self._running.values()),
                )
            )
        )
        if not await self._has_ended(self._claiming):
            return []
        claimed, self._claiming = self._claiming, None
        leases = await claimed
        if self._is_stopped:
            self._unbegun, leases = leases, []
        return leases

    @property
    def _is_stopped(self) -> bool:
        return self._stop is not None and self._stop.is_set()

    async def _has_ended(self, task: asyncio.Task[Any]) -> bool:
        """Wait for a task; after `stop`, only until the grace period ends.

        Returns:
            Whether the task is done.
        """
        assert self._stop is not None
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({task}, timeout=self._grace_left)
        finally:
            stopped.cancel()
        return task.done()

    @property
    def _grace_left(self) -> float:
        """The seconds left for running jobs to finish after `stop`."""
        return max(0.0, self._stopped_at + self.policy.grace_seconds - time.monotonic())

    def _ended(self, task: asyncio.Task[None]) -> None:
        lease = self._running.pop(task, None)
        if lease is not None:
            self._ending.discard(lease.token)
        if self._more and self._wake is not None:
            self._wake.ring()

    async def _run_job(self, lease: Lease) -> None:
        """Run one job, from its lease to its outcome."""
        error: str | None = None
        done = JobResult()
        try:
            if lease.attempts > self.policy.max_attempts:
                error = "abandoned"  # no earlier worker finished it: it may crash workers
            else:
                done = await do_work(self._memory, lease, self.policy.duties, self._model, self._long_term)
                error = done.error
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as raised:  # no conversation's content may crash the worker
            if _is_cancelled():
                raise
            error = type(raised).__name__
            self._warn("A job failed", raised, conversation_fields(lease.key))
        self._ending.add(lease.token)  # from here on, a missing lease may have been released
        try:
            outcome = await self._release(lease, error, done)
        except Exception as raised:
            outcome = "lost"  # the lease expires, and another worker claims the job
            self._warn("A lease could not be released", raised, conversation_fields(lease.key))
        self._count(lease, done, error, outcome)

    async def _release(self, lease: Lease, error: str | None, done: JobResult) -> Outcome:
        if error is None and done.conflict:
            # Another worker processes it too, which is not a failure: run it again from the new state.
            return "again" if await self._memory._services.arun(work.release([lease])) else "lost"
        return await self._memory._services.arun(
            work.finish(
                lease,
                error=error,
                failed=done.failed if done.failed and self._has_left(lease, done) else None,
                served=lease.requested and error is None and not lease.left_out,
                max_attempts=self.policy.max_attempts,
                retry_seconds=self.policy.retry_seconds,
            )
        )

    def _has_left(self, lease: Lease, done: JobResult) -> bool:
        """Return whether any of this worker's duties was neither excluded nor failed."""
        can = {"index": True, "summarize": self._model is not None, "board": self._model is not None}
        can["promote"] = self._long_term is not None
        return any(can[duty] and duty not in (*done.failed, *lease.left_out) for duty in self.policy.duties)

    def _count(self, lease: Lease, done: JobResult, error: str | None, outcome: Outcome) -> None:
        tally, metrics = self.stats, self._memory._services.metrics
        tally.outcomes[outcome] = tally.outcomes.get(outcome, 0) + 1
        tally.chunks += done.index.chunks if done.index is not None else 0
        tally.summaries += len(done.summary.segments) if done.summary is not None else 0
        tally.boards += int(done.board is not None and done.board.model_calls > 0 and done.board.failed is None)
        tally.promoted += done.promoted
        metrics.piece(outcome)
        if outcome == "retry":
            metrics.retried()
        if outcome == "dead":
            self._alert(
                "dead", {**conversation_fields(lease.key), "memory_attempts": lease.attempts, "memory_error": error}
            )
        if done.poor is not None:
            self._alert("quality", of_quality(lease.key, done.poor))
        facts = {"memory_outcome": outcome, "memory_attempts": lease.attempts, "memory_error": error}
        _logger.info("A piece of work is done", extra={**conversation_fields(lease.key), **facts})

    def _warn(self, action: str, error: BaseException, fields: Mapping[str, Any]) -> None:
        """Log a failure, once per ongoing cause."""
        level = self._memory._services.causes.level(action, error, logging.WARNING)
        _logger.log(level, action, extra={**fields, **error_fields(error)})

    def _alert(self, kind: Alert, facts: Mapping[str, Any]) -> None:
        alert(self._memory._services.metrics, kind, facts)
        if self._on_alert is not None:
            try:
                self._on_alert(kind, facts)
            except Exception as error:  # an alert that fails must not stop the work
                _logger.warning("An alert could not be sent", extra=error_fields(error))

    async def _hold(self) -> None:
        """Renew the leases of running jobs; stop a job whose lease was lost, as another worker may run it."""
        while True:
            await asyncio.sleep(self.policy.lease_seconds / 3)
            held = dict(self._running)
            if not held:
                continue
            try:
                tokens = await self._memory._services.arun(
                    work.heartbeat(held.values(), lease_seconds=self.policy.lease_seconds)
                )
            except Exception as error:  # this loop must not end
                self._warn("Leases could not be renewed", error, {"memory_worker": self.name})
                continue
            for task, lease in held.items():
                if lease.token not in tokens and lease.token not in self._ending and not task.done():
                    _logger.warning(
                        "A lease was lost", extra={"memory_worker": self.name, **conversation_fields(lease.key)}
                    )
                    self.stats.outcomes["lost"] = self.stats.outcomes.get("lost", 0) + 1
                    self._memory._services.metrics.piece("lost")
                    task.cancel()

    async def _sweep(self) -> None:
        shortest = min(self.policy.sweep_every, self.policy.reconcile_every).total_seconds()
        while True:
            try:
                await run_maintenance(self._turns, self.policy, self._model)
            except Exception as error:  # this loop must not end either
                self._warn("Chores were left undone", error, {"memory_worker": self.name})
            await asyncio.sleep(min(shortest, 60) * random.uniform(0.75, 1.25))

    async def _gauge(self) -> None:
        """Read the queue periodically, which updates its metrics, and alert on a lag."""
        lagging = False
        while True:
            try:
                queue = await self._memory._services.arun(work.queue(user_id=self.user_id))
            except Exception as error:  # this loop must not end either
                _logger.debug("The queue could not be read", extra=error_fields(error))
            else:
                is_late = queue.lag_seconds > self.policy.alert_seconds
                if is_late and not lagging:
                    self._alert("lag", {"memory_lag_seconds": round(queue.lag_seconds), "memory_depth": queue.depth})
                lagging = is_late
            await asyncio.sleep(_GAUGE_SECONDS)

    async def _finish(self) -> None:
        """Wait for running jobs to finish, for the grace period."""
        if self._running:
            await asyncio.wait([*self._running], timeout=self._grace_left)

    async def _give_back(self) -> None:
        """Cancel unfinished jobs, and release their leases."""
        left = dict(self._running)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_RELEASE_SECONDS)  # a task that ignores its cancellation is abandoned
        leases, self._unbegun = [*left.values(), *self._unbegun], []
        with suppress(SupabaseMemoryError, TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                if self._claiming is not None:
                    with suppress(SupabaseMemoryError):
                        leases += await self._claiming
                    self._claiming = None
                if leases:
                    await self._memory._services.arun(work.release(leases))


def _is_cancelled() -> bool:
    """Return whether this task was cancelled; a model may raise a `CancelledError` without a cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
