"""Connections that each serve one call at a time. One whose call did not come to its end is closed, not used again.

The libraries' own pools of HTTP connections count a place as taken for good where a call is cancelled at the wrong
moment: between being given its connection and using it, or while it gives the connection back. Here no connection is
shared between calls, and giving one back cannot be interrupted.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from langchain_supabase_memory.deadline import hold, retrieve_exception

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Closable(Protocol):
    """A connection of sync calls."""

    def close(self) -> None:
        """Close it; nothing happens if it is closed."""


C = TypeVar("C", bound=Closable)
T = TypeVar("T")


class Pool(Generic[C]):
    """The connections of sync calls. Every method is safe to call from any thread.

    Args:
        opener: Makes a connection, without I/O.
        size: The most at once; who comes then waits.
    """

    def __init__(self, opener: Callable[[], C], size: int) -> None:
        self._opener = opener
        self._slots = threading.BoundedSemaphore(size)
        self._idle: list[C] = []
        self._closed = False

    def take(self) -> C:
        """A connection for one call.

        Raises:
            AbandonedError: None became free before the deadline of the call.
        """
        hold(self._slots)
        try:
            with suppress(IndexError):
                return self._idle.pop()
            return self._opener()
        except BaseException:
            self._slots.release()
            raise

    def give_back(self, connection: C, *, is_usable: bool) -> None:
        """End a call.

        Args:
            connection: What `take` gave.
            is_usable: Whether its call came to its end, so that the next can use it.
        """
        try:
            if is_usable and not self._closed:
                self._idle.append(connection)
            else:
                connection.close()
        finally:
            self._slots.release()

    def close(self) -> None:
        """Close what is idle; what is in use is closed when it is given back."""
        self._closed = True
        while self._idle:
            with suppress(IndexError):
                self._idle.pop().close()


class AsyncPool(Generic[T]):
    """The connections of one event loop.

    Args:
        opener: Makes a connection.
        closer: Closes it; nothing happens if it is closed.
        size: The most at once; who comes then waits.
    """

    def __init__(self, opener: Callable[[], Awaitable[T]], closer: Callable[[T], Awaitable[None]], size: int) -> None:
        self._opener = opener
        self._closer = closer
        self._slots = asyncio.Semaphore(size)
        self._idle: list[T] = []
        self._leaving: dict[asyncio.Task[None], T] = {}
        self._closed = False

    async def take(self) -> T:
        """A connection for one call."""
        await self._slots.acquire()
        try:
            return self._idle.pop() if self._idle else await self._opener()
        except BaseException:
            self._slots.release()
            raise

    def give_back(self, connection: T, *, is_usable: bool) -> None:
        """End a call. Arguments as for `Pool.give_back`."""
        if is_usable and not self._closed:
            self._idle.append(connection)
        else:
            # In a task of its own: who was cancelled may be cancelled again while it waits.
            task = asyncio.create_task(self._close(connection))
            self._leaving[task] = connection
            task.add_done_callback(self._left)
        self._slots.release()

    async def close(self) -> None:
        """Close what is idle or being closed; what is in use is closed when it is given back."""
        self._closed = True
        closing = [*self._idle, *self._leaving.values()]
        self._idle = []
        for connection in closing:
            await self._closer(connection)

    async def _close(self, connection: T) -> None:
        await self._closer(connection)

    def _left(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():  # else the loop ends, and `close` comes
            del self._leaving[task]
            retrieve_exception(task)
