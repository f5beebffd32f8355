"""The segments of the rolling summary: what each covers, what it says, and what people make of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.rendering import shown
from langchain_supabase_memory.inspector.screens import frame
from langchain_supabase_memory.inspector.visit import Visit

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

NEWEST: Final = 20
"""The segments of the page."""


async def screen(request: Request) -> Response:
    """The newest segments, the newest first."""
    visit = Visit(request)
    conversation = visit.conversation()
    head, segments = await asyncio.gather(frame.of(visit), conversation.asummaries(last=NEWEST))
    return shown(
        visit,
        "summaries.html",
        tab="summaries",
        seen=head.seen,
        about="conversation",
        frame=head,
        segments=segments[::-1],
        newest=NEWEST,
    )
