"""Read a conversation's messages for a command, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.cli.formatting import format_id
from langchain_supabase_memory.errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.conversations import Column
    from langchain_supabase_memory.values import ConversationInfo, StoredMessage

PAGE_SIZE: Final = 100
"""The maximum number of messages in memory at once, with content."""

_ROLE_PAGE_SIZE: Final = 1000
"""The maximum number of messages in memory at once, with only their roles."""

_MAX_AGENTS: Final = 5
"""The maximum number of agents listed in an error."""


@dataclass(frozen=True)
class Window:
    """A range of messages.

    Attributes:
        first: The number of the first message; higher than `last` if there is none.
        last: The number of the last message.
        has_earlier: Whether there are earlier messages.
        has_later: Whether there are later messages.
    """

    first: int
    last: int
    has_earlier: bool = False
    has_later: bool = False


def find_conversation(
    memory: SupabaseMemory, thread_id: str, user_id: str, agent_id: str | None
) -> tuple[Conversation, ConversationInfo]:
    """Find a conversation and its entry in the conversation list.

    Args:
        memory: The memory.
        thread_id: The thread.
        user_id: The owner.
        agent_id: The agent; it can be `None` if only one agent has this thread.

    Raises:
        NotFoundError: There is no such conversation.
        InvalidInputError: An id is not valid, or several agents have this thread.
    """
    conversation = memory.for_user(user_id).conversation(thread_id, agent_id=agent_id)  # checks the ids
    if agent_id is None:
        rows = memory.for_user(user_id).work.status(thread_id=thread_id, limit=_MAX_AGENTS + 1)
        if len(rows) > 1:
            agents = [format_id(row.key.agent_id) for row in rows[:_MAX_AGENTS]] + ["…"] * (len(rows) > _MAX_AGENTS)
            raise InvalidInputError(
                f"Several agents have a conversation {format_id(thread_id)} with this user.",
                hint=f"Pass --agent, one of {', '.join(agents)}.",
            )
        if rows:
            conversation = memory.for_user(user_id).conversation(thread_id, agent_id=rows[0].key.agent_id)
    try:
        return conversation, conversation.info()
    except NotFoundError:
        agent = "" if agent_id is None else f" with the agent {format_id(agent_id)}"
        raise NotFoundError(
            f"The user {format_id(user_id)} has no conversation {format_id(thread_id)}{agent}.",
            hint="`supabase-memory conversations --user …` lists those that are there.",
        ) from None


def newest(conversation: Conversation, turns: int, limit: int | None = None) -> Window:
    """Return the window of the newest turns. A turn starts with a user message.

    Args:
        conversation: The conversation.
        turns: The number of turns.
        limit: The maximum number of messages; `None` means no limit.
    """
    first, last, turn_count, count = 0, -1, 0, 0
    upper: int | None = None
    while True:
        page_size = _ROLE_PAGE_SIZE if limit is None else min(_ROLE_PAGE_SIZE, limit + 1)
        rows = conversation.read(last=page_size, to_sequence=upper, columns=("role",))
        for row in reversed(rows):
            if turn_count >= turns or count == limit:
                return Window(first, last, has_earlier=True)
            first, last = row.sequence, max(last, row.sequence)
            turn_count += row.role == "user"
            count += 1
        if len(rows) < page_size:
            return Window(first, last)
        upper = first - 1


def all_messages(conversation: Conversation) -> Window:
    """Return the window of all stored messages."""
    newest = conversation.read(last=1, columns=("role",))
    return Window(0, newest[0].sequence) if newest else Window(0, -1)


def around(conversation: Conversation, sequence: int, context: int) -> Window:
    """Return the window of a message and its neighbors.

    Args:
        conversation: The conversation.
        sequence: The message's number.
        context: The maximum number of neighbors on each side.

    Raises:
        NotFoundError: The conversation has fewer messages.
    """
    before = conversation.read(last=context + 2, to_sequence=sequence, columns=("role",))
    after = conversation.read(first=context + 1, from_sequence=sequence + 1, columns=("role",))
    is_stored = bool(before) and before[-1].sequence == sequence
    if not after and not is_stored:
        raise NotFoundError(
            f"The conversation has no message {sequence}.",
            hint=f"Its newest is {before[-1].sequence}." if before else "It has none.",
        )
    older = before[max(0, len(before) - context - is_stored) :]
    rows = [*older, *after[:context]]
    return Window(rows[0].sequence, rows[-1].sequence, len(before) > len(older), len(after) > context)


def pages(conversation: Conversation, window: Window, columns: Sequence[Column]) -> Iterator[list[StoredMessage]]:
    """Read the messages of a window, oldest first, page by page."""
    lower = window.first
    while lower <= window.last:
        page = conversation.read(first=PAGE_SIZE, from_sequence=lower, to_sequence=window.last, columns=columns)
        yield page
        lower = page[-1].sequence + 1 if len(page) == PAGE_SIZE else window.last + 1
