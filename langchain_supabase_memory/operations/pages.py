"""What is done over many conversations: found by pages, and one that cannot be read stops none of the others."""

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
"""The most messages one call returns."""

_logger = logging.getLogger(__name__)

_reported: Final[set[str]] = set()
"""The uuids of conversations that were reported, so that each is reported once."""

_MOST_REPORTED: Final = 1000
"""After so many, more of them say nothing new."""


def key_of(row: Mapping[str, Any]) -> ConversationKey | None:
    """The conversation that a row of the database is about.

    Args:
        row: With the ids, and the conversation's uuid as `conversation_id` or `id`.

    Returns:
        Its key; `None` if its ids cannot be used here. That is logged once, by the uuid alone.
    """
    try:
        return ConversationKey(row["thread_id"], row["user_id"], row["agent_id"])
    except InvalidInputError:
        conversation_id = str(row.get("conversation_id") or row.get("id"))
        if conversation_id not in _reported and len(_reported) < _MOST_REPORTED:
            _reported.add(conversation_id)
            _logger.warning("A conversation has unusable ids", extra={"memory_conversation_id": conversation_id})
        return None


def keys(function: str, arguments: Mapping[str, Any]) -> Flow[list[ConversationKey]]:
    """The conversations that a SQL function finds by pages, in the order of their owners and ids.

    Args:
        function: Its name.
        arguments: Its arguments, but for those that name the page.
    """
    found: list[ConversationKey] = []
    last: Mapping[str, Any] = {}
    while True:
        place = {"p_limit": PAGE, "p_after_user": last.get("user_id"), "p_after": last.get("id")}
        page = yield from call(function, {**arguments, **place})
        found += [key for key in map(key_of, page) if key is not None]
        if len(page) < PAGE:
            return found
        last = page[-1]


def isolate_failure(key: ConversationKey, flow: Flow[T], fallback: Callable[[str], T]) -> Flow[T]:
    """Do something for one conversation of many, so that one that cannot be read stops none of the others.

    Args:
        key: The conversation.
        flow: What to do.
        fallback: What is returned in its place, from the class of what was raised.

    Raises:
        SupabaseMemoryError: What concerns all of them: the database is away, refuses, or is set up otherwise.
    """
    try:
        return (yield from flow)
    except (AccessError, SchemaError, ConfigurationError):
        raise
    except Exception as error:
        # What has no code and does not tell that the database is away is an answer that nobody can read: this owner's.
        if isinstance(error, UnavailableError) and (error.is_away or error.code is not None):
            raise
        _logger.warning("A conversation was set aside", extra={**log_fields(key), "memory_error": type(error).__name__})
        return fallback(type(error).__name__)
