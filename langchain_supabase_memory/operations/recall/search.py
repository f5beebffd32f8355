"""The recall flows: embed the questions, call the database once, and rerank if there is a reranker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.effects import Flow, call, embed, expand, offload, rerank
from langchain_supabase_memory.errors import EmbeddingError, ExpansionError, RerankingError
from langchain_supabase_memory.language import query_hints
from langchain_supabase_memory.operations.arguments import scope_ids
from langchain_supabase_memory.operations.recall import ranking
from langchain_supabase_memory.operations.recall.chunk_rows import chunk
from langchain_supabase_memory.operations.recall.query import check_questions
from langchain_supabase_memory.values import NewerFact, Recall, Repeats, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from langchain_supabase_memory.effects import RankingFunction
    from langchain_supabase_memory.operations.recall.query import Filters, RecallQuery
    from langchain_supabase_memory.values import Chunk

_OF_A_QUESTION: Final = ("query", "is_question", "vectors", "names", "dates", "wants", "order")
"""The fields of a document that are about one question."""

_COVERED: Final = 0.2
"""A passage fits that has at least this share of a question's words, by their rarity."""

_RELATED: Final = {"all-MiniLM-L6-v2": 0.35, "multilingual-e5-small-q4": 0.8}
"""A passage fits of at least this cosine, where that was measured. Of another embedder any passage may fit."""

_HINTS: Final = frozenset({"speaker", "date"})
"""The parts of a score that a question asks for by name."""


@dataclass(frozen=True)
class RecallCapabilities:
    """The models that a recall can use.

    Attributes:
        model: The embedder's name; `None` without one.
        candidates: How many of the best chunks the reranker orders; 0 without a reranker.
        expands: Whether a query expander adds further questions.
    """

    model: str | None = None
    candidates: int = 0
    expands: bool = False


NO_CAPABILITIES: Final = RecallCapabilities()


def recall_chunks(
    scope: Scope, questions: Sequence[RecallQuery], capabilities: RecallCapabilities = NO_CAPABILITIES
) -> Flow[Recall]:
    """Recall the chunks that fit some questions, the best first, in one round trip besides the model calls.

    Args:
        scope: The conversations to search.
        questions: The questions; they have the same filters.
        capabilities: The models that can be used.

    Returns:
        The chunks. If the embedder fails, only keyword search was used; if the reranker fails, the first-stage
        order stays. The result says so.

    Raises:
        MigrationConflictError: The stored vectors come from another model.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    asked = yield from prepare_recall(questions, capabilities)
    answer = yield from call("memory_recall", {"p_ask": asked.document, **scope_ids(scope)}, "recall")
    return (yield from asked.read_answer(answer))


def prepare_recall(questions: Sequence[RecallQuery], capabilities: RecallCapabilities) -> Flow[PreparedRecall]:
    """Prepare questions for the SQL functions, including those that the query expander adds.

    Args:
        questions: The questions.
        capabilities: The models that can be used.
    """
    further = (yield from _further(questions)) if capabilities.expands else []
    everything = [*questions, *further]
    named, variants = [], []
    for question in everything:
        found = yield from offload(question.find_hints, len(question.text_sent), warm_caches=query_hints.KEPT)
        named.append(found)
        variants.append(question.variants(found) if question.text_sent.strip() else [])
    failed = None
    vectors: list[list[float]] = []
    texts = [text for each in variants for _, text in each]
    if capabilities.model is not None and texts:
        try:
            vectors = yield from embed(texts, is_query=True)
        except EmbeddingError as error:
            failed = error.message
    given = iter(vectors)
    documents = []
    for question, found, each in zip(everything, named, variants, strict=True):
        # Without vectors the iterator is empty.
        pairs = [(names, vector) for (names, _), vector in zip(each, given, strict=False)]
        documents.append(question.document(found, pairs, capabilities.model))
    return PreparedRecall(questions, further, capabilities, _merge_documents(documents, capabilities), failed)


@dataclass(frozen=True)
class PreparedRecall:
    """Questions that are prepared for the database.

    Attributes:
        questions: The questions.
        further: The questions that the query expander added.
        capabilities: The models that can be used.
        document: The argument of the SQL functions.
        failed: Why there are no vectors although there is an embedder.
    """

    questions: Sequence[RecallQuery]
    further: Sequence[RecallQuery]
    capabilities: RecallCapabilities
    document: Mapping[str, Any]
    failed: str | None

    def without_vectors(self, failed: str) -> PreparedRecall:
        """Return the same questions without vectors.

        Args:
            failed: The reason.
        """
        document = {**self.document, "vectors": []}
        if "more" in document:
            document["more"] = [{**each, "vectors": []} for each in document["more"]]
        return replace(self, document=document, failed=failed)

    def read_answer(self, answer: Mapping[str, Any]) -> Flow[Recall]:
        """Return the SQL functions' answer as a value, reranked if there is a reranker."""
        answers = [answer, *(answer.get("more") or ())]
        rankings = [_chunks(each) for each in answers]
        failed = None
        if "pool" in self.document:
            # Questions from the query expander get every other position.
            chunks = ranking.interleave(rankings, [1] * len(self.questions) + [2] * len(self.further))
            chunks, failed = yield from self._reranked(chunks)
            filters = self.questions[0].filters
            chunks = ranking.fit_chunks(chunks, self.document["limit"], filters.characters)
        else:
            (chunks,) = rankings
        return Recall(
            chunks=chunks,
            searched=answer["searched"],
            approximate=any(each["approximate"] for each in answers),
            by_meaning=any(each["by_meaning"] for each in answers),
            failed=self.failed,
            rerank_failed=failed,
            queries=tuple(each.text_sent for each in (*self.questions, *self.further)),
            fits=any(
                _fits(each, found, self.capabilities.model) for each, found in zip(answers, rankings, strict=True)
            ),
        )

    def _reranked(self, chunks: list[Chunk]) -> Flow[tuple[list[Chunk], str | None]]:
        """Return the reranked candidates followed by the rest, and the reason if reranking failed."""
        pool, rest = chunks[: self.capabilities.candidates], chunks[self.capabilities.candidates :]
        queries = [each.text_sent for each in self.questions if each.text_sent.strip()]
        if len(pool) < 2 or not queries:
            return chunks, None
        shown = yield from offload(partial(ranking.documents, pool), sum(len(each.content) for each in pool))
        try:
            orders: list[list[RankingFunction]] = yield from rerank(queries, shown)
        except RerankingError as error:
            return chunks, error.message
        rankings = [ranking.reorder(pool, order) for order in orders]
        return [*ranking.interleave(rankings, [1] * len(rankings)), *rest], None


def _further(questions: Sequence[RecallQuery]) -> Flow[list[RecallQuery]]:
    """Expand the questions; return each new question once."""
    known = {each.text_sent.strip().casefold() for each in questions}
    made: list[RecallQuery] = []
    for question in questions:
        if not question.text_sent.strip():
            continue
        try:
            texts = yield from expand(question.text_sent)
        except ExpansionError:
            break  # the failure is recorded already, and would repeat
        for text in texts:
            if text.strip().casefold() not in known and len(made) < _MAX_FURTHER:
                known.add(text.strip().casefold())
                made.append(replace(question, text=text))
    return made


_MAX_FURTHER: Final = 7


def _merge_documents(documents: Sequence[Mapping[str, Any]], capabilities: RecallCapabilities) -> dict[str, Any]:
    """Merge the documents of several questions into one."""
    first, *others = documents
    asked = dict(first)
    if others:
        asked["more"] = [{name: each[name] for name in _OF_A_QUESTION} for each in others]
    if others or (capabilities.candidates and first["query"].strip()):
        # All chunks come with their neighbors, because the best are not known yet.
        asked["pool"] = max(capabilities.candidates, 1)
    return asked


def _fits(answer: Mapping[str, Any], chunks: Sequence[Chunk], model: str | None) -> bool:
    """Return whether something that was found for a question fits it.

    Args:
        answer: The answer of the SQL function.
        chunks: What it found.
        model: The embedder's name.
    """
    if answer["covered"] is None or answer["covered"] >= _COVERED:
        return True
    related = _related_from(model, -1)
    return any(
        (each.similarity is not None and each.similarity >= related) or not _HINTS.isdisjoint(each.score_parts)
        for each in chunks
    )


def is_related(chunk: Chunk, model: str | None) -> bool:
    """Return whether a chunk has the meaning of a question; false for an embedder for which that was not measured.

    Args:
        chunk: A chunk that recall found for the question.
        model: The embedder's name.
    """
    return chunk.similarity is not None and chunk.similarity >= _related_from(model, 2)


def _related_from(model: str | None, default: float) -> float:
    """Return the cosine from which a passage fits; the default for an embedder for which it was not measured."""
    return _RELATED.get((model or "").rpartition("/")[2], default)


def _chunks(answer: Mapping[str, Any]) -> list[Chunk]:
    """Return the chunks of an answer, each with what is known of its words."""
    repeats = {
        row["chunk"]: Repeats(
            row["count"],
            datetime.fromisoformat(row["first"]),
            datetime.fromisoformat(row["last"]),
            row["sequence"],
        )
        for row in answer["repeats"]
    }
    newer: dict[str, list[NewerFact]] = {}
    for row in answer["newer"]:
        fact = NewerFact(row["old"], datetime.fromisoformat(row["superseded_at"]), row["text"], row["sequence"])
        newer.setdefault(row["chunk"], []).append(fact)
    return [
        chunk(
            row["chunk"],
            score=row["score"],
            similarity=row["similarity"],
            words=row["words"],
            score_parts=row["score_parts"],
            before=[chunk(each) for each in row["before"] or []],
            after=[chunk(each) for each in row["after"] or []],
            repeats=repeats.get(row["chunk"]["id"]),
            newer=newer.get(row["chunk"]["id"], []),
        )
        for row in answer["chunks"]
    ]


def recall(
    scope: Scope,
    query: str | Sequence[str],
    *,
    filters: Filters,
    zone: str | tzinfo | None = None,
    capabilities: RecallCapabilities = NO_CAPABILITIES,
) -> Flow[Recall]:
    """Recall the chunks that fit a question, by vector and keyword search, in one round trip plus model calls.

    Args:
        scope: The conversations to search.
        query: The question, in the user's words, of which 10,000 characters count; a blank one lists what passes
            the filters. Or up to 8 questions: the ranking serves each, the best of each first.
        filters: The filters.
        zone: The time zone if the filters name none; UTC by default.
        capabilities: The models that can be used.

    Returns:
        The chunks, the best first, and how they were found.

    Raises:
        InvalidInputError: An argument is not one of its choices.
        MigrationConflictError: The stored vectors come from another model.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    return (yield from recall_chunks(scope, check_questions(query, filters.in_zone(zone)), capabilities))
