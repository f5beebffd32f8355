"""Import from real databases that the real libraries have written."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypedDict

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.transfer import aimport_conversations, import_conversations
from langchain_supabase_memory.transfer.batches import UNTIMED
from langchain_supabase_memory.transfer.sources import langchain_postgres, langchain_sql, langgraph, openai_agents
from langchain_supabase_memory.transfer.values import ThreadStart
from tests.services.postgres import Cluster

SAID: Final[list[BaseMessage]] = [
    HumanMessage("My kiln shows E-47.", additional_kwargs={"color": "blue"}),
    AIMessage("", tool_calls=[{"name": "look_up", "args": {"part": "K"}, "id": "c1"}]),
    ToolMessage("25 euros", tool_call_id="c1"),
    AIMessage("A type K for 25 euros.", response_metadata={"model_name": "m"}),
]


def stored(memory: SupabaseMemory, thread_id: str) -> list[BaseMessage]:
    return [each.message for each in memory.conversation(thread_id).read()]


def same(found: list[BaseMessage], said: list[BaseMessage]) -> None:
    """The messages are equal, but for ids that they did not have."""
    assert all(message.id for message in found)
    without = [message.model_copy(update={"id": None}) for message in found]
    assert without == [message.model_copy(update={"id": None}) for message in said]


def test_langchain_postgres(memory: SupabaseMemory, own_address: str) -> None:
    from langchain_postgres import PostgresChatMessageHistory  # a second of the processor

    sessions = sorted(str(uuid.uuid4()) for _ in range(2))
    with psycopg.connect(own_address) as connection:
        PostgresChatMessageHistory.create_tables(connection, "chat_history")
        for session in sessions:
            PostgresChatMessageHistory("chat_history", session, sync_connection=connection).add_messages(SAID)
        connection.execute("update chat_history set created_at = '2025-03-01T12:00:00Z'")
    receipt = import_conversations(memory, langchain_postgres(own_address))
    assert (receipt.conversations, receipt.stored, receipt.lost) == (2, 8, {})
    for session in sessions:
        same(stored(memory, session), SAID)
    rows = memory.conversation(sessions[0]).read(columns=("created_at",))
    assert {row.created_at for row in rows} == {datetime(2025, 3, 1, 12, tzinfo=UTC)}

    # It goes on there, and comes once more: only what is new.
    with psycopg.connect(own_address) as connection:
        more = PostgresChatMessageHistory("chat_history", sessions[0], sync_connection=connection)
        more.add_messages([HumanMessage("And the price?")])
    again = import_conversations(memory, langchain_postgres(own_address))
    assert (again.stored, again.known) == (1, 8)
    assert stored(memory, sessions[0])[-1].text == "And the price?"


def test_langchain_community(memory: SupabaseMemory, own_address: str, tmp_path: Path) -> None:
    from langchain_community.chat_message_histories import SQLChatMessageHistory  # a second of the processor

    for number, address in enumerate(
        (f"sqlite:///{tmp_path / 'chat.db'}", own_address.replace("postgresql:", "postgresql+psycopg:"))
    ):
        session = f"session-{number}"
        history = SQLChatMessageHistory(session, connection=address)
        history.add_messages(SAID)
        history.engine.dispose()
        receipt = import_conversations(memory, langchain_sql(address))
        assert receipt.lost == {UNTIMED: (1, "message_store, row 1")}
        same(stored(memory, session), SAID)
        assert import_conversations(memory, langchain_sql(address)).stored == 0


ITEMS: Final[list[Any]] = [
    {"role": "user", "content": "My kiln shows E-47."},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"},
    {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "two parts"}]},
    {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": '{"part": "K"}', "id": "fc_1"},
    {"type": "function_call", "call_id": "c2", "name": "look_up", "arguments": '{"part": "J"}', "id": "fc_2"},
    {"type": "function_call_output", "call_id": "c1", "output": "25 euros"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "20 euros"}]},
    {
        "type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
        "content": [{"type": "output_text", "text": "A type K for 25 euros.", "annotations": []}],
    },
    {"role": "user", "content": [{"type": "input_text", "text": "Here it is."}, {"type": "input_image", "image_url": "data:,"}]},
]  # fmt: skip


def test_openai_agents(memory: SupabaseMemory, tmp_path: Path) -> None:
    from agents import SQLiteSession  # a second of the processor
    from agents.extensions.memory import SQLAlchemySession
    from sqlalchemy.ext.asyncio import create_async_engine

    async def fill() -> None:
        first = SQLiteSession("first", str(tmp_path / "one.db"))
        await first.add_items(ITEMS)
        first.close()
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'other.db'}")
        await SQLAlchemySession("second", engine=engine, create_tables=True).add_items(ITEMS)
        await engine.dispose()

    asyncio.run(fill())
    for session, address in (
        ("first", str(tmp_path / "one.db")), ("second", f"sqlite+aiosqlite:///{tmp_path / 'other.db'}"),
    ):  # fmt: skip
        receipt = import_conversations(memory, openai_agents(address))
        assert {what: count for what, (count, _) in receipt.lost.items()} == {
            "reasoning that is encrypted or empty": 1,
            "images and files within messages": 1,
        }
        found = stored(memory, session)
        assert [message.type for message in found] == ["human", "ai", "tool", "tool", "ai", "human"]
        assert isinstance(found[1], AIMessage)
        assert [call["args"] for call in found[1].tool_calls] == [{"part": "K"}, {"part": "J"}]
        assert found[1].content == [{"type": "reasoning", "reasoning": "two parts"}]
        assert [message.text for message in found[2:]] == [
            "25 euros", "20 euros", "A type K for 25 euros.", "Here it is.",
        ]  # fmt: skip
        at = memory.conversation(session).read(columns=("created_at",))[0].created_at
        assert at is not None
        assert abs(at - datetime.now(UTC)) < timedelta(minutes=5)
        assert import_conversations(memory, openai_agents(address)).stored == 0


def test_answers_of_models_that_give_no_ids_are_kept(memory: SupabaseMemory, tmp_path: Path) -> None:
    from agents import SQLiteSession  # a second of the processor
    from agents.models.fake_id import FAKE_RESPONSES_ID

    def answer(text: str, name: str) -> dict[str, Any]:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return {"type": "message", "role": "assistant", "id": name, "status": "completed", "content": content}

    items: list[Any] = [
        {"role": "user", "content": "One?"}, answer("One.", FAKE_RESPONSES_ID),
        {"role": "user", "content": "Two?"}, answer("Two.", FAKE_RESPONSES_ID),
        {"role": "user", "content": "Three?"}, answer("Three.", "msg_1"), answer("Four.", "msg_1"),
    ]  # fmt: skip

    async def fill() -> None:
        session = SQLiteSession("s", str(tmp_path / "one.db"))
        await session.add_items(items)
        session.close()

    asyncio.run(fill())
    receipt = import_conversations(memory, openai_agents(str(tmp_path / "one.db")))
    assert [each.text for each in stored(memory, "s")] == ["One?", "One.", "Two?", "Two.", "Three?", "Three.", "Four."]
    assert receipt.lost == {}
    assert import_conversations(memory, openai_agents(str(tmp_path / "one.db"))).known == 7


def grown(saver: BaseCheckpointSaver[Any]) -> None:
    """Two threads of two turns each, of which one has a checkpoint of a graph within it."""

    def answer(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"Answer {len(state['messages'])}")]}

    inner = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
    graph = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=saver)
    for thread in ("one", "two"):
        for question in ("First?", "Second?"):
            graph.invoke(
                {"messages": [HumanMessage(question)]}, {"configurable": {"thread_id": thread, "user": "maya"}}
            )


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def saver(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    if request.param == "memory":
        yield InMemorySaver()
    elif request.param == "sqlite":
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as made:
            yield made
    else:
        with PostgresSaver.from_conn_string(cluster.conn_string(cluster.migrated_database())) as made:
            made.setup()
            yield made


async def test_langgraph_savers(memory: SupabaseMemory, saver: BaseCheckpointSaver[Any]) -> None:
    await asyncio.to_thread(grown, saver)
    owners: list[Any] = []

    def owner(thread: ThreadStart) -> str:
        owners.append(thread.about)
        return str(memory.user_id)

    receipt = await aimport_conversations(memory, langgraph(saver), owner=owner)
    assert (receipt.conversations, receipt.stored) == (2, 8)
    assert receipt.lost["times of messages: a saver keeps that of a thread's newest checkpoint alone"][0] == 2
    assert [about["user"] for about in owners] == ["maya", "maya"]
    for thread in ("one", "two"):
        found = await asyncio.to_thread(stored, memory, thread)
        newest = await asyncio.to_thread(saver.get_tuple, {"configurable": {"thread_id": thread}})
        assert newest is not None
        assert found == newest.checkpoint["channel_values"]["messages"]
        assert [message.text for message in found] == ["First?", "Answer 1", "Second?", "Answer 3"]
    assert (await aimport_conversations(memory, langgraph(saver))).stored == 0


def test_a_checkpoint_of_an_unknown_type_is_named(memory: SupabaseMemory, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver.from_conn_string(str(path)) as made:
        grown(made)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("update checkpoints set type = 'zebra' where thread_id = 'one'")
        raw.commit()
    with SqliteSaver.from_conn_string(str(path)) as made:
        with pytest.raises(InvalidInputError, match="of a type that cannot be read") as raised:
            import_conversations(memory, langgraph(made))
        assert "serializer" in raised.value.hint
        receipt = import_conversations(memory, langgraph(made), skip=True)
        assert (receipt.stored + receipt.known, len(stored(memory, "two"))) == (4, 4)
        assert receipt.lost["The newest checkpoint is of a type that cannot be read."][0] == 1
        named = import_conversations(memory, langgraph(made, threads=["two", "three"]), skip=True)
        assert (named.conversations, named.lost["There is no such thread."]) == (1, (1, "thread 2"))
    with closing(sqlite3.connect(path)) as raw:  # an older one, which nobody needs
        raw.execute("update checkpoints set type = 'msgpack'")
        oldest = "select min(checkpoint_id) from checkpoints where thread_id = 'one'"
        raw.execute(f"update checkpoints set type = 'zebra' where checkpoint_id = ({oldest})")
        raw.commit()
    with SqliteSaver.from_conn_string(str(path)) as made:
        import_conversations(memory, langgraph(made))
        assert len(stored(memory, "one")) == 4

    class Words(TypedDict):
        messages: str

    with SqliteSaver.from_conn_string(str(tmp_path / "words.db")) as made:
        made.setup()
        silent = StateGraph(Words).add_node("keep", lambda state: state).add_edge(START, "keep")
        silent.compile(checkpointer=made).invoke({"messages": "peanuts"}, {"configurable": {"thread_id": "one"}})
        with pytest.raises(InvalidInputError, match="thread 1: The state's messages are no messages") as raised:
            import_conversations(memory, langgraph(made))
        assert "peanuts" not in str(raised.value)
    with SqliteSaver.from_conn_string(str(tmp_path / "other.db")) as made:
        grown(made)
        receipt = import_conversations(memory, langgraph(made, channel="dialogue"))
        assert receipt.lost["threads without dialogue in their state"][0] == 2


class _Broken(InMemorySaver):
    """A saver whose list breaks off after the first thread."""

    def list(self, *arguments: Any, **named: Any) -> Iterator[Any]:
        for each in super().list(*arguments, **named):
            if each.config["configurable"]["thread_id"] == "two":
                raise RuntimeError("peanuts")
            yield each


def test_threads_that_were_seen_are_imported_where_the_list_breaks_off(memory: SupabaseMemory) -> None:
    broken = _Broken()
    grown(broken)
    with pytest.raises(InvalidInputError, match="cannot be listed further") as raised:
        import_conversations(memory, langgraph(broken))
    assert "threads=" in raised.value.hint
    assert "peanuts" not in str(raised.value)
    assert len(stored(memory, "one")) == 4
    assert import_conversations(memory, langgraph(broken), skip=True).known == 4
    assert import_conversations(memory, langgraph(broken, threads=["two"])).stored == 4


def test_a_saver_is_listed_by_pages(
    memory: SupabaseMemory, saver: BaseCheckpointSaver[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many checkpoints there are, few are held; and copies, which share their ids, are found over the edges."""
    for number in range(130):
        shared = f"1f000000-0000-6000-8000-{number // 70:012d}"
        config = {"configurable": {"thread_id": f"t{number:03d}", "checkpoint_ns": ""}}
        state: Any = {
            **empty_checkpoint(),
            "id": shared,
            "channel_values": {"messages": [("user", f"Question {number}")]},
        }
        state["channel_versions"] = {"messages": 1}
        saver.put(config, state, {}, {"messages": 1})  # type: ignore[arg-type]
    held: list[int] = []
    listed = type(saver).list

    def counted(self: Any, *arguments: Any, **named: Any) -> Iterator[Any]:
        held.append(named["limit"] or 0)
        return listed(self, *arguments, **named)

    monkeypatch.setattr(type(saver), "list", counted)
    receipt = import_conversations(memory, langgraph(saver))
    assert receipt.stored == 130
    assert held == [0] if isinstance(saver, InMemorySaver) else held[:2] == [50, 100]


@pytest.mark.parametrize("read", [langchain_postgres, langchain_sql, openai_agents])
def test_a_database_without_the_table_is_named(
    memory: SupabaseMemory, own_address: str, tmp_path: Path, read: Callable[..., Any]
) -> None:
    (tmp_path / "empty.db").touch()
    for address in (
        own_address,
        str(tmp_path / "empty.db"),
        str(tmp_path / "missing.db"),
        "postgresql://127.0.0.1:1/x",
    ):
        with pytest.raises(InvalidInputError) as raised:
            import_conversations(memory, read(address, table="nothing_here"))
        assert raised.value.hint
    with pytest.raises(InvalidInputError, match="not a valid table name"):
        import_conversations(memory, read(own_address, table="x; drop table y"))


def test_a_row_that_is_no_message_is_named(memory: SupabaseMemory, tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("create table message_store (id integer primary key, session_id text, message text)")
        raw.execute("insert into message_store (session_id, message) values ('s', '{\"peanuts\": 1}')")
        raw.commit()
    with pytest.raises(InvalidInputError, match="message_store, row 1") as raised:
        import_conversations(memory, langchain_sql(str(path)))
    assert "peanuts" not in str(raised.value)
    assert import_conversations(memory, langchain_sql(str(path)), skip=True).lost["The message cannot be read."][0] == 1
