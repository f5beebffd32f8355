"""A playground for recall: query as an agent would, with one setting or two side by side, and see what just missed."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, get_args

from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext, read_only_copy
from langchain_supabase_memory.inspector.screens import conversation_header
from langchain_supabase_memory.inspector.screens.near_misses import MAX_NEAR_MISSES, NearMiss, near_misses
from langchain_supabase_memory.operations.recall.query import LIMIT
from langchain_supabase_memory.values import RECALL_SCOPES, Chunk, Recall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

PARTS: Final = (
    "words", "meaning", "around", "speaker", "date", "kind", "question", "beside", "importance", "recency", "reply",
    "rerank",
)  # fmt: skip
"""The parts of a score, in the page's order; the same in each result, so that a column can be compared."""

MAX_SHOWN: Final = 50
"""The maximum number of passages that a setting may ask for."""

Period = Literal["all", "today", "week", "month"]
PERIODS: Final[tuple[Period, ...]] = get_args(Period)


@dataclass(frozen=True)
class RecallSetting:
    """A setting to try.

    Attributes:
        scope: The conversations to search.
        by_meaning: Whether vectors are compared.
        limit: The maximum number of passages.
        characters: The maximum number of characters; `None` for any number.
        min_similarity: The minimum similarity; `None` for none.
    """

    scope: str
    by_meaning: bool
    limit: int = LIMIT
    characters: int | None = None
    min_similarity: float | None = None

    @classmethod
    def from_query(cls, context: RequestContext, suffix: str, default: RecallSetting) -> RecallSetting:
        """Parse the setting of an address; invalid parts are the default's.

        Args:
            context: The request.
            suffix: What ends the names of its arguments.
            default: The setting without any argument.
        """
        query = context.query
        scope = query.get(f"scope{suffix}", "")
        return cls(
            scope if scope in RECALL_SCOPES else default.scope,
            default.by_meaning and query.get(f"words{suffix}") != "on",
            context.number(f"limit{suffix}", minimum=1, maximum=MAX_SHOWN) or default.limit,
            context.number(f"characters{suffix}", minimum=1),
            _share(query.get(f"least{suffix}", "")),
        )


@dataclass(frozen=True)
class RankedChunk:
    """A chunk of a result.

    Attributes:
        chunk: The chunk.
        elsewhere: Where it stands in the other result, in words; empty if there is none.
    """

    chunk: Chunk
    elsewhere: str


@dataclass(frozen=True)
class RecallColumn:
    """The result of one setting.

    Attributes:
        setting: The setting.
        recall: The recall's result.
        chunks: The chunks.
        missed: The passages that just missed, the best first.
        milliseconds: How long it took.
    """

    setting: RecallSetting
    recall: Recall
    chunks: list[RankedChunk]
    missed: list[NearMiss]
    milliseconds: float


@dataclass(frozen=True)
class RecallAnswer:
    """The results of one setting or two.

    Attributes:
        columns: The results.
        parts: The parts that occur in any score.
        max_score: The largest part, which scales all bars.
    """

    columns: list[RecallColumn]
    parts: list[str]
    max_score: float


async def screen(request: Request) -> Response:
    """Render the query and its results."""
    context = RequestContext(request)
    is_of_conversation = bool(context.query.get("thread"))
    head = await conversation_header.load_header(context) if is_of_conversation else None
    query = context.query.get("q", "").strip()[:10_000]
    when = context.query.get("when", "")
    when = when if when in PERIODS else "all"
    has_vectors = context.memory._services.embeddings is not None
    usual = RecallSetting("conversation" if is_of_conversation else "user", has_vectors)
    setting = RecallSetting.from_query(context, "", usual)
    compares = context.query.get("compare") == "on"
    # By default the other one differs in one thing: the vectors, or the minimum.
    other = replace(setting, by_meaning=not setting.by_meaning) if has_vectors else replace(setting, min_similarity=0.5)
    if compares:
        other = RecallSetting.from_query(context, "2", usual)
    needs_user = not context.has_one_owner
    asks = query and not needs_user
    answer = await _run_recalls(context, query, when, [setting, *([other] if compares else [])]) if asks else None
    return render_page(
        context,
        "recall.html",
        tab="recall",
        header=head,
        query=query,
        when=when,
        periods=PERIODS,
        has_vectors=has_vectors,
        setting=setting,
        other=other,
        compares=compares,
        max_shown=MAX_SHOWN,
        needs_user=needs_user,
        answer=answer,
    )


async def _run_recalls(context: RequestContext, query: str, when: str, settings: list[RecallSetting]) -> RecallAnswer:
    columns = [await _column(context, query, when, setting) for setting in settings]
    if len(columns) == 2:
        ranks = [_ranks(column.recall) for column in columns]
        columns = [
            _with_ranks(column, ranks[1 - place], "beside: rank {}", "not among those beside")
            for place, column in enumerate(columns)
        ]
    elif settings[0].by_meaning:
        by_keywords, _ = await _recall(context, query, when, replace(settings[0], by_meaning=False))
        columns = [
            _with_ranks(columns[0], _ranks(by_keywords), "keywords only: rank {}", "not found with keywords only")
        ]
    chunks = [chunk for column in columns for chunk in column.recall.chunks]
    parts = [name for name in PARTS if any(name in chunk.score_parts for chunk in chunks)]
    sizes = [abs(chunk.score_parts.get(name, 0)) for chunk in chunks for name in parts if name != "rerank"]
    return RecallAnswer(columns, parts, max(sizes, default=0) or 1)


async def _column(context: RequestContext, query: str, when: str, setting: RecallSetting) -> RecallColumn:
    recall, milliseconds = await _recall(context, query, when, setting)
    missed = []
    if len(recall.chunks) == setting.limit or setting.characters or setting.min_similarity is not None:
        more = replace(setting, limit=setting.limit + MAX_NEAR_MISSES, characters=None, min_similarity=None)
        ranked, _ = await _recall(context, query, when, more)
        missed = near_misses(
            recall,
            ranked,
            limit=setting.limit,
            characters=setting.characters,
            min_similarity=setting.min_similarity,
        )
    return RecallColumn(setting, recall, [RankedChunk(chunk, "") for chunk in recall.chunks], missed, milliseconds)


def _with_ranks(column: RecallColumn, ranks: Mapping[str, int], there: str, absent: str) -> RecallColumn:
    """Return a result that says where each of its chunks stands in another."""
    chunks = [
        RankedChunk(each.chunk, there.format(ranks[each.chunk.id]) if each.chunk.id in ranks else absent)
        for each in column.chunks
    ]
    return replace(column, chunks=chunks)


def _ranks(recall: Recall) -> dict[str, int]:
    return {chunk.id: rank for rank, chunk in enumerate(recall.chunks, 1)}


async def _recall(context: RequestContext, query: str, when: str, setting: RecallSetting) -> tuple[Recall, float]:
    """Return what a setting finds, and the milliseconds that it took."""
    reader = context.reader if setting.by_meaning else read_only_copy(context.memory, keywords_only=True)
    memory, agent = context.owned(reader), context.query.get("agent") or None
    if setting.scope == "conversation" and context.query.get("thread"):
        search = memory.conversation(context.query["thread"], agent_id=agent).arecall
    else:
        search = partial(memory.arecall, agent_id=agent if setting.scope == "agent" else None)
    start = time.perf_counter()
    recall = await search(
        query,
        limit=setting.limit,
        characters=setting.characters,
        min_similarity=setting.min_similarity,
        time_range=next(each for each in PERIODS if each == when),
    )
    return recall, (time.perf_counter() - start) * 1000


def _share(text: str) -> float | None:
    """Return a number from 0 to 1 from an address; `None` if it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None
