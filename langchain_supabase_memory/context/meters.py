"""How much a message weighs against a budget."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from langchain_core.messages.utils import count_tokens_approximately

from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.rendering import rendered
from langchain_supabase_memory.language.tokens import best_counter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.head import Head
    from langchain_supabase_memory.settings import ContextBudget

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Forms:
    """What something weighs in each of the two forms of a pack; the heavier one counts against the budget.

    Attributes:
        sent: As messages.
        text: As text.
    """

    sent: int = 0
    text: int = 0

    def __add__(self, other: Forms) -> Forms:
        """Both together."""
        return Forms(self.sent + other.sent, self.text + other.text)

    @property
    def heavier(self) -> int:
        """What counts."""
        return max(self.sent, self.text)

    def left_of(self, limit: int) -> Forms:
        """What each form has left of a limit."""
        return Forms(limit - self.sent, limit - self.text)

    def less(self, taken: Forms) -> Forms:
        """What something that is taken leaves of it."""
        return Forms(self.sent - taken.sent, self.text - taken.text)

    def within(self, limit: int) -> Forms:
        """It, and no more than a limit in either form."""
        return Forms(min(self.sent, limit), min(self.text, limit))

    def fits(self, room: Forms) -> bool:
        """Whether each form has room for it."""
        return self.sent <= room.sent and self.text <= room.text


class Meter(Protocol):
    """Weighs messages; one meter serves one pack.

    Attributes:
        limit: The most that everything together may weigh.
    """

    limit: int

    def weigh(self, message: BaseMessage) -> int:
        """What one message weighs by itself."""

    def total(self, messages: Sequence[BaseMessage]) -> int:
        """What messages weigh together."""

    def framed(self, head: Head, opening: BaseMessage | None, messages: Sequence[BaseMessage]) -> Forms:
        """What a pack weighs: its head, or that as a message, and the messages after it."""

    def forms(self, made: BaseMessage | None, lines: Sequence[str]) -> Forms:
        """What a part weighs that is one message, or some lines of text."""

    @property
    def is_additive(self) -> bool:
        """Whether messages weigh together what they weigh one by one."""

    def about(self, text: str) -> int:
        """About what a message weighs more with one more line in it."""

    def room_in_characters(self, room: int) -> int:
        """About how many characters fit into a room."""


MEDIA_CHARACTERS: Final = 1_000
"""The characters that one image or file counts in a budget of characters."""


def _characters(message: BaseMessage) -> int:
    """What a message takes in a transcript, with its media."""
    weight = content.weight(message)
    return weight if isinstance(message.content, str) else weight + MEDIA_CHARACTERS * rendered(message).media


class CharacterMeter:
    """Counts characters: of messages as the pack's text form has them; what is sent and not shown counts too.

    An image or a file counts 1,000.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._weigh = _remembered(_characters)

    def weigh(self, message: BaseMessage) -> int:
        """See `Meter`."""
        return self._weigh(message)

    def total(self, messages: Sequence[BaseMessage]) -> int:
        """See `Meter`."""
        return sum(map(self._weigh, messages))

    def framed(self, head: Head, opening: BaseMessage | None, messages: Sequence[BaseMessage]) -> Forms:
        """See `Meter`."""
        said = self.total(messages)
        return Forms(said, said) + self.forms(opening, head.framed())

    def forms(self, made: BaseMessage | None, lines: Sequence[str]) -> Forms:
        """See `Meter`."""
        # A message of ours is never a line of a transcript.
        return Forms(0 if made is None else len(made.text), sum(len(line) + 1 for line in lines))

    is_additive = True

    def about(self, text: str) -> int:
        """See `Meter`."""
        return len(text) + 1

    def room_in_characters(self, room: int) -> int:
        """See `Meter`."""
        return room


class TokenMeter:
    """Counts tokens by a LangChain token counter, and by our own estimate where that fails, or where there is none."""

    def __init__(self, limit: int, counter: Callable[[Sequence[BaseMessage]], int] | None = None) -> None:
        self.limit = limit
        self._counter = counter
        self._has_failed = False
        count = best_counter()
        self._count = count
        self._estimate = _remembered(lambda message: content.tokens(message, count))

    def weigh(self, message: BaseMessage) -> int:
        """See `Meter`."""
        return self.total([message])

    def total(self, messages: Sequence[BaseMessage]) -> int:
        """See `Meter`."""
        if self._counter is not None and messages:
            try:
                return int(self._counter(messages))
            except Exception as error:  # counters raise on words, blocks, models or networks they do not know
                if not self._has_failed:
                    failure = type(error).__name__
                    _logger.warning(
                        "The token counter failed (%s); tokens are estimated.", failure, extra={"memory_error": failure}
                    )
                self._has_failed = True
        return sum(map(self._estimate, messages))

    def framed(self, head: Head, opening: BaseMessage | None, messages: Sequence[BaseMessage]) -> Forms:
        """See `Meter`. A budget in tokens is on messages alone."""
        return Forms(self.total([*([] if opening is None else [opening]), *messages]))

    def forms(self, made: BaseMessage | None, lines: Sequence[str]) -> Forms:
        """See `Meter`."""
        return Forms(0 if made is None else self.weigh(made))

    @property
    def is_additive(self) -> bool:
        """See `Meter`. A counter of the application may count as it likes."""
        return self._counter is None or self._has_failed

    def about(self, text: str) -> int:
        """See `Meter`."""
        return self._count(f"\n{text}")

    def room_in_characters(self, room: int) -> int:
        """See `Meter`."""
        return room * 4


def meter(budget: ContextBudget) -> Meter:
    """The meter of a budget.

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


def _remembered(weigh: Callable[[BaseMessage], int]) -> Callable[[BaseMessage], int]:
    """The same function, asked once for each message; the messages are kept, so that no other gets their identity."""
    known: dict[int, tuple[BaseMessage, int]] = {}

    def weighed(message: BaseMessage) -> int:
        found = known.get(id(message))
        if found is None:
            found = known[id(message)] = message, weigh(message)
        return found[1]

    return weighed
