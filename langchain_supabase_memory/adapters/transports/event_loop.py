"""An event loop to run something on from code that has none."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


def run(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end on a loop of its own, which a direct connection can use on every system.

    Args:
        main: What is run.

    Returns:
        What it returns.

    Raises:
        Exception: What it raises.
    """
    # psycopg refuses the loop that Windows has by default, for it cannot watch a socket.
    factory = asyncio.SelectorEventLoop if sys.platform == "win32" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)
