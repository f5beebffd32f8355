"""References to a turn in a graph, turns as tools, streamed answers, and cleanup next to an application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from langchain_supabase_memory import (
    Retention,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseSummarizationNode,
    arecord_stream,
    record_stream,
)
from langchain_supabase_memory.errors import ConfigurationError, UnavailableError
from langchain_supabase_memory.tools import get_turn_tool
from langchain_supabase_memory.worker import cleanup
from tests.chat_models import ScriptedModel, asks, calls, config, says


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        for number, food in enumerate(("adobo", "sinigang", "kare-kare"), 1):
            memory.conversation("t").add_turn(f"How do I cook {food}?", f"Recipe {number} of {food}")
        yield memory


class Reply(BaseModel):
    """What an agent answers in a form."""

    text: str


CALLED = AIMessage("", tool_calls=[{"name": "Reply", "args": {"text": "Hi"}, "id": "call-1"}])
WRONG = AIMessage("", tool_calls=[{"name": "Reply", "args": {"words": "Hi"}, "id": "call-0"}])


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize(
    ("form", "answers", "told"),
    [
        (ProviderStrategy(Reply), [AIMessage('{"text": "Hi"}')], '{"text": "Hi"}'),
        (ToolStrategy(Reply), [CALLED], "Returning structured response: text='Hi'"),
        (ToolStrategy(Reply, tool_message_content="Told"), [CALLED], "Told"),
        (ToolStrategy(Reply), [WRONG, CALLED], "Returning structured response: text='Hi'"),
    ],
    ids=["provider", "tool", "own words", "second try"],
)
async def test_a_structured_response_completes_a_turn(
    memory: SupabaseMemory, color: str, form: Any, answers: list[AIMessage], told: str
) -> None:
    """As a tool's message, too: what the model tried before it is no answer."""
    endless = cycle(answers)
    model = ScriptedModel(script=lambda _: next(endless).model_copy())
    middleware = SupabaseMemoryMiddleware(memory)
    agent: Any = create_agent(model, [], middleware=[middleware], response_format=form, checkpointer=InMemorySaver())
    for number in (1, 2):
        asked = {"messages": [HumanMessage("Hello")]}
        if color == "sync":
            result = agent.invoke(asked, config("form"))
        else:
            result = await agent.ainvoke(asked, config("form"))
        assert result["structured_response"] == Reply(text="Hi")
        conversation = memory.conversation("form")
        assert [each.ai_response for each in conversation.turns.list()] == [told] * number
        assert len(conversation.read(last=99)) == len(result["messages"])


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_a_tool_that_returns_directly_completes_a_turn(memory: SupabaseMemory, color: str) -> None:
    @tool(return_direct=True)
    def price() -> str:
        """Tell the price."""
        return "12 pesos"

    model = ScriptedModel(script=lambda _: calls("price").model_copy(update={"id": None}))
    agent: Any = create_agent(
        model, [price], middleware=[SupabaseMemoryMiddleware(memory)], checkpointer=InMemorySaver()
    )
    for number in (1, 2):
        if color == "sync":
            result = agent.invoke(asks("How much is it?"), config("direct"))
        else:
            result = await agent.ainvoke(asks("How much is it?"), config("direct"))
        conversation = memory.conversation("direct")
        assert [each.ai_response for each in conversation.turns.list()] == ["12 pesos"] * number
        assert len(conversation.read(last=99)) == len(result["messages"]) == 3 * number


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize(
    ("text", "food"),
    [("yung una nga ulit", "adobo"), ("What about the second one?", "sinigang"), ("yung huli", "kare-kare")],
)
async def test_the_turn_stands_fenced_before_the_question(
    memory: SupabaseMemory, color: str, text: str, food: str
) -> None:
    model = says("here you are")
    agent: Any = create_agent(model, middleware=[SupabaseMemoryMiddleware(memory)], checkpointer=InMemorySaver())
    if color == "sync":
        agent.invoke(asks(text), config())
    else:
        await agent.ainvoke(asks(text), config())
    pointed = model.shown[0][-1].text
    assert pointed.endswith(f"</conversation_memory>\n\n{text}")
    assert f"How do I cook {food}?" in pointed
    assert "<referenced_turn" in pointed
    state = agent.get_state(config()).values["messages"]
    assert len(state) == 2  # it is not written into the state
    assert memory.conversation("t").count() == 8  # and not taken for something that was said


def test_a_choice_from_a_list_that_was_just_offered_is_left_open(memory: SupabaseMemory) -> None:
    """The words mean turn 2 or item 2, and only who reads both can tell."""
    memory.conversation("t").add_turn("What now?", "1. Return it.\n2. Exchange it.\n3. Keep it.")
    model = says("fine")
    agent: Any = create_agent(model, middleware=[SupabaseMemoryMiddleware(memory)])
    for text in ("the second one", "2", "yung pangalawa"):
        agent.invoke(asks(text), config())
        before, pointed = model.shown[-1][-2], str(model.shown[-1][-1].text)
        assert "unless they mean something in the newest answer" in pointed
        assert pointed.index("unless") < pointed.index("How do I cook sinigang?")
        if text == "the second one":
            assert "2. Exchange it." in str(before.text)


def test_words_that_point_at_nothing_change_nothing(memory: SupabaseMemory) -> None:
    model = says("fine")
    agent: Any = create_agent(model, middleware=[SupabaseMemoryMiddleware(memory)])
    for text in ("Give me a second", "the tenth one"):
        agent.invoke(asks(text), config())
        assert not any("referenced_turn" in str(message.content) for message in model.shown[-1])


def test_the_node_does_the_same_and_it_can_be_turned_off(memory: SupabaseMemory) -> None:
    for references in (True, False):
        node = SupabaseSummarizationNode(memory, references=references)
        shown = node.invoke(asks("yung pangalawa"), config())["summarized_messages"]
        assert any(
            "sinigang" in str(message.content) and "referenced" in str(message.content) for message in shown
        ) is (references)


def test_resolve_and_its_abstention(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("t")
    found = conversation.resolve("Please repeat the 2nd one")
    assert found is not None
    assert found.turn.user_query == "How do I cook sinigang?"
    assert "2nd" in "Please repeat the 2nd one"[slice(*found.span)]
    assert found.rule
    assert conversation.resolve("the ninth one") is None
    assert conversation.resolve("first of all, hello") is None
    # The oldest goes: the others move up.
    conversation.add_turn("q", "a", retention=Retention(max_turns=3))
    moved = conversation.resolve("the first one")
    assert moved is not None
    assert moved.turn.user_query == "How do I cook sinigang?"


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_resolve_reads_signs_letters_and_what_stands_before(memory: SupabaseMemory, color: str) -> None:
    said = {
        "turn -1": None, "answer -2 please": None, "Q3 2024 results": None, "turn-3": "kare-kare", "question 2 again please": "sinigang",
        "and the one before?": "sinigang", "not the second one, the one before": "adobo", "the first and only": "adobo",
        "yung una at kaisa-isa": "adobo",
    }  # fmt: skip
    for text, food in said.items():
        found = (
            await memory.conversation("t").aresolve(text)
            if color == "async"
            else memory.conversation("t").resolve(text)
        )
        assert (found and found.turn.user_query) == (food and f"How do I cook {food}?"), text


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_an_agent_reads_a_turn_with_its_tool(memory: SupabaseMemory, color: str) -> None:
    tool = get_turn_tool(memory)
    model = says(calls("get_turn", n=1), "done")
    agent: Any = create_agent(model, [tool], middleware=[SupabaseMemoryMiddleware(memory)])
    run = agent.invoke(asks("hello"), config()) if color == "sync" else await agent.ainvoke(asks("hello"), config())
    assert "Recipe 1 of adobo" in str(run["messages"][-2].content)
    assert set(tool.args) == {"n"}


def test_a_tool_outside_of_a_graph_and_its_failures(memory: SupabaseMemory) -> None:
    tool = get_turn_tool(memory, thread_id="t")
    assert "sinigang" in tool.invoke({"n": 2})
    assert "There is no turn 99." in tool.invoke({"n": 99})
    assert "whole number other than 0" in tool.invoke({"n": 0})
    assert "thread_id" in get_turn_tool(memory).invoke({"n": 1})


@pytest.mark.parametrize("chunks", [False, True], ids=["text", "chunks"])
async def test_a_streamed_answer_is_stored_once(memory: SupabaseMemory, chunks: bool) -> None:
    def make(text: str, run: str) -> Any:
        return AIMessageChunk(content=text, id=run) if chunks else text

    async def stream() -> AsyncIterator[Any]:
        for word in ("a ", "long ", "answer"):
            yield make(word, "run-2")

    passed = list(record_stream(memory, "q1", [make("one ", "run-1"), make("two", "run-1")], thread_id="s"))
    assert len(passed) == 2
    assert len([delta async for delta in arecord_stream(memory, "q2", stream(), thread_id="s")]) == 3
    first, second = memory.conversation("s").turns.list()
    assert (first.user_query, first.ai_response) == ("q1", "one two")
    assert second.ai_response == "a long answer"


def test_an_abandoned_stream_leaves_the_turn_incomplete(memory: SupabaseMemory) -> None:
    stream = record_stream(memory, "q", ["half ", "an answer"], thread_id="s")
    next(stream)
    stream.close()

    def breaks() -> Iterator[str]:
        yield "half"
        raise RuntimeError("the model went away")

    with pytest.raises(RuntimeError):
        list(record_stream(memory, "r", breaks(), thread_id="s"))
    assert memory.conversation("s").turns.list() == []
    assert [each.message.text for each in memory.conversation("s").read()] == ["q", "r"]


async def test_cleaning_up_beside_an_application(
    memory: SupabaseMemory, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.conversation("o").append([HumanMessage("old")], created_at=datetime.now(UTC) - timedelta(days=2))
    rounds = 0
    inner = memory.aforget_expired

    async def sometimes(**named: Any) -> Any:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise UnavailableError
        return await inner(**named)

    monkeypatch.setattr(memory, "aforget_expired", sometimes)
    task = asyncio.create_task(
        cleanup(memory, timedelta(milliseconds=10), retention=Retention(max_age=timedelta(days=1)))
    )
    while rounds < 3:
        await asyncio.sleep(0.01)
    task.cancel()
    assert memory.conversation("o").count() == 0
    assert memory.conversation("t").count() == 6
    assert "A clean-up failed" in caplog.text
    with pytest.raises(ConfigurationError, match="above zero"):
        await cleanup(memory, timedelta())
