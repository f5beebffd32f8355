"""Exact search for agents: the messages that hold a text letter by letter, and where to go on."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.agents.tools.bounded import Passage, dated, fenced, fitted, noted
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.operations.recall import exact
from langchain_supabase_memory.operations.recall.ranges import bounds

if TYPE_CHECKING:
    from langchain_supabase_memory.agents.tools.bound import Answer, Asked
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.operations.recall.exact import Wanted
    from langchain_supabase_memory.operations.recall.ranges import TimeRange
    from langchain_supabase_memory.values import FoundMessage, RecallScope, Scope

CALLS: Final = 10
"""The most calls of one search, of 2,000 messages each; then the agent is told where to go on."""

_BEFORE: Final = 200
"""So many characters of a long message are shown before what was looked for."""

_SHOWN: Final = 600
"""The most characters that are shown of a message."""


def found(asked: Asked, reach: RecallScope, wanted: Wanted, time_range: TimeRange, after: str | None) -> Flow[Answer]:
    """What a search letter by letter answers.

    Args:
        asked: The call.
        reach: Where to look.
        wanted: What for.
        time_range: Only messages of that time.
        after: Where to go on; `None` begins.
    """
    scope = asked.scope(reach)
    since, until = bounds(time_range, datetime.now(asked.zone))
    page = yield from exact.find_all(
        scope,
        replace(wanted, since=since, until=until),
        most=wanted.limit,
        calls=CALLS,
        after=after,
        retention=asked.binding.memory.settings.retention,
        keep=lambda each: each.message.message_id not in asked.present,
    )
    more = "" if page.after is None else f"There may be more: go on with after={page.after} and the same words."
    if not page:
        return noted(" ".join(filter(None, ["No message that was looked at holds these letters.", more]))), []
    passages = [_passage(each, asked, scope, wanted) for each in page]
    fits = fitted(passages, asked.binding.characters, more)
    if fits.shown < len(page):
        # The place to go on from is behind those that are not shown.
        left = len(page) - fits.shown
        more = f"{left} more found, for which there is no room: the same with limit={fits.shown} says where to go on."
    return fenced(fits.elements, more), [dict(each.source) for each in passages[: fits.shown]]


def _passage(hit: FoundMessage, asked: Asked, scope: Scope, wanted: Wanted) -> Passage:
    stored = hit.message
    assert stored.message is not None  # the payload always comes
    words = content.shown(stored.message)
    begin = max(0, exact.place(words, wanted.texts) - _BEFORE) if len(words) > _SHOWN else 0
    end = min(len(words), begin + _SHOWN)
    before = f"[… {begin:,} characters …]\n" if begin else ""
    after = f"\n[… {len(words) - end:,} characters …]" if end < len(words) else ""
    attributes: dict[str, str | int] = {
        "number": stored.sequence,
        "by": content.speaker(stored.role or "", stored.message.name),
    }
    if stored.created_at is not None:
        attributes["at"] = dated(stored.created_at, asked.zone)
    attributes |= asked.where(scope, hit.thread_id, hit.agent_id)
    source = {
        "thread_id": hit.thread_id,
        "agent_id": hit.agent_id,
        "from_sequence": stored.sequence,
        "to_sequence": stored.sequence,
        "message_ids": [stored.message_id],
    }
    return Passage("message", f"{before}{words[begin:end]}{after}", attributes, source)
