"""Limits the HTTP sessions of each user, so that one user cannot use up all sessions."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_SESSIONS: Final = 20
"""The maximum number of sessions of one user."""

_SESSION: Final = b"mcp-session-id"
_PROTOCOL: Final = b"mcp-protocol-version"
_BODY: Final = frozenset({b"content-length", b"content-type", b"transfer-encoding", _SESSION})
_REFUSED: Final = "Too many sessions are being opened for this user. Wait for those to answer, then try again."


@dataclass
class Session:
    """An open session.

    Attributes:
        scope: The request that opened it: a session is closed as the user who opened it.
        busy: How many of its requests are in progress, including streams.
    """

    scope: Scope = field(repr=False)
    busy: int = 0


def _is_of_no_session(scope: Scope) -> bool:
    """Return whether a request uses a protocol version without sessions."""
    spoken = next((value.decode("latin-1") for key, value in scope["headers"] if key == _PROTOCOL), None)
    return spoken is not None and spoken not in HANDSHAKE_PROTOCOL_VERSIONS


class SessionLimitMiddleware:
    """Wraps the SDK's sessions. A user who opens too many loses the one of theirs that was idle for longest.

    The SDK has one limit for all users, which a single user could exhaust.

    Args:
        app: The SDK's sessions.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._open: dict[str, OrderedDict[bytes, Session]] = {}
        self._opening: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        user = scope.get("user")
        name = user.access_token.subject if isinstance(user, AuthenticatedUser) else None
        if name is None or _is_of_no_session(scope):
            await self.app(scope, receive, send)
            return
        wanted = next((value for key, value in scope["headers"] if key == _SESSION), None)
        if wanted is None:
            await self._without(name, scope, receive, send)
        else:
            await self._handle(name, wanted, scope, receive, send)

    async def _without(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request without a session, which may open one."""
        # While a client is slow to send its request, the SDK already holds a session for it.
        if self._opening[name] >= MAX_SESSIONS:
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": _REFUSED}}
            await JSONResponse(error, 429, {"Retry-After": "1"})(scope, receive, send)
            return
        self._opening[name] += 1
        is_counted = True

        async def watch(message: Message) -> None:
            nonlocal is_counted
            if message["type"] == "http.response.start" and is_counted:
                is_counted = False
                self._start_session(name)
                await self._add_session(name, scope, message)
            await send(message)

        try:
            await self.app(scope, receive, watch)
        finally:
            if is_counted:
                self._start_session(name)

    def _start_session(self, name: str) -> None:
        self._opening[name] -= 1
        if not self._opening[name]:
            del self._opening[name]

    async def _add_session(self, name: str, scope: Scope, message: Message) -> None:
        """Record the session that a response names, and close the user's oldest ones beyond the limit."""
        opened = next((value for key, value in message.get("headers", ()) if key.lower() == _SESSION), None)
        if opened is None or message["status"] >= 400:
            return
        own = self._open.setdefault(name, OrderedDict())
        own[opened] = Session(scope)
        while len(own) > MAX_SESSIONS:
            others = [each for each in own if each != opened]
            oldest = next((each for each in others if not own[each].busy), others[0])
            await self._close(oldest, own.pop(oldest))

    async def _handle(self, name: str, session_id: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request of a session."""
        own = self._open.get(name)
        session = None if own is None else own.get(session_id)
        if session is None:  # it has ended, or is another user's: the SDK responds
            await self.app(scope, receive, send)
            return
        session.busy += 1
        self._open[name].move_to_end(session_id)
        has_ended = False

        async def watch(message: Message) -> None:
            nonlocal has_ended
            if message["type"] == "http.response.start":
                ended = message["status"] < 400 if scope["method"] == "DELETE" else message["status"] == 404
                has_ended = has_ended or ended
            await send(message)

        try:
            await self.app(scope, receive, watch)
        finally:
            session.busy -= 1
            if has_ended:
                self._forget(name, session_id)

    def _forget(self, name: str, ended: bytes) -> None:
        own = self._open.get(name)
        if own is not None:
            own.pop(ended, None)
            if not own:
                del self._open[name]

    async def _close(self, session_id: bytes, session: Session) -> None:
        """End a session as its client would."""
        headers = [each for each in session.scope["headers"] if each[0] not in _BODY]
        scope = {**session.scope, "method": "DELETE", "headers": [*headers, (_SESSION, session_id)]}

        async def nothing() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unheard(message: Message) -> None:
            del message

        await self.app(scope, nothing, unheard)
