"""Ids for messages that have none, the same when LangGraph runs a task again.

In the functional API what stands before an interrupt runs once more when it is resumed: a message that is made there
anew is the same message, and not another one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

from langchain_supabase_memory import fork

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

_IDS: Final = UUID("0ce5e6a7-55d1-4f0a-8a57-2f6a1d1f1f0b")

_SCRATCHPAD: Final = "__pregel_scratchpad"
"""LangGraph's key for what belongs to one execution of a task; written out, so that `langgraph` is not imported."""

_MOST: Final = 1_000
"""Of how many executions it is remembered how many messages were named."""

_lock = fork.Lock()
_named: OrderedDict[int, tuple[Any, int]] = OrderedDict()


def name(messages: Sequence[BaseMessage], config: Mapping[str, Any] | None) -> None:
    """Give the messages without an id one by their task, on the caller's own objects; outside of a task none.

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
        _named[id(scratchpad)] = (scratchpad, count + len(nameless))  # held, so that its number is no other's
        _named.move_to_end(id(scratchpad))
        while len(_named) > _MOST:
            _named.popitem(last=False)
    for place, message in enumerate(nameless, count):
        message.id = f"lc_{uuid5(_IDS, f'{task} {place} {message.type} {message.text}')}"
