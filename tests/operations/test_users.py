"""The users who have conversations, for an operator: by their ids, narrowed by a prefix, page by page."""

from __future__ import annotations

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.errors import InvalidInputError
from tests.conftest import Caller
from tests.counting import CountingTransport
from tests.inspector.visiting import Person, Reader, memory_of
from tests.services.postgres import Cluster


async def test_users_are_listed_by_both_doors(caller: Caller, user_id: str) -> None:
    for name, count in (("a", 1), ("b", 12), ("c", 1)):
        for number in range(count):
            conversation = caller.service.for_user(f"{user_id}-{name}").conversation(f"t{number}")
            await caller(conversation.append, [HumanMessage("Which kiln?")])
    page = await caller(caller.service.work.users, prefix=f"{user_id}-")
    assert [each.user_id for each in page.users] == [f"{user_id}-{name}" for name in "abc"]
    first, second, _ = page.users
    assert (first.conversations, first.has_more, first.dead) == (1, False, 0)
    assert (second.conversations, second.has_more) == (10, True)
    assert second.tokens == 10 * first.tokens > 0
    one = await caller(caller.service.work.users, prefix=f"{user_id}-", limit=2)
    assert len(one.users) == 2
    rest = await caller(caller.service.work.users, prefix=f"{user_id}-", limit=2, after=one.after)
    assert [each.user_id for each in rest.users] == [f"{user_id}-c"]
    assert rest.after is None
    assert not (await caller(caller.service.work.users, prefix=f"{user_id}-zzz")).users
    with pytest.raises(InvalidInputError):
        await caller(caller.service.for_user(user_id).work.users)
    for part, names in (("-B", "b"), (user_id.upper(), "abc"), ("%", ""), ("", "abc")):
        some = await caller(caller.service.work.users, prefix=f"{user_id}-", contains=part)
        assert [each.user_id for each in some.users] == [f"{user_id}-{name}" for name in names]
    for wrong in ({"limit": 0}, {"limit": 101}, {"prefix": 7}, {"after": "x" * 513}, {"contains": "x" * 513}):
        with pytest.raises(InvalidInputError):
            await caller(caller.service.work.users, **wrong)


def test_work_that_was_given_up_is_counted(conn_string: str, user_id: str, sql: psycopg.Connection) -> None:
    with memory_of(conn_string, user_id) as memory:
        memory.conversation("t").append([HumanMessage("Which kiln?")])
    sql.execute("update memory_private.work set dead_at = clock_timestamp() where user_id = %s", [user_id])
    with memory_of(conn_string) as server:
        assert [each.dead for each in server.work.users(prefix=user_id).users if each.user_id == user_id] == [1]


@pytest.fixture(scope="module")
def crowded(cluster: Cluster) -> str:
    """A database of 3,000 users, of whom one has 20,000 conversations, and of spaces between them."""
    address = cluster.conn_string(cluster.migrated_database())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "insert into memory.conversations (user_id, thread_id)"
            " select 'user-' || lpad(n::text, 5, '0'), 't' from generate_series(1, 3000) n"
            " union all select 'user-00001', 't' || n from generate_series(1, 20000) n"
            " union all select 'space:' || gen_random_uuid(), 't' from generate_series(1, 600)"
        )
    return address


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_a_page_reads_no_more_of_many_users(crowded: str, is_analyzed: bool) -> None:
    with psycopg.connect(crowded, autocommit=True) as connection:
        if is_analyzed:
            connection.execute("analyze")
        transport = CountingTransport(connection)
        server = SupabaseMemory(transport)
        reads = {}
        for prefix in (None, "user-00001", "user-02", "zzz", "A"):
            server.work.users(prefix=prefix)
            transport.taken()
            page = server.work.users(prefix=prefix)
            reads[prefix] = transport.taken().read
            assert [each.user_id for each in page.users] == sorted(each.user_id for each in page.users)
        assert len(server.work.users().users) == 25
        assert max(reads.values()) <= 400, reads


def test_a_part_of_an_id_is_looked_for_in_steps_of_500_users(crowded: str) -> None:
    with psycopg.connect(crowded, autocommit=True) as connection:
        transport = CountingTransport(connection)
        server = SupabaseMemory(transport)
        page = server.work.users(contains="2999")
        users, calls = page.users, 1
        while page.after is not None:
            transport.taken()
            page = server.work.users(contains="2999", after=page.after)
            assert transport.taken().read <= 1_100
            users, calls = users + page.users, calls + 1
    assert [each.user_id for each in users] == ["user-02999"]
    assert 6 <= calls <= 8


# The inspector's first page of everybody's data


async def test_the_first_page_lists_users_and_narrows(conn_string: str, user_id: str) -> None:
    for name in ("maya", "may", "noor <b>"):
        async with memory_of(conn_string, f"{user_id}-{name}") as memory:
            await memory.conversation("t").aappend([HumanMessage("Which kiln?")])
    async with memory_of(conn_string) as server, Person(server) as person:
        answer = await person.answer("/", prefix=f"{user_id}-")
        page = Reader(answer.text)
        assert "noor <b>" not in answer.text
        assert len(page.all("a", class_="title")) == 3
        narrowed = await person.page("/", prefix=f"{user_id}-may")
        assert len(narrowed.all("a", class_="title")) == 2
        opened = Reader((await person.http.get(str(narrowed.all("a", class_="title")[0]["href"]))).text)
        assert "Conversations" in opened.text
        assert "No user’s id begins so" in (await person.page("/", prefix="' or 1=1 --")).text
        assert "All users, ordered by user" in (await person.page("/", list="conversations")).text
    async with memory_of(conn_string, f"{user_id}-may") as one, Person(one) as person:
        assert "Most recently changed first" in (await person.page("/")).text, "one user has no list of users"
