"""Arguments of the SQL functions: a conversation's ids, a retention, a time, an actor."""

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
    """Return the arguments that identify a conversation."""
    return {"p_thread_id": key.thread_id, "p_user_id": key.user_id, "p_agent_id": key.agent_id}


def scope_ids(scope: Scope) -> dict[str, Any]:
    """Return the arguments that identify one conversation or all of a user's; see `Scope`."""
    return {"p_thread_id": scope.thread_id, "p_user_id": scope.user_id, "p_agent_id": scope.agent_id}


def retention_argument(retention: Retention | None) -> dict[str, float | None] | None:
    """Return the argument that carries the retention."""
    if retention is None:
        return None
    settings.check_settings(retention=retention)
    return retention.to_json()


def check_limit(name: str, number: int | None, *, optional: bool = True) -> int | None:
    """Check a bound on the number of results.

    Args:
        name: The argument's name.
        number: What was passed.
        optional: Whether `None`, which means all, is allowed.

    Raises:
        InvalidInputError: It is negative or not a whole number.
    """
    if optional and number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise InvalidInputError(f"{name} must be a whole number from 0.", hint=f"Pass {name}=20, for example.")
    return number


def moment(name: str, time: datetime | None) -> str | None:
    """Return a time in the form that the SQL functions take.

    Raises:
        InvalidInputError: It is not a datetime, or it is naive.
    """
    if time is None:
        return None
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise InvalidInputError(
            f"{name} must be a datetime with a time zone.", hint=f"Pass {name}=datetime.now(timezone.utc), for example."
        )
    return time.isoformat()


def check_actor(actor: str) -> str:
    """Check and return the name of the person who makes a change; it is recorded with the time.

    Args:
        actor: The name; the first 200 characters are stored.

    Raises:
        InvalidInputError: The name is empty.
    """
    name = sanitizer.clean(actor).strip() if isinstance(actor, str) else ""
    if not name:
        raise InvalidInputError(
            "actor must not be empty.", hint='Name the person who makes the change: actor="ana", for example.'
        )
    return name[:200]
