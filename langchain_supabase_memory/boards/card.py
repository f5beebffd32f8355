"""A board as a card: HTML for a notebook, in which nothing that was said can be markup."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from langchain_supabase_memory.boards.answer import Kind
    from langchain_supabase_memory.boards.board import Board, BoardItem

_HEADINGS: Final[tuple[tuple[Kind, str], ...]] = (
    ("fact", "Facts"),
    ("action", "Action items"),
    ("question", "Pending questions"),
    ("entity", "People, places, organisations, dates"),
    ("topic", "Topics"),
)
_SHORT: Final[frozenset[Kind]] = frozenset({"entity", "topic"})
_CARD: Final = (
    "border:1px solid #8884;border-radius:8px;padding:12px 16px;max-width:760px;"
    "font-family:system-ui,sans-serif;font-size:14px;line-height:1.45"
)
_DIM: Final = "color:#888;font-size:12px"
_HEADING: Final = "margin:12px 0 4px;font-size:12px;letter-spacing:.04em;text-transform:uppercase;color:#888"
_CHIP: Final = "display:inline-block;border:1px solid #8886;border-radius:10px;padding:0 8px;margin:2px 4px 2px 0"


def card(board: Board) -> str:
    """A board as HTML that stands alone: no script, no style sheet, nothing from outside.

    Args:
        board: The board.

    Returns:
        The card; every word of the conversation in it is escaped.
    """
    parts = [f'<div style="{_CARD}">', _head(board)]
    if board.is_empty:
        parts.append(f'<p style="{_DIM}">Nothing is on the board yet.</p>')
    if board.edited_summary:
        who = f"written by {escape(board.edited_by or 'a person')}"
        parts.append(f'<p>{_words(board.edited_summary)} <span style="{_DIM}">({who})</span></p>')
    if board.summary:
        parts.append(f"<p>{_words(board.summary)}</p>")
    if board.context_notes:
        parts.append(f'<p style="{_DIM}">{_words(board.context_notes)}</p>')
    for kind, heading in _HEADINGS:
        items = board.of(kind, open_only=False)
        if items:
            parts.append(f'<div style="{_HEADING}">{heading}</div>')
            parts.append(_chips(items) if kind in _SHORT else _list(items))
    return "\n".join([*parts, "</div>"])


def _head(board: Board) -> str:
    through = "nothing yet" if board.through_sequence < 0 else f"messages 0 to {board.through_sequence}"
    behind = board.next_sequence - 1 - board.through_sequence
    facts = [through, *([f"{behind} more since"] if behind > 0 else []), f"version {board.version}"]
    if board.quality is not None:
        facts.append(f"quality {board.quality:.0%}")
    if board.model:
        facts.append(escape(board.model))
    return f'<div><b>{escape(board.thread_id)}</b> <span style="{_DIM}">{" · ".join(facts)}</span></div>'


def _list(items: list[BoardItem]) -> str:
    return f'<ul style="margin:0;padding-left:20px">{"".join(map(_entry, items))}</ul>'


def _entry(item: BoardItem) -> str:
    text = _words(item.text)
    if not item.is_open:
        text = f"<s>{text}</s>"
    marks = ["pinned"] * item.pinned + [item.state] * (item.state not in ("current", "open"))
    if item.superseded_at is not None:
        marks.append(f"until {item.superseded_at:%Y-%m-%d}")
    if item.edited_by:
        marks.append(f"by {escape(item.edited_by)}")
    if item.sequences:
        marks.append(f"message {item.sequences[0]}")
    title = f' title="{escape(item.quote)}"' if item.quote else ""
    return f'<li{title}>{text} <span style="{_DIM}">{" · ".join(marks)}</span></li>'


def _chips(items: list[BoardItem]) -> str:
    chips = []
    for item in items:
        kind = f' <span style="{_DIM}">{escape(item.type)}</span>' if item.type and item.type != "other" else ""
        text = _words(item.text) if item.is_open else f"<s>{_words(item.text)}</s>"
        chips.append(f'<span style="{_CHIP}">{text}{kind}</span>')
    return f"<div>{''.join(chips)}</div>"


def _words(text: str) -> str:
    return escape(text).replace("\n", "<br>")
