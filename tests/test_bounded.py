"""What an operation touches does not grow with the history, whatever the planner knows: counted in rows, not timed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.messages.codec import to_row
from langchain_supabase_memory.schema.migrate import migrate
from tests.services.postgres import Cluster

TOUCHED = (
    "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) from pg_stat_xact_user_tables"
    " where relname = 'conversation_messages'"
)


NEVER = "never analyzed"


@pytest.fixture(scope="module", params=[NEVER, "analyzed"])
def connection(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """One conversation of 5,000 messages among 200 short ones, with and without statistics."""
    name = cluster.create_database()
    migrate(cluster.conn_string(name))
    for table in ("conversations", "conversation_messages"):
        cluster.execute(f"alter table memory.{table} set (autovacuum_enabled = off)", database=name)
    with SupabaseMemory.from_conn_string(cluster.conn_string(name), user_id="u") as memory:
        memory.append([HumanMessage(f"message {n}", id=f"m{n}") for n in range(5000)], thread_id="long")
        for n in range(200):
            memory.append([HumanMessage("short")], thread_id=f"short-{n}")
    if request.param != NEVER:
        cluster.execute("analyze", database=name)
    with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
        yield connection


def most_touched(connection: psycopg.Connection, statement: str, arguments: list[Any]) -> int:
    """The most rows that one of eight calls touches: after five the planner turns to a generic plan."""
    most = 0
    for number in range(8):
        with connection.transaction():
            before = connection.execute(TOUCHED).fetchone()
            connection.execute(statement.encode(), [str(each).replace("{n}", str(number)) for each in arguments])
            after = connection.execute(TOUCHED).fetchone()
        assert before
        assert after
        most = max(most, int(after[0] - before[0]))
    return most


def messages(*ids: str) -> str:
    import json

    return json.dumps([to_row(HumanMessage("new", id=each)) for each in ids])


def test_an_append_touches_a_handful_of_rows(connection: psycopg.Connection) -> None:
    append = "select public.memory_append('long', %s, 'u')"
    assert most_touched(connection, append, [messages("new-{n}-a", "new-{n}-b")]) <= 10


@pytest.mark.parametrize("connection", ["analyzed"], indirect=True)  # which autovacuum sees to within a minute
def test_a_replay_and_a_mixed_batch_touch_a_handful_of_rows(connection: psycopg.Connection) -> None:
    append = "select public.memory_append('long', %s, 'u')"
    assert most_touched(connection, append, [messages("m4998", "m4999", "mixed-{n}")]) <= 60


def test_the_newest_n_touch_n_rows(connection: psycopg.Connection) -> None:
    assert most_touched(connection, "select public.memory_read('long', 'u', p_last => 20)", []) <= 25


def test_a_page_touches_a_page(connection: psycopg.Connection) -> None:
    read = "select public.memory_read('long', 'u', p_from => 3000, p_limit => 50)"
    assert most_touched(connection, read, []) <= 55


@pytest.mark.parametrize("connection", ["analyzed"], indirect=True)  # which autovacuum sees to within a minute
def test_a_time_window_touches_the_window(connection: psycopg.Connection) -> None:
    read = "select public.memory_read('long', 'u', p_since => now() + interval '1 hour')"
    assert most_touched(connection, read, []) <= 5


def test_a_count_touches_one_conversation(connection: psycopg.Connection) -> None:
    assert most_touched(connection, "select public.memory_count('long', 'u')", []) <= 3


@pytest.mark.parametrize("connection", ["analyzed"], indirect=True)  # which autovacuum sees to within a minute
def test_forgetting_the_newest_message_touches_a_handful_of_rows(connection: psycopg.Connection) -> None:
    append = "select public.memory_append('long', %s, 'u')"
    connection.execute(append.encode(), [messages(*(f"gone-{n}" for n in range(8)))])
    assert most_touched(connection, "select public.memory_forget_message('long', %s, 'u')", ["gone-{n}"]) <= 40
