"""How things look: ids on a line, states in color, what is under way. In a pipe there is neither color nor motion."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import Console

STATES: Final[Mapping[str, str]] = {
    "idle": "green",
    "due": "yellow",
    "running": "cyan",
    "waiting": "magenta",
    "dead": "bold red",
}
"""The style of each state of work."""

CUT: Final = "…"
"""What stands for the middle of an id."""

_ISOLATED: Final = "\u2068{}\u2069"
_MARKS: Final = dict.fromkeys(map(ord, "\u2068\u2069"))
_RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "AN"})
_UNIT: Final = re.compile(r"\\u[0-9a-f]{4}|\\U[0-9a-f]{8}|.", re.DOTALL)


def console(*, stderr: bool = False) -> Console:
    """A console that prints texts as they are, and no color where `NO_COLOR` is set.

    Args:
        stderr: Whether it writes to the standard error stream, where all goes that is not the answer.
    """
    from rich.console import Console

    class Printed(Console):
        def on_broken_pipe(self) -> None:
            raise  # rich calls it where it was caught, and would end the command as an error does

    return Printed(
        stderr=stderr,
        markup=False,
        emoji=False,
        highlight=False,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )


def number(count: int, one: str, many: str | None = None) -> str:
    """So many of something, such as `1,200 messages`.

    Args:
        count: How many.
        one: What one is called.
        many: What several are called; by default with an s.
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def is_terminal() -> bool:
    """Whether somebody reads the standard output in a terminal."""
    return sys.stdout.isatty()


def moves() -> bool:
    """Whether the standard error stream is a terminal on which a line can be drawn anew."""
    shown = console(stderr=True)
    return sys.stderr.isatty() and not shown.is_dumb_terminal and not shown.legacy_windows


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return cell_len(text.translate(_MARKS))  # which an older rich takes for letters


def shortened(text: str, columns: int) -> str:
    """A text without its middle, where that is needed to fit.

    Args:
        text: One line, with nothing unseen in it.
        columns: How many columns of a terminal there are for it. A letter may take two.

    Returns:
        The text, or its beginning and its end with `CUT` between.
    """
    if cell_len(text) <= columns:
        return text
    units = _units(text)
    head = _fitting(units, columns // 2)
    tail = _fitting(units[: len(head) - 1 : -1] if head else units[::-1], columns - 1 - cell_len("".join(head)))
    return "".join([*head, CUT, *reversed(tail)])


def isolated(text: str) -> str:
    """A text that does not turn its neighbors around in a terminal with writing from the right; in a pipe as it is."""
    turns = is_terminal() and any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text)
    return _ISOLATED.format(text) if turns else text


def shown_id(text: str, columns: int | None = None) -> str:
    """An id for a line of a terminal: what is unseen is spelled out, and blanks at its ends are within quotes.

    Args:
        text: The id.
        columns: How many columns there are for it; `None` shows it whole.
    """
    shown = spell_out(text)
    if shown != " ".join(shown.split()) or not shown:
        shown = f'"{shown}"'
    return isolated(shown if columns is None else shortened(shown, columns))


def duration(seconds: float) -> str:
    """How long something takes, in the unit that a person would say."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} s"


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Show in a terminal that something is under way, on the standard error stream; elsewhere nothing.

    Args:
        text: What it is.

    Yields:
        A function that says it anew.
    """
    if not moves():
        yield lambda text: None
        return
    with console(stderr=True).status(text) as status:
        yield status.update


def _units(text: str) -> list[str]:
    """What must not be cut: a letter with its marks, the code of something unseen."""
    units: list[str] = []
    for found in _UNIT.findall(text):
        if units and cell_len(found) == 0:
            units[-1] += found
        else:
            units.append(found)
    return units


def _fitting(units: list[str], columns: int) -> list[str]:
    """The first of them, as many as there are columns for."""
    taken: list[str] = []
    for unit in units:
        columns -= cell_len(unit)
        if columns < 0:
            break
        taken.append(unit)
    return taken
