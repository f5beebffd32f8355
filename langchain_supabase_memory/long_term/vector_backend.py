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
"""A function from a user's id to what the vector store takes as `filter=`."""

PAGE: Final = 100
"""The most memories that are written in one call of the vector store."""

DEEPEST: Final = 10_000
"""The most documents that one search asks for, which is also the most that Pinecone gives."""

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
        # LangChain's own default for a store without async methods waits for its thread even when it is cancelled.
        names = {f"a{self.method}", *(["aadd_texts"] if self.method == "add_documents" else [])}
        if all(getattr(type(self.store), name) is getattr(VectorStore, name) for name in names):
            return await in_thread(partial(self.perform, None))
        return await getattr(self.store, f"a{self.method}")(*self.arguments, **self.by_keyword)


class VectorStoreLongTerm(SingleUserLongTerm):
    """Long-term memory in a LangChain `VectorStore`: Pinecone, PGVector, Chroma, Qdrant, in memory.

    Each memory is a document whose metadata carry the `user_id`, and every search filters by it. Since stores differ in
    how they filter, and one that does not know an argument may ignore it, whose a document is is looked at once more
    when it comes back; as long as others' documents are among those that came, more are asked for. The ids in the store
    are made from the user's, so nobody deletes or overwrites what is another's.

    Args:
        vector_store: The vector store, with its embedder.
        user_id: Whose memories. Take it from whom you authenticated, never from what was said.
        filter: Makes what the store takes as `filter=` from the user's id. By default `{"user_id": user_id}`, which
            Pinecone, PGVector, Chroma, FAISS and others take, and a function for `InMemoryVectorStore`. For Qdrant pass
            one that makes its `Filter`, on the key `metadata.user_id`.
        name: What tells this long-term memory from another one of the same user; made from the class by default.

    Raises:
        InvalidInputError: The user id is not a usable string.
        ConfigurationError: It is no vector store.
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
        """The store's class and the name; nothing of what is stored."""
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
            raise InvalidInputError("The question is blank.", hint="A vector store finds by meaning: pass some words.")
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
                    "Only %d documents were looked at: the vector store ignores the filter.",
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
        """Which of these documents are there and this user's; `None` if the store cannot say."""
        try:
            documents: Sequence[Document] = yield _StoreMethod(self._store, "get_by_ids", (places,))
        except NotImplementedError:
            return None
        return [str(document.id) for document in documents if document.metadata.get("user_id") == self._user_id]

    def _metadata(self, memory: Memory) -> dict[str, Any]:
        """Flat, without nulls: some stores hold nothing else."""
        value = {**memory.to_json(), "user_id": self._user_id, "memory_id": memory.id}
        del value["text"]
        value["message_ids"] = json.dumps(value["message_ids"])
        value["metadata"] = json.dumps(value["metadata"])
        return {key: each for key, each in value.items() if each is not None}

    def _memory(self, document: Document) -> Memory | None:
        """A document as a memory; `None` if it is another's, or none of ours."""
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
