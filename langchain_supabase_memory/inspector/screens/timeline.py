"""A conversation's timeline: where every message is, and its text, page by page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import LONGEST, messages, render_page, render_part
from langchain_supabase_memory.inspector.request_context import RequestContext, not_found
from langchain_supabase_memory.inspector.screens import conversation_header
from langchain_supabase_memory.inspector.screens.message_range import text_of
from langchain_supabase_memory.inspector.screens.turns import WORDS, fork_of, joined, turns
from langchain_supabase_memory.inspector.svg_charts import BarSegment, bar
from langchain_supabase_memory.language.messages import content

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.values import Coverage, CoveredRange, FoundSignal, StoredMessage

PAGE: Final = 50
"""The number of messages on a page of the timeline."""

_MAX_RANGES: Final = 200
"""The maximum number of ranges in the table; the bar shows all."""


async def screen(request: Request) -> Response:
    """Render the timeline, from the newest page on."""
    context = RequestContext(request)
    conversation = context.conversation()
    head, coverage, segments = await gather_all(
        conversation_header.load_header(context), conversation.acoverage(), conversation.summaries.alist(last=100)
    )
    end = head.status.next_sequence
    at = context.number("at", maximum=max(0, end - 1))
    begin = max(0, end - PAGE) if at is None else max(0, min(at - at % 10, end - PAGE))
    stop = min(end, begin + PAGE)
    stored, signals, prompts = await _page(conversation, begin, stop) if end else ([], {}, set())
    ranges = joined(coverage.ranges)
    has_left = any(each.state == "superseded" and each.first < stop and each.last >= begin for each in ranges)
    left = (
        await conversation.superseded.alist(from_sequence=begin, to_sequence=stop - 1, columns=_COLUMNS)
        if has_left
        else []
    )
    return render_page(
        context,
        "timeline.html",
        tab="timeline",
        etag=head.etag,
        about="conversation",
        header=head,
        coverage=coverage,
        counts=_counts(coverage),
        pieces=_pieces(context, coverage),
        ranges=ranges[:_MAX_RANGES],
        more_ranges=max(0, len(ranges) - _MAX_RANGES),
        segments={segment.number: segment for segment in segments},
        turns=turns(stored, ranges, begin, stop, left),
        words=WORDS,
        signals=signals,
        prompts=prompts,
        begin=begin,
        stop=stop,
        end=end,
        at=at,
        page_size=PAGE,
        labels=content.LABELS,
        fork_of=fork_of,
    )


async def _page(
    conversation: Conversation, begin: int, stop: int
) -> tuple[list[StoredMessage], dict[int, list[FoundSignal]], set[int | None]]:
    """Return the messages of a page, the signals of each by its sequence, and the answers whose prompts are stored."""
    stored, found, page = await gather_all(
        conversation.aread(from_sequence=begin, to_sequence=stop - 1, columns=_COLUMNS),
        conversation.turns.asignals(from_sequence=begin, to_sequence=stop - 1),
        conversation.amanifests(from_sequence=begin, to_sequence=stop - 1, limit=PAGE),
    )
    signals: dict[int, list[FoundSignal]] = {}
    for each in found:
        signals.setdefault(each.sequence, []).append(each)
    return stored, signals, {each.to_sequence for each in page.manifests}


async def message(request: Request) -> Response:
    """Render one message as it was stored, in place or as a page."""
    context = RequestContext(request)
    place = context.number("number")
    if place is None:
        raise not_found()
    found = await context.conversation().aread(from_sequence=place, to_sequence=place, columns=_EVERYTHING)
    if not found:
        found = await context.conversation().superseded.alist(
            from_sequence=place, to_sequence=place, columns=_EVERYTHING
        )
    if not found:
        await context.listed_conversation()
        if not context.is_part:
            raise not_found()
        error = {"what": f"Message {place} does not exist.", "hint": "It may have expired or been deleted."}
        return render_part(context, "part_error.html", **error)
    stored = found[0]
    payload = None if stored.payload is None else stored.payload.model_dump(mode="json", exclude_none=True)
    values: dict[str, Any] = {
        "stored": stored,
        "payload": _json(payload),
        "metadata": _json(stored.metadata) if stored.metadata else "",
        "text": stored.text or text_of(stored),
        "label": content.speaker(
            content.LABELS[stored.role or "user"], stored.author_id if stored.role == "user" else None
        ),
        "answer": await _answer_to(context.conversation(), place),
    }
    if context.is_part:
        return render_part(context, "part_message.html", longest=LONGEST, **values)
    head = await conversation_header.load_header(context)
    return render_page(context, "message.html", tab="timeline", header=head, longest=2**31, **values)


_COLUMNS: Final = ("message_id", "role", "text", "created_at", "characters", "author_id", "payload", "parent")
_EVERYTHING: Final = (
    "message_id", "role", "text", "images", "created_at", "updated_at", "metadata", "characters", "tokens", "author_id",
    "payload",
)  # fmt: skip


_TURN: Final = 100
"""How many messages after a message its answer is searched for."""


async def _answer_to(conversation: Conversation, place: int) -> int | None:
    """Return the sequence of the answer to a message (or its own) whose prompt is stored; `None` without one."""
    page = await conversation.amanifests(from_sequence=place, to_sequence=place + _TURN, limit=_TURN)
    ends = [each.to_sequence for each in page.manifests if each.turn is not None and each.turn <= place]
    return min((end for end in ends if end is not None), default=None)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _counts(coverage: Coverage) -> list[tuple[str, int]]:
    """Return how many messages are in each state, in their order."""
    sizes = dict.fromkeys(WORDS, 0)
    for each in coverage.ranges:
        sizes[each.state] += each.to_sequence - each.from_sequence + 1
    return [(state, size) for state, size in sizes.items() if size]


def _pieces(context: RequestContext, coverage: Coverage) -> list[BarSegment]:
    """Return the bar of the whole conversation; each piece links to its beginning."""
    return bar(
        (
            each.state,
            each.to_sequence - each.from_sequence + 1,
            f"{_range_label(each)}: {messages(each.from_sequence, each.to_sequence)}",
            context.page_link("", at=each.from_sequence) + "#messages",
        )
        for each in coverage.ranges
    )


def _range_label(covered: CoveredRange) -> str:
    return f"in segment {covered.segment}" if covered.state == "segment" else WORDS[covered.state]
