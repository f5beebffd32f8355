"""Why the beginning of a prompt is another than that of the prompt before, so that a provider's cache does not hold."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Move: TypeAlias = Literal[
    "budget",
    "segment",
    "rewritten",
    "deleted",
    "step",
    "expired",
    "edited",
    "indexed",
    "question",
    "fit",
    "profile",
]
"""Why the beginning of a prompt moved.

Another `budget`; a new `segment`, one that was `rewritten` or `deleted`; a `step` of the window where nothing is
summarized; messages that `expired` or were `edited` (or forgotten); older messages were `indexed`, so that the
summary's quotes of them are left to recall; what is recalled for a `question` about the past took room, or the turn
after it took the room back; a message was cut, or an image left out, to `fit`; or the user's `profile` is another.
"""


MOVES: Final[Mapping[Move, str]] = MappingProxyType(
    {
        "budget": "another budget",
        "segment": "a new segment",
        "rewritten": "its segment was rewritten",
        "deleted": "a segment was deleted",
        "step": "a step of the window",
        "expired": "messages expired",
        "edited": "something was edited or forgotten",
        "indexed": "older messages were indexed",
        "question": "room for what is recalled for a question about the past",
        "fit": "something was cut or left out to fit",
        "profile": "what is held of the user",
    }
)
"""The reasons in words."""


@dataclass(frozen=True)
class Beginning:
    """What the beginning of a prompt is made of: the part before what belongs to its turn.

    Attributes:
        unit: The unit of the budget.
        budget: The size of the budget.
        segment: The number of the segment whose summary is shown; `None` without one.
        segment_id: Its id, which changes with its words; `None` where only its number is known.
        first: The sequence of the first message that is shown; `None` if none is.
        revision: How often messages were edited or forgotten; `None` where that is not known.
        expired_through: The last message that has expired; -1 if none has.
        summary: The characters of the summary that are shown.
        profile: The items of the profile that are shown, each by the first eight digits of its id.
        gives_room: Whether messages are left out for what is recalled in this turn.
        messages: A hash of each of its messages, for prompts of one process; `None` where only numbers are known.
    """

    unit: str
    budget: int
    segment: int | None
    segment_id: str | None
    first: int | None
    revision: int | None = None
    expired_through: int = -1
    summary: int = 0
    profile: tuple[str, ...] = ()
    gives_room: bool = False
    messages: tuple[int, ...] | None = None

    def moved_since(self, before: Beginning) -> Move | None:
        """Return why it is another than an earlier one; `None` if it is the same, and at most goes on.

        Args:
            before: The beginning of the prompt before.
        """
        if self.messages is not None and before.messages is not None:
            if self.messages[: len(before.messages)] == before.messages:
                return None
            return self._reason(before) or "fit"
        return self._reason(before)

    def _reason(self, before: Beginning) -> Move | None:
        """The first number that differs and can be the reason."""
        if (self.unit, self.budget) != (before.unit, before.budget):
            return "budget"
        if self.profile != before.profile:
            return "profile"
        if self._shows != before._shows and (self.gives_room or before.gives_room):
            return "question"
        if self.segment != before.segment:
            return "segment" if (self.segment or 0) > (before.segment or 0) else "deleted"
        if self.segment_id != before.segment_id:
            return "rewritten"
        if self.first != before.first and before.first is not None:
            has_expired = self.expired_through >= before.first
            return "expired" if has_expired else "edited" if self.revision != before.revision else "step"
        if self.revision != before.revision:
            return "edited"
        return "indexed" if self.summary != before.summary else None

    @property
    def _shows(self) -> tuple[str | int | None, ...]:
        """What it shows."""
        return (self.segment, self.first, self.summary)
