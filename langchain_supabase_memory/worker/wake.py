"""What wakes a worker: a notification of the database where a connection can listen, else the clock."""

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
"""The channel that the trigger notifies."""

_AGAIN_SECONDS: Final = 10.0


class Wake:
    """Waits for work, as an async context manager. A notification only saves time: what is due is found by looking.

    Args:
        transport: The memory's. A direct connection listens; behind a transaction pooler nothing is heard, and over
            the Data API nothing can be: then the clock alone wakes.
        poll_seconds: The longest wait, in seconds, give or take a quarter.
        debounce_seconds: How long after a notification it rings, in seconds; several in that time ring once.
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
            if not self._listener.cancelling():  # twice, and the driver cannot end its query
                self._listener.cancel()
            await asyncio.wait([self._listener])
        if self._settling is not None:
            self._settling.cancel()

    def ring(self) -> None:
        """Wake whoever waits."""
        self._rang.set()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for work.

        Args:
            seconds: No longer than this, in seconds; the polling time by default.

        Returns:
            Whether it rang.
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
        """Note a notification, and go on at once: a listener that is slow would fill the server's queue."""
        if self._settle_seconds == 0:
            self._rang.set()
        elif self._settling is None:
            self._settling = asyncio.get_running_loop().call_later(self._settle_seconds, self._after_debounce)
        else:
            self._has_more = True

    def _after_debounce(self) -> None:
        self._rang.set()
        self._settling = None
        if self._has_more:  # that has not settled yet
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
            except Exception as error:  # the clock goes on
                _logger.debug("Listening for work ended; it begins again", extra=error_fields(error))
            await asyncio.sleep(_AGAIN_SECONDS * random.uniform(0.5, 1))
