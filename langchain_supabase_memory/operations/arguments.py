"""What the SQL functions take: a conversation's ids, a retention, a time, a person."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory import settings
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import sanitizer

if TYPE_CHECKING:
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import ConversationKey, Scope


def conversation_ids(key: ConversationKey) -> dict[str, Any]:
    """The arguments by which every SQL function knows a conversation."""
    return {"p_thread_id": key.thread_id, "p_user_id": key.user_id, "p_agent_id": key.agent_id}


def scope_ids(scope: Scope) -> dict[str, Any]:
    """The arguments by which SQL functions know one conversation, or all of a user's; see `Scope`."""
    return {"p_thread_id": scope.thread_id, "p_user_id": scope.user_id, "p_agent_id": scope.agent_id}


def retention_argument(retention: Retention | None) -> dict[str, float | None] | None:
    """The argument by which every SQL function knows what is kept."""
    if retention is None:
        return None
    settings.check_settings(retention=retention)
    return retention.to_json()


def check_limit(name: str, number: int | None, *, optional: bool = True) -> int | None:
    """A bound on what is returned.

    Args:
        name: The argument's name.
        number: What was passed.
        optional: Whether `None` will do, which means all.

    Raises:
        InvalidInputError: It is no whole number, or negative.
    """
    if optional and number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise InvalidInputError(f"{name} must be a whole number from 0.", hint=f"Pass {name}=20, for example.")
    return number


def moment(name: str, time: datetime | None) -> str | None:
    """A time as the SQL functions take it.

    Raises:
        InvalidInputError: It is none, or naive.
    """
    if time is None:
        return None
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise InvalidInputError(
            f"{name} must be a datetime with a time zone.", hint=f"Pass {name}=datetime.now(timezone.utc), for example."
        )
    return time.isoformat()


def check_actor(actor: str) -> str:
    """Who does something, as it is noted with the time.

    Args:
        actor: Their name; 200 characters of it are kept.

    Raises:
        InvalidInputError: Nobody is named.
    """
    name = sanitizer.clean(actor).strip() if isinstance(actor, str) else ""
    if not name:
        raise InvalidInputError("Nobody is named.", hint='Say who does it: actor="ana", for example.')
    return name[:200]
