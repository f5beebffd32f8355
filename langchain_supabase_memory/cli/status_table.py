"""The table of `status`: one line per conversation, fitted to a terminal; in a pipe, all columns separated by tabs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from langchain_supabase_memory.cli.formatting import STATE_STYLES, format_id
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.values import DEFAULT_AGENT_ID

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

    from langchain_supabase_memory.operations.work import ConversationStatus, Pause

_IDS: Final = ("user", "agent", "thread")
_COUNTS: Final = ("state", "messages", "summary", "index", "board", "saved")
_DROP_ORDER: Final = ("saved", "board", "index", "summary", "messages", "agent", "user")
"""The columns to drop in a narrow terminal, in this order."""

_MIN_ID_WIDTH: Final = 10
"""The minimum width of a shortened id."""


class _Id:
    """An id in a table, shortened in the middle if the column is too narrow."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = cell_len(format_id(self._text))
        return Measurement(min(width, _MIN_ID_WIDTH), width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(format_id(self._text, options.max_width))


def plain_lines(rows: Sequence[ConversationStatus]) -> list[str]:
    """Format a heading and a line per conversation for a pipe, separated by tabs, with the errors last."""
    table: list[tuple[str, ...]] = [(*_IDS, *_COUNTS, "error")] if rows else []
    for row in rows:
        table.append((*map(spell_out, _ids(row).values()), *_counts(row).values(), spell_out("; ".join(_errors(row)))))
    return ["\t".join(cells) for cells in table]


def print_table(rows: Sequence[ConversationStatus], console: Console) -> None:
    """Print a line per conversation, and the failures below the table.

    Args:
        rows: The conversations.
        console: The output console. A narrow one gets fewer columns.
    """
    columns = [*_IDS, *_COUNTS]
    if all(row.key.agent_id == DEFAULT_AGENT_ID for row in rows):
        columns.remove("agent")  # it is the same in each line
    id_names = [name for name in _IDS if name in columns]
    table = _table(rows, columns)
    for name in _DROP_ORDER:
        if console.measure(table, options=console.options.update(max_width=10_000)).minimum <= console.width:
            break
        if name in columns:
            columns.remove(name)
            table = _table(rows, columns)
    console.print(table)
    failed = [row for row in rows if _errors(row)]
    if failed:
        console.print()
    for row in failed:
        ids = Table.grid(padding=(0, 2, 0, 0))
        ids.add_row(*(_Id(_ids(row)[name]) for name in id_names))
        console.print(ids)
        for error in _errors(row):
            console.print(Text(f"  {spell_out(error)}", STATE_STYLES[row.state]), soft_wrap=True)


def _table(rows: Sequence[ConversationStatus], columns: Collection[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        is_count = name in _COUNTS and name != "state"
        table.add_column(name, justify="right" if is_count else "left", no_wrap=name in _COUNTS)
    for row in rows:
        cells: dict[str, _Id | Text] = {name: _Id(text) for name, text in _ids(row).items()}
        cells |= {name: Text(text, STATE_STYLES.get(text, "")) for name, text in _counts(row).items()}
        table.add_row(*(cells[name] for name in columns))
    return table


def _ids(row: ConversationStatus) -> dict[str, str]:
    return dict(zip(_IDS, (row.key.user_id or "", row.key.agent_id, row.key.thread_id), strict=True))


def _counts(row: ConversationStatus) -> dict[str, str]:
    """Return a conversation's cells after its ids, by column name."""
    positions = (row.summarized_through, row.indexed_through, row.board_through)
    shares = (_share(position + 1, row.next_sequence) for position in positions)
    return dict(zip(_COUNTS, (row.state, f"{row.messages:,}", *shares, f"{row.tokens_saved:,}"), strict=True))


def _share(done: int, total: int) -> str:
    """Format the completed share in percent; 100% only if nothing is left."""
    if done <= 0:
        return "–"
    return "100%" if done >= total else f"{min(99, 100 * done // total)}%"


def _errors(row: ConversationStatus) -> list[str]:
    """Return the failed duties, and when each is retried."""
    errors = [f"{duty}: {each.error}, {_next_try(each)}" for duty, each in sorted(row.paused.items()) if duty != "all"]
    return errors or ([row.error] if row.error else [])


def _next_try(pause: Pause) -> str:
    times = pluralize(pause.failures, "failure")
    return f"given up after {times}" if pause.until is None else f"{times}, again {pause.until.astimezone():%H:%M:%S}"
