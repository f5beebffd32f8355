"""Worker processes that are killed at any point during appends: no work is lost, and none is done twice."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from psycopg.rows import dict_row

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.errors import UnavailableError
from langchain_supabase_memory.operations.work import Queue
from langchain_supabase_memory.worker import Worker, WorkerPolicy
from tests import worker_process
from tests.embedders import WordEmbedder
from tests.memory_keywords import memory_keywords
from tests.services.data_api import DataApi, token
from tests.services.postgres import Cluster
from tests.worker_process import FUNCTIONS, POLICIES, Plug, Setup, link

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

LEASE: Final = 2.0
LIFE: Final = 4.0
"""A worker is killed after so many seconds, if its plug was not pulled before."""
MOST: Final = 100
"""A conversation has no more messages than about so many."""
WORK: Final = WorkerPolicy(
    concurrency=1,
    lease_seconds=LEASE,
    debounce_seconds=0.05,
    poll_seconds=0.3,
    max_attempts=50,
    retry_seconds=0.2,
)
EVERYBODY: Final = "select c.thread_id, c.id from memory.conversations c where c.user_id = %s order by c.thread_id"


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A server that a test may stop."""
    with Cluster() as cluster:
        yield cluster


# --- The load


class Talk:
    """Conversations that go on until somebody says so."""

    def __init__(self, memory: SupabaseMemory, threads: int, seed: int) -> None:
        self.memory = memory
        self.said: dict[str, list[BaseMessage]] = {f"t{number}": [] for number in range(threads)}
        self.over = asyncio.Event()
        self._rng = random.Random(seed)

    def begin(self, writers: int, *, least: int, pause: float = 0.1) -> list[asyncio.Task[None]]:
        """Let so many speak at once."""
        threads = list(self.said)
        return [asyncio.create_task(self.go_on(threads[n::writers], least, pause)) for n in range(writers)]

    async def go_on(self, threads: Sequence[str], least: int, pause: float) -> None:
        """Say something in one of these or another, until it is over; each has at least so many messages then."""
        while not self.over.is_set():
            thread = self._rng.choice(threads)
            if len(self.said[thread]) < MOST:
                await self.say(thread, self._rng.choice([1, 2, 2, 4, 9]))
            await asyncio.sleep(self._rng.uniform(0, pause))
        for thread in threads:
            if (missing := least - len(self.said[thread])) > 0:
                await self.say(thread, missing)

    async def say(self, thread: str, count: int) -> None:
        first = len(self.said[thread])
        messages = [self._message(thread, first + place) for place in range(count)]
        while True:
            try:
                await self.memory.conversation(thread).aappend(messages)
            except UnavailableError:  # the database is away: once more, the same
                await asyncio.sleep(0.2)
            else:
                break
        self.said[thread] += messages

    def _message(self, thread: str, number: int) -> BaseMessage:
        words = " ".join(self._rng.choices(WORDS, k=self._rng.randrange(3, 12)))
        made = HumanMessage if number % 2 == 0 else AIMessage
        return made(f"{thread} {number}: {words}.", id=f"{thread}-{number}")


WORDS: Final = (
    *("the", "blue", "boat", "leaves", "Lisbon", "on", "Monday", "with", "12", "crates", "of", "tea", "for", "Anna"),
    *("who", "paid", "340", "euros", "and", "wants", "a", "map"),
)


# --- The workers


class Herd:
    """Processes that are replaced when they die, each with the next fate."""

    def __init__(
        self, setup: Setup, fates: Sequence[Plug | float], concurrency: Sequence[int], life: float = LIFE
    ) -> None:
        self.setup = setup
        self.killed: dict[int, int] = {}  # by process, how much it worked on at once
        self.survived: dict[int, int] = {}
        self.deaths = len(fates)
        self._fates: Iterator[Plug | float | None] = iter(fates)
        self._concurrency = concurrency
        self._life = life
        self._alive: dict[int, tuple[Any, float]] = {}
        self.fates_left = True

    def tend(self) -> None:
        """Bury the dead, kill whose time has come, and replace them."""
        for place, at_once in enumerate(self._concurrency):
            process, end = self._alive.get(place, (None, 0.0))
            if process is not None and process.is_alive():
                if time.monotonic() > end:
                    process.kill()
                    process.join()
                else:
                    continue
            if process is not None:
                assert process.exitcode == -9, "a worker ends only when it is killed"
                self.killed[process.pid] = at_once
            fate = next(self._fates, None)
            self.fates_left = self.fates_left and fate is not None
            seconds = fate if isinstance(fate, float) else self._life if fate is not None else float("inf")
            setup = dataclasses.replace(
                self.setup,
                plug=fate if isinstance(fate, Plug) else None,
                worker=dataclasses.replace(self.setup.worker, concurrency=at_once),
            )
            self._alive[place] = (worker_process.started(setup), time.monotonic() + seconds)

    def stop(self) -> None:
        """Ask all to end, and wait for them."""
        for place, (process, _) in self._alive.items():
            process.terminate()
            process.join(20)
            if process.exitcode == 0:
                self.survived[process.pid] = self._concurrency[place]
            elif process.exitcode == -9:  # its fate came after all
                self.killed[process.pid] = self._concurrency[place]
            else:
                raise AssertionError(f"a worker ended with {process.exitcode}")
        self._alive = {}

    def put_down(self) -> None:
        for process, _ in self._alive.values():
            process.kill()
            process.join()

    @contextmanager
    def at_work(self) -> Iterator[Herd]:
        try:
            self.tend()
            yield self
        finally:
            self.put_down()


def fates(seed: int, count: int, functions: Sequence[str] = FUNCTIONS) -> list[Plug | float]:
    """How workers end: at each function before, under way and after, after an answer of the model, or from outside."""
    rng = random.Random(seed)
    sure: list[Plug | float] = [
        Plug(name, when, rng.randrange(1, 4))
        for name in ("memory_commit_summary", "memory_commit_board", "memory_commit_chunks")
        for when in ("before", "during", "after")
    ]
    sure += [Plug("model", "after", number) for number in (1, 2, 3, 5)]
    sure += [
        Plug("memory_worker_finish", "before"),
        Plug("memory_worker_claim", "after", 2),
        Plug("memory_embed_summaries", "before"),
    ]
    rng.shuffle(sure)
    while len(sure) < count:
        kind = rng.random()
        if kind < 0.4:
            sure.append(rng.uniform(0.2, 1.5))
        else:
            sure.append(Plug(rng.choice(functions), rng.choice(["before", "during", "after"]), rng.randrange(1, 6)))
    return sure[:count]


# --- What has to hold afterwards


def rows(conn_string: str, statement: str, *values: Any) -> list[dict[str, Any]]:
    with psycopg.connect(conn_string, row_factory=dict_row) as connection:
        return connection.execute(statement.encode(), values).fetchall()


async def until_idle(memory: SupabaseMemory, seconds: float, tend: Any = lambda: None) -> Queue:
    """Wait until no work is left."""
    end = time.monotonic() + seconds
    while True:
        tend()
        queue = await memory.work.aqueue()
        if queue.depth == queue.dead or time.monotonic() > end:
            return queue
        await asyncio.sleep(0.2)


async def until_asked(log: Path, count: int) -> None:
    """Wait until the model was asked so often."""
    while not (log.exists() and sum(each["event"] == "asked" for each in worker_process.noted(log)) >= count):
        await asyncio.sleep(0.02)


class Calls:
    """The model's calls as they were noted, and which of them what is stored was made from."""

    def __init__(self, log: Path) -> None:
        self.notes = worker_process.noted(log)
        self.answers = {note["made"]: note for note in self.notes if note["event"] == "answered"}
        self.used: set[str] = set()

    def followed(self, summary: str, kind: str, said: Sequence[BaseMessage]) -> list[list[int]]:
        """From a summary back to the beginning, by the calls that led to it.

        Each was shown the summary that the one before had made, and the messages that are stored.

        Returns:
            The numbers that each was shown, the first call first.
        """
        shown: list[list[int]] = []
        made = summary.removeprefix("The chain is at ").removesuffix(".")
        while made:
            assert made in self.answers, f"{made} is no answer of the model"
            note = self.answers[made]
            numbers = note["numbers"]
            assert note["kind"] == kind
            assert link(note["call"], note["before"], kind, [(at, str(said[at].content)) for at in numbers]) == made
            self.used.add(made)
            shown.insert(0, numbers)
            made = note["before"]
        return shown

    def in_vain(self) -> Counter[int]:
        """By process, the calls that were answered or under way and that nothing was made from; failures apart."""
        failed = {note["call"] for note in self.notes if note["event"] in ("failed", "nonsense")}
        used = {self.answers[made]["call"] for made in self.used}
        return Counter(note["pid"] for note in self.of("asked") if note["call"] not in failed | used)

    def of(self, event: str) -> list[dict[str, Any]]:
        return [note for note in self.notes if note["event"] == event]


CHUNKS: Final = """
select k.place, k.part, k.from_sequence, k.to_sequence, k.message_ids, k.stretch, k.type, k.role, k.content, k.tokens,
       k.importance, k.cohesion, k.stale, e.embedding::text as embedding
from memory.working_memory_chunks k
left join memory.chunk_embeddings e using (user_id, conversation_id, place, part)
where k.user_id = %s and k.conversation_id = %s order by k.place, k.part
"""


async def check(memory: SupabaseMemory, conn_string: str, talk: Talk, log: Path) -> Calls:
    """Everything that has to hold when no work is left, for every conversation."""
    calls = Calls(log)
    assert memory.user_id is not None
    conversations = {each["thread_id"]: each["id"] for each in rows(conn_string, EVERYBODY, memory.user_id)}
    assert list(conversations) == sorted(talk.said)
    chunks: dict[str, list[dict[str, Any]]] = {}
    for thread, said in talk.said.items():
        last = len(said) - 1
        conversation = memory.conversation(thread)
        stored = await conversation.aread()
        found = [each.message for each in stored if each.message is not None]
        assert [(each.id, each.content) for each in found] == [(each.id, each.content) for each in said]

        coverage = await conversation.acoverage()
        assert (coverage.gaps, coverage.overlaps, coverage.complete) == ([], [], True)

        segments = await conversation.summaries.alist()
        assert [each.from_sequence for each in segments] == [0, *(each.to_sequence + 1 for each in segments)][:-1]
        edges = [list(range(each.from_sequence, each.to_sequence + 1)) for each in segments]
        assert calls.followed(segments[-1].content if segments else "", "summary", said) == edges

        board = await conversation.board.aread()
        assert board.through_sequence == last
        shown = calls.followed(board.summary, "board", said)
        assert [number for numbers in shown for number in numbers] == list(range(last + 1))
        for item in board.items:
            assert [said[at].id for at in item.sequences] == item.message_ids
            assert item.quote is not None
            assert item.quote in str(said[item.sequences[0]].content)
        assert {item.text for item in board.facts} == {f"Message {numbers[-1]} was read." for numbers in shown}

        chunks[thread] = rows(conn_string, CHUNKS, memory.user_id, conversations[thread])
        units = [(each["from_sequence"], each["to_sequence"]) for each in chunks[thread] if each["part"] == 1]
        assert [at for first, end in units for at in range(first, end + 1)] == list(range(last + 1))
        assert not any(each["stale"] for each in chunks[thread])
    assert rows(conn_string, UNEMBEDDED, memory.user_id) == []
    assert chunks == await undisturbed(memory, conn_string, talk)
    return calls


UNEMBEDDED: Final = """
select s.conversation_id, s.number from memory.conversation_summaries s
where s.user_id = %s and s.level = 0 and not exists (
  select from memory.summary_embeddings e
  where e.user_id = s.user_id and e.conversation_id = s.conversation_id and e.level = 0 and e.number = s.number)
and not exists (
  select from memory.conversation_summaries n
  where n.user_id = s.user_id and n.conversation_id = s.conversation_id and n.level = 0 and n.number > s.number)
"""


async def undisturbed(memory: SupabaseMemory, conn_string: str, talk: Talk) -> dict[str, list[dict[str, Any]]]:
    """The chunks that one worker makes of the same messages, all at once and without anything going wrong."""
    twin = f"{memory.user_id}-twin"
    async with SupabaseMemory.from_conn_string(
        conn_string, embeddings=WordEmbedder(), **memory_keywords(POLICIES)
    ) as other:
        for thread, said in talk.said.items():
            again = [type(each)(each.content, id=each.id) for each in said]
            await other.for_user(twin).conversation(thread).aappend(again)
        tally = await Worker(other).drain()
    assert tally.outcomes == {"done": len(talk.said)}
    return {
        each["thread_id"]: rows(conn_string, CHUNKS, twin, each["id"]) for each in rows(conn_string, EVERYBODY, twin)
    }


def check_economy(calls: Calls, herd: Herd, *, outages: int) -> None:
    """No call of the model in vain but what was under way when a worker was killed, or the database was away."""
    lost = Counter[int]()
    for note in calls.of("lost"):
        lost[note["pid"]] += note["leases"]
    for pid, count in calls.in_vain().items():
        allowed = lost[pid] + outages * max(herd.killed.get(pid, 0), herd.survived.get(pid, 0))
        assert count <= allowed + herd.killed.get(pid, 0), f"process {pid} asked {count} times in vain"
    # A worker that lives loses no lease, as long as it reaches the database.
    capacity = sum(herd.survived.values()) + sum(herd.killed.values()) if outages else 0
    assert sum(lost.values()) <= capacity


# --- The proof


async def proof(
    memory: SupabaseMemory,
    conn_string: str,
    talk: Talk,
    herd: Herd,
    *,
    least: int,
    outages: Mapping[int, Callable[[], None]] = MappingProxyType({}),
) -> Calls:
    """Talk as long as workers die, wait until no work is left, and check everything.

    Args:
        memory: Of the writers.
        conn_string: The same database.
        talk: What is said.
        herd: Who works.
        least: How many messages each conversation has at least.
        outages: What happens to the database, by the number of workers that are dead by then.
    """
    log = Path(herd.setup.log)
    left = dict(outages)
    writers = talk.begin(4, least=least)
    end = time.monotonic() + 120
    with herd.at_work():
        while herd.fates_left and time.monotonic() < end:
            await asyncio.sleep(0.05)
            herd.tend()
            for dead in [dead for dead in left if dead <= len(herd.killed)]:
                await asyncio.to_thread(left.pop(dead))
        assert not herd.fates_left
        talk.over.set()
        await asyncio.gather(*writers)
        await idle(memory, herd)
        for status in await memory.work.astatus():
            assert status.indexed_through == len(talk.said[status.key.thread_id]) - 1, "nothing is forgotten"
            assert status.board_through > status.indexed_through - POLICIES["board_policy"].update_frequency
        # What is less than a board's update frequency is read in when somebody asks for it.
        for thread in talk.said:
            await memory.conversation(thread).summaries.arequest()
        await idle(memory, herd)
        herd.stop()
    assert len(herd.killed) == herd.deaths
    calls = await check(memory, conn_string, talk, log)
    check_economy(calls, herd, outages=len(outages))
    assert calls.of("failed")
    assert calls.of("nonsense")
    return calls


async def idle(memory: SupabaseMemory, herd: Herd) -> None:
    """Wait until no work is left, and none was given up."""
    queue = await until_idle(memory, 60, herd.tend)
    assert (queue.depth, queue.dead) == (0, 0)


@pytest.mark.timeout(300)
async def test_workers_that_are_killed_lose_nothing_and_repeat_nothing(own_cluster: Cluster, tmp_path: Path) -> None:
    """Four workers, thirty deaths, a model that is slow and fails, and a database that goes away twice."""
    conn_string = migrated(own_cluster)
    setup = Setup(
        str(tmp_path / "log"),
        conn_string=conn_string,
        worker=WORK,
        seconds=(0.0, 0.05),
        slow=23,
        slow_seconds=1.5 * LEASE,
        failing=9,
    )

    def crash() -> None:
        own_cluster.halt()
        time.sleep(1)
        own_cluster.resume()

    async with SupabaseMemory.from_conn_string(conn_string, user_id="u", **memory_keywords(POLICIES)) as memory:
        herd = Herd(setup, fates(6, 30), [1, 1, 1, 2])
        talk = Talk(memory, 40, seed=6)
        await proof(memory, conn_string, talk, herd, least=30, outages={10: crash, 20: own_cluster.restart})


@pytest.mark.timeout(300)
async def test_so_do_workers_with_nothing_but_url_and_key(cluster: Cluster, tmp_path: Path) -> None:
    """The same over the Data API, where nobody notifies anybody."""
    conn_string = migrated(cluster)
    with DataApi(cluster, conn_string.rpartition("/")[2]) as api:
        key = token("service_role")
        setup = Setup(str(tmp_path / "log"), url=api.url, key=key, worker=WORK, seconds=(0.0, 0.05), failing=7)
        async with SupabaseMemory.from_url(
            api.url, key, rest_path="", user_id="u", **memory_keywords(POLICIES)
        ) as memory:
            talk = Talk(memory, 12, seed=7)
            await proof(memory, conn_string, talk, Herd(setup, fates(7, 12), [1, 2]), least=20)


def migrated(cluster: Cluster) -> str:
    """A database where all work is the test's own."""
    return cluster.conn_string(cluster.migrated_database())


# --- One at a time


async def test_what_is_said_while_a_piece_is_under_way_is_not_forgotten(cluster: Cluster, tmp_path: Path) -> None:
    conn_string = migrated(cluster)
    setup = Setup(str(tmp_path / "log"), conn_string=conn_string, worker=WORK, seconds=(1.0, 1.0))
    async with SupabaseMemory.from_conn_string(conn_string, user_id="u", **memory_keywords(POLICIES)) as memory:
        talk = Talk(memory, 1, seed=1)
        await talk.say("t0", 8)
        herd = Herd(setup, [], [1])
        with herd.at_work():
            await until_asked(Path(setup.log), 1)
            await talk.say("t0", 8)
            await idle(memory, herd)
            herd.stop()
        assert not (await check(memory, conn_string, talk, Path(setup.log))).in_vain()


@pytest.mark.parametrize(("messages", "kind"), [(8, "board"), (20, "summary")], ids=["board", "summary"])
async def test_an_answer_that_comes_after_the_lease_changes_nothing(
    cluster: Cluster, tmp_path: Path, messages: int, kind: str
) -> None:
    """A worker that is suspended while its model thinks; meanwhile another does its work, and more is said."""
    conn_string = migrated(cluster)
    setup = Setup(str(tmp_path / "log"), conn_string=conn_string, worker=WORK, seconds=(0.3, 0.3))
    async with SupabaseMemory.from_conn_string(conn_string, user_id="u", **memory_keywords(POLICIES)) as memory:
        talk = Talk(memory, 2, seed=1)
        for thread in talk.said:
            await talk.say(thread, messages)
        slow = worker_process.started(dataclasses.replace(setup, worker=dataclasses.replace(WORK, concurrency=2)))
        assert slow.pid is not None
        others = Herd(setup, [], [1])
        try:
            await until_asked(Path(setup.log), 2)
            os.kill(slow.pid, signal.SIGSTOP)
            with others.at_work():
                await idle(memory, others)
                for thread in talk.said:
                    await talk.say(thread, 20)
                await idle(memory, others)
                os.kill(slow.pid, signal.SIGCONT)
                await asyncio.sleep(1.5)
                slow.terminate()
                slow.join(20)
                assert slow.exitcode == 0
                others.stop()
        finally:
            slow.kill()
        calls = await check(memory, conn_string, talk, Path(setup.log))
        assert calls.in_vain() == {slow.pid: 2}
        assert {note["kind"] for note in calls.of("answered") if note["pid"] == slow.pid} == {kind}


@pytest.mark.parametrize("grace", [0.0, 20.0])
async def test_a_worker_that_is_asked_to_stop_gives_its_leases_back(
    cluster: Cluster, tmp_path: Path, grace: float
) -> None:
    """With time to finish, nothing is repeated; without it, what was begun is at once another's."""
    conn_string = migrated(cluster)
    log = tmp_path / "log"
    policy = dataclasses.replace(WORK, concurrency=3, lease_seconds=60, grace_seconds=grace)
    setup = Setup(str(log), conn_string=conn_string, worker=policy, seconds=(1.0, 1.0))
    async with SupabaseMemory.from_conn_string(conn_string, user_id="u", **memory_keywords(POLICIES)) as memory:
        talk = Talk(memory, 6, seed=1)
        for thread in talk.said:
            await talk.say(thread, 20)
        herd = Herd(setup, [], [3])
        with herd.at_work():
            await until_asked(log, 3)
            herd.stop()
        queue = await memory.work.aqueue()
        assert queue.leases == 0
        assert queue.depth == queue.due == (6 if grace == 0 else 3)
        assert {each.attempts for each in await memory.work.astatus(state="due")} == {0}
        after = Herd(dataclasses.replace(setup, seconds=(0.0, 0.0)), [], [3])
        with after.at_work():
            await idle(memory, after)
            after.stop()
        calls = await check(memory, conn_string, talk, log)
        assert sum(calls.in_vain().values()) == (3 if grace == 0 else 0)


@pytest.mark.parametrize(
    "plug", [Plug("memory_embed_summaries", "before"), Plug("memory_commit_summary", "after")], ids=str
)
async def test_a_summary_is_found_whose_worker_was_killed_before_it_was_embedded(
    cluster: Cluster, tmp_path: Path, plug: Plug
) -> None:
    conn_string = migrated(cluster)
    setup = Setup(str(tmp_path / "log"), conn_string=conn_string, worker=WORK)
    async with SupabaseMemory.from_conn_string(conn_string, user_id="u", **memory_keywords(POLICIES)) as memory:
        talk = Talk(memory, 1, seed=1)
        await talk.say("t0", 20)
        herd = Herd(setup, [plug], [1], life=60)  # it is to come to its plug, however slow the machine is
        with herd.at_work():
            while not herd.killed:
                await asyncio.sleep(0.02)
                herd.tend()
            await idle(memory, herd)
            herd.stop()
        calls = await check(memory, conn_string, talk, Path(setup.log))
        assert not calls.in_vain()
