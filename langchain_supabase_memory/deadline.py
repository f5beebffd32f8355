"""Calls that may hang: a limit of time around them, and threads that nobody has to wait for."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

_CLEANING_SECONDS: Final = 1.0
"""How long what was cancelled may take to come to its end; what does not is left to itself."""


class BrokenOffError(Exception):
    """What was called ended by what is no error of its kind, such as a `CancelledError` that nobody here asked for.

    Its text is the name of that, and never what it says.
    """


def within(seconds: float, function: Callable[[], T]) -> T:
    """Call a function in a thread of its own, with this context's variables, and wait for it only so long.

    Args:
        seconds: The longest wait. After it the call goes on unheeded, in a thread that does not keep the process alive.
        function: What to call.

    Returns:
        What it returns.

    Raises:
        TimeoutError: It took longer.
        BrokenOffError: It ended by what is no `Exception`.
        Exception: What it raises.
    """
    done: list[T] = []
    failed: list[Exception] = []
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
        BrokenOffError: It ended by what is no `Exception`.
        Exception: What it raises.
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


async def awithin(seconds: float, call: Awaitable[T]) -> T:
    """Await only so long.

    Unlike `asyncio.timeout`: a call that swallows its cancellation is not waited for, and one that cancels itself does
    not cancel who waits.

    Args:
        seconds: The longest wait. After it the call is cancelled.
        call: What to await.

    Returns:
        What it returns.

    Raises:
        TimeoutError: It took longer.
        BrokenOffError: It ended by what is no `Exception`.
        Exception: What it raises.
    """
    task = asyncio.create_task(_unbroken(call))
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            task.add_done_callback(_heeded)
            task.cancel()
            await asyncio.wait({task}, timeout=_CLEANING_SECONDS)
    if task.cancelled() or not task.done():
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    return task.result()


async def _unbroken(call: Awaitable[T]) -> T:
    """Await a call; whatever it ends by that is no `Exception` becomes one."""
    try:
        return await call
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise BrokenOffError("CancelledError") from None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        made = _as_error(error)
        if made is error:
            raise
        raise made from None


def _heeded(task: asyncio.Task[Any]) -> None:
    """Look at what came of a task, so that asyncio does not log it, with its text, as something nobody looked at."""
    with suppress(asyncio.CancelledError):
        task.exception()


def _as_error(error: BaseException) -> Exception:
    """The error itself, or where it may not pass through a future or a loop, one with its name."""
    if isinstance(error, Exception) and not isinstance(error, (StopIteration, StopAsyncIteration)):
        return error
    return BrokenOffError(type(error).__name__)


def started(function: Callable[[], None]) -> threading.Thread:
    """Call a function that raises nothing in a thread of its own, with this context's variables, and go on.

    Returns:
        The thread, which may be joined and does not keep the process alive.
    """
    return _started(function, lambda _: None, lambda _: None)


def _started(
    function: Callable[[], T], done: Callable[[T], None], failed: Callable[[Exception], None]
) -> threading.Thread:
    context = copy_context()

    def call() -> None:
        try:
            answer = context.run(function)
        except BaseException as error:
            failed(_as_error(error))
        else:
            done(answer)

    thread = threading.Thread(target=call, daemon=True, name="supabase-memory-deadline")
    thread.start()
    return thread
