"""Spans for OpenTelemetry, where its API is installed: ids and counts, and of an error its class and code."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.errors import SupabaseMemoryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from opentelemetry.trace import Span, Tracer

SCOPE = "langchain_supabase_memory"
"""What the spans say that they are made by."""

PREFIX = "supabase_memory."
"""What the names of spans and of their attributes begin with."""


@contextmanager
def span(name: str, **attributes: Any) -> Iterator[Span | None]:
    """A span around a block, which becomes the parent of those that are begun in it.

    Args:
        name: Its name.
        attributes: Ids and counts, under names that get the prefix; those that are `None` are left out.

    Returns:
        The span; `None` if nobody records it.
    """
    tracer = _tracer()
    if tracer is None:
        yield None
        return
    # The exception's text may hold content, so it is not recorded.
    with tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as made:
        recorded = made if made.is_recording() else None
        put(recorded, **attributes)
        try:
            yield recorded
        except BaseException as error:
            _failed(recorded, error)
            raise


def put(span: Span | None, **attributes: Any) -> None:
    """Add ids and counts to a span, under names that get the prefix; those that are `None` are left out."""
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
    """What makes spans; `None` where the API is not installed, or as long as no provider is set."""
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
