"""LongMemEval: a question, and a history of sessions of a user with an assistant, created for it.

Wu et al. 2025, github.com/xiaowu0162/LongMemEval, MIT: for measuring only, never part of this package. Turns with the
answer are marked `has_answer`; a question whose id ends with `_abs` has none, and is left out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from benchmarks.retrieval.data import Conversation, Question, Turn, measurable

_AT: Final = "%Y/%m/%d (%a) %H:%M"
SPEAKERS: Final = ("user", "assistant")


def conversation(raw: dict[str, Any]) -> Conversation:
    """Read one of the file's objects: a question with its own history."""
    sessions = sorted(
        zip(map(_time, raw["haystack_dates"]), raw["haystack_sessions"], strict=True), key=lambda each: each[0]
    )
    turns: list[Turn] = []
    evidence = set()
    for session, (begins, said) in enumerate(sessions):
        for number, entry in enumerate(said):
            if entry["role"] not in SPEAKERS:
                raise ValueError(f"{entry['role']} is neither user nor assistant")
            if entry["content"].strip():
                at = begins + timedelta(seconds=number)
                turns.append(Turn(f"S{session}:{number}", entry["role"], entry["content"], session, at))
                if entry.get("has_answer"):
                    evidence.add(turns[-1].id)
    has_answer = not raw["question_id"].endswith("_abs")
    question = Question(
        raw["question"], str(raw["answer"]), frozenset(evidence if has_answer else ()), raw["question_type"]
    )
    return Conversation(raw["question_id"], SPEAKERS, turns, measurable(turns, [question]))


def _time(text: str) -> datetime:
    return datetime.strptime(text, _AT).replace(tzinfo=UTC)
