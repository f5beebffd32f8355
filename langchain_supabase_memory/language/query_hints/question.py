"""What a question names and asks for."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from langchain_supabase_memory.language.query_hints.intervals import question_dates
from langchain_supabase_memory.language.query_hints.names import names
from langchain_supabase_memory.language.query_hints.words import HintWords
from langchain_supabase_memory.language.sentences import begins_sentence
from langchain_supabase_memory.language.spelling import compose

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_supabase_memory.language.query_hints.dates import NamedDate

Expectation = Literal["time", "number"]
Order = Literal["first", "last"]

_LONGEST: Final = 10_000
_MAX_NAMES: Final = 3
_MAX_DATES: Final = 4
_ADDRESS: Final = 4  # words before a comma that only say who is asked: "By the way, when"
_TOLD_WITHIN: Final = 3  # words from the addressee to what they said: "you also once recommended"
_ENDS: Final = frozenset(".!?;")
_WANTS: Final[tuple[Expectation, ...]] = ("time", "number")


@dataclass(frozen=True, slots=True)
class QueryHints:
    """What a question says about the text that answers it.

    Attributes:
        names: Words that may be a person's name, in the order of the text and without a possessive.
        dates: The dates it names, relative ones resolved.
        expects: The kinds of answer it asks for.
        order: Whether it asks for the earliest or the newest of what was said or happened.
        asks_reply: Whether it asks for what the one who is asked has said: "which tires did you recommend".
    """

    names: tuple[str, ...] = ()
    dates: tuple[NamedDate, ...] = ()
    expects: frozenset[Expectation] = frozenset()
    order: Order | None = None
    asks_reply: bool = False


def find_hints(question: str, now: datetime) -> QueryHints:
    """Find the cues of a question. It never raises, whatever the text is.

    Args:
        question: The question, in any language and any mix of them. Of one longer than 10,000 characters the beginning
            is read.
        now: The time of asking, aware, in the asker's time zone.
    """
    text = compose(question[:_LONGEST])
    words = HintWords(text)
    said = question_dates(words, now.date())
    return QueryHints(
        names(text, [(each.start, each.end) for each in said], _MAX_NAMES),
        tuple(dict.fromkeys(each.date for each in said))[:_MAX_DATES],
        _expectations(words),
        _order(words),
        _asks_reply(words),
    )


def _order(words: HintWords) -> Order | None:
    """The end of the talk that is asked for; none if both are."""
    found: set[Order] = set()
    first, has_subject = 0, False  # in the sentence: "when did I", but not "was I", which asks for a rank
    for at, entry in enumerate(words.entries):
        if at and not _ENDS.isdisjoint(words.gap(at)):
            first, has_subject = at, False
        if "past_auxiliary" in words.entry(at - 1).kinds and words.near(at) and at - 1 > first:
            has_subject = has_subject or "subject" in entry.kinds or words.is_capital(at)
        if "earliest" in entry.kinds or ("earliest_adverb" in entry.kinds and has_subject and _is_adverb(words, at)):
            found.add("first")
        if "newest" in entry.kinds or ("newest_adverb" in entry.kinds and has_subject and _is_adverb(words, at)):
            found.add("last")
    return found.pop() if len(found) == 1 else None


def _is_adverb(words: HintWords, index: int) -> bool:
    """Whether "first" or "last" says when: directly behind the subject, or at the end of its clause."""
    before, after = words.entry(index - 1), words.entry(index + 1)
    if words.closed(index):
        return not (before.says_time or "article" in before.kinds)
    behind_subject = "subject" in before.kinds or words.is_capital(index - 1)
    return behind_subject and words.near(index) and not (after.says_time or after.number or "some" in after.kinds)


def _asks_reply(words: HintWords) -> bool:
    """Whether what the addressee said is asked for: "did you recommend", and not "would you", nor "I told you"."""
    for at, entry in enumerate(words.entries):
        if "you_told" in entry.kinds:
            return True
        if "addressee_after" in entry.kinds and "told" in words.entry(at - 1).kinds and words.near(at):
            return True
        if "addressee" not in entry.kinds:
            continue
        is_past = "past_auxiliary" in words.entry(at - 1).kinds and words.near(at)
        for told in range(at + 1, at + 1 + _TOLD_WITHIN):
            kinds = words.entry(told).kinds
            if words.closed(told - 1) or "subject" in kinds or "question" in kinds:
                break
            if "told" in kinds or ("tell" in kinds and is_past):
                return True
    return False


def _expectations(words: HintWords) -> frozenset[Expectation]:
    """The kinds of answer that are asked for."""
    wanted: set[Expectation] = set()
    for at, entry in enumerate(words.entries):
        if not entry.asks:
            continue
        for want in _WANTS:
            if f"asks_{want}" in entry.kinds or (f"opens_{want}" in entry.kinds and _opens(words, at)):
                wanted.add(want)
    return frozenset(wanted)


def _opens(words: HintWords, index: int) -> bool:
    """Whether a word that may open a question does: "when did", and not "when I was young"."""
    first = index
    while first and "lead" in words.entries[first - 1].kinds:
        first -= 1
    if "indirect" in words.entry(first - 1).kinds:
        return True
    text = words.text
    begins = begins_sentence(text, words.starts[first]) or (first <= _ADDRESS and "," in words.gap(first))
    if not begins:
        return False
    if words.keys[index + 1 : index + 2] and words.keys[index + 1] in words.entries[index].auxiliaries:
        return True
    end = text.find("?", words.starts[index])
    if end < 0 or any(mark in text[words.starts[index] : end] for mark in ",.!;"):
        return False
    others = range(index + 1, bisect_left(words.starts, end))
    return not any(words.entries[other].asks or "question" in words.entries[other].kinds for other in others)
