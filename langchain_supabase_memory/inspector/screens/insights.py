"""What a user's conversations came to: the numbers of 30 days as lines, and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens.topics import topics_owner
from langchain_supabase_memory.inspector.screens.usage_lines import DAYS, NUMBERS, usage_rows

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def screen(request: Request) -> Response:
    """Render the numbers and the advice."""
    context = RequestContext(request)
    if context.sees_all_users and context.user_id is None:
        await context.reader.for_user("inspector").usage.aby_day()  # raises where the schema is another release's
        return render_page(context, "insights.html", tab="insights", rows=None, advice=[], days=DAYS)
    mine = topics_owner(context)
    rows, advice = await gather_all(usage_rows(mine, NUMBERS), mine.aadvice())
    return render_page(context, "insights.html", tab="insights", rows=rows, advice=advice, days=DAYS)
