"""The screen of insights: numbers as lines, and advice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.inspector import application
from langchain_supabase_memory.inspector.screens.usage_lines import NUMBERS
from tests.inspector.visiting import ADDRESS, Person, Reader, memory_of


async def test_insights_are_shown(conn_string: str, user_id: str) -> None:
    memory = SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None)
    memory.conversation("t").append("The kiln cracked.")
    memory.usage.update()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application(memory)), base_url=ADDRESS) as http:
        page = (await http.get("/insights")).text
        asked = Reader((await http.get("/insights?advice=1")).text)
    seen = Reader(page)
    assert "1 today" in seen.text
    assert "Replay the last answers" in seen.text
    assert "too little is known yet" not in seen.text, "advice takes its time, so the numbers come first"
    assert "too little is known yet" in asked.text
    assert len([name for name, _ in seen.elements if name == "polyline"]) == len(NUMBERS)
    assert "style=" not in page


async def test_the_home_screen_has_todays_numbers_and_thirty_days_as_lines(conn_string: str, user_id: str) -> None:
    async with memory_of(conn_string, user_id, model=None) as memory, Person(memory) as person:
        days = [datetime.now(UTC) - timedelta(days=ago) for ago in (0, 3, 20, 40)]
        for place, day in enumerate(days):
            await memory.conversation(f"t{place}").aappend("The kiln cracked.", created_at=[day])
        assert not (await person.page("/")).all("ul", class_="usage"), "nothing is counted yet"
        await memory.usage.aupdate()
        home = await person.page("/")
        assert "Turns1 today2 in 7 days, 3 in 30" in home.text
        assert len(home.all("polyline")) == 1, "no prompt was sent, so those lines would be flat"
        for narrowed in ("/?state=due", "/?agent=default", "/?signal=thanks"):
            assert not (await person.page(narrowed)).all("ul", class_="usage")
    async with memory_of(conn_string) as server, Person(server) as person:
        assert (await person.page("/", user=user_id)).all("ul", class_="usage")
        assert not (await person.page("/")).all("ul", class_="usage")
