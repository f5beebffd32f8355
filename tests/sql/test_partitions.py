"""Tables partitioned by owner: every verb, every table, access rules, the worker, erasure, and migration.

The whole suite runs on partitions with `pytest --partitions 4`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from benchmarks.partitions import LockCounting
from langchain_supabase_memory import BoardPolicy, MemoryConfig, SummaryPolicy, SupabaseMemory, Worker
from langchain_supabase_memory.adapters.schema import files, script
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.adapters.transports.response_shapes import SHAPES
from langchain_supabase_memory.errors import ConfigurationError, MigrationConflictError
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.operations.recall import summaries as summary_recall
from langchain_supabase_memory.values import Scope
from tests.cli.running import run
from tests.converse import Caller, converse
from tests.each_case import each_case
from tests.embedders import WordEmbedder
from tests.sql.test_catalog import faults
from tests.sql.test_schema import newer_release
from tests.verbs import Subject

if TYPE_CHECKING:
    from tests.services.postgres import Cluster

COUNT = 4
OWNERS = [f"owner-{number}" for number in range(12)]
"""So many that every partition has one."""

_TABLES = """
select c.oid::regclass::text, c.relname, starts_with(coalesce(obj_description(c.oid, 'pg_class'), ''), 'Reference table. '),
       (select count(*) from pg_inherits i where i.inhparent = c.oid)
from pg_class c
where c.relnamespace::regnamespace::text in ('memory', 'memory_private') and c.relkind in ('r', 'p')
  and not c.relispartition
"""


@pytest.fixture(scope="module")
def name(cluster: Cluster) -> str:
    """A database in which one owner has gone through every verb, and the others have talked."""
    name = cluster.create_database()
    migrate(cluster.conn_string(name), partitions=COUNT, spaces=True)
    with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
        caller = Caller(connection, "owner-3")
        converse(caller)
        assert set(caller.answers) == set(SHAPES)
        connection.execute("truncate memory_private.chores")
        with pytest.raises(FullError):
            converse(Filling(connection, "owner-3"))
    with SupabaseMemory.from_conn_string(cluster.conn_string(name), embeddings=WordEmbedder()) as memory:
        for owner in OWNERS:
            talk(memory, owner)
        # What the verbs alone leave empty: a full block of messages, one that is gone, and a summary with its vector.
        long = memory.for_user("owner-3").conversation("long")
        long.append([HumanMessage(f"message {number}", id=f"m{number}") for number in range(1030)])
        long.forget_message("m1029")
        briefly = SummaryPolicy(messages=4, keep_messages=1)
        memory.for_user("owner-3").conversation("talk").summaries.make(policy=briefly, model=ExtractiveSummarizer())
        flow: Any = summary_recall.index_summaries(Scope("owner-3", "default", "talk"), embedder="of summaries")
        assert memory._services.run(flow) == 1
        memory.usage.update()
    with psycopg.connect(cluster.conn_string(name)) as connection:
        connection.execute(
            "insert into memory.reads (user_id, conversation_id, from_sequence, part, last_at)"
            " select user_id, id, 0, 1, now() from memory.conversations where user_id = 'owner-3' on conflict do nothing"
        )
    return name


class FullError(Exception):
    """Nothing of what was called for is forgotten yet."""


class Filling(Caller):
    """Calls until something is to be forgotten."""

    def __call__(self, name: str, /, **arguments: Any) -> Any:
        if name.startswith("forget"):
            raise FullError
        return super().__call__(name, **arguments)


def talk(memory: SupabaseMemory, owner: str) -> None:
    """A conversation with chunks, a board and a topic that is not to be remembered."""
    conversation = memory.for_user(owner).conversation("talk")
    for number in range(6):
        conversation.add_turn(f"The kiln number {number} of {owner} stands in Riga.", "In Riga.")
    conversation.index()
    conversation.board.add("fact", f"{owner} has a kiln", actor=owner)
    conversation.opt_out("divorce", actor=owner)


@pytest.fixture
def address(cluster: Cluster, name: str) -> str:
    return cluster.conn_string(name)


def owners_tables(connection: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """The tables of owners, with their schema and without."""
    return [(table, short) for table, short, is_reference, _ in connection.execute(_TABLES) if not is_reference]


def rows(connection: psycopg.Connection[Any], table: str, condition: str = "true") -> int:
    [(count,)] = connection.execute(f"select count(*) from {table} where {condition}".encode()).fetchall()
    return int(count)


def test_every_table_of_owners_is_in_partitions_and_no_other(address: str) -> None:
    with psycopg.connect(address) as connection:
        found = connection.execute(_TABLES).fetchall()
    assert {table: count for table, _, is_reference, count in found if is_reference} == dict.fromkeys(
        (table for table, _, is_reference, _ in found if is_reference), 0
    )
    assert {count for *_, is_reference, count in found if not is_reference} == {COUNT}
    assert len(found) > 25


def test_the_catalog_holds_no_fault(address: str) -> None:
    with psycopg.connect(address) as connection:
        assert faults(connection) == set()


def test_all_of_one_owner_lies_in_the_partitions_of_one_number(address: str) -> None:
    with psycopg.connect(address) as connection:
        tables = owners_tables(connection)
        places: dict[str, set[str]] = {}
        for table, _ in tables:
            statement = f"select distinct user_id, regexp_replace(tableoid::regclass::text, '.*_', '') from {table}"
            for owner, place in connection.execute(statement.encode()).fetchall():
                places.setdefault(owner, set()).add(place)
    assert all(len(found) == 1 for found in places.values())
    assert len(set.union(*places.values())) == COUNT


def test_a_call_locks_what_the_page_says(address: str) -> None:
    """How many clients a server carries follows from it; more is a query that has lost its partition."""
    page = (Path(__file__).parents[2] / "docs" / "partitions.md").read_text()
    told = dict(
        re.findall(r"^\| (append a turn|a context pack|edit a message)[^|]* \|[^|]*\| (\d+) \(", page, re.MULTILINE)
    )
    said = {"append a turn": Subject.append, "a context pack": Subject.context, "edit a message": Subject.edit}
    assert told.keys() == said.keys()
    with psycopg.connect(address, autocommit=True) as connection:
        transport = LockCounting(connection)
        memory = SupabaseMemory(transport, user_id="locking", model=None)
        memory.conversation("t").append([HumanMessage(f"message {place}", id=f"m-{place}") for place in range(40)])
        memory.conversation("t").index()
        for what, verb in said.items():
            for number in range(8):
                verb(Subject(memory, "t", 20), number)
            assert 10 < transport.locked <= int(told[what]) + 4, what


def test_nobody_reaches_a_partition_and_everybody_their_own_rows(cluster: Cluster, name: str) -> None:
    with psycopg.connect(cluster.conn_string(name)) as connection:
        shared = ("spaces", "memberships", "invitations", "contributions")  # test_spaces.py has the rest of them
        tables = [each for each in owners_tables(connection) if each[0].startswith("memory.") and each[1] not in shared]
        connection.execute("delete from memory.memberships")
        filled = {table for table, _ in tables if rows(connection, table, "user_id = 'owner-3'")}
        assert {table for table, _ in tables} == filled
        for role in ("anon", "authenticated", "service_role"):
            claims = f'{{"sub": "owner-3", "role": "{role}"}}'
            for table, short in tables:
                with connection.transaction():
                    connection.execute("select set_config('role', %s, true)", [role])
                    connection.execute("select set_config('request.jwt.claims', %s, true)", [claims])
                    for number in range(COUNT):
                        with (
                            pytest.raises(psycopg.errors.InsufficientPrivilege),
                            connection.transaction(),
                        ):
                            rows(connection, f"memory_private.{short}_{number}")
                    if role == "authenticated":
                        assert (rows(connection, table) > 0) is (table in filled), table
                        assert rows(connection, table, "user_id <> 'owner-3'") == 0, table
                        others = f"delete from {table} where user_id <> 'owner-3'"
                        assert connection.execute(others.encode()).rowcount == 0, table
                        if table in filled:
                            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                                connection.execute(f"update {table} set user_id = 'owner-4'".encode())
                    raise psycopg.Rollback


def test_a_grant_on_a_partition_shows_nobody_anything(cluster: Cluster, name: str) -> None:
    with psycopg.connect(cluster.conn_string(name)) as connection:
        connection.execute("grant usage on schema memory_private to authenticated")
        for number in range(COUNT):
            connection.execute(f"grant select on memory_private.conversations_{number} to authenticated".encode())
        connection.execute("set local role authenticated")
        connection.execute("""select set_config('request.jwt.claims', '{"sub": "owner-3"}', true)""")
        assert [rows(connection, f"memory_private.conversations_{number}") for number in range(COUNT)] == [0] * COUNT
        assert rows(connection, "memory.conversations") > 0
        connection.rollback()


async def test_a_worker_does_all_that_is_due(cluster: Cluster) -> None:
    address = cluster.conn_string(cluster.create_database())
    migrate(address, partitions=COUNT, vector_index=24)
    memory = SupabaseMemory.from_conn_string(
        address,
        model=ExtractiveSummarizer(),
        embeddings=WordEmbedder(24),
        config=MemoryConfig(
            policy=SummaryPolicy(mode="background", messages=4, keep_messages=2),
            board_policy=BoardPolicy(update_frequency=2),
        ),
    )
    for owner in OWNERS:
        for number in range(6):
            said = f"The kiln number {number} of {owner} stands in Riga."
            await memory.for_user(owner).conversation("t").aadd_turn(said, f"The kiln of {owner} is noted.")
    await Worker(memory).drain()
    for owner in OWNERS:
        conversation = memory.for_user(owner).conversation("t")
        assert await conversation.summaries.alist(), owner
        assert (await conversation.board.aread()).through_sequence is not None, owner
        found = await memory.for_user(owner).arecall("kiln", exact_below=0)
        assert found.chunks, owner
        assert all(owner in each.content for each in found.chunks), owner
    with psycopg.connect(address) as connection:
        assert rows(connection, "memory_private.work", "run_after <= now()") == 0
    states = {each.name: each for each in await memory.adoctor()}
    assert {each.state for each in states.values()} <= {"green", "yellow"}
    await memory.aclose()


def test_the_doctor_tells_of_tables_and_not_of_partitions(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("vacuum analyze")
        tables = {each["name"]: each for each in Caller(connection, "u")("worker_doctor", model="words")["tables"]}
        messages = tables["memory.conversation_messages"]
        assert messages["rows"] == rows(connection, "memory.conversation_messages") > 0
        assert messages["bytes"] > 8192 * COUNT
        assert messages["vacuumed_at"] is not None
        assert len(tables) == len(connection.execute(_TABLES).fetchall())
        assert Caller(connection, "u")("worker_queue")["vector_bytes"] > 0


def test_what_is_forgotten_is_in_no_partition(cluster: Cluster, name: str, address: str) -> None:
    with SupabaseMemory.from_conn_string(address, embeddings=WordEmbedder()) as memory:
        talk(memory, "to-be-forgotten")
    with psycopg.connect(address) as connection:
        neighbors = {
            table: rows(connection, table, "user_id <> 'to-be-forgotten'") for table, _ in owners_tables(connection)
        }
        assert "to-be-forgotten" in cluster.dump(name, "--no-comments")
    with SupabaseMemory.from_conn_string(address, user_id="to-be-forgotten") as memory:
        assert memory.forget_user().conversations > 0
    assert "to-be-forgotten" not in cluster.dump(name, "--no-comments")
    with psycopg.connect(address) as connection:
        assert {table: rows(connection, table) for table in neighbors} == neighbors


# --- How a database gets there


def test_a_later_migration_keeps_them(cluster: Cluster, tmp_path: Path) -> None:
    name = cluster.create_database()
    address = cluster.conn_string(name)
    migrate(address, partitions=3)
    before = cluster.dump(name, "--schema-only")
    migrate(address)
    migrate(address, partitions=3)
    assert cluster.dump(name, "--schema-only") == before
    with newer_release(tmp_path / "sql"):
        migrate(address)
        with psycopg.connect(address) as connection:
            assert ("memory.pins", "pins", False, 3) in connection.execute(_TABLES).fetchall()
            assert faults(connection) == set()


def test_a_script_and_files_make_them_too(cluster: Cluster, tmp_path: Path) -> None:
    migrated = cluster.migrated_database(partitions=2)
    pasted, pushed = (cluster.create_database() for _ in range(2))
    code, output = run("sql", "--partitions", "2")
    assert code == 0
    for _ in range(2):
        cluster.execute(output, database=pasted)
    for path in files.write(tmp_path, partitions=2):
        cluster.execute(path.read_text(), database=pushed)
    assert files.write(tmp_path, partitions=2) == []
    # Who leaves the option out keeps what is there; a release that follows, too.
    assert files.write(tmp_path) == []
    with newer_release(tmp_path / "sql"):
        later = files.write(tmp_path)
        assert {each.name.split("_langchain_supabase_memory_")[1][:6] for each in later} == {
            "ledger",
            "0099_p",
            "functi",
        }
        for path in later:
            cluster.execute(path.read_text(), database=pushed)
        migrate(cluster.conn_string(migrated))
        cluster.execute(script.text(partitions=2), database=pasted)
    assert (
        cluster.dump(migrated, "--schema-only")
        == cluster.dump(pasted, "--schema-only")
        == cluster.dump(pushed, "--schema-only")
    )


def test_files_of_another_number_are_refused(tmp_path: Path) -> None:
    for folder, given, said in (("parted", 2, "in 2 partitions"), ("plain", None, "plain tables")):
        before = files.write(tmp_path / folder, partitions=given)
        with pytest.raises(ConfigurationError, match=f"make .*{said}, and not in 4.* Leave --partitions out"):
            files.write(tmp_path / folder, partitions=4)
        assert sorted((tmp_path / folder).iterdir()) == before


def test_tables_that_are_there_stay_as_they_are(cluster: Cluster) -> None:
    plain, parted = cluster.migrated_database(partitions=None), cluster.create_database()
    code, output = run("migrate", "--partitions", "2", "--database-url", cluster.conn_string(parted))
    assert code == 0, output
    before = cluster.dump(plain, "--schema-only"), cluster.dump(parted, "--schema-only")
    with pytest.raises(MigrationConflictError, match="are plain ones.* supabase-memory export and import"):
        migrate(cluster.conn_string(plain), partitions=4)
    with pytest.raises(MigrationConflictError, match="are in 2 partitions.* Leave --partitions out"):
        migrate(cluster.conn_string(parted), partitions=4)
    with pytest.raises(psycopg.ProgrammingError, match="are in 2 partitions") as refused:
        cluster.execute(script.text(), database=parted)
    assert refused.value.diag.message_hint == "write the script with --partitions 2"
    with pytest.raises(MigrationConflictError, match="Realtime does not follow"):
        migrate(cluster.conn_string(parted), realtime=True)
    assert before == (cluster.dump(plain, "--schema-only"), cluster.dump(parted, "--schema-only"))


@each_case("count", [-1, 0, 1, 65])
def test_a_number_that_cannot_be_is_refused(cluster: Cluster, count: int) -> None:
    with pytest.raises(ConfigurationError, match=f"2 to 64 partitions, not {count}"):
        migrate(cluster.conn_string(), partitions=count)


@pytest.mark.slow
def test_as_many_as_may_be_fit_into_a_server_as_it_comes(cluster: Cluster) -> None:
    address = cluster.conn_string(cluster.create_database())
    migrate(address, partitions=64)
    with SupabaseMemory.from_conn_string(address, user_id="u") as memory:
        memory.conversation("t").append([HumanMessage("The kiln stands in Riga.")])
        assert memory.conversation("t").count() == 1


def test_whoever_migrates_need_not_bypass_row_security(cluster: Cluster) -> None:
    name = cluster.create_database(supabase=False)
    cluster.execute(
        f"create role parter login; grant authenticated, service_role to parter; alter database {name} owner to parter",
        superuser=True,
    )
    cluster.execute("grant usage on schema extensions to public", database=name, superuser=True)
    address = cluster.conn_string(name, "parter")
    for _ in range(2):
        migrate(address, partitions=COUNT, spaces=True)
    with psycopg.connect(address, autocommit=True) as connection:
        converse(Caller(connection, "ana"))
        assert faults(connection) == set()


def test_a_database_moves_into_partitions_by_export_and_import(cluster: Cluster, tmp_path: Path) -> None:
    plain = cluster.conn_string(cluster.migrated_database())
    parted = cluster.conn_string(cluster.create_database())
    with SupabaseMemory.from_conn_string(plain) as memory:
        for owner in OWNERS:
            conversation = memory.for_user(owner).conversation("studio", agent_id="potter")
            for number in range(5):
                conversation.add_turn(f"{owner} asks {number}", f"The answer {number}", idempotency_key=str(number))
            conversation.board.add("fact", f"{owner} has a kiln", actor=owner)
            conversation.update(title=f"The studio of {owner}")
    assert run("migrate", "--partitions", str(COUNT), "--database-url", parted)[0] == 0
    for owner in OWNERS:
        path = str(tmp_path / f"{owner}.jsonl")
        for command in (("export", path, "--database-url", plain), ("import", "jsonl", path, "--database-url", parted)):
            code, output = run(*command, "--user", owner)
            assert code == 0, output
    assert snapshot(plain) == snapshot(parted)


def snapshot(address: str) -> list[Any]:
    """All conversations, word for word."""
    found: list[Any] = []
    with SupabaseMemory.from_conn_string(address) as memory:
        for owner in OWNERS:
            for info in memory.for_user(owner).conversations():
                conversation = memory.for_user(owner).conversation(info.thread_id, agent_id=info.agent_id)
                said = [(each.sequence, each.message_id, each.message, each.created_at)
                        for each in conversation.read(columns=("message_id", "payload", "created_at"))]  # fmt: skip
                items = [(each.text, each.author) for each in conversation.board.read().items]
                found.append((owner, info.thread_id, info.agent_id, info.title, said, items))
    assert len(found) == len(OWNERS)
    return found
