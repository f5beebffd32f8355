"""What a conversation keeps coming back to: words, and words together, that its user says again on another day."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.phrases import articles, phrases
from langchain_supabase_memory.language.extractive.stems import stem, stems, stems_of
from langchain_supabase_memory.language.extractive.utterances import day
from langchain_supabase_memory.language.query_hints.lexicon import lexicon
from langchain_supabase_memory.language.spelling import WORD, keys

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from datetime import date

    from langchain_supabase_memory.language.extractive.phrases import ParsedText
    from langchain_supabase_memory.language.extractive.utterances import Sentence

_LONGEST: Final = 3  # words of a topic
_LINES: Final = 3  # of the user, at least, that say it
_DAYS: Final = 2  # on which it is said, at least
_SHORT: Final = 4  # in a short talk, of so many lines one
_LONG: Final = 40  # and in a long one
_EACH: Final = 8  # messages of the user have one topic more
_LEAST_LETTERS: Final = 4
_AS_OFTEN: Final = 0.5  # of a word's lines, from which a longer phrase says it better
_TOGETHER: Final = 0.3  # what a phrase weighs more than a word, for each word more
_ARTICLES: Final = 0.03  # of a talk's words, from which its language sets them before things
_LED: Final = 2  # words behind an article that it may be of: "the glaze", "the blue glaze"
_THINGS: Final = 0.1  # of the places of a word at which an article shows that it is a thing

_Terms = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """What is talked about.

    Attributes:
        text: The words, as they were said most often.
        number: The sequence of the last message that says them so.
    """

    text: str
    number: int


@dataclass(slots=True)
class _Occurrences:
    """Where a phrase is said: in which lines, on which days, and in which words."""

    lines: set[int] = field(default_factory=set)
    days: set[date] = field(default_factory=set)
    forms: Counter[str] = field(default_factory=Counter)
    last: dict[str, int] = field(default_factory=dict)

    def add(self, text: str, sentence: Sentence) -> None:
        """Count one more place."""
        self.lines.add(sentence.place)
        self.days.add(day(sentence.line))
        self.forms[text] += 1
        self.last[text] = sentence.line.number

    @property
    def topic(self) -> Topic:
        """The words that are said most often, of several the last in small letters."""
        text = max(self.forms, key=lambda each: (self.forms[each], each.islower(), self.last[each]))
        return Topic(text, self.last[text])


def topics(sentences: Sequence[Sentence], known_topics: Iterable[str], names: Iterable[str], limit: int) -> list[Topic]:
    """The new topics, the weightiest first.

    A topic is said in three messages of the user on two days; of a few messages in a quarter, of very many in a
    fortieth. What is somebody's name is none, nor is a word that is never used as a thing.

    Args:
        sentences: What was said.
        known_topics: The topics that are known already.
        names: Who and what is named; these words are no topics.
        limit: How many at most, of many messages; fewer of a few.
    """
    own = [each for each in sentences if each.line.role == "user"]
    total = len({each.place for each in own})
    lines = max(min(_LINES, max(2, math.ceil(total / _SHORT))), math.ceil(total / _LONG))
    days = min(_DAYS, len({day(each.line) for each in own}))
    is_short = lines < _LINES  # too short to tell how a word is used
    named = _persons() | {stem(word) for name in names for word in keys(WORD.findall(name))}
    found: defaultdict[_Terms, _Occurrences] = defaultdict(_Occurrences)
    for sentence in own:
        for terms, text in _grams(sentence.reading, named):
            found[terms].add(text, sentence)
    things = _things(sentences)
    often = {
        terms: said
        for terms, said in found.items()
        if len(said.lines) >= lines
        and len(said.days) >= days
        and (things is None or terms[-1] in things or (is_short and len(terms) > 1))
    }
    sharing: defaultdict[str, list[_Terms]] = defaultdict(list)
    for terms in often:
        for each in set(terms):
            sharing[each].append(terms)
    weight = {
        terms: math.sqrt(len(said.lines)) * math.log(1 + total / len(said.lines)) * (1 + _TOGETHER * (len(terms) - 1))
        for terms, said in often.items()
        if not any(_is_better_form(terms, other, often) for each in terms for other in sharing[each])
    }
    present = [frozenset(stems(each)) for each in known_topics]
    chosen: list[_Terms] = []
    for terms in sorted(weight, key=lambda each: (-weight[each], each)):
        if len(chosen) == min(limit, 1 + total // _EACH):
            break
        if not any(_is_part(terms, other) for other in (*present, *chosen)) and not any(
            often[terms].lines == often[other].lines for other in chosen
        ):
            chosen.append(terms)
    return [often[terms].topic for terms in chosen]


def _is_part(one: Collection[str], two: Collection[str]) -> bool:
    """Whether all words of one of two phrases are in the other."""
    return set(one) <= set(two) or set(two) <= set(one)


def _is_better_form(terms: _Terms, other: _Terms, often: dict[_Terms, _Occurrences]) -> bool:
    """Whether another phrase is to stand for one: a longer one that is said nearly as often, or else its part."""
    if terms == other or not _is_part(terms, other):
        return False
    longer, part = (other, terms) if len(other) > len(terms) else (terms, other)
    is_said = len(often[longer].lines) >= _AS_OFTEN * len(often[part].lines)
    return is_said == (longer == other)


def _grams(reading: ParsedText, names: frozenset[str]) -> Iterator[tuple[_Terms, str]]:
    """The phrases of a sentence that may be topics: words of content, one space apart."""
    plain = _plain()
    terms = [
        ""
        if word in plain
        or stem(word) in names
        or word[0].isdecimal()
        or len(word) < _LEAST_LETTERS - (not word.isascii()) * 2
        else word
        for word in reading.words
    ]
    for first, word in enumerate(terms):
        if not word:
            continue
        for end in range(first + 1, min(first + _LONGEST, len(terms)) + 1):
            if not terms[end - 1]:
                break
            if end - 1 > first and not _touches(reading, end - 1):
                break
            key = tuple(stem for each in terms[first:end] for stem in stems(each)[:2])
            if key:
                yield key, reading.text[reading.starts[first] : reading.ends[end - 1]]


def _touches(reading: ParsedText, index: int) -> bool:
    """Whether nothing but a space or a hyphen is between a word and the one before it."""
    return 0 < index < len(reading.words) and reading.text[reading.ends[index - 1] : reading.starts[index]] in (
        " ",
        "-",
    )


def _things(sentences: Iterable[Sentence]) -> frozenset[str] | None:
    """The stems that are used as things: an article, an owner or a number is before them, and no other word follows.

    Returns:
        The stems, or `None` where the language sets nothing before a thing.
    """
    known = articles()
    count = total = 0
    often: Counter[str] = Counter()
    things: Counter[str] = Counter()
    for sentence in sentences:
        reading = sentence.reading
        led = 0
        for at, word in enumerate(reading.words):
            is_article = word in known or word[0].isdecimal()
            total, count = total + 1, count + (word in known)
            if is_article or not stems_of([word]):
                led = _LED * is_article
                continue
            made = stem(word)
            often[made] += 1
            is_last = not (_touches(reading, at + 1) and stems_of([reading.words[at + 1]]))
            led = led if _touches(reading, at) else 0
            things[made] += led > 0 and is_last
            led -= 1
    if count < _ARTICLES * total:
        return None
    return frozenset(each for each, led in things.items() if led and led >= _THINGS * often[each])


@cache
def _persons() -> frozenset[str]:
    """The stems of what somebody is to the speaker: sister, friend, boss."""
    return frozenset(stem(word) for word, kinds in phrases().known.items() if "person_before" in kinds)


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
        "copula", "now", "others", "determiner", "person_after", "vague", "superlative",
    }  # fmt: skip
    return frozenset(known | {word for word, kinds in phrases().known.items() if kinds & spoken})
