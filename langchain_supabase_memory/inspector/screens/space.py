"""One space: its board with who said what, its members and invitations, and what the viewer may do there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.humanize import duration, pluralize
from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.paging import list_page
from langchain_supabase_memory.inspector.rendering import etag, render_page
from langchain_supabase_memory.inspector.request_context import RequestContext, no_space
from langchain_supabase_memory.values import DEFAULT_AGENT_ID, SPACE_ROLES

if TYPE_CHECKING:
    from datetime import timedelta

    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.operations.boards.board import Board, BoardItem
    from langchain_supabase_memory.operations.contributions import Contribution
    from langchain_supabase_memory.operations.spaces import Member, SpaceInfo
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import Receipt

PAGE: Final = 25
"""The number of members, or of items, on a page."""

BOARD: Final = "board"
"""The thread of the space's conversation that has the board of contributions."""


@dataclass(frozen=True)
class SpaceState:
    """A space, as it is.

    Attributes:
        info: What it is, and who is in it.
        board: The board of what was contributed.
    """

    info: SpaceInfo
    board: Board

    @property
    def etag(self) -> str:
        """The version of the data, so that the page is notified of a change."""
        items = [(each.id, each.version) for each in self.board.items]
        return etag(self.info, self.info.about, items, self.board.unlisted)


@dataclass(frozen=True)
class Viewer:
    """Who looks at a space, and what they may do there.

    Attributes:
        user_id: The user; `None` for a server by itself, and where a token does not show it.
        is_manager: Whether they manage the space.
        is_member: Whether they are in it, so that they may leave.
        contributed: The ids of the items that they contributed.
    """

    user_id: str | None
    is_manager: bool
    is_member: bool
    contributed: frozenset[str] = frozenset()

    def withdraws(self, item: BoardItem) -> bool:
        """Return whether they may take an item of the board back."""
        return item.contributed_by is not None and (self.is_manager or self.is_author(item))

    def is_author(self, item: BoardItem) -> bool:
        """Return whether they contributed an item."""
        return item.id in self.contributed or (self.user_id is not None and item.contributed_by == self.user_id)

    def is_same(self, member: Member) -> bool:
        """Return whether a member is the viewer."""
        return self.user_id is not None and member.user_id == self.user_id


async def load_space(context: RequestContext) -> SpaceState:
    """Load the space that an address names, after `admit`.

    Raises:
        NotFoundError: The address names no space.
    """
    if context.space is None:
        raise no_space()
    conversation = context.owned(context.reader).conversation(BOARD, agent_id=DEFAULT_AGENT_ID)
    return SpaceState(context.space, await conversation.board.aread())


async def screen(request: Request) -> Response:
    """Render the space."""
    context = RequestContext(request)
    if context.space is None:
        raise no_space()
    now, contributions = await gather_all(load_space(context), _contributions(context))
    info = now.info
    items = [each for each in now.board.items if each.contributed_by is not None]
    return render_page(
        context,
        "space.html",
        tab="spaces",
        etag=now.etag,
        about="space",
        info=info,
        viewer=_viewer(context, info, contributions),
        retention=retention_text(info.keep),
        days=_days,
        board=BOARD,
        default_agent=DEFAULT_AGENT_ID,
        items=list_page(context, items, "contributed", PAGE),
        mine=list_page(context, contributions, "mine", PAGE),
        members=list_page(context, info.members, "members", PAGE),
        invitations=list_page(context, info.invitations, "invitations", PAGE),
        others=len(now.board.items) - len(items) + now.board.unlisted,
        roles=SPACE_ROLES,
    )


async def erase(request: Request) -> Response:
    """Render what goes when the space is erased, and ask."""
    context = RequestContext(request)
    if context.space is None:
        raise no_space()
    context.require_manager()
    receipt = await context.named_space().aforget(dry_run=True)
    return render_page(context, "erase.html", tab="spaces", info=context.space, counts=_counts(receipt))


def retention_text(keep: Retention | None) -> str:
    """Return what is kept of a space's messages, in a sentence."""
    if keep is None:
        return "Everything is kept."
    parts = []
    if keep.max_turns is not None:
        parts.append(f"the newest {pluralize(keep.max_turns, 'turn')} of a conversation")
    if keep.max_messages is not None:
        parts.append(f"its newest {pluralize(keep.max_messages, 'message')}")
    if keep.max_age is not None:
        parts.append(f"messages for {duration(keep.max_age.total_seconds())}")
    if keep.max_summary_age is not None:
        parts.append(f"summaries for {duration(keep.max_summary_age.total_seconds())}")
    return f"Kept: {', '.join(parts)}." if parts else "Everything is kept."


async def _contributions(context: RequestContext) -> list[Contribution]:
    """Return what the viewer contributed to this space; nothing for a server by itself."""
    if not context.has_user:
        return []
    held = await context.reader._for(context.user_id).spaces.ashared_data()
    return [each for each in held.contributions if each.space_id == context.space_id]


def _viewer(context: RequestContext, info: SpaceInfo, contributions: list[Contribution]) -> Viewer:
    user = context.reader._for(context.user_id)._services.fixed_user_id if context.has_user else None
    return Viewer(user, context.is_manager, info.role is not None, frozenset(each.item_id for each in contributions))


def _days(age: timedelta | None) -> str:
    return "" if age is None else f"{age.total_seconds() / 86_400:g}"


def _counts(receipt: Receipt) -> list[str]:
    """Return what a receipt counts, as words; without what there is none of."""
    counted = (
        (receipt.conversations, "conversation", ""),
        (receipt.messages, "message", ""),
        (receipt.segments, "summary", "summaries"),
        (receipt.chunks, "chunk", ""),
        (receipt.items, "item of the store", "items of the store"),
        (receipt.contributions, "contributed quote", ""),
        (receipt.members, "membership", ""),
    )
    return [pluralize(count, one, several) for count, one, several in counted if count]
