"""What a conversation keeps coming back to: words, and words together, that several of its lines share."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.cues.lexicon import lexicon
from langchain_supabase_memory.language.extractive.phrases import phrases
from langchain_supabase_memory.language.extractive.terms import stems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.language.extractive.spoken import Sentence

_LONGEST: Final = 3  # words of a topic
_LEAST_LINES: Final = 2
_LEAST_LETTERS: Final = 4
_SHARED: Final = 0.5  # of a word's lines, from which a longer phrase says it better


@dataclass(frozen=True, slots=True)
class Topic:
    """What is talked about.

    Attributes:
        text: The words, as they were said last.
        number: The message's sequence.
    """

    text: str
    number: int


def topics(sentences: Sequence[Sentence], known: frozenset[str], most: int) -> list[Topic]:
    """The new topics, the weightiest first.

    Args:
        sentences: What was said.
        known: The topics that are known already, in one case.
        most: How many at most.
    """
    lines: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    last: dict[tuple[str, ...], Topic] = {}
    for sentence in sentences:
        for terms, text in _grams(sentence):
            lines[terms].add(sentence.place)
            last[terms] = Topic(text, sentence.line.number)
    total = max(len({sentence.place for sentence in sentences}), 1)
    weight = {
        terms: math.sqrt(len(held)) * math.log(1 + total / len(held)) * (1 + 0.6 * (len(terms) - 1))
        for terms, held in lines.items()
        if len(held) >= (_LEAST_LINES if len(terms) > 1 or total < 8 * _LEAST_LINES else _LEAST_LINES + 1)
    }
    chosen: list[tuple[str, ...]] = []
    for terms in sorted(weight, key=lambda each: (-weight[each], each)):
        if len(chosen) == most:
            break
        if last[terms].text.casefold() in known or any(_same(terms, other, lines) for other in chosen):
            continue
        chosen.append(terms)
    return [last[terms] for terms in chosen]


def _same(one: tuple[str, ...], two: tuple[str, ...], lines: dict[tuple[str, ...], set[int]]) -> bool:
    """Whether two topics are one: they are always said together, or share a word and half of the rarer one's lines."""
    if lines[one] == lines[two]:
        return True
    if set(one).isdisjoint(two):
        return False
    shared = len(lines[one] & lines[two])
    return shared >= _SHARED * min(len(lines[one]), len(lines[two]))


def _grams(sentence: Sentence) -> list[tuple[tuple[str, ...], str]]:
    """The phrases of a sentence that may be topics: words of content, one space apart."""
    reading = sentence.reading
    plain = _plain()
    terms = [
        "" if word in plain or word[0].isdecimal() or len(word) < _LEAST_LETTERS - (not word.isascii()) * 2 else word
        for word in reading.words
    ]
    made: list[tuple[tuple[str, ...], str]] = []
    for first, word in enumerate(terms):
        if not word:
            continue
        for end in range(first + 1, min(first + _LONGEST, len(terms)) + 1):
            if not terms[end - 1]:
                break
            if end - 1 > first and reading.text[reading.ends[end - 2] : reading.starts[end - 1]] not in (" ", "-"):
                break
            key = tuple(stem for each in terms[first:end] for stem in stems(each)[:2])
            if key:
                made.append((key, reading.text[reading.starts[first] : reading.ends[end - 1]]))
    return made


@cache
def _plain() -> frozenset[str]:
    """Words that are no topic by themselves nor in a phrase."""
    said = {"function", "question", "auxiliary", "first", "last", "next", "part", "hour", "number", "indirect"}
    known = {
        word
        for word, entry in lexicon().entries.items()
        if entry.kinds & said or entry.unit or entry.day is not None or entry.number is not None or entry.is_named
    }
    spoken = {
        "greets", "self", "mine", "corrects", "supposes", "prefers", "finishes", "cancels", "asks_to", "promises",
        "copula", "now", "others", "determiner", "person_after", "vague",
    }  # fmt: skip
    return frozenset(known | {word for word, kinds in phrases().known.items() if kinds & spoken})
