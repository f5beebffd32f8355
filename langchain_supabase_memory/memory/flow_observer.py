"""What is recorded of one flow, in its span and in the metrics."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.context.load import omitted_messages
from langchain_supabase_memory.context.pack import ContextPack
from langchain_supabase_memory.effects import Ask, Call, Embed, Rerank, StepResult
from langchain_supabase_memory.memory import standard_spans
from langchain_supabase_memory.memory.instrumentation import (
    PREFIX,
    HealthObserver,
    put,
    span,
    suppressed_errors,
)
from langchain_supabase_memory.operations.advice import Advice
from langchain_supabase_memory.values import (
    AppendResult,
    BoardResult,
    IndexResult,
    Recall,
    Receipt,
    Signal,
    SummaryResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from opentelemetry.trace import Span

    from langchain_supabase_memory.adapters.telemetry.metrics import NoMetrics
    from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo
    from langchain_supabase_memory.effects import Step
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.memory.instrumentation import Watching

_IDS: Final = ("thread_id", "agent_id", "conversation_id")
"""The SQL arguments that a span records. A user's id may be a name or an address, so it is left out."""


def operation_span(verb: str, endpoint: Callable[[], EndpointInfo] | None) -> AbstractContextManager[Span | None]:
    """Open an operation's span: of the conventions' name if they know it, else of its own."""
    standard = standard_spans.operation_name(verb)
    if standard is None:
        return span(PREFIX + verb, operation=verb)
    return span(standard, {standard_spans.OPERATION: standard, **_server(endpoint)}, operation=verb)


def _server(endpoint: Callable[[], EndpointInfo] | None) -> dict[str, Any]:
    if endpoint is not None:
        with suppressed_errors():
            return standard_spans.server_attributes(endpoint())
    return {}


class FlowObserver(HealthObserver):
    """An observer of one flow. Its own errors are logged and never fail the operation.

    Args:
        watching: Reports failed steps.
        span: The flow's span; `None` if it is not recorded.
        metrics: The metrics to update.
        verb: The name of the flow's function.
        redactor: Removes secrets and personal data from texts that spans record.
        endpoint: Returns where calls go.
    """

    def __init__(
        self,
        watching: Watching,
        span: Span | None,
        metrics: NoMetrics,
        verb: str,
        *,
        redactor: Redactor | None = None,
        endpoint: Callable[[], EndpointInfo] | None = None,
    ) -> None:
        super().__init__(watching)
        self._span = span
        self._metrics = metrics
        self._is_standard = standard_spans.operation_name(verb) is not None
        self._redactor = redactor
        self._endpoint = endpoint
        self._asked_seconds = 0.0
        self._embedded_ms = 0.0

    @contextmanager
    def step(self, step: Step[Any]) -> Iterator[StepResult]:
        """Record whether a step fails, how long it takes and its answer."""
        seen = StepResult()
        begun = time.perf_counter()
        try:
            around = nullcontext() if self._span is None else span(_step_name(step), **_span_attributes(step))
            with around, self._watching(step):
                yield seen
        finally:
            seconds = time.perf_counter() - begun
            if isinstance(step, Ask) and (step.material is None or step.material.task != "board"):
                self._asked_seconds += seconds  # failed attempts count, too
            elif isinstance(step, Embed) and step.is_query:
                self._embedded_ms += seconds * 1000
            elif isinstance(step, Rerank):
                with suppressed_errors():
                    self._metrics.reranked(seconds, seen.answer is not None)
        if isinstance(step, Call):
            with suppressed_errors():
                self._record_call(step, seen.answer, seconds * 1000)

    def record_result(self, result: Any) -> None:
        """Record the flow's result."""
        with suppressed_errors():
            put(self._span, **_counts(result))
            if self._span is not None and self._is_standard:
                self._span.set_attributes(standard_spans.result_attributes(result))
            if isinstance(result, ContextPack) and self._metrics.measures:
                report = result.report()
                self._metrics.context_used(report.tokens, report.saved_tokens, _represented(result))
            elif isinstance(result, list):
                for each in result:
                    if isinstance(each, Advice):
                        self._metrics.advised(each.rule)

    def _record_call(self, call: Call, answer: Any, ms: float) -> None:
        if self._span is not None:
            ids = {name: call.arguments.get(f"p_{name}") for name in _IDS}
            if isinstance(answer, dict) and isinstance(answer.get("conversation_id"), str):
                ids["conversation_id"] = answer["conversation_id"]
            put(self._span, **ids)
            if call.operation == "use store":
                self._is_standard = _name_store_span(self._span, call.arguments["p_ops"])
            if self._is_standard:
                # An embedded server is known once it has started.
                self._span.set_attributes(_server(self._endpoint))
                self._span.set_attributes(standard_spans.call_attributes(call, self._redactor))
        match call.operation:
            case "write summary" if answer["committed"] and self._asked_seconds:
                quality = call.arguments.get("p_quality")
                self._metrics.summary_generated(self._asked_seconds, call.arguments["p_tokens"], quality)
                self._asked_seconds = 0.0
            case "write board" if answer["committed"]:
                self._metrics.board_revised(call.arguments["p_quality"])
                self._asked_seconds = 0.0
            case "write chunks" if answer["committed"]:
                self._metrics.chunks_created(answer["chunks"])
                for signal, count in _count_signals(call.arguments["p_chunks"]).items():
                    self._metrics.signals_found(signal, count)
            case "assign topics":
                self._metrics.topics_assigned(answer["assigned"])
            case "write topics" if answer["committed"]:
                self._metrics.topics_reclustered()
            case "recall":
                self._record_search(answer, ms)
            case "load context" if answer and answer.get("recalled"):
                self._record_search(answer["recalled"], ms)
            case "recall summaries" if call.arguments["p_vector"] is not None:
                self._metrics.vector_searched(ms)
            case "gauge queue":
                self._metrics.queue(answer["depth"], answer["lag_seconds"], answer["leases"], answer["dead"])
                self._metrics.index_size(answer["vector_bytes"] / 1e6)
            case "use store":
                for _ in filter(_compares_vectors, call.arguments["p_ops"]):
                    self._metrics.vector_searched(ms)

    def _record_search(self, answer: Mapping[str, Any], ms: float) -> None:
        self._metrics.searched(ms + self._embedded_ms, answer["by_meaning"], ms)
        self._embedded_ms = 0.0


def _count_signals(chunks: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Return how many chunks have each signal; those that mention what is opted out are not stored."""
    told = [row["signals"] for row in chunks if row.get("signals") and not row["hidden"]]
    return Counter(signal.label for bits in told for signal in Signal if signal & bits)


def _step_name(step: Step[Any]) -> str:
    return step.function if isinstance(step, Call) else PREFIX + type(step).__name__.lstrip("_").lower()


def _span_attributes(step: Step[Any]) -> dict[str, Any]:
    """Return the ids and counts of a step, for its span."""
    if isinstance(step, Call):
        return {name: step.arguments.get(f"p_{name}") for name in _IDS}
    if isinstance(step, Embed):
        return {"texts": len(step.texts), "is_query": step.is_query}
    if isinstance(step, Rerank):
        return {"queries": len(step.queries), "documents": len(step.documents)}
    if isinstance(step, Ask):
        return {"messages": len(step.prompt), "task": None if step.material is None else step.material.task}
    return {}


def _counts(result: Any) -> dict[str, Any]:
    """Return the counts of a result, for its span."""
    match result:
        case AppendResult():
            return {"messages": len(result.sequences), "appended": result.appended, "updated": len(result.updated)}
        case SummaryResult():
            made = {"segments": len(result.segments), "model_calls": result.model_calls}
            return {**made, "through_sequence": result.through_sequence, "failed": result.failed is not None}
        case BoardResult():
            made = {"added": result.added, "changed": result.changed, "model_calls": result.model_calls}
            return {**made, "through_sequence": result.through_sequence, "failed": result.failed is not None}
        case IndexResult():
            made = {"chunks": result.chunks, "summaries": result.summaries}
            return {**made, "through_sequence": result.through_sequence, "failed": result.failed is not None}
        case Recall():
            return {"chunks": len(result.chunks), "searched": result.searched, "by_meaning": result.by_meaning}
        case ContextPack():
            shown = {"messages": len(result.fitted.recent), "recalled": len(result.recalled)}
            return {**shown, "history": result.full_messages, "omitted": omitted_messages(result)}
        case Receipt():
            return {"conversations": result.conversations, "messages": result.messages, "chunks": result.chunks}
        case list() | dict():
            return {"found": len(result)}
    return {}


def _represented(pack: ContextPack) -> float | None:
    """Return the share of the history's messages that a pack shows or summarizes; `None` without a history."""
    if not pack.full_messages:
        return None
    return max(0.0, 1 - omitted_messages(pack) / pack.full_messages)


def _compares_vectors(operation: Mapping[str, Any]) -> bool:
    return "query" in operation and operation.get("vector") is not None


def _name_store_span(recorded: Span, operations: Sequence[Mapping[str, Any]]) -> bool:
    """Name a store's span once it is known what it does; return whether the conventions know it."""
    standard = standard_spans.store_operation_name(operations)
    if standard is not None:
        recorded.update_name(standard)
        recorded.set_attribute(standard_spans.OPERATION, standard)
    return standard is not None
