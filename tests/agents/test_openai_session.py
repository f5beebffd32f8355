"""`SupabaseSession` with the real OpenAI Agents SDK, and a model that answers from a script."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.agents.openai_session import SupabaseSession
from langchain_supabase_memory.redaction import PERSONAL_DATA


@pytest.fixture(scope="module")
def scripted() -> Any:
    """The SDK, with a model that answers from a script. It takes a second of the processor, so only users import it."""
    pytest.importorskip("agents")
    return import_module("tests.agents.scripted_sdk")


async def test_it_is_a_session_of_the_sdk_and_runs_read_what_was_said(memory: SupabaseMemory, scripted: Any) -> None:
    sdk = scripted.sdk
    session = SupabaseSession("t", memory)
    assert isinstance(session, sdk.Session)
    model = scripted.ScriptedModel(
        scripted.call(), scripted.answer("That is the thermocouple."), scripted.answer("It comes on Friday.")
    )
    agent = sdk.Agent(name="kiln", model=model, tools=[scripted.code])
    config = sdk.RunConfig(tracing_disabled=True)
    first = await sdk.Runner.run(agent, "My kiln shows E-47", session=session, run_config=config)
    assert first.final_output == "That is the thermocouple."
    await sdk.Runner.run(agent, "When does it come?", session=SupabaseSession("t", memory), run_config=config)
    sent = model.sent[-1]
    kinds = [each.get("type", each.get("role")) for each in sent]
    assert kinds == ["user", "function_call", "function_call_output", "message", "user"]
    assert sent[0]["content"] == "My kiln shows E-47"
    assert len(await session.get_items()) == 6
    # The memory's own verbs see it as a conversation.
    conversation = memory.conversation("t")
    texts = [each.message.text for each in await conversation.aread()]
    assert texts[0] == "My kiln shows E-47"
    assert texts[-1] == "It comes on Friday."
    await conversation.aindex()
    assert (await conversation.arecall("thermocouple")).chunks


async def test_items_come_back_as_they_were_and_in_order(memory: SupabaseMemory, scripted: Any) -> None:
    session = SupabaseSession("t", memory)
    items: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "one"}, {"type": "input_image", "image_url": "u"}]},
        {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "x"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "not json"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "out"}]},
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": "one"},
        {"role": "user", "content": "one"},
    ]
    await session.add_items([])
    await session.add_items(items[:3])
    await session.add_items(items[3:])
    assert await session.get_items() == items
    assert await session.get_items(limit=2) == items[-2:]
    assert await session.get_items(limit=0) == []
    settings = scripted.sdk.memory.SessionSettings(limit=3)
    assert await SupabaseSession("t", memory, session_settings=settings).get_items() == items[-3:]
    assert await SupabaseSession("other", memory).get_items() == []


async def test_old_items_need_nothing_that_openai_has_deleted(memory: SupabaseMemory, scripted: Any) -> None:
    """OpenAI, after 30 days: "Item with id 'rs_1' not found"; what lies in the conversation stays."""
    session = SupabaseSession("t", memory)
    said = scripted.answer("one").model_dump()
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    click = {"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {"type": "screenshot"}}
    shot = {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot"}}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    items: list[Any] = [
        *(thought, said),
        *(thought, search),
        *(thought, click, shot),
        {**thought, "encrypted_content": "x"},
        search,
    ]
    await session.add_items(items)
    assert await session.get_items() == items
    held = await memory.conversation("t").aread()
    month_ago = datetime.now(UTC) - timedelta(days=31)
    messages = [each.message for each in held]
    await memory.conversation("t").aforget()
    await memory.conversation("t").aappend(messages, created_at=[month_ago] * len(messages))
    await session.add_items([thought, said])
    kept = [{key: value for key, value in said.items() if key != "id"}, *items[-2:]]
    assert await session.get_items() == [*kept, thought, said]


async def test_items_are_popped_from_the_end_and_the_session_is_cleared(memory: SupabaseMemory) -> None:
    session = SupabaseSession("t", memory)
    assert await session.pop_item() is None
    items: list[Any] = [{"role": "user", "content": text} for text in ("one", "two", "three")]
    await session.add_items(items)
    assert await session.pop_item() == items[2]
    assert await session.get_items() == items[:2]
    await session.add_items([items[2]])
    assert await session.get_items() == items
    await session.clear_session()
    assert await session.get_items() == []
    await session.add_items(items[:1])
    assert await session.get_items() == items[:1]


async def test_what_others_stored_is_given_as_items(memory: SupabaseMemory) -> None:
    calls: Any = [{"name": "code", "args": {"name": "E-47"}, "id": "c1"}]
    await memory.conversation("t").aappend(
        [HumanMessage("Which?"), AIMessage("Let me see.", tool_calls=calls), ToolMessage("it is", tool_call_id="c1")]
    )
    assert await SupabaseSession("t", memory).get_items() == [
        {"role": "user", "content": "Which?"},
        {"role": "assistant", "content": "Let me see."},
        {"type": "function_call", "name": "code", "call_id": "c1", "arguments": '{"name": "E-47"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "it is"},
    ]
    assert len(await SupabaseSession("t", memory).get_items(limit=2)) == 2


async def test_what_is_redacted_is_in_no_item(conn_string: str, user_id: str) -> None:
    async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, redactor=[*PERSONAL_DATA]) as memory:
        session = SupabaseSession("t", memory)
        await session.add_items([{"role": "user", "content": "Write to maya@example.org"}])
        assert "maya@example.org" not in str(await session.get_items())
