"""Find what a statement says has changed: values that ended, things with a new value, and habits that are new.

`parts` reads who a statement is about, what they do, and its values; `changes` reads its markers of change. Both need
no grammar: a marker applies to the words of its own clause, and not if it is negated, quoted or only supposed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.phrases import articles
from langchain_supabase_memory.language.extractive.stems import FIGURE, figures, stems_of
from langchain_supabase_memory.language.query_hints.lexicon import lexicon
from langchain_supabase_memory.language.query_hints.names import capitalized

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from langchain_supabase_memory.language.extractive.phrases import FoundPhrase, ParsedText

_BREAK: Final = re.compile(r"[,;:.!?()\u2014\u2026\n](?=[^\w]|$)")
_QUOTES: Final = re.compile(r"[\"\u201c\u201d\u00ab\u00bb\u201e]")
_NEAR: Final = 2  # words between an intention and what is intended
_BACK: Final = 2  # clauses before one without a subject that may name it
_MAX_TERMS: Final = 4  # terms of what ended or changed
_LONG: Final = 120  # words of a sentence that is read
_SUBJECTS: Final = ("mine", "determiner", "others", "noun_before", "person_before")
_MARKERS: Final = ("ends", "leaves", "ceases", "anymore", "changes", "renews", "newly")

IT: Final = frozenset({"it"})
"""The holder of what a statement only refers to."""

ME: Final = frozenset({"=me"})
"""The holder of what a speaker says about themselves."""

PRONOUNS: Final = frozenset({"he", "she", "they", "it", "who"})
"""Holders that a statement does not name."""

_NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Ended:
    """What somebody no longer has or does.

    Attributes:
        holder: Who; `ME` for the speaker.
        terms: Its stems.
        is_name: Whether it is a name that can only be an earlier value: "instead of Crete".
    """

    holder: frozenset[str]
    terms: frozenset[str]
    is_name: bool


@dataclass(frozen=True, slots=True)
class Changed:
    """A thing that has a new value.

    Attributes:
        holder: Whose it is; empty if the words do not say.
        terms: The stems of the thing.
        is_subject: Whether it must be what the earlier statement is about: "my new phone".
    """

    holder: frozenset[str]
    terms: frozenset[str]
    is_subject: bool


@dataclass(frozen=True, slots=True)
class Newer:
    """What holds since a change: "I drive a Skoda now".

    Attributes:
        holder: Who it is about.
        verb: What the speaker does; empty if it is about a thing.
        terms: The stems of its clause.
        counted: The words right after its numbers, such as units.
    """

    holder: frozenset[str]
    verb: str
    terms: frozenset[str]
    counted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a statement.

    Attributes:
        holder: Who it is about; `ME` for the speaker.
        verb: The stem of the first content word after the speaker's "I".
        object: The stems of the words right after that.
        values: Its names, numbers and times, by kind.
    """

    holder: frozenset[str]
    verb: str
    object: frozenset[str]
    values: Mapping[str, frozenset[str]]

    def differs(self, other: Parts) -> bool:
        """Return whether it has a value of a kind that another statement has a different one of."""
        return any(other.values[kind] and values - other.values[kind] for kind, values in self.values.items() if values)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a statement says has changed.

    Attributes:
        ended: What ended.
        changed: The things with a new value.
        newer: What holds since a change.
        switches: Whether it only names the new value: "switched to".
    """

    ended: tuple[Ended, ...] = ()
    changed: tuple[Changed, ...] = ()
    newer: tuple[Newer, ...] = ()
    switches: bool = False

    def __bool__(self) -> bool:
        return bool(self.ended or self.changed or self.newer or self.switches)


class Clauses:
    """A statement with its clauses and the kind of each word, each computed lazily and once.

    Args:
        reading: The parsed statement.
    """

    def __init__(self, reading: ParsedText) -> None:
        self.reading = reading
        self.count = min(len(reading.words), _LONG)
        self._phrases = [each for each in reading.phrases if each.end <= self.count]

    @cached_property
    def starts(self) -> list[int]:
        """The index of the first word of each clause."""
        reading, joins = self.reading, {each.first for each in self.reading.all("joins")}
        found = [0]
        for at in range(1, self.count):
            gap = reading.text[reading.ends[at - 1] : reading.starts[at]]
            is_figure = len(gap) == 1 and reading.words[at - 1][-1].isdecimal() and reading.words[at][0].isdecimal()
            if at in joins or (_BREAK.search(gap) and not is_figure):
                found.append(at)
        return found

    @cached_property
    def stems(self) -> list[str]:
        """The stem of each word; empty for one without content and for a figure."""
        return ["".join(stems_of([word])[:1]) for word in self.reading.words[: self.count]]

    @cached_property
    def kinds(self) -> list[str]:
        """The kind of each word: `number`, `time`, `name`, `words`, or empty for one without content."""
        reading, known = self.reading, lexicon()
        names = {part for name in capitalized(reading.text, inside=True) for part in re.split(r"\W+", name)}
        found = []
        for at in range(self.count):
            word = reading.words[at]
            if word[0].isdecimal() or word in known.numbers:
                found.append("number")
            elif word in known.times:
                found.append("time")
            elif not self.stems[at]:
                found.append("")
            else:
                found.append("name" if reading.text[reading.starts[at] : reading.ends[at]] in names else "words")
        return found

    def span(self, at: int) -> tuple[int, int]:
        """Return the first word of a word's clause and the one after its last."""
        place = bisect_left(self.starts, at + 1) - 1
        end = self.starts[place + 1] if place + 1 < len(self.starts) else self.count
        return self.starts[place], end

    def holder(self, first: int, at: int) -> frozenset[str]:
        """Return who is named before a word of a clause that begins at `first`, or in the clauses before."""
        for _ in range(_BACK + 1):
            if found := self._named(first, at):
                return found
            if first == 0:
                break
            first, at = self.span(first - 1)
        return ME

    def _named(self, first: int, end: int) -> frozenset[str]:
        """Return who is named between two words."""
        if any(_is_speaker(each, first) for each in self.phrases(first, end)):
            return ME
        leads = {each.end: each for each in self.phrases(first, end) if not each.kinds.isdisjoint(_SUBJECTS)}
        led = {at for at in range(first + 1, end) if self.reading.words[at - 1] in articles()}
        for at in range(first, end):
            if self.reading.words[at] in PRONOUNS and not any(self.kinds[first:at]):
                return frozenset({self.reading.words[at]})
            is_owned = at in leads and "mine" in leads[at].kinds
            if self.kinds[at] == "name" or is_owned or (self.stems[at] and at in led | leads.keys()):
                last = at + 1
                while last < end and self.kinds[last] == "name":
                    last += 1
                run = [self.stems[at] or self.reading.words[at], *self.stems[at + 1 : last]]
                owner = {"others"} if at in leads and "others" in leads[at].kinds else set()
                return frozenset(run) | owner
        return self.terms(self.run(first, end))

    def phrases(self, first: int, end: int) -> Iterator[FoundPhrase]:
        """Yield the phrases between two words."""
        return (each for each in self._phrases if first <= each.first and each.end <= end)

    def is_real(self, phrase: FoundPhrase) -> bool:
        """Return whether a marker of change is stated: not negated, supposed, intended or quoted."""
        reading, at = self.reading, phrase.first
        first, _ = self.span(at)
        if reading.has("wonders", "someday") or any(each.first < phrase.end for each in reading.all("supposes")):
            return False
        if any("negates" in each.kinds for each in self.phrases(first, at)) and "anymore" not in phrase.kinds:
            return False
        if phrase.kinds & {"ends", "leaves", "changes", "switches"}:
            if any(_is_intended(each, at) for each in self.phrases(first, at)):
                return False
        elif "newly" in phrase.kinds and any("intends" in each.kinds for each in self.phrases(first, at)):
            return False
        return len(_QUOTES.findall(reading.text[: reading.starts[at]])) % 2 == 0

    def run(self, first: int, end: int) -> list[int]:
        """Return the first words with content between two words, up to one without, or a change of their kind."""
        found: list[int] = []
        for at in range(first, end):
            if self.kinds[at] in ("words", "name"):
                found.append(at)
            elif found:
                break
        return found

    def content(self, first: int, end: int) -> list[int]:
        """Return all words with content between two words that are no numbers or times."""
        return [at for at in range(first, end) if self.kinds[at] in ("words", "name")]

    def terms(self, places: list[int]) -> frozenset[str]:
        """Return the stems of words."""
        return frozenset(self.stems[at] for at in places)


def _is_speaker(phrase: FoundPhrase, first: int) -> bool:
    """Return whether a phrase names the speaker, not as an owner after a thing as in "teman saya"."""
    if "habits" in phrase.kinds or "groups" in phrase.kinds:
        return True
    return "self" in phrase.kinds and ("mine_after" not in phrase.kinds or phrase.first == first)


def _is_intended(phrase: FoundPhrase, at: int) -> bool:
    """Return whether a phrase makes the change at a word one that has not happened."""
    return ("intends" in phrase.kinds and phrase.end >= at - _NEAR) or (
        "infinitive" in phrase.kinds and phrase.end == at
    )


def parts(clauses: Clauses) -> Parts:
    """Return the parts of a statement."""
    reading = clauses.reading
    values: dict[str, frozenset[str]] = {}
    for kind in ("number", "time", "name"):
        words = [at for at in range(clauses.count) if clauses.kinds[at] == kind]
        values[kind] = frozenset(clauses.stems[at] or reading.words[at] for at in words if reading.words[at].isalpha())
    values["number"] |= frozenset(figures(reading.text)) if FIGURE.search(reading.text) else _NOTHING
    first, end = clauses.span(0) if clauses.count else (0, 0)
    spoken = [each for each in clauses.phrases(0, clauses.count) if each.kinds & {"self", "habits"}]
    begun = [each for each in spoken if each.first in clauses.starts and each.first > 0]
    if begun and not (spoken[0].first < end):
        spoken, (first, end) = begun, clauses.span(begun[0].first)
    holder = clauses.holder(first, end)
    if not spoken or holder != ME:
        run = clauses.run(first, end)
        return Parts(holder, "", clauses.terms(run), values)
    _, end = clauses.span(spoken[0].first)
    begins = (
        spoken[0].end if "self" in spoken[0].kinds else spoken[0].first
    )  # in "bebo té" the verb is the speaker, too
    places = clauses.content(begins, end)
    after = clauses.run(places[0] + 1, end) if places else []
    return Parts(holder, clauses.stems[places[0]] if places else "", clauses.terms(after), values)


def changes(clauses: Clauses) -> Changes:
    """Return what a statement says has changed."""
    ended: list[Ended] = []
    changed: list[Changed] = []
    reading = clauses.reading
    if not reading.has(*_MARKERS, "switches", "contrasts", "parted"):
        return Changes()
    newer: list[Newer] = []
    switches = False
    for each in clauses.phrases(0, clauses.count):
        if each.kinds.isdisjoint({*_MARKERS, "switches", "contrasts", "parted"}) or not clauses.is_real(each):
            continue
        first, end = clauses.span(each.first)
        if "newly" in each.kinds:
            newer.append(newest(clauses, first, end))
        switches = switches or "switches" in each.kinds
        if each.kinds & {"ends", "leaves"} or _contrasts(each, first):
            places = clauses.run(each.end, end) or _before(clauses, each, first)
            if places and ("leaves" not in each.kinds or clauses.kinds[places[0]] == "name"):
                is_sure = "contrasts" in each.kinds
                ended.append(_ended(clauses, places, first, each.first, is_sure=is_sure))
        if "parted" in each.kinds and (named := _named_before(clauses, each)):
            ended.append(Ended(ME, named, is_name=True))
        if each.kinds & {"ceases", "anymore"}:
            ended.extend(_ceased(clauses, each, first, end))
        if each.kinds & {"changes", "renews"}:
            changed.extend(_changed(clauses, each, first, end))
            ended.extend(
                _ended(clauses, clauses.run(source.end, end), first, each.first, is_sure=True)
                for source in clauses.phrases(each.end, end)
                if "out_of" in source.kinds and clauses.run(source.end, end)
            )
    if reading.has("adds"):  # what comes in addition replaces nothing
        return Changes(tuple(ended))
    return Changes(tuple(ended), tuple(changed), tuple(newer), switches)


def newest(clauses: Clauses, first: int, end: int) -> Newer:
    """Return what a clause, or a whole statement, says that holds now."""
    marked = {at for each in clauses.phrases(first, end) if each.kinds & {"newly", "corrects"}
              for at in range(each.first, each.end)}  # fmt: skip
    places = [at for at in clauses.content(first, end) if at not in marked]
    spoken = [each.end for each in clauses.phrases(first, end) if "self" in each.kinds]
    after = [at for at in places if spoken and at >= spoken[0]]
    counted = [at for at in places if at and clauses.kinds[at - 1] == "number"]
    said = [at for at in places if clauses.kinds[at] != "name"]
    verb = clauses.stems[after[0]] if after else ""
    return Newer(clauses.holder(first, end), verb, clauses.terms(said), clauses.terms(counted))


def _before(clauses: Clauses, phrase: FoundPhrase, first: int) -> list[int]:
    """Return the object before a verb that ends its clause: "Ich habe den Golf verkauft"."""
    spoken = [each.end for each in clauses.phrases(first, phrase.first) if "self" in each.kinds]
    return clauses.content(spoken[0], phrase.first) if spoken else []


def _named_before(clauses: Clauses, phrase: FoundPhrase) -> frozenset[str]:
    """Return the stems of the first name in a statement, before a phrase."""
    names = (at for at in range(phrase.first) if clauses.reading.text[clauses.reading.starts[at]].isupper())
    first = next((at for at in names if clauses.kinds[at] in ("name", "words")), None)
    return _NOTHING if first is None else clauses.terms([first])


def _contrasts(phrase: FoundPhrase, first: int) -> bool:
    """Return whether a phrase contrasts a value with another: "instead of Monday", or "not Monday" after a comma."""
    return "contrasts" in phrase.kinds and (phrase.end - phrase.first > 1 or phrase.first == first > 0)


def _ended(clauses: Clauses, places: list[int], first: int, at: int, *, is_sure: bool) -> Ended:
    """Return what ended, from its words."""
    is_name = is_sure and all(clauses.kinds[each] == "name" for each in places)
    return Ended(clauses.holder(first, at), clauses.terms(places[:_MAX_TERMS]), is_name)


def _ceased(clauses: Clauses, phrase: FoundPhrase, first: int, end: int) -> Iterator[Ended]:
    """Yield what a clause says is no longer so: "I no longer eat meat"."""
    inside = list(clauses.phrases(first, end))
    if "ceases" not in phrase.kinds and not any("negates" in each.kinds for each in inside):
        return
    begin = max((each.end for each in inside if "self" in each.kinds and each.first < phrase.first), default=first)
    marked = range(phrase.first, phrase.end)
    places = [at for at in clauses.content(begin, end) if at not in marked]
    used = {at for each in inside if "uses" in each.kinds for at in range(each.first, each.end)}
    named = [at for at in places if at not in used]
    is_name = len(named) < len(places) and bool(named) and all(clauses.kinds[at] == "name" for at in named)
    if 0 < len(places) <= _MAX_TERMS:  # what is no longer used has no other verb that must be the same
        yield Ended(clauses.holder(first, phrase.first), clauses.terms(named if is_name else places), is_name)


def _changed(clauses: Clauses, phrase: FoundPhrase, first: int, end: int) -> Iterator[Changed]:
    """Yield the thing that a clause gives another value: "moved the deadline to Friday", "the rent went up"."""
    places: list[int] = []
    ends = {each.first for each in clauses.phrases(phrase.end, end) if each.kinds & {"infinitive", "out_of"}}
    for at in range(phrase.end, end):
        is_thing = clauses.kinds[at] == "name" and at + 1 in ends  # "upgraded Django to 5.1"
        if clauses.kinds[at] in ("number", "time", "name") and not is_thing:
            break
        if clauses.kinds[at]:
            places.append(at)
        elif places and at in ends:
            break
    vague = {each.first for each in clauses.phrases(phrase.end, end) if "vague" in each.kinds}
    places = [at for at in places if at not in vague] or places  # "wiped the laptop last night"
    is_value = not places and any(clauses.kinds[at] for at in range(phrase.end, end))
    if places and len(places) <= _MAX_TERMS:
        leads = [each for each in clauses.phrases(first, places[0]) if each.end in (places[0], phrase.first)]
        others = any("others" in each.kinds for each in leads)
        owner = clauses.holder(first, phrase.first) if others else _NOTHING
        if owner & (ME | PRONOUNS):
            return  # "her", of nobody that the clause names
        if others:
            yield Changed(owner, clauses.terms(places), "renews" in phrase.kinds)
            return
        is_led = any(each.kinds & {"mine", "determiner"} for each in leads)
        holder = _NOTHING if is_led else clauses.holder(first, phrase.first)
        yield Changed(holder, clauses.terms(places), "renews" in phrase.kinds)
    elif is_value or not places:
        before = clauses.content(first, phrase.first)
        if before and len(before) <= _MAX_TERMS and not any("others" in e.kinds for e in clauses.phrases(first, end)):
            yield Changed(_NOTHING, clauses.terms(before), is_subject=False)
