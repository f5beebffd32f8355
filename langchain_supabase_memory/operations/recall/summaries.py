"""The flows over summary vectors: embed the newest summary of each conversation, and find conversations by it.

A rolling summary covers everything before it, so a conversation's newest segment represents the whole conversation.
As with chunks, no lock is held while the embedder works, and a vector is stored only if its source still exists.
Keyword search finds a summary that has no vector.
"""

from __future__ import annotations

import logging
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.effects import Flow, call, embed
from langchain_supabase_memory.errors import EmbeddingError
from langchain_supabase_memory.operations.arguments import moment
from langchain_supabase_memory.operations.pages import key_of
from langchain_supabase_memory.operations.recall import ranges
from langchain_supabase_memory.operations.recall.query import Filters, RecallQuery
from langchain_supabase_memory.operations.recall.ranges import bounds
from langchain_supabase_memory.operations.rows import value_of
from langchain_supabase_memory.settings import Retention
from langchain_supabase_memory.values import ConversationKey, IndexResult, RecalledSummary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from langchain_supabase_memory.operations.recall.ranges import TimeRange
    from langchain_supabase_memory.values import Scope

PAGE: Final = 50
"""How many summaries are embedded between two database calls."""

_logger = logging.getLogger(__name__)


def recall_summaries(
    scope: Scope,
    query: str,
    *,
    limit: int = 5,
    time_range: TimeRange = "all",
    time_zone: str | tzinfo | None = None,
    min_similarity: float | None = None,
    zone: str | tzinfo | None = None,
    embedder: str | None = None,
    retention: Retention | None = None,
) -> Flow[list[RecalledSummary]]:
    """Find the user's conversations that a question is about, by their newest summaries, in one round trip.

    Args:
        scope: The conversations to search.
        query: The question, in the user's words; a blank one lists the newest summaries.
        limit: The maximum number of conversations.
        time_range: Only summaries stored in this range. Summaries older than the retention's `max_summary_age`, 90
            days by default, are never found.
        time_zone: The asking person's time zone, as a name or a `tzinfo`; the memory's by default.
        min_similarity: Only summaries with at least this cosine similarity to the question; without vectors, with
            at least this keyword score relative to the best one.
        zone: The time zone if the filters name none; UTC by default.
        embedder: The embedder's name; `None` without one.
        retention: The retention to apply; by default all messages are retained.

    Returns:
        The summaries, the best first. Keyword search finds those without a vector (`index_summaries` creates it).

    Raises:
        InvalidInputError: There is no owner, or an argument is not one of its choices.
        MigrationConflictError: The embedder's dimensions have changed.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    filters = Filters(limit=limit, time_range=time_range, time_zone=time_zone, min_similarity=min_similarity)
    question = RecallQuery(query, filters.in_zone(zone))
    vector = None
    if embedder is not None and question.text_sent.strip():
        try:
            (vector,) = yield from embed([question.text_sent], is_query=True)
        except EmbeddingError as error:
            fields = {"memory_error": type(error).__name__}
            _logger.error("Summaries were searched by keywords only. %s", error, extra=fields)
    since, until = bounds(question.filters.time_range, datetime.now(ranges.zone(question.filters.time_zone)))
    age = (retention or Retention()).max_summary_age
    found = yield from call(
        "memory_recall_summaries",
        {
            "p_query": question.text_sent,
            "p_vector": vector,
            "p_model": embedder,
            "p_limit": question.filters.limit,
            "p_since": moment("since", since),
            "p_until": moment("until", until),
            "p_max_age": None if age is None else age.total_seconds(),
            "p_min_similarity": question.filters.min_similarity,
            "p_agent_id": scope.agent_id,
            "p_user_id": scope.user_id,
        },
        "recall summaries",
    )
    return [value_of(RecalledSummary, row) for row in found]


def index_summaries(scope: Scope, *, embedder: str) -> Flow[int]:
    """Embed the newest summary of each conversation in a scope that has no vector of the model.

    Args:
        scope: The conversations; no user means all users that the caller may access.
        embedder: The embedder's name.

    Returns:
        How many summaries were embedded.

    Raises:
        EmbeddingError: The embedder failed; finished work stays, and the next call continues.
    """
    made = 0
    after: Mapping[str, Any] | None = None
    while True:
        rows, after = yield from _page(scope, embedder, after)
        made += len((yield from _embedded(rows, embedder)))
        if after is None:
            return made


def index_summaries_due(
    done: Mapping[ConversationKey, IndexResult], scope: Scope, *, embedder: str | None
) -> Flow[dict[ConversationKey, IndexResult]]:
    """Run `index_summaries`, and add its results to the results of each conversation's chunks.

    Args:
        done: The results so far, by conversation.
        scope: The conversations.
        embedder: The embedder's name; without one there is nothing to do.

    Returns:
        The results, including conversations in which only the summary was due. If the embedder fails, nothing is
        raised: the result of each affected conversation says so, and the next call continues.
    """
    results = dict(done)
    after: Mapping[str, Any] | None = None
    while embedder is not None:
        rows, after = yield from _page(scope, embedder, after)
        failed = None
        made: Counter[tuple[str, str]] = Counter()
        try:
            made = yield from _embedded(rows, embedder)
        except EmbeddingError as error:
            failed = error.message
        for row in rows:
            key = key_of(row)
            if key is None:
                continue
            before = results.get(key) or IndexResult(row["indexed_through"])
            results[key] = IndexResult(
                through_sequence=before.through_sequence,
                chunks=before.chunks,
                failed=before.failed or failed,
                backing_off=before.backing_off,
                conflict=before.conflict,
                summaries=made[row["user_id"], row["conversation_id"]],
            )
        if failed is not None or after is None:
            break
    return results


def _page(
    scope: Scope, model: str, after: Mapping[str, Any] | None
) -> Flow[tuple[list[Mapping[str, Any]], Mapping[str, Any] | None]]:
    """Return a page of summaries without a vector, and where the next page begins; `None` if there is none."""
    page = yield from call(
        "memory_unembedded_summaries",
        {
            "p_model": model,
            "p_user_id": scope.user_id,
            "p_agent_id": scope.agent_id,
            "p_thread_id": scope.thread_id,
            "p_limit": PAGE,
            "p_after_user": None if after is None else after["user"],
            "p_after": None if after is None else after["id"],
        },
    )
    return page["summaries"], page["after"]


def _embedded(rows: Sequence[Mapping[str, Any]], model: str) -> Flow[Counter[tuple[str, str]]]:
    """Embed a page of summaries; return how many were stored, by user and conversation."""
    if not rows:
        return Counter()
    vectors = yield from embed([row["content"] for row in rows])
    given = [
        {**{name: row[name] for name in ("user_id", "conversation_id", "level", "number", "id")}, "embedding": vector}
        for row, vector in zip(rows, vectors, strict=True)
    ]
    stored = yield from call("memory_embed_summaries", {"p_model": model, "p_vectors": given})
    return Counter((user_id, conversation_id) for user_id, conversation_id in stored)
