"""What a person's conversations come to, for a model: topics, signals and usage, counted."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.agents.tools.output_limit import Passage, date_of, fit_passages, name, note, wrap
from langchain_supabase_memory.agents.tools.profile import person_of
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.operations import topics, usage
from langchain_supabase_memory.values import Signal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from langchain_supabase_memory.agents.tools.binding import Answer, ToolCall
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.operations.topics import Topic
    from langchain_supabase_memory.operations.usage import UsageDay

_TOPICS: Final = 30
"""The maximum number of topics in a result."""

_NUMBERS: Final = {
    "turns": "messages of the person",
    "messages": "messages in all",
    "pack_tokens": "tokens of context sent",
    "spared_tokens": "tokens spared, compared with the whole history",
    "recalls": "searches for an answer",
    "recalls_empty": "searches that found nothing",
}
"""The numbers that are told, in words."""


def read_insights(call: ToolCall, days: int) -> Flow[Answer]:
    """Return what the person talked about, which signals their words gave, and what that came to.

    Args:
        call: The call.
        days: How many days, today included.

    Raises:
        InvalidInputError: The conversation is a space's.
    """
    owner = person_of(call)
    first = datetime.now(UTC).date() - timedelta(days=days - 1)
    counted = yield from usage.by_day(owner, since=first)
    talked = yield from topics.read(
        owner,
        since=datetime.combine(first, time(), UTC),
        limit=_TOPICS,
        retention=call.binding.memory._services.settings.retention,
    )
    parts = {"topics": _topics(talked, call.zone), "signals": _signals(counted), "usage": _usage(counted)}
    passages = [Passage(tag, "\n".join(lines), {"days": days}) for tag, lines in parts.items() if lines]
    if not passages:
        return note(f"Nothing is counted yet of the last {days} days: a worker counts behind the answers."), []
    fits = fit_passages(passages, call.binding.characters)
    return wrap(fits.elements), [
        {"thread_id": quote.thread_id, "agent_id": quote.agent_id, "message_ids": [quote.message_id]}
        for topic in talked
        for quote in topic.quotes
        if quote.message_id is not None
    ]


def _topics(talked_about: Sequence[Topic], zone: tzinfo) -> list[str]:
    lines = []
    for topic in talked_about:
        last = "" if topic.last_at is None else f", last on {date_of(topic.last_at, zone)}"
        place = "".join(
            f", as in conversation {name(each.thread_id)}, message {each.sequence}" for each in topic.quotes[:1]
        )
        lines.append(f"{name(topic.label)}: {pluralize(topic.episodes, 'episode')}{last}{place}")
    return lines


def _signals(days: Sequence[UsageDay]) -> list[str]:
    counts = Counter[str]()
    for day in days:
        counts.update(day.signals)
    return [f"{each.label.replace('_', ' ')}: {counts[each.label]}" for each in Signal if counts[each.label]]


def _usage(days: Sequence[UsageDay]) -> list[str]:
    totals = {text: sum(getattr(day, field) for day in days) for field, text in _NUMBERS.items()}
    return [f"{text}: {total:,}" for text, total in totals.items() if total]
