"""What a page says where something goes wrong: what it is, and the next action; never what was said."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.adapters.telemetry.logs import error_fields
from langchain_supabase_memory.errors import (
    AccessError,
    InvalidInputError,
    NotFoundError,
    SupabaseMemoryError,
    UnavailableError,
)
from langchain_supabase_memory.inspector.rendering import render_error

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_logger = logging.getLogger(__name__)

_STATUS: Final = ((NotFoundError, 404), (InvalidInputError, 400), (AccessError, 403))


def on_memory_error(request: Request, error: Exception) -> Response:
    """An error of the memory, such as a database that is away or of another release."""
    assert isinstance(error, SupabaseMemoryError)
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 503)
    return render_error(request, status, error.reason, error.hint, is_away=isinstance(error, UnavailableError))


def on_http_error(request: Request, error: Exception) -> Response:
    """Something that is asked for and does not exist, or is not permitted."""
    status: int = error.status_code  # type: ignore[attr-defined]
    if status == 404:
        return render_error(request, 404, "There is no such page.", "Begin at the list of conversations.")
    detail: str = error.detail  # type: ignore[attr-defined]
    what, _, hint = detail.partition("\n")
    return render_error(request, status, what, hint)


def on_unexpected_error(request: Request, error: Exception) -> Response:
    """A mistake of ours; its class is logged, for its text may hold content."""
    _logger.error("A page of the inspector failed", extra=error_fields(error))
    return render_error(
        request, 500, "This page failed.", f"Please report {type(error).__name__}, and what you asked for."
    )
