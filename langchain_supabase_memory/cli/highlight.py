"""Excerpts of a text around the words of a search query."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from rich.text import Text

from langchain_supabase_memory.language.messages.invisible import legible

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTEXT_CHARACTERS: Final = 80
"""The approximate number of characters that an excerpt shows before and after a word."""

_MAX_EXCERPTS: Final = 3
"""The maximum number of excerpts per text."""

_SPACES: Final = re.compile(r"\s+")
_STYLE_MATCH: Final = "bold black on yellow"


class Highlighter:
    """Find words in texts, ignoring case.

    Args:
        texts: Words or phrases.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        lines = {line.casefold(): line for line in map(_normalize, texts) if line}
        self._words = sorted(lines.values(), key=len, reverse=True)  # a phrase matches before its words
        self._pattern = re.compile("|".join(map(re.escape, self._words)), re.IGNORECASE)

    def excerpts(self, text: str) -> list[str]:
        """Return an excerpt around each match, each on one line; an empty list without a match."""
        line = _normalize(text)
        result: list[str] = []
        end = -1
        for match in self._pattern.finditer(line):
            if match.start() < end:
                continue  # the previous excerpt shows it
            if len(result) == _MAX_EXCERPTS:
                break
            begin, end = _bounds(line, match.start())
            result.append(_cut(line, begin, end))
        return result

    def excerpt(self, text: str, limit: int) -> str:
        """Return the beginning of a text, on one line.

        Args:
            text: The text.
            limit: The maximum number of characters.
        """
        line = _normalize(text)
        return _cut(line, 0, min(len(line), limit))

    def mark(self, excerpt: str) -> Text:
        """Highlight the words in an excerpt."""
        text = Text(excerpt)
        text.highlight_words(self._words, _STYLE_MATCH, case_sensitive=False)
        return text


def _normalize(text: str) -> str:
    """Put a text on one line, in Unicode NFC, with invisible characters as their codes."""
    return _SPACES.sub(" ", legible(unicodedata.normalize("NFC", text))).strip()


def _bounds(line: str, position: int) -> tuple[int, int]:
    """Return the bounds of the excerpt around a position, at word boundaries if there are any nearby."""
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
