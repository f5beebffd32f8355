"""Measure how many names, numbers, dates and open questions a summary retains, without a model.

The score is recall. A summary cannot retain everything, so a typical score depends on the compression. Use it to
compare summarizers, and to detect a summary that lost what similar ones retain. Measured on the demo's conversation
and five long two-person conversations (mean, and lowest to highest):

| characters | extractive | its rolling update | random lines | the first lines |
| --- | --- | --- | --- | --- |
| 24,000 in 1,000 | .40 (.25-.71) | .44 (.26-.67) | .17 (.03-.30) | .14 (.00-.39) |
| 24,000 in 2,000 | .62 (.40-.96) | .56 (.41-.77) | .27 (.10-.42) | .22 (.09-.44) |
| 24,000 in 4,000 | .79 (.65-1) | .77 (.65-.92) | .45 (.24-.69) | .36 (.16-.62) |
| 12,000 in 2,000 | .70 (.42-.92) | .65 (.49-.87) | .36 (.10-.71) | .30 (.10-.65) |
| 6,000 in 2,000 | .82 (.50-1) | .74 (.47-.94) | .57 (.17-1) | .52 (.15-1) |

Summaries of 121 sessions by a language model, on average 670 characters for 2,500, score .61 (nine of ten above .36);
the extractive summary of the same length scores .64 and random lines score .49. A summary in general terms scores near
0.

A score below .25, the default of `SummaryPolicy.min_quality`, flags a summary for review: no extractive summary in the
measurement fell below it, and one in forty of the model's did; so did half of the random ones and six of ten of the
cut-off ones at 24,000 characters in 2,000. A lower score is no better than chance.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from langchain_supabase_memory.effects import offload
from langchain_supabase_memory.language import extractive
from langchain_supabase_memory.language.extractive.dialogue import unanswered
from langchain_supabase_memory.language.extractive.entities import find_names, noun_articles
from langchain_supabase_memory.language.extractive.phrases import ParsedText
from langchain_supabase_memory.language.extractive.quotes import parse
from langchain_supabase_memory.language.extractive.stems import FIGURE, readings, stems
from langchain_supabase_memory.language.messages.encoded_data import words_only
from langchain_supabase_memory.language.query_hints.dates import Time, dates_of
from langchain_supabase_memory.language.query_hints.dates import times as times_of
from langchain_supabase_memory.language.query_hints.lexicon import lexicon
from langchain_supabase_memory.language.query_hints.names import has_capitals
from langchain_supabase_memory.language.query_hints.words import HintWords
from langchain_supabase_memory.language.sentences import sentences
from langchain_supabase_memory.language.spelling import DIGIT, WORD, compose, keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from langchain_supabase_memory.effects import Flow, TranscriptLine
    from langchain_supabase_memory.language.query_hints.dates import NamedDate

KINDS: Final = ("names", "numbers", "dates", "questions")

WEIGHTS: Final[Mapping[str, float]] = {"names": 0.3, "numbers": 0.3, "dates": 0.2, "questions": 0.2}
"""The weight of each kind in the score, however many there are; weights of missing kinds go to the others."""

_ENOUGH: Final = 0.5  # share of a question's stems that must be present
_THOUSAND: Final = re.compile(r"[kK](?![^\W\d_])")
_LONGEST_KEPT: Final = 4000  # texts with more characters are not cached
_SOME_DAY: Final = date(2000, 1, 1)
_YEARS: Final = 3  # around the fixed day, within which a year without digits counts as relative


@dataclass(frozen=True)
class Quality:
    """How much of its source a summary retains.

    Attributes:
        score: From 0 to 1; 1 if the source has nothing to retain.
        kept: By kind, the number of distinct details in the summary.
        present: By kind, the number in the source.
    """

    score: float
    kept: Mapping[str, int]
    present: Mapping[str, int]


@dataclass
class _CheckedDetails:
    """The details of a text that can be checked.

    Attributes:
        names: Case-folded names.
        numbers: For each number, its possible values.
        dates: Dates with their case-folded wording.
        questions: The stems of each question.
    """

    names: set[str] = field(default_factory=set)
    numbers: set[frozenset[str]] = field(default_factory=set)
    dates: dict[NamedDate | str, str] = field(default_factory=dict)
    questions: list[frozenset[str]] = field(default_factory=list)


def quality(source: Sequence[TranscriptLine], summary: str, *, before: str | None = None) -> Quality:
    """Measure a summary against its source.

    Args:
        source: The lines of the conversation.
        summary: Their summary.
        before: The previous summary that it replaces and must also cover.

    Returns:
        The result. It never raises, whatever the texts are.
    """
    held = _CheckedDetails()
    source = [replace(line, text=words_only(line.text)) for line in source]
    for line in source:
        _read(line.text, _day(line.said_at), held)
    if before:
        _read(_bare(words_only(before)), None, held)
    held.questions.extend(frozenset(stems(each.text)) for each in unanswered(source))
    _merge(held)
    told = _bare(words_only(summary))
    found = _CheckedDetails()
    _read(told, None, found)
    words = frozenset(keys(WORD.findall(compose(told))))
    known = frozenset(stems(told))
    text = " ".join(told.casefold().split())
    numbers = frozenset().union(*found.numbers)
    kept = {
        "names": sum(words.issuperset(name.split(" ")) for name in held.names),
        "numbers": sum(not numbers.isdisjoint(each) for each in held.numbers),
        "dates": sum(_is_present(each, said, found.dates, text) for each, said in held.dates.items()),
        "questions": sum(len(asked & known) >= _ENOUGH * len(asked) for asked in held.questions),
    }
    present = {
        "names": len(held.names),
        "numbers": len(held.numbers),
        "dates": len(held.dates),
        "questions": len(held.questions),
    }
    return Quality(_score(kept, present), kept, present)


def is_scored(source: Sequence[TranscriptLine], summary: str, *, before: str | None = None) -> Flow[float]:
    """Return the score of a summary, computed off the event loop: about 0.5 microseconds of CPU time per character.

    The arguments are those of `quality`.
    """
    characters = sum(len(line.text) for line in source)
    return (
        yield from offload(
            lambda: quality(source, summary, before=before).score, characters, warm_caches=extractive.KEPT
        )
    )


def _score(counts: Mapping[str, int], present: Mapping[str, int]) -> float:
    """Return the weighted mean of the recall of each kind that is present."""
    weight = sum(WEIGHTS[kind] for kind in KINDS if present[kind])
    if not weight:
        return 1.0
    return sum(WEIGHTS[kind] * counts[kind] / present[kind] for kind in KINDS if present[kind]) / weight


def _bare(summary: str) -> str:
    """Return a summary without the message numbers and speakers that the extractive summarizer adds to its quotes."""
    quotes = ((line, parse(line)) for line in summary.splitlines())
    return "\n".join(line if quote is None else quote.text for line, quote in quotes)


def _read(text: str, today: date | None, details: _CheckedDetails) -> None:
    """Collect the details of a text that can be checked.

    Args:
        text: Any text.
        today: The day of the message, if known; without it relative words name no date.
        details: The collection to add to.
    """
    text = compose(text)
    found = _find_details(text) if len(text) <= _LONGEST_KEPT else _find_details.__wrapped__(text)
    details.names |= found.names
    spans: list[tuple[int, int]] = []
    day = today or _SOME_DAY
    for time in dates_of([time.on(day) if time.on else time for time in found.times], text):
        said = _time_words(text, time)
        spans.append((time.start, time.end))
        if time.date is not None and not _is_passing(time.date, said, today):
            details.dates.setdefault(time.date, said)
    for time in found.times:
        if time.date is None and DIGIT.search(text, time.start, time.end):
            said = _time_words(text, time)
            spans.append((time.start, time.end))
            details.dates.setdefault(said, said)
    spans.sort()
    details.numbers.update(number for place, number in found.numbers if not (spans and _is_inside(place, spans)))


class _DatedDetails(NamedTuple):
    """The details of a text, independent of its day.

    Attributes:
        names: Case-folded names.
        times: The times.
        numbers: The place and the possible values of each number.
    """

    names: frozenset[str]
    times: Sequence[Time]
    numbers: Sequence[tuple[int, frozenset[str]]]


@lru_cache(maxsize=512)  # a conversation's summary and board are scored one after the other
def _find_details(text: str) -> _DatedDetails:
    """Find the details of a text in composed Unicode form."""
    compared = keys(WORD.findall(text))
    times: Sequence[Time] = ()
    numbers: Sequence[tuple[int, frozenset[str]]] = ()
    telling = lexicon().telling
    if DIGIT.search(text) or not (telling.isdisjoint(compared) and telling.isdisjoint(pairwise(compared))):
        words = HintWords(text, compared)
        times = tuple(times_of(words))
        numbers = tuple(_numbers(words))
    return _DatedDetails(frozenset(_names(text, compared)), times, numbers)


def _names(text: str, compared: Sequence[str]) -> Iterator[str]:
    """Yield every name inside a sentence of a text, case-folded."""
    if not has_capitals(text):
        return
    has_nouns = not noun_articles().isdisjoint(compared)
    for span in sentences(text):
        sentence = text[span.start : span.end]
        for name, _ in find_names(sentence, ParsedText(sentence) if has_nouns else None):
            yield " ".join(keys(WORD.findall(name)))


def _numbers(words: HintWords) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield the place and the possible values of every number, in words or figures."""
    for at, entry in enumerate(words.entries):
        if entry.number is not None:
            yield words.starts[at], frozenset({str(entry.number)})
    for match in words.matching(FIGURE):
        read_as = readings(match.group())
        if _THOUSAND.match(words.text, match.end()):
            read_as |= {f"{each}000" for each in read_as if each.isdecimal()}
        yield match.start(), read_as


def _time_words(text: str, time: Time) -> str:
    """Return the case-folded words of a time."""
    return " ".join(text[time.start : time.end].casefold().split())


def _merge(details: _CheckedDetails) -> None:
    """Merge details that have two spellings: "4,200" and "4200", "May 7" and "7 May 2026"."""
    sure = frozenset().union(*(each for each in details.numbers if len(each) == 1))
    details.numbers = {each for each in details.numbers if len(each) == 1 or sure.isdisjoint(each)}
    days = {(each.month, each.day) for each in details.dates if not isinstance(each, str) and each.year and each.day}
    details.dates = {
        each: said
        for each, said in details.dates.items()
        if isinstance(each, str) or each.year or (each.month, each.day) not in days
    }


def _is_passing(named: NamedDate, text: str, today: date | None) -> bool:
    """Return whether a date is today's, or relative to an unknown day."""
    if named.year is None or str(named.year) in text:
        return False
    if today is None:
        return abs(named.year - _SOME_DAY.year) <= _YEARS
    return (named.year, named.month, named.day) == (today.year, today.month, today.day)


def _is_inside(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a place is in one of the spans."""
    at = bisect_right(spans, (place, sys.maxsize)) - 1
    return at >= 0 and spans[at][0] <= place < spans[at][1]


def _is_present(detail: NamedDate | str, words: str, details: Iterable[NamedDate | str], text: str) -> bool:
    """Return whether a text names a date, by its wording or by its value."""
    at = text.find(words)
    while at >= 0:
        if not (_is_letter(text[at - 1 : at]) or _is_letter(text[at + len(words) : at + len(words) + 1])):
            return True
        at = text.find(words, at + 1)
    return not isinstance(detail, str) and any(not isinstance(each, str) and _agree(detail, each) for each in details)


def _is_letter(letter: str) -> bool:
    """Return whether a character is part of a word; `False` for an empty string."""
    return letter.isalnum() or letter == "_"


def _agree(expected: NamedDate, date: NamedDate) -> bool:
    """Return whether a found date does not contradict the expected one: "May 7" for 7 May 2023."""
    for one, two in ((expected.year, date.year), (expected.month, date.month), (expected.day, date.day)):
        if one is not None and two is not None and one != two:
            return False
    if expected.day is not None:
        if date.day is not None and date.month is not None:
            return True
        return date.weekday is not None and date.weekday == _weekday(expected)
    if expected.month is not None:
        return date.month is not None
    if expected.year is not None:
        return date.year is not None
    return expected.weekday is not None and expected.weekday in (date.weekday, _weekday(date))


def _weekday(named: NamedDate) -> int | None:
    """Return the weekday of a complete date."""
    if named.year is None or named.month is None or named.day is None:
        return None
    try:
        return date(named.year, named.month, named.day).isoweekday()
    except ValueError:
        return None


def _day(said_at: str | None) -> date | None:
    """Return the day of an ISO 8601 time."""
    try:
        return datetime.fromisoformat(said_at or "").date()
    except ValueError:
        return None
