"""Read one clause: a frame such as "I live in" with its value, or an instruction such as "always use metric units"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from langchain_supabase_memory.language.extractive.profile.finding import ProfileFinding, ProfileKind
from langchain_supabase_memory.language.extractive.profile.lexicon import FRAMES, OF_ANSWERS, profile_phrases
from langchain_supabase_memory.language.extractive.profile.subjects import either, head, normalize_subject
from langchain_supabase_memory.language.injection import is_injection

if TYPE_CHECKING:
    from langchain_supabase_memory.language.extractive.phrases import FoundPhrase
    from langchain_supabase_memory.language.extractive.profile.statements import ParsedSentence

_Polarity = Literal[-1, 0, 1]

_MAX_VALUE: Final = 8  # words
_MAX_NAME: Final = 3
_MAX_TASK: Final = 14
_MAX_CONTRAST: Final = 4
_NAMES: Final = frozenset({"si", "sina", "ang"})
_MINE: Final = frozenset({"my", "our"})
_CONTRASTS: Final = frozenset({"not", "hindi"})
_LEADS: Final = (
    "words.leads", "marks.lasting", "marks.once", "marks.corrects", "marks.insists", "marks.polite", "marks.introduces",
)  # fmt: skip
_FRAMES: Final = tuple(f"frames.{name}" for name in FRAMES)
_NEGATIVE: Final = frozenset(
    {"dislikes", "cannot", "never_habit", "not_habit", "is_not", "home_ended", "allergy_ended"}
)
_PLAIN: Final[dict[str, tuple[ProfileKind, str]]] = {
    "home": ("fact", "home"),
    "home_ended": ("fact", "home"),
    "hometown": ("fact", "hometown"),
    "job": ("fact", "job"),
    "employer": ("fact", "employer"),
    "school": ("fact", "school"),
    "studies": ("fact", "studies"),
    "birthday": ("fact", "birthday"),
    "languages": ("fact", "languages"),
    "pronouns": ("fact", "pronouns"),
    "time_zone": ("fact", "time zone"),
    "marital": ("fact", "marital status"),
    "email": ("fact", "email"),
    "phone": ("fact", "phone number"),
    "car": ("fact", "car"),
    "phone_model": ("fact", "phone"),
}
_PROPER: Final = frozenset({"home", "home_ended", "hometown", "languages"})
_WHOLE: Final = frozenset({"pronouns", "email", "phone", "birthday", "languages"})
_KNOWN: Final[dict[str, tuple[ProfileKind, str]]] = {
    "values.diet": ("constraint", "diet"),
    "values.condition": ("constraint", ""),
    "values.marital": ("fact", "marital status"),
    "values.occupation": ("fact", "job"),
}


class Value(NamedTuple):
    """A value with its place.

    Attributes:
        first: Its first word.
        end: The word after its last.
        text: Its text.
    """

    first: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Stated:
    """What a clause states, before what its sentence adds.

    Attributes:
        kind: What it is.
        subject: What it is about.
        value: The value.
        polarity: Whether it is so.
        is_durable: Whether its words alone say that it holds for good.
        is_certain: Whether it tells something that lasts whatever day it is, such as a home.
    """

    kind: ProfileKind
    subject: str
    value: str
    polarity: _Polarity
    is_durable: bool = True
    is_certain: bool = False


def read_clause(sentence: ParsedSentence, place: int, condition: str | None) -> ProfileFinding | None:
    """Return what a clause of a sentence states of the speaker, or asks for.

    Args:
        sentence: The sentence.
        place: The index of the clause.
        condition: The condition that an earlier clause of the sentence states.
    """
    first, end = sentence.clauses[place]
    if sentence.has("marks.asks", first, end) or (sentence.is_question and place == len(sentence.clauses) - 1):
        return None
    if first > 0 and sentence.at(first - 1, first, "words.copulas"):
        return None  # "her motto was, I never give up"
    begins = _begin(sentence, first, end)
    stated = _framed(sentence, first, begins, end) or _inverted(sentence, begins, end)
    if stated is None:
        stated = _instructed(sentence, first, begins, end)
    if stated is None or not stated.value or not stated.subject:
        return None
    if stated.kind == "instruction" and _continues_another(sentence, place):
        return None
    if is_injection(sentence.slice(0, len(sentence.words))):
        return None
    is_once = sentence.has("marks.once") and not stated.is_certain
    corrects = sentence.has("marks.corrects") or sentence.has("marks.insists") or _contrasts(sentence, place)
    is_lasting = stated.is_durable or sentence.has("marks.lasting") or sentence.has("marks.insists")
    is_lasting = is_lasting or sentence.has("marks.corrects")
    return ProfileFinding(
        stated.kind, stated.subject, stated.value, stated.polarity, condition, is_lasting and not is_once, corrects,
        sentence.slice(first, end),
    )  # fmt: skip


def _continues_another(sentence: ParsedSentence, place: int) -> bool:
    """Return whether a clause goes on about somebody else: "my sister lives in Bohol and never uses a phone"."""
    first, end = sentence.clauses[place]
    return (
        place > 0
        and sentence.at(first, end, "words.joins") is not None
        and sentence.at(sentence.clauses[place - 1][0], first, "words.persons") is not None
    )


def _contrasts(sentence: ParsedSentence, place: int) -> bool:
    """Return whether a clause beside says what it is not: "not Bea, call me Beatriz"."""
    beside = [each for at, each in enumerate(sentence.clauses) if abs(at - place) == 1]
    return any(sentence.words[first] in _CONTRASTS and 1 < end - first <= _MAX_CONTRAST for first, end in beside)


def _begin(sentence: ParsedSentence, first: int, end: int) -> int:
    """Return the word at which a clause begins to say something, after what may lead it."""
    at = first
    while at < end:
        frame = sentence.at(at, end, *_FRAMES)
        lead = sentence.at(at, end, *_LEADS)
        if lead is None or (frame is not None and frame.end >= lead.end):
            return at
        at = lead.end
    return at


def _framed(sentence: ParsedSentence, first: int, at: int, end: int) -> Stated | None:
    """Return what a frame at the beginning of a clause states."""
    if stated := _unwanted_name(sentence, first, end):
        return stated
    frames = [each for each in sentence.phrases if each.first == at and each.end <= end]
    for each in sorted(frames, key=lambda phrase: -phrase.end):
        for name in sorted(kind[len("frames.") :] for kind in each.kinds if kind.startswith("frames.")):
            if stated := _from_frame(sentence, name, each, end):
                return stated
    return None


def _unwanted_name(sentence: ParsedSentence, first: int, end: int) -> Stated | None:
    """Return a name that is not wanted: "don't ever call me Trix"."""
    for each in sentence.phrases:
        if "words.negates" not in each.kinds or each.first < first or each.end >= end:
            continue
        found = sentence.at(each.end, end, "frames.name") or sentence.at(each.end - 1, end, "frames.name")
        value = None if found is None or found.end <= each.end else _value(sentence, found.end, end)
        if value is not None and _is_name(sentence, value, is_wanted=False):
            return Stated("instruction", "name", value.text, -1)
    return None


def _from_frame(sentence: ParsedSentence, name: str, frame: FoundPhrase, end: int) -> Stated | None:
    if name in ("is", "is_not", "not_habit"):
        return _known(sentence, name, frame.end, end)
    if name == "favorite":
        return _favorite(sentence, frame.end, end)
    if name in ("habit", "never_habit"):
        return _habit(sentence, name, frame.end, end)
    value = _value(sentence, frame.end, end, is_entire=name in _WHOLE)
    if value is None:
        return None
    polarity: _Polarity = -1 if name in _NEGATIVE else 1
    if name == "name":
        return Stated("fact", "name", value.text, 1, is_certain=True) if _is_name(sentence, value) else None
    if name in _PLAIN:
        kind, subject = _PLAIN[name]
        if name in _PROPER and (not _is_proper(sentence, value) or _is_of_another(sentence, value)):
            return None
        return Stated(kind, subject, value.text, polarity, is_certain=True)
    if name == "uses":
        topic = _topic(sentence, frame.end, end, of_answers=False)
        return topic and Stated("preference", topic[0], topic[1], 1)
    if name in ("allergy", "allergy_ended"):
        return Stated("constraint", f"allergy {normalize_subject(value.text)}", value.text, polarity, is_certain=True)
    return _taste(sentence, name, value, end)


def _is_of_another(sentence: ParsedSentence, value: Value) -> bool:
    """Return whether a value is followed by whom it is of: "taga-Bohol si Lolo"."""
    return any(sentence.words[at] in _NAMES for at in range(value.first + 1, value.end))


def _taste(sentence: ParsedSentence, name: str, value: Value, end: int) -> Stated | None:
    """Return what somebody likes, prefers or does without."""
    if sentence.words[value.first - 1] in _MINE or _points(sentence, value):
        return None
    polarity: _Polarity = -1 if name in _NEGATIVE else 1
    if topic := _topic(sentence, value.first, end, of_answers=sentence.has("values.answers", value.first, end)):
        return Stated("preference", topic[0], topic[1], polarity, is_durable=name != "wants")
    if name == "prefers":
        over = next(
            (each for each in sentence.phrases if "words.over" in each.kinds and value.first < each.first < end), None
        )
        if over is not None:
            chosen = _value(sentence, value.first, over.first)
            rejected = _value(sentence, over.end, end)
            if chosen and rejected:
                return Stated("preference", either(chosen.text, rejected.text), chosen.text, 1)
        return Stated("preference", head(_thing(sentence, value)), value.text, 1)
    if name == "wants":
        if not (sentence.has("marks.corrects") or sentence.has("marks.lasting")):
            return None
        return Stated("preference", normalize_subject(value.text), value.text, 1, is_durable=False)
    kind: ProfileKind = "constraint" if name == "cannot" else "preference"
    if polarity < 0 or name == "likes":
        return Stated(kind, normalize_subject(_thing(sentence, value)), _thing(sentence, value), polarity)
    return Stated("preference", normalize_subject(value.text), value.text, polarity)


def _points(sentence: ParsedSentence, value: Value) -> bool:
    """Return whether a value is one of the moment: "the second option"."""
    places = range(value.first, _thing_end(sentence, value))
    return any(sentence.at(at, value.end, "words.points") for at in places)


def _known(sentence: ParsedSentence, name: str, first: int, end: int) -> Stated | None:
    """Return a value of the lists of values behind "I'm" and the like: a diet, an occupation."""
    polarity: _Polarity = -1 if name in _NEGATIVE else 1
    at = _skip(sentence, first, end, "words.articles")
    if name == "not_habit":
        found = sentence.at(at, end, "values.doing")
        if found is None or _value(sentence, found.end, end):
            return None
        text = sentence.slice(at, found.end)
        return Stated("trait", normalize_subject(text), text, -1)
    if at < end and sentence.words[at].isdecimal() and sentence.at(at + 1, end, "values.age"):
        return Stated("fact", "age", sentence.words[at], 1, is_certain=True)
    for word in range(at, min(end, at + 3)):
        found = sentence.at(word, end, *_KNOWN)
        if found is None:
            continue
        kinds = [kind for kind in _KNOWN if kind in found.kinds]
        if word > at and kinds[0] != "values.occupation":
            return None
        if _value(sentence, found.end, end) and not _ends_thing(sentence, found.end, end):
            continue
        kind, subject = _KNOWN[kinds[0]]
        text = sentence.slice(at, found.end)
        return Stated(kind, subject or normalize_subject(text), text, polarity, is_certain=True)
    return None


def _ends_thing(sentence: ParsedSentence, at: int, end: int) -> bool:
    """Return whether the words behind a known value do not change it: "a nurse at the hospital"."""
    return (
        at >= end
        or sentence.at(at, end, "words.places", "words.cuts", "words.tails", "words.articles", "words.joins")
        is not None
    )


def _favorite(sentence: ParsedSentence, first: int, end: int) -> Stated | None:
    """Return a favorite: "my favorite color is teal"."""
    for each in sentence.phrases:
        if "words.copulas" in each.kinds and first < each.first and each.end < end:
            value = _value(sentence, each.end, end)
            thing = _trimmed(sentence, first, each.first)
            if value is None or thing is None or sentence.has("words.persons", thing.first, thing.end):
                return None
            return Stated("preference", f"favorite {normalize_subject(thing.text)}", value.text, 1)
    return None


def _habit(sentence: ParsedSentence, name: str, first: int, end: int) -> Stated | None:
    """Return what somebody does: "usually wake up at five"."""
    if first >= end or sentence.at(first, end, "words.not_habits", "words.points"):
        return None
    word = sentence.words[first]
    if word.endswith("ed") and word not in ("need", "feed"):
        return None
    value = _value(sentence, first, end)
    if value is None or any(sentence.at(at, end, "words.not_habits") for at in range(first, value.end)):
        return None
    return Stated("trait", normalize_subject(_thing(sentence, value)), value.text, -1 if name == "never_habit" else 1)


def _inverted(sentence: ParsedSentence, at: int, end: int) -> Stated | None:
    """Return what a clause states whose value comes first: "Beatriz ang pangalan ko", "nars ako"."""
    for each in sentence.phrases:
        if not at < each.first or each.end > end:
            continue
        value = _trimmed(sentence, _skip(sentence, at, each.first, "words.articles"), each.first)
        if value is None or value.end - value.first > _MAX_NAME:
            continue
        if "frames.name_after" in each.kinds and each.end >= end - 1 and _is_name(sentence, value):
            return Stated("fact", "name", value.text, 1, is_certain=True)
        if "frames.home_after" in each.kinds and _is_proper(sentence, value):
            return Stated("fact", "home", value.text, 1, is_certain=True)
        if "frames.favorite_after" in each.kinds and (thing := _value(sentence, each.end, end)):
            return Stated("preference", f"favorite {normalize_subject(thing.text)}", value.text, 1)
    known = sentence.at(at, end, *_KNOWN)
    if known is not None and known.end < end and sentence.words[known.end] in ("ako", "akong", "na"):
        speaker = known.end + (sentence.words[known.end] == "na")
        if speaker < end and sentence.words[speaker].startswith("ako"):
            kind, subject = _KNOWN[next(kind for kind in _KNOWN if kind in known.kinds)]
            text = sentence.slice(at, known.end)
            return Stated(kind, subject or normalize_subject(text), text, 1, is_certain=True)
    if "ako" in sentence.words[at:end]:
        for each in sentence.phrases:
            if "values.age" in each.kinds and at < each.first and each.end <= end:
                return Stated("fact", "age", sentence.slice(at, each.end), 1, is_certain=True)
    return None


def _instructed(sentence: ParsedSentence, first: int, begins: int, end: int) -> Stated | None:
    """Return what a clause tells the assistant to do."""
    is_lasting = sentence.has("marks.lasting")
    insists = sentence.has("marks.insists")
    ends = begins < end and sentence.at(begins, end, "words.stops") is not None
    lead = any("marks.lasting" in each.kinds and first <= each.first < begins for each in sentence.phrases)
    if begins >= end:
        return None
    opens = sentence.at(begins, end, "words.subjects")
    if opens and sentence.gap(opens.end) == "-":  # the "i" of "i-explain" is no "I"
        opens = None
    polarity: _Polarity = 1
    if any(
        "marks.lasting" in each.kinds and first <= each.first < begins and _is_negative(sentence, each)
        for each in sentence.phrases
    ):
        polarity = -1
    at = begins
    while negative := sentence.at(at, end, "words.negates"):
        polarity, at = -1, negative.end
    topic = _topic(sentence, begins, end, of_answers=True)
    if topic and sentence.words[first] in _CONTRASTS and end - first <= _MAX_CONTRAST:
        return None  # the value that does not hold
    is_imperative = sentence.at(begins, end, "words.imperatives") is not None or at > begins
    if sentence.at(begins, end, "words.persons"):
        return None
    at = _skip(sentence, at, end, "words.articles")
    if topic and (insists or ends or (is_lasting and (opens is None or lead or is_imperative))):
        is_told = insists or ends or is_imperative or lead or sentence.clauses[0][0] != first
        if is_told:
            return Stated("instruction", topic[0], topic[1], polarity)
    if ends or not is_lasting:
        if topic and is_imperative:
            return Stated("instruction", topic[0], topic[1], polarity, is_durable=False)
        return None
    told = lead or is_imperative or _follows_lasting(sentence, first)
    if not told or (opens is not None and not is_imperative) or at >= end:
        return None
    value = _value(sentence, at, end, limit=_MAX_TASK)
    if (
        value is None
        or _is_told_of(sentence.words[value.first])
        or (value.first > begins and sentence.at(value.first, end, "words.persons"))
    ):
        return None
    return Stated("instruction", normalize_subject(_thing(sentence, value, deep=True)), value.text, polarity)


def _is_told_of(verb: str) -> bool:
    """Return whether a verb is in the third person: "always happens"."""
    return verb.endswith("s") and not verb.endswith(("ss", "us", "is"))


def _is_negative(sentence: ParsedSentence, phrase: FoundPhrase) -> bool:
    return sentence.at(phrase.first, phrase.end, "words.negates") is not None or sentence.words[phrase.first] in (
        "hinding", "never", "huwag", "wag",
    )  # fmt: skip


def _follows_lasting(sentence: ParsedSentence, first: int) -> bool:
    """Return whether the clause right before consists of a lasting mark: "from now on, …"."""
    for begins, end in sentence.clauses:
        if end == first:
            found = sentence.at(_skip(sentence, begins, end, "words.leads"), end, "marks.lasting")
            return found is not None
    return False


def _topic(sentence: ParsedSentence, first: int, end: int, *, of_answers: bool) -> tuple[str, str] | None:
    """Return the topic of which a value is named between two words, and the value.

    Args:
        sentence: The sentence.
        first: The first word.
        end: The word after the last.
        of_answers: Whether it is about what an assistant writes.
    """
    fits = [
        (each, kind[len("topics.") :])
        for each in sentence.phrases
        if first <= each.first and each.end <= end
        for kind in each.kinds
        if kind.startswith("topics.")
    ]
    fits = [
        (each, topic)
        for each, topic in fits
        if topic not in OF_ANSWERS
        or (of_answers and (topic == "answer language" or _ends_phrase(sentence, each.end, end)))
    ]
    if not fits:
        return None
    best, topic = max(fits, key=lambda item: (item[0].end - item[0].first, -item[0].first))
    return topic, sentence.slice(best.first, best.end)


def _ends_phrase(sentence: ParsedSentence, at: int, end: int) -> bool:
    """Return whether a word such as "short" describes an answer, and no other thing behind it."""
    if at >= end or sentence.at(at, end, "values.answers", "marks.lasting", "marks.once") is not None:
        return True
    if not _ends_thing(sentence, at, end):
        return False
    is_article = sentence.at(at, end, "words.articles") and not sentence.at(at, end, "words.places", "words.tails")
    return not is_article or _ends_phrase(sentence, at + 1, end)


def _value(
    sentence: ParsedSentence, first: int, end: int, *, is_entire: bool = False, limit: int = _MAX_VALUE
) -> Value | None:
    """Return the value at a word, to the end of its clause at most."""
    first = _skip(sentence, first, end, "words.articles")
    for at in range(first, end):
        if sentence.at(at, end, "words.cuts", "marks.once", "marks.lasting", "marks.conditions") and (
            at > first or not is_entire
        ):
            end = at
            break
    return _trimmed(sentence, first, min(end, first + limit))


def _trimmed(sentence: ParsedSentence, first: int, end: int) -> Value | None:
    """Return a value without what is no part of it at its end."""
    is_less = True
    while is_less and end > first:
        is_less = False
        for each in sentence.phrases:
            if each.end == end and each.first >= first and "words.tails" in each.kinds:
                end, is_less = each.first, True
                break
    return Value(first, end, sentence.slice(first, end)) if end > first else None


def _thing(sentence: ParsedSentence, value: Value, *, deep: bool = False) -> str:
    """Return the thing of a value, without where or when: "olives" of "olives on pizza"."""
    return value.text if deep else sentence.slice(value.first, _thing_end(sentence, value))


def _thing_end(sentence: ParsedSentence, value: Value) -> int:
    places = (at for at in range(value.first + 1, value.end) if sentence.at(at, value.end, "words.places"))
    return next(places, value.end)


def _skip(sentence: ParsedSentence, at: int, end: int, kind: str) -> int:
    while at < end and (found := sentence.at(at, end, kind)):
        at = found.end
    return at


def _is_name(sentence: ParsedSentence, value: Value, *, is_wanted: bool = True) -> bool:
    """Return whether a value can be somebody's name."""
    if value.end - value.first > _MAX_NAME or "words.not_names" in profile_phrases().known.get(
        sentence.words[value.first], ()
    ):
        return False
    return not is_wanted or _is_proper(sentence, value) or value.end - value.first == 1


def _is_proper(sentence: ParsedSentence, value: Value) -> bool:
    """Return whether a value begins with a capital, or the message has none."""
    return value.text[0].isupper() or value.text[0].isdecimal() or not any(map(str.isupper, sentence.text))
