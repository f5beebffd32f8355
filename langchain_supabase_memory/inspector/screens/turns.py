"""What the timeline draws: neighboring ranges joined, and messages as whole turns with their tools folded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.screens.message_range import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from langchain_supabase_memory.values import CoveredRange, State, StoredMessage

WORDS: Final[dict[State, str]] = {
    "verbatim": "word for word",
    "segment": "summarized",
    "omitted": "left out",
    "expired": "expired",
    "forgotten": "deleted",
    "superseded": "on a branch that was left",
}
"""What a reader calls each state of a message, in the order of the legend."""

_REMOVED: Final[dict[State, str]] = {"expired": "expired", "superseded": "not on any branch of the graph"}


@dataclass(frozen=True)
class JoinedRange:
    """Neighboring ranges of the coverage that a reader sees as one.

    Attributes:
        state: Where the messages are.
        first: The first message.
        last: The last message.
        reason: Why they are left out, or another note.
        segments: The summaries that they are in.
    """

    state: State
    first: int
    last: int
    reason: str | None
    segments: tuple[int, ...]

    @property
    def label(self) -> str:
        """The state in words."""
        return WORDS[self.state]

    @property
    def removed(self) -> str:
        """What became of messages that are not stored."""
        return _REMOVED.get(self.state, "deleted")


@dataclass(frozen=True)
class TimelineLine:
    """A message on the timeline.

    Attributes:
        range: Its range.
        message: The message.
        day: The day that begins with it.
    """

    range: JoinedRange
    message: StoredMessage
    day: datetime | None = None

    @property
    def text(self) -> str:
        """The message's text, or its tool calls."""
        return text_of(self.message)

    @property
    def is_tool(self) -> bool:
        """Whether it is a step between question and answer: a tool's call without words, or its result."""
        message = self.message
        return message.role == "tool" or (message.role == "assistant" and not message.text and not message.unreadable)


@dataclass(frozen=True)
class TimelineTurn:
    """A question and everything up to the next one, a branch that was left, or a range of removed messages.

    Attributes:
        range: Its range.
        begins_range: Whether a new state begins with it.
        first: The first removed message.
        last: The last removed message.
        lines: Its messages; none if they were removed.
        is_left: Whether its messages are on a branch that was left.
        after: The message after which the branch begins; `None` at the beginning, and of the current branch.
    """

    range: JoinedRange
    begins_range: bool
    first: int = 0
    last: int = 0
    lines: list[TimelineLine] = field(default_factory=list)
    is_left: bool = False
    after: int | None = None

    @property
    def day(self) -> datetime | None:
        """The day that begins with it."""
        return self.lines[0].day if self.lines else None

    @property
    def steps(self) -> list[tuple[bool, list[TimelineLine]]]:
        """Its messages in order, in groups: whether they are folded, and the messages."""
        groups: list[tuple[bool, list[TimelineLine]]] = []
        for line in self.lines:
            if groups and groups[-1][0] == line.is_tool:
                groups[-1][1].append(line)
            else:
                groups.append((line.is_tool, [line]))
        return groups


def joined(ranges: Iterable[CoveredRange]) -> list[JoinedRange]:
    """Return the ranges with neighbors of one state and one reason as one."""
    found: list[JoinedRange] = []
    for each in ranges:
        segments = (each.segment,) if each.state == "segment" and each.segment is not None else ()
        before = found[-1] if found else None
        if before and (before.state, before.reason, before.last + 1) == (each.state, each.reason, each.from_sequence):
            named = tuple(dict.fromkeys((*before.segments, *segments)))
            found[-1] = JoinedRange(before.state, before.first, each.to_sequence, before.reason, named)
        else:
            found.append(JoinedRange(each.state, each.from_sequence, each.to_sequence, each.reason, segments))
    return found


def turns(
    page: Sequence[StoredMessage],
    ranges: Iterable[JoinedRange],
    begin: int,
    stop: int,
    left: Sequence[StoredMessage] = (),
) -> list[TimelineTurn]:
    """Return the messages of a page as turns, with branches that were left and removed ranges between them, in order.

    Args:
        page: The messages of the current branch.
        ranges: The ranges of the coverage.
        begin: The first message of the page.
        stop: The message after its last one.
        left: The messages of branches that were left.
    """
    stored = {each.sequence: each for each in page}
    found: list[TimelineTurn] = []
    today: object = None
    for each in ranges:
        first, last = max(each.first, begin), min(each.last, stop - 1)
        messages = [stored[place] for place in range(first, last + 1) if place in stored]
        begins_range = True
        branches = _branches(each, [message for message in left if first <= message.sequence <= last])
        if branches:
            found += branches
        elif first <= last and not messages:
            found.append(TimelineTurn(each, begins_range, first, last))
        for message in messages:
            assert message.created_at is not None
            day = message.created_at.date()
            if begins_range or message.role == "user":
                found.append(TimelineTurn(each, begins_range))
                begins_range = False
            found[-1].lines.append(TimelineLine(each, message, message.created_at if day != today else None))
            today = day
    return found


def _branches(covered: JoinedRange, messages: Sequence[StoredMessage]) -> list[TimelineTurn]:
    """Return the messages of a range that was left as branches: each begins where the graph forked."""
    found: list[TimelineTurn] = []
    for message in messages:
        if not found or message.parent is not None:
            after = fork_of(message.sequence - 1 if message.parent is None else message.parent)
            found.append(TimelineTurn(covered, not found, message.sequence, is_left=True, after=after))
        found[-1].lines.append(TimelineLine(covered, message))
    return [replace(each, last=each.lines[-1].message.sequence) for each in found]


def fork_of(parent: int) -> int | None:
    """Return the message after which a branch begins; `None` at the beginning of the conversation.

    Args:
        parent: As a message says it: a message, or -1 and down where the branch begins in place of message 0 and up.
    """
    after = parent if parent >= 0 else -2 - parent
    return after if after >= 0 else None
