"""Which checkpoints of a LangGraph thread are retained, so that a graph resumes at every one of them. Pure.

A namespace is a graph's place in a thread: empty for the thread's own graph, `node` for a subgraph with a state of its
own, and `node:task` for one call of a subgraph. The ids of checkpoints ascend with time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

ROOT: Final = ""
"""The namespace of the thread's own graph."""

_CALL: Final = ":"
"""It separates a subgraph's name from its task in the namespace of one call."""


@dataclass(frozen=True)
class Checkpoint:
    """What decides whether a checkpoint is retained.

    Attributes:
        namespace: Its namespace.
        id: Its id.
        parent: The checkpoint from which it comes; `None` for the first.
        root: The checkpoint of the thread's own graph from which its subgraph was called; `None` if there is none.
        saved_at: When it was saved.
        stored: The channels whose value is stored with it.
        lacking: The delta channels whose value is not: it is rebuilt from the writes of its ancestors.
        reads_parent: Whether its pending sends are stored with its parent, as in formats before 4.
    """

    namespace: str
    id: str
    parent: str | None
    root: str | None
    saved_at: datetime
    stored: frozenset[str] = frozenset()
    lacking: frozenset[str] = frozenset()
    reads_parent: bool = False


def retained(
    checkpoints: Iterable[Checkpoint], *, newest: int, younger_than: datetime, orphans_from: datetime
) -> set[tuple[str, str]]:
    """Return the namespace and id of each checkpoint of one thread that is retained.

    Args:
        checkpoints: All checkpoints of the thread.
        newest: How many of the newest of each namespace are retained.
        younger_than: What was saved at this time or later is retained.
        orphans_from: A subgraph's call that was saved at this time or later is retained even if the checkpoint from
            which it was called is not saved, because a run may still save that one.
    """
    namespaces: dict[str, list[Checkpoint]] = defaultdict(list)
    for each in checkpoints:
        namespaces[each.namespace].append(each)
    for newest_first in namespaces.values():
        newest_first.sort(key=lambda each: each.id, reverse=True)
    roots = namespaces.pop(ROOT, [])
    kept_roots = _with_ancestors(roots, _recent(roots, newest, younger_than))
    saved_roots = {each.id for each in roots}
    found = {(ROOT, each) for each in kept_roots}
    for namespace, newest_first in namespaces.items():
        chosen = _recent(newest_first, newest, younger_than)
        if _CALL in namespace:
            chosen &= _of_roots(newest_first, kept_roots, saved_roots, orphans_from)
        else:
            chosen |= _seen_from(newest_first, kept_roots)
        found |= {(namespace, each) for each in _with_ancestors(newest_first, chosen)}
    return found


def _recent(newest_first: Sequence[Checkpoint], newest: int, younger_than: datetime) -> set[str]:
    """Return the newest checkpoints, and the young ones."""
    return {each.id for place, each in enumerate(newest_first) if place < newest or each.saved_at >= younger_than}


def _of_roots(
    newest_first: Sequence[Checkpoint], kept_roots: set[str], saved_roots: set[str], orphans_from: datetime
) -> set[str]:
    """Return the checkpoints of a call whose root checkpoint is retained, or may still be saved."""
    return {
        each.id
        for each in newest_first
        if each.root in kept_roots or (each.root not in saved_roots and each.saved_at >= orphans_from)
    }


def _seen_from(newest_first: Sequence[Checkpoint], kept_roots: set[str]) -> set[str]:
    """Return, of a subgraph with a state of its own, the states in which a retained checkpoint finds it.

    A replay reads the newest state before the checkpoint; a resumed run, the newest that was called from it.
    """
    seen = {next((each.id for each in newest_first if each.id < root), None) for root in kept_roots}
    called: dict[str, str] = {}
    for each in newest_first:  # the newest first
        if each.root in kept_roots:
            called.setdefault(each.root or "", each.id)
    return {each for each in (*seen, *called.values()) if each is not None}


def _with_ancestors(newest_first: Sequence[Checkpoint], chosen: set[str]) -> set[str]:
    """Add the ancestors without which a checkpoint's delta channels, or its pending sends, cannot be read.

    An ancestor's own channels are complete, too, so that a graph resumes at it.
    """
    by_id = {each.id: each for each in newest_first}
    kept: set[str] = set()
    waiting = [each for each in chosen if each in by_id]
    while waiting:
        each = waiting.pop()
        if each in kept:
            continue
        kept.add(each)
        waiting.extend(_required_ancestors(by_id[each], by_id))
    return kept


def _required_ancestors(checkpoint: Checkpoint, by_id: Mapping[str, Checkpoint]) -> Iterator[str]:
    """Yield the ancestors that a checkpoint needs, up to those that store the values of its delta channels."""
    lacking = set(checkpoint.lacking)
    parent = checkpoint.parent
    if checkpoint.reads_parent and parent is not None and parent in by_id:
        yield parent
    while lacking and parent is not None and parent in by_id:
        yield parent
        lacking -= by_id[parent].stored
        parent = by_id[parent].parent
