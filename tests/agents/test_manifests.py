"""What stood in the prompts of an agent is kept with its answers, by every door, and never costs one."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_supabase_memory import (
    ManifestPolicy,
    Rollout,
    SaveTurnNode,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.settings import NO_RETRY
from tests.chat_models import ScriptedModel, calls, says
from tests.conftest import Door
from tests.services.data_api import DataApi, token
from tests.services.proxy import Lie, Proxy

USAGE: Any = {"input_tokens": 40, "output_tokens": 2, "total_tokens": 42}


def look_up(word: str = "") -> str:
    """Look a word up."""
    return f"meaning of {word}"


async def asked(door: Door, graph: Any, text: str, user_id: str) -> Any:
    settings = {"configurable": {"thread_id": "t", "user_id": user_id}}
    given = {"messages": [HumanMessage(text)]}
    return await graph.ainvoke(given, settings) if door.color == "async" else graph.invoke(given, settings)


async def listed(door: Door, user_id: str) -> list[Any]:
    page = await door(door.service.conversation("t", user_id=user_id).manifests)
    return list(reversed(page.manifests))


def agent(door: Door, chat: ScriptedModel, *others: Any, saver: bool = True, **named: Any) -> Any:
    middleware = [*others, SupabaseMemoryMiddleware(door.service, **named)]
    return create_agent(chat, [look_up], middleware=middleware, checkpointer=InMemorySaver() if saver else None)


async def test_each_answer_of_an_agent_has_its_manifest(door: Door, user_id: str) -> None:
    chat = ScriptedModel(script=lambda _: AIMessage("Hello", usage_metadata=USAGE))
    graph = agent(door, chat)
    for text in ("I am Maya", "And two?"):
        await asked(door, graph, text, user_id)
    first, second = await listed(door, user_id)
    assert [(each.door, each.turn, each.to_sequence) for each in (first, second)] == [
        ("middleware", 0, 1),
        ("middleware", 2, 3),
    ]
    assert second.usage is not None
    assert second.usage.total_tokens == 42
    assert [part.name for part in second.since(first).parts] == ["recent", "current"]


async def test_each_call_of_the_model_in_a_turn_has_its_own(door: Door, user_id: str) -> None:
    await asked(door, agent(door, says(calls("look_up", word="tea"), "Tea is a drink")), "What is tea?", user_id)
    found = await listed(door, user_id)
    assert [(each.turn, each.from_sequence, each.to_sequence) for each in found] == [(0, 1, 1), (0, 3, 3)]
    assert [part.messages for each in found for part in each.parts] == [1, 3]


@pytest.mark.parametrize("saver", [True, False])
async def test_what_others_make_of_the_request_keeps_the_manifest(door: Door, user_id: str, saver: bool) -> None:
    class Shouts(AgentMiddleware[Any, Any, Any]):
        def _loud(self, request: Any) -> Any:
            return request.override(messages=[HumanMessage(request.messages[-1].text.upper(), id="other")])

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(self._loud(request))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(self._loud(request))

    await asked(door, agent(door, says("Hello"), Shouts(), saver=saver), "tea?", user_id)
    (kept,) = await listed(door, user_id)
    assert (kept.door, kept.to_sequence) == ("middleware", 1)


@pytest.mark.parametrize("saves", [True, False])
async def test_nodes_keep_them_too(door: Door, user_id: str, saves: bool) -> None:
    class State(MessagesState):
        summarized_messages: list[Any]

    builder = StateGraph(State)
    builder.add_node("load", SupabaseSummarizationNode(door.service))
    builder.add_node("model", lambda state: {"messages": [AIMessage(f"{len(state['messages'])}")]})
    builder.add_node("save", SaveTurnNode(door.service) if saves else lambda _: {})
    for start, end in ((START, "load"), ("load", "model"), ("model", "save"), ("save", END)):
        builder.add_edge(start, end)
    graph = builder.compile(checkpointer=InMemorySaver())
    for text in ("one", "two", "three"):
        await asked(door, graph, text, user_id)
    found = await listed(door, user_id)
    # Without a node that saves, an answer is stored with the next question.
    assert [(each.door, each.turn) for each in found] == [("node", 0), ("node", 2), ("node", 4)][: 3 if saves else 2]


async def test_a_history_keeps_one_for_each_answer(door: Door, user_id: str) -> None:
    for turn in range(2):
        history = SupabaseChatMessageHistory("t", door.service, user_id=user_id)
        if door.color == "sync":
            assert len(history.messages) == 2 * turn
            history.add_messages([HumanMessage("Hello"), AIMessage("Hello, Maya")])
        else:
            assert len(await history.aget_messages()) == 2 * turn
            await history.aadd_messages([HumanMessage("Hello"), AIMessage("Hello, Maya")])
    found = await listed(door, user_id)
    assert [(each.door, each.turn, each.to_sequence) for each in found] == [("history", 0, 1), ("history", 2, 3)]


async def test_only_the_prompts_that_were_packs_have_one(door: Door, user_id: str) -> None:
    stages: list[tuple[Any, int]] = [("off", 0), ("parallel", 0), (25, 1), ("on", 2)]
    for stage, count in stages:
        rollout = Rollout(stage=stage)
        await asked(door, agent(door, says("Yes"), saver=False, rollout=rollout), f"At {stage}", user_id)
        assert len(await listed(door, user_id)) == count


def test_with_a_share_of_none_nothing_is_kept(conn_string: str, user_id: str) -> None:
    manifests = ManifestPolicy(share=0)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, manifests=manifests) as memory:
        graph: Any = create_agent(says("Hello"), [look_up], middleware=[SupabaseMemoryMiddleware(memory)])
        graph.invoke({"messages": [HumanMessage("Hi")]}, {"configurable": {"thread_id": "t"}})
        assert memory.conversation("t").count() == 2
        assert memory.conversation("t").manifests().manifests == []


def test_an_answer_that_had_to_wait_is_stored_without(data_api: DataApi, user_id: str) -> None:
    """The database goes away between the question and the answer."""
    with Proxy(data_api.url) as proxy:
        key: Any = token("service_role")
        memory = SupabaseMemory.from_url(proxy.url, key, rest_path="", user_id=user_id, model=None, retry=NO_RETRY)
        with memory:
            graph: Any = create_agent(says("Hello"), [look_up], middleware=[SupabaseMemoryMiddleware(memory)])
            proxy.always(Lie("away", drops="before"), ["memory_append"])
            graph.invoke({"messages": [HumanMessage("One")]}, {"configurable": {"thread_id": "t"}})
            assert len(memory.outbox) == 1
            proxy.truthful()
            assert memory.flush() == 0
            told = memory.conversation("t")
            assert told.count() == 2
            assert told.manifests().manifests == []
