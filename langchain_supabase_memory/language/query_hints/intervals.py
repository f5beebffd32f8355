"""The dates and the spans of days of a question: its times, and what stands around them.

"since Monday", "before March" and "until 3 May" make a span of one time; "between 3 and 9 May" and "from Monday to
Wednesday" make one of two. A time without its year is the latest one that has begun.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.query_hints.calendar_spans import DateSpan, in_calendar, months, shifted
from langchain_supabase_memory.language.query_hints.dates import NamedDate, Time, dates_of, times
from langchain_supabase_memory.language.query_hints.lexicon import FIGURE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.language.query_hints.words import HintWords

_DASHES: Final = frozenset("-\u2010\u2011\u2012\u2013\u2014")
_MOST_ARTICLES: Final = 2
_LEAP_YEARS: Final = 8  # years between two leap years at most
_LAST_DAY: Final = 31
_FIRST_YEAR: Final = 1900
_LAST_YEAR: Final = 2100
_EDGES: Final = ("since", "until", "before", "after")


@dataclass(frozen=True, slots=True)
class QuestionDate:
    """A date or a span that a question names.

    Attributes:
        start: Where it begins in the text.
        end: Where it ends.
        date: What it names.
    """

    start: int
    end: int
    date: NamedDate


def question_dates(words: HintWords, today: date) -> list[QuestionDate]:
    """Return the dates and spans that a question names, in its order.

    Args:
        words: The question.
        today: The day of the question, in the time zone of the person who asks.
    """
    said = list(times(words, today))
    spans = [time for time in said if time.span is not None and time.date is None]
    named = sorted([*dates_of(said, words.text), *spans], key=lambda time: time.start)
    reader = _IntervalReader(words, named, today)
    found: list[QuestionDate] = []
    at = 0
    while at < len(named):
        one, read = reader.read(at)
        found.append(one)
        at += read
    return found


def _named(span: DateSpan) -> NamedDate:
    """Return a span as a date; one of a single day is that day."""
    if span.first is not None and span.first == span.last:
        return NamedDate(span.first.year, span.first.month, span.first.day)
    return NamedDate(first=span.first, last=span.last)


def _own_days(named: NamedDate, span: DateSpan | None) -> DateSpan | None:
    """Return the days of a time that needs no other day to be known."""
    if span is not None or named.year is None:
        return span
    year, month, day = named.year, named.month, named.day
    if month is None:
        return in_calendar(lambda: months(year, 1, 12))
    if day is None:
        return in_calendar(lambda: months(year, month))
    return in_calendar(lambda: DateSpan(date(year, month, day), date(year, month, day)))


def _days(time: Time, latest: date) -> DateSpan | None:
    """Return the days of a time: of one that says no year, the latest that begin by a day."""
    named = time.date or NamedDate()
    if time.span is not None or named.year is not None:
        return _own_days(named, time.span)
    if named.month is None:
        if named.weekday is None:
            return None
        day = shifted(latest, -((latest.isoweekday() - named.weekday) % 7))
        return DateSpan(day, day) if day is not None else None
    for year in range(latest.year, latest.year - _LEAP_YEARS - 1, -1):
        days = _own_days(replace(named, year=year), None)
        if days is not None and days.first is not None and days.first <= latest:
            return days
    return None


def _between(first: Time, last: Time, today: date) -> DateSpan | None:
    """Return the days from one time to another; what one does not say of its year is that of the other."""
    start: DateSpan | None
    end: DateSpan | None
    if first.date and first.date.year and last.date and last.date.month and not last.date.year:
        start = _days(first, today)
        end = _days(_dated(last, replace(last.date, year=first.date.year)), today)
    else:
        end = _days(last, today)
        start = _days(first, end.first) if end is not None and end.first is not None else None
    if start is None or end is None or start.first is None or end.last is None or start.first > end.last:
        return None
    return DateSpan(start.first, end.last)


def _dated(time: Time, named: NamedDate) -> Time:
    """Return a time that names another date."""
    return time._replace(date=named)


def _edge(kind: str, days: DateSpan, today: date) -> DateSpan | None:
    """Return the days since, until, before or after some days."""
    if days.first is None or days.last is None:
        return None
    if kind in ("until", "before"):
        last = days.last if kind == "until" else shifted(days.first, -1)
        return DateSpan(None, last) if last is not None else None
    first = days.first if kind == "since" else shifted(days.last, 1)
    if first is None:
        return None
    return DateSpan(first, today if first <= today else None)


class _IntervalReader:
    """Reads the times of a question with the words around them."""

    __slots__ = ("_named", "_today", "_words")

    def __init__(self, words: HintWords, named: Sequence[Time], today: date) -> None:
        self._words = words
        self._named = named
        self._today = today

    def read(self, index: int) -> tuple[QuestionDate, int]:
        """Return the date or span at one of the times, and how many times it takes."""
        time = self._named[index]
        if index + 1 < len(self._named) and (found := self._range(time, self._named[index + 1])):
            return found, 2
        if found := self._range_from_figure(time) or self._range_to_figure(time) or self._bounded(index):
            return found, 1
        if time.span is not None:
            return QuestionDate(time.start, time.end, _named(time.span)), 1
        return QuestionDate(time.start, time.end, time.date or NamedDate()), 1

    def _is(self, index: int, *kinds: str) -> bool:
        return not self._words.entry(index).kinds.isdisjoint(kinds)

    def _first(self, time: Time) -> int:
        """Return the place of a time's first word."""
        return bisect_left(self._words.starts, time.start)

    def _before(self, index: int) -> int:
        """Return the place of the word before another one and its articles; -1 if a mark stands between them."""
        skipped = 0
        while self._is_near(index) and skipped < _MOST_ARTICLES and self._is(index - 1, "article"):
            index -= 1
            skipped += 1
        return index - 1 if self._is_near(index) else -1

    def _is_near(self, index: int) -> bool:
        """Return whether a word follows another; a figure's point may stand between them."""
        words = self._words
        return words.near(index) and (words.gap(index) != "." or words.keys[index - 1].isdecimal())

    def _joint(self, index: int) -> int:
        """Return the place of the word between two times, the second of which begins at a place; -1 without one."""
        for at in range(index, max(index - _MOST_ARTICLES - 1, 0), -1):
            if not self._is_near(at):
                break
            if self._is(at - 1, "and", "to"):
                return at - 1
            if not self._is(at - 1, "article"):
                break
        return -1

    def _is_open(self, joint: int, first: int, *, needs_opener: bool = False) -> int | None:
        """Return where a range begins: at its opener, or at its first time if it needs none.

        Args:
            joint: The place of the word between the two times; -1 for a dash.
            first: The place of the first time.
            needs_opener: Whether it needs one, whatever is between.
        """
        opener = first if self._words.entry(first).says_time and self._is(first, "since") else self._before(first)
        is_to = joint < 0 or self._is(joint, "to")
        if opener >= 0 and self._is(opener, *(("from", "since", "between") if is_to else ("between",))):
            return self._words.starts[opener]
        return None if needs_opener or not is_to else self._words.starts[first]

    def _range(self, first: Time, last: Time) -> QuestionDate | None:
        """Return the span of two times with a word or a dash between them."""
        words = self._words
        at, after = self._first(last), bisect_left(words.starts, first.end)
        joint = self._joint(at)
        if not (after == at and words.gap(at) in _DASHES) and (joint != after or not self._is_near(joint)):
            return None
        is_weekday = first.date is not None and first.date.weekday is not None
        start = self._is_open(joint, self._first(first), needs_opener=is_weekday)
        span = _between(first, last, self._today) if start is not None else None
        return None if span is None or start is None else QuestionDate(start, last.end, _named(span))

    def _range_from_figure(self, last: Time) -> QuestionDate | None:
        """Return the span of a day of a month and a date: "(between) 3 and 9 May"."""
        words = self._words
        named = last.date
        if named is None or named.day is None or named.month is None:
            return None
        at = self._first(last)
        joint, figure = -1, at - 1
        if not (words.gap(at) in _DASHES and (words.entry(figure) is FIGURE or self._is(figure, "ordinal"))):
            joint = self._joint(at)
            figure = self._before(joint)
        if self._is(figure, "ordinal") and words.gap(figure) == "":
            figure -= 1
        day = words.figure(figure, 1, _LAST_DAY)
        start = self._is_open(joint, figure) if day is not None else None
        if day is None or start is None or day >= named.day:
            return None
        span = _between(_dated(last, replace(named, day=day, weekday=None)), last, self._today)
        return None if span is None else QuestionDate(start, last.end, _named(span))

    def _range_to_figure(self, first: Time) -> QuestionDate | None:
        """Return the span of a date and a day or a year: "May 3-9", "between May 3 and 9", "from 2019 to 2021"."""
        words = self._words
        named = first.date
        if named is None or first.span is not None:
            return None
        after = bisect_left(words.starts, first.end)
        joint, figure = (-1, after) if after < len(words) and words.gap(after) in _DASHES else (after, after + 1)
        if joint >= 0 and not (self._is_near(joint) and self._is(joint, "and", "to")):
            return None
        if joint >= 0:
            figure += self._is_near(figure) and self._is(figure, "article")
        if joint >= 0 and not self._is_near(figure):
            return None
        last = self._to_day(named, figure) if named.day is not None else self._to_year(named, figure)
        start = self._is_open(joint, self._first(first)) if last is not None else None
        if last is None or start is None:
            return None
        span = _between(_dated(first, last[0]), last[1], self._today)
        return None if span is None else QuestionDate(start, last[1].end, _named(span))

    def _to_day(self, named: NamedDate, figure: int) -> tuple[NamedDate, Time] | None:
        """Return the first date with the year that is said behind the last one, and the last one."""
        words = self._words
        day = words.figure(figure, 1, _LAST_DAY)
        if day is None or named.month is None or named.day is None or day <= named.day:
            return None
        last = figure
        if words.near(last + 1) and words.gap(last + 1) == "" and self._is(last + 1, "ordinal"):
            last += 1
        following = words.entry(last + 1) if words.near(last + 1) else words.entry(-1)
        if (
            following.unit
            or following.kinds & {"hour", "ordinal"}
            or words.text[words.ends[last] : words.ends[last] + 1] in ("%", ":")
        ):
            return None
        year = words.figure(last + 1, _FIRST_YEAR, _LAST_YEAR)
        if year is not None and words.gap(last + 1) in ("", ","):
            last += 1
        else:
            year = named.year
        end = NamedDate(year, named.month, day)
        return replace(named, year=year), Time(words.starts[figure], words.ends[last], end)

    def _to_year(self, named: NamedDate, figure: int) -> tuple[NamedDate, Time] | None:
        """Return the same of a range of years."""
        words = self._words
        year = words.figure(figure, _FIRST_YEAR, _LAST_YEAR)
        if year is None or named.year is None or named.month is not None:
            return None
        return named, Time(words.starts[figure], words.ends[figure], NamedDate(year))

    def _bounded(self, index: int) -> QuestionDate | None:
        """Return the span that a word before a time makes of it: "since Monday"."""
        time = self._named[index]
        before = self._first(time)
        if not (
            self._words.entry(before).says_time and self._is(before, *_EDGES)
        ):  # no "da lunedì", which has it itself
            before = self._before(before)
        kind = next((each for each in _EDGES if self._is(before, each)), None)
        if kind is None:
            return None
        follows = index > 0 and before > 0 and self._words.ends[before - 1] == self._named[index - 1].end
        if follows and kind in ("before", "after") and self._words.near(before):
            return None  # "the Sunday before 25 October": the Sunday is counted already
        latest: date | None = self._today
        if time.date is not None and time.date.weekday is not None and time.date.month is None:
            latest = shifted(self._today, -1)  # "since Monday", said on a Monday, means the last one
        days = _days(time, latest) if latest is not None else None
        span = _edge(kind, days, self._today) if days is not None else None
        return None if span is None else QuestionDate(self._words.starts[before], time.end, _named(span))
