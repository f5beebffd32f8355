"""Connection pools: each connection serves one call at a time, and is closed if its call did not complete.

The HTTP libraries' own pools leak a slot if a call is canceled at the wrong moment: after it received its connection
and before it uses it, or while it returns the connection. Here calls do not share connections, and returning one cannot
be interrupted.
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
    """A connection for sync calls."""

    def close(self) -> None:
        """Close the connection; does nothing if it is closed."""


C = TypeVar("C", bound=Closable)
T = TypeVar("T")


class Pool(Generic[C]):
    """The pool for sync calls. Every method is thread-safe.

    Args:
        opener: Creates a connection, without I/O.
        size: The maximum number of connections; further callers wait.
    """

    def __init__(self, opener: Callable[[], C], size: int) -> None:
        self._opener = opener
        self._slots = threading.BoundedSemaphore(size)
        self._idle: list[C] = []
        self._closed = False

    def take(self) -> C:
        """Return a connection for one call.

        Raises:
            AbandonedError: None became free before the call's deadline.
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
        """Return a connection after its call.

        Args:
            connection: The connection from `take`.
            is_usable: Whether its call completed, so that the next call can use it.
        """
        try:
            if is_usable and not self._closed:
                self._idle.append(connection)
            else:
                connection.close()
        finally:
            self._slots.release()

    def close(self) -> None:
        """Close idle connections; connections in use are closed when they are returned."""
        self._closed = True
        while self._idle:
            with suppress(IndexError):
                self._idle.pop().close()


class AsyncPool(Generic[T]):
    """The pool of one event loop.

    Args:
        opener: Creates a connection.
        closer: Closes it; does nothing if it is closed.
        size: The maximum number of connections; further callers wait.
    """

    def __init__(self, opener: Callable[[], Awaitable[T]], closer: Callable[[T], Awaitable[None]], size: int) -> None:
        self._opener = opener
        self._closer = closer
        self._slots = asyncio.Semaphore(size)
        self._idle: list[T] = []
        self._leaving: dict[asyncio.Task[None], T] = {}
        self._closed = False

    async def take(self) -> T:
        """Return a connection for one call."""
        await self._slots.acquire()
        try:
            return self._idle.pop() if self._idle else await self._opener()
        except BaseException:
            self._slots.release()
            raise

    def give_back(self, connection: T, *, is_usable: bool) -> None:
        """Return a connection after its call. Arguments as for `Pool.give_back`."""
        if is_usable and not self._closed:
            self._idle.append(connection)
        else:
            # In its own task: a canceled caller may be canceled again while it waits.
            task = asyncio.create_task(self._close(connection))
            self._leaving[task] = connection
            task.add_done_callback(self._left)
        self._slots.release()

    async def close(self) -> None:
        """Close idle connections and those being closed; connections in use are closed when they are returned."""
        self._closed = True
        closing = [*self._idle, *self._leaving.values()]
        self._idle = []
        for connection in closing:
            await self._closer(connection)

    async def _close(self, connection: T) -> None:
        await self._closer(connection)

    def _left(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():  # otherwise the loop is ending, and `close` follows
            del self._leaving[task]
            retrieve_exception(task)
