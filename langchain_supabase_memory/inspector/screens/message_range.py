"""A range of messages, shown in place on the pages that refer to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import RedirectResponse

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import render_part
from langchain_supabase_memory.inspector.request_context import RequestContext, not_found
from langchain_supabase_memory.language.messages import content

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.values import StoredMessage

MAX_MESSAGES: Final = 20
"""The maximum number of messages shown in place; the rest is on the timeline."""


async def screen(request: Request) -> Response:
    """Render the first messages of a range; when the address is opened directly, redirect to the timeline there."""
    context = RequestContext(request)
    first, last = context.number("first"), context.number("last")
    if first is None or last is None or last < first:
        raise not_found()
    if not context.is_part:
        return RedirectResponse(context.page_link("", at=first) + "#messages", 303)
    shown = min(last, first + MAX_MESSAGES - 1)
    read = context.conversation().aread(
        from_sequence=first, to_sequence=shown, columns=["role", "text", "created_at", "payload"]
    )
    _, found = await gather_all(context.listed_conversation(), read)
    lines = [(message, content.LABELS[message.role or "user"], text_of(message)) for message in found]
    gone = shown - first + 1 - len(found)
    return render_part(
        context, "part_message_range.html", lines=lines, gone=gone, rest=last - shown, following=shown + 1
    )


def text_of(message: StoredMessage) -> str:
    """Return a message's text, or its tool calls."""
    if message.unreadable:
        return ""
    text = message.text or ""
    return text if text or message.payload is None else content.line(message.payload)
