"""The times that a text says: dates, months, weekdays and years, and what is relative to now.

Relative words are resolved by a day of reference. A week, a weekend or a season is a span of days beside a date; a part
of a day is a time, but no date.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from langchain_supabase_memory.language.query_hints.calendar_spans import (
    DateSpan,
    in_calendar,
    latest_weekend,
    relative_season,
    season,
    shifted,
    until_today,
    week,
    weekend,
)
from langchain_supabase_memory.language.query_hints.lexicon import lexicon
from langchain_supabase_memory.language.sentences import begins_sentence
from langchain_supabase_memory.language.spelling import WORD, keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from langchain_supabase_memory.language.query_hints.calendar_spans import Season
    from langchain_supabase_memory.language.query_hints.words import HintWords

_FIRST_YEAR: Final = 1900
_LAST_YEAR: Final = 2100
_DAYS_OF_MONTH: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTHS_OF_YEAR: Final = 12
_BOUNDS: Final = ("since", "until", "before", "after", "between", "and")
_FARTHEST: Final = 1000  # units of time that are resolved

_NUMERIC: Final = re.compile(
    r"(?<![\w./-])(?:(\d{4})([-/.])(\d{1,2})\2(\d{1,2})|(\d{1,2})([-/.])(\d{1,2})\6(\d{4}|\d{2}))(?![\d/-]|\.\d)"
)
_COUNTED: Final = re.compile(r"[%$\u20ac\u00b0]|[.,:/]\d")  # what follows a figure that is no year
_CLOCK: Final = re.compile(r"(?<![\w:.,])(?:[01]?\d|2[0-3])[:h][0-5]\d(?![\d:])")


@dataclass(frozen=True, slots=True)
class NamedDate:
    """A date, a month, a year, a weekday or a span of days that a question names; what it does not say is None.

    A date that is known to the day has no weekday beside it, since that would say nothing more. A span has nothing
    beside it, and one of its ends may be open.

    Attributes:
        year: The year.
        month: The month, from 1.
        day: The day of the month.
        weekday: The day of the week, from 1 for Monday.
        first: The first day of a span.
        last: The last day of a span.
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    first: date | None = None
    last: date | None = None


Day: TypeAlias = date
"""A day of reference: inside `Time`, `date` is another thing."""


class Time(NamedTuple):
    """A time that a text says.

    Attributes:
        start: Where it begins in the text.
        end: Where it ends.
        date: The date it names, if it names one.
        on: The same time as it is on a day of reference, if it is relative to one: "two days ago".
        span: The days that it spans, if it is no date; of what is relative, on a day of reference.
        is_season: Whether it is a season.
    """

    start: int
    end: int
    date: NamedDate | None = None
    on: Callable[[Day], Time] | None = None
    span: DateSpan | None = None
    is_season: bool = False


def times(words: HintWords, today: date | None = None) -> Iterator[Time]:
    """Every time that a text says, numeric dates and clocks first, the others in the order of the text.

    Args:
        words: The text.
        today: The day that relative words refer to; without one they name no date.
    """
    taken: set[int] = set()  # where figures begin that belong to a numeric date
    for match in words.matching(_NUMERIC):
        found = _numeric(match)
        if found is not None:
            taken.update(match.start(group) for group in range(1, 9) if match.group(group) is not None)
            yield found
    for match in words.matching(_CLOCK):
        yield Time(match.start(), match.end())
    reader = _Reader(words, taken)
    for at, entry in enumerate(words.entries):
        if entry.says_time and at > reader.last and (found := reader.read(at)):
            yield found.on(today) if today is not None and found.on is not None else found


def dates(words: HintWords, today: date) -> list[Time]:
    """The dates that a text names, in its order, with the parts of one date put together."""
    return dates_of(times(words, today), words.text)


def dates_of(times: Iterable[Time], text: str) -> list[Time]:
    """The same of the times that were found in a text."""
    joined: list[Time] = []
    for time in sorted((time for time in times if time.date), key=lambda time: time.start):
        one = joined[-1] if joined else None
        if one and (counted := _counted(one, time, text)):
            joined[-1] = Time(one.start, one.end, counted)
        if one and (together := _combine(one, time, text)):
            joined[-1] = Time(one.start, time.end, together)
        else:
            joined.append(time)
    return joined


def _numeric(match: re.Match[str]) -> Time | None:
    """A date in figures: 2023-05-07, 27/5/2023, 7.5.2023. One that can be read in two ways is a time without a date."""
    year, _, month, day, one, mark, two, short = match.groups()
    if year is not None:
        read = [(int(year), int(month), int(day))]
    else:
        if len(short) < len("2023") and mark != "/":
            return None
        last = int(short) + (2000 if len(short) < len("2023") else 0)
        read = [(last, int(two), int(one))]
        if mark != ".":
            read.append((last, int(one), int(two)))
    valid = {each for each in read if _FIRST_YEAR <= each[0] <= _LAST_YEAR and _is_day(*each)}
    if not valid:
        return None
    return Time(match.start(), match.end(), NamedDate(*valid.pop()) if len(valid) == 1 else None)


def _is_day(year: int | None, month: int, day: int) -> bool:
    """Whether a month has such a day; February of an unknown year has 29."""
    if not (1 <= month <= _MONTHS_OF_YEAR and 1 <= day <= _DAYS_OF_MONTH[month - 1]):
        return False
    leap = year is None or (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    return leap or (month, day) != (2, 29)


def _combine(one: Time, two: Time, text: str) -> NamedDate | None:
    """The one date that two neighbors name: "Sunday" and "7 May", "March" and "last year"."""
    first, second = one.date, two.date
    between = text[one.end : two.start]
    if first is None or second is None or len(between) > len(" in the month of "):
        return None
    kinds = _kinds(between)
    if re.search(r"[.!?;:]", between):
        return None
    if first.weekday and second.day and not second.weekday and all(each & {"of", "on"} for each in kinds):
        return second if second.year else replace(second, weekday=first.weekday)
    if not all(each & {"of", "in"} for each in kinds) or "," in between:
        return None
    for month, year in ((first, second), (second, first)):
        if month.month and not month.year and year == NamedDate(year.year):
            return replace(month, year=year.year)
    return None


def _counted(one: Time, two: Time, text: str) -> NamedDate | None:
    """The date of a weekday that is counted from the date after it: "the Sunday before 25 October 2022"."""
    first, second = one.date, two.date
    between = text[one.end : two.start]
    if first is None or second is None or not first.weekday or len(between) > len(" right before the "):
        return None
    if not (second.year and second.month and second.day):
        return None
    for kind, direction in (("before", -1), ("after", 1)):
        if any(kind in each for each in _kinds(between)):
            return _weekday(date(second.year, second.month, second.day), first.weekday, direction)
    return None


def _kinds(text: str) -> list[frozenset[str]]:
    """The parts that the words of a short text can play."""
    known = lexicon().entries
    return [known[word].kinds if word in known else frozenset() for word in keys(WORD.findall(text))]


def _weekday(day: date, weekday: int, direction: int) -> NamedDate | None:
    """The nearest such weekday before or after a day."""
    days = (day.isoweekday() - weekday if direction < 0 else weekday - day.isoweekday()) % 7 or 7
    return _exact_day(day, direction * days)


def _exact_day(day: date, days: int) -> NamedDate | None:
    """The date so many days from a day; nothing beyond the calendar's ends."""
    then = shifted(day, days)
    return None if then is None else NamedDate(then.year, then.month, then.day)


def _from(today: date, unit: str, count: int) -> NamedDate | DateSpan | None:
    """The day, week, weekend, month or year so many units from a day."""
    if unit in ("week", "weekend"):
        return in_calendar(lambda: (week if unit == "week" else weekend)(today, count))
    if abs(count) > _FARTHEST or unit not in ("day", "month", "year"):
        return None
    if unit == "day":
        return _exact_day(today, count)
    months = today.year * 12 + today.month - 1 + count * (1 if unit == "month" else 12)
    year = months // 12
    if not date.min.year <= year <= date.max.year:
        return None
    return NamedDate(year, months % 12 + 1 if unit == "month" else None)


def _of_year(today: date, month: int, direction: int) -> NamedDate:
    """The last such month (-1), this year's (0) or the next one (1)."""
    later = month > today.month if direction > 0 else month < today.month
    return NamedDate(today.year + (0 if later or not direction else direction), month)


class _Reader:
    """Reads one time after the other.

    Attributes:
        last: The last word of the time that was read last.
    """

    __slots__ = ("_taken", "_words", "last")

    def __init__(self, words: HintWords, used_places: set[int]) -> None:
        self._words = words
        self._taken = used_places
        self.last = -1

    def read(self, index: int) -> Time | None:
        """The time whose decisive word is at a place."""
        words = self._words
        entry = words.entries[index]
        if words.keys[index].isdecimal():
            return None if words.starts[index] in self._taken else self._figure(index)
        if entry.day is not None:
            if entry.weak and begins_sentence(words.text, words.starts[index]):
                return None
            days = entry.day
            return self._counted(index, index, None, index, lambda today: _exact_day(today, days))
        if entry.unit and (found := self._unit(index, entry.unit)):
            return found
        if entry.season and (found := self._season(index, entry.season)):
            return found
        if entry.month and (found := self._month(index, entry.month)):
            return found
        if entry.weekday and (found := self._weekday(index, entry.weekday)):
            return found
        if "time" in entry.kinds:
            return self._time(index, index, None)
        if "part" in entry.kinds and (
            self._relative(index) is not None or (words.near(index) and self._is(index - 1, "past", "on"))
        ):
            return self._time(index, index, None)
        return None

    def _time(self, first: int, last: int, date: NamedDate | None) -> Time:
        """A time from one word to another."""
        self.last = max(self.last, last)
        return Time(self._words.starts[first], self._words.ends[last], date)

    def _counted(
        self,
        first: int,
        last: int,
        date: NamedDate | None,
        begins: int,
        count: Callable[[date], NamedDate | DateSpan | None],
    ) -> Time:
        """A time that is another date or span on another day, from which on it begins with a word of its own."""
        start, end = self._words.starts[begins], self._words.ends[last]

        def on(today: Day) -> Time:
            counted = count(today)
            if isinstance(counted, DateSpan):
                return Time(start, end, date, span=counted)
            return Time(start, end, counted)

        return self._time(first, last, date)._replace(on=on)

    def _is(self, index: int, *kinds: str) -> bool:
        """Whether the word at a place can play one of these parts."""
        return not self._words.entry(index).kinds.isdisjoint(kinds)

    def _relative(self, index: int) -> int | None:
        """Whether a word is said to be the last one (-1), this one (0) or the next one (1)."""
        words = self._words
        before, after = words.entry(index - 1).kinds, words.entry(index + 1).kinds
        if not before and not after:
            return None
        before = before if words.near(index) else frozenset()
        after = after if words.near(index + 1) else frozenset()
        for direction, kind in ((-1, "last"), (1, "next"), (0, "this")):
            if kind in before or f"{kind}_after" in after:
                return direction
        return None

    def _figure(self, index: int) -> Time | None:
        """A year that stands where a year does, or a time of day."""
        words = self._words
        if words.figure(index, 0, 24) is not None:
            if words.near(index + 1) and self._is(index + 1, "hour"):
                return self._time(index, index + 1, None)
            return self._time(index, index, None) if words.near(index) and self._is(index - 1, "hour_before") else None
        year = words.figure(index, _FIRST_YEAR, _LAST_YEAR)
        if year is None:
            return None
        end = words.text[words.ends[index] : words.ends[index] + 2]
        if _COUNTED.match(end) or words.gap(index) == "-":
            return None
        before = words.near(index) and self._is(index - 1, "in", "around", "part")
        bracketed = words.gap(index).endswith("(") and end.startswith(")")
        if before or bracketed or (words.near(index) and words.entry(index - 1).unit == "year"):
            return self._time(index, index, NamedDate(year))
        return None

    def _unit(self, index: int, unit: str) -> Time | None:
        """A unit that is related to now: "last month", "two days ago", "hace tres semanas"."""
        words = self._words
        is_of = unit != "year" and self._is(index + 1, "of") and not self._is(index + 1, "in")
        if is_of and (words.entry(index + 2).month or words.figure(index + 2, _FIRST_YEAR, _LAST_YEAR) is not None):
            return None  # "the last week of May"
        if found := self._ago(index, unit) or self._recent(index, unit):
            return found
        if words.near(index) and self._is(index - 1, "before_last"):
            return self._counted(index - 1, index, None, index - 1, lambda today: _from(today, unit, -2))
        if words.near(index + 1) and self._is(index + 1, "before_last_after"):
            return self._counted(index, index + 1, None, index, lambda today: _from(today, unit, -2))
        direction = self._relative(index)
        if direction is None and unit == "weekend" and (first := self._during(index, "since")) is not None:
            return self._counted(first, index, None, first, lambda today: in_calendar(lambda: latest_weekend(today)))
        if direction is None or unit in ("moment", "day"):
            return None
        first = index - 1 if words.near(index) and self._is(index - 1, "last", "next", "this") else index
        last = (
            index + 1
            if words.near(index + 1) and self._is(index + 1, "last_after", "next_after", "this_after")
            else index
        )
        count = direction
        return self._counted(first, last, None, first, lambda today: _from(today, unit, count))

    def _during(self, index: int, *bounds: str) -> int | None:
        """Where a weekend or a season begins that is the latest one: "in spring", "over the weekend".

        Args:
            index: Its place.
            bounds: The parts of words before which it is the latest one, too, and begins itself: "since".
        """
        if self._is(index, "during"):
            return index
        for before in (index - 1, index - 2):
            if not self._words.near(before + 1):
                break
            if self._is(before, "during"):
                return before
            if self._is(before, *bounds):
                return before + 1
            if not self._is(before, "article"):
                break
        return None

    def _number(self, index: int) -> int | None:
        """The number at a place, in figures or in words; one may be an article."""
        entry = self._words.entry(index)
        number = self._words.figure(index, 0, _FARTHEST)
        if number is not None:
            return number
        return entry.number or (1 if "one" in entry.kinds else 2 if "two" in entry.kinds else None)

    def _recent(self, index: int, unit: str) -> Time | None:
        """So many units that end today: "in the last three days", "trois derniers jours", "dua minggu terakhir"."""
        words = self._words
        if unit in ("moment", "weekend") or not words.near(index):
            return None
        count, first, last = self._number(index - 1), index - 2, index
        if count is not None and words.near(index + 1) and self._is(index + 1, "recent_after"):
            first, last = index - 1, index + 1
        elif count is not None and words.near(index - 1) and self._is(first, "recent", "within", "since"):
            pass
        elif self._is(index - 1, "recent_inside") and words.near(index - 1):
            count = self._number(first)
        elif self._is(index - 1, "within"):
            count, first = 1, index - 1
        else:
            return None
        if not count:
            return None
        back = count
        return self._counted(
            first, last, None, first, lambda today: in_calendar(lambda: until_today(today, unit, back))
        )

    def _season(self, index: int, name: Season) -> Time | None:
        """A season: "last summer", "in spring", "summer of 2023", "winter last year"."""
        words = self._words
        year, last = self._year_after(index)
        weak = words.entries[index].weak
        if weak and last != index + 1 and not (words.near(index) and words.keys[index - 1] in weak.before):
            return None
        if year is not None:
            of_year = year
            span = in_calendar(lambda: season(name, of_year))
            return self._time(index, last, NamedDate(year))._replace(span=span, is_season=True)
        years, last = self._relative_year_after(index)
        if years is not None:
            back = years
            time = self._counted(
                index, last, None, index, lambda today: in_calendar(lambda: season(name, today.year + back))
            )
            return time._replace(is_season=True)
        direction, first = self._relative(index), index
        if direction is not None:
            first -= words.near(index) and self._is(index - 1, "last", "next", "this")
            last += words.near(index + 1) and self._is(index + 1, "last_after", "next_after", "this_after")
        elif (during := self._during(index, *_BOUNDS)) is not None:
            first = during
        else:
            return None
        time = self._counted(
            first, last, None, first, lambda today: in_calendar(lambda: relative_season(today, name, direction))
        )
        return time._replace(is_season=True)

    def _relative_year_after(self, index: int) -> tuple[int | None, int]:
        """How far the year is that follows a season, and its last word: "(summer) of last year"."""
        words = self._words
        after = index + 1
        while after < index + 3 and words.near(after) and self._is(after, "of", "article"):
            after += 1
        for unit in (after, after + 1):
            if not words.near(unit) or not words.near(after):
                break
            years = self._relative(unit) if words.entry(unit).unit == "year" else None
            if years is not None:
                follows = words.near(unit + 1) and self._is(unit + 1, "last_after", "next_after", "this_after")
                return years, unit + 1 if follows else unit
        return None, index

    def _ago(self, index: int, unit: str) -> Time | None:
        """So many units before now."""
        words = self._words
        count, first = None, index
        before = words.entry(index - 1) if words.near(index) else None
        if before is not None:
            count = self._number(index - 1)
            first = index - 1 if count is not None or "some" in before.kinds else index
        ending = words.entry(index + 1).kinds if words.near(index + 1) else frozenset[str]()
        if (first < index and ending & {"ago", "already"}) or ("ago" in ending and "last_after" not in ending):
            last = index + 1
        elif first < index and words.near(first) and self._is(first - 1, "ago_before"):
            first, last = first - 1, index
        else:
            return None
        if count is None:
            return self._time(first, last, None)
        back = -count
        return self._counted(first, last, None, first, lambda today: _from(today, unit, back))

    def _month(self, index: int, month: int) -> Time | None:
        """A month, with what is said of its day and its year."""
        words = self._words
        day, first = self._day_before(index)
        last, suffixed = index, first < index - 1
        if day is None:
            day, last, suffixed = self._day_after(index)
        year, last = self._year_after(last)
        if words.entries[index].weak and not self._is_month(index, day, year, first, last, suffixed=suffixed):
            return None
        if day is not None and not _is_day(year, month, day):
            return self._time(first, last, None)
        if year is None and day is None and (relative := self._relative(index)) is not None:
            direction = relative
            begins = index - 1 if words.near(index) and self._is(index - 1, "last", "next", "this") else index
            named = NamedDate(None, month)
            return self._counted(first, last, named, begins, lambda today: _of_year(today, month, direction))
        return self._time(first, last, NamedDate(year, month, day))

    def _is_month(
        self, index: int, day: int | None, year: int | None, first: int, last: int, *, suffixed: bool
    ) -> bool:
        """Whether a word that is not always a month is one here."""
        words = self._words
        weak = words.entries[index].weak
        if weak is None or year is not None:
            return True
        introduced = words.near(first) and words.keys[first - 1] in weak.before
        capital = words.is_capital(index)
        if day is None:
            return introduced or (weak.capital and capital)
        follows = words.keys[last + 1] if last + 1 < len(words) else ""
        sure = suffixed or introduced or words.closed(last) or (capital and weak.capital) or follows in weak.after
        return sure or (words.near(first) and self._is(first - 1, "around", "on", "in", "past"))

    def _day_before(self, index: int) -> tuple[int | None, int]:
        """The day in "7 May", "7th of May", "ika-7 ng Mayo", and where it begins."""
        words = self._words
        if index == 0 or words.gap(index) not in ("", "-", "."):
            return None, index
        before = index - 1
        if self._is(before, "of") and words.near(before) and before > 0:
            before -= 1
        if self._is(before, "ordinal") and words.starts[before] == words.ends[before - 1] and before > 0:
            before -= 1
        day = words.figure(before, 1, 31)
        if day is None or before <= self.last or words.starts[before] in self._taken:
            return None, index
        if words.text[words.starts[before] - 1 : words.starts[before]] in ("$", "/", ":", "#", ",", "."):
            return None, index
        return day, before

    def _day_after(self, index: int) -> tuple[int | None, int, bool]:
        """The day in "May 7", "May the 7th", its last word, and whether it is said to be a day."""
        words = self._words
        after = index + 1
        if words.near(after) and self._is(after, "of"):
            after += 1
        day = words.figure(after, 1, 31) if words.near(after) and words.ends[after] - words.starts[after] < 3 else None
        if day is None or words.starts[after] in self._taken:
            return None, index, False
        if after + 1 < len(words) and words.starts[after + 1] == words.ends[after]:
            if self._is(after + 1, "ordinal"):
                return day, after + 1, True
            return None, index, False
        if re.match(r"[:%/]|[.,]\d{1,3}(?!\d)", words.text[words.ends[after] : words.ends[after] + 5]):
            return None, index, False
        return day, after, False

    def _year_after(self, index: int) -> tuple[int | None, int]:
        """The year that follows a month or a day, and its place; otherwise the place that was given."""
        words = self._words
        after = index + 1
        if words.near(after) and self._is(after, "of") and self._words.figure(after + 1, 0, 9999) is not None:
            after += 1
        if after >= len(words) or words.gap(after) not in ("", ",", ".", "-", "'", "\u2019"):
            return None, index
        year = words.figure(after, _FIRST_YEAR, _LAST_YEAR)
        return (None, index) if year is None or words.starts[after] in self._taken else (year, after)

    def _weekday(self, index: int, weekday: int) -> Time | None:
        """A weekday; the last or the next one is a date."""
        words = self._words
        weak = words.entries[index].weak
        if weak:
            introduced = words.near(index) and words.keys[index - 1] in weak.before
            if not (introduced or (weak.capital and words.is_capital(index))):
                return None
        direction = self._relative(index)
        first = index - 1 if words.near(index) and self._is(index - 1, "last", "next", "this", "past") else index
        last = index + 1 if words.near(index + 1) and self._is(index + 1, "last_after", "next_after") else index
        if words.near(index) and self._is(index - 1, "past"):
            direction = -1
        named = NamedDate(weekday=weekday)
        if not direction:
            return self._time(index, last, named)
        toward = direction
        return self._counted(index, last, named, first, lambda today: _weekday(today, weekday, toward))
