"""Extract statements worth storing, and find which earlier statement each one replaces.

A fact is a user's statement about themselves, something of theirs, or a named person, that contains something that can
be right or wrong: a name, a number, a time or a preference. Its attribute is either a fixed one (where somebody lives,
what they are called) or the words of the thing that "is" something: "my phone number".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.attributes import evoked, slots
from langchain_supabase_memory.language.extractive.changes import IT, ME, PRONOUNS, Clauses, changes, newest, parts
from langchain_supabase_memory.language.extractive.dialogue import is_heading
from langchain_supabase_memory.language.extractive.phrases import ParsedText, articles, phrases
from langchain_supabase_memory.language.extractive.stems import FIGURE, figures, stem, stems, stems_of
from langchain_supabase_memory.language.extractive.utterances import Sentence, sentence
from langchain_supabase_memory.language.query_hints import marks
from langchain_supabase_memory.language.query_hints.dates import dates
from langchain_supabase_memory.language.query_hints.lexicon import lexicon
from langchain_supabase_memory.language.query_hints.names import capitalized
from langchain_supabase_memory.language.query_hints.words import HintWords
from langchain_supabase_memory.language.spelling import DIGIT, key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_supabase_memory.language.extractive.attributes import Slot
    from langchain_supabase_memory.language.extractive.changes import Changed, Changes, Ended, Newer, Parts
    from langchain_supabase_memory.language.extractive.phrases import FoundPhrase
    from langchain_supabase_memory.language.query_hints import Marks

_WISHED: Final = frozenset({"residence", "occupation"})
_FIXED: Final = ("residence", "called", "occupation", "birthday", "age")
_CLAUSE: Final = re.compile(r"[,;:.!?()\u2014\n\u2026]")
_GERUND: Final = re.compile(r"\w{3,}ing")
_THING: Final = 7  # maximum words of a thing
_MAX_COMPARED: Final = 300
_BEFORE: Final = -1_000_000  # the place of statements before the lines
_FAR: Final = 12  # lines after which "it" refers to something else
_SAID_OF: Final = 2  # stems that identify a thing: "phone number"
_USER: Final = frozenset({"user", "users", "usuario", "usuaria", "nutzer", "nutzers", "nutzerin"})
_NEAR: Final = 3  # words between "I" and its verb
_NOBODY: Final = frozenset({"i", "he", "she", "they", "it", "who", "that"})  # capitalized at sentence start only
_GRAMMAR: Final = ("self", "mine", "mine_after", "topic", "copula", "determiner", "others", "greets", "habits")
_TELLING: Final = 2  # kinds of detail that make a statement a fact, whoever it is about
_NOTED: Final = 4  # minimum terms of a note that makes sense alone: "3 wheels" does not
_COUNTED: Final = 3  # minimum terms of an action with a number: "I counted to 9"
_SCORE: Final = re.compile(r"\W*(?:[^\W\d_]+ ){1,3}\d{1,3}(?:\W+(?:[^\W\d_]+ ){1,3}\d{1,3})+\W*")
"""A bare score: "fish 1, cats 0"."""

_NOTHING: Final[frozenset[str]] = frozenset()
_EVENT: Final = 0.4
_DETAIL: Final = 0.05  # weight of a name, a number or a time
_LONG: Final = 0.25
_DATED: Final = 0.2
_ALWAYS: Final = 0.4
_DANGEROUS: Final = 0.45  # weight of a fact that is dangerous to forget
_WORD: Final = 0.02  # weight of each word, where only some facts can be stored
_TOLD: Final = 12
_MUCH: Final = 0.62  # minimum weight of one of many facts
_DAY: Final = date(2000, 1, 1)  # any day, used only to check whether a date is named
_TALK: Final = frozenset({"question", "point", "problem", "thing", "idea", "answer", "plan", "part", "reason"})


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim that a statement makes.

    Attributes:
        attribute: The stems of what it is about; empty if unknown.
        kind: The kind of its value: `number`, `time`, `name` or `words`.
        terms: Its stems and figures.
        is_fixed: Whether the attribute can only have one value.
        corrects: Whether it says that an earlier statement no longer holds.
        parts: Who it is about, what they do, and its values.
        changes: What it says has changed.
        newer: What it says holds now; for a correction, all of it.
        slots: The attributes that it gives a value.
        evoked: The stems of what its attributes are called.
        adds: Whether it comes in addition to what was said.
        denies: Whether it is negated.
        needs: Whether it is about a permanent need, such as an allergy.
    """

    attribute: frozenset[str]
    kind: str
    terms: frozenset[str]
    is_fixed: bool
    corrects: bool
    parts: Parts
    changes: Changes
    newer: tuple[Newer, ...]
    slots: tuple[Slot, ...]
    evoked: frozenset[str]
    adds: bool
    denies: bool
    needs: bool

    def replaces(self, other: Claim) -> bool:
        """Return whether this claim makes another, earlier one obsolete."""
        if self.attribute and self.attribute == other.attribute and not self.adds:
            if self.is_fixed or self.corrects or self.changes.newer or any(e.is_subject for e in self.changes.changed):
                return True
            if self.kind == other.kind:
                is_single = not self.attribute.isdisjoint(_stems("single_valued"))
                return self.kind != "words" or len(self.attribute) >= _SAID_OF or is_single
        if any(new.replaces(old, other.terms) for new in self.slots for old in other.slots):
            return True
        if self.revokes(other):
            return True
        if not (self.corrects or self.changes) or not other.terms:
            return False
        shared = {term for term in self.terms & other.terms if term[0] != "#"}
        if self.corrects and shared and _names_old_value(self.terms, other.terms):
            return True
        return (
            any(other.is_ended_by(each) for each in self.changes.ended)
            or any(other.is_changed_by(each, self) for each in self.changes.changed)
            or any(other.is_older_than(each, self) for each in self.newer)
        )

    def revokes(self, other: Claim) -> bool:
        """Return whether this claim denies a need that another one states: "turns out I'm not allergic to nuts"."""
        is_denied = self.denies and self.needs and other.needs and not other.denies
        return is_denied and other.terms <= self.terms and self.parts.holder == other.parts.holder

    def is_ended_by(self, ended: Ended) -> bool:
        """Return whether this claim is what somebody no longer has or does."""
        if self.attribute and self.attribute < ended.terms <= self.terms:
            return True  # "Earl Grey is no longer my favorite tea"
        if ended.holder == self.parts.holder and any(each.is_ended_by(ended.terms) for each in self.slots):
            return True
        is_owned = ended.is_name and ended.terms <= self.parts.holder
        mine = ended.holder == ME and (bool(self.attribute) or is_owned)
        if not ended.terms or not (ended.holder == self.parts.holder or mine):
            return False
        value = self.terms - self.attribute
        if self.is_fixed or ended.is_name or mine:
            return ended.terms <= self.terms and bool(ended.terms & value)
        if self.parts.verb in ended.terms and ended.terms <= self.terms:
            return True
        if ended.holder != ME and ended.terms <= self.parts.values["name"]:
            return True  # "my husband left Siemens"
        return ended.terms <= self.parts.object and bool(ended.terms & value)

    def is_changed_by(self, changed: Changed, new: Claim) -> bool:
        """Return whether a new claim gives the thing of this one another value."""
        named = changed.terms & self.evoked  # "changed the puppy's name", of what "is called"
        rest = changed.terms - named
        if not changed.terms or not rest <= self.terms:
            return False
        if named and not named & self.terms:
            return changed.holder in (self.parts.holder, _NOTHING) and bool(rest or changed.holder)
        if not changed.terms <= self.terms or not new.parts.differs(self.parts):
            return False
        subject = self.attribute or (frozenset() if self.parts.verb else self.parts.object)
        if changed.is_subject and not changed.terms <= subject:
            return False
        is_mine = changed.holder == ME and changed.terms <= self.attribute
        return not changed.holder or is_mine or changed.holder == self.parts.holder

    def is_older_than(self, newer: Newer, new: Claim) -> bool:
        """Return whether a new claim says what holds now instead of this one: of the same subject, or the same verb."""
        differs = new.parts.differs(self.parts)
        if new.attribute and self.attribute:
            return new.attribute < self.attribute and differs
        if new.attribute and not self.attribute and new.attribute <= self.terms and differs:
            return True
        is_mine = newer.holder == ME and bool(self.attribute) and self.attribute <= newer.terms
        if not is_mine and newer.holder not in (self.parts.holder, IT):
            return False
        if newer.terms and newer.terms <= self.terms and differs and newer.terms != {newer.verb}:
            return True
        if {newer.verb, self.parts.verb} <= _verbs("consumes") and newer.verb != self.parts.verb:
            return bool(newer.terms & self.parts.object) and newer.terms != self.terms
        if not newer.verb or newer.verb != self.parts.verb:
            return False
        return len((newer.terms - newer.counted) & self.terms) > 1 or newer.verb in _verbs("keeps_one")


@cache
def _verbs(kind: str) -> frozenset[str]:
    """Return the first stem of each phrase of a list."""
    return frozenset(stem(words[0]) for words in phrases().words_in(kind))


@cache
def _stems(kind: str) -> frozenset[str]:
    """Return the stems of all words of a list."""
    return frozenset(stem(word) for words in phrases().words_in(kind) for word in words)


def _names_old_value(new: frozenset[str], old: frozenset[str]) -> bool:
    """Return whether a correction repeats a figure of an earlier statement: "the 18th, not the 20th"."""
    figured = {term for term in new if term[0] == "#"}
    return bool(figured & old) and bool(figured - old)


def facts(
    sentences: Iterable[Sentence], present: Sequence[tuple[str, str]] = (), known_names: frozenset[str] = frozenset()
) -> list[tuple[Sentence, str | None]]:
    """Return the facts that hold at the end of the sentences, in order, each once.

    Args:
        sentences: The sentences of the conversation.
        present: The known facts, as pairs of id and text.
        known_names: Their texts, case-folded; repeating one is not a new fact.

    Returns:
        The new facts, each with the id of the fact it replaces.
    """
    held = [(_BEFORE, claim(quote)) for _, quote in present]
    places: dict[int, tuple[Sentence, str | None] | str] = {at: ident for at, (ident, _) in enumerate(present)}
    said: dict[str, int] = {}
    for statement in (clause for each in sentences for clause in clauses(each)):
        is_telling = is_fact(statement)
        if not is_telling and not may_change(statement):
            continue
        folded = statement.text.casefold()
        if said.get(folded) in places:
            continue
        made = claim(statement.text, statement.reading)
        living = [(at, held[at]) for at in [*places][-_MAX_COMPARED:]]
        before = replaced(made, [each for _, each in living], statement.place)
        if before is None and not is_telling:
            continue
        if before is not None:
            at = living[before][0]
            if isinstance(places[at], str) and made.terms <= held[at][1].terms and not made.changes.ended:
                continue  # it only repeats a known fact
        if folded in known_names:
            if before is not None and not isinstance(places[living[before][0]], str):
                places.pop(living[before][0])  # repeated after a statement that contradicted it
            continue
        said[folded] = len(held)
        gone = None if before is None else places.pop(living[before][0])
        places[len(held)] = statement, gone if gone is None or isinstance(gone, str) else gone[1]
        held.append((statement.place, made))
    return [each for each in places.values() if not isinstance(each, str)]


def clauses(original: Sentence) -> list[Sentence]:
    """Split a sentence at its fixed attributes, one for each part: "I'm called Ana and live in Davao"."""
    reading = original.reading
    cuts: list[int] = []
    told: set[str] = set()
    for each in reading.all(*_FIXED):
        fresh = each.kinds.intersection(_FIXED) - told
        first = _clause_start(reading, each.first)
        if told and fresh and first > 0 and reading.starts[first] > (cuts[-1] if cuts else 0):
            cuts.append(reading.starts[first])
        told |= fresh
    if not cuts:
        return [original]
    parts = [original.text[start:end] for start, end in zip([0, *cuts], [*cuts, len(original.text)], strict=True)]
    return [sentence(original.place, original.line, text) for part in parts if (text := _tidy(part))]


def _tidy(part: str) -> str:
    """Return a part of a sentence without the comma or the "and" that joined it to the next."""
    text = part.strip().rstrip(",;:").rstrip()
    head, _, last = text.rpartition(" ")
    return head.rstrip(" ,;:") if _joins(key(last)) and head else text


def _joins(word: str) -> bool:
    """Return whether a word joins two clauses."""
    return "joins" in phrases().known.get(word, ())


def is_fact(statement: Sentence) -> bool:
    """Return whether a sentence is a fact stated by the user."""
    reading, said = statement.reading, statement.marks
    if statement.line.role != "user" or said.is_question or reading.has("wonders") or not statement.terms:
        return False
    if reading.has(*_FIXED):
        return not _is_supposed(reading)
    if _is_supposed(reading) or _is_passing(statement):
        return False
    if said.has_number + said.has_time + said.has_name >= _TELLING and len(statement.terms) > _TELLING:
        return True
    if not reading.has(*_GRAMMAR) and (said.has_number or said.has_time or said.has_name):
        return len(statement.terms) > _NOTED and not is_heading(statement.text)  # a language without a file, or a note
    if reading.has("topic") and said.has_name:
        return len(statement.terms) > _TELLING
    tells = said.has_number or said.has_time or said.has_name
    of_self = reading.has("self", "mine", "mine_after")
    told = [each for each in reading.all("prefers") if "needs" not in each.kinds or _is_need(each, reading)]
    prefers = [word for each in told for word in reading.words[each.first : each.end]]
    if of_self and any("needs" in each.kinds for each in told):
        return True
    if prefers and (of_self or said.has_name or _begins_with_name(statement.text)):
        return not statement.terms.issubset(stems(" ".join(prefers)))  # "I love it" does not say what
    if reading.has("being") or _is_habit(statement) or _is_personal(reading):
        return True
    is_thing = _thing(reading) is not None
    if reading.has("mine", "mine_after") and is_thing:
        return True
    if reading.has("corrects") and (said.has_number or said.has_time):
        return True
    if _begins_with_name(statement.text) and reading.has("copula"):
        return len(statement.terms) > 1
    is_counted = said.has_number and not (said.has_name or said.has_time or reading.has("mine", "mine_after", "copula"))
    return tells and (of_self or is_thing) and len(statement.terms) > (_COUNTED if is_counted else 1)


def _is_personal(reading: ParsedText) -> bool:
    """Return whether a text gives a value to an attribute of a person: "I get up at six"."""
    return any(each.is_personal and not each.holder & PRONOUNS for each in slots(Clauses(reading), has_changed=False))


def _is_habit(statement: Sentence) -> bool:
    """Return whether a sentence says what the speaker does regularly: "I play the violin"."""
    return len(statement.terms) > 1 and statement.reading.has("habits")


def _kinds_at(reading: ParsedText, at: int) -> frozenset[str]:
    """Return the lists of the phrases that begin at a word."""
    return frozenset(kind for each in reading.phrases if each.first == at for kind in each.kinds)


def may_change(statement: Sentence) -> bool:
    """Return whether a sentence is a fact if it changes a known one: the user says that something is new or ended."""
    reading, said = statement.reading, statement.marks
    return (
        statement.line.role == "user"
        and not said.is_question
        and (bool(changes(Clauses(reading))) or bool(slots(Clauses(reading), has_changed=True)))
    )


def _is_passing(statement: Sentence) -> bool:
    """Return whether a sentence is transient: a mood, a score, an intention, or news of the day that names nobody."""
    reading, said = statement.reading, statement.marks
    if _SCORE.fullmatch(statement.text) or (reading.has("feels") and _is_mood(reading)):
        return True
    if any(each.first < _NEAR for each in reading.all("promises")) and not (
        said.has_number or said.has_time or reading.has("corrects")
    ):
        return True  # what somebody is going to do is at best a task
    return _is_today(reading) and not (said.has_name or reading.has("mine", "mine_after", "copula", "corrects"))


def _is_today(reading: ParsedText) -> bool:
    """Return whether a text mentions today."""
    known = lexicon().entries
    return any(word in known and known[word].day == 0 for word in reading.words)


def _is_mood(reading: ParsedText) -> bool:
    """Return whether somebody loves or hates only what they see or hear: it, your cake, how you say it."""
    felt = [each.end for each in reading.all("feels")]
    shown = {each.first for each in reading.all("points", "others", "you", "embeds", "joins")}
    others = [each for each in reading.all("prefers") if "feels" not in each.kinds and each.end not in felt]
    return not others and any(end in shown for end in felt)


def importance(text: str) -> float:
    """Estimate how much a fact will matter, from 0 to 1: identity and dietary needs most, an event least.

    Args:
        text: The text of a fact, by the summarizer or a user.
    """
    reading, said = ParsedText(text), marks(text)
    detailed = said.has_name + said.has_number + said.has_time
    return round(min(1.0, _EVENT + _DETAIL * detailed + _lasts(reading, said)), 2)


def _is_need(phrase: FoundPhrase, reading: ParsedText) -> bool:
    """Return whether a word such as "vegan" describes a person and not a cake."""
    if phrase.first == 0 or phrase.end == len(reading.words):
        return True
    before, after = reading.words[phrase.first - 1], reading.words[phrase.end]
    is_led = before in articles() and reading.text[reading.ends[phrase.end - 1] : reading.starts[phrase.end]] == " "
    return not (is_led and stems_of([after]))


def _lasts(reading: ParsedText, marks: Marks) -> float:
    """Return the extra weight of a fact that holds for long."""
    if any(_is_need(each, reading) for each in reading.all("needs")):
        return _DANGEROUS
    if _introduces(reading) or any(_owner(reading, each) for each in reading.all(*_FIXED)):
        return _ALWAYS
    prefers = reading.has("prefers") and not reading.has("feels")
    if prefers or reading.has("third"):
        return _LONG
    thing = _thing(reading)
    if thing and (reading.has("mine", "mine_after") or not (_is_today(reading) or _kind(thing[1]) == "words")):
        return _LONG
    if _is_dated(reading, marks):
        return _DATED
    return _LONG / 2 if (thing and not _is_today(reading)) or reading.has("being", "feels") else 0.0


def _is_dated(reading: ParsedText, marks: Marks) -> bool:
    """Return whether a calendar date is named, such as "2 May"."""
    found = dates(HintWords(reading.text), _DAY) if marks.has_time else ()
    named = (reading.text[each.start : each.end] for each in found if each.date and each.date.month and each.date.day)
    return any(DIGIT.search(each) for each in named)


def claim(text: str, reading: ParsedText | None = None) -> Claim:
    """Return the claim of a statement; works for sentences and for texts of board items."""
    reading = reading or ParsedText(text)
    attribute, value, is_fixed = _fixed(reading) or _thing(reading) or (frozenset(), text, False)
    terms = frozenset([*stems(text), *figures(text)])
    clauses = Clauses(reading)
    changed, corrects = changes(clauses), reading.has("corrects")
    newer = changed.newer
    if corrects and not (newer or changed.ended or reading.has("adds")):
        newer = (newest(clauses, 0, clauses.count),)
    given = slots(clauses, has_changed=bool(changed) or corrects)
    return Claim(
        attribute=attribute,
        kind=_kind(value),
        terms=terms,
        is_fixed=is_fixed,
        corrects=corrects,
        parts=parts(clauses),
        changes=changed,
        newer=newer,
        slots=given,
        evoked=evoked(clauses),
        adds=reading.has("adds"),
        denies=reading.has("negates"),
        needs=reading.has("needs"),
    )


def replaced(new: Claim, earlier: Sequence[tuple[int, Claim]], place: int) -> int | None:
    """Find the earlier statement that a new one replaces.

    Args:
        new: The new statement.
        earlier: The earlier ones with the place of their line, in order.
        place: The place of the new one's line.

    Returns:
        The index in `earlier` of the last statement it replaces. If it is a correction without a subject ("actually
        it's now 5,000"), that is the last nearby statement with a value of the same kind.
    """
    for at in range(len(earlier) - 1, -1, -1):
        if new.replaces(earlier[at][1]):
            return at
    if new.corrects and not new.attribute and new.kind in ("number", "time"):
        for at in range(len(earlier) - 1, -1, -1):
            line, other = earlier[at]
            if 0 < place - line <= _FAR and other.kind == new.kind and _may_be_it(new, other):
                return at
    if new.changes.switches:
        used = [at for at, (_, other) in enumerate(earlier) if _is_used(new, other)]
        return used[0] if len(used) == 1 else None
    return None


def _is_used(new: Claim, other: Claim) -> bool:
    """Return whether a statement is about something in use, which a switch by the same person can replace."""
    is_same = new.parts.holder == other.parts.holder and other.parts.verb in _verbs("uses")
    return is_same and new.parts.differs(other.parts)


def _may_be_it(new: Claim, other: Claim) -> bool:
    """Return whether a statement without a subject may refer to another: they share a word, or it has at most one."""
    own = {term for term in new.terms if term[0] != "#"}
    return bool(own & other.terms) or len(own) <= 1


def _is_supposed(reading: ParsedText) -> bool:
    """Return whether a statement is hypothetical: it opens with "if" or "maybe"."""
    return any(each.first <= 1 for each in reading.all("supposes"))


def _begins_with_name(text: str) -> bool:
    """Return whether the first word is a name, not a verb form as in "Drying is the problem"."""
    return any(text.startswith(name) and not _GERUND.fullmatch(name) for name in capitalized(text[:60]))


def _fixed(reading: ParsedText) -> tuple[frozenset[str], str, bool] | None:
    """Return a fixed attribute, which everybody has one of, with its value."""
    for kind in _FIXED:
        for each in reading.all(kind):
            owner = _owner(reading, each)
            if owner and not (kind in _WISHED and _is_infinitive(reading, each)):
                return frozenset({f"={kind}", owner}), reading.text[reading.ends[each.end - 1] :], True
    return None


def _is_infinitive(reading: ParsedText, phrase: FoundPhrase) -> bool:
    """Return whether a phrase says what somebody wants to do: "I want to live in Porto"."""
    return any(each.end == phrase.first for each in reading.all("infinitive"))


def _owner(reading: ParsedText, phrase: FoundPhrase) -> str:
    """Return whose attribute it is: the speaker's, or that of the person named right before it."""
    before = max(phrase.first - _NEAR, 0)
    if not _USER.isdisjoint(reading.words[before : phrase.end]):
        return "me"
    at = phrase.first - 1
    if "third" not in phrase.kinds:
        for each in reading.all("self", "mine", "mine_after"):
            # "I now live in" and "nakatira na ako sa" are about the speaker; "my sister lives in" is about the sister.
            first = before if "self" in each.kinds else phrase.first
            if first <= each.first < phrase.end + ("mine" not in each.kinds):
                return "me"
        if at < 0 or "called" in phrase.kinds:
            return "me"
    if at < 0 or not reading.text[reading.starts[at]].isupper() or reading.words[at] in _NOBODY:
        return ""
    return reading.words[at]


def _thing(reading: ParsedText) -> tuple[frozenset[str], str, bool] | None:
    """Return the subject of a copula and the value that it is given."""
    owned = {each.first for each in reading.all("mine")}
    for copula in sorted(reading.all("copula"), key=lambda each: _clause_start(reading, each.first) not in owned):
        made = _named_thing(reading, *_subject(reading, copula.first))
        if made and copula.end < len(reading.words):
            return made, reading.text[reading.ends[copula.end - 1] :], False
        if made := _role(reading, copula):
            return made, reading.text[: reading.ends[copula.first - 1]], False
    for topic in reading.all("topic"):
        owners = [each for each in reading.all("mine_after") if topic.end < each.first <= topic.end + _THING]
        if owners:
            made = _named_thing(reading, topic.first, owners[0].end)
            if made:
                before, after = reading.starts[topic.first], reading.ends[owners[0].end - 1]
                return made, reading.text[:before] + reading.text[after:], False
    return None


def _role(reading: ParsedText, copula: FoundPhrase) -> frozenset[str] | None:
    """Return what a named person is for the speaker: "Marco is our team lead"."""
    at = copula.first - 1
    owners = [each for each in reading.all("mine") if each.first == copula.end]
    if at < 0 or not owners or not reading.text[reading.starts[at]].isupper() or reading.words[at] in _NOBODY:
        return None
    first = end = owners[0].end
    while (
        end < len(reading.words) and stems_of([reading.words[end]]) and not _kinds_at(reading, end) & {"newly", "now"}
    ):
        end += 1
    return frozenset(stems_of(reading.words[first:end])) or None


def _subject(reading: ParsedText, index: int) -> tuple[int, int]:
    """Return the span of a copula's subject, skipping an aside: "my cat, the gray one, is Bituin"."""
    first = _clause_start(reading, index)
    if 0 < first == index and reading.text[reading.ends[index - 1] : reading.starts[index]].startswith(","):
        aside = _clause_start(reading, index - 1)
        if aside > 0:
            return _clause_start(reading, aside - 1), aside
    return first, index


def _clause_start(reading: ParsedText, index: int) -> int:
    """Return the index of the first word of a word's clause."""
    first = index
    while first > 0 and index - first < _THING:
        gap = reading.text[reading.ends[first - 1] : reading.starts[first]]
        if _CLAUSE.search(gap) or _joins(reading.words[first - 1]):
            break
        first -= 1
    return first


def _named_thing(reading: ParsedText, first: int, end: int) -> frozenset[str] | None:
    """Return the stems of a thing, if the words name one that the speaker or a named person owns, or needs no owner."""
    inside = [each for each in reading.phrases if first <= each.first and each.end <= end]
    if first >= end or any("others" in each.kinds for each in inside):
        return None
    text = reading.text[reading.starts[first] : reading.ends[end - 1]]
    owned = any(each.kinds & {"mine", "mine_after", "determiner", "topic"} for each in inside)
    if not owned and not _possessed(text) and _USER.isdisjoint(reading.words[first:end]):
        return None
    stale = {"now", "newly", "corrects"}
    dropped = {at for each in inside if each.kinds & stale for at in range(each.first, each.end)}
    kept = [reading.words[at] for at in range(first, end) if at not in dropped and reading.words[at] not in _USER]
    made = frozenset(stems(" ".join(kept))) - _TALK
    return made or None


def _possessed(text: str) -> bool:
    """Return whether a text contains a possessive name: "Jomar's day off"."""
    return re.search(r"[^\W\d_]['\u2019]s\b", text) is not None


def _kind(value: str) -> str:
    """Return the kind of a value."""
    said = marks(value)
    if said.has_time and not FIGURE.search(value):
        return "time"
    if said.has_number:
        return "time" if said.has_time else "number"
    head = value.split()[:3]
    return "name" if any(word[:1].isupper() for word in head) else "words"


def _introduces(reading: ParsedText) -> bool:
    """Return whether the speaker gives their name or role: "I'm Maya"."""
    named = {key(name) for name in capitalized(reading.text, inside=True)}
    return any(
        each.end - each.first > 1 and each.end < len(reading.words) and reading.words[each.end] in named
        for each in reading.all("self")
    )


def rank(sentences: Iterable[Sentence], min_count: int, max_count: int) -> list[Sentence]:
    """Return the most informative sentences, in their order: lasting facts before events.

    Args:
        sentences: Facts.
        min_count: The number that is always kept.
        max_count: The maximum number, if they are informative enough.
    """
    listed = list(sentences)
    told = [importance(each.text) + _WORD * min(len(each.terms), _TOLD) for each in listed]
    best = sorted(range(len(listed)), key=lambda at: (-told[at], -at))[:max_count]
    return [listed[at] for at in sorted([*best[:min_count], *(at for at in best[min_count:] if told[at] >= _MUCH)])]
