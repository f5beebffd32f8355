"""Rules for the kind of a text, its importance, and whether it completes something. They use no model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from langchain_supabase_memory.language.query_hints import Marks

Kind = Literal["dialogue", "action", "fact", "question", "answer"]
"""The kind of a chunk: talk, a tool's action, a statement that names something, a question, or a reply to one."""

KINDS: Final[tuple[Kind, ...]] = ("dialogue", "action", "fact", "question", "answer")

_BASE: Final[dict[Kind, float]] = {"dialogue": 0.2, "question": 0.25, "action": 0.35, "answer": 0.35, "fact": 0.4}
_SHORT: Final = 25
_LONG: Final = 60
_DONE: Final = re.compile(
    r"\W*(?:ok(?:ay)?\W+)?(?:(?:it|that|this|all)(?:['’]s| is| was)?\s+)?(?:all\s+)?"
    r"(?:done|finished|completed?|solved|fixed|sorted|tapos(?:\s+na)?|ayos\s+na|nagawa\s+(?:ko\s+)?na|listo|hecho"
    r"|fertig|erledigt|terminé|fatto|pronto|feito|selesai)\b",
    re.IGNORECASE,
)


def chunk_kind(marks: Marks, *, is_action: bool, after_question: bool) -> Kind:
    """Return the kind of a text.

    Args:
        marks: The features of the text.
        is_action: Whether it is a tool call or a tool result.
        after_question: Whether another speaker asked something right before it.
    """
    if is_action:
        return "action"
    if marks.is_question:
        return "question"
    if after_question:
        return "answer"
    return "fact" if marks.has_number or marks.has_time or marks.has_name else "dialogue"


def importance(text: str, marks: Marks, kind: Kind) -> float:
    """Estimate how much a text will matter later, from 0 to 1, from its kind and its names, times and numbers.

    Args:
        text: The text.
        marks: The features of the text.
        kind: Its kind.
    """
    found = _BASE[kind] + 0.15 * marks.has_name + 0.15 * marks.has_number + 0.1 * marks.has_time
    if len(text) < _SHORT:
        found -= 0.15
    elif len(text) > _LONG:
        found += 0.1
    return float(round(min(max(found, 0.0), 1.0), 2))


def completes(text: str) -> bool:
    """Return whether a short text says that something is done."""
    return len(text) <= _LONG * 2 and _DONE.match(text) is not None
