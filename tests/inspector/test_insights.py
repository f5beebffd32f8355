"""The screen of insights: numbers as lines, and advice."""

from __future__ import annotations

import httpx

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.inspector import application
from tests.inspector.visiting import ADDRESS, Reader


async def test_insights_are_shown(conn_string: str, user_id: str) -> None:
    memory = SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None)
    memory.conversation("t").append("The kiln cracked.")
    memory.usage.update()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application(memory)), base_url=ADDRESS) as http:
        page = (await http.get("/insights")).text
    seen = Reader(page)
    assert "1 today" in seen.text
    assert "too little is known yet" in seen.text
    assert len([name for name, _ in seen.elements if name == "polyline"]) == 6
    assert "style=" not in page
