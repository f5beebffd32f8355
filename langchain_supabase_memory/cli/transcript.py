"""A conversation as terminal text: a heading, and the messages below their dates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from langchain_supabase_memory.cli.formatting import format_id, shorten_middle
from langchain_supabase_memory.cli.text_layout import STYLE_BOLD, STYLE_DIM, TextLayout
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from datetime import date

    from rich.console import Console

    from langchain_supabase_memory.cli.message_view import MessageView
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
    """Print a conversation."""

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
