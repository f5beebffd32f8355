"""LangGraph savers that several processes can share: Postgres and SQLite, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

_POOL: Any = {"kwargs": {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}, "max_size": 4}


@contextmanager
def saver(kind: str, address: str) -> Iterator[Any]:
    """Open a sync saver.

    Args:
        kind: `postgres`, `sqlite`, or `none`.
        address: The database, or the file.
    """
    if kind == "none":
        yield None
    elif kind == "sqlite":
        with SqliteSaver.from_conn_string(address) as sqlite:
            yield sqlite
    else:
        with ConnectionPool(address, **_POOL) as pool:
            postgres = PostgresSaver(pool)
            postgres.setup()
            yield postgres


@asynccontextmanager
async def asaver(kind: str, address: str) -> AsyncIterator[Any]:
    """The async twin of `saver`."""
    if kind == "none":
        yield None
    elif kind == "sqlite":
        async with AsyncSqliteSaver.from_conn_string(address) as sqlite:
            yield sqlite
    else:
        async with AsyncConnectionPool(address, open=False, **_POOL) as pool:
            postgres = AsyncPostgresSaver(pool)
            await postgres.setup()
            yield postgres


@asynccontextmanager
async def either(kind: str, address: str, color: str) -> AsyncIterator[Any]:
    """Open a sync or async saver."""
    if color == "sync":
        with saver(kind, address) as made:
            yield made
    else:
        async with asaver(kind, address) as made:
            yield made
