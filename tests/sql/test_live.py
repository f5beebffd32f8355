"""Supabase's Realtime publishes conversations and boards to their owners; neither work nor errors nor messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import (
    ExtractiveSummarizer,
    MemoryConfig,
    SummaryPolicy,
    SupabaseMemory,
    Worker,
    WorkerPolicy,
)
from langchain_supabase_memory.adapters.schema import files
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.errors import MigrationConflictError
from tests.cli.running import run
from tests.each_case import each_case
from tests.embedders import WordEmbedder
from tests.examining import findings_by_name
from tests.services.decoding import Change, Slot
from tests.services.postgres import Cluster
from tests.services.sessions import Sessions

CONVERSATIONS, BOARDS = "memory.conversations", "memory.conversation_summary_boards"


@pytest.fixture(scope="module")
def decoding() -> Iterator[Cluster]:
    """A server whose log can be decoded, as Supabase's."""
    with Cluster() as cluster:
        cluster.execute("alter system set wal_level = logical", superuser=True)
        cluster.restart()
        yield cluster


@pytest.fixture
def live(decoding: Cluster, kept_sessions: Sessions) -> Iterator[str]:
    """A database of which Realtime publishes what it is to."""
    name = decoding.migrated_database(realtime=True)
    with kept_sessions.of(decoding.port, name):
        yield decoding.conn_string(name)


@pytest.fixture
def slot(live: str) -> Iterator[Slot]:
    with psycopg.connect(live, autocommit=True) as connection:
        slot = Slot(connection, "live_" + live.rpartition("_")[2])
        yield slot
        slot.drop()


def published(conn_string: str) -> list[str]:
    with psycopg.connect(conn_string) as connection:
        rows = connection.execute(
            "select schemaname || '.' || tablename from pg_publication_tables where pubname = 'supabase_realtime' order by 1"
        ).fetchall()
    return [name for (name,) in rows]


def live_through(live: str) -> None:
    """All that a memory does: what is stored, made from it, fails, is edited and forgotten."""
    secret = "the canary of a message"
    policy = SummaryPolicy(messages=4, keep_messages=1)
    for user in ("ana", "ben"):
        with SupabaseMemory.from_conn_string(
            live,
            user_id=user,
            model=ExtractiveSummarizer(),
            embeddings=WordEmbedder(),
            config=MemoryConfig(policy=policy),
        ) as memory:
            conversation = memory.conversation("kiln")
            conversation.append(
                [(AIMessage if n % 2 else HumanMessage)(f"{secret} {n}", id=f"m{n}") for n in range(12)]
            )
            asyncio.run(Worker(memory, policy=WorkerPolicy(debounce_seconds=0)).drain())
            conversation.update(title="The kiln")
            memory.privacy.opt_out("horoscope", actor=user)
            memory.rollout.set("parallel", actor="ops")

    def fails(_: object) -> str:
        raise ZeroDivisionError

    with SupabaseMemory.from_conn_string(
        live, user_id="ben", model=fails, config=MemoryConfig(policy=policy)
    ) as memory:
        said = [HumanMessage(f"{secret} {n}: {'the kiln is hot, ' * 9}") for n in range(12)]
        memory.conversation("broken").append(said)
        asyncio.run(Worker(memory, name="the-worker", policy=WorkerPolicy(max_attempts=1, debounce_seconds=0)).drain())
        memory.conversation("broken").forget()


def test_conversations_and_boards_come_out_and_nothing_else(live: str, slot: Slot) -> None:
    live_through(live)
    with SupabaseMemory.from_conn_string(live, user_id="ana") as memory:
        memory.conversation("kiln").opt_out(actor="ana")
    changes = slot.changes()
    assert {each.table for each in changes} == {CONVERSATIONS, BOARDS}
    kinds = {(each.table, each.kind) for each in changes}
    assert {(CONVERSATIONS, kind) for kind in ("insert", "update", "delete")} <= kinds
    assert (BOARDS, "insert") in kinds or (BOARDS, "update") in kinds
    told = {name for each in changes for name in each.row}
    assert not {name for name in told if "error" in name or "failures" in name or "retry" in name or "worker" in name}
    words = json.dumps([each.row for each in changes])
    assert "ZeroDivisionError" not in words
    assert "the-worker" not in words
    of_conversations = json.dumps([each.row for each in changes if each.table == CONVERSATIONS])
    assert "canary" not in of_conversations.replace('"title": "the canary', '"title": "')
    assert "The kiln" in of_conversations


def test_of_what_is_deleted_only_owner_and_id_come_out(live: str, slot: Slot) -> None:
    live_through(live)
    deleted = [each for each in slot.changes() if each.kind == "delete"]
    assert {(each.table, *sorted(each.row)) for each in deleted} == {(CONVERSATIONS, "id", "user_id")}
    with SupabaseMemory.from_conn_string(live, user_id="ana") as memory:
        memory.forget_user()
    deleted = [each for each in slot.changes() if each.kind == "delete"]
    assert {(each.table, *sorted(each.row)) for each in deleted} == {
        (CONVERSATIONS, "id", "user_id"),
        (BOARDS, "conversation_id", "user_id"),
    }
    assert {each.row["user_id"] for each in deleted} == {"ana"}, "so that a filter by owner can leave out others'"


def sees(connection: psycopg.Connection, role: str, claims: dict[str, str], change: Change) -> bool:
    """Whether a subscriber may see a row: Realtime selects it by its key, in that role and with those claims."""
    key = ("user_id", "id") if change.table == CONVERSATIONS else ("user_id", "conversation_id")
    with connection.transaction():
        connection.execute("select set_config('role', %s, true)", [role])
        connection.execute("select set_config('request.jwt.claims', %s, true)", [json.dumps(claims)])
        row = connection.execute(
            f"select exists (select from {change.table} where {key[0]} = %s and {key[1]} = %s)".encode(),
            [change.row[name] for name in key],
        ).fetchone()
    return row == (True,)


def test_row_level_security_gives_each_change_to_its_owner_alone(live: str, slot: Slot) -> None:
    live_through(live)
    changes = [each for each in slot.changes() if each.kind != "delete"]
    standing = [each for each in changes if each.row.get("thread_id") != "broken"]
    assert {(each.table, each.row["user_id"]) for each in standing} >= {
        (table, user) for table in (CONVERSATIONS, BOARDS) for user in ("ana", "ben")
    }
    with psycopg.connect(live, autocommit=True) as connection:
        for each in standing:
            for user in ("ana", "ben", "", "stranger"):
                claims = {"sub": user, "role": "authenticated"}
                assert sees(connection, "authenticated", claims, each) is (user == each.row["user_id"])
            assert not sees(connection, "authenticated", {}, each)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sees(connection, "anon", {"sub": "ana", "role": "anon"}, standing[0])
        # The columns that come out are those that the owner may read: Realtime asks that, too.
        row = connection.execute(
            "select bool_and(has_column_privilege('authenticated', 'memory.conversations', a, 'select'))"
            " from unnest(%s::text[]) a",
            [sorted(standing[0].row)],
        ).fetchone()
    assert row == (True,)


def test_it_is_switched_on_and_off_as_often_as_one_likes(decoding: Cluster) -> None:
    name = decoding.create_database()
    conn_string = decoding.conn_string(name)
    decoding.execute("create table public.theirs (id int primary key)", database=name)
    decoding.execute("create publication supabase_realtime for table public.theirs", database=name)
    migrate(conn_string)
    assert published(conn_string) == ["public.theirs"], "nobody asked for it"
    for _ in range(2):
        migrate(conn_string, realtime=True)
        assert published(conn_string) == [BOARDS, CONVERSATIONS, "public.theirs"]
    migrate(conn_string)
    assert published(conn_string) == [BOARDS, CONVERSATIONS, "public.theirs"], "an upgrade leaves it"
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        assert {each.state for each in memory.doctor()} == {"green"}
        assert "to their owners" in findings_by_name(memory)["realtime"].text
    for _ in range(2):
        assert run("migrate", "--no-realtime", "--database-url", conn_string)[0] == 0
        assert published(conn_string) == ["public.theirs"]
    assert run("migrate", "--realtime", "--database-url", conn_string)[0] == 0
    assert len(published(conn_string)) == 3


def test_a_script_and_files_bring_it_too(decoding: Cluster, tmp_path_factory: pytest.TempPathFactory) -> None:
    name, folder = decoding.create_database(), tmp_path_factory.mktemp("migrations")
    for path in files.write(folder, realtime=True):
        decoding.execute(path.read_text(), database=name)
    assert published(decoding.conn_string(name)) == [BOARDS, CONVERSATIONS]
    assert files.write(folder, realtime=True) == []
    code, output = run("sql", "--no-realtime")
    assert code == 0
    decoding.execute(output, database=name)
    assert published(decoding.conn_string(name)) == []


def test_a_publication_of_all_tables_is_refused(decoding: Cluster) -> None:
    name = decoding.create_database()
    decoding.execute("create publication supabase_realtime for all tables", database=name, superuser=True)
    for realtime in (True, False):
        with pytest.raises(MigrationConflictError, match="for all tables, the queue and its errors among them"):
            migrate(decoding.conn_string(name), realtime=realtime)


def test_a_table_that_somebody_published_whole_is_red_and_mended(decoding: Cluster) -> None:
    name = decoding.migrated_database()
    conn_string = decoding.conn_string(name)
    decoding.execute("create publication supabase_realtime for table memory.conversations", database=name)
    with SupabaseMemory.from_conn_string(conn_string) as memory, psycopg.connect(conn_string, autocommit=True) as other:
        line = findings_by_name(memory)["realtime"]
        assert line.state == "red"
        assert "memory.conversations." in line.text
        assert "columns that clients should not get" in line.text
        slot = Slot(other, "whole_" + name.rpartition("_")[2])
        try:
            live_through(conn_string)
            assert "summary_error" in {column for each in slot.changes() for column in each.row}
            assert run("migrate", "--realtime", "--database-url", conn_string)[0] == 0
            assert findings_by_name(memory)["realtime"].state == "green"
            live_through(conn_string)
            assert "summary_error" not in {column for each in slot.changes() for column in each.row}
        finally:
            slot.drop()
        fewer = "memory.conversation_summary_boards (user_id, conversation_id, version)"
        change = f"alter publication supabase_realtime set table memory.conversations (user_id, id, title), {fewer}"
        decoding.execute(change, database=name)
        assert findings_by_name(memory)["realtime"].state == "yellow"
        assert (
            "does not publish memory.conversation_summary_boards.context_notes"
            in findings_by_name(memory)["realtime"].text
        )
        migrate(conn_string, realtime=True)
        assert findings_by_name(memory)["realtime"].state == "green"


@each_case("schema", ["memory", "memory_private"])
def test_a_publication_of_a_whole_schema_is_refused_on_and_off(decoding: Cluster, schema: str) -> None:
    name = decoding.migrated_database()
    conn_string = decoding.conn_string(name)
    decoding.execute(
        f"create publication supabase_realtime for tables in schema {schema}", database=name, superuser=True
    )
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        assert findings_by_name(memory)["realtime"].state == "red"
        for realtime in (True, False):
            with pytest.raises(MigrationConflictError, match=f"drop tables in schema {schema}; then this again"):
                migrate(conn_string, realtime=realtime)
        change = f"alter publication supabase_realtime drop tables in schema {schema}"
        decoding.execute(change, database=name, superuser=True)
        decoding.execute("alter publication supabase_realtime owner to postgres", database=name, superuser=True)
        migrate(conn_string, realtime=True)
        assert findings_by_name(memory)["realtime"].state == "green"


def test_the_doctor_sees_what_is_published_besides(live: str, decoding: Cluster) -> None:
    with SupabaseMemory.from_conn_string(live) as memory:

        def state(*statements: str) -> str:
            for statement in statements:
                decoding.execute(statement, database=live.rpartition("/")[2])
            return findings_by_name(memory)["realtime"].state

        change = "alter publication supabase_realtime {} table memory.{}"
        assert state() == "green"
        assert state(change.format("drop", "conversations")) == "yellow"
        migrate(live, realtime=True)
        assert state(change.format("add", "opt_outs")) == "yellow"
        assert state("alter publication supabase_realtime add table memory_private.work") == "red"
        migrate(live, realtime=False)
        assert published(live) == []
        migrate(live, realtime=True)
        assert state() == "green"
        assert state("alter table memory.conversations replica identity nothing") == "red"
        assert "replica identity default" in str(findings_by_name(memory)["realtime"].next_action)


def test_a_server_that_writes_too_little_into_its_log_is_said(cluster: Cluster) -> None:
    conn_string = cluster.conn_string(cluster.migrated_database())
    migrate(conn_string, realtime=True)
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        assert findings_by_name(memory)["realtime"].state == "yellow"
        assert "wal_level" in findings_by_name(memory)["realtime"].text
