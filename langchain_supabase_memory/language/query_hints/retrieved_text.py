"""The days that a text tells of by how far they are from the day on which it is said: "yesterday", "two weeks ago"."""

from __future__ import annotations

from calendar import monthrange
from datetime import date
from typing import TYPE_CHECKING, Final, TypeAlias

from langchain_supabase_memory.language.messages.encoded_data import LONGEST
from langchain_supabase_memory.language.query_hints.dates import times
from langchain_supabase_memory.language.query_hints.words import HintWords
from langchain_supabase_memory.language.spelling import compose

if TYPE_CHECKING:
    from langchain_supabase_memory.language.query_hints.dates import NamedDate, Time

Days: TypeAlias = tuple[int, int]
"""The first and the last of some days, by how far each is from the day of reference: (-1, -1) is yesterday."""

_MAX_DATES: Final = 8
_OF_A_YEAR: Final = 12


def relative_days(text: str, said_on: date) -> tuple[Days, ...]:
    """The days that a text tells of relative to the day on which it was said, each once, at most 8 spans.

    A week is one from Monday to Sunday, a month and a year are those of the calendar. What is said by its date, by its
    season or without how far it is, is left out. It never raises, whatever the text is.

    Args:
        text: Any text.
        said_on: The day.
    """
    found: dict[Days, None] = {}
    for time in times(HintWords(compose(text[:LONGEST]))):
        days = _days(time, said_on)
        if days is not None and days != (0, 0):
            found.setdefault(days)
        if len(found) == _MAX_DATES:
            break
    return tuple(found)


def _days(time: Time, said_on: date) -> Days | None:
    on = time.on(said_on) if time.on is not None else None
    if on is None or time.is_season:  # a season is too vague
        return None
    if on.span is not None and on.span.first is not None and on.span.last is not None:
        return (on.span.first - said_on).days, (on.span.last - said_on).days
    return _span(on.date, said_on) if on.date is not None else None


def _span(named: NamedDate, said_on: date) -> Days | None:
    """The days of a date, a month or a year."""
    if named.year is None:
        return None
    first = date(named.year, named.month or 1, named.day or 1)
    month = named.month or _OF_A_YEAR
    last = date(named.year, month, named.day or monthrange(named.year, month)[1])
    return (first - said_on).days, (last - said_on).days
