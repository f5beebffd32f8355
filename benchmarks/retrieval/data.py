"""Conversations with questions, and the turns that hold their answers, whichever data set they are from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

ADVERSARIAL: Final = "adversarial"
"""The questions that have no answer: they are measured apart."""


class FormError(Exception):
    """What was read is not of the form of a data set. The text says of which, and where."""


@dataclass(frozen=True)
class Turn:
    """One message of a conversation."""

    id: str
    speaker: str
    text: str
    session: int
    at: datetime


@dataclass(frozen=True)
class Question:
    """A question, and where its answer stands."""

    text: str
    answer: str
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True)
class Conversation:
    """All that two have said, oldest first, and what is asked about it."""

    id: str
    speakers: tuple[str, str]
    turns: list[Turn]
    questions: list[Question]


@dataclass(frozen=True)
class DataSet:
    """The conversations of one data set.

    Attributes:
        name: Its name.
        conversations: Those that were read.
    """

    name: str
    conversations: list[Conversation]


def measurable(turns: list[Turn], questions: list[Question]) -> list[Question]:
    """The questions whose evidence stands in the turns: some of it is mistyped, or there is none."""
    known = {turn.id for turn in turns}
    return [each for each in questions if each.evidence and each.evidence <= known]
