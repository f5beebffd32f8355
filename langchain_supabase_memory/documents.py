"""JSON, in one place: what goes to the database and what comes from it, and what a value takes as JSON.

`orjson` does it. What it refuses and Python's own `json` takes (an integer beyond 64 bits, a key that is a number, half
of a surrogate pair that another client stored) goes that way.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import orjson


def loads(text: str | bytes) -> Any:
    """The value of a JSON document.

    Args:
        text: The document; bytes are UTF-8.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It is nested too deeply.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def dumps(value: Any) -> bytes:
    """A value as JSON, in UTF-8.

    Args:
        value: Dicts, lists, texts, numbers, booleans, `None`. Of a dict's own values NaN and infinity are refused;
            deeper they become `null`, where callers have tagged them before (`sanitizer.encode`).

    Raises:
        TypeError: It holds something else.
        ValueError: It holds half of a surrogate pair, which is no UTF-8, a number that is none, or itself.
        RecursionError: It is nested too deeply.
    """
    if isinstance(value, dict) and any(type(each) is float and not isfinite(each) for each in value.values()):
        raise ValueError("JSON has no such number")
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
