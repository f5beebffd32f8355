"""The columns of conversations and messages: each is in the table of what exports, lists and Realtime include."""

from __future__ import annotations

from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any, Final, get_args

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from psycopg.types.json import Jsonb

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.effects import call
from langchain_supabase_memory.operations.columns import (
    CARRIED,
    CONVERSATION_COLUMNS,
    LIVE,
    MESSAGE_CARRIED,
    MESSAGE_COLUMNS,
    StoredColumn,
)
from langchain_supabase_memory.operations.conversations import Column
from langchain_supabase_memory.transfer import export_conversations, import_conversations
from langchain_supabase_memory.transfer.sources import jsonl
from langchain_supabase_memory.values import ConversationInfo

TABLES: Final = {"conversations": CONVERSATION_COLUMNS, "conversation_messages": MESSAGE_COLUMNS}
THEN: Final = "2025-03-01 12:00:00+00"
VALUES: Final[dict[str, Any]] = {
    "agent_id": "second",
    "thread_id": "studio",
    "title": "A kiln",
    "metadata": Jsonb({"color": "blue"}),
    "created_at": THEN,
    "updated_at": THEN,
}
"""For each column of a conversation that is carried a value that none has by itself."""

PHOTO: Final = {"type": "image", "url": "https://example.com/kiln.png"}


def of_database(connection: psycopg.Connection[Any], table: str) -> list[str]:
    ask = (
        "select attname from pg_attribute where attrelid = to_regclass('memory.' || %s) and attnum > 0"
        " and not attisdropped order by attname"
    )
    return [name for (name,) in connection.execute(ask, (table,)).fetchall()]


@pytest.mark.parametrize("table", TABLES)
def test_each_column_of_the_database_is_in_its_table_and_no_other(conn_string: str, table: str) -> None:
    with psycopg.connect(conn_string) as connection:
        there = of_database(connection, table)
    assert there == sorted(each.name for each in TABLES[table]), "say in operations/columns.py what becomes of it"


def test_what_is_superseded_has_the_columns_of_a_message(conn_string: str) -> None:
    """They go from one table to the other and back; `final` is of messages that turns are counted of."""
    with psycopg.connect(conn_string) as connection:
        there = {*of_database(connection, "superseded_messages")}
        assert there == {each.name for each in MESSAGE_COLUMNS} - {"final"} | {"superseded_at"}
        moved = str(connection.execute("select pg_get_functiondef('memory_private.move_messages'::regproc)").fetchone())
    for each in MESSAGE_COLUMNS:
        if each.name not in ("bytes", "final"):  # which the database makes
            assert moved.count(f" d.{each.name}") >= 2, f"{each.name} is lost on the way there or back"


@pytest.mark.parametrize("column", [*CONVERSATION_COLUMNS, *MESSAGE_COLUMNS], ids=lambda each: each.name)
def test_what_an_export_has_not_has_a_reason(column: StoredColumn) -> None:
    assert bool(column.reason) == (column.export != "carried")


def test_lists_and_realtime_have_what_they_are_to_have(conn_string: str, user_id: str) -> None:
    names = {each.name for each in CONVERSATION_COLUMNS}
    listed = {each.name for each in CONVERSATION_COLUMNS if each.is_listed}
    assert {each.name for each in fields(ConversationInfo)} & names == listed
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("studio").append([HumanMessage("Hello")])
        (row,) = memory._services.run(call("memory_conversations", {"p_user_id": user_id}))["conversations"]
        assert row.keys() & names == listed
        page = {"p_user_id": user_id, "p_thread_id": "studio", "p_columns": [*get_args(Column)]}
        (message,) = memory._services.run(call("memory_read", page))["messages"]
    read = {each.name for each in MESSAGE_COLUMNS if each.is_read} | {"author_name"}  # as the space calls the author
    assert {*get_args(Column)} == read == message.keys() - {"sequence"}
    with psycopg.connect(conn_string) as connection:
        found = connection.execute(
            "select columns from memory_private.realtime_tables() where name = 'conversations'"
        ).fetchone()
    assert found == ([*LIVE],)


def test_what_is_carried_arrives(conn_string: str, user_id: str, tmp_path: Path) -> None:
    assert VALUES.keys() == {*CARRIED}, "say a value for it"
    other, file = f"{user_id}-elsewhere", BytesIO()
    with (
        SupabaseMemory.from_conn_string(conn_string, model=None) as memory,
        psycopg.connect(conn_string, autocommit=True) as connection,
    ):
        said = [HumanMessage([{"type": "text", "text": "Look"}, PHOTO], id="m1"), AIMessage("A kiln.", id="m2")]
        memory.for_user(user_id).conversation("t").append(said, metadata={"source": "web"})
        before = rows(connection, user_id)
        for name, value in VALUES.items():
            connection.execute(
                f"update memory.conversations set {name} = %s where user_id = %s".encode(), (value, user_id)
            )
        connection.execute(
            "update memory.conversation_messages set created_at = %s where user_id = %s",
            ("2025-02-28 12:00+00", user_id),
        )
        export_conversations(memory.for_user(user_id), file)
        (tmp_path / "export.jsonl").write_bytes(file.getvalue())
        import_conversations(memory.for_user(other), jsonl(tmp_path / "export.jsonl"))
        here, there = rows(connection, user_id), rows(connection, other)
    assert there == here
    changed = [a != b for a, b in zip(before[0][0], here[0][0], strict=True)]
    assert all(changed), dict(zip(CARRIED, changed, strict=True))
    assert all(value is not None for value in here[1][0]), "a message has something in each"


def rows(connection: psycopg.Connection[Any], user_id: str) -> list[list[Any]]:
    """What is carried of a user's conversation, and of its messages."""
    found = []
    for table, names in (("conversations", CARRIED), ("conversation_messages", MESSAGE_CARRIED)):
        ask = f"select {', '.join(f'{name}::text' for name in names)} from memory.{table} where user_id = %s order by 1"
        found.append([*connection.execute(ask.encode(), (user_id,)).fetchall()])
    return found
