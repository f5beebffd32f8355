"""One line of a terminal that is drawn anew in its place, while what is logged or printed appears above it."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from shutil import get_terminal_size
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, cast

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO

_ERASE: Final = "\x1b[J"
"""Erases from the cursor on. It rests where the line begins: so however the terminal is resized, all of it goes."""

_BETWEEN: Final = " · "


class Living:
    """A line of the standard error stream. It lives as long as the block.

    Example:
        ```python
        with Living() as line:
            line.show(["3 done", "2 due"])
        ```
    """

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._drawn = ""
        self._lock = RLock()
        self._stack = ExitStack()

    def __enter__(self) -> Living:
        with ExitStack() as stack:
            above = {stream: _Above(self, stream) for stream in (sys.stdout, sys.stderr) if stream.isatty()}
            for handler in _handlers():
                if handler.stream in above:
                    stack.callback(handler.setStream, handler.stream)
                    handler.setStream(cast("TextIO", above[handler.stream]))
            if sys.stdout in above:
                stack.enter_context(redirect_stdout(above[sys.stdout]))
            stack.enter_context(redirect_stderr(above[sys.stderr]))
            stack.callback(self.show, [])
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def show(self, parts: Sequence[str]) -> None:
        """Draw it anew.

        Args:
            parts: What it says, the most important first: as many are shown as there is room for.
        """
        room = get_terminal_size().columns - 1  # in the last column a terminal would begin another line
        line = ""
        for part in parts:
            longer = f"{line}{_BETWEEN}{part}" if line else part
            if cell_len(longer) > room:
                break
            line = longer
        with self._lock:
            self._drawn = line
            self.above(self._stream, "")

    def above(self, stream: TextIO, text: str) -> None:
        """Write whole lines above it.

        Args:
            stream: Where to.
            text: The lines.
        """
        with self._lock:
            self._stream.write(_ERASE)
            self._stream.flush()
            stream.write(text)
            stream.flush()
            self._stream.write(f"{self._drawn}\r" if self._drawn else "")
            self._stream.flush()


class _Above:
    """A stream to the terminal whose lines appear above the living one; half a line waits for its end."""

    def __init__(self, living: Living, stream: TextIO) -> None:
        self._living = living
        self._stream = stream
        self._begun = ""

    def write(self, text: str) -> int:
        """Write."""
        whole, newline, self._begun = (self._begun + text).rpartition("\n")
        if newline:
            self._living.above(self._stream, whole + newline)
        return len(text)

    def flush(self) -> None:
        """Nothing: what is whole has been written."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _handlers() -> Iterator[logging.StreamHandler[TextIO]]:
    """The handlers of all loggers that write to a stream, which they have taken when they were made."""
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        for handler in getattr(logger, "handlers", ()):
            if isinstance(handler, logging.StreamHandler):
                yield handler
