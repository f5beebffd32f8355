"""pgvector works in any schema: found, recorded, followed when it moves, and optionally named in the script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import SummaryPolicy, SupabaseMemory, SupabaseStore
from langchain_supabase_memory.adapters.schema import files, script
from langchain_supabase_memory.adapters.schema.migrate import ensure, migrate
from langchain_supabase_memory.cli.application import commands
from langchain_supabase_memory.errors import (
    AccessError,
    ConfigurationError,
    SchemaError,
    SchemaOutdatedError,
)
from tests.each_case import each_case
from tests.embedders import WordEmbedder
from tests.examining import findings_by_name, installed
from tests.services.data_api import DataApi, token
from tests.services.postgres import Cluster

TEMPLATE = """
create table documents (id bigserial primary key, content text, metadata jsonb, embedding vector (3));
create function match_documents (query_embedding vector (3), filter jsonb default '{}')
returns table (id bigint, content text, metadata jsonb, similarity float) language plpgsql as $$
#variable_conflict use_column
begin
  return query select id, content, metadata, 1 - (documents.embedding <=> query_embedding) as similarity
  from documents where metadata @> filter order by documents.embedding <=> query_embedding;
end;
$$;
insert into documents (content, metadata, embedding) values ('theirs', '{}', '[1,0,0]');
"""
"""What a project has that was made for LangChain's vector store, in which pgvector was created without a schema."""

PLACES = ["public", "extensions", "My Schema"]


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(commands, arguments)
    return result.exit_code, " ".join(result.output.split())


def move(cluster: Cluster, database: str, vector_schema: str) -> None:
    cluster.execute(f"alter extension vector set schema {vector_schema}", database=database, superuser=True)


def dump(cluster: Cluster, name: str) -> str:
    return cluster.dump(name, "--schema-only", "-n", "memory*", "-n", "public")


@pytest.fixture(scope="module", params=PLACES)
def project(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, str, str, DataApi]]:
    """A migrated project whose pgvector lies somewhere, with what LangChain's template makes where that is public."""
    database = cluster.create_database(vector_schema=request.param)
    if request.param == "public":
        cluster.execute(TEMPLATE, database=database)
    installed = migrate(cluster.conn_string(database), vector_index=24)
    assert installed.vector_schema == request.param
    with DataApi(cluster, database) as api:
        yield cluster, database, request.param, api


def use(memory: SupabaseMemory, user_id: str) -> None:
    """All that works with vectors."""
    conversation = memory.conversation("t")
    conversation.append([HumanMessage("the kiln is hot", id="k"), AIMessage("noted", id="n")])
    assert conversation.index().chunks == 2
    for exact_below in (10_000, 0):  # the second through the index
        found = memory.recall("hot kiln", limit=1, exact_below=exact_below)
        assert (found.by_meaning, [each.content for each in found.chunks]) == (True, ["the kiln is hot"])
        assert found.approximate == (exact_below == 0)
    assert conversation.chunks.reembed() == 0
    result = conversation.summaries.make(model=lambda _: "A hot kiln.", policy=SummaryPolicy(keep_messages=1))
    assert result.failed is None
    assert conversation.summaries.index() == 1
    (summary,) = memory.recall_summaries("hot kiln")
    assert summary.similarity is not None
    store = SupabaseStore(memory.for_user(user_id), index={"embed": WordEmbedder(24), "fields": ["text"]})
    store.put(("a",), "k", {"text": "the kiln is hot"})
    (item,) = store.search(("a",), query="hot kiln")
    assert item.score is not None
    conversation.forget_message("k")
    conversation.append([HumanMessage("an edit", id="n")])
    assert conversation.index().chunks >= 0


@pytest.mark.parametrize("who", ["service_role", "authenticated"])
@pytest.mark.parametrize("kind", ["data_api", "direct"])
def test_everything_with_vectors_works_by_both_doors(
    project: tuple[Cluster, str, str, DataApi], kind: str, who: str
) -> None:
    cluster, database, vector_schema, api = project
    user_id = f"{kind}-{who}"
    embedder = WordEmbedder(24)
    if kind == "data_api":
        bearer = token("service_role") if who == "service_role" else token(user_id=user_id)
        memory = SupabaseMemory.from_url(api.url, bearer, rest_path="", user_id=user_id, embeddings=embedder)
    else:
        claims = None if who == "service_role" else {"sub": user_id, "role": who}
        memory = SupabaseMemory.from_conn_string(cluster.conn_string(database), embeddings=embedder)
        memory = memory.for_user(user_id) if claims is None else memory.for_token(claims)
    with memory:
        use(memory, user_id)
        assert installed(memory) == script.current(vector_schema)
    with psycopg.connect(cluster.conn_string(database)) as connection:
        row = connection.execute("select vector_schema from memory_private.installation").fetchone()
        assert row == (vector_schema,)
        if vector_schema == "public":
            assert connection.execute("select content from match_documents('[1,0,0]')").fetchone() == ("theirs",)


@each_case("again", [migrate, ensure])
def test_where_it_has_moved_the_functions_follow(cluster: Cluster, again: Callable[[str], object]) -> None:
    name = cluster.migrated_database()
    address = cluster.conn_string(name)
    with SupabaseMemory.from_conn_string(address, user_id="u", embeddings=WordEmbedder(24)) as memory:
        use(memory, "u")
        memory.conversation("kept").append([HumanMessage("kept")])
        memory.conversation("kept").index()
    move(cluster, name, "public")
    with SupabaseMemory.from_conn_string(address, user_id="u", embeddings=WordEmbedder(24)) as memory:
        pgvector = findings_by_name(memory)["pgvector"]
        assert (pgvector.state, "has moved" in pgvector.text) == ("red", True)
        assert "supabase-memory migrate" in str(pgvector.next_action)
        with pytest.raises(SchemaOutdatedError, match=r"supabase-memory migrate"):
            memory.recall("kept")
    code, output = run("doctor", "--database-url", address)
    assert (code, "schema public. It has moved" in output) == (1, True)
    again(address)
    with SupabaseMemory.from_conn_string(address, user_id="u", embeddings=WordEmbedder(24)) as memory:
        assert installed(memory) == script.current("public")
        assert [each.content for each in memory.recall("kept", limit=1).chunks] == ["kept"]
        memory.conversation("t").forget()
        use(memory, "u")
    assert dump(cluster, name) == dump(cluster, cluster.migrated_database(vector_schema="public"))


@pytest.mark.parametrize("vector_schema", PLACES)
def test_the_script_names_it(cluster: Cluster, tmp_path: Path, vector_schema: str) -> None:
    """Pasted, pushed as files, and migrated, it is the same; created where it is not there."""
    migrated = cluster.migrated_database(vector_schema=vector_schema)
    pasted, pushed = cluster.create_database(vector_schema=vector_schema), cluster.create_database(vector_schema=None)
    code, _ = run("sql", "--vector-schema", vector_schema)
    assert code == 0
    text = CliRunner().invoke(commands, ["sql", "--vector-schema", vector_schema]).output
    cluster.execute(text, database=pasted)
    cluster.execute(text, database=pasted)
    run("sql", "--vector-schema", vector_schema, "--output", str(tmp_path))
    for path in sorted(tmp_path.iterdir()):
        cluster.execute(f"set role postgres;{path.read_text()}" if "_vector_" not in path.name else path.read_text(),
                        database=pushed, superuser=True)  # fmt: skip
    assert dump(cluster, pasted) == dump(cluster, pushed) == dump(cluster, migrated)
    with SupabaseMemory.from_conn_string(cluster.conn_string(pasted)) as memory:
        assert installed(memory) == script.current(vector_schema)


def test_a_script_for_the_wrong_place_names_the_right_one(cluster: Cluster, tmp_path: Path) -> None:
    for there, named in (("public", "public"), ("My Schema", '"My Schema"')):
        name = cluster.create_database(vector_schema=there)
        for text in (script.text(), files.write(tmp_path / there)[0].read_text()):
            with pytest.raises(psycopg.Error) as caught:
                cluster.execute(text, database=name)
            assert f"pgvector lies in the schema {named}" in str(caught.value.diag.message_primary)
            assert f"supabase-memory sql --vector-schema {named} " in str(caught.value.diag.message_hint)


@each_case("name", ['a"b', "a'b", "a$b", "100%", "a{{code}}", "a\nb", "", "é" * 32])
def test_a_name_that_would_break_the_functions_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be used in a schema that is called"):
        script.text(name)


def test_a_name_in_another_script_is_a_name(cluster: Cluster) -> None:
    address = cluster.conn_string(cluster.create_database(vector_schema="Überall, order by"))
    migrate(address)
    with SupabaseMemory.from_conn_string(address, user_id="u", embeddings=WordEmbedder(24)) as memory:
        use(memory, "u")


def test_a_plain_postgres_says_what_a_superuser_runs(cluster: Cluster) -> None:
    """And what it says is enough."""
    cluster.create_database()  # the roles of the API are there
    name = cluster.create_database(supabase=False, vector_schema=None)
    address = cluster.conn_string(name)
    with pytest.raises(
        AccessError, match=r"pgvector is not in this database.*as a superuser: create extension vector$"
    ):
        migrate(address)
    cluster.execute("create extension vector", database=name, superuser=True)
    assert migrate(address).vector_schema == "public"
    with SupabaseMemory.from_conn_string(address, user_id="u", embeddings=WordEmbedder(24)) as memory:
        use(memory, "u")


def test_a_superuser_of_a_plain_postgres_runs_nothing_before(cluster: Cluster) -> None:
    name = cluster.create_database(supabase=False, vector_schema=None)
    assert migrate(cluster.conn_string(name, "supabase_admin")).vector_schema == "extensions"


def test_an_extension_that_is_too_old_is_said(cluster: Cluster) -> None:
    name = cluster.create_database()
    cluster.execute(
        "alter extension vector drop type extensions.halfvec; alter type extensions.halfvec rename to not_yet",
        database=name,
        superuser=True,
    )
    with pytest.raises(SchemaError, match=r"older than 0\.7.*alter extension vector update"):
        migrate(cluster.conn_string(name))


def test_vectors_of_any_width_lie_side_by_side_and_one_model_has_one(cluster: Cluster, conn_string: str) -> None:
    with psycopg.connect(conn_string) as connection:
        for width in (3, 1536):
            with SupabaseMemory.from_conn_string(
                conn_string, user_id=f"width {width}", embeddings=WordEmbedder(width)
            ) as memory:
                memory.conversation("t").append([HumanMessage("kiln")])
                assert memory.conversation("t").index().failed is None
                assert memory.recall("kiln").by_meaning
        rows = connection.execute(
            "select dimensions from memory.chunk_embeddings where user_id like 'width %%' order by 1"
        ).fetchall()
    assert rows == [(3,), (1536,)]
    with SupabaseMemory.from_conn_string(conn_string, user_id="width 3", embeddings=WordEmbedder(4)) as memory:
        with pytest.raises(SchemaError, match=r"3 dimensions, not 4.*Name the embedding model otherwise"):
            memory.recall("kiln")
        memory.conversation("t").append([HumanMessage("oven")])
        with pytest.raises(SchemaError, match=r"3 dimensions, not 4"):
            memory.conversation("t").index()
