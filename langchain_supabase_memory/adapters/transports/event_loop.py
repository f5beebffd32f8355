"""Run a coroutine from code that has no event loop."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


def run(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end on a new loop that direct connections support on every system.

    Returns:
        The coroutine's result.

    Raises:
        Exception: Whatever the coroutine raises.
    """
    # psycopg refuses Windows' default loop, which cannot watch a socket.
    factory = asyncio.SelectorEventLoop if sys.platform == "win32" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)
