"""Find named people, places, organizations and dates, and classify them by the words around them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.phrases import phrases
from langchain_supabase_memory.language.extractive.utterances import day
from langchain_supabase_memory.language.query_hints.dates import dates
from langchain_supabase_memory.language.query_hints.lexicon import lexicon
from langchain_supabase_memory.language.query_hints.names import capitalized
from langchain_supabase_memory.language.query_hints.words import HintWords
from langchain_supabase_memory.language.sentences import begins_sentence
from langchain_supabase_memory.language.spelling import LETTERS, WORD, compose, key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from langchain_supabase_memory.language.extractive.phrases import ParsedText
    from langchain_supabase_memory.language.extractive.utterances import Sentence

TYPES: Final = ("person", "place", "organization", "date", "other")

_CONTEXTS: Final = {
    "person_before": "person",
    "person_after": "person",
    "place_before": "place",
    "organization_before": "organization",
    "organization_after": "organization",
    "other_before": "other",
}
_STRONG: Final = frozenset({"person_before", "person_after", "other_before"})
_BEFORE: Final = tuple(kind for kind in _CONTEXTS if kind.endswith("before"))
_BEGUN: Final = re.compile(rf"(?<![^\W\d_]){LETTERS}")
_LAST: Final = re.compile(r"\b([^\W\d_a-z][^\W\d_]{2,30}) \Z")
_QUOTED: Final = re.compile('"[^"]{1,200}"|\u201c[^\u201d]{1,200}\u201d')
_SHORTEST: Final = 3
_JOINTS: Final = frozenset({" of ", " of the ", "' ", "\u2019 "})
_HYPHENS: Final = ".-\u2010\u2011"
_GAPS: Final = frozenset({" ", ". ", "'", "\u2019"})
_RECURS: Final = 2  # occurrences that a name of unknown type needs
_MAX_DATES: Final = 8
_LONGEST: Final = 60
_ABBREVIATED: Final = 3  # letters of "Nov"
_NOUNS: Final = 2  # articles in a sentence from which its language is one that capitalizes nouns


@dataclass(frozen=True, slots=True)
class Entity:
    """A named entity.

    Attributes:
        name: The name as written in the message.
        type: One of `TYPES`.
        number: The message's sequence.
    """

    name: str
    type: str
    number: int


@dataclass(slots=True)
class _NameStats:
    """What is known about a name; `first` is the first sentence that contains it."""

    first: tuple[str, int]
    count: int = 0
    lines: set[int] = field(default_factory=set)
    is_users: bool = False
    votes: Counter[str] = field(default_factory=Counter)


def entities(sentences: Sequence[Sentence], known_names: frozenset[str], limit: int) -> list[Entity]:
    """Return the new names and dates, in the order of their first mention.

    Args:
        sentences: The sentences of the conversation.
        known_names: The names that are already known, case-folded.
        limit: The maximum number of entities.
    """
    found: dict[str, _NameStats] = {}
    speakers = {key(each.line.speaker) for each in sentences if each.line.speaker}
    for sentence in (each for each in sentences if each.is_prose):
        for name, start in _whole_names(sentence):
            seen = found.setdefault(key(name), _NameStats((name, sentence.line.number)))
            seen.count += 1
            seen.lines.add(sentence.place)
            seen.is_users = seen.is_users or sentence.line.role == "user"
            _vote(seen.votes, name, start, sentence.reading)
    for speaker in speakers & found.keys():
        found[speaker].votes["person"] += _LONGEST
    lower = {word for each in sentences for word in WORD.findall(each.text) if word.islower()}
    for name in [name for name, seen in found.items() if not seen.votes["person"] and lower.issuperset(name.split())]:
        del found[name]  # words that are no name elsewhere: a title, or emphasis
    _join(found)
    ranked = [
        (seen.count + (2 if seen.votes else 0), each, seen)
        for each, seen in found.items()
        if each not in known_names
        and (seen.votes or seen.count >= _RECURS)
        and (seen.is_users or len(seen.lines) >= _RECURS)  # an assistant's examples are in one message
    ]
    best = sorted(ranked, key=lambda item: -item[0])[: max(limit - _MAX_DATES, 0)]
    kept = {each for _, each, _ in best}
    made = [Entity(seen.first[0], _type(seen.votes), seen.first[1]) for each, seen in found.items() if each in kept]
    return [*made, *_dates(sentences, known_names)]


def find_names(text: str, reading: ParsedText | None) -> Iterator[tuple[str, int]]:
    """Yield the names inside the sentences of a text with their places; adjacent names are joined.

    Args:
        text: The text.
        reading: The parsed text; `None` if it contains no article that precedes nouns.
    """
    places: list[tuple[int, int]] = []
    at = 0
    for name in capitalized(text, inside=True):
        start = text.find(name, at)
        if start < 0:  # the lexicon normalized an apostrophe or an accent
            continue
        at = start + len(name)
        if places and text[places[-1][1] : start] == " " and at - places[-1][0] <= _LONGEST:
            places[-1] = places[-1][0], at
        else:
            places.append((start, at))
    places = [place for place in places if _is_word(text, place[0])]
    if reading is not None and places and not noun_articles().isdisjoint(reading.words):
        is_nouns = len(noun_articles().intersection(reading.words)) >= _NOUNS
        introduced = {each.end for each in reading.all(*_BEFORE)}
        places = [place for place in places if not _is_noun(place[0], reading, introduced, is_nouns=is_nouns)]
    for start, end in places:
        yield text[start:end], start


def _whole_names(sentence: Sentence) -> Iterator[tuple[str, int]]:
    """Yield the names in a sentence in full: "University of the West Indies"; no part of a compound or of a title."""
    text, places = sentence.text, list[tuple[int, int]]()
    for name, begin in find_names(text, sentence.reading):
        start, end = _extended(text, begin), begin + len(name)
        if places and text[places[-1][1] : start] in _JOINTS and end - places[-1][0] <= _LONGEST:
            places[-1] = places[-1][0], end
        else:
            places.append((start, end))
    quoted = list(_QUOTED.finditer(text))
    for start, end in places:
        is_part = text[end : end + 1] in _HYPHENS and text[end + 1 : end + 2].isalnum()
        if not is_part and end - start >= _SHORTEST and not any(each.start() < start < each.end() for each in quoted):
            yield text[start:end], start


def _extended(text: str, start: int) -> int:
    """Return the start of a name with the word before it, if that has a capital: "Google Docs"."""
    before = _LAST.search(text, max(start - _LONGEST, 0), start)
    if before is None or begins_sentence(text, before.start()) or _is_dated(key(before.group(1))):
        return start
    return before.start()


def _is_word(text: str, start: int) -> bool:
    """Return whether a word that is not a month or a weekday begins at a place."""
    word = _BEGUN.match(text, start)
    return word is not None and not _is_dated(key(word.group()))


def _is_noun(start: int, reading: ParsedText, introduced: Collection[int], *, is_nouns: bool) -> bool:
    """Return whether the word at a place is capitalized because it is a noun.

    Args:
        start: The place.
        reading: The text.
        introduced: The words that follow a phrase that precedes names.
        is_nouns: Whether the language of the text capitalizes nouns.
    """
    word = bisect_left(reading.starts, start)
    if not is_nouns and (word == 0 or reading.words[word - 1] not in noun_articles()):
        return False
    return word not in introduced


@cache
def noun_articles() -> frozenset[str]:
    """Return the words that precede nouns, in the languages that capitalize nouns."""
    return frozenset(word for word, kinds in phrases().known.items() if "noun_before" in kinds)


def _is_dated(word: str) -> bool:
    """Return whether a word is a month or a weekday."""
    entry = lexicon().entries.get(word)
    return entry is not None and entry.is_named and (entry.weak is None or len(word) == _ABBREVIATED)


def _vote(votes: Counter[str], name: str, start: int, reading: ParsedText) -> None:
    """Count the types that the words around a name suggest; a longer phrase counts more."""
    end = start + len(name)
    first = next((at for at, each in enumerate(reading.starts) if each == start), -1)
    last = next((at for at, each in enumerate(reading.ends) if each == end), -1)
    for each in reading.phrases:
        length = 2 * (each.end - each.first) - 1
        for kind in each.kinds & _CONTEXTS.keys():
            before = kind.endswith("before") and each.end == first
            after = kind.endswith("after") and last >= 0 and each.first == last + 1
            inside = kind == "organization_after" and each.end - 1 == last and first < each.first
            gap = (reading.ends[each.end - 1], start) if before else (end, reading.starts[each.first])
            if inside or (
                (before or after) and _touches(reading.text[slice(*gap)], reading.words[each.first], is_after=after)
            ):
                votes[_CONTEXTS[kind]] += 3 * length if inside or kind in _STRONG else length


def _touches(gap: str, word: str, *, is_after: bool) -> bool:
    """Return whether a gap between a name and the first word of a phrase joins them: "Ines, who"."""
    return gap in _GAPS or (is_after and gap == ", " and word == "who")


def _type(votes: Counter[str]) -> str:
    """Return the type that most of the words around a name suggest."""
    return min(votes, key=lambda each: (-votes[each], TYPES.index(each))) if votes else "other"


def _join(names: dict[str, _NameStats]) -> None:
    """Merge "Ines" into "Ines Lim" if only one full name contains it."""
    longer: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        if " " in name:
            longer[name.split(" ")[0]].append(name)
    for short, full in longer.items():
        if short in names and len(full) == 1:
            seen = names.pop(short)
            names[full[0]].count += seen.count
            names[full[0]].votes.update(seen.votes)
            names[full[0]].lines |= seen.lines
            names[full[0]].is_users |= seen.is_users


def _dates(sentences: Iterable[Sentence], known_names: frozenset[str]) -> list[Entity]:
    """Return the latest dates that name at least a month."""
    made: dict[object, Entity] = {}
    for sentence in sentences:
        text = sentence.text
        is_said = sentence.is_prose or sentence.line.role == "user"
        if not (is_said and sentence.marks.has_time) or compose(text) != text:
            continue
        found = list(dates(HintWords(text), day(sentence.line)))
        if sentence.line.role != "user" and len(found) > 1:
            continue  # a schedule that an assistant proposes
        for each in found:
            said = text[each.start : each.end]
            if each.date is None or each.date.month is None or not (each.date.day or each.date.year):
                continue
            if any(letter.isdecimal() for letter in said) and key(said) not in known_names and each.date not in made:
                made[each.date] = Entity(said, "date", sentence.line.number)
    return list(made.values())[-_MAX_DATES:]
