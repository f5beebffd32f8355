"""Migrations: safe to repeat, safe to run concurrently, the same by every method, with clear errors on conflicts."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import as_file
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.schema import files, script
from langchain_supabase_memory.adapters.schema.migrate import ensure, migrate
from langchain_supabase_memory.errors import (
    AccessError,
    AuthenticationError,
    ConfigurationError,
    MigrationConflictError,
    SchemaMissingError,
    SchemaOutdatedError,
    UnavailableError,
)
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.settings import NO_RETRY
from tests.each_case import each_case
from tests.examining import findings_by_name, installed
from tests.services.postgres import Cluster, free_port

PACKAGE = "langchain-supabase-memory"


def test_running_it_twice_changes_nothing(cluster: Cluster) -> None:
    name = cluster.migrated_database()
    with SupabaseMemory.from_conn_string(cluster.conn_string(name), user_id="u") as memory:
        memory.conversation("t").append([HumanMessage("kept")])
    before = cluster.dump(name, "--no-comments")
    migrate(cluster.conn_string(name))
    assert cluster.dump(name, "--no-comments") == before
    assert "kept" in before


def test_two_at_once_are_safe(cluster: Cluster) -> None:
    for supabase in (True, False):
        conn_string = cluster.conn_string(cluster.create_database(supabase=supabase), "supabase_admin")
        with ThreadPoolExecutor(4) as threads:
            assert len({str(each) for each in threads.map(migrate, [conn_string] * 4)}) == 1
        with SupabaseMemory.from_conn_string(conn_string) as memory:
            assert findings_by_name(memory)["schema"].state == findings_by_name(memory)["access"].state == "green"


def test_every_way_in_gives_the_same_schema(cluster: Cluster, tmp_path: Path) -> None:
    migrated = cluster.migrated_database()
    pasted, pushed = (cluster.create_database() for _ in range(2))
    cluster.execute(script.text(), database=pasted)
    for path in files.write(tmp_path):
        cluster.execute(path.read_text(), database=pushed)

    assert (
        cluster.dump(migrated, "--schema-only")
        == cluster.dump(pasted, "--schema-only")
        == cluster.dump(pushed, "--schema-only")
    )
    cluster.execute(script.text(), database=pasted)  # pasting it again is fine
    assert cluster.dump(pasted, "--schema-only") == cluster.dump(migrated, "--schema-only")


def test_an_upgrade_keeps_spaces_that_are_on(cluster: Cluster) -> None:
    fresh, upgraded = cluster.migrated_database(spaces=True), cluster.migrated_database(spaces=True)
    cluster.execute(
        """create or replace function public.memory_schema() returns jsonb language sql as 'select ''{"code": "old"}''::jsonb'""",
        database=upgraded,
    )
    migrate(cluster.conn_string(upgraded))
    assert cluster.dump(upgraded, "--schema-only") == cluster.dump(fresh, "--schema-only")


def test_an_upgrade_from_a_changed_function_ends_at_the_fresh_schema(cluster: Cluster) -> None:
    fresh, upgraded = cluster.migrated_database(), cluster.migrated_database()
    # As an older release might have left it: other parameters, a verb that is gone, an open grant; and one of theirs.
    cluster.execute(
        """drop function public.memory_count;
        create function public.memory_count(thread text) returns int language sql as 'select 1';
        comment on function public.memory_count is 'langchain-supabase-memory: old';
        create function public.memory_gone() returns int language sql as 'select 1';
        comment on function public.memory_gone is 'langchain-supabase-memory: old';
        grant all on memory.conversations to anon;
        create function public.memory_lane() returns int language sql as 'select 1';
        create function memory_private.delete_expired(p_user_id text) returns int language sql as 'select 1';
        create function memory_private.resolve_owner() returns text language sql as 'select 1::text';
        create function memory_private.gone() returns trigger language plpgsql as 'begin return null; end';
        create trigger conversations_gone after update on memory.conversations
          for each row execute function memory_private.gone();
        create or replace function public.memory_schema() returns jsonb language sql as 'select ''{"code": "old"}''::jsonb'""",
        database=upgraded,
    )
    migrate(cluster.conn_string(upgraded))
    cluster.execute("drop function public.memory_lane()", database=upgraded)  # it is theirs, so it was left alone
    with psycopg.connect(cluster.conn_string(upgraded)) as connection:
        for name in ("memory_private.delete_expired(text)", "memory_private.resolve_owner()", "memory_private.gone()"):
            assert connection.execute("select to_regprocedure(%s)", [name]).fetchone() == (None,), name

    def schema(name: str) -> str:
        lines = (line for line in cluster.dump(name, "--no-comments").splitlines() if not re.match(r"\d{4}_", line))
        # Each database has an id and a secret of its own.
        return re.sub(r"(?m)^(t\t(?:\d+\t)?)[0-9a-f-]{36,72}", r"\1", "\n".join(lines))

    assert schema(upgraded) == schema(fresh)


PINNED = """-- Pinned messages, in a release that nobody has made.
alter table memory.conversations add column pinned bigint[] not null default '{}';
update memory.conversations c set pinned = array[m.sequence]
  from memory.conversation_messages m
 where m.user_id = c.user_id and m.conversation_id = c.id and m.sequence = c.next_sequence - 1;
create table memory.pins (
  user_id text not null,
  name    text not null,
  primary key (user_id, name)
);
insert into memory.pins (user_id, name) select distinct user_id, 'first' from memory.conversations;
"""


@contextmanager
def newer_release(folder: Path) -> Iterator[None]:
    """Until its end this is a later release, 9.0.0, which has one more file of tables."""
    with as_file(script._root()) as root:
        shutil.copytree(root, folder)
    (folder / "tables/0099_pinned.sql").write_text(PINNED)
    access = folder / "access.sql"
    access.write_text(access.read_text().replace("'promotions'", "'promotions', 'pins'"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(script, "_root", lambda: folder)
        patched.setattr(script, "version", lambda _: "9.0.0")
        script._read.cache_clear()
        yield
    script._read.cache_clear()


@pytest.mark.parametrize("role", ["postgres", "supabase_admin", "neither"])
def test_an_older_release_is_upgraded_with_what_is_in_it_and_a_newer_one_refused(
    cluster: Cluster, tmp_path: Path, role: str
) -> None:
    """Also where the role that migrates is neither a superuser nor bypasses row level security."""
    fresh, upgraded = (cluster.create_database(supabase=role == "postgres") for _ in range(2))
    if role == "neither":
        cluster.create_database()  # the roles of the API are there; this role may not make them
        cluster.execute(
            "create role neither login; grant authenticated, service_role to neither;"
            f" alter database {fresh} owner to neither; alter database {upgraded} owner to neither",
            superuser=True,
        )
        cluster.execute("revoke usage on schema extensions from public", database=fresh, superuser=True)
        with pytest.raises(AccessError, match='grant usage on schema "extensions"'):
            migrate(cluster.conn_string(fresh, role))
        for name in (fresh, upgraded):
            cluster.execute("grant usage on schema extensions to public", database=name, superuser=True)
    address = cluster.conn_string(upgraded, role)
    migrate(address)
    with SupabaseMemory.from_conn_string(address) as memory:
        for user_id, thread_id, turns in (("u", "long", 3), ("u", "short", 1), ("v", "long", 2)):
            for _ in range(turns):
                memory.for_user(user_id).conversation(thread_id).add_turn("q", "a")
    with newer_release(tmp_path / "sql"):
        for name in (fresh, upgraded):
            migrate(cluster.conn_string(name, role))
        assert cluster.dump(upgraded, "--schema-only") == cluster.dump(fresh, "--schema-only")
        with SupabaseMemory.from_conn_string(address, user_id="u") as memory:
            assert installed(memory).tables[-1] == "0099_pinned"
            assert memory.conversation("long").add_turn("q", "a").sequences == [6, 7]
        with psycopg.connect(cluster.conn_string(upgraded, "supabase_admin")) as connection:
            rows = connection.execute(
                "select user_id, thread_id, pinned from memory.conversations order by 1, 2"
            ).fetchall()
            assert connection.execute("select user_id from memory.pins order by 1").fetchall() == [("u",), ("v",)]
        assert rows == [("u", "long", [5]), ("u", "short", [1]), ("v", "long", [3])]
    before = cluster.dump(upgraded, "--no-comments")
    with pytest.raises(MigrationConflictError, match=rf"release 9\.0\.0, and 0099_pinned is .* {version(PACKAGE)}\."):
        migrate(address)
    assert cluster.dump(upgraded, "--no-comments") == before
    with SupabaseMemory.from_conn_string(address) as memory:
        schema = findings_by_name(memory)["schema"]
        assert schema.state == "red"
        assert f"release 9.0.0, but this package is of release {version(PACKAGE)}." in schema.text


def test_files_of_an_upgrade_bring_what_is_new(cluster: Cluster, tmp_path: Path) -> None:
    name, folder = cluster.create_database(), tmp_path / "migrations"
    written = files.write(folder)
    with newer_release(tmp_path / "sql"):
        brought = files.write(folder)
        assert [path.stem.split("_memory_")[1].rsplit("_", 1)[0] for path in brought] == [
            "ledger",
            "0099",
            "functions_and_access",
        ]
        for path in (*written, *brought):
            cluster.execute(path.read_text(), database=name)
        with SupabaseMemory.from_conn_string(cluster.conn_string(name)) as memory:
            assert installed(memory).tables[-1] == "0099_pinned"


def test_an_edited_migration_is_refused(cluster: Cluster) -> None:
    name = cluster.migrated_database()
    cluster.execute("update memory_private.migrations set checksum = 'edited'", database=name)
    with pytest.raises(
        MigrationConflictError,
        match=rf"release {version(PACKAGE)}, and 0001_conversations is not as in release {version(PACKAGE)}"
        r".* export with the package that set it up, and import",
    ):
        migrate(cluster.conn_string(name))


def test_a_failed_migration_leaves_nothing(cluster: Cluster) -> None:
    name = cluster.create_database()
    cluster.execute("create schema memory; create table memory.conversation_messages ()", database=name)
    before = cluster.dump(name, "--no-comments")
    with pytest.raises(Exception, match="migration failed.*already exists"):
        migrate(cluster.conn_string(name))
    assert cluster.dump(name, "--no-comments") == before


@each_case(
    ("setting", "milliseconds"),
    [("statement_timeout", 50), ("transaction_timeout", 250), ("idle_in_transaction_session_timeout", 250)],
)
def test_time_limits_for_calls_are_no_limit_of_a_migration(
    cluster: Cluster, setting: str, milliseconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, text = cluster.create_database(), script.text
    cluster.execute(f"alter database {name} set {setting} = {milliseconds}", superuser=True)

    def slow_text(*args: Any, **options: Any) -> str:
        time.sleep(0.3)
        return text(*args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(script, "text", slow_text)
        for _ in range(2):
            assert migrate(cluster.conn_string(name)) == script.current()


def test_a_database_that_would_read_the_functions_wrongly_is_told_so(cluster: Cluster) -> None:
    name = cluster.create_database()
    cluster.execute(f"alter database {name} set standard_conforming_strings = off", superuser=True)
    with pytest.raises(MigrationConflictError, match="standard_conforming_strings is off") as caught:
        migrate(cluster.conn_string(name))
    statement = caught.value.hint.removeprefix("Run: ").partition(";")[0]
    cluster.execute(statement, superuser=True)
    assert migrate(cluster.conn_string(name)) == script.current()


def test_a_role_that_may_not_set_up_a_database_is_told_which_role_may(cluster: Cluster) -> None:
    name = cluster.create_database()
    cluster.execute("create role may_nothing login", superuser=True)
    with pytest.raises(AccessError, match="permission denied") as caught:
        migrate(cluster.conn_string(name, "may_nothing"))
    assert "Connect as a role that may create schemas" in caught.value.hint


def test_a_plain_postgres_gets_the_least_it_needs_and_supabase_is_not_touched(cluster: Cluster) -> None:
    plain, project = cluster.create_database(supabase=False), cluster.create_database()
    migrate(cluster.conn_string(plain, "supabase_admin"))
    functions = (
        "select p.oid::regprocedure::text, prosrc, proowner from pg_proc p"
        " where pronamespace = 'auth'::regnamespace order by 1"
    )
    with psycopg.connect(cluster.conn_string(plain)) as connection:
        names = {row[0] for row in connection.execute(functions)}
        assert names == {"auth.uid()", "auth.role()", "auth.jwt()"}
    with psycopg.connect(cluster.conn_string(project)) as connection:
        roles = "select rolname, rolconfig, rolbypassrls, rolinherit from pg_roles order by 1"
        before = connection.execute(functions).fetchall(), connection.execute(roles).fetchall()
        migrate(cluster.conn_string(project))
        assert (connection.execute(functions).fetchall(), connection.execute(roles).fetchall()) == before


def test_files_are_written_once_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "20991231235959_theirs.sql").write_text("select 1")
    written = files.write(tmp_path, now=datetime(2026, 11, 21, tzinfo=UTC))
    names = [path.name for path in written]
    assert names == sorted(names)
    assert names[0] > "20991231235959_theirs.sql"  # `db push` refuses what is older than the newest
    assert files.write(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == len(written) + 1
    # Where pgvector has moved, what names its place is new, and no table.
    moved = [path.name.split("_")[4] for path in files.write(tmp_path, "public")]
    assert moved == ["vector", "ledger", "functions"]


def test_a_database_without_the_schema_says_what_to_do(cluster: Cluster) -> None:
    with SupabaseMemory.from_conn_string(cluster.conn_string(cluster.create_database()), user_id="u") as memory:
        with pytest.raises(SchemaMissingError, match=r"supabase-memory migrate"):
            memory.conversation("t").count()
        schema = findings_by_name(memory)["schema"]
        assert (schema.state, "supabase-memory migrate" in str(schema.next_action)) == ("red", True)


def test_an_older_schema_says_what_to_do(cluster: Cluster) -> None:
    name = cluster.migrated_database()
    cluster.execute("drop function public.memory_count", database=name)
    with SupabaseMemory.from_conn_string(cluster.conn_string(name), user_id="u") as memory:
        with pytest.raises(SchemaOutdatedError, match=r"no memory_count.*supabase-memory migrate"):
            memory.conversation("t").count()
        schema, access = (findings_by_name(memory)[name] for name in ("schema", "access"))
        assert (schema.state, access.state) == ("green", "red"), "the constants are those of this release"
        assert "missing: authenticated may execute public.memory_count(" in access.text
    cluster.execute(
        "create or replace function public.memory_schema() returns jsonb language sql as"
        """ $$ select '{"version": "0.0.1", "tables": [], "code": "old", "dimensions": 384}'::jsonb $$""",
        database=name,
    )
    with SupabaseMemory.from_conn_string(cluster.conn_string(name)) as memory:
        schema = findings_by_name(memory)["schema"]
        assert (schema.state, "0.0.1" in schema.text) == ("red", True)
        assert "supabase-memory migrate" in str(schema.next_action)


def test_a_server_that_is_not_there_is_one_clear_error() -> None:
    nowhere = f"postgresql://postgres:secret-password@127.0.0.1:{free_port()}/postgres"
    with pytest.raises(UnavailableError) as caught:
        migrate(nowhere)
    assert "secret-password" not in str(caught.value)
    with (
        SupabaseMemory.from_conn_string(nowhere, retry=NO_RETRY) as memory,
        pytest.raises(UnavailableError, match=r"could not be reached.*safe to repeat"),
    ):
        memory.for_user("u").conversation("t").count()


def test_a_wrong_user_is_one_clear_error(cluster: Cluster) -> None:
    with (
        SupabaseMemory.from_conn_string(cluster.conn_string(user="nobody")) as memory,
        pytest.raises(AuthenticationError, match="Check both in the connection string"),
    ):
        memory.for_user("u").conversation("t").count()
    with (
        SupabaseMemory.from_conn_string(cluster.conn_string("no_such_database")) as memory,
        pytest.raises(ConfigurationError, match="no such database"),
    ):
        memory.for_user("u").conversation("t").count()


def test_a_cached_plan_lets_nobody_call_what_they_may_not(cluster: Cluster) -> None:
    """A constant would be folded into the plan, and the right to call it looked at once."""
    with psycopg.connect(cluster.conn_string(cluster.migrated_database()), autocommit=True) as connection:
        connection.execute("set plan_cache_mode = force_generic_plan; prepare asked as select public.memory_schema()")
        connection.execute("execute asked")
        connection.execute("set role anon")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("execute asked")


def test_an_upgrade_under_way_costs_no_call(cluster: Cluster) -> None:
    """What was planned before the functions were replaced is tried again, and what opens a database replaces nothing."""
    address = cluster.conn_string(cluster.migrated_database())
    done = threading.Event()
    counts: list[int] = []

    def write(thread: int) -> None:
        with SupabaseMemory.from_conn_string(address, user_id="u", model=ExtractiveSummarizer()) as memory:
            conversation = memory.conversation(f"t{thread}")
            while not done.is_set():
                conversation.add_turn("What of the kiln?", "It is red.")
                conversation.index()
                conversation.summaries.make()
                conversation.context("And?")
            counts.append(conversation.count())

    with ThreadPoolExecutor(3) as threads:
        writing = [threads.submit(write, thread) for thread in range(3)]
        try:
            for _ in range(3):
                time.sleep(0.3)
                migrate(address)
        finally:
            done.set()
        for each in writing:
            each.result()
    assert min(counts) > 2
    with psycopg.connect(address) as connection:
        before = connection.execute("select 'public.memory_schema'::regproc::oid").fetchone()
        ensure(address)
        assert connection.execute("select 'public.memory_schema'::regproc::oid").fetchone() == before
