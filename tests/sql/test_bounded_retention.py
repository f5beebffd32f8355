"""What has expired of a long history goes in steps, each of which reads and writes what it deletes."""

from __future__ import annotations

from datetime import timedelta

import psycopg

from benchmarks import fill
from langchain_supabase_memory import Retention, SupabaseMemory
from tests.counting import Cost, CountingTransport
from tests.services.postgres import Cluster

LONG = 12_000
STEP = 5_000

_AGED = """
set session_replication_role = replica;
update memory.conversation_messages m set created_at = now() - interval '2 hours' + m.sequence * interval '1 millisecond';
insert into memory.working_memory_chunks (
  user_id, conversation_id, place, part, id, from_sequence, to_sequence, message_ids, stretch, type, role, said_at,
  content, characters, tokens, lexemes, terms, importance)
select m.user_id, m.conversation_id, m.sequence, 1, gen_random_uuid(), m.sequence, m.sequence, array[m.message_id],
       m.sequence / 20 * 20, 'dialogue', m.role, m.created_at, 'kiln', 4, 1, 1, 1, 0.5
from memory.conversation_messages m;
insert into memory.topic_stretches (user_id, conversation_id, stretch, due, at)
select distinct k.user_id, k.conversation_id, k.stretch, false, now() from memory.working_memory_chunks k;
update memory.conversations c set indexed_through = c.next_sequence - 1, chunk_count = c.next_sequence;
reset session_replication_role;
vacuum analyze
"""


class _EachCall(CountingTransport):
    """Notes what each call costs."""

    def costs(self) -> list[Cost]:
        if not hasattr(self, "_costs"):
            self._costs: list[Cost] = []
        return self._costs

    def perform(self, call: object) -> object:
        self.taken()
        answer = super().perform(call)  # type: ignore[arg-type]
        self.costs().append(self.cost)
        return answer


def aged(cluster: Cluster, *fillings: fill.Filling) -> str:
    """Fill a database with conversations of an hour ago, indexed, in stretches."""
    name = cluster.migrated_database()
    superuser = cluster.conn_string(name, "supabase_admin")
    for filling in fillings:
        fill.fill(superuser, filling)
    with psycopg.connect(superuser, autocommit=True) as connection:
        for statement in _AGED.split(";\n"):
            connection.execute(statement.encode())
    return name


def test_a_long_history_expires_in_steps(cluster: Cluster) -> None:
    name = aged(cluster, fill.Filling("long-", LONG, 1, "u"), fill.Filling("short-", 2, 3, "u"))
    with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
        transport = _EachCall(connection)
        with SupabaseMemory(
            transport, user_id="u", model=None, retention=Retention(max_age=timedelta(hours=1))
        ) as memory:
            would = memory.forget_expired(dry_run=True)
            assert (would.conversations, would.messages, would.chunks) == (4, LONG + 6, LONG + 6)
            transport.costs().clear()
            gone = memory.forget_expired()
            assert (gone.conversations, gone.messages, gone.chunks) == (4, LONG + 6, LONG + 6)
            assert len(transport.costs()) >= LONG // STEP
            assert max(each.read for each in transport.costs()) <= 60 * STEP
            assert max(each.written for each in transport.costs()) <= 5 * STEP
            for table in ("conversation_messages", "working_memory_chunks", "topic_stretches"):
                assert connection.execute(f"select count(*) from memory.{table}".encode()).fetchall() == [(0,)]


def test_only_what_has_expired_goes(cluster: Cluster) -> None:
    name = aged(cluster, fill.Filling("long-", LONG, 1, "u"))
    with psycopg.connect(cluster.conn_string(name, "supabase_admin"), autocommit=True) as connection:
        connection.execute(
            "update memory.conversation_messages set created_at = now() where sequence >= %s", [LONG - 1234]
        )
    for retention, left in ((Retention(max_age=timedelta(hours=1)), 1234), (Retention(max_messages=30), 30)):
        with SupabaseMemory.from_conn_string(
            cluster.conn_string(name), user_id="u", model=None, retention=retention
        ) as memory:
            memory.forget_expired()
            assert memory.conversation("long-0").count() == left
            assert memory.forget_expired().messages == 0
