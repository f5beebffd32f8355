"""Notifies pages of changes by server-sent events without data."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol

from anyio import CancelScope
from starlette.responses import StreamingResponse

from langchain_supabase_memory.adapters.telemetry.logs import error_fields
from langchain_supabase_memory.errors import SupabaseMemoryError, UnavailableError
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens import conversation_header, conversations, profile, queue, space
from langchain_supabase_memory.worker.wake import Wake

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request

    from langchain_supabase_memory.adapters.transports.base import Transport

POLL_SECONDS: Final = 2.0
"""The polling interval without notifications, in seconds."""

DEBOUNCE_SECONDS: Final = 0.3
"""How long to wait after a notification, in seconds; further ones in that time are merged."""

STREAM_SECONDS: Final = 30.0
"""How long one stream lasts, in seconds; the page then opens another.

So a server that waits for its connections can stop, even if it cannot notify this application, and the user is
authenticated again.
"""

_AWAY: Final = "away"

_logger = logging.getLogger(__name__)


class ChangeNotifier:
    """Notifies all open pages when something may have changed; idle without pages.

    Args:
        transport: A transport that can listen to the database; `None` to only poll.

    Attributes:
        pages: The number of open pages.
        stopped: Whether every page has been released.
    """

    def __init__(self, transport: Transport | None) -> None:
        self._transport = transport
        self.pages = 0
        self._event = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.stopped = False

    def stop(self) -> None:
        """Release every page, when the server stops."""
        self.stopped = True
        self._notify()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Notify one more page while the block runs."""
        self.pages += 1
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            self.pages -= 1
            if not self.pages and self._task is not None:
                task, self._task = self._task, None
                task.cancel()
                with CancelScope(shield=True):
                    await asyncio.wait([task])  # its connection closes before the loop does

    async def wait(self, seconds: float | None = None) -> None:
        """Wait for the next notification; return at once after `stop`.

        Args:
            seconds: The timeout in seconds; `None` for no timeout.
        """
        if not self.stopped:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._event.wait()

    async def _run(self) -> None:
        level = logging.WARNING
        while True:
            try:
                if self._transport is not None:
                    await self._listen(self._transport)
            except Exception as error:  # otherwise no page would be notified again
                text = "The inspector cannot listen for notifications; it polls instead"
                _logger.log(level, text, extra=error_fields(error))
                level = logging.DEBUG  # it is retried continually
            await asyncio.sleep(POLL_SECONDS)
            self._notify()

    async def _listen(self, transport: Transport) -> None:
        async with Wake(transport, POLL_SECONDS, DEBOUNCE_SECONDS) as wake:
            while True:
                await wake.wait()
                self._notify()

    def _notify(self) -> None:
        self._event.set()
        self._event = asyncio.Event()


class _Versioned(Protocol):
    @property
    def etag(self) -> str: ...


_LOADERS: Final[dict[str, Callable[[RequestContext], Awaitable[_Versioned]]]] = {
    "conversation": conversation_header.load_header,
    "list": conversations.list_conversations,
    "queue": queue.load_queue,
    "profile": profile.load_profile,
    "space": space.load_space,
}
"""What loads the data that a page is about; another page asks only whether the database is there."""


async def _version(context: RequestContext) -> str:
    load = _LOADERS.get(context.query.get("about", ""))
    if load is not None:
        return (await load(context)).etag
    await context.owned(context.reader).work.astatus(limit=1)
    return "there"


async def events(request: Request) -> StreamingResponse:
    """Send `changed` when the page's data has changed, `away` and `back` for the database, and `again` at the end."""
    context = RequestContext(request)
    return StreamingResponse(_event_stream(context), 200, {"x-accel-buffering": "no"}, "text/event-stream")


async def _event_stream(context: RequestContext) -> AsyncIterator[str]:
    etag = context.query.get("seen", "")
    notifier, clock = context.state.notifier, asyncio.get_running_loop().time
    end = clock() + STREAM_SECONDS
    async with notifier.listening():
        yield "retry: 2000\n\n"
        while not notifier.stopped and clock() < end:
            try:
                # A disconnecting client cancels repeatedly, and the driver could not end its query.
                with CancelScope(shield=True):
                    await context.admit()
                    now = await _version(context)
            except SupabaseMemoryError as error:
                # A deleted conversation is a change as well; the page shows the error.
                now = _AWAY if isinstance(error, UnavailableError) else type(error).__name__
            if now != etag:
                yield _event(_AWAY if now == _AWAY else "back" if etag == _AWAY else "changed")
            else:
                yield ": \n\n"  # so that disconnected clients are detected
            etag = now
            await notifier.wait(end - clock())
        if not notifier.stopped:
            yield _event("again")


def _event(name: str) -> str:
    return f"event: {name}\ndata:\n\n"
