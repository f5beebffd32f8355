"""Calls that may hang: a limit of time around them, and threads that nobody has to wait for."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

T = TypeVar("T")

_CLEANING_SECONDS: Final = 1.0
"""How long what was cancelled may take to come to its end; what does not is left to itself."""


_NAME: Final = "supabase-memory-deadline"


class InterruptedCallError(Exception):
    """What was called ended by what is no error of its kind, such as a `CancelledError` that nobody here asked for.

    Its text is the name of that, and never what it says.
    """


class AbandonedError(BaseException):
    """Nobody waits any more for the call that this would belong to; it is not begun.

    As with a cancellation, what goes on after an `Exception` does not go on after this.
    """


class _Call:
    """A call that is waited for only so long."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.is_abandoned = False
        self.stopping: set[Stopping] = set()
        self.lock = threading.Lock()

    def abandon(self) -> None:
        with self.lock:
            self.is_abandoned = True
            for each in self.stopping:
                each.begin()


class _CurrentCall(threading.local):
    """What is waited for in this thread; a thread that is begun in it does not belong to it."""

    call: _Call | None = None


_HERE: Final = _CurrentCall()


class Stopping:
    """A block whose call is stopped when nobody waits for it any more, so that it holds nothing after that.

    Args:
        stop: Ends what the block waits for, in a thread of its own, which the end of the block waits for. It receives
            an event that is set when the block has come to its end.

    Raises:
        AbandonedError: At the beginning, if nobody waits already.
    """

    def __init__(self, stop: Callable[[threading.Event], None]) -> None:
        self._stop = stop
        self._call = _HERE.call
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Stop it."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._stop, args=(self._ended,), daemon=True, name=_NAME)
        self._thread.start()

    def __enter__(self) -> None:
        if self._call is not None:
            with self._call.lock:
                if self._call.is_abandoned:
                    raise AbandonedError
                self._call.stopping.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._call is not None:
            with self._call.lock:
                self._call.stopping.discard(self)
            if self._thread is not None:
                self._ended.set()
                self._thread.join()


def seconds_left(maximum: float) -> float:
    """How many seconds something may take, where it is called within a deadline.

    Args:
        maximum: The most, in seconds.

    Raises:
        AbandonedError: The deadline is over.
    """
    call = _HERE.call
    if call is None:
        return maximum
    seconds = call.until - time.monotonic()
    if seconds <= 0:
        raise AbandonedError
    return min(seconds, maximum)


def is_over() -> bool:
    """Whether the deadline that this was called within is over."""
    call = _HERE.call
    return call is not None and call.until <= time.monotonic()


class Acquirable(Protocol):
    """A lock or a semaphore of threads."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool:
        """Take it."""


def hold(lock: Acquirable) -> None:
    """Take a lock or a semaphore, and wait for it no longer than the deadline.

    Raises:
        AbandonedError: It did not become free before the deadline.
    """
    call = _HERE.call
    if call is None:
        lock.acquire()
    elif not lock.acquire(timeout=seconds_left(threading.TIMEOUT_MAX)):
        raise AbandonedError


def within(seconds: float, function: Callable[[], T]) -> T:
    """Call a function in a thread of its own, with this context's variables, and wait for it only so long.

    Args:
        seconds: The longest wait. After it the call goes on unheeded, in a thread that does not keep the process alive;
            what it waits for at the database is stopped (`Stopping`), and nothing more is begun (`left`).
        function: What to call.

    Returns:
        What it returns.

    Raises:
        TimeoutError: It took longer.
        InterruptedCallError: It ended by what is no `Exception`.
        Exception: What it raises.
    """
    done: list[T] = []
    failed: list[Exception] = []
    call = _Call(time.monotonic() + seconds)
    outer = _HERE.call
    if outer is not None:
        call.until = min(call.until, outer.until)

    def called() -> T:
        _HERE.call = call
        return function()

    _started(called, done.append, failed.append).join(call.until - time.monotonic())
    if failed:
        raise failed[0]
    if not done:
        call.abandon()
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
        InterruptedCallError: It ended by what is no `Exception`.
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
        InterruptedCallError: It ended by what is no `Exception`.
        Exception: What it raises.
    """
    task = asyncio.create_task(_unbroken(call))
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            task.add_done_callback(retrieve_exception)
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
        raise InterruptedCallError("CancelledError") from None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        made = _as_error(error)
        if made is error:
            raise
        raise made from None


def retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Look at what came of a task, so that asyncio does not log it, with its text, as something nobody looked at.

    Args:
        task: A task that has ended; to be added to its done callbacks.
    """
    with suppress(asyncio.CancelledError):
        task.exception()


def _as_error(error: BaseException) -> Exception:
    """The error itself, or where it may not pass through a future or a loop, one with its name."""
    if isinstance(error, AbandonedError):
        return TimeoutError("no answer in time")
    if isinstance(error, Exception) and not isinstance(error, (StopIteration, StopAsyncIteration)):
        return error
    return InterruptedCallError(type(error).__name__)


def start_thread(function: Callable[[], None]) -> threading.Thread:
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

    thread = threading.Thread(target=call, daemon=True, name=_NAME)
    thread.start()
    return thread
