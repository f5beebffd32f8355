"""The users, as the first page of everybody's data: a list that narrows while one types, and the work in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.values import LONGEST_ID

if TYPE_CHECKING:
    from starlette.responses import Response

    from langchain_supabase_memory.inspector.request_context import RequestContext

PAGE: Final = 25
"""The number of users on a page."""

_OTHER_LISTS: Final = ("list", "user", "space", "agent", "state", "after", "before")
"""The arguments of an address that ask for conversations."""


def is_start(context: RequestContext) -> bool:
    """Return whether an address asks for everybody's data and for nothing in particular."""
    return context.sees_all_users and not any(context.query.get(name) for name in _OTHER_LISTS)


async def respond(context: RequestContext) -> Response:
    """Render the users whose ids begin with what was typed."""
    prefix = context.query.get("prefix", "").strip()[:LONGEST_ID]
    page, queue = await gather_all(
        context.reader.work.ausers(prefix=prefix or None, limit=PAGE, after=context.query.get("from") or None),
        context.reader.work.aqueue(),
    )
    return render_page(context, "users.html", tab="conversations", prefix=prefix, page=page, queue=queue)
