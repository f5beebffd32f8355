"""Paging over many conversations; one unreadable conversation does not stop the others."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import (
    AccessError,
    ConfigurationError,
    InvalidInputError,
    SchemaError,
    UnavailableError,
)
from langchain_supabase_memory.values import ConversationKey, log_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

PAGE: Final = 1000
"""The maximum number of messages that one call returns."""

_BY_OWNER: Final = {"p_after_user": "user_id", "p_after": "id"}

_logger = logging.getLogger(__name__)

_reported: Final[set[str]] = set()
"""The uuids of conversations already reported, so that each is reported once."""

_MAX_REPORTED: Final = 1000
"""After this many reports, further ones are not logged."""


def key_of(row: Mapping[str, Any]) -> ConversationKey | None:
    """Return the key of the conversation that a database row describes.

    Args:
        row: A row with the ids, and the conversation's uuid as `conversation_id` or `id`.

    Returns:
        The key; `None` if the ids are not valid here. That is logged once per conversation, with only the uuid.
    """
    try:
        return ConversationKey(row["thread_id"], row["user_id"], row["agent_id"])
    except InvalidInputError:
        conversation_id = str(row.get("conversation_id") or row.get("id"))
        if conversation_id not in _reported and len(_reported) < _MAX_REPORTED:
            _reported.add(conversation_id)
            _logger.warning("A conversation has unusable ids", extra={"memory_conversation_id": conversation_id})
        return None


def keys(
    function: str, arguments: Mapping[str, Any], place: Mapping[str, str] = _BY_OWNER
) -> Flow[list[ConversationKey]]:
    """Return the conversations that a SQL function pages through, in its order.

    Args:
        function: The function's name.
        arguments: The function's arguments, except those that select the page.
        place: The arguments that continue after a row, and the names of their values in it; by default the owner
            and the id.
    """
    found: list[ConversationKey] = []
    last: Mapping[str, Any] = {}
    while True:
        after = {argument: last.get(name) for argument, name in place.items()}
        page = yield from call(function, {**arguments, "p_limit": PAGE, **after})
        found += [key for key in map(key_of, page) if key is not None]
        if len(page) < PAGE:
            return found
        last = page[-1]


def isolate_failure(key: ConversationKey | str, flow: Flow[T], fallback: Callable[[str], T]) -> Flow[T]:
    """Run a flow for one of many conversations or owners, so that one that is unreadable does not stop the others.

    Args:
        key: The conversation, or the owner's id.
        flow: The flow to run.
        fallback: Returns the result to use if the flow fails, from the name of the exception's class.

    Raises:
        SupabaseMemoryError: The error concerns every conversation: the database is unreachable, refuses access, or
            is misconfigured.
    """
    try:
        return (yield from flow)
    except Exception as error:
        if concerns_everybody(error):
            raise
        what, fields = (
            ("An owner", {"memory_user_id": key}) if isinstance(key, str) else ("A conversation", log_fields(key))
        )
        _logger.warning("%s was skipped", what, extra={**fields, "memory_error": type(error).__name__})
        return fallback(type(error).__name__)


def concerns_everybody(error: Exception) -> bool:
    """Return whether an error concerns every conversation: the database is unreachable, refuses, or is misconfigured.

    An error without a code that does not mean "unreachable" is an unreadable answer, which concerns one owner.
    """
    if isinstance(error, UnavailableError):
        return error.is_away or error.code is not None
    return isinstance(error, (AccessError, SchemaError, ConfigurationError))
