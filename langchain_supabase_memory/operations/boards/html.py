"""A board as an HTML card for a notebook; all text is escaped.

The card uses the colors of its page, shows all evidence without hovering, and is as wide as its container.
"""

from __future__ import annotations

from datetime import UTC
from html import escape
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, SENTENCES_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from langchain_supabase_memory.operations.boards.board import Board, BoardItem
    from langchain_supabase_memory.operations.boards.schema import AuthorKind

_CARD: Final = (
    "border:1px solid #8884;border-radius:8px;padding:12px 16px;max-width:min(760px,100%);box-sizing:border-box;"
    "overflow-wrap:anywhere;font-family:system-ui,sans-serif;font-size:14px;line-height:1.45"
)
# The page's own color, dimmed, is readable on white and on black; a fixed gray is not.
_DIM: Final = "opacity:.8;font-size:12px"
_TITLE: Final = "font-weight:bold;display:inline"
_HEADING: Final = f"margin:12px 0 4px;letter-spacing:.04em;text-transform:uppercase;{_DIM}"
_LIST: Final = "margin:0;padding-inline-start:20px"
_ENTRY: Final = "margin:0 0 4px"
_CHIPS: Final = "margin:0;padding:0;list-style:none"
_CHIP: Final = (
    "display:inline-block;box-sizing:border-box;max-width:100%;border:1px solid #8886;border-radius:10px;padding:0 8px;"
    "margin:2px 4px 2px 0"
)
# Each line follows the direction of its own script.
_PARAGRAPH: Final = "margin:8px 0;unicode-bidi:plaintext"
_MAX_NUMBERS: Final = 8


def board_card(board: Board) -> str:
    """Render a board as self-contained HTML: no script, no style sheet, no external resource.

    Returns:
        The card; all text of the conversation is escaped.
    """
    parts = [f'<section style="{_CARD}" aria-label="Board of {escape(board.thread_id)}">', _head(board)]
    if board.is_empty and not board.unlisted:
        parts.append(_remark("Nothing is on the board yet."))
    if board.edited_summary:
        when = f", {_time(board.edited_at)}" if board.edited_at else ""
        parts.append(_paragraph(board.edited_summary))
        parts.append(_remark(f"written by {_writer(board.edited_by or 'a person', board.editor_kind)}{when}"))
    if board.summary:
        parts.append(_paragraph(board.summary))
    if board.context_notes:
        parts.append(_paragraph(board.context_notes, _DIM))
    for kind in SENTENCES_FIRST:
        items = board.of_kind(kind.kind, open_only=False)
        if items:
            parts.append(f'<div role="heading" aria-level="4" style="{_HEADING}">{kind.heading}</div>')
            parts.append(_list(items, board, is_short=kind.is_name))
    if board.unlisted:
        more = "1 more item is" if board.unlisted == 1 else f"{board.unlisted:,} more items are"
        parts.append(_remark(f"{more} on the board and not listed here: read it with a higher limit."))
    return "\n".join([*parts, "</section>"])


def _head(board: Board) -> str:
    through = "nothing yet" if board.through_sequence < 0 else f"messages 0 to {board.through_sequence}"
    behind = board.next_sequence - 1 - board.through_sequence
    facts = [through, *([f"{behind} more since"] if behind > 0 else []), f"version {board.version}"]
    if board.quality is not None:
        facts.append(f"quality {board.quality:.0%}")
    if board.model:
        facts.append(_name(board.model))
    if board.items or board.edited_at:
        facts.append("times in UTC")
    title = f'<div role="heading" aria-level="3" style="{_TITLE}">{_name(board.thread_id)}</div>'
    return f"<div>{title} {_dim(facts)}</div>"


def _list(items: list[BoardItem], board: Board, *, is_short: bool) -> str:
    listed = "".join(f'<li style="{_CHIP if is_short else _ENTRY}">{_entry(item, board)}</li>' for item in items)
    # Some screen readers detect lists by their bullets, so a list without them needs a role.
    return f'<ul role="list" style="{_CHIPS if is_short else _LIST}">{listed}</ul>'


def _entry(item: BoardItem, board: Board) -> str:
    """Render an item with its evidence: next to it for a chip, below it in a list."""
    gap = " " if BOARD_KINDS[item.kind].is_name else "<br>"
    return f'<span dir="auto">{_item_text(item)}</span>{gap}{_dim(_evidence(item, board))}'


def _item_text(item: BoardItem) -> str:
    """Render an item's text, struck through if it is no longer open."""
    return _words(item.text) if item.is_open else f"<s>{_words(item.text)}</s>"


def _evidence(item: BoardItem, board: Board) -> Iterator[str]:
    """Yield an item's details: its state, its author, and where and when it was mentioned."""
    if item.type and item.type != "other":
        yield escape(item.type)
    if item.pinned:
        yield "pinned"
    if item.state not in ("current", "open"):
        yield escape(item.state)
    if item.superseded_at is not None:
        yield f"superseded, held until {_time(item.superseded_at)}"
    if item.author not in (board.model, item.edited_by):
        yield f"by {_writer(item.author, item.author_kind)}"
    if item.edited_by:
        when = f" {_time(item.edited_at)}" if item.edited_at else ""
        done = "by" if item.author == item.edited_by else "edited by"
        yield f"{done} {_writer(item.edited_by, item.editor_kind)}{when}"
    if item.sequences:
        yield _numbers(item.sequences)
        first, last = _time(item.first_seen_at), _time(item.last_seen_at)
        yield first if item.first_seen_at == item.last_seen_at else f"first {first}, last {last}"
    if item.quote and item.quote not in item.text:
        yield f'“<span dir="auto">{_words(item.quote)}</span>”'


def _numbers(sequences: Sequence[int]) -> str:
    """List the messages that an item comes from."""
    shown = [str(each) for each in sequences[:_MAX_NUMBERS]]
    left = len(sequences) - len(shown)
    if len(sequences) == 1:
        return f"message {shown[0]}"
    last = f"{left} more" if left else shown.pop()
    return f"messages {', '.join(shown)} and {last}"


def _time(time: datetime) -> str:
    return f'<time style="white-space:nowrap">{time.astimezone(UTC):%Y-%m-%d %H:%M}</time>'


def _dim(parts: Iterable[str]) -> str:
    """Render details in small, dimmed letters."""
    return f'<span style="{_DIM}">{" · ".join(parts)}</span>'


def _remark(html: str) -> str:
    """Render a remark of the card."""
    return f'<div style="margin:4px 0;{_DIM}">{html}</div>'


def _paragraph(text: str, style: str = "") -> str:
    return f'<div dir="auto" style="{_PARAGRAPH}{style and ";"}{style}">{_words(text)}</div>'


def _name(name: str) -> str:
    """Render a name in the direction of its own script."""
    return f'<span dir="auto">{escape(name)}</span>'


def _writer(name: str, kind: AuthorKind | None) -> str:
    """Render an author, with the kind if it is not a person."""
    return _name(name) if kind in (None, "person") else f"{_name(name)} ({kind})"


def _words(text: str) -> str:
    return escape(text).replace("\n", "<br>")
