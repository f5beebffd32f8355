"""A terminal line with a worker's status. Logs and printed text appear above it."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from langchain_supabase_memory.cli.formatting import console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TextIO


@contextmanager
def status_line() -> Iterator[Callable[[Sequence[str]], None]]:
    """Show a status line on the standard error stream while the block runs.

    Yields:
        A function that redraws the line from its parts, the most important first.
    """
    streams = (sys.stdout, sys.stderr)
    live = Live(
        console=console(stderr=True, soft_wrap=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
    )
    with live:
        # A handler holds the original stream, which rich does not replace.
        moved = [(handler, handler.stream) for handler in _stream_handlers() if handler.stream in streams]
        for handler, stream in moved:
            handler.setStream(sys.stdout if stream is streams[0] else sys.stderr)
        try:
            yield lambda parts: live.update(Text(" · ".join(parts), no_wrap=True, overflow="ellipsis"), refresh=True)
        finally:
            for handler, stream in moved:
                handler.setStream(stream)


def _stream_handlers() -> Iterator[logging.StreamHandler[TextIO]]:
    """Yield the stream handlers of all loggers."""
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        for handler in getattr(logger, "handlers", ()):
            if isinstance(handler, logging.StreamHandler):
                yield handler
