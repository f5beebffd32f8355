"""The flows that list a user's conversations by pages, and read or update one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from langchain_supabase_memory.checks import choice
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError, NotFoundError
from langchain_supabase_memory.language.messages import sanitizer
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.operations.arguments import conversation_ids, moment, retention_argument
from langchain_supabase_memory.operations.pages import PAGE
from langchain_supabase_memory.operations.rows import value_of
from langchain_supabase_memory.values import (
    ConversationInfo,
    ConversationPage,
    ConversationState,
    Signal,
    as_signals,
    check_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import ConversationKey

LONGEST_TITLE: Final = 200
"""The maximum number of characters of a title."""


def conversations(
    owner: str | None,
    *,
    agent_id: str | None = None,
    state: ConversationState | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    signals: Iterable[Signal | str] | None = None,
    limit: int = 50,
    before: str | None = None,
    after: str | None = None,
    retention: Retention | None = None,
) -> Flow[ConversationPage]:
    """Return a page of a user's conversations, most recently changed first, each with its title and last message.

    Args:
        owner: The owner; `None` means the access token's subject.
        agent_id: Only this agent's conversations; `None` means all agents.
        state: Only `active` or only `archived` conversations; `None` means both.
        since: Only conversations that changed at or after this time, with a time zone.
        until: Only conversations that changed before this time, with a time zone.
        signals: Only conversations with one of these signals, such as `["complaint"]`; `None` means all.
        limit: The maximum number of conversations on a page, 1 to 1,000.
        before: The `before` of a page, to get the page of newer conversations.
        after: The `after` of a page, to get the page of older conversations.
        retention: The retention to apply; by default all messages are retained.

    Returns:
        The page. A conversation that changes meanwhile moves to the front; paging with `after` shows none twice.

    Raises:
        InvalidInputError: An argument is not one of its choices, a time is naive, or there is no owner.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    if agent_id is not None:
        check_id("agent_id", agent_id)
    choice("state", state, get_args(ConversationState), optional=True, error=InvalidInputError)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= PAGE:
        raise InvalidInputError(f"limit must be a whole number from 1 to {PAGE:,}.", hint="50 is the default.")
    if before is not None and after is not None:
        raise InvalidInputError("before and after cannot be combined.", hint="Pass before or after.")
    for name, place in (("before", before), ("after", after)):
        if place is not None and not isinstance(place, str):
            raise InvalidInputError(
                f"{name} must be a text, not {type(place).__name__}.", hint=f"Pass page.{name} as it is."
            )
    answer = yield from call(
        "memory_conversations",
        {
            "p_user_id": owner,
            "p_agent_id": agent_id,
            "p_state": state,
            "p_since": moment("since", since),
            "p_until": moment("until", until),
            "p_limit": limit,
            "p_before": before,
            "p_after": after,
            "p_retention": retention_argument(retention),
            "p_signals": None if signals is None else as_signals(signals),
        },
    )
    found = [_conversation(row) for row in answer["conversations"]]
    return ConversationPage(found, before=answer["before"], after=answer["after"])


def find_info(key: ConversationKey, *, retention: Retention | None = None) -> Flow[ConversationInfo | None]:
    """Return the conversation as it is listed; `None` if it does not exist. The arguments are those of `info`."""
    arguments = {**conversation_ids(key), "p_limit": 1, "p_retention": retention_argument(retention)}
    answer = yield from call("memory_conversations", arguments)
    return next(map(_conversation, answer["conversations"]), None)


def info(key: ConversationKey, *, retention: Retention | None = None) -> Flow[ConversationInfo]:
    """Return the conversation as it is listed: title, metadata and last message.

    Args:
        key: The conversation.
        retention: The retention to apply; by default all messages are retained.

    Raises:
        NotFoundError: It does not exist, or belongs to another user.
    """
    listed = yield from find_info(key, retention=retention)
    if listed is None:
        raise NotFoundError("There is no such conversation.", hint="Store a message first, or list what is there.")
    return listed


def update(
    key: ConversationKey,
    *,
    title: str | None = None,
    metadata: Mapping[str, object] | None = None,
    redactor: Redactor | None = None,
    retention: Retention | None = None,
) -> Flow[ConversationInfo]:
    """Set the conversation's title or metadata. The order of lists does not change.

    Args:
        key: The conversation.
        title: The new title, one line of up to 200 characters. A blank title removes it: then the generated title
            is shown, or the first words of the first question.
        metadata: The application's metadata, a JSON object of up to 16 KiB; it replaces the previous metadata.
        redactor: Removes secrets and personal data before storage.
        retention: The retention to apply; by default all messages are retained.

    Returns:
        The updated conversation, as it is listed.

    Raises:
        InvalidInputError: There is nothing to set, the title is too long or mentions an opted-out topic, or the
            metadata is not an object.
        TooLargeError: The metadata is too large.
        NotFoundError: There is no such conversation.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    if title is None and metadata is None:
        raise InvalidInputError("There is nothing to set.", hint="Pass title=..., metadata={...}, or both.")
    arguments = {
        **conversation_ids(key),
        "p_title": None if title is None else _title(title, redactor),
        "p_metadata": None if metadata is None else _metadata(metadata, redactor),
        "p_retention": retention_argument(retention),
    }
    return _conversation((yield from call("memory_update", arguments)))


def _title(title: str, redactor: Redactor | None) -> str:
    if not isinstance(title, str):
        raise InvalidInputError(f"title must be a text, not {type(title).__name__}.", hint="Pass title='A trip'.")
    words = " ".join(sanitizer.clean(title).split())
    if len(words) > LONGEST_TITLE:
        raise InvalidInputError(
            f"A title has at most {LONGEST_TITLE} characters; this one has {len(words):,}.", hint="Pass a shorter one."
        )
    # A placeholder may be longer than the secret that it replaces.
    return words if redactor is None else redactor.redact(words)[:LONGEST_TITLE]


def _metadata(metadata: Mapping[str, object], redactor: Redactor | None) -> Any:
    try:
        encoded = sanitizer.encode(dict(metadata))
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"metadata must be a mapping, not {type(metadata).__name__}.", hint='Pass metadata={"color": "blue"}.'
        ) from None
    return encoded if redactor is None else redact_value(encoded, redactor)


def _conversation(row: Mapping[str, Any]) -> ConversationInfo:
    return value_of(ConversationInfo, row, signals=Signal(row["signals"]))
