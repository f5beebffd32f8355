"""How much of a message a redactor reads: what stands behind that is left out, for nobody has looked into it."""

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
"""A text of so many characters is read whatever stood before it: names, ids, short fields."""

_BESIDE: Final = 65_536
"""How many characters on both sides of a cut are searched for what it would cut in two."""

_SPACE: Final = re.compile(r"\s")
_STUB: Final = "[… {size} left out: more than is redacted …]"
_ROOM: Final = len(_STUB)


class CharacterLimit:
    """What is left of the characters that are read of one message.

    Args:
        spans: Where in a text something stands that goes, or that was taken out before.
        is_unread: Whether a text, such as the data URL of an image, is not read at all.
        file: Under which key of a mapping a file in base64 is, and how many bytes of it are text; `None` if it is none.
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
        """Any JSON, with what is beyond the bound left out and its size named; the same object if all is within it."""
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
        """Where a text is cut: where no word is, and nothing that is looked for, is cut in two."""
        if max_characters < _SHORT or text.lstrip()[:1] in ("{", "["):
            return 0  # what is escaped in the half of a document would not be found
        begin = max(max_characters - _BESIDE, 0)
        spaces = [found.start() for found in _SPACE.finditer(text, begin, max_characters)]
        cut = spaces[-1] + 1 if spaces else 0
        around = [(begin + start, begin + end) for start, end in self._spans(text[begin : max_characters + _BESIDE])]
        for start, end in sorted(around, reverse=True):
            if start < cut < end:
                cut = start
        return cut


def text_in(encoded: str) -> int:
    """How many bytes of text base64 says; 0 if it says none."""
    try:
        data = base64.b64decode(encoded + "==")  # which may be left out
        data.decode()
    except (binascii.Error, ValueError):
        return 0
    return len(data)
