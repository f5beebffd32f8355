"""A text as words: what is known about each, where it stands, and what stands between."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.query_hints.lexicon import FIGURE, NOTHING, lexicon
from langchain_supabase_memory.language.sentences import begins_sentence
from langchain_supabase_memory.language.spelling import DIGIT, WORD, keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.query_hints.lexicon import HintEntry, HintLexicon

_FIGURES: Final = re.compile(r"\d(?<!\d\d)")  # where each begins
_WITHIN: Final = frozenset({"", "-", "'", "\u2019", "\u2011", "."})


class HintWords:
    """The words of a text, those that mean something together as one.

    Args:
        text: The text.
        compared: Its words as they are compared, where that was done already.

    Attributes:
        text: The text.
        keys: The words as they are compared; of several that are one, the first.
        entries: What is known about each.
    """

    def __init__(self, text: str, compared: list[str] | None = None) -> None:
        known = lexicon()
        self.text = text
        self.keys = keys(WORD.findall(text)) if compared is None else compared
        self.entries = list(map(known.entries.get, self.keys, repeat(NOTHING)))
        if DIGIT.search(text):
            self.entries = [FIGURE if key[0].isdecimal() else self.entries[at] for at, key in enumerate(self.keys)]
        if not known.phrases.keys().isdisjoint(pairwise(self.keys)):
            self._join(known)

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return [match.span() for match in WORD.finditer(self.text)]

    @cached_property
    def starts(self) -> list[int]:
        """Where each word begins."""
        return [start for start, _ in self._spans]

    @cached_property
    def ends(self) -> list[int]:
        """Where each word ends."""
        return [end for _, end in self._spans]

    def _join(self, lexicon: HintLexicon) -> None:
        """Make one of the words that mean something together."""
        joined: dict[int, tuple[int, HintEntry]] = {}
        beyond = 0
        for at, pair in enumerate(pairwise(self.keys)):
            if at < beyond or pair not in lexicon.phrases:
                continue
            for rest, entry in lexicon.phrases[pair]:
                end = at + 2 + len(rest)
                if (*self.keys[at + 2 : end],) == rest and all(self.near(word) for word in range(at + 1, end)):
                    joined[at] = end, entry
                    beyond = end
                    break
        if not joined:
            return
        kept: list[int] = []
        ends: list[int] = []
        at = 0
        while at < len(self.keys):
            end, self.entries[at] = joined.get(at, (at + 1, self.entries[at]))
            kept.append(at)
            ends.append(self.ends[end - 1])
            at = end
        self.keys = [self.keys[at] for at in kept]
        self.entries = [self.entries[at] for at in kept]
        self.starts = [self.starts[at] for at in kept]
        self.ends = ends

    def __len__(self) -> int:
        return len(self.keys)

    def entry(self, index: int) -> HintEntry:
        """What is known about the word at a place, or nothing where there is none."""
        return self.entries[index] if 0 <= index < len(self.entries) else NOTHING

    def gap(self, index: int) -> str:
        """What stands before a word, without its space."""
        return self.text[self.ends[index - 1] if index else 0 : self.starts[index]].strip()

    def near(self, index: int) -> bool:
        """Whether there is such a word, and only space, a hyphen or an apostrophe between it and the one before."""
        return 0 < index < len(self.keys) and self.gap(index) in _WITHIN

    def closed(self, index: int) -> bool:
        """Whether a word is the last of its clause."""
        return index + 1 >= len(self.keys) or self.gap(index + 1) not in ("", "'", "\u2019")

    def matching(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """The matches of a pattern that begins with a figure, as `finditer` finds them."""
        beyond = 0
        for found in _FIGURES.finditer(self.text):
            if (start := found.start()) >= beyond and (match := pattern.match(self.text, start)):
                beyond = match.end()
                yield match

    def figure(self, index: int, minimum: int, maximum: int) -> int | None:
        """The figure at a place, if it is one and within these bounds."""
        if not 0 <= index < len(self.keys) or self.ends[index] - self.starts[index] > len("2023"):
            return None
        if not self.keys[index].isdecimal():
            return None
        number = int(self.keys[index])
        return number if minimum <= number <= maximum else None

    def is_capital(self, index: int) -> bool:
        """Whether a word has a capital and does not owe it to the beginning of a sentence."""
        start = self.starts[index]
        return self.text[start].isupper() and not begins_sentence(self.text, start)
