"""Private conversations: nothing is derived from them, each message is shown for a day, and then all of it is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import ConfigurableFieldSpec, RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from langchain_supabase_memory import (
    ChunkPolicy,
    ExtractiveSummarizer,
    LoadContextNode,
    MemoryConfig,
    Retention,
    SaveTurnNode,
    SummaryPolicy,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    Worker,
)
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError, MigrationConflictError
from langchain_supabase_memory.long_term import StoreLongTerm, apromote
from langchain_supabase_memory.transfer import export_conversations
from tests.chat_models import says
from tests.conftest import Caller
from tests.embedders import WordEmbedder
from tests.services.data_api import token
from tests.services.postgres import Cluster

DERIVED = """
select sum(n) from (
  select count(*) as n from memory.conversation_summaries where user_id = %(user)s
  union all select count(*) from memory.working_memory_chunks where user_id = %(user)s
  union all select count(*) from memory.chunk_postings where user_id = %(user)s
  union all select count(*) from memory.chunk_embeddings where user_id = %(user)s
  union all select count(*) from memory.conversation_summary_boards where user_id = %(user)s
  union all select count(*) from memory.conversation_board_items where user_id = %(user)s
  union all select count(*) from memory.context_manifests where user_id = %(user)s
  union all select count(*) from memory.profile_items where user_id = %(user)s
  union all select count(*) from memory.promotions where user_id = %(user)s) t
"""
POLICY = MemoryConfig(policy=SummaryPolicy(messages=1, keep_messages=1), chunking=ChunkPolicy())


@pytest.fixture
def memory(cluster: Cluster, own: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(
        cluster.conn_string(own),
        user_id=user_id,
        model=ExtractiveSummarizer(),
        embeddings=WordEmbedder(),
        config=POLICY,
    ) as memory:
        yield memory


def said(word: str) -> list[BaseMessage]:
    """A turn of which each duty would make something."""
    return [
        HumanMessage(f"From now on remember that my {word} is allergic to nuts. We must call Dr. {word} on Friday."),
        AIMessage(f"Noted: the {word} and nuts. Shall I call Dr. {word}?"),
    ]


def move(address: str, user_id: str, by: timedelta) -> None:
    """Move all that was said, and when conversations changed, into the past; negative: into the future."""
    with psycopg.connect(address, autocommit=True) as connection:
        for table, columns in (
            ("conversation_messages", ("created_at",)),
            ("superseded_messages", ("created_at",)),
            ("conversations", ("created_at", "updated_at", "updated_before", "opted_out_at")),
        ):
            moved = ", ".join(f"{column} = {column} - %(by)s" for column in columns)
            statement = f"update memory.{table} set {moved} where user_id = %(user)s"
            connection.execute(statement.encode(), {"by": by, "user": user_id})


def rows(address: str, user_id: str) -> list[tuple[str, bool]]:
    with psycopg.connect(address) as connection:
        return connection.execute(
            "select thread_id, private from memory.conversations where user_id = %s order by thread_id", [user_id]
        ).fetchall()


def words(memory: SupabaseMemory, thread_id: str) -> list[str]:
    return [str(each.text) for each in memory.conversation(thread_id).read(columns=["text"])]


async def test_it_is_listed_as_private_and_stays_so(caller: Caller, user_id: str) -> None:
    memory = caller.service.for_user(user_id)
    talk = memory.conversation("t", private=True)
    await caller(talk.append, [HumanMessage("Hello")])
    await caller(memory.conversation("t").append, [AIMessage("Hello")])  # who does not say so goes on privately
    (listed,) = await caller(memory.conversations)
    assert (listed.private, listed.opted_out_at is not None, listed.message_count) == (True, True, 2)
    status = await caller(talk.work.status)
    assert status.private
    assert [each.private for each in (await caller(talk.info), await caller(talk.update, title="Mine"))] == [True, True]
    with pytest.raises(MigrationConflictError, match="never remembered"):
        await caller(talk.opt_in, actor="maya")
    assert await caller(talk.opt_out, actor="maya") is False
    assert len((await caller(memory.find, "hello")).messages) == 2
    with pytest.raises(InvalidInputError, match="has no board"):
        await caller(memory.conversation("new", private=True).board.add, "fact", "Tea", actor="maya", begin=True)
    with pytest.raises(InvalidInputError, match="not to be remembered"):
        await caller(talk.board.add, "fact", "Tea", actor="maya")


async def test_one_that_was_begun_otherwise_is_not_made_private(caller: Caller, user_id: str) -> None:
    memory = caller.service.for_user(user_id)
    await caller(memory.conversation("t").append, [HumanMessage("Hello")])
    with pytest.raises(MigrationConflictError, match="Begin a new thread, or forget"):
        await caller(memory.conversation("t", private=True).append, [HumanMessage("Secret")])
    assert await caller(memory.conversation("t").count) == 1
    await caller(memory.conversation("t").forget)
    await caller(memory.conversation("t", private=True).append, [HumanMessage("Secret")])
    assert (await caller(memory.conversation("t").info)).private


async def test_a_signed_in_user_has_private_conversations(caller: Caller, user_id: str, conn_string: str) -> None:
    memory = caller.as_token(token("authenticated", sub=user_id))
    await caller(memory.conversation("t", private=True).append, [HumanMessage("Hello")])
    move(conn_string, user_id, timedelta(days=2))
    await caller(memory.conversation("next").append, [HumanMessage("Hello")])
    assert rows(conn_string, user_id) == [("next", False)]


@pytest.mark.parametrize("private", ["yes", 1, None])
def test_private_is_a_truth_value(memory: SupabaseMemory, private: Any) -> None:
    with pytest.raises(ConfigurationError, match="private"):
        memory.conversation("t", private=private)


async def test_each_message_is_shown_for_a_day_by_every_reader(
    caller: Caller, user_id: str, conn_string: str, tmp_path: Path
) -> None:
    memory = caller.service.for_user(user_id)
    talk = memory.conversation("t", private=True)
    now = datetime.now(UTC)
    old, young = now - timedelta(hours=24, seconds=1), now - timedelta(hours=23)
    await caller(talk.append, [HumanMessage("young", id="2")], created_at=young)
    with psycopg.connect(conn_string, autocommit=True) as connection:  # as one is that was said a day ago
        connection.execute("update memory.conversation_messages set created_at = %s where user_id = %s", [old, user_id])
    seen = [
        (await caller(talk.read)),
        (await caller(talk.read, last=5)),
        (await caller(talk.context)).messages,
        (await caller(memory.find, "young")).messages,
        (await caller(talk.turns.list)),
    ]
    assert seen == [[], [], [], [], []]
    assert await caller(talk.count) == 0
    (listed,) = await caller(memory.conversations)
    assert (listed.message_count, listed.title, listed.last_message_text) == (0, None, None)
    assert await caller(talk.read, retention=Retention(max_age=timedelta(days=900))) == []
    # The next append removes it.
    await caller(talk.append, [HumanMessage("next", id="3")])
    with psycopg.connect(conn_string) as connection:
        texts = connection.execute("select text from memory.conversation_messages where user_id = %s", [user_id])
        assert texts.fetchall() == [("next",)]


async def test_a_time_to_come_keeps_nothing_longer(caller: Caller, user_id: str, conn_string: str) -> None:
    talk = caller.service.for_user(user_id).conversation("t", private=True)
    await caller(talk.append, [HumanMessage("Hello")], created_at=datetime.now(UTC) + timedelta(days=900))
    (message,) = await caller(talk.read, columns=["created_at"])
    assert abs(message.created_at - datetime.now(UTC)) < timedelta(minutes=1)


async def test_a_clock_that_is_set_back_keeps_nothing_for_longer_than_two_days(
    caller: Caller, user_id: str, conn_string: str
) -> None:
    memory = caller.service.for_user(user_id)
    talk = memory.conversation("t", private=True)
    await caller(talk.append, [HumanMessage("Hello")])
    move(conn_string, user_id, timedelta(hours=-20))  # the clock went back by so much
    assert await caller(talk.count) == 1
    move(conn_string, user_id, timedelta(hours=-5))
    assert await caller(talk.count) == 0
    assert list(await caller(memory.conversations)) == []
    await caller(memory.forget_expired)
    assert rows(conn_string, user_id) == []


async def test_nothing_is_derived_while_a_worker_runs_and_nothing_is_left_after_a_day(
    memory: SupabaseMemory, cluster: Cluster, own: str, user_id: str, canary: str
) -> None:
    address = cluster.conn_string(own)
    private = memory.conversation("private", private=True)
    for _ in range(4):
        private.append(said(canary))
        private.append([HumanMessage(f"The {canary} again.")], pack=private.context(canary))
    private.update(title=f"The {canary}", metadata={"about": canary})
    memory.conversation("other").append([HumanMessage("My kiln shows E-47."), AIMessage("That is the thermocouple.")])
    async with SupabaseMemory.from_conn_string(address, model=ExtractiveSummarizer(), config=POLICY) as service:
        await Worker(service).drain()
    assert [private.summaries.make().opted_out, private.index().opted_out, private.board.revise().opted_out] == [
        True
    ] * 3
    memory.conversation("other").forget()
    with psycopg.connect(address) as connection:
        assert connection.execute(DERIVED.encode(), {"user": user_id}).fetchone() == (0,)
    assert memory.recall(canary).chunks == memory.recall(canary, agent_id="default").chunks == []
    assert (await apromote(memory, StoreLongTerm(InMemoryStore(), user_id))).stored == []
    move(address, user_id, timedelta(hours=24, seconds=1))
    assert memory.find(canary).messages == []
    memory.forget_expired()
    assert rows(address, user_id) == []
    assert canary not in cluster.dump(own)


def test_without_a_worker_the_owners_next_conversation_removes_what_is_a_day_old(
    memory: SupabaseMemory, cluster: Cluster, own: str, user_id: str, canary: str
) -> None:
    address = cluster.conn_string(own)
    for number in range(3):
        memory.conversation(f"private-{number}", private=True).append(said(canary))
    memory.conversation("lasting").append([HumanMessage("Hello")])
    move(address, user_id, timedelta(hours=25))
    memory.conversation("young", private=True).append([HumanMessage("Hello")])
    assert rows(address, user_id) == [("lasting", False), ("young", True)]
    assert canary not in cluster.dump(own)


@pytest.mark.parametrize("private", [True, False])
def test_a_thread_whose_day_is_over_begins_anew(
    memory: SupabaseMemory, cluster: Cluster, own: str, user_id: str, canary: str, private: bool
) -> None:
    address = cluster.conn_string(own)
    memory.conversation("t", private=True).append(said(canary))
    memory.conversation("t").update(title=canary)
    move(address, user_id, timedelta(hours=25))
    talk = memory.conversation("t", private=private)
    assert talk.append([HumanMessage("Hello")]).sequences == [0]
    assert rows(address, user_id) == [("t", private)]
    assert canary not in cluster.dump(own)


def test_a_cleanup_removes_as_many_as_there_are_and_says_so(
    memory: SupabaseMemory, cluster: Cluster, own: str, user_id: str
) -> None:
    address = cluster.conn_string(own)
    for number in range(250):  # more than two pages
        memory.conversation(f"private-{number}", private=True).append([HumanMessage("Hello")])
    memory.conversation("young", private=True).append([HumanMessage("Hello")])
    move(address, user_id, timedelta(hours=25))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("update memory.conversations set updated_at = now() where thread_id = 'young'")
        connection.execute("update memory.conversation_messages set created_at = now() where text = 'Good-bye'")
    would = memory.forget_expired(dry_run=True)
    assert len(rows(address, user_id)) == 251
    done = memory.forget_expired()
    assert (would.messages, would.conversations) == (done.messages, done.conversations) == (251, 251)
    assert rows(address, user_id) == [("young", True)]
    assert memory.forget_expired().messages == 0


def test_what_somebody_works_on_is_left_for_the_next_cleanup(
    memory: SupabaseMemory, cluster: Cluster, own: str, user_id: str
) -> None:
    address = cluster.conn_string(own)
    memory.conversation("t", private=True).append([HumanMessage("Hello")])
    move(address, user_id, timedelta(hours=25))
    with psycopg.connect(address) as other:
        other.execute("select 1 from memory.conversations where user_id = %s for update", [user_id])
        memory.conversation("next").append([HumanMessage("Hello")])  # and nobody waits
        assert len(rows(address, user_id)) == 2
    memory.conversation("last").append([HumanMessage("Hello")])
    assert [thread for thread, _ in rows(address, user_id)] == ["last", "next"]


def test_of_two_that_begin_a_thread_one_says_what_it_is(memory: SupabaseMemory) -> None:
    for number in range(40):
        thread, gate = f"t-{number}", threading.Barrier(2)

        def begin(private: bool, thread: str = thread, gate: threading.Barrier = gate) -> bool:
            gate.wait()
            try:
                memory.conversation(thread, private=private).append([HumanMessage(f"private={private}")])
            except MigrationConflictError:
                return False
            return True

        with ThreadPoolExecutor(2) as threads:
            private, open_ = threads.map(begin, (True, False))
        assert open_
        info = memory.conversation(thread).info()
        assert info.private is private
        texts = set(words(memory, thread))
        assert texts == ({"private=True", "private=False"} if private else {"private=False"})


def test_what_waits_for_a_private_conversation_is_not_stored_in_another(memory: SupabaseMemory) -> None:
    private, plain = (memory.conversation("t", private=private) for private in (True, False))
    outbox = memory._services.outbox
    outbox.keep(private._key, [HumanMessage("Secret", id="s")])
    assert outbox.pending(plain._key) == []
    plain.forget()  # what waits is forgotten, however the conversation was named
    assert len(outbox) == 0
    outbox.keep(private._key, [HumanMessage("Secret", id="s")])
    memory.flush()
    info = plain.info()
    assert info.private


def test_exports_leave_it_out(memory: SupabaseMemory, tmp_path: Path, canary: str) -> None:
    memory.conversation("private", private=True).append(said(canary))
    memory.conversation("open").append([HumanMessage("My kiln shows E-47.")])
    for form in ("jsonl", "markdown"):
        target = tmp_path / form
        receipt = export_conversations(memory, target, format=form)
        files = [target] if target.is_file() else [each for each in target.rglob("*") if each.is_file()]
        assert receipt.conversations == 1
        assert not any(canary in each.read_text() for each in files)


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_a_run_says_by_its_configuration_that_it_is_private(
    memory: SupabaseMemory, cluster: Cluster, own: str, user_id: str, canary: str, color: str
) -> None:
    address = cluster.conn_string(own)
    chat = says("Noted.")
    agent = create_agent(chat, [], middleware=[SupabaseMemoryMiddleware(memory)], checkpointer=InMemorySaver())
    for text in (f"My {canary} is ill.", "What is ill?"):
        settings: Any = {"configurable": {"thread_id": "t", "private": True}}
        given: Any = {"messages": [HumanMessage(text)]}
        _ = agent.invoke(given, settings) if color == "sync" else await agent.ainvoke(given, settings)
    assert canary in str(chat.shown[-1])
    memory.flush()
    assert rows(address, user_id) == [("t", True)]
    with psycopg.connect(address) as connection:
        assert connection.execute(DERIVED.encode(), {"user": user_id}).fetchone() == (0,)

    # A day later the prompt holds nothing of it, though the graph's state still does.
    move(address, user_id, timedelta(hours=23))
    settings = {"configurable": {"thread_id": "t"}}
    given = {"messages": [HumanMessage("And now?")]}
    _ = agent.invoke(given, settings) if color == "sync" else await agent.ainvoke(given, settings)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "update memory.conversation_messages set created_at = created_at - interval '2 hours'"
            " where user_id = %s and sequence < 4",
            [user_id],
        )
    _ = agent.invoke(given, settings) if color == "sync" else await agent.ainvoke(given, settings)
    assert canary not in str(chat.shown[-1])
    await memory.aclose()


@pytest.mark.parametrize("private", ["yes", 1, 0, ""])
def test_a_run_that_says_neither_true_nor_false_is_refused(memory: SupabaseMemory, private: Any) -> None:
    agent = create_agent(says("Noted."), [], middleware=[SupabaseMemoryMiddleware(memory)])
    given: Any = {"messages": [HumanMessage("Hello")]}
    with pytest.raises(InvalidInputError, match="neither true nor false"):
        agent.invoke(given, {"configurable": {"thread_id": "t", "private": private}})
    assert list(memory.conversations()) == []


@pytest.mark.parametrize("on_error", ["setup", "raise"])
def test_what_a_private_run_says_is_not_stored_in_a_conversation_that_is_not(
    memory: SupabaseMemory, canary: str, on_error: Literal["setup", "raise"]
) -> None:
    memory.conversation("t").append([HumanMessage("Hello")])
    agent = create_agent(says("Noted."), [], middleware=[SupabaseMemoryMiddleware(memory, on_error=on_error)])
    given: Any = {"messages": [HumanMessage(canary)]}
    private: Any = {"configurable": {"thread_id": "t", "private": True}}
    if on_error == "raise":
        with pytest.raises(MigrationConflictError, match="Begin a new thread"):
            agent.invoke(given, private)
    else:
        assert agent.invoke(given, private)["messages"][-1].text == "Noted."
    agent.invoke({"messages": [HumanMessage("Again")]}, {"configurable": {"thread_id": "t"}})
    assert words(memory, "t") == ["Hello", "Again", "Noted."]
    memory.conversation("t").forget()
    assert memory.flush() == 0


def test_a_history_says_it_by_its_factory(memory: SupabaseMemory) -> None:
    def history(thread_id: str, private: bool) -> SupabaseChatMessageHistory:
        return SupabaseChatMessageHistory(thread_id, memory, private=private)

    named = [
        ConfigurableFieldSpec(id="thread_id", annotation=str),
        ConfigurableFieldSpec(id="private", annotation=bool),
    ]
    answered: RunnableLambda[Any, AIMessage] = RunnableLambda(lambda given: AIMessage(f"{len(given['past'])} before"))
    runnable = RunnableWithMessageHistory(
        answered, history, input_messages_key="input", history_messages_key="past", history_factory_config=named
    )
    for _ in range(2):
        runnable.invoke({"input": "Hello"}, {"configurable": {"thread_id": "whisper", "private": True}})
    runnable.invoke({"input": "Hello"}, {"configurable": {"thread_id": "open", "private": False}})
    assert words(memory, "whisper") == ["Hello", "0 before", "Hello", "2 before"]
    assert {each.thread_id: each.private for each in memory.conversations()} == {"whisper": True, "open": False}


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_the_nodes_of_a_graph_say_it_too(memory: SupabaseMemory, color: str) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("load", LoadContextNode(memory))
    builder.add_node("answer", lambda state: {"messages": [AIMessage("Noted.")]})
    builder.add_node("save", SaveTurnNode(memory, on_error="raise"))
    builder.add_edge(START, "load").add_edge("load", "answer").add_edge("answer", "save").add_edge("save", END)
    graph: Any = builder.compile()
    given: Any = {"messages": [HumanMessage("Hello")]}
    settings: Any = {"configurable": {"thread_id": "t", "private": True}}
    _ = graph.invoke(given, settings) if color == "sync" else await graph.ainvoke(given, settings)
    info = await memory.conversation("t").ainfo()
    assert (info.private, info.message_count) == (True, 2)
    await memory.aclose()
