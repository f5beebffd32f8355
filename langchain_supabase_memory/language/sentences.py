"""Find sentence boundaries, for quoting, splitting, counting and finding names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

LINES: Final = re.compile("[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
"""The lines of a text."""

# Every mark is in the leading set: a pattern that begins with a character set is the fastest.
_ENDS: Final = re.compile("[.!?…。！？؟۔।](?:(?<=[.!?…])[\"'”’»)\\]*_]*\\s+|(?<=[。！？])[」』”]?|(?<=[؟۔।])\\s+)")
_DRESS: Final = re.compile(r"^\s*(?:[-*#>•\u2022|]+\s+|\d{1,2}[.)]\s+)+|^[#>|*_\s]+$")
_ALNUM: Final = re.compile(r"[^\W_]")
_BEFORE: Final = frozenset(
    '.!?\u2026\u00bf\u00a1:;\n\r\u3002\uff01\uff1f\u061f\u2022"\u201c\u201d\u00ab\u00bb()[]*\u2014'
)
_SHORTENED: Final = frozenset(
    {"dr", "mr", "mrs", "ms", "prof", "sr", "jr", "st", "sra", "dra", "e.g", "i.e", "vs", "approx", "z.b", "p.ej"}
)
_MAY_END: Final = frozenset({"a.m", "p.m", "etc", "usw"})  # may end a sentence if no lowercase letter follows
_BEFORE_FIGURE: Final = frozenset({"no", "nos", "nr", "pp"})
_LONGEST: Final = 6


class Span(NamedTuple):
    """A piece of a text.

    Attributes:
        start: Its start.
        end: Its end.
        opens: Whether it includes the start of a sentence.
        closes: Whether it includes the end of a sentence.
    """

    start: int
    end: int
    opens: bool = True
    closes: bool = True


def sentences(text: str) -> Iterator[Span]:
    """Yield every sentence of a text, in order, each on one line; one without a letter or digit is skipped.

    List and heading marks before a sentence are not part of it.
    """
    for line in LINES.finditer(text):
        dress = _DRESS.match(line.group())
        at = line.start() + (dress.end() if dress else 0)
        for end in sentence_ends(text, at, line.end()):
            yield from trimmed(text, at, end)
            at = end
        yield from trimmed(text, at, line.end())


def sentence_ends(text: str, start: int = 0, end: int | None = None) -> Iterator[int]:
    """Yield the sentence ends inside a text: the offsets after the mark, its quotes and the space after it.

    Args:
        text: Any text.
        start: Where to begin.
        end: Where to stop, which does not itself count as a sentence end; the end of the text by default.
    """
    end = len(text) if end is None else end
    for found in _ENDS.finditer(text, start, end):
        after = found.end()
        if start < after < end and (text[found.start()] != "." or begins_sentence(text, after)):
            yield after


def begins_sentence(text: str, start: int) -> bool:
    """Return whether the word at a place begins a sentence, a quotation, a line or a parenthesis."""
    at = start - 1
    while at >= 0 and not text[at].isalnum():
        if text[at] in _BEFORE:
            return text[at] != "." or not _shortens(text, at, start)
        at -= 1
    return at < 0


def trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the span without surrounding space, if it has content."""
    said = text[start:end]
    if _ALNUM.search(said):
        first = start + len(said) - len(said.lstrip())
        yield Span(first, start + len(said.rstrip()))


def _shortens(text: str, dot: int, after: int) -> bool:
    """Return whether a period belongs to a title, an initial or an abbreviation: "Dr. Lee", "9 a.m. and"."""
    at = dot
    while at and dot - at <= _LONGEST and (text[at - 1].isalpha() or (text[at - 1] == "." and at < dot)):
        at -= 1
    word = text[at:dot].lstrip(".")
    folded = word.casefold()
    if folded in _SHORTENED or (re.fullmatch(r"(?:.\.)*.", word) and word.isupper()):
        return True
    follows = text[after : after + 1]
    return (folded in _MAY_END and follows.islower()) or (folded in _BEFORE_FIGURE and follows.isdecimal())
