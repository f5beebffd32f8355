"""Text layout: lines of a readable width in a terminal, unwrapped lines in a pipe."""

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
    """Print lines.

    Attributes:
        columns: The maximum number of columns per line.
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
            bullet: Text that replaces the indent of the first line, with the same width.
        """
        margin = bullet or " " * indent
        for line in (Text(text, style) if isinstance(text, str) else text).split("\n", allow_blank=True):
            line.expand_tabs(4)
            parts = line.wrap(self._console, self.columns - indent) if self._console.is_terminal else [line]
            for part in parts:
                part.rstrip()
                # The margin stays outside, so that a right-to-left line does not move it.
                before, _, after = isolate_bidi(part.plain).partition(part.plain) if part.plain else ("", "", "")
                printed = Text.assemble(margin, before, part, after)
                printed.rstrip()
                self._console.print(printed, soft_wrap=True)
                margin = " " * indent

    def rule(self, text: str) -> None:
        """Print a heading as a divider."""
        line = f"── {text} "
        if self._console.is_terminal:
            line = line.ljust(self.columns, "─")[: self.columns]
        self._console.print(Text(line.rstrip(), STYLE_DIM), soft_wrap=True)
