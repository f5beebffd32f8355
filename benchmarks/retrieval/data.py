"""Conversations with questions, and the turns that hold their answers, for all data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

ADVERSARIAL: Final = "adversarial"
"""The category of unanswerable questions, which are measured separately."""


class FormError(Exception):
    """The input does not have the form of a data set. The message names the form and the place."""


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
    """A question, and the turns with its answer."""

    text: str
    answer: str
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True)
class Conversation:
    """All turns of two speakers, oldest first, and the questions about them."""

    id: str
    speakers: tuple[str, str]
    turns: list[Turn]
    questions: list[Question]


@dataclass(frozen=True)
class DataSet:
    """The conversations of one data set.

    Attributes:
        name: Its name.
        conversations: The conversations that were read.
    """

    name: str
    conversations: list[Conversation]


def measurable(turns: list[Turn], questions: list[Question]) -> list[Question]:
    """Return the questions whose evidence exists in the turns: some is mistyped or missing."""
    known = {turn.id for turn in turns}
    return [each for each in questions if each.evidence and each.evidence <= known]
