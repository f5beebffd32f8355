"""Tell whether a question repeats an earlier one of the same user."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import mul
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.sentences import sentences
from langchain_supabase_memory.language.signals.lexicon import signal_words, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

EARLIER: Final = 4
"""How many of the user's newest questions are compared."""

_MOST: Final = 3  # questions of one message
_ENOUGH: Final = 2  # words that tell questions apart; "why?" has one
_LONGEST: Final = 400  # characters of a question
_STEM: Final = 5  # letters: "include" and "included" are one word
_SHARE: Final = 0.8
_ALIKE: Final = 0.9  # cosine
_ALIKE_SHARE: Final = 0.5


@dataclass(frozen=True)
class AskedText:
    """A text of a user that asks something.

    Attributes:
        text: The text, of which foreign parts are masked.
        vector: Its vector, of length one; `None` without an embedder.
        speaker: Who asks, if the message says so.
    """

    text: str
    vector: Sequence[float] | None = None
    speaker: str | None = None

    @cached_property
    def questions(self) -> Sequence[_Question]:
        """Its questions, at most three, in order."""
        spans = [each for each in sentences(self.text) if each.end - each.start <= _LONGEST]
        asked = [each for each in spans if self.text[each.start : each.end].rstrip("\"')\u201d !").endswith("?")]
        return [_Question.of(self.text, each.start, each.end) for each in (asked or spans)[:_MOST]]

    def repeats(self, earlier: AskedText) -> tuple[int, int] | None:
        """Return the place of the question that repeats one of an earlier text; `None` if none does."""
        if self.speaker != earlier.speaker:
            return None
        for each in self.questions:
            if any(each.is_like(other) for other in earlier.questions):
                return each.start, each.end
        if self.vector is None or earlier.vector is None or not self.questions or not earlier.questions:
            return None
        one, other = self.questions[0], earlier.questions[0]
        if len(self.vector) == len(earlier.vector) and one.may_be(other):
            alike = sum(map(mul, self.vector, earlier.vector))
            return (one.start, one.end) if alike >= _ALIKE else None
        return None


@dataclass(frozen=True)
class _Question:
    """A question.

    Attributes:
        start: Where it begins in its text.
        end: Where it ends.
        terms: What tells it from other questions, in order.
        is_directed: Whether the order of its terms matters.
    """

    start: int
    end: int
    terms: tuple[str, ...]
    is_directed: bool

    @classmethod
    def of(cls, text: str, start: int, end: int) -> _Question:
        words = words_of(text[start:end])
        known = signal_words().phrases.known
        terms = tuple(_terms(words))
        directed = any("words.directs" in known.get(word, ()) for word in words)
        return cls(start, end, terms, directed)

    def is_like(self, other: _Question) -> bool:
        """Return whether it has the same words as another question, but for those that tell nothing."""
        mine, others = set(self.terms), set(other.terms)
        shared = len(mine & others)
        if shared < _ENOUGH or not (mine <= others or others <= mine):
            return False
        if self.is_directed or other.is_directed:
            return self.terms == other.terms
        return shared / len(mine | others) >= _SHARE and _figures(mine) == _figures(others)

    def may_be(self, other: _Question) -> bool:
        """Return whether it can mean the same as another question in other words."""
        mine, others = set(self.terms), set(other.terms)
        if min(len(mine), len(others)) <= _ENOUGH or self.is_directed or other.is_directed:
            return False
        return _figures(mine) == _figures(others) and len(mine & others) / len(mine | others) >= _ALIKE_SHARE


def _terms(words: Iterable[str]) -> Iterator[str]:
    known = signal_words().phrases.known
    for word in words:
        plain = word.removesuffix("s") if len(word) > _STEM - 2 else word
        if "words.light" not in known.get(word, ()):
            yield plain[:_STEM] if not plain.isdigit() else word


def _figures(terms: Iterable[str]) -> set[str]:
    return {each for each in terms if any(map(str.isdigit, each))}
