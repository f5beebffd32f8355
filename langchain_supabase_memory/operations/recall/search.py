"""The flows of recall: embed the question, then one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.errors import EmbeddingError
from langchain_supabase_memory.flow import Flow, call, compute, embed
from langchain_supabase_memory.language import cues
from langchain_supabase_memory.operations.arguments import scope_ids
from langchain_supabase_memory.operations.recall.indexing import chunk
from langchain_supabase_memory.values import Chunk, Recall, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.operations.recall.question import Question


def recall(scope: Scope, question: Question, *, model: str | None) -> Flow[Recall]:
    """What was said and fits a question, the best first, in one round trip beside the embedding.

    Args:
        scope: Where to look.
        question: What is asked.
        model: The embedder's name; `None` without one.

    Returns:
        What was found. If the embedder fails, it was found by words alone, and the result says so.

    Raises:
        MigrationConflictError: What is stored was embedded by another model.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    document, failed = yield from document_of(question, model=model)
    answer = yield from call("memory_recall", {"p_ask": document, **scope_ids(scope)}, "recall")
    return recall_of(answer, failed)


def document_of(question: Question, *, model: str | None) -> Flow[tuple[dict[str, Any], str | None]]:
    """A question as the SQL functions take it, and why it has no vector though there is an embedder."""
    named = yield from compute(question.cued, len(question.sent), kept=cues.KEPT)
    variants = question.variants(named)
    failed = None
    vectors: list[list[float]] = []
    if model is not None and question.sent.strip():
        try:
            vectors = yield from embed([text for _, text in variants], is_query=True)
        except EmbeddingError as error:
            failed = error.message
    pairs = [(names, vector) for (names, _), vector in zip(variants, vectors, strict=False)]
    return question.document(named, pairs, model), failed


def recall_of(answer: Mapping[str, Any], failed: str | None) -> Recall:
    """The SQL functions' answer as a value."""
    return Recall(
        chunks=[_chunk(row) for row in answer["chunks"]],
        searched=answer["searched"],
        approximate=answer["approximate"],
        by_meaning=answer["by_meaning"],
        failed=failed,
    )


def _chunk(row: Mapping[str, Any]) -> Chunk:
    return chunk(
        row["chunk"],
        score=row["score"],
        similarity=row["similarity"],
        words=row["words"],
        before=[chunk(each) for each in row["before"] or []],
        after=[chunk(each) for each in row["after"] or []],
    )
