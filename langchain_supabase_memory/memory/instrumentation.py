"""Instrumentation of flows: one place that counts, times and traces every operation.

Spans are created if OpenTelemetry's API is installed; they have ids and counts, and for an error its class and
code. An operation that OpenTelemetry's conventions for memory know is a span of their name, with their attributes
beside ours (see `standard_spans`). Flows stay pure and are not aware of it. Counts come from the steps, so that a
summary written within another operation also counts; the contents of a pack come from the result (`flow_observer`).
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_supabase_memory.effects import Observer, StepResult
from langchain_supabase_memory.errors import SupabaseMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from types import ModuleType

    from opentelemetry.trace import Span, SpanKind, Tracer

    from langchain_supabase_memory.adapters.telemetry.metrics import NoMetrics
    from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo
    from langchain_supabase_memory.effects import Flow, Step
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor

Watching: TypeAlias = "Callable[[Step[Any]], AbstractContextManager[None]]"
"""Returns a context manager for a step that reports a failure to `health`."""

_logger = logging.getLogger(__name__)

SCOPE: Final = "langchain_supabase_memory"
"""The name of the tracer."""

PREFIX: Final = "supabase_memory."
"""The prefix of the names of spans and attributes."""


@contextmanager
def observing(
    flow: Flow[Any],
    metrics: NoMetrics,
    watching: Watching,
    redactor: Redactor | None = None,
    endpoint: Callable[[], EndpointInfo] | None = None,
) -> Iterator[Observer]:
    """Observe a flow while it runs in the block.

    Args:
        flow: A fresh flow.
        metrics: The metrics to update.
        watching: Reports failed steps to `health`.
        redactor: Removes secrets and personal data from texts that spans record.
        endpoint: Returns where calls go.
    """
    if not is_on(metrics):
        yield HealthObserver(watching)
        return
    # Who neither traces nor measures imports nothing of this.
    from langchain_supabase_memory.memory.flow_observer import FlowObserver, operation_span

    verb = _name(flow)
    with operation_span(verb, endpoint) as recorded:
        if recorded is None and not metrics.measures:
            yield HealthObserver(watching)
        else:
            yield FlowObserver(watching, recorded, metrics, verb, redactor=redactor, endpoint=endpoint)


def is_on(metrics: NoMetrics) -> bool:
    """Return whether flows are traced or measured."""
    return _tracer() is not None or metrics.measures


class HealthObserver(Observer):
    """An observer that only reports failed steps to `health`.

    Args:
        watching: Reports failed steps.
    """

    def __init__(self, watching: Watching) -> None:
        self._watching = watching

    @contextmanager
    def step(self, step: Step[Any]) -> Iterator[StepResult]:
        """Report whether a step fails."""
        with self._watching(step):
            yield StepResult()


@contextmanager
def suppressed_errors() -> Iterator[None]:
    """Suppress and log errors of observers and exporters."""
    try:
        yield
    except Exception as error:  # its text may contain content, its class does not
        failure = type(error).__name__
        _logger.warning("An observation failed (%s).", failure, extra={"memory_error": failure})


def _name(flow: Any) -> str:
    """Return a flow's name: that of its function."""
    return str(getattr(flow, "__qualname__", type(flow).__name__)).rpartition(".")[2].lstrip("_")


@contextmanager
def span(name: str, standard: Mapping[str, Any] | None = None, /, **attributes: Any) -> Iterator[Span | None]:
    """Open a span around a block; spans started in the block are its children.

    Args:
        name: The span's name.
        standard: Attributes of OpenTelemetry's conventions, known when it starts. The span is then of the kind
            `CLIENT`.
        attributes: Ids and counts, whose names get the prefix; `None` values are left out.

    Returns:
        The span; `None` if it is not recorded.
    """
    tracer = _tracer()
    if tracer is None:
        yield None
        return
    # The exception's text may contain content, so it is not recorded.
    with tracer.start_as_current_span(
        name, kind=_kind(standard), attributes=standard, record_exception=False, set_status_on_exception=False
    ) as made:
        recorded = made if made.is_recording() else None
        put(recorded, **attributes)
        try:
            yield recorded
        except BaseException as error:
            _failed(recorded, error)
            raise


def _kind(standard: Mapping[str, Any] | None) -> SpanKind:
    from opentelemetry.trace import SpanKind

    return SpanKind.INTERNAL if standard is None else SpanKind.CLIENT


def put(span: Span | None, **attributes: Any) -> None:
    """Add ids and counts to a span; their names get the prefix, and `None` values are left out."""
    if span is not None:
        span.set_attributes({PREFIX + name: value for name, value in attributes.items() if value is not None})


def _failed(span: Span | None, error: BaseException) -> None:
    if span is None:
        return
    from opentelemetry.trace import Status, StatusCode

    kind = type(error).__name__
    span.set_attribute("error.type", kind)
    if isinstance(error, SupabaseMemoryError):
        put(span, code=error.code)
    span.set_status(Status(StatusCode.ERROR, kind))


def _tracer() -> Tracer | None:
    """Return the tracer; `None` if the API is not installed or no provider is set."""
    trace = _api()
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return _get_tracer()


@cache
def _api() -> ModuleType | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace


@cache
def _get_tracer() -> Tracer:
    from opentelemetry import trace

    return trace.get_tracer(SCOPE)
