"""A conversation as a person reads it: a heading, the board, and under each date who says what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from langchain_supabase_memory.cli.look import number, shortened, shown_id
from langchain_supabase_memory.cli.sheet import LOUD, QUIET, Sheet
from langchain_supabase_memory.language.messages.invisible import legible, spell_out

if TYPE_CHECKING:
    from datetime import date

    from rich.console import Console

    from langchain_supabase_memory.cli.spoken import Spoken
    from langchain_supabase_memory.operations.boards.board import Board, BoardItem
    from langchain_supabase_memory.values import ConversationInfo, Role

STYLES: Final[dict[Role, str]] = {
    "user": "bold cyan",
    "assistant": "bold green",
    "system": "bold yellow",
    "tool": "bold magenta",
}
"""The style of who speaks."""

_TITLE: Final = 160
"""The most columns of a title."""


def title(info: ConversationInfo, columns: int) -> str:
    """A conversation's title, on one line of no more than so many columns."""
    return shortened(spell_out(" ".join((info.title or "").split())), columns)


class Transcript:
    """What is printed of a conversation.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console) -> None:
        self._sheet = Sheet(console)
        self._day: date | None = None

    def heading(self, info: ConversationInfo) -> None:
        """Which conversation it is: its title, if it has one, its ids, how long it is and when it changed last."""
        if info.title:
            self._sheet.lines(title(info, _TITLE), style=LOUD)
        thread, user, agent = map(shown_id, (info.thread_id, info.user_id, info.agent_id))
        self._sheet.lines(f"{thread}, of the user {user} with the agent {agent}", style=QUIET)
        changed = info.updated_at.astimezone()
        states = (("archived", info.archived_at), ("not to be remembered", info.opted_out_at))
        facts = [
            number(info.message_count, "message"),
            f"last changed {changed:%Y-%m-%d %H:%M}",
            *(f"{state} since {at.astimezone():%Y-%m-%d}" for state, at in states if at),
            f"times in {changed:%Z}",
        ]
        self._sheet.lines("; ".join(facts), style=QUIET)

    def note(self, words: str) -> None:
        """A line of ours."""
        self._sheet.blank()
        self._sheet.lines(words, style=QUIET)

    def message(self, said: Spoken) -> None:
        """A message, under its date."""
        at = said.said_at.astimezone()
        if at.date() != self._day:
            self._day = at.date()
            self._sheet.blank()
            self._sheet.rule(f"{at:%A}, {at:%Y-%m-%d}")
        self._sheet.blank()
        self._sheet.line(Text.assemble((said.speaker, STYLES[said.role]), (f"  {at:%H:%M}  [{said.sequence}]", QUIET)))
        self._sheet.lines(said.text, indent=2)
        for each in said.beside:
            self._sheet.lines(each, indent=2, style=QUIET)

    def board(self, board: Board) -> None:
        """The board: what a person wrote about the conversation, the summary, what holds and what is open."""
        if board.is_empty:
            self.note("The board is empty.")
            return
        for name, text in (("Note", board.edited_summary), ("Summary", board.summary)):
            if text:
                self._section(name)
                self._sheet.lines(legible(text), indent=2)
        for name, items in (
            ("Facts", board.facts),
            ("Open action items", board.action_items),
            ("Pending questions", board.pending_questions),
        ):
            if items:
                self._section(name)
            for item in items:
                self._item(item)
        if board.unlisted:
            self.note(f"{number(board.unlisted, 'more item')} on the board.")

    def _section(self, name: str) -> None:
        self._sheet.blank()
        self._sheet.lines(name, style=LOUD)

    def _item(self, item: BoardItem) -> None:
        marks = [*(["pinned"] if item.pinned else []), *([item.written_by] if item.written_by else [])]
        marked = f" ({', '.join(marks)})" if marks else ""
        where = f"  [{item.sequences[0]}]" if item.sequences else ""
        line = Text.assemble(spell_out(" ".join(item.text.split())), (f"{marked}{where}", QUIET))
        self._sheet.line(line, indent=4, bullet="  - ")
