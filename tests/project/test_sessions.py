"""A reused session behaves like a new one, and only idle sessions are reused."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import psycopg
import pytest

from langchain_supabase_memory.adapters.transports import postgres
from tests.services.postgres import Cluster, execute
from tests.services.sessions import Sessions

pytestmark = pytest.mark.postgres


def connected(conn_string: str, name: str) -> Any:
    """A connection as a memory makes it, of an address that no other test uses."""
    return postgres._Connection.connect(conn_string, autocommit=True, application_name=name)


def left(connection: Any) -> list[tuple[Any, ...]]:
    """What a session holds beside what it has read."""
    found: list[tuple[Any, ...]] = connection.execute(
        "select 'lock', objid::text from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
        " union all select 'statement', statement from pg_prepared_statements where statement like '%42%'"
        " union all select 'channel', pg_listening_channels()"
        " union all select 'temporary', relname::text from pg_class where relnamespace = pg_my_temp_schema()"
        " union all select 'setting', current_setting('a.setting', true) where current_setting('a.setting', true) <> ''"
        " union all select 'user', current_user::text where current_user <> 'postgres'"
    ).fetchall()
    return found


def test_a_session_is_taken_over_and_nothing_of_its_use(conn_string: str) -> None:
    first = connected(conn_string, "taken")
    process = first.info.backend_pid
    for _ in range(8):
        first.execute("select 42")  # psycopg prepares it
    for statement in (
        "select pg_advisory_lock(7)", "listen a_channel", "create temporary table a_table ()", "set a.setting = 'x'",
        "prepare a_statement as select 42", "set role authenticated",
    ):  # fmt: skip
        first.execute(statement)
    assert len(left(first)) >= 5
    first.close()
    assert first.closed
    with pytest.raises(psycopg.OperationalError):
        first.execute("select 1")
    with connected(conn_string, "taken") as second:
        assert second.info.backend_pid == process
        assert left(second) == []
        for _ in range(8):
            assert second.execute("select 42").fetchone() == (42,)


def test_one_that_is_in_use_or_ended_or_elsewhere_is_not_taken_over(conn_string: str, cluster: Cluster) -> None:
    used = connected(conn_string, "in use")
    used.execute("begin")
    before = used.info.backend_pid
    used.close()
    with connected(conn_string, "in use") as other:
        process = other.info.backend_pid
        assert process != before
    cluster.execute(f"select pg_terminate_backend({process}, 5000)", superuser=True)
    with connected(conn_string, "in use") as other:
        assert other.info.backend_pid != process
    elsewhere = cluster.conn_string("postgres")
    with connected(elsewhere, "elsewhere") as other:
        process = other.info.backend_pid
    with connected(elsewhere, "elsewhere") as other:
        assert other.info.backend_pid != process


def test_sync_and_async_share_them(conn_string: str) -> None:
    with connected(conn_string, "shared") as first:
        process = first.info.backend_pid

    async def use() -> int:
        async with await postgres._AsyncConnection.connect(
            conn_string, autocommit=True, application_name="shared"
        ) as connection:
            await connection.execute("select 1")
            return connection.info.backend_pid

    assert asyncio.run(use()) == asyncio.run(use()) == process


def test_a_plain_connection_of_a_test_is_taken_over_too(conn_string: str) -> None:
    with psycopg.connect(conn_string, application_name="plain") as first:
        process = first.info.backend_pid
        first.execute("set role authenticated")
    with psycopg.connect(conn_string, application_name="plain") as second:
        assert second.info.backend_pid == process
        assert left(second) == []
        second.cancel_safe()
    with psycopg.connect(conn_string, application_name="plain") as third:
        assert third.info.backend_pid != process, "the cancellation may arrive later"


def test_no_notification_outlives_its_listener(conn_string: str) -> None:
    with psycopg.connect(conn_string, autocommit=True, application_name="listener") as first:
        process = first.info.backend_pid
        first.execute("listen a_channel")
        execute(conn_string, "notify a_channel")  # which it reads when it is reset
    with psycopg.connect(conn_string, autocommit=True, application_name="listener") as second:
        assert second.info.backend_pid == process
        second.execute("select 1")
        assert list(second.notifies(timeout=0, stop_after=1)) == []


def test_those_of_another_database_are_taken_over_while_it_is_named(kept_sessions: Sessions, cluster: Cluster) -> None:
    address = cluster.conn_string("postgres")

    def process() -> int:
        with psycopg.connect(address, application_name="named") as connection:
            return connection.info.backend_pid

    with kept_sessions.of(cluster.port, "postgres"):
        named = process()
        assert process() == named
    assert process() != named
    count = "select count(*) from pg_stat_activity where application_name = 'named' and pid = %s"
    end = time.monotonic() + 15
    while execute(address, count, named) != [(0,)]:
        assert time.monotonic() < end, "it is still there"
        time.sleep(0.02)
