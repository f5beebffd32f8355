"""Measure the background worker: its throughput without the model's own time, its cost, and its fairness."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import psycopg

from benchmarks import work
from benchmarks.harness import Table, interleaved, p95, rotated, verdict
from langchain_supabase_memory import SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.settings import BoardPolicy
from langchain_supabase_memory.worker import WorkerPolicy
from tests import worker_process
from tests.memory_keywords import memory_keywords
from tests.worker_process import Setup

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.services import Lab, Site

WORKERS: Final = (1, 2, 4)
THINKING: Final = (0.0, 0.2)
CONCURRENCY: Final = 4
MESSAGES: Final = 40
"""The messages of each conversation: one job, one summary, one revision of the board."""
PER_MINUTE_BOUND: Final = 100
TRIGGER_BOUND: Final = 1.1
FAIR_BOUND: Final = 3.0
FLOODED: Final = 400
"""The conversations of the owner who floods the queue."""
_SETTINGS: Final[dict[str, Any]] = {"policy": SummaryPolicy(messages=20, keep_messages=10, mode="background")}
_TIMEOUT_SECONDS: Final = 240


async def run(lab: Lab) -> list[Table]:
    site = lab.site("off")
    with TemporaryDirectory() as folder:
        return [
            *await _throughput(lab, site, Path(folder)),
            await _trigger(lab, site),
            await _lag(lab, site, Path(folder)),
            await _fair(lab, site, Path(folder)),
        ]


# --- Throughput


@dataclass(frozen=True)
class _Run:
    """The cost of a backlog.

    Attributes:
        seconds: From the first claim to the last commit, in seconds.
        model_seconds: The model's time divided by one worker's concurrency, in seconds: a floor for `seconds`.
        cpu_seconds: The workers' own CPU time, in seconds.
    """

    seconds: float
    model_seconds: float
    cpu_seconds: float


async def _throughput(lab: Lab, site: Site, folder: Path) -> list[Table]:
    conversations = 12 if lab.quick else 40
    rounds = 1 if lab.quick else 2
    contestants = [(workers, thinking) for thinking in THINKING for workers in WORKERS]
    runs: dict[tuple[int, float], list[_Run]] = {each: [] for each in contestants}
    names = {f"{workers} {thinking}": (workers, thinking) for workers, thinking in contestants}
    for number in range(rounds):
        for name in rotated(list(names), number):
            made = await _backlog(site, folder / f"{number} {name}", *names[name], conversations)
            runs[names[name]].append(made)
    rows: list[list[str | float]] = []
    rates: dict[tuple[int, float], float] = {}
    for workers, thinking in contestants:
        seconds = median(each.seconds for each in runs[workers, thinking])
        floor = median(each.model_seconds for each in runs[workers, thinking])
        cpu = median(each.cpu_seconds for each in runs[workers, thinking])
        rates[workers, thinking] = 60 * conversations / seconds
        rows.append(
            [
                f"{workers} worker{'s' if workers > 1 else ''}, model {thinking * 1000:.0f} ms",
                conversations * MESSAGES / seconds,
                conversations / seconds,
                rates[workers, thinking],
                seconds,
                floor,
                f"{seconds / floor:.2f}" if floor else "",
                1000 * cpu / conversations,
            ]
        )
    columns = [
        "", "messages/s", "conversations/s", "conversations/min", "all, s", "model only, s", "x model",
        "CPU of workers, ms/conversation",
    ]  # fmt: skip
    notes = [
        f"{conversations} conversations of {MESSAGES} messages: indexed, summarized, board revised; no embedder;"
        f" each worker has {CONCURRENCY} jobs at once",
        verdict("conversations a minute, 2 workers, model 200 ms", rates[2, 0.2], PER_MINUTE_BOUND, at_least=True),
    ]
    return [
        Table(
            f"Workers (processes), direct, backlog, medians of {rounds}, synchronous_commit=off", columns, rows, notes
        )
    ]


async def _backlog(site: Site, log: Path, workers: int, thinking: float, conversations: int) -> _Run:
    """Let `workers` workers process a backlog of new conversations, in a separate database."""
    conn_string = _database(site)
    async with SupabaseMemory.from_conn_string(conn_string, user_id="bench", **memory_keywords(_SETTINGS)) as memory:
        for number in range(conversations):
            said = [message for _ in range(MESSAGES // 2) for message in work.said()]
            await memory.conversation(f"t{number}").aappend(said)
        setup = Setup(
            str(log), conn_string=conn_string, seconds=(thinking, thinking), embeds=False, memory=_SETTINGS,
            worker=WorkerPolicy(concurrency=CONCURRENCY, debounce_seconds=0), drains=False,
        )  # fmt: skip
        # The workers start before there is work: due work is postponed meanwhile.
        _execute(conn_string, "update memory_private.work set run_after = 'infinity'")
        processes = [worker_process.started(setup) for _ in range(workers)]
        try:
            while sum(note["event"] == "begun" for note in _notes(log)) < workers:
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.5)
            _execute(conn_string, "update memory_private.work set run_after = now(); notify memory_work")
            begun = time.perf_counter()
            while (await memory.work.aqueue()).depth:
                if time.perf_counter() > begun + _TIMEOUT_SECONDS:
                    raise TimeoutError("the backlog did not drain")
                await asyncio.sleep(0.05)
            seconds = time.perf_counter() - begun
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.join()
    notes = _notes(log)
    answers = sum(note["event"] == "answered" for note in notes)
    assert answers == 2 * conversations, "a summary and a board each"
    cpu = sum(note["cpu"] for note in notes if note["event"] == "ended")
    return _Run(seconds, answers * thinking / (workers * CONCURRENCY), cpu)


def _notes(log: Path) -> list[dict[str, Any]]:
    return worker_process.noted(log) if log.exists() else []


def _database(site: Site) -> str:
    name = site.cluster.create_database()
    site.cluster.execute(f"alter database {name} set synchronous_commit = off", superuser=True)
    conn_string = site.cluster.conn_string(name)
    migrate(conn_string)
    return conn_string


def _execute(conn_string: str, statement: str) -> None:
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(statement.encode())


# --- The trigger


async def _trigger(lab: Lab, site: Site) -> Table:
    """Measure appends with and without the trigger that marks due work, for unmarked and marked conversations."""
    databases = {name: _database(site) for name in ("with", "without")}
    _execute(databases["without"], "alter table memory.conversations disable trigger conversations_mark_work")
    memories = {name: SupabaseMemory.from_conn_string(each, user_id="bench") for name, each in databases.items()}
    connection = psycopg.connect(databases["with"], autocommit=True)

    def append(name: str, thread_id: str) -> Callable[[work.Ready], Awaitable[object]]:
        return lambda turn: memories[name].conversation(thread_id).aappend(turn.messages)

    def supply() -> work.Ready:
        connection.execute(_FINISHED)
        return work.ready()

    contestants = {
        "marked without": append("without", "marked"),
        "marked with": append("with", "marked"),
        "unmarked without": append("without", "unmarked"),
        "unmarked with": append("with", "unmarked"),
    }
    try:
        medians = await interleaved(
            contestants, supply, rounds=60 if lab.quick else 800, seconds=8 if lab.quick else 40
        )
    finally:
        connection.close()
        for memory in memories.values():
            await memory.aclose()
    rows: list[list[str | float]] = []
    notes = []
    for kind, what in (
        ("marked", "conversation with work already due"),
        ("unmarked", "conversation without due work, so it is marked"),
    ):
        without, with_ = medians[f"{kind} without"], medians[f"{kind} with"]
        rows.append([what, without, with_, with_ / without])
        notes.append(verdict(f"with the trigger, {what}", with_ / without, TRIGGER_BOUND))
    columns = ["ms", "without the trigger", "with it", "x"]
    return Table("Appending a turn of two messages, direct, async, synchronous_commit=off", columns, rows, notes)


_KINDS: Final = {
    "marked": "conversation with work already due",
    "unmarked": "conversation without due work, so it is marked",
}
_FINISHED: Final = b"""
delete from memory_private.work w using memory.conversations c
where c.user_id = w.user_id and c.id = w.conversation_id and c.thread_id = 'unmarked'
"""


# --- Lag


async def _lag(lab: Lab, site: Site, folder: Path) -> Table:
    """Measure the delay until a stored message is indexed, and until it is on the board, under a steady load."""
    seconds = 6 if lab.quick else 25
    rows: list[list[str | float]] = []
    for thinking in THINKING:
        for rate in (2, 5):
            indexed, covered = await _steady(site, folder / f"lag {thinking} {rate}", thinking, rate, seconds)
            rows.append(
                [
                    f"{rate} turns a second, model {thinking * 1000:.0f} ms",
                    *(median(indexed), p95(indexed), median(covered), p95(covered)),
                ]
            )
    columns = ["seconds", "indexed: p50", "p95", "on the board: p50", "p95"]
    notes = ["2 workers, debounce_seconds=1; the board is revised with every turn (update_frequency=1)"]
    return Table("Delay from message to index and board, direct, 20 conversations, steady load", columns, rows, notes)


async def _steady(
    site: Site, log: Path, thinking: float, rate: float, seconds: float
) -> tuple[list[float], list[float]]:
    conn_string = _database(site)
    settings = {**_SETTINGS, "board_policy": BoardPolicy(update_frequency=1)}
    setup = Setup(
        str(log), conn_string=conn_string, seconds=(thinking, thinking), embeds=False, memory=settings,
        worker=WorkerPolicy(concurrency=CONCURRENCY),
    )  # fmt: skip
    stored: dict[tuple[str, int], float] = {}
    indexed: dict[tuple[str, int], float] = {}
    covered: dict[tuple[str, int], float] = {}
    done = asyncio.Event()

    async def watch() -> None:
        async with await psycopg.AsyncConnection.connect(conn_string, autocommit=True) as connection:
            while not (done.is_set() and len(covered) == len(indexed) == len(stored)):
                now = time.perf_counter()
                cursor = await connection.execute(_POSITIONS)
                for thread, index, board in await cursor.fetchall():
                    for times, through in ((indexed, index), (covered, board)):
                        for number in range(through, -1, -1):
                            if (thread, number) in times or (thread, number) not in stored:
                                break
                            times[thread, number] = now - stored[thread, number]
                await asyncio.sleep(0.02)

    processes = [worker_process.started(setup) for _ in range(2)]
    try:
        async with SupabaseMemory.from_conn_string(conn_string, user_id="bench", **memory_keywords(settings)) as memory:
            watcher = asyncio.create_task(watch())
            begun = time.perf_counter()
            for turn in range(int(seconds * rate)):
                await asyncio.sleep(max(begun + turn / rate - time.perf_counter(), 0))
                thread = f"t{turn % 20}"
                result = await memory.conversation(thread).aappend(work.said())
                for number in result.sequences:
                    assert number is not None
                    stored[thread, number] = time.perf_counter()
            done.set()
            await asyncio.wait_for(watcher, _TIMEOUT_SECONDS)
    finally:
        for process in processes:
            process.terminate()
            process.join()
    return list(indexed.values()), list(covered.values())


_POSITIONS: Final = b"""
select c.thread_id, c.indexed_through, coalesce(b.through_sequence, -1) from memory.conversations c
left join memory.conversation_summary_boards b on b.user_id = c.user_id and b.conversation_id = c.id
"""


# --- Fairness


async def _fair(lab: Lab, site: Site, folder: Path) -> Table:
    """Measure how long an owner's turn waits for its board, with and without another owner flooding the queue."""
    turns, phases = (4, 2) if lab.quick else (8, 6)
    conn_string = _database(site)
    settings = {**_SETTINGS, "board_policy": BoardPolicy(update_frequency=1)}
    setup = Setup(
        str(folder / "fair"), conn_string=conn_string, seconds=(0.2, 0.2), embeds=False, memory=settings,
        worker=WorkerPolicy(concurrency=CONCURRENCY),
    )  # fmt: skip
    lags: dict[str, list[float]] = {"quiet": [], "flood": []}
    sent = 0
    process = worker_process.started(setup)
    try:
        async with SupabaseMemory.from_conn_string(conn_string, **memory_keywords(settings)) as memory:
            for phase in range(phases):
                name = rotated(list(lags), phase)[0]
                flooding = _flood(memory) if name == "flood" else []
                await asyncio.sleep(3 if flooding else 0)
                for turn in range(turns):
                    lags[name].append(await _covered(memory, f"{phase}.{turn}"))
                for task in flooding:
                    task.cancel()
                ended = await asyncio.gather(*flooding, return_exceptions=True)
                assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended
                sent += int(bool(flooding)) and await _appended(memory)
                await memory.for_user("flood").aforget_user()
    finally:
        process.terminate()
        process.join()
    quiet, flood = median(lags["quiet"]), median(lags["flood"])
    rows: list[list[str | float]] = [
        [name, median(each), p95(each), median(each) / quiet] for name, each in lags.items()
    ]
    columns = ["seconds", "on the board: p50", "p95", "x"]
    notes = [
        f"1 worker of {CONCURRENCY} at once, model 200 ms, debounce_seconds=1; the other owner appends to {FLOODED}"
        f" conversations and asks for summaries without pause ({sent:,} messages)",
        verdict("lag during the flood / lag without it", flood / quiet, FAIR_BOUND),
    ]
    return Table(
        f"Fairness: one owner while another floods the queue, direct, {phases} phases in turn", columns, rows, notes
    )


def _flood(memory: SupabaseMemory) -> list[asyncio.Task[None]]:
    """Append to many conversations and request work for them in a continuous loop."""

    async def append() -> None:
        for number in count():
            await memory.for_user("flood").conversation(f"t{number % FLOODED}").aappend(work.said())

    async def request() -> None:
        for number in count():
            await memory.for_user("flood").conversation(f"t{number % FLOODED}").summaries.arequest()

    return [asyncio.create_task(append()), asyncio.create_task(request())]


async def _appended(memory: SupabaseMemory) -> int:
    return sum(each.message_count for each in await memory.for_user("flood").aconversations(limit=1000))


async def _covered(memory: SupabaseMemory, thread_id: str) -> float:
    """Return the seconds until a regular owner's new turn is on the board."""
    begun = time.perf_counter()
    honest = memory.for_user("honest").conversation(thread_id)
    await honest.aappend(work.said())
    while (status := await honest.work.astatus()) is None or status.board_through < 1:
        if time.perf_counter() > begun + _TIMEOUT_SECONDS:
            raise TimeoutError("it was kept waiting")
        await asyncio.sleep(0.02)
    return time.perf_counter() - begun
