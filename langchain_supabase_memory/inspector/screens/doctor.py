"""How the memory is set up, and how it stands: what `supabase-memory doctor` finds, with the next action."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from langchain_supabase_memory.inspector.rendering import shown
from langchain_supabase_memory.inspector.visit import Visit

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def screen(request: Request) -> Response:
    """The findings. They name the host and the keys, and ask the embedder: none of that is for who acts as a user."""
    visit = Visit(request)
    if visit.acts_as_user:
        raise HTTPException(404)
    return shown(visit, "doctor.html", tab="doctor", rows=await visit.memory.adoctor())
