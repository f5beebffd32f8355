"""Measure the first view of each inspector screen: its time against its own SQL, and its reads as the database grows.

A screen is asked of the application itself, without a client, a network and a browser. Its own SQL is the sequence of
its calls over a psycopg connection, with the results discarded. Times of the processor are the client's and the
server's together, so they hold on a machine that others share.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import psycopg
from langchain_core.messages import AIMessage, HumanMessage

from benchmarks import fill, growth
from benchmarks.fill import Filling
from benchmarks.harness import Table, rotated, verdict
from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.inspector import application
from tests.counting import CountingTransport
from tests.inspector.test_bounded import SCREENS
from tests.inspector.visiting import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from psycopg_pool import AsyncConnectionPool
    from starlette.types import ASGIApp, Message

    from benchmarks.services import Lab, Site
    from langchain_supabase_memory.effects import Call

TITLE: Final = "First view of a page, direct"
BOUND: Final = 2.0
"""The maximum ratio of a screen's time to its own SQL."""

_OF_A_USER: Final = 100
_TURNS: Final = 60
_DUE: Final = 1000
_TIMES: Final = ["SQL, ms", "page, ms", "x SQL", "SQL, processor, ms", "page, processor, ms"]
_ROUNDS: Final = 60
_QUICK_ROUNDS: Final = 4
_WARM_UP: Final = 6
"""The number of initial rounds that do not count: the server then has its plans."""

_USAGE: Final = b"""
insert into memory.usage_days (
  user_id, agent_id, day, turns, messages, characters, packs, pack_tokens, whole_tokens, calls, input_tokens,
  cached_tokens, output_tokens, recalls, recalls_empty, chunks)
select o, 'default', (now() at time zone 'UTC')::date - n, 60 + n, 120 + n, 9000 + n, 60, 31000 + n, 180000 - n, 60,
       47000 - n, 21000, 5300 + n, 40, n %% 7, 110 + n
from unnest(%s::text[]) o, generate_series(0, 29) n
"""
"""What a worker has counted of the viewers' last thirty days."""
_HOST: Final = ADDRESS.partition("://")[2].encode()
_FEW, _ALL = "few", "one"
_VIEWS: Final[dict[str, str | None]] = {
    f"owner with {_OF_A_USER} conversations": _FEW,
    "owner with most conversations": _ALL,
    "all users": None,
}
"""The viewers: a user of their own conversations, or a server of everyone's."""


@dataclass(frozen=True)
class _Spent:
    """Medians of a view, in milliseconds.

    Attributes:
        elapsed: From the request to the answer.
        processor: The time of this process's processor and of the server's sessions.
    """

    elapsed: float
    processor: float


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
            beside[name], grown[name] = page.elapsed / sql.elapsed, last / max(first, 1)
            times = [sql.elapsed, page.elapsed, beside[name], sql.processor, page.processor]
            rows.append([f"{name}, {view}", f"{first:,}", f"{last:,}", *times])
        notes += _verdicts(f"{view}, x SQL", beside, BOUND)
        notes += _verdicts(f"{view}, rows at {sizes[-1]:,} conversations / rows at {sizes[0]}", grown, growth.BOUND)
    columns = ["", *[f"rows at {size:,} conversations" for size in sizes], *_TIMES]
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
    with psycopg.connect(site.superuser, autocommit=True) as connection:
        connection.execute(_USAGE, [[_FEW, _ALL]])
    fill.vacuum(site)


async def _counted(site: Site, user: str | None) -> dict[str, tuple[int, list[Call]]]:
    """Return the rows that each screen reads, and its calls."""
    found = {}
    with psycopg.connect(site.conn_string, autocommit=True) as connection:
        transport = _Noting(connection)
        app = application(SupabaseMemory(transport, user_id=user))
        for name in SCREENS:
            # The first call of a connection fills caches for the next ones.
            for _ in range(2):
                transport.taken()
                transport.calls.clear()
                await _asked(app, name, user)
            found[name] = (transport.taken().read, [*transport.calls])
    return found


async def _timed(
    lab: Lab, site: Site, user: str | None, calls: Mapping[str, Sequence[Call]]
) -> dict[str, tuple[_Spent, _Spent]]:
    """Return what each screen's page spends, and its own SQL."""
    times = {}
    memory = SupabaseMemory.from_conn_string(site.conn_string, user_id=user)
    app = application(memory)
    pool = await site.async_pool(prepare_threshold=5)
    try:
        with psycopg.connect(site.superuser, autocommit=True) as connection:
            for name in SCREENS:
                contestants: dict[str, Any] = {
                    "page": lambda name=name: _asked(app, name, user),
                    "SQL": lambda name=name: _performed(pool, calls[name]),
                }
                spent: dict[str, list[tuple[float, float]]] = {each: [] for each in contestants}
                for number in range(-_WARM_UP, _QUICK_ROUNDS if lab.quick else _ROUNDS):
                    for each in rotated(list(contestants), number + _WARM_UP):
                        clocks = _clocks(connection)
                        used, begun = _processor(clocks), time.perf_counter()
                        await contestants[each]()
                        elapsed = time.perf_counter() - begun
                        if number >= 0:
                            spent[each].append((elapsed * 1000, _processor(clocks) - used))
                page, sql = (_Spent(*map(median, zip(*spent[each], strict=True))) for each in contestants)
                times[name] = (page, sql)
    finally:
        await pool.close()
        await memory.aclose()
    return times


def _clocks(connection: psycopg.Connection) -> list[Path]:
    """Return where the system says how long each session of the database has used a processor."""
    rows = connection.execute(
        "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    )
    return [Path(f"/proc/{pid}/schedstat") for (pid,) in rows]


def _processor(clocks: Sequence[Path]) -> float:
    """Return the processor's time of this process and of these sessions, in milliseconds."""
    return (time.process_time_ns() + sum(int(clock.read_text().split()[0]) for clock in clocks)) / 1e6


async def _asked(app: ASGIApp, name: str, user: str | None) -> None:
    """Ask the application for a screen as a server does, and read the answer."""
    path, given = SCREENS[name]
    given = {name: value for name, value in given.items() if name != "advice"}  # a second view, which replays prompts
    if "user" in given or (user is None and "thread" in given):
        given = {**given, "user": user or _FEW}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": urlencode(given).encode(),
        "root_path": "",
        "headers": [(b"host", _HOST)],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    answers: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        answers.append(message)

    await app(scope, receive, send)
    if answers[0]["status"] != 200 or not any(answer.get("body") for answer in answers):
        raise RuntimeError(f"{name} answers {answers[0]['status']}.")


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
