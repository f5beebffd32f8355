"""Pruning of LangGraph's tables: a graph resumes at every checkpoint that is left, and nobody reads them from outside."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
from click.testing import CliRunner
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.checkpoints.retained import Checkpoint, retained
from langchain_supabase_memory.adapters.checkpoints.tidy import LOCKED_TABLES, TidyReport, tidy
from langchain_supabase_memory.cli.application import commands
from langchain_supabase_memory.errors import ConfigurationError, NotFoundError
from tests.services.postgres import Cluster
from tests.services.savers import saver

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    seen: Annotated[list[str], operator.add]
    count: int


def append(state: list[str], writes: list[list[str]]) -> list[str]:
    return [*state, *(each for write in writes for each in write)]


class DeltaState(TypedDict, total=False):
    seen: Annotated[list[str], DeltaChannel(append, snapshot_frequency=4)]
    also: Annotated[list[str], DeltaChannel(append, snapshot_frequency=7)]


@pytest.fixture
def address(cluster: Cluster) -> str:
    return cluster.conn_string(cluster.create_database(supabase=True, vector_schema=None))


@pytest.fixture
def checkpointer(address: str) -> Iterator[PostgresSaver]:
    with saver("postgres", address) as made:
        yield made


def prune(address: str, **arguments: Any) -> TidyReport:
    return tidy(address, **{"days": 0, **arguments})


def plain(checkpointer: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"seen": ["a"], "count": state.get("count", 0) + 1})
    builder.add_node("b", lambda _: {"seen": ["b"]})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", END)
    return builder.compile(checkpointer=checkpointer)


def delta(checkpointer: Any) -> Any:
    builder = StateGraph(DeltaState)
    builder.add_node("a", lambda state: {"seen": [f"a{len(state.get('seen', []))}"], "also": ["x"]})
    builder.add_node("b", lambda _: {"also": ["y"]})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", END)
    return builder.compile(checkpointer=checkpointer)


def asking(checkpointer: Any, *, inside: Any = None) -> Any:
    """A graph whose subgraph asks, and goes on with the answer."""
    inner = StateGraph(State)
    inner.add_node("first", lambda _: {"seen": ["first"]})
    inner.add_node("ask", lambda _: {"seen": [interrupt("Which?")]})
    inner.add_edge(START, "first")
    inner.add_edge("first", "ask")
    builder = StateGraph(State)
    builder.add_node("before", lambda _: {"count": 1})
    builder.add_node("sub", inner.compile(checkpointer=inside))
    builder.add_edge(START, "before")
    builder.add_edge("before", "sub")
    return builder.compile(checkpointer=checkpointer)


def rows(address: str) -> list[int]:
    with psycopg.connect(address) as connection:
        tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        return [connection.execute(f"select count(*) from {each}".encode()).fetchall()[0][0] for each in tables]


def states(graph: Any) -> dict[str, Any]:
    """The values at each checkpoint of the thread's own graph."""
    return {each.config["configurable"]["checkpoint_id"]: each.values for each in graph.get_state_history(CONFIG)}


def test_the_newest_is_left_with_its_values_and_a_run_goes_on(checkpointer: PostgresSaver, address: str) -> None:
    graph = plain(checkpointer)
    for _ in range(5):
        graph.invoke({"seen": ["in"]}, CONFIG)
    before, values = rows(address), states(graph)
    planned = prune(address, dry_run=True)
    assert rows(address) == before
    done = prune(address)
    assert (planned.checkpoints, planned.writes, planned.blobs, planned.bytes) == (
        *(done.checkpoints, done.writes, done.blobs, done.bytes),
    )
    assert done.checkpoints == before[0] - 1
    assert rows(address)[0] == 1
    assert {each: size.rows for each, size in (done.after or {}).items()} == dict(
        zip(("checkpoints", "checkpoint_blobs", "checkpoint_writes"), rows(address), strict=True)
    )
    [(left, found)] = states(graph).items()
    assert found == values[left]
    assert graph.get_state(CONFIG).parent_config is None
    again = prune(address)
    assert (again.checkpoints, again.writes, again.blobs, again.closed) == (0, 0, 0, ())
    assert graph.invoke({"seen": ["in"]}, CONFIG)["seen"] == [*found["seen"], "in", "a", "b"]


@pytest.mark.parametrize("newest", [1, 2, 3, 7])
@pytest.mark.parametrize("build", [plain, delta])
def test_a_graph_resumes_at_every_checkpoint_that_is_left(
    checkpointer: PostgresSaver, address: str, newest: int, build: Callable[[Any], Any]
) -> None:
    graph = build(checkpointer)
    for _ in range(9):
        graph.invoke({"seen": ["in"]}, CONFIG)
    whole = states(graph)
    prune(address, newest=newest)
    left = states(graph)
    assert newest <= len(left) < len(whole)
    for checkpoint, values in left.items():
        assert values == whole[checkpoint]
        graph.get_state({"configurable": {"thread_id": "t", "checkpoint_id": checkpoint}})
    for checkpoint in left:
        given = {"configurable": {"thread_id": "t", "checkpoint_id": checkpoint}}
        out = graph.invoke({"seen": ["more"]}, given)
        assert out["seen"][: len(whole[checkpoint]["seen"])] == whole[checkpoint]["seen"] if whole[checkpoint] else True


@pytest.mark.parametrize("build", [plain, delta])
def test_a_fork_is_left_with_its_own_history(
    checkpointer: PostgresSaver, address: str, build: Callable[[Any], Any]
) -> None:
    graph = build(checkpointer)
    for n in range(4):
        graph.invoke({"seen": [f"in{n}"]}, CONFIG)
    old = list(graph.get_state_history(CONFIG))[7]
    forked = graph.update_state(old.config, {"seen": ["forked"]}, as_node="b")
    graph.invoke({"seen": ["on"]}, forked)
    expected = graph.get_state(CONFIG).values
    prune(address)
    assert graph.get_state(CONFIG).values == expected
    assert graph.invoke({"seen": ["again"]}, CONFIG)["seen"][: len(expected["seen"])] == expected["seen"]


@pytest.mark.parametrize("inside", [None, True])
def test_an_interrupted_run_inside_of_a_subgraph_goes_on(
    checkpointer: PostgresSaver, address: str, inside: Any
) -> None:
    graph = asking(checkpointer, inside=inside)
    for answer in ("x", "y"):
        graph.invoke({"seen": []}, CONFIG)
        graph.invoke(Command(resume=answer), CONFIG)
    graph.invoke({"seen": ["in"]}, CONFIG)
    expected = graph.get_state(CONFIG, subgraphs=True)
    done = prune(address)
    assert done.checkpoints > 0
    found = graph.get_state(CONFIG, subgraphs=True)
    assert (found.next, found.interrupts) == (expected.next, expected.interrupts)
    assert found.tasks[0].state.values == expected.tasks[0].state.values
    out = graph.invoke(Command(resume="z"), CONFIG)
    assert out["seen"][-1] == "z"
    assert graph.get_state(CONFIG).next == ()
    prune(address)
    namespaces = [each.config["configurable"]["checkpoint_ns"] for each in checkpointer.list(CONFIG)]
    assert sorted(namespaces) == ([""] if inside is None else ["", "sub"])


def test_young_checkpoints_and_other_threads_are_left(checkpointer: PostgresSaver, address: str) -> None:
    graph = plain(checkpointer)
    for thread in ("t", "u"):
        graph.invoke({"seen": ["in"]}, {"configurable": {"thread_id": thread}})
    before = rows(address)
    assert prune(address, days=1).checkpoints == 0
    assert rows(address) == before
    assert prune(address).threads == 2
    assert rows(address)[0] == 2


def test_values_whose_checkpoints_were_deleted_by_hand_go(checkpointer: PostgresSaver, address: str) -> None:
    plain(checkpointer).invoke({"seen": ["in"]}, CONFIG)
    with psycopg.connect(address) as connection:
        connection.execute("delete from checkpoints")
    assert prune(address).blobs > 0
    assert rows(address)[1] == 0


def test_the_tables_are_closed_to_the_data_api(checkpointer: PostgresSaver, address: str) -> None:
    graph = plain(checkpointer)
    graph.invoke({"seen": ["in"]}, CONFIG)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("grant all on all tables in schema public to anon, authenticated")
        planned = prune(address, dry_run=True)
        assert planned.closed == tuple(sorted(f"public.{each}" for each in LOCKED_TABLES))
        assert prune(address, closes=False).closed == ()
        assert prune(address).closed == planned.closed
        for role in ("anon", "authenticated"):
            for table in LOCKED_TABLES:
                with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                    connection.execute(f"set local role {role}".encode())
                    connection.execute(f"select 1 from public.{table}".encode())
        # A later grant alone opens nothing.
        connection.execute("grant select on checkpoints to anon")
        with connection.transaction():
            connection.execute("set local role anon")
            assert connection.execute("select count(*) from checkpoints").fetchall() == [(0,)]
    assert graph.invoke({"seen": ["on"]}, CONFIG)["seen"][-1] == "b"


def test_the_doctor_says_whether_the_tables_lie_open(cluster: Cluster) -> None:
    address = cluster.conn_string(cluster.migrated_database())
    with SupabaseMemory.from_conn_string(address, user_id="u") as memory:

        def state() -> str:
            return next(each.state for each in memory.doctor() if each.name == "checkpoints")

        assert state() == "green"
        with saver("postgres", address), psycopg.connect(address, autocommit=True) as connection:
            connection.execute("grant all on all tables in schema public to authenticated")
            assert state() == "red"
            assert len(prune(address).closed) == len(LOCKED_TABLES)
            assert state() == "green"


def test_many_checkpoints_go_in_batches(
    checkpointer: PostgresSaver, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langchain_supabase_memory.adapters.checkpoints.tidy.BATCH", 2)
    monkeypatch.setattr("langchain_supabase_memory.adapters.checkpoints.tidy.PAGE", 2)
    graph = plain(checkpointer)
    for n in range(5):
        graph.invoke({"seen": ["in"]}, {"configurable": {"thread_id": f"t{n}"}})
    seen: list[int] = []
    assert prune(address, report=lambda done: seen.append(done.threads)).checkpoints > 5
    assert seen == [1, 2, 3, 4, 5]
    assert rows(address)[0] == 5


def test_the_command_counts_asks_and_says_the_sizes(checkpointer: PostgresSaver, address: str) -> None:
    graph = plain(checkpointer)
    for _ in range(3):
        graph.invoke({"seen": ["in"]}, CONFIG)
    given = ["tidy", "--database-url", address, "--days", "0"]
    planned = CliRunner().invoke(commands, [*given, "--dry-run"])
    assert planned.exit_code == 0, planned.output
    assert "would go" in planned.output
    assert rows(address)[0] > 1
    assert CliRunner().invoke(commands, given).exit_code == 2  # no terminal
    done = CliRunner().invoke(commands, [*given, "--yes"])
    assert done.exit_code == 0, done.output
    assert "now 1 rows" in done.output
    assert rows(address)[0] == 1


def test_what_is_not_there_or_not_allowed_is_said(cluster: Cluster) -> None:
    empty = cluster.conn_string(cluster.create_database(supabase=False, vector_schema=None))
    with pytest.raises(NotFoundError, match="no tables of LangGraph"):
        tidy(empty)
    refused: list[dict[str, Any]] = [{"newest": 0}, {"days": -1}, {"schema": ""}]
    for arguments in refused:
        with pytest.raises(ConfigurationError):
            tidy(empty, **arguments)


def test_a_call_goes_with_its_root_and_waits_for_one_that_is_not_saved_yet() -> None:
    now = datetime.now(UTC)
    old = now - timedelta(days=3)
    given = [
        Checkpoint("", "1", None, None, old),
        Checkpoint("", "2", "1", None, old),
        Checkpoint("sub:x", "1a", None, "1", old),
        Checkpoint("sub:y", "2a", None, "2", old),
        Checkpoint("sub:lost", "0a", None, "0", old),
        Checkpoint("sub:now", "3a", None, "3", now),
    ]
    kept = retained(given, newest=1, younger_than=now, orphans_from=now - timedelta(hours=1))
    assert kept == {("", "2"), ("sub:y", "2a"), ("sub:now", "3a")}


def test_pending_sends_of_old_formats_are_left_with_the_parent() -> None:
    old = datetime(2025, 1, 1, tzinfo=UTC)
    given = [
        Checkpoint("", "1", None, None, old),
        Checkpoint("", "2", "1", None, old),
        Checkpoint("", "3", "2", None, old, reads_parent=True),
    ]
    now = datetime.now(UTC)
    assert retained(given, newest=1, younger_than=now, orphans_from=now) == {("", "3"), ("", "2")}


@pytest.mark.parametrize("build", [plain, delta])
def test_what_a_run_saves_meanwhile_is_not_touched(
    checkpointer: PostgresSaver, address: str, build: Callable[[Any], Any]
) -> None:
    graph, ended = build(checkpointer), threading.Event()

    def prune_until_the_end() -> int:
        count = 0
        while not ended.is_set():
            count += prune(address).checkpoints
        return count

    with ThreadPoolExecutor(1) as pool:
        pruned = pool.submit(prune_until_the_end)
        try:
            outputs = [graph.invoke({"seen": [f"in{n}"]}, CONFIG) for n in range(30)]
        finally:
            ended.set()
        assert pruned.result() > 30
    beside = build(InMemorySaver())
    assert outputs == [beside.invoke({"seen": [f"in{n}"]}, CONFIG) for n in range(30)]
    assert graph.get_state(CONFIG).values == outputs[-1]
