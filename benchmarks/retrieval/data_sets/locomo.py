"""LoCoMo: long conversations of two people, with questions and the turns that hold their answers.

Maharana et al. 2024, github.com/snap-research/locomo, CC BY-NC 4.0: for measuring only, never part of this package.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from benchmarks.retrieval.data import ADVERSARIAL, Conversation, Question, Turn, measurable

if TYPE_CHECKING:
    from collections.abc import Iterator

CATEGORIES: Final = {1: "several turns", 2: "time", 3: "with world knowledge", 4: "one turn", 5: ADVERSARIAL}
"""The meaning of the data set's category numbers."""

SESSION: Final = re.compile(r"session_(\d+)")


def conversation(raw: dict[str, Any], number: int) -> Conversation:
    """Read one of the file's objects.

    Args:
        raw: The object.
        number: Its position in the file.
    """
    spoken = raw["conversation"]
    turns = list(_turns(spoken))
    questions = [
        Question(
            each["question"],
            str(each.get("answer", "")),
            frozenset(each.get("evidence") or ()),
            CATEGORIES[each["category"]],
        )
        for each in raw["qa"]
    ]
    name = str(raw.get("sample_id", number))
    return Conversation(name, (spoken["speaker_a"], spoken["speaker_b"]), turns, measurable(turns, questions))


def _turns(spoken: dict[str, Any]) -> Iterator[Turn]:
    sessions = sorted(int(match[1]) for key in spoken if (match := SESSION.fullmatch(key)))
    for session in sessions:
        begins = datetime.strptime(spoken[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for number, entry in enumerate(spoken[f"session_{session}"]):
            caption = entry.get("blip_caption")
            text = f"{entry['text']} [{caption}]" if caption else entry["text"]
            # The data has no time for single turns; one second apart preserves their order.
            yield Turn(entry["dia_id"], entry["speaker"], text, session, begins + timedelta(seconds=number))
