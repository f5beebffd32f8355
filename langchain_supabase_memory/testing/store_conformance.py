"""The conformance suite of LangGraph stores: for any `BaseStore`, sync and async, without pytest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_supabase_memory.testing import store_checks
from langchain_supabase_memory.testing.store_steps import CheckFunction, aperform, perform

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from langgraph.store.base import BaseStore, IndexConfig

MakeStore: TypeAlias = "Callable[[IndexConfig | None], AbstractContextManager[BaseStore]]"
"""Returns a context manager of an empty store with this index."""

MakeAsyncStore: TypeAlias = "Callable[[IndexConfig | None], AbstractAsyncContextManager[BaseStore]]"
"""Returns an async context manager of an empty store with this index."""


@dataclass(frozen=True)
class StoreCheck:
    """One promise of LangGraph's `BaseStore`.

    Attributes:
        name: The promise, in words.
    """

    name: str
    _function: CheckFunction
    _fields: tuple[str, ...] = ()
    _supports_ttl: bool | None = None

    def __str__(self) -> str:
        """Return the name, as pytest shows it."""
        return self.name

    def run(self, make: MakeStore) -> None:
        """Check it with the sync methods of a store.

        Args:
            make: Returns a context manager of an empty store with the index that it is passed; `None`: without one.

        Raises:
            AssertionError: The store does not keep the promise. Whatever else the store raises is raised, too.
        """
        with make(self._index()) as store:
            if self._applies(store):
                perform(self._function(), store)

    async def arun(self, make: MakeAsyncStore) -> None:
        """Check it with the async methods of a store. As for `run`, with an async context manager."""
        async with make(self._index()) as store:
            if self._applies(store):
                await aperform(self._function(), store)

    def _index(self) -> IndexConfig | None:
        if not self._fields:
            return None
        words = store_checks.WordEmbeddings()
        return {"dims": words.dimensions, "embed": words, "fields": [*self._fields]}

    def _applies(self, store: BaseStore) -> bool:
        return self._supports_ttl is None or self._supports_ttl == store.supports_ttl


STORE_CHECKS: Final = (
    *(StoreCheck(name, check) for name, check in store_checks.ITEMS.items()),
    *(StoreCheck(name, check, ("text", "notes[*]")) for name, check in store_checks.MEANING.items()),
    *(StoreCheck(name, check, (), True) for name, check in store_checks.EXPIRY.items()),
    *(StoreCheck(name, check, (), False) for name, check in store_checks.NO_EXPIRY.items()),
)
"""Every check. What a store does not support, such as a time to live, is not checked."""


def check_store(make: MakeStore) -> dict[str, str]:
    """Run every check with the sync methods of a store.

    Args:
        make: Returns a context manager of an empty store with the index that it is passed; `None`: without one.

    Returns:
        What the store does not keep: the reason, by the name of the check. Empty if it keeps everything.

    Example:
        ```python
        check_store(lambda index: nullcontext(InMemoryStore(index=index)))
        ```
    """
    broken: dict[str, str] = {}
    for check in STORE_CHECKS:
        try:
            check.run(make)
        except Exception as error:  # whatever a store raises is what is wrong with it
            broken[check.name] = _reason(error)
    return broken


async def acheck_store(make: MakeAsyncStore) -> dict[str, str]:
    """Run every check with the async methods of a store. As for `check_store`, with an async context manager."""
    broken: dict[str, str] = {}
    for check in STORE_CHECKS:
        try:
            await check.arun(make)
        except Exception as error:
            broken[check.name] = _reason(error)
    return broken


def _reason(error: Any) -> str:
    return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
