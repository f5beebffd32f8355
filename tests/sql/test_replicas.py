"""Reads never write, so a read replica can answer them, even if expired data has not been deleted yet."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from psycopg import sql

from langchain_supabase_memory import (
    ChunkPolicy,
    ContextBudget,
    LoadContextNode,
    MemoryConfig,
    Retention,
    SummaryPolicy,
    SupabaseMemory,
    Worker,
)
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.agents.run.fail_open import OnError
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import ConfigurationError, UnavailableError
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.long_term.store import SupabaseStore
from langchain_supabase_memory.settings import NO_RETRY
from langchain_supabase_memory.values import Receipt
from tests.chat_models import asks, config
from tests.embedders import WordEmbedder
from tests.examining import findings_by_name
from tests.inspector.visiting import Person
from tests.memory_keywords import memory_keywords
from tests.operations.test_branches import Subject, texts
from tests.services.data_api import DataApi, token
from tests.services.postgres import Cluster
from tests.services.replica import Replica, replica_of

WRITES = re.compile(
    r"\b(insert\s+into|delete\s+from|update\s+memory\w*\.|for\s+(no\s+key\s+)?(update|share)|for\s+key\s+share|pg_notify"
    r"|pg_advisory\w+)\b"
)

REQUIRED = {
    "p_ask": '{"query": "kiln"}',
    "p_conversations": '[{"thread_id": "t"}]',
    "p_model": "words",
    "p_query": "kiln",
    "p_seconds": "0",
    "p_texts": '["kiln"]',
    "p_thread_id": "t",
    "p_time": "2026-01-31T12:00:00Z",
}
"""What verbs that only read have to be told."""


def verbs(connection: psycopg.Connection) -> dict[str, tuple[str, bool, list[str]]]:
    """Every verb: how volatile it is, whether it or what it calls writes, and its required arguments."""
    rows = connection.execute(
        "select n.nspname || '.' || p.proname, p.provolatile::text, p.prosrc,"
        " coalesce(p.proargnames[:p.pronargs - p.pronargdefaults], '{}')"
        " from pg_proc p join pg_namespace n on n.oid = p.pronamespace"
        " where n.nspname = 'memory_private' or starts_with(obj_description(p.oid), 'langchain-supabase-memory:')"
    ).fetchall()
    bodies = {name: body for name, _, body, _ in rows}

    def writes(name: str, seen: set[str]) -> bool:
        if name in seen or name not in bodies:
            return False
        seen.add(name)
        called = re.findall(r"\b(?:memory_private|public)\.\w+(?=\()", bodies[name])
        return WRITES.search(bodies[name]) is not None or any(writes(each, seen) for each in called)

    return {
        name: (volatile, writes(name, set()), required)
        for name, volatile, _, required in rows
        if name.startswith("public.")
    }


def filled(conn_string: str, user_id: str) -> None:
    """A conversation with a summary, a board and chunks, of which half is too old."""
    memory = SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=ExtractiveSummarizer(), embeddings=WordEmbedder()
    )
    with memory:
        old = datetime.now(UTC) - timedelta(days=2)
        for number in range(20):
            asked = [HumanMessage(f"The kiln number {number} stands in Riga.", id=f"m{number}")]
            memory.conversation("t").append(asked, created_at=old if number < 10 else None)
            memory.conversation("t").add_turn(f"Where is kiln {number}?", "In Riga.")
        memory.conversation("t").summaries.make(policy=SummaryPolicy(messages=1, keep_messages=4))
        memory.conversation("t").board.revise()
        memory.conversation("t").index()


def test_a_verb_that_writes_nothing_is_stable_and_runs_where_nothing_can_be_written(
    conn_string: str, user_id: str
) -> None:
    filled(conn_string, user_id)
    given = {**REQUIRED, "p_user_id": user_id, "p_retention": '{"age": 86400, "turns": 5, "summary_age": 86400}'}
    with psycopg.connect(conn_string, autocommit=True) as connection:
        found = verbs(connection)
        assert {name for name, (volatile, writes, _) in found.items() if (volatile == "v") is not writes} == set()
        reads = {name: required for name, (volatile, _, required) in found.items() if volatile != "v"}
        assert {"public.memory_context", "public.memory_read", "public.memory_turns"} <= set(reads)
        del reads["public.memory_spaces"]  # here spaces are off
        connection.execute("set default_transaction_read_only = on")
        for name, required in reads.items():
            names = connection.execute(
                "select coalesce(proargnames[:pronargs], '{}') from pg_proc where oid = %s::regproc", [name]
            ).fetchone()
            assert names is not None
            assert set(required) <= set(given), name
            arguments = [
                sql.SQL("{} => {}").format(sql.Identifier(each), sql.Literal(given[each]))
                for each in names[0]
                if each in required or (each in given and each not in REQUIRED)
            ]
            call = sql.SQL("select {}({})").format(sql.Identifier(*name.split(".")), sql.SQL(", ").join(arguments))
            connection.execute(call)


def test_a_memory_on_a_replica_answers_every_read(conn_string: str, user_id: str) -> None:
    filled(conn_string, user_id)
    replica = f"{conn_string}?options=-c%20default_transaction_read_only%3Don"
    memory = SupabaseMemory.from_conn_string(
        replica,
        user_id=user_id,
        retention=Retention(max_age=timedelta(days=1)),
        embeddings=WordEmbedder(),
        config=MemoryConfig(policy=SummaryPolicy(mode="background"), chunking=ChunkPolicy(mode="background")),
    )
    with memory:
        assert "m9" not in {each.message_id for each in memory.conversation("t").read(columns=["message_id"])}
        assert memory.conversation("t").count() == len(memory.conversation("t").read()) == 50
        assert len(memory.conversation("t").turns.list()) == 20
        pack = memory.conversation("t").context("Where is kiln 3?", budget=ContextBudget(characters=3000))
        assert pack.expired
        assert "The kiln number 3 " not in "".join(each.content for each in pack.recalled)
        assert memory.conversation("t").coverage().range_of(0).state == "expired"
        assert memory.conversation("t").summaries.list()
        assert not memory.conversation("t").board.read().is_empty
        assert memory.conversation("t").recall("kiln")
        assert [each.message_count for each in memory.conversations()] == [50]
        assert memory.work.status()


@pytest.mark.parametrize("on_error", ["setup", "raise"])
def test_a_node_that_only_loads_does_so_where_nothing_can_be_written(
    conn_string: str, user_id: str, on_error: OnError
) -> None:
    saver = InMemorySaver()
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        Subject(memory, "nodes-sync", saver=saver).graph.invoke(asks("one"), config())
    replica = f"{conn_string}?options=-c%20default_transaction_read_only%3Don"
    with SupabaseMemory.from_conn_string(
        replica, user_id=user_id, config=MemoryConfig(policy=SummaryPolicy(mode="background"))
    ) as memory:
        shown: list[str] = []

        class State(MessagesState):
            context_messages: list[AnyMessage]

        def model(state: Any) -> Any:
            shown.extend(texts(state["context_messages"]))
            return {}

        builder = StateGraph(State).add_node("load", LoadContextNode(memory, on_error=on_error))
        builder.add_node("model", model).add_edge(START, "load").add_edge("load", "model")
        builder.compile(checkpointer=saver).invoke(asks("two"), config())
        assert shown == ["one", "re one", "two"]


# --- A real streaming replica


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Cluster, Replica]]:
    """A primary of this file's own, and a replica that follows it."""
    with Cluster() as primary, replica_of(primary) as replica:
        yield primary, replica


@pytest.fixture(params=["direct", "data_api"])
def memories(
    request: pytest.FixtureRequest, pair: tuple[Cluster, Replica], user_id: str
) -> Iterator[tuple[SupabaseMemory, SupabaseMemory, Replica]]:
    """A memory at the primary and one at the replica, by either caller, over a database that is filled."""
    primary, replica = pair
    name = primary.migrated_database()
    filled(primary.conn_string(name), user_id)
    replica.follow()
    settings: dict[str, Any] = {
        "user_id": user_id,
        "embeddings": WordEmbedder(),
        "model": ExtractiveSummarizer(),
        "policy": SummaryPolicy(mode="background"),
        "chunking": ChunkPolicy(mode="background"),
    }
    with ExitStack() as stack:
        written = SupabaseMemory.from_conn_string(primary.conn_string(name), **memory_keywords(settings))
        if request.param == "direct":
            read = SupabaseMemory.from_conn_string(replica.conn_string(name), **memory_keywords(settings))
        else:
            api = stack.enter_context(DataApi(replica, name, listens=False))
            read = SupabaseMemory.from_url(api.url, token("service_role"), rest_path="", **memory_keywords(settings))
        yield stack.enter_context(written), stack.enter_context(read), replica


def looked_at(memory: SupabaseMemory) -> dict[str, Any]:
    """What every read of a conversation and of its user answers."""
    talk = memory.conversation("t")
    return {
        "read": [each.message_id for each in talk.read(columns=["message_id"])],
        "count": talk.count(),
        "turns": [(each.number, each.user_query) for each in talk.turns.list()],
        "find": [each.message.message_id for each in talk.find("kiln", limit=5)],
        "summaries": [each.content for each in talk.summaries.list()],
        "coverage": talk.coverage().range_of(0).state,
        "chunks": [each.content for each in talk.chunks.list()],
        "board": [each.text for each in talk.board.read().items],
        "pack": [str(each.content) for each in talk.context("Where is kiln 13?").messages],
        "recall": [each.content for each in memory.recall("kiln 13").chunks],
        "conversations": [(each.thread_id, each.message_count) for each in memory.conversations()],
        "opt_outs": memory.privacy.opt_outs(),
        "manifests": talk.manifests(),
        "status": len(memory.work.status()),
    }


@pytest.mark.slow
def test_a_replica_answers_every_read_as_the_primary_does(
    memories: tuple[SupabaseMemory, SupabaseMemory, Replica],
) -> None:
    written, read, replica = memories
    expected = looked_at(written)
    assert all(expected[each] for each in ("read", "turns", "find", "summaries", "chunks", "board", "pack", "recall"))
    assert looked_at(read) == expected

    # It lags: it answers as things were, and then as they are.
    replica.lag()
    written.conversation("t").add_turn("Where is the newest kiln?", "In Tartu.")
    assert looked_at(read) == expected
    replica.follow()
    assert looked_at(read)["turns"] == looked_at(written)["turns"] != expected["turns"]


@pytest.mark.slow
def test_what_writes_says_that_it_cannot(memories: tuple[SupabaseMemory, SupabaseMemory, Replica]) -> None:
    written, read, _ = memories
    before = looked_at(written)
    talk = read.conversation("t")
    for write in (
        lambda: talk.append([HumanMessage("new")]),
        lambda: talk.add_turn("q", "a"),
        talk.forget,
        lambda: talk.forget_message("m12"),
        lambda: talk.update(title="A kiln"),
        lambda: talk.opt_out("divorce", actor="ana"),
        lambda: talk.board.add("fact", "new", actor="ana"),
        talk.summaries.request,
        read.forget_user,
        read.forget_expired,
    ):
        with pytest.raises(ConfigurationError, match="takes no writes.*primary's address") as refused:
            write()
        assert refused.value.code == "25006"
    assert looked_at(written) == before


@pytest.mark.slow
def test_a_replica_reads_the_store(memories: tuple[SupabaseMemory, SupabaseMemory, Replica]) -> None:
    """Also what would live on when it is read: there it does not."""
    written, read, replica = memories
    SupabaseStore(written).put(("kilns",), "old", {"stands in": "Riga"}, ttl=60)
    replica.follow()
    there, here = SupabaseStore(written), SupabaseStore(read)
    if read._services.transport.endpoint.kind != "postgres":  # PostgREST begins to write wherever a function might
        with pytest.raises(ConfigurationError, match="takes no writes"):
            here.get(("kilns",), "old")
        return
    got = here.get(("kilns",), "old", refresh_ttl=True)
    assert got is not None
    assert got == there.get(("kilns",), "old", refresh_ttl=False)
    assert [each.key for each in here.search(("kilns",), query="Riga", refresh_ttl=True)] == ["old"]
    assert here.list_namespaces() == [("kilns",)]
    with pytest.raises(ConfigurationError, match="takes no writes"):
        here.put(("kilns",), "new", {"stands in": "Tartu"})


@pytest.mark.slow
def test_what_would_go_is_counted_on_a_replica(memories: tuple[SupabaseMemory, SupabaseMemory, Replica]) -> None:
    written, read, _ = memories
    counts: list[Callable[[SupabaseMemory], Receipt]] = [
        lambda memory: memory.forget_user(dry_run=True),
        lambda memory: memory.conversation("t").forget(dry_run=True),
        lambda memory: memory.conversation("t").forget_message("m12", dry_run=True),
    ]
    for count in counts:
        expected = count(written)
        assert expected.messages > 0
        if read._services.transport.endpoint.kind == "postgres":
            assert count(read) == expected
        else:  # PostgREST begins to write wherever a function might
            with pytest.raises(ConfigurationError, match="takes no writes"):
                count(read)
    # What goes by age is deleted and taken back, and so needs the primary; where nothing can go, nothing is written.
    with pytest.raises(ConfigurationError, match="takes no writes.*primary's address"):
        read.forget_expired(retention=Retention(max_messages=2), dry_run=True)


@pytest.mark.slow
def test_a_user_s_token_holds_on_a_replica(
    memories: tuple[SupabaseMemory, SupabaseMemory, Replica], user_id: str
) -> None:
    written, read, _ = memories
    for who, expected in ((user_id, looked_at(written)["read"]), ("a stranger", [])):
        is_direct = read._services.transport.endpoint.kind == "postgres"
        identity: Any = {"sub": who, "role": "authenticated"} if is_direct else token(user_id=who)
        asked = read.for_token(identity)
        assert [each.message_id for each in asked.conversation("t").read(columns=["message_id"])] == expected, who
        assert bool(asked.conversations()) is bool(asked.recall("kiln").chunks) is bool(expected), who


@pytest.mark.slow
def test_a_replica_that_is_away_says_so_and_holds_up_nobody(pair: tuple[Cluster, Replica], user_id: str) -> None:
    primary, replica = pair
    name = primary.migrated_database()
    filled(primary.conn_string(name), user_id)
    replica.follow()
    with (
        SupabaseMemory.from_conn_string(primary.conn_string(name), user_id=user_id) as written,
        SupabaseMemory.from_conn_string(replica.conn_string(name), user_id=user_id, retry=NO_RETRY) as read,
    ):
        assert read.conversation("t").count() == 60
        replica.halt()
        try:
            for _ in range(2):
                with pytest.raises(UnavailableError) as away:
                    read.conversation("t").read()
                assert away.value.hint
            written.conversation("t").add_turn("Where is the newest kiln?", "In Tartu.")
            assert written.conversation("t").count() == 62
        finally:
            replica.resume()
        replica.follow()
        end = time.monotonic() + 60
        while True:
            try:
                assert read.conversation("t").count() == 62
                break
            except UnavailableError:  # it is asked seldom as long as it was away
                assert time.monotonic() < end
                time.sleep(0.2)


@pytest.mark.slow
async def test_a_worker_at_a_replica_ends_and_says_why(pair: tuple[Cluster, Replica], user_id: str) -> None:
    primary, replica = pair
    name = primary.migrated_database()
    replica.follow()
    memory = SupabaseMemory.from_conn_string(replica.conn_string(name), user_id=user_id, model=ExtractiveSummarizer())
    with pytest.raises(ConfigurationError, match="takes no writes"):
        await Worker(memory).drain()
    await memory.aclose()


@pytest.mark.slow
async def test_the_inspector_shows_a_replica(pair: tuple[Cluster, Replica], user_id: str) -> None:
    primary, replica = pair
    name = primary.migrated_database()
    filled(primary.conn_string(name), user_id)
    replica.follow()
    memory = SupabaseMemory.from_conn_string(replica.conn_string(name), user_id=user_id, embeddings=WordEmbedder())
    async with Person(memory) as person:
        listed = await person.page("/")
        (title,) = listed.all("a", class_="title")
        for part in ("", "/summaries", "/board", "/prompt"):
            path, _, asked = str(title["href"]).partition("?")
            assert "kiln" in (await person.page(f"{path}{part}?{asked}")).text, part
        for path in ("/queue", "/doctor", "/recall"):
            assert (await person.page(path)).text, path
        # It lags: it shows how things were.
        replica.lag()
        with SupabaseMemory.from_conn_string(primary.conn_string(name), user_id=user_id) as written:
            written.conversation("t").update(title="A kiln in Tartu")
            await asyncio.to_thread(written.conversation("later").add_turn, "And now?", "Now, too.")
        shown = await person.page("/")
        assert len(shown.all("a", class_="title")) == 1
        assert "A kiln in Tartu" not in shown.text
        replica.follow()
        shown = await person.page("/")
        assert len(shown.all("a", class_="title")) == 2
        assert "A kiln in Tartu" in shown.text
    await memory.aclose()


@pytest.mark.slow
def test_a_replica_is_set_up_at_its_primary(pair: tuple[Cluster, Replica]) -> None:
    primary, replica = pair
    name = primary.migrated_database()
    replica.follow()
    with pytest.raises(ConfigurationError, match="takes no writes"):
        migrate(replica.conn_string(name))
    with SupabaseMemory.from_conn_string(replica.conn_string(name)) as memory:
        named = findings_by_name(memory)
        assert named["schema"].state == "green"
        assert {each.name: each.text for each in named.values() if each.state == "red"} == {}


def until_it_lags_no_more(memory: SupabaseMemory) -> None:
    """The server writes to its log by itself, too, and so something may just have arrived."""
    end = time.monotonic() + 60
    while memory._services.transport.perform(Call("memory_worker_doctor", {}))["replay_lag_seconds"] != 0:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_the_doctor_says_how_far_a_replica_is_behind(pair: tuple[Cluster, Replica]) -> None:
    primary, replica = pair
    name = primary.migrated_database()
    lag = Call("memory_worker_doctor", {})
    with (
        SupabaseMemory.from_conn_string(primary.conn_string(name), user_id="u") as written,
        SupabaseMemory.from_conn_string(replica.conn_string(name), user_id="u") as read,
    ):
        written.conversation("t").add_turn("Where is the kiln?", "In Riga.")
        replica.follow()
        assert "replica" not in findings_by_name(written)
        assert written._services.transport.perform(lag)["replay_lag_seconds"] is None
        assert findings_by_name(read)["replica"].state == "green"
        until_it_lags_no_more(read)

        replica.lag()
        written.conversation("t").add_turn("And the newest?", "In Tartu.")
        first = second = 0.0
        while not 0 < first < second:  # what was written has to arrive first
            first, second = (read._services.transport.perform(lag)["replay_lag_seconds"] for _ in range(2))
        assert second < 60
        assert findings_by_name(read)["replica"].state == "green"
        replica.follow()
        until_it_lags_no_more(read)

        # The server's clock two minutes on: a test does not wait for so long.
        with psycopg.connect(primary.conn_string(name), autocommit=True) as connection:
            row = connection.execute("select pg_get_functiondef('public.memory_worker_doctor'::regproc)").fetchone()
            assert row is not None
            later = re.sub(
                r"(extract\(epoch from\s+clock_timestamp\(\))", r"\1 + interval '2 minutes'", row[0], count=1
            )
            assert later != row[0]
            connection.execute(later.encode())
        replica.follow()
        assert findings_by_name(read)["replica"].state == "green", "all that was received is replayed"
        replica.lag()
        written.conversation("t").add_turn("And the oldest?", "In Tallinn.")
        while findings_by_name(read)["replica"].state == "green":
            pass  # until it has arrived
        assert findings_by_name(read)["replica"].state == "yellow"
        assert "up to 2 min behind its primary" in findings_by_name(read)["replica"].text
        replica.follow()
        assert findings_by_name(read)["replica"].state == "green"
