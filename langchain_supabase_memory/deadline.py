"""A limit of time around a call that may hang."""

from __future__ import annotations

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
    context = copy_context()

    def call() -> None:
        try:
            done.append(context.run(function))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=call, daemon=True, name="supabase-memory-deadline")
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    return done[0]
