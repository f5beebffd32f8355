"""Split long texts at sentence ends, so that each part fits an embedder and makes sense alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.sentences import sentence_ends
from langchain_supabase_memory.language.tokens import count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _after(mark: str) -> Callable[[str], Iterator[int]]:
    """Return a function that finds the end of every match of a pattern."""
    find = re.compile(mark).finditer
    return lambda text: (found.end() for found in find(text))


# A paragraph, a line, a sentence, a word: the first one that gives short enough pieces is used.
_BREAKS: Final = (_after(r"\n\s*\n"), _after(r"\n"), sentence_ends, _after(r"\s+"))


def parts(text: str, max_tokens: int, count: Callable[[str], int] = count_tokens) -> list[str]:
    """Split a text into parts of at most `max_tokens` tokens.

    Args:
        text: Any text.
        max_tokens: The maximum number of tokens in one part.
        count: Counts the tokens of a text.

    Returns:
        The parts in order, at least one nonblank part unless the text is blank. Only white space between parts is lost.
    """
    made: list[str] = []
    start = size = 0
    for first, end, tokens in _pieces(text, max_tokens, count, 0):
        if made and text[first - 1].islower() and text[first].isupper():
            tokens += 1  # a capital inside a word counts more, and the split hid that
        if made and size + tokens <= max_tokens:
            size += tokens
            made[-1] = text[start:end]
        else:
            start, size = first, tokens
            made.append(text[start:end])
    return [part.strip() for part in made if part.strip()]


def _pieces(
    text: str, max_characters: int, count: Callable[[str], int], level: int, offset: int = 0
) -> Iterator[tuple[int, int, int]]:
    """Yield the start, end and token count of pieces that are short enough, split at the widest possible break."""
    tokens = count(text)
    if tokens <= max_characters:
        if text.strip():
            yield offset, offset + len(text), tokens
        return
    if level == len(_BREAKS):
        # One word is longer than a part: split by characters, since no character takes more than four tokens.
        step = max(1, max_characters // 4)
        for first in range(0, len(text), step):
            piece = text[first : first + step]
            yield offset + first, offset + first + len(piece), count(piece)
        return
    at = 0
    for end in _BREAKS[level](text):
        if end > at:
            yield from _pieces(text[at:end], max_characters, count, level + 1, offset + at)
            at = end
    yield from _pieces(text[at:], max_characters, count, level + 1, offset + at)
