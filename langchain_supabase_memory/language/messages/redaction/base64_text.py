"""Find and decode base64 texts within a text."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.messages.redaction.rules import Span

_RUN: Final = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/]{60,}+\r?\n)*+[A-Za-z0-9+/_-]{12,}+={0,2}"
    r"|(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/]{60,}+\r?\n)++[A-Za-z0-9+/]{0,11}={0,2}"
)
_INNER: Final = re.compile(r"(?<=[/_+-])|(?=e[yw]|W[3yw])")
"""Where one may begin within a run: after a character that may be a separator, and where JSON begins."""

_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_URL_SAFE: Final = str.maketrans("-_", "+/")
_BREAKS: Final = str.maketrans("", "", "\r\n")
_SHORTEST: Final = 12
_MAX_BEGINNINGS: Final = 12
_PEEK: Final = 16
_MIN_TEXT_LENGTH: Final = 8


def runs(text: str) -> Iterator[tuple[Span, str]]:
    """Yield every span that may be base64 text, with its decoded text."""
    for run in _RUN.finditer(text):
        if not (run[0].islower() or run[0].isupper()):  # base64 of a text has both cases; a run in one case is a name
            yield from _decode_at(text, *run.span())


def _decode_at(text: str, place: int, end: int) -> Iterator[tuple[Span, str]]:
    """Yield the decoded text of a run, from some of its possible start positions."""
    for _ in range(_MAX_BEGINNINGS):
        if place > end - _SHORTEST:
            return
        said = decode(text[place : place + _PEEK]) and decode(text[place:end])
        if said:
            yield (place, end), said
            place += len(said.encode()) // 3 * 4
        found = _INNER.search(text, place + 1, end)
        if found is None:
            return
        place = found.start()


def decode(encoded: str) -> str | None:
    """Decode the leading text of base64; `None` if it is not text.

    Args:
        encoded: Base64 in either alphabet, with or without padding.
    """
    letters = encoded.translate(_BREAKS).rstrip("=").translate(_URL_SAFE)
    if len(letters) % 4 == 1:
        letters = letters[:-1]
    try:
        data = base64.b64decode(letters + "=" * (-len(letters) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    try:
        text = data.decode("utf-16-le" if data[1:2] == b"\0" and len(data) % 2 == 0 else "utf-8")
    except UnicodeDecodeError as error:
        text = data[: error.start].decode("utf-8", "ignore")
    control = _CONTROL.search(text)
    text = text if control is None else text[: control.start()]
    return text if text and len(text.encode()) >= min(_MIN_TEXT_LENGTH, len(data) // 2) else None
