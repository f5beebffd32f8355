"""The screen of topics: what it shows, and what a person changes there."""

from __future__ import annotations

import httpx
import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.inspector import application
from tests.inspector.visiting import ADDRESS, Reader


@pytest.fixture
def talked(conn_string: str, user_id: str) -> SupabaseMemory:
    memory = SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None)
    for number, text in enumerate(["The <b>kiln</b> cracked.", "The rye dough is sticky."]):
        memory.conversation(f"t{number}").append(text)
        memory.conversation(f"t{number}").index()
    memory.topics.update()
    return memory


async def test_topics_are_shown_and_changed(talked: SupabaseMemory) -> None:
    app = application(talked, write=True, actor="ana")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ADDRESS) as http:
        page = (await http.get("/topics")).text
        seen = Reader(page)
        assert "kiln, cracked" in seen.text or "cracked, kiln" in seen.text
        assert "The <b>kiln</b> cracked." in seen.text, "a quote is text"
        assert len([name for name, _ in seen.elements if name == "polyline"]) == 2
        assert "style=" not in page
        token = next(str(given["value"]) for _, given in seen.elements if given.get("name") == "csrf_token")
        kiln = next(each for each in talked.topics.read() if "kiln" in each.words)
        rye = next(each for each in talked.topics.read() if "rye" in each.words)

        async def post(path: str, **form: str) -> int:
            sent = {"csrf_token": token, **form}
            return (await http.post(path, data=sent, headers={"origin": ADDRESS})).status_code

        assert await post("/topics/rename", topic=kiln.id, name="Pottery") == 303
        assert talked.topics.get(kiln).label == "Pottery"  # type: ignore[union-attr]
        assert await post("/topics/hide", topic=rye.id, do="hide") == 303
        assert [each.id for each in talked.topics.read()] == [kiln.id]
        assert "dough" in (await http.get("/topics?hidden=1")).text
        assert await post("/topics/hide", topic=rye.id, do="show") == 303
        assert await post("/topics/forget", topic=kiln.id) == 422 or talked.topics.get(kiln) is not None
        assert await post("/topics/merge", topic=rye.id, into=kiln.id) == 303
        assert await post("/topics/forget", topic=kiln.id, sure="1") == 303
        assert talked.topics.read(hidden=True) == []
        assert "No topic is found yet" in (await http.get("/topics")).text


async def test_without_write_there_is_no_form(talked: SupabaseMemory) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application(talked)), base_url=ADDRESS) as http:
        assert "Forget" not in Reader((await http.get("/topics")).text).text
