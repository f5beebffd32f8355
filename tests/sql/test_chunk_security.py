"""Only their owner can access chunks, their words and their vectors: by every verb, by SQL, for every role."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.errors import PermissionDeniedError
from langchain_supabase_memory.values import IndexResult, Receipt
from tests.conftest import Caller
from tests.embedders import WordEmbedder
from tests.services.data_api import token
from tests.services.postgres import Cluster

pytestmark = pytest.mark.both_colors("rights are checked by each way in")

TABLES = ("working_memory_chunks", "chunk_postings", "chunk_embeddings")


async def test_every_verb_is_blind_to_others(caller: Caller, user_id: str) -> None:
    owner = SupabaseMemory(caller.service._services.transport, user_id=user_id, embeddings=WordEmbedder())
    await caller(owner.conversation("t").append, [HumanMessage("the canary of mine", id="m")])
    await caller(owner.conversation("t").index)
    await caller(owner.conversation("t").append, [HumanMessage("another one", id="n")])
    stranger = caller.as_token(token(user_id=f"{user_id}-stranger"))
    stranger._services.embeddings = owner._services.embeddings
    for named in (None, user_id):
        one = stranger._for(named).conversation("t")
        assert await caller(one.index) == IndexResult(-1, 0)
        assert await caller(stranger._for(named).work.index_due) == {}
        assert await caller(one.chunks.list) == []
        assert await caller(one.chunks.reembed, drop=True) == 0
        for answer in (
            caller(stranger._for(named).recall, "canary"), caller(stranger._for(named).recall, "canary", exact_below=0),
            caller(one.recall, "canary"), caller(one.recall, "canary", neighbors=5),
        ):  # fmt: skip
            found = await answer
            assert (found.chunks, found.searched) == ([], 0)
        assert await caller(stranger._for(named).forget_expired) == Receipt()
    anonymous = caller.as_token(token("anon", user_id))
    unreachable = anonymous.for_user(user_id).conversation("t")
    for verb in (unreachable.index, unreachable.chunks.list):
        with pytest.raises(PermissionDeniedError):
            await caller(verb)
    with pytest.raises(PermissionDeniedError):
        await caller(unreachable.recall, "canary")
    with pytest.raises(PermissionDeniedError):
        await caller(anonymous.for_user(user_id).recall, "canary")
    theirs = caller.as_token(token(user_id=user_id))
    theirs._services.embeddings = owner._services.embeddings
    assert [each.content for each in (await caller(theirs.recall, "canary")).chunks] == ["the canary of mine"]
    assert await caller(theirs.conversation("t").index) == IndexResult(1, 1)


@pytest.fixture(scope="module", params=["supabase", "supabase with legacy grants", "plain postgres"])
def place(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[psycopg.Connection]:
    """A connection of the role that migrated, to a database in which the owner has a chunk."""
    plain = request.param == "plain postgres"
    name = cluster.create_database(supabase=not plain, legacy_grants="legacy" in request.param)
    migrator = cluster.conn_string(name, "supabase_admin" if plain else "postgres")
    migrate(migrator)
    with SupabaseMemory.from_conn_string(migrator, user_id="owner", embeddings=WordEmbedder()) as memory:
        memory.conversation("t").append([HumanMessage("the canary", id="m")])
        memory.conversation("t").index()
    with psycopg.connect(migrator, autocommit=True) as connection:
        yield connection


def attempt(connection: psycopg.Connection, statement: str, user: str, role: str = "authenticated") -> str:
    """What a statement of a user comes to: the rows it reaches, or an SQLSTATE. Nothing of it stays."""
    try:
        with connection.transaction(force_rollback=True):
            claims = json.dumps({"sub": user, "role": role})
            connection.execute(
                "select set_config('request.jwt.claims', %s, true), set_config('role', %s, true)", [claims, role]
            )
            return f"{connection.execute(statement.encode()).rowcount} rows"
    except psycopg.Error as error:
        return str(error.sqlstate)


COPIES = {
    "working_memory_chunks": "place, part, id, from_sequence, to_sequence, message_ids, stretch, type, role, said_at, content, characters,"
    " tokens, lexemes, terms, importance) select {user}, {conversation}, 7, 1, gen_random_uuid(), 0, 0, '{{m}}', 0, 'fact',"
    " 'user', now(), 'forged', 6, 2, 1, 0, 1",
    "chunk_postings": "lexeme, first, postings) select {user}, {conversation}, 'forged', 7, '{{32769}}'",
    "chunk_embeddings": "place, part, model, dimensions, embedding) select {user}, {conversation}, 7, 1, 'words', 1, '[1]'",
}


@pytest.mark.parametrize("table", TABLES)
def test_by_sql(place: psycopg.Connection, table: str) -> None:
    row = place.execute("select id from memory.conversations where user_id = 'owner'").fetchone()
    assert row is not None
    statements = {
        "look": f"select * from memory.{table} where user_id = 'owner'",
        "change": f"update memory.{table} set conversation_id = gen_random_uuid() where user_id = 'owner'",
        "take": f"update memory.{table} set user_id = 'stranger' where user_id = 'owner'",
        "delete": f"delete from memory.{table} where user_id = 'owner'",
    }
    for name, statement in statements.items():
        assert attempt(place, statement, "stranger") == "0 rows", name
        assert attempt(place, statement, "owner", "anon") == "42501", name
    assert attempt(place, statements["look"], "owner") != "0 rows"
    assert attempt(place, f"truncate memory.{table} cascade", "owner") == "42501"
    forged = f"insert into memory.{table} (user_id, conversation_id, " + COPIES[table]
    conversation = f"'{row[0]}'::uuid"
    assert attempt(place, forged.format(user="'owner'", conversation=conversation), "stranger") == "42501"
    assert attempt(place, forged.format(user="'stranger'", conversation=conversation), "stranger") == "23503"
    assert attempt(place, forged.format(user="'owner'", conversation=conversation), "owner") == "1 rows"


def test_the_private_functions_reach_nothing_either(place: psycopg.Connection) -> None:
    row = place.execute("select id from memory.conversations where user_id = 'owner'").fetchone()
    assert row is not None
    own = f"'owner', '{row[0]}'"
    statements = [
        f"select where memory_private.delete_chunks({own}, array[0]) > 0",
        f"select where memory_private.invalidate_chunks({own}, 0, 9) > 0",
        f"select where memory_private.expire_chunks({own}) > 0",
        f"select * from memory_private.surrounding_chunks({own}, 0, 1, 5, true)",
        f"select where memory_private.recall('owner', array['{row[0]}'::uuid], '{{\"query\": \"canary\"}}') #>> '{{chunks,0}}' <> ''",
        f"select where memory_commit_chunks('t', '{row[0]}', 0, 0, 0, '[]', '[0]', p_user_id => 'owner') ->> 'committed' = 'true'",
    ]
    for statement in statements:
        assert attempt(place, statement, "stranger") == "0 rows", statement
        assert attempt(place, statement, "owner", "anon") == "42501", statement
    assert attempt(place, statements[3], "owner") == "1 rows"
    assert attempt(place, statements[4], "owner") == "1 rows"


def test_the_attempts_notice_what_comes_through(place: psycopg.Connection) -> None:
    for table in TABLES:
        with place.transaction(force_rollback=True):
            place.execute(f"alter table memory.{table} disable row level security".encode())
            assert attempt(place, f"select * from memory.{table} where user_id = 'owner'", "stranger") != "0 rows"
