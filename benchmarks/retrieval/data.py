"""LoCoMo: long conversations of two people, with questions and the turns that hold their answers.

Maharana et al. 2024, github.com/snap-research/locomo, CC BY-NC 4.0: for measuring only, never part of this package.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOW_TO_GET_IT: Final = """\
the data set is not part of this repository. Get it and say where it is:

    git clone --depth 1 https://github.com/snap-research/locomo
    make bench-retrieval DATA=locomo/data/locomo10.json
"""

ADVERSARIAL: Final = 5
CATEGORIES: Final = {
    1: "several turns",
    2: "time",
    3: "with world knowledge",
    4: "one turn",
    ADVERSARIAL: "adversarial",
}
"""What the data set's numbers mean."""

_SESSION: Final = re.compile(r"session_(\d+)")


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
    category: int


@dataclass(frozen=True)
class Conversation:
    """All that two people said, oldest first, and what is asked about it."""

    id: str
    speakers: tuple[str, str]
    turns: list[Turn]
    questions: list[Question]


def load(path: Path, limit: int | None = None) -> list[Conversation]:
    """The conversations of a file, or its first ones."""
    return [_conversation(raw, number) for number, raw in enumerate(json.loads(path.read_text())[:limit])]


def _conversation(raw: dict[str, Any], number: int) -> Conversation:
    spoken = raw["conversation"]
    turns = list(_turns(spoken))
    known = {turn.id for turn in turns}
    questions = [
        Question(entry["question"], str(entry.get("answer", "")), frozenset(entry["evidence"]), entry["category"])
        for entry in raw["qa"]
        # Some evidence is mistyped, or there is none: nothing can be measured with it.
        if entry.get("evidence") and known.issuperset(entry["evidence"])
    ]
    name = str(raw.get("sample_id", number))
    return Conversation(name, (spoken["speaker_a"], spoken["speaker_b"]), turns, questions)


def _turns(spoken: dict[str, Any]) -> Iterator[Turn]:
    sessions = sorted(int(match[1]) for key in spoken if (match := _SESSION.fullmatch(key)))
    for session in sessions:
        begins = datetime.strptime(spoken[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for number, entry in enumerate(spoken[f"session_{session}"]):
            caption = entry.get("blip_caption")
            text = f"{entry['text']} [{caption}]" if caption else entry["text"]
            # The data has no time for a single turn; a second apart keeps their order.
            yield Turn(entry["dia_id"], entry["speaker"], text, session, begins + timedelta(seconds=number))
