"""Query the words around a position in an utterance: the determiner before it, and the noun after it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from langchain_supabase_memory.language.references.lexicon import Word

SPOKEN: Final = frozenset({"said", "asked", "gave", "did_say"})
"""Verbs of saying, asking and giving."""
NOUNS: Final = frozenset(
    {"turns", "thing", "made", "conversation", "elsewhere", "compound", "unit", "number", "vocative", "hour"}
)
"""What a position before it counts; a word in no list counts too."""
AROUND: Final = frozenset({"polite", "filler", "question", "particle", "vocative"})
"""Words that may surround a reference that is the whole utterance."""
_OPEN: Final = NOUNS | {"glued", "world"}
_CLOSED: Final = frozenset(
    {"function", "copula", "auxiliary", "modal", "question", "coordinator", "polite", "particle", "of", "place", "to"}
    | {"about", "subject", "before", "after", "that", "this", "third", "definite", "like", "filler", "speaker", "actor"}
    | {"time", "late_time", "just", "linker", "limit", "mine", "yours", "correction"}
)
_HEADS: Final = ("turn", "one", "thing", "made")
_ENDS: Final = frozenset(".?!\n")
_FAR: Final = 16
"""How many words back to look for a verb."""


class Determiner(NamedTuple):
    """The determiner of a position.

    Attributes:
        kind: `definite`, `mine`, `yours`, `others`, `indefinite`, `plural`, or `none`.
        start: The index of its first word; the position's own if there is none.
        noun: Whether a noun for a turn precedes the position and is linked to it: "tanong kong una".
    """

    kind: str
    start: int
    noun: bool = False


class CountedNoun(NamedTuple):
    """The noun that a position counts.

    Attributes:
        kind: `turn`, `one`, `thing`, `made`, or `none`.
        after: The index of the first word after it.
        last: The index of the last word of the reference.
        owner: `mine`, `yours`, or empty, by a word after the noun: "tanong ko".
    """

    kind: str
    after: int
    last: int
    owner: str = ""


class Clause:
    """The words of one utterance, with queries about any index in it."""

    def __init__(self, words: list[Word], text: str) -> None:
        self.words = words
        self.text = text

    def _is(self, index: int, *kinds: str) -> bool:
        """Return whether the word at an index exists and has one of these kinds."""
        return 0 <= index < len(self.words) and not self.words[index].kinds.isdisjoint(kinds)

    def _follows(self, index: int) -> bool:
        """Return whether the word at an index exists and continues the clause of the word before."""
        return 0 < index < len(self.words) and not self.words[index].broken

    def _stops(self, index: int) -> bool:
        """Return whether the clause ends before an index."""
        return not self._follows(index)

    def _next(self, index: int, *kinds: str) -> bool:
        """Return whether the word at an index continues the clause and has one of these kinds."""
        return self._follows(index) and not self.words[index].kinds.isdisjoint(kinds)

    def _before(self, index: int, *kinds: str) -> bool:
        """Return whether the word before an index is in the same clause and has one of these kinds."""
        return self._follows(index) and not self.words[index - 1].kinds.isdisjoint(kinds)

    def _skip(self, index: int) -> int:
        """Return the first index from here on that is not a polite filler."""
        while self._next(index, "polite", "particle", "vocative"):
            index += 1
        return index

    def _sentence_ends(self, index: int) -> bool:
        """Return whether a sentence ends right before an index."""
        return not _ENDS.isdisjoint(self.words[index].gap)

    def _sentence(self, index: int) -> range:
        """Return the indexes of the sentence that contains an index."""
        first, end = index, index + 1
        while first > 0 and not self._sentence_ends(first):
            first -= 1
        while end < len(self.words) and not self._sentence_ends(end):
            end += 1
        return range(first, end)

    def _unknown(self, index: int) -> bool:
        """Return whether the word at an index is in no list: an ordinary noun or verb."""
        entry = self.words[index].entry
        return not entry.kinds and entry.position is None and entry.time is None

    @cached_property
    def _is_of_the_world(self) -> bool:
        """Whether any word of the utterance is in no list."""
        return any(self._unknown(at) for at in range(len(self.words)))

    def _plain(self, start: int) -> bool:
        """Return whether no ordinary word precedes an index in its clause."""
        end = max(start - _FAR, 0)
        while start > end and self._follows(start):
            start -= 1
            if self._unknown(start) or self.words[start].kinds & (NOUNS | {"third", "world"}):
                return False
        return True

    def _governed(self, start: int) -> bool:
        """Return whether the preceding words ask the assistant to do something: "translate the first one"."""
        for place in range(start - 1, max(start - _FAR, 0) - 1, -1):
            if self._sentence_ends(place + 1):
                return False
            if self._is(place, "request", "base"):
                return True
        return False

    def _did(self, verb: int) -> bool:
        """Return whether "did" precedes a verb and makes it past tense."""
        return any(self._is(each, "did") for each in range(max(verb - 5, 0), verb))

    # -- before a position

    def _determiner(self, index: int) -> Determiner:
        """Return the determiner before a position or a noun."""
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
        """Return the kind of the word before an index without determiner: `others`, `indefinite`, `plural`, `none`."""
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
        """Return whether a word links a noun for a turn to what follows: "tanong *na*", "tanong *kong* una"."""
        word = self.words[index]
        if "linker" in word.kinds and self._before(index, "speaker"):
            index -= 1  # tanong ko na una
        elif "linker" not in word.kinds and not (word.entry.linked and "speaker" in word.kinds):
            return False
        return self._before(index, "turn", "said", "asked")

    def _doubled(self, index: int) -> bool:
        """Return whether a position is repeated: "unang-unang tanong"."""
        entry = self.words[index].entry
        return entry.linked and entry.position is not None and entry.position == self.words[index + 1].entry.position

    # -- after a position

    def _end(self, index: int) -> int | None:
        """Return the index of "last" if a position is counted from the end: "second (to the) last"."""
        if self._next(index, "from"):
            index += 1
            while self._next(index, "definite"):
                index += 1
        return index if self._next(index, "end") else None

    def _head(self, index: int, *, linked: bool) -> CountedNoun | None:
        """Return the noun that a position counts, from the index after it; `None` if it is an ordinary noun."""
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
        """Return a noun with its owner: "tanong ko po"."""
        at, last = noun + 1, noun
        while self._next(at, "speaker", "particle"):
            if "speaker" in self.words[at].kinds:
                owner, last = "mine" if "ko" in self.words[at].kinds else "yours", at
            at += 1
        return CountedNoun(sort, at, last, owner)

    def _cannot_be_counted(self, index: int) -> bool:
        """Return whether a position before the word at an index cannot count it."""
        word = self.words[index]
        if "glued" in word.kinds and self._next(index + 1, "request", "base"):
            return True  # yung fourth pa-elaborate
        if "vocative" in word.kinds and self._stops(index + 1):
            return True  # the second, bro
        counted = word.entry.position is not None and not word.entry.time
        if counted or not word.kinds & _CLOSED or word.kinds & NOUNS:
            return False
        return not ("degree" in word.kinds and self._follows(index + 1) and self._unknown(index + 1))
