"""The setup and health of the memory: the findings of `supabase-memory doctor`, with hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def screen(request: Request) -> Response:
    """Render the findings. They name the host and the keys, and call the embedder, so users never see them."""
    context = RequestContext(request)
    if context.acts_as_user:
        raise HTTPException(404)
    return render_page(context, "doctor.html", tab="doctor", rows=await context.memory.adoctor())
