"""A playground for recall: query as an agent would, and see what each part adds to the score."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext, read_only_copy
from langchain_supabase_memory.inspector.screens import conversation_header
from langchain_supabase_memory.values import RECALL_SCOPES, Chunk, Recall

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.memory.memory import SupabaseMemory

LIMIT: Final = 10
PARTS: Final = (
    "words", "meaning", "around", "speaker", "date", "kind", "question", "beside", "importance", "recency", "reply",
    "rerank",
)  # fmt: skip
"""The parts of a score, in the page's order; the same in each result, so that a column can be compared."""

Period = Literal["all", "today", "week", "month"]
PERIODS: Final[tuple[Period, ...]] = get_args(Period)


@dataclass(frozen=True)
class ChunkScore:
    """A chunk of the result.

    Attributes:
        chunk: The chunk.
        keyword_rank: Its rank in a search by keywords only; `None` if it is not among the first, or was not searched.
    """

    chunk: Chunk
    keyword_rank: int | None


@dataclass(frozen=True)
class RecallAnswer:
    """The result for a query.

    Attributes:
        recall: The recall's result.
        chunks: The chunks.
        parts: The parts that occur in any score.
        max_score: The largest part, which scales all bars.
        milliseconds: How long it took.
        compared: Whether a search by keywords only was also run.
    """

    recall: Recall
    chunks: list[ChunkScore]
    parts: list[str]
    max_score: float
    milliseconds: float
    compared: bool


async def screen(request: Request) -> Response:
    """Render the query and its result."""
    context = RequestContext(request)
    is_of_conversation = bool(context.query.get("thread"))
    head = await conversation_header.load_header(context) if is_of_conversation else None
    query = context.query.get("q", "").strip()[:10_000]
    scope = context.query.get("scope", "")
    scope = scope if scope in RECALL_SCOPES else "conversation" if is_of_conversation else "user"
    when = context.query.get("when", "")
    when = when if when in PERIODS else "all"
    has_vectors = context.memory._services.embeddings is not None
    by_meaning = has_vectors and context.query.get("meaning", "on") == "on" and context.query.get("words") != "on"
    needs_user = not context.has_one_owner
    answer = await _run_recall(context, query, scope, when, by_meaning) if query and not needs_user else None
    return render_page(
        context,
        "recall.html",
        tab="recall",
        header=head,
        query=query,
        scope=scope,
        when=when,
        periods=PERIODS,
        has_vectors=has_vectors,
        by_meaning=by_meaning,
        needs_user=needs_user,
        answer=answer,
    )


async def _run_recall(context: RequestContext, query: str, scope: str, when: str, by_meaning: bool) -> RecallAnswer:
    without_vectors = read_only_copy(context.memory, keywords_only=True)
    start = time.perf_counter()
    if not by_meaning:
        recall = await _recall(context, without_vectors, query, scope, when)
        seconds, ranks = time.perf_counter() - start, {}
    else:
        recall = await _recall(context, context.reader, query, scope, when)
        seconds = time.perf_counter() - start
        by_keywords = await _recall(context, without_vectors, query, scope, when)
        ranks = {chunk.id: rank for rank, chunk in enumerate(by_keywords.chunks, 1)}
    parts = [name for name in PARTS if any(name in chunk.score_parts for chunk in recall.chunks)]
    sizes = [abs(chunk.score_parts.get(name, 0)) for chunk in recall.chunks for name in parts if name != "rerank"]
    chunks = [ChunkScore(chunk, ranks.get(chunk.id)) for chunk in recall.chunks]
    return RecallAnswer(recall, chunks, parts, max(sizes, default=0) or 1, seconds * 1000, by_meaning)


async def _recall(context: RequestContext, memory: SupabaseMemory, query: str, scope: str, when: str) -> Recall:
    memory, agent = context.owned(memory), context.query.get("agent") or None
    period = next(each for each in PERIODS if each == when)
    if scope == "conversation" and context.query.get("thread"):
        here = memory.conversation(context.query["thread"], agent_id=agent)
        return await here.arecall(query, limit=LIMIT, time_range=period)
    wanted = agent if scope == "agent" else None
    return await memory.arecall(query, agent_id=wanted, limit=LIMIT, time_range=period)
