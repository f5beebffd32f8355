"""The retriever: documents and metadata, k and filters, its owner's scope, and no scope without a user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from langchain_supabase_memory import SupabaseMemory, SupabaseMemoryRetriever
from langchain_supabase_memory.errors import InvalidInputError, UnavailableError
from langchain_supabase_memory.settings import NO_RETRY
from tests.conftest import Caller
from tests.each_case import each_case
from tests.services.data_api import token


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    """A user with two threads and two agents."""
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        said = [
            HumanMessage("Which glaze did Maria order?", id="q"),
            AIMessage("The blue glaze, 12 kg.", id="a"),
            HumanMessage("And the clay?", id="q2", name="Jon"),
        ]
        old = datetime.now(UTC) - timedelta(days=20)
        memory.conversation("studio").append(said, created_at=old)
        memory.conversation("shop").append([HumanMessage("The glaze is dry", id="d")])
        memory.conversation("studio", agent_id="planner").append([HumanMessage("Another agent's glaze")])
        memory.work.index_due()
        yield memory


async def found(color: str, retriever: SupabaseMemoryRetriever, query: str = "glaze", **asked: Any) -> list[Any]:
    return retriever.invoke(query, None, **asked) if color == "sync" else await retriever.ainvoke(query, None, **asked)


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_a_document_says_where_it_is_from(memory: SupabaseMemory, color: str) -> None:
    retriever = SupabaseMemoryRetriever(memory=memory, thread_id="studio", k=5)
    documents = await found(color, retriever, "blue glaze")
    answer = documents[0]
    (chunk,) = [each for each in memory.conversation("studio").chunks.list() if each.message_ids == ["a"]]
    assert answer.id == chunk.id
    assert answer.page_content == "The blue glaze, 12 kg."
    assert json.loads(json.dumps(answer.metadata)) == answer.metadata
    assert answer.metadata == {
        "score": answer.metadata["score"],
        "score_parts": {"words": 0.5, "importance": 0.0175, "reply": -0.1},
        "similarity": None,
        "thread_id": "studio",
        "agent_id": "default",
        "from_sequence": 1,
        "to_sequence": 1,
        "message_ids": ["a"],
        "role": "assistant",
        "speaker": None,
        "type": "answer",
        "importance": chunk.importance,
        "said_at": chunk.said_at.isoformat(),
        "episode": 0,
    }
    scores = [each.metadata["score"] for each in documents]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0
    assert [each.metadata["speaker"] for each in documents if each.metadata["message_ids"] == ["q2"]] == ["Jon"]


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_a_call_overrides_what_was_said_at_construction(memory: SupabaseMemory, color: str) -> None:
    retriever = SupabaseMemoryRetriever(memory=memory, thread_id="studio", k=2)
    assert len(await found(color, retriever)) == 2
    assert len(await found(color, retriever, k=1)) == 1
    assert [each.page_content for each in await found(color, retriever, thread_id="shop")] == ["The glaze is dry"]
    assert await found(color, retriever, time_range="week") == []
    assert [each.metadata["type"] for each in await found(color, retriever, types=["answer"])] == ["answer"]
    assert [each.metadata["message_ids"] for each in await found(color, retriever, "", min_importance=0.4)] == [["q"]]
    assert len(await found(color, retriever)) == 2  # a call changes nothing for the next


async def test_k_documents_come_where_there_are_k(conn_string: str, user_id: str) -> None:
    embeddings = DeterministicFakeEmbedding(size=384)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=embeddings) as memory:
        memory.conversation("t").append([HumanMessage(f"Line {n} of a poem") for n in range(30)])
        memory.conversation("t").index()
        retriever = SupabaseMemoryRetriever(memory=memory)
        for k in (1, 7, 30):
            assert len(retriever.invoke("a word that nobody said", k=k)) == k
        assert len(retriever.invoke("a poem", k=1000)) == 30
        assert retriever.invoke("poem", k=1)[0].metadata["similarity"] is not None
        assert retriever._get_ls_params() == {
            "ls_retriever_name": "supabase_memory",
            "ls_vector_store_provider": "Supabase",
            "ls_embedding_model": "DeterministicFakeEmbedding",
        }


def test_what_was_said_around_it_comes_with_its_range(memory: SupabaseMemory) -> None:
    retriever = SupabaseMemoryRetriever(memory=memory, thread_id="studio", k=1, neighbors=1)
    (document,) = retriever.invoke("blue glaze")
    assert document.page_content == (
        "User: Which glaze did Maria order?\nAssistant: The blue glaze, 12 kg.\nJon: And the clay?"
    )
    assert (document.metadata["from_sequence"], document.metadata["to_sequence"]) == (0, 2)
    assert document.metadata["message_ids"] == ["q", "a", "q2"]
    assert document.metadata["role"] == "assistant"  # it is still the document of the one that was found


def test_scopes(memory: SupabaseMemory) -> None:
    def threads(**fields: Any) -> set[tuple[str, str]]:
        documents = SupabaseMemoryRetriever(memory=memory, **fields).invoke("glaze")
        return {(each.metadata["agent_id"], each.metadata["thread_id"]) for each in documents}

    everything = {("default", "studio"), ("default", "shop"), ("planner", "studio")}
    assert threads() == threads(scope="user") == everything
    assert threads(agent_id="planner") == threads(agent_id="planner", thread_id="studio") == {("planner", "studio")}
    assert threads(scope="agent") == {("default", "studio"), ("default", "shop")}
    assert threads(thread_id="studio") == threads(thread_id="studio", scope="user") == {("default", "studio")}
    assert threads(thread_id="nowhere") == set()


async def test_two_users_never_meet(caller: Caller, user_id: str) -> None:
    other = f"{user_id}-other"
    for owner, words in ((user_id, "My glaze is blue"), (other, "My glaze is red")):
        await caller(caller.service.for_user(owner).conversation("same").append, [HumanMessage(words)])
        await caller(caller.service.for_user(owner).conversation("same").index)

    for owner, words in ((user_id, "My glaze is blue"), (other, "My glaze is red")):
        retriever = SupabaseMemoryRetriever(memory=caller.service.for_user(owner), thread_id="same")
        assert [each.page_content for each in await found(caller.color, retriever)] == [words]
    # A token is a scope, and no argument leads out of it.
    mine = SupabaseMemoryRetriever(memory=caller.as_token(token("authenticated", user_id)))
    assert [each.page_content for each in await found(caller.color, mine)] == ["My glaze is blue"]
    theirs = SupabaseMemoryRetriever(memory=mine.memory.for_user(other))
    assert await found(caller.color, theirs) == []


@each_case("color", ["sync", "async"])
async def test_no_scope_is_an_error_and_not_everything(conn_string: str, color: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        unscoped: list[dict[str, Any]] = [{}, {"thread_id": "studio"}, {"scope": "user"}, {"agent_id": "default"}]
        for fields in unscoped:
            with pytest.raises(InvalidInputError, match="No user is named"):
                await found(color, SupabaseMemoryRetriever(memory=memory, **fields))
        with pytest.raises(InvalidInputError, match="user_id must have"):
            SupabaseMemoryRetriever(memory=memory.for_user(""))
        with pytest.raises(InvalidInputError, match="No thread is named"):
            await found(color, SupabaseMemoryRetriever(memory=memory.for_user("u"), scope="conversation"))
        await memory.aclose()


@dataclass
class Person:
    user_id: str


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_in_a_graph_it_is_the_runs_conversation(
    memory: SupabaseMemory, conn_string: str, user_id: str, color: str
) -> None:
    nobodys = SupabaseMemory.from_conn_string(conn_string)
    retriever = SupabaseMemoryRetriever(memory=nobodys)
    shown: list[list[str]] = []

    def keep(documents: list[Any]) -> dict[str, Any]:
        shown.append([each.metadata["thread_id"] for each in documents])
        return {"messages": []}

    def sync(state: MessagesState, runtime: Runtime[Person]) -> dict[str, Any]:
        return keep(retriever.invoke("glaze"))

    async def not_sync(state: MessagesState, runtime: Runtime[Person]) -> dict[str, Any]:
        return keep(await retriever.ainvoke("glaze"))

    builder = StateGraph(MessagesState, context_schema=Person)
    builder.add_node("find", sync if color == "sync" else not_sync)
    builder.add_edge(START, "find")
    graph: Any = builder.compile()
    for thread, context in (("shop", Person(user_id)), (None, Person(user_id)), ("shop", Person("somebody else"))):
        config = {"configurable": {} if thread is None else {"thread_id": thread}}
        if color == "sync":
            graph.invoke({"messages": []}, config, context=context)
        else:
            await graph.ainvoke({"messages": []}, config, context=context)
    assert shown[0] == ["shop"]
    assert set(shown[1]) == {"studio", "shop"}
    assert shown[2] == []
    with pytest.raises(InvalidInputError, match="No user is named"):
        if color == "sync":
            graph.invoke({"messages": []}, {"configurable": {"thread_id": "shop"}})
        else:
            await graph.ainvoke({"messages": []}, {"configurable": {"thread_id": "shop"}})
    await nobodys.aclose()


def test_what_is_none_of_the_choices_is_refused(memory: SupabaseMemory) -> None:
    wrong: list[dict[str, Any]] = [
        {"k": 0},
        {"k": 1001},
        {"time_range": "year"},
        {"types": ["poem"]},
        {"thread_id": ""},
    ]
    for fields in [*wrong, {"fusion": "none"}, {"min_importance": 2.0}, {"neighbors": -1}, {"scope": "world"}]:
        with pytest.raises(InvalidInputError):
            SupabaseMemoryRetriever(memory=memory, **fields)
        with pytest.raises(InvalidInputError):
            SupabaseMemoryRetriever(memory=memory).invoke("glaze", None, **fields)
    with pytest.raises(InvalidInputError, match="no argument top_k"):
        SupabaseMemoryRetriever(memory=memory).invoke("glaze", None, top_k=3)


def test_no_key_is_shown_and_a_database_that_is_away_is_said() -> None:
    memory = SupabaseMemory.from_conn_string("postgresql://x:hush-hush@127.0.0.1:1/x", user_id="u", retry=NO_RETRY)
    retriever = SupabaseMemoryRetriever(memory=memory)
    with pytest.raises(UnavailableError) as raised:
        retriever.invoke("glaze")
    for text in (repr(retriever), str(retriever.model_dump()), str(raised.value)):
        assert "hush-hush" not in text
    memory.close()


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_messages_are_found_letter_by_letter(memory: SupabaseMemory, color: str) -> None:
    retriever = SupabaseMemoryRetriever(memory=memory, agent_id="default", exact="oldest")
    documents = await found(color, retriever, "GLAZE")
    assert [(each.id, each.metadata["thread_id"]) for each in documents] == [
        ("q", "studio"),
        ("a", "studio"),
        ("d", "shop"),
    ]
    (newest,) = await found(color, retriever, "clay?", exact="newest", thread_id="studio", neighbors=1)
    assert newest.page_content == "Assistant: The blue glaze, 12 kg.\nJon: And the clay?"
    assert json.loads(json.dumps(newest.metadata)) == newest.metadata
    assert (newest.metadata["from_sequence"], newest.metadata["message_ids"]) == (1, ["a", "q2"])
    assert await found(color, retriever, "glaze", thread_id="studio", time_range="week") == []
    assert len(await found(color, retriever, "glaze", k=2)) == 2
    assert await found(color, retriever, "glaze which", exact=None)
    wrong: dict[str, Any]
    for wrong in ({"exact": "best"}, {"neighbors": 11}, {"types": ["fact"]}, {"episode": True}, {"characters": 100}):
        with pytest.raises(InvalidInputError):
            await found(color, retriever, "glaze", **{"exact": "newest", **wrong})
    with pytest.raises(InvalidInputError, match="exact"):
        SupabaseMemoryRetriever(memory=memory, **{"exact": "best"})  # type: ignore[arg-type]
