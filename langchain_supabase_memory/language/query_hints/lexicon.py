"""What the languages know about names, dates and questions: their `cues.toml`, read once and joined into a lexicon.

These are its tables, all optional:

- `[months]` and `[weekdays]`: by number; Monday is 1.
- `[days]`: words for a day by its distance from today: `-1` is yesterday.
- `[units]`: the words for `day`, `week`, `weekend`, `month` and `year`, and for a `moment`, which is less than a day.
- `[seasons]`: the words for `spring`, `summer`, `autumn` and `winter`, those of the northern half of the earth.
- `[numbers]`: cardinal numbers from two on. A word that often means something else, in any of the languages, has no
  place here: the Italian "due", the Spanish "once", the German "elf".
- `[weak]`: `words` are those months and weekdays that also mean something else: "may", "march", "mars". They count only
  beside a figure, after a word of `in` (a month), `on` (a weekday), `since`, `until` or the like, or, if they are in
  `capital`, with a capital inside a sentence. A season that is weak ("fall") counts only before a year or after a word
  of `during`, `article`, `last`, `since` or the like. A word of `[days]` that is weak counts only where it does not
  begin a sentence.
- `[words]`: lists of words by the part they play; `KINDS` says what the parts are. Several words may name a time and
  play a part: "da lunedì" is a weekday and of `since`, since "da" alone is something else in another language.

Words are compared as `spelling` says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast, get_args

from langchain_supabase_memory.language.lexicon import (
    COUNTED,
    languages,
    load,
    load_once,
    merge_entries,
    multi_word,
    single_word,
    table_words,
)
from langchain_supabase_memory.language.query_hints.calendar_spans import Season
from langchain_supabase_memory.language.spelling import comparison_form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.lexicon import File, Tables

KINDS: Final = {
    # around a date
    "in": "before a month or a year, and seldom before a verb: in, since, noong",
    "around": "before a year, too: by, before",
    "on": "before a weekday: on",
    "past": "of `in`, what says that a weekday is over: noong",
    "of": "between a day, its month and its year: of, de, ng",
    "ordinal": "what is glued to the figure of a day: st, nd, er",
    "before": "before a time that a span, or a weekday, comes before: (the Sunday) before",
    "after": "before a time that it comes after: after",
    # relative to now
    "last": "before a unit, a weekday, a month or a part of the year: last, nakaraang",
    "last_after": "the same behind it: pasado, dernier, lalu",
    "before_last": "before a unit, says that it is the one before the last one: vorletzte",
    "before_last_after": "the same behind it: (the week) before last, retrasada",
    "next": "before it: next, susunod na",
    "next_after": "behind it: prochain, depan",
    "this": "before it: this, ngayong",
    "this_after": "behind it: ini",
    "one": "one as a number of units: a (week ago), isang",
    "two": "two as a number of units, if the word means something else as well: due",
    "some": "a number of units that is not said: few, several",
    "ago": "behind a number of units: ago, fa",
    "already": "behind it, too, but never without a number: (two years) now, na",
    "ago_before": "before it: hace, vor, il y a",
    "part": "parts of a day or a year that are no season: evening, semester",
    # a span of days
    "during": "before a weekend or a season, the latest of which it means: in, over, am, noong",
    "recent": "before a number of units that end today: last, past, letzten",
    "recent_inside": "between the number and the unit: derniers, ultimi",
    "recent_after": "behind the unit: terakhir",
    "within": "before such a number, and before a unit without one: in the past",
    "since": "before a time that begins a span until today: since, seit",
    "until": "before a time that ends a span: until, bis",
    "between": "before the first of two times with a word of `and` between them: between, zwischen",
    "from": "before the first of two times with a word of `to` between them: from, vom",
    "and": "between two times behind a word of `between`: and, und",
    "to": "between two times: to, bis zum",
    "article": "may stand before a time, its number or its unit and says nothing of it: the, dem, ika",
    "time": "says a time, alone: midnight, the other day",
    "hour": "behind a figure, makes it a time of day: am, o'clock, Uhr",
    "hour_before": "before it: alas",
    # numbers
    "number": "a number that has no figure in `numbers`: dozen, twice, thousands",
    # what a question asks for
    "asks_time": "asks for a time, wherever it stands: what year, kailan",
    "asks_number": "asks for a number, wherever it stands: how many, ilan",
    "opens_time": "asks for a time where it opens a question: when",
    "opens_number": "asks for a number where it opens a question: quanto",
    "earliest": "asks for the earliest of what was said: the first time, earliest, zum ersten Mal",
    "newest": "asks for the newest of it: most recently, latest, zuletzt",
    "earliest_adverb": "asks for the earliest behind a subject: (when did I) first",
    "newest_adverb": "asks for the newest there: (when did I) last",
    "subject": "a pronoun that such a word may stand behind: I, they, ich",
    "past_auxiliary": "before that pronoun, says that something has happened: did, was, habe",
    "addressee": "the one who is asked, before what they said: you, du, hai",
    "addressee_after": "the same behind it: (sinabi) mo",
    "tell": "a verb of saying behind a `past_auxiliary` and the addressee: (did you) recommend",
    "told": "a verb of saying in the past, beside the addressee: (you) recommended, (hast du) empfohlen",
    "you_told": "the addressee and such a verb in one word: recomendaste",
    "idiom": "several words, some of which mean something else otherwise: at the latest, last name",
    "auxiliary": "must follow what opens a question, in a language that has it: (when) did",
    "lead": "may stand before what opens a question: and, since",
    "indirect": "opens a question inside a sentence: (do you) know, tell me",
    "question": "opens a question: what, bakit",
    "request": "opens a sentence that asks for something without a question mark: remind me, give me",
    # what is no name
    "function": "words that may have a capital and are no name: the, she, is",
    "first": "words that are no name where they begin a sentence: tell, will",
    "other": "what is written with a capital and is nobody: English, Christmas, Dr",
}
"""The parts that a word can play, each with its meaning and examples. A word may play several."""

TABLES: Final[Tables] = {
    "months": COUNTED,
    "weekdays": COUNTED,
    "days": re.compile(r"-?[0-9]"),
    "units": ("moment", "day", "week", "weekend", "month", "year"),
    "seasons": get_args(Season),
    "numbers": COUNTED,
    "weak": ("words", "capital"),
    "words": KINDS,
}


@dataclass(frozen=True, slots=True)
class Weak:
    """What must stand beside a word that is not always a month or a weekday.

    Attributes:
        before: Words of its language that may stand before it, if it is one.
        after: Words of its language that may follow its day.
        capital: Whether a capital inside a sentence is enough.
    """

    before: frozenset[str]
    after: frozenset[str]
    capital: bool

    def __or__(self, other: Weak) -> Weak:
        """What two languages know together."""
        return Weak(self.before | other.before, self.after | other.after, self.capital or other.capital)


_BARE: Final = Weak(frozenset(), frozenset(), capital=False)


@dataclass(frozen=True, slots=True)
class HintEntry:
    """What is known about a word.

    Attributes:
        kinds: The parts it can play, of `KINDS`.
        month: The month it names.
        weekday: The weekday it names, from 1 for Monday.
        day: The day it names, as a distance from today.
        unit: The unit of time it names: `moment`, `day`, `week`, `weekend`, `month` or `year`.
        season: The season it names.
        number: The number it names.
        weak: What it needs to be a month, a weekday, a season or a day; nothing if it always is.
        auxiliaries: Of what opens a question, the words one of which must follow; none if any may.
        says_time: Whether a text may say a time because of this word.
        asks: Whether a text may ask for something because of this word.
    """

    kinds: frozenset[str] = frozenset()
    month: int | None = None
    weekday: int | None = None
    day: int | None = None
    unit: str | None = None
    season: Season | None = None
    number: int | None = None
    weak: Weak | None = None
    auxiliaries: frozenset[str] = frozenset()
    says_time: bool = False
    asks: bool = False

    @property
    def is_named(self) -> bool:
        """Whether it can be a month or a weekday."""
        return self.month is not None or self.weekday is not None

    def __or__(self, other: HintEntry) -> HintEntry:
        """What two files, or two tables, know together."""
        weak = self.weak or other.weak
        if self.is_named and other.is_named:
            weak = self.weak | other.weak if self.weak and other.weak else None
        return HintEntry(
            self.kinds | other.kinds,
            self.month if self.month is not None else other.month,
            self.weekday if self.weekday is not None else other.weekday,
            self.day if self.day is not None else other.day,
            self.unit or other.unit,
            self.season or other.season,
            self.number if self.number is not None else other.number,
            weak,
            self.auxiliaries | other.auxiliaries,
        )


_RELATIVE: Final = frozenset(
    {
        "last",
        "last_after",
        "before_last",
        "before_last_after",
        "next",
        "next_after",
        "this",
        "this_after",
        "ago",
        "already",
        "ago_before",
        "past",
        "on",
        "during",
        "recent",
        "recent_inside",
        "recent_after",
        "within",
        "since",
    },
)
NOTHING: Final = HintEntry()
FIGURE: Final = HintEntry(says_time=True)
_ASKS: Final = frozenset({"asks_time", "asks_number", "opens_time", "opens_number"})


@dataclass(slots=True)
class HintLexicon:
    """Everything the languages know, ready to be looked up.

    Attributes:
        entries: What is known about single words.
        phrases: What is known about several words: by the first two, the words after them, the longest first.
        times: Words that alone say a time.
        dated: Words that say a time with others.
        units: Of those, the units and parts of time, which do so only with one of `relative`.
        telling: Words that may say a time or a number, and the first two of several that do together.
        relative: Words that relate a unit to now. Of several words that mean something together, the longest counts.
        numbers: Words that are a number.
        unnamed: Words that are no name, wherever they stand.
        first: Words that are no name where they begin a sentence.
    """

    entries: dict[str, HintEntry]
    phrases: dict[tuple[str, str], list[tuple[tuple[str, ...], HintEntry]]]
    times: frozenset[str]
    dated: frozenset[str]
    units: frozenset[str]
    telling: frozenset[str | tuple[str, str]]
    relative: frozenset[str]
    numbers: frozenset[str]
    unnamed: frozenset[str]
    first: frozenset[str]


@load_once
def lexicon() -> HintLexicon:
    """The lexicon of all languages, read when it is first needed."""
    files = [load("cues", language, TABLES) for language in languages("cues")]
    merged = merge_entries(entry for file in files for entry in _entries(file))
    # Most words share an entry with others, so that each is completed once.
    complete = {
        entry: replace(entry, says_time=_says_time(entry), asks=not _ASKS.isdisjoint(entry.kinds))
        for entry in {*merged.values()}
    }
    known = {words: complete[entry] for words, entry in merged.items()}
    single = single_word(known).items()
    saying = [(words, entry) for words, entry in known.items() if entry.says_time]
    times = frozenset(words[0] for words, entry in saying if len(words) == 1 and _is_sure(entry))
    units = {
        max(words, key=len)
        for words, entry in saying
        if (entry.unit or "part" in entry.kinds) and not _is_sure(entry) and not entry.is_named
    }
    numbers = frozenset(word for word, entry in single if entry.number is not None or "number" in entry.kinds)
    dated = {word for word, entry in single if entry.day is not None or (entry.is_named and _is_no_name(entry))}
    never = {word for word, entry in single if entry.kinds & {"function", "other", "question"}}
    return HintLexicon(
        entries=single_word(known),
        phrases=multi_word(known),
        times=times,
        dated=frozenset(max(words, key=len) for words, _ in saying) - units - times,
        units=frozenset(units) - times,
        telling=frozenset(
            words[0] if len(words) == 1 else (words[0], words[1])
            for words, entry in known.items()
            if entry.says_time or entry.number is not None
        ),
        relative=frozenset(max(words, key=len) for words, entry in known.items() if entry.kinds & _RELATIVE),
        numbers=numbers,
        unnamed=frozenset(dated | never | numbers),
        first=frozenset(word for word, entry in single if "first" in entry.kinds),
    )


def _says_time(entry: HintEntry) -> bool:
    """Whether a text may say a time because of this word."""
    return bool(entry.is_named or entry.unit or entry.season or entry.day is not None or entry.kinds & {"part", "time"})


def _is_sure(entry: HintEntry) -> bool:
    """Whether a word says a time, whatever stands beside it."""
    named = entry.day is not None or entry.is_named
    return (named and entry.weak is None) or "time" in entry.kinds


def _is_no_name(entry: HintEntry) -> bool:
    """Whether a month or a weekday with a capital is never anybody's name; "Julio" may be."""
    return entry.weak is None or entry.weak.capital


def _entries(file: File) -> Iterator[tuple[tuple[str, ...], HintEntry]]:
    """Every word of a file, with what the file knows about it."""
    words: dict[str, list[str]] = file["words"]
    auxiliaries = _heads(words, "auxiliary")
    after = auxiliaries | _heads(words, "function")
    relative, bounds = ("last", "next", "this"), ("since", "until", "before", "after", "between")
    before = {
        "months": _heads(words, "in", *bounds),
        "weekdays": _heads(words, "on", "past", *relative, *bounds),
        "seasons": _heads(words, "during", "article", *relative, *bounds),
    }
    weak, capital = file["weak"].get("words", ()), file["weak"].get("capital", ())
    for table in ("months", "weekdays"):
        for number, text in table_words(file[table]):
            entry = HintEntry(month=int(number)) if table == "months" else HintEntry(weekday=int(number))
            if text in weak:
                entry = replace(entry, weak=Weak(before[table], after, text in capital))
            yield comparison_form(text), entry
    for number, text in table_words(file["days"]):
        yield comparison_form(text), HintEntry(day=int(number), weak=_BARE if text in weak else None)
    for unit, text in table_words(file["units"]):
        yield comparison_form(text), HintEntry(unit=unit)
    for season, text in table_words(file["seasons"]):
        entry = HintEntry(season=cast("Season", season))
        if text in weak:
            entry = replace(entry, weak=Weak(before["seasons"], after, text in capital))
        yield comparison_form(text), entry
    for number, text in table_words(file["numbers"]):
        yield comparison_form(text), HintEntry(number=int(number))
    for kind, texts in words.items():
        opening = auxiliaries if kind in ("opens_time", "opens_number", "question") else frozenset()
        entry = HintEntry(frozenset({kind}), auxiliaries=opening)
        yield from ((comparison_form(text), entry) for text in texts)


def _heads(first_words: dict[str, list[str]], *kinds: str) -> frozenset[str]:
    """The first word of each entry of some kinds."""
    return frozenset(comparison_form(text)[0] for kind in kinds for text in first_words.get(kind, ()))
