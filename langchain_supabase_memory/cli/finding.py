"""Where words stand in what was said, and the words around them."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.cli.look import working
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.invisible import legible
from langchain_supabase_memory.operations.recall import exact_search

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.values import FoundMessage, Role, Scope

_AROUND: Final = 80
"""About so many characters stand before and after the words."""

_MOST_PLACES: Final = 3
"""Of one message, no more places are shown."""

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
        thread_id: The thread of its conversation.
        agent_id: The agent.
        sequence: Its number in the conversation.
        role: Who speaks, in a word.
        said_at: When.
        excerpts: The words, with what stands around them.
    """

    thread_id: str
    agent_id: str
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


def found(memory: SupabaseMemory, scope: Scope, texts: Sequence[str], limit: int) -> Found:
    """The messages that hold every one of some texts, the newest first; one looks until there are enough.

    Args:
        memory: Where.
        scope: In which conversations.
        texts: What to look for. Capitals do not matter.
        limit: The most messages.
    """
    words, hits, read, after = Words(texts), list[Hit](), 0, None
    with working("Looking through what was said …") as say:
        while len(hits) <= limit:
            wanted = exact_search.ExactQuery(texts=texts, limit=min(exact_search.MOST, limit + 1 - len(hits)))
            page = memory.run(exact_search.find_page(scope, wanted, after=after, retention=memory.settings.retention))
            hits += [_hit(each, words) for each in page]
            read, after = read + page.read, page.after
            say(f"Looking through what was said … {read:,} messages")
            if after is None:
                break
    return Found(hits[:limit], is_cut=len(hits) > limit)


def _hit(found: FoundMessage, words: Words) -> Hit:
    stored = found.message
    assert stored.message is not None  # these always come
    assert stored.role is not None
    assert stored.created_at is not None
    text = content.display_text(stored.message)
    excerpts = words.excerpts(text) or [words.excerpt(text, 2 * _AROUND)]
    return Hit(found.thread_id, found.agent_id, stored.sequence, stored.role, stored.created_at, excerpts)


class Words:
    """Words to look for.

    Args:
        texts: Words, or phrases. Capitals do not matter.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        lines = [line for line in map(_line, texts) if line]
        words = sorted({line.casefold(): line for line in lines}.values(), key=len, reverse=True)
        self._any = re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE)

    def excerpts(self, text: str) -> list[Excerpt]:
        """The places of the words in a text, each with what stands around it; none if it does not hold them."""
        line = _line(text)
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
