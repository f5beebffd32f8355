"""What was said in a range of messages, in place on the pages that name it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.responses import RedirectResponse

from langchain_supabase_memory.inspector.rendering import part
from langchain_supabase_memory.inspector.visit import Visit, nobody_knows
from langchain_supabase_memory.language.messages import content

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.values import StoredMessage

MOST: Final = 20
"""The most messages that are shown in place; the rest is on the time line."""


async def screen(request: Request) -> Response:
    """The first messages of a range; for who opens the address itself, the time line from there."""
    visit = Visit(request)
    first, last = visit.number("first"), visit.number("last")
    if first is None or last is None or last < first:
        raise nobody_knows()
    if request.headers.get("hx-request") != "true":
        return RedirectResponse(visit.here("", at=first) + "#said", 303)
    shown = min(last, first + MOST - 1)
    read = visit.conversation().aread(
        from_sequence=first, to_sequence=shown, columns=["role", "text", "created_at", "payload"]
    )
    _, found = await asyncio.gather(visit.known(), read)
    lines = [(message, content.LABELS[message.role or "user"], words(message)) for message in found]
    gone = shown - first + 1 - len(found)
    return part(visit, "part_said.html", lines=lines, gone=gone, rest=last - shown, following=shown + 1)


def words(message: StoredMessage) -> str:
    """What was said, or what was called."""
    if message.unreadable:
        return ""
    said = message.text or ""
    return said if said or message.message is None else content.line(message.message)
