"""An agent's turn makes two database calls: one before the answer, and one after it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_supabase_memory import (
    MemoryConfig,
    SaveTurnNode,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.agents.run import pack_cache
from tests.agents.test_manifests import asked
from tests.chat_models import ScriptedModel, calls, look_up, says
from tests.conftest import Caller
from tests.counting import RecordingTransport, recorded_calls

BEFORE, AFTER = "memory_append_context", "memory_append"


@pytest.fixture
def calling(caller: Caller) -> list[str]:
    """What is called."""
    return recorded_calls(caller.service)


def agent(chat: ScriptedModel, caller: Caller, *others: Any, saver: Any = None, **named: Any) -> Any:
    middleware = [SupabaseMemoryMiddleware(caller.service, **named), *others]
    return create_agent(chat, [look_up], middleware=middleware, checkpointer=saver or InMemorySaver())


async def test_a_turn_of_an_agent_is_one_round_trip_before_and_one_after(
    caller: Caller, calling: list[str], user_id: str
) -> None:
    chat = says("Hello, Maya", "Two", "Three")
    graph = agent(chat, caller)
    for text in ("I am Maya", "And two?", "And three?"):
        await asked(caller, graph, text, user_id)
        assert calling == [BEFORE, AFTER]
        calling.clear()
    assert [message.text for message in chat.shown[-1]] == ["I am Maya", "Hello, Maya", "And two?", "Two", "And three?"]


async def test_each_call_of_a_tool_adds_one_before_and_one_after(
    caller: Caller, calling: list[str], user_id: str
) -> None:
    chat = says(calls("look_up", word="tea"), "Tea is a drink")
    await asked(caller, agent(chat, caller), "What is tea?", user_id)
    assert calling == [BEFORE, AFTER, BEFORE, AFTER]


async def test_a_turn_of_a_graph_with_nodes_is_one_before_and_one_after(
    caller: Caller, calling: list[str], user_id: str
) -> None:
    heard: list[list[str]] = []

    class State(MessagesState):
        summarized_messages: list[Any]

    def model(state: Any) -> dict[str, Any]:
        heard.append([message.text for message in state["summarized_messages"]])
        return {"messages": [AIMessage(f"answer {len(heard)}")]}

    builder = StateGraph(State)
    builder.add_node("load", SupabaseSummarizationNode(caller.service))
    builder.add_node("model", model)
    builder.add_node("save", SaveTurnNode(caller.service))
    for start, end in ((START, "load"), ("load", "model"), ("model", "save"), ("save", END)):
        builder.add_edge(start, end)
    graph = builder.compile(checkpointer=InMemorySaver())
    for text in ("one", "two"):
        await asked(caller, graph, text, user_id)
        assert calling == [BEFORE, AFTER]
        calling.clear()
    assert heard == [["one"], ["one", "answer 1", "two"]]


async def test_a_turn_that_is_pointed_at_is_looked_up_behind_what_is_new(
    caller: Caller, calling: list[str], user_id: str
) -> None:
    chat = says("Tea or coffee", "Coffee")
    graph = agent(chat, caller)
    await asked(caller, graph, "What is there?", user_id)
    calling.clear()
    await asked(caller, graph, "Say more about my first question", user_id)
    assert calling == [AFTER, "memory_turns", "memory_context", AFTER]
    assert "referenced_turn" in "".join(message.text for message in chat.shown[-1])


async def test_messages_that_others_change_cost_no_trip_more(caller: Caller, calling: list[str], user_id: str) -> None:
    class Shouts(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(messages=[HumanMessage(request.messages[-1].text.upper(), id="other")]))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(
                request.override(messages=[HumanMessage(request.messages[-1].text.upper(), id="other")])
            )

    chat = says("Hello")
    graph: Any = create_agent(
        chat, [look_up], middleware=[Shouts(), SupabaseMemoryMiddleware(caller.service)], checkpointer=InMemorySaver()
    )
    await asked(caller, graph, "tea?", user_id)
    assert calling == [BEFORE, AFTER]
    assert chat.shown[-1][-1].text == "TEA?"


async def test_a_call_that_is_repeated_reads_anew(caller: Caller, calling: list[str], user_id: str) -> None:
    class Twice(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            handler(request)
            return handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            await handler(request)
            return await handler(request)

    chat = says("Hello", "Hello again")
    graph: Any = create_agent(
        chat, [look_up], middleware=[Twice(), SupabaseMemoryMiddleware(caller.service)], checkpointer=InMemorySaver()
    )
    await asked(caller, graph, "tea?", user_id)
    assert calling == [BEFORE, "memory_context", AFTER]


async def test_what_was_forgotten_between_storing_and_the_model_is_not_shown_later(
    caller: Caller, calling: list[str], user_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was interrupted before its model goes on much later, in the same process."""
    monkeypatch.setattr(pack_cache, "_SECONDS", -1.0)
    saver, settings = InMemorySaver(), {"configurable": {"thread_id": "t", "user_id": user_id}}
    chat = says(calls("look_up", word="kiln"), "Again")
    middleware = [SupabaseMemoryMiddleware(caller.service)]
    paused: Any = create_agent(chat, [look_up], middleware=middleware, checkpointer=saver, interrupt_before=["model"])
    await asked(caller, paused, "one", user_id)
    assert calling == []  # what the user said is stored as the model is called
    for expected in ([BEFORE, AFTER, BEFORE], ["memory_context", AFTER]):
        del calling[:]
        await (
            paused.ainvoke(None, settings)
            if caller.color == "async"
            else asyncio.to_thread(paused.invoke, None, settings)
        )
        assert calling == expected


@pytest.mark.parametrize("color", ["sync", "async"])
def test_another_embedder_costs_the_meaning_and_not_the_message(conn_string: str, user_id: str, color: str) -> None:
    first = SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=DeterministicFakeEmbedding(size=8))
    with first:
        first.conversation("t").append([HumanMessage("Tea is green"), AIMessage("Yes")])
        first.conversation("t").index()
    other = DeterministicFakeEmbedding(size=16)
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, embeddings=other, config=MemoryConfig(recall="agent")
    ) as memory:
        recording: Any = RecordingTransport(memory._services.transport)
        memory._services.transport = recording
        graph: Any = create_agent(says("Green"), [look_up], middleware=[SupabaseMemoryMiddleware(memory)])
        given, settings = {"messages": [HumanMessage("What is tea?")]}, {"configurable": {"thread_id": "other"}}
        if color == "sync":
            graph.invoke(given, settings)
        else:
            asyncio.run(graph.ainvoke(given, settings))
        # Refused as a whole; stored by itself; read, refused, and read by words; and the answer. Then it is indexed.
        assert recording.calls[:5] == [BEFORE, "memory_append", "memory_context", "memory_context", AFTER]
        memory.flush()
        stored = memory.conversation("other").read()
        assert [row.message.text for row in stored if row.message] == ["What is tea?", "Green"]
        memory._services.transport = recording.inner
