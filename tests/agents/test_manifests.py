"""Prompt manifests are stored with an agent's answers, over every transport, and never cost an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_supabase_memory import (
    ContextBudget,
    MemoryConfig,
    SaveTurnNode,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.agents.run.request_sizes import RequestSizes
from langchain_supabase_memory.language.tokens import count_tokens
from langchain_supabase_memory.memory.pending_manifests import PendingManifests
from langchain_supabase_memory.operations.manifests import encoding
from langchain_supabase_memory.operations.manifests.manifest import RequestTokens
from langchain_supabase_memory.settings import NO_RETRY, ManifestPolicy
from langchain_supabase_memory.types import ConversationKey, Rollout
from tests.chat_models import ScriptedModel, calls, look_up, says
from tests.conftest import Caller
from tests.services.data_api import DataApi, token
from tests.services.proxy import Lie, Proxy

USAGE: Any = {"input_tokens": 40, "output_tokens": 2, "total_tokens": 42}


async def asked(caller: Caller, graph: Any, text: str, user_id: str) -> Any:
    settings = {"configurable": {"thread_id": "t", "user_id": user_id}}
    given = {"messages": [HumanMessage(text)]}
    return await graph.ainvoke(given, settings) if caller.color == "async" else graph.invoke(given, settings)


async def listed(caller: Caller, user_id: str) -> list[Any]:
    page = await caller(caller.service.for_user(user_id).conversation("t").manifests)
    return list(reversed(page.manifests))


def agent(caller: Caller, chat: ScriptedModel, *others: Any, saver: bool = True, **named: Any) -> Any:
    middleware = [*others, SupabaseMemoryMiddleware(caller.service, **named)]
    return create_agent(chat, [look_up], middleware=middleware, checkpointer=InMemorySaver() if saver else None)


async def test_each_answer_of_an_agent_has_its_manifest(caller: Caller, user_id: str) -> None:
    chat = ScriptedModel(script=lambda _: AIMessage("Hello", usage_metadata=USAGE))
    graph = agent(caller, chat)
    for text in ("I am Maya", "And two?"):
        await asked(caller, graph, text, user_id)
    first, second = await listed(caller, user_id)
    assert [(each.entry_point, each.turn, each.to_sequence) for each in (first, second)] == [
        ("middleware", 0, 1),
        ("middleware", 2, 3),
    ]
    assert second.usage is not None
    assert second.usage.total_tokens == 42
    assert [part.name for part in second.since(first).parts] == ["recent", "current"]


async def test_the_tokens_of_the_system_prompt_and_the_tools_stand_apart(caller: Caller, user_id: str) -> None:
    prompt = "You advise potters. " * 20
    for tools, words in (([look_up], prompt), ([], None)):
        memory = SupabaseMemoryMiddleware(caller.service)
        graph = create_agent(says("Hello"), tools, system_prompt=words, middleware=[memory])
        await asked(caller, graph, "I am Maya", user_id)
    full, bare = (each.request for each in await listed(caller, user_id))
    assert full is not None
    assert full.system == count_tokens(prompt)
    assert full.tool_count == 1
    assert 10 < full.tools < 200
    assert bare == RequestTokens(0, 0, 0), "an agent without either"


def test_tools_are_counted_once_and_again_where_they_change() -> None:
    sizes, tool = RequestSizes(), {"type": "web_search", "name": "web_search"}
    first = sizes.encode([SystemMessage([{"type": "text", "text": "Hello there"}])], [tool])
    assert first == [encoding.REQUEST, count_tokens("Hello there"), 1, count_tokens(json.dumps(tool))]
    tool["name"] = "renamed in place"
    assert sizes.encode([], [tool])[3] == first[3], "the same object is not read again"
    assert sizes.encode([], [tool, look_up])[3] > first[3]
    assert sizes.encode([], []) == [encoding.REQUEST, 0, 0, 0]


async def test_tools_that_cannot_be_counted_cost_no_answer(memory: SupabaseMemory) -> None:
    class Unserializable(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tools=[object()]))

    graph = create_agent(says("Hello"), [], middleware=[Unserializable(), SupabaseMemoryMiddleware(memory)])
    settings: Any = {"configurable": {"thread_id": "t", "user_id": memory.user_id}}
    answer = graph.invoke({"messages": [HumanMessage("I am Maya")]}, settings)
    assert answer["messages"][-1].text == "Hello"
    assert not memory.conversation("t").manifests().manifests


async def test_each_call_of_the_model_in_a_turn_has_its_own(caller: Caller, user_id: str) -> None:
    await asked(caller, agent(caller, says(calls("look_up", word="tea"), "Tea is a drink")), "What is tea?", user_id)
    found = await listed(caller, user_id)
    assert [(each.turn, each.from_sequence, each.to_sequence) for each in found] == [(0, 1, 1), (0, 3, 3)]
    assert [part.messages for each in found for part in each.parts] == [1, 3]


async def test_a_turn_that_was_pointed_at_is_named_and_watched(caller: Caller, user_id: str) -> None:
    told = caller.service.for_user(user_id).conversation("t")
    for number, food in enumerate(("adobo", "sinigang", "kare-kare")):
        said = [
            HumanMessage(f"How do I cook {food}?", id=f"q{number}"),
            AIMessage(f"Recipe of {food}", id=f"a{number}"),
        ]
        await caller(told.append, said)
    await asked(caller, agent(caller, says("Here you are")), "What about the second one?", user_id)
    (kept,) = await listed(caller, user_id)
    pointed = next(part for part in kept.parts if part.name == "reference")
    assert (pointed.reason, pointed.first, pointed.last, pointed.number) == ("pointed_at", 2, 3, 2)
    # The budget of another prompt leaves that turn out but for the reference, so only the reference names it.
    memory = SupabaseMemory(
        caller.service._services.transport,
        config=MemoryConfig(recall=None),
        model=None,
        budget=ContextBudget(characters=400, max_messages=1),
    )
    graph: Any = create_agent(says("Again"), [look_up], middleware=[SupabaseMemoryMiddleware(memory)])
    await asked(caller, graph, "the second one", user_id)
    *_, kept = await listed(caller, user_id)
    assert [(part.name, part.first, part.last) for part in kept.parts if (part.first or 9) < 4] == [("reference", 2, 3)]
    await caller(told.append, [AIMessage("Another recipe", id="a1")])
    *_, kept = await listed(caller, user_id)
    assert kept.changed == ((3, 3),)
    await caller(told.forget_message, "a1")
    *_, kept = await listed(caller, user_id)
    assert kept.gone == ((3, 3),)


@pytest.mark.parametrize("saver", [True, False])
async def test_what_others_make_of_the_request_keeps_the_manifest(caller: Caller, user_id: str, saver: bool) -> None:
    class Shouts(AgentMiddleware[Any, Any, Any]):
        def _loud(self, request: Any) -> Any:
            return request.override(messages=[HumanMessage(request.messages[-1].text.upper(), id="other")])

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(self._loud(request))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(self._loud(request))

    await asked(caller, agent(caller, says("Hello"), Shouts(), saver=saver), "tea?", user_id)
    (kept,) = await listed(caller, user_id)
    assert (kept.entry_point, kept.to_sequence) == ("middleware", 1)


@pytest.mark.parametrize("saves", [True, False])
async def test_nodes_keep_them_too(caller: Caller, user_id: str, saves: bool) -> None:
    class State(MessagesState):
        summarized_messages: list[Any]

    builder = StateGraph(State)
    builder.add_node("load", SupabaseSummarizationNode(caller.service))
    builder.add_node("model", lambda state: {"messages": [AIMessage(f"{len(state['messages'])}")]})
    builder.add_node("save", SaveTurnNode(caller.service) if saves else lambda _: {})
    for start, end in ((START, "load"), ("load", "model"), ("model", "save"), ("save", END)):
        builder.add_edge(start, end)
    graph = builder.compile(checkpointer=InMemorySaver())
    for text in ("one", "two", "three"):
        await asked(caller, graph, text, user_id)
    found = await listed(caller, user_id)
    # Without a node that saves, an answer is stored with the next question.
    assert [(each.entry_point, each.turn) for each in found] == [("node", 0), ("node", 2), ("node", 4)][
        : 3 if saves else 2
    ]


async def test_a_history_keeps_one_for_each_answer(caller: Caller, user_id: str) -> None:
    for turn in range(2):
        history = SupabaseChatMessageHistory("t", caller.service.for_user(user_id))
        if caller.color == "sync":
            assert len(history.messages) == 2 * turn
            history.add_messages([HumanMessage("Hello"), AIMessage("Hello, Maya")])
        else:
            assert len(await history.aget_messages()) == 2 * turn
            await history.aadd_messages([HumanMessage("Hello"), AIMessage("Hello, Maya")])
    found = await listed(caller, user_id)
    assert [(each.entry_point, each.turn, each.to_sequence) for each in found] == [("history", 0, 1), ("history", 2, 3)]


async def test_only_the_prompts_that_were_packs_have_one(caller: Caller, user_id: str) -> None:
    stages: list[tuple[Any, int]] = [("off", 0), ("parallel", 0), (25, 1), ("on", 2)]
    for stage, count in stages:
        rollout = Rollout(stage=stage)
        await asked(caller, agent(caller, says("Yes"), saver=False, rollout=rollout), f"At {stage}", user_id)
        assert len(await listed(caller, user_id)) == count


def test_with_a_share_of_none_nothing_is_kept(conn_string: str, user_id: str) -> None:
    manifests = ManifestPolicy(share=0)
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, config=MemoryConfig(manifests=manifests)
    ) as memory:
        graph: Any = create_agent(says("Hello"), [look_up], middleware=[SupabaseMemoryMiddleware(memory)])
        graph.invoke({"messages": [HumanMessage("Hi")]}, {"configurable": {"thread_id": "t"}})
        assert memory.conversation("t").count() == 2
        assert memory.conversation("t").manifests().manifests == []


async def test_a_manifest_that_cannot_be_made_costs_no_answer(
    caller: Caller, user_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: object) -> int:
        raise ZeroDivisionError("the canary of a question")

    monkeypatch.setattr("langchain_supabase_memory.context.manifest._turn", fails)
    answer = await asked(caller, agent(caller, says("Hello")), "One", user_id)
    assert answer["messages"][-1].text == "Hello"

    builder = StateGraph(MessagesState)
    builder.add_node("load", SupabaseSummarizationNode(caller.service, output_messages_key="messages"))
    builder.add_node("model", lambda _: {"messages": [AIMessage("Hello again")]})
    builder.add_node("save", SaveTurnNode(caller.service))
    for start, end in ((START, "load"), ("load", "model"), ("model", "save"), ("save", END)):
        builder.add_edge(start, end)
    answer = await asked(caller, builder.compile(), "Two", user_id)
    assert answer["messages"][-1].text == "Hello again"

    history = SupabaseChatMessageHistory("t", caller.service.for_user(user_id))
    said = [HumanMessage("Three"), AIMessage("Hello")]
    if caller.color == "sync":
        assert history.messages
        history.add_messages(said)
    else:
        assert await history.aget_messages()
        await history.aadd_messages(said)
    assert await caller(caller.service.for_user(user_id).conversation("t").count) == 6
    assert await listed(caller, user_id) == []
    assert caplog.text.count("(ZeroDivisionError)") == 3
    assert "canary" not in caplog.text


def test_a_prompt_that_cannot_be_noted_leaves_no_older_one_in_its_place(user_id: str) -> None:
    key, said = ConversationKey("t", user_id), [HumanMessage("One", id="q"), AIMessage("Yes", id="a")]
    packs = PendingManifests()
    packs.put(key, said[:1], [[0]])
    packs.put(key, said[:1], None)
    assert packs.pop(key, said, said) is None


def test_an_answer_that_had_to_wait_is_stored_without(data_api: DataApi, user_id: str) -> None:
    """The database goes away between the question and the answer."""
    with Proxy(data_api.url) as proxy:
        key: Any = token("service_role")
        memory = SupabaseMemory.from_url(proxy.url, key, rest_path="", user_id=user_id, model=None, retry=NO_RETRY)
        with memory:
            graph: Any = create_agent(says("Hello"), [look_up], middleware=[SupabaseMemoryMiddleware(memory)])
            proxy.always(Lie("away", drops="before"), ["memory_append"])
            graph.invoke({"messages": [HumanMessage("One")]}, {"configurable": {"thread_id": "t"}})
            assert len(memory._services.outbox) == 1
            proxy.truthful()
            assert memory.flush() == 0
            told = memory.conversation("t")
            assert told.count() == 2
            assert told.manifests().manifests == []
