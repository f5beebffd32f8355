"""Fold a text for comparison: one case, no accents, one kind of hyphen, apostrophe, space and digit, with offsets."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

REACH: Final = 500
"""How many characters at each end of a text are read. The middle of a longer one is content, not a reference.

This also bounds the work for any input.
"""

_SPECIAL: Final = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bb\u02bc\u02b9\u2032\u00b4`\uff07\ua78c", "'"),
    **dict.fromkeys("\u2014\u2015\u2e3a\u2e3b", " - "),
    **dict.fromkeys("\u2212\u2043\u02d7\u2796", "-"),
    **dict.fromkeys("\n\r\v\f\x85\u2028\u2029", "\n"),
}


class _Folded(dict[int, str]):
    """The folded form of each character, computed on demand."""

    def __missing__(self, code: int) -> str:
        if len(self) > 20_000:  # more than any language needs; bounds the cache
            self.clear()
        made = self[code] = _fold(chr(code))
        return made


def _fold(character: str) -> str:
    if (special := _SPECIAL.get(character)) is not None:
        return special
    kept: list[str] = []
    for part in unicodedata.normalize("NFKD", character):
        kind = unicodedata.category(part)
        if part in _SPECIAL:
            kept.append(_SPECIAL[part])
        elif kind[0] == "M" or kind == "Cf":
            continue  # accents and invisible characters
        elif kind == "Nd":
            kept.append(str(unicodedata.decimal(part)))
        elif kind == "Pd":
            kept.append("-")
        elif kind[0] == "Z" or kind == "Cc":
            kept.append(" ")
        else:
            kept.append(part.casefold())
    return "".join(kept)


_FOLDED: Final = _Folded()
_ASCII: Final = {code: _fold(chr(code)) for code in range(128)}


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text.

    Attributes:
        text: The folded text.
        origin: For every character of `text`, its offset in the original.
    """

    text: str
    origin: Sequence[int]


def fold(text: str) -> Folded:
    """Fold a text, whatever it holds: lone surrogates, NUL, emoji, a hundred thousand characters.

    Args:
        text: Any string; of a long one the first and the last `REACH` characters are kept, separated by a line break.
    """
    shown = text
    places: Sequence[int] = range(len(text))
    if len(text) > 2 * REACH:
        shown = f"{text[:REACH]}\n{text[-REACH:]}"
        places = [*range(REACH + 1), *range(len(text) - REACH, len(text))]
    if shown.isascii():  # ASCII folds one to one
        return Folded(shown.translate(_ASCII), places)
    folded: list[str] = []
    origin: list[int] = []
    for place, character in zip(places, shown, strict=True):
        part = _FOLDED[ord(character)]
        folded.append(part)
        origin.extend([place] * len(part))
        if len(origin) > 4 * REACH:  # characters that each fold to many
            break
    return Folded("".join(folded), origin)
