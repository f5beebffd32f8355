"""One async resource per event loop, opened at its first use there and closed with the loop.

Async clients are bound to the loop in which they were first used: a client that is reused in a second `asyncio.run`
fails with "Event loop is closed". So each loop gets its own, held by an async generator, which `asyncio.run` and every
other runner finishes (`loop.shutdown_asyncgens`) before it closes the loop.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Generic, TypeVar

from langchain_supabase_memory import fork
from langchain_supabase_memory.deadline import retrieve_exception

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Holds one `T` for each running event loop.

    Args:
        opener: Opens a `T`.
        closer: Closes it. Neither may be an async generator: a loop that shuts down finishes all of them at once.
    """

    def __init__(self, opener: Callable[[], Awaitable[T]], closer: Callable[[T], Awaitable[None]]) -> None:
        self._opener = opener
        self._closer = closer
        self._held: dict[asyncio.AbstractEventLoop, _LoopValue[T]] = {}
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        if self._held:
            fork.leave_to_parent(self._held)  # when an async generator is freed, its loop closes it
        self._held = {}

    async def get(self) -> T:
        """Return the running loop's `T`, opening it at the first use."""
        loop = asyncio.get_running_loop()
        held = self._held.setdefault(loop, _LoopValue())
        if held.holder is None:
            if held.opening is None:
                # In its own task: all callers wait for one opening, and canceling one caller does not cancel it for the
                # others.
                held.opening = asyncio.create_task(self._open(loop, held))
                held.opening.add_done_callback(retrieve_exception)
            await asyncio.shield(held.opening)
        return held.value

    async def aclose(self, value: T | None = None) -> None:
        """Close the running loop's `T`, if there is one (and if it is this `value`, if one is passed).

        The next `get` opens a fresh one.
        """
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is not None and held.holder is not None and (value is None or held.value is value):
            del self._held[loop]
            await held.holder.aclose()

    async def _open(self, loop: asyncio.AbstractEventLoop, slot: _LoopValue[T]) -> None:
        try:
            holder = self._hold(loop)
            slot.value = await anext(holder)
            slot.holder = holder
        finally:
            slot.opening = None

    async def _hold(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[T, None]:
        value = await self._opener()
        process = os.getpid()
        try:
            yield value
        finally:
            if os.getpid() == process:  # a loop from before a fork ends in the child, too
                held = self._held.get(loop)
                if held is not None and held.holder is not None and held.value is value:
                    del self._held[loop]  # the loop is shutting down
                await self._closer(value)


class _LoopValue(Generic[T]):
    """One loop's entry; `value` is set once `holder` is."""

    value: T

    def __init__(self) -> None:
        self.opening: asyncio.Task[None] | None = None
        self.holder: AsyncGenerator[T, None] | None = None
