"""Limit how much of a message a redactor reads; text beyond the limit is dropped, since it was not searched."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.language.messages.encoded_data import LONGEST, about_size, readable_size
from langchain_supabase_memory.language.messages.sanitizer import TAG, unique_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from langchain_supabase_memory.language.messages.redaction.rules import Span

_SHORT: Final = 1_000
"""A text of at most so many characters is always read: names, ids, short fields."""

_BESIDE: Final = 65_536
"""How many characters on both sides of a cut are searched for a match that it would split."""

_SPACE: Final = re.compile(r"\s")
_STUB: Final = "[… {size} left out: more than is redacted …]"
_ROOM: Final = len(_STUB)


class CharacterLimit:
    """The remaining characters that may be read of one message.

    Args:
        spans: Returns the spans of matches and of existing marks in a text.
        is_unread: Returns whether a text, such as the data URL of an image, is not read at all.
        file: Returns the key of a base64 file in a mapping, and its bytes of text; `None` if there is none.
    """

    def __init__(
        self,
        spans: Callable[[str], Iterable[Span]],
        is_unread: Callable[[str], bool] = lambda text: False,
        file: Callable[[dict[str, Any]], tuple[str, int] | None] = lambda value: None,
    ) -> None:
        self._spans = spans
        self._is_unread = is_unread
        self._file = file
        self._left = LONGEST

    def limit_value(self, value: Any) -> Any:
        """Remove the part of any JSON beyond the limit, with a note of its size; return the same object if all fits."""
        return value if about_size(value) <= LONGEST else self._limited(value)

    def _limited(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._limited(each) for each in value]
        if not isinstance(value, dict):
            return value
        key, size = self._file(value) or (None, 0)
        if size > max(self._left, _SHORT):
            stub = _STUB.format(size=readable_size(size))
            return stub if TAG in value else {"type": "text", "text": stub}
        self._left = max(self._left - size, 0)
        made: dict[str, Any] = {}
        numbers: dict[str, int] = {}
        for name, each in value.items():
            shown = name if len(name) <= _SHORT else unique_key(self._text(name), made, numbers)
            made[shown] = each if name == key else self._limited(each)
        return made

    def _text(self, text: str) -> str:
        if len(text) > _SHORT and self._is_unread(text):
            return text
        if len(text) <= max(self._left, _SHORT):
            self._left = max(self._left - len(text), 0)
            return text
        cut = self._cut(text, self._left - _ROOM)
        self._left = 0
        return f"{text[:cut]}{_STUB.format(size=readable_size(len(text[cut:].encode(errors='replace'))))}"

    def _cut(self, text: str, max_characters: int) -> int:
        """Return where to cut a text so that neither a word nor a match is split."""
        if max_characters < _SHORT or text.lstrip()[:1] in ("{", "["):
            return 0  # escapes in half a document would not be decoded
        begin = max(max_characters - _BESIDE, 0)
        spaces = [found.start() for found in _SPACE.finditer(text, begin, max_characters)]
        cut = spaces[-1] + 1 if spaces else 0
        around = [(begin + start, begin + end) for start, end in self._spans(text[begin : max_characters + _BESIDE])]
        for start, end in sorted(around, reverse=True):
            if start < cut < end:
                cut = start
        return cut


def text_in(encoded: str) -> int:
    """Return the number of bytes of text in base64; 0 if it is not text."""
    try:
        data = base64.b64decode(encoded + "==")  # padding may be missing
        data.decode()
    except (binascii.Error, ValueError):
        return 0
    return len(data)
