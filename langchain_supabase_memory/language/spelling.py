"""Normalize words for comparison: case-folded, without accents; used for texts and for entries of data files."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

LETTERS: Final = r"[^\W\d_]+"
"""A pattern for letters of any script."""

WORD: Final = re.compile(rf"{LETTERS}|\d+")
"""A word or a number in a text. An apostrophe or a hyphen separates two words."""

DIGIT: Final = re.compile(r"\d")
"""A digit of any script."""

_MARK: Final = re.compile(r"[\u0300-\u036f]")
_MARKED: Final = re.compile(rf"[^\W\d_]{_MARK.pattern}{{1,4}}")
_LONGEST: Final = 40  # characters; longer words are not looked up


def comparison_form(text: str) -> tuple[str, ...]:
    """Return the normalized words of an entry of a file."""
    return tuple(map(key, WORD.findall(text)))


def compose(text: str) -> str:
    """Return the text in composed Unicode form, so that combining accents do not end a word."""
    if text.isascii() or not _MARK.search(text):
        return text
    return _MARKED.sub(lambda match: unicodedata.normalize("NFC", match.group()), text)


def keys(words: list[str]) -> list[str]:
    """Normalize words: case-folded, without accents."""
    joined = "\n".join(words).casefold()
    made = joined.split("\n") if words else []
    return made if joined.isascii() else [word if word.isascii() else key(word) for word in made]


@lru_cache(maxsize=4096)
def key(word: str) -> str:
    """Normalize a word: case-folded, without accents."""
    folded = word.casefold()
    if folded.isascii() or len(folded) > _LONGEST:
        return folded
    letters = (letter for letter in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(letter))
    return "".join(letters).casefold()
