"""The owners of checkpointed states that this process has seen."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from langchain_supabase_memory import fork

if TYPE_CHECKING:
    from langchain_supabase_memory.operations.branch import Lineage, StateOwner

_MAX_THREADS: Final = 10_000
"""The maximum number of threads remembered per checkpointer."""

_lock = fork.Lock()
_owners: WeakKeyDictionary[Any, OrderedDict[tuple[str, str], str]] = WeakKeyDictionary()


def owner_of(lineage: Lineage) -> str | None:
    """Return a state's owner, as a digest; `None` if this process has not seen it.

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
    """Remember a state's owner.

    Args:
        lineage: Where the state comes from.
        owner: The owner; `None` is ignored.
    """
    thread = _thread(lineage)
    if thread is None or owner is None:
        return
    with _lock:
        threads = _owners.setdefault(lineage.saver, OrderedDict())
        threads[thread] = owner.user
        threads.move_to_end(thread)
        while len(threads) > _MAX_THREADS:
            threads.popitem(last=False)


def _thread(lineage: Lineage) -> tuple[str, str] | None:
    """Return a state's id for its checkpointer; `None` without one, or if it does not support weak references."""
    if lineage.saver is None or lineage.place is None or lineage.task:
        return None
    if not hasattr(lineage.saver, "__weakref__"):
        return None
    return lineage.place["thread_id"], lineage.place["checkpoint_ns"]
