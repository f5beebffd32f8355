"""The words of an utterance and their neighbors; determiners before a position, and what stands after it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from langchain_supabase_memory.language.references.lexicon import Word

SPOKEN: Final = frozenset({"said", "asked", "gave", "did_say"})
"""What was said, asked or given."""
NOUNS: Final = frozenset(
    {"turns", "thing", "made", "conversation", "elsewhere", "compound", "unit", "number", "vocative", "hour"}
)
"""What a position before it counts, as it counts any word in no list."""
AROUND: Final = frozenset({"polite", "filler", "question", "particle", "vocative"})
"""What may stand around a reference that is all there is."""
_OPEN: Final = NOUNS | {"glued", "world"}
_CLOSED: Final = frozenset(
    {"function", "copula", "auxiliary", "modal", "question", "coordinator", "polite", "particle", "of", "place", "to"}
    | {"about", "subject", "before", "after", "that", "this", "third", "definite", "like", "filler", "speaker", "actor"}
    | {"time", "late_time", "just", "linker", "limit", "mine", "yours", "correction"}
)
_HEADS: Final = ("turn", "one", "thing", "made")
_ENDS: Final = frozenset(".?!\n")
_FAR: Final = 16
"""How many words back a verb is looked for."""


class Determiner(NamedTuple):
    """What stands before a position.

    Attributes:
        sort: `definite`, `mine`, `yours`, `others`, `indefinite`, `plural`, or `none`.
        start: The place of its first word; the position's own if there is none.
        noun: Whether a noun for a turn stands before the position, tied to it: "tanong kong una".
    """

    sort: str
    start: int
    noun: bool = False


class Head(NamedTuple):
    """What a position counts.

    Attributes:
        sort: `turn`, `one`, `thing`, `made`, or `none`.
        after: The place of the first word after it.
        last: The place of the last word that belongs to the reference.
        whose: `mine`, `yours`, or nothing, by a word after the noun: "tanong ko".
    """

    sort: str
    after: int
    last: int
    whose: str = ""


class Clause:
    """The words of one utterance, and what can be asked of any place among them."""

    def __init__(self, words: list[Word], text: str) -> None:
        self.words = words
        self.text = text

    def _is(self, at: int, *kinds: str) -> bool:
        """Whether there is a word at a place that can play one of these parts."""
        return 0 <= at < len(self.words) and not self.words[at].kinds.isdisjoint(kinds)

    def _follows(self, at: int) -> bool:
        """Whether there is a word at a place, in one clause with the word before."""
        return 0 < at < len(self.words) and not self.words[at].broken

    def _stops(self, at: int) -> bool:
        """Whether the clause ends before a place."""
        return not self._follows(at)

    def _next(self, at: int, *kinds: str) -> bool:
        """Whether the word at a place follows in the clause and can play one of these parts."""
        return self._follows(at) and not self.words[at].kinds.isdisjoint(kinds)

    def _before(self, at: int, *kinds: str) -> bool:
        """Whether the word before a place is in one clause with it and can play one of these parts."""
        return self._follows(at) and not self.words[at - 1].kinds.isdisjoint(kinds)

    def _skip(self, at: int) -> int:
        """The first place from here on that is not merely polite."""
        while self._next(at, "polite", "particle", "vocative"):
            at += 1
        return at

    def _sentence_ends(self, at: int) -> bool:
        """Whether a sentence ends right before a place."""
        return not _ENDS.isdisjoint(self.words[at].gap)

    def _sentence(self, at: int) -> range:
        """The places of the sentence that a place is in."""
        first, end = at, at + 1
        while first > 0 and not self._sentence_ends(first):
            first -= 1
        while end < len(self.words) and not self._sentence_ends(end):
            end += 1
        return range(first, end)

    def _unknown(self, at: int) -> bool:
        """Whether the word at a place is in no list: a noun or a verb of the world."""
        entry = self.words[at].entry
        return not entry.kinds and entry.position is None and entry.time is None

    @cached_property
    def _worldly(self) -> bool:
        """Whether any word of the utterance is in no list."""
        return any(self._unknown(at) for at in range(len(self.words)))

    def _plain(self, start: int) -> bool:
        """Whether nothing of the world stands before a place in its clause."""
        end = max(start - _FAR, 0)
        while start > end and self._follows(start):
            start -= 1
            if self._unknown(start) or self.words[start].kinds & (NOUNS | {"third", "world"}):
                return False
        return True

    def _governed(self, start: int) -> bool:
        """Whether what stands before asks the assistant to do something: "translate the first one"."""
        for place in range(start - 1, max(start - _FAR, 0) - 1, -1):
            if self._sentence_ends(place + 1):
                return False
            if self._is(place, "request", "base"):
                return True
        return False

    def _did(self, verb: int) -> bool:
        """Whether "did" stands before a verb, so that it tells of the past."""
        return any(self._is(each, "did") for each in range(max(verb - 5, 0), verb))

    # -- before a position

    def _determiner(self, at: int) -> Determiner:
        """What stands before a position, or before a noun."""
        sort, start, noun = "none", at, False
        while self._follows(start):
            kinds = self.words[start - 1].kinds
            if "definite" in kinds:
                sort = sort if sort != "none" else "definite"
            elif "mine" in kinds:
                sort = "mine"
            elif "yours" in kinds:
                sort = "yours"
            elif start == at and self._ties_noun(start - 1):
                start, noun = start - (2 if self._before(start - 1, "speaker") else 1), True
            elif "modifier" not in kinds and not self._doubled(start - 1):
                break
            start -= 1
        if sort == "none" and not noun:
            sort = self._unpointing(start)
        return Determiner(sort, start, noun)

    def _unpointing(self, start: int) -> str:
        """What stands before a place where no determiner points: `others`, `indefinite`, `plural`, or `none`."""
        if not self._follows(start):
            return "none"
        before = self.words[start - 1]
        if "others" in before.kinds:
            return "others"
        if "plural" in before.kinds:
            return "plural"
        adjective = before.kinds <= {"function", "filler", "polite", "modifier", "degree"}
        if before.kinds & {"indefinite", "number"} or before.entry.position is not None:
            return "indefinite"  # a second question; my latest third
        return "indefinite" if adjective and self._before(start - 1, "indefinite") else "none"  # a good third question

    def _ties_noun(self, at: int) -> bool:
        """Whether the word at a place ties a noun for a turn to what follows: "tanong *na*", "tanong *kong* una"."""
        word = self.words[at]
        if "linker" in word.kinds and self._before(at, "speaker"):
            at -= 1  # tanong ko na una
        elif "linker" not in word.kinds and not (word.entry.linked and "speaker" in word.kinds):
            return False
        return self._before(at, "turn", "said", "asked")

    def _doubled(self, at: int) -> bool:
        """Whether a position is said twice: "unang-unang tanong"."""
        entry = self.words[at].entry
        return entry.linked and entry.position is not None and entry.position == self.words[at + 1].entry.position

    # -- after a position

    def _end(self, at: int) -> int | None:
        """Where a position is counted from the end: the place of "last" in "second (to the) last"."""
        if self._next(at, "from"):
            at += 1
            while self._next(at, "definite"):
                at += 1
        return at if self._next(at, "end") else None

    def _head(self, at: int, *, linked: bool) -> Head | None:
        """What a position counts, from the place after it on; `None` if that is something of the world."""
        whose, last, soft = "", at - 1, False
        while self._follows(at):
            word, kinds = self.words[at], self.words[at].kinds
            sort = next((each for each in _HEADS if each in kinds), None)
            if sort is None and kinds & SPOKEN and (linked or self._next(at + 1, "speaker")):
                sort = "turn"  # unang sinabi, yung last sent mo
            if sort is not None:
                return self._possessed(sort, at, whose)
            if "linker" in kinds:
                if self._next(at + 1, *_HEADS, *SPOKEN):
                    linked = True
                elif self._follows(at + 1) and (self._unknown(at + 1) or self.words[at + 1].kinds & _OPEN):
                    return None
            elif "speaker" in kinds:
                linked = linked or word.entry.linked
                whose = "mine" if "ko" in kinds else "yours"
            elif "particle" in kinds:
                soft = soft or word.entry.linked
            elif "modifier" not in kinds:
                break
            at += 1
        if linked or (soft and self._follows(at) and self._unknown(at)):
            return None
        return Head("none", at, last, whose)

    def _possessed(self, sort: str, noun: int, whose: str) -> Head:
        """A noun with what belongs to it: "tanong ko po"."""
        at, last = noun + 1, noun
        while self._next(at, "speaker", "particle"):
            if "speaker" in self.words[at].kinds:
                whose, last = "mine" if "ko" in self.words[at].kinds else "yours", at
            at += 1
        return Head(sort, at, last, whose)

    def _bounded(self, at: int) -> bool:
        """Whether the word at a place cannot be what a position before it counts."""
        word = self.words[at]
        if "glued" in word.kinds and self._next(at + 1, "request", "base"):
            return True  # yung fourth pa-elaborate
        if "vocative" in word.kinds and self._stops(at + 1):
            return True  # the second, bro
        counted = word.entry.position is not None and not word.entry.time
        if counted or not word.kinds & _CLOSED or word.kinds & NOUNS:
            return False
        return not ("degree" in word.kinds and self._follows(at + 1) and self._unknown(at + 1))
