"""The list of conversations: the title, the length and the last message of each."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.cli.formatting import format_id, shorten_middle
from langchain_supabase_memory.cli.text_layout import STYLE_BOLD, STYLE_DIM, TextLayout
from langchain_supabase_memory.cli.transcript import title
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages.content import LABELS
from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from langchain_supabase_memory.values import ConversationInfo

_COLUMNS: Final = ("thread", "agent", "messages", "last message", "title", "last words")


def plain_lines(page: Sequence[ConversationInfo]) -> list[str]:
    """Format a heading and a line per conversation for a pipe, separated by tabs."""
    rows: list[tuple[str, ...]] = [_COLUMNS] if page else []
    for each in page:
        at = each.last_message_at.isoformat() if each.last_message_at else ""
        cells = (each.thread_id, each.agent_id, str(each.message_count), at, each.title or "", _last_words(each))
        rows.append(tuple(map(spell_out, cells)))
    return ["\t".join(cells) for cells in rows]


def print_list(page: Sequence[ConversationInfo], console: Console) -> None:
    """Print a few lines per conversation."""
    layout = TextLayout(console)
    for index, each in enumerate(page):
        if index:
            layout.blank()
        layout.text(
            title(each, layout.columns) or ("(untitled)" if each.message_count else "(no messages yet)"),
            style=STYLE_BOLD,
        )
        at = f", the last {each.last_message_at.astimezone():%Y-%m-%d %H:%M}" if each.last_message_at else ""
        archived = "; archived" if each.archived_at else ""
        signals = f"; {', '.join(signal.label for signal in each.signals)}" if each.signals else ""
        ids = f"{format_id(each.thread_id)}, with {format_id(each.agent_id)}"
        layout.text(
            f"{ids}; {pluralize(each.message_count, 'message')}{at}{archived}{signals}", indent=2, style=STYLE_DIM
        )
        if words := _last_words(each):
            layout.text(shorten_middle(spell_out(words), 2 * (layout.columns - 2)), indent=2)


def document(info: ConversationInfo) -> dict[str, Any]:
    """Return a conversation as a JSON document."""
    return {**asdict(info), "signals": [each.label for each in info.signals]}


def _last_words(info: ConversationInfo) -> str:
    """Return the role and the beginning of the last message."""
    words = " ".join((info.last_message_text or "").split())
    return f"{LABELS[info.last_message_role]}: {words}" if info.last_message_role and words else ""
