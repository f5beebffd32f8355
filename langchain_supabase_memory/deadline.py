"""Time limits for calls that may hang, and threads that nobody has to wait for."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from langchain_supabase_memory import fork

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

_CLEANING_SECONDS: Final = 1.0
"""How long a canceled call may take to clean up, in seconds; after that it is left running."""


_NAME: Final = "supabase-memory-deadline"


class InterruptedCallError(Exception):
    """The call ended with something other than an `Exception`, such as a `CancelledError` that nobody here requested.

    The message is the name of that exception's class, never its text.
    """


class AbandonedError(BaseException):
    """The deadline of the enclosing call has passed, so this one is not started or not waited for.

    Like a cancellation, it is not caught by code that handles `Exception`.
    """


class _Deadline(threading.local):
    """When this thread's current call ends, by `time.monotonic`; threads that it starts do not inherit it."""

    until: float | None = None


_HERE: Final = _Deadline()


def seconds_left(maximum: float) -> float:
    """Return how many seconds a step may take within the current deadline.

    Args:
        maximum: The upper limit, in seconds.

    Raises:
        AbandonedError: The deadline has passed.
    """
    if _HERE.until is None:
        return maximum
    seconds = _HERE.until - time.monotonic()
    if seconds <= 0:
        raise AbandonedError
    return min(seconds, maximum)


def ends_at() -> float:
    """Return when the current deadline is over, by `time.monotonic`; infinite without one."""
    return math.inf if _HERE.until is None else _HERE.until


def is_set() -> bool:
    """Return whether there is a deadline here."""
    return _HERE.until is not None


def is_over() -> bool:
    """Return whether the current deadline has passed."""
    return _HERE.until is not None and _HERE.until <= time.monotonic()


class Acquirable(Protocol):
    """A thread lock or semaphore."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool:
        """Acquire it."""


def hold(lock: Acquirable) -> None:
    """Acquire a lock or a semaphore, waiting no longer than the current deadline.

    Raises:
        AbandonedError: The deadline passed before it became free.
    """
    if _HERE.until is None:
        lock.acquire()
    elif not lock.acquire(timeout=seconds_left(threading.TIMEOUT_MAX)):
        raise AbandonedError


def limited(seconds: float, function: Callable[[], T]) -> T:
    """Call a function here, within a deadline that all its waits keep: for databases, locks and servers.

    What may hang without a time limit of its own belongs into `apart`.

    Args:
        seconds: The longest wait.
        function: The function to call.

    Returns:
        The function's result.

    Raises:
        TimeoutError: A wait reached the deadline.
        InterruptedCallError: The call ended with something other than an `Exception`.
        Exception: Whatever the function raises.
    """
    outer = _HERE.until
    _HERE.until = _earlier(seconds)
    try:
        return function()
    except AbandonedError:
        raise TimeoutError(f"no answer within {seconds:g} seconds") from None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        made = _as_error(error)
        if made is error:
            raise
        raise made from None
    finally:
        _HERE.until = outer


def apart(function: Callable[[], T]) -> T:
    """Call a function that may hang: in its own thread if there is a deadline here, which the wait for it keeps.

    Args:
        function: The function to call, mostly the application's.

    Raises:
        AbandonedError: The deadline passed.
        Exception: Whatever the function raises.
    """
    if _HERE.until is None:
        return function()
    try:
        return within(seconds_left(threading.TIMEOUT_MAX), function)
    except TimeoutError:
        if is_over():
            raise AbandonedError from None
        raise


def within(seconds: float, function: Callable[[], T]) -> T:
    """Call a function in its own thread, with this context's variables, and wait for a limited time.

    Args:
        seconds: The longest wait. After that the call continues unattended in a daemon thread; its waits for databases
            and servers end, and it starts nothing more (`seconds_left`).
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
    until = _earlier(seconds)

    def called() -> T:
        _HERE.until = until
        return function()

    _started(called, done.append, failed.append).join(max(0.0, until - time.monotonic()))
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    return done[0]


def _earlier(seconds: float) -> float:
    """Return when a call of so many seconds ends, which is no later than the call around it."""
    until = time.monotonic() + seconds
    return until if _HERE.until is None else min(until, _HERE.until)


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


class Run:
    """A function that runs in a thread of its own.

    The thread is a daemon: nothing waits for it at the end of the process. It takes the next run when this one has
    ended, for as long as the process makes runs often, so that a turn starts none.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self.call = call
        self._ended = threading.Event()

    def join(self, seconds: float | None = None) -> None:
        """Wait until it has ended.

        Args:
            seconds: The longest wait; `None` for no limit.
        """
        self._ended.wait(seconds)

    def end(self) -> None:
        """Say that it has ended."""
        self._ended.set()


class _Thread(threading.Thread):
    """A thread for one run after the other, which ends when there was none for a while."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name=_NAME)
        self.runs: SimpleQueue[Run] = SimpleQueue()

    def run(self) -> None:
        """Take runs, until none comes."""
        while True:
            try:
                run = self.runs.get(timeout=_IDLE_SECONDS)
            except Empty:
                with _IDLE.lock:
                    if self not in _IDLE.threads:
                        continue  # it was just taken for a run
                    _IDLE.threads.remove(self)
                return
            run.call()
            with _IDLE.lock:
                _IDLE.threads.append(self)
            run.end()
            del run  # what it holds is freed at once


class _Idle:
    """The threads that wait for a run, the last one first."""

    def __init__(self) -> None:
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        self.lock = threading.Lock()
        self.threads: list[_Thread] = []


_IDLE: Final = _Idle()
_IDLE_SECONDS: Final = 30.0
"""How long a thread waits for its next run, in seconds."""


def start_thread(function: Callable[[], None]) -> Run:
    """Run a function that raises nothing in its own thread, with this context's variables."""
    return _started(function, lambda _: None, lambda _: None)


def _started(function: Callable[[], T], done: Callable[[T], None], failed: Callable[[Exception], None]) -> Run:
    context = copy_context()

    def call() -> None:
        _HERE.until = None
        try:
            answer = context.run(function)
        except BaseException as error:
            failed(_as_error(error))
        else:
            done(answer)

    run = Run(call)
    with _IDLE.lock:
        thread = _IDLE.threads.pop() if _IDLE.threads else None
    if thread is None:
        thread = _Thread()
        thread.start()
    thread.runs.put(run)
    return run
