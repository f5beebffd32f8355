"""Access to store items: owners, other users, anonymous clients and the server, over every transport and by SQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import jwt
import psycopg
import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

from langchain_supabase_memory import SupabaseMemory, SupabaseStore
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import AccessError, InvalidInputError, PermissionDeniedError
from tests.conftest import Caller
from tests.each_case import each_case
from tests.long_term.test_store import Words
from tests.services.data_api import token
from tests.services.postgres import Cluster

pytestmark = pytest.mark.both_colors("rights are checked by each way in")

PUTS = [PutOp(("a", "b"), "k", {"text": "zircon"}, ttl=1), PutOp(("a",), "l", {"text": "zircon"})]
READS = [GetOp(("a", "b"), "k"), SearchOp(()), SearchOp(("a",), None, 10, 0, "zircon"), ListNamespacesOp()]
NOTHING: list[Any] = [None, [], [], []]


def of(caller: Caller, bearer: str, user_id: str | None = None) -> SupabaseStore:
    """The store of the bearer of a token, who may name somebody."""
    return SupabaseStore(caller.as_token(token(user_id=bearer))._for(user_id), index={"embed": Words()})


async def everything(caller: Caller, user_id: str) -> Any:
    """What the server sees of a user's items."""
    found = await caller(SupabaseStore(caller.service.for_user(user_id)).search, (), limit=100)
    return sorted((item.namespace, item.key, item.value["text"], item.updated_at) for item in found)


@pytest.mark.parametrize("named", [False, True], ids=["by the token", "and named"])
async def test_an_owner_does_everything_with_what_is_theirs(caller: Caller, user_id: str, named: bool) -> None:
    store = of(caller, user_id, user_id if named else None)
    await caller(store.batch, PUTS)
    item, all_of_them, found, namespaces = await caller(store.batch, READS)
    assert item.value == {"text": "zircon"}
    assert len(all_of_them) == len(found) == 2
    assert all(each.score is not None for each in found)
    assert namespaces == [("a",), ("a", "b")]
    other = SupabaseStore(caller.as_token(token(user_id=user_id)), index={"embed": Words("other", 50)})
    assert await caller(other.reindex) == 2
    assert await caller(store.sweep) == 0
    await caller(store.delete, ("a", "b"), "k")
    assert [row[1] for row in await everything(caller, user_id)] == ["l"]


async def test_a_stranger_who_knows_every_name_reaches_nothing(caller: Caller, user_id: str, conn_string: str) -> None:
    await caller(of(caller, user_id).batch, PUTS)
    before = await everything(caller, user_id)
    assert len(before) == 2
    stranger = f"{user_id}-stranger"
    posing = of(caller, stranger, user_id)
    for store in (of(caller, stranger), posing):
        assert await caller(store.batch, READS) == NOTHING
        await caller(store.delete, ("a", "b"), "k")
    for put in PUTS:
        with pytest.raises(PermissionDeniedError) as caught:
            await caller(posing.batch, [put])
        assert caught.value.code == "42501"
        assert "zircon" not in str(caught.value)
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            "update memory.store_items set expires_at = clock_timestamp() where user_id = %s and key = 'k'", [user_id]
        )
    other = SupabaseStore(
        caller.as_token(token(user_id=stranger)).for_user(user_id), index={"embed": Words("other", 50)}
    )
    assert await caller(posing.sweep) == 0
    assert await caller(other.reindex) == 0
    forged = {"user_id": user_id, "namespace": ["a"], "key": "l", "vectors": [{"field": "$", "vector": [1]}]}
    memory = caller.as_token(token(user_id=stranger))
    updated_at = next(row[3] for row in before if row[1] == "l").isoformat()
    call = Call(
        "memory_store_reindex",
        {"p_model": "words", "p_dimensions": 1, "p_items": [{**forged, "updated_at": updated_at}]},
    )
    page = (
        await memory._services.transport.aperform(call)
        if caller.color == "async"
        else memory._services.transport.perform(call)
    )
    assert page == {"items": [], "after": None, "indexed": 0}
    # The same names of their own are other items.
    await caller(of(caller, stranger).put, ("a",), "l", {"text": "mine"})
    assert [row[2] for row in await everything(caller, stranger)] == ["mine"]
    assert await everything(caller, user_id) == [row for row in before if row[1] == "l"]
    item = await caller(of(caller, user_id).get, ("a",), "l")
    assert item.value == {"text": "zircon"}


async def test_nobody_and_forgers_are_refused(caller: Caller, user_id: str) -> None:
    await caller(of(caller, user_id).batch, PUTS)
    for role, subject in (("anon", None), ("anon", user_id)):
        store = SupabaseStore(caller.as_token(token(role, subject)).for_user(user_id))
        for verb, arguments in ((store.batch, [READS]), (store.batch, [PUTS]), (store.sweep, [])):
            with pytest.raises(AccessError):
                await caller(verb, *arguments)
    if caller.kind == "direct":
        with pytest.raises(AccessError, match="name no user"):
            caller.as_token(token())
    else:
        nobody = SupabaseStore(caller.as_token(token()))
        with pytest.raises(InvalidInputError, match="No user id"):
            await caller(nobody.batch, READS)
        assert await caller(nobody.sweep) == 0
        forged = jwt.encode({"role": "authenticated", "sub": user_id}, "another secret, long enough for hs256", "HS256")
        with pytest.raises(AccessError):
            await caller(SupabaseStore(caller.as_token(forged)).batch, READS)
    assert len(await everything(caller, user_id)) == 2


async def test_a_server_must_say_whose_items_it_means(caller: Caller, user_id: str) -> None:
    store = SupabaseStore(caller.service)
    for ops in (READS, PUTS):
        with pytest.raises(InvalidInputError, match="No user is named.*memory.for_user"):
            await caller(store.batch, ops)
    with pytest.raises(InvalidInputError, match="user_id"):
        SupabaseStore(caller.service.for_user(""))
    with pytest.raises(InvalidInputError, match="1 to 512 bytes of UTF-8, not 800"):
        SupabaseStore(caller.service.for_user("ж" * 400))
    mine, theirs = (SupabaseStore(caller.service.for_user(f"{user_id}-{n}")) for n in range(2))
    await caller(mine.put, ("a",), "k", {"text": "mine"})
    assert await caller(theirs.get, ("a",), "k") is None


@pytest.mark.parametrize("caller", ["data_api-async", "direct-sync"], indirect=True)
async def test_a_server_embeds_everybodys_items(caller: Caller, user_id: str, conn_string: str) -> None:
    users = [f"{user_id}-{letter}" for letter in "ab"]
    for user in users:
        await caller(SupabaseStore(caller.service.for_user(user)).batch, PUTS)
    words = Words(f"model of {user_id}")
    everybody = SupabaseStore(caller.service, index={"embed": words, "fields": ["text"]})
    assert await caller(SupabaseStore(caller.service.for_user(users[0]), index={"embed": words}).reindex) == 2
    assert await caller(everybody.reindex) >= 2
    with psycopg.connect(conn_string) as connection:
        rows = connection.execute(
            "select user_id, key from memory.store_vectors where user_id = any (%s) and model = %s order by 1, 2",
            [users, words.model],
        ).fetchall()
    assert rows == [(user, key) for user in users for key in ("k", "l")]


async def test_what_was_stored_is_in_no_error_and_no_name(caller: Caller, user_id: str) -> None:
    store = SupabaseStore(caller.service.for_user(user_id))
    assert "secret" not in repr(store)
    attempts: tuple[Callable[[], Any], ...] = (
        lambda: caller(store.put, ("secret\0",), "k", {}),
        lambda: caller(store.search, ("a",), filter={"secret": {"$secret": "secret"}}),
        lambda: caller(store.search, ("a",), filter={"secret": {"$gt": ["secret"]}}),
    )
    for attempt in attempts:
        with pytest.raises(InvalidInputError) as caught:
            await attempt()
        assert "secret" not in f"{caught.value} {caught.value!r} {caught.value.__cause__} {caught.value.__context__}"


OWNER, STRANGER = "the-owner", "a-stranger"
ATTEMPTS = {
    "look": "select * from memory.store_items",
    "look at vectors": "select * from memory.store_vectors",
    "lock": "select * from memory.store_items for update",
    "change": "update memory.store_items set value = '{}' where user_id <> ''",
    "take": "update memory.store_items set user_id = 'a-stranger' where user_id <> ''",
    "delete": "delete from memory.store_items where user_id <> ''",
    "delete vectors": "delete from memory.store_vectors where user_id <> ''",
    "empty": "truncate memory.store_items cascade",
    "write in their name": "insert into memory.store_items (user_id, namespace, key, value) values ('the-owner', '{a}', 'x', '{}')",
    "overwrite": (
        "insert into memory.store_items (user_id, namespace, key, value) values ('the-owner', '{a,b}', 'k', '{}')"
        " on conflict (user_id, path, key) do update set value = '{}'"
    ),
    "put a vector on their item": (
        "insert into memory.store_vectors (user_id, path, key, model, dimensions, number, field, embedding)"
        " values ('the-owner', e'a\\x01b\\x01', 'k', 'm', 1, 1, '$', '[1]')"
    ),
    "put a vector of mine on their item": (
        "insert into memory.store_vectors (user_id, path, key, model, dimensions, number, field, embedding)"
        " values ('a-stranger', e'a\\x01b\\x01', 'k', 'm', 1, 1, '$', '[1]')"
    ),
    "read by a private function": 'select 1 from memory_private.store_get(\'the-owner\', \'{"namespace": ["a", "b"], "key": "k"}\', now()) t where t is not null',
    "put by a private function": 'select memory_private.store_put(\'the-owner\', \'{"op": "put", "namespace": ["a"], "key": "k", "value": {}}\', now())',
}
FOR_A_STRANGER = {
    **dict.fromkeys(ATTEMPTS, "0 rows"),
    "empty": "42501",
    "write in their name": "42501",
    "overwrite": "42501",
    "put a vector on their item": "42501",
    "put a vector of mine on their item": "23503",
    "put by a private function": "42501",
}
FOR_THE_OWNER = {"look": "1 rows", "look at vectors": "1 rows", "change": "1 rows", "take": "42501", "empty": "42501"}


@each_case(
    ("role", "subject", "expected"),
    [
        ("authenticated", STRANGER, FOR_A_STRANGER),
        ("authenticated", "", {**FOR_A_STRANGER, "put a vector of mine on their item": "42501"}),
        ("anon", OWNER, dict.fromkeys(ATTEMPTS, "42501")),
        ("authenticated", OWNER, FOR_THE_OWNER),
    ],
    ids=["stranger", "nobody", "anon", "the owner"],
)
def test_by_sql_everybody_reaches_their_own_items_alone(
    cluster: Cluster, database: str, role: str, subject: str, expected: dict[str, str]
) -> None:
    with SupabaseMemory.from_conn_string(cluster.conn_string(database), user_id=OWNER) as memory:
        SupabaseStore(memory, index={"embed": Words()}).put(("a", "b"), "k", {"text": "zircon"})
    results = {}
    with psycopg.connect(cluster.conn_string(database, "authenticator")) as connection:
        for name in expected:
            try:
                with connection.transaction(force_rollback=True):
                    claims = json.dumps({"sub": subject, "role": role})
                    connection.execute(
                        "select set_config('request.jwt.claims', %s, true), set_config('role', %s, true)",
                        [claims, role],
                    )
                    results[name] = f"{connection.execute(ATTEMPTS[name].encode()).rowcount} rows"
            except psycopg.Error as error:
                results[name] = str(error.sqlstate)
    assert results == expected


# What a call touches


FILL = """
insert into memory.store_items (user_id, namespace, key, value, words)
select u.name, array[n.name, 'f' || k % 10], 'k' || k, json_build_object('n', k), to_tsvector('simple', 'word kiln')
from (values ('u', 3000), ('v', 2000)) as u (name, items),
     (values ('many'), ('manyfold')) as n (name), generate_series(1, u.items) k;
insert into memory.store_items (user_id, namespace, key, value, words)
select 'u', array['few', 'f'], 'k' || k, '{"n": 1}', to_tsvector('simple', 'word') from generate_series(1, 5) k;
insert into memory.store_vectors (user_id, path, key, model, dimensions, number, field, embedding)
select user_id, path, key, 'words', 3, 1, '$', '[1,0,0]' from memory.store_items
"""


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
def crowd(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """Five items of a user beside 6,000 others of theirs and 4,000 of somebody else; a connection as that user."""
    name = cluster.migrated_database()
    for table in ("store_items", "store_vectors"):
        cluster.leave_unvacuumed(name, f"memory.{table}")
    cluster.execute(FILL, database=name)
    if request.param == "analyzed":
        cluster.execute("analyze", database=name)
    with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
        yield connection


def touched(connection: psycopg.Connection, op: dict[str, Any]) -> int:
    """The most rows that an operation touches, in eight calls by the user: plans change after five."""
    counted = (
        "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) from pg_stat_xact_user_tables"
        " where relname in ('store_items', 'store_vectors')"
    )
    most = 0
    for _ in range(8):
        with connection.transaction():
            connection.execute("select set_config('request.jwt.claims', '{\"sub\": \"u\"}', true)")
            before = connection.execute(counted).fetchone()
            connection.execute("set local role authenticated")
            answer = connection.execute("select public.memory_store(%s)", [json.dumps([op])]).fetchone()
            connection.execute("reset role")
            after = connection.execute(counted).fetchone()
        assert answer
        assert before
        assert after
        most = max(most, int(after[0] - before[0]))
    return most


FEW = {"op": "search", "prefix": ["few"], "limit": 10, "offset": 0, "refresh": True}


@pytest.mark.parametrize(
    ("op", "most"),
    [
        ({"op": "get", "namespace": ["many", "f1"], "key": "k1", "refresh": True}, 1),
        ({"op": "get", "namespace": ["many", "f1"], "key": "none", "refresh": True}, 0),
        (FEW, 10),
        ({**FEW, "filter": {"fields": {"n": {"all": [["$eq", 1]]}}}}, 10),
        ({**FEW, "query": "word"}, 10),
        ({**FEW, "query": "word", "model": "words", "vector": [1, 0, 0]}, 30),
        ({**FEW, "prefix": ["few", "f"]}, 10),
        ({**FEW, "prefix": ["few", "g"]}, 0),
        ({"op": "list", "conditions": [{"type": "prefix", "path": ["few", "*"]}], "limit": 10, "offset": 0}, 5),
        ({"op": "put", "namespace": ["few", "f"], "key": "k1", "value": {"n": 1}}, 5),
        ({"op": "delete", "namespace": ["few", "f"], "key": "none"}, 0),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else str(value),
)
def test_a_call_touches_what_it_asks_for_and_no_more(crowd: psycopg.Connection, op: dict[str, Any], most: int) -> None:
    assert touched(crowd, op) <= most


def test_the_count_would_notice_more(crowd: psycopg.Connection) -> None:
    assert touched(crowd, {**FEW, "prefix": ["many"]}) >= 3000
    assert touched(crowd, {**FEW, "prefix": []}) >= 6005
