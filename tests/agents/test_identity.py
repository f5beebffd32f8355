"""The identity of a run: an empty id in a run's config is ignored, and a bound id must be valid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_supabase_memory import (
    LoadContextNode,
    SaveTurnNode,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseMemoryRetriever,
    SupabaseStore,
    SupabaseSummarizationNode,
    Worker,
)
from langchain_supabase_memory.agents.run.identity import RunIdentity
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.memory.services import ME
from langchain_supabase_memory.models import SupabaseSummarizer
from langchain_supabase_memory.tools import read_messages_tool
from langchain_supabase_memory.transfer import export_conversations, import_conversations
from tests.chat_models import says
from tests.conftest import Caller
from tests.services.data_api import token

NOBODY = {"user_id": "", "agent_id": "", "project_id": ""}


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, agent_id="helper") as memory:
        yield memory


def runtime(**said: Any) -> Any:
    """A run's `Runtime`, as far as it says who is there."""
    user = SimpleNamespace(identity=said.get("identity"))
    return SimpleNamespace(
        context=said.get("context"),
        server_info=SimpleNamespace(user=user),
        execution_info=SimpleNamespace(thread_id=said.get("thread_id")),
    )


@pytest.mark.parametrize(
    ("configurable", "run"),
    [
        ({**NOBODY, "thread_id": "t"}, None),
        ({"thread_id": "t"}, runtime(context=NOBODY)),
        ({"thread_id": "t"}, runtime(context=SimpleNamespace(**NOBODY))),
        ({**NOBODY, "thread_id": "t"}, runtime(context=NOBODY, identity="")),
        ({**NOBODY, "thread_id": "t"}, runtime(context=NOBODY, identity="", thread_id="")),
        (NOBODY, runtime(context=NOBODY, identity="", thread_id="t")),
    ],
)
def test_an_empty_id_of_a_run_is_none(memory: SupabaseMemory, configurable: Any, run: Any) -> None:
    key = RunIdentity().key(memory, {"configurable": configurable}, run)
    assert (key.user_id, key.agent_id, key.thread_id) == (memory.user_id, "helper", "t")
    assert RunIdentity().project({"configurable": configurable}, run) is None


def test_an_empty_id_is_passed_over_for_the_next_who_says_something(memory: SupabaseMemory) -> None:
    memory = SupabaseMemory(memory._services.transport)
    config: Any = {"configurable": {"user_id": "config", "thread_id": "t"}}
    assert RunIdentity().key(memory, config, runtime(context=NOBODY, identity="")).user_id == "config"
    assert RunIdentity().key(memory, config, runtime(context={"user_id": "context"}, identity="")).user_id == "context"


OTHERS = [
    ({"user_id": "other", "thread_id": "t"}, None),
    ({"thread_id": "t"}, runtime(context={"user_id": "other"})),
    ({"thread_id": "t"}, runtime(context=SimpleNamespace(user_id="other"))),
    ({"thread_id": "t"}, runtime(identity="other")),
]


@pytest.mark.parametrize(("configurable", "run"), OTHERS)
def test_no_run_changes_the_user_that_a_memory_was_made_for(
    memory: SupabaseMemory, configurable: Any, run: Any
) -> None:
    config: Any = {"configurable": configurable}
    with pytest.raises(InvalidInputError, match="made for one user") as failed:
        RunIdentity().key(memory, config, run)
    assert str(memory.user_id) not in str(failed.value), "a client may read it"
    with pytest.raises(InvalidInputError, match="made for one user"):
        RunIdentity().scope(memory, config, run, "user")
    assert RunIdentity().key(SupabaseMemory(memory._services.transport), config, run).user_id == "other"
    assert RunIdentity().key(SupabaseMemory(memory._services.transport, user_id=ME), config, run).user_id == "other"
    same: Any = {"configurable": {"user_id": memory.user_id, "thread_id": "t"}}
    assert RunIdentity().key(memory, same, None).user_id == memory.user_id


@pytest.mark.parametrize(("configurable", "run"), OTHERS)
def test_no_run_changes_whose_token_a_memory_has(caller: Caller, user_id: str, configurable: Any, run: Any) -> None:
    own, config = caller.as_token(token("authenticated", user_id)), {"configurable": configurable}
    with pytest.raises(InvalidInputError, match="made for one user"):
        RunIdentity().key(own, config, run)  # type: ignore[arg-type]
    same: Any = {"configurable": {"user_id": user_id, "thread_id": "t"}}
    assert RunIdentity().key(own, same, None).user_id == user_id
    assert RunIdentity().key(own, {"configurable": {"thread_id": "t"}}, None).user_id is None
    everybody = caller.as_token(token("service_role", "server"))
    assert RunIdentity().key(everybody, config, run).user_id == "other"  # type: ignore[arg-type]


def test_no_call_changes_the_user_that_a_memory_was_made_for(memory: SupabaseMemory) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: memory.for_user("other").conversation("t"),
        lambda: memory.for_user("other").conversations(),
        lambda: memory.for_user("other").recall("x"),
        lambda: memory.for_user("other").forget_user(),
        lambda: memory.for_user("other").privacy.opt_out("x", actor="x"),
        lambda: memory.for_user("other").work.status(),
        lambda: memory.for_user("other").rollout.stage(),
        lambda: SupabaseStore(memory.for_user("other")),
        lambda: Worker(memory.for_user("other")),
        lambda: SupabaseChatMessageHistory("t", memory.for_user("other")),
        lambda: import_conversations(memory.for_user("other"), iter([])),
        lambda: export_conversations(memory.for_user("other"), "x.jsonl"),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match="made for one user"):
            call()
    assert memory._for(memory.user_id).conversation("t")._key == memory._services.key("t")


def test_an_embedded_memory_is_nobodys_until_one_is_named(tmp_path: Path) -> None:
    many = SupabaseMemory.embedded(tmp_path)
    assert many.conversation("t")._key.user_id == "me"
    assert type(many.conversation("t")._key.user_id) is str
    assert many.for_user("ana").conversation("t")._key.user_id == "ana"
    with pytest.raises(InvalidInputError, match="made for one user"):
        SupabaseMemory.embedded(tmp_path, user_id="me").for_user("ana").conversation("t")
    with pytest.raises(InvalidInputError, match="No user is named"):
        SupabaseMemory.embedded(tmp_path, user_id=None).conversation("t")


@pytest.mark.parametrize("run", [None, runtime(thread_id="")])
def test_an_empty_thread_is_none(memory: SupabaseMemory, run: Any) -> None:
    with pytest.raises(InvalidInputError, match="No thread is named"):
        RunIdentity().key(memory, {"configurable": {"thread_id": ""}}, run)


@pytest.mark.parametrize(
    "make",
    [
        SupabaseMemoryMiddleware,
        SaveTurnNode,
        LoadContextNode,
        SupabaseSummarizationNode,
        SupabaseSummarizer,
        read_messages_tool,
    ],
)
def test_what_is_bound_must_be_an_id(memory: SupabaseMemory, make: Callable[..., Any]) -> None:
    """Or the choice would be left to the run, and so to a client."""
    with pytest.raises(InvalidInputError, match="agent_id"):
        make(memory, agent_id="")
    with pytest.raises(InvalidInputError, match="user_id"):
        make(memory.for_user(""))


def test_what_owns_a_store_must_be_an_id(memory: SupabaseMemory) -> None:
    with pytest.raises(InvalidInputError, match="user_id"):
        SupabaseStore(memory.for_user(""))


@dataclass
class Nobody:
    """What a server without authentication says of a run."""

    user_id: str = ""
    agent_id: str = ""


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_every_surface_in_a_graph_takes_the_memorys_user(memory: SupabaseMemory, color: str) -> None:
    found: list[str] = []
    retriever, tool = SupabaseMemoryRetriever(memory=memory, scope="conversation"), read_messages_tool(memory)

    async def look(_: MessagesState) -> dict[str, Any]:
        found.extend(each.page_content for each in await retriever.ainvoke("kiln"))
        found.append(str(await tool.ainvoke({"first": 0, "last": 0})))
        return {}

    def look_sync(_: MessagesState) -> dict[str, Any]:
        found.extend(each.page_content for each in retriever.invoke("kiln"))
        found.append(str(tool.invoke({"first": 0, "last": 0})))
        return {}

    agent: Any = create_agent(
        says("Yes."), middleware=[SupabaseMemoryMiddleware(memory, on_error="raise")], context_schema=Nobody
    )
    builder: Any = StateGraph(MessagesState, context_schema=Nobody)
    builder.add_node("bound", SupabaseSummarizationNode(memory, on_error="raise"))
    builder.add_node("save", SaveTurnNode(memory, on_error="raise"))
    builder.add_node("look", look_sync if color == "sync" else look)
    builder.add_edge(START, "bound").add_edge("bound", "save").add_edge("save", "look").add_edge("look", END)
    for thread_id, graph in (("agent", agent), ("graph", builder.compile())):
        await memory.conversation(thread_id).aappend([HumanMessage("The kiln is red.")])
        await memory.conversation(thread_id).aindex()
        asked, config = (
            {"messages": [HumanMessage("Is it?")]},
            {"configurable": {"thread_id": thread_id, "user_id": ""}},
        )
        if color == "sync":
            graph.invoke(asked, config, context=Nobody())
        else:
            await graph.ainvoke(asked, config, context=Nobody())
        assert [each.message.text for each in memory.conversation(thread_id).read()][:2] == [
            "The kiln is red.",
            "Is it?",
        ]
    assert found[0] == "The kiln is red."
    assert "The kiln is red." in found[-1]
    await memory.aclose()


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_a_run_without_a_thread_is_searched_like_none(memory: SupabaseMemory, color: str) -> None:
    memory.conversation("studio").append([HumanMessage("The kiln is red.")])
    memory.conversation("studio").index()
    retriever, found = SupabaseMemoryRetriever(memory=memory), []

    async def look(_: MessagesState) -> dict[str, Any]:
        found.extend(retriever.invoke("kiln") if color == "sync" else await retriever.ainvoke("kiln"))
        return {}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("look", look).add_edge(START, "look")
    await builder.compile().ainvoke({"messages": []}, {"configurable": {"thread_id": ""}})
    assert [each.page_content for each in found] == ["The kiln is red."]
    await memory.aclose()
