"""Whose the states are that a checkpointer keeps, as far as this process has seen."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from langchain_supabase_memory import fork

if TYPE_CHECKING:
    from langchain_supabase_memory.operations.branch import Lineage, StateOwner

_MOST: Final = 10_000
"""Of how many threads of one checkpointer it is remembered."""

_lock = fork.Lock()
_owners: WeakKeyDictionary[Any, OrderedDict[tuple[str, str], str]] = WeakKeyDictionary()


def owner_of(lineage: Lineage) -> str | None:
    """Whose a state is, as a digest; `None` if this process has not seen it.

    Args:
        lineage: Where the state comes from.
    """
    thread = _thread(lineage)
    if thread is None:
        return None
    with _lock:
        threads = _owners.get(lineage.saver)
        return None if threads is None else threads.get(thread)


def keep(lineage: Lineage, owner: StateOwner | None) -> None:
    """Remember whose a state is.

    Args:
        lineage: Where the state comes from.
        owner: Whose it is; nothing is remembered of nobody.
    """
    thread = _thread(lineage)
    if thread is None or owner is None:
        return
    with _lock:
        threads = _owners.setdefault(lineage.saver, OrderedDict())
        threads[thread] = owner.user
        threads.move_to_end(thread)
        while len(threads) > _MOST:
            threads.popitem(last=False)


def _thread(lineage: Lineage) -> tuple[str, str] | None:
    """What names a state for its checkpointer; `None` if it is kept by none, or by one that cannot be remembered."""
    if lineage.saver is None or lineage.place is None or lineage.task:
        return None
    if not hasattr(lineage.saver, "__weakref__"):
        return None
    return lineage.place["thread_id"], lineage.place["checkpoint_ns"]
