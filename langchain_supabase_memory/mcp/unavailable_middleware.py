"""What a client is told while the issuer is away: to wait, and not to sign in anew, which would change nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse

from langchain_supabase_memory.errors import UnavailableError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_RETRY_SECONDS: Final = 10
_SAID: Final = (
    "The keys of the project cannot be fetched, so nobody can tell whether the access token is good. "
    "Try again in a moment with the same token."
)


@dataclass(frozen=True)
class ServiceUnavailableMiddleware:
    """Stands around an application and answers 503 where it could not tell whose a request is.

    Attributes:
        app: The application.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        try:
            await self.app(scope, receive, send)
        except UnavailableError:
            # It is raised before an answer has begun: within the application failures are results.
            body = {"error": "temporarily_unavailable", "error_description": _SAID}
            await JSONResponse(body, 503, {"Retry-After": str(_RETRY_SECONDS)})(scope, receive, send)
