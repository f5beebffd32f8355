"""A reused session behaves like a new one, and only idle sessions are reused."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from langchain_supabase_memory.adapters.transports import postgres

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


def test_one_that_is_in_use_or_ended_or_elsewhere_is_not_taken_over(conn_string: str, cluster: Any) -> None:
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
