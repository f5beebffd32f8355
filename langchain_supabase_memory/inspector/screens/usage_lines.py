"""What a user's conversations came to, in numbers: today, in seven days, and thirty days as a line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.svg_charts import sparkline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.usage import UsageDay

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
    usage = [((each.day - first).days, each) for each in await mine.usage.aby_day(since=first)]
    return [_row(name, title, usage) for name, title in numbers.items()]


def _row(name: str, title: str, usage: Sequence[tuple[int, UsageDay]]) -> UsageRow:
    counts = [0] * DAYS
    for place, each in usage:
        if 0 <= place < DAYS:
            counts[place] += getattr(each, name)
    return UsageRow(title, counts[-1], sum(counts[-WEEK:]), sum(counts), sparkline(counts))
