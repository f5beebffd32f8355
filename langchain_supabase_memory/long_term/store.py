"""`SupabaseStore`, a LangGraph `BaseStore` for long-term memory on Supabase, over a memory's transport."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    NOT_PROVIDED,
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
)

from langchain_supabase_memory import fork
from langchain_supabase_memory.adapters.embedder import EmbeddingModel, embedding, require_embedder
from langchain_supabase_memory.adapters.telemetry.logs import error_fields
from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.errors import ConfigurationError, SupabaseMemoryError
from langchain_supabase_memory.long_term import items
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.unpicklable import Unpicklable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langgraph.store.base import NamespacePath

    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory

T = TypeVar("T")

LONGEST_MODEL: Final = 200
"""The maximum bytes of an embedder's name, because it is part of an index entry."""

_EXAMPLES: Final = {
    "index": 'Pass index={"embed": "openai:text-embedding-3-small", "fields": ["text"]}, for example.',
    "ttl": 'Pass ttl={"default_ttl": 60}, in minutes, for example.',
}

_logger = logging.getLogger(__name__)


class SupabaseStore(Unpicklable, BaseStore):
    """Long-term memory for agents: items by namespace and key, searched by field, by meaning or by keyword.

    It has the features of LangGraph's `InMemoryStore` and `PostgresStore`, and also works over the Data API. Every row
    belongs to one user: `memory.user_id`, or the subject of the memory's access token. No operation can select another
    user. A batch of operations is one round trip, and its reads see the state before its writes. The memory's redaction
    rules also apply to values.

    Namespaces and keys may contain any character except NUL. Without an embedder, a search ranks by keyword. With a
    query, matches come first and all other items after them, so a search never returns fewer items than there are.

    In a web server, create one per request over `memory.for_token(token)`, which is free. If one graph with one store
    serves all users, use `memory.for_token(function)`: the function returns the token of the current request.

    Args:
        memory: The memory whose connections, user and embedder are used.
        index: As for LangGraph's stores: `fields` are the paths to embed (`["$"]`, the whole value, by default),
            `embed` is an embedder other than the memory's, or its name, such as `"openai:text-embedding-3-small"`;
            `dims` is checked if it is set.
        ttl: As for LangGraph's stores: `default_ttl` in minutes, `refresh_on_read`, `sweep_interval_minutes`. Expired
            items are never returned.

    Raises:
        InvalidInputError: The user id is not a usable string.
        ConfigurationError: The index or its embedder is not valid.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: SupabaseMemory,
        *,
        index: IndexConfig | Mapping[str, Any] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        self._memory = require_memory(memory)
        for name, given in (("index", index), ("ttl", ttl)):
            if given is not None and not isinstance(given, Mapping):
                raise wrong_type(name, "a dictionary", given, _EXAMPLES[name])
        self.ttl_config = ttl
        self._user_id = memory.user_id
        self._model = _model(memory, index)
        self._index = _index(self._model, index)
        fork.run_in_each_process(self._begin)

    # Overridden because LangGraph's versions refuse some labels, such as an email address.

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Perform operations in one round trip; reads see the state before its writes. See `items.perform`."""
        return self._run(items.perform(self._owner(), ops, self._index, self._memory._services.redactor))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The async twin of `batch`."""
        return await self._arun(items.perform(self._owner(), ops, self._index, self._memory._services.redactor))

    def get(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """Return an item; `None` if it does not exist or has expired."""
        return self.batch([self._get(namespace, key, refresh_ttl)])[0]  # type: ignore[return-value]

    async def aget(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """The async twin of `get`."""
        return (await self.abatch([self._get(namespace, key, refresh_ttl)]))[0]  # type: ignore[return-value]

    def search(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Search items under a prefix and return at most 1,000; read more with `offset`.

        Args:
            namespace_prefix: The namespaces to search in; `()` is all of them.
            query: The query text. The nearest items come first.
            filter: Conditions on fields of the value, as for LangGraph's stores: `{"kind": "fact"}`,
                `{"score": {"$gte": 4}}`. A missing field is `None`.
            limit: The maximum number of items to return.
            offset: How many items to skip.
            refresh_ttl: Whether to extend the life of the returned items; by default as in the store's `ttl`.

        Returns:
            The items. Those that match neither by meaning nor by keyword come last, with the score `None`; without a
            query, the newest come first.

        Raises:
            InvalidInputError: A label, the filter or a number is not valid.
            MigrationConflictError: The searched items were embedded by another model; call `reindex`.
        """
        op = SearchOp(namespace_prefix, filter, limit, offset, query, self._refresh(refresh_ttl))
        return self.batch([op])[0]  # type: ignore[return-value]

    async def asearch(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """The async twin of `search`."""
        op = SearchOp(namespace_prefix, filter, limit, offset, query, self._refresh(refresh_ttl))
        return (await self.abatch([op]))[0]  # type: ignore[return-value]

    def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Store an item, or replace the whole item.

        Args:
            namespace: At least one label.
            key: The item's name in the namespace.
            value: A dictionary; see `messages.sanitizer` for values that change when stored.
            index: The paths of the value to embed: `None` for the store's own, `False` for none.
            ttl: The time to live, in minutes; `None` means forever; by default as in the store's `ttl`.

        Raises:
            InvalidInputError: An argument cannot be stored.
        """
        self.batch([PutOp(namespace, str(key), value, index, self._ttl(ttl))])

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """The async twin of `put`."""
        await self.abatch([PutOp(namespace, str(key), value, index, self._ttl(ttl))])

    def delete(self, namespace: tuple[str, ...], key: str) -> None:
        """Delete an item, if it exists."""
        self.batch([PutOp(namespace, str(key), None)])

    async def adelete(self, namespace: tuple[str, ...], key: str) -> None:
        """The async twin of `delete`."""
        await self.abatch([PutOp(namespace, str(key), None)])

    def list_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """List namespaces with items, sorted, at most 1,000; read more with `offset`. `"*"` matches any label."""
        return self.batch([_listing(prefix, suffix, max_depth, limit, offset)])[0]  # type: ignore[return-value]

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """The async twin of `list_namespaces`."""
        return (await self.abatch([_listing(prefix, suffix, max_depth, limit, offset)]))[0]  # type: ignore[return-value]

    # Maintenance.

    def reindex(self) -> int:
        """Embed every item that has no vector of the current model, after the embedder was changed or had failed.

        With a server memory without a user, this covers all users. See `items.reindex`.

        Raises:
            ConfigurationError: There is no embedder.
        """
        return self._run(items.reindex(self._user_id, self._indexed()))

    async def areindex(self) -> int:
        """The async twin of `reindex`."""
        return await self._arun(items.reindex(self._user_id, self._indexed()))

    def _begin(self) -> None:
        self._sweeper: Future[None] | None = None  # a child process does not inherit its parent's thread

    def sweep(self) -> int:
        """Delete expired items and return their number. With a server memory without a user, this covers all users."""
        return self._run(items.sweep(self._user_id))

    async def asweep(self) -> int:
        """The async twin of `sweep`."""
        return await self._arun(items.sweep(self._user_id))

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep now and periodically, in a thread that does not keep the process alive.

        Args:
            sweep_interval_minutes: The minutes between two sweeps; by default as in the store's `ttl`, or 5.

        Returns:
            A future; cancel it, or call `stop_ttl_sweeper`, to stop the sweeper.
        """
        if self._sweeper is None or self._sweeper.done():
            minutes = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes") or 5
            ended = threading.Event()
            self._sweeper = Future()
            self._sweeper.add_done_callback(lambda _: ended.set())
            threading.Thread(
                target=_sweep, args=(self, minutes * 60, ended), daemon=True, name="supabase-memory-sweeper"
            ).start()
        return self._sweeper

    def stop_ttl_sweeper(self) -> None:
        """Stop the sweeper, if it runs; a sweep in progress finishes."""
        if self._sweeper is not None:
            self._sweeper.cancel()

    def __repr__(self) -> str:
        """Show the memory's address, without content."""
        return f"SupabaseStore({self._memory._services.transport!r})"

    def _owner(self) -> str | None:
        return self._memory._services.owner(self._user_id)

    def _indexed(self) -> items.Index:
        require_embedder(self._model)
        assert self._index is not None
        return self._index

    def _get(self, namespace: tuple[str, ...], key: str, refresh_ttl: bool | None) -> GetOp:
        return GetOp(namespace, str(key), self._refresh(refresh_ttl))

    def _refresh(self, refresh_ttl: bool | None) -> bool:
        return (self.ttl_config or {}).get("refresh_on_read", True) if refresh_ttl is None else refresh_ttl

    def _ttl(self, ttl: float | NotProvided | None) -> float | None:
        return (self.ttl_config or {}).get("default_ttl") if isinstance(ttl, NotProvided) else ttl

    def _run(self, flow: Flow[T]) -> T:
        return self._memory._services.run(embedding(flow, self._model))

    async def _arun(self, flow: Flow[T]) -> T:
        """The async twin of `_run`."""
        return await self._memory._services.arun(embedding(flow, self._model))


def _listing(
    prefix: NamespacePath | None, suffix: NamespacePath | None, max_depth: int | None, limit: int, offset: int
) -> ListNamespacesOp:
    conditions = []
    if prefix:
        conditions.append(MatchCondition("prefix", prefix))
    if suffix:
        conditions.append(MatchCondition("suffix", suffix))
    return ListNamespacesOp(tuple(conditions), max_depth, limit, offset)


def _model(memory: SupabaseMemory, index: IndexConfig | Mapping[str, Any] | None) -> EmbeddingModel | None:
    """Return the index's embedder, or the memory's. Creating one makes no network call."""
    given: Any = (index or {}).get("embed")
    if given is None:
        return memory._services.embeddings
    if isinstance(given, EmbeddingModel):
        return given
    if isinstance(given, (Embeddings, type)) or not callable(given):
        return EmbeddingModel(given)
    # A function has no model name, so its own name distinguishes its vectors.
    name = getattr(given, "__qualname__", type(given).__qualname__)
    return EmbeddingModel(ensure_embeddings(given), name=f"{getattr(given, '__module__', '')}.{name}")


def _index(model: EmbeddingModel | None, index: IndexConfig | Mapping[str, Any] | None) -> items.Index | None:
    given = index or {}
    fields = given.get("fields") or ["$"]
    if isinstance(fields, str) or not all(isinstance(field, str) for field in fields):
        raise ConfigurationError("The index's fields must be a list of paths.", hint='Pass {"fields": ["content"]}.')
    if model is None:
        if given:
            raise ConfigurationError(
                "The store's index has no embedder.", hint='Pass index={"embed": ...}, or embeddings=... to the memory.'
            )
        return None
    if len(model.name.encode()) > LONGEST_MODEL:
        raise ConfigurationError(
            f"The embedder's name has more than {LONGEST_MODEL} bytes.",
            hint="Pass EmbeddingModel(embeddings, name=...).",
        )
    return items.Index(model.name, tuple(fields), given.get("dims"))


def _sweep(store: SupabaseStore, seconds: float, ended: threading.Event) -> None:
    while not ended.is_set():
        try:
            swept = store.sweep()
            _logger.info("%d expired items of the store were deleted", swept, extra={"memory_items": swept})
        except SupabaseMemoryError as error:
            what = "Sweeping the store failed"
            level = store._memory._services.causes.level(what, error, logging.ERROR, repeats=True)
            _logger.log(level, "%s: %s", what, error, extra=error_fields(error))
        ended.wait(seconds)
