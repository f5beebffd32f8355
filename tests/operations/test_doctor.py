"""The doctor: each line turns yellow or red if its subject breaks, and for no other reason."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, asdict
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import MemoryConfig, Retention, SummaryPolicy, SupabaseMemory, Worker, WorkerPolicy
from langchain_supabase_memory.adapters.schema import script
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.errors import MigrationConflictError, UnavailableError
from langchain_supabase_memory.memory.doctor import connection as of_connection
from langchain_supabase_memory.memory.doctor import database as of_database
from langchain_supabase_memory.memory.doctor.migration import NextMigration
from langchain_supabase_memory.models import EmbeddingModel
from langchain_supabase_memory.settings import NO_RETRY
from tests.conftest import Caller
from tests.counting import CountingTransport
from tests.each_case import each_case
from tests.embedders import WordEmbedder
from tests.examining import findings_by_name
from tests.services.data_api import token
from tests.services.pooler import Pooler
from tests.services.postgres import Cluster, free_port

LINES = (
    "address", "transport", "key", "clock", "settings", "schema", "pgvector", "access", "checkpoints", "summarizer", "embedder", "worker", "lag",
    "dead work", "retention", "profile", "realtime", "sizes", "autovacuum",
)  # fmt: skip
"""What a server sees over a connection to Postgres; with an embedder also `vectors`, over the Data API `tokens`."""

ROLES = pytest.mark.not_on_citus("the role is made in a database without Citus, so the nodes do not have it")


CURRENT = NextMigration(asdict(script.current()), script.current())
"""A database of this release."""


def execute(conn_string: str, *statements: str) -> None:
    with psycopg.connect(conn_string, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def changed(memory: SupabaseMemory) -> dict[str, str]:
    """The lines that are not green, with their states."""
    return {name: each.state for name, each in findings_by_name(memory).items() if each.state != "green"}


@pytest.mark.not_on_citus(
    "a superuser calls there, and the lines about caller and sizes differ: test_citus.py has them"
)
async def test_a_healthy_memory_is_green_on_every_transport(caller: Caller) -> None:
    findings = {each.name: each for each in await caller(caller.service.doctor)}
    at = 9 if caller.kind == "data_api" else len(LINES)
    assert tuple(findings) == (*LINES[:at], *(("tokens",) if caller.kind == "data_api" else ()), *LINES[at:])
    # The others share the database, and leave work due; this memory has no summarizer; a bare PostgREST has no Auth.
    odd = {"summarizer", "tokens", "worker", "lag", "dead work", "sizes", "autovacuum"}
    assert {each.state for name, each in findings.items() if name not in odd} == {"green"}
    assert findings["key"].text.startswith(
        "Calls run as " + ("service_role" if caller.kind == "data_api" else "postgres")
    )
    assert findings["transport"].text.startswith(
        "Calls go through Supabase" if caller.kind == "data_api" else "Calls use a direct connection"
    )
    assert f"127.0.0.1:{caller.service._services.transport.endpoint.address}".count("127.0.0.1") == 2
    with pytest.raises(FrozenInstanceError):
        findings["key"].state = "red"


def test_a_new_database_has_only_green_lines(fresh: str) -> None:
    with SupabaseMemory.from_conn_string(fresh, embeddings=WordEmbedder()) as memory:
        assert changed(memory) == {}
        assert tuple(findings_by_name(memory)) == (*LINES[:11], "vectors", *LINES[11:])


BREAKS = {
    "row level security is off": (
        "alter table memory.conversations disable row level security",
        "row level security is off for memory.conversations",
    ),
    "row level security is not forced": (
        "alter table memory_private.work no force row level security",
        "on but not forced for memory_private.work",
    ),
    "a policy is gone": (
        "drop policy conversations_select on memory.conversations",
        "missing: the policy conversations_select of memory.conversations",
    ),
    "a policy lets everybody in": (
        "create policy open on memory.conversations for select to public using (true)",
        "added: the policy open of memory.conversations: permissive for select to public using true",
    ),
    "a policy has changed": (
        "alter policy conversations_select on memory.conversations using (true)",
        "conversations_select of memory.conversations: permissive for select to authenticated using true",
    ),
    "a grant to a stranger": ("grant select on memory.conversations to anon", "anon may select memory.conversations"),
    "a grant to everybody": ("grant usage on schema memory to public", "everybody may usage the schema memory"),
    "a grant of a column": (
        "grant select (set_by) on memory.rollouts to authenticated",
        "authenticated may select memory.rollouts.set_by",
    ),
    "a grant with an option": (
        "grant select on memory.conversations to authenticated with grant option",
        "authenticated may select memory.conversations and grant it",
    ),
    "a grant is gone": (
        "revoke insert on memory.conversation_messages from authenticated",
        "missing: authenticated may insert memory.conversation_messages",
    ),
    "a function runs with its owner's rights": (
        "alter function memory_private.resolve_owner(text) security definer",
        "added: memory_private.resolve_owner(text) runs with the rights of its owner",
    ),
    "anybody may call a function": (
        "grant execute on function public.memory_worker_revive to authenticated",
        "added: authenticated may execute public.memory_worker_revive(",
    ),
    "a function is gone": (
        "drop function public.memory_limits",
        "missing: authenticated may execute public.memory_limits()",
    ),
    "a table of theirs is open": (
        "create table memory.theirs (id int primary key)",
        "added: row level security is off for memory.theirs",
    ),
}


@pytest.fixture(scope="module")
def inside(cluster: Cluster, own: str) -> Iterator[tuple[psycopg.Connection, SupabaseMemory]]:
    """A connection, and a memory that sees what a transaction of it has changed."""
    with psycopg.connect(cluster.conn_string(own), autocommit=True) as connection:
        yield connection, SupabaseMemory(CountingTransport(connection))


@pytest.mark.parametrize("name", BREAKS)
def test_rights_that_are_not_as_shipped_are_red(inside: tuple[psycopg.Connection, SupabaseMemory], name: str) -> None:
    statement, words = BREAKS[name]
    connection, memory = inside
    with connection.transaction(force_rollback=True):
        connection.execute(statement.encode())
        findings = findings_by_name(memory)
    assert {name for name, each in findings.items() if each.state != "green"} == {"access"}
    assert findings["access"].state == "red"
    assert words in findings["access"].text


def test_a_migration_mends_all_rights(fresh: str) -> None:
    """But for a table of theirs, which it leaves alone."""
    together = [statement for name, (statement, _) in BREAKS.items() if name != "a policy has changed"]
    with SupabaseMemory.from_conn_string(fresh) as memory:
        for statements in (together, [BREAKS["a policy has changed"][0]]):
            execute(fresh, *statements)
            assert changed(memory) == {"access": "red"}
            execute(fresh, "drop table if exists memory.theirs")
            migrate(fresh)
            assert changed(memory) == {}


@ROLES
def test_a_role_under_row_level_security_is_red_and_the_action_fixes_it(cluster: Cluster) -> None:
    """A grant of `service_role` brings its grants and not its `bypassrls`: reads would be empty without an error."""
    fresh = cluster.conn_string(
        cluster.migrated_database()
    )  # without kept sessions, whose plans know the role as it was
    cluster.execute('create role "Kiln" login; grant service_role to "Kiln"', superuser=True)
    try:
        with SupabaseMemory.from_conn_string(fresh, user_id="u") as memory:
            memory.conversation("t").append([HumanMessage("The kiln is blue.")])
        with SupabaseMemory.from_conn_string(fresh.replace("//postgres:", "//Kiln:"), user_id="u") as memory:
            assert memory.conversation("t").count() == 0
            assert changed(memory) == {"key": "red"}
            key = findings_by_name(memory)["key"]
            assert "every read is empty" in key.text
            assert key.next_action is not None
        cluster.execute(key.next_action.partition(": ")[2].partition(";")[0], superuser=True)
        with SupabaseMemory.from_conn_string(fresh.replace("//postgres:", "//Kiln:"), user_id="u") as memory:
            assert changed(memory) == {}
            assert memory.conversation("t").count() == 1
    finally:
        cluster.execute('drop role "Kiln"', superuser=True)


def test_the_role_that_migrates_sees_all_also_where_row_level_security_binds_it(cluster: Cluster) -> None:
    name = cluster.create_database(supabase=False)
    cluster.execute("create role migrator login createrole", superuser=True)
    cluster.execute(f"alter database {name} owner to migrator; grant anon, authenticated, service_role to migrator",
                    superuser=True)  # fmt: skip
    address = cluster.conn_string(name, "migrator")
    migrate(address)
    with SupabaseMemory.from_conn_string(address) as memory:
        assert findings_by_name(memory)["key"].state == "green"
    cluster.execute("drop owned by migrator", database=name, superuser=True)


@ROLES
def test_a_right_granted_to_a_custom_role_is_yellow(cluster: Cluster, fresh: str) -> None:
    cluster.execute("create role analyst", superuser=True)
    with SupabaseMemory.from_conn_string(fresh) as memory:
        execute(fresh, "grant select on memory.conversations to analyst")
        assert changed(memory) == {"access": "yellow"}
        execute(fresh, "grant select on memory.conversations to anon")
        assert changed(memory) == {"access": "red"}


SETTINGS = {
    "default_transaction_read_only = on": "red",
    "row_security = off": "red",
    "session_replication_role = replica": "red",
    "standard_conforming_strings = off": "red",
    "statement_timeout = '900ms'": "yellow",
    "transaction_timeout = 2000": "yellow",
    "lock_timeout = '5ms'": "yellow",
    "statement_timeout = '8s'": None,
    "quote_all_identifiers = on": None,
    "search_path = 'nowhere'": None,
}
"""Settings of a database, and the state of the line: `None` if nothing is wrong."""


@pytest.mark.not_on_citus("the nodes have settings of their own")
@each_case("setting", SETTINGS)
def test_a_setting_that_breaks_calls_is_named_and_its_action_mends_it(cluster: Cluster, setting: str) -> None:
    database = cluster.migrated_database()
    fresh = cluster.conn_string(database)  # a setting is that of new sessions, so none is kept
    cluster.execute(f"alter database {database} set {setting}", superuser=True)
    with SupabaseMemory.from_conn_string(fresh) as memory:
        assert changed(memory) == ({} if SETTINGS[setting] is None else {"settings": SETTINGS[setting]})
        found = findings_by_name(memory)["settings"]
    name = setting.partition(" ")[0]
    if found.state != "green":
        assert name in found.text
        assert found.next_action == f"Run: alter database {database} reset {name}; then restart the clients."
    cluster.execute(f"alter database {database} reset {name}", superuser=True)
    with SupabaseMemory.from_conn_string(fresh) as memory:
        assert changed(memory) == {}


def test_a_setting_of_a_role_or_of_a_connection_is_named_as_such(cluster: Cluster, fresh: str) -> None:
    cluster.execute('create role "reader-only" login; grant postgres to "reader-only"', superuser=True)
    cluster.execute('alter role "reader-only" set default_transaction_read_only = on', superuser=True)
    read_only = of_connection.settings(settings_of(cluster.conn_string(fresh.rpartition("/")[2], "reader-only")))
    assert read_only.next_action == (
        'Run: alter role "reader-only" reset default_transaction_read_only; then restart the clients.'
    )
    hurried = of_connection.settings(settings_of(f"{fresh}?options=-c%20lock_timeout%3D5"))
    assert (hurried.state, "options of the connection string" in str(hurried.next_action)) == ("yellow", True)


def settings_of(conn_string: str) -> list[dict[str, Any]]:
    with psycopg.connect(conn_string) as connection:
        [(settings,)] = connection.execute("select memory_private.session_settings()").fetchall()
    found: list[dict[str, Any]] = settings
    return found


def test_of_many_changes_only_the_first_are_named(fresh: str) -> None:
    execute(fresh, "revoke all on all tables in schema memory from authenticated")
    with SupabaseMemory.from_conn_string(fresh) as memory:
        words = findings_by_name(memory)["access"].text
        assert "; and " in words
        assert len(words) < 600


def test_a_database_without_the_schema_or_with_an_older_one_is_red(cluster: Cluster, fresh: str) -> None:
    with SupabaseMemory.from_conn_string(cluster.conn_string(cluster.create_database())) as memory:
        assert {name: each.state for name, each in findings_by_name(memory).items()} == {
            "address": "green", "transport": "green", "schema": "red", "summarizer": "green", "embedder": "green",
        }  # fmt: skip
        assert "supabase-memory migrate" in str(findings_by_name(memory)["schema"].next_action)
    execute(fresh, "drop function public.memory_worker_doctor")
    with SupabaseMemory.from_conn_string(fresh) as memory:
        assert changed(memory) == {"schema": "red"}, "a release that had no doctor"
    migrate(fresh)
    execute(
        fresh,
        "create or replace function public.memory_schema() returns jsonb language sql as $$"
        ' select \'{"version": "0.0.1", "tables": [], "code": "", "vector_schema": "extensions", "vector_moved_to": null}\''
        "::jsonb $$",
    )
    with SupabaseMemory.from_conn_string(fresh) as memory:
        assert findings_by_name(memory)["schema"].state == "red"
        assert "0.0.1" in findings_by_name(memory)["schema"].text
        execute(
            fresh,
            "create or replace function public.memory_worker_doctor(p_model text default null) returns jsonb"
            " language sql as $$ select jsonb_build_object('role', current_user) $$",
        )
        assert changed(memory) == {"schema": "red"}, "a release whose doctor reported less"
        assert "0.0.1" in findings_by_name(memory)["schema"].text


FUTURE = """
create or replace function public.memory_schema() returns jsonb language sql as $$
select '{"version": "99.0.0", "tables": ["0001_conversations", "0099_future"], "checksums": ["", ""], "code": "",
         "vector_schema": "extensions", "vector_moved_to": null, "spaces": false}'::jsonb $$
"""
"""What a newer release says of itself, whatever else it has."""

REFUSED = {
    "newer": (["insert into memory_private.migrations values ('0099_future', '')", FUTURE], "Install .* 99.0.0 or newer"),
    "newer, with another doctor": (
        ["insert into memory_private.migrations values ('0099_future', '')", FUTURE,
         "drop function public.memory_worker_doctor"],
        "Install .* 99.0.0 or newer",
    ),
    "of edited files": (
        ["update memory_private.migrations set checksum = '' where name like '0001%'",
         """do $do$ begin
              execute regexp_replace(pg_get_functiondef('public.memory_schema'::regproc), '(''checksums'', ''\\[")', '\\1of-another-');
            end $do$"""],
        "supabase-memory export",
    ),
}  # fmt: skip
"""What is done to a database, and what has to be done then: a migration is refused."""


@each_case(("statements", "action"), list(REFUSED.values()))
def test_what_a_migration_refuses_is_not_to_be_migrated(cluster: Cluster, statements: list[str], action: str) -> None:
    database = cluster.conn_string(cluster.migrated_database())
    execute(database, *statements)
    with pytest.raises(MigrationConflictError):
        migrate(database)
    with SupabaseMemory.from_conn_string(database) as memory:
        schema = findings_by_name(memory)["schema"]
        assert (schema.state, bool(re.search(action, str(schema.next_action)))) == ("red", True), schema
        execute(database, "revoke select on memory.conversations from authenticated")
        actions = " ".join(str(each.next_action) for each in memory.doctor())
        assert "supabase-memory migrate" not in actions


def test_a_replica_is_migrated_on_its_primary() -> None:
    old = {**asdict(script.current()), "version": "0.0.1", "code": ""}
    action = NextMigration(old, script.current(), is_replica=True).action()
    assert "supabase-memory migrate" in action
    assert action.endswith("on the primary.")


def test_a_migration_that_waits_too_long_says_what_holds_it_up(cluster: Cluster) -> None:
    name = cluster.migrated_database()
    database = cluster.conn_string(name)
    execute(database, f"alter database {name} set lock_timeout = '10ms'")
    with psycopg.connect(database) as other:
        other.execute("lock table memory.conversations")
        with pytest.raises(UnavailableError, match=r"lock timeout.*end its transaction.*migrate again"):
            migrate(database)
    migrate(database)


def test_pgvector_that_is_gone_is_red(cluster: Cluster, fresh: str) -> None:
    cluster.execute("drop extension vector cascade", database=fresh.rpartition("/")[2], superuser=True)
    with SupabaseMemory.from_conn_string(fresh) as memory:
        assert findings_by_name(memory)["pgvector"].state == "red"


def test_pgvector_that_has_moved_is_red_until_it_is_migrated(cluster: Cluster, fresh: str) -> None:
    database = fresh.rpartition("/")[2]
    cluster.execute("create schema elsewhere", database=database, superuser=True)
    cluster.execute("alter extension vector set schema elsewhere", database=database, superuser=True)
    with SupabaseMemory.from_conn_string(fresh) as memory:
        assert changed(memory) == {"pgvector": "red"}
        assert "is in the schema elsewhere. It has moved" in findings_by_name(memory)["pgvector"].text
        cluster.execute("grant usage on schema elsewhere to public", database=database, superuser=True)
        migrate(fresh)
        assert changed(memory) == {}
        assert "is in the schema elsewhere." in findings_by_name(memory)["pgvector"].text


def test_an_index_whose_build_did_not_finish_is_red(cluster: Cluster) -> None:
    name = cluster.create_database()
    migrate(cluster.conn_string(name), vector_index=24)
    with SupabaseMemory.from_conn_string(cluster.conn_string(name), embeddings=WordEmbedder(32)) as memory:
        assert findings_by_name(memory)["embedder"].state == "yellow", "the index serves another width"
        assert "--vector-index 32" in str(findings_by_name(memory)["embedder"].next_action)
    with SupabaseMemory.from_conn_string(cluster.conn_string(name), embeddings=WordEmbedder(24)) as memory:
        assert changed(memory) == {}
        cluster.execute(
            "update pg_index set indisvalid = false where indexrelid = 'memory.chunk_embeddings_hnsw_24'::regclass",
            database=name, superuser=True,
        )  # fmt: skip
        assert changed(memory) == {"pgvector": "red"}


@each_case(
    ("version", "indexed", "state"),
    [("0.8.4", True, "green"), ("0.8.10", True, "green"), ("0.8.3", True, "yellow"), ("0.8", True, "yellow"),
     ("0.7.4", False, "green"), ("0.6.2", False, "red"), ("1.0.0-dev", True, "green")],
)  # fmt: skip
def test_an_older_pgvector_is_named_where_its_faults_matter(version: str, indexed: bool, state: str) -> None:
    indexes = ["chunk_embeddings_hnsw_24"] if indexed else []
    made = of_database.pgvector({"version": version, "schema": "extensions"}, CURRENT, indexes, [])
    assert (made.state, version in made.text) == (state, True)


def test_a_server_that_does_not_vacuum_is_red(cluster: Cluster) -> None:
    fresh = cluster.conn_string(cluster.migrated_database())  # its own, for it leaves dead rows
    with SupabaseMemory.from_conn_string(fresh) as memory:
        execute(fresh, "alter table memory.conversations set (autovacuum_enabled = off)")
        assert changed(memory) == {"autovacuum": "red"}
        assert "memory.conversations" in findings_by_name(memory)["autovacuum"].text
        execute(fresh, "alter table memory.conversations reset (autovacuum_enabled)")
        cluster.execute("alter system set autovacuum = off", superuser=True)
        try:
            cluster.execute("select pg_reload_conf()", superuser=True)
            while findings_by_name(memory)["autovacuum"].state == "green":
                pass  # until each process has read it
            assert "only grow" in findings_by_name(memory)["autovacuum"].text
            fill = "insert into memory_private.chores select n::text, now() from generate_series(1, 10100) n"
            execute(fresh, fill, "delete from memory_private.chores", "select pg_stat_force_next_flush()")
        finally:
            cluster.execute("alter system reset autovacuum", superuser=True)
            cluster.execute("select pg_reload_conf()", superuser=True)
        while findings_by_name(memory)["autovacuum"].state == "red":
            pass
        assert "dead rows" in findings_by_name(memory)["autovacuum"].text
        assert changed(memory) == {"autovacuum": "yellow"}


def test_workers_that_are_silent_while_work_waits_are_red(fresh: str) -> None:
    with SupabaseMemory.from_conn_string(fresh, user_id="u") as memory:
        memory.conversation("t").append([HumanMessage("hello")])
        assert changed(memory) == {}, "it has only just become due"
        execute(fresh, "update memory_private.work set since = now() - interval '2 hours'")
        assert changed(memory) == {"worker": "yellow", "lag": "yellow"}, "no worker was ever wanted here"
        beat = "insert into memory_private.chores values ('heartbeat', now(), now() - interval '10 minutes')"
        execute(fresh, beat)
        assert changed(memory) == {"worker": "red", "lag": "red"}
        execute(fresh, "update memory_private.work set since = now() - interval '10 minutes'")
        assert changed(memory) == {"worker": "red", "lag": "yellow"}
        execute(fresh, "delete from memory_private.work; delete from memory_private.owners")
        assert changed(memory) == {"worker": "yellow"}, "nothing waits for one"


async def test_a_worker_that_lives_is_seen_and_a_leased_piece_does_not_wait(fresh: str) -> None:
    async with SupabaseMemory.from_conn_string(fresh, user_id="u") as memory:
        await memory.conversation("t").aappend([HumanMessage("hello")])
        await memory.aconversations()
        execute(fresh, "insert into memory_private.chores values ('heartbeat', now(), now() - interval '1 hour')")
        await Worker(memory, policy=WorkerPolicy(debounce_seconds=0)).drain()
        findings = {each.name: each for each in await memory.adoctor()}
        assert findings["worker"].text.startswith("A worker was seen ")
        assert {each.state for each in findings.values()} == {"green"}


def test_what_was_given_up_is_red(fresh: str) -> None:
    def fails(_: object) -> str:
        raise RuntimeError("the secret canary")

    policy = SummaryPolicy(messages=4, keep_messages=1)
    with SupabaseMemory.from_conn_string(fresh, user_id="u", model=fails, config=MemoryConfig(policy=policy)) as memory:
        memory.conversation("t").append([HumanMessage(f"hello {n}, {'the kiln is hot ' * 20}") for n in range(9)])
        with Worker(memory, policy=WorkerPolicy(max_attempts=1, duties=("summarize",), debounce_seconds=0)).in_thread():
            while not memory.work.status(state="dead"):
                pass
        findings = findings_by_name(memory)
        assert findings["dead work"].state == "red"
        assert "1 conversation was" in findings["dead work"].text
        assert "retry" in str(findings["dead work"].next_action)
        assert "canary" not in str(findings)


def test_retention_that_nobody_enforces_is_red(fresh: str) -> None:
    with SupabaseMemory.from_conn_string(fresh, retention=Retention(max_age=timedelta(days=1))) as memory:
        assert changed(memory) == {"retention": "yellow"}, "nobody has yet"
        execute(fresh, "insert into memory_private.chores values ('expire', now(), now())")
        assert changed(memory) == {}
        execute(fresh, "update memory_private.chores set done_at = now() - interval '2 days'",
                "insert into memory_private.chores values ('heartbeat', now(), now())")  # fmt: skip
        assert changed(memory) == {"retention": "red"}


def test_an_embedder_that_fails_or_gives_another_width_is_red(fresh: str) -> None:
    class Failing(WordEmbedder):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise RuntimeError("the secret canary")

    failing = EmbeddingModel(Failing(), attempts=1)
    with SupabaseMemory.from_conn_string(fresh, embeddings=failing) as memory:
        assert changed(memory) == {"embedder": "red"}
        assert "canary" not in str(findings_by_name(memory))
    with SupabaseMemory.from_conn_string(fresh, embeddings=WordEmbedder(24), user_id="u") as memory:
        memory.conversation("t").append([HumanMessage("The kiln is hot")])
        assert memory.conversation("t").index().failed is None
        assert "24 dimensions" in findings_by_name(memory)["embedder"].text
        assert changed(memory) == {}
    with SupabaseMemory.from_conn_string(fresh, embeddings=WordEmbedder(32)) as memory:
        assert changed(memory) == {"embedder": "red"}
        assert "32 dimensions" in findings_by_name(memory)["embedder"].text
        assert "have 24" in findings_by_name(memory)["embedder"].text


def test_chunks_without_the_model_s_vectors_are_yellow_and_those_of_another_model_red(fresh: str) -> None:
    with SupabaseMemory.from_conn_string(fresh, user_id="u") as memory:
        memory.conversation("t").append([HumanMessage("The kiln is hot")])
        memory.conversation("t").index()
        assert "vectors" not in findings_by_name(memory)
    with SupabaseMemory.from_conn_string(fresh, user_id="u", embeddings=WordEmbedder()) as memory:
        assert changed(memory) == {"vectors": "yellow"}
        memory.conversation("t").chunks.reembed()
        assert changed(memory) == {}
    with SupabaseMemory.from_conn_string(fresh, embeddings=WordEmbedder(model="another")) as memory:
        assert changed(memory) == {"vectors": "red"}


def test_a_failed_summarizer_is_red_until_it_answers_and_none_is_yellow(fresh: str) -> None:
    fails = True

    def write(_: object) -> str:
        if fails:
            raise RuntimeError("the secret canary")
        return "A summary of what was said."

    with SupabaseMemory.from_conn_string(fresh, user_id="u", model=write) as memory:
        memory.conversation("t").append([HumanMessage(f"hello {n}") for n in range(30)])
        assert changed(memory) == {}
        memory.conversation("t").summaries.make(policy=SummaryPolicy(messages=4, keep_messages=1))
        assert changed(memory) == {"summarizer": "red"}
        assert "canary" not in str(findings_by_name(memory))
        fails = False
        execute(fresh, "update memory.conversations set summary_retry_at = null")
        memory.conversation("t").summaries.make(policy=SummaryPolicy(messages=4, keep_messages=1))
        assert changed(memory) == {}
    with SupabaseMemory.from_conn_string(fresh, model=None) as memory:
        assert changed(memory) == {"summarizer": "yellow"}


NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)


@each_case(
    ("apart", "state", "words"),
    [(0, "green", "agree"), (4, "green", "agree"), (30, "yellow", "behind"), (-30, "yellow", "ahead"),
     (600, "red", "10 min behind"), (-600, "red", "9 min ahead")],
)  # fmt: skip
def test_a_clock_that_is_wrong_is_red(apart: float, state: str, words: str) -> None:
    server = NOW + timedelta(seconds=apart)
    made = of_connection.clock(server, NOW - timedelta(seconds=1), NOW)
    assert (made.state, words in made.text) == (state, True)
    slow = of_connection.clock(server, NOW - timedelta(hours=1), NOW + timedelta(hours=1))
    assert slow.state == "green", "nobody can tell within the time that the answer took"


@pytest.mark.parametrize(("hours", "words"), [(1, "behind the server's"), (-1, "ahead of the server's")])
def test_a_server_whose_clock_is_an_hour_off_is_red(fresh: str, hours: int, words: str) -> None:
    with psycopg.connect(fresh, autocommit=True) as connection:
        row = connection.execute("select pg_get_functiondef('public.memory_worker_doctor'::regproc)").fetchone()
        assert row is not None
        before, after = "'now', clock_timestamp()", f"'now', clock_timestamp() + {hours} * interval '1 hour'"
        assert row[0].count(before) == 1
        connection.execute(row[0].replace(before, after).encode())
    with SupabaseMemory.from_conn_string(fresh) as memory:
        assert changed(memory) == {"clock": "red"}
        assert words in findings_by_name(memory)["clock"].text


@each_case(("seconds", "state"), [(0, "green"), (60, "green"), (61, "yellow"), (7200, "yellow")])
def test_a_replica_that_is_far_behind_is_yellow(seconds: float, state: str) -> None:
    """`tests/sql/test_replicas.py` has a real one."""
    (made,) = of_database.replica(seconds)
    assert (made.name, made.state) == ("replica", state)
    assert of_database.replica(None) == []


def test_an_address_where_nothing_answers_is_red_and_holds_no_password() -> None:
    address = f"postgresql://postgres:secret-password@127.0.0.1:{free_port()}/postgres"
    with SupabaseMemory.from_conn_string(address, retry=NO_RETRY, embeddings=WordEmbedder()) as memory:
        assert changed(memory) == {"address": "red"}
        assert tuple(findings_by_name(memory)) == ("address", "summarizer", "embedder")
        assert "secret" not in str(findings_by_name(memory))
        assert "127.0.0.1:" in findings_by_name(memory)["address"].text


async def test_a_key_without_rights_is_red(caller: Caller) -> None:
    findings = {each.name: each for each in await caller(caller.as_token(token("anon")).doctor)}
    assert findings["key"].state == "red"
    assert "secret key" in str(findings["key"].next_action)


def test_a_role_without_rights_is_red(cluster: Cluster, fresh: str) -> None:
    cluster.execute("create role powerless login", superuser=True)
    address = cluster.conn_string(fresh.rpartition("/")[2], "powerless")
    with SupabaseMemory.from_conn_string(address) as memory:
        assert changed(memory) == {"key": "red"}


async def test_a_signed_in_user_gets_fewer_findings_and_one_says_so(caller: Caller, user_id: str) -> None:
    findings = {each.name: each for each in await caller(caller.as_token(token(user_id=user_id)).doctor)}
    tokens = {"tokens"} if caller.kind == "data_api" else set()
    assert set(findings) == {"address", "transport", "key", "schema", "summarizer", "embedder", *tokens}
    assert (findings["key"].state, findings["schema"].state) == ("yellow", "green")
    assert "Checks that need a server's rights are skipped" in findings["key"].text


@pytest.mark.not_on_citus("the line about the caller tells of Citus there")
def test_a_pooler_is_known(cluster: Cluster, fresh: str) -> None:
    with (
        Pooler(cluster, fresh.rpartition("/")[2], "transaction") as pooler,
        SupabaseMemory.from_conn_string(pooler.conn_string) as memory,
    ):
        assert changed(memory) == {}
        assert "through a pooler" in findings_by_name(memory)["transport"].text


@pytest.fixture
def project() -> Iterator[Callable[[bytes, int], str]]:
    """A project whose Auth shows what a test says; nothing else answers there."""
    said: list[tuple[bytes, int]] = []

    class Auth(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body, status = said[-1] if self.path == "/auth/v1/.well-known/jwks.json" else (b"", 404)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Auth) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def shows(body: bytes, status: int = 200) -> str:
            said.append((body, status))
            return f"http://127.0.0.1:{server.server_port}"

        yield shows
        server.shutdown()


@pytest.mark.parametrize(
    ("body", "status", "state", "words"),
    [(json.dumps({"keys": [{"kty": "EC", "alg": "ES256"}]}).encode(), 200, "green", "JWKS, 1 published"),
     (b'{"keys": []}', 200, "yellow", "HS256"), (b"<html>", 200, "yellow", "No Supabase Auth"), (b"[1]", 200, "yellow", "No Supabase Auth"),
     (b'{"keys": 1}', 200, "yellow", "No Supabase Auth"), (b'{"keys": [1]}', 404, "yellow", "No Supabase Auth")],
)  # fmt: skip
async def test_keys_that_mcp_over_http_needs_are_looked_for(
    project: Callable[[bytes, int], str], body: bytes, status: int, state: str, words: str
) -> None:
    from langchain_supabase_memory.adapters.transports.endpoint_info import of_data_api, signing_keys

    url = project(body, status)
    caller = of_data_api(f"{url}/", url)
    assert caller.keys_url is not None
    made = of_connection.tokens(signing_keys(caller.keys_url))
    assert (made.state, words in made.text) == (state, True)


MANY = """
with made as (
  insert into memory.conversations (user_id, thread_id, next_sequence, message_count)
  select 'user-' || n, 't', 1, 1 from generate_series({first}, {last}) n returning user_id, id)
insert into memory.working_memory_chunks (
  user_id, conversation_id, place, part, id, from_sequence, to_sequence, message_ids, stretch, type, role, said_at, content,
  characters, tokens, lexemes, terms, importance)
select user_id, id, 0, 1, id, 0, 0, '{{}}', 0, 'dialogue', 'user', now(), 'kiln', 4, 1, 1, 1, 0.5 from made;
insert into memory.chunk_embeddings (user_id, conversation_id, place, part, model, dimensions, embedding)
select user_id, conversation_id, 0, 1, 'words', 3, '[1,0,0]' from memory.working_memory_chunks on conflict do nothing;
insert into memory_private.work (user_id, conversation_id, since, dead_at)
select c.user_id, c.id, now() - interval '10 minutes', case when k.n = 1 then now() end
from memory.conversations c cross join lateral (
  select 1 + (substring(c.user_id from 6))::integer % 2 as n) k on conflict do nothing;
insert into memory_private.owners (user_id, turn_at, due_at)
select user_id, since, since from memory_private.work where dead_at is null on conflict do nothing;
analyze
"""


def test_it_reads_no_more_of_many_conversations_than_of_a_hundred(planner: Cluster) -> None:
    name = planner.migrated_database()
    cost = []
    for first, last in ((1, 100), (101, 10_000)):
        planner.execute("set search_path = extensions, public;" + MANY.format(first=first, last=last), database=name)
        with psycopg.connect(planner.conn_string(name), autocommit=True) as connection:
            transport = CountingTransport(connection)
            memory = SupabaseMemory(transport, embeddings=WordEmbedder(3), user_id="u")
            assert findings_by_name(memory)["dead work"].state == "red"
            assert findings_by_name(memory)["lag"].state == "yellow"
            assert "3 dimensions" in findings_by_name(memory)["embedder"].text
            transport.taken()
            assert findings_by_name(memory)["vectors"].text.startswith("All 100 " if first == 1 else "All ")
            cost.append(transport.taken())
    few, many = cost
    assert few.round_trips == many.round_trips == 1
    assert many.read <= 1.1 * few.read
    assert few.written == many.written == 0
