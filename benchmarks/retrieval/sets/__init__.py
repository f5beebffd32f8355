"""Three small sets of this repository's own: misspelt names, dates said beside, answers beside their questions.

Invented talk of six pairs and groups in English, Spanish, German and Tagalog. `messages.jsonl` has what was said, a
message a line, and `names.jsonl`, `dates.jsonl` and `neighbors.jsonl` what is asked, each with its evidence.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.retrieval.data import Conversation, Question, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

SETS: Final[dict[str, str]] = {
    "names": "the speaker's name is misspelt, or a short form",
    "dates": "the date asked for was said beside it",
    "neighbors": "the answer makes sense only beside its question",
}
"""The sets, each with what is asked in it."""


@dataclass(frozen=True)
class Asked:
    """A question of a set.

    Attributes:
        conversation: The id of the conversation that it is about.
        question: The question, with its evidence.
        rightly: The question with the speaker's name as it is, where it is misspelt.
    """

    conversation: str
    question: Question
    rightly: str | None


def conversations() -> list[Conversation]:
    """What was said, oldest first, without questions."""
    found = []
    for name, rows in groupby(_rows("messages"), key=lambda row: row["conversation"]):
        turns = [
            Turn(
                f"{name}.{row['id']}",
                row["speaker"],
                row["text"],
                int(row["id"].split(".")[0]),
                datetime.fromisoformat(row["at"]),
            )
            for row in rows
        ]
        first, second, *_ = dict.fromkeys(turn.speaker for turn in turns)
        found.append(Conversation(name, (first, second), turns, []))
    return found


def questions(name: str) -> list[Asked]:
    """What is asked in a set.

    Args:
        name: One of `SETS`.
    """
    return [
        Asked(
            row["conversation"],
            Question(
                row["question"],
                row["answer"],
                frozenset(f"{row['conversation']}.{each}" for each in row["evidence"]),
                name,
            ),
            row.get("rightly"),
        )
        for row in _rows(name)
    ]


def _rows(name: str) -> Iterator[dict[str, Any]]:
    text = Path(__file__).with_name(f"{name}.jsonl").read_text(encoding="utf-8")
    return map(json.loads, text.splitlines())
