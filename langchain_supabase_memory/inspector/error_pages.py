"""Error pages: what went wrong and a hint, never user content."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.adapters.telemetry.logs import error_fields
from langchain_supabase_memory.errors import (
    AccessError,
    InvalidInputError,
    MigrationConflictError,
    NotFoundError,
    SupabaseMemoryError,
    TooLargeError,
    UnavailableError,
)
from langchain_supabase_memory.inspector.rendering import render_error

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_logger = logging.getLogger(__name__)

_STATUS: Final = (
    (NotFoundError, 404),
    (InvalidInputError, 400),
    (AccessError, 403),
    (TooLargeError, 413),
    (MigrationConflictError, 409),
)


def on_memory_error(request: Request, error: Exception) -> Response:
    """Respond to an error of the memory, such as an unavailable database or another release's schema."""
    assert isinstance(error, SupabaseMemoryError)
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 503)
    return render_error(request, status, error.reason, error.hint, is_away=isinstance(error, UnavailableError))


def on_http_error(request: Request, error: Exception) -> Response:
    """Respond to a page that does not exist, or is not permitted."""
    status: int = error.status_code  # type: ignore[attr-defined]
    if status == 404:
        return render_error(request, 404, "This page does not exist.", "Start at the list of conversations.")
    detail: str = error.detail  # type: ignore[attr-defined]
    what, _, hint = detail.partition("\n")
    return render_error(request, status, what, hint)


def on_unexpected_error(request: Request, error: Exception) -> Response:
    """Respond to a bug; only its class is logged, because its text may contain user content."""
    _logger.error("A page of the inspector failed", extra=error_fields(error))
    return render_error(
        request, 500, "This page failed.", f"Please report {type(error).__name__} and the address of the page."
    )
