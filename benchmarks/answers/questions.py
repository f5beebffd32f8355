"""The questions of LoCoMo, LongMemEval and BEAM, with what a right answer says; evidence is not needed here."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.retrieval.data import FormError
from benchmarks.retrieval.data_sets import beam, locomo, longmemeval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.retrieval.data import Conversation

ABSTENTION: Final = "abstention"
"""The category of questions that the conversation does not answer, and whose right answer says so."""
_ADVERSARIAL: Final = 5
"""LoCoMo's number of the questions that its own authors and others leave out of answer scores."""


@dataclass(frozen=True)
class AnswerQuestion:
    """A question, and what a right answer says.

    Attributes:
        id: It is unique in its data set.
        text: The question.
        category: The kind of question, by the data set's own name.
        expected: What a right answer says: one line, or for BEAM the lines of its rubric.
        today: The date of the question, as the data set writes it; empty if it has none.
    """

    id: str
    text: str
    category: str
    expected: tuple[str, ...]
    today: str = ""


@dataclass(frozen=True)
class Interview:
    """A conversation, and the questions about it."""

    conversation: Conversation
    questions: list[AnswerQuestion]


def load(name: str, path: Path, limit: int | None = None) -> Iterator[Interview]:
    """Read a data set, one conversation after the other.

    Args:
        name: One of `SETS`.
        path: Its file, or BEAM's folder.
        limit: The maximum number of conversations.

    Raises:
        FormError: It cannot be read, or is of another form.
    """
    try:
        yield from SETS[name](path, limit)
    except OSError as error:
        raise FormError(f"{path} cannot be read: {error.strerror}") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise FormError(f"{path} is not of the form of {name}: {what}") from None


def _locomo(path: Path, limit: int | None) -> Iterator[Interview]:
    for number, raw in enumerate(json.loads(path.read_text())[:limit]):
        conversation = locomo.conversation(raw, number)
        questions = [
            AnswerQuestion(
                f"{conversation.id}/{place}",
                each["question"],
                locomo.CATEGORIES[each["category"]],
                (str(each["answer"]),),
            )
            for place, each in enumerate(raw["qa"])
            if each["category"] != _ADVERSARIAL
        ]
        yield Interview(conversation, questions)


def _longmemeval(path: Path, limit: int | None) -> Iterator[Interview]:
    for raw in json.loads(path.read_text())[:limit]:
        name = raw["question_id"]
        category = ABSTENTION if name.endswith("_abs") else raw["question_type"]
        question = AnswerQuestion(name, raw["question"], category, (str(raw["answer"]),), raw["question_date"])
        yield Interview(longmemeval.conversation(raw), [question])


def _beam(path: Path, limit: int | None) -> Iterator[Interview]:
    chats = sorted(path.rglob(beam.CHAT), key=lambda each: [(len(part), part) for part in each.parts])
    if not chats:
        raise FormError(f"{path} has no {beam.CHAT} in it")
    for chat in chats[:limit]:
        conversation = beam.conversation(chat, path)
        asked = json.loads((chat.parent / "probing_questions" / "probing_questions.json").read_text())
        questions = [
            AnswerQuestion(f"{conversation.id}/{ability}/{place}", each["question"], ability, _rubric(each["rubric"]))
            for ability, listed in asked.items()
            for place, each in enumerate(listed)
        ]
        yield Interview(conversation, questions)


def _rubric(value: Any) -> tuple[str, ...]:
    """Return the lines of a rubric, which is a list, or a list that was written as a text."""
    lines = ast.literal_eval(value) if isinstance(value, str) else value
    if not isinstance(lines, list) or not lines:
        raise ValueError(f"a rubric has no lines: {value!r}")
    return tuple(map(str, lines))


SETS: Final[dict[str, Callable[[Path, int | None], Iterator[Interview]]]] = {
    "locomo": _locomo,
    "longmemeval-s": _longmemeval,
    "beam": _beam,
}
"""The data sets by name, each with its reader."""
