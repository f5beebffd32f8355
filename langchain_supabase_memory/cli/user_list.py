"""The list of users: their conversations, tokens, last change and dead work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from langchain_supabase_memory.cli.formatting import STATE_STYLES, format_id
from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from langchain_supabase_memory.operations.users import UserSummary

_COLUMNS: Final = ("user", "conversations", "tokens", "dead", "last change")
_COUNTS_WIDTH: Final = 48
"""The columns of a line that the counts take."""

_MIN_ID_WIDTH: Final = 10
"""The minimum width of a shortened id."""


def plain_lines(users: Sequence[UserSummary]) -> list[str]:
    """Format a heading and a line per user for a pipe, separated by tabs."""
    rows = [("\t".join(_COLUMNS))] if users else []
    for each in users:
        counts = (f"{each.conversations}{_plus(each)}", f"{each.tokens}{_plus(each)}", f"{each.dead}")
        rows.append("\t".join((spell_out(each.user_id), *counts, each.last_at.isoformat())))
    return rows


def print_list(users: Sequence[UserSummary], console: Console) -> None:
    """Print a line per user. A narrow terminal shortens ids and drops the last columns."""
    id_width = max(_MIN_ID_WIDTH, console.width - _COUNTS_WIDTH)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in ("user", "last change") else "right", no_wrap=True)
    for each in users:
        table.add_row(
            Text(format_id(each.user_id, id_width)),
            f"{each.conversations}{_plus(each)}",
            f"{each.tokens:,}{_plus(each)}",
            Text(f"{each.dead}", STATE_STYLES["dead"] if each.dead else ""),
            f"{each.last_at.astimezone():%Y-%m-%d %H:%M}",
        )
    while console.measure(table, options=console.options.update(max_width=10_000)).minimum > console.width:
        del table.columns[-1]
    console.print(table)


def _plus(user: UserSummary) -> str:
    """Return a plus sign if the user has more conversations than those that are counted."""
    return "+" if user.has_more else ""
