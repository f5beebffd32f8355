"""Excerpts of a text around the words of a search."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from rich.text import Text

from langchain_supabase_memory.language.messages.invisible import legible

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTEXT_CHARACTERS: Final = 80
"""About how many characters an excerpt shows before and after a word."""

_MAX_EXCERPTS: Final = 3
"""The most excerpts of a text."""

_SPACES: Final = re.compile(r"\s+")
_STYLE_MATCH: Final = "bold black on yellow"


class Highlighter:
    """Finds words in texts, whatever their capitals.

    Args:
        texts: Words or phrases.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        lines = {line.casefold(): line for line in map(_normalize, texts) if line}
        self._words = sorted(lines.values(), key=len, reverse=True)  # a phrase goes before its words
        self._pattern = re.compile("|".join(map(re.escape, self._words)), re.IGNORECASE)

    def excerpts(self, text: str) -> list[str]:
        """Cut out the words with their context, each on one line; an empty list if the text does not hold them."""
        line = _normalize(text)
        result: list[str] = []
        end = -1
        for match in self._pattern.finditer(line):
            if match.start() < end:
                continue  # the excerpt before shows it
            if len(result) == _MAX_EXCERPTS:
                break
            begin, end = _bounds(line, match.start())
            result.append(_cut(line, begin, end))
        return result

    def excerpt(self, text: str, limit: int) -> str:
        """Cut out the beginning of a text, on one line.

        Args:
            text: The text.
            limit: The most characters.
        """
        line = _normalize(text)
        return _cut(line, 0, min(len(line), limit))

    def mark(self, excerpt: str) -> Text:
        """Mark the words in an excerpt."""
        text = Text(excerpt)
        text.highlight_words(self._words, _STYLE_MATCH, case_sensitive=False)
        return text


def _normalize(text: str) -> str:
    """Put a text on one line, with invisible characters as their codes and each letter in one form."""
    return _SPACES.sub(" ", legible(unicodedata.normalize("NFC", text))).strip()


def _bounds(line: str, position: int) -> tuple[int, int]:
    """The excerpt around a position, cut between words if they have a usual length."""
    begin, end = max(0, position - CONTEXT_CHARACTERS), min(len(line), position + CONTEXT_CHARACTERS)
    blank = line.find(" ", begin, position)
    if begin and blank >= 0:
        begin = blank + 1
    blank = line.rfind(" ", position, end)
    if end < len(line) and blank > position:
        end = blank
    return begin, end


def _cut(line: str, begin: int, end: int) -> str:
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"
