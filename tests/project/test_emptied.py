"""A database that is handed on has no rows of the test before, and nothing else that it changed."""

from __future__ import annotations

import psycopg

from langchain_supabase_memory import SupabaseMemory
from tests.each_case import each_case
from tests.services.emptied import EmptiedDatabase, delete_from
from tests.services.postgres import Cluster, execute


def test_the_next_test_finds_no_row(cluster: Cluster, emptied_database: EmptiedDatabase) -> None:
    name = emptied_database.name()
    for _ in range(2):
        with SupabaseMemory.from_conn_string(cluster.conn_string(name), user_id="u") as memory:
            assert list(memory.conversations()) == []
            assert memory.work.queue().depth == 0
            memory.conversation("t").add_turn("Is the kiln hot?", "It is.")
            memory.conversation("t").index()
            assert memory.recall("kiln").chunks
        assert emptied_database.name() == name


def test_rows_are_deleted_with_those_that_refer_to_them(cluster: Cluster, emptied_database: EmptiedDatabase) -> None:
    name = emptied_database.name()
    address = cluster.conn_string(name)
    with SupabaseMemory.from_conn_string(address, user_id="u") as memory:
        memory.conversation("t").add_turn("Is the kiln hot?", "It is.")
        memory.conversation("t").index()
    filled = ("memory.conversations", "memory.conversation_messages", "memory.working_memory_chunks")
    count = "select " + ", ".join(f"(select count(*) from {each})" for each in (*filled, "memory_private.owners"))
    [(*rows, owners)] = execute(address, count)
    assert min(rows) > 0
    delete_from(cluster, name, "memory.conversations")
    assert execute(address, count) == [(0, 0, 0, owners)], "nothing refers to a conversation there"
    assert emptied_database.name() == name, "nothing but rows has changed"


@each_case(
    "change",
    [
        "create table public.theirs (id int)",
        "alter table memory.conversations disable row level security",
        "alter table memory.conversations set (autovacuum_enabled = off)",
        "alter policy conversations_select on memory.conversations using (true)",
        "grant select on memory.conversations to anon",
        "grant select (set_by) on memory.rollouts to authenticated",
        "grant execute on function public.memory_worker_revive to authenticated",
        "create or replace function public.memory_schema() returns jsonb language sql as 'select null::jsonb'",
        "create index on memory.conversations (title)",
        "update memory_private.limits set message_bytes = message_bytes - 1",
        "alter database {name} set statement_timeout = 1000",
    ],
)
def test_whoever_changes_more_than_rows_leaves_it_to_nobody(
    cluster: Cluster, emptied_database: EmptiedDatabase, change: str
) -> None:
    name = emptied_database.name()  # of the case before, which nothing has changed since
    with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
        connection.execute(change.format(name=name).encode())
    assert emptied_database.name() != name
