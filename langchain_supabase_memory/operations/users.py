"""The flow that lists the users who have conversations, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.operations.rows import value_of
from langchain_supabase_memory.values import LONGEST_ID

MAX_LIMIT: Final = 100
"""The maximum number of users on a page."""


@dataclass(frozen=True)
class UserSummary:
    """A user who has conversations.

    Attributes:
        user_id: The user.
        conversations: How many conversations they have, up to 10.
        has_more: Whether they have more than these.
        tokens: The approximate tokens of the messages of these conversations, the newest.
        last_at: When one of these changed last.
        dead: How many of the user's conversations have work that was given up.
    """

    user_id: str
    conversations: int
    has_more: bool
    tokens: int
    last_at: datetime
    dead: int


@dataclass(frozen=True)
class UserPage:
    """A page of users.

    Attributes:
        users: The users, by their ids.
        after: Pass it as `after` to get the next page; `None` if there is none.
    """

    users: list[UserSummary]
    after: str | None = None


def list_users(
    user_id: str | None,
    *,
    prefix: str | None = None,
    contains: str | None = None,
    limit: int = 25,
    after: str | None = None,
) -> Flow[UserPage]:
    """List the users who have conversations, by their ids, in one round trip; it needs a server's rights.

    Args:
        user_id: The memory's user; there must be none.
        prefix: Only users whose ids begin with it; `None` means all.
        contains: Only users whose ids contain it, in whatever case. One call looks at 500 users, so that a page may
            have fewer than `limit`, or none, and still an `after`.
        limit: The maximum number of users, 1 to 100.
        after: The `after` of a page, to get the next page.

    Returns:
        The users, each with their ten newest conversations in numbers. Spaces are left out.

    Raises:
        InvalidInputError: The memory belongs to one user, or an argument is not one of its choices.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    if user_id is not None:
        raise InvalidInputError(
            "This memory belongs to one user.", hint="Use a memory that was made without user_id, on a server."
        )
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= MAX_LIMIT:
        raise InvalidInputError(f"limit must be a whole number from 1 to {MAX_LIMIT}.", hint="25 is the default.")
    for name, text in (("prefix", prefix), ("contains", contains), ("after", after)):
        if text is not None and (not isinstance(text, str) or len(text) > LONGEST_ID):
            raise InvalidInputError(
                f"{name} must be a text of at most {LONGEST_ID} characters.",
                hint="Pass a part of an id, or leave it out.",
            )
    answer = yield from call(
        "memory_worker_users",
        {
            "p_prefix": None if prefix is None else clean(prefix),
            "p_limit": limit,
            "p_after": None if after is None else clean(after),
            "p_contains": None if contains is None else clean(contains),
        },
    )
    return UserPage([value_of(UserSummary, row) for row in answer["users"]], answer["after"])
