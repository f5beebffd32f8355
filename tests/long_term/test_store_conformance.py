"""The conformance suite on our store, by every transport, and on LangGraph's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore

from langchain_supabase_memory import SupabaseStore
from langchain_supabase_memory.testing import STORE_CHECKS, StoreCheck, acheck_store, check_store
from tests.conftest import Caller
from tests.services.postgres import Cluster

PAGE = (Path(__file__).parents[2] / "docs" / "store-conformance.md").read_text()


@pytest.mark.parametrize("check", STORE_CHECKS, ids=str)
async def test_our_store_keeps_every_promise(caller: Caller, user_id: str, check: StoreCheck) -> None:
    def make(index: Any) -> nullcontext[BaseStore]:
        return nullcontext(SupabaseStore(caller.service.for_user(user_id), index=index))

    if caller.color == "sync":
        check.run(make)
    else:
        await check.arun(make)


@pytest.fixture
def postgres_of_a_store(cluster: Cluster) -> str:
    """An empty database, for stores that make their own tables."""
    name = cluster.migrated_database()
    # pgvector is in a schema of its own there.
    return f"{cluster.conn_string(name)}?options=-csearch_path%3Dpublic,extensions"


def empty(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for table in ("store_vectors", "store", "store_migrations", "vector_migrations"):
            connection.execute(f"drop table if exists public.{table} cascade")


def test_the_page_says_how_many_checks_there_are() -> None:
    assert f"{len(STORE_CHECKS)} checks" in PAGE
    assert broken_of("SupabaseStore") == set()
    assert len({check.name for check in STORE_CHECKS}) == len(STORE_CHECKS)


def broken_of(name: str) -> set[str]:
    """What the page says that a store does not keep."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    head = [cell.strip(" `") for cell in lines[0].strip("|").split("|")]
    place = head.index(name)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    found = {row[0] for row in rows if row[place] == "no"}
    assert found <= {check.name for check in STORE_CHECKS}
    return found


def agrees(name: str, package: str, broken: dict[str, str]) -> None:
    """The page is right for its version; another one keeps no less."""
    assert set(broken) <= broken_of(name), broken
    if f"`{package}` {version(package)}" in PAGE:
        assert set(broken) == broken_of(name)


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_the_page_says_what_langgraphs_store_in_memory_does_not_keep(color: str) -> None:
    def make(index: Any) -> nullcontext[BaseStore]:
        return nullcontext(InMemoryStore(index=index))

    broken = check_store(make) if color == "sync" else await acheck_store(make)
    agrees("InMemoryStore", "langgraph-checkpoint", broken)


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_the_page_says_what_langgraphs_store_on_postgres_does_not_keep(
    postgres_of_a_store: str, color: str
) -> None:
    @contextmanager
    def make(index: Any) -> Iterator[BaseStore]:
        empty(postgres_of_a_store)
        with PostgresStore.from_conn_string(postgres_of_a_store, index=index, ttl={"refresh_on_read": True}) as store:
            store.setup()
            yield store

    @asynccontextmanager
    async def amake(index: Any) -> AsyncIterator[BaseStore]:
        empty(postgres_of_a_store)
        async with AsyncPostgresStore.from_conn_string(
            postgres_of_a_store, index=index, ttl={"refresh_on_read": True}
        ) as store:
            await store.setup()
            yield store

    broken = check_store(make) if color == "sync" else await acheck_store(amake)
    agrees("PostgresStore", "langgraph-checkpoint-postgres", broken)


def test_a_store_that_fails_is_told_apart_from_one_that_differs() -> None:
    class Broken(InMemoryStore):
        def batch(self, ops: Any) -> Any:
            raise RuntimeError("no database")

    broken = check_store(lambda index: nullcontext(Broken(index=index)))
    reached = {check.name for check in STORE_CHECKS if not check.name.startswith(("what has expired", "what is read"))}
    assert set(broken) >= reached - {"a time to live is refused"}  # which is refused before a batch
    assert broken["an item is deleted"] == "RuntimeError: no database"

    class Forgets(InMemoryStore):
        def delete(self, namespace: tuple[str, ...], key: str) -> None:
            return None

    broken = check_store(lambda index: nullcontext(Forgets(index=index)))
    assert "an item that was deleted: Item(" in broken["an item is deleted"]
