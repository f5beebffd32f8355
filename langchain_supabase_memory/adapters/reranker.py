"""The reranker: any LangChain document compressor or function, with a timeout and checked results."""

from __future__ import annotations

import hashlib
import logging
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_supabase_memory.adapters.model_timeout import ModelTimeout, aresolve_awaitable, resolve_awaitable
from langchain_supabase_memory.checks import number, wrong_type
from langchain_supabase_memory.errors import RerankingError, code_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from langchain_core.documents import BaseDocumentCompressor, Document

    from langchain_supabase_memory.effects import RankingFunction, Rerank

Reranker: TypeAlias = (
    "BaseDocumentCompressor | Callable[[str, Sequence[Document]], Iterable[Any] | Awaitable[Iterable[Any]]]"
)
"""Puts candidates into a better order.

A function takes the query and the documents, and returns the documents in its order, or a number for each, the higher
the better; it may be a coroutine function.
"""

MAX_CANDIDATES: Final = 200
"""The maximum number of candidates, the same as the database's own limit."""

REMEMBERED: Final = 16
"""The number of orders that are cached, because an agent that uses tools repeats its queries."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Defects:
    """Counts what is wrong with one order."""

    missing: int = 0
    foreign: int = 0
    doubled: int = 0
    unscored: int = 0

    def describe(self) -> list[str]:
        """Describe the defects that occurred, in words."""
        words = {
            "missing": "did not come back (look at its top_n)",
            "foreign": "that came back were none of them",
            "doubled": "came back twice",
            "unscored": "had a score that is no number",
        }
        return [f"{getattr(self, name)} {text}" for name, text in words.items() if getattr(self, name)]


class RerankModel:
    """Calls a reranker.

    Args:
        reranker: Any LangChain `BaseDocumentCompressor`, such as `CrossEncoderReranker` or `CohereRerank`; or a
            function of the query and the documents, which returns the documents in its order or a number for each.
        candidates: How many of the first stage's best candidates it receives, 2 to 200.
        seconds: The timeout in seconds; after it, the first stage's order stays. After such a timeout the reranker is
            not called for thirty seconds.

    Raises:
        ConfigurationError: It is not a reranker, or a number is out of its range.
    """

    def __init__(self, reranker: Reranker, *, candidates: int = 64, seconds: float = 2.0) -> None:
        compress = getattr(reranker, "compress_documents", None)
        if isinstance(reranker, type) or not (callable(compress) or callable(reranker)):
            hint = "Pass a LangChain document compressor, or a function of a question and documents."
            raise wrong_type("reranker", "a document compressor or a function", reranker, hint)
        number("seconds", seconds, optional=False, example=2)
        number(
            "candidates",
            candidates,
            minimum=2,
            above=False,
            below=MAX_CANDIDATES + 1,
            integer=True,
            optional=False,
            example=64,
        )
        self.candidates = candidates
        self._reranker: Any = reranker
        self._is_compressor = callable(compress)
        self._patience = ModelTimeout(seconds)
        self._orders: dict[bytes, list[RankingFunction]] = {}
        self._said: set[str] = set()

    def answer(self, step: Rerank) -> list[list[RankingFunction]]:
        """Return for each query the candidates in their new order, by index; candidates without a rank are left out.

        Raises:
            RerankingError: The reranker failed, took too long, or returned something that is not an order.
        """
        known = self._cached(step)
        if known is not None:
            return known
        try:
            # All queries share one deadline.
            answers = self._patience.call(
                lambda: [resolve_awaitable(self._call(query, step)) for query in step.queries]
            )
        except Exception as error:  # whatever a reranker, a provider or a network raises
            raise _failed(error) from None
        return self._store(step, answers)

    async def aanswer(self, step: Rerank) -> list[list[RankingFunction]]:
        """The async twin of `answer`, with the reranker's async method."""
        known = self._cached(step)
        if known is not None:
            return known
        try:
            answers = await self._patience.wait(lambda: self._aall(step))
        except Exception as error:
            raise _failed(error) from None
        return self._store(step, answers)

    def __repr__(self) -> str:
        """Return a description, without keys."""
        return f"RerankModel({type(self._reranker).__name__}, candidates={self.candidates})"

    def _call(self, query: str, step: Rerank, method: str | None = None) -> Callable[[], Any]:
        """Return the call for one query, with its own documents, because a reranker may modify them."""
        documents = [each.model_copy(update={"metadata": dict(each.metadata)}) for each in step.documents]
        if self._is_compressor:
            return partial(getattr(self._reranker, method or "compress_documents"), documents, query)
        return partial(self._reranker, query, documents)

    async def _aall(self, step: Rerank) -> list[Any]:
        from langchain_core.documents import BaseDocumentCompressor

        # LangChain's default for a reranker without async methods waits for its thread even when it is canceled.
        own = getattr(type(self._reranker), "acompress_documents", None)
        is_async = self._is_compressor and own not in (None, BaseDocumentCompressor.acompress_documents)
        calls = [self._call(query, step, "acompress_documents" if is_async else None) for query in step.queries]
        return [await (call() if is_async else aresolve_awaitable(call)) for call in calls]

    def _cached(self, step: Rerank) -> list[list[RankingFunction]] | None:
        found = [self._orders.get(each) for each in _digests(step)]
        return None if None in found else [each for each in found if each is not None]

    def _store(self, step: Rerank, answers: Sequence[Any]) -> list[list[RankingFunction]]:
        made = [self._usable(answer, step) for answer in answers]
        # One assignment, so that threads need no lock.
        self._orders = dict([*self._orders.items(), *zip(_digests(step), made, strict=True)][-REMEMBERED:])
        return made

    def _usable(self, answer: Any, step: Rerank) -> list[RankingFunction]:
        """Return the usable part of an answer.

        Raises:
            RerankingError: Nothing is usable.
        """
        try:
            given = list(answer)
        except TypeError:
            raise RerankingError("The reranker returned something that is not an order.") from None
        order, defects = _of_numbers(given, step) if _are_numbers(given) else _of_documents(given, step)
        fresh = [text for name, text in zip(_kinds(defects), defects.describe(), strict=True) if name not in self._said]
        if fresh:
            self._said.update(_kinds(defects))
            fields = {"memory_part": "reranker"}
            text = "Of %d candidates of the reranker, %s; the first stage's order stands for what is not placed."
            _logger.warning(text, len(step.documents), ", ".join(fresh), extra=fields)
        return order


def reranker(value: Reranker | RerankModel | None) -> RerankModel | None:
    """Return the model for a reranker, or `None`.

    Raises:
        ConfigurationError: The value is not a reranker.
    """
    return value if value is None or isinstance(value, RerankModel) else RerankModel(value)


def _are_numbers(values: Sequence[Any]) -> bool:
    return bool(values) and all(_number(each) is not None for each in values)


def _number(value: Any) -> float | None:
    """Convert a number from any library; `None` if the value is not a number."""
    if isinstance(value, (str, bytes, bool)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _of_numbers(values: Sequence[Any], step: Rerank) -> tuple[list[RankingFunction], _Defects]:
    if len(values) != len(step.documents):
        raise RerankingError(f"The reranker gave {len(values)} numbers for {len(step.documents)} candidates.")
    scores = [float(each) for each in values]
    known = [place for place, score in enumerate(scores) if math.isfinite(score)]
    known.sort(key=lambda place: -scores[place])
    return [(place, scores[place]) for place in known], _Defects(unscored=len(scores) - len(known))


def _of_documents(values: Sequence[Any], step: Rerank) -> tuple[list[RankingFunction], _Defects]:
    places = {_id(document): place for place, document in enumerate(step.documents)}
    order: dict[int, float | None] = {}
    defects = _Defects()
    for document in values:
        place = places.get(_id(document))
        metadata = getattr(document, "metadata", None)
        said = metadata.get("relevance_score") if isinstance(metadata, dict) else None
        score = None if said is None else _number(said)
        if place is None:
            defects = replace(defects, foreign=defects.foreign + 1)
        elif place in order:
            defects = replace(defects, doubled=defects.doubled + 1)
        elif said is not None and (score is None or not math.isfinite(score)):
            defects = replace(defects, unscored=defects.unscored + 1)
        else:
            order[place] = score
    missing = len(places) - len(order) - defects.unscored
    return list(order.items()), replace(defects, missing=max(missing, 0))


def _id(document: Any) -> str | None:
    """Return the id of a document's candidate, even if only its metadata was copied."""
    metadata = getattr(document, "metadata", None)
    named = metadata.get("chunk_id") if isinstance(metadata, dict) else None
    found = named if named is not None else getattr(document, "id", None)
    return found if isinstance(found, str) else None


def _kinds(defects: _Defects) -> list[str]:
    return [name for name in _Defects.__dataclass_fields__ if getattr(defects, name)]


def _digests(step: Rerank) -> list[bytes]:
    """Return the cache keys of the orders, so that no text is stored."""
    shown = hashlib.sha256()
    for document in step.documents:
        shown.update(f"{document.id}\n{len(document.page_content)}\n{document.page_content}".encode("utf-8", "replace"))
    return [hashlib.sha256(shown.digest() + query.encode("utf-8", "replace")).digest() for query in step.queries]


def _failed(error: Exception) -> RerankingError:
    # The message of another package's error may contain content; its class does not.
    return RerankingError(f"The reranker failed ({type(error).__name__}).", code=code_of(error))
