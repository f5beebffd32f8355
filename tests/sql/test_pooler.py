"""Setup and use through a pooler: a session or transaction is returned in its original state."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Literal

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.schema import script
from langchain_supabase_memory.adapters.schema.migrate import ensure, migrate
from langchain_supabase_memory.adapters.transports.postgres import _sql
from langchain_supabase_memory.errors import AuthenticationError, ConfigurationError, connection_failed
from langchain_supabase_memory.settings import NO_RETRY
from langchain_supabase_memory.transports import PostgresTransport
from tests.each_case import each_case
from tests.embedders import WordEmbedder
from tests.examining import installed
from tests.services.pooler import Pooler
from tests.services.postgres import Cluster

Mode = Literal["session", "transaction"]

LEFT_BEHIND = """
select 'setting', name || '=' || setting from pg_settings where source = 'session' and name <> 'search_path'
union all select 'lock', locktype from pg_locks where locktype = 'advisory'
union all select 'statement', name from pg_prepared_statements
union all select 'temporary', relname from pg_class where relpersistence = 't'
"""


@pytest.fixture(params=["session", "transaction"])
def mode(request: pytest.FixtureRequest) -> Mode:
    found: Mode = request.param
    return found


def left_behind(address: str) -> list[tuple[str, str]]:
    """What the pooler's one connection still has of who had it before; a client of psycopg sets nothing by itself."""
    with psycopg.connect(address, prepare_threshold=None) as connection:
        return connection.execute(LEFT_BEHIND.encode()).fetchall()


def test_a_database_is_set_up(cluster: Cluster, mode: Mode) -> None:
    """All over one connection of the server's."""
    name = cluster.create_database()
    with Pooler(cluster, name, mode) as pooler:
        address = pooler.conn_string
        assert migrate(address) == script.current()
        assert migrate(address, vector_index=24) == script.current()
        ensure(address)
        assert left_behind(address) == []


def test_a_database_is_used_by_a_server_and_two_users(cluster: Cluster, database: str, mode: Mode) -> None:
    with Pooler(cluster, database, mode, 2) as pooler:
        for user in (f"{mode}-ana", f"{mode}-ben"):
            claims = {"sub": user, "role": "authenticated"}
            with SupabaseMemory.from_conn_string(pooler.conn_string, embeddings=WordEmbedder(24)).for_token(
                claims
            ) as memory:
                memory.conversation("t").append([HumanMessage(f"{user} fires the kiln")])
                assert memory.conversation("t").index().failed is None
                found = memory.recall("kiln", exact_below=0)
                assert [each.content for each in found.chunks] == [f"{user} fires the kiln"]
        with SupabaseMemory.from_conn_string(pooler.conn_string) as memory:
            assert installed(memory) == script.current()
            assert memory.for_user(f"{mode}-ana").conversation("t").count() == 1
        assert left_behind(pooler.conn_string) == []


async def test_it_is_used_asynchronously(cluster: Cluster, database: str, mode: Mode, user_id: str) -> None:
    with Pooler(cluster, database, mode, 2) as pooler:
        memory = SupabaseMemory.from_conn_string(pooler.conn_string, user_id=user_id, embeddings=WordEmbedder(24))
        await memory.conversation("t").aappend([HumanMessage("the kiln")])
        await memory.conversation("t").aindex()
        assert len((await memory.arecall("kiln")).chunks) == 1
        await memory.aclose()
        assert left_behind(pooler.conn_string) == []


@pytest.mark.parametrize("forced", [False, True])
async def test_statements_are_prepared_where_that_is_safe_and_given_up_where_it_is_not(
    cluster: Cluster, database: str, user_id: str, forced: bool
) -> None:
    """A transaction pooler of two connections hands a statement to the one that does not know it."""
    with Pooler(cluster, database, "transaction", 2) as pooler:
        for address in (pooler.conn_string, cluster.conn_string(database)):
            transport = PostgresTransport(address, pool_size=4, prepare=True if forced else None)
            memory = SupabaseMemory(transport, user_id=f"{user_id} {address == pooler.conn_string}", model=None)
            for number in range(8):
                memory.conversation("t").append([HumanMessage(f"{number}")])
                await memory.conversation("t").aappend([HumanMessage(f"{number} async")])
            with ThreadPoolExecutor(4) as threads:
                list(threads.map(memory.conversation("t").append, [[HumanMessage(f"{n} more")] for n in range(40)]))
            assert memory.conversation("t").count() == 56
            await memory.aclose()
            assert transport._pools._prepares is (address != pooler.conn_string)
        if not forced:
            assert left_behind(pooler.conn_string) == []


DROP = "do $$ begin execute 'deallocate all'; end $$"
"""In a block, so that psycopg, which reads what a command answers, does not know of it."""


def test_a_statement_that_the_server_has_dropped_costs_nothing(cluster: Cluster, database: str, user_id: str) -> None:
    transport = PostgresTransport(cluster.conn_string(database), pool_size=1)
    with SupabaseMemory(transport, user_id=user_id, model=None) as memory:
        conversation = memory.conversation("t")
        for number in range(10):
            conversation.append([HumanMessage(f"{number}")])
        with transport._pools.synchronous().connection() as connection:
            prepared = connection.execute("select count(*) from pg_prepared_statements").fetchone()
            assert prepared is not None
            assert prepared[0] > 0
            connection.execute(DROP)
        conversation.append([HumanMessage("after")])
        assert conversation.count() == 11
    assert transport._pools._prepares is False


def test_all_that_run_at_once_get_over_a_dropped_statement(cluster: Cluster, database: str, user_id: str) -> None:
    """Whoever meets it second is helped as well, though the first has given preparing up by then."""
    transport = PostgresTransport(cluster.conn_string(database), pool_size=4)
    with SupabaseMemory(transport, user_id=user_id, model=None) as memory, ThreadPoolExecutor(4) as threads:
        pool, together = transport._pools.synchronous(), Barrier(4)

        def prepare_and_drop(number: int) -> None:
            with pool.connection() as connection:
                together.wait(30)  # each has a connection of its own
                for _ in range(8):
                    connection.execute(_COUNT, ["t", user_id, "default", None]).fetchone()
                assert connection.execute("select count(*) from pg_prepared_statements").fetchone() != (0,)
                connection.execute(DROP)

        def use(number: int) -> int:
            together.wait(30)
            return memory.conversation("t").count()

        list(threads.map(prepare_and_drop, range(4)))
        assert list(threads.map(use, range(4))) == [0] * 4


_COUNT = _sql("memory_count", ("p_thread_id", "p_user_id", "p_agent_id", "p_retention"))


def test_several_migrations_at_once_wait_for_one_another(cluster: Cluster, mode: Mode) -> None:
    name = cluster.create_database()
    with Pooler(cluster, name, mode, 2) as pooler, ThreadPoolExecutor(4) as threads:
        assert list(threads.map(migrate, [pooler.conn_string] * 4)) == [script.current()] * 4


def test_what_a_pooler_does_not_take_is_said(cluster: Cluster, database: str, mode: Mode) -> None:
    with Pooler(cluster, database, mode) as pooler:
        address = f"{pooler.conn_string}?options=-csearch_path%3Dpublic"
        with pytest.raises(ConfigurationError, match="Take options= .* out of it"):
            migrate(address)
        with (
            SupabaseMemory.from_conn_string(address, retry=NO_RETRY) as memory,
            pytest.raises(ConfigurationError, match="Take options= .* out of it"),
        ):
            installed(memory)


@each_case(
    "words",
    [
        "FATAL: Tenant or user not found",
        "connection failed: FATAL:  (ENOTFOUND) tenant/user postgres.abc not found",
    ],
)
def test_a_user_whom_the_pooler_does_not_know_is_named_otherwise(words: str) -> None:
    with pytest.raises(AuthenticationError, match="the user is postgres.<project ref>"):
        raise connection_failed(words)
