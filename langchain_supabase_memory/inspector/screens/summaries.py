"""The segments of the rolling summary: what each covers, its text, and people's edits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens import conversation_header

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

NEWEST: Final = 20
"""The number of segments on the page."""


async def screen(request: Request) -> Response:
    """Render the newest segments, the newest first."""
    context = RequestContext(request)
    conversation = context.conversation()
    head, segments = await gather_all(
        conversation_header.load_header(context), conversation.summaries.alist(last=NEWEST)
    )
    return render_page(
        context,
        "summaries.html",
        tab="summaries",
        etag=head.etag,
        about="conversation",
        header=head,
        segments=segments[::-1],
        newest=NEWEST,
    )
