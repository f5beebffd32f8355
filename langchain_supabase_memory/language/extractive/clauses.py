"""Split a text into pieces that can be quoted: short paragraphs whole, long ones sentence by sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.sentences import LINES, Span, sentences, trimmed

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST: Final = 280
_WHOLE: Final = 60
_SHORT: Final = 20
_CLAUSES: Final = re.compile(r"(?<=[;,:，；、])\s*|\s+")
_CLAUSE_MARKS: Final = frozenset(";,:，；、")


def split_clauses(text: str) -> Iterator[Span]:
    """Yield the quotable pieces of a text, in order.

    A short paragraph stays whole, since half of it says less than half. A sentence of a few words stays with the next
    one. A piece that is too long is cut between words and marked as cut.
    """
    held: Span | None = None
    for span in sentences(text):
        joined = None
        if held is not None:
            between = text[held.end : span.start]
            joined = None if between.strip() or LINES.sub("", between) else Span(held.start, span.end)
            whole = joined is not None and joined.end - joined.start <= _WHOLE
            short = held.end - held.start < _SHORT or span.end - span.start < _SHORT
            if joined is None or not (whole or short) or joined.end - joined.start > _LONGEST:
                yield from _cut(text, held)
                joined = None
        held = joined or span
    if held is not None:
        yield from _cut(text, held)


def _cut(text: str, span: Span) -> Iterator[Span]:
    """Yield a span in parts that are short enough, cut after a clause or a word."""
    start = span.start
    while span.end - start > _LONGEST:
        least = start + _LONGEST // 2
        breaks = [found.end() for found in _CLAUSES.finditer(text, least, start + _LONGEST) if found.end() > least]
        marked = [at for at in breaks if text[at - 2 : at].rstrip()[-1:] in _CLAUSE_MARKS]
        cut = (marked or breaks or [start + _LONGEST])[-1]
        yield from (_part(each, span, start) for each in trimmed(text, start, cut))
        start = cut
    yield from (_part(each, span, start) for each in trimmed(text, start, span.end))


def _part(clause: Span, span: Span, start: int) -> Span:
    return Span(clause.start, clause.end, start == span.start, clause.end == span.end)
