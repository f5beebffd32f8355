"""Measure a turn next to its minimum cost, and next to what an application would use instead.

Each contestant is an async process; in every round all take turns.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final

import psycopg

from benchmarks import fill, floors
from benchmarks.contestants import APPEND_ONLY, PEERS
from benchmarks.harness import Table, rotated, verdict
from benchmarks.processes import Process, Task
from benchmarks.titles import (
    APPEND_TITLE,
    CAREFUL,
    DATA_API,
    DIRECT,
    FLOOR,
    FLOOR_LC,
    LOAD_TITLE,
    LOCK,
    LOCK_BARE,
    PROCESSOR_TITLE,
    SAVER,
    SQL,
    TURNS_TITLE,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.processes import Done
    from benchmarks.services import Lab, Site

APPENDED: Final = (1000, 10_000)
LOADED: Final = (1000, 100_000)
LEVELS: Final = (1, 16, 64)

_MESSAGES_OF_TURNS: Final = 200
_ROUND: Final = "ms: the median of all tries"
_COPIES: Final = {200: 64, 1000: 8, 10_000: 1, 100_000: 1}
"""The number of conversations of each size: appends rotate among them, so that none grows much."""

_STORES: Final = {DATA_API: "api", SQL: "sql"}
"""Contestants whose conversations differ from those that the floors copy."""

_TARGETS: Final = {
    "append": 1.3, "wal": 2.8, "load": 1.8, "api load": 1.0, "turns": 3.0, "api turns": 1.2, "processor": 3.0,
    "api processor": 7.0,
}  # fmt: skip


@dataclass
class _Field:
    """The contestants of a run, each in its process.

    Attributes:
        lab: The run.
        site: The project they use.
        processes: The processes by name.
    """

    lab: Lab
    site: Site
    processes: dict[str, Process] = field(default_factory=dict)

    def rounds(
        self, names: Sequence[str], task: Callable[[str], Task], *, number: int, seconds: float, warm: bool = True
    ) -> dict[str, list[Done]]:
        """Return what each did in `number` rounds, or in as many as start within `seconds`, but at least two."""
        done: dict[str, list[Done]] = {name: [] for name in names}
        end = time.perf_counter() + seconds
        for name in names if warm else ():
            self.processes[name].do(task(name))  # opens connections and warms caches
        for round_ in range(number):
            if round_ > 1 and time.perf_counter() > end:
                break
            for name in rotated(names, round_):
                done[name].append(self.processes[name].do(task(name)))
        return done


async def run(lab: Lab) -> list[Table]:
    site = lab.site("off")
    names = [FLOOR, FLOOR_LC, LOCK_BARE, LOCK, SQL, DIRECT, DATA_API, CAREFUL, *(PEERS if lab.peers else ())]
    sizes = [size for size in _COPIES if not (lab.quick and size > 10_000)]
    for store in ("direct", "api", "sql"):
        for size in sizes:
            threads = fill.messages(site, f"{store}-{size}-", size, copies=_COPIES[size])
            if store == "direct":
                floors.fill(site, threads)
    with ExitStack() as stack:
        field_ = _Field(lab, site, {name: stack.enter_context(Process(name, site)) for name in names})
        for name in names:
            if name in PEERS:
                for size in sizes:
                    field_.processes[name].do(Task("fill", _threads(name, size), size))
        fill.vacuum(site)
        complete = [name for name in names if name not in APPEND_ONLY]
        return [
            _appends(field_, names),
            _loads(field_, complete, [size for size in LOADED if size in sizes]),
            *_turns(field_, complete),
        ]


def _threads(name: str, size: int) -> list[str]:
    return [f"{_STORES.get(name, 'direct')}-{size}-{copy}" for copy in range(_COPIES[size])]


def _batch(name: str, size: int, count: int) -> int:
    """Return how often a contestant repeats a task in a round: fewer times if it reads or writes the whole history."""
    return max(1, min(count, 20_000 // size if name == SAVER else 200_000 // size)) if name in PEERS else count


def _appends(field_: _Field, names: Sequence[str]) -> Table:
    quick = field_.lab.quick
    times: dict[int, dict[str, float]] = {}
    for size in APPENDED:

        def task(name: str, size: int = size) -> Task:
            return Task("append", _threads(name, size), _batch(name, size, 8 if quick else 16))

        done = field_.rounds(names, task, number=4 if quick else 40, seconds=5 if quick else 40)
        times[size] = {name: _typical(each) for name, each in done.items()}
    logged = _logged(field_, names)
    rows: list[list[str | float]] = []
    for name in names:
        row: list[str | float] = [name]
        for size in APPENDED:
            mine = times[size][name]
            row += [mine, mine / times[size][LOCK], mine / times[size][FLOOR]]
        rows.append([*row, f"{logged[name]:,.0f}", logged[name] / logged[FLOOR]])
    columns = [
        "",
        *[head for size in APPENDED for head in (f"{size:,} messages, ms", "x lock", "x floor")],
        f"WAL at {APPENDED[-1]:,}, bytes",
        "x floor",
    ]
    ratio = median(times[size][DIRECT] / times[size][LOCK] for size in APPENDED)
    notes = [
        verdict("append, direct, x lock the counter and insert the memory's rows", ratio, _TARGETS["append"]),
        verdict("write-ahead log of a turn, direct, x floor", logged[DIRECT] / logged[FLOOR], _TARGETS["wal"]),
        _ROUND,
        "async, synchronous_commit=off; the write-ahead log without images of whole pages",
    ]
    return Table(APPEND_TITLE, columns, rows, notes)


def _logged(field_: _Field, names: Sequence[str]) -> dict[str, float]:
    """Return the bytes of write-ahead log per turn, without full-page images."""
    cluster, size = field_.site.cluster, APPENDED[-1]
    _full_pages(field_, "off")
    bytes_: dict[str, list[float]] = {name: [] for name in names}
    try:
        with psycopg.connect(cluster.conn_string(field_.site.database), autocommit=True) as connection:
            for round_ in range(3 if field_.lab.quick else 7):
                for name in rotated(names, round_):
                    count = _batch(name, size, 10)
                    before = _position(connection)
                    field_.processes[name].do(Task("append", _threads(name, size), count))
                    bytes_[name].append((_position(connection) - before) / count)
    finally:
        _full_pages(field_, "on")
    return {name: median(each) for name, each in bytes_.items()}


def _full_pages(field_: _Field, value: str) -> None:
    field_.site.cluster.execute(f"alter system set full_page_writes = {value}", superuser=True)
    field_.site.cluster.execute("select pg_reload_conf()", superuser=True)
    time.sleep(0.5)  # until the server has reloaded


def _position(connection: psycopg.Connection[tuple[int]]) -> int:
    row = connection.execute("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").fetchone()
    assert row is not None
    return row[0]


def _loads(field_: _Field, names: Sequence[str], sizes: Sequence[int]) -> Table:
    quick = field_.lab.quick
    rows: dict[str, list[str | float]] = {name: [name] for name in names}
    ratios: dict[str, list[float]] = {"load": [], "api load": []}
    for size in sizes:

        def task(name: str, size: int = size) -> Task:
            return Task("load", _threads(name, size)[:1], _batch(name, size, 8 if quick else 16))

        done = field_.rounds(names, task, number=4 if quick else 40, seconds=5 if quick else 60)
        times = {name: _typical(each) for name, each in done.items()}
        for name in names:
            rows[name] += [times[name], times[name] / times[FLOOR_LC], times[name] / times[CAREFUL]]
        ratios["load"].append(times[DIRECT] / times[FLOOR_LC])
        ratios["api load"].append(times[DATA_API] / times[CAREFUL])
    for name in names:
        peak = field_.processes[name].do(Task("peak", _threads(name, sizes[-1])[:1], 1)).peak_kilobytes
        rows[name].append(f"{peak:,.0f}")
    columns = [
        "",
        *[head for size in sizes for head in (f"{size:,} messages, ms", f"x {FLOOR_LC}", "x careful")],
        f"peak memory at {sizes[-1]:,}, kB",
    ]
    notes = [
        verdict("load, direct, x floor + LangChain messages", median(ratios["load"]), _TARGETS["load"]),
        verdict("load, Data API, x careful supabase-py", median(ratios["api load"]), _TARGETS["api load"]),
        _ROUND,
        "async; nothing is summarized; the careful application reads its last 28 messages",
    ]
    return Table(LOAD_TITLE, columns, list(rows.values()), notes)


def _turns(field_: _Field, names: Sequence[str]) -> list[Table]:
    lab = field_.lab
    rates: dict[str, list[float]] = {name: [] for name in names}
    processor: dict[str, list[float]] = {name: [] for name in names}
    for level in LEVELS:
        counts: dict[str, int] = {}
        for name in names:
            trial = Task("turn", _threads(name, _MESSAGES_OF_TURNS)[:level], max(4, level), level)
            seconds = field_.processes[name].do(trial).seconds
            # Each conversation gets the same number of turns.
            counts[name] = max(1, round((0.2 if lab.quick else 0.8) / seconds * trial.count / level)) * level

        def task(name: str, level: int = level, counts: dict[str, int] = counts) -> Task:
            return Task("turn", _threads(name, _MESSAGES_OF_TURNS)[:level], counts[name], level)

        done = field_.rounds(names, task, number=2 if lab.quick else 7, seconds=60, warm=False)
        for name in names:
            rates[name].append(median(counts[name] / each.seconds for each in done[name]))
            processor[name].append(median(1000 * each.processor / counts[name] for each in done[name]))
    others = max(rates[name][-1] for name in names if name not in (FLOOR, FLOOR_LC, DIRECT, DATA_API))
    ms = {name: each[0] for name, each in processor.items()}
    more = f"async, conversations of {_MESSAGES_OF_TURNS} messages"
    best = "64 at once, {}, x the best of the others"
    above = "{}, x floor + LangChain messages"
    return [
        _by_level(
            TURNS_TITLE,
            rates,
            [
                verdict(best.format("direct"), rates[DIRECT][-1] / others, _TARGETS["turns"], at_least=True),
                verdict(best.format("Data API"), rates[DATA_API][-1] / others, _TARGETS["api turns"], at_least=True),
                f"{more}, synchronous_commit=off",
            ],
        ),
        _by_level(
            PROCESSOR_TITLE,
            processor,
            [
                verdict(above.format("direct"), ms[DIRECT] / ms[FLOOR_LC], _TARGETS["processor"]),
                verdict(above.format("Data API"), ms[DATA_API] / ms[FLOOR_LC], _TARGETS["api processor"]),
                f"ms; {more}; the time of the client's process, not the server's",
            ],
        ),
    ]


def _by_level(title: str, values: dict[str, list[float]], notes: list[str]) -> Table:
    """Return a table of each contestant's values by level, and their ratios to the floor with messages."""
    rows: list[list[str | float]] = [
        [name, *[each for value, base in zip(mine, values[FLOOR_LC], strict=True) for each in (value, value / base)]]
        for name, mine in values.items()
    ]
    heads = [head for level in LEVELS for head in (f"{level} at once", f"x {FLOOR_LC}")]
    return Table(title, ["", *heads], rows, notes)


def _typical(done: Sequence[Done]) -> float:
    """Return the median of all repetitions in all rounds."""
    return median(took for each in done for took in each.milliseconds)
