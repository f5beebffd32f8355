"""Read the attributes that a statement gives a value, so that a later value can replace an earlier one.

`slots` finds an attribute by a phrase of the languages' files, its value by the kind that the attribute has, and whose
it is. Of a person, an attribute such as a home has one value. Of a thing, such as a price, it must be the same thing:
every word beside the later value stands in the earlier statement, too. A verb of habit counts as an attribute, if all
words but one value are the same: "I pay 12 euros for the gym".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.changes import ME
from langchain_supabase_memory.language.extractive.phrases import phrases
from langchain_supabase_memory.language.extractive.stems import FIGURE, figures, stem, stems_of
from langchain_supabase_memory.language.query_hints.lexicon import lexicon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.extractive.changes import Clauses
    from langchain_supabase_memory.language.extractive.phrases import FoundPhrase

Value = tuple[str, str]
"""A value with its kind before it."""

_REACH: Final = 4  # words between a phrase and its value
_MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_MONEY: Final = frozenset("$€£¥₱")
_HOUR: Final = re.compile(r":\d\d|\s?[ap]\.?m\b", re.IGNORECASE)
_PERSON: Final = (
    "home", "stays", "job", "team", "manager", "bank", "school", "drives", "commute", "rises", "diet", "marital",
    "email", "plan",
)  # fmt: skip
_ENDING: Final = ("job", "drives", "school")
_NOTES: Final = frozenset(
    {
        "newly", "corrects", "changes", "renews", "now", "self", "mine", "mine_after", "habits", "greets", "ceases",
        "determiner",
    }
)  # fmt: skip
_SEPARATE: Final = frozenset({"adds", "wonders"})
_STATES: Final = frozenset({"habits", "keeps_one", "uses", "states"})


@dataclass(frozen=True, slots=True)
class Slot:
    """An attribute with its values in one statement.

    Attributes:
        attribute: Its name; of a verb, `=` and its stem.
        holder: Whose it is; `ME` for the speaker.
        values: Its values.
        scope: The stems of what else the clause is about.
        weekdays: The weekdays to which the clause limits it: "On Sundays I get up at nine".
        is_marked: Whether the statement says that something has changed.
    """

    attribute: str
    holder: frozenset[str]
    values: frozenset[Value]
    scope: frozenset[str]
    weekdays: frozenset[str] = frozenset()
    is_marked: bool = False

    @property
    def is_personal(self) -> bool:
        """Whether the attribute is one of a person, who has one value of it."""
        return self.attribute in _PERSON

    def is_ended_by(self, terms: frozenset[str]) -> bool:
        """Return whether what ended is what a person has one of: "quit my job", "sold the car"."""
        return self.attribute in _ENDING and bool(terms) and terms <= _nouns(self.attribute)

    def differs(self, other: Slot) -> frozenset[str]:
        """Return the kinds of which both have values that the other has not."""
        kinds = {kind for kind, _ in self.values - other.values}
        return frozenset(kinds & {kind for kind, _ in other.values - self.values})

    def replaces(self, other: Slot, terms: frozenset[str]) -> bool:
        """Return whether its value stands instead of an earlier one.

        Args:
            other: A slot of the earlier statement.
            terms: The terms of the earlier statement.
        """
        kinds = self.differs(other) if self.attribute == other.attribute else frozenset()
        if not kinds or (self.attribute == "job" and not self.is_marked):
            return False  # a person may have two jobs
        if self.is_personal:
            return _is_same(self.holder, other.holder) and self.weekdays in (other.weekdays, frozenset())
        if self.attribute == "size":
            return _is_same(self.holder, other.holder) and bool(self.scope & terms)
        if self.attribute[0] != "=":
            if not self.scope:  # "we meet on Thursdays now"
                return (
                    self.is_marked
                    and self.attribute == "meets"
                    and self.holder == other.holder == ME
                    and (not other.scope)
                )
            return self.scope <= terms
        if self.holder != other.holder or self.scope != other.scope or len(kinds) > 1:
            return False
        same = {kind for kind, _ in self.values} == {kind for kind, _ in other.values}
        rest = [each for each in self.values ^ other.values if each[0] not in kinds]
        if not same or rest or (kinds & {"weekday", "date"} and not self.is_marked):
            return False  # one may play tennis on two days
        return bool(self.scope) or kinds <= {"number", "clock"}


def _is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two holders are the same: "my sister Ines" and "Ines", but not "my sister"."""
    return one == other or any(less < more and bool(stems_of(less)) for less, more in ((one, other), (other, one)))


def evoked(clauses: Clauses) -> frozenset[str]:
    """Return the stems of what the attributes of a statement are called: "is called" is about a name."""
    said = {kind for each in clauses.phrases(0, clauses.count) for kind in each.kinds if kind.startswith("attributes.")}
    return frozenset(each for kind in said for each in _nouns(kind.partition(".")[2]))


@cache
def _nouns(name: str) -> frozenset[str]:
    """Return the stems of the words that name an attribute."""
    return frozenset(stem(word) for words in phrases().words_in(f"nouns.{name}") for word in words)


def slots(clauses: Clauses, *, has_changed: bool) -> tuple[Slot, ...]:
    """Return the attributes that a statement gives a value.

    Args:
        clauses: The statement.
        has_changed: Whether it says that something has changed.
    """
    if clauses.reading.has(*_SEPARATE):
        return ()
    return tuple(_read_slots(clauses, has_changed=has_changed))


def _read_slots(clauses: Clauses, *, has_changed: bool) -> Iterator[Slot]:
    seen = set()
    for each in clauses.phrases(0, clauses.count):
        names = [kind.partition(".")[2] for kind in each.kinds if kind.startswith("attributes.")]
        for name in sorted(names):
            if name in seen or not _is_stated(clauses, each, name):
                continue
            if slot := _slot(clauses, each, name):
                seen.add(name)
                yield replace(slot, weekdays=_weekdays(clauses, each), is_marked=has_changed)
        if each.kinds & _STATES and "=" not in seen and _is_stated(clauses, each, "="):
            seen.add("=")
            if slot := _habit(clauses, each):
                yield replace(slot, is_marked=has_changed)


def _weekdays(clauses: Clauses, phrase: FoundPhrase) -> frozenset[str]:
    """Return the weekdays on which something in a phrase's clause recurs."""
    known, words = lexicon().entries, clauses.reading.words
    said = [each for each in clauses.phrases(*clauses.span(phrase.first)) if "recurs" in each.kinds]
    named = (known.get(words[at]) for each in said for at in range(each.first, each.end))
    return frozenset(str(each.weekday) for each in named if each is not None and each.weekday is not None)


def _is_stated(clauses: Clauses, phrase: FoundPhrase, name: str) -> bool:
    """Return whether an attribute holds: not negated, supposed, wished, quoted, or for one occasion only."""
    first, end = clauses.span(phrase.first)
    said = {kind for each in clauses.phrases(first, end) for kind in each.kinds}
    before = {kind for each in clauses.phrases(first, phrase.first) for kind in each.kinds}
    if not clauses.is_real(phrase) or "others" in said or "ceases" in said or "negates" in said:
        return False
    inside = range(phrase.first, phrase.end)
    if name != "due" and any("occasional" in e.kinds and e.first not in inside for e in clauses.phrases(first, end)):
        return False
    return not (before & {"intends", "infinitive"} and (name in _PERSON or name == "="))


def _slot(clauses: Clauses, phrase: FoundPhrase, name: str) -> Slot | None:
    """Return an attribute with its value, if it has one."""
    first, end = clauses.span(phrase.first)
    if name not in _READ:
        return None
    values = _READ[name](clauses, phrase, name)
    places = clauses.content(first, end)
    if not values and name not in _PERSON and end < clauses.count and clauses.reading.words[end] == "it":
        values = _times(clauses, end, clauses.span(end)[1]) if name in ("due", "meets", "travel") else {}
    if not values:
        return None
    told = frozenset(values.values())
    if name == "size":
        return Slot(name, _holder(clauses, first, phrase, name), told, _worn(clauses, max(values)))
    scope = _scope(clauses, name, first, end, places, set(values))
    if name in _PERSON:
        return Slot("home" if name == "stays" else name, _holder(clauses, first, phrase, name), told, scope)
    is_own = any("self" in each.kinds for each in clauses.phrases(first, end))
    return Slot(name, ME if is_own else frozenset(), told, scope)


def _habit(clauses: Clauses, phrase: FoundPhrase) -> Slot | None:
    """Return a verb of the speaker, or of a thing or a person before it, with all values of its clause."""
    first, end = clauses.span(phrase.first)
    spoken = [each for each in clauses.phrases(first, phrase.end) if each.kinds & {"self", "groups"}]
    begins = phrase.first
    if spoken and any("self" in each.kinds for each in spoken):
        begins = max(each.end for each in spoken if "self" in each.kinds)
        subject = ME
    else:
        subject = frozenset(clauses.stems[at] or clauses.reading.words[at] for at in range(first, phrase.first))
        if not any(clauses.kinds[first : phrase.first]) and not _is_led(clauses, first, phrase.first):
            return None
    places = clauses.content(begins, end)
    verb = clauses.stems[phrase.first] or clauses.reading.words[phrase.first]
    if subject == ME:
        if not places or clauses.kinds[places[0]] != "words":
            return None
        verb = clauses.stems[places[0]]
    named = [at for at in places if clauses.kinds[at] == "name" and clauses.kinds[at - 1] != "number"]  # no unit
    values = {at: ("name", clauses.stems[at]) for at in named}
    values |= _times(clauses, begins, end) | _numbers(clauses, begins, end)
    noted = {at for each in clauses.phrases(first, end) if each.kinds & {"newly", "corrects"}
             for at in range(each.first, each.end)}  # fmt: skip
    rest = [at for at in clauses.content(begins, end) if at not in values and at not in noted]
    scope = {clauses.stems[at] for at in rest if clauses.stems[at] != verb}
    is_single = _is_single(clauses, phrase)
    if subject == ME and is_single:
        scope.add(verb)
    elif subject == ME:
        scope |= {clauses.stems[at] for at in clauses.content(first, begins) if at not in noted}
    elif named and not is_single:
        return None  # "Bob uses Vim" and "Bob uses Zed" both hold
    else:
        scope.add(verb)
    return Slot(f"={verb}", subject, frozenset(values.values()), frozenset(scope))


def _is_led(clauses: Clauses, first: int, end: int) -> bool:
    """Return whether something between two words is the speaker's, or is led by an article."""
    return any(each.kinds & {"mine", "determiner"} for each in clauses.phrases(first, end))


def _is_single(clauses: Clauses, phrase: FoundPhrase) -> bool:
    """Return whether a phrase that begins at the same word has one value at a time."""
    return any("single" in each.kinds and each.first == phrase.first for each in clauses.phrases(0, clauses.count))


def _worn(clauses: Clauses, at: int) -> frozenset[str]:
    """Return what has a size: the word after it, or "Medium shirts got tight, I need large ones now"."""
    stands_in = any("attributes.ignored" in each.kinds for each in clauses.phrases(at + 1, min(at + 2, clauses.count)))
    if at + 1 < clauses.count and clauses.stems[at + 1] and not stands_in:
        return frozenset({clauses.stems[at + 1]})
    return clauses.terms([each for each in clauses.content(0, clauses.count) if each != at])


def _holder(clauses: Clauses, first: int, phrase: FoundPhrase, name: str) -> frozenset[str]:
    """Return whose attribute it is, which a phrase may say itself: "my accounts are at"."""
    if name in ("home", "stays") and any("groups" in each.kinds for each in clauses.phrases(first, phrase.first)):
        return frozenset({"=group"})  # a company's, who lives somewhere else than its people
    if any(each.kinds & {"self", "groups"} for each in clauses.phrases(phrase.first, phrase.end)):
        return ME
    own = frozenset(clauses.stems[at] for at in range(phrase.first, phrase.end))
    if any("mine" in each.kinds and each.end == phrase.first for each in clauses.phrases(first, phrase.first)):
        return ME
    return clauses.holder(first, phrase.first) - own or ME


def _scope(clauses: Clauses, name: str, first: int, end: int, places: list[int], values: set[int]) -> frozenset[str]:
    """Return the stems of what a clause is about, beside its attribute, its values and their units."""
    noted = set(values)
    for each in clauses.phrases(first, end):
        if each.kinds & (_NOTES | {f"attributes.{name}", "attributes.ignored"}):
            noted.update(range(each.first, each.end))
    counted = {at for at in places if at and at - 1 in values and clauses.kinds[at - 1] == "number"}
    return frozenset(clauses.stems[at] for at in places if at not in noted | counted)


def _names(clauses: Clauses, phrase: FoundPhrase, _: str) -> dict[int, Value]:
    """Return the first name after a phrase."""
    end = clauses.span(phrase.first)[1]
    near = range(phrase.end, min(end, phrase.end + _REACH))
    first = next((at for at in near if clauses.kinds[at] == "name"), None)
    if first is None:
        return {}
    last = first
    while last < end and clauses.kinds[last] == "name":
        last += 1
    return {at: ("name", clauses.stems[at]) for at in range(first, last)}


def _lasting(clauses: Clauses, phrase: FoundPhrase, name: str) -> dict[int, Value]:
    """Return the name after a phrase, if it has come to stay: "have been in Porto since the spring"."""
    end = clauses.span(phrase.first)[1]
    lasts = any("lasting" in each.kinds for each in clauses.phrases(phrase.end, end))
    return _names(clauses, phrase, name) if lasts else {}


def _closed_values(clauses: Clauses, first: int, end: int, lists: tuple[str, ...]) -> dict[int, Value]:
    """Return the words of closed lists; of all but the first list, each word stands for the same value."""
    found = {}
    text, ends = clauses.reading.text, clauses.reading.ends
    for each in clauses.phrases(first, end):
        for name in lists:
            if f"values.{name}" in each.kinds and text[ends[each.end - 1] :][:1] != "-":  # "chicken-free"
                word = clauses.reading.words[each.first] if name == lists[0] else name
                found[each.first] = (lists[0], stem(word))
    return found


def _kinds_of(lists: tuple[str, ...], *, is_anywhere: bool = False) -> _Reader:
    """Return a reader of the words of closed lists, after the phrase or in its whole clause."""

    def read(clauses: Clauses, phrase: FoundPhrase, _: str) -> dict[int, Value]:
        first, end = clauses.span(phrase.first)
        if is_anywhere:
            return _closed_values(clauses, first, end, lists)
        found = _closed_values(clauses, phrase.end, min(end, phrase.end + _REACH), lists)
        return {at: each for at, each in found.items() if not any(clauses.stems[phrase.end : at])}

    return read


def _status(clauses: Clauses, phrase: FoundPhrase, _: str) -> dict[int, Value]:
    """Return the value that is the last word of a phrase."""
    return {phrase.end - 1: ("marital", clauses.reading.words[phrase.end - 1])}


def _groups(clauses: Clauses, phrase: FoundPhrase, name: str) -> dict[int, Value]:
    """Return the words between a phrase and a word for a group or a plan; a change of plans needs no such word."""
    end = clauses.span(phrase.first)[1]
    listed = "values.group" if name == "team" else f"values.{name}"
    near = range(phrase.end, min(end, phrase.end + _REACH))
    last = next((each.first for each in clauses.phrases(phrase.end, end) if listed in each.kinds), None)
    if last is not None and last in near:
        return {at: ("words", clauses.stems[at]) for at in range(phrase.end, last) if clauses.stems[at]}
    is_change = any("changes" in each.kinds and each.first == phrase.first for each in clauses.phrases(0, end))
    if name == "plan" and is_change and phrase.end < end and clauses.kinds[phrase.end] == "name":
        ends = phrase.end + 1 == end or not clauses.stems[phrase.end + 1]
        return {phrase.end: ("words", clauses.stems[phrase.end])} if ends else {}
    return {}


def _rest(clauses: Clauses, phrase: FoundPhrase, _: str) -> dict[int, Value]:
    """Return the first words after a phrase."""
    end = clauses.span(phrase.first)[1]
    return {at: ("words", clauses.stems[at]) for at in clauses.run(phrase.end, end)}


def _clock(clauses: Clauses, phrase: FoundPhrase, _: str) -> dict[int, Value]:
    """Return the time of day after a phrase, which may be a number alone."""
    end = clauses.span(phrase.first)[1]
    numbers = {at: ("clock", number) for at, (_, number) in _numbers(clauses, phrase.end, end).items()}
    times = _times(clauses, phrase.end, end).items()
    return numbers | {at: each for at, each in times if each[0] == "clock"}


def _clause_times(clauses: Clauses, phrase: FoundPhrase, _: str) -> dict[int, Value]:
    """Return the times of a phrase's clause."""
    return _times(clauses, *clauses.span(phrase.first))


def _clause_numbers(clauses: Clauses, phrase: FoundPhrase, name: str) -> dict[int, Value]:
    """Return the numbers of a phrase's clause: of a price, those of a currency, and of a floor, the one before it."""
    first, end = clauses.span(phrase.first)
    found = _numbers(clauses, first, end)
    if name == "floor":
        return {at: each for at, each in found.items() if at == phrase.first - 1}
    if name == "price":
        return {at: each for at, each in found.items() if _is_money(clauses, at)}
    return found


def _is_money(clauses: Clauses, at: int) -> bool:
    """Return whether a number is an amount of money."""
    reading = clauses.reading
    if reading.starts[at] and reading.text[reading.starts[at] - 1] in _MONEY:
        return True
    end = _figure(clauses, at)[1]
    near = clauses.phrases(at + 1, min(at + _REACH, clauses.count))
    behind = (each for each in near if "values.currency" in each.kinds)
    return any(not reading.text[end : reading.starts[each.first]].strip() for each in behind) or (
        reading.text[end:].lstrip()[:1] in _MONEY and bool(reading.text[end:].strip())
    )


def _address(clauses: Clauses, phrase: FoundPhrase, _: str) -> dict[int, Value]:
    """Return the mail address after a phrase."""
    reading = clauses.reading
    found = _MAIL.search(reading.text, reading.ends[phrase.end - 1])
    return {phrase.end: ("email", found.group().casefold())} if found else {}


def _times(clauses: Clauses, first: int, end: int) -> dict[int, Value]:
    """Return the dates, weekdays and times of day between two words."""
    known, reading, found = lexicon().entries, clauses.reading, {}
    for at in range(first, end):
        entry = known.get(reading.words[at])
        if entry is not None and entry.weekday is not None and clauses.kinds[at] == "time":
            found[at] = ("weekday", str(entry.weekday))
        elif (
            entry is not None
            and entry.month is not None
            and (clauses.kinds[at] == "time" or _is_beside_number(clauses, at))
        ):
            found[at] = ("date", str(entry.month))
        elif clauses.kinds[at] == "number":
            if _is_of_month(clauses, at):
                found[at] = ("date", _number(clauses, at))
            elif _is_hour(clauses, at):
                found[at] = ("clock", _number(clauses, at) or reading.words[at])
    return found


def _numbers(clauses: Clauses, first: int, end: int) -> dict[int, Value]:
    """Return the numbers between two words that are no times."""
    times = _times(clauses, first, end)
    return {
        at: ("number", _number(clauses, at))
        for at in range(first, end)
        if clauses.kinds[at] == "number" and at not in times and _number(clauses, at)
    }


def _number(clauses: Clauses, at: int) -> str:
    """Return a number in one spelling; nothing for the part of a figure behind its separator."""
    reading = clauses.reading
    known = lexicon().entries.get(reading.words[at])
    if known is not None and known.number is not None:
        return f"#{known.number}"
    return _figure(clauses, at)[0]


def _figure(clauses: Clauses, at: int) -> tuple[str, int]:
    """Return the figure that begins with a word, in one spelling, and the offset of its end: "15,500" is two words."""
    reading = clauses.reading
    start = reading.starts[at]
    if start > 1 and reading.text[start - 1] in ".,'" and reading.text[start - 2].isdecimal():
        return "", reading.ends[at]
    found = FIGURE.match(reading.text, start)
    if found is None:
        return reading.words[at], reading.ends[at]
    return "".join(figures(found.group())), found.end()


def _is_beside_number(clauses: Clauses, at: int) -> bool:
    return any(0 <= near < clauses.count and clauses.kinds[near] == "number" for near in (at - 1, at + 1))


def _is_of_month(clauses: Clauses, at: int) -> bool:
    """Return whether a number stands beside a month."""
    known, words = lexicon().entries, clauses.reading.words
    near = [words[place] for place in (at - 1, at + 1) if 0 <= place < clauses.count]
    return any(word in known and known[word].month is not None for word in near)


def _is_hour(clauses: Clauses, at: int) -> bool:
    """Return whether a number is a time of day: with a colon, before "am", or alone behind a word such as "at"."""
    reading = clauses.reading
    after = reading.text[_figure(clauses, at)[1] :]
    if _HOUR.match(after) or reading.text[: reading.starts[at]].endswith(":"):
        return True
    following = at + 1
    while following < clauses.count and reading.starts[following] < _figure(clauses, at)[1]:
        following += 1
    counted = following < clauses.span(at)[1] and clauses.kinds[following] in ("words", "number")
    before = clauses.reading.words[at - 1] if at else ""
    entry = lexicon().entries.get(before)
    return not counted and entry is not None and bool(entry.kinds & {"function", "since", "until", "in", "on", "to"})


if TYPE_CHECKING:
    from collections.abc import Callable

    _Reader = Callable[[Clauses, FoundPhrase, str], dict[int, Value]]

_READ: Final[dict[str, _Reader]] = {
    **dict.fromkeys(("home", "manager", "bank", "school", "drives"), _names),
    "stays": _lasting,
    "job": _rest,
    "team": _groups,
    "plan": _groups,
    "commute": _kinds_of(("vehicle",), is_anywhere=True),
    "rises": _clock,
    "diet": _kinds_of(("diet", "animal")),
    "marital": _status,
    "email": _address,
    "size": _kinds_of(("size",)),
    **dict.fromkeys(("floor", "price", "budget", "guests"), _clause_numbers),
    **dict.fromkeys(("due", "meets", "travel"), _clause_times),
}
"""How the values of an attribute are read; the others only have nouns."""
