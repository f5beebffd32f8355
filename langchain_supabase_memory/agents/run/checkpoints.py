"""Earlier states of a graph, read from the checkpoints that its run continues from.

They are read if a state lacks messages that a graph stored, and nothing else shows whether it ever contained them: a
message may have been removed from the state, or belong to another concurrent run. That is rare, so other runs have no
extra cost.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from langchain_supabase_memory.effects import SyncAsync
from langchain_supabase_memory.language.messages import codec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from langchain_supabase_memory.effects import Effects
    from langchain_supabase_memory.operations.branch import Lineage

_MAX_STATES: Final = 100
"""The maximum number of checkpoints to read back."""

_TRIES: Final = 20
_PAUSE_SECONDS: Final = 0.05
"""LangGraph writes a checkpoint while its step runs, so wait up to one second for the current one."""
_LOST_TRIES: Final = 5 * _TRIES
"""A checkpoint taken for lost by mistake would hide what another run says, so that is waited for longer."""

_logger = logging.getLogger(__name__)


class _State(NamedTuple):
    """The state in one checkpoint.

    Attributes:
        source: What created it: `input`, `loop` (a step of a run), `update` (the application) or `fork`.
        ids: The ids of its messages.
    """

    source: str
    ids: frozenset[str]


def may_have_removed(lineage: Lineage) -> bool:
    """Return whether there are checkpoints to read."""
    return lineage.saver is not None and lineage.place is not None and lineage.is_written


def removed_ids(lineage: Lineage, input_key: str, ids: Sequence[str]) -> Effects[list[str]]:
    """Return which of a state's missing messages were removed from it.

    Between two runs, any message that the application removed counts. Within a run, only messages that the run itself
    added count, because earlier turns that disappear were trimmed.

    Args:
        lineage: Where the state comes from.
        input_key: The key of the graph's state that holds the messages.
        ids: The stored ids of the missing messages.

    Returns:
        Those of `ids` that were removed; empty if no checkpoint shows it.
    """
    if not may_have_removed(lineage):
        return []
    try:
        states = yield from _walk(lineage.saver, lineage.place or {}, input_key)
    except Exception as error:
        _log_unreadable(error)
        return []
    gone = _removed_between(states)
    return [each for each in ids if each in gone]


def unwritten(lineage: Lineage, checkpoints: Collection[str]) -> Effects[set[str]]:
    """Return which checkpoints were never written, though a step of the graph ran from them: its process was killed.

    Args:
        lineage: Where the state of a resumed run comes from.
        checkpoints: The ids of checkpoints.

    Returns:
        Of those that are newer than the state's own, which nothing has pruned, the ones that are not there.
    """
    if not may_have_removed(lineage):
        return set()
    saver, place = lineage.saver, lineage.place or {}
    # Their ids are in the order in which they were made.
    left = {each for each in checkpoints if each > place["checkpoint_id"]}
    try:
        for number in range(_LOST_TRIES):
            if not left:
                break
            if number:  # another run of the thread may be writing it
                yield SyncAsync(partial(time.sleep, _PAUSE_SECONDS), partial(asyncio.sleep, _PAUSE_SECONDS))
            for each in sorted(left):
                config = {"configurable": {**place, "checkpoint_id": each}}
                if (yield SyncAsync(partial(saver.get_tuple, config), partial(saver.aget_tuple, config))) is not None:
                    left.discard(each)
    except Exception as error:
        _log_unreadable(error)
        return set()
    return left


def is_rolled_back(lineage: Lineage, run: str) -> Effects[bool]:
    """Return whether LangGraph's server rolled back a run of this thread, which leaves no checkpoint of it.

    Args:
        lineage: Where the state comes from.
        run: The run.
    """
    if lineage.saver is None or lineage.place is None:
        return False
    saver, config = lineage.saver, {"configurable": {"thread_id": lineage.place["thread_id"]}}

    def is_gone() -> bool:
        return next(iter(saver.list(config, filter={"run_id": run}, limit=1)), None) is None

    async def ais_gone() -> bool:
        async for _ in saver.alist(config, filter={"run_id": run}, limit=1):
            return False
        return True

    try:
        result: bool = yield SyncAsync(is_gone, ais_gone)
    except Exception as error:
        _log_unreadable(error)
        return False
    return result


def _log_unreadable(error: Exception) -> None:
    """Log a checkpointer's error by its class only, as its text may hold content; the agent still answers."""
    _logger.warning("The checkpoints of a run could not be read (%s).", type(error).__name__)


def _walk(saver: Any, place: Mapping[str, str], input_key: str) -> Effects[list[_State]]:
    """Read the checkpoints from the current one back to the end of the previous run, the newest first."""
    states: list[_State] = []
    config, tries, has_input = {"configurable": dict(place)}, _TRIES, False
    while len(states) < _MAX_STATES:
        found = yield SyncAsync(partial(saver.get_tuple, config), partial(saver.aget_tuple, config))
        tries -= 1
        if found is None and tries:
            yield SyncAsync(partial(time.sleep, _PAUSE_SECONDS), partial(asyncio.sleep, _PAUSE_SECONDS))
            continue
        if found is None:
            break
        source = str((found.metadata or {}).get("source"))
        messages = found.checkpoint["channel_values"].get(input_key) or ()
        states.append(_State(source, frozenset(codec.row_id(_id(each)) for each in messages)))
        if (has_input and source == "loop") or found.parent_config is None:
            break
        has_input = has_input or source == "input"
        config, tries = found.parent_config, 1
    return states


def _id(message: Any) -> Any:
    return message.get("id") if isinstance(message, dict) else getattr(message, "id", None)


def _removed_between(states: Sequence[_State]) -> set[str]:
    """Return the ids removed between the oldest and the newest of these checkpoints."""
    if not states:
        return set()
    before = states[-1].ids if any(each.source == "input" for each in states[:-1]) else frozenset[str]()
    gone: set[str] = set()
    for newer, older in itertools.pairwise(states):
        is_by_application = newer.source != "loop" or older.source == "input"
        gone |= older.ids - newer.ids if is_by_application else older.ids - newer.ids - before
    return gone - states[0].ids
