"""Counting usage reads a few rows of each conversation that is due, in bounded steps, whatever the planner knew before."""

from __future__ import annotations

import json
import logging
from typing import Any

import psycopg
import pytest

from benchmarks import fill
from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.types import UsageDay
from tests.counting import Cost, CountingTransport
from tests.services.postgres import Cluster
from tests.spaces import call

PAGE = 200
"""How many conversations are counted together."""

_MANIFESTS = """
insert into memory.context_manifests (user_id, conversation_id, sequence, from_sequence, pack)
select m.user_id, m.conversation_id, m.sequence, m.sequence - 1,
       '[[0, 0, 0, 4000, 100, 0, 0, -1, 0, 2, 30, 70, 0, -1, 1], [1, 2, 3, 2, 30, 8, 0, 1, -1], [3, 0, 0, 1, 5]]'
from memory.conversation_messages m where m.sequence % 2 = 1
"""


def filled(cluster: Cluster, *fillings: fill.Filling) -> str:
    """Fill a database in which nothing was ever counted, and return its name.

    The planner takes the tables of usage for empty, and any scan of them for free.
    """
    name = cluster.migrated_database()
    superuser = cluster.conn_string(name, "supabase_admin")
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute("vacuum analyze")
        for table in ("usage_cursors", "usage_days", "reads"):
            cluster.leave_unvacuumed(name, f"memory.{table}")
    for filling in fillings:
        fill.fill(superuser, filling)
    cluster.execute(_MANIFESTS, database=name)
    for table in ("conversations", "conversation_messages", "context_manifests"):
        cluster.execute(f"analyze memory.{table}", database=name)
    return name


def counted(cluster: Cluster, conversations: int) -> tuple[Cost, list[UsageDay]]:
    """Count conversations of two messages, all of one day, and return what it cost and what came out."""
    name = filled(cluster, fill.Filling("talk-", 2, conversations, "u"))
    with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
        connection.execute("update memory.conversations set updated_at = now()")
        transport = CountingTransport(connection)
        with SupabaseMemory(transport, user_id="u", model=None) as memory:
            assert memory.usage.update() == 2 * conversations
            cost = transport.taken()
            assert memory.usage.update() == 0
            assert transport.taken().written == 0
            return cost, memory.usage.by_day()


def test_a_day_of_many_conversations_costs_each_a_few_rows(cluster: Cluster) -> None:
    for number in (400, 1600):
        cost, days = counted(cluster, number)
        assert [(each.turns, each.messages, each.packs, each.passages) for each in days] == [
            (number, 2 * number, number, number)
        ]
        assert cost.round_trips <= 2 * number / PAGE + 2
        assert cost.read <= 16 * number
        assert cost.written <= 3 * number, "its cursor, what was shown, and the day with each page"


def ids(connection: psycopg.Connection[Any], user_id: str) -> list[str]:
    rows = connection.execute("select id from memory.conversations where user_id = %s order by id", [user_id])
    return [str(id_) for (id_,) in rows]


def test_a_step_counts_no_more_than_its_limit(cluster: Cluster) -> None:
    name = filled(cluster, fill.Filling("long-", 3000, 2, "u"), fill.Filling("short-", 2, 50, "u"))
    with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
        transport = CountingTransport(connection)
        given = {"p_conversations": ids(connection, "u"), "p_user_id": "u", "p_limit": 100}
        steps, more, messages, begun = 0, True, 0, 0
        while more:
            with connection.transaction(force_rollback=True):  # killed, and begun again
                call(connection, "worker_count_usage", **{each[2:]: value for each, value in given.items()})
            answer = transport.perform(Call("memory_worker_count_usage", given))
            steps, more, messages = steps + 1, answer["more"], messages + answer["counted"]
            assert answer["counted"] <= 100
            read, before = transport.taken().read, begun
            ((begun,),) = connection.execute("select count(*) from memory.usage_cursors").fetchall()
            assert read <= 600 + 60 * (begun - before)  # a step of fifty short ones looks each of them up
        assert messages == 6100
        assert steps <= 63
        days = connection.execute("select sum(messages), sum(packs) from memory.usage_days").fetchall()
        assert days == [(6100, 3050)]


def test_one_that_cannot_be_counted_stops_no_other(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    name = filled(cluster, fill.Filling("talk-", 2, 5, "u"))
    with psycopg.connect(cluster.conn_string(name, "supabase_admin"), autocommit=True) as connection:
        broken = ids(connection, "u")[2]
        connection.execute(f"alter table memory.usage_cursors add check (conversation_id <> '{broken}')".encode())
    with SupabaseMemory.from_conn_string(cluster.conn_string(name), user_id="u", model=None) as memory:
        with caplog.at_level(logging.WARNING):
            assert memory.usage.update() == 8
        assert sum(each.messages for each in memory.usage.by_day()) == 8
    assert [record.getMessage() for record in caplog.records] == ["A conversation was skipped"]


def test_no_lock_is_held_over_an_owners_conversations(cluster: Cluster) -> None:
    """Who writes, waits for nothing; another process counts other owners meanwhile."""
    name = filled(cluster, fill.Filling("talk-", 2, 3, "u"), fill.Filling("other-", 2, 3, "v"))
    with (
        psycopg.connect(cluster.conn_string(name)) as counting,
        psycopg.connect(cluster.conn_string(name), autocommit=True) as other,
    ):
        call(counting, "worker_count_usage", conversations=ids(counting, "u"), user_id="u")
        other.execute("set lock_timeout = '1s'")
        call(
            other,
            "append",
            thread_id="talk-0",
            messages=json.loads('[{"role": "user", "content": "more"}]'),
            user_id="u",
        )
        assert call(other, "worker_count_usage", conversations=ids(other, "v"), user_id="v")["counted"] == 6
        counting.commit()
        assert call(other, "worker_count_usage", conversations=ids(other, "u"), user_id="u")["counted"] == 1
