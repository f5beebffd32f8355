"""Encode any Python value as what JSON and Postgres can hold, and decode it; both functions are total.

| value | stored as | decoded as |
| --- | --- | --- |
| text | itself | itself |
| NUL in a text | U+FFFD, since Postgres cannot store NUL | U+FFFD |
| a lone surrogate in a text | U+FFFD, since UTF-8 cannot encode it; a surrogate pair becomes its character | the same |
| bool, int, finite float, None, list, dict with text keys | itself | itself |
| NaN, infinities, bytes, bytearray, tuple, set, frozenset, complex | tagged: `{"$python": …, "value": …}` | its equal |
| Decimal, UUID, datetime, date, time, timedelta, an int beyond 64 bits | tagged the same way | an equal value |
| a dict with other keys, or with the key `$python` | tagged, as pairs | an equal dict |
| keys that become equal through U+FFFD | numbered, so that none is lost | a dict with these keys |
| an Enum | its value | its value |
| a pydantic model, a dataclass | its fields | a dict of its fields |
| another object | tagged, with its class name; never its contents | a text that names the class |
| a cycle, or nesting beyond 100 levels | tagged as `cycle` or `depth` | a text that says so |

It never raises, even if accessing the value does.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable, Container

TAG: Final = "$python"
"""The key that marks a tagged value."""

_DEEPEST: Final = 100
# Postgres parses an integer of any size inside `json`; other JSON readers may not.
_MIN_INT: Final = -(2**63)
_MAX_INT: Final = 2**63 - 1
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")

_ENCODERS: Final[dict[type, tuple[str, Callable[[Any], Any]]]] = {
    bytes: ("bytes", lambda v: base64.b64encode(v).decode()),
    bytearray: ("bytearray", lambda v: base64.b64encode(v).decode()),
    datetime: ("datetime", lambda v: v.isoformat()),
    date: ("date", lambda v: v.isoformat()),
    time: ("time", lambda v: v.isoformat()),
    timedelta: ("timedelta", lambda v: [v.days, v.seconds, v.microseconds]),
    Decimal: ("decimal", str),
    UUID: ("uuid", str),
    complex: ("complex", str),
}
_DECODERS: Final[dict[str, Callable[[Any], Any]]] = {
    "bytes": base64.b64decode,
    "bytearray": lambda v: bytearray(base64.b64decode(v)),
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda v: timedelta(*v),
    "decimal": Decimal,
    "uuid": UUID,
    "complex": complex,
    "float": float,
    "int": int,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": dict,
    "object": lambda v: f"<{v}>",
    "cycle": lambda _: "<cycle>",
    "depth": lambda _: "<nested too deeply>",
}


def clean(text: str) -> str:
    """Replace what Postgres cannot store with U+FFFD; return the same object if nothing changes."""
    if "\0" not in text and _is_whole(text):
        return text
    joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _UNSTORABLE.sub("\ufffd", joined)


def _is_whole(text: str) -> bool:
    """Return whether a text has no lone surrogate: then it encodes as UTF-8, which is faster to test."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def encode(value: Any) -> Any:
    """Encode any value as JSON that Postgres can store; see the table at the top of the module. Never raises."""
    return _encode(value, ())


def decode(value: Any) -> Any:
    """Invert `encode`. Unknown values are returned unchanged."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(TAG)
    if isinstance(kind, str) and kind in _DECODERS and value.keys() == {TAG, "value"}:
        try:
            return _DECODERS[kind](decode(value["value"]))
        except (ValueError, TypeError, ArithmeticError):
            return value
    # Most items are scalars or empty structures: skip a call for each, and a copy of their container.
    nested = {key: decode(item) for key, item in value.items() if item and isinstance(item, (dict, list))}
    return {**value, **nested} if nested else value


def _tagged(kind: str, value: Any) -> dict[str, Any]:
    return {TAG: kind, "value": value}


def _encode(value: Any, parents: tuple[int, ...]) -> Any:
    # Exact types first: they are nearly everything, and a subclass may run any code on access.
    kind = type(value)
    if kind is str:
        return clean(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if _MIN_INT <= value <= _MAX_INT else _large(value)
    if kind is float:
        return value if math.isfinite(value) else _tagged("float", repr(value))
    if (kind is dict or kind is list) and not value:
        return kind()
    if kind in _ENCODERS:
        name, encoder = _ENCODERS[kind]
        return _tagged(name, encoder(value))
    if id(value) in parents:
        return _tagged("cycle", None)
    if len(parents) > _DEEPEST:
        return _tagged("depth", None)
    try:
        return _encode_structure(value, (*parents, id(value)))
    except Exception:  # a foreign object may raise on access
        return _tagged("object", clean(kind.__name__))


def _large(value: int) -> Any:
    """Encode an integer beyond 64 bits; return it unchanged if Python refuses to format it, so that sending fails."""
    try:
        return _tagged("int", str(value))
    except ValueError:
        return value


def _keys(value: dict[Any, Any]) -> list[Any]:
    """Return the keys of a mapping with clean texts; keys that become equal get a number, so that none is lost."""
    if all(type(key) is str and clean(key) is key for key in value):
        return [*value]
    taken = {key for key in value if type(key) is str and clean(key) is key}
    numbers: dict[str, int] = {}
    keys: list[Any] = []
    for key in value:
        made = key
        if type(key) is str and key not in taken:
            made = unique_key(clean(key), taken, numbers)
            taken.add(made)
        keys.append(made)
    return keys


def unique_key(key: str, used_keys: Container[str], numbers: dict[str, int]) -> str:
    """Return an unused key: the key itself, or with a number after it.

    Args:
        key: The key.
        used_keys: The existing keys.
        numbers: The last number of each key, so that counting does not restart for many equal keys.
    """
    made = key
    while made in used_keys:
        numbers[key] = numbers.get(key, 1) + 1
        made = f"{key} ({numbers[key]})"
    return made


def _encode_structure(value: Any, parents: tuple[int, ...]) -> Any:
    if isinstance(value, Enum):
        return _encode(value.value, parents)
    if isinstance(value, str):
        return clean(str.__str__(value))
    if isinstance(value, int):
        return _encode(int(value), parents)
    if isinstance(value, float):
        return _encode(float(value), parents)
    if isinstance(value, dict):
        keys = _keys(value)
        if TAG not in keys and all(type(key) is str for key in value):
            return {key: _encode(item, parents) for key, item in zip(keys, value.values(), strict=True)}
        items = zip(keys, value.values(), strict=True)
        return _tagged("dict", [[_encode(key, parents), _encode(item, parents)] for key, item in items])
    if isinstance(value, list):
        return [_encode(item, parents) for item in value]
    for sequence in (tuple, set, frozenset):
        if isinstance(value, sequence):
            return _tagged(sequence.__name__, [_encode(item, parents) for item in value])
    if isinstance(value, BaseModel):
        return _encode({**value.__dict__, **(value.__pydantic_extra__ or {})}, parents)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _encode({field.name: getattr(value, field.name) for field in dataclasses.fields(value)}, parents)
    return _tagged("object", clean(type(value).__name__))
