"""Citus: the script is made of one source everywhere; on a real cluster, owners are spread and each verb works.

What has the fixture `citus` runs with `make test-citus` alone.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import ExtractiveSummarizer, SupabaseMemory, Worker
from langchain_supabase_memory.adapters.schema import citus as distributed
from langchain_supabase_memory.adapters.schema import script
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.adapters.transports.answers import SHAPES
from langchain_supabase_memory.errors import (
    ConfigurationError,
    MigrationConflictError,
    SupabaseMemoryError,
    UnavailableError,
)
from tests.converse import Caller, converse
from tests.services.citus import CitusCluster
from tests.services.postgres import Cluster

OWNERS = [f"owner-{number}" for number in range(12)]

_DISTRIBUTED = """
select p.logicalrelid::text, p.colocationid from pg_dist_partition p
where p.partmethod = 'h' and column_to_column_name(p.logicalrelid, p.partkey) = 'user_id'
"""
_OWNED = """
select t.oid::regclass::text from pg_class t
where t.relkind = 'r' and t.relnamespace in ('memory'::regnamespace, 'memory_private'::regnamespace)
  and coalesce(obj_description(t.oid, 'pg_class'), '') not like 'Reference table. %'
"""
_PLACE = """
select s.nodeport from citus_shards s
where s.table_name = 'memory.conversations'::regclass
  and s.shardid = get_shard_id_for_distribution_column('memory.conversations', %s::text)
"""
_SHARDS = """
select c.oid::regclass::text from pg_class c
where c.relkind = 'r' and c.relnamespace in ('memory'::regnamespace, 'memory_private'::regnamespace)
  and c.relname ~ '_[0-9]{6,}$' and exists (
    select from pg_attribute a where a.attrelid = c.oid and a.attname = 'user_id' and not a.attisdropped)
"""


def code(**options: Any) -> str:
    """The functions and the access rules, as the script brings them."""
    return next(part.sql for part in script.parts(**options) if part.name == "functions_and_access")


def test_every_rule_and_every_piece_has_its_place() -> None:
    plain, spread = code(), code(citus=True)
    for needed in ("force_generic_plan", "pg_notify('memory_work'", "(select (select auth.jwt()) ->> 'sub')"):
        assert needed in plain
        assert needed not in spread
    assert set(re.findall(r"-- Citus: (\w+)", spread)) == set()
    assert "-- Citus: end" in plain
    # What is written twice says the same.
    parts = r"'score_parts', (json_strip_nulls\(.*?\)\)\)?)"
    one, other = (re.search(parts, text, re.DOTALL) for text in (plain, spread))
    assert one is not None
    assert other is not None
    assert re.sub(r"\s+|r\.rank", " ", one[1]) == re.sub(r"\s+|v_rank", " ", other[1])


def test_a_piece_without_its_place_is_an_error() -> None:
    marked = "a\n  -- Citus: one\n  b\n  -- Citus: end\nc\n"
    rules = "user_id = (select (select auth.jwt()) ->> 'sub') set plan_cache_mode = force_generic_plan"
    notified = f"{marked}{rules} perform pg_notify('memory_work', '');"
    assert distributed.rewritten(notified, {"one": "  B\n"}).startswith("a\n  B\nc\n")
    for pieces in ({}, {"other": ""}, {"one": "", "other": ""}):
        with pytest.raises(ValueError, match="pieces"):
            distributed.rewritten(notified, pieces)
    with pytest.raises(ValueError, match="no perform pg_notify"):
        distributed.rewritten(marked + rules, {"one": ""})


def test_the_release_is_known_by_one_checksum() -> None:
    made = {part.name: part.sql for part in script.parts(citus=True)}
    assert script.current().code in made["functions_and_access"]


@pytest.mark.parametrize("beside", [{"partitions": 4}, {"realtime": True}])
def test_what_citus_cannot_be_beside_is_refused_before_anything_is_asked(beside: Any) -> None:
    with pytest.raises(ConfigurationError, match="On Citus there are no partitions"):
        migrate("postgresql://nobody@127.0.0.1:1/nothing", citus=True, **beside)


def test_without_the_extension_nothing_is_made(cluster: Cluster) -> None:
    name = cluster.create_database(supabase=False)
    with pytest.raises(MigrationConflictError, match="The extension citus is not in this database") as caught:
        migrate(cluster.conn_string(name), citus=True)
    assert "create extension citus" in str(caught.value)
    with psycopg.connect(cluster.conn_string(name)) as connection:
        assert connection.execute("select to_regnamespace('memory')").fetchone() == (None,)


def port_of(address: str, owner: str) -> int:
    """Where the node listens that an owner is on."""
    with psycopg.connect(address) as connection:
        [(port,)] = connection.execute(_PLACE, [owner]).fetchall()
    return int(port)


@pytest.fixture(scope="module")
def name(citus: CitusCluster) -> str:
    """A database with some of everything."""
    name = citus.migrated_database()
    with SupabaseMemory.from_conn_string(citus.conn_string(name), model=None) as memory:
        for owner in OWNERS:
            talk = memory.conversation("talk", user_id=owner)
            for number in range(6):
                talk.add_turn(f"The kiln number {number} of {owner} stands in Riga.", "In Riga.")
            talk.index()
            talk.add_board_item("fact", f"{owner} has a kiln", by=owner)
            talk.opt_out("divorce", by=owner)
    return name


@pytest.fixture
def address(citus: CitusCluster, name: str) -> str:
    return citus.conn_string(name)


def test_every_table_of_owners_is_spread_and_no_other(address: str) -> None:
    with psycopg.connect(address) as connection:
        spread: dict[str, int] = dict(connection.execute(_DISTRIBUTED).fetchall())
        owned = {table for (table,) in connection.execute(_OWNED)}
    assert set(spread) == owned
    assert len(owned) == 23
    assert len(set(spread.values())) == 1, "all of one owner are together"


def test_owners_are_on_several_nodes(address: str, citus: CitusCluster) -> None:
    assert {port_of(address, owner) for owner in OWNERS} == {node.port for node in citus.workers}


def test_every_verb_answers_as_elsewhere(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        call = Caller(connection, "converses")
        converse(call)
    assert set(call.answers) == set(SHAPES)
    for function, answers in call.answers.items():
        assert all(SHAPES[function].fits(answer) for answer in answers), function


async def test_workers_do_all_that_is_due_also_of_one_owner(citus: CitusCluster) -> None:
    address = citus.conn_string(citus.migrated_database())
    async with SupabaseMemory.from_conn_string(address, model=ExtractiveSummarizer()) as memory:
        for owner in OWNERS:
            said = [
                HumanMessage(f"Glaze {number} of {owner} is blue. {'It is fired slowly. ' * 20}")
                for number in range(20)
            ]
            await memory.conversation("talk", user_id=owner).aappend(said)
        one = Worker(memory, user_id=OWNERS[0])
        assert (await one.drain()).pieces == 1
        assert (await Worker(memory).drain()).pieces == len(OWNERS) - 1
        for owner in OWNERS:
            (status,) = await memory.work.astatus(user_id=owner)
            assert status.state == "idle"
            assert status.indexed_through == status.next_sequence - 1
            assert status.summarized_through > 0
        (found, *_) = (await memory.conversation("talk", user_id=OWNERS[3]).arecall("glaze 7")).chunks
        assert "Glaze 7 of owner-3" in found.content


def test_erasure_erases_on_the_nodes(citus: CitusCluster, name: str, address: str) -> None:
    def left(owner: str) -> int:
        count = 0
        for node in citus.workers:
            with psycopg.connect(node.conn_string(name, "supabase_admin")) as connection:
                connection.execute("set citus.override_table_visibility = off")
                for (shard,) in connection.execute(_SHARDS).fetchall():
                    query = f"select count(*) from {shard} where user_id = %s".encode()
                    [(found,)] = connection.execute(query, [owner]).fetchall()
                    count += found
        return count

    other = left(OWNERS[6])
    assert left(OWNERS[5]) > 40
    with SupabaseMemory.from_conn_string(address, user_id=OWNERS[5], model=None) as memory:
        memory.forget_user()
        assert list(memory.conversations()) == []
    assert left(OWNERS[5]) == 0
    assert left(OWNERS[6]) == other


def test_nobody_acts_as_a_signed_in_user_there(address: str) -> None:
    with (
        SupabaseMemory.from_conn_string(address, model=None) as memory,
        memory.as_user({"sub": OWNERS[2], "role": "authenticated"}) as user,
        pytest.raises(SupabaseMemoryError),
    ):
        user.conversation("talk").read()


def test_a_migration_keeps_what_is_there_and_makes_it_nothing_else(
    citus: CitusCluster, name: str, address: str
) -> None:
    installed = migrate(address)
    assert installed == script.current()
    with SupabaseMemory.from_conn_string(address, user_id=OWNERS[1], model=None) as memory:
        assert memory.conversation("talk").count() == 12
    database = citus.distributed_database()
    migrate(citus.conn_string(database))
    with pytest.raises(MigrationConflictError, match="plain ones, on this server alone, and cannot be made"):
        migrate(citus.conn_string(database), citus=True)


def test_a_node_that_is_away_is_an_error_for_its_owners_alone(citus: CitusCluster, address: str) -> None:
    away = citus.workers[0]
    where = {owner: port_of(address, owner) for owner in OWNERS[6:]}
    lost = next(owner for owner, port in where.items() if port == away.port)
    there = next(owner for owner, port in where.items() if port != away.port)
    with SupabaseMemory.from_conn_string(address, model=None) as memory:
        away.halt()
        try:
            with pytest.raises(UnavailableError):
                memory.conversation("talk", user_id=lost).read()
            memory.conversation("talk", user_id=there).append([HumanMessage("Still here.")])
        finally:
            away.resume()
        assert memory.conversation("talk", user_id=lost).count() == 12
        assert memory.conversation("talk", user_id=there).count() == 13
