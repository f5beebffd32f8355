"""Where words stand in what was said, and the words around them."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.cli.look import working
from langchain_supabase_memory.cli.reading import backwards
from langchain_supabase_memory.language.messages.invisible import legible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.values import Role

_AROUND: Final = 80
"""About so many characters stand before and after the words."""

_MOST_PLACES: Final = 3
"""Of one message, no more places are shown."""

_SAID_AFTER: Final = 500  # messages

_SPACES: Final = re.compile(r"\s+")


@dataclass(frozen=True)
class Excerpt:
    """A part of what was said, on one line.

    Attributes:
        text: The words. What is left out before and after them is marked.
        marks: Where in it the words that were looked for stand: the first character, and the one after the last.
    """

    text: str = field(repr=False)
    marks: list[tuple[int, int]]


@dataclass(frozen=True)
class Hit:
    """A message that holds the words.

    Attributes:
        sequence: Its number in the conversation.
        role: Who speaks, in a word.
        said_at: When.
        excerpts: The words, with what stands around them.
    """

    sequence: int
    role: Role
    said_at: datetime
    excerpts: list[Excerpt] = field(repr=False)


@dataclass(frozen=True)
class Found:
    """The messages that hold the words, the newest first.

    Attributes:
        hits: The messages.
        is_cut: Whether there are more.
    """

    hits: list[Hit]
    is_cut: bool


def found(conversation: Conversation, query: str, limit: int) -> Found:
    """The messages of a conversation that hold every word; it is read from its end until there are enough.

    Args:
        conversation: Which conversation.
        query: The words. Capitals do not matter.
        limit: The most messages.
    """
    with working("Looking through the conversation …") as say:
        hits = list(islice(_hits(conversation, Words(query), say), limit + 1))
    return Found(hits[:limit], is_cut=len(hits) > limit)


def _hits(conversation: Conversation, words: Words, say: Callable[[str], None]) -> Iterator[Hit]:
    for message in backwards(conversation, ("role", "created_at", "text")):
        if message.sequence % _SAID_AFTER == 0:
            say(f"Looking through the conversation … {message.sequence:,} messages to go")
        excerpts = words.excerpts(message.text or "")
        if excerpts and message.role and message.created_at:
            yield Hit(message.sequence, message.role, message.created_at, excerpts)


class Words:
    """Words to look for.

    Args:
        typed: What was typed. Capitals do not matter.
    """

    def __init__(self, typed: str) -> None:
        words = sorted({word.casefold(): word for word in _line(typed).split()}.values(), key=len, reverse=True)
        self._each = [re.compile(re.escape(word), re.IGNORECASE) for word in words]
        self._any = re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE)

    def excerpts(self, text: str) -> list[Excerpt]:
        """The places of a text that holds every word, each with what stands around it; none of any other text."""
        line = _line(text)
        if not all(word.search(line) for word in self._each):
            return []
        places = [found.span() for found in self._any.finditer(line)]
        made: list[Excerpt] = []
        end = -1
        for start, _ in places:
            if start < end:
                continue  # it stands in what is shown already
            if len(made) == _MOST_PLACES:
                break
            begin, end = _bounds(line, start)
            made.append(_cut(line, begin, end, places))
        return made

    def excerpt(self, text: str, most: int) -> Excerpt:
        """The beginning of a text, with the places of whatever words it holds.

        Args:
            text: The text.
            most: The most characters of it.
        """
        line = _line(text)
        return _cut(line, 0, min(len(line), most), [found.span() for found in self._any.finditer(line)])


def _line(text: str) -> str:
    """A text as it is looked through and shown: on one line, with all of it seen, each letter in one form."""
    return _SPACES.sub(" ", legible(unicodedata.normalize("NFC", text))).strip()


def _bounds(line: str, place: int) -> tuple[int, int]:
    """What is shown around a place: whole words, where they are of a usual length."""
    begin, end = max(0, place - _AROUND), min(len(line), place + _AROUND)
    blank = line.find(" ", begin, place)
    if begin and blank >= 0:
        begin = blank + 1
    blank = line.rfind(" ", place, end)
    if end < len(line) and blank > place:
        end = blank
    return begin, end


def _cut(line: str, begin: int, end: int, places: Sequence[tuple[int, int]]) -> Excerpt:
    before, after = "…" if begin else "", "…" if end < len(line) else ""
    shift = len(before) - begin
    marks = [(start + shift, min(stop, end) + shift) for start, stop in places if begin <= start < end]
    return Excerpt(f"{before}{line[begin:end]}{after}", marks)
