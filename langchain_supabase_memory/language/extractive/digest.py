"""The coverage summary: quotes that cover the most content for their characters, in conversation order."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.clauses import split_clauses
from langchain_supabase_memory.language.extractive.coverage import Candidate, choose
from langchain_supabase_memory.language.extractive.dialogue import greets, unanswered
from langchain_supabase_memory.language.extractive.phrases import phrases
from langchain_supabase_memory.language.extractive.quotes import (
    CUT,
    HEADER,
    HEADERS,
    SHORT_HEADER,
    SUMMARY,
    Quote,
    label,
    parse,
)
from langchain_supabase_memory.language.extractive.stems import figures, stem, stems_of
from langchain_supabase_memory.language.query_hints import marks
from langchain_supabase_memory.language.query_hints.names import capitalized
from langchain_supabase_memory.language.spelling import WORD, keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.effects import TranscriptLine

# How much a term counts by its speaker and its form. Measured on five long two-person conversations: if plain and
# first-person statements counted alike, 14% to 25% fewer of the turns that answer questions would be retained.
_BY_ROLE: Final = {"User": 1.0, "Assistant": 0.6, "Tool": 0.5, "System": 0.4}
_ASKED: Final = 0.35
_OPEN: Final = 1.3
_NAMED: Final = 2.0
_COUNTED: Final = 2.0
_PLAIN: Final = 0.7  # it contains no name, number or time
_PERSONAL: Final = 1.3
_TELLING: Final = 5  # minimum terms of a piece that is more than a fragment
_KEPT: Final = 1.25  # a quote of the previous summary stands for more than the new lines
_SUMMARIZED: Final = 1.0
_OF_ONESELF: Final = frozenset({"self", "mine", "mine_after", "prefers"})
_MIN_CHARACTERS: Final = 40
_SHORTEST: Final = 8  # minimum characters of a quote that was cut


@dataclass(frozen=True, slots=True)
class _Candidate:
    quote: Quote
    terms: frozenset[str]
    quality: float


def summary(previous: str | None, lines: Sequence[TranscriptLine], characters: int) -> str:
    """Quote the pieces that cover the most of the previous summary and the new lines.

    Args:
        previous: The summary so far. Quotes that this function wrote are copied unchanged or dropped.
        lines: The new lines.
        characters: The maximum number of characters in the summary.

    Returns:
        A heading and one quote per line, in conversation order.
    """
    header = HEADER if characters >= len(HEADER) + _MIN_CHARACTERS else SHORT_HEADER
    room = characters - len(header)
    candidates = [each for each in (*_previous_candidates(previous or ""), *_new_candidates(lines)) if each.terms]
    fitting = [fitted for each in candidates if (fitted := _cut_to(each, room)) is not None]
    weights = _weights(fitting)
    made = [
        Candidate({term: weights[term] * each.quality for term in each.terms}, len(str(each.quote)) + 1)
        for each in fitting
    ]
    chosen = [str(fitting[place].quote) for place in choose(made, room)]
    return "\n".join([header, *chosen])[: max(characters, 0)]


def _previous_candidates(previous: str) -> Iterator[_Candidate]:
    """Yield the quotes of the previous summary, and pieces of its other text."""
    for line in previous.splitlines():
        if line in HEADERS or not line.strip():
            continue
        quote = parse(line)
        if quote is not None:
            yield _candidate(quote, _KEPT)
            continue
        for span in split_clauses(line):
            text = line[span.start : span.end]
            yield _candidate(Quote(None, SUMMARY, text, span.opens, span.closes), _SUMMARIZED)


def _new_candidates(lines: Sequence[TranscriptLine]) -> Iterator[_Candidate]:
    """Yield the pieces of the new lines."""
    asked = {(each.place, each.span.end) for each in unanswered(lines)}
    for place, line in enumerate(lines):
        who = label(line.role, line.speaker)
        for span in split_clauses(line.text):
            text = line.text[span.start : span.end]
            is_open = (place, span.end) in asked
            yield _candidate(Quote(line.number, who, text, span.opens, span.closes), 1.0, is_open=is_open)


def _candidate(quote: Quote, factor: float, *, is_open: bool = False) -> _Candidate:
    """Return a quote with its terms and its weight."""
    if greets(quote.text):
        return _Candidate(quote, frozenset(), 0.0)
    quality = factor * _BY_ROLE.get(quote.label.partition(" ")[0], 1.0)
    said = marks(quote.text)
    if is_open:
        quality *= _OPEN
    elif said.is_question:
        quality *= _ASKED
    if not (said.has_name or said.has_number or said.has_time):
        quality *= _PLAIN
    words = keys(WORD.findall(quote.text))
    if any(not each.kinds.isdisjoint(_OF_ONESELF) for each in phrases().find(words)):
        quality *= _PERSONAL
    terms = frozenset([*stems_of(words), *figures(quote.text)])
    return _Candidate(quote, terms, quality * min(1.0, len(terms) / _TELLING))


def _cut_to(candidate: _Candidate, room: int) -> _Candidate | None:
    """Return a candidate that fits the room, cut after a word if necessary."""
    quote = candidate.quote
    too_long = len(str(quote)) + 1 - room
    if too_long <= 0:
        return candidate
    shorter = len(quote.text) - too_long - len(f" {CUT}")
    if shorter < _SHORTEST:
        return None
    cut = quote.text.rfind(" ", 0, shorter + 1)
    text = quote.text[: cut if cut > shorter // 2 else shorter].rstrip()
    return _candidate(replace(quote, text=text, closes=False), 1.0)


def _weights(candidates: Sequence[_Candidate]) -> dict[str, float]:
    """Return the weight of each term: rarer terms weigh more, and names and figures weigh more than other words."""
    often = Counter(term for each in candidates for term in each.terms)
    named = {
        stem(word)
        for each in candidates
        for name in capitalized(each.quote.text, inside=True)
        for word in keys(WORD.findall(name))
    }
    return {
        term: math.log(1 + len(candidates) / count) * (_COUNTED if term[0] == "#" else _NAMED if term in named else 1.0)
        for term, count in often.items()
    }
