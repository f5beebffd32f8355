"""Detect greetings, questions, and questions that are still open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.phrases import ParsedText, phrases
from langchain_supabase_memory.language.extractive.stems import figures, stems
from langchain_supabase_memory.language.query_hints import marks
from langchain_supabase_memory.language.sentences import Span, sentences
from langchain_supabase_memory.language.spelling import LETTERS, WORD, key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.effects import TranscriptLine

SPEAKING: Final = frozenset({"user", "assistant"})
"""The roles that ask and answer."""

_SHORT: Final = 60  # maximum characters of a greeting that includes a name
_ADDRESSED: Final = 2  # maximum words of that name
_LONGEST_QUESTION: Final = 400
_ASKING: Final = frozenset("?？؟⁇⁈⁉⸮")
_PAUSES: Final = frozenset(".!,;:\n")  # a text with one of these and no question mark is not a question
_LONGEST_UNMARKED: Final = 200
_MAX_QUESTIONS: Final = 20
_MAX_SENTENCES: Final = 200  # in one line
_LATEST: Final = 40  # lines at the end that are searched for open questions
_ENOUGH: Final = 0.5  # share of a question's stems that makes a line its answer

_MARKUP: Final = re.compile(r"\*\*|__|[\[\]|`{}<>\\$#=^~]")
_STOPS: Final = frozenset(".!?\u2026\u3002\uff01\uff1f")
_CLOSES: Final = ")\"\u201d\u00bb'"
_LETTERS: Final = re.compile(LETTERS)
_OPENS: Final = frozenset('"\u201c\u201e\u00ab*_')
_HEADED: Final = 2  # words from which a line with capitals only is a heading


@dataclass(frozen=True, slots=True)
class DialogueQuestion:
    """A question in a conversation.

    Attributes:
        place: The index of its line.
        span: Its span in the line's text.
        text: The text.
    """

    place: int
    span: Span
    text: str


def greets(text: str) -> bool:
    """Return whether a text is only a greeting, thanks or an acknowledgment."""
    if len(text) > 2 * _SHORT or figures(text):
        return False
    first = WORD.search(text)
    if first is None or "greets" not in phrases().opening.get(key(first.group()), ()):
        return first is None
    reading = ParsedText(text)
    covered: set[int] = set()
    for each in reading.all("greets"):
        covered.update(range(each.first, each.end))
    left = [at for at in range(len(reading.words)) if at not in covered]
    if not left:
        return True
    if len(text) > _SHORT or not covered or 0 not in covered:
        return False
    named = [at for at in left if text[reading.starts[at]].isupper()]
    return len(left) == len(named) <= _ADDRESSED


def is_prose(text: str, role: str) -> bool:
    """Return whether a sentence is running text. An assistant's ends with a stop, since it writes lists and headings.

    Args:
        text: The sentence.
        role: The role of its speaker.
    """
    if _MARKUP.search(text) or text[:1] in _OPENS:
        return False
    return text.rstrip(_CLOSES)[-1:] in _STOPS or (role == "user" and not is_heading(text))


def is_heading(text: str) -> bool:
    """Return whether all words of a text have a capital, as in a heading or an address."""
    words = _LETTERS.findall(text)
    return len(words) > _HEADED and all(each[0].isupper() for each in words)


def questions(lines: Sequence[TranscriptLine]) -> Iterator[DialogueQuestion]:
    """Yield the speakers' questions, in order. One without a content word, such as "really?", does not count."""
    for place, line in enumerate(lines):
        if line.role not in SPEAKING or not line.text:
            continue
        for span in sentences(line.text):
            said = line.text[span.start : span.end]
            if len(said) <= _LONGEST_QUESTION and _is_question(said) and len(set(stems(said))) > 1:
                yield DialogueQuestion(place, span, said)


def is_posed(question: DialogueQuestion, line: TranscriptLine) -> bool:
    """Return whether a question asks the other side. An assistant's does in the last line of its message only.

    Its others are examples, or it goes on to answer them.
    """
    return line.role == "user" or (
        is_prose(question.text, line.role) and "\n" not in line.text[question.span.end :].rstrip()
    )


def unanswered(lines: Sequence[TranscriptLine]) -> list[DialogueQuestion]:
    """Return the questions that are open at the end of the lines, in order.

    A question is answered when the other side says something that is not a question, a greeting or an excuse ("let me
    check"), or when any speaker later says something that shares half of the question's stems.
    """
    first = max(len(lines) - _LATEST, 0)
    recent = lines[first:]
    said = [_ReplyLine(line) for line in recent]
    found: list[DialogueQuestion] = []
    for each in [*questions(recent)][-_MAX_QUESTIONS:]:
        asked = frozenset(stems(each.text))
        role = recent[each.place].role
        later = said[each.place + 1 :]
        if not any((other.role != role and other.replies) or other.answers(asked) for other in later):
            found.append(DialogueQuestion(first + each.place, each.span, each.text))
    return found


class _ReplyLine:
    """A line that may answer questions; each property is computed lazily and once."""

    def __init__(self, line: TranscriptLine) -> None:
        self.role = line.role
        self._text = line.text if line.role in SPEAKING else ""

    @cached_property
    def replies(self) -> bool:
        """Whether it contains a reply."""
        return replies(self._text)

    @cached_property
    def _stated(self) -> list[frozenset[str]]:
        """The stems of its statements."""
        spans = islice(sentences(self._text), _MAX_SENTENCES)
        said = [self._text[span.start : span.end] for span in spans]
        return [
            frozenset(stems(each)) for each in said if not _is_question(each) and not ParsedText(each).has("defers")
        ]

    def answers(self, terms: frozenset[str]) -> bool:
        """Return whether a statement in it shares at least half of a question's stems, and at least two."""
        least = max(2, _ENOUGH * len(terms))
        return any(len(terms & stated) >= least for stated in self._stated)


def replies(text: str) -> bool:
    """Return whether any sentence of a text is not a question, a greeting or an excuse."""
    for span in sentences(text[: 10 * _LONGEST_QUESTION]):
        said = text[span.start : span.end]
        if _is_question(said) or ParsedText(said).has("defers"):
            continue
        if not greets(said) or ParsedText(said).has("decides"):
            return True
    return False


def _is_question(text: str) -> bool:
    """Return whether a text is a question; `query_hints` decides if quick checks do not."""
    if _ASKING.isdisjoint(text) and (len(text) > _LONGEST_UNMARKED or not _PAUSES.isdisjoint(text)):
        return False
    return marks(text).is_question
