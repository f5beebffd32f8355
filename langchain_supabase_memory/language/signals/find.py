"""Find the signals that a user's words give, each with its place, without a model."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from langchain_supabase_memory.language.extractive.profile.mask import MASK, own_words
from langchain_supabase_memory.language.messages import fence
from langchain_supabase_memory.language.sentences import sentences
from langchain_supabase_memory.language.signals.lexicon import WORD, normalize, signal_words
from langchain_supabase_memory.values import Signal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.language.extractive.phrases import FoundPhrase

LONGEST_QUOTE: Final = 200
"""The maximum number of characters of a quote."""

_LONGEST: Final = 400  # characters; a longer sentence was pasted
_FEW: Final = 4  # words of a question that only says "what?"
_NEAR: Final = 4  # words between two that count together
_BREAK: Final = re.compile(rf"[,;:.!?()\u2014\u2026\n{MASK}]| [-\u2013] ")
_RECALLED: Final = re.compile(rf"<{fence.TAG}>.*?(?:</{fence.TAG}>|\Z)", re.DOTALL)
_MARKS: Final = frozenset({"marks.supposes", "marks.reports"})
"""The lists that make a clause foreign; see `_is_foreign`."""
_TOLD: Final = {
    "correction": Signal.CORRECTION,
    "thanks": Signal.THANKS,
    "complaint": Signal.COMPLAINT,
    "confusion": Signal.CONFUSION,
    "giving_up": Signal.GIVING_UP,
    "asks_for_person": Signal.ASKS_FOR_PERSON,
}


class SignalSpan(NamedTuple):
    """A signal with the place of its quote.

    Attributes:
        signal: The signal.
        start: Where in the text the quote begins.
        end: Where it ends.
    """

    signal: Signal
    start: int
    end: int


def mask_foreign(text: str) -> str:
    """Return a text of the same length in which quoted, pasted and recalled text is masked."""
    if fence.TAG in text:
        text = _RECALLED.sub(lambda match: MASK * len(match.group()), text)
    return own_words(text)


def find_signals(text: str) -> list[SignalSpan]:
    """Return the signals that the words of one message give, each at most once, in order. It never raises.

    Args:
        text: The words of a user's message; see `mask_foreign`.
    """
    words = normalize(WORD.findall(text))
    if not signal_words().may_tell(words):
        return []
    matches = list(WORD.finditer(text))
    starts = [match.start() for match in matches]
    found: dict[Signal, SignalSpan] = {}
    for span in sentences(text):
        if span.end - span.start > _LONGEST:
            continue
        inside = slice(bisect_left(starts, span.start), bisect_left(starts, span.end))
        sentence = _Sentence(text, span.start, span.end, matches[inside], words[inside])
        for name, clause in _clause_signals(sentence):
            signal = _TOLD[name]
            if signal not in found:
                found[signal] = SignalSpan(signal, *_quote(sentence, clause))
    return list(found.values())


def first_quote(text: str) -> tuple[int, int] | None:
    """Return the place of the first sentence of a message's words; `None` if it has none."""
    for span in sentences(text):
        shown = text[span.start : span.end]
        if MASK not in shown:
            return span.start, min(span.end, span.start + LONGEST_QUOTE)
    return None


class _Sentence:
    """A sentence with its words and phrases.

    Args:
        text: The text that it is in.
        start: Where it begins.
        end: Where it ends.
        matches: Its words.
        words: The same, normalized.
    """

    def __init__(self, text: str, start: int, end: int, matches: list[re.Match[str]], words: list[str]) -> None:
        self.text, self.start, self.end = text, start, end
        clitics = signal_words().clitics
        if not clitics.isdisjoint(words):
            kept = [at for at, word in enumerate(words) if word not in clitics] or range(len(words))
            matches, words = [matches[at] for at in kept], [words[at] for at in kept]
        self._matches, self.words = matches, words

    @cached_property
    def phrases(self) -> Sequence[FoundPhrase]:
        return list(signal_words().phrases.find(self.words))

    @cached_property
    def starting(self) -> dict[int, list[FoundPhrase]]:
        found: dict[int, list[FoundPhrase]] = {}
        for each in self.phrases:
            found.setdefault(each.first, []).append(each)
        return found

    @cached_property
    def clauses(self) -> Sequence[tuple[int, int]]:
        """The first word of each clause, and the one after its last."""
        if not self.words:
            return []
        starts = [match.start() for match in self._matches]
        behind = (bisect_left(starts, mark.start()) for mark in _BREAK.finditer(self.text, self.start, self.end))
        cuts = [0, *(at for at, _ in groupby(behind) if 0 < at < len(starts))]
        return list(pairwise([*cuts, len(starts)]))

    @cached_property
    def is_question(self) -> bool:
        return self.text[self.start : self.end].rstrip("\"')\u201d !").endswith("?")

    def slice(self, first: int, end: int) -> tuple[int, int]:
        """Return the place of some words, with the mark behind them."""
        stop = self._matches[end - 1].end()
        return self._matches[first].start(), stop + (self.text[stop : stop + 1] in tuple("?!."))

    def within(self, first: int, end: int) -> Iterator[FoundPhrase]:
        """Yield the phrases between two words."""
        return (each for each in self.phrases if first <= each.first and each.end <= end)

    def is_word(self, at: int, kind: str) -> bool:
        """Return whether a word is in a list."""
        return any(each.end == at + 1 and kind in each.kinds for each in self.starting.get(at, ()))


@dataclass(frozen=True)
class _Clause:
    """A clause.

    Attributes:
        first: Its first word.
        end: The word after its last.
        starts: Its first word, and each behind words that may stand before a phrase.
        stop: The word after its last one that is no filler.
        phrases: The phrases in it.
    """

    first: int
    end: int
    starts: range
    stop: int
    phrases: Sequence[FoundPhrase]

    def with_kind(self, kind: str) -> list[FoundPhrase]:
        return [each for each in self.phrases if kind in each.kinds]

    def opening(self, kind: str) -> list[FoundPhrase]:
        return [each for each in self.with_kind(kind) if each.first in self.starts]


def _clause_signals(sentence: _Sentence) -> Iterator[tuple[str, _Clause]]:
    """Yield the signals of a sentence, each with its clause."""
    words = signal_words()
    telling = [each for each in sentence.phrases if not words.telling.isdisjoint(each.kinds)]
    if not telling:
        return
    is_marked = any(not _MARKS.isdisjoint(each.kinds) for each in sentence.phrases)
    for first, end in sentence.clauses:
        if not is_marked and not any(first <= each.first and each.end <= end for each in telling):
            continue
        clause = _clause(sentence, first, end)
        if is_marked and _is_foreign(clause):
            return
        kinds = frozenset[str]().union(*(each.kinds for each in clause.phrases))
        named = {kind.partition(".")[0] for kind in kinds}
        for name in _TOLD:
            if name not in named or f"{name}.except" in kinds:
                continue
            if _is_told(sentence, clause, name):
                yield name, clause


def _clause(sentence: _Sentence, first: int, end: int) -> _Clause:
    at = first
    while at < end:
        ends = [
            each.end
            for each in sentence.starting.get(at, ())
            if each.end <= end and not each.kinds.isdisjoint(("words.leads", "words.fills"))
        ]
        if not ends:
            break
        at = max(ends)
    stop = end
    while stop > first + 1 and sentence.is_word(stop - 1, "words.fills"):
        stop -= 1
    return _Clause(first, end, range(first, min(at, end - 1) + 1), stop, list(sentence.within(first, end)))


def _is_foreign(clause: _Clause) -> bool:
    """Return whether a clause, and what follows it, is supposed, reported, or text to be worked on."""
    if clause.opening("marks.supposes"):
        return True
    own = clause.with_kind("marks.own")
    return any(
        not any(held.first <= each.first and each.end <= held.end for held in own)
        for each in clause.with_kind("marks.reports")
    )


def _is_told(sentence: _Sentence, clause: _Clause, name: str) -> bool:
    if name == "correction" and sentence.is_question:
        return False
    if clause.opening(f"{name}.opens") or clause.with_kind(f"{name}.inside"):
        return True
    if any(clause.stop <= each.end for each in clause.opening(f"{name}.whole")):
        return True
    if any(clause.stop <= each.end for each in clause.with_kind(f"{name}.ends")):
        return True
    if name == "confusion":
        return _is_asked(sentence, clause)
    if name == "correction":
        return _insists(sentence, clause)
    if name == "complaint":
        return _judges(clause)
    return name == "asks_for_person" and _wants_person(clause)


def _is_asked(sentence: _Sentence, clause: _Clause) -> bool:
    """Return whether a short question only asks what was said."""
    if not sentence.is_question or clause.end < len(sentence.words) or len(sentence.words) > _FEW:
        return False
    return any(clause.stop <= each.end for each in clause.opening("confusion.asked"))


def _insists(sentence: _Sentence, clause: _Clause) -> bool:
    """Return whether a clause repeats what was asked for, in contrast to what was understood: I said 2, not 3."""
    for language in signal_words().languages:
        contrasts = [each for each in sentence.phrases if f"correction.contrasts@{language}" in each.kinds]
        if not contrasts:
            continue
        for each in clause.opening(f"correction.insists@{language}"):
            if any(other.first > each.end for other in contrasts):
                return True
    return False


def _judges(clause: _Clause) -> bool:
    """Return whether a clause judges what the user got: this is useless."""
    for language in signal_words().languages:
        for each in clause.with_kind(f"complaint.judges@{language}"):
            subjects = clause.opening(f"complaint.subjects@{language}")
            if clause.stop <= each.end and any(0 <= each.first - other.end <= _NEAR for other in subjects):
                return True
            if clause.with_kind(f"complaint.addresses@{language}"):
                return True
    return False


def _wants_person(clause: _Clause) -> bool:
    """Return whether a clause asks to be connected with a human being."""
    wants = clause.opening("asks_for_person.wants")
    for language in signal_words().languages:
        people = clause.with_kind(f"asks_for_person.people@{language}")
        if not people:
            continue
        for each in clause.with_kind(f"asks_for_person.reaches@{language}"):
            if not wants and each.first not in clause.starts:
                continue
            if any(max(other.first - each.end, each.first - other.end) <= _NEAR for other in people):
                return True
    return False


def _quote(sentence: _Sentence, clause: _Clause) -> tuple[int, int]:
    """Return the place of a sentence, or of the clause that tells the signal if the sentence is long or not all own."""
    text = sentence.text[sentence.start : sentence.end]
    if len(text) <= LONGEST_QUOTE and MASK not in text:
        return sentence.start, sentence.end
    first, end = sentence.slice(clause.first, clause.end)
    return first, min(end, first + LONGEST_QUOTE)
