"""BEAM: conversations of a user with an assistant of 128,000 to a million tokens, with questions.

Tavakoli et al. 2025, github.com/mohammadtavakoli78/BEAM: for measuring only, never part of this package. A conversation
is a folder with `chat.json`, batches of turns, and `probing_questions/probing_questions.json`, questions by ability
with `source_chat_ids`, the numbers of their source messages. Questions without these numbers (mostly abstention) are
left out, and so are those whose number is not unique. The ten-million-token conversations, which consist of several
plans, have another form and are not read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from benchmarks.retrieval.data import Conversation, Question, Turn, measurable
from benchmarks.retrieval.data_sets.longmemeval import SPEAKERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHAT: Final = "chat.json"
_AT: Final = "%B-%d-%Y"
_MARK: Final = re.compile(r"\s*->->\s*[\d,]+\s*$")
"""The plan's marker after a message, which is not part of it."""

_UNSAID: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""The start of a conversation without a date."""


def conversation(path: Path, root: Path) -> Conversation:
    """Read the conversation of a folder.

    Args:
        path: Its `chat.json`.
        root: The root folder; the conversation is named by its path relative to it.
    """
    questions = path.parent / "probing_questions" / "probing_questions.json"
    if not questions.is_file():
        raise ValueError(f"{questions} is missing")
    turns = list(_turns(json.loads(path.read_text())))
    often = Counter(turn.id for turn in turns)
    turns = [Turn(each.id if often[each.id] == 1 else f"{each.id} of {place}", each.speaker, each.text, each.session,
                  each.at) for place, each in enumerate(turns)]  # fmt: skip
    asked = [
        Question(each["question"], str(each.get("answer", each.get("ideal_answer", ""))), evidence, ability)
        for ability, listed in json.loads(questions.read_text()).items()
        for each in listed
        if (evidence := frozenset(map(str, _numbers(each.get("source_chat_ids")))))
    ]
    return Conversation(str(path.parent.relative_to(root.parent)), SPEAKERS, turns, measurable(turns, asked))


def _turns(batches: list[dict[str, Any]]) -> Iterator[Turn]:
    at = _UNSAID
    for session, batch in enumerate(batches):
        for entry in (each for turn in batch["turns"] for each in turn):
            anchor = entry.get("time_anchor")
            if anchor:
                begins = datetime.strptime(anchor, _AT).replace(tzinfo=UTC)
                at = max(at + timedelta(seconds=1), begins)
            else:
                at += timedelta(seconds=1)
            if entry["role"] not in SPEAKERS:
                raise ValueError(f"{entry['role']} is neither user nor assistant")
            text = _MARK.sub("", entry["content"])
            if text.strip():
                yield Turn(str(entry["id"]), entry["role"], text, session, at)


def _numbers(value: Any) -> Iterator[int]:
    """Yield the numbers in a value, however they are nested."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, int):
        yield value
