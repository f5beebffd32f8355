"""Check that a call costs no more with ten million messages of 100,000 owners than with ten thousand of 100.

Both databases are on one server and take turns, with plain tables or partitions. Warm calls are for owners whose rows
the server has cached; cold calls are for others, each called once after the caches of the server and the file system
were dropped.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import ExitStack
from functools import partial
from itertools import count
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import psycopg

from benchmarks import fill
from benchmarks.fill import Crowd
from benchmarks.harness import Table, interleaved, verdict
from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.operations import work
from tests.embedders import WordEmbedder
from tests.verbs import Subject, conversations, due, expired

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.services import Lab, Site

    Doing = Callable[[SupabaseMemory, int], object]

BOUND: Final = 1.2
"""The bound for flat growth: the ratio of a call's time at the largest size to the smallest."""

SMALLEST: Final = 10_000
PARTITIONS: Final = 16
WORDS: Final = 1_000_000
VECTORS: Final = 100_000

_WIDTH: Final = 256
_QUESTION: Final = "the refund of the invoice on Tuesday"
_WARM: Final = range(10, 20)
"""The owners of warm calls; the first ten are those that all others copy."""
_COLD: Final = range(20, 60)
_ERASED: Final = range(60, 100)
_BUFFERS: Final = "2GB"
"""Less than a quarter of the machine that the page on scale assumes for ten million messages."""


def _recall_conversation(memory: SupabaseMemory, n: int) -> object:
    return memory.conversation("talk-3").recall(_QUESTION)


def _recall_agent(memory: SupabaseMemory, n: int) -> object:
    return memory.recall(_QUESTION, agent_id="default")


def _recall_user(memory: SupabaseMemory, n: int) -> object:
    return memory.recall(_QUESTION)


def _claim(memory: SupabaseMemory, n: int) -> object:
    leases = memory._services.run(work.claim(f"worker-{n}", limit=4, lease_seconds=60, debounce_seconds=0))
    assert len(leases) == 4
    return memory._services.run(work.release(leases))


def _of(thread: str, verb: Callable[[Subject, int], object]) -> Doing:
    return lambda memory, n: verb(Subject(memory, thread, fill.EACH), n)


OF_AN_OWNER: Final[Mapping[str, Doing]] = {
    "append a turn": _of("talk-1", Subject.append),
    "store a question and load its pack": _of("talk-2", Subject.store_and_load),
    "context pack": _of("talk-3", Subject.context),
    "read the last 20": _of("talk-3", Subject.read_last_20),
    "recall in a conversation": _recall_conversation,
    "recall with an agent": _recall_agent,
    "recall of a user": _recall_user,
    "conversations of a user": conversations,
    "due work of a user": due,
    "retention of a user": expired,
}


def _page(function: str, **arguments: Any) -> Doing:
    given = {f"p_{name}": value for name, value in arguments.items()}
    return lambda memory, n: memory._services.transport.perform(Call(function, given))


_MIDDLE: Final = {"after_user": "owner-5", "after": "00000000-0000-0000-0000-000000000000"}
OF_A_WORKER: Final[Mapping[str, Doing]] = {
    "claim and release 4 conversations": _claim,
    "status of all users, a page of 50": lambda memory, n: memory._services.run(work.status(None, limit=50)),
    "due work of all users, a page of 50": lambda memory, n: memory._services.run(
        work.status(None, state="due", limit=50)
    ),
    "conversations behind, a page of 1,000": _page("memory_worker_rederive", index=False, **_MIDDLE),
    "retention, a page of 100": _page("memory_forget_expired", **_MIDDLE),
    "idle conversations, a page of 100, all idle": _page("memory_worker_idle", seconds=0.0, limit=100),
    "idle conversations, a page of 100, none idle": _page("memory_worker_idle", seconds=1e7),
    "summaries without a vector, a page": _page("memory_unembedded_summaries", model="words"),
    "amount of due work": lambda memory, n: memory._services.run(work.queue()),
}


async def run(lab: Lab, partitions: int | None = None) -> list[Table]:
    sizes = [SMALLEST, lab.largest]
    where = "plain tables" if partitions is None else f"{partitions} partitions"
    sites, filled = {}, []
    for size in sizes:
        sites[size] = lab.another("off", partitions=partitions)
        begun = time.perf_counter()
        wanted = Crowd(size, min(size, WORDS), min(size, VECTORS))
        fill.crowd(sites[size].superuser, wanted, WordEmbedder(_WIDTH))
        filled.append(f"{size:,} messages of {wanted.owners:,} owners in {time.perf_counter() - begun:,.0f} s")
    cluster = sites[SMALLEST].cluster
    first = {size: _vacuumed(site) for size, site in sites.items()}
    cluster.execute(f"alter system set shared_buffers = '{_BUFFERS}'", superuser=True)
    cluster.execute("checkpoint", superuser=True)
    cluster.restart()
    bytes_ = _bytes(sites)
    cold = await _cold(lab, sites, where)
    warm = await _warm(lab, sites, where)
    worker = await _of_a_worker(lab, sites, where)
    then = {size: _vacuumed(site) for size, site in sites.items()}
    for site in sites.values():
        cluster.execute(f"drop database {site.database} with (force)", superuser=True)
    warm.notes += [
        *filled,
        f"an owner has {fill.EACH} conversations of {fill.EACH} messages; shared_buffers = {_BUFFERS}",
        f"keywords are indexed for the first {WORDS:,} messages, vectors for the first {VECTORS:,}",
    ]
    return [warm, worker, cold, _vacuums(where, first, then), bytes_]


def _columns(sizes: Sequence[int]) -> list[str]:
    return ["", *[f"ms at {size:,}" for size in sizes], f"x {sizes[0]:,}"]


def _memory(site: Site, stack: ExitStack) -> SupabaseMemory:
    memory = SupabaseMemory.from_conn_string(site.conn_string, embeddings=WordEmbedder(_WIDTH), model=None)
    stack.callback(memory.close)
    return memory


def _owned(memory: SupabaseMemory, number: int) -> SupabaseMemory:
    """Return a memory of one owner, over the same connections."""
    return SupabaseMemory(
        memory._services.transport, user_id=f"owner-{number}", embeddings=memory._services.embeddings, model=None
    )


async def _row(lab: Lab, what: str, contestants: Mapping[str, Callable[[int], object]]) -> list[str | float]:
    rounds, seconds = (10, 2) if lab.quick else (200, 20)
    medians = await interleaved(contestants, partial(next, count()), rounds=rounds, seconds=seconds, warm_up=20)
    ms = [*medians.values()]
    return [what, *ms, ms[-1] / ms[0]]


def _verdicts(rows: Sequence[Sequence[str | float]]) -> list[str]:
    return [verdict(f"{row[0]}, largest / smallest", float(row[-1]), BOUND) for row in rows]


async def _warm(lab: Lab, sites: Mapping[int, Site], where: str) -> Table:
    owned = {
        size: [_owned(memory, number) for number in _WARM]
        for size, site in sites.items()
        for memory in [_memory(site, site.stack)]
    }

    def use(do: Doing, size: int) -> Callable[[int], object]:
        memories = owned[size]
        return lambda n: do(memories[n % len(memories)], n)

    rows = [await _row(lab, what, {str(size): use(do, size) for size in sites}) for what, do in OF_AN_OWNER.items()]
    rows.append(await _erasures(lab, sites))
    return Table(f"Millions: calls for a warm owner, {where}", _columns([*sites]), rows, _verdicts(rows))


_ERASE: Final = b"select public.memory_forget(p_everything => true, p_user_id => %s)"


async def _erasures(lab: Lab, sites: Mapping[int, Site]) -> list[str | float]:
    """Measure erasing each owner once; warm after an erasure that is rolled back, which touches the same rows."""
    memories = {size: _memory(site, site.stack) for size, site in sites.items()}
    for site in sites.values():
        for number in _ERASED:
            with psycopg.connect(site.conn_string) as connection:
                connection.execute(_ERASE, [f"owner-{number}"])
                connection.rollback()

    def erase(memory: SupabaseMemory, n: int) -> None:
        assert memory.for_user(f"owner-{_ERASED[n]}").forget_user().messages == fill.EACH**2

    left = {size: iter(range(len(_ERASED))) for size in sites}
    contestants = {
        str(size): (lambda _, memory=memory, size=size: erase(memory, next(left[size])))
        for size, memory in memories.items()
    }
    medians = await interleaved(contestants, lambda: 0, rounds=len(_ERASED) - 2, seconds=60, warm_up=2)
    ms = [*medians.values()]
    return ["erasure of a user, of 100 messages", *ms, ms[-1] / ms[0]]


async def _of_a_worker(lab: Lab, sites: Mapping[int, Site], where: str) -> Table:
    memories = {size: _memory(site, site.stack) for size, site in sites.items()}
    rows = [
        await _row(lab, what, {str(size): partial(do, memory) for size, memory in memories.items()})
        for what, do in OF_A_WORKER.items()
    ]
    for site in sites.values():
        site.execute("truncate memory_private.work, memory_private.owners cascade")
    idle = _page("memory_worker_claim", worker="w", limit=4, slots=4, held={})
    contestants = {str(size): partial(idle, memory) for size, memory in memories.items()}
    rows.append(await _row(lab, "a poll with nothing due", contestants))
    notes = [*_verdicts(rows), "one conversation per owner is due, except in the last line"]
    return Table(f"Millions: calls of a worker, {where}", _columns([*sites]), rows, notes)


async def _cold(lab: Lab, sites: Mapping[int, Site], where: str) -> Table:
    rows: list[list[str | float]] = []
    stretch = min(lab.largest, VECTORS) // fill.EACH**2 / (SMALLEST // fill.EACH**2)
    every = 8 if lab.quick else 1
    for what, do in OF_AN_OWNER.items():
        _chill(sites)
        ms = []
        for size, site in sites.items():
            with ExitStack() as stack:
                memory = _memory(site, stack)
                for number in _WARM:  # warms the connection's plans and the tables' shared pages
                    do(_owned(memory, number), number)
                times = []
                for number in _COLD[::every]:
                    owner = _owned(memory, number if size == SMALLEST else int(number * stretch))
                    begun = time.perf_counter()
                    do(owner, number)
                    times.append((time.perf_counter() - begun) * 1000)
            ms.append(median(times))
        rows.append([what, *ms, ms[-1] / ms[0]])
    notes = ["each owner once, after a server start, read from disk; the smallest database is read as a whole"]
    return Table(f"Millions: calls for a cold owner, {where}", _columns([*sites]), rows, notes)


def _chill(sites: Mapping[int, Site]) -> None:
    """Restart the server and drop its caches and the operating system's."""
    cluster = sites[SMALLEST].cluster
    cluster.execute("checkpoint", superuser=True)
    cluster.halt()
    for file in _files(cluster.folder / "data" / "base"):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    cluster.resume()


def _files(folder: Path) -> Iterator[Path]:
    return (each for each in folder.rglob("*") if each.is_file())


def _vacuumed(site: Site) -> tuple[float, int, int]:
    """Return the seconds of a vacuum, the table pages that it scans, and all pages that it touches."""
    said: list[str] = []
    with psycopg.connect(site.superuser, autocommit=True) as connection:
        connection.add_notice_handler(lambda each: said.append(each.message_primary or ""))
        begun = time.perf_counter()
        connection.execute(b"vacuum (verbose, analyze)")
        seconds = time.perf_counter() - begun
    told = "\n".join(said)
    looked = sum(int(each) for each in re.findall(r"pages: .* remain, (\d+) scanned", told))
    touched = sum(int(hits) + int(reads) for hits, reads in re.findall(r"buffer usage: (\d+) hits, (\d+) ", told))
    return seconds, looked, touched


def _vacuums(
    where: str, first: Mapping[int, tuple[float, int, int]], then: Mapping[int, tuple[float, int, int]]
) -> Table:
    rows: list[list[str | float]] = [
        [f"{when}, {size:,} messages", seconds, f"{looked:,}", f"{touched:,}"]
        for when, found in (("after the fill", first), ("after the calls", then))
        for size, (seconds, looked, touched) in found.items()
    ]
    return Table(f"Millions: vacuum of all tables, {where}", ["", "s", "pages of tables", "pages with indexes"], rows)


_SIZE: Final = """
select coalesce(sum(pg_total_relation_size(c.oid)), 0)::float8 from pg_class c
where c.relkind = 'r' and c.relnamespace in ('memory'::regnamespace, 'memory_private'::regnamespace)
  and c.relname ~ %s
"""
_KINDS: Final = {
    "messages": (r"^conversation_messages(_\d+)?$", None),
    "conversations": (r"^conversations(_\d+)?$", None),
    "chunks": (r"^working_memory_chunks(_\d+)?$", WORDS),
    "words": (r"^chunk_postings(_\d+)?$", WORDS),
    "vectors": (r"^chunk_embeddings(_\d+)?$", VECTORS),
}


def _bytes(sites: Mapping[int, Site]) -> Table:
    rows: list[list[str | float]] = []
    for kind, (name, most) in _KINDS.items():
        of = []
        for size, site in sites.items():
            with psycopg.connect(site.superuser) as connection:
                [(found,)] = connection.execute(_SIZE.encode(), [name]).fetchall()
            of.append(found / min(size, most or size))
        rows.append([kind, *of])
    notes = ["with indexes, divided by the messages that have them: one chunk each", "vectors of 256 dimensions"]
    return Table("Millions: bytes per message", ["", *[f"at {size:,}" for size in sites]], rows, notes)
