"""Callbacks of a graph's run that hide our prompts and our models' answers from the user's stream.

LangGraph and `astream_events` stream with callback handlers, which every model and node in a graph's run inherits. They
stream the tokens of each model call, and each message that a node returns in any key of its state.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

NOSTREAM: Final = "nostream"
"""LangGraph's tag for model calls whose tokens are not streamed to the user."""

_GRAPH: Final = "__pregel_"
_RUNTIME: Final = "__pregel_runtime"
_TOKENS: Final = frozenset({"on_llm_new_token", "on_stream_event"})


@contextmanager
def without_streaming() -> Iterator[None]:
    """Run a block so that models called in it do not stream to the user of the enclosing graph's run.

    This includes models that a function or another graph calls. Tracing and token counts are not affected.
    """
    running = sys.modules.get("langchain_core.runnables.config")  # slow to import; any graph run has imported it
    ambient = None if running is None else running.var_child_runnable_config.get()
    if running is None or not ambient:
        yield
        return
    token = running.var_child_runnable_config.set(_without_streaming(running.ensure_config(ambient)))
    try:
        yield
    finally:
        running.var_child_runnable_config.reset(token)


def hide_tokens(messages: Iterable[BaseMessage], config: Mapping[str, Any] | None) -> None:
    """Keep messages that a node is about to return out of streams with `stream_mode="messages"`.

    LangGraph streams each message once, by its id, so the messages are registered as already streamed.

    Args:
        messages: The messages; those without an id get one, set on the object itself.
        config: The configuration of the node's run.
    """
    handlers = [each for each in _handlers((config or {}).get("callbacks")) if _streams(each)]
    if not handlers:
        return
    ids = []
    for message in messages:
        message.id = message.id or str(uuid4())
        ids.append(message.id)
    for handler in handlers:
        seen = getattr(handler, "seen", None)
        if isinstance(seen, set):
            seen.update(ids)


def _without_streaming(config: RunnableConfig) -> RunnableConfig:
    config["tags"] = [*(config.get("tags") or ()), NOSTREAM]
    config["callbacks"] = _filter_tokens(config.get("callbacks"))
    # A graph called here must not treat itself as part of the enclosing graph and write into its stream.
    config["configurable"] = {
        key: value
        for key, value in (config.get("configurable") or {}).items()
        if key == _RUNTIME or not key.startswith(_GRAPH)
    }
    return config


def _filter_tokens(callbacks: Any) -> Any:
    if not hasattr(callbacks, "inheritable_handlers"):
        return callbacks and [_filtered_handler(each) for each in callbacks if not _streams(each)]
    made = callbacks.copy()
    made.handlers = [_filtered_handler(each) for each in callbacks.handlers if not _streams(each)]
    made.inheritable_handlers = [
        _filtered_handler(each) for each in callbacks.inheritable_handlers if not _streams(each)
    ]
    made.add_tags([NOSTREAM])
    return made


def _handlers(callbacks: Any) -> list[Any]:
    if hasattr(callbacks, "inheritable_handlers"):
        return [*callbacks.handlers, *callbacks.inheritable_handlers]
    return list(callbacks or ())


def _streams(handler: Any) -> bool:
    """Return whether LangGraph or `astream_events` streams with this handler, by LangChain's own marker."""
    return hasattr(handler, "tap_output_iter")


def _filtered_handler(handler: Any) -> Any:
    """Wrap an application's handler that receives tokens, to drop them; tracers need them and stay as they are."""
    from langchain_core.tracers.base import AsyncBaseTracer, BaseTracer

    if isinstance(handler, (BaseTracer, AsyncBaseTracer, _TokenFilter)):
        return handler
    return _TokenFilter(handler) if _takes_tokens(handler) else handler


def _takes_tokens(handler: Any) -> bool:
    kinds = type(handler).__mro__
    return any(_TOKENS & vars(kind).keys() for kind in kinds if kind.__module__ != "langchain_core.callbacks.base")


class _TokenFilter:
    """An application's callback handler that receives everything but tokens."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def on_llm_new_token(self, *_: Any, **__: Any) -> None:
        """Drop the token."""

    def on_stream_event(self, *_: Any, **__: Any) -> None:
        """Drop the event."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handler, name)
