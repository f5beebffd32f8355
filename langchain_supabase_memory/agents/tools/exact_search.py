"""Exact search for agents: find messages that contain a text verbatim, and return where to continue."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.agents.tools.output_limit import Passage, date_of, fit_passages, note, wrap
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.operations.recall import exact_search
from langchain_supabase_memory.operations.recall.ranges import bounds

if TYPE_CHECKING:
    from langchain_supabase_memory.agents.tools.binding import Answer, ToolCall
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.operations.recall.exact_search import ExactQuery
    from langchain_supabase_memory.operations.recall.ranges import TimeRange
    from langchain_supabase_memory.values import FoundMessage, RecallScope, Scope

CALLS: Final = 10
"""The maximum number of calls per search, 2,000 messages each; then the result says where to continue."""

_BEFORE: Final = 200
"""How many characters of a long message are shown before the match."""

_SHOWN: Final = 600
"""The maximum number of characters shown of a message."""


def find_exact(
    call: ToolCall, reach: RecallScope, query: ExactQuery, time_range: TimeRange, after: str | None
) -> Flow[Answer]:
    """Run an exact search and format its answer.

    Args:
        call: The call.
        reach: The scope to search.
        query: The query.
        time_range: Only messages from this time range.
        after: Where to continue; `None` starts from the beginning.
    """
    scope = call.scope(reach)
    since, until = bounds(time_range, datetime.now(call.zone))
    page = yield from exact_search.find_all(
        scope,
        replace(query, since=since, until=until),
        limit=query.limit,
        calls=CALLS,
        after=after,
        retention=call.binding.memory._services.settings.retention,
        keep=lambda each: each.message.message_id not in call.present,
    )
    more = "" if page.after is None else f"There may be more: go on with after={page.after} and the same words."
    if not page:
        return note(" ".join(filter(None, ["No message that was looked at holds these letters.", more]))), []
    passages = [_passage(each, call, scope, query) for each in page]
    fits = fit_passages(passages, call.binding.characters, more)
    if fits.shown_count < len(page):
        # `after` points past the matches that are not shown.
        left = len(page) - fits.shown_count
        more = f"{left} more have no room: the same with limit={fits.shown_count} says where to go on."
    return wrap(fits.elements, more), [dict(each.source) for each in passages[: fits.shown_count]]


def _passage(hit: FoundMessage, call: ToolCall, scope: Scope, query: ExactQuery) -> Passage:
    stored = hit.message
    words = content.display_text(stored.message)
    begin = max(0, exact_search.place(words, query.texts) - _BEFORE) if len(words) > _SHOWN else 0
    end = min(len(words), begin + _SHOWN)
    before = f"[… {begin:,} characters …]\n" if begin else ""
    after = f"\n[… {len(words) - end:,} characters …]" if end < len(words) else ""
    attributes: dict[str, str | int] = {
        "number": stored.sequence,
        "by": content.speaker(stored.role or "", stored.speaker),
    }
    if stored.created_at is not None:
        attributes["at"] = date_of(stored.created_at, call.zone)
    attributes |= call.location(scope, hit.thread_id, hit.agent_id)
    source = {
        "thread_id": hit.thread_id,
        "agent_id": hit.agent_id,
        "from_sequence": stored.sequence,
        "to_sequence": stored.sequence,
        "message_ids": [stored.message_id],
    }
    return Passage("message", f"{before}{words[begin:end]}{after}", attributes, source)
