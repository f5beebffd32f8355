"""The profile part of a pack: what is held of the person. It comes first, and changes least."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.context.token_meter import Sizes
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages import fence
from langchain_supabase_memory.language.messages.fence import escaped
from langchain_supabase_memory.operations.rows import time_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.token_meter import Meter
    from langchain_supabase_memory.operations.profile import ProfileItem
    from langchain_supabase_memory.settings import ContextBudget

MESSAGE_ID: Final = "lc_supabase_memory_profile"
"""The id of the message that carries the profile."""

_CHARACTERS_AN_ITEM: Final = 15
"""The approximate minimum size of an item; it determines how many to read."""

_MAX_ITEMS: Final = 100


def max_profile_items(budget: ContextBudget) -> int:
    """Return how many items of a profile to read for a budget; 0 if it has no room for any."""
    return min(_MAX_ITEMS, (budget.profile or 0) // _CHARACTERS_AN_ITEM)


@dataclass(frozen=True)
class ProfileLine:
    """An item of the profile in a prompt.

    Attributes:
        id: The item's uuid.
        text: Its line.
        noted_at: Since when it has been held; `None` if a person wrote or confirmed it.
    """

    id: str
    text: str = field(repr=False)
    noted_at: datetime | None = None


@dataclass(frozen=True)
class ProfilePart:
    """The profile part of a pack.

    Attributes:
        items: The most important first: instructions and constraints, then preferences, traits and facts.
        left_out: How many items were read but did not fit.
    """

    items: tuple[ProfileLine, ...] = ()
    left_out: int = 0

    @classmethod
    def from_document(cls, document: Sequence[Mapping[str, Any]] | None) -> ProfilePart:
        """Create the part from what `memory_context` returns; `None` if nothing was asked for."""
        return cls(tuple(ProfileLine(row["id"], line(row), time_of(row["noted_at"])) for row in document or ()))

    def __bool__(self) -> bool:
        """Return whether the part is not empty."""
        return bool(self.items)

    @property
    def has_content(self) -> str:
        """The number of items and of items left out, in words."""
        counted = pluralize(len(self.items), "item")
        return f"{counted}, {self.left_out} left out" if self.left_out else counted

    @cached_property
    def message(self) -> BaseMessage | None:
        """The part as a fenced message; `None` if it is empty."""
        if not self:
            return None
        return fence.message(fence.fenced([fence.element("user_profile", "\n".join(self._texts))]), MESSAGE_ID)

    def lines(self) -> list[str]:
        """Return the part in the text form."""
        return [_TITLE, *self._texts, ""] if self else []

    def forms(self, meter: Meter) -> Sizes:
        """Return the sizes of the part."""
        return meter.sizes(self.message, self.lines())

    def fitting(self, budget: ContextBudget, meter: Meter) -> ProfilePart:
        """Return as many items as fit, the most important first; the rest is counted.

        Args:
            budget: The budget: its `profile` is the maximum size in characters.
            meter: The meter.
        """
        share = (budget.profile or 0) // (1 if budget.tokens is None else _CHARACTERS_A_TOKEN)
        room = Sizes(share, share)
        left = share - max(meter.estimate_line(_FRAME), meter.estimate_line(_TITLE))
        kept = []
        for item in self.items:
            left -= meter.estimate_line(escaped(item.text))
            if left < 0:
                break
            kept.append(item)
        made = self._with(kept)
        while kept and not made.forms(meter).fits(room):  # it was an estimate
            kept.pop()
            made = self._with(kept)
        return made

    def is_part_of(self, profile: ProfilePart) -> bool:
        """Return whether all of it still holds.

        Args:
            profile: All that is read of the profile now.
        """
        return {item.id for item in self.items} <= {item.id for item in profile.items}

    def held_since(self, moved_at: datetime | None) -> ProfilePart:
        """Return the part as it was when the prompt's beginning moved: what was learned since waits for the next move.

        What a person wrote is shown at once, and what does not hold any more is gone at once.

        Args:
            moved_at: When it moved; `None` if there was no prompt before, or it is not known.
        """
        if moved_at is None:
            return self
        kept = tuple(item for item in self.items if item.noted_at is None or item.noted_at <= moved_at)
        return self if len(kept) == len(self.items) else replace(self, items=kept)

    def _with(self, items: Sequence[ProfileLine]) -> ProfilePart:
        return replace(self, items=tuple(items), left_out=len(self.items) - len(items))

    @property
    def _texts(self) -> list[str]:
        return [item.text for item in self.items]


def profile_line(item: ProfileItem, profile: Sequence[ProfileItem]) -> ProfileLine:
    """Return the line of an item as a prompt shows it.

    Args:
        item: The item.
        profile: All items, those that held before among them.
    """
    ended = [each for each in profile if each.superseded_by == item.id and each.held_at is not None]
    before = max(ended, key=lambda each: (each.ended_at is not None, each.ended_at, each.id), default=None)
    row = {name: getattr(item, name) for name in ("subject", "kind", "condition", "polarity", "value")}
    return ProfileLine(item.id, line({**row, "before": None if before is None else before.value}))


def line(row: Mapping[str, Any]) -> str:
    """Render an item, such as `- preference (drinks, at night): not coffee`, or `- fact (home): Cebu; before: Manila`.

    Args:
        row: The item as `memory_context` returns it.
    """
    about = row["subject"] if row["condition"] is None else f"{row['subject']}, {row['condition']}"
    no = "not " if row["polarity"] < 0 else ""
    before = f"; before: {row['before']}" if row["before"] is not None else ""
    return " ".join(f"- {row['kind']} ({about}): {no}{row['value']}{before}".split())


_CHARACTERS_A_TOKEN: Final = 4
_TITLE: Final = "About the user:"
_FRAME: Final = fence.fenced([fence.element("user_profile", "")])
