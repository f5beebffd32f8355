"""Rows of the SQL functions as values."""

from __future__ import annotations

from dataclasses import MISSING, fields
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

T = TypeVar("T")


def value_of(kind: type[T], row: Mapping[str, Any], **other: Any) -> T:
    """Return a row as a value: the keys that are its fields, with times for `at`, `since` and names in `_at`.

    Args:
        kind: The value's class, a dataclass.
        row: The row.
        other: The fields that the row names or has otherwise.
    """
    found = {name: row[name] for name in kind.__dataclass_fields__ if name in row}  # type: ignore[attr-defined]
    times = {name: time_of(value) for name, value in found.items() if name.endswith("_at") or name in ("at", "since")}
    return kind(**{**found, **times, **other})


def frozen_value(kind: type[T], values: Mapping[str, Any]) -> T:
    """Return a frozen dataclass with these values, in a small part of the time that its `__init__` takes.

    Args:
        kind: A dataclass without slots.
        values: The fields by name: all but those that have their default.
    """
    made = object.__new__(kind)
    # The `__init__` of a frozen class sets each field by a call.
    made.__dict__.update(values)
    for name, factory in _factories(cast("Hashable", kind)):
        if name not in values:
            made.__dict__[name] = factory()
    return made


@cache
def _factories(kind: Any) -> tuple[tuple[str, Callable[[], Any]], ...]:
    """Return the fields of a dataclass whose default is made anew for each value; plain ones stand in its class."""
    return tuple((each.name, each.default_factory) for each in fields(kind) if each.default_factory is not MISSING)


def time_of(text: str | None) -> datetime | None:
    """Return a time that may be null."""
    return None if text is None else datetime.fromisoformat(text)
