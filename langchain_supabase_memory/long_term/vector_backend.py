"""Long-term memory over any LangChain vector store: `VectorStoreLongTerm`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_supabase_memory.deadline import in_thread
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError
from langchain_supabase_memory.long_term.base import SingleUserLongTerm
from langchain_supabase_memory.long_term.memories import (
    Memory,
    Remembered,
    check_ids,
    check_question,
    derived_id,
    distinct,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.effects import Effects

Filter: TypeAlias = Callable[[str], Any]
"""A function from a user's id to the vector store's `filter=` argument."""

PAGE: Final = 100
"""The maximum number of memories written per call of the vector store."""

DEEPEST: Final = 10_000
"""The maximum number of documents per search, which is also Pinecone's maximum."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _StoreMethod:
    """One call of the vector store: a method's name, and its arguments."""

    store: VectorStore
    method: str
    arguments: tuple[Any, ...] = field(repr=False)
    by_keyword: dict[str, Any] = field(default_factory=dict, repr=False)
    part: ClassVar[None] = None

    def perform(self, _: object) -> Any:
        return getattr(self.store, self.method)(*self.arguments, **self.by_keyword)

    async def aperform(self, _: object) -> Any:
        # LangChain's default for a store without async methods waits for its thread even after cancellation.
        names = {f"a{self.method}", *(["aadd_texts"] if self.method == "add_documents" else [])}
        if all(getattr(type(self.store), name) is getattr(VectorStore, name) for name in names):
            return await in_thread(partial(self.perform, None))
        return await getattr(self.store, f"a{self.method}")(*self.arguments, **self.by_keyword)


class VectorStoreLongTerm(SingleUserLongTerm):
    """Long-term memory in a LangChain `VectorStore`, such as Pinecone, PGVector, Chroma, Qdrant or in-memory.

    Each memory is a document with the `user_id` in its metadata, and every search filters by it. Stores filter in
    different ways, and some ignore unknown arguments, so the owner of each returned document is checked again. If a
    result contains other users' documents, more are requested. The ids in the store are derived from the user's id, so
    no user can delete or overwrite another's memories.

    Args:
        vector_store: The vector store, with its embedder.
        user_id: The user who owns the memories. Take it from your authentication, never from a message.
        filter: Creates the store's `filter=` argument from the user's id. By default `{"user_id": user_id}`, which
            Pinecone, PGVector, Chroma, FAISS and others accept, and a function for `InMemoryVectorStore`. For Qdrant,
            pass a function that creates its `Filter` on the key `metadata.user_id`.
        name: A name that distinguishes this long-term memory from the user's others; from the class by default.

    Raises:
        InvalidInputError: The user id is not a usable string.
        ConfigurationError: `vector_store` is not a vector store.
    """

    def __init__(
        self,
        vector_store: VectorStore,
        user_id: str,
        *,
        filter: Filter | None = None,  # noqa: A002
        name: str | None = None,
    ) -> None:
        super().__init__(user_id, name or f"vectors:{type(vector_store).__name__}")
        if not isinstance(vector_store, VectorStore):
            raise ConfigurationError(
                f"A vector store cannot be a {type(vector_store).__name__}.",
                hint="Pass a LangChain VectorStore; for a LangGraph store use StoreLongTerm.",
            )
        self._store = vector_store
        self._filter = filter or (_by_function if isinstance(vector_store, InMemoryVectorStore) else _by_field)

    def __repr__(self) -> str:
        """Show the store's class and the name, without content."""
        return f"VectorStoreLongTerm({type(self._store).__name__}, name={self._name!r})"

    def _remembering(self, memories: dict[str, Memory]) -> Effects[Remembered]:
        given = iter(memories.items())
        done = Remembered()
        while page := dict(islice(given, PAGE)):
            stored = {derived_id(self._user_id, id_): id_ for id_ in page}
            there = (yield from self._existing(list(stored))) or []
            known = {stored[each] for each in there}
            documents = [
                Document(id=place, page_content=page[id_].text, metadata=self._metadata(page[id_]))
                for place, id_ in stored.items()
                if id_ not in known
            ]
            if documents:
                yield _StoreMethod(
                    self._store, "add_documents", (documents,), {"ids": [str(document.id) for document in documents]}
                )
            done.stored.extend(id_ for id_ in page if id_ not in known)
            done.known.extend(id_ for id_ in page if id_ in known)
        return done

    def _recalling(self, query: str, limit: int, kinds: Collection[str] | None) -> Effects[list[Memory]]:
        question, wanted = check_question(query, limit, kinds)
        if not question.strip():
            raise InvalidInputError("The query is blank.", hint="A vector store searches by meaning: pass some text.")
        asked = limit
        while True:
            named = {"k": asked, "filter": self._filter(self._user_id)}
            documents: Sequence[Document] = yield _StoreMethod(self._store, "similarity_search", (question,), named)
            mine = [memory for memory in map(self._memory, documents) if memory is not None]
            found = distinct(memory for memory in mine if wanted is None or memory.kind in wanted)
            if len(found) >= limit or len(documents) < asked:
                return found[:limit]
            if asked >= DEEPEST:
                _logger.warning(
                    "Only %d documents were searched: the vector store ignores the filter.",
                    asked,
                    extra={"memory_documents": asked},
                )
                return found
            asked = min(asked * 4, DEEPEST)

    def _forgetting(self, ids: Iterable[str]) -> Effects[None]:
        given = iter(check_ids(ids))
        while page := list(islice(given, PAGE)):
            places = [derived_id(self._user_id, id_) for id_ in page]
            there = yield from self._existing(places)
            if there is None or there:
                yield _StoreMethod(self._store, "delete", (places if there is None else there,))

    def _existing(self, places: list[str]) -> Effects[list[str] | None]:
        """Return which of these documents exist and belong to this user; `None` if the store cannot look up ids."""
        try:
            documents: Sequence[Document] = yield _StoreMethod(self._store, "get_by_ids", (places,))
        except NotImplementedError:
            return None
        return [str(document.id) for document in documents if document.metadata.get("user_id") == self._user_id]

    def _metadata(self, memory: Memory) -> dict[str, Any]:
        """Return flat metadata without nulls, because some stores accept nothing else."""
        value = {**memory.to_json(), "user_id": self._user_id, "memory_id": memory.id}
        del value["text"]
        value["message_ids"] = json.dumps(value["message_ids"])
        value["metadata"] = json.dumps(value["metadata"])
        return {key: each for key, each in value.items() if each is not None}

    def _memory(self, document: Document) -> Memory | None:
        """Convert a document to a memory; `None` if it is another user's, or not a memory."""
        stored = document.metadata
        if stored.get("user_id") != self._user_id:
            return None
        try:
            value = {
                **stored,
                "text": document.page_content,
                "message_ids": json.loads(stored.get("message_ids", "[]")),
                "metadata": json.loads(stored.get("metadata", "{}")),
            }
            return Memory.from_json(value, stored["memory_id"])
        except (KeyError, TypeError, ValueError):
            return None


def _by_field(user_id: str) -> dict[str, str]:
    return {"user_id": user_id}


def _by_function(user_id: str) -> Callable[[Document], bool]:
    return lambda document: document.metadata.get("user_id") == user_id
