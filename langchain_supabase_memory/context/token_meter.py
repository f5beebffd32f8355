"""Meters that measure messages against a budget."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from langchain_core.messages.utils import count_tokens_approximately

from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.blocks import PromptEntry
from langchain_supabase_memory.language.tokens import best_counter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.summary_part import SummaryPart
    from langchain_supabase_memory.settings import ContextBudget

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sizes:
    """The sizes of something in the two forms of a pack; the larger one counts against the budget.

    Attributes:
        as_messages: The size as messages.
        as_text: The size as text.
    """

    as_messages: int = 0
    as_text: int = 0

    def __add__(self, other: Sizes) -> Sizes:
        """Return the sum of both sizes."""
        return Sizes(self.as_messages + other.as_messages, self.as_text + other.as_text)

    @property
    def heavier(self) -> int:
        """The size that counts."""
        return max(self.as_messages, self.as_text)

    def left_of(self, limit: int) -> Sizes:
        """Return what is left of a limit in each form."""
        return Sizes(limit - self.as_messages, limit - self.as_text)

    def minus(self, used: Sizes) -> Sizes:
        """Return what is left after subtracting a used part."""
        return Sizes(self.as_messages - used.as_messages, self.as_text - used.as_text)

    def is_within(self, limit: int) -> Sizes:
        """Return the sizes, capped at a limit in each form."""
        return Sizes(min(self.as_messages, limit), min(self.as_text, limit))

    def fits(self, room: Sizes) -> bool:
        """Return whether it fits in both forms."""
        return self.as_messages <= room.as_messages and self.as_text <= room.as_text


class Meter(Protocol):
    """Measures messages; each pack has its own meter.

    Attributes:
        limit: The maximum total size.
    """

    limit: int

    def weigh(self, entry: PromptEntry) -> int:
        """Return the size of one message."""

    def total(self, entries: Sequence[PromptEntry]) -> int:
        """Return the total size of messages."""

    def sizes_with_frame(self, head: SummaryPart, opening: BaseMessage | None, entries: Sequence[PromptEntry]) -> Sizes:
        """Return the size of a pack: its summary part, or that part as a message, and the messages after it."""

    def sizes(self, message: BaseMessage | None, lines: Sequence[str]) -> Sizes:
        """Return the size of a part that is one message, or some lines of text."""

    @property
    def is_additive(self) -> bool:
        """Whether the total size of messages is the sum of their sizes."""

    def estimate_line(self, text: str) -> int:
        """Estimate how much one more line adds to a message."""

    def room_in_characters(self, room: int) -> int:
        """Estimate how many characters fit into a size."""


class CharacterMeter:
    """Counts characters of messages in the pack's text form; content that is sent but not shown counts too.

    An image or a file counts 1,000.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def weigh(self, entry: PromptEntry) -> int:
        """See `Meter`."""
        return entry.transcript_characters

    def total(self, entries: Sequence[PromptEntry]) -> int:
        """See `Meter`."""
        return sum([entry.transcript_characters for entry in entries])

    def sizes_with_frame(self, head: SummaryPart, opening: BaseMessage | None, entries: Sequence[PromptEntry]) -> Sizes:
        """See `Meter`."""
        said = self.total(entries)
        return Sizes(said, said) + self.sizes(opening, head.with_note())

    def sizes(self, message: BaseMessage | None, lines: Sequence[str]) -> Sizes:
        """See `Meter`."""
        # A message of ours is never a transcript line.
        return Sizes(0 if message is None else len(message.text), sum(len(line) + 1 for line in lines))

    is_additive = True

    def estimate_line(self, text: str) -> int:
        """See `Meter`."""
        return len(text) + 1

    def room_in_characters(self, room: int) -> int:
        """See `Meter`."""
        return room


class TokenMeter:
    """Counts tokens with a LangChain token counter, or estimates them if there is none or it fails."""

    def __init__(self, limit: int, counter: Callable[[Sequence[BaseMessage]], int] | None = None) -> None:
        self.limit = limit
        self._counter = counter
        self._has_failed = False
        count = best_counter()
        self._count = count
        self._estimate = _remembered(lambda entry: content.model_input(entry.message, entry.rendered).tokens(count))

    def weigh(self, entry: PromptEntry) -> int:
        """See `Meter`."""
        return self.total([entry])

    def total(self, entries: Sequence[PromptEntry]) -> int:
        """See `Meter`."""
        if self._counter is not None and entries:
            try:
                return int(self._counter([entry.message for entry in entries]))
            except Exception as error:  # counters raise on unknown text, blocks, models or networks
                if not self._has_failed:
                    failure = type(error).__name__
                    _logger.warning(
                        "The token counter failed (%s); tokens are estimated.", failure, extra={"memory_error": failure}
                    )
                self._has_failed = True
        return sum(map(self._estimate, entries))

    def sizes_with_frame(self, head: SummaryPart, opening: BaseMessage | None, entries: Sequence[PromptEntry]) -> Sizes:
        """See `Meter`. A budget in tokens only counts messages."""
        return Sizes(self.total([*([] if opening is None else [PromptEntry(opening)]), *entries]))

    def sizes(self, message: BaseMessage | None, lines: Sequence[str]) -> Sizes:
        """See `Meter`."""
        return Sizes(0 if message is None else self.weigh(PromptEntry(message)))

    @property
    def is_additive(self) -> bool:
        """See `Meter`. An application's counter may not be additive."""
        return self._counter is None or self._has_failed

    def estimate_line(self, text: str) -> int:
        """See `Meter`."""
        return self._count(f"\n{text}")

    def room_in_characters(self, room: int) -> int:
        """See `Meter`."""
        return room * 4


def meter(budget: ContextBudget) -> Meter:
    """Return the meter of a budget.

    Args:
        budget: The budget.
    """
    if budget.tokens is None:
        return CharacterMeter(budget.about_characters)
    counter: Any = budget.token_counter
    if counter == "approximate":
        counter = count_tokens_approximately
    elif hasattr(counter, "get_num_tokens_from_messages"):
        counter = counter.get_num_tokens_from_messages
    return TokenMeter(budget.tokens, counter)


def _remembered(weigh: Callable[[PromptEntry], int]) -> Callable[[PromptEntry], int]:
    """Cache a function per message; messages are kept alive so that no other message gets the same identity."""
    known: dict[int, tuple[BaseMessage, int]] = {}

    def weighed(entry: PromptEntry) -> int:
        found = known.get(id(entry.message))
        if found is None:
            found = known[id(entry.message)] = entry.message, weigh(entry)
        return found[1]

    return weighed
