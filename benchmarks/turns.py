"""Measure reading the newest turns and adding one, next to raw statements, while the table grows to a million rows."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from functools import partial
from itertools import count
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, Final

import psycopg

from benchmarks import fill, work
from benchmarks.harness import Table, exponent, interleaved, verdict
from benchmarks.titles import MANIFEST_TITLE
from langchain_supabase_memory import MemoryConfig, Retention, SupabaseMemory
from langchain_supabase_memory.settings import ManifestPolicy
from tests.counting import CountingTransport

if TYPE_CHECKING:
    from benchmarks.services import Lab, Site
    from langchain_supabase_memory.memory.conversation import Conversation
    from tests.counting import Cost

BOUND: Final = 1.5
GROWTH_BOUND: Final = 0.05
MANIFEST_BOUND: Final = 1.05
TURNS: Final = 10
USERS: Final = 64
_MESSAGES: Final = 2 * TURNS
_RETENTION: Final = Retention(max_turns=TURNS)
_FLOOR_READ: Final = (
    b"select sequence, role, text, created_at from bench.floor where user_id = 'bench' and conversation_id = %s"
    b" order by sequence desc limit %s"
)


async def run(lab: Lab) -> list[Table]:
    site = lab.site("off")
    sizes = [100, 10_000] if lab.quick else [100, 1000, 10_000, 100_000]
    rows: list[list[str | float]] = []
    read: list[float] = []
    added: list[float] = []
    there = 0
    for size in sizes:
        copies = max((size - there) // _MESSAGES, 1)
        fill.messages(site, f"turns-{size}-", _MESSAGES, copies=copies, floor=True)
        fill.vacuum(site)
        there = size
        medians = await _measured(lab, site, size, copies)
        read.append(medians["read"] / medians["floor read"])
        added.append(medians["add"] / medians["floor add"])
        rows.append([f"{size:,} rows", medians["read"], read[-1], medians["add"], added[-1]])
    rows.append(["growth of the ratio", "", exponent(sizes, read), "", exponent(sizes, added)])
    notes = [
        verdict("reading 10 turns, ratio to the raw statement", median(read), BOUND),
        verdict("adding a turn, ratio to the raw statement", median(added), BOUND),
        verdict("growth of reading", exponent(sizes, read), GROWTH_BOUND),
        verdict("growth of adding", exponent(sizes, added), GROWTH_BOUND),
    ]
    columns = ["", "read 10 turns, ms", "x raw", "add a turn, keep 10, ms", "x raw"]
    turns = Table("Turns, direct, synchronous_commit=off", columns, rows, notes)
    return [turns, await _at_once(lab, site, sizes[-1]), await _with_manifests(lab)]


async def _with_manifests(lab: Lab) -> Table:
    """Measure an answer with and without a prompt manifest, and a load with and without stored manifests."""
    rows: list[list[str | float]] = []
    notes: list[str] = []
    for commit in ("on", "off"):
        site = lab.site(commit)
        for door, memory in (("direct", site.direct()), ("Data API", site.data_api())):
            told = memory.conversation(f"manifests-{door}")
            for _ in range(20):
                told.append(work.said())
            pack = told.context(work.text())
            pack.report()  # a streaming application has built it before the answer
            contestants: dict[str, Any] = {
                "without": told.append,
                "with": partial(told.append, pack=pack),
            }
            rounds, seconds = (200, 5) if lab.quick else (1000, 20)
            medians = await interleaved(contestants, work.said, rounds=rounds, seconds=seconds)
            ratio = medians["with"] / medians["without"]
            name = f"{door}, synchronous_commit={commit}"
            rows.append([name, medians["without"], medians["with"], ratio])
            notes.append(verdict(f"a manifest, {name}, ratio to none", ratio, MANIFEST_BOUND))
    notes += _loaded(lab.another("off"))  # in an empty project, since row order affects what a load reads
    return Table(MANIFEST_TITLE, ["", "without, ms", "with, ms", "x without"], rows, notes)


def _loaded(site: Site) -> list[str]:
    """Count the cost of a load for an owner whose answers have manifests, and for one whose answers have none."""
    loads: list[list[Cost]] = []
    with ExitStack() as stack:
        each = [
            _told(stack.enter_context(psycopg.connect(site.conn_string, autocommit=True)), share) for share in (0, 1)
        ]
        for _ in range(8):  # alternating, since first calls of a connection and calls after a vacuum read more
            loads.append([])
            for transport, told in each:
                transport.taken()
                told.context(work.short(0))
                loads[-1].append(transport.taken())
    costs = [min(column, key=lambda load: load.read) for column in zip(*loads, strict=True)]
    without, having = costs
    said = "a load, {} with manifests by those without"
    return [
        verdict(said.format("round trips"), having.round_trips / without.round_trips, 1),
        verdict(said.format("rows read"), having.read / without.read, 1),
        verdict("a load with manifests, rows written", having.written, 0),
    ]


def _told(connection: psycopg.Connection[Any], share: int) -> tuple[CountingTransport, Conversation]:
    """Create a conversation in which this share of the answers has manifests."""
    transport = CountingTransport(connection)
    policy = ManifestPolicy(share=share)
    memory = SupabaseMemory(
        transport, user_id=f"manifests-{share}", model=None, config=MemoryConfig(recall=None, manifests=policy)
    )
    told = memory.conversation("loaded")
    for place in range(20):
        asked = work.short(2 * place)
        told.append([asked, work.short(2 * place + 1)], pack=told.context(asked))
    return transport, told


async def _measured(lab: Lab, site: Site, size: int, copies: int) -> dict[str, float]:
    memory, pool = site.direct(), site.pool()
    threads = count()
    with pool.connection() as connection:
        found = connection.execute(
            "select id from memory.conversations where starts_with(thread_id, %s) limit 50", [f"turns-{size}-"]
        ).fetchall()

    def floor_read(_: work.Ready) -> None:
        with pool.connection() as connection:
            connection.execute(_FLOOR_READ, [found[next(threads) % len(found)][0], _MESSAGES]).fetchall()

    def floor_add(turn: work.Ready) -> None:
        with pool.connection() as connection:
            connection.execute(work.FLOOR_INSERT, turn.floor_values)

    def add(turn: work.Ready) -> None:
        query, response = (str(message.content) for message in turn.messages)
        memory.conversation(thread()).add_turn(query, response, retention=_RETENTION)

    def thread() -> str:
        return f"turns-{size}-{next(threads) % min(copies, 50)}"

    contestants: dict[str, Any] = {
        "floor read": floor_read,
        "read": lambda _: memory.conversation(thread()).turns.list(last=TURNS),
        "floor add": floor_add,
        "add": add,
    }
    rounds, seconds = (60, 6) if lab.quick else (400, 25)
    return await interleaved(contestants, work.ready, rounds=rounds, seconds=seconds)


async def _at_once(lab: Lab, site: Site, size: int) -> Table:
    """Measure single operations while 64 users are active."""
    memory = site.direct()
    rows: list[list[str | float]] = []

    async def user(number: int, times: list[float], operation: Any) -> None:
        for _ in range(5 if lab.quick else 20):
            begun = time.perf_counter()
            await operation(memory.conversation(f"turns-{size}-{number}"))
            times.append((time.perf_counter() - begun) * 1000)

    try:
        for name, operation in (
            ("read 10 turns", lambda one: one.turns.alist(last=TURNS)),
            ("add a turn, keep 10", lambda one: one.aadd_turn(work.text(), work.text(), retention=_RETENTION)),
        ):
            times: list[float] = []
            await asyncio.gather(*(user(number, times, operation) for number in range(USERS)))
            rows.append([name, median(times), quantiles(times, n=20)[-1]])
    finally:
        await memory.aclose()
    return Table(f"{USERS} users at once, direct, {size:,} rows", ["", "p50, ms", "p95, ms"], rows)
