"""The signals of a learned reranker: what is known of each candidate of a question, as numbers.

They are pure, need no model, and rest on no word of a data set, and on none of a language beyond the cues of
`query_hints`. A word is compared by its first letters, so that most endings of most languages do not matter.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import fsum, log, sqrt
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.language import query_hints
from langchain_supabase_memory.language.query_hints.statement import is_question_or_request
from langchain_supabase_memory.language.spelling import WORD, compose, keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_core.documents import Document

PARTS: Final = ("words", "meaning", "around", "speaker", "date", "kind", "question", "beside", "reply")
"""The parts of the first stage's score that are signals of their own."""

STATEMENT: Final = "if nothing is asked"
REPLIES: Final = "beside an assistant's replies"
"""The situations in which a signal counts otherwise: each signal stands once more for each of them, else as 0."""

_LABEL: Final = re.compile(r"\[\d{4}-\d\d-\d\d\] [^:\n]{1,80}: ")
_ANY_DAY: Final = datetime(2000, 1, 1, tzinfo=UTC)  # of the hints, the dates are not read
_STEM: Final = 5  # letters of a word that are compared
_READ: Final = 1_000  # characters of a passage that are read
_ASKED: Final = 64  # words of a question that count
_TOP: Final = 10  # candidates that are taken for good ones
_REACH: Final = 2  # places to a neighbor


@dataclass(frozen=True)
class _Passage:
    """A candidate, as the signals need it."""

    text: str
    words: list[str]
    known: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    marks: query_hints.Marks
    score: float
    parts: Mapping[str, Any]
    where: tuple[Any, Any, int]
    day: str
    speaker: str
    is_reply: bool


def signals(question: str, documents: Sequence[Document]) -> dict[str, list[float]]:
    """Return each signal's numbers, one for each document. It never raises, whatever the texts are.

    Args:
        question: The question.
        documents: The candidates as a reranker receives them, the best first.
    """
    passages = [_passage(each) for each in documents]
    if not passages:
        return {}
    speakers = {word for each in passages for word in _words(each.speaker)}
    named = _words(question)
    query_words = [word for word in named if word not in speakers][:_ASKED] or named[:_ASKED]
    hints = query_hints.find_hints(question, _ANY_DAY)
    own = {
        **_ranks([each.score for each in passages]),
        **_first_stage(passages),
        **_coverage(query_words, passages),
        **_neighbors(passages),
        **_cues(named, hints, passages),
    }
    situations = {STATEMENT: not is_question_or_request(question), REPLIES: any(each.is_reply for each in passages)}
    nothing = [0.0] * len(passages)
    found = dict(own)
    for situation, holds in situations.items():
        found.update((f"{name}, {situation}", numbers if holds else nothing) for name, numbers in own.items())
    return found


def _passage(document: Document) -> _Passage:
    metadata = document.metadata
    text = _LABEL.sub("", document.page_content[:_READ], count=1)
    words = _words(text)
    parts = metadata.get("score_parts") or {}
    place = metadata.get("place")
    return _Passage(
        text=text,
        words=words,
        known=frozenset(words),
        pairs=frozenset(pairwise(words)),
        marks=query_hints.marks(text),
        score=float(metadata.get("score") or 0),
        parts=parts,
        where=(metadata.get("agent_id"), metadata.get("thread_id"), place if isinstance(place, int) else -1),
        day=str(metadata.get("said_at") or "")[:10],
        speaker=str(metadata.get("speaker") or ""),
        is_reply=metadata.get("role") == "assistant" and not metadata.get("speaker"),
    )


def _words(text: str) -> list[str]:
    return [word[:_STEM] for word in keys(WORD.findall(compose(text)))]


def _ranks(scores: Sequence[float]) -> dict[str, list[float]]:
    """How a candidate stands among the others by the first stage."""
    best = max(max(scores), 1e-9)
    mean = sum(scores) / len(scores)
    deviation = sqrt(sum((score - mean) ** 2 for score in scores) / len(scores)) or 1.0
    return {
        "score": list(scores),
        "score of the best": [score / best for score in scores],
        "score over the mean": [(score - mean) / deviation for score in scores],
        "rank": [log(rank) for rank in range(1, len(scores) + 1)],
    }


def _first_stage(passages: Sequence[_Passage]) -> dict[str, list[float]]:
    """The parts of the first stage's score, and two of them relative to the best."""
    parts = {name: [float(each.parts.get(name) or 0) for each in passages] for name in PARTS}
    found = {f"part: {name}": numbers for name, numbers in parts.items()}
    for name in ("words", "meaning"):
        best = max(parts[name])
        found[f"{name} of the best"] = [number / best if best > 0 else 0.0 for number in parts[name]]
    return found


def _coverage(query_words: Sequence[str], passages: Sequence[_Passage]) -> dict[str, list[float]]:
    """How much of a question's words a candidate has, by their rarity among the candidates."""
    spread = Counter(word for each in passages for word in each.known)
    rarity = {word: log(1 + (len(passages) - spread[word] + 0.5) / (spread[word] + 0.5)) for word in spread}
    rarest = log(1 + (len(passages) + 0.5) / 0.5)
    wanted = {word: rarity.get(word, rarest) for word in query_words}
    whole = fsum(wanted.values()) or 1.0
    found = {word for word in wanted if word in rarity}
    reachable = fsum(wanted[word] for word in found) or 1.0
    strongest = max((wanted[word] for word in found), default=1.0)
    pairs = [pair for pair in pairwise(query_words) if pair[0] in found and pair[1] in found]
    around = _around(passages)
    covered = [fsum(wanted[word] for word in found & each.known) for each in passages]
    nearby = [
        fsum(wanted[word] for word in found if any(word in passages[other].known for other in (place, *others)))
        for place, others in enumerate(around)
    ]
    return {
        "coverage": [weight / whole for weight in covered],
        "coverage of what any covers": [weight / reachable for weight in covered],
        "coverage with neighbors": [weight / whole for weight in nearby],
        "rarest word": [
            max((wanted[word] for word in found & each.known), default=0.0) / strongest for each in passages
        ],
        "pairs": [sum(pair in each.pairs for pair in pairs) / len(pairs) if pairs else 0.0 for each in passages],
        "share of its words": [
            weight / (fsum(rarity[word] for word in each.known) or 1.0)
            for weight, each in zip(covered, passages, strict=True)
        ],
        "length": [log(1 + len(each.text)) for each in passages],
    }


def _around(passages: Sequence[_Passage]) -> list[list[int]]:
    """The candidates within two places of each, itself left out."""
    at: dict[tuple[Any, Any, int], list[int]] = {}
    for number, each in enumerate(passages):
        if each.where[2] >= 0:
            at.setdefault(each.where, []).append(number)
    found = []
    for each in passages:
        agent, thread, place = each.where
        near = (place + step for step in range(-_REACH, _REACH + 1) if step and place >= 0)
        found.append([number for other in near for number in at.get((agent, thread, other), ())])
    return found


def _neighbors(passages: Sequence[_Passage]) -> dict[str, list[float]]:
    """How well the talk around a candidate does."""
    best = max(*(each.score for each in passages), 1e-9)
    around = _around(passages)
    days = Counter(each.day for each in passages[: 2 * _TOP])
    before = {each.where: number for number, each in enumerate(passages)}
    answers = []
    for each in passages:
        agent, thread, place = each.where
        other = before.get((agent, thread, place - 1)) if place > 0 else None
        asks = other is not None and passages[other].marks.is_question and passages[other].speaker != each.speaker
        answers.append(passages[other].score / best if asks and other is not None else 0.0)
    return {
        "best neighbor": [max((passages[other].score for other in others), default=0.0) / best for others in around],
        "neighbors": [sum(passages[other].score for other in others) / best / (2 * _REACH) for others in around],
        "answers a candidate": answers,
        "same day": [days[each.day] / (2 * _TOP) for each in passages],
    }


def _cues(named: Sequence[str], hints: query_hints.QueryHints, passages: Sequence[_Passage]) -> dict[str, list[float]]:
    """What a question names and asks for, and whether a candidate has it."""
    said = set(named)
    speakers = [{*_words(each.speaker)} for each in passages]
    names_speaker = any(said & each for each in speakers)
    names = {word for name in hints.names for word in _words(name)}
    figures = {word for word in named if word.isdecimal()}
    wants_time, wants_number = "time" in hints.expects, "number" in hints.expects
    return {
        "is of another speaker": [float(names_speaker and not said & each) for each in speakers],
        "mentions a name": [_share(names, each.known) for each in passages],
        "mentions a figure": [_share(figures, each.known) for each in passages],
        "has the time": [float(wants_time and each.marks.has_time) for each in passages],
        "lacks the time": [float(wants_time and not each.marks.has_time) for each in passages],
        "has the number": [float(wants_number and each.marks.has_number) for each in passages],
        "lacks the number": [float(wants_number and not each.marks.has_number) for each in passages],
        "has a name": [float(each.marks.has_name) for each in passages],
        "has a time": [float(each.marks.has_time) for each in passages],
        "has a number": [float(each.marks.has_number) for each in passages],
        "asks": [float(each.marks.is_question) for each in passages],
        "reply": [float(each.is_reply) for each in passages],
    }


def _share(expected: Iterable[str], known: frozenset[str]) -> float:
    words = set(expected)
    return len(words & known) / len(words) if words else 0.0
