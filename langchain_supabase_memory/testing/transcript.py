"""The conversation of the demo: a bundled one of seven weeks, or a JSONL file of the user."""

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
class DemoLine:
    """A line of a transcript.

    Attributes:
        message: The message. Its id comes from its position, so that a second replay stores nothing twice.
        created_at: The time of the message; `None` if the file has none.
    """

    message: BaseMessage
    created_at: datetime | None


@dataclass(frozen=True)
class DemoQuestion:
    """A question about an old message.

    Attributes:
        question: The question.
        expect: The text that a right answer contains.
        said_at: The time of the old message.
    """

    question: str
    expect: str
    said_at: datetime


def load(path: Path | None = None) -> list[DemoLine]:
    """Load a transcript of JSON lines with `role` (user, assistant or system), `content` and an optional `created_at`.

    Args:
        path: A file; by default the bundled transcript.

    Returns:
        The lines in order.

    Raises:
        InvalidInputError: The file cannot be read, or a line has another form; the error names its number.
    """
    try:
        text = (path or files(__package__) / "transcript.jsonl").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"The transcript cannot be read ({type(error).__name__}).", hint="Pass a UTF-8 file of JSON lines."
        ) from None
    lines = [_parse_line(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise InvalidInputError("The transcript is empty.", hint='A line is {"role": "user", "content": "…"}.')
    return lines


def questions() -> list[DemoQuestion]:
    """Load the questions about the bundled transcript."""
    text = (files(__package__) / "questions.jsonl").read_text(encoding="utf-8")
    return [
        DemoQuestion(each["question"], each["expect"], _parse_time(each["said_at"]))
        for each in map(json.loads, text.splitlines())
    ]


def _parse_line(number: int, line: str) -> DemoLine:
    try:
        each: dict[str, Any] = json.loads(line)
        message = _CLASSES[each["role"]](content=each["content"], id=f"transcript-{number:05d}")
        return DemoLine(message, _parse_time(each["created_at"]) if each.get("created_at") else None)
    except (ValueError, KeyError, TypeError):
        raise InvalidInputError(
            f"Line {number} of the transcript is not of the form of a transcript.",
            hint='A line is {"role": "user" or "assistant", "content": "…", "created_at": "2026-01-31T12:00:00Z"}.',
        ) from None


def _parse_time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
