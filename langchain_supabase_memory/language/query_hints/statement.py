"""What a text says, as far as it may answer a question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from langchain_supabase_memory.language.messages.encoded_data import LONGEST
from langchain_supabase_memory.language.query_hints.dates import times
from langchain_supabase_memory.language.query_hints.lexicon import NOTHING, lexicon
from langchain_supabase_memory.language.query_hints.names import capitalized
from langchain_supabase_memory.language.query_hints.words import HintWords
from langchain_supabase_memory.language.sentences import begins_sentence, sentences
from langchain_supabase_memory.language.spelling import WORD, compose, keys

_ASKING: Final = frozenset("?\uff1f\u061f\u2047\u2048\u2049\u2e2e")
_SMILEY: Final = re.compile(r"\s(?:[:;=8][-']?[)(DdPpOo3/|\\*\]]|[xX]D+|<3)$")
_OPENS: Final = frozenset({"question", "asks_time", "asks_number"})
_FIGURE: Final = re.compile(r"\d")
_SHORT: Final = 10  # words of a question without its mark
_ELLIPTIC: Final = 3  # words of one without a verb: "how many dogs"
_OPENING: Final = 200  # characters of one, too
_READ: Final = 4_000  # characters of a message that may ask
_ADDRESS: Final = 6  # words that may stand before a request: "By the way, please remind me"


@dataclass(frozen=True, slots=True)
class Marks:
    """What is in a text.

    Attributes:
        is_question: It asks something.
        has_time: It says a time: a date, a weekday, a time of day, "two days ago".
        has_number: A figure or a number in words is in it.
        has_name: A word is in it that may be a name.
    """

    is_question: bool = False
    has_time: bool = False
    has_number: bool = False
    has_name: bool = False


def marks(text: str) -> Marks:
    """Read the marks of a text. It never raises, whatever the text is."""
    if len(text) > LONGEST:  # whether it asks is said at its end
        text = f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"
    text = compose(text)
    known = lexicon()
    compared = keys(WORD.findall(text))
    has_figure = _FIGURE.search(text) is not None
    has_time = not known.times.isdisjoint(compared)
    if not has_time and (has_figure or _may_say_time(compared)):
        has_time = any(True for _ in times(HintWords(text)))
    return Marks(
        _is_question(text),
        has_time,
        has_figure or not known.numbers.isdisjoint(compared),
        any(True for _ in capitalized(text, inside=True)),
    )


def is_question_or_request(text: str) -> bool:
    """Return whether a text asks for something: by a question, wherever it stands, or by a request ("remind me of …").

    Args:
        text: A message of the user's; of one longer than 4,000 characters its beginning and its end are read.
    """
    if len(text) > _READ:
        text = f"{text[: _READ // 2]}\n{text[-_READ // 2 :]}"
    if not _ASKING.isdisjoint(text):
        return True
    text = compose(text)
    words = HintWords(text)
    requests = (at for at, entry in enumerate(words.entries) if "request" in entry.kinds)
    return any(at < _ADDRESS or begins_sentence(text, words.starts[at]) for at in requests) or _is_question(text)


def mostly_asks(text: str) -> bool:
    """Return whether at least a third of a text is questions and requests: it asks, rather than tells and asks, too.

    Args:
        text: A message of the user's; of one longer than 4,000 characters the end is read.
    """
    said = [text[each.start : each.end] for each in sentences(text[-_READ:])]
    asked = sum(len(each) for each in said if is_question_or_request(each))
    return bool(said) and 3 * asked >= sum(map(len, said))


def _may_say_time(compared: list[str]) -> bool:
    """Whether there are words that say a time together, which is worth a closer look."""
    known = lexicon()
    if not known.dated.isdisjoint(compared):
        return True
    return not known.units.isdisjoint(compared) and not known.relative.isdisjoint(compared)


def _is_question(text: str) -> bool:
    """Whether a text ends with a question mark, or is a short question without any mark."""
    end = text.rstrip()
    while smiley := _SMILEY.search(end[-8:]):
        end = end[: len(end) - len(smiley.group())].rstrip()
    for letter in reversed(end):
        if letter in _ASKING:
            return True
        if letter.isalnum():
            return _asks(end)
        if letter in ".\u2026;:,":
            return False
    return False


def _asks(text: str) -> bool:
    """Whether a text without a mark at its end is a question all the same."""
    if len(text) > _OPENING or any(mark in text for mark in ".!?,;:\n"):
        return False
    words = HintWords(text)
    kinds = words.entry(0).kinds
    if not 1 < len(words) <= _SHORT or not kinds & _OPENS:
        return False
    auxiliaries = lexicon().entries.get(words.keys[0], NOTHING).auxiliaries
    if not auxiliaries or "question" in kinds:
        return not auxiliaries or words.keys[1] in auxiliaries
    return len(words) <= _ELLIPTIC or not auxiliaries.isdisjoint(words.keys)
