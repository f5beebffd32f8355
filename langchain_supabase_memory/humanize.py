"""Counts and durations in words, for terminals, pages and reports."""

from __future__ import annotations

from typing import Final

_UNITS: Final = (("days", 86_400), ("h", 3_600), ("min", 60))


def pluralize(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun, such as `1,200 messages`.

    Args:
        count: The count.
        singular: The noun for one.
        plural: The noun for several; by default the singular with an s.
    """
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def duration(seconds: float) -> str:
    """Return a duration in the largest unit of which there are two, such as `119 s`, `2 min` or `3 days`.

    Args:
        seconds: The duration in seconds.
    """
    for unit, length in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} s"
