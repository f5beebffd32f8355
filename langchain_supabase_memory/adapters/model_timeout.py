"""Waiting for something of the application's own, sync or async: only so long, and not again right after in vain."""

from __future__ import annotations

import asyncio
import inspect
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.deadline import awithin, in_thread, within

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

REST_SECONDS: Final = 30.0
"""How long what was waited for in vain is left alone, so that not every answer waits for it."""


class ModelTimeout:
    """Calls that may hang, in both colors; neither blocks an event loop.

    Args:
        seconds: The longest wait for one call, in seconds.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._rests_until = 0.0

    def call(self, function: Callable[[], Any]) -> Any:
        """Call a function, and where that gives a coroutine, run it.

        Raises:
            TimeoutError: It took too long, or did so a moment ago.
            Exception: What it raises.
        """
        self._check()
        try:
            return within(self._seconds, partial(resolve_awaitable, function))
        except TimeoutError:
            self._rests_until = time.monotonic() + REST_SECONDS
            raise

    async def acall(self, function: Callable[[], Any]) -> Any:
        """The async twin of `call`, which ends the call at its deadline."""
        return await self.wait(lambda: aresolve_awaitable(function))

    async def wait(self, function: Callable[[], Awaitable[Any]]) -> Any:
        """Await what a function gives.

        Raises:
            TimeoutError: It took too long, or did so a moment ago.
            Exception: What it raises.
        """
        self._check()
        try:
            return await awithin(self._seconds, function())
        except TimeoutError:
            self._rests_until = time.monotonic() + REST_SECONDS
            raise

    def _check(self) -> None:
        if time.monotonic() < self._rests_until:
            raise TimeoutError("it was waited for in vain a moment ago")


def resolve_awaitable(function: Callable[[], Any]) -> Any:
    """Call a function, and where that gives something to await, run that in this thread."""
    answer = function()
    if not inspect.isawaitable(answer):
        return answer
    with asyncio.Runner() as runner:
        return runner.get_loop().run_until_complete(answer)


async def aresolve_awaitable(function: Callable[[], Any]) -> Any:
    """The async twin of `resolve_awaitable`: the function in a thread, and what is to be awaited on the loop."""
    answer = await in_thread(function)
    return await answer if inspect.isawaitable(answer) else answer
