"""Undo for a minute: what it takes back, what it refuses, and whose it is."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from langchain_core.messages import HumanMessage
from starlette.requests import Request

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.errors import UnavailableError
from langchain_supabase_memory.inspector import undo
from langchain_supabase_memory.inspector.screens.board import can_undo_delete
from tests.inspector.visiting import Person, Reader

ASKED: Any = {"thread": "t"}


async def toast(person: Person, answer: httpx.Response) -> Reader:
    """The page to which a change leads."""
    assert answer.status_code == 303, answer.text
    return Reader((await person.http.get(answer.headers["location"])).text)


async def take_back(person: Person, answer: httpx.Response, **asked: Any) -> httpx.Response:
    """Undo a change by the form of its page."""
    page = await toast(person, answer)
    assert page.all("div", class_="toast"), page.text
    (token,) = parse_qs(urlsplit(answer.headers["location"]).query)["undo"]
    assert page.all("button", name="undo", value=token)
    return await person.post("/conversation/undo", {"undo": token}, **(asked or ASKED))


async def begun(memory: SupabaseMemory) -> Any:
    """A conversation whose board has an item of a message."""
    said = memory.conversation("t")
    await said.aappend([HumanMessage("I must call Ana by Friday.", id="m0")])
    await said.board.arevise()
    return said


async def items(said: Any) -> list[tuple[str, str, bool]]:
    return [(each.text, each.state, each.pinned) for each in (await said.board.aread()).items]


async def test_a_pin_an_edit_and_a_deletion_are_undone(memory: SupabaseMemory) -> None:
    said = await begun(memory)
    before = await items(said)
    (item,) = (await said.board.aread()).items
    async with Person(memory, write=True, actor="ana") as person:
        for path, form in (
            ("pin", {"pin": item.id}),
            ("edit", {"item": item.id, "text": "I must call Ben by Friday.", "was": item.text}),
            ("edit", {"item": item.id, "delete": "1"}),
        ):
            answer = await person.post(f"/conversation/board/{path}", form, **ASKED)
            assert await items(said) != before, path
            undone = await take_back(person, answer)
            assert undone.status_code == 303, undone.text
            assert await items(said) == before, path
            again = await person.post("/conversation/undo", parse_form(answer), **ASKED)
            assert "cannot be undone any more" in again.text
            assert "undo" not in undone.headers["location"]
        page = await toast(person, answer)
    assert not page.all("div", class_="toast"), "it is undone already"


def parse_form(answer: httpx.Response) -> dict[str, str]:
    return {"undo": parse_qs(urlsplit(answer.headers["location"]).query)["undo"][0]}


async def test_what_failed_with_the_database_away_can_be_undone_again(memory: SupabaseMemory) -> None:
    said = await begun(memory)
    before = await items(said)
    (item,) = (await said.board.aread()).items
    async with Person(memory, write=True, actor="ana") as person:
        answer = await person.post("/conversation/board/pin", {"pin": item.id}, **ASKED)
        changes = person.app.state.inspector.undos._changes
        token = parse_form(answer)["undo"]
        change, failures = changes[token], iter([UnavailableError("The database is away.", hint="Try again.")])

        async def reverse(context: Any) -> None:
            for failure in failures:
                raise failure
            await change.reverse(context)

        changes[token] = replace(change, reverse=reverse)
        assert (await take_back(person, answer)).status_code == 503
        assert await items(said) != before
        assert (await take_back(person, answer)).status_code == 303
        assert await items(said) == before
        assert token not in changes


async def test_a_summary_is_undone(memory: SupabaseMemory) -> None:
    said = await begun(memory)
    async with Person(memory, write=True, actor="ana") as person:
        for text in ("The first.", "The second."):
            answer = await person.post("/conversation/board/summary", {"text": text}, **ASKED)
        await take_back(person, answer)
        assert (await said.board.aread()).edited_summary == "The first."
        answer = await person.post("/conversation/board/summary", {"text": "The third."}, **ASKED)
        await said.board.aedit_summary("Ben's.", actor="ben")
        refused = await take_back(person, answer)
    assert "it was changed since" in refused.text
    assert (await said.board.aread()).edited_summary == "Ben's."


async def test_nothing_comes_back_that_somebody_erased_or_changed_since(memory: SupabaseMemory) -> None:
    said = await begun(memory)
    (item,) = (await said.board.aread()).items
    async with Person(memory, write=True, actor="ana") as person:
        edited = {"item": item.id, "text": "I must call Ben by Friday.", "was": item.text}
        answer = await person.post("/conversation/board/edit", edited, **ASKED)
        await said.board.aedit(item.id, text="I must call nobody.", actor="ben")
        refused = await take_back(person, answer)
        assert "it was changed since" in refused.text
        assert [text for text, _, _ in await items(said)] == ["I must call nobody."]
        for form in ({**edited, "was": "I must call nobody."}, {"item": item.id, "delete": "1"}):
            answer = await person.post("/conversation/board/edit", form, **ASKED)
        await said.aforget_message("m0")
        refused = await take_back(person, answer)
        assert "a message that it came from is gone" in refused.text
        assert await items(said) == []


async def test_another_session_or_conversation_undoes_nothing_and_a_minute_ends(
    memory: SupabaseMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = await begun(memory)
    await memory.conversation("other").aadd_turn("hello", "hi")
    (item,) = (await said.board.aread()).items
    async with Person(memory, write=True) as person:
        answer = await person.post("/conversation/board/pin", {"pin": item.id}, **ASKED)
        elsewhere = await take_back(person, answer, thread="other")
        assert (elsewhere.status_code, "cannot be undone any more" in elsewhere.text) == (400, True)
        store = person.app.state.inspector.undos
        token = parse_form(answer)["undo"]
        assert store.find(("another session", None), token) is None
        monkeypatch.setattr(undo, "UNDO_SECONDS", 0.01)
        answer = await person.post("/conversation/board/pin", {"unpin": item.id}, **ASKED)
        await asyncio.sleep(0.1)
        assert not (await toast(person, answer)).all("div", class_="toast")
        assert parse_form(answer)["undo"] not in store._changes, "nothing of it stays in the process"
        monkeypatch.setattr(undo, "UNDO_SECONDS", 60.0)
        monkeypatch.setattr(undo, "_MAX_CHANGES", 2)
        for _ in range(4):
            await person.post("/conversation/board/pin", {"pin": item.id}, **ASKED)
        assert len(store._changes) == 2


async def test_what_would_hold_again_is_not_brought_back(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aadd_turn("I must call Ana by Friday.", "Fine.")
    await said.board.arevise()
    (item,) = (await said.board.aread()).items
    assert can_undo_delete(item)
    async with Person(memory, write=True) as person:
        panel = await person.page("/conversation/board/item", part=True, thread="t", item=item.id)
    assert "“Undo” brings its words back within a minute" in panel.text


async def test_a_pin_of_a_profile_is_undone_and_a_deletion_asks_first(memory: SupabaseMemory) -> None:
    item = await memory.profile.aremember("I live in Manila.", kind="fact", subject="home", actor="maya")
    async with Person(memory, write=True, actor="ana") as person:
        answer = await person.post("/profile/mark", {"pin": item})
        page = await toast(person, answer)
        assert page.all("div", class_="toast")
        assert (await memory.profile.aread())[0].pinned
        undone = await person.post("/profile/undo", parse_form(answer))
        assert undone.status_code == 303
        assert not (await memory.profile.aread())[0].pinned
        assert (await person.post("/profile/delete", {"item": item})).status_code == 400
        panel = await person.page("/profile/item", part=True, item=item)
        assert "It cannot be undone" in panel.text
        assert (await person.post("/profile/delete", {"item": item, "sure": "1"})).headers["location"] == "/profile"


async def test_whoever_signs_in_after_another_in_one_browser_undoes_nothing_of_theirs(
    server: SupabaseMemory, user_id: str
) -> None:
    """An application mounts the inspector; both have a conversation of the same name."""
    talks = [await begun(server.for_user(each)) for each in (user_id, f"{user_id}-other")]

    def memory_for(_: Request) -> SupabaseMemory:
        return server.for_token({"sub": signed_in, "role": "authenticated"})

    signed_in = user_id
    async with Person(memory_for, write=True) as person:
        (item,) = (await talks[0].board.aread()).items
        answer = await person.post("/conversation/board/edit", {"item": item.id, "delete": "1"}, **ASKED)
        before = await items(talks[1])
        signed_in = f"{user_id}-other"
        page = await toast(person, answer)
        assert not page.all("div", class_="toast"), "nor are they told of it"
        refused = await person.post("/conversation/undo", parse_form(answer), **ASKED)
        assert "cannot be undone any more" in refused.text
        assert await items(talks[1]) == before
        signed_in = user_id
        assert (await take_back(person, answer)).status_code == 303
        assert [text for text, _, _ in await items(talks[0])] == [item.text]
