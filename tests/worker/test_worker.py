"""The worker: due work is done during appends, within limits, and always released."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from langchain_supabase_memory import ChunkPolicy, MemoryConfig, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.adapters.transports.postgres import PostgresTransport
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import (
    ConfigurationError,
    InvalidInputError,
    PermissionDeniedError,
    SchemaOutdatedError,
    UnavailableError,
)
from langchain_supabase_memory.long_term.store_backend import StoreLongTerm
from langchain_supabase_memory.memory.services import ME, DefaultUser
from langchain_supabase_memory.operations import work
from langchain_supabase_memory.settings import NO_RETRY, BoardPolicy
from langchain_supabase_memory.values import ConversationKey
from langchain_supabase_memory.worker import Worker, WorkerPolicy, rate_limits
from langchain_supabase_memory.worker.job import run_job
from langchain_supabase_memory.worker.rate_limits import RateLimiter
from langchain_supabase_memory.worker.wake import Wake
from tests.chat_models import ScriptedModel
from tests.each_case import each_case
from tests.embedders import ScriptedEmbedder, WordEmbedder
from tests.examining import findings_by_name
from tests.memory_keywords import memory_keywords
from tests.services.data_api import DataApi, token
from tests.services.emptied import delete_from
from tests.services.postgres import Cluster, execute
from tests.services.sessions import Sessions
from tests.sql.test_schema import newer_release

SUMMARIES = SummaryPolicy(messages=4, keep_messages=1, attempts=1, mode="background", min_quality=None)
BOARDS = BoardPolicy(update_frequency=5, attempts=1)
FAST = WorkerPolicy(poll_seconds=0.1, debounce_seconds=0.0, retry_seconds=0.2, grace_seconds=5.0)
ANSWER = '{"summary": "What was said."}'
SOON = 15.0
"""Much longer than anything here takes, in seconds."""


@dataclass
class Model:
    """A chat model's answers: as a function that is asked in the worker's own event loop.

    Attributes:
        seconds: How long it thinks.
        error: What it raises.
        shown: What it was shown, each time.
        at_once: How many calls there are now.
        most_at_once: And were, at most.
        times: When it was asked.
    """

    seconds: float = 0.0
    error: Exception | None = None
    shown: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    times: list[float] = field(default_factory=list)
    cancelled: int = 0

    def __call__(self, messages: list[BaseMessage]) -> Awaitable[str]:
        return self.answer(messages)

    async def answer(self, messages: list[BaseMessage]) -> str:
        self.times.append(time.monotonic())
        self.shown.append("\n".join(str(each.text) for each in messages))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.seconds:
                await asyncio.sleep(self.seconds)
            if self.error is not None:
                raise self.error
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.at_once -= 1
        return ANSWER


@dataclass(frozen=True)
class Place:
    """A database where nobody else's work is, and its Data API."""

    address: str
    url: str

    def memory(self, model: Any = None, *, kind: str = "direct", **settings: Any) -> SupabaseMemory:
        settings = {"policy": SUMMARIES, "board_policy": BOARDS, "model": model, **settings}
        if kind == "direct":
            return SupabaseMemory.from_conn_string(self.address, **memory_keywords(settings))
        return SupabaseMemory.from_url(self.url, token("service_role"), rest_path="", **memory_keywords(settings))

    def execute(self, statement: str) -> list[Any]:
        return execute(self.address, statement)

    @property
    def queue(self) -> list[tuple[Any, ...]]:
        """Of each piece of work: whose, who is at it, how often it was tried in a row, why it failed, and if it is dead."""
        return self.execute(
            "select user_id, worker, attempts + coalesce((select max((d.value ->> 'failures')::integer)"
            " from jsonb_each(paused) d), 0), error, dead_at is not null from memory_private.work"
        )

    def now_due(self) -> None:
        """What waits need not wait any more."""
        self.execute(
            "update memory_private.work w set run_after = now(), paused = coalesce((select jsonb_object_agg("
            " d.key, d.value || jsonb_build_object('until', now())) from jsonb_each(w.paused) d), '{}')"
            " where run_after < 'infinity'"
        )

    @property
    def leases(self) -> int:
        (row,) = self.execute("select count(*) from memory_private.work where lease_until > clock_timestamp()")
        return int(row[0])

    def covered(self) -> list[tuple[str, int, int]]:
        """Of each thread how far its summary, and how far its board go."""
        return self.execute(
            "select c.thread_id, c.summarized_through, coalesce(b.through_sequence, -1) from memory.conversations c"
            " left join memory.conversation_summary_boards b on b.conversation_id = c.id order by c.thread_id"
        )

    def say(self, *threads: str, messages: int = 6, text: str = "message", user_id: str = "u") -> None:
        with SupabaseMemory.from_conn_string(self.address, user_id=user_id) as memory:
            for thread_id in threads:
                batch = [HumanMessage(f"{text} {number} of {thread_id}") for number in range(messages)]
                memory.conversation(thread_id).append(batch)


@pytest.fixture(scope="module")
def whole(cluster: Cluster, kept_sessions: Sessions) -> Iterator[Place]:
    name = cluster.migrated_database()
    with DataApi(cluster, name) as api, kept_sessions.of(cluster.port, name):
        yield Place(cluster.conn_string(name), api.url)


@pytest.fixture
def place(cluster: Cluster, whole: Place) -> Place:
    """It, with nothing in it."""
    delete_from(cluster, whole.address.rpartition("/")[2], "memory.conversations", "memory_private.chores")
    return whole


async def until(holds: Callable[[], bool], seconds: float = SOON) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < end, "it never came"
        await asyncio.sleep(0.02)


@pytest.fixture
async def kept() -> AsyncIterator[Callable[[SupabaseMemory], SupabaseMemory]]:
    """Closes memories at the end."""
    memories: list[SupabaseMemory] = []

    def keep(memory: SupabaseMemory) -> SupabaseMemory:
        memories.append(memory)
        return memory

    yield keep
    for memory in memories:
        await memory.aclose()


Keep = Callable[[SupabaseMemory], SupabaseMemory]
BOTH = pytest.mark.parametrize("kind", ["direct", "data_api"])


# --- Running


@BOTH
async def test_what_is_due_is_done(place: Place, kept: Keep, kind: str) -> None:
    place.say("a", "b", "c")
    model = Model()
    worker = Worker(kept(place.memory(model, kind=kind, embeddings=WordEmbedder())), policy=FAST)
    async with worker:
        await until(lambda: place.queue == [])
        place.say("a", text="later")
        await until(lambda: place.queue == [])
    assert place.covered() == [("a", 10, 11), ("b", 4, 5), ("c", 4, 5)]
    assert worker.stats.outcomes["done"] >= 4
    assert (worker.stats.summaries, worker.stats.boards) == (4, 4)
    assert worker.stats.chunks > 0
    assert len(model.shown) == 8
    assert place.execute("select count(*) from memory.summary_embeddings") != [(0,)]
    assert place.execute("select min(indexed_through) from memory.conversations") == [(5,)]


@BOTH
async def test_draining_ends_when_nothing_is_left(place: Place, kept: Keep, kind: str) -> None:
    place.say(*(f"t{number}" for number in range(10)))
    worker = Worker(kept(place.memory(Model(), kind=kind)), policy=WorkerPolicy(debounce_seconds=60, poll_seconds=60))
    tally = await asyncio.wait_for(worker.drain(), SOON)
    assert (tally.outcomes, tally.summaries, tally.boards) == ({"done": 10}, 10, 10)
    assert place.queue == []
    place.say("t1")
    assert (await asyncio.wait_for(worker.drain(), SOON)).outcomes == {"done": 11}, "it may run again"


async def test_draining_leaves_what_waits(place: Place, kept: Keep) -> None:
    place.say("t")
    worker = Worker(kept(place.memory(Model(error=ValueError("no")))))
    tally = await asyncio.wait_for(worker.drain(), SOON)
    assert tally.outcomes == {"retry": 1}
    ((_, worker_name, attempts, error, dead),) = place.queue
    assert (worker_name, attempts, dead) == (None, 1, False)
    assert "ValueError" in error


async def test_run_ends_when_it_is_stopped(place: Place, kept: Keep) -> None:
    worker = Worker(kept(place.memory(Model())), policy=WorkerPolicy(poll_seconds=60, debounce_seconds=0))
    task = asyncio.create_task(worker.run())
    await until(lambda: worker.health()[0])
    await asyncio.sleep(0.1)
    worker.stop()
    await asyncio.wait_for(task, 5)
    assert not worker.health()[0]


async def test_stopping_what_never_ran_is_nothing(place: Place, kept: Keep) -> None:
    Worker(kept(place.memory())).stop()


@BOTH
def test_beside_an_application_without_a_loop(place: Place, kind: str) -> None:
    with place.memory(Model(), kind=kind) as memory, Worker(memory, policy=FAST).in_thread() as worker:
        place.say("t")
        end = time.monotonic() + SOON
        while place.queue:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert worker.health()[0]
        assert threading.active_count() > 1
    assert place.covered() == [("t", 4, 5)]
    assert not [thread for thread in threading.enumerate() if thread.name == "supabase-memory-worker"]


def test_a_thread_that_has_nothing_to_do_ends_at_once(place: Place) -> None:
    with place.memory() as memory:
        start = time.monotonic()
        with Worker(memory, policy=WorkerPolicy(poll_seconds=60)).in_thread():
            pass
        assert time.monotonic() - start < 10


async def test_inside_a_loop_that_runs_already(place: Place, kept: Keep) -> None:
    """As in a notebook: beside what the loop does otherwise, and with the same memory."""
    memory = kept(place.memory(Model(), user_id="u"))
    task = asyncio.create_task(Worker(memory, policy=FAST).run())
    await memory.conversation("t").aappend([HumanMessage(f"m{number}") for number in range(6)])
    await until(lambda: place.covered() == [("t", 4, 5)] and place.queue == [])
    assert (await memory.conversation("t").board.aread()).through_sequence == 5
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await memory.conversation("t").aappend([HumanMessage("more")])


async def test_the_same_worker_twice_is_an_error(place: Place, kept: Keep) -> None:
    worker = Worker(kept(place.memory()), policy=FAST)
    async with worker:
        await until(lambda: worker.health()[0])
        for again in (worker.run, worker.drain, worker.__aenter__):
            with pytest.raises(ConfigurationError, match="running already"):
                await again()
        with pytest.raises(ConfigurationError, match="running already"), worker.in_thread():
            pass
        assert worker.health()[0], "the first goes on"
    async with worker:
        pass


def test_a_user_is_no_worker(place: Place) -> None:
    with place.memory() as server, pytest.raises(ConfigurationError, match="cannot act as one user"):
        Worker(server.for_token({"sub": "u", "role": "authenticated"}))
    anonymous = SupabaseMemory.from_url(place.url, token("anon"), rest_path="")
    with anonymous, pytest.raises(ConfigurationError, match="cannot act as one user"):
        Worker(anonymous.for_token(token(user_id="u")))


async def test_a_key_that_is_no_servers_is_an_error_at_the_beginning(place: Place, kept: Keep) -> None:
    memory = kept(SupabaseMemory.from_url(place.url, token("anon"), rest_path=""))
    with pytest.raises(PermissionDeniedError):
        await asyncio.wait_for(Worker(memory, policy=FAST).run(), SOON)
    with pytest.raises(PermissionDeniedError), Worker(memory, policy=FAST).in_thread():
        pass


async def test_the_user_of_the_memory_narrows_the_work(place: Place, kept: Keep) -> None:
    place.say("theirs", user_id="someone else")
    place.say("own", user_id="u")
    own = kept(place.memory(Model(), user_id="u"))
    await Worker(own).drain()
    assert place.covered() == [("own", 4, 5), ("theirs", -1, -1)]
    with pytest.raises(InvalidInputError, match="made for one user"):
        Worker(own.for_user("someone else"))
    await Worker(kept(place.memory(Model(), user_id=ME))).drain()  # a default is not a user that it was made for
    assert place.covered() == [("own", 4, 5), ("theirs", 4, 5)]


async def test_a_named_owner_narrows_the_work(place: Place, kept: Keep) -> None:
    """What is due, and what is done from time to time: nobody else's, and not the one of a default."""
    from langchain_supabase_memory import Retention

    place.say("theirs", "lost", "old", "asleep", user_id="ana")
    place.say("others", "others' lost", "others' old", "others' asleep", user_id="ben")
    place.execute("delete from memory_private.work w using memory.conversations c"
                  " where c.id = w.conversation_id and c.thread_id like '%lost'")  # fmt: skip
    place.execute("update memory.conversation_messages m set created_at = m.created_at - interval '9 days'"
                  " from memory.conversations c where c.id = m.conversation_id and c.thread_id like '%old'")  # fmt: skip
    place.execute("update memory.conversations set updated_at = now() - interval '2 days'"
                  " where thread_id like '%asleep'")  # fmt: skip
    before = place.execute(OF_BEN)
    archives = replace(FAST, archive_after=timedelta(days=1))
    memory = kept(
        place.memory(
            Model(),
            user_id=DefaultUser("ben"),
            embeddings=WordEmbedder(),
            retention=Retention(max_age=timedelta(days=3)),
        )
    )
    worker = Worker(memory.for_user("ana"), policy=archives)
    assert (await asyncio.wait_for(worker.drain(), SOON)).outcomes["done"] >= 3
    assert place.execute(OF_BEN) == before
    ana = "select thread_id, message_count, summarized_through, archived_at is null from memory.conversations"
    found = {row[0]: row[1:] for row in place.execute(f"{ana} where user_id = 'ana'")}
    assert found == {"theirs": (6, 4, True), "lost": (6, 4, True), "old": (0, 5, True), "asleep": (6, 4, False)}
    assert place.execute("select distinct user_id from memory.summary_embeddings") == [("ana",)]
    assert [row[0] for row in place.execute("select name from memory_private.chores")] == ["heartbeat"]

    # Somebody else's flood gives no alert, and theirs is taken as soon as everybody's.
    alerts: list[str] = []
    policy = replace(FAST, alert_seconds=600)
    place.execute("update memory_private.work set since = since - interval '1 hour'")
    async with Worker(memory.for_user("ana"), policy=policy, on_alert=lambda kind, _: alerts.append(kind)):
        place.say("more", user_id="ana")
        await until(lambda: {row[0] for row in place.queue} == {"ben"})
    assert alerts == []
    assert (await memory._services.arun(work.queue(user_id="ana"))).depth == 0
    assert (await memory._services.arun(work.queue())).depth == 3
    with pytest.raises(InvalidInputError, match="1 to 512 bytes"):
        Worker(memory.for_user(""))


OF_BEN = (
    "select c.thread_id, c.message_count, c.summarized_through, c.indexed_through, c.archived_at, w.run_after"
    " from memory.conversations c left join memory_private.work w on w.user_id = c.user_id and w.conversation_id = c.id"
    " where c.user_id = 'ben' order by 1"
)


async def test_without_a_model_it_only_indexes(place: Place, kept: Keep) -> None:
    place.say("t")
    tally = await Worker(kept(place.memory(None))).drain()
    assert (tally.outcomes, tally.summaries, tally.boards) == ({"done": 1}, 0, 0)
    assert tally.chunks > 0


async def test_duties_may_be_left_out(place: Place, kept: Keep) -> None:
    place.say("t")
    tally = await Worker(kept(place.memory(Model())), policy=WorkerPolicy(duties=("board",))).drain()
    assert (tally.summaries, tally.boards, tally.chunks) == (0, 1, 0)


async def test_a_wish_is_served_though_nothing_is_due(place: Place, kept: Keep) -> None:
    place.say("t", messages=3)
    memory = kept(place.memory(Model(), user_id="u"))
    await Worker(memory).drain()
    assert place.covered() == [("t", -1, -1)]
    await memory.conversation("t").summaries.arequest()
    await Worker(memory).drain()
    assert place.covered() == [("t", 1, 2)]
    assert place.execute("select requested_at = served_at from memory.conversations") == [(True,)]


# --- Waking


async def test_a_notification_wakes_it_long_before_the_clock(place: Place, kept: Keep) -> None:
    policy = WorkerPolicy(poll_seconds=60, debounce_seconds=0.2)
    async with Worker(kept(place.memory(Model())), policy=policy):
        await asyncio.sleep(0.5)
        for number in range(3):
            place.say(f"t{number}")
            await until(lambda: place.queue == [], 8)
    assert len(place.covered()) == 3


async def test_what_happened_while_a_piece_ran_wakes_it_too(place: Place, kept: Keep) -> None:
    model = Model(seconds=0.5)
    place.say("t")
    policy = WorkerPolicy(poll_seconds=60, debounce_seconds=0.1)
    async with Worker(kept(place.memory(model)), policy=policy) as worker:
        await until(lambda: model.at_once == 1)
        place.say("t")
        await until(lambda: place.queue == [], 10)
    assert worker.stats.outcomes["again"] >= 1
    assert place.covered() == [("t", 10, 11)]


class Loud:
    """A transport that hears a thousand notifications at once."""

    def __init__(self) -> None:
        self.heard = 0

    async def alisten(self, channel: str) -> AsyncIterator[None]:
        for _ in range(1000):
            yield
            self.heard += 1
        await asyncio.sleep(3600)


async def test_a_thousand_notifications_are_heard_at_once_and_ring_seldom() -> None:
    """A listener that is slow fills the queue of the server, and at last nobody can commit."""
    transport: Any = Loud()
    async with Wake(transport, 60, debounce_seconds=0.3) as wake:
        assert not await wake.wait(0.15)
        assert transport.heard == 1000
        assert await wake.wait(5)
        assert await wake.wait(5), "what came after the first has to settle, too"
        assert not await wake.wait(0.7)


async def test_over_the_data_api_the_clock_wakes_it(place: Place, kept: Keep) -> None:
    policy = WorkerPolicy(poll_seconds=0.2, debounce_seconds=0.1)
    async with Worker(kept(place.memory(Model(), kind="data_api")), policy=policy):
        await asyncio.sleep(0.3)
        place.say("t")
        await until(lambda: place.queue == [])
    assert place.covered() == [("t", 4, 5)]


# --- Limits


async def test_it_takes_no_more_than_it_has_hands(place: Place, kept: Keep) -> None:
    place.say(*(f"t{number}" for number in range(9)))
    model = Model(seconds=0.2)
    policy = WorkerPolicy(concurrency=3, poll_seconds=60, debounce_seconds=0)
    most = 0
    async with Worker(kept(place.memory(model)), policy=policy):
        while place.queue:
            most = max(most, place.leases)
            await asyncio.sleep(0.01)
    assert most == model.most_at_once == 3


async def test_the_model_is_asked_by_few_at_once(place: Place, kept: Keep) -> None:
    place.say(*(f"t{number}" for number in range(6)))
    model = Model(seconds=0.05)
    await Worker(kept(place.memory(model)), policy=WorkerPolicy(concurrency=6, model_concurrency=2)).drain()
    assert model.most_at_once == 2
    assert len(model.shown) == 12


async def test_the_model_is_asked_so_often_a_minute(place: Place, kept: Keep) -> None:
    place.say(*(f"t{number}" for number in range(3)))
    model = Model()
    await Worker(kept(place.memory(model)), policy=WorkerPolicy(model_calls_per_minute=240)).drain()
    assert len(model.times) == 6
    # Four a second, of which as many as come in one second may come at once.
    assert model.times[-1] - model.times[0] >= 0.25


async def test_a_model_that_fails_is_asked_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = RateLimiter(4)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(rate_limits, "asyncio", SimpleNamespace(sleep=sleep))

    async def fail() -> None:
        raise ValueError

    for _ in range(3):
        with pytest.raises(ValueError):
            await limits.through(fail)
    assert pauses == []
    with pytest.raises(ValueError):
        await limits.through(fail)
    (pause,) = pauses
    assert 0 < pause <= 1

    async def succeed() -> int:
        return 1

    assert await limits.through(succeed) == 1
    pauses.clear()
    limits._resume_at = 0.0
    for _ in range(2):
        with pytest.raises(ValueError):
            await limits.through(fail)
    assert pauses == [], "in a row, not in all"


# --- Failures


async def test_a_model_that_fails_is_tried_again_then_given_up_then_retried(place: Place, kept: Keep) -> None:
    place.say("t")
    model = Model(error=ValueError("refused"))
    alerts: list[tuple[str, Any]] = []
    memory = kept(place.memory(model))
    policy = WorkerPolicy(poll_seconds=0.1, debounce_seconds=0, retry_seconds=0.1, max_attempts=2)
    async with Worker(memory, policy=policy, on_alert=lambda kind, facts: alerts.append((kind, facts))) as worker:
        await until(lambda: bool(alerts))
        assert worker.stats.outcomes == {"retry": 1, "dead": 1}
        ((kind, facts),) = alerts
        assert (kind, facts["memory_thread_id"], facts["memory_attempts"]) == ("dead", "t", 2)
        (status,) = await memory.work.astatus(state="dead")
        assert "ValueError" in str(status.error)
        assert place.covered() == [("t", -1, -1)]
        calls = len(model.shown)
        await asyncio.sleep(0.5)
        assert len(model.shown) == calls
        model.error = None
        assert await memory.work.aretry() == 1
        await until(lambda: place.queue == [])
    assert place.covered() == [("t", 4, 5)]


async def test_an_alert_that_fails_does_not_stop_the_work(place: Place, kept: Keep) -> None:
    def fail(kind: str, facts: Any) -> None:
        raise ValueError(kind)

    place.say("t")
    worker = Worker(kept(place.memory(Model(error=ValueError()))), policy=WorkerPolicy(max_attempts=1), on_alert=fail)
    assert (await worker.drain()).outcomes == {"dead": 1}


async def test_an_embedder_that_fails_does_not_hold_up_the_summary(place: Place, kept: Keep) -> None:
    """Not even when it has failed so often that it is waited for."""

    def fail(texts: list[str]) -> Any:
        raise ValueError("no vectors today")

    place.say("a", "b", "c", "d", "e")
    memory = kept(place.memory(Model(), embeddings=ScriptedEmbedder(fail)))
    memory._services.embeddings._wait_seconds = 0  # type: ignore[union-attr]
    async with Worker(
        memory, policy=WorkerPolicy(concurrency=1, poll_seconds=0.1, debounce_seconds=0, retry_seconds=60)
    ):
        await until(lambda: len(model_covered(place)) >= 2)
        assert all(row[3] is None or "embedder" in row[3].lower() for row in place.queue)
    assert place.execute("select min(unembedded_from) from memory.conversations") == [(0,)], "words are indexed"


def model_covered(place: Place) -> list[tuple[str, int, int]]:
    return [row for row in place.covered() if row[1:] == (4, 5)]


async def test_a_model_that_fails_does_not_hold_up_the_index(place: Place, kept: Keep) -> None:
    place.say("a", "b", "c", "d")
    model = Model(error=ValueError())
    memory = kept(place.memory(model, embeddings=WordEmbedder()))
    worker = Worker(memory, policy=FAST)
    async with worker:
        await until(lambda: place.execute("select min(indexed_through) from memory.conversations") == [(5,)])
    assert model_covered(place) == []


async def test_a_vector_that_was_missed_is_made_up_for(place: Place, kept: Keep) -> None:
    """The summary is there when the piece of work is tried again, and only its vector is missing."""
    failing = [True]

    def embed(texts: list[str]) -> Any:
        if failing[0]:
            raise ValueError
        return WordEmbedder().embed_documents(texts)

    place.say("t")
    memory = kept(place.memory(Model(), embeddings=ScriptedEmbedder(embed)))
    memory._services.embeddings._wait_seconds = 0  # type: ignore[union-attr]
    worker = Worker(memory)
    assert (await worker.drain()).outcomes == {"retry": 1}
    assert place.execute("select count(*) from memory.summary_embeddings") == [(0,)]
    failing[0] = False
    place.now_due()
    assert (await worker.drain()).outcomes == {"retry": 1, "done": 1}
    assert place.execute("select count(*) from memory.summary_embeddings") == [(1,)]


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit])
async def test_what_ends_a_piece_and_is_no_error_is_a_failure_as_any(
    place: Place, kept: Keep, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    """In the model as in what the application gives; nothing vanishes, and nothing that it says is logged."""
    place.say("model", "moved")

    async def call(_: Any) -> Any:
        raise error("a secret")

    ending: Any = call
    with caplog.at_level(logging.DEBUG):
        memory = kept(place.memory(ending, chunking=ChunkPolicy()))
        worker = Worker(memory, policy=replace(FAST, retry_seconds=60.0))
        assert (await worker.drain()).outcomes == {"retry": 2}
        calm = Worker(kept(place.memory(Model())), policy=replace(FAST, retry_seconds=60.0), long_term=ending)
        place.now_due()
        assert (await calm.drain()).outcomes == {"retry": 2}
    assert place.leases == 0
    assert "secret" not in caplog.text
    assert "never retrieved" not in caplog.text


async def test_a_model_that_swallows_its_cancellation_holds_up_nobody(place: Place, kept: Keep) -> None:
    place.say("t")
    over = asyncio.Event()

    async def stubborn(_: Any) -> str:
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await over.wait()
        return ANSWER

    worker = Worker(kept(place.memory(stubborn)), policy=replace(FAST, grace_seconds=0.1))
    task = asyncio.create_task(worker.run())
    await until(lambda: place.leases == 1)
    worker.stop()
    await asyncio.wait_for(task, 20)
    assert place.leases == 0
    over.set()


async def test_a_worker_that_is_refused_says_so_at_once(
    place: Place, kept: Keep, caplog: pytest.LogCaptureFixture
) -> None:
    """Beside an application its task is looked at only at the end."""
    memory = kept(SupabaseMemory.from_url(place.url, token("anon"), rest_path="", model=Model()))
    with pytest.raises(PermissionDeniedError):
        async with Worker(memory, policy=FAST) as worker:
            await until(lambda: not worker.health()[0] and worker.health()[1]["error"] is not None)
            assert worker.health()[1]["error"] == "PermissionDeniedError"
            assert [each.levelname for each in caplog.records if "could not continue" in each.message] == ["ERROR"]


async def test_a_model_that_hangs_is_not_waited_for(place: Place, kept: Keep) -> None:
    place.say("t")
    model = Model(seconds=600)
    quick = SummaryPolicy(messages=4, keep_messages=1, attempts=1, mode="background", timeout_seconds=0.2)
    memory = kept(place.memory(model, policy=quick, board_policy=BoardPolicy(attempts=1, timeout_seconds=0.2)))
    tally = await asyncio.wait_for(Worker(memory).drain(), SOON)
    assert tally.outcomes == {"retry": 1}
    assert "TimeoutError" in place.queue[0][3]
    assert model.cancelled == 2


async def test_a_model_that_blocks_its_thread_does_not_hold_up_the_others(place: Place, kept: Keep) -> None:
    release = threading.Event()

    def script(messages: list[BaseMessage]) -> str:
        if "of slow" in str(messages):
            release.wait(30)
        return ANSWER

    place.say("fast", "slow")
    async with Worker(kept(place.memory(ScriptedModel(script=script))), policy=FAST):
        try:
            await until(lambda: ("fast", 4, 5) in place.covered())
            assert ("slow", -1, -1) in place.covered()
        finally:
            release.set()


async def test_what_brought_down_workers_before_is_given_up(place: Place, kept: Keep) -> None:
    place.say("t")
    place.execute("update memory_private.work set attempts = 8")  # each of them taken, and none brought back
    model = Model()
    worker = Worker(kept(place.memory(model)))
    assert (await worker.drain()).outcomes == {"dead": 1}
    assert model.shown == []


# --- Cancelling and stopping


@BOTH
async def test_who_is_cancelled_gives_back_at_once(place: Place, kept: Keep, kind: str) -> None:
    place.say("a", "b")
    model = Model(seconds=600)
    worker = Worker(kept(place.memory(model, kind=kind)), policy=FAST)
    task = asyncio.create_task(worker.run())
    await until(lambda: model.at_once == 2)
    assert place.leases == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert place.leases == 0
    assert [(row[1], row[2], row[3]) for row in place.queue] == [(None, 0, None)] * 2
    assert (model.cancelled, model.at_once) == (2, 0)


def delayed_claims(memory: SupabaseMemory) -> asyncio.Event:
    """The answers to claims are on their way for a while: an event that is set once the database has given."""
    inner, entered = memory._services.transport.aperform, asyncio.Event()

    async def slow(call: Any) -> Any:
        answer = await inner(call)
        if call.function == "memory_worker_claim":
            entered.set()
            await asyncio.sleep(0.3)
        return answer

    memory._services.transport.aperform = slow  # type: ignore[method-assign]
    return entered


@BOTH
async def test_who_is_cancelled_while_it_takes_gives_back_too(place: Place, kept: Keep, kind: str) -> None:
    place.say("a", "b")
    memory = kept(place.memory(Model(seconds=600), kind=kind))
    entered = delayed_claims(memory)
    task = asyncio.create_task(Worker(memory, policy=FAST).run())
    await asyncio.wait_for(entered.wait(), SOON)
    assert place.leases == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert place.leases == 0


async def test_who_is_stopped_finishes_what_has_begun(place: Place, kept: Keep) -> None:
    place.say("a", "b")
    model = Model(seconds=0.4)
    policy = WorkerPolicy(concurrency=1, debounce_seconds=0, poll_seconds=0.1, grace_seconds=30)
    async with Worker(kept(place.memory(model)), policy=policy) as worker:
        await until(lambda: model.at_once == 1)
    assert worker.stats.outcomes == {"done": 1}, "and takes nothing more"
    assert len(model_covered(place)) == 1
    assert place.leases == 0
    assert len(place.queue) == 1


async def test_who_is_stopped_gives_back_what_takes_too_long(place: Place, kept: Keep) -> None:
    place.say("t")
    model = Model(seconds=600)
    policy = WorkerPolicy(debounce_seconds=0, poll_seconds=0.1, grace_seconds=0.3)
    start = time.monotonic()
    async with Worker(kept(place.memory(model)), policy=policy):
        await until(lambda: model.at_once == 1)
        start = time.monotonic()
    assert 0.3 <= time.monotonic() - start < 5
    assert place.leases == 0
    assert [row[1:4] for row in place.queue] == [(None, 0, None)]


@BOTH
async def test_a_time_to_drain_ends_with_grace_and_gives_back(place: Place, kept: Keep, kind: str) -> None:
    place.say("a", "b", "c")
    model = Model(seconds=1.5)
    memory = kept(place.memory(model, kind=kind))
    patient = WorkerPolicy(concurrency=2, duties=("summarize",), grace_seconds=30)
    tally = await asyncio.wait_for(Worker(memory, policy=patient).drain(seconds=0.7), SOON)
    assert tally.outcomes == {"done": 2}, "what has begun comes to its end, and nothing more is begun"
    assert place.leases == 0
    model.seconds = 600
    hasty = WorkerPolicy(concurrency=2, duties=("summarize",), grace_seconds=0.3)
    start = time.monotonic()
    tally = await asyncio.wait_for(Worker(memory, policy=hasty).drain(seconds=1), SOON)
    assert 1.3 <= time.monotonic() - start < 6
    assert (tally.outcomes, model.cancelled) == ({}, 1)
    assert place.leases == 0
    assert [row[1:4] for row in place.queue] == [(None, 0, None)], "and it counts as no try"
    model.seconds = 0
    start = time.monotonic()
    tally = await Worker(memory, policy=patient).drain(seconds=600)
    assert (tally.outcomes, place.queue) == ({"done": 1}, [])
    assert time.monotonic() - start < SOON, "it is the longest time, not the shortest"


async def test_a_time_to_drain_ends_the_chores_too(place: Place, kept: Keep) -> None:
    place.say("t")
    place.execute("update memory.conversations set updated_at = now() - interval '2 days'")
    place.execute("delete from memory_private.work")
    model = Model(seconds=600)
    policy = WorkerPolicy(archive_after=timedelta(hours=24), grace_seconds=0.2)
    start = time.monotonic()
    tally = await asyncio.wait_for(Worker(kept(place.memory(model)), policy=policy).drain(seconds=1), SOON)
    assert 1.2 <= time.monotonic() - start < 6
    assert (tally.outcomes, len(model.shown), model.cancelled) == ({}, 1, 1)
    assert place.leases == 0


@BOTH
async def test_who_is_stopped_while_it_takes_gives_back_too(place: Place, kept: Keep, kind: str) -> None:
    place.say("a", "b")
    model = Model()
    memory = kept(place.memory(model, kind=kind))
    entered = delayed_claims(memory)
    for policy in (WorkerPolicy(debounce_seconds=0), WorkerPolicy(debounce_seconds=0, grace_seconds=0)):
        entered.clear()
        worker = Worker(memory, policy=policy)
        task = asyncio.create_task(worker.run())
        await asyncio.wait_for(entered.wait(), SOON)
        assert place.leases == 2
        worker.stop()
        await asyncio.wait_for(task, 5)
        assert (place.leases, worker.stats.outcomes, model.shown) == (0, {}, [])


async def test_no_time_to_drain_is_refused(place: Place, kept: Keep) -> None:
    worker = Worker(kept(place.memory()))
    for seconds in (0, -1):
        with pytest.raises(ConfigurationError, match="seconds must be a number above 0"):
            await worker.drain(seconds)
    assert (await worker.drain(seconds=5)).outcomes == {}


# --- Leases


@BOTH
async def test_a_heartbeat_keeps_what_takes_long(place: Place, kept: Keep, kind: str) -> None:
    place.say("t")
    model = Model(seconds=1.5)
    policy = WorkerPolicy(lease_seconds=0.6, poll_seconds=0.1, debounce_seconds=0)
    memory = kept(place.memory(model, kind=kind))
    async with Worker(memory, policy=policy) as one, Worker(memory, policy=policy) as other:
        await until(lambda: place.queue == [])
    assert one.stats.outcomes.get("done", 0) + other.stats.outcomes.get("done", 0) == 1
    assert len(model.shown) == 2
    assert place.covered() == [("t", 4, 5)]


async def test_what_was_taken_by_another_is_stopped(place: Place, kept: Keep) -> None:
    place.say("t")
    model = Model(seconds=600)
    worker = Worker(
        kept(place.memory(model)), policy=WorkerPolicy(lease_seconds=0.6, poll_seconds=60, debounce_seconds=0)
    )
    async with worker:
        await until(lambda: model.at_once == 1)
        place.execute(
            "update memory_private.work set lease_token = gen_random_uuid(), worker = 'another',"
            " lease_until = clock_timestamp() + interval '1 hour', run_after = clock_timestamp() + interval '1 hour'"
        )
        await until(lambda: model.cancelled == 1)
        await until(lambda: worker.stats.outcomes == {"lost": 1})
    assert [row[1] for row in place.queue] == ["another"]


async def test_a_heartbeat_does_not_stop_what_is_being_given_back(place: Place, kept: Keep) -> None:
    """The database has it back already, and the answer that says so is on its way."""
    place.say("t")
    memory = kept(place.memory(Model(error=ValueError())))
    inner = memory._services.transport.aperform

    async def slow(call: Any) -> Any:
        answer = await inner(call)
        if call.function == "memory_worker_finish":
            await asyncio.sleep(0.6)
        return answer

    memory._services.transport.aperform = slow  # type: ignore[method-assign]
    alerts: list[str] = []
    policy = WorkerPolicy(lease_seconds=0.3, max_attempts=1)
    tally = await Worker(memory, policy=policy, on_alert=lambda kind, _: alerts.append(kind)).drain()
    assert tally.outcomes == {"dead": 1}
    assert alerts == ["dead"]


async def test_two_workers_share_and_do_nothing_twice(place: Place, kept: Keep) -> None:
    place.say(*(f"t{number}" for number in range(20)))
    model = Model(seconds=0.02)
    workers = [Worker(kept(place.memory(model, kind=kind)), policy=FAST) for kind in ("direct", "data_api")]
    async with workers[0], workers[1]:
        await until(lambda: place.queue == [])
    done = [worker.stats.outcomes.get("done", 0) for worker in workers]
    assert sum(done) == 20
    assert min(done) > 0
    assert set(Counter(model.shown).values()) == {1}
    assert len(model.shown) == 40
    assert len(model_covered(place)) == 20
    assert place.execute("select count(*), count(distinct conversation_id) from memory.conversation_summaries") == [
        (20, 20)
    ]


class Claims:
    """A transport that counts what its claims found."""

    def __init__(self, inner: PostgresTransport) -> None:
        self._inner = inner
        self.found: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def aperform(self, call: Call) -> Any:
        answer = await self._inner.aperform(call)
        if call.function == "memory_worker_claim":
            self.found.append(len(answer))
        return answer


async def test_workers_do_not_claim_in_vain_while_something_is_due(place: Place, kept: Keep) -> None:
    place.say(*(f"t{number}" for number in range(60)))
    policy = replace(FAST, poll_seconds=60.0)  # only what a worker knows makes it claim
    claims = [Claims(PostgresTransport(place.address)) for _ in range(4)]
    memories = [
        SupabaseMemory(each, model=Model(), config=MemoryConfig(policy=SUMMARIES, board_policy=BOARDS))
        for each in claims
    ]
    workers = [Worker(kept(memory), policy=policy) for memory in memories]
    async with workers[0], workers[1], workers[2], workers[3]:
        await until(lambda: place.queue == [])
    found = [number for each in claims for number in each.found]
    assert sum(found) == 60
    assert all(sum(each.found) for each in claims)
    # At the end each free hand of a worker may look once more, and what is finished meanwhile once again.
    assert found.count(0) <= 2 * len(workers), [each.found for each in claims]


async def test_who_is_overtaken_has_not_failed(place: Place, kept: Keep) -> None:
    """Somebody else summarizes the same conversation all the time: no reason to give it up."""
    place.say("t")
    memory = kept(place.memory(None))

    async def meddle(messages: list[BaseMessage]) -> str:
        if len(shown) < 6:
            place.execute("update memory.conversations set revision = revision + 1")
        shown.append(str(messages))
        return ANSWER

    shown: list[str] = []
    memory = kept(place.memory(lambda messages: meddle(messages)))
    tally = await asyncio.wait_for(Worker(memory, policy=WorkerPolicy(max_attempts=1)).drain(), SOON)
    assert tally.outcomes.keys() == {"again", "done"}
    assert model_covered(place) == [("t", 4, 5)]


# --- Without a database


@pytest.fixture(scope="module")
def frail() -> Iterator[Cluster]:
    """A server that is halted and comes back."""
    cluster = Cluster()
    try:
        yield cluster.start()
    finally:
        with suppress(Exception):
            cluster.stop()


@pytest.mark.postgres
async def test_a_database_that_is_away_is_waited_for(frail: Cluster, kept: Keep) -> None:
    name = frail.create_database()
    place = Place(frail.conn_string(name), "")
    migrate(place.address)
    place.say("before")
    model = Model(seconds=0.5)
    await asyncio.to_thread(frail.halt)
    memory = kept(place.memory(model, retry=NO_RETRY))
    with pytest.raises(UnavailableError):
        await Worker(memory, policy=FAST).drain()
    policy = WorkerPolicy(poll_seconds=0.1, debounce_seconds=0, lease_seconds=1.0)
    async with Worker(memory, policy=policy) as worker:
        await until(lambda: worker.health()[1]["error"] == "UnavailableError")
        assert not worker.health()[0]
        await asyncio.to_thread(frail.resume)
        await until(lambda: place.queue == [])
        assert worker.health()[0]
        place.say("between")
        await until(lambda: model.at_once == 1)
        await asyncio.to_thread(frail.halt)
        await asyncio.sleep(0.6)
        await asyncio.to_thread(frail.resume)
        await until(lambda: place.queue == [], 30)
    assert place.covered() == [("before", 4, 5), ("between", 4, 5)]


@pytest.mark.postgres
async def test_who_is_stopped_while_the_database_is_away_ends(frail: Cluster, kept: Keep) -> None:
    name = frail.create_database()
    place = Place(frail.conn_string(name), "")
    migrate(place.address)
    place.say("t")
    model = Model(seconds=600)
    policy = WorkerPolicy(poll_seconds=0.1, debounce_seconds=0, grace_seconds=0.1)
    try:
        async with Worker(kept(place.memory(model)), policy=policy):
            await until(lambda: model.at_once == 1)
            await asyncio.to_thread(frail.halt)
            start = time.monotonic()
        assert time.monotonic() - start < 12
    finally:
        await asyncio.to_thread(frail.resume)


# --- Another release

OLDER = "alter function public.memory_worker_claim rename to of_an_older_release"
"""As a release before left it: without what is called for."""

AGAIN = "alter function public.of_an_older_release rename to memory_worker_claim"


@pytest.mark.parametrize("partitions", [None, 3], ids=["plain", "partitions"])
async def test_a_worker_of_another_release_works_or_says_what_to_do(
    cluster: Cluster, kept: Keep, tmp_path: Path, partitions: int | None
) -> None:
    place = Place(cluster.conn_string(cluster.migrated_database(partitions=partitions)), "")
    place.say("t")
    place.execute(OLDER)
    memory = kept(place.memory(Model()))
    for work_once in (Worker(memory, policy=FAST).run, Worker(memory, policy=FAST).drain):
        with pytest.raises(SchemaOutdatedError, match="no memory_worker_claim.*supabase-memory migrate"):
            await asyncio.wait_for(work_once(), SOON)
    assert [row[1:] for row in place.queue] == [(None, 0, None, False)], "nothing was taken, nothing counts as a try"
    place.execute(AGAIN)

    # In the midst of an upgrade it waits, and says so; then it goes on, also as what is older than its database.
    async with Worker(memory, policy=FAST) as worker:
        await until(lambda: place.queue == [])
        place.execute(OLDER)
        place.say("later")
        await until(lambda: worker.health()[1]["error"] == "SchemaOutdatedError")
        with newer_release(tmp_path / "sql"):
            await asyncio.to_thread(migrate, place.address)
        await until(lambda: place.queue == [])
        assert worker.health()[0]
    assert place.covered() == [("later", 4, 5), ("t", 4, 5)]
    schema = (await asyncio.to_thread(findings_by_name, memory))["schema"]
    assert schema.state == "red"
    assert "of release 9.0.0, but this package" in schema.text
    assert str(schema.next_action).startswith("Install langchain-supabase-memory 9.0.0 or newer")


# --- From time to time


async def test_what_has_expired_is_forgotten(place: Place, kept: Keep) -> None:
    from langchain_supabase_memory import Retention

    place.say("t")
    place.execute("update memory.conversation_messages set created_at = created_at - interval '2 days'")
    memory = kept(place.memory(Model(), retention=Retention(max_age=timedelta(days=1))))
    async with Worker(memory, policy=FAST):
        await until(lambda: place.execute("select count(*) from memory.conversation_messages") == [(0,)])


async def test_the_idle_are_archived_with_a_complete_summary(place: Place, kept: Keep) -> None:
    place.say("idle", "lively", messages=3)
    place.execute("update memory.conversations set updated_at = now() - interval '2 days' where thread_id = 'idle'")
    policy = WorkerPolicy(poll_seconds=0.1, debounce_seconds=0, archive_after=timedelta(days=1))
    memory = kept(place.memory(Model(), user_id="u"))
    archived = "select thread_id from memory.conversations where archived_at is not null"
    async with Worker(memory, policy=policy):
        await until(lambda: place.execute(archived) == [("idle",)])
    assert place.execute("select count(*) from memory.conversation_summaries where level > 0") != [(0,)]
    place.say("idle", messages=1)
    assert place.execute(archived) == []


async def test_what_is_behind_is_found_and_what_is_idle_left_alone(place: Place, kept: Keep) -> None:
    place.say("few", messages=3)
    place.say("many")
    memory = kept(place.memory(Model()))
    soon = timedelta(milliseconds=1)
    await Worker(memory, policy=WorkerPolicy(duties=("index",), reconcile_every=soon)).drain()
    assert place.queue == []
    policy = WorkerPolicy(poll_seconds=0.1, debounce_seconds=0)
    async with Worker(memory, policy=policy) as worker:
        await until(lambda: len(model_covered(place)) == 1)
        await until(lambda: place.queue == [])
    assert worker.stats.outcomes == {"done": 1}, "three messages are no reason to look at a conversation again"


async def test_only_one_does_the_chores(place: Place, kept: Keep) -> None:
    memory = kept(place.memory())
    calls: list[str] = []
    inner = memory._services.transport.aperform

    async def noting(call: Any) -> Any:
        calls.append(call.function)
        return await inner(call)

    memory._services.transport.aperform = noting  # type: ignore[method-assign]
    async with Worker(memory, policy=FAST), Worker(memory, policy=FAST), Worker(memory, policy=FAST):
        await until(lambda: calls.count("memory_worker_chore") >= 6)
        await asyncio.sleep(0.2)
    assert (calls.count("memory_worker_rederive"), calls.count("memory_forget_expired")) == (2, 1), "two pages, and one"


async def test_a_chore_that_fails_in_a_new_way_stops_nothing(place: Place, kept: Keep, monkeypatch: Any) -> None:
    memory = kept(place.memory(Model()))

    async def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("something nobody thought of")

    monkeypatch.setattr("langchain_supabase_memory.worker.worker.run_maintenance", fail)
    async with Worker(memory, policy=FAST):
        place.say("t")
        await until(lambda: place.queue == [])


async def test_what_a_profile_holds_moves_to_long_term_memory(place: Place, kept: Keep) -> None:
    store = InMemoryStore()
    memory = kept(place.memory(Model(), user_id="u"))
    item = await memory.profile.aremember("Lisbon", subject="home")
    await memory.profile.aremember("Is allergic to peanuts.")
    await memory.conversation("t").aappend([HumanMessage("Hello.")])
    worker = Worker(memory, long_term=lambda user_id: StoreLongTerm(store, user_id))
    assert (await worker.drain()).promoted == 2
    await memory.profile.acorrect(item, "Porto")
    await memory.conversation("t").aappend([HumanMessage("Hello again.")])
    assert (await worker.drain()).promoted == 3
    found = await StoreLongTerm(store, "u").arecall("", limit=10)
    assert sorted(each.text for each in found) == ["Fact (home): Porto", "Fact: Is allergic to peanuts."]


async def test_nothing_of_a_space_moves_to_long_term_memory(place: Place, kept: Keep) -> None:
    """A space has no profile; its conversations are worked on as any."""
    asked: list[str] = []

    def long_term(user_id: str) -> StoreLongTerm:
        asked.append(user_id)
        return StoreLongTerm(InMemoryStore(), user_id)

    memory = kept(place.memory(Model()))
    lease = work.Lease(ConversationKey("t", "space:x"), "", "", 1, 0.0, ())
    done = await run_job(memory, lease, ("promote",), None, long_term)
    assert (done.failed, asked) == ({}, [])


async def test_a_long_term_memory_that_fails_is_tried_again(place: Place, kept: Keep) -> None:
    def fail(user_id: str) -> Any:
        raise RuntimeError("no such store")

    place.say("t")
    tally = await Worker(kept(place.memory(Model())), long_term=fail).drain()
    assert tally.outcomes == {"retry": 1}
    assert model_covered(place) == [("t", 4, 5)]
    assert place.queue[0][3] == "RuntimeError"


async def test_what_fails_for_every_conversation_is_one_line(
    place: Place, kept: Keep, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(user_id: str) -> Any:
        raise ConnectionError("the store of vectors is away")

    for number in range(5):
        place.say(f"t{number}")
    caplog.set_level(logging.INFO, "langchain_supabase_memory")
    await Worker(kept(place.memory(Model())), long_term=fail).drain()
    assert [r.levelname for r in caplog.records if r.getMessage() == "A duty failed"] == ["WARNING"]


# --- Seen from outside


async def test_an_alert_when_it_lags(place: Place, kept: Keep) -> None:
    place.say("t")
    place.execute(
        "update memory_private.work set since = now() - interval '1 hour', run_after = now() + interval '1 hour'"
    )
    alerts: list[tuple[str, Any]] = []
    async with Worker(
        kept(place.memory()), policy=FAST, on_alert=lambda kind, facts: alerts.append((kind, dict(facts)))
    ):
        await until(lambda: bool(alerts))
    assert alerts[0][0] == "lag"
    assert alerts[0][1]["memory_lag_seconds"] >= 3600


async def test_nothing_that_was_said_is_logged(place: Place, kept: Keep, caplog: pytest.LogCaptureFixture) -> None:
    canary = "canary-of-the-logs"
    place.say("t", text=canary)

    def embed(texts: list[str]) -> Any:
        raise ValueError(f"cannot embed {texts}")

    def script(messages: list[BaseMessage]) -> AIMessage:
        raise ValueError(f"cannot answer {messages}")

    def long_term(user_id: str) -> Any:
        raise ValueError(canary)

    memory = kept(place.memory(ScriptedModel(script=script), embeddings=ScriptedEmbedder(embed)))
    memory._services.embeddings._wait_seconds = 0  # type: ignore[union-attr]
    with caplog.at_level(logging.DEBUG, logger="langchain_supabase_memory"):
        worker = Worker(memory, policy=WorkerPolicy(max_attempts=1), long_term=long_term)
        tally = await worker.drain()
        async with Worker(memory, policy=FAST):
            await asyncio.sleep(0.3)
    assert tally.outcomes == {"dead": 1}
    logged = [str(vars(record)) + record.getMessage() for record in caplog.records]
    assert len(logged) > 3
    assert not [line for line in logged if canary in line]
    assert not [row for row in place.queue if canary in str(row)]
    assert any(re.search(r"memory_outcome.*dead", line) for line in logged)


async def test_a_name_that_is_given_is_shown(place: Place, kept: Keep) -> None:
    place.say("t")
    model = Model(seconds=600)
    memory = kept(place.memory(model))
    async with Worker(memory, policy=WorkerPolicy(debounce_seconds=0, grace_seconds=0), name="worker-7"):
        await until(lambda: model.at_once == 1)
        (status,) = await memory.work.astatus()
        assert (status.state, status.worker) == ("running", "worker-7")
        assert (await memory.work.aqueue()).leases == 1


@each_case(
    "settings",
    [
        {"concurrency": 0},
        {"lease_seconds": -1},
        {"poll_seconds": True},
        {"debounce_seconds": -1},
        {"archive_after": timedelta()},
        {"sweep_every": 5},
        {"duties": ("dance",)},
        {"duties": "index"},
    ],
    ids=str,
)
def test_a_policy_that_means_nothing_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        WorkerPolicy(**settings)


def test_the_flows_are_used() -> None:
    """The queue is reached through `work` alone: what the worker needs of it has a name there."""
    assert {"claim", "heartbeat", "finish", "release"} <= set(vars(work))
