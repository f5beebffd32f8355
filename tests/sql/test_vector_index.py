"""The optional vector index: used for large scopes, and never at the expense of the right rows."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.embedder import EmbeddingModel
from langchain_supabase_memory.adapters.schema import files, script
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.cli.application import commands
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.settings import RecallWeights
from tests.embedders import ScriptedEmbedder
from tests.services.postgres import OLDER_PGVECTOR, Cluster, packaged
from tests.services.sessions import Sessions

pytestmark = pytest.mark.postgres

WIDTH = 32
TENANTS = {"giant": 6_000, "large": 3_000, "small": 1_500, "tiny": 60}
MEANING = RecallWeights(0, 1, 0, 0, 0, 0, 0, 0, 0)

FILL = """
select setseed(0.5);
create temporary table centers as
  select t, array(select random() - 0.5 from generate_series(1, {width}) where t = t) as center from generate_series(1, 60) t;
create temporary table drawn as
  select n, (select array_agg((c.center[d] + (random() - 0.5) * 0.6)::real order by d) from generate_series(1, {width}) d)
         as vector
  from generate_series(0, {size} - 1) n join centers c on c.t = 1 + n % 60;
with conversation as (
  insert into memory.conversations (user_id, thread_id, chunk_count, next_sequence, indexed_through)
  select '{user}', 't', {size}, {size}, {size} - 1 returning user_id, id),
chunk as (
  insert into memory.working_memory_chunks (user_id, conversation_id, place, part, id, from_sequence, to_sequence,
    message_ids, stretch, type, role, said_at, content, characters, tokens, lexemes, terms, importance)
  select user_id, id, n, 1, gen_random_uuid(), n, n, array['m' || n], 0,
         case when n % 100 = 0 then 'fact' else 'dialogue' end, 'user', now(), 'chunk ' || n, length('chunk ' || n), 3, 0, 0, 0.5
  from conversation, generate_series(0, {size} - 1) n)
insert into memory.chunk_embeddings (user_id, conversation_id, place, part, model, dimensions, embedding)
select user_id, id, d.n, 1, 'drawn', {width}, extensions.l2_normalize(d.vector::extensions.halfvec)
from conversation, drawn d;
drop table drawn; drop table centers;
"""


SERVERS: dict[str, Callable[[], Cluster]] = {
    "default": Cluster,
    "postgres 16": lambda: Cluster(packaged(16)),
    "pgvector 0.7": lambda: Cluster(OLDER_PGVECTOR),
}


@pytest.fixture(
    scope="module",
    params=["default", "pgvector 0.7", pytest.param("postgres 16", marks=pytest.mark.slow)],
)
def filled(request: pytest.FixtureRequest, kept_sessions: Sessions) -> Iterator[tuple[Cluster, str]]:
    """Four tenants of very different sizes, with the index."""
    with SERVERS[request.param]() as cluster:
        name = cluster.create_database()
        migrate(cluster.conn_string(name))
        for user, size in TENANTS.items():
            cluster.execute(FILL.format(user=user, size=size, width=WIDTH), database=name)
        migrate(cluster.conn_string(name), vector_index=WIDTH)
        cluster.execute("analyze", database=name)
        with kept_sessions.of(cluster.port, name):
            yield cluster, name


def questions(connection: psycopg.Connection, user: str, size: int) -> list[list[float]]:
    """Points near those that are stored."""
    source = random.Random(7)
    made = []
    for _ in range(size):
        row = connection.execute(
            "select embedding::text from memory.chunk_embeddings where user_id = %s and place = %s",
            [user, source.randrange(TENANTS[user])],
        ).fetchone()
        assert row is not None
        made.append([each + source.gauss(0, 0.05) for each in json.loads(row[0])])
    return made


def brute_force(connection: psycopg.Connection, user: str, vector: list[float], more: str = "") -> list[int]:
    """The nearest, of every row: the index is of another type."""
    rows = connection.execute(
        "select e.place from memory.chunk_embeddings e join memory.working_memory_chunks k"
        f" using (user_id, conversation_id, place, part) where e.user_id = %s {more}"
        " order by e.embedding::extensions.vector operator(extensions.<#>) %s::extensions.vector limit 10".encode(),
        [user, json.dumps(vector)],
    ).fetchall()
    return [row[0] for row in rows]


def recalled(conn_string: str, user: str, vector: list[float], **asked: Any) -> tuple[list[int], bool]:
    claims = {"sub": user, "role": "authenticated"}
    embedder = EmbeddingModel(ScriptedEmbedder(lambda texts: [vector for _ in texts], "drawn"))
    with SupabaseMemory.from_conn_string(conn_string, embeddings=embedder).for_token(claims) as memory:
        found = memory.recall("any question", weights=MEANING, **asked)
    return [each.place for each in found.chunks], found.approximate


@pytest.mark.parametrize("user", list(TENANTS))
def test_every_tenant_finds_its_nearest(filled: tuple[Cluster, str], user: str) -> None:
    cluster, name = filled
    through = exact = total = 0
    with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
        for vector in questions(connection, user, 8):
            best = set(brute_force(connection, user, vector))
            places, approximate = recalled(cluster.conn_string(name), user, vector, exact_below=1_000)
            assert approximate == (TENANTS[user] > 1_000)
            assert len(places) == 10
            through += len(best & set(places))
            places, approximate = recalled(cluster.conn_string(name), user, vector, exact_below=100_000)
            assert not approximate
            exact += len(best & set(places))
            total += len(best)
    assert exact / total >= 0.99
    assert through / total >= 0.95


def test_a_filter_leaves_no_fewer_rows_than_there_are(filled: tuple[Cluster, str]) -> None:
    cluster, name = filled
    with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
        for user in ("giant", "large", "small"):
            [vector] = questions(connection, user, 1)
            best = brute_force(connection, user, vector, "and k.type = 'fact'")
            places, _ = recalled(cluster.conn_string(name), user, vector, exact_below=1_000, types=["fact"])
            assert len(places) == 10
            assert len(set(best) & set(places)) >= 9
            facts = TENANTS[user] // 100
            places, _ = recalled(cluster.conn_string(name), user, vector, exact_below=1_000, types=["fact"], limit=1000)
            assert len(places) == facts


@pytest.mark.parametrize("role", ["postgres", "authenticated"])
def test_the_statement_uses_the_index(filled: tuple[Cluster, str], role: str) -> None:
    """As the server's role and as a user under row level security, planned for its arguments."""
    cluster, name = filled
    with psycopg.connect(cluster.conn_string(name)) as connection:
        [vector] = questions(connection, "giant", 1)
        row = connection.execute(
            "select memory_private.nearest_sql(true, %s), c.id from memory.conversations c where c.user_id = 'giant'",
            [WIDTH],
        ).fetchone()
        assert row is not None
        statement, conversation = row
        connection.execute("select set_config('request.jwt.claims', '{\"sub\": \"giant\"}', true)")
        connection.execute(f"set local role {role}".encode())
        connection.execute("set local plan_cache_mode = force_custom_plan")
        connection.execute("set local enable_nestloop = off")
        types = (
            "text, uuid[], text[], extensions.halfvec, text, bigint, timestamptz, timestamptz, text[], float8, uuid,"
            " int8multirange, integer"
        )
        connection.execute(f"prepare near ({types}) as {statement}".encode())
        given = (
            f"'giant', array['{conversation}']::uuid[], '{{}}', '{json.dumps(vector)}', 'drawn', 12000,"
            " null, null, null, null, null, null, 100"
        )
        plan = "\n".join(
            row[0] for row in connection.execute(f"explain (costs off) execute near ({given})".encode()).fetchall()
        )
    assert f"chunk_embeddings_hnsw_{WIDTH}" in plan


# --- How it is made


def test_it_is_made_on_wish_only_and_once(cluster: Cluster) -> None:
    conn_string = cluster.conn_string(cluster.create_database())
    there = "select to_regclass('memory.chunk_embeddings_hnsw_384') is not null"
    with psycopg.connect(conn_string, autocommit=True) as connection:
        for vector_index, is_there in ((None, False), (384, True), (384, True), (None, True)):
            migrate(conn_string, vector_index=vector_index)
            assert connection.execute(there).fetchone() == (is_there,)


def test_it_is_made_for_each_width_that_is_named(cluster: Cluster) -> None:
    conn_string = cluster.conn_string(cluster.create_database())
    migrate(conn_string, vector_index=4_000)
    migrate(conn_string, vector_index=1)
    with psycopg.connect(conn_string) as connection:
        rows = connection.execute(
            "select indexname from pg_indexes where indexname like '%hnsw%' order by 1"
        ).fetchall()
    assert rows == [("chunk_embeddings_hnsw_1",), ("chunk_embeddings_hnsw_4000",)]
    for width in (0, -1, 4_001):
        with pytest.raises(ConfigurationError, match=f"1 to 4000 dimensions, not {width}"):
            migrate(conn_string, vector_index=width)
    assert "using hnsw" not in script.text()


def test_the_command_line_makes_it(cluster: Cluster) -> None:
    run = CliRunner().invoke
    conn_string = cluster.conn_string(cluster.create_database())
    migrated = run(commands, ["migrate", "--database-url", conn_string, "--vector-index", "384"])
    assert migrated.exit_code == 0
    with psycopg.connect(conn_string) as connection:
        assert connection.execute("select to_regclass('memory.chunk_embeddings_hnsw_384')").fetchone() != (None,)
    assert "halfvec(1536)" in run(commands, ["sql", "--vector-index", "1536"]).output
    assert "using hnsw" not in run(commands, ["sql"]).output
    wide = run(commands, ["sql", "--vector-index", "8000"])
    assert wide.exit_code == 1
    assert "1 to 4000 dimensions, not 8000" in wide.output


def test_it_comes_later_as_a_migration_of_its_own(tmp_path: Path) -> None:
    assert not any("vector_index" in path.name for path in files.write(tmp_path))
    for width in (384, 768):
        [later] = files.write(tmp_path, vector_index=width)
        assert later.name.endswith(f"_langchain_supabase_memory_vector_index_{width}.sql")
        assert f"chunk_embeddings_hnsw_{width}" in later.read_text()
        assert files.write(tmp_path, vector_index=width) == []
