"""Actions on a page, as they are stored: each action, its actor, and what is rejected."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.inspector.screens.conversation_header import ConversationHeader
from tests.inspector.test_screens import talk
from tests.inspector.visiting import Person, Reader

ASKED: Any = {"thread": "t"}


async def test_an_item_is_written_pinned_edited_and_deleted(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aadd_turn("hello", "hi")
    async with Person(memory, write=True, actor="ana") as person:
        form = {"kind": "action", "text": "Order clay", "type": "person"}
        done = await person.post("/conversation/board/add", form, **ASKED)
        assert done.status_code == 303
        (item,) = (await said.board.aread()).items
        assert done.headers["location"].endswith(f"#item-{item.id}")
        assert (item.text, item.kind, item.author) == ("Order clay", "action", "ana")

        await person.post("/conversation/board/pin", {"pin": item.id}, **ASKED)
        assert [each.pinned for each in (await said.board.aread()).items] == [True]
        await person.post("/conversation/board/pin", {"unpin": item.id}, **ASKED)
        assert [each.pinned for each in (await said.board.aread()).items] == [False]

        edited = {"item": item.id, "text": "Order white clay", "was": item.text, "state": "done", "was_state": "open"}
        await person.post("/conversation/board/edit", edited, **ASKED)
        (changed,) = (await said.board.aread(history=True)).items
        assert (changed.text, changed.state, changed.edited_by) == ("Order white clay", "done", "ana")

        page = await person.page("/conversation/board/history", thread="t")
        assert "Order clay" in page.text
        await person.post("/conversation/board/edit", {"item": item.id, "delete": "1"}, **ASKED)
        assert (await said.board.aread()).items == []


async def test_an_entity_has_a_type(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aadd_turn("hello", "hi")
    async with Person(memory, write=True) as person:
        await person.post("/conversation/board/add", {"kind": "entity", "text": "Cebu", "type": "place"}, **ASKED)
    assert [each.type for each in (await said.board.aread()).items] == ["place"]


async def test_what_is_no_item_is_refused_with_the_next_action(memory: SupabaseMemory) -> None:
    await memory.conversation("t").aadd_turn("hello", "hi")
    async with Person(memory, write=True) as person:
        for path, form, status, said in (
            ("/conversation/board/add", {"kind": "wish", "text": "x"}, 400, "Choose a kind from the list."),
            ("/conversation/board/add", {"kind": "fact", "text": " "}, 400, "text"),
            ("/conversation/board/add", {"kind": "fact", "text": "x" * 501}, 400, "500"),
            ("/conversation/board/pin", {"pin": "no such"}, 404, "no such item on this board"),
            ("/conversation/board/pin", {"unpin": str(uuid4())}, 404, "item"),
            ("/conversation/board/edit", {"item": "no such", "delete": "1"}, 404, "no such item on this board"),
            ("/conversation/board/edit", {"item": str(uuid4()), "text": "x"}, 404, "item"),
            ("/conversation/board/edit", {"item": "-" * 36, "text": "x"}, 400, "must be an id"),
            ("/conversation/segment", {"number": "x", "text": "y"}, 400, "Use the forms of the page."),
            ("/conversation/segment", {"number": "7", "text": "y"}, 404, "There is no such summary"),
        ):
            answer = await person.post(path, form, **ASKED)
            _, _, shown = Reader(answer.text).text.partition("Skip to content")
            assert (answer.status_code, said in shown) == (status, True), (path, form, shown)
    assert (await memory.conversation("t").board.aread()).is_empty


async def test_the_boards_summary_is_written_and_taken_back(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aadd_turn("hello", "hi")
    async with Person(memory, write=True, actor="ana") as person:
        await person.post("/conversation/board/summary", {"text": "About clay."}, **ASKED)
        board = await said.board.aread()
        assert (board.edited_summary, board.edited_by) == ("About clay.", "ana")
        await person.post("/conversation/board/summary", {"text": ""}, **ASKED)
        assert (await said.board.aread()).edited_summary is None


async def test_segments_are_edited_deleted_and_regenerated(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aappend(talk(60))
    await said.summaries.amake(policy=SummaryPolicy(messages=10, keep_messages=6))
    first = (await said.summaries.alist())[0]
    async with Person(memory, write=True, actor="ana") as person:
        assert first.content.splitlines()[0] in (await person.answer("/conversation/summaries", **ASKED)).text
        await person.post(
            "/conversation/segment", {"number": str(first.number), "text": "It was about a kiln."}, **ASKED
        )
        edited = (await said.summaries.alist())[0]
        assert (edited.content, edited.edited_by) == ("It was about a kiln.", "ana")
        await person.post("/conversation/regenerate", {"what": "summaries"}, **ASKED)
        assert (await said.summaries.alist())[0].content == "It was about a kiln.", "what a person wrote stays"
        await person.post("/conversation/segment", {"number": str(first.number), "delete": "1"}, **ASKED)
        assert [each for each in await said.summaries.alist() if each.edited_by] == []
    assert {each.changed_by for each in await said.privacy.achanges()} == {"ana"}


async def test_a_board_is_regenerated_and_keeps_what_a_person_wrote(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aappend([HumanMessage("My kiln stopped at 840 degrees.", id="m0")])
    async with Person(memory, write=True, actor="ana") as person:
        await person.post("/conversation/board/add", {"kind": "fact", "text": "A person wrote this."}, **ASKED)
        done = await person.post("/conversation/regenerate", {"what": "board"}, **ASKED)
    assert done.status_code == 303
    board = await said.board.aread()
    assert "A person wrote this." in [each.text for each in board.items]
    assert board.through_sequence == 0


async def test_a_conversation_is_opted_out_and_in_again(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aadd_turn("hello", "hi")
    async with Person(memory, write=True, actor="ana") as person:
        assert (await person.post("/conversation/remember", {"do": "opt_out"}, **ASKED)).status_code == 400
        assert await said.privacy.aopt_outs() == [], "it is asked first"
        await person.post("/conversation/remember", {"do": "opt_out", "sure": "1"}, **ASKED)
        assert [each.actor for each in await said.privacy.aopt_outs()] == ["ana"]
        page = await person.page("/conversation", thread="t")
        assert "opted out: nothing is derived from it" in page.text
        assert "Undo “Do not remember”" in page.text
        info, status = await said.ainfo(), await said.work.astatus()
        assert status is not None
        assert info.opted_out_at is not None
        later = replace(info, opted_out_at=info.opted_out_at - timedelta(seconds=61))
        assert [ConversationHeader(each, status, "").can_undo for each in (info, later)] == [True, False]
        await person.post("/conversation/remember", {"do": "opt_in"}, **ASKED)
        assert await said.privacy.aopt_outs() == []


async def test_a_summary_is_asked_for(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aadd_turn("hello", "hi")
    async with Person(memory, write=True) as person:
        assert (await person.post("/conversation/summarize", {}, **ASKED)).status_code == 303
    status = await said.work.astatus()
    assert status is not None
    assert status.state == "due"


async def test_what_was_given_up_is_tried_again(server: SupabaseMemory, user_id: str, conn_string: str) -> None:
    for thread in ("one", "two", "three"):
        await server.for_user(user_id).conversation(thread).aadd_turn("a", "b", idempotency_key=thread)
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            "update memory_private.work set run_after = 'infinity', dead_at = now() where user_id = %s", [user_id]
        )

    async def dead() -> set[str]:
        return {each.key.thread_id for each in await server.for_user(user_id).work.astatus(state="dead")}

    async with Person(server, write=True) as person:
        page = await person.page("/queue", user=user_id)
        assert len([each for each in page.all("form") if "/queue/retry" in str(each["action"])]) == 5
        assert "Look for this name in the worker's log" in page.text
        done = await person.post("/queue/retry", {}, user=user_id, agent="default", thread="two")
        assert (done.status_code, await dead()) == (303, {"one", "three"})
        await person.post("/queue/retry", {}, user=user_id)
        assert await dead() == set()


async def test_what_failed_by_one_cause_is_tried_again_at_once(
    server: SupabaseMemory, user_id: str, conn_string: str
) -> None:
    for thread in ("one", "two", "three"):
        await server.for_user(user_id).conversation(thread).aadd_turn("a", "b", idempotency_key=thread)
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            "update memory_private.work w set run_after = 'infinity', dead_at = now(), paused = jsonb_build_object("
            " 'board', jsonb_build_object('error', case c.thread_id when 'three' then 'AuthenticationError'"
            " else 'malformed' end, 'failures', 8, 'until', 'infinity')) from memory.conversations c"
            " where c.id = w.conversation_id and c.user_id = w.user_id and w.user_id = %s",
            [user_id],
        )
    async with Person(server, write=True) as person:
        page = await person.page("/queue", user=user_id)
        assert "malformed × 2" in page.text
        assert "Use a model with structured output" in page.text
        assert "Check the model's key" in page.text
        await person.post("/queue/retry", {"cause": "malformed"})
        left = await server.for_user(user_id).work.astatus(state="dead")
    assert [each.key.thread_id for each in left] == ["three"]
