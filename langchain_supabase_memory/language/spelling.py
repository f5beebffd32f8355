"""Words as they are compared: in one case, without accents; the same for texts and for the entries of data files."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

LETTERS: Final = r"[^\W\d_]+"
"""As a pattern: letters of any script."""

WORD: Final = re.compile(rf"{LETTERS}|\d+")
"""A word or a figure of a text. An apostrophe or a hyphen stands between two words."""

DIGIT: Final = re.compile(r"\d")
"""A figure of any script."""

_MARK: Final = re.compile(r"[\u0300-\u036f]")
_MARKED: Final = re.compile(rf"[^\W\d_]{_MARK.pattern}{{1,4}}")
_LONGEST: Final = 40  # of a word that is known


def comparison_form(text: str) -> tuple[str, ...]:
    """The words of an entry of a file, as they are compared."""
    return tuple(map(key, WORD.findall(text)))


def compose(text: str) -> str:
    """The same text with its accents in its letters, so that they do not end a word."""
    if text.isascii() or not _MARK.search(text):
        return text
    return _MARKED.sub(lambda match: unicodedata.normalize("NFC", match.group()), text)


def keys(words: list[str]) -> list[str]:
    """Words as they are compared: in one case, without accents."""
    joined = "\n".join(words).casefold()
    made = joined.split("\n") if words else []
    return made if joined.isascii() else [word if word.isascii() else key(word) for word in made]


@lru_cache(maxsize=4096)
def key(word: str) -> str:
    """A word as it is compared: in one case, without accents."""
    folded = word.casefold()
    if folded.isascii() or len(folded) > _LONGEST:
        return folded
    letters = (letter for letter in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(letter))
    return "".join(letters).casefold()
