"""Wake a worker on a database notification if the connection can listen, else on a timer."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.adapters.telemetry.logs import error_fields
from langchain_supabase_memory.adapters.transports.breaker import BreakingTransport

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Self

    from langchain_supabase_memory.adapters.transports.base import Transport

_logger = logging.getLogger(__name__)

CHANNEL: Final = "memory_work"
"""The notification channel of the trigger."""

_AGAIN_SECONDS: Final = 10.0


class Wake:
    """Wait for work, as an async context manager. Notifications only save time: polling finds all due work.

    Args:
        transport: The memory's transport. A direct connection listens; a transaction pooler delivers no notifications,
            and the Data API cannot listen, so then only the timer wakes the worker.
        poll_seconds: The maximum wait, in seconds, plus or minus a quarter.
        debounce_seconds: The delay after a notification, in seconds; several in that time wake the worker once.
    """

    def __init__(self, transport: Transport, poll_seconds: float, debounce_seconds: float = 0) -> None:
        inner = transport.inner if isinstance(transport, BreakingTransport) else transport
        self._listen: Callable[..., Any] | None = getattr(inner, "alisten", None)
        self._poll_seconds = poll_seconds
        self._settle_seconds = debounce_seconds
        self._rang = asyncio.Event()
        self._listener: asyncio.Task[None] | None = None
        self._settling: asyncio.TimerHandle | None = None
        self._has_more = False

    async def __aenter__(self) -> Self:
        if self._listen is not None:
            self._listener = asyncio.create_task(self._hear(self._listen))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            if not self._listener.cancelling():  # a second cancellation would stop the driver from ending its query
                self._listener.cancel()
            await asyncio.wait([self._listener])
        if self._settling is not None:
            self._settling.cancel()

    def ring(self) -> None:
        """Wake the waiting worker."""
        self._rang.set()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for work.

        Args:
            seconds: The maximum wait, in seconds; the polling interval by default.

        Returns:
            Whether it was woken; false after the maximum wait.
        """
        longest = self._poll_seconds * random.uniform(0.75, 1.25) if seconds is None else seconds
        try:
            async with asyncio.timeout(max(longest, 0)):
                await self._rang.wait()
        except TimeoutError:
            return False
        self._rang.clear()
        return True

    def _on_notification(self) -> None:
        """Record a notification and return at once, because a slow listener would fill the server's queue."""
        if self._settle_seconds == 0:
            self._rang.set()
        elif self._settling is None:
            self._settling = asyncio.get_running_loop().call_later(self._settle_seconds, self._after_debounce)
        else:
            self._has_more = True

    def _after_debounce(self) -> None:
        self._rang.set()
        self._settling = None
        if self._has_more:  # more notifications arrived meanwhile: debounce again
            self._has_more = False
            self._on_notification()

    async def _hear(self, listen: Callable[..., Any]) -> None:
        while True:
            try:
                async with aclosing(listen(CHANNEL)) as heard:
                    async for _ in heard:
                        self._on_notification()
            except asyncio.CancelledError:
                raise
            except Exception as error:  # the timer still works
                _logger.debug("Listening for work stopped; retrying", extra=error_fields(error))
            await asyncio.sleep(_AGAIN_SECONDS * random.uniform(0.5, 1))
