"""The sentences of a conversation with all that is known about each, read once for every rule of a board."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.dialogue import SPEAKING, greets
from langchain_supabase_memory.language.extractive.phrases import ParsedText
from langchain_supabase_memory.language.extractive.stems import figures, stems
from langchain_supabase_memory.language.query_hints import marks
from langchain_supabase_memory.language.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.effects import TranscriptLine
    from langchain_supabase_memory.language.query_hints import Marks

_MOST: Final = 3000  # more is a document, not a conversation
_LONGEST: Final = 400  # what is longer was pasted, not said
_SOME_DAY: Final = date(2000, 1, 1)


@dataclass(frozen=True, slots=True)
class Sentence:
    """What somebody said in one sentence.

    Attributes:
        place: The line's place among the lines.
        line: The line.
        text: The words, exactly.
        reading: Its words and the phrases in it.
        marks: What it says of itself.
        terms: Its stems and figures.
    """

    place: int
    line: TranscriptLine
    text: str
    reading: ParsedText
    marks: Marks
    terms: frozenset[str]


def sentence(place: int, line: TranscriptLine, text: str) -> Sentence:
    """A piece of a line's text with what is known about it."""
    return Sentence(place, line, text, ParsedText(text), marks(text), frozenset([*stems(text), *figures(text)]))


def day(line: TranscriptLine) -> date:
    """The day on which a line was said; some day, where that is not known."""
    try:
        return datetime.fromisoformat(line.said_at or "").date()
    except ValueError:
        return _SOME_DAY


def utterances(lines: Sequence[TranscriptLine]) -> Iterator[Sentence]:
    """The sentences of the user and the assistant that say or ask something, in order; of very many the latest."""
    for place, line, text in deque(_texts(lines), _MOST):
        if not greets(text):
            yield sentence(place, line, text)


def _texts(lines: Sequence[TranscriptLine]) -> Iterator[tuple[int, TranscriptLine, str]]:
    """The sentences of the speakers with their lines."""
    for place, line in enumerate(lines):
        if line.role not in SPEAKING or "```" in line.text:
            continue
        for span in sentences(line.text):
            if span.end - span.start <= _LONGEST:
                yield place, line, line.text[span.start : span.end]
