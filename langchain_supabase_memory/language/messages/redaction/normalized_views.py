"""Views of a text for the rules: the text itself, and copies that spell look-alike characters the same."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from langchain_supabase_memory.language.messages.redaction.confusables import ALIKE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.language.messages.redaction.rules import Span

# Unicode's Default_Ignorable_Code_Point: characters without width, soft hyphens, joiners, direction marks.
_UNSEEN: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_ESCAPE: Final = "\\u00"
_RESOLVED: Final = re.compile(rf"[{_UNSEEN}]+|\\{{1,8}}u00(?P<code>[2-7][0-9A-Fa-f])")
_MINUS: Final = "\u2212"
_MAX_KNOWN: Final = 20_000


class TextView(NamedTuple):
    """A text with a mapping of its offsets to the source text.

    Attributes:
        text: The text.
        places: The offsets after each omission or shortening.
        shifts: The shift of all offsets before the first place, from it on, and so on.
    """

    text: str
    places: Sequence[int] = ()
    shifts: Sequence[int] = (0,)

    def span(self, start: int, end: int) -> Span:
        """Return the span in the source text for a span of this text."""
        return start + self.shifts[bisect_right(self.places, start)], end + self.shifts[bisect_right(self.places, end)]


def views(text: str) -> Iterator[TextView]:
    """Yield the text, then the copies of it that differ.

    The copies are: one in common characters; that one without invisible characters and escapes; and that one with Latin
    letters for their look-alikes. All are needed, since an invisible character may be the only separator of two words,
    and look-alikes may be ordinary letters of another language.
    """
    yield TextView(text)
    if text.isascii() and _ESCAPE not in text:
        return
    common = text if text.isascii() else text.translate(_COMMON)
    if common != text:
        yield TextView(common)
    pieces, places, shifts = [], [], [0]
    begin = length = 0
    for found in _RESOLVED.finditer(common):
        piece = common[begin : found.start()] + (chr(int(found["code"], 16)) if found["code"] else "")
        begin, length = found.end(), length + len(piece)
        pieces.append(piece)
        places.append(length)
        shifts.append(begin - length)
    bare = "".join([*pieces, common[begin:]])
    if pieces:
        yield TextView(bare, places, shifts)
    latin = bare.translate(ALIKE)
    if latin != bare:
        yield TextView(latin, places, shifts)


class _Common(dict[int, int]):
    """The common form of each character, computed on demand."""

    def __missing__(self, code: int) -> int:
        form = unicodedata.normalize("NFKC", chr(code))
        made = code if len(form) != 1 or code in ALIKE else _plain(form)
        if len(self) < _MAX_KNOWN:
            self[code] = made
        return made


def _plain(character: str) -> int:
    """Return the ASCII digit, hyphen or space that a character represents, else the character."""
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return ord("0") + digit
    category = unicodedata.category(character)
    if category == "Pd" or character == _MINUS:
        return ord("-")
    return ord(" ") if category == "Zs" else ord(character)


_COMMON: Final = _Common()
