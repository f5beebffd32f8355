"""What a user's conversations came to, in numbers: today, in seven days, and thirty days as a line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import add, attrgetter
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.svg_charts import sparkline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.memory.memory import SupabaseMemory

DAYS: Final = 30
"""How many days the lines show."""

WEEK: Final = 7

COSTS: Final = {
    "turns": "Turns",
    "pack_tokens": "Tokens sent",
    "spared_tokens": "Tokens spared",
    "input_tokens": "Tokens read by models",
    "output_tokens": "Tokens written by models",
}
"""The numbers that say what conversations cost, with their headings."""

NUMBERS: Final = {
    **COSTS,
    "cached_tokens": "Tokens from a cache",
    "recalls_empty": "Empty recalls",
    "chunks": "Chunks indexed",
}
"""All numbers that have a line, with their headings."""


@dataclass(frozen=True)
class UsageRow:
    """A number as a line of the page.

    Attributes:
        title: Its heading.
        today: Today's number.
        week: The sum of the last seven days, today included.
        total: The sum of all days.
        line: The points of its days, in SVG notation, in a box of 1000 by 200.
    """

    title: str
    today: int
    week: int
    total: int
    line: str


async def usage_rows(mine: SupabaseMemory, numbers: Mapping[str, str]) -> list[UsageRow]:
    """Return a user's numbers of the last thirty days, in one round trip.

    Args:
        mine: The user's memory.
        numbers: The numbers, with their headings.
    """
    today = datetime.now(UTC).date()
    first = today - timedelta(days=DAYS - 1)
    take = attrgetter(*numbers)
    days = [(0,) * len(numbers)] * DAYS
    for each in await mine.usage.aby_day(since=first):
        place = (each.day - first).days
        if 0 <= place < DAYS:
            days[place] = tuple(map(add, days[place], take(each)))
    return [
        UsageRow(title, counts[-1], sum(counts[-WEEK:]), sum(counts), sparkline(counts))
        for title, counts in zip(numbers.values(), zip(*days, strict=True), strict=True)
    ]
