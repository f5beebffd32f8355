"""Ids for messages without one, which stay the same when LangGraph runs a task again.

In the functional API, the code before an interrupt runs again on resume: a message that it creates again must be the
same message, not another one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import fork
from langchain_supabase_memory.language.messages import codec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

_SCRATCHPAD: Final = "__pregel_scratchpad"
"""LangGraph's key for the data of one task execution; a literal, so that `langgraph` is not imported."""

_MAX_EXECUTIONS: Final = 1_000
"""For how many executions the number of messages with a new id is remembered."""

_lock = fork.Lock()
_named: OrderedDict[int, tuple[Any, int]] = OrderedDict()


def name(messages: Sequence[BaseMessage], config: Mapping[str, Any] | None) -> None:
    """Give messages without an id one that is derived from their task, in place; do nothing outside a task.

    Args:
        messages: The messages of one call.
        config: The configuration of the task.
    """
    nameless = [message for message in messages if not message.id]
    configurable: Mapping[str, Any] = (config or {}).get("configurable") or {}
    scratchpad, task = configurable.get(_SCRATCHPAD), configurable.get("checkpoint_ns")
    if not nameless or scratchpad is None or not task:
        return
    with _lock:
        _, count = _named.get(id(scratchpad), (scratchpad, 0))
        _named[id(scratchpad)] = (scratchpad, count + len(nameless))  # referenced, so that its `id()` is not reused
        _named.move_to_end(id(scratchpad))
        while len(_named) > _MAX_EXECUTIONS:
            _named.popitem(last=False)
    for place, message in enumerate(nameless, count):
        message.id = codec.derived_id(f"{task} {place} {message.type} {message.text}")
