"""The flows over lists: a user's conversations by pages, one of them, and what people set of it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, get_args

from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import sanitizer
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.operations.arguments import conversation_ids, moment, retention_argument
from langchain_supabase_memory.operations.pages import PAGE
from langchain_supabase_memory.values import ConversationInfo, ConversationPage, ConversationState, check_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import ConversationKey

LONGEST_TITLE: Final = 200
"""The most characters of a title."""


def conversations(
    owner: str | None,
    *,
    agent_id: str | None = None,
    state: ConversationState | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
    before: str | None = None,
    after: str | None = None,
    retention: Retention | None = None,
) -> Flow[ConversationPage]:
    """A page of a user's conversations, the most recently changed first, each with a title and its last words.

    Args:
        owner: The owner; `None` means the access token's subject.
        agent_id: Only this agent's; `None` means all agents'.
        state: Only `active` or only `archived` ones; `None` means both.
        since: Only those that changed at or after this time, with a time zone.
        until: Only those that changed before this time, with a time zone.
        limit: The most of a page, 1 to 1,000.
        before: What a page gives as `before`: the page before it, of newer ones.
        after: What a page gives as `after`: the page after it, of older ones.
        retention: What is kept; everything by default.

    Returns:
        The page. A conversation that changes meanwhile moves to the front; by `after` none is shown twice.

    Raises:
        InvalidInputError: An argument is none of its choices, a time is naive, or nobody is named as the owner.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    if agent_id is not None:
        check_id("agent_id", agent_id)
    if state is not None and state not in get_args(ConversationState):
        raise InvalidInputError("There is no such state.", hint=f"Pass {' or '.join(get_args(ConversationState))}.")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= PAGE:
        raise InvalidInputError(f"limit must be a whole number from 1 to {PAGE:,}.", hint="50 is the default.")
    if before is not None and after is not None:
        raise InvalidInputError("A page is after a place, or before one.", hint="Pass before or after.")
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
        },
    )
    found = [_conversation(row) for row in answer["conversations"]]
    return ConversationPage(found, before=answer["before"], after=answer["after"])


def info(key: ConversationKey, *, retention: Retention | None = None) -> Flow[ConversationInfo | None]:
    """The conversation as it is listed: its title, its metadata, its last message; `None` if it does not exist.

    Args:
        key: The conversation.
        retention: What is kept; everything by default.
    """
    arguments = {**conversation_ids(key), "p_limit": 1, "p_retention": retention_argument(retention)}
    answer = yield from call("memory_conversations", arguments)
    return next(map(_conversation, answer["conversations"]), None)


def update(
    key: ConversationKey,
    *,
    title: str | None = None,
    metadata: Mapping[str, object] | None = None,
    redactor: Redactor | None = None,
    retention: Retention | None = None,
) -> Flow[ConversationInfo]:
    """Set the conversation's title or metadata. Lists keep their order.

    Args:
        key: The conversation.
        title: What it is called from now on, in up to 200 characters and one line. A blank one takes that back:
            then the writer's title is shown, or the first words of the first question.
        metadata: What the application keeps beside it from now on: a JSON object of up to 16 KiB, in place of what
            there was.
        redactor: What takes secrets and personal data out of what is stored.
        retention: What is kept; everything by default.

    Returns:
        The conversation as it is listed from now on.

    Raises:
        InvalidInputError: There is nothing to set, the title is too long or mentions a topic that is not to be
            remembered, or the metadata is no object.
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
    # What stands for a secret may be longer than it.
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
    fields: dict[str, Any] = {
        name: datetime.fromisoformat(value) if name.endswith("_at") and value is not None else value
        for name, value in row.items()
    }
    return ConversationInfo(**fields)
