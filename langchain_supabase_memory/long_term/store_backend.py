"""Long-term memory over any LangGraph store: `StoreLongTerm`."""

from __future__ import annotations

import re
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from langgraph.store.base import BaseStore, GetOp, Op, PutOp, SearchItem, SearchOp

from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.effects import SyncAsync
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.long_term.base import SingleUserLongTerm
from langchain_supabase_memory.long_term.memories import (
    MAX_LIMIT,
    Memory,
    Remembered,
    check_ids,
    check_question,
    distinct,
)
from langchain_supabase_memory.values import check_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from langchain_supabase_memory.effects import Effects

PAGE: Final = 100
"""The maximum number of memories written per call of the store."""

_SPECIAL: Final = re.compile(r"[^\w@:-]|_")


class StoreLongTerm(SingleUserLongTerm):
    """Long-term memory in a LangGraph `BaseStore`: ours, `SupabaseStore(memory)`, or any other.

    Each memory is an item under `(*namespace, user, agent)`; only its text is embedded. The user is fixed at creation,
    so no later call can select another one. User and agent ids are escaped so that no two share a namespace in any
    store, even in one that joins labels with dots or matches prefixes as patterns. The owner of each returned item is
    checked again.

    Args:
        store: The store. The rows of a `SupabaseStore` also belong to its own user under row level security.
        user_id: The user who owns the memories. Take it from your authentication, never from a message.
        agent_id: Keep this agent's memories separate; by default all agents share them.
        namespace: The labels before the user.
        name: A name that distinguishes this long-term memory from the user's others; from the namespace by default.

    Raises:
        InvalidInputError: An id is not a usable string.
        ConfigurationError: `store` is not a store, or the namespace is empty.
    """

    def __init__(
        self,
        store: BaseStore,
        user_id: str,
        *,
        agent_id: str | None = None,
        namespace: Sequence[str] = ("long_term",),
        name: str | None = None,
    ) -> None:
        if not isinstance(store, BaseStore):
            raise wrong_type(
                "store", "a LangGraph store", store, "Pass SupabaseStore(memory), or another LangGraph store."
            )
        if agent_id is not None:
            check_id("agent_id", agent_id)
        if isinstance(namespace, str) or not namespace:
            raise ConfigurationError("The namespace must be a tuple of labels.", hint='("long_term",) is the default.')
        super().__init__(user_id, name or "store:" + "/".join([*namespace, *([] if agent_id is None else [agent_id])]))
        self._store = store
        self._namespace = (*namespace, _label(user_id), *([] if agent_id is None else [_label(agent_id)]))

    def __repr__(self) -> str:
        """Show the store and the name, without content."""
        return f"StoreLongTerm({self._store!r}, name={self._name!r})"

    def _remembering(self, memories: dict[str, Memory]) -> Effects[Remembered]:
        given = iter(memories.items())
        done = Remembered()
        while page := dict(islice(given, PAGE)):
            there = yield self._batch(GetOp(self._namespace, id_, refresh_ttl=False) for id_ in page)
            known = {id_ for id_, item in zip(page, there, strict=True) if item is not None and self._owns(item.value)}
            new = [id_ for id_ in page if id_ not in known]
            done.stored.extend(new)
            while new:  # LangGraph's store in memory refuses a batch that has one text twice
                once = {page[id_].text: id_ for id_ in reversed(new)}
                yield self._batch(
                    PutOp(self._namespace, id_, {**page[id_].to_json(), "user_id": self._user_id}, ["text"])
                    for id_ in reversed(once.values())
                )
                new = [id_ for id_ in new if once[page[id_].text] != id_]
            done.known.extend(id_ for id_ in page if id_ in known)
        return done

    def _recalling(self, query: str, limit: int, kinds: Collection[str] | None) -> Effects[list[Memory]]:
        question, wanted = check_question(query, limit, kinds)
        found: dict[str | None, list[Memory]] = {kind: [] for kind in ([None] if wanted is None else wanted)}
        left = dict.fromkeys(found, 0)  # the offset of each kind's next page
        seen: dict[str | None, set[tuple[str, ...]]] = {kind: set() for kind in found}
        size = min(limit * 2 + 10, MAX_LIMIT)
        while left:
            pages = yield self._batch(
                SearchOp(
                    self._namespace,
                    None if kind is None else {"kind": kind},
                    size,
                    offset,
                    question.strip() or None,
                    False,
                )
                for kind, offset in left.items()
            )
            for (kind, offset), items in zip(list(left.items()), pages, strict=True):
                found[kind] = distinct([*found[kind], *self._mine(items, kind)])
                fresh = {(*item.namespace, item.key) for item in items} - seen[kind]
                seen[kind] |= fresh
                # A store that ignores the offset returns the same page again.
                if len(items) < size or len(found[kind]) >= limit or not fresh:
                    del left[kind]
                else:
                    left[kind] = offset + size
        together = [memory for memories in found.values() for memory in memories]
        if len(found) > 1:
            together.sort(key=lambda memory: float("-inf") if memory.score is None else memory.score, reverse=True)
        return distinct(together)[:limit]

    def _forgetting(self, ids: Iterable[str]) -> Effects[None]:
        given = iter(check_ids(ids))
        while page := list(islice(given, PAGE)):
            yield self._batch(PutOp(self._namespace, id_, None) for id_ in page)

    def _batch(self, operations: Iterable[Op]) -> SyncAsync:
        """Return one call of the store as a step."""
        listed = list(operations)
        return SyncAsync(partial(self._store.batch, listed), partial(self._store.abatch, listed))

    def _mine(self, items: Iterable[SearchItem], kind: str | None) -> Iterable[Memory]:
        """Filter a store's items to those really in this namespace, of this user and of this kind."""
        for item in items:
            if tuple(item.namespace) == self._namespace and self._owns(item.value):
                memory = Memory.from_json(item.value, item.key, item.score)
                if memory is not None and kind in (None, memory.kind):
                    yield memory

    def _owns(self, value: Any) -> bool:
        return isinstance(value, dict) and value.get("user_id") == self._user_id


def _label(id_: str) -> str:
    """Escape an id as a label safe in every store: unique, without dots, pattern or control characters."""
    return _SPECIAL.sub(lambda match: "".join(f"={byte:02X}" for byte in match[0].encode()), id_)
