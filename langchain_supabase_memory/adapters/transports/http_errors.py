"""Maps an HTTP response, from the database or a gateway, to a document or one of our errors."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import documents
from langchain_supabase_memory.adapters.transports.response_shapes import parse
from langchain_supabase_memory.errors import (
    SupabaseMemoryError,
    UnavailableError,
    connection_lost,
    from_code,
    from_error,
    from_status,
    is_refusal,
    role_error,
    token_error,
)

if TYPE_CHECKING:
    import httpx

LONGEST_RETRY_AFTER_SECONDS: Final = 3600.0
"""The upper limit of a server's `Retry-After`, in seconds."""

_CODE: Final = re.compile(r"[0-9A-Z]{5}|PGRST[0-9A-Z]+")  # an SQLSTATE, or PostgREST's own
_ON_A_REPLICA: Final = "read-write mode during recovery"
"""PostgREST's own write before the function fails on a replica; this only matches servers whose messages are English.
"""

_ROLE: Final = re.compile(r'role ".*" does not exist|permission denied to set role ".*"', re.DOTALL)
"""PostgREST could not switch to the token's role."""

_FUNCTION: Final = re.compile(r"Could not find the function (\w+)\.memory_")
"""Captures the schema in which PostgREST looked."""

_CONSTRAINT: Final = re.compile(r'violates check constraint "(\w{1,63})"')


def document(response: httpx.Response) -> Any:
    """Return the document of a response.

    Args:
        response: A response that was read to its end.

    Raises:
        UnavailableError: It has no document, or a gateway reports that the database is unavailable.
        SupabaseMemoryError: The database or a gateway refused.
    """
    if response.is_success:
        return parse(response.content)
    raise failure(response)


def failure(response: httpx.Response) -> SupabaseMemoryError:
    """Return our error for an unsuccessful response. The server's texts may contain rows, so only our own are retained.

    Args:
        response: A response that was read to its end.
    """
    error = _failure(response)
    if isinstance(error, UnavailableError):
        error.retry_after_seconds = retry_after_seconds(response.headers.get("Retry-After"))
    return error


def _failure(response: httpx.Response) -> SupabaseMemoryError:
    error = documents.mapping(response.content)  # `None`: something else came, such as a page
    code = None if error is None else error.get("code")
    if not isinstance(code, str) or not _CODE.fullmatch(code):  # a gateway sends another code, or none
        if code == "":
            return connection_lost(response.status_code)
        return from_status(response.status_code, is_page=error is None)
    assert error is not None
    message, hint = (text if isinstance(text := error.get(key), str) else "" for key in ("message", "hint"))
    if code in ("PGRST301", "PGRST303"):
        return token_error(code, message)
    if code in ("22023", "42501") and _ROLE.fullmatch(message):
        return role_error(code)
    if code == "PGRST202" and (elsewhere := _FUNCTION.search(message)) and elsewhere[1] != "public":
        return from_code("PGRST106")
    if code == "0A000" and _ON_A_REPLICA in message:
        return from_code("25006")
    if code == "23514":
        found = _CONSTRAINT.search(message)
        return is_refusal(found[1] if found else None)
    return from_error(code, message, hint) if code.startswith("PT") else from_code(code)


def retry_after_seconds(header: str | None) -> float | None:
    """Return how long a server asks to wait, in seconds.

    Args:
        header: A `Retry-After` header: seconds, or a date.

    Returns:
        From 0 to `LONGEST_RETRY_AFTER_SECONDS`; `None` if it is not usable.
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
