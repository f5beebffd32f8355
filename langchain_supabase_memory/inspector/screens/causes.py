"""Dead work grouped by its cause, with what the cause means and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_supabase_memory.operations.work import ConversationStatus

_UNKNOWN: Final = ("The work failed", "Look for this name in the worker's log, mend it, and try again.")
_CAUSES: Final = (
    (("malformed",), "The writer's answer could not be read", "Use a model with structured output, and try again."),
    (
        ("authentication", "permission", "unauthorized", "forbidden"),
        "The provider refused the key",
        "Check the model's key in the worker's environment, start the worker again, and try again.",
    ),
    (("ratelimit", "quota"), "The provider's limit was reached", "Wait or raise the limit, and try again."),
    (("timeout",), "The model did not answer in time", "Check the provider, and try again."),
    (("connect", "network"), "The provider could not be reached", "Check the worker's network, and try again."),
    (("notfound",), "The provider does not know the model", "Check the model's name, and try again."),
)
"""What the name of an error contains in lower case, what it means, and the next step."""


@dataclass(frozen=True)
class DeadGroup:
    """Conversations whose work was given up for one cause.

    Attributes:
        cause: The name of the error.
        meaning: What it means.
        step: What to do next.
        rows: The conversations.
    """

    cause: str
    meaning: str
    step: str
    rows: list[ConversationStatus]


def cause_of(status: ConversationStatus) -> str:
    """Return the name of the error for which a conversation's work was given up."""
    return status.error or next((each.error for each in status.paused.values()), "unknown")


def by_cause(rows: Iterable[ConversationStatus]) -> list[DeadGroup]:
    """Return dead work in groups, the largest first."""
    groups: dict[str, list[ConversationStatus]] = {}
    for each in rows:
        groups.setdefault(cause_of(each), []).append(each)
    ranked = sorted(groups.items(), key=lambda each: (-len(each[1]), each[0]))
    return [DeadGroup(cause, *_explained(cause), rows) for cause, rows in ranked]


def _explained(cause: str) -> tuple[str, str]:
    name = cause.lower().replace("_", "")
    return next(((meaning, step) for parts, meaning, step in _CAUSES if any(each in name for each in parts)), _UNKNOWN)
