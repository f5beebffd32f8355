"""Whether append, read and count stay as fast in a long conversation as in a short one."""

from __future__ import annotations

from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Final

from benchmarks import fill, work
from benchmarks.harness import Table, exponent, interleaved, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.services import Lab, Site
    from langchain_supabase_memory import SupabaseMemory

BOUND: Final = 0.05
_SPARE: Final = 2000
"""Short conversations are made so often that together they hold so many messages, or the appends would grow them."""


async def run(lab: Lab) -> list[Table]:
    site = lab.site("off")
    sizes = [10, 1000, 10_000] if lab.quick else [10, 1000, 10_000, 100_000]
    for size in sizes:
        fill.messages(site, f"growth-{size}-", size, copies=_copies(size))
    fill.vacuum(site)
    return [await _door(lab, site, door, sizes) for door in ("direct", "Data API")]


def _copies(size: int) -> int:
    return max(1, _SPARE // size)


async def _door(lab: Lab, site: Site, door: str, sizes: list[int]) -> Table:
    memory = site.direct() if door == "direct" else site.data_api()
    contestants: dict[str, Callable[[work.Turn], object]] = {}
    for size in sizes:
        threads = cycle([f"growth-{size}-{copy}" for copy in range(_copies(size))])
        contestants[f"append {size}"] = partial(_append, memory, threads)
        contestants[f"read {size}"] = partial(_read, memory, threads)
        contestants[f"count {size}"] = partial(_count, memory, threads)
    try:
        medians = await interleaved(
            contestants, work.turn, rounds=30 if lab.quick else 300, seconds=6 if lab.quick else 45
        )
    finally:
        await memory.aclose()
    rows: list[list[str | float]] = []
    notes = []
    for verb in ("append", "read", "count"):
        values = [medians[f"{verb} {size}"] for size in sizes]
        # Ten messages are less than the twenty read elsewhere: that would be less work, not slower growth.
        fitted = [size for size in sizes if verb != "read" or size >= 20]
        slope = exponent(fitted, values[-len(fitted) :])
        rows.append(["read last=20" if verb == "read" else verb, *values, f"{slope:.3f}"])
        notes.append(verdict(f"exponent of {verb}", slope, BOUND))
    columns = ["ms", *[f"{size:,} messages" for size in sizes], "exponent"]
    return Table(f"Growth, {door}, async, synchronous_commit=off", columns, rows, notes)


async def _append(memory: SupabaseMemory, threads: Iterator[str], turn: work.Turn) -> None:
    await memory.conversation(next(threads)).aappend(turn.messages)


async def _read(memory: SupabaseMemory, threads: Iterator[str], _: work.Turn) -> None:
    await memory.conversation(next(threads)).aread(last=20)


async def _count(memory: SupabaseMemory, threads: Iterator[str], _: work.Turn) -> None:
    await memory.conversation(next(threads)).acount()
