"""Three small sets of this repository: misspelled names, dates in neighboring messages, answers after their questions.

They are invented conversations of six pairs and groups in English, Spanish, German and Tagalog. `messages.jsonl` has
one message per line; `names.jsonl`, `dates.jsonl` and `neighbors.jsonl` have the questions, each with its evidence.
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
"""The sets, each with the kind of its questions."""


@dataclass(frozen=True)
class Asked:
    """A question of a set.

    Attributes:
        conversation: The id of its conversation.
        question: The question, with its evidence.
        spelled_correctly: The question with the correctly spelled name, if it is misspelled.
    """

    conversation: str
    question: Question
    spelled_correctly: str | None


def conversations() -> list[Conversation]:
    """Return the conversations, oldest message first, without questions."""
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
    """Return the questions of a set.

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
