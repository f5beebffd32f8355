"""The spaces that a user is in, and what spaces hold of that user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import RedirectResponse

from langchain_supabase_memory.errors import MigrationConflictError, NotFoundError
from langchain_supabase_memory.inspector.paging import list_page
from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext, no_space

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.contributions import Contribution, SharedData
    from langchain_supabase_memory.operations.spaces import SpaceInfo

PAGE: Final = 50
"""The number of spaces, or of contributions, on a page."""

MAX_SEARCHES: Final = 10
"""How often the message of a contribution is searched for; each search looks at 2,000 messages."""


async def screen(request: Request) -> Response:
    """Render the list, with what the user has left behind in spaces that they left."""
    context = RequestContext(request)
    found: list[SpaceInfo] = []
    shared: SharedData | None = None
    is_off = False
    try:
        if context.has_user:
            mine = context.reader._for(context.user_id).spaces
            found = await mine.alist()
            shared = await mine.ashared_data()
        else:
            await context.reader.for_user("inspector").spaces.alist()  # raises where spaces are off
    except MigrationConflictError:
        is_off = True
    held = {} if shared is None else {each.space_id: each for each in shared.spaces}
    return render_page(
        context,
        "spaces.html",
        tab="spaces",
        is_off=is_off,
        needs_user=not context.has_user,
        spaces=list_page(context, found, "spaces", PAGE),
        held=held,
        left=[each for each in held.values() if each.role is None][:PAGE],
        contributed=0 if shared is None else len(shared.contributions),
    )


async def shared(request: Request) -> Response:
    """Render what the user has contributed to spaces, also to those that they have left."""
    context = RequestContext(request)
    mine = await _own(context).spaces.ashared_data()
    names = {each.space_id: each.name for each in await _own(context).spaces.alist()}
    return render_page(
        context,
        "shared.html",
        tab="spaces",
        contributions=list_page(context, mine.contributions, "contributions", PAGE),
        names=names,
    )


async def source(request: Request) -> Response:
    """Redirect to the message that a contribution quotes, which only its owner can follow back."""
    context = RequestContext(request)
    mine = await _own(context).spaces.ashared_data()
    item = context.query.get("item", "")
    found = next((each for each in mine.contributions if each.item_id == item), None)
    if found is None:
        raise NotFoundError("You have contributed no such item.", hint="It may have been withdrawn.")
    conversation = _own(context).conversation(found.thread_id, agent_id=found.agent_id)
    place = await _place(conversation, found)
    where = {} if place is None else {"at": place}
    owner = context.user_id
    address = context.conversation_link("", owner, found.agent_id, found.thread_id, **where)
    return RedirectResponse(address if place is None else f"{address}#m{place}", 303)


async def _place(conversation: Conversation, contribution: Contribution) -> int | None:
    """Return the sequence of a contribution's message; `None` if it is far back."""
    after: str | None = None
    for _ in range(MAX_SEARCHES):
        page = await conversation.afind(contribution.quote, match_case=True, after=after)
        for hit in page:
            if hit.message.message_id == contribution.message_id:
                return hit.message.sequence
        after = page.after
        if after is None:
            break
    return None


def _own(context: RequestContext) -> SupabaseMemory:
    if not context.has_user:
        raise no_space()
    return context.reader._for(context.user_id)
