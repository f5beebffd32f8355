"""Prometheus metrics. No label contains an id or content, so the number of series is bounded."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import fork
from langchain_supabase_memory.errors import ConfigurationError, MissingDependencyError
from langchain_supabase_memory.unpicklable import Unpicklable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

    from langchain_supabase_memory.adapters.telemetry.alerts import CountedAlert
    from langchain_supabase_memory.operations.work import Outcome

CONTENT_TYPE: Final = "text/plain; version=1.0.0; charset=utf-8"
"""The media type of an empty response."""

_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120)
_MILLISECONDS: Final = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000)
_SUMMARY_TOKENS: Final = (25, 50, 100, 200, 300, 400, 500, 750, 1_000, 2_000, 4_000)
_USED_TOKENS: Final = (100, 250, 500, 1_000, 2_000, 3_000, 4_000, 6_000, 8_000, 16_000, 32_000, 64_000)
_SAVED_TOKENS: Final = (0, 100, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000)
_SHARES: Final = (0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


class NoMetrics:
    """Counts nothing, at no cost: a memory's default. One method for each event."""

    measures: bool = False
    """Whether metrics are collected, so that a costly number is only computed if needed."""

    def summary_generated(self, seconds: float, tokens: int, quality: float | None = None) -> None:
        """Record that a summary was stored.

        Args:
            seconds: How long the model took, in seconds, including failed tries.
            tokens: Its length, in approximate tokens.
            quality: Its quality, from 0 to 1, if it was judged.
        """

    def board_revised(self, quality: float | None = None) -> None:
        """Record that a board was revised.

        Args:
            quality: The quality of its summary, from 0 to 1, if it was judged.
        """

    def chunks_created(self, count: int) -> None:
        """Record that this many chunks were stored."""

    def signals_found(self, signal: str, count: int) -> None:
        """Record that this many stored chunks have a signal.

        Args:
            signal: Its name, such as `asked_again`.
            count: How many chunks.
        """

    def topics_assigned(self, episodes: int) -> None:
        """Record that this many episodes were compared with the topics there are."""

    def topics_reclustered(self) -> None:
        """Record that an owner's topics were found anew."""

    def advised(self, rule: str) -> None:
        """Record that advice was given, by its rule."""

    def searched(self, ms: float, by_meaning: bool, vector_ms: float | None = None) -> None:
        """Record a search of the working memory.

        Args:
            ms: How long it took, in milliseconds, including the embedding of the query.
            by_meaning: Whether vectors were compared in addition to keywords.
            vector_ms: How long the database took, in milliseconds; `ms` by default.
        """

    def reranked(self, seconds: float, is_ordered: bool) -> None:
        """Record a call of the reranker.

        Args:
            seconds: How long the call took, in seconds.
            is_ordered: Whether it returned an order; otherwise the first stage's order stays.
        """

    def vector_searched(self, ms: float) -> None:
        """Record a vector search: of the working memory, of summaries or of the store.

        Args:
            ms: How long the database took, in milliseconds.
        """

    def context_used(self, used: int, saved: int, quality: float | None = None) -> None:
        """Record that a context pack was created.

        Args:
            used: The approximate tokens that are sent.
            saved: The approximate tokens saved compared with resending the whole history; 0 if a short history costs
                more with a pack than without.
            quality: The share of the history's messages, from 0 to 1, that the pack shows or its summary covers.
        """

    def queue(self, depth: int, lag_seconds: float, leases: int, dead: int) -> None:
        """Record the state of the job queue.

        Args:
            depth: How many jobs are waiting.
            lag_seconds: How long the oldest of them has waited, in seconds.
            leases: How many jobs are being processed.
            dead: How many jobs were given up.
        """

    def retried(self) -> None:
        """Record that a job failed and will be retried."""

    def piece(self, outcome: Outcome) -> None:
        """Record that a job ended.

        Args:
            outcome: `done`; `again` if there is more to do or another worker interfered; `retry` and `dead` if it
                failed; `lost` if another worker holds it or it could not be released; `gone` if its conversation was
                deleted.
        """

    def alert(self, kind: CountedAlert) -> None:
        """Record an alert.

        Args:
            kind: The kind of problem: `quality`, `dead`, `lag` or `rollout`.
        """

    def index_size(self, megabytes: float) -> None:
        """Record the size of the vectors and of their index in the database, in megabytes of 1,000,000 bytes."""

    def render(self) -> tuple[bytes, str]:
        """Return everything in Prometheus' text format, and its media type."""
        return b"", CONTENT_TYPE


NO_METRICS: Final = NoMetrics()
"""The default metrics."""


class Metrics(Unpicklable, NoMetrics):
    """Counts into a registry of `prometheus_client`. Create one per process, and share it: it is thread-safe.

    `working_memory_chunks_created` is a gauge that only ever rises, since `prometheus_client` appends `_total` to the
    name of every counter; `increase()` and `rate()` still work on it.

    A forked process starts counting at zero, in its own registry; a registry that you pass is yours and is not reset
    (`prometheus_client` has a mode for several processes).

    Args:
        registry: The registry to use; by default a new one, so that `render()` contains nothing else.

    Raises:
        MissingDependencyError: The extra `metrics` is not installed.
        ConfigurationError: The registry already has metrics with these names.
    """

    measures = True

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        if find_spec("prometheus_client") is None:
            raise MissingDependencyError("Metrics", "metrics")
        if registry is None:
            fork.run_in_each_process(self._begin)
        else:
            self._register(registry)

    def _begin(self) -> None:
        self._register(None)

    def _register(self, registry: CollectorRegistry | None) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry() if registry is None else registry
        self._shown: Any = _WithoutTimes(self.registry) if registry is None else registry
        into: dict[str, Any] = {"registry": self.registry}

        def timed(name: str, text: str, buckets: tuple[float, ...], labels: tuple[str, ...] = ()) -> Histogram:
            return Histogram(name, text, labels, buckets=buckets, **into)

        try:
            self._summaries = Counter("summaries_generated_total", "Summaries that were stored.", **into)
            self._chunks = Gauge("working_memory_chunks_created", "Chunks that were stored; it only rises.", **into)
            self._signals = Counter("memory_signals_total", "Chunks with a signal, by signal.", ["signal"], **into)
            self._episodes = Counter("memory_topic_episodes_total", "Episodes that got a topic.", **into)
            self._reclusterings = Counter("memory_topic_reclusterings_total", "Topics of an owner found anew.", **into)
            self._advice = Counter("memory_advice_total", "Advice that was given, by its rule.", ["rule"], **into)
            self._searches = Counter("working_memory_searches_total", "Searches of the working memory.", **into)
            self._vectors = Counter("vector_search_queries_total", "Searches that compared vectors.", **into)
            self._reranks = Counter("reranks_total", "Calls of the reranker, by outcome.", ["outcome"], **into)
            self._retries = Counter("memory_retries_total", "Pieces of work that are tried again.", **into)
            self._pieces = Counter("memory_pieces_total", "Pieces of work, by how they ended.", ["outcome"], **into)
            self._alerts = Counter("memory_alerts_total", "Alerts, by their kind.", ["kind"], **into)
            self._writing = timed("summary_generation_duration_seconds", "The model's time for a summary.", _SECONDS)
            self._search_ms = timed(
                "working_memory_search_latency_ms", "A search, the question's embedding included.", _MILLISECONDS
            )
            self._vector_ms = timed(
                "vector_search_latency_ms", "The database's time for a search that compares vectors.", _MILLISECONDS
            )
            self._reranking = timed("rerank_duration_seconds", "The time for a reranker.", _SECONDS)
            self._length = timed("summary_token_count", "Approximate tokens of a summary.", _SUMMARY_TOKENS)
            self._used = timed("context_tokens_used", "Approximate tokens of a context pack.", _USED_TOKENS)
            self._saved = timed("context_tokens_saved", "Approximate tokens that a pack saved.", _SAVED_TOKENS)
            self._quality = timed(
                "context_quality_score",
                "The share of the history that a pack shows or covers; how a summary or a board was judged.",
                _SHARES,
                ("of",),
            )
            self._index = Gauge("vector_index_size_mb", "Megabytes of the vectors and their index.", **into)
            self._depth = Gauge("memory_queue_depth", "Pieces of work that wait.", **into)
            self._lag = Gauge("memory_queue_lag_seconds", "How long the oldest of them has waited.", **into)
            self._leases = Gauge("memory_leases", "Pieces of work under way.", **into)
            self._dead = Gauge("memory_dead", "Pieces of work that were given up.", **into)
        except ValueError:
            raise ConfigurationError(
                "The registry has metrics of these names already.", hint="Make one Metrics for each registry; share it."
            ) from None

    def summary_generated(self, seconds: float, tokens: int, quality: float | None = None) -> None:
        """See `NoMetrics`."""
        self._summaries.inc()
        self._writing.observe(seconds)
        self._length.observe(tokens)
        if quality is not None:
            self._quality.labels("summary").observe(quality)

    def board_revised(self, quality: float | None = None) -> None:
        """See `NoMetrics`."""
        if quality is not None:
            self._quality.labels("board").observe(quality)

    def chunks_created(self, count: int) -> None:
        """See `NoMetrics`."""
        self._chunks.inc(count)

    def signals_found(self, signal: str, count: int) -> None:
        """See `NoMetrics`."""
        self._signals.labels(signal).inc(count)

    def topics_assigned(self, episodes: int) -> None:
        """See `NoMetrics`."""
        self._episodes.inc(episodes)

    def topics_reclustered(self) -> None:
        """See `NoMetrics`."""
        self._reclusterings.inc()

    def advised(self, rule: str) -> None:
        """See `NoMetrics`."""
        self._advice.labels(rule).inc()

    def searched(self, ms: float, by_meaning: bool, vector_ms: float | None = None) -> None:
        """See `NoMetrics`."""
        self._searches.inc()
        self._search_ms.observe(ms)
        if by_meaning:
            self.vector_searched(ms if vector_ms is None else vector_ms)

    def vector_searched(self, ms: float) -> None:
        """See `NoMetrics`."""
        self._vectors.inc()
        self._vector_ms.observe(ms)

    def reranked(self, seconds: float, is_ordered: bool) -> None:
        """See `NoMetrics`."""
        self._reranks.labels("ordered" if is_ordered else "failed").inc()
        self._reranking.observe(seconds)

    def context_used(self, used: int, saved: int, quality: float | None = None) -> None:
        """See `NoMetrics`."""
        self._used.observe(used)
        self._saved.observe(max(saved, 0))  # a histogram's sum must not decrease
        if quality is not None:
            self._quality.labels("pack").observe(quality)

    def queue(self, depth: int, lag_seconds: float, leases: int, dead: int) -> None:
        """See `NoMetrics`."""
        self._depth.set(depth)
        self._lag.set(lag_seconds)
        self._leases.set(leases)
        self._dead.set(dead)

    def retried(self) -> None:
        """See `NoMetrics`."""
        self._retries.inc()

    def piece(self, outcome: Outcome) -> None:
        """See `NoMetrics`."""
        self._pieces.labels(outcome).inc()

    def alert(self, kind: CountedAlert) -> None:
        """See `NoMetrics`."""
        self._alerts.labels(kind).inc()

    def index_size(self, megabytes: float) -> None:
        """See `NoMetrics`."""
        self._index.set(megabytes)

    def render(self) -> tuple[bytes, str]:
        """See `NoMetrics`."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self._shown), CONTENT_TYPE_LATEST


class _WithoutTimes:
    """A registry without the series `…_created`, which say when a metric was created and look like counters."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            family.samples = [each for each in family.samples if each.name != f"{family.name}_created"]
            yield family
