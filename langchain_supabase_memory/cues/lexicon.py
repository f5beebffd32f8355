"""What the languages know about names, dates and questions: data files, read once and joined into a lexicon.

A file has a `name` and these tables, all optional but one:

- `[months]` and `[weekdays]`: by number; Monday is 1.
- `[days]`: words for a day by its distance from today: `-1` is yesterday.
- `[units]`: the words for `day`, `week`, `month` and `year`, and for a `moment`, which is less than a day.
- `[numbers]`: cardinal numbers from two on. A word that often means something else, in any of the languages, has no
  place here: the Italian "due", the Spanish "once", the German "elf".
- `[weak]`: `words` are those months and weekdays that also mean something else: "may", "march", "mars". They count only
  beside a figure, after a word of `in` (a month) or `on` (a weekday), or, if they are in `capital`, with a capital
  inside a sentence. A word of `[days]` that is weak counts only where it does not begin a sentence.
- `[words]`: lists of words by the part they play; `KINDS` says what the parts are.

Words are written in lower case and compared without accents; an apostrophe or a hyphen stands between two words.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

LANGUAGES: Final = ("en", "tl", "es", "fr", "de", "pt", "it", "id")
"""The languages that are known, all of which are in use at once."""

KINDS: Final = {
    # around a date
    "in": "before a month or a year, and seldom before a verb: in, since, noong",
    "around": "before a year, too: by, before",
    "on": "before a weekday: on",
    "past": "of `in`, what says that a weekday is over: noong",
    "of": "between a day, its month and its year: of, de, ng",
    "ordinal": "what is glued to the figure of a day: st, nd, er",
    "before": "between a weekday and the date that it comes before: (the Sunday) before",
    "after": "the same for the date that it comes after",
    # relative to now
    "last": "before a unit, a weekday, a month or a part of the year: last, nakaraang",
    "last_after": "the same behind it: pasado, dernier, lalu",
    "next": "before it: next, susunod na",
    "next_after": "behind it: prochain, depan",
    "this": "before it: this, ngayong",
    "this_after": "behind it: ini",
    "one": "one as a number of units: a (week ago), isang",
    "some": "a number of units that is not said: few, several",
    "ago": "behind a number of units: ago, fa",
    "already": "behind it, too, but never without a number: (two years) now, na",
    "ago_before": "before it: hace, vor, il y a",
    "part": "parts of a day, a week or a year: summer, evening, weekend",
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
    "auxiliary": "must follow what opens a question, in a language that has it: (when) did",
    "lead": "may stand before what opens a question: and, since",
    "indirect": "opens a question inside a sentence: (do you) know, tell me",
    "question": "opens a question: what, bakit",
    # what is no name
    "function": "words that may have a capital and are no name: the, she, is",
    "first": "words that are no name where they begin a sentence: tell, will",
    "other": "what is written with a capital and is nobody: English, Christmas, Dr",
}
"""The parts that a word can play, each with its meaning and examples. A word may play several."""

TABLES: Final = ("months", "weekdays", "days", "units", "numbers", "weak", "words")
UNITS: Final = ("moment", "day", "week", "month", "year")

WORD: Final = re.compile(r"[^\W\d_]+|\d+")
"""A word or a figure of a text."""

_MARKED: Final = re.compile(r"[^\W\d_][\u0300-\u036f]{1,4}")
_LONGEST: Final = 40  # of a word that is known


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
class Entry:
    """What is known about a word.

    Attributes:
        kinds: The parts it can play, of `KINDS`.
        month: The month it names.
        weekday: The weekday it names, from 1 for Monday.
        day: The day it names, as a distance from today.
        unit: The unit of time it names, of `UNITS`.
        number: The number it names.
        weak: What it needs to be a month, a weekday or a day; nothing if it always is.
        auxiliaries: Of what opens a question, the words one of which must follow; none if any may.
        says_time: Whether a text may say a time because of this word.
        asks: Whether a text may ask for something because of this word.
    """

    kinds: frozenset[str] = frozenset()
    month: int | None = None
    weekday: int | None = None
    day: int | None = None
    unit: str | None = None
    number: int | None = None
    weak: Weak | None = None
    auxiliaries: frozenset[str] = frozenset()
    says_time: bool = False
    asks: bool = False

    @property
    def is_named(self) -> bool:
        """Whether it can be a month or a weekday."""
        return self.month is not None or self.weekday is not None

    def __or__(self, other: Entry) -> Entry:
        """What two files, or two tables, know together."""
        weak = self.weak or other.weak
        if self.is_named and other.is_named:
            weak = self.weak | other.weak if self.weak and other.weak else None
        return Entry(
            self.kinds | other.kinds,
            self.month if self.month is not None else other.month,
            self.weekday if self.weekday is not None else other.weekday,
            self.day if self.day is not None else other.day,
            self.unit or other.unit,
            self.number if self.number is not None else other.number,
            weak,
            self.auxiliaries | other.auxiliaries,
        )


_RELATIVE: Final = frozenset(
    {"last", "last_after", "next", "next_after", "this", "this_after", "ago", "already", "ago_before", "past", "on"},
)
NOTHING: Final = Entry()
FIGURE: Final = Entry(says_time=True)
_ASKS: Final = frozenset({"asks_time", "asks_number", "opens_time", "opens_number"})


@dataclass(slots=True)
class Lexicon:
    """Everything the languages know, ready to be looked up.

    Attributes:
        entries: What is known about single words.
        phrases: By their first word, the other words of what is known about several, the longest first.
        times: Words that alone say a time.
        dated: Words that say a time with others.
        units: Of those, the units and parts of time, which do so only with one of `relative`.
        relative: Words that relate a unit to now. Of several words that mean something together, the longest counts.
        numbers: Words that are a number.
        unnamed: Words that are no name, wherever they stand.
        first: Words that are no name where they begin a sentence.
    """

    entries: dict[str, Entry] = field(default_factory=dict)
    phrases: dict[str, list[tuple[list[str], Entry]]] = field(default_factory=dict)
    times: frozenset[str] = frozenset()
    dated: frozenset[str] = frozenset()
    units: frozenset[str] = frozenset()
    relative: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    unnamed: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()


@cache
def lexicon() -> Lexicon:
    """The lexicon of all languages, read when it is first needed."""
    known: dict[tuple[str, ...], Entry] = {}
    for language in LANGUAGES:
        for words, entry in _entries(read(language)):
            known[words] = known.get(words, NOTHING) | entry
    known = {
        words: replace(entry, says_time=_says_time(entry), asks=not _ASKS.isdisjoint(entry.kinds))
        for words, entry in known.items()
    }
    made = Lexicon(entries={words[0]: entry for words, entry in known.items() if len(words) == 1})
    for words, entry in sorted(known.items(), key=lambda item: -len(item[0])):
        if len(words) > 1:
            made.phrases.setdefault(words[0], []).append(([*words[1:]], entry))
    saying = [(words, entry) for words, entry in known.items() if entry.says_time]
    made.times = frozenset(words[0] for words, entry in saying if len(words) == 1 and _is_sure(entry))
    units = {max(words, key=len) for words, entry in saying if not _is_sure(entry) and not entry.is_named}
    made.dated = frozenset(max(words, key=len) for words, _ in saying) - units - made.times
    made.units = frozenset(units) - made.times
    made.relative = frozenset(max(words, key=len) for words, entry in known.items() if entry.kinds & _RELATIVE)
    single = made.entries.items()
    made.numbers = frozenset(word for word, entry in single if entry.number is not None or "number" in entry.kinds)
    dated = {word for word, entry in single if entry.day is not None or (entry.is_named and _is_no_name(entry))}
    never = {word for word, entry in single if entry.kinds & {"function", "other", "question"}}
    made.unnamed = frozenset(dated | never | made.numbers)
    made.first = frozenset(word for word, entry in single if "first" in entry.kinds)
    return made


def _says_time(entry: Entry) -> bool:
    """Whether a text may say a time because of this word."""
    return bool(entry.is_named or entry.unit or entry.day is not None or entry.kinds & {"part", "time"})


def _is_sure(entry: Entry) -> bool:
    """Whether a word says a time, whatever stands beside it."""
    named = entry.day is not None or entry.is_named
    return (named and entry.weak is None) or "time" in entry.kinds


def _is_no_name(entry: Entry) -> bool:
    """Whether a month or a weekday with a capital is never anybody's name; "Julio" may be."""
    return entry.weak is None or entry.weak.capital


def read(language: str) -> dict[str, Any]:
    """One language's file."""
    return tomllib.loads(files(__package__).joinpath("languages", f"{language}.toml").read_text(encoding="utf-8"))


def _entries(data: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Entry]]:
    """Every word of a file, with what the file knows about it."""
    words: dict[str, list[str]] = data.get("words", {})
    auxiliaries = _heads(words, "auxiliary")
    after = auxiliaries | _heads(words, "function")
    before = {"months": _heads(words, "in"), "weekdays": _heads(words, "on", "past", "last", "next", "this")}
    weak = data.get("weak", {})
    for table in before:
        for number, listed in data.get(table, {}).items():
            for text in listed:
                entry = Entry(month=int(number)) if table == "months" else Entry(weekday=int(number))
                if text in weak.get("words", ()):
                    entry = replace(entry, weak=Weak(before[table], after, text in weak.get("capital", ())))
                yield compared(text), entry
    for number, listed in data.get("days", {}).items():
        for text in listed:
            is_weak = text in weak.get("words", ())
            yield compared(text), Entry(day=int(number), weak=_BARE if is_weak else None)
    for unit, listed in data.get("units", {}).items():
        yield from ((compared(text), Entry(unit=unit)) for text in listed)
    for number, listed in data.get("numbers", {}).items():
        yield from ((compared(text), Entry(number=int(number))) for text in listed)
    for kind, listed in words.items():
        opening = auxiliaries if kind in ("opens_time", "opens_number", "question") else frozenset()
        yield from ((compared(text), Entry(frozenset({kind}), auxiliaries=opening)) for text in listed)


def _heads(words: dict[str, list[str]], *kinds: str) -> frozenset[str]:
    """The first word of each entry of some kinds."""
    return frozenset(compared(text)[0] for kind in kinds for text in words.get(kind, ()))


def compared(text: str) -> tuple[str, ...]:
    """The words of an entry of a file, as they are compared."""
    return tuple(map(key, WORD.findall(text)))


def composed(text: str) -> str:
    """The same text with its accents in its letters, so that they do not end a word."""
    if text.isascii() or not _MARKED.search(text):
        return text
    return _MARKED.sub(lambda match: unicodedata.normalize("NFC", match.group()), text)


def keys(words: list[str]) -> list[str]:
    """Words as they are compared: in one case, without accents."""
    joined = "\n".join(words).casefold()
    made = joined.split("\n") if words else []
    return made if joined.isascii() else [word if word.isascii() else key(word) for word in made]


@lru_cache(maxsize=4096)
def key(word: str) -> str:
    """A word as it is compared: in one case, without accents."""
    folded = word.casefold()
    if folded.isascii() or len(folded) > _LONGEST:
        return folded
    letters = (letter for letter in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(letter))
    return "".join(letters).casefold()
