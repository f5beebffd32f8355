"""Connection pools: each connection serves one call at a time, and is closed if its call did not complete.

The libraries' own pools do not fit. Those of HTTP leak a slot if a call is canceled at the wrong moment: after it
received its connection and before it uses it, or while it returns the connection. Psycopg's takes its connections in
turn, so that each has to plan every statement, and opens a second one while the first is under way. Here calls do not
share connections, the one that was returned last is taken first, and returning one cannot be interrupted.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from langchain_supabase_memory.deadline import hold, retrieve_exception, seconds_left

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Closable(Protocol):
    """A connection for sync calls."""

    def close(self) -> None:
        """Close the connection; does nothing if it is closed."""


C = TypeVar("C", bound=Closable)
T = TypeVar("T")

_IDLE_SECONDS: Final = 120.0
"""How long more connections than one stay open without a call, in seconds: a server may have few for all processes."""


class _Idle(Generic[T]):
    """The idle connections of a pool, the one that was returned last on top."""

    def __init__(self) -> None:
        self._connections: list[tuple[T, float]] = []

    def __len__(self) -> int:
        return len(self._connections)

    def take(self) -> T:
        """Return the one that was returned last.

        Raises:
            IndexError: There is none.
        """
        return self._connections.pop()[0]

    def add(self, connection: T) -> list[T]:
        """Add one, and return what has been idle for too long."""
        self._connections.append((connection, time.monotonic()))
        return self.take_stale()

    def take_stale(self) -> list[T]:
        """Return those that have been idle for too long, without the one that was returned last."""
        until = time.monotonic() - _IDLE_SECONDS
        stale = [connection for connection, since in self._connections[:-1] if since <= until]
        del self._connections[: len(stale)]
        return stale

    def take_all(self) -> list[T]:
        """Return all of them."""
        taken, self._connections = self._connections, []
        return [connection for connection, _ in taken]


class Pool(Generic[C]):
    """The pool for sync calls. Every method is thread-safe.

    Args:
        opener: Creates a connection.
        size: The maximum number of connections; further callers wait.
        first: A connection that is open already.
    """

    def __init__(self, opener: Callable[[], C], size: int, first: C | None = None) -> None:
        self._opener = opener
        self._slots = threading.BoundedSemaphore(size)
        self._returned = threading.Condition()
        self._idle: _Idle[C] = _Idle()
        self._used = 0
        self._opening = 0
        self._outages = 0
        self._timer: threading.Timer | None = None
        self._closed = False
        if first is not None:
            self._idle.add(first)

    def take(self) -> C:
        """Return a connection for one call. If no more can be opened, wait for one that is in use or being opened.

        Raises:
            AbandonedError: None became free before the call's deadline.
            Exception: None can be opened, and none is in use.
        """
        hold(self._slots)
        try:
            return self._idle_or_new()
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
            with self._returned:
                self._used -= 1
                closing = self._idle.add(connection) if is_usable and not self._closed else [connection]
                self._watch_idle()
                self._returned.notify_all()
            for each in closing:
                each.close()
        finally:
            self._slots.release()

    def close_stale(self) -> None:
        """Close what has been idle for too long."""
        with self._returned:
            self._timer = None
            closing = self._idle.take_stale()
            self._watch_idle()
        for each in closing:
            each.close()

    def close(self) -> None:
        """Close idle connections; connections in use are closed when they are returned."""
        with self._returned:
            self._closed = True
            closing = self._idle.take_all()
            if self._timer is not None:
                self._timer.cancel()
        for each in closing:
            each.close()

    def _watch_idle(self) -> None:
        """See to it that what becomes idle for too long is closed, also if no call follows."""
        if self._timer is None and len(self._idle) > 1:
            timer = threading.Timer(_IDLE_SECONDS, _close_stale, [weakref.ref(self)])
            timer.daemon = True
            with suppress(RuntimeError):  # the process ends, or may have no more threads
                timer.start()
                self._timer = timer

    def _idle_or_new(self) -> C:
        while True:
            with self._returned:
                if self._idle:
                    self._used += 1
                    return self._idle.take()
                self._opening += 1
            try:
                connection = self._opener()
            except BaseException as error:
                with self._returned:
                    self._opening -= 1
                    if not (self._used or self._opening or self._idle):
                        self._outages += isinstance(error, Exception)
                        self._returned.notify_all()
                if not isinstance(error, Exception) or not self._wait_for_idle():
                    raise
            else:
                with self._returned:
                    self._opening -= 1
                    self._used += 1
                return connection

    def _wait_for_idle(self) -> bool:
        """Wait until a connection is idle, or until none is in use or being opened.

        Returns:
            Whether to try again; not if the pool has no connection, and all that were being opened were refused, too.
        """
        with self._returned:
            outages = self._outages
            if not (self._used or self._opening):
                return bool(self._idle)
            while (self._used or self._opening) and not self._idle and outages == self._outages:
                self._returned.wait(seconds_left(threading.TIMEOUT_MAX))
            return outages == self._outages


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
        self._returned = asyncio.Event()
        self._idle: _Idle[T] = _Idle()
        self._used = 0
        self._opening = 0
        self._outages = 0
        self._timer: asyncio.TimerHandle | None = None
        self._leaving: dict[asyncio.Task[None], T] = {}
        self._closed = False

    async def take(self) -> T:
        """Return a connection for one call. If no more can be opened, wait for one that is in use or being opened.

        Raises:
            Exception: None can be opened, and none is in use.
        """
        await self._slots.acquire()
        try:
            connection = await self._idle_or_new()
        except BaseException:
            self._slots.release()
            raise
        self._used += 1
        return connection

    def give_back(self, connection: T, *, is_usable: bool) -> None:
        """Return a connection after its call. Arguments as for `Pool.give_back`."""
        self._used -= 1
        closing = self._idle.add(connection) if is_usable and not self._closed else [connection]
        self._watch_idle()
        self._returned.set()
        self._leave(closing)
        self._slots.release()

    def close_stale(self) -> None:
        """Close what has been idle for too long."""
        self._timer = None
        self._leave(self._idle.take_stale())
        self._watch_idle()

    async def close(self) -> None:
        """Close idle connections and those being closed; connections in use are closed when they are returned."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for connection in [*self._idle.take_all(), *self._leaving.values()]:
            await self._closer(connection)

    async def _idle_or_new(self) -> T:
        while not self._idle:
            self._opening += 1
            try:
                connection = await self._opener()
            except BaseException as error:
                self._opening -= 1
                if not (self._used or self._opening or self._idle):
                    self._outages += isinstance(error, Exception)
                    self._returned.set()
                if not isinstance(error, Exception) or not await self._wait_for_idle():
                    raise
            else:
                self._opening -= 1
                return connection
        return self._idle.take()

    async def _wait_for_idle(self) -> bool:
        """Wait until a connection is idle, or until none is in use or being opened. Returns as for `Pool`."""
        outages = self._outages
        if not (self._used or self._opening):
            return bool(self._idle)
        while (self._used or self._opening) and not self._idle and outages == self._outages:
            self._returned.clear()
            await self._returned.wait()
        return outages == self._outages

    def _watch_idle(self) -> None:
        """The twin of `Pool._watch_idle`."""
        if self._timer is None and len(self._idle) > 1:
            self._timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, _close_stale, weakref.ref(self))

    def _leave(self, connections: list[T]) -> None:
        """Close connections, each in its own task: a canceled caller may be canceled again while it waits."""
        for each in connections:
            task = asyncio.create_task(self._close(each))
            self._leaving[task] = each
            task.add_done_callback(self._left)

    async def _close(self, connection: T) -> None:
        await self._closer(connection)

    def _left(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():  # otherwise the loop is ending, and `close` follows
            del self._leaving[task]
            retrieve_exception(task)


def _close_stale(reference: Callable[[], Pool[Any] | AsyncPool[Any] | None]) -> None:
    """Close what a pool has had idle for too long, if there still is the pool."""
    pool = reference()
    if pool is not None:
        pool.close_stale()
