"""Measure the first view of each inspector screen: its time against its own SQL, and its reads as the database grows.

A screen is requested in this process, without a network and a browser. Its own SQL is the sequence of its calls over a
psycopg connection, with the results discarded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import httpx
import psycopg
from langchain_core.messages import AIMessage, HumanMessage

from benchmarks import fill, growth
from benchmarks.fill import Filling
from benchmarks.harness import Table, interleaved, verdict
from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.inspector import application
from tests.counting import CountingTransport
from tests.inspector.test_bounded import SCREENS
from tests.inspector.visiting import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from psycopg_pool import AsyncConnectionPool

    from benchmarks.services import Lab, Site
    from langchain_supabase_memory.effects import Call

TITLE: Final = "First view of a page, direct"
BOUND: Final = 2.0
"""The maximum ratio of a screen's time to its own SQL."""

_OF_A_USER: Final = 100
_TURNS: Final = 60
_DUE: Final = 1000
_FEW, _ALL = "few", "one"
_VIEWS: Final[dict[str, str | None]] = {
    f"owner with {_OF_A_USER} conversations": _FEW,
    "owner with most conversations": _ALL,
    "all users": None,
}
"""The viewers: a user of their own conversations, or a server of everyone's."""


@dataclass
class _Noting(CountingTransport):
    """Records the calls, too."""

    calls: list[Call] = field(default_factory=list)

    def perform(self, call: Call) -> Any:
        self.calls.append(call)
        return super().perform(call)


async def run(lab: Lab) -> list[Table]:
    sizes = [100, 10_000 if lab.quick else 100_000]
    sites = {size: lab.another("off", spaces=True) for size in sizes}
    for size, site in sites.items():
        _fill(site, size)
    rows: list[list[str | float]] = []
    notes: list[str] = []
    for view, user in _VIEWS.items():
        beside: dict[str, float] = {}
        grown: dict[str, float] = {}
        read: dict[str, list[int]] = {}
        for size, site in sites.items():
            counted = await _counted(site, user)
            for name, (cost, _) in counted.items():
                read.setdefault(name, []).append(cost)
            if size == sizes[-1]:
                timed = await _timed(lab, site, user, {name: calls for name, (_, calls) in counted.items()})
        for name, (first, last) in read.items():
            page, sql = timed[name]
            beside[name], grown[name] = page / sql, last / max(first, 1)
            rows.append([f"{name}, {view}", f"{first:,}", f"{last:,}", sql, page, beside[name]])
        notes += _verdicts(f"{view}, x SQL", beside, BOUND)
        notes += _verdicts(f"{view}, rows at {sizes[-1]:,} conversations / rows at {sizes[0]}", grown, growth.BOUND)
    columns = ["", *[f"rows at {size:,} conversations" for size in sizes], "SQL, ms", "page, ms", "x SQL"]
    about = [
        f"each owner has {_OF_A_USER} conversations of two messages, except one, who has as many as all others"
        f" together; the page shows a conversation of {_TURNS} turns; times are at {sizes[-1]:,}",
        f"{_DUE:,} conversations of {_OF_A_USER} other users are due: the queue counts all due work",
    ]
    return [Table(TITLE, columns, rows, [*notes, *about])]


def _fill(site: Site, size: int) -> None:
    """Write `size` conversations of many owners and of one, and a long one with all derived data for the viewer."""
    for filling in (
        Filling("due-", 2, _DUE, "due", _OF_A_USER, due=True),
        Filling("few-", 2, _OF_A_USER, _FEW),
        Filling("many-", 2, size, "others", max(size // _OF_A_USER, 2)),
        Filling("one-", 2, size, _ALL),
    ):
        fill.fill(site.superuser, filling)
    for user in (_FEW, _ALL):
        with SupabaseMemory.from_conn_string(site.conn_string, user_id=user) as memory:
            memory.spaces.create("Studio")
            long = memory.conversation("long")
            for turn in range(_TURNS):
                asked = HumanMessage(f"Which kiln is number {turn}?", id=f"q{turn}")
                pack = long.context(asked)
                long.append([asked, AIMessage(f"The blue one, number {turn}.", id=f"a{turn}")], pack=pack)
            long.summaries.make()
            long.index()
            memory.topics.update()
            long.board.revise()
    fill.vacuum(site)


async def _counted(site: Site, user: str | None) -> dict[str, tuple[int, list[Call]]]:
    """Return the rows that each screen reads, and its calls."""
    found = {}
    with psycopg.connect(site.conn_string, autocommit=True) as connection:
        transport = _Noting(connection)
        async with _visitor(SupabaseMemory(transport, user_id=user)) as http:
            for name in SCREENS:
                # The first call of a connection fills caches for the next ones.
                for _ in range(2):
                    transport.taken()
                    transport.calls.clear()
                    await _asked(http, name, user)
                found[name] = (transport.taken().read, [*transport.calls])
    return found


async def _timed(
    lab: Lab, site: Site, user: str | None, calls: Mapping[str, Sequence[Call]]
) -> dict[str, tuple[float, float]]:
    """Return each screen's medians of the page and of its own SQL, in milliseconds."""
    rounds, seconds = (4, 0.2) if lab.quick else (60, 4)
    times = {}
    memory = SupabaseMemory.from_conn_string(site.conn_string, user_id=user)
    pool = await site.async_pool(prepare_threshold=5)
    try:
        async with _visitor(memory) as http:
            for name in SCREENS:
                contestants: dict[str, Any] = {
                    "page": lambda _, name=name: _asked(http, name, user),
                    "SQL": lambda _, name=name: _performed(pool, calls[name]),
                }
                medians = await interleaved(contestants, partial(int, 0), rounds=rounds, seconds=seconds, warm_up=6)
                times[name] = (medians["page"], medians["SQL"])
    finally:
        await pool.close()
        await memory.aclose()
    return times


def _visitor(memory: SupabaseMemory) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(application(memory)), base_url=ADDRESS)


async def _asked(http: httpx.AsyncClient, name: str, user: str | None) -> None:
    path, given = SCREENS[name]
    given = {name: value for name, value in given.items() if name != "advice"}  # a second view, which replays prompts
    if "user" in given or (user is None and "thread" in given):
        given = {**given, "user": user or _FEW}
    (await http.get(path, params=given)).raise_for_status()


async def _performed(pool: AsyncConnectionPool, calls: Sequence[Call]) -> None:
    """Perform calls and discard the results."""
    async with pool.connection() as connection:
        for call in calls:
            arguments = [
                json.dumps(each) if isinstance(each, (dict, list)) else each for each in call.arguments.values()
            ]
            named = ", ".join(f"{name} => %s" for name in call.arguments)
            cursor = await connection.execute(f"select public.{call.function}({named})".encode(), arguments)
            await cursor.fetchone()


def _verdicts(what: str, ratios: Mapping[str, float], bound: float) -> Iterator[str]:
    """Yield one line for each screen that misses a target, and one for the slowest of the others."""
    met = {name: ratio for name, ratio in ratios.items() if ratio <= bound}
    worst = [max(met, key=lambda name: met[name])] if met else []
    for name in (*(each for each in ratios if each not in met), *worst):
        yield verdict(f"{what}: {name}{' (the worst of the others)' if name in met else ''}", ratios[name], bound)
