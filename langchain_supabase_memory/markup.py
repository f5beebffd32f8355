"""HTML tables for notebooks, in the colors of the page; all content is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

_CELL: Final = ' style="text-align:start;overflow-wrap:anywhere;unicode-bidi:plaintext"'


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[object]], *, note: str | None = None) -> str:
    """Render a standalone HTML table: no script, no style sheet, no external resources.

    Args:
        caption: The table's caption.
        headings: One for each column.
        rows: The cells, as text; `None` is an empty cell, and a time is shown in its own time zone.
        note: A note below the table.
    """
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td{_CELL}>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    below = "" if note is None else f"<p>{escape(note)}</p>"
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"
    )


def minute(when: datetime | None) -> str | None:
    """Format a time for a cell, to the minute."""
    return None if when is None else f"{when:%Y-%m-%d %H:%M}"


def _text(cell: object) -> str:
    """Format a cell's text without characters that are invalid in a page or that silently change the text direction."""
    if cell is None:
        return ""
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in " ".join(str(cell).split()))
    return escape(shown)
