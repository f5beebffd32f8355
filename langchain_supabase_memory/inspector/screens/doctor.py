"""How the memory is set up, and how it stands: what `supabase-memory doctor` finds, with the next action."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.inspector.rendering import shown
from langchain_supabase_memory.inspector.visit import Visit

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def screen(request: Request) -> Response:
    """The findings."""
    visit = Visit(request)
    return shown(visit, "doctor.html", tab="doctor", rows=await visit.memory.adoctor())
