"""Measure the memory against floors: the cheapest statement or request that does the same work, in the same run.

    python -m benchmarks [--quick] [--only NAME] [--keep] [--peers]

The run starts a real Postgres (with fsync) and a real PostgREST, and stops them at the end or on an interruption. In
every round all contestants take turns, in rotating order. The tables show medians, and ratios to the floor of the same
run. Milliseconds vary with the machine and the hour; ratios are reproducible. `--keep` replaces the tables of the
previous run in `results.json`, from which `RESULTS.md` is written.

With peers, in a temporary environment:

    uv run --isolated --frozen --all-extras --with langchain-postgres --with langgraph-checkpoint-postgres \
        python -m benchmarks --only beside --peers --keep
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import (
    beside,
    context,
    counts,
    growth,
    imports,
    inspector,
    mcp,
    millions,
    money,
    partitions,
    perspectives,
    price,
    recall,
    results,
    transfer,
    turn,
    turns,
    worker,
)
from benchmarks.services import Lab

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.harness import Table

_LIMIT_SECONDS = 30 * 60
"""The time limit of a run."""

_LIMIT_OF_MILLIONS_SECONDS = 4 * 60 * 60
"""The time limit of the `millions` benchmarks."""

_ONLY_IF_NAMED = {"millions", "millions_in_partitions"}
"""Benchmarks that only run if named."""

_BENCHMARKS: dict[str, Callable[[Lab], Awaitable[list[Table]]]] = {
    "turn": turn.run,
    "money": money.run,
    "beside": beside.run,
    "counts": counts.run,
    "context": context.run,
    "turns": turns.run,
    "growth": growth.run,
    "perspectives": perspectives.run,
    "price": price.run,
    "partitions": partitions.run,
    "millions": millions.run,
    "millions_in_partitions": partial(millions.run, partitions=millions.PARTITIONS),
    "recall": recall.run,
    "worker": worker.run,
    "imports": imports.run,
    "inspector": inspector.run,
    "mcp": mcp.run,
    "transfer": transfer.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the memory against floors.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: about two minutes, with more noise")
    parser.add_argument(
        "--only",
        choices=_BENCHMARKS,
        action="append",
        help="only this benchmark; may be repeated. With growth only, up to a million; millions runs only if named",
    )
    parser.add_argument(
        "--messages",
        type=int,
        metavar="N",
        help="for millions: messages in the larger database, at least 20,000; default 10,000,000, with --quick 100,000",
    )
    parser.add_argument("--keep", action="store_true", help="write the tables to results.json and RESULTS.md")
    parser.add_argument(
        "--peers", action="store_true", help="include other packages in beside; see the docstring of the module"
    )
    given = parser.parse_args()

    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(_LIMIT_OF_MILLIONS_SECONDS if _ONLY_IF_NAMED & {*(given.only or [])} else _LIMIT_SECONDS)
    million = given.only == ["growth"] and not given.quick
    largest = given.messages or (100_000 if given.quick else 10_000_000)
    for name in given.only or [each for each in _BENCHMARKS if each not in _ONLY_IF_NAMED]:
        # Each one starts its own servers, so that state of another does not slow it down.
        with Lab(quick=given.quick, peers=given.peers, million=million, largest=largest) as lab:
            begun = time.perf_counter()
            tables = asyncio.run(_printed(_BENCHMARKS[name](lab)))
            seconds = time.perf_counter() - begun
        print(f"({name}: {seconds:.0f} s)\n", flush=True)
        if given.keep:
            now = datetime.now(UTC).date().isoformat()
            results.keep(name, results.Kept(now, given.quick, os.getloadavg()[1], seconds, tables))


async def _printed(benchmark: Awaitable[list[Table]]) -> list[Table]:
    tables = await benchmark
    for table in tables:
        print(table.text() + "\n", flush=True)
    return tables


def _stop(number: int, _frame: object) -> None:
    sys.exit(f"stopped by {signal.Signals(number).name}")


if __name__ == "__main__":
    main()
