"""What all tests share: one Postgres, one PostgREST in front of it, and the two doors in both colors.

A part that is missing is an error with a message, never a skip.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from langchain_supabase_memory import SupabaseMemory
from tests.fuzzing import VARIABLE, examples
from tests.services.data_api import DataApi, token, verified
from tests.services.postgres import Cluster, packaged

_users = count()

_LONG = (
    "test_blocking", "test_langgraph_server",
    "test_worker_load", "test_notebooks", "test_cli", "test_worker_processes", "test_package", "test_supabase_cli",
    "test_row_security", "test_redaction", "test_summaries", "test_extractive", "test_work", "test_rollout",
    "test_retention", "test_vector_index", "test_worker", "test_bounded", "test_bounded_chunks", "test_vector_schema",
)  # fmt: skip
"""The files that take longest: they come first, so that the short ones fill the time beside them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--postgres",
        type=Path,
        metavar="FOLDER",
        help="Run on the server whose binaries lie there, with pgvector, instead of Postgres 18: --postgres=/a/bin.",
    )
    parser.addoption("--fuzz-factor", type=int, default=1, help="Run the fuzzers this many times longer.")


def pytest_configure(config: pytest.Config) -> None:
    Cluster.default_bin = config.getoption("--postgres")
    os.environ[VARIABLE] = str(config.getoption("--fuzz-factor"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Each process of several first imports its share, so that no file is compiled by all of them at once."""
    worker: dict[str, Any] = getattr(session.config, "workerinput", {})
    if not worker or sys.dont_write_bytecode or session.config.args != session.config.getini("testpaths"):
        return
    share = slice(int(worker["workerid"].removeprefix("gw")), None, worker["workercount"])
    for path in sorted(Path(__file__).parent.glob("test_*.py"))[share]:
        with suppress(Exception):  # it is raised again, and reported, where the file is collected
            import_module(f"tests.{path.stem}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long files first; all else as it was collected."""
    order = {name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture(scope="session", autouse=True)
def _trust() -> Iterator[None]:
    """All clients of a process share what they trust: httpx reads every certificate anew for each client it makes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def older_cluster() -> Iterator[Cluster]:
    """Postgres 16."""
    cluster = Cluster(packaged(16))
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture(scope="module", params=["default", "16"])
def planner(request: pytest.FixtureRequest) -> Cluster:
    """Each server on which rows are counted: the default one, and 16, whose planner falls into the traps that 15's does."""
    found: Cluster = request.getfixturevalue("older_cluster" if request.param == "16" else "cluster")
    return found


@pytest.fixture(scope="session")
def database(cluster: Cluster) -> str:
    """A migrated database that looks like a project on Supabase. Tests keep apart by their user."""
    return cluster.migrated_database()


@pytest.fixture(scope="session")
def conn_string(cluster: Cluster, database: str) -> str:
    """The address of the database, for `postgres`, who is no superuser and bypasses row level security."""
    return cluster.conn_string(database)


@pytest.fixture(scope="session")
def data_api(cluster: Cluster, database: str) -> Iterator[DataApi]:
    """The real PostgREST in front of the database."""
    with DataApi(cluster, database) as api:
        yield api


@pytest.fixture(scope="session")
def fuzz() -> int:
    """How many times longer than usual the fuzzers run."""
    return examples(1)


@pytest.fixture
def user_id() -> str:
    """A user nobody else has."""
    return f"user-{next(_users)}"


@dataclass(frozen=True)
class Door:
    """One transport in one color. `await door(memory.append, …)` calls the verb or its async twin.

    Attributes:
        kind: `data_api` or `direct`.
        color: `sync` or `async`.
        service: A memory with a server's rights.
        as_token: A memory for the bearer of a signed token.
    """

    kind: str
    color: str
    service: SupabaseMemory
    as_token: Callable[[str], SupabaseMemory]

    async def __call__(self, verb: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        if self.color == "sync":
            return verb(*arguments, **named)
        owner = verb.__self__  # type: ignore[attr-defined]
        return await getattr(owner, "a" + verb.__name__)(*arguments, **named)


@pytest.fixture(params=["data_api-sync", "data_api-async", "direct-sync", "direct-async"])
async def door(request: pytest.FixtureRequest, data_api: DataApi, conn_string: str) -> AsyncIterator[Door]:
    """Each of the four ways in, without a writer and without recall, unless a test says so."""
    without: Any = {"model": None, "recall": None}
    kind, color = request.param.split("-")
    if kind == "data_api":
        service = SupabaseMemory.from_url(data_api.url, token("service_role"), rest_path="", **without)
        anonymous = SupabaseMemory.from_url(data_api.url, token("anon"), rest_path="", **without)
        yield Door(kind, color, service, anonymous.as_user)
        await anonymous.aclose()
    else:
        service = SupabaseMemory.from_conn_string(conn_string, **without)
        yield Door(kind, color, service, lambda access_token: service.as_user(verified(access_token)))
    await service.aclose()
