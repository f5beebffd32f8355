"""What an HTTP response says: a document, or one of our errors, whoever between us and the database gave it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import documents
from langchain_supabase_memory.adapters.transports.answers import parsed
from langchain_supabase_memory.errors import (
    SupabaseMemoryError,
    TokenExpiredError,
    from_code,
    from_ours,
    from_status,
    refused,
)

if TYPE_CHECKING:
    import httpx

LONGEST_RETRY_AFTER_SECONDS: Final = 3600.0
"""What a server asks for beyond is taken for this."""

_CODE: Final = re.compile(r"[0-9A-Z]{5}|PGRST[0-9A-Z]+")  # an SQLSTATE, or PostgREST's own
_ON_A_REPLICA: Final = "read-write mode during recovery"
"""PostgREST wants to write before the function does; a Postgres that speaks another language is not known by it."""

_CONSTRAINT: Final = re.compile(r'violates check constraint "(\w{1,63})"')


def document(response: httpx.Response) -> Any:
    """The document of a response.

    Args:
        response: A response that was read to its end.

    Raises:
        UnavailableError: It has none, or something between here and the database answered that it is away.
        SupabaseMemoryError: The database or a gateway refused.
    """
    if response.is_success:
        return parsed(response.content)
    raise failure(response)


def failure(response: httpx.Response) -> SupabaseMemoryError:
    """Our error for a response without success. Texts of the server are dropped, since they can hold rows; ours stay.

    Args:
        response: A response that was read to its end.
    """
    error = _error(response.content)
    code = error.get("code")
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        # PostgREST gives an empty code while it loses the database, and a gateway gives one of its own or none.
        return from_status(response.status_code, retry_after_seconds(response.headers.get("Retry-After")))
    message, hint = (text if isinstance(text := error.get(key), str) else "" for key in ("message", "hint"))
    if code in ("PGRST301", "PGRST303") and "expired" in message.lower():
        return TokenExpiredError(code=code)
    if code == "0A000" and _ON_A_REPLICA in message:
        return from_code("25006")
    if code == "23514":
        found = _CONSTRAINT.search(message)
        return refused(found[1] if found else None)
    return from_ours(code, message, hint) if code.startswith("PT") else from_code(code)


def retry_after_seconds(header: str | None) -> float | None:
    """How long a server asks to wait, in seconds.

    Args:
        header: A `Retry-After`: seconds, or a date.

    Returns:
        From 0 to `LONGEST_RETRY_AFTER_SECONDS`; `None` if it says nothing of use.
    """
    if header is None:
        return None
    if header.strip().isdecimal():
        asked = float(header)
    else:
        try:
            until = parsedate_to_datetime(header)
        except (ValueError, TypeError, OverflowError):
            return None
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        asked = (until - datetime.now(UTC)).total_seconds()
    return min(max(asked, 0.0), LONGEST_RETRY_AFTER_SECONDS)


def _error(content: bytes) -> dict[str, Any]:
    """The error document of a server; nothing if there is none."""
    try:
        found = documents.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
