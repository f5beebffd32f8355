"""Time limits for calls that may hang, and threads that nobody has to wait for."""

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
"""How long a canceled call may take to clean up, in seconds; after that it is left running."""


_NAME: Final = "supabase-memory-deadline"


class InterruptedCallError(Exception):
    """The call ended with something other than an `Exception`, such as a `CancelledError` that nobody here requested.

    The message is the name of that exception's class, never its text.
    """


class AbandonedError(BaseException):
    """The caller has stopped waiting for the enclosing call, so this one is not started.

    Like a cancellation, it is not caught by code that handles `Exception`.
    """


class _Call:
    """A call with a deadline."""

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
    """The call that this thread runs; threads that it starts do not inherit it."""

    call: _Call | None = None


_HERE: Final = _CurrentCall()


class Stopping:
    """A block that is stopped when the caller stops waiting, so that it holds nothing afterwards.

    Args:
        stop: Interrupts what the block waits for. Runs in its own thread, and the end of the block waits for that
            thread. It receives an event that is set when the block has ended.

    Raises:
        AbandonedError: On entry, if the caller has already stopped waiting.
    """

    def __init__(self, stop: Callable[[threading.Event], None]) -> None:
        self._stop = stop
        self._call = _HERE.call
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start stopping the block."""
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
    """Return how many seconds a step may take within the current deadline.

    Args:
        maximum: The upper limit, in seconds.

    Raises:
        AbandonedError: The deadline has passed.
    """
    call = _HERE.call
    if call is None:
        return maximum
    seconds = call.until - time.monotonic()
    if seconds <= 0:
        raise AbandonedError
    return min(seconds, maximum)


def is_over() -> bool:
    """Return whether the current deadline has passed."""
    call = _HERE.call
    return call is not None and call.until <= time.monotonic()


class Acquirable(Protocol):
    """A thread lock or semaphore."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool:
        """Acquire it."""


def hold(lock: Acquirable) -> None:
    """Acquire a lock or a semaphore, waiting no longer than the current deadline.

    Raises:
        AbandonedError: The deadline passed before it became free.
    """
    call = _HERE.call
    if call is None:
        lock.acquire()
    elif not lock.acquire(timeout=seconds_left(threading.TIMEOUT_MAX)):
        raise AbandonedError


def within(seconds: float, function: Callable[[], T]) -> T:
    """Call a function in its own thread, with this context's variables, and wait for a limited time.

    Args:
        seconds: The longest wait. After that the call continues unattended in a daemon thread; its database waits are
            stopped (`Stopping`), and it starts nothing more (`seconds_left`).
        function: The function to call.

    Returns:
        The function's result.

    Raises:
        TimeoutError: The call took longer.
        InterruptedCallError: The call ended with something other than an `Exception`.
        Exception: Whatever the function raises.
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
    """Call a function in its own thread, with this context's variables, without blocking the event loop.

    Unlike with `asyncio.to_thread`, after a cancellation neither closing the loop nor exiting the process waits for it.

    Args:
        function: The function to call.

    Returns:
        The function's result.

    Raises:
        InterruptedCallError: The call ended with something other than an `Exception`.
        Exception: Whatever the function raises.
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
    """Await for a limited time.

    Unlike `asyncio.timeout`, it does not wait for a call that swallows its cancellation, and a call that cancels itself
    does not cancel the caller.

    Args:
        seconds: The longest wait. After that the call is canceled.
        call: What to await.

    Returns:
        The result of the call.

    Raises:
        TimeoutError: The call took longer.
        InterruptedCallError: The call ended with something other than an `Exception`.
        Exception: Whatever the call raises.
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
    """Await a call and turn anything it raises that is not an `Exception` into one."""
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
    """Retrieve a task's exception, so that asyncio does not log it, with its text, as never retrieved.

    Args:
        task: A finished task; add this function to its done callbacks.
    """
    with suppress(asyncio.CancelledError):
        task.exception()


def _as_error(error: BaseException) -> Exception:
    """Return the error itself, or a substitute with its name if it must not pass through a future or a loop."""
    if isinstance(error, AbandonedError):
        return TimeoutError("no answer in time")
    if isinstance(error, Exception) and not isinstance(error, (StopIteration, StopAsyncIteration)):
        return error
    return InterruptedCallError(type(error).__name__)


def start_thread(function: Callable[[], None]) -> threading.Thread:
    """Start a function that raises nothing in its own thread, with this context's variables.

    Returns:
        The thread, a daemon that may be joined.
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
