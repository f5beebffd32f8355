"""Citus: the script has one source everywhere; on a real cluster, owners are distributed and each verb works.

Tests with the fixture `citus` only run with `make test-citus`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import ExtractiveSummarizer, SupabaseMemory, Worker
from langchain_supabase_memory.adapters.schema import citus as distributed
from langchain_supabase_memory.adapters.schema import script
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.adapters.transports.response_shapes import SHAPES
from langchain_supabase_memory.errors import (
    ConfigurationError,
    MigrationConflictError,
    SupabaseMemoryError,
    UnavailableError,
)
from langchain_supabase_memory.settings import NO_RETRY, BreakerPolicy
from tests.converse import Caller, converse
from tests.each_case import each_case
from tests.examining import findings_by_name
from tests.services.citus import CitusCluster
from tests.services.postgres import Cluster
from tests.sql.test_partitions import talk

PAGE = Path(__file__).parents[2] / "docs" / "citus.md"
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


@each_case("beside", [{"partitions": 4}, {"realtime": True}])
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


def fill(address: str) -> None:
    """Store some of everything for each owner."""
    with SupabaseMemory.from_conn_string(address, model=None) as memory:
        for owner in OWNERS:
            talk(memory, owner)
    with psycopg.connect(address, autocommit=True) as connection:
        for owner in OWNERS:
            puts = [{"op": "put", "namespace": ["kilns"], "key": str(key), "value": {"at": owner}} for key in range(3)]
            connection.execute("select public.memory_store(%s, p_user_id => %s)", [json.dumps(puts), owner])


@pytest.fixture(scope="module")
def name(citus: CitusCluster) -> str:
    """A database with some of everything."""
    name = citus.migrated_database()
    fill(citus.conn_string(name))
    return name


@pytest.fixture
def address(citus: CitusCluster, name: str) -> str:
    return citus.conn_string(name)


def made_role() -> str:
    """The statement of the page that makes the role `memory`, unless it is there: all databases share it."""
    (statements,) = re.findall(r"```sql\n(create role memory .*?)```", PAGE.read_text(), re.DOTALL)
    created, granted = statements.split(";\n", 1)
    return f"do $$ begin {created}; exception when duplicate_object then null; end $$; {granted}"


def test_every_table_of_owners_is_spread_and_no_other(address: str) -> None:
    with psycopg.connect(address) as connection:
        spread: dict[str, int] = dict(connection.execute(_DISTRIBUTED).fetchall())
        owned = {table for (table,) in connection.execute(_OWNED)}
    assert set(spread) == owned - {
        "memory.spaces",
        "memory.memberships",
        "memory.invitations",
        "memory.contributions",
    }, "asked across owners"
    assert len(owned) == 28
    assert len(set(spread.values())) == 1, "all of one owner are together"


def test_owners_are_on_several_nodes(address: str, citus: CitusCluster) -> None:
    assert {port_of(address, owner) for owner in OWNERS} == {node.port for node in citus.workers}


@pytest.mark.parametrize("role", ["supabase_admin", "memory"])
def test_every_verb_answers_as_elsewhere(citus: CitusCluster, role: str) -> None:
    name = citus.migrated_database()
    migrate(citus.conn_string(name), spaces=True)
    citus.execute(made_role(), database=name, superuser=True)
    with psycopg.connect(citus.conn_string(name, role), autocommit=True) as connection:
        call = Caller(connection, "converses")
        converse(call)
    assert set(call.answers) == set(SHAPES)
    for function, answers in call.answers.items():
        assert all(SHAPES[function].fits(answer) for answer in answers), function


_OF_EVERYBODY = """
select p.proname::text, p.proargnames[1:p.pronargs], p.pronargs - p.pronargdefaults from pg_proc p
where p.pronamespace = 'public'::regnamespace and obj_description(p.oid, 'pg_proc') ~ 'null: everybody'
order by p.proname
"""
_VALUES: dict[str, list[Any]] = {
    "p_user_id": [OWNERS[1]],
    "p_agent_id": ["default"],
    "p_thread_id": ["talk"],
    "p_state": ["due", "running", "waiting", "dead", "idle"],
    "p_limit": [3],
    "p_ids": [json.dumps(["00000000-0000-0000-0000-000000000000"])],
    "p_retention": ['{"turns": 1}', '{"age": 0, "summary_age": 0, "messages": 2}'],
    "p_dry_run": [True],
    "p_vectors": [True],
    "p_since": ["2025-01-01"],
    "p_model": ["one"],
    "p_dimensions": [3],
    "p_seconds": [0.0],
    **{name: [1] for name in ("p_characters", "p_tokens", "p_messages", "p_board")},
}
"""What an argument is given."""

_OF_THE_RUN = re.compile(
    r'"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"|"\d{4}-\d\d-\d\dT[^"]*"|"(bytes|waited?|oldest\w*|\w*seconds)":[^,}]+'
)
"""Ids, times and sizes, which differ from database to database."""


def variants(names: list[str], required: int) -> list[dict[str, Any]]:
    """What a function is called with: what it needs, with each further argument alone and with all of them."""
    least = {name: _VALUES[name][0] for name in names[:required]}
    further = {name: _VALUES[name] for name in names[required:] if name in _VALUES}
    alone = [{**least, name: value} for name, values in further.items() for value in values]
    everything = least | {name: values[0] for name, values in further.items()}
    after = {"p_after_user": OWNERS[4], "p_after": "ffffffff-ffff-ffff-ffff-ffffffffffff"}
    return [least, *alone, everything, *([{**least, **after}] if "p_after_user" in names else [])]


def test_what_is_asked_of_all_owners_is_answered_as_on_one_server(citus: CitusCluster, address: str) -> None:
    plain = citus.conn_string(citus.create_database(supabase=False))
    migrate(plain)
    fill(plain)
    asked = 0
    with psycopg.connect(address) as spread, psycopg.connect(plain) as one:
        for function, names, required in one.execute(_OF_EVERYBODY).fetchall():
            for arguments in variants(names, required):
                call = f"select public.{function}({', '.join(f'{name} => %s' for name in arguments)})::text"
                answers = []
                for connection in (spread, one):
                    [(answer,)] = connection.execute(call.encode(), list(arguments.values())).fetchall()
                    connection.rollback()
                    answers.append(_OF_THE_RUN.sub("…", re.sub(r"\s", "", answer)))
                assert answers[0] == answers[1], (function, arguments)
                asked += 1
    assert asked > 50


class Watched(Caller):
    """Notes which functions, called for one owner, sent something to another node than the owner's."""

    def __init__(self, connection: psycopg.Connection[Any], user_id: str, home: int) -> None:
        super().__init__(connection, user_id)
        self._home = f":{home} "
        self._now: str | None = None
        self.strayed: set[str] = set()
        connection.execute("set citus.log_remote_commands = on")
        connection.add_notice_handler(self._note)

    def __call__(self, name: str, /, **arguments: Any) -> Any:
        """Call it, as everywhere."""
        is_of_one = arguments["user_id"] == self.user_id if "user_id" in arguments else self._takes_a_user(name)
        # What a space owns is on another node than its members' rows.
        self._now = name if is_of_one and name != "forget_space" else None
        try:
            return super().__call__(name, **arguments)
        finally:
            self._now = None

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        where = notice.message_detail or ""
        if self._now is not None and where.startswith("on server") and self._home not in f"{where} ":
            self.strayed.add(self._now)


def test_a_call_for_one_owner_asks_the_node_of_that_owner_alone(citus: CitusCluster) -> None:
    """Else it fails while any other node is away."""
    address = citus.conn_string(citus.migrated_database())
    migrate(address, spaces=True)
    with psycopg.connect(address, autocommit=True) as connection:
        call = Watched(connection, "converses", port_of(address, "converses"))
        converse(call)
        assert call.strayed == set()
        call._home = ":1 "
        call("count", thread_id="t")
        assert call.strayed == {"count"}, "what is sent is seen"


def test_no_update_sets_a_column_to_a_bare_subscript() -> None:
    """`set a = b[1]`, or a slice alone, ends the coordinator's process in releases of Citus."""
    for statement in re.findall(r"\b(?:update memory\w*\.|do update)[^;]*;", code(citus=True)):
        assert not re.search(r"\bset \w+ = [\w.]+\[[^]]*\](?=,|\s)(?!\s*[|+])", statement), statement
        assert not re.search(r",\s+\w+ = [\w.]+\[[^]]*\](?=,|\s)(?!\s*[|+])", statement), statement


def test_no_condition_calls_a_function_that_reads_tables() -> None:
    """A node that runs the query refuses to run another one within it."""
    text = re.sub(r"--[^\n]*", "", code(citus=True))
    bodies = dict(re.findall(r"function \w+\.(\w+)\((?:.*?)as \$function\$(.*?)\$function\$", text, re.DOTALL))
    readers = {name for name, body in bodies.items() if re.search(r"\b(?:from|join|into|update) memory\.", body)}
    called = {name: {*re.findall(r"memory_private\.(\w+)\(", body)} for name, body in bodies.items()}
    while more := {name for name in bodies.keys() - readers if called[name] & readers}:
        readers |= more
    assert {"sequence_of_message", "abandoned_ranges"} <= readers
    compared = re.compile(r"(?:\band|\bwhere|<@|[^:]=|[<>]) *memory_private\.(\w+)\(")
    for name, body in bodies.items():
        for query in re.findall(r"\bfrom memory\.[^;]*", body):
            assert not {*compared.findall(query)} & readers, f"{name}: {query}"


def test_no_change_has_a_volatile_function() -> None:
    for change in re.findall(r"\b(?:update|delete from) memory\.[^;]*;", code(citus=True)):
        assert not re.search(r"\b(?:clock_timestamp|now|random|gen_random_uuid)\(", change), change


def test_no_insert_from_a_query_is_counted_where_rows_may_be_there_already() -> None:
    """Of such a statement Citus says how many rows came, and not how many are new."""
    for statement in re.findall(r"\binsert into [^;]*?\bselect\b[^;]*?\bdo nothing;[^;]*", code(citus=True)):
        assert not re.search(r"row_count|\bfound\b", statement.rpartition("do nothing;")[2]), statement


async def test_workers_do_all_that_is_due_also_of_one_owner(citus: CitusCluster) -> None:
    address = citus.conn_string(citus.migrated_database())
    async with SupabaseMemory.from_conn_string(address, model=ExtractiveSummarizer()) as memory:
        for owner in OWNERS:
            said = [
                HumanMessage(f"Glaze {number} of {owner} is blue. {'It is fired slowly. ' * 20}")
                for number in range(20)
            ]
            await memory.for_user(owner).conversation("talk").aappend(said)
        one = Worker(memory.for_user(OWNERS[0]))
        assert (await one.drain()).pieces == 1
        assert (await Worker(memory).drain()).pieces == len(OWNERS) - 1
        for owner in OWNERS:
            (status,) = await memory.for_user(owner).work.astatus()
            assert status.state == "idle"
            assert status.indexed_through == status.next_sequence - 1
            assert status.summarized_through > 0
        (best, *_) = (await memory.for_user(OWNERS[3]).conversation("talk").arecall("glaze 7")).chunks
        assert "Glaze 7 of owner-3" in best.content


def test_erasure_erases_on_the_nodes(citus: CitusCluster, name: str, address: str) -> None:
    def left(owner: str) -> int:
        count = 0
        for node in citus.workers:
            with psycopg.connect(node.conn_string(name, "supabase_admin")) as connection:
                connection.execute("set citus.override_table_visibility = off")
                for (shard,) in connection.execute(_SHARDS).fetchall():
                    query = f"select count(*) from {shard} where user_id = %s".encode()
                    [(rows,)] = connection.execute(query, [owner]).fetchall()
                    count += rows
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
        memory.for_token({"sub": OWNERS[2], "role": "authenticated"}) as user,
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
    with SupabaseMemory.from_conn_string(address, model=None, retry=NO_RETRY) as memory:
        memory.for_user(lost).conversation("talk").count()
        away.halt()
        try:
            for _ in range(2 * BreakerPolicy().failures):
                with pytest.raises(UnavailableError) as caught:
                    memory.for_user(lost).conversation("talk").read()
                assert not caught.value.is_away
            assert memory.health().state == "closed"
            memory.for_user(there).conversation("talk").append([HumanMessage("Still here.")])
        finally:
            away.resume()
        assert memory.for_user(lost).conversation("talk").count() == 12
        assert memory.for_user(there).conversation("talk").count() == 13


def test_the_doctor_says_what_is_true_there(address: str) -> None:
    with SupabaseMemory.from_conn_string(address, model=None) as memory:
        lines = findings_by_name(memory)
    assert all(lines[name].state == "green" for name in ("transport", "key", "schema", "access", "sizes", "autovacuum"))
    assert "no NOTIFY" in lines["transport"].text
    assert "not measured" in lines["sizes"].text
    assert "not checked" in lines["autovacuum"].text
