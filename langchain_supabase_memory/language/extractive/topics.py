"""Find the topics of a conversation: words and phrases that its user repeats on another day."""

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

_LONGEST: Final = 3  # maximum words of a topic
_LINES: Final = 3  # minimum user messages that mention it
_DAYS: Final = 2  # minimum days on which it is mentioned
_SHORT: Final = 4  # in a short conversation, one in so many lines must mention it
_LONG: Final = 40  # the same in a long conversation
_EACH: Final = 8  # user messages for each further topic
_MIN_LETTERS: Final = 4
_AS_OFTEN: Final = 0.5  # share of a word's lines from which a longer phrase replaces it
_TOGETHER: Final = 0.3  # extra weight of a phrase, for each further word
_ARTICLES: Final = 0.03  # share of words from which a language counts as one with articles
_LED: Final = 2  # words after an article that it may belong to: "the glaze", "the blue glaze"
_THINGS: Final = 0.1  # share of a word's occurrences at which an article marks it as a thing

_Terms = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoardTopic:
    """A topic.

    Attributes:
        text: Its most frequent wording.
        number: The sequence of the last message with this wording.
    """

    text: str
    number: int


@dataclass(slots=True)
class _Occurrences:
    """The occurrences of a phrase: its lines, its days and its wordings."""

    lines: set[int] = field(default_factory=set)
    days: set[date] = field(default_factory=set)
    forms: Counter[str] = field(default_factory=Counter)
    last: dict[str, int] = field(default_factory=dict)

    def add(self, text: str, sentence: Sentence) -> None:
        """Count one more occurrence."""
        self.lines.add(sentence.place)
        self.days.add(day(sentence.line))
        self.forms[text] += 1
        self.last[text] = sentence.line.number

    @property
    def topic(self) -> BoardTopic:
        """Return the most frequent wording; of several, the last one in lowercase."""
        text = max(self.forms, key=lambda each: (self.forms[each], each.islower(), self.last[each]))
        return BoardTopic(text, self.last[text])


def topics(
    sentences: Sequence[Sentence], known_topics: Iterable[str], names: Iterable[str], limit: int
) -> list[BoardTopic]:
    """Return the new topics, the weightiest first.

    A topic occurs in three user messages on two days; in a short conversation in a quarter of them, in a very long one
    in a fortieth. Names are excluded, and so are words that are never used as a thing.

    Args:
        sentences: The sentences of the conversation.
        known_topics: The topics that are already known.
        names: The named entities, whose words are not topics.
        limit: The maximum number for a long conversation; a short one gets fewer.
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
    """Return whether all words of one of two phrases are in the other."""
    return set(one) <= set(two) or set(two) <= set(one)


def _is_better_form(terms: _Terms, other: _Terms, often: dict[_Terms, _Occurrences]) -> bool:
    """Return whether another phrase replaces one: a longer one that occurs nearly as often, or else its part."""
    if terms == other or not _is_part(terms, other):
        return False
    longer, part = (other, terms) if len(other) > len(terms) else (terms, other)
    is_said = len(often[longer].lines) >= _AS_OFTEN * len(often[part].lines)
    return is_said == (longer == other)


def _grams(reading: ParsedText, names: frozenset[str]) -> Iterator[tuple[_Terms, str]]:
    """Yield the candidate topics of a sentence: content words separated by one space."""
    plain = _plain()
    terms = [
        ""
        if word in plain
        or stem(word) in names
        or word[0].isdecimal()
        or len(word) < _MIN_LETTERS - (not word.isascii()) * 2
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
    """Return whether only a space or a hyphen separates a word from the one before it."""
    return 0 < index < len(reading.words) and reading.text[reading.ends[index - 1] : reading.starts[index]] in (
        " ",
        "-",
    )


def _things(sentences: Iterable[Sentence]) -> frozenset[str] | None:
    """Return the stems used as things: an article, an owner or a number precedes them, and no other word follows.

    Returns:
        The stems, or `None` if the language has no articles.
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
    """Return the stems of words for a relation to the speaker: sister, friend, boss."""
    return frozenset(stem(word) for word, kinds in phrases().known.items() if "person_before" in kinds)


@cache
def _plain() -> frozenset[str]:
    """Return the words that cannot be in a topic."""
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
