"""Responses API chaining, with the real `langchain-openai` against a server that records its requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from langchain_supabase_memory import ContextBudget, SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.agents.run.load import EVENT
from langchain_supabase_memory.language.messages import chaining
from tests.chat_models import asks, config
from tests.services.responses_api import ResponsesApi


@pytest.fixture
def api() -> Iterator[ResponsesApi]:
    api = ResponsesApi()
    yield api
    api.stop()


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, budget=ContextBudget(characters=2000), model=lambda _: "They spoke of kilns."
    ) as memory:
        yield memory


def chat(api: ResponsesApi, **named: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model="gpt-5.5",
        base_url=api.url,
        api_key="none",  # type: ignore[arg-type]
        use_previous_response_id=True,
        **named,
    )


def sent(request: dict[str, Any]) -> str:
    return str(request["input"])


@pytest.mark.parametrize("saver", [True, False], ids=["checkpointer", "memory alone"])
def test_a_chain_goes_on_until_the_context_changes(api: ResponsesApi, memory: SupabaseMemory, saver: bool) -> None:
    agent = create_agent(
        chat(api), middleware=[SupabaseMemoryMiddleware(memory)], checkpointer=InMemorySaver() if saver else None
    )
    used = []
    for number in range(12):
        for mode, event in agent.stream(
            asks(f"question {number} " + "clay " * 30), config(), stream_mode=["custom", "values"]
        ):
            if mode == "custom" and isinstance(event, dict) and event["type"] == EVENT:
                used.append(event["report"]["previous_response_id"])
    assert used[0] is False
    assert used[1] is True
    assert [request.get("previous_response_id") is not None for request in api.requests] == used
    # In a chain only what is new is sent, and it goes on from the newest response.
    assert api.requests[1]["previous_response_id"] == "resp_1"
    assert "question 0" not in sent(api.requests[1])
    assert "question 1" in sent(api.requests[1])
    # After a compaction the chain is cut, and our context is really sent.
    cuts = [number for number, chained in enumerate(used) if not chained and number]
    assert cuts
    assert "They spoke of kilns." in sent(api.requests[cuts[-1]])
    assert f"question {cuts[-1]}" in sent(api.requests[cuts[-1]])
    # The ids stay with their messages in the store.
    stored = [each.message for each in memory.conversation("t").read()]
    ids = [chaining.response_id(message) for message in stored if isinstance(message, AIMessage)]
    assert ids == [f"resp_{number + 1}" for number in range(12)]


def test_another_project_or_model_begins_anew(api: ResponsesApi, memory: SupabaseMemory) -> None:
    agent = create_agent(chat(api), middleware=[SupabaseMemoryMiddleware(memory)])
    for project in ("a", "a", "b", "b"):
        agent.invoke(asks("hello"), config(project_id=project))
    assert [request.get("previous_response_id") for request in api.requests] == [None, "resp_1", None, "resp_3"]
    other = create_agent(
        chat(api).model_copy(update={"model_name": "gpt-6"}), middleware=[SupabaseMemoryMiddleware(memory)]
    )
    other.invoke(asks("hello"), config(project_id="b"))
    assert api.requests[-1].get("previous_response_id") is None


def test_another_thread_begins_anew_even_with_copied_messages(api: ResponsesApi, memory: SupabaseMemory) -> None:
    agent = create_agent(chat(api), middleware=[SupabaseMemoryMiddleware(memory)])
    agent.invoke(asks("hello"), config("one"))
    copied = [each.message for each in memory.conversation("one").read()]
    memory.conversation("two").append(copied)
    agent.invoke(asks("and now?"), config("two"))
    assert api.requests[-1].get("previous_response_id") is None
    assert "answer 1" in sent(api.requests[-1])


def test_a_response_that_the_provider_has_deleted_since_is_not_named(api: ResponsesApi, memory: SupabaseMemory) -> None:
    agent = create_agent(chat(api), middleware=[SupabaseMemoryMiddleware(memory)])
    for days in (28, 30, 0, 0):
        api.age = days * 86_400.0
        agent.invoke(asks("hello"), config())
    assert [request.get("previous_response_id") for request in api.requests] == [None, "resp_1", None, "resp_3"]
    assert "answer 1" in sent(api.requests[2])


def test_a_pack_by_itself_is_always_sent_whole(api: ResponsesApi, memory: SupabaseMemory) -> None:
    model = chat(api)
    asked = HumanMessage("hello")
    memory.conversation("t").append([asked, model.invoke([asked])])
    model.invoke(memory.conversation("t").context("and now?").prompt)
    assert api.requests[-1].get("previous_response_id") is None
    assert "hello" in sent(api.requests[-1])
