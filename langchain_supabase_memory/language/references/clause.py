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
        kind: `definite`, `mine`, `yours`, `others`, `indefinite`, `plural`, or `none`.
        start: The place of its first word; the position's own if there is none.
        noun: Whether a noun for a turn stands before the position, tied to it: "tanong kong una".
    """

    kind: str
    start: int
    noun: bool = False


class CountedNoun(NamedTuple):
    """What a position counts.

    Attributes:
        kind: `turn`, `one`, `thing`, `made`, or `none`.
        after: The place of the first word after it.
        last: The place of the last word that belongs to the reference.
        owner: `mine`, `yours`, or nothing, by a word after the noun: "tanong ko".
    """

    kind: str
    after: int
    last: int
    owner: str = ""


class Clause:
    """The words of one utterance, and what can be asked of any place among them."""

    def __init__(self, words: list[Word], text: str) -> None:
        self.words = words
        self.text = text

    def _is(self, index: int, *kinds: str) -> bool:
        """Whether there is a word at a place that can play one of these parts."""
        return 0 <= index < len(self.words) and not self.words[index].kinds.isdisjoint(kinds)

    def _follows(self, index: int) -> bool:
        """Whether there is a word at a place, in one clause with the word before."""
        return 0 < index < len(self.words) and not self.words[index].broken

    def _stops(self, index: int) -> bool:
        """Whether the clause ends before a place."""
        return not self._follows(index)

    def _next(self, index: int, *kinds: str) -> bool:
        """Whether the word at a place follows in the clause and can play one of these parts."""
        return self._follows(index) and not self.words[index].kinds.isdisjoint(kinds)

    def _before(self, index: int, *kinds: str) -> bool:
        """Whether the word before a place is in one clause with it and can play one of these parts."""
        return self._follows(index) and not self.words[index - 1].kinds.isdisjoint(kinds)

    def _skip(self, index: int) -> int:
        """The first place from here on that is not merely polite."""
        while self._next(index, "polite", "particle", "vocative"):
            index += 1
        return index

    def _sentence_ends(self, index: int) -> bool:
        """Whether a sentence ends right before a place."""
        return not _ENDS.isdisjoint(self.words[index].gap)

    def _sentence(self, index: int) -> range:
        """The places of the sentence that a place is in."""
        first, end = index, index + 1
        while first > 0 and not self._sentence_ends(first):
            first -= 1
        while end < len(self.words) and not self._sentence_ends(end):
            end += 1
        return range(first, end)

    def _unknown(self, index: int) -> bool:
        """Whether the word at a place is in no list: a noun or a verb of the world."""
        entry = self.words[index].entry
        return not entry.kinds and entry.position is None and entry.time is None

    @cached_property
    def _is_of_the_world(self) -> bool:
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

    def _determiner(self, index: int) -> Determiner:
        """What stands before a position, or before a noun."""
        sort, start, noun = "none", index, False
        while self._follows(start):
            kinds = self.words[start - 1].kinds
            if "definite" in kinds:
                sort = sort if sort != "none" else "definite"
            elif "mine" in kinds:
                sort = "mine"
            elif "yours" in kinds:
                sort = "yours"
            elif start == index and self._links_noun(start - 1):
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

    def _links_noun(self, index: int) -> bool:
        """Whether the word at a place ties a noun for a turn to what follows: "tanong *na*", "tanong *kong* una"."""
        word = self.words[index]
        if "linker" in word.kinds and self._before(index, "speaker"):
            index -= 1  # tanong ko na una
        elif "linker" not in word.kinds and not (word.entry.linked and "speaker" in word.kinds):
            return False
        return self._before(index, "turn", "said", "asked")

    def _doubled(self, index: int) -> bool:
        """Whether a position is said twice: "unang-unang tanong"."""
        entry = self.words[index].entry
        return entry.linked and entry.position is not None and entry.position == self.words[index + 1].entry.position

    # -- after a position

    def _end(self, index: int) -> int | None:
        """Where a position is counted from the end: the place of "last" in "second (to the) last"."""
        if self._next(index, "from"):
            index += 1
            while self._next(index, "definite"):
                index += 1
        return index if self._next(index, "end") else None

    def _head(self, index: int, *, linked: bool) -> CountedNoun | None:
        """What a position counts, from the place after it on; `None` if that is something of the world."""
        whose, last, soft = "", index - 1, False
        while self._follows(index):
            word, kinds = self.words[index], self.words[index].kinds
            sort = next((each for each in _HEADS if each in kinds), None)
            if sort is None and kinds & SPOKEN and (linked or self._next(index + 1, "speaker")):
                sort = "turn"  # unang sinabi, yung last sent mo
            if sort is not None:
                return self._possessed(sort, index, whose)
            if "linker" in kinds:
                if self._next(index + 1, *_HEADS, *SPOKEN):
                    linked = True
                elif self._follows(index + 1) and (self._unknown(index + 1) or self.words[index + 1].kinds & _OPEN):
                    return None
            elif "speaker" in kinds:
                linked = linked or word.entry.linked
                whose = "mine" if "ko" in kinds else "yours"
            elif "particle" in kinds:
                soft = soft or word.entry.linked
            elif "modifier" not in kinds:
                break
            index += 1
        if linked or (soft and self._follows(index) and self._unknown(index)):
            return None
        return CountedNoun("none", index, last, whose)

    def _possessed(self, sort: str, noun: int, owner: str) -> CountedNoun:
        """A noun with what belongs to it: "tanong ko po"."""
        at, last = noun + 1, noun
        while self._next(at, "speaker", "particle"):
            if "speaker" in self.words[at].kinds:
                owner, last = "mine" if "ko" in self.words[at].kinds else "yours", at
            at += 1
        return CountedNoun(sort, at, last, owner)

    def _cannot_be_counted(self, index: int) -> bool:
        """Whether the word at a place cannot be what a position before it counts."""
        word = self.words[index]
        if "glued" in word.kinds and self._next(index + 1, "request", "base"):
            return True  # yung fourth pa-elaborate
        if "vocative" in word.kinds and self._stops(index + 1):
            return True  # the second, bro
        counted = word.entry.position is not None and not word.entry.time
        if counted or not word.kinds & _CLOSED or word.kinds & NOUNS:
            return False
        return not ("degree" in word.kinds and self._follows(index + 1) and self._unknown(index + 1))
