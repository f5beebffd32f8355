"""The defaults: the same over every transport, and consistent with every guarantee."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from supabase import create_client

from langchain_supabase_memory import (
    LoadContextNode,
    MemoryConfig,
    SummaryPolicy,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    Worker,
)
from langchain_supabase_memory.context.reasons import LEFT_OUT
from langchain_supabase_memory.memory.config import Settings
from tests.chat_models import ScriptedModel
from tests.conftest import Caller
from tests.embedders import ScriptedEmbedder
from tests.memory_keywords import memory_keywords
from tests.services.data_api import DataApi, token

CODE = "My locker's code is 7391."
TALK = "The glaze was applied and the kiln was fired for the whole afternoon, as we had agreed before. " * 6


def turns(count: int) -> Iterator[list[BaseMessage]]:
    """A first turn that is asked for later, and many others."""
    yield [HumanMessage(CODE), AIMessage("Noted.")]
    for number in range(count - 1):
        yield [HumanMessage(f"Firing {number}. {TALK}"), AIMessage(f"Firing {number} is written down.")]


def left_out(pack: Any) -> list[Any]:
    return [each for each in pack.omitted if each[2] in LEFT_OUT]


def test_every_constructor_has_the_same_defaults(conn_string: str, data_api: DataApi, tmp_path: Path) -> None:
    made = [
        SupabaseMemory(SupabaseMemory.from_conn_string(conn_string)._services.transport),
        SupabaseMemory.from_conn_string(conn_string),
        SupabaseMemory.from_url(data_api.url, token("service_role"), rest_path=""),
        SupabaseMemory.from_client(create_client(data_api.url, token("service_role"))),
        SupabaseMemory.embedded(tmp_path / "postgres"),
        SupabaseMemory.from_url(data_api.url, token("anon"), rest_path="").for_token(token("authenticated", "u")),
    ]
    for each in made:
        assert (each.agent_id, each._services.embeddings, each._services.redactor) == ("default", None, None)
        assert replace(each._services.settings, model=None) == replace(Settings(), model=None)
    assert {each._services.model.name for each in made if each._services.model is not None} == {"extractive"}
    assert all(each._services.model is not None for each in made)
    assert {each._services.config.recall for each in made} == {"conversation"}
    assert made[0]._services.config.chunking.max_age is None


async def test_a_memory_without_any_setting_covers_and_recalls(caller: Caller, user_id: str) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id)
    for turn in turns(31):
        await caller(memory.conversation("t").append, turn)
    pack = await caller(memory.conversation("t").context, "What was the code of my locker?")
    assert left_out(pack) == []
    assert pack.summary is not None, "quotes are selected"
    assert CODE in "".join(each.content for each in pack.recalled), "words are indexed and recalled"
    assert CODE in pack.text()
    coverage = await caller(memory.conversation("t").coverage)
    assert coverage.complete


async def test_none_means_none(caller: Caller, user_id: str) -> None:
    memory = SupabaseMemory(
        caller.service._services.transport, user_id=user_id, model=None, config=MemoryConfig(recall=None)
    )
    conversation = memory.conversation("t")
    for turn in turns(31):
        await caller(conversation.append, turn)
    pack = await caller(conversation.context, "What was the code of my locker?")
    assert left_out(pack)
    assert pack.summary is None
    assert pack.recalled == []
    assert await caller(conversation.chunks.list) == []
    again = await caller(conversation.context, "What was the code of my locker?", recall="conversation")
    assert CODE in "".join(each.content for each in again.recalled), "a call may say otherwise"
    quoting = SupabaseMemory(caller.service._services.transport, user_id=user_id)
    pack = await caller(quoting.conversation("t").context, "What was the code of my locker?", recall=None)
    assert pack.recalled == []


def _by_agent(memory: SupabaseMemory, ask: str, recall: dict[str, Any]) -> list[BaseMessage]:
    model = ScriptedModel(script=lambda _: "An answer.")
    agent = create_agent(model, middleware=[SupabaseMemoryMiddleware(memory, on_error="raise", **recall)])
    agent.invoke({"messages": [HumanMessage(ask)]}, {"configurable": {"thread_id": "t"}})
    return model.shown[-1]


def _by_node(memory: SupabaseMemory, ask: str, recall: dict[str, Any]) -> list[BaseMessage]:
    class State(MessagesState):
        context_messages: list[BaseMessage]

    builder = StateGraph(State)
    builder.add_node("load", LoadContextNode(memory, on_error="raise", **recall))
    builder.add_edge(START, "load")
    graph = builder.compile()
    given: Any = {"messages": [HumanMessage(ask)]}
    found: list[BaseMessage] = graph.invoke(given, {"configurable": {"thread_id": "t"}})["context_messages"]
    return found


def _by_verb(memory: SupabaseMemory, ask: str, recall: dict[str, Any]) -> list[BaseMessage]:
    return memory.conversation("t").context(ask, **recall).prompt


DOORS = pytest.mark.parametrize("prompted", [_by_agent, _by_node, _by_verb])


@DOORS
def test_agents_nodes_and_verbs_agree(
    prompted: Callable[..., list[BaseMessage]], conn_string: str, user_id: str
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        for turn in turns(31):
            memory.conversation("t").append(turn)
        shown = str([each.text for each in prompted(memory, "What was the code of my locker?", {})])
        assert "recalled" in shown
        assert CODE in shown
        assert "summary" in shown
        without = prompted(memory, "What was the code of my locker, again?", {"recall": None})
        assert "recalled" not in str([each.text for each in without])


async def test_a_failing_embedder_leaves_the_words(
    caller: Caller, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(texts: list[str]) -> Any:
        raise PermissionError(f"no key for {texts}")

    caplog.set_level(logging.DEBUG)
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, embeddings=ScriptedEmbedder(fails))
    memory._services.embeddings._attempts = 1  # type: ignore[union-attr]
    for turn in turns(31):
        await caller(memory.conversation("t").append, turn)
    for _ in range(3):
        pack = await caller(memory.conversation("t").context, "What was the code of my locker?")
        assert CODE in "".join(each.content for each in pack.recalled)
    [cause] = memory.health().causes
    assert (cause.part, cause.reason) == ("embedder", "The embedder failed (PermissionError).")
    said = [each.getMessage() for each in caplog.records if "PermissionError" in each.getMessage()]
    assert len(said) == 1, said
    assert "7391" not in caplog.text
    [status] = await caller(memory.work.status)
    assert status.error == "The embedder failed (PermissionError)."


def _aged(conn_string: str, user_id: str) -> None:
    with psycopg.connect(conn_string, autocommit=True) as connection:
        changed = connection.execute(
            "update memory_private.work set since = since - interval '61 minutes' where user_id = %s", [user_id]
        )
        assert changed.rowcount == 1


@pytest.mark.parametrize("without", [{"model": None}, {"policy": SummaryPolicy(mode="background")}])
@DOORS
def test_a_memory_without_a_writer_and_a_worker_warns_once(
    prompted: Callable[..., list[BaseMessage]],
    without: dict[str, Any],
    conn_string: str,
    user_id: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, **memory_keywords(without)) as memory:
        for turn in turns(31):
            memory.conversation("t").append(turn)
        prompted(memory, "What was it?", {})
        assert "supabase-memory worker" not in caplog.text, "a worker may still come"
        _aged(conn_string, user_id)
        prompted(memory, "What was it?", {})
        prompted(memory, "What was it, again?", {})
        said = [each.getMessage() for each in caplog.records if "supabase-memory worker" in each.getMessage()]
        assert len(said) == 1
        assert "model=" in said[0]
        assert "kiln" not in said[0]


def test_who_has_a_writer_or_omits_nothing_is_not_warned(
    conn_string: str, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        for turn in turns(31):
            memory.conversation("t").append(turn)
        _aged(conn_string, user_id)
        memory.conversation("t").context("What was it?")
        small = SupabaseMemory(memory._services.transport, user_id=f"{user_id}-small", model=None)
        small.conversation("t").append([HumanMessage("Hello")])
        _aged(conn_string, f"{user_id}-small")
        small.conversation("t").context("And?")
    assert "supabase-memory worker" not in caplog.text


async def test_what_a_worker_has_taken_up_is_not_warned_of(
    conn_string: str, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as writing:
        memory = SupabaseMemory(writing._services.transport, user_id=user_id, model=None)
        for turn in turns(31):
            await memory.conversation("t").aappend(turn)
        _aged(conn_string, user_id)
        await Worker(writing.for_user(user_id)).drain()
        await memory.conversation("t").acontext("What was it?")
    assert "supabase-memory worker" not in caplog.text
