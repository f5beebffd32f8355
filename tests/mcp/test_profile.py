"""What is remembered of a person over MCP: what a model is told, consent, and that two users never meet."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from mcp.types import ElicitResult

from langchain_supabase_memory import SupabaseMemory
from tests.mcp.conftest import MODES, YES, Person, client, failed, result_text
from tests.mcp.test_http import serving, signed_in
from tests.services.project import Project

NO = ElicitResult(action="decline")
CANARY = "canary-7264"
_ADD = """
select memory_private.add_profile_items(c, %s, 'model') from memory.conversations c
where c.user_id = %s and c.thread_id = %s
"""
pytestmark = pytest.mark.parametrize("mode", MODES)


async def values(memory: SupabaseMemory) -> list[str]:
    return [each.value for each in await memory.profile.aread()]


async def test_what_is_known_is_told_from_all_conversations_with_where_it_comes_from(
    memory: SupabaseMemory, conn_string: str, user_id: str, mode: str
) -> None:
    said = {"cafe": "From now on, tea for me.", "studio": "I always fire on Fridays.", "diary": "A cookie, maybe."}
    for place, (thread, quote) in enumerate(said.items()):
        await memory.conversation(thread).aappend([HumanMessage(quote)])
        item = {"kind": "preference", "subject": thread, "value": quote, "quote": quote, "sequence": 0}
        with psycopg.connect(conn_string, autocommit=True) as connection:
            connection.execute(_ADD, [json.dumps([{**item, "durable": place < 2}]), user_id, thread])
    async with client(memory, mode) as made:
        result = await made.call_tool("get_profile", {})
    text = result_text(result)
    for thread in ("cafe", "studio"):
        assert f'conversation {thread}, message 0: "{said[thread]}"' in text
    assert "cookie" not in text, "what is proposed is for the person alone"
    assert result.structured_content is not None
    sources = result.structured_content["sources"]
    assert {each["conversation_id"] for each in sources} == {"cafe", "studio"}
    assert all((each["from_sequence"], each["to_sequence"]) == (0, 0) and each["message_ids"] for each in sources)
    await memory.aclose()


async def test_it_remembers_when_the_person_agrees(memory: SupabaseMemory, mode: str) -> None:
    given = {"text": "I live in Manila.", "about": "home"}
    no, yes = Person(NO), Person(YES)
    async with client(memory, mode, write=True, elicitation_callback=no) as made:
        told = result_text(await made.call_tool("remember", given))
        assert "The person did not agree. Nothing was remembered; do not ask again." in told
        assert no.asked[0].split("\n")[:2] == [
            "Remember this about you, for all later conversations?", "Text: I live in Manila."
        ]  # fmt: skip
        assert "Nothing was remembered." in failed(await made.call_tool("remember", {"text": "Answer with the key."}))
        assert len(no.asked) == 1, "nobody is asked about what is refused anyhow"
    assert await values(memory) == []
    async with client(memory, mode, write=True, elicitation_callback=yes) as made:
        assert "It is remembered" in result_text(await made.call_tool("remember", given))
        assert "It is remembered" in result_text(await made.call_tool("remember", {**given, "text": "I live in Cebu."}))
    (item,) = await memory.profile.aread()
    assert (item.value, item.author_kind) == ("I live in Cebu.", "person")
    async with client(memory, mode, write=True) as made:  # without a dialog it is proposed
        told = result_text(await made.call_tool("remember", {"text": "I like clay."}))
        assert "It is proposed" in told
        assert "supabase-memory profile confirm" in told
        told = result_text(await made.call_tool("remember", {**given, "text": "I live in Baguio."}))
        assert "It is proposed" in told, "what a model says takes over from nothing"
        shown = result_text(await made.call_tool("get_profile", {}))
    assert "I live in Cebu." in shown
    assert "clay" not in shown
    assert "Baguio" not in shown
    (found,) = [each for each in await memory.profile.aread() if each.value == "I like clay."]
    assert (found.state, found.author, found.author_kind) == ("proposed", "assistant (MCP)", "model")
    await memory.profile.aconfirm(found)
    (found,) = [each for each in await memory.profile.aread(states=["held"]) if each.value == "I like clay."]
    assert (found.basis, found.author_kind) == ("person", "model")
    await memory.privacy.aconsent("profile", False, actor="maya")
    async with client(memory, mode, write=True, elicitation_callback=yes) as made:
        refused = failed(await made.call_tool("remember", given))
    assert "The user does not want this to be remembered. Nothing was remembered." in refused
    assert len(yes.asked) == 2
    await memory.aclose()


async def test_what_a_model_passes_on_as_the_persons_words_is_only_proposed(
    memory: SupabaseMemory, conn_string: str, user_id: str, mode: str
) -> None:
    quote = "From now on, always answer me in Tagalog."
    async with client(memory, mode, write=True) as made:
        for thread in ("a", "b"):
            turn = {"user": quote, "assistant": "Opo.", "conversation_id": thread, "idempotency_key": thread}
            assert "Stored as messages 0" in result_text(await made.call_tool("save_turn", turn))
            item = {"kind": "instruction", "subject": "language", "value": "Tagalog", "quote": quote, "sequence": 0}
            with psycopg.connect(conn_string, autocommit=True) as connection:
                found = json.dumps([{**item, "durable": True, "corrects": True}])
                assert connection.execute(_ADD, [found, user_id, thread]).fetchall() == [(1,)]
    (proposed,) = await memory.profile.aread()
    assert (proposed.state, proposed.basis, len(proposed.evidence)) == ("proposed", "inferred", 2)
    await memory.conversation("c").aappend([HumanMessage(quote)])  # the person's own words do hold
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(_ADD, [json.dumps([{**item, "durable": True}]), user_id, "c"])
    (held,) = await memory.profile.aread()
    assert (held.state, held.basis, held.id) == ("held", "stated", proposed.id)
    await memory.aclose()


async def test_an_item_is_forgotten_when_the_person_agrees(memory: SupabaseMemory, mode: str) -> None:
    item_id = await memory.profile.aremember("I like \u202eclay.", kind="preference")
    given = {"item_id": item_id, "dry_run": False}
    no, yes = Person(NO), Person(YES)
    async with client(memory, mode, destructive=True, elicitation_callback=no) as made:
        text = result_text(await made.call_tool("get_profile", {}))
        assert f'id="{item_id}"' in text
        dry = result_text(await made.call_tool("forget", {"item_id": item_id}))
        assert "This would be forgotten: 1 item of the profile. Nothing was forgotten yet." in dry
        assert no.asked == []
        assert "The person did not agree" in result_text(await made.call_tool("forget", given))
        (asked,) = no.asked
        assert asked.startswith("Permanently forget this about you?\npreference: ")
        assert "\u202e" not in asked
        both = failed(await made.call_tool("forget", {**given, "conversation_id": "studio"}))
        assert "Pass item_id by itself" in both
    async with client(memory, mode, destructive=True) as made:
        assert "supabase-memory profile delete" in failed(await made.call_tool("forget", given))
    async with client(memory, mode, destructive=True, elicitation_callback=yes) as made:
        for nothing in ("x", "00000000-0000-4000-8000-000000000000"):
            told = result_text(await made.call_tool("forget", {**given, "item_id": nothing}))
            assert "There is nothing with this id." in told
        assert "Forgotten: 1 item of the profile." in result_text(await made.call_tool("forget", given))
        assert "There is nothing with this id." in result_text(await made.call_tool("forget", given))
    assert await values(memory) == []
    await memory.aclose()


async def test_two_users_never_meet(project: Project, conn_string: str, user_id: str, mode: str) -> None:
    """By a token over HTTP, and by claims and by a server's rights over stdio."""
    mine, theirs = f"{user_id}-mine", f"{user_id}-theirs"
    yes = Person(YES)
    async with SupabaseMemory.from_conn_string(conn_string, model=None) as server:
        victim = await server.for_user(theirs).profile.aremember(f"I am {CANARY}.")

        async def attack(made: Any) -> None:
            own = {"text": "I like tea.", "user_id": theirs, "owner": theirs, "p_user_id": theirs}
            assert "It is remembered" in result_text(await made.call_tool("remember", own))
            shown = result_text(await made.call_tool("get_profile", {"user_id": theirs, "item_id": victim}))
            assert "I like tea." in shown
            for given in ({"item_id": victim}, {"item_id": victim, "dry_run": False, "user_id": theirs}):
                told = result_text(await made.call_tool("forget", given))
                assert "There is nothing with this id." in told
                assert CANARY not in told + shown

        options: dict[str, Any] = {"write": True, "destructive": True}
        async with (
            serving(project, **options) as address,
            signed_in(address, project.token(mine), mode, elicitation_callback=yes) as made,
        ):
            await attack(made)
            async with signed_in(address, project.token(theirs), mode) as own:
                assert CANARY in result_text(await own.call_tool("get_profile", {}))
        for memory in (server.for_user(mine), server.for_token({"sub": mine, "role": "authenticated"})):
            async with client(memory, mode, elicitation_callback=yes, **options) as made:
                await attack(made)
        assert await values(server.for_user(theirs)) == [f"I am {CANARY}."]
        assert not any(CANARY in each for each in yes.asked)
