"""Authentication: a one-time token, then a cookie; allowed hosts and origins; security headers."""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse

from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.inspector.error_pages import on_unexpected_error
from langchain_supabase_memory.inspector.rendering import render_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL: Final = ("127.0.0.1", "localhost", "::1")
"""The host names of this machine."""

_HEADERS: Final = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
_SAFE: Final = ("GET", "HEAD")
MIN_TOKEN_LENGTH: Final = 16
"""The minimum length of a token in characters: a shorter one can be guessed."""


class SessionStore:
    """Stores who is admitted.

    Args:
        token: The one-time token that admits a browser; `None` admits everybody.

    Raises:
        ConfigurationError: The token is empty or short.
    """

    def __init__(self, token: str | None) -> None:
        if token is not None and len(token) < MIN_TOKEN_LENGTH:
            raise ConfigurationError(
                f"A token has at least {MIN_TOKEN_LENGTH} characters.",
                hint="Pass token=secrets.token_urlsafe(32), for example.",
            )
        self._token = token
        self._is_open = token is None
        self._session: str | None = None
        self._secret = secrets.token_bytes(32)
        # Cookies ignore the port, so two inspectors on one machine need different cookie names.
        self.cookie: Final = f"memory_inspector_{secrets.token_hex(4)}"

    def exchange_token(self, token: str) -> str | None:
        """Exchange the token for a new session; `None` if the token is wrong or was used."""
        if self._token is None or not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        self._token, self._session = None, secrets.token_urlsafe(32)
        return self._session

    def is_valid_session(self, session: str | None) -> bool:
        """Return whether a session is admitted."""
        if self._is_open:
            return True
        known = self._session
        return known is not None and session is not None and hmac.compare_digest(session.encode(), known.encode())

    def issue_session(self, session: str | None) -> str | None:
        """Return a new session for a browser without one, if everybody is admitted."""
        return secrets.token_urlsafe(32) if self._is_open and session is None else None

    def form_token(self, session: str) -> str:
        """Return the CSRF token for a session's forms."""
        return hmac.new(self._secret, session.encode(), "sha256").hexdigest()

    def is_valid_form(self, session: str, token: str) -> bool:
        """Return whether a form's CSRF token belongs to this session."""
        return hmac.compare_digest(self.form_token(session).encode(), token.encode())


class AuthMiddleware:
    """The outermost ASGI middleware.

    Args:
        app: The application.
        sessions: Stores who is admitted.
        hosts: The accepted host names.
    """

    def __init__(self, app: ASGIApp, sessions: SessionStore, hosts: Sequence[str]) -> None:
        self._app = app
        self._sessions = sessions
        self._hosts = frozenset(each.lower() for each in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request or pass it on, and add security headers to every response."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # there are no WebSockets
        request = Request(scope, receive)
        session = request.cookies.get(self._sessions.cookie)
        issued = self._sessions.issue_session(session)
        scope["state"] = {**scope.get("state", {}), "session": session or issued or ""}

        has_begun = False

        async def sent(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = [each for each in message["headers"] if each[0] not in _HEADERS]
                headers += _HEADERS.items()
                if issued is not None:
                    headers.append((b"set-cookie", self._set(request, issued).encode()))
                message["headers"] = headers
            await send(message)

        answer = self._refusal(request, session)
        try:
            await (self._app if answer is None else answer)(scope, receive, sent)
        except Exception as error:  # otherwise the server would log its text, which may contain content
            failed = on_unexpected_error(request, error)
            if not has_begun:
                await failed(scope, receive, sent)

    def _refusal(self, request: Request, session: str | None) -> Response | None:
        """Return the refusal to send instead of calling the application; `None` if the request is allowed."""
        host = request.headers.get("host", "")
        if _host_name(host) not in self._hosts:
            hint = "Open the printed address, or allow this host with --allow-host or hosts=."
            return render_error(request, 421, "The inspector does not accept this host.", hint)
        if not _is_same_origin(request, host):
            return render_error(request, 403, "Another site sent this request.", "Open the inspector's own address.")
        token = request.query_params.get("token")
        if token is not None and request.method == "GET":
            made = self._sessions.exchange_token(token)
            if made is not None:
                return self._sign_in(request, made)
        if not self._sessions.is_valid_session(session) and not _is_static(request):
            hint = (
                "The printed address works once, in one browser. Start `supabase-memory inspect` again for a new one."
            )
            return render_error(request, 401, "You are not signed in.", hint)
        return None

    def _sign_in(self, request: Request, session: str) -> Response:
        """Redirect to the same address without the token."""
        kept = [(name, value) for name, value in parse_qsl(request.url.query) if name != "token"]
        query = f"?{urlencode(kept)}" if kept else ""
        answer = RedirectResponse(f"{request.scope.get('root_path', '')}/{query}", 303)
        answer.headers.append("set-cookie", self._set(request, session))
        return answer

    def _set(self, request: Request, session: str) -> str:
        path = request.scope.get("root_path") or "/"
        secure = "; Secure" if request.scope.get("scheme") == "https" else ""
        return f"{self._sessions.cookie}={session}; Path={path}; HttpOnly; SameSite=Strict{secure}"


def _is_same_origin(request: Request, host: str) -> bool:
    """Return whether a request comes from our own pages. A change must send its origin."""
    origin = request.headers.get("origin")
    if origin is None:
        return request.method in _SAFE
    return urlsplit(origin).netloc.lower() == host.lower() and origin.partition("://")[0] in ("http", "https")


def _is_static(request: Request) -> bool:
    """Return whether it is a style or a script, which contain no user content and which the refusal page needs."""
    root = request.scope.get("root_path", "")
    return request.method in _SAFE and request.url.path.startswith(f"{root}/static/")


def _host_name(host: str) -> str:
    """Return a host without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
