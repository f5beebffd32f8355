"""JSON encoding and decoding for the database and for values.

Uses `orjson`. What only Python's `json` accepts (an integer beyond 64 bits, a numeric key, half of a surrogate pair
that another client stored) falls back to `json`.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable


class Dumped(list[Any]):
    """Values with their JSON, so that sending them does not encode them again.

    Args:
        values: The values.
        texts: The JSON of each value.
    """

    def __init__(self, values: Iterable[Any], texts: Iterable[bytes]) -> None:
        super().__init__(values)
        self.text = b"[" + b",".join(texts) + b"]"


def loads(text: str | bytes) -> Any:
    """Parse a JSON document.

    Args:
        text: The document; bytes are UTF-8.

    Raises:
        ValueError: The text is not valid JSON.
        RecursionError: The document is nested too deeply.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def mapping(text: str | bytes) -> dict[str, Any] | None:
    """Parse a JSON object that somebody else wrote; `None` if it is not one.

    Args:
        text: The object; bytes are UTF-8.
    """
    try:
        found = loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def dumps(value: Any) -> bytes:
    """Encode a value as JSON in UTF-8.

    Args:
        value: Dicts, lists, strings, numbers, booleans, `None`. NaN and infinity are rejected as direct values of a
            dict; deeper ones become `null`, which callers prevent by tagging them first (`sanitizer.encode`).

    Raises:
        TypeError: The value contains another type.
        ValueError: The value contains half of a surrogate pair (which UTF-8 lacks), NaN or infinity, or itself.
        RecursionError: The value is nested too deeply.
    """
    if isinstance(value, Dumped):
        return value.text
    sent = value
    if isinstance(value, dict):
        if any(type(each) is float and not isfinite(each) for each in value.values()):
            raise ValueError("JSON has no such number")
        sent = {key: orjson.Fragment(each.text) if isinstance(each, Dumped) else each for key, each in value.items()}
    try:
        return orjson.dumps(sent)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
