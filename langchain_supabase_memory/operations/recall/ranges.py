"""Time ranges of a question, in the time zone of the person who asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError

TimeRange: TypeAlias = "Literal['today', 'week', 'month', 'all'] | tuple[datetime | None, datetime | None]"
"""`today`, `week`, `month`: the last 1, 7 and 30 days, today included. Or since one instant and before another."""

_FILES: Final = ("localtime", "posix", "posixrules", "right")
"""What the folder of time zones holds beside zones, or a second time; Postgres has none of it."""

_DAYS: Final = {"today": 1, "week": 7, "month": 30}


def zone(name: str | tzinfo | None) -> tzinfo:
    """Return a time zone.

    Args:
        name: Its name, such as `Asia/Manila`, or a `tzinfo`; `None` means UTC.

    Raises:
        InvalidInputError: There is no time zone with this name.
    """
    if name is None:
        return UTC
    if isinstance(name, tzinfo):
        return name
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidInputError("time_zone is not a time zone.", hint="Pass 'Asia/Manila', for example.") from None


def known_zone(name: str | tzinfo | None) -> None:
    """Check the time zone of a setting.

    Raises:
        ConfigurationError: There is no time zone with this name.
    """
    try:
        zone(name)
    except InvalidInputError as error:
        raise ConfigurationError("time_zone is not a time zone.", hint=error.hint) from None


def parse_time(time: str, time_zone: tzinfo) -> str:
    """Convert a time in ISO 8601 to a time zone."""
    return datetime.fromisoformat(time).astimezone(time_zone).isoformat()


def zone_name(now: datetime) -> str:
    """Return a time zone for Postgres: by its name, or by its UTC offset if it has none that Postgres knows.

    Args:
        now: The current time in that time zone.
    """
    key = getattr(now.tzinfo, "key", None)
    if isinstance(key, str) and _is_official(key):
        return key
    minutes = round((now.utcoffset() or timedelta()).total_seconds() / 60)
    hours, rest = divmod(abs(minutes), 60)
    # POSIX offsets count west of Greenwich as positive.
    return f"<zone>{'-' if minutes >= 0 else '+'}{hours:02}:{rest:02}"


def _is_official(key: str) -> bool:
    """Return whether a key is a name of the time zone database, and no file of this machine such as `localtime`."""
    try:
        ZoneInfo(key)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return key.partition("/")[0] not in _FILES


def bounds(range_: TimeRange, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the start and the end of a range.

    Args:
        range_: The range.
        now: The current time, in the time zone of the person who asks.

    Raises:
        InvalidInputError: It is not a range, or one of its times is naive.
    """
    if range_ == "all":
        return None, None
    if isinstance(range_, str) and range_ in _DAYS:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        return midnight - timedelta(days=_DAYS[range_] - 1), None
    if isinstance(range_, (tuple, list)) and len(range_) == 2:
        since, until = range_
        if all(each is None or (isinstance(each, datetime) and each.tzinfo) for each in (since, until)):
            return since, until
    raise InvalidInputError(
        "time_range is not one of the choices.",
        hint="Pass 'today', 'week', 'month', 'all', or two datetimes with a time zone.",
    )
