"""Measure what a whole context pack retains: the verbatim evidence, and the words of the answers."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.retrieval.data import ADVERSARIAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.retrieval.data import Conversation, Question
    from benchmarks.retrieval.metrics import Packer, Unit

BUDGETS: Final = (2_000, 4_000, 12_000)
_RECALL: Final = 2 / 3
"""The share of a reference pack for recalled turns; the rest is for the newest turns."""

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_STOP_WORDS: Final = """
    a about after all also am an and any are as at be because been before being but by can could did do does doing
    for from had has have having he her hers him his how i if in into is it its just like me more most my no nor not of
    on one or other our out over own she should so some such than that the their them then there these they this those
    through to too under until up very was we were what when where which while who whom why will with would yes you
    your"""


MEASURES: Final = ("evidence", "grounded", "anywhere")


@dataclass(frozen=True)
class Kept:
    """The shares that one pack retains.

    Attributes:
        evidence: Of the turns with the evidence, those that are in it verbatim.
        grounded: Of the answer's words that come from the evidence, those that are in it within a sentence of the
            evidence; `None` if the answer has none.
        anywhere: Of the answer's words that occur in the conversation, those that are in it in any context; `None` if
            there are none.
    """

    evidence: float
    grounded: float | None
    anywhere: float | None


def kept(conversation: Conversation, question: Question, text: str) -> Kept:
    """Return what a pack retains for a question, in the form that is sent."""
    # Data is sent escaped, and white space is not measured.
    shown = _plain(html.unescape(text))
    evidence = [_plain(turn.text) for turn in conversation.turns if turn.id in question.evidence]
    sentences = [sentence for turn in evidence for sentence in _SENTENCE.split(turn) if sentence in shown]
    answer = words(question.answer)
    return Kept(
        float(np.mean([turn in shown for turn in evidence])),
        _share(answer & words(" ".join(evidence)), words(" ".join(sentences))),
        _share(answer & said(conversation), words(shown)),
    )


def _share(wanted: set[str], found: set[str]) -> float | None:
    return len(wanted & found) / len(wanted) if wanted else None


def as_text(conversation: Conversation, inside: set[str]) -> str:
    """Return a pack of turns as it would be sent."""
    return "\n".join(f"{turn.speaker}: {turn.text}" for turn in conversation.turns if turn.id in inside)


def reference(packer: Packer, units: Sequence[Unit], characters: int) -> str:
    """Return a pack of the newest turns and the best ones of a ranking, without a summary."""
    recent, room = packer.recent(characters - round(characters * _RECALL))
    inside = packer.pack(units, round(characters * _RECALL) + room, recent)
    return as_text(packer.conversation, inside)


def newest(packer: Packer, characters: int) -> str:
    """Return a pack of only the newest turns."""
    return as_text(packer.conversation, packer.recent(characters)[0])


def asked(conversation: Conversation) -> list[int]:
    """Return the indexes of the measured questions: those with an answer."""
    return [place for place, each in enumerate(conversation.questions) if each.category != ADVERSARIAL]


def words(text: str) -> set[str]:
    """Return the content words of a text."""
    return set(re.findall(r"\w+", text.casefold())).difference(_STOP_WORDS.split())


def said(conversation: Conversation) -> set[str]:
    """Return every word of a conversation."""
    if conversation.id not in _said:
        _said[conversation.id] = words(" ".join(turn.text for turn in conversation.turns))
    return _said[conversation.id]


_said: dict[str, set[str]] = {}


def _plain(text: str) -> str:
    return " ".join(text.split())
