"""Measure the memory against floors: the leanest statement or request that does the same work, in the same run.

    python -m benchmarks [--quick] [--only NAME] [--json FILE] [--peers]

A real Postgres (with fsync) and a real PostgREST are started, and stopped at the end or on an interruption. In every
round all contestants take turns, and the order rotates; shown are medians, and ratios to the floor of the same run.
Milliseconds differ from machine to machine and from hour to hour: repeat the ratios.

With peers, in an environment that is thrown away:

    uv run --isolated --frozen --all-extras --with langchain-postgres --with langgraph-checkpoint-postgres \
        python -m benchmarks --only context --only throughput --peers
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import append, context, growth, imports, recall, throughput, turns, worker
from benchmarks.services import Lab

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.harness import Table

_LIMIT_SECONDS = 30 * 60
"""No run lasts longer, whatever hangs."""


def main() -> None:
    names = ["append", "data-api", "context", "turns", "growth", "throughput", "recall", "worker", "imports"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the memory against floors.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: under a minute, and noisier")
    parser.add_argument("--only", choices=names, action="append", help="this one only; can be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables there too")
    parser.add_argument(
        "--peers", action="store_true", help="with other packages in context and throughput; see the module"
    )
    given = parser.parse_args()

    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(_LIMIT_SECONDS)
    tables: list[Table] = []
    with Lab(quick=given.quick, peers=given.peers) as lab:
        benchmarks: dict[str, Callable[[Lab], Awaitable[list[Table]]]] = {
            "append": append.direct,
            "data-api": append.data_api,
            "context": context.run,
            "turns": turns.run,
            "growth": growth.run,
            "throughput": throughput.run,
            "recall": recall.run,
            "worker": worker.run,
            "imports": imports.run,
        }
        for name in given.only or names:
            begun = time.perf_counter()
            tables += asyncio.run(_printed(benchmarks[name](lab)))
            print(f"({name}: {time.perf_counter() - begun:.0f} s)\n", flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(table) for table in tables], indent=1) + "\n")


async def _printed(benchmark: Awaitable[list[Table]]) -> list[Table]:
    tables = await benchmark
    for table in tables:
        print(table.text() + "\n", flush=True)
    return tables


def _stop(number: int, _frame: object) -> None:
    sys.exit(f"stopped by {signal.Signals(number).name}")


if __name__ == "__main__":
    main()
