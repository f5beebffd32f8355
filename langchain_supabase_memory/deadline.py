"""Calls that may hang: a limit of time around them, and threads that nobody has to wait for."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def within(seconds: float, function: Callable[[], T]) -> T:
    """Call a function in a thread of its own, with this context's variables, and wait for it only so long.

    Args:
        seconds: The longest wait. After it the call goes on unheeded, in a thread that does not keep the process alive.
        function: What to call.

    Returns:
        What it returns.

    Raises:
        TimeoutError: It took longer.
        BaseException: What it raises.
    """
    done: list[T] = []
    failed: list[BaseException] = []
    _started(function, done.append, failed.append).join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    return done[0]


async def in_thread(function: Callable[[], T]) -> T:
    """Call a function in a thread of its own, with this context's variables, without blocking the event loop.

    Unlike `asyncio.to_thread`: when the wait is cancelled, neither the loop's end nor the process's waits for it.

    Args:
        function: What to call.

    Returns:
        What it returns.

    Raises:
        BaseException: What it raises.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(settled: Callable[[], None]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: None if future.done() else settled())

    _started(
        function,
        lambda answer: settle(lambda: future.set_result(answer)),
        lambda error: settle(lambda: future.set_exception(error)),
    )
    return await future


def started(function: Callable[[], None]) -> threading.Thread:
    """Call a function that raises nothing in a thread of its own, with this context's variables, and go on.

    Returns:
        The thread, which may be joined and does not keep the process alive.
    """
    return _started(function, lambda _: None, lambda _: None)


def _started(
    function: Callable[[], T], done: Callable[[T], None], failed: Callable[[BaseException], None]
) -> threading.Thread:
    context = copy_context()

    def call() -> None:
        try:
            answer = context.run(function)
        except BaseException as error:
            failed(error)
        else:
            done(answer)

    thread = threading.Thread(target=call, daemon=True, name="supabase-memory-deadline")
    thread.start()
    return thread
