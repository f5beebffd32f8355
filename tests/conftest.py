"""Shared fixtures: one Postgres, one PostgREST in front of it, and the two transports, sync and async.

A missing part is an error with a message, never a skip.
"""

from __future__ import annotations

import gc
import os
import re
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from inspect import getsource
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from langchain_supabase_memory import SupabaseMemory
from tests.colors import other_colors
from tests.fuzzing import VARIABLE, examples
from tests.memory_keywords import memory_keywords
from tests.needs import Guard, needs
from tests.services.citus import CitusCluster
from tests.services.data_api import DataApi, token, verified
from tests.services.emptied import EmptiedDatabase
from tests.services.postgres import Cluster, packaged
from tests.services.sessions import Sessions, pooled

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_users = count()

_LONG = (
    "worker/test_processes", "worker/test_load", "project/test_blocking", "project/test_notebooks",
    "operations/test_languages", "operations/test_unreadable_rows", "agents/test_langgraph_server",
    "sql/test_bounded", "project/test_documentation", "worker/test_worker", "cli/test_terminal",
    "agents/test_savers", "operations/test_indexing", "cli/test_cli", "sql/test_vector_index", "mcp/test_identity",
    "adapters/test_answers", "operations/test_summaries", "adapters/test_openai", "agents/test_rollout",
    "sql/test_live", "sql/test_schema", "operations/test_work", "sql/test_vector_schema", "sql/test_partitions",
    "mcp/test_stdio", "memory/test_defaults", "context/test_context_recall", "language/test_redaction",
    "operations/test_doctor", "long_term/test_long_term", "long_term/test_store", "agents/test_overlapping_runs",
    "sql/test_bounded_chunks", "language/test_redaction_forms", "sql/test_gate", "transfer/test_files",
    "sql/test_row_security", "cli/test_deleting", "language/test_extractive", "adapters/test_outages",
    "sql/test_supabase_js", "adapters/test_breaker", "context/test_context_fit", "mcp/test_http",
    "project/test_package", "operations/test_retention", "cli/test_addresses",
    "context/test_context_board", "language/test_opaque", "operations/test_erasure", "memory/test_handles",
    "operations/test_branches", "operations/test_find", "sql/test_catalog", "agents/test_nodes",
    "transfer/test_commands", "agents/test_history", "operations/test_controls", "sql/test_blocks",
)  # fmt: skip
"""The slowest files: they run first, so that the short ones fill the remaining time of other processes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--postgres",
        type=Path,
        metavar="FOLDER",
        help="Run on the server whose binaries lie there, with pgvector, instead of Postgres 18: --postgres=/a/bin.",
    )
    parser.addoption(
        "--partitions",
        type=int,
        metavar="NUMBER",
        help="Run on databases whose tables are in this many partitions: --partitions=4.",
    )
    parser.addoption(
        "--citus",
        type=Path,
        metavar="FOLDER",
        help="Run on a coordinator and two workers of Citus, whose binaries lie there, with pgvector: --citus=/a/bin.",
    )
    parser.addoption(
        "--fuzz-factor", type=int, default=1, help="Run the fuzzers this many times longer, on new examples."
    )
    parser.addoption(
        "--both-colors", action="store_true", help="Run each case of a test sync and async, instead of in turn."
    )


def pytest_configure(config: pytest.Config) -> None:
    Cluster.default_bin = config.getoption("--postgres")
    Cluster.default_partitions = config.getoption("--partitions")
    factor: int = config.getoption("--fuzz-factor")
    os.environ[VARIABLE] = str(factor)
    # Runs are deterministic by default, so that passing tests pass again; longer runs search for new examples.
    settings.register_profile("same", derandomize=factor == 1)
    settings.load_profile("same")
    if factor == 1:
        # Hypothesis also draws constants from the package's modules that are already imported: a different set in each
        # process, and it parses each of them.
        vars(providers)["is_local_module_file"] = lambda _: False
    config.pluginmanager.register(Guard())


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import a share of the files in each process, so that processes do not all compile the same file.

    What is imported and collected stays until the end, so the garbage collector has nothing to find in it: it took a
    fifth of the time.
    """
    worker: dict[str, Any] = getattr(session.config, "workerinput", {})
    if worker:
        gc.disable()
    if not worker or sys.dont_write_bytecode or session.config.args != session.config.getini("testpaths"):
        return
    share = slice(int(worker["workerid"].removeprefix("gw")), None, worker["workercount"])
    for path in sorted(Path(__file__).parent.glob("*/test_*.py"))[share]:
        with suppress(Exception):  # it is raised again and reported when the file is collected
            import_module(f"tests.{path.parent.name}.{path.stem}")


@pytest.hookimpl(tryfirst=True)  # before deselection
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test by what it needs, and move the slow files to the front; otherwise keep the order.

    Of two cases that only differ in being sync or async, one is deselected, unless a case is named: see `colors`. Tests
    that need a browser, or minutes, are deselected unless their mark is requested.
    """
    for item in items:
        item.add_marker(needs(item))
    if not (config.getoption("--both-colors") or any("[" in each for each in config.args)):
        others = {*other_colors(items)}
        config.hook.pytest_deselected(items=[item for item in items if item in others])
        items[:] = [item for item in items if item not in others]
    for mark in ("browser", "slow"):
        if mark not in config.option.markexpr:
            left_out = [item for item in items if item.get_closest_marker(mark)]
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if not item.get_closest_marker(mark)]
    runs = _runs_on_citus if config.getoption("--citus") is not None else _runs_without_citus
    left_out = [item for item in items if not runs(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if runs(item)]
    order = {name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: order.get(f"{item.path.parent.name}/{item.path.stem}", len(order)))


def _runs_without_citus(item: pytest.Item) -> bool:
    return "citus" not in getattr(item, "fixturenames", ())


def _runs_on_citus(item: pytest.Item) -> bool:
    """Return whether a test only uses the direct transport and the shared server, and no signed-in user.

    A test that cannot run on Citus for another reason has the mark `not_on_citus`.
    """
    fixtures = {*getattr(item, "fixturenames", ())}
    if "citus" in fixtures:
        return True
    if (mark := item.get_closest_marker("not_on_citus")) is not None:
        assert mark.args, f"{item.nodeid}: not_on_citus wants a reason"
        return False
    if fixtures & {"data_api", "older_cluster", "planner", "chromium"} or "cluster" not in fixtures:
        return False
    parameters = getattr(item, "callspec", None)
    if parameters is not None and str(parameters.params.get("caller", "")).startswith("data_api"):
        return False
    return not _SIGNED_IN.search(getsource(item.function))  # type: ignore[attr-defined]


_SIGNED_IN = re.compile(r"as_token|for_token|authenticated|\bclaims\b|row_security")


def pytest_collection_finish() -> None:
    """Exclude imported modules from garbage collection; to search them for garbage first takes longer than it gains."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _trust() -> Iterator[None]:
    """Share one TLS context per process: httpx otherwise reads every certificate for each new client."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    citus: Path | None = pytestconfig.getoption("--citus")
    with Cluster() if citus is None else CitusCluster(citus) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def citus(cluster: Cluster) -> CitusCluster:
    """The cluster as a Citus cluster; tests that request it only run there."""
    assert isinstance(cluster, CitusCluster)
    return cluster


@pytest.fixture(scope="session")
def older_cluster() -> Iterator[Cluster]:
    """A Postgres 16 cluster."""
    with Cluster(packaged(16)) as cluster:
        yield cluster


@pytest.fixture(scope="module", params=["default", "16"])
def planner(request: pytest.FixtureRequest) -> Cluster:
    """Each server on which rows are counted: the default, and 16, whose planner makes the same mistakes as 15's."""
    found: Cluster = request.getfixturevalue("older_cluster" if request.param == "16" else "cluster")
    return found


@pytest.fixture(scope="session")
def database(cluster: Cluster) -> str:
    """A migrated database like a project on Supabase. Tests are isolated by user."""
    return cluster.migrated_database()


@pytest.fixture(scope="session")
def kept_sessions() -> Iterator[Sessions]:
    """The idle sessions of this process; a database that many tests of a file share may be added to them."""
    with pooled() as kept_sessions:
        yield kept_sessions


@pytest.fixture(scope="session")
def conn_string(cluster: Cluster, database: str, kept_sessions: Sessions) -> Iterator[str]:
    """The connection string for `postgres`, which is not a superuser and bypasses row level security."""
    with kept_sessions.of(cluster.port, database):
        yield cluster.conn_string(database)


@pytest.fixture(scope="module")
def own(cluster: Cluster, kept_sessions: Sessions) -> Iterator[str]:
    """The name of a database of the file's own, to be dumped whole or changed."""
    name = cluster.migrated_database()
    with kept_sessions.of(cluster.port, name):
        yield name


@pytest.fixture(scope="module")
def own_address(cluster: Cluster, own: str) -> str:
    """The address of the file's own database, where nobody else's rows and work are."""
    return cluster.conn_string(own)


@pytest.fixture(scope="module")
def shared(cluster: Cluster, kept_sessions: Sessions) -> Iterator[str]:
    """The name of a database of the file's own, in which spaces are switched on."""
    name = cluster.migrated_database(spaces=True)
    with kept_sessions.of(cluster.port, name):
        yield name


@pytest.fixture(scope="module")
def emptied_database(cluster: Cluster, kept_sessions: Sessions) -> Iterator[EmptiedDatabase]:
    """A database that the tests of the file use one after another."""
    with closing(EmptiedDatabase(cluster, kept_sessions)) as database:
        yield database


@pytest.fixture
def fresh(cluster: Cluster, emptied_database: EmptiedDatabase) -> str:
    """The address of a migrated database without rows, which a test may change or break: the next test gets another."""
    return cluster.conn_string(emptied_database.name())


@pytest.fixture
def sql(conn_string: str) -> Iterator[psycopg.Connection]:
    """A connection beside every memory, for what only the database can say."""
    with psycopg.connect(conn_string, autocommit=True) as connection:
        yield connection


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    """A memory of the user over a direct connection."""
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        yield memory


@pytest.fixture(scope="session")
def data_api(cluster: Cluster, database: str) -> Iterator[DataApi]:
    """The real PostgREST in front of the database."""
    with DataApi(cluster, database) as api:
        yield api


@pytest.fixture(scope="module")
def shared_api(cluster: Cluster, shared: str) -> Iterator[DataApi]:
    """PostgREST in front of a database of the file's own, in which spaces are switched on."""
    with DataApi(cluster, shared) as api:
        yield api


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser; every test starts a new one."""
    from tests.inspector import browsing  # only browser tests have Playwright

    with browsing.chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def fuzz() -> int:
    """The factor by which fuzzers run longer."""
    return examples(1)


@pytest.fixture
def user_id() -> str:
    """A unique user id."""
    return f"user-{next(_users)}"


@dataclass(frozen=True)
class Caller:
    """One transport, sync or async. `await caller(memory.recall, …)` calls the verb, a partial of it or its async twin.

    Attributes:
        kind: `data_api` or `direct`.
        color: `sync` or `async`.
        service: A memory with a server's rights.
        as_token: Returns a memory for the bearer of a signed token.
    """

    kind: str
    color: str
    service: SupabaseMemory
    as_token: Callable[[str], SupabaseMemory]

    async def __call__(self, verb: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        if self.color == "sync":
            return verb(*arguments, **named)
        if isinstance(verb, partial):
            return await self(verb.func, *verb.args, *arguments, **verb.keywords, **named)
        owner = verb.__self__  # type: ignore[attr-defined]
        return await getattr(owner, "a" + verb.__name__)(*arguments, **named)


@pytest.fixture(params=["data_api-sync", "data_api-async", "direct-sync", "direct-async"])
async def caller(request: pytest.FixtureRequest, conn_string: str) -> AsyncIterator[Caller]:
    """Each transport, sync and async, without a summarizer and recall unless a test requests them."""
    without: Any = {"model": None, "recall": None}
    kind, color = request.param.split("-")
    if kind == "data_api":
        data_api: DataApi = request.getfixturevalue("data_api")
        service = SupabaseMemory.from_url(data_api.url, token("service_role"), rest_path="", **memory_keywords(without))
        anonymous = SupabaseMemory.from_url(data_api.url, token("anon"), rest_path="", **memory_keywords(without))
        yield Caller(kind, color, service, anonymous.for_token)
        await anonymous.aclose()
    else:
        service = SupabaseMemory.from_conn_string(conn_string, **memory_keywords(without))
        yield Caller(kind, color, service, lambda access_token: service.for_token(verified(access_token)))
    await service.aclose()
