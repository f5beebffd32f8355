"""Lines of text for a person: in a terminal they fit and are read with ease; in a pipe they are whole.

A line whose letters run from right to left is kept to itself, so that it does not turn its margin around.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from rich.text import Text

from langchain_supabase_memory.cli.look import isolated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

_WIDEST: Final = 88
_NARROWEST: Final = 20

QUIET: Final = "dim"
"""The style of what is said about what was said."""

LOUD: Final = "bold"
"""The style of a heading."""


class Sheet:
    """Where lines are printed.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._width = max(_NARROWEST, min(console.width, _WIDEST)) if console.is_terminal else None

    @property
    def columns(self) -> int:
        """How many columns a line has; in a pipe, as many as are read with ease."""
        return self._width or _WIDEST

    def blank(self) -> None:
        """An empty line."""
        self._console.print()

    def lines(self, text: str, *, indent: int = 0, style: str = "") -> None:
        """A text in lines.

        Args:
            text: The text, with nothing unseen in it.
            indent: How far it is set in, in columns.
            style: Its style.
        """
        if text:
            self._print(chain.from_iterable(self._wrapped(Text(line, style), indent) for line in text.split("\n")))

    def line(self, line: Text, *, indent: int = 0, bullet: str = "") -> None:
        """A line in several styles.

        Args:
            line: The line.
            indent: How far it is set in, in columns.
            bullet: What stands in the margin of its beginning, as wide as that.
        """
        self._print(self._wrapped(line, indent, bullet))

    def rule(self, text: str) -> None:
        """A heading that divides."""
        line = f"── {text} "
        self._print([Text(line if self._width is None else line.ljust(self._width, "─")[: self._width], QUIET)])

    def _wrapped(self, line: Text, indent: int, bullet: str = "") -> list[Text]:
        line.expand_tabs(4)
        if self._width is None:
            return [Text.assemble(bullet or " " * indent, line)]
        made = []
        for place, part in enumerate(line.wrap(self._console, self._width - indent)):
            part.rstrip()
            margin = bullet if bullet and place == 0 else " " * indent
            before, _, after = isolated(part.plain).partition(part.plain) if part.plain else ("", "", "")
            made.append(Text.assemble(margin, before, part, after))
        return made

    def _print(self, lines: Iterable[Text]) -> None:
        for line in lines:
            line.rstrip()
            self._console.print(line, soft_wrap=True)
