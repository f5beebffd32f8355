"""What is said in the demo: a bundled conversation of seven weeks, or a JSONL file of the user's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from langchain_supabase_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.messages import BaseMessage

_CLASSES = {
    "user": HumanMessage,
    "human": HumanMessage,
    "assistant": AIMessage,
    "ai": AIMessage,
    "system": SystemMessage,
}


@dataclass(frozen=True)
class Said:
    """One line of a transcript.

    Attributes:
        message: The message, with an id made from its place, so that a second replay stores nothing twice.
        created_at: When it was said; `None` if the file does not tell.
    """

    message: BaseMessage
    created_at: datetime | None


@dataclass(frozen=True)
class Question:
    """A question about what was said long ago.

    Attributes:
        question: In a person's words.
        expect: What a right answer holds.
        said_at: When it was said.
    """

    question: str
    expect: str
    said_at: datetime


def load(path: Path | None = None) -> list[Said]:
    """A transcript: one JSON object a line, with `role` (user, assistant, system), `content`, perhaps `created_at`.

    Args:
        path: A file of the user's; the bundled transcript by default.

    Returns:
        Its lines, in order.

    Raises:
        InvalidInputError: The file cannot be read, or a line is not of this form; the line's number is named.
    """
    try:
        text = (path or files(__package__) / "transcript.jsonl").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"The transcript cannot be read ({type(error).__name__}).", hint="Pass a UTF-8 file of JSON lines."
        ) from None
    said = [_said(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not said:
        raise InvalidInputError("The transcript is empty.", hint='A line is {"role": "user", "content": "…"}.')
    return said


def questions() -> list[Question]:
    """The questions about the bundled transcript."""
    text = (files(__package__) / "questions.jsonl").read_text(encoding="utf-8")
    return [
        Question(each["question"], each["expect"], _time(each["said_at"]))
        for each in map(json.loads, text.splitlines())
    ]


def _said(number: int, line: str) -> Said:
    try:
        each: dict[str, Any] = json.loads(line)
        made = _CLASSES[each["role"]](content=each["content"], id=f"transcript-{number:05d}")
        return Said(made, _time(each["created_at"]) if each.get("created_at") else None)
    except (ValueError, KeyError, TypeError):
        raise InvalidInputError(
            f"Line {number} of the transcript is not of the form of a transcript.",
            hint='A line is {"role": "user" or "assistant", "content": "…", "created_at": "2026-01-31T12:00:00Z"}.',
        ) from None


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
