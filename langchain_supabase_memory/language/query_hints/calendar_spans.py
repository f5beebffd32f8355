"""Spans of days of the calendar, counted from a day: weeks, weekends, seasons and the days until today.

A function raises `OverflowError` or `ValueError` where its span leaves the calendar; `in_calendar` catches that.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

Season = Literal["spring", "summer", "autumn", "winter"]

_FIRST_MONTHS: Final[dict[str, int]] = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
_DAYS_OF_WEEK: Final = 7
_MONTHS_OF_YEAR: Final = 12
_MONTHS_OF_SEASON: Final = 3


class DateSpan(NamedTuple):
    """Days, both ends included; an end that is None is open.

    Attributes:
        first: The first day.
        last: The last day.
    """

    first: date | None
    last: date | None


def in_calendar(span: Callable[[], DateSpan]) -> DateSpan | None:
    """Return a span, or None if it leaves the calendar."""
    try:
        return span()
    except (OverflowError, ValueError):
        return None


def shifted(day: date, days: int) -> date | None:
    """Return the day so many days from another one, or None if the calendar has none."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None


def week(today: date, weeks: int) -> DateSpan:
    """Return the week, from Monday to Sunday, that is so many weeks from a day's own."""
    monday = today + timedelta(days=_DAYS_OF_WEEK * weeks + 1 - today.isoweekday())
    return DateSpan(monday, monday + timedelta(days=_DAYS_OF_WEEK - 1))


def weekend(today: date, weekends: int) -> DateSpan:
    """Return a weekend: that of a day's week (0), the latest one that is over (-1), or one farther from these."""
    sunday = today + timedelta(days=_DAYS_OF_WEEK * (weekends + 1) - today.isoweekday())
    return DateSpan(sunday - timedelta(days=1), sunday)


def latest_weekend(today: date) -> DateSpan:
    """Return the latest weekend that has begun."""
    return weekend(today, 0 if today.isoweekday() >= _DAYS_OF_WEEK - 1 else -1)


def months(year: int, month: int, count: int = 1) -> DateSpan:
    """Return so many months from one on."""
    end_year, end = divmod(year * _MONTHS_OF_YEAR + month - 1 + count - 1, _MONTHS_OF_YEAR)
    return DateSpan(date(year, month, 1), date(end_year, end + 1, monthrange(end_year, end + 1)[1]))


def season(name: Season, year: int) -> DateSpan:
    """Return a northern season of a year; a winter begins in December."""
    return months(year, _FIRST_MONTHS[name], _MONTHS_OF_SEASON)


def relative_season(today: date, name: Season, direction: int | None) -> DateSpan:
    """Return a season by where it is from a day.

    Args:
        today: The day.
        name: The season.
        direction: -1 for the latest that is over, 0 for the nearest, 1 for the next; None for the latest that has
            begun.
    """
    year = today.year if date(today.year, _FIRST_MONTHS[name], 1) <= today else today.year - 1
    latest = season(name, year)
    over_for = (today - latest.last).days if latest.last is not None else 0
    if direction is None or (direction < 0 < over_for):
        return latest
    if direction < 0:
        return season(name, year - 1)
    following = season(name, year + 1)
    ahead = (following.first - today).days if following.first is not None else 0
    return latest if direction == 0 and over_for <= ahead else following


def until_today(today: date, unit: str, count: int) -> DateSpan:
    """Return the days from so many days, weeks, months or years ago until today."""
    if unit in ("day", "week"):
        return DateSpan(today - timedelta(days=count * (1 if unit == "day" else _DAYS_OF_WEEK)), today)
    earlier = today.year * _MONTHS_OF_YEAR + today.month - 1 - count * (1 if unit == "month" else _MONTHS_OF_YEAR)
    year, month = divmod(earlier, _MONTHS_OF_YEAR)
    return DateSpan(date(year, month + 1, min(today.day, monthrange(year, month + 1)[1])), today)
