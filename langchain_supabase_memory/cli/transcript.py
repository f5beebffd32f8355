"""A conversation as terminal text: a heading, the board, and the messages below their dates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from langchain_supabase_memory.cli.formatting import format_id, pluralize, shorten_middle
from langchain_supabase_memory.cli.text_layout import STYLE_BOLD, STYLE_DIM, TextLayout
from langchain_supabase_memory.language.messages.invisible import legible, spell_out
from langchain_supabase_memory.operations.boards.kinds import SENTENCES_FIRST

if TYPE_CHECKING:
    from datetime import date

    from rich.console import Console

    from langchain_supabase_memory.cli.message_view import MessageView
    from langchain_supabase_memory.operations.boards.board import Board, BoardItem
    from langchain_supabase_memory.values import ConversationInfo, Role

STYLES: Final[dict[Role, str]] = {
    "user": "bold cyan",
    "assistant": "bold green",
    "system": "bold yellow",
    "tool": "bold magenta",
}
"""The style of each role."""

_MAX_TITLE_WIDTH: Final = 160
"""The maximum number of columns of a title."""


def title(info: ConversationInfo, columns: int) -> str:
    """Format a conversation's title on one line with at most this many columns."""
    return shorten_middle(spell_out(" ".join((info.title or "").split())), columns)


class Transcript:
    """Print a conversation.

    Args:
        console: The output console.
    """

    def __init__(self, console: Console) -> None:
        self._layout = TextLayout(console)
        self._day: date | None = None

    def heading(self, info: ConversationInfo) -> None:
        """Print the title, the ids, the length and the last change."""
        if info.title:
            self._layout.text(title(info, _MAX_TITLE_WIDTH), style=STYLE_BOLD)
        thread, user, agent = map(format_id, (info.thread_id, info.user_id, info.agent_id))
        self._layout.text(f"{thread}, of the user {user} with the agent {agent}", style=STYLE_DIM)
        changed = info.updated_at.astimezone()
        states = (
            ("archived", info.archived_at),
            ("private" if info.private else "not to be remembered", info.opted_out_at),
        )
        facts = [
            pluralize(info.message_count, "message"),
            f"last changed {changed:%Y-%m-%d %H:%M}",
            *(f"{state} since {at.astimezone():%Y-%m-%d}" for state, at in states if at),
            f"times in {changed:%Z}",
        ]
        self._layout.text("; ".join(facts), style=STYLE_DIM)

    def note(self, text: str) -> None:
        """Print a note about the conversation."""
        self._layout.blank()
        self._layout.text(text, style=STYLE_DIM)

    def message(self, view: MessageView) -> None:
        """Print a message, below its date."""
        at = view.said_at.astimezone()
        if at.date() != self._day:
            self._day = at.date()
            self._layout.blank()
            self._layout.rule(f"{at:%A}, {at:%Y-%m-%d}")
        self._layout.blank()
        reference = f"  {at:%H:%M}  [{view.sequence}]"
        self._layout.text(Text.assemble((view.speaker, STYLES[view.role]), (reference, STYLE_DIM)))
        if view.text:
            self._layout.text(view.text, indent=2)
        for each in view.annotations:
            self._layout.text(each, indent=2, style=STYLE_DIM)

    def board(self, board: Board) -> None:
        """Print the board: the user's note, the summary, the facts and the open items."""
        if board.is_empty:
            self.note("The board is empty.")
            return
        for name, text in (("Note", board.edited_summary), ("Summary", board.summary)):
            if text:
                self._section(name)
                self._layout.text(legible(text), indent=2)
        for kind in SENTENCES_FIRST:
            items = [] if kind.is_name else board.of_kind(kind.kind)
            if items:
                self._section(kind.heading)
            for item in items:
                self._item(item)
        if board.unlisted:
            self.note(f"{pluralize(board.unlisted, 'more item')} on the board.")

    def _section(self, name: str) -> None:
        self._layout.blank()
        self._layout.text(name, style=STYLE_BOLD)

    def _item(self, item: BoardItem) -> None:
        marks = [*(["pinned"] if item.pinned else []), *([item.written_by] if item.written_by else [])]
        suffix = f" ({', '.join(marks)})" if marks else ""
        reference = f"  [{item.sequences[0]}]" if item.sequences else ""
        line = Text.assemble(spell_out(" ".join(item.text.split())), (f"{suffix}{reference}", STYLE_DIM))
        self._layout.text(line, indent=4, bullet="  - ")
