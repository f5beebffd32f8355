"""The flows over what summaries mean: give the newest of each conversation a vector, and find conversations by them.

A rolling summary covers everything before it, so the newest segment of a conversation stands for the whole of it. As
with chunks, nothing is locked while the embedder works, and a vector is stored only if what it was computed from is
still there. Without a vector a summary is found by its words.
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
from langchain_supabase_memory.settings import Retention
from langchain_supabase_memory.values import ConversationKey, IndexResult, RecalledSummary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from langchain_supabase_memory.operations.recall.ranges import TimeRange
    from langchain_supabase_memory.values import Scope

PAGE: Final = 50
"""How many summaries are embedded between two calls of the database."""

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
    """The user's conversations that a question is about, by their newest summaries, in one round trip.

    Args:
        scope: Where to look.
        query: The question, in the user's words; blank lists the newest.
        limit: The most conversations.
        time_range: Only summaries that were stored then. Those older than the retention's `max_summary_age`, 90
            days by default, are never found.
        time_zone: That of the person who asks, by its name or itself; the memory's by default.
        min_similarity: Only summaries whose cosine with the question is at least so much; where there are no
            vectors, whose words fit so much in relation to the best.
        zone: The time zone where the filters name none; UTC by default.
        embedder: The embedder's name; `None` without one.
        retention: What is kept; everything by default.

    Returns:
        The summaries, the best first. One without a vector (`index_summaries` makes it) is found by its words.

    Raises:
        InvalidInputError: Nobody is named as the owner, or an argument is none of its choices.
        MigrationConflictError: The embedder has another width than it had.
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
            _logger.error("Summaries were searched by words alone. %s", error, extra=fields)
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
    return [RecalledSummary(**{**row, "created_at": datetime.fromisoformat(row["created_at"])}) for row in found]


def index_summaries(scope: Scope, *, embedder: str) -> Flow[int]:
    """Embed the newest summary of each conversation of a scope, where it has no vector of the model.

    Args:
        scope: Which conversations; no user means everybody's that the caller may see.
        embedder: The embedder's name.

    Returns:
        How many summaries were embedded.

    Raises:
        EmbeddingError: The embedder failed; what was done so far stays, and the next call goes on.
    """
    made = 0
    after: Mapping[str, Any] | None = None
    while True:
        rows = yield from _page(scope, embedder, after)
        made += len((yield from _embedded(rows, embedder)))
        if len(rows) < PAGE:
            return made
        after = rows[-1]


def index_summaries_due(
    done: Mapping[ConversationKey, IndexResult], scope: Scope, *, embedder: str | None
) -> Flow[dict[ConversationKey, IndexResult]]:
    """What `index` does, added to what was done for each conversation's chunks.

    Args:
        done: What was done before, by conversation.
        scope: Which conversations.
        embedder: The embedder's name; without one there is nothing to do.

    Returns:
        What was done, those conversations included of which only the summary was due. An embedder that failed is no
        error: it is said at the conversations that it failed for, and the next call goes on.
    """
    results = dict(done)
    after: Mapping[str, Any] | None = None
    while embedder is not None:
        rows = yield from _page(scope, embedder, after)
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
        if failed is not None or len(rows) < PAGE:
            break
        after = rows[-1]
    return results


def _page(scope: Scope, model: str, after: Mapping[str, Any] | None) -> Flow[list[Mapping[str, Any]]]:
    rows: list[Mapping[str, Any]] = yield from call(
        "memory_unembedded_summaries",
        {
            "p_model": model,
            "p_user_id": scope.user_id,
            "p_agent_id": scope.agent_id,
            "p_thread_id": scope.thread_id,
            "p_limit": PAGE,
            "p_after_user": None if after is None else after["user_id"],
            "p_after": None if after is None else after["conversation_id"],
        },
    )
    return rows


def _embedded(rows: Sequence[Mapping[str, Any]], model: str) -> Flow[Counter[tuple[str, str]]]:
    """Embed a page of summaries; how many were stored, by user and conversation."""
    if not rows:
        return Counter()
    vectors = yield from embed([row["content"] for row in rows])
    given = [
        {**{name: row[name] for name in ("user_id", "conversation_id", "level", "number", "id")}, "embedding": vector}
        for row, vector in zip(rows, vectors, strict=True)
    ]
    stored = yield from call("memory_embed_summaries", {"p_model": model, "p_vectors": given})
    return Counter((user_id, conversation_id) for user_id, conversation_id in stored)
