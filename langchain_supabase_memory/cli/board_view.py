"""A board as terminal text: its summary, its items with ids and evidence, its history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from langchain_supabase_memory.cli.formatting import format_id, shorten_middle
from langchain_supabase_memory.cli.text_layout import STYLE_BOLD, STYLE_DIM, TextLayout
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages.invisible import legible, spell_out
from langchain_supabase_memory.operations.boards.kinds import SENTENCES_FIRST

if TYPE_CHECKING:
    from rich.console import Console

    from langchain_supabase_memory.operations.boards.board import Board, BoardItem

_MAX_PLACES: Final = 5
"""The maximum number of messages that are named as an item's evidence."""

_MAX_WORDS: Final = 300
"""The maximum number of columns of a quote or of what an item said before."""


class BoardView:
    """Print a board."""

    def __init__(self, console: Console) -> None:
        self._layout = TextLayout(console)

    def print_board(self, board: Board, *, with_closed: bool) -> None:
        """Print a person's note, the summary, and the items of each kind.

        Args:
            board: The board.
            with_closed: Whether to print items that are done, answered or superseded.
        """
        if board.is_empty:
            self._note("The board is empty. A worker writes it when it is due.")
            return
        self._note(f"Version {board.version}, read up to message {board.through_sequence}.")
        for name, text in (("Note", board.edited_summary), ("Summary", board.summary)):
            if text:
                self._section(name)
                self._layout.text(legible(text), indent=2)
        for kind in SENTENCES_FIRST:
            self._items(kind.heading, board.of_kind(kind.kind))
        if with_closed:
            self._items("Done, answered or superseded", [each for each in board.items if not each.is_open])
        if board.unlisted:
            self._note(f"{pluralize(board.unlisted, 'more item')} on the board.")

    def print_history(self, board: Board) -> None:
        """Print the changes of a board, newest first.

        Args:
            board: The board, read with its history.
        """
        self._section("History, newest first")
        texts = {each.id: each.text for each in board.items}
        for change in board.changes:
            item = "" if change.item_id is None else f" {change.item_id[:8]}"
            at = f"{change.changed_at.astimezone():%Y-%m-%d %H:%M}"
            self._layout.text(
                f"{at}  {change.action.replace('_', ' ')}{item}  by {format_id(change.changed_by)}", indent=2
            )
            for label, text in (("now", texts.get(change.item_id or "")), ("before", change.before)):
                if text:
                    self._layout.text(f"{label}: {_one_line(text)}", indent=4, style=STYLE_DIM)
        if not board.changes:
            self._layout.text("There are no changes yet.", indent=2, style=STYLE_DIM)

    def _items(self, heading: str, items: list[BoardItem]) -> None:
        if items:
            self._section(heading)
        for item in items:
            marks = [
                *([item.type] if item.type else []),
                *(["pinned"] if item.pinned else []),
                *([item.written_by] if item.written_by else []),
                *([item.state] if item.state not in ("current", "open") else []),
                *(["superseded"] if item.superseded_at else []),
            ]
            suffix = f" ({', '.join(marks)})" if marks else ""
            line = Text.assemble(_one_line(item.text, None), (f"{suffix}{_places(item)}", STYLE_DIM))
            self._layout.text(line, indent=12, bullet=f"  {item.id[:8]}  ")
            if item.quote and item.quote.strip() not in item.text:
                self._layout.text(f'"{_one_line(item.quote)}"', indent=12, style=STYLE_DIM)

    def _section(self, name: str) -> None:
        self._layout.blank()
        self._layout.text(name, style=STYLE_BOLD)

    def _note(self, text: str) -> None:
        self._layout.blank()
        self._layout.text(text, style=STYLE_DIM)


def _one_line(text: str, columns: int | None = _MAX_WORDS) -> str:
    line = spell_out(" ".join(text.split()))
    return line if columns is None else shorten_middle(line, columns)


def _places(item: BoardItem) -> str:
    """Format the numbers of an item's messages, as they stand in a transcript."""
    if not item.sequences:
        return ""
    more = " …" if len(item.sequences) > _MAX_PLACES else ""
    return f"  [{', '.join(map(str, item.sequences[:_MAX_PLACES]))}{more}]"
