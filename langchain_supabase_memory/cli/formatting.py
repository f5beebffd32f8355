"""Output formats: ids on one line, state styles, counts, durations, and a spinner. A pipe gets plain text."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from bisect import bisect_right
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import click
from rich.cells import cell_len

from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console

STATE_STYLES: Final[Mapping[str, str]] = {
    "idle": "green",
    "due": "yellow",
    "running": "cyan",
    "waiting": "magenta",
    "dead": "bold red",
}
"""The style of each work state."""

ELLIPSIS: Final = "…"
"""The character that replaces the middle of an id."""

_RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "AN"})
_UNIT: Final = re.compile(r"\\u[0-9a-f]{4}|\\U[0-9a-f]{8}|.", re.DOTALL)


def console(*, stderr: bool = False, soft_wrap: bool = False, width: int | None = None) -> Console:
    """Create a console that prints text unchanged, without colors if `NO_COLOR` is set.

    Args:
        stderr: Whether to write to the standard error stream, which gets everything except the answer.
        soft_wrap: Whether the terminal wraps the lines.
        width: The columns per line; by default the terminal's.
    """
    from rich.console import Console

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:
            raise  # re-raise the caught error, because rich would exit with an error

    return PlainConsole(
        stderr=stderr,
        soft_wrap=soft_wrap,
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )


def echo_json(document: Any) -> None:
    """Print a JSON document in ASCII, which escapes invisible characters."""
    click.echo(json.dumps(document, default=str))


def echo_line(line: str) -> None:
    """Print a line that may hold people's words, with codes for invisible characters."""
    click.echo(isolate_bidi(spell_out(line)))


def is_terminal() -> bool:
    """Return whether the standard output is a terminal."""
    return sys.stdout.isatty()


def can_animate() -> bool:
    """Return whether the standard error stream is a terminal that can redraw a line."""
    target = console(stderr=True)
    return sys.stderr.isatty() and not target.is_dumb_terminal and not target.legacy_windows


def shorten_middle(text: str, columns: int) -> str:
    """Cut the middle out of a text that is too wide.

    Args:
        text: One line without invisible characters.
        columns: The maximum number of columns. A character may take two.

    Returns:
        The text, or its beginning and end with `ELLIPSIS` between them.
    """
    if cell_len(text) <= columns:
        return text
    units: list[str] = []  # a letter with its marks, or an escape code, which must not be split
    for unit in _UNIT.findall(text):
        if units and cell_len(unit) == 0:
            units[-1] += unit
        else:
            units.append(unit)
    head = units[: _count_fitting(units, columns // 2)]
    rest = units[len(head) :]
    tail = rest[len(rest) - _count_fitting(rest[::-1], columns - 1 - cell_len("".join(head))) :]
    return "".join([*head, ELLIPSIS, *tail])


def isolate_bidi(text: str) -> str:
    """Isolate right-to-left text in a terminal, so that it does not reorder its neighbors; a pipe gets it unchanged."""
    has_rtl = is_terminal() and any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text)
    return f"\u2068{text}\u2069" if has_rtl else text


def format_id(text: str, columns: int | None = None) -> str:
    """Format an id on one line, with codes for invisible characters, and quotes if it has unusual spaces.

    Args:
        text: The id.
        columns: The maximum number of columns; `None` shows the full id.
    """
    line = spell_out(text)
    if line != " ".join(line.split()) or not line:
        line = f'"{line}"'
    return isolate_bidi(line if columns is None else shorten_middle(line, columns))


@contextmanager
def spinner(text: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on the standard error stream if it is a terminal.

    Args:
        text: The current activity.

    Yields:
        A function that replaces the text.
    """
    if not can_animate():
        yield lambda text: None
        return
    with console(stderr=True).status(text) as status:
        yield status.update


def _count_fitting(units: Sequence[str], columns: int) -> int:
    """Count the leading units that fit into a number of columns."""
    return bisect_right(list(accumulate(map(cell_len, units))), columns)
