"""Text for a person: lines of a readable width in a terminal, unbroken lines in a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from langchain_supabase_memory.cli.formatting import isolate_bidi

if TYPE_CHECKING:
    from rich.console import Console

_MAX_WIDTH: Final = 88
_MIN_WIDTH: Final = 20

STYLE_DIM: Final = "dim"
"""The style of notes about a message."""

STYLE_BOLD: Final = "bold"
"""The style of a heading."""


class TextLayout:
    """Prints lines.

    Args:
        console: Where the lines go.

    Attributes:
        columns: The most columns of a line.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self.columns = max(_MIN_WIDTH, min(console.width, _MAX_WIDTH)) if console.is_terminal else _MAX_WIDTH

    def blank(self) -> None:
        """Print an empty line."""
        self._console.print()

    def text(self, text: str | Text, *, indent: int = 0, style: str = "", bullet: str = "") -> None:
        """Print a text, wrapped to fit a terminal.

        Args:
            text: The text, without invisible characters.
            indent: The columns before each line.
            style: The style of a plain text.
            bullet: What replaces the indent of the first line, as wide as that.
        """
        margin = bullet or " " * indent
        for line in (Text(text, style) if isinstance(text, str) else text).split("\n", allow_blank=True):
            line.expand_tabs(4)
            parts = line.wrap(self._console, self.columns - indent) if self._console.is_terminal else [line]
            for part in parts:
                part.rstrip()
                # A line of its own direction would take its margin with it.
                before, _, after = isolate_bidi(part.plain).partition(part.plain) if part.plain else ("", "", "")
                printed = Text.assemble(margin, before, part, after)
                printed.rstrip()
                self._console.print(printed, soft_wrap=True)
                margin = " " * indent

    def rule(self, text: str) -> None:
        """Print a heading that divides."""
        line = f"── {text} "
        if self._console.is_terminal:
            line = line.ljust(self.columns, "─")[: self.columns]
        self._console.print(Text(line.rstrip(), STYLE_DIM), soft_wrap=True)
