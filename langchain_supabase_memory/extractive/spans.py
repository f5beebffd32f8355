"""A text as the pieces that can be quoted: short paragraphs whole, long ones sentence by sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.cues.words import begins_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINES: Final = re.compile("[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_ENDS: Final = re.compile("(?<=[.!?…])[\"'”’)\\]*_]*\\s+|(?<=[。！？])[」』”]?|(?<=[؟۔।])\\s+")
_DRESS: Final = re.compile(r"^(?:[-*#>•\u2022|]+\s+|\d{1,2}[.)]\s+)+|^[#>|*_\s]+$")
_LONGEST: Final = 280
_WHOLE: Final = 60
_SHORT: Final = 20
_CLAUSES: Final = re.compile(r"(?<=[;,:，；、])\s*|\s+")
_CLAUSE_MARKS: Final = frozenset(";,:，；、")
_ALNUM: Final = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a text.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        opens: Whether a sentence begins with it, and not with something before it.
        closes: Whether a sentence ends with it.
    """

    start: int
    end: int
    opens: bool = True
    closes: bool = True


def sentences(text: str) -> Iterator[Span]:
    """Every sentence of a text, in order, each on one line; what holds no letter and no figure is left out."""
    for line in _LINES.finditer(text):
        dress = _DRESS.match(line.group())
        start = line.start() + (dress.end() if dress else 0)
        yield from _of_line(text, start, line.end())


def pieces(text: str, longest: int = _LONGEST) -> Iterator[Span]:
    """The pieces of a text that can be quoted, in order.

    A paragraph that is short stays whole, since half of it says less than half. A sentence of a few words stays with
    the one after it. What is longer than a piece may be is cut between its words, and says so.

    Args:
        text: Any text.
        longest: The most characters of a piece.
    """
    held: Span | None = None
    for span in sentences(text):
        joined = None
        if held is not None:
            between = text[held.end : span.start]
            joined = None if between.strip() or _LINES.sub("", between) else Span(held.start, span.end)
            whole = joined is not None and joined.end - joined.start <= _WHOLE
            short = held.end - held.start < _SHORT or span.end - span.start < _SHORT
            if joined is None or not (whole or short) or joined.end - joined.start > longest:
                yield from _cut(text, held, longest)
                joined = None
        held = joined or span
    if held is not None:
        yield from _cut(text, held, longest)


def _of_line(text: str, start: int, end: int) -> Iterator[Span]:
    """The sentences of one line."""
    at = start
    for found in _ENDS.finditer(text, start, end):
        after = found.end()
        if after <= at or after >= end or (text[found.start() - 1] == "." and not begins_sentence(text, after)):
            continue
        yield from _trimmed(text, at, after)
        at = after
    yield from _trimmed(text, at, end)


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    """The span without the space around it, if it says anything."""
    said = text[start:end]
    if _ALNUM.search(said):
        first = start + len(said) - len(said.lstrip())
        yield Span(first, start + len(said.rstrip()))


def _cut(text: str, span: Span, longest: int) -> Iterator[Span]:
    """A span in parts that are short enough, cut after a clause or a word."""
    start = span.start
    while span.end - start > longest:
        least = start + longest // 2
        breaks = [found.end() for found in _CLAUSES.finditer(text, least, start + longest) if found.end() > least]
        marked = [at for at in breaks if text[at - 2 : at].rstrip()[-1:] in _CLAUSE_MARKS]
        cut = (marked or breaks or [start + longest])[-1]
        yield from (_part(each, span, start) for each in _trimmed(text, start, cut))
        start = cut
    yield from (_part(each, span, start) for each in _trimmed(text, start, span.end))


def _part(each: Span, span: Span, start: int) -> Span:
    return Span(each.start, each.end, start == span.start, each.end == span.end)
