"""Responds 503 while the issuer is unavailable, so that clients wait: signing in again would not help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse

from langchain_supabase_memory.errors import UnavailableError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_RETRY_SECONDS: Final = 10
_SAID: Final = (
    "The keys of the project cannot be fetched, so the access token cannot be verified. "
    "Try again in a moment with the same token."
)


@dataclass(frozen=True)
class ServiceUnavailableMiddleware:
    """Wraps an application and responds 503 if the user of a request cannot be verified.

    Attributes:
        app: The application.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        try:
            await self.app(scope, receive, send)
        except UnavailableError:
            # It is raised before a response has started, because failures within the application are results.
            body = {"error": "temporarily_unavailable", "error_description": _SAID}
            await JSONResponse(body, 503, {"Retry-After": str(_RETRY_SECONDS)})(scope, receive, send)
