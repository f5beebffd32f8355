"""Measure what a user runs first: a default agent's turn, next to the same agent with other memories, and with none.

The model answers at once, so that what remains is the agent's own time and the memory's. In every round all take turns,
on the same question; each goes on in the same few conversations, so that what a turn leaves to be done is done by the
next ones, as in a real talk.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from benchmarks import agents, fill, talks
from benchmarks.agents import API_BY_HAND, BARE, BY_HAND, OURS, OURS_API, Ours
from benchmarks.harness import WARM_UP, Table, p95, rotated, verdict
from langchain_supabase_memory.testing import transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.agents import Agent
    from benchmarks.services import Lab, Site
    from langchain_supabase_memory.effects import Call

TITLE: Final = "A default agent's turn"
SIZES: Final = (100, 419, 5000)
AT_ONCE: Final = 64
BOUND: Final = 3.0
THREADS_BOUND: Final = 0

_SIZE: Final = 419
"""The messages of the conversations of the targets, and of those that talk at once."""

_COPIES: Final = {100: 8, _SIZE: AT_ONCE, 5000: 1}
"""A contestant's conversations of each size: enough that none grows much."""

_ALONE: Final = 8
"""The most conversations that one turn at a time goes on in."""

_REQUESTS: Final = (
    "Remind me of the number on the lock of the glaze cabinet",
    "Tell me again when the boat to Siquijor leaves in the morning",
    "Give me the recipe of my Tidepool glaze once more",
)


@dataclass(frozen=True)
class Said:
    """What the user writes next.

    Attributes:
        text: The message.
        asks: Whether it asks for something that was said before.
    """

    text: str
    asks: bool


def said() -> Iterator[Said]:
    """Return the user's messages: of each six, in changing order, three ask, one requests, and two tell something."""
    draw = random.Random(11)
    asked = [each.question for each in transcript.questions()]
    told = [turn.user for turn in talks.demo() if "?" not in turn.user]
    while True:
        six = [
            *(Said(text, asks=True) for text in draw.sample(asked, 3)),
            Said(draw.choice(_REQUESTS), asks=True),
            *(Said(text, asks=False) for text in draw.sample(told, 2)),
        ]
        yield from draw.sample(six, 6)


@dataclass
class _Spent:
    """What the turns of a contestant took, in milliseconds.

    Attributes:
        wall: Each turn, until the agent has answered.
        processor: The processor time of this process, in each turn.
        asked: The turns whose user asked for something said before.
        told: The other turns.
    """

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    told: list[float] = field(default_factory=list)
    server: float = 0.0
    """The processor time of its server processes, a turn."""
    behind: list[float] = field(default_factory=list)
    """What this package did behind each answer, in milliseconds."""

    def add(self, given: Said, wall: float, processor: float) -> None:
        self.wall.append(wall * 1000)
        self.processor.append(processor * 1000)
        (self.asked if given.asks else self.told).append(wall * 1000)


@dataclass
class _Field:
    """The contestants of a run.

    Attributes:
        lab: The run.
        ours: The project of this package.
        others: The project of everything else.
        agents: The contestants by name.
    """

    lab: Lab
    ours: Site
    others: Site
    agents: Mapping[str, Agent]
    messages: Iterator[Said] = field(default_factory=said)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The lengths of the conversations, in messages; a quick run leaves out the longest."""
        return SIZES[:-1] if self.lab.quick else SIZES

    async def fill(self) -> None:
        for size in self.sizes:
            number, history = _COPIES[size], talks.history(size)
            for names in self._alike():
                threads = [_thread(name, size, place) for name in names for place in range(number)]
                await self.agents[names[0]].fill(threads, history)
        fill.vacuum(self.ours)
        fill.vacuum(self.others)

    def _alike(self) -> list[list[str]]:
        """Return the names of the contestants, those together whose history is the same."""
        ours = [name for name, agent in self.agents.items() if isinstance(agent, Ours)]
        return [ours, *([name] for name in self.agents if name not in ours)]

    async def alone(self, size: int, *, is_async: bool) -> dict[str, _Spent]:
        """Measure one turn at a time."""
        if is_async:
            spent: dict[str, _Spent] = {name: _Spent() for name in self.agents}
            for name, thread, given, counts in self._tries(size, spent):
                begun, used = time.perf_counter(), time.process_time()
                await self.agents[name].aturn(thread, given.text)
                if counts:
                    spent[name].add(given, time.perf_counter() - begun, time.process_time() - used)
                self._settle(name, spent[name])
            return spent
        return await asyncio.to_thread(self._alone, size)  # no event loop runs where sync calls are made

    def _alone(self, size: int) -> dict[str, _Spent]:
        spent: dict[str, _Spent] = {name: _Spent() for name in self.agents}
        for name, thread, given, counts in self._tries(size, spent):
            begun, used = time.perf_counter(), time.process_time()
            self.agents[name].turn(thread, given.text)
            if counts:
                spent[name].add(given, time.perf_counter() - begun, time.process_time() - used)
            self._settle(name, spent[name])
        return spent

    def _settle(self, name: str, spent: _Spent) -> None:
        """Wait for the work behind the answer, as long as a person reads, so that no other's turn shares its time."""
        agent = self.agents[name]
        if isinstance(agent, Ours):
            begun = time.perf_counter()
            agent.memory.flush()
            spent.behind.append((time.perf_counter() - begun) * 1000)

    def _tries(self, size: int, spent: dict[str, _Spent]) -> Iterator[tuple[str, str, Said, bool]]:
        """Say who is next, in which thread, with what, and whether it counts; the servers' time is added at the end."""
        rounds, seconds = (30, 3.0) if self.lab.quick else (120, 25.0)
        end = time.perf_counter() + seconds
        warm = 2 if self.lab.quick else WARM_UP
        clocks = self._clocks()
        for number in range(-warm, rounds):
            if number > 2 and time.perf_counter() > end:
                break
            if number == 0:
                clocks = self._clocks()
            given = next(self.messages)
            for name in rotated(list(self.agents), number + warm):
                copy = (number + warm) % min(_COPIES[size], _ALONE)
                yield name, _thread(name, size, copy), given, number >= 0
        self._add_server(spent, clocks)

    async def together(self) -> tuple[dict[str, _Spent], dict[str, float]]:
        """Measure conversations at once, and return also the turns per second of each contestant."""
        spent: dict[str, _Spent] = {name: _Spent() for name in self.agents}
        seconds = dict.fromkeys(self.agents, 0.0)
        rounds, turns = (1, 1) if self.lab.quick else (2, 3)
        for name in self.agents:
            await self._talk_at_once(name, 1, _Spent(), level=_ALONE)
        clocks = self._clocks()
        for number in range(rounds):
            for name in rotated(list(self.agents), number):
                begun, used = time.perf_counter(), time.process_time()
                await self._talk_at_once(name, turns, spent[name])
                seconds[name] += time.perf_counter() - begun
                spent[name].processor.append((time.process_time() - used) * 1000 / (AT_ONCE * turns))
        self._add_server(spent, clocks)
        return spent, {name: len(spent[name].wall) / seconds[name] for name in self.agents}

    async def _talk_at_once(self, name: str, turns: int, spent: _Spent, *, level: int = AT_ONCE) -> None:
        async def talk(place: int) -> None:
            for given in asked[place]:
                begun = time.perf_counter()
                await self.agents[name].aturn(_thread(name, _SIZE, place), given.text)
                spent.wall.append((time.perf_counter() - begun) * 1000)

        asked = [[next(self.messages) for _ in range(turns)] for _ in range(level)]
        await asyncio.gather(*map(talk, range(level)))

    def _clocks(self) -> dict[tuple[str, int], int]:
        """Return the nanoseconds that each contestant's server processes have run, by name and process."""
        found: dict[tuple[str, int], int] = {}
        with psycopg.connect(self.ours.superuser, autocommit=True) as connection:
            rows = connection.execute("select pid, datname, application_name from pg_stat_activity").fetchall()
        for pid, database, name in rows:
            if (name or "").startswith("PostgREST"):
                name = OURS_API if database == self.ours.database else API_BY_HAND
            clock = Path(f"/proc/{pid}/schedstat")
            if name in self.agents and clock.exists():
                found[name, pid] = int(clock.read_text().split()[0])
        return found

    def _add_server(self, spent: dict[str, _Spent], before: dict[tuple[str, int], int]) -> None:
        for (name, pid), nanoseconds in self._clocks().items():
            spent[name].server += (nanoseconds - before.get((name, pid), 0)) / 1e6 / max(len(spent[name].wall), 1)


def _thread(name: str, size: int, place: int) -> str:
    return f"{name} {size} {place}"


async def run(lab: Lab) -> list[Table]:
    ours, others = lab.site("off"), lab.another("off")
    async with AsyncExitStack() as stack:
        field_ = _Field(lab, ours, others, await agents.opened(ours, others, stack))
        await field_.fill()
        alone = {
            (size, is_async): await field_.alone(size, is_async=is_async)
            for size in field_.sizes
            for is_async in (False, True)
        }
        together = _together(*await field_.together())
        return [_wall(alone), _processor(alone), together, await _counts(field_)]


def _head(size: int, is_async: bool) -> str:
    return f"{size:,}, {'async' if is_async else 'sync'}"


def _wall(alone: Mapping[tuple[int, bool], dict[str, _Spent]]) -> Table:
    medians = {key: {name: median(each.wall) for name, each in spent.items()} for key, spent in alone.items()}
    names = list(next(iter(medians.values())))
    rows: list[list[str | float]] = [
        [name, *(value for each in medians.values() for value in (each[name], each[name] / each[BY_HAND]))]
        for name in names
    ]
    columns = ["ms", *(head for key in medians for head in (_head(*key), "x by hand"))]
    notes = []
    for key in ((_SIZE, False), (_SIZE, True)):
        value = medians[key][OURS] / medians[key][BY_HAND]
        notes.append(verdict(f"{_head(*key)}: by default, x by hand", value, BOUND))
    notes += [_more(_head(*key), alone[key]) for key in ((_SIZE, False), (_SIZE, True))]
    rounds = ", ".join(f"{_head(*key)}: {len(each[BARE].wall)}" for key, each in alone.items())
    notes += [
        "messages in the conversation; one turn at a time; of six messages three ask for something said before, one"
        " requests it, two tell something",
        f"rounds: {rounds}",
        "langmem's tools: one search before the answer and one memory stored after it, without an embedder",
    ]
    return Table(TITLE, columns, rows, notes)


def _more(head: str, spent: Mapping[str, _Spent]) -> str:
    """Return what the medians of all turns do not say."""
    ours, hand, api, api_by_hand = (spent[name] for name in (OURS, BY_HAND, OURS_API, API_BY_HAND))
    return (
        f"{head}: by default {_median(ours.asked):.2f} where the user asks for what was said, {_median(ours.told):.2f}"
        f" where not; mean {mean(ours.wall):.2f}, {mean(ours.wall) / mean(hand.wall):.2f} x by hand; p95"
        f" {p95(ours.wall):.2f}, by hand {p95(hand.wall):.2f}; behind the answer a mean of {mean(ours.behind):.2f};"
        " Data API"
        f" {median(api.wall) / median(api_by_hand.wall):.2f} x supabase-py by hand"
    )


def _median(values: Sequence[float]) -> float:
    return median(values) if values else nan


def _processor(alone: Mapping[tuple[int, bool], dict[str, _Spent]]) -> Table:
    names = list(next(iter(alone.values())))
    rows: list[list[str | float]] = [
        [name, *(value for each in alone.values() for value in (median(each[name].processor), each[name].server))]
        for name in names
    ]
    columns = ["ms", *(head for key in alone for head in (_head(*key), "server"))]
    notes = [
        "the median of this process, and the mean of the contestant's own processes of Postgres, without those that"
        " write and vacuum; PostgREST's own is not counted"
    ]
    return Table("Processor time of a default agent's turn", columns, rows, notes)


def _together(spent: dict[str, _Spent], rates: dict[str, float]) -> Table:
    rows: list[list[str | float]] = [
        [
            name,
            rates[name],
            rates[name] / rates[BY_HAND],
            median(each.wall),
            p95(each.wall),
            mean(each.processor),
            each.server,
        ]
        for name, each in spent.items()
    ]
    columns = ["", "turns per second", "x by hand", "p50, ms", "p95, ms", "this process, ms", "server, ms"]
    notes = [
        f"async, in one process with one event loop; conversations of {_SIZE} messages; p50 and p95 of a turn",
        f"Data API: {rates[OURS_API] / rates[API_BY_HAND]:.2f} x supabase-py by hand",
    ]
    return Table(f"Agents' turns, {AT_ONCE} conversations at once", columns, rows, notes)


@dataclass
class _Count:
    """What a contestant's turns start and call.

    Attributes:
        threads: How many threads were started.
        calls: How often each SQL function was called; only of this package.
    """

    threads: int = 0
    calls: Counter[str] = field(default_factory=Counter)


@contextmanager
def _counted(agent: Agent) -> Iterator[_Count]:
    count, start = _Count(), threading.Thread.start

    def counted_start(thread: threading.Thread) -> None:
        count.threads += 1
        start(thread)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", counted_start)
        if isinstance(agent, Ours):
            transport = agent.memory._services.transport
            perform, aperform = transport.perform, transport.aperform

            def counted(call: Call) -> Any:
                count.calls[call.function] += 1
                return perform(call)

            async def acounted(call: Call) -> Any:
                count.calls[call.function] += 1
                return await aperform(call)

            patch.setattr(transport, "perform", counted)
            patch.setattr(transport, "aperform", acounted)
        yield count


def _count(agent: Agent, thread: str, messages: Sequence[Said]) -> _Count:
    for given in messages:  # threads end after half a minute of rest, and those of the last measurement did
        agent.turn(thread, given.text)
    with _counted(agent) as count:
        for given in messages:
            agent.turn(thread, given.text)
    return count


async def _acount(agent: Agent, thread: str, messages: Sequence[Said]) -> _Count:
    for given in messages:
        await agent.aturn(thread, given.text)
    with _counted(agent) as count:
        for given in messages:
            await agent.aturn(thread, given.text)
    return count


async def _counts(field_: _Field) -> Table:
    """Count what a turn of each starts and calls: the mean of twelve that go on in one conversation."""
    rows: list[list[str | float]] = []
    notes: list[str] = []
    own = dict.fromkeys(("sync", "async"), 0.0)
    messages = [next(field_.messages) for _ in range(12)]
    for name, agent in field_.agents.items():
        thread = _thread(name, _SIZE, _ALONE)
        counts = {
            "sync": await asyncio.to_thread(_count, agent, thread, messages),
            "async": await _acount(agent, thread, messages),
        }
        row: list[str | float] = [name]
        for kind, count in counts.items():
            threads = count.threads / len(messages)
            row += [threads, count.calls.total() / len(messages) if count.calls else ""]
            if name == BARE:
                own[kind] = threads
            if isinstance(agent, Ours):
                what = f"threads started by a turn, {kind}, {name}"
                notes.append(verdict(what, threads - own[kind], THREADS_BOUND))
        calls = (counts["sync"].calls + counts["async"].calls).most_common()
        rows.append([*row, ", ".join(f"{called} {number / 2 / len(messages):.2f}" for called, number in calls)])
    notes.append("the mean of twelve turns; the verdicts are beyond the threads of the agent without a memory")
    columns = ["a turn", "threads, sync", "round trips", "threads, async", "round trips", "calls"]
    return Table("What a default agent's turn starts and calls", columns, rows, notes)
