"""A text as words: what is known about each, where it stands, and what stands between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.cues.lexicon import FIGURE, NOTHING, lexicon
from langchain_supabase_memory.language.sentences import begins_sentence
from langchain_supabase_memory.language.spelling import WORD, keys

if TYPE_CHECKING:
    from langchain_supabase_memory.language.cues.lexicon import Entry, Lexicon

_WITHIN: Final = frozenset({"", "-", "'", "\u2019", "\u2011", "."})


class Words:
    """The words of a text, those that mean something together as one.

    Attributes:
        text: The text.
        keys: The words as they are compared; of several that are one, the first.
        entries: What is known about each.
        starts: Where each begins.
        ends: Where each ends.
    """

    __slots__ = ("ends", "entries", "keys", "starts", "text")

    def __init__(self, text: str) -> None:
        known = lexicon()
        spans = [match.span() for match in WORD.finditer(text)]
        self.text = text
        self.keys = keys([text[start:end] for start, end in spans])
        self.entries = [known.entries.get(key, NOTHING) for key in self.keys]
        self.starts = [start for start, _ in spans]
        self.ends = [end for _, end in spans]
        for at, key in enumerate(self.keys):
            if key[0].isdecimal():
                self.entries[at] = FIGURE
        self._join(known)

    def _join(self, known: Lexicon) -> None:
        """Make one of the words that mean something together."""
        joined: dict[int, tuple[int, Entry]] = {}
        beyond = 0
        for at, key in enumerate(self.keys):
            if at < beyond or at + 1 == len(self.keys):
                continue
            for rest, entry in known.phrases.get((key, self.keys[at + 1]), ()):
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

    def entry(self, at: int) -> Entry:
        """What is known about the word at a place, or nothing where there is none."""
        return self.entries[at] if 0 <= at < len(self.entries) else NOTHING

    def gap(self, at: int) -> str:
        """What stands before a word, without its space."""
        return self.text[self.ends[at - 1] if at else 0 : self.starts[at]].strip()

    def near(self, at: int) -> bool:
        """Whether there is such a word, and only space, a hyphen or an apostrophe between it and the one before."""
        return 0 < at < len(self.keys) and self.gap(at) in _WITHIN

    def closed(self, at: int) -> bool:
        """Whether a word is the last of its clause."""
        return at + 1 >= len(self.keys) or self.gap(at + 1) not in ("", "'", "\u2019")

    def figure(self, at: int, least: int, most: int) -> int | None:
        """The figure at a place, if it is one and within these bounds."""
        if not 0 <= at < len(self.keys) or self.ends[at] - self.starts[at] > len("2023"):
            return None
        if not self.keys[at].isdecimal():
            return None
        number = int(self.keys[at])
        return number if least <= number <= most else None

    def is_capital(self, at: int) -> bool:
        """Whether a word has a capital and does not owe it to the beginning of a sentence."""
        start = self.starts[at]
        return self.text[start].isupper() and not begins_sentence(self.text, start)
