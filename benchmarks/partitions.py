"""Measure the cost of partitions: the same verbs on plain tables and on partitions in the same rounds, the locks, and
the first call of a connection, which includes planning.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from itertools import count
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import psycopg

from benchmarks import fill
from benchmarks.fill import Filling
from benchmarks.harness import Table, interleaved
from langchain_supabase_memory import SupabaseMemory
from tests.counting import CountingTransport
from tests.verbs import OF_A_CONVERSATION, OF_A_DATABASE, Subject

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.services import Lab, Site
    from langchain_supabase_memory.effects import Call

    Doing = Callable[[SupabaseMemory, int], object]

TITLE: Final = "Cost of partitions per call, direct"
COUNTS: Final = (None, 4, 16)
MESSAGES: Final = 10_000
INDEXED: Final = 500
CONVERSATIONS: Final = 10
_TWICE_AN_INDEXED: Final = 2 * (MESSAGES - INDEXED)
"""A size whose middle message is indexed: the edited one."""

VERBS: Final = (
    "append a turn",
    "store a question and load its pack",
    "context pack",
    "read the last 20",
    "turns, the last 10",
    "recall",
    "board",
    "status",
    "edit a message",
    "conversations, a page of 50",
    "claim 4 conversations",
)

_LOCKED: Final = b"""
select count(*), count(*) filter (where not l.fastpath) from pg_locks l join pg_class c on c.oid = l.relation
where l.pid = pg_backend_pid() and c.relnamespace in ('memory'::regnamespace, 'memory_private'::regnamespace)
"""


@dataclass
class LockCounting(CountingTransport):
    """Also counts the locked tables and indexes of the last call, and those in the shared lock table."""

    locked: int = 0
    shared: int = 0

    def perform(self, call: Call) -> Any:
        with self.connection.transaction():
            document = super().perform(call)
            self.locked, self.shared = self._row(_LOCKED)
        return document


async def run(lab: Lab) -> list[Table]:
    sites = {partitions: lab.another("off", partitions=partitions) for partitions in COUNTS}
    for site in sites.values():
        fill.fill(site.superuser, Filling("parts-", MESSAGES, CONVERSATIONS, unindexed=INDEXED))
        site.direct().conversation("parts-0").index()
        fill.vacuum(site)
    rows = [await _row(lab, verb, sites) for verb in VERBS]
    columns = [
        "",
        *[f"locks, {_said(each)}" for each in COUNTS],
        *[f"ms, {_said(each)}" for each in COUNTS],
        *[f"x, {_said(each)}" for each in COUNTS[1:]],
        *[f"first ms, {_said(each)}" for each in COUNTS],
    ]
    notes = [
        f"one owner, with {CONVERSATIONS} conversations of {MESSAGES:,} messages each",
        "locks: the tables and indexes that one call locks; in brackets those in the shared lock table",
        "first: the first call of a connection, which plans it and reads the catalog",
    ]
    return [Table(TITLE, columns, rows, notes)]


async def _row(lab: Lab, verb: str, sites: dict[int | None, Site]) -> list[str | float]:
    do: Doing = OF_A_DATABASE.get(
        verb, lambda memory, n: OF_A_CONVERSATION[verb](Subject(memory, "parts-0", _TWICE_AN_INDEXED), n)
    )
    numbers = count()
    locks = [_locks(site, do, numbers) for site in sites.values()]
    rounds, seconds = (10, 2) if lab.quick else (100, 8)
    medians = await interleaved(
        {_said(each): partial(do, site.direct()) for each, site in sites.items()},
        partial(next, numbers),
        rounds=rounds,
        seconds=seconds,
        warm_up=8,
    )
    plain, *others = medians.values()
    first = [_first(site, do, numbers, 3 if lab.quick else 9) for site in sites.values()]
    return [verb, *locks, plain, *others, *[each / plain for each in others], *first]


def _first(site: Site, do: Doing, numbers: count[int], times: int) -> float:
    """Return the milliseconds of the first call of an open connection."""
    taken = []
    for _ in range(times):
        with psycopg.connect(site.conn_string, autocommit=True) as connection:
            memory = SupabaseMemory(CountingTransport(connection), user_id="bench", model=None)
            connection.execute(b"select")
            begun = time.perf_counter()
            do(memory, next(numbers))
            taken.append((time.perf_counter() - begun) * 1000)
    return median(taken)


def _locks(site: Site, do: Doing, numbers: count[int]) -> str:
    """Return the locks of a connection that uses generic plans after enough calls."""
    with psycopg.connect(site.conn_string, autocommit=True) as connection:
        transport = LockCounting(connection)
        memory = SupabaseMemory(transport, user_id="bench", model=None)
        for _ in range(8):
            do(memory, next(numbers))
        return f"{transport.locked} ({transport.shared})"


def _said(partitions: int | None) -> str:
    return "plain" if partitions is None else f"{partitions} partitions"
