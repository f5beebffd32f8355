"""What a user's conversations came to: the numbers of 30 days as lines, and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens.usage_lines import DAYS, NUMBERS, usage_rows

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.advice import Advice


async def screen(request: Request) -> Response:
    """Render the numbers and the advice."""
    context = RequestContext(request)
    if not context.has_user:
        await context.reader.for_user("inspector").usage.aby_day()  # raises where the schema is another release's
        return render_page(context, "insights.html", tab="insights", rows=None, advice=[], days=DAYS)
    mine = context.for_user("insights")
    rows, advice = await gather_all(usage_rows(mine, NUMBERS), _advice(context, mine))
    return render_page(context, "insights.html", tab="insights", rows=rows, advice=advice, days=DAYS)


async def _advice(context: RequestContext, mine: SupabaseMemory) -> list[Advice] | None:
    """Return the advice if the address asks for it: it replays up to 200 prompts, so the numbers come first."""
    return await mine.aadvice() if "advice" in context.query else None
