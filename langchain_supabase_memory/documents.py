"""JSON, in one place: what goes to the database and what comes from it, and what a value takes as JSON.

`orjson` does it. What it refuses and Python's own `json` takes (an integer beyond 64 bits, a key that is a number, half
of a surrogate pair that another client stored) goes that way.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable


class Dumped(list[Any]):
    """Values with their JSON, which is not made again where they are sent.

    Args:
        values: The values.
        texts: The JSON of each.
    """

    def __init__(self, values: Iterable[Any], texts: Iterable[bytes]) -> None:
        super().__init__(values)
        self.text = b"[" + b",".join(texts) + b"]"


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
