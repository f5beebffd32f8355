"""The board with its evidence: each item, its source messages, and people's edits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import NotFoundError
from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import render_page, render_part
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens import conversation_header
from langchain_supabase_memory.inspector.screens.message_range import text_of
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, SENTENCES_FIRST

if TYPE_CHECKING:
    from datetime import datetime

    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.operations.boards.board import BoardItem
    from langchain_supabase_memory.operations.conversations import Column

_MAX_MESSAGES: Final = 5
"""The maximum number of messages shown as an item's evidence."""


@dataclass(frozen=True)
class Evidence:
    """A source message of an item, split around the quote.

    Attributes:
        sequence: Its number.
        speaker: The author.
        created_at: The time of the message.
        before: The text before the quote, or the whole text.
        quote: The quote; empty if it is not in this message.
        after: The text after the quote.
    """

    sequence: int
    speaker: str
    created_at: datetime | None
    before: str
    quote: str
    after: str


async def screen(request: Request) -> Response:
    """Render the board."""
    context = RequestContext(request)
    conversation = context.conversation()
    head, board = await gather_all(conversation_header.load_header(context), conversation.board.aread(history=True))
    gone = [item for item in board.items if not item.is_open]
    return render_page(
        context,
        "board.html",
        tab="board",
        etag=head.etag,
        about="conversation",
        header=head,
        board=board,
        groups=[(each.kind, each.heading, board.of_kind(each.kind)) for each in SENTENCES_FIRST],
        gone=gone,
        kinds=tuple(BOARD_KINDS),
        types=BOARD_KINDS["entity"].types,
    )


async def item(request: Request) -> Response:
    """Render one item with its messages, its history and its forms; in place, or as a page."""
    context = RequestContext(request)
    conversation = context.conversation()
    board = await conversation.board.aread(history=True)
    item_id = context.query.get("item", "")
    found = next((each for each in board.items if each.id == item_id), None)
    if found is None:
        raise no_item()
    values: dict[str, Any] = {
        "item": found,
        "evidence": await _evidence(conversation, found),
        "changes": [change for change in board.changes if change.item_id == found.id],
        "item_states": BOARD_KINDS[found.kind].states,
        "by_id": {each.id: each for each in board.items},
        "can_undo": can_undo_delete(found),
    }
    if context.is_part:
        return render_part(context, "part_item.html", **values)
    return render_page(
        context, "item.html", tab="board", header=await conversation_header.load_header(context), **values
    )


def can_undo_delete(item: BoardItem) -> bool:
    """Return whether a deletion can be undone: not of what no longer holds, which would hold again, or is another's."""
    return item.superseded_at is None and item.contributed_by is None


def no_item() -> NotFoundError:
    """Return the error for an item that does not exist."""
    return NotFoundError("There is no such item on this board.", hint="Go back to the board; it may have changed.")


async def history(request: Request) -> Response:
    """Render the changes to the board, opt-outs, ratings and summaries, the newest first."""
    context = RequestContext(request)
    conversation = context.conversation()
    head, board, changes = await gather_all(
        conversation_header.load_header(context),
        conversation.board.aread(history=True),
        conversation.privacy.achanges(),
    )
    by_id = {each.id: each for each in board.items}
    return render_page(context, "history.html", tab="board", header=head, board=board, changes=changes, by_id=by_id)


async def _evidence(conversation: Conversation, item: BoardItem) -> list[Evidence]:
    """Return the first messages of an item, each split around the quote if it contains it."""
    places = item.sequences[:_MAX_MESSAGES]
    columns: tuple[Column, ...] = ("role", "text", "created_at", "payload")
    pages = await gather_all(
        *(conversation.aread(from_sequence=place, to_sequence=place, columns=columns) for place in places)
    )
    evidence = []
    for page in pages:
        for stored in page:
            text = stored.text or text_of(stored)
            before, quote, after = text.partition(item.quote) if item.quote else (text, "", "")
            label = content.LABELS[stored.role or "user"]
            evidence.append(Evidence(stored.sequence, label, stored.created_at, before, quote, after))
    return evidence
