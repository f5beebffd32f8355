"""What a user's conversations came to: the numbers of 30 days as lines, and advice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens.topics import topics_owner
from langchain_supabase_memory.inspector.svg_charts import plot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.operations.usage import UsageDay

DAYS: Final = 30
"""How many days the lines show."""

NUMBERS: Final = {
    "turns": "Turns",
    "pack_tokens": "Tokens sent",
    "spared_tokens": "Tokens spared",
    "cached_tokens": "Tokens from a cache",
    "recalls_empty": "Empty recalls",
    "chunks": "Chunks indexed",
}
"""The numbers that have a line, with their headings."""


@dataclass(frozen=True)
class UsageRow:
    """A number as a line of the page.

    Attributes:
        title: Its heading.
        today: Today's number.
        total: The sum of all days.
        line: The points of its days, in SVG notation, in a box of 1000 by 200.
    """

    title: str
    today: int
    total: int
    line: str


async def screen(request: Request) -> Response:
    """Render the numbers and the advice."""
    context = RequestContext(request)
    if context.sees_all_users and context.user_id is None:
        await context.reader.for_user("inspector").usage.aby_day()  # raises where the schema is another release's
        return render_page(context, "insights.html", tab="insights", rows=None, advice=[], days=DAYS)
    mine = topics_owner(context)
    today = datetime.now(UTC).date()
    found, advice = await gather_all(mine.usage.aby_day(since=today - timedelta(days=DAYS - 1)), mine.aadvice())
    rows = [_row(name, found, today) for name in NUMBERS]
    return render_page(context, "insights.html", tab="insights", rows=rows, advice=advice, days=DAYS)


def _row(name: str, usage: Sequence[UsageDay], today: date) -> UsageRow:
    by_day = dict.fromkeys((today - timedelta(days=DAYS - 1 - place) for place in range(DAYS)), 0)
    for each in usage:
        if each.day in by_day:
            by_day[each.day] += getattr(each, name)
    points = [(place / (DAYS - 1), float(count)) for place, count in enumerate(by_day.values())]
    return UsageRow(NUMBERS[name], by_day[today], sum(by_day.values()), plot([points]).lines[0])
