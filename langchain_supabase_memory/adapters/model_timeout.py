"""Timeouts for calls of application code, sync or async, with a pause after a timeout."""

from __future__ import annotations

import asyncio
import inspect
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.deadline import awithin, in_thread, within

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

REST_SECONDS: Final = 30.0
"""The pause after a timeout, in seconds, so that not every answer waits for the timeout."""


class ModelTimeout:
    """Calls that may hang, sync and async; neither blocks an event loop.

    Args:
        seconds: The longest wait for one call, in seconds.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._rests_until = 0.0

    def call(self, function: Callable[[], Any]) -> Any:
        """Call a function, and run the coroutine if it returns one.

        Raises:
            TimeoutError: The call timed out, or did so a moment ago.
            Exception: Whatever the function raises.
        """
        with self._one_try():
            return within(self._seconds, partial(resolve_awaitable, function))

    async def acall(self, function: Callable[[], Any]) -> Any:
        """The async twin of `call`, which cancels the call at its deadline."""
        return await self.wait(lambda: aresolve_awaitable(function))

    async def wait(self, function: Callable[[], Awaitable[Any]]) -> Any:
        """Await the result of a function.

        Raises:
            TimeoutError: The call timed out, or did so a moment ago.
            Exception: Whatever the function raises.
        """
        with self._one_try():
            return await awithin(self._seconds, function())

    @contextmanager
    def _one_try(self) -> Iterator[None]:
        if time.monotonic() < self._rests_until:
            raise TimeoutError("it timed out a moment ago")
        try:
            yield
        except TimeoutError:
            self._rests_until = time.monotonic() + REST_SECONDS
            raise


def resolve_awaitable(function: Callable[[], Any]) -> Any:
    """Call a function, and if it returns an awaitable, run that in this thread."""
    answer = function()
    if not inspect.isawaitable(answer):
        return answer
    with asyncio.Runner() as runner:
        return runner.get_loop().run_until_complete(answer)


async def aresolve_awaitable(function: Callable[[], Any]) -> Any:
    """The async twin of `resolve_awaitable`: calls the function in a thread, and awaits its awaitable on the loop."""
    answer = await in_thread(function)
    return await answer if inspect.isawaitable(answer) else answer
