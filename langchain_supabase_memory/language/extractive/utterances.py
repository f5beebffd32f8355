"""Parse the sentences of a conversation once for all rules of a board."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.dialogue import SPEAKING, greets, is_prose
from langchain_supabase_memory.language.extractive.phrases import ParsedText
from langchain_supabase_memory.language.extractive.stems import figures, stems
from langchain_supabase_memory.language.query_hints import marks
from langchain_supabase_memory.language.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.effects import TranscriptLine
    from langchain_supabase_memory.language.query_hints import Marks

_MAX_SENTENCES: Final = 3000  # more is a document, not a conversation
_LONGEST: Final = 400  # a longer sentence was pasted
_SOME_DAY: Final = date(2000, 1, 1)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a speaker.

    Attributes:
        place: The index of its line.
        line: The line.
        text: The exact text.
        reading: Its words and phrases.
        marks: Its features.
        terms: Its stems and figures.
    """

    place: int
    line: TranscriptLine
    text: str
    reading: ParsedText
    marks: Marks
    terms: frozenset[str]

    @property
    def is_prose(self) -> bool:
        """Whether it is running text: no heading, label, form, formula or example."""
        return is_prose(self.text, self.line.role)


def sentence(place: int, line: TranscriptLine, text: str) -> Sentence:
    """Return a piece of a line's text as a parsed sentence."""
    return Sentence(place, line, text, ParsedText(text), marks(text), frozenset([*stems(text), *figures(text)]))


def day(line: TranscriptLine) -> date:
    """Return the day of a line; a fixed day if it is unknown."""
    try:
        return datetime.fromisoformat(line.said_at or "").date()
    except ValueError:
        return _SOME_DAY


def utterances(lines: Sequence[TranscriptLine]) -> Iterator[Sentence]:
    """Yield the statements and questions of the user and the assistant, in order; of too many, only the latest."""
    for place, line, text in deque(_texts(lines), _MAX_SENTENCES):
        if not greets(text):
            yield sentence(place, line, text)


def _texts(lines: Sequence[TranscriptLine]) -> Iterator[tuple[int, TranscriptLine, str]]:
    """Yield the sentences of the speakers with their lines."""
    for place, line in enumerate(lines):
        if line.role not in SPEAKING or "```" in line.text:
            continue
        for span in sentences(line.text):
            if span.end - span.start <= _LONGEST:
                yield place, line, line.text[span.start : span.end]
