"""A list of conversations: what each is called, how long it is, and its last words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.cli.look import number, shortened, shown_id
from langchain_supabase_memory.cli.sheet import LOUD, QUIET, Sheet
from langchain_supabase_memory.cli.transcript import title
from langchain_supabase_memory.language.messages.content import LABELS
from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from langchain_supabase_memory.values import ConversationInfo

_NAMES: Final = ("thread", "agent", "messages", "last message", "title", "last words")


def lines(page: Sequence[ConversationInfo]) -> list[str]:
    """A heading and a line for each conversation, for a pipe: tabs between.

    Args:
        page: The conversations.
    """
    made: list[tuple[str, ...]] = [_NAMES] if page else []
    for each in page:
        at = each.last_message_at.isoformat() if each.last_message_at else ""
        words = (each.thread_id, each.agent_id, str(each.message_count), at, each.title or "", _words(each))
        made.append(tuple(map(spell_out, words)))
    return ["\t".join(cells) for cells in made]


def show(page: Sequence[ConversationInfo], console: Console) -> None:
    """Show conversations on a terminal, some lines for each.

    Args:
        page: The conversations.
        console: Where.
    """
    sheet = Sheet(console)
    for place, each in enumerate(page):
        if place:
            sheet.blank()
        sheet.lines(title(each, sheet.columns) or "(nothing said yet)", style=LOUD)
        at = f", the last {each.last_message_at.astimezone():%Y-%m-%d %H:%M}" if each.last_message_at else ""
        archived = "; archived" if each.archived_at else ""
        where = f"{shown_id(each.thread_id)}, with {shown_id(each.agent_id)}"
        sheet.lines(f"{where}; {number(each.message_count, 'message')}{at}{archived}", indent=2, style=QUIET)
        if words := _words(each):
            sheet.lines(shortened(spell_out(words), 2 * (sheet.columns - 2)), indent=2)


def _words(info: ConversationInfo) -> str:
    """Who spoke last, and the first words of that."""
    words = " ".join((info.last_message_text or "").split())
    return f"{LABELS[info.last_message_role]}: {words}" if info.last_message_role and words else ""
