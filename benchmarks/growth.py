"""Check that a verb costs no more in a long conversation or a full database than in a short or empty one.

Each verb is counted once and timed repeatedly; if it takes longer than a second, the counted call is the timed one.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

import psycopg

from benchmarks import fill
from benchmarks.fill import Filling
from benchmarks.harness import Table, interleaved, verdict
from benchmarks.titles import CONVERSATION_TITLE
from langchain_supabase_memory import SupabaseMemory
from tests.counting import CountingTransport
from tests.verbs import OF_A_CONVERSATION, OF_A_DATABASE, Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.services import Lab, Site

    Doing = Callable[[SupabaseMemory, int], object]

BOUND: Final = 2.0
"""The bound for flat growth: the ratio of rows read at the largest size to the smallest."""

CHUNKS: Final = 500
"""The number of newest messages that are indexed; chunks expire, so a conversation of any length has about as many."""

DATABASE_TITLE: Final = "Growth with the number of conversations, direct"

_OF_A_USER: Final = 100
_SLOW_MS: Final = 1000.0


async def run(lab: Lab) -> list[Table]:
    sizes = [1000, 10_000 if lab.quick else 100_000, *([1_000_000] if lab.million else [])]
    return [await _database(lab, sizes), await _conversation(lab, lab.site("off"), sizes)]


async def _conversation(lab: Lab, site: Site, sizes: Sequence[int]) -> Table:
    for size in sizes:
        fill.fill(site.superuser, Filling(f"growth-{size}-", size, unindexed=CHUNKS))
        site.direct().conversation(f"growth-{size}-0").index()
    fill.vacuum(site)

    def use(verb: str, size: int) -> Doing:
        return lambda memory, n: OF_A_CONVERSATION[verb](Subject(memory, f"growth-{size}-0", size), n)

    verbs = {verb: {size: ("bench", use(verb, size)) for size in sizes} for verb in OF_A_CONVERSATION}
    notes = [f"the newest {CHUNKS} messages are indexed, nothing is summarized, the edited message is in the middle"]
    return await _measured(lab, dict.fromkeys(sizes, site), CONVERSATION_TITLE, "messages", sizes, verbs, notes)


async def _database(lab: Lab, sizes: Sequence[int]) -> Table:
    """Measure each size in its own database, for one user of many."""
    sites = {}
    for size in sizes:
        sites[size] = lab.another("off")
        users = size // _OF_A_USER
        fill.fill(sites[size].superuser, Filling("many-", 2, size, user="bench", users=users, due=True))
        fill.vacuum(sites[size])
    verbs = {verb: dict.fromkeys(sizes, ("bench-0", do)) for verb, do in OF_A_DATABASE.items()}
    notes = [f"each user has {_OF_A_USER} conversations of two messages, and all are due"]
    return await _measured(lab, sites, DATABASE_TITLE, "conversations", sizes, verbs, notes)


async def _measured(
    lab: Lab,
    sites: Mapping[int, Site],
    title: str,
    unit: str,
    sizes: Sequence[int],
    verbs: Mapping[str, Mapping[int, tuple[str, Doing]]],
    notes: list[str],
) -> Table:
    rows: list[list[str | float]] = []
    grown = []
    for verb, of in verbs.items():
        read: dict[int, int] = {}
        medians: dict[str, float] = {}
        contestants: dict[str, Callable[[int], object]] = {}
        numbers = count()
        for size in sizes:
            site = sites[size]
            user, do = of[size]
            with psycopg.connect(site.conn_string, autocommit=True) as connection:
                transport = CountingTransport(connection)
                counted = SupabaseMemory(transport, user_id=user, model=None)
                # The first call of a connection fills caches for the next ones; for slow verbs it is the only call.
                for _ in range(2):
                    transport.taken()
                    begun = time.perf_counter()
                    do(counted, next(numbers))
                    medians[str(size)] = (time.perf_counter() - begun) * 1000
                    if medians[str(size)] > _SLOW_MS:
                        break
                read[size] = transport.taken().read
            if medians[str(size)] < _SLOW_MS:
                contestants[str(size)] = partial(do, site.direct(user))
        rounds, seconds = (10, 2) if lab.quick else (60, 8)
        supply = partial(next, numbers)
        medians |= await interleaved(contestants, supply, rounds=rounds, seconds=seconds, warm_up=2)
        ms = [medians[str(size)] for size in sizes]
        rows.append([verb, *[f"{read[size]:,}" for size in sizes], *ms, ms[-1] / ms[0]])
        ratio = read[sizes[-1]] / max(read[sizes[0]], 1)
        if ratio > BOUND:
            grown.append(verdict(f"{verb}, rows of the largest by those of the smallest", ratio, BOUND))
    flat = f"met    all other verbs: at most {BOUND} times the rows" if grown else f"met    all verbs: {BOUND} times"
    columns = [
        "",
        *[f"rows at {size:,} {unit}" for size in sizes],
        *[f"ms at {size:,}" for size in sizes],
        f"x {sizes[0]:,}",
    ]
    return Table(title, columns, rows, [*grown, flat, *notes])
