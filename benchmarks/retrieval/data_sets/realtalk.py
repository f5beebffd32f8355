"""REALTALK: three weeks of messages of two real people, in a form similar to LoCoMo's.

Lee et al. 2025, github.com/danny911kr/REALTALK: for measuring only, never part of this package. A file is one object:
`name` with both speakers, `session_N` with messages, each with `clean_text`, `speaker`, `date_time` and `dia_id`, and
`qa` as in LoCoMo, with the same category numbers.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from benchmarks.retrieval.data import Conversation, Question, Turn, measurable
from benchmarks.retrieval.data_sets.locomo import CATEGORIES, SESSION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_AT: Final = "%d.%m.%Y, %H:%M:%S"
_ID: Final = re.compile(r"D\d+:\d+")


def conversation(raw: dict[str, Any], path: Path) -> Conversation:
    """Read one file's object.

    Args:
        raw: The object.
        path: Its file, which names it.
    """
    turns = list(_turns(raw))
    named = raw.get("name")
    speakers = list(dict.fromkeys([*(named.values() if isinstance(named, dict) else ()), *(e.speaker for e in turns)]))
    if len(speakers) < 2:
        raise ValueError("only one person speaks")
    questions = [
        Question(
            each["question"],
            str(each.get("answer", "")),
            # One text may contain several ids.
            frozenset(_ID.findall(" ".join(map(str, each.get("evidence") or ())))),
            CATEGORIES[int(each["category"])],
        )
        for each in raw["qa"]
    ]
    return Conversation(path.stem, (speakers[0], speakers[1]), turns, measurable(turns, questions))


def _turns(raw: dict[str, Any]) -> Iterator[Turn]:
    sessions = sorted(int(match[1]) for key in raw if (match := SESSION.fullmatch(key)))
    at: datetime | None = None
    for session in sessions:
        begins = raw.get(f"session_{session}_date_time")
        for entry in raw[f"session_{session}"]:
            said_at: str = entry.get("date_time") or begins or ""
            parsed = datetime.strptime(said_at, _AT).replace(tzinfo=UTC)
            # Never earlier than the previous message, so that the order is preserved.
            at = parsed if at is None or parsed > at else at + timedelta(microseconds=1)
            caption = entry.get("blip_caption")
            text = " ".join(filter(None, [entry.get("clean_text"), f"[{caption}]" if caption else None]))
            if text:
                yield Turn(entry["dia_id"], entry["speaker"], text, session, at)
