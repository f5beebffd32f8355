"""What of a conversation is read for a person: which one is meant, which of its messages, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.cli.look import shown_id
from langchain_supabase_memory.errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.conversations import Column
    from langchain_supabase_memory.values import ConversationInfo, StoredMessage

PAGE: Final = 100
"""The most messages that are in memory at once, with what they say."""

_ROLES: Final = 1000
"""The same where only their roles are read."""


@dataclass(frozen=True)
class Window:
    """Messages of a conversation that follow one another.

    Attributes:
        first: The number of the first; higher than `last` if there are none.
        last: The number of the last.
        is_cut: Whether there are older ones.
        goes_on: Whether there are newer ones.
    """

    first: int
    last: int
    is_cut: bool = False
    goes_on: bool = False


NOTHING: Final = Window(0, -1)
"""No message."""


def found(
    memory: SupabaseMemory, thread_id: str, user_id: str, agent_id: str | None
) -> tuple[Conversation, ConversationInfo]:
    """The conversation that is meant, and what a list tells of it.

    Args:
        memory: Where it is.
        thread_id: Its thread.
        user_id: Its owner.
        agent_id: Its agent; `None` will do where one agent alone has such a thread.

    Raises:
        NotFoundError: There is none.
        InvalidInputError: An id is not usable, or several agents have such a thread.
    """
    conversation = memory.conversation(thread_id, user_id=user_id, agent_id=agent_id)  # looks at the ids
    if agent_id is None:
        rows = memory.work.status(user_id=user_id, thread_id=thread_id, limit=_AGENTS + 1)
        if len(rows) > 1:
            agents = [shown_id(row.key.agent_id) for row in rows[:_AGENTS]] + ["…"] * (len(rows) > _AGENTS)
            raise InvalidInputError(
                f"Several agents have a conversation {shown_id(thread_id)} with this user.",
                hint=f"Pass --agent, one of {', '.join(agents)}.",
            )
        if rows:
            conversation = memory.conversation(thread_id, user_id=user_id, agent_id=rows[0].key.agent_id)
    info = conversation.info()
    if info is None:
        with_it = "" if agent_id is None else f" with the agent {shown_id(agent_id)}"
        raise NotFoundError(
            f"The user {shown_id(user_id)} has no conversation {shown_id(thread_id)}{with_it}.",
            hint="`supabase-memory conversations --user …` lists those that are there.",
        )
    return conversation, info


_AGENTS: Final = 5
"""The most agents that an error names."""


def newest(conversation: Conversation, turns: int, most: int | None = None) -> Window:
    """The newest turns, with what follows them. A turn begins with a user's message.

    Args:
        conversation: Which conversation.
        turns: How many turns.
        most: The most messages; `None` means any number.
    """
    first, last, begun, seen = 0, -1, 0, 0
    upper: int | None = None
    while True:
        wanted = _ROLES if most is None else min(_ROLES, most + 1)
        rows = conversation.read(last=wanted, to_sequence=upper, columns=("role",))
        for row in reversed(rows):
            if begun >= turns or seen == most:
                return Window(first, last, is_cut=True)
            first, last = row.sequence, max(last, row.sequence)
            begun += row.role == "user"
            seen += 1
        if len(rows) < wanted:
            return Window(first, last)
        upper = first - 1


def whole(conversation: Conversation) -> Window:
    """All messages that are stored now."""
    newest = conversation.read(last=1, columns=("role",))
    return Window(0, newest[0].sequence) if newest else NOTHING


def around(conversation: Conversation, sequence: int, beside: int) -> Window:
    """A message, and so many before and after it.

    Args:
        conversation: Which conversation.
        sequence: The message's number.
        beside: How many on either side.

    Raises:
        NotFoundError: The conversation does not go so far.
    """
    before = conversation.read(last=beside + 2, to_sequence=sequence, columns=("role",))
    after = conversation.read(first=beside + 1, from_sequence=sequence + 1, columns=("role",))
    is_there = bool(before) and before[-1].sequence == sequence
    if not after and not is_there:
        raise NotFoundError(
            f"The conversation has no message {sequence}.",
            hint=f"Its newest is {before[-1].sequence}." if before else "It has none.",
        )
    older = before[max(0, len(before) - beside - is_there) :]
    shown = [*older, *after[:beside]]
    return Window(shown[0].sequence, shown[-1].sequence, len(before) > len(older), len(after) > beside)


def pages(conversation: Conversation, window: Window, columns: Sequence[Column]) -> Iterator[list[StoredMessage]]:
    """The messages of a window, oldest first, by pages."""
    lower = window.first
    while lower <= window.last:
        page = conversation.read(first=PAGE, from_sequence=lower, to_sequence=window.last, columns=columns)
        yield page
        lower = page[-1].sequence + 1 if len(page) == PAGE else window.last + 1
