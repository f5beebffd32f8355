"""Measure loading the context for the next prompt, next to a raw read of the same rows as LangChain messages.

The floor knows in advance where the range begins; the memory has to find out.
"""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import dataclass
from functools import partial
from itertools import count
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import psycopg
from langchain_core.messages import messages_from_dict

from benchmarks import fill, work
from benchmarks.harness import Table, exponent, interleaved, verdict
from langchain_supabase_memory.context.load import load_context
from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.settings import DEFAULT_BUDGET, DEFAULT_POLICY
from langchain_supabase_memory.values import ConversationKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool, ConnectionPool

    from benchmarks.services import Lab, Site
    from langchain_supabase_memory import SupabaseMemory

    Contestant = Callable[[None], object]

BOUND: Final = 1.5
GROWTH_BOUND: Final = 0.05
FIT_BOUND_MS: Final = 2.0
MEMORY_BOUND: Final = 1.1
_STATES: Final = ("nothing summarized", "all but the newest summarized")


@dataclass(frozen=True)
class Conversation:
    """An existing conversation, and what the memory reads of it.

    Attributes:
        thread_id: Its thread.
        size: The number of its messages.
        id: Its uuid, as a string.
        lowest: The first sequence that the memory reads.
        document: The result of `memory_context`.
    """

    thread_id: str
    size: int
    id: str
    lowest: int
    document: Mapping[str, Any]


async def run(lab: Lab) -> list[Table]:
    site = lab.site("off")
    sizes = [100, 1000, 10_000] if lab.quick else [100, 1000, 10_000, 100_000]
    for size in sizes:
        fill.messages(site, f"context-{size}-", size, floor=True)
    fill.vacuum(site)
    tables: list[Table] = []
    memories: list[Table] = []
    for state in _STATES:
        if state != _STATES[0]:
            for size in sizes:
                fill.summaries(site, f"context-{size}-")
            fill.vacuum(site)
        found = [_found(site, size) for size in sizes]
        tables.append(await _direct(lab, site, state, found))
        tables.append(await _data_api(lab, site, state, found))
        tables.append(_fitting(state, found))
        memories.append(_peaks(site, state, [found[0], found[-1]]))
    return [*tables, *memories]


def _found(site: Site, size: int) -> Conversation:
    with psycopg.connect(site.conn_string) as connection:
        row = connection.execute(work.SQL_CONTEXT, _arguments(f"context-{size}-0")).fetchone()
    assert row is not None
    document = row[0]
    lowest = document["messages"][0]["sequence"]
    return Conversation(f"context-{size}-0", size, document["conversation_id"], lowest, document)


def _arguments(thread_id: str) -> list[Any]:
    return [thread_id, "bench", DEFAULT_BUDGET.characters, 1000]


async def _direct(lab: Lab, site: Site, state: str, found: Sequence[Conversation]) -> Table:
    memory, pool, async_pool = site.direct(), site.pool(), await site.async_pool()
    contestants: dict[str, Contestant] = {}
    for each in found:
        contestants[f"sync floor {each.size}"] = partial(_floor, pool, each)
        contestants[f"sync sql {each.size}"] = partial(_sql, pool, each)
        contestants[f"sync ours {each.size}"] = partial(_ours, memory, each)
        contestants[f"async floor {each.size}"] = partial(_afloor, async_pool, each)
        contestants[f"async sql {each.size}"] = partial(_asql, async_pool, each)
        contestants[f"async ours {each.size}"] = partial(_aours, memory, each)
    calls = _calls(memory, found[-1])
    try:
        medians = await _measured(lab, contestants)
    finally:
        await async_pool.close()
        await memory.aclose()
    names = {
        "floor": "range read + LangChain messages",
        "sql": "memory_context, as JSON values",
        "ours": "memory.context",
    }
    return _table(f"Context, direct, {state}", medians, names, found, calls)


async def _data_api(lab: Lab, site: Site, state: str, found: Sequence[Conversation]) -> Table:
    memory, client, async_client = site.data_api(), site.client(), site.async_client()

    def bounds(each: Conversation) -> dict[str, Any]:
        return {"conversation": each.id, "lowest": each.lowest}

    def floor(each: Conversation, _: None) -> list[Any]:
        rows: Any = client.rpc("bench_read", bounds(each)).execute().data
        return messages_from_dict(rows)

    async def afloor(each: Conversation, _: None) -> list[Any]:
        rows: Any = (await async_client.rpc("bench_read", bounds(each)).execute()).data
        return messages_from_dict(rows)

    contestants: dict[str, Contestant] = {}
    for each in found:
        contestants[f"sync floor {each.size}"] = partial(floor, each)
        contestants[f"sync ours {each.size}"] = partial(_ours, memory, each)
        contestants[f"async floor {each.size}"] = partial(afloor, each)
        contestants[f"async ours {each.size}"] = partial(_aours, memory, each)
    calls = _calls(memory, found[-1])
    try:
        medians = await _measured(lab, contestants)
    finally:
        await async_client.aclose()
        await memory.aclose()
    names = {"floor": "leanest RPC + LangChain messages", "ours": "memory.context"}
    return _table(f"Context, Data API, {state}", medians, names, found, calls)


async def _measured(lab: Lab, contestants: Mapping[str, Contestant]) -> dict[str, float]:
    return await interleaved(contestants, lambda: None, rounds=30 if lab.quick else 300, seconds=8 if lab.quick else 45)


def _floor(pool: ConnectionPool, each: Conversation, _: None) -> list[Any]:
    with pool.connection() as connection:
        rows = connection.execute(work.FLOOR_RANGE, ["bench", each.id, each.lowest]).fetchall()
    return messages_from_dict([row[0] for row in rows])


async def _afloor(pool: AsyncConnectionPool[AsyncConnection], each: Conversation, _: None) -> list[Any]:
    async with pool.connection() as connection:
        cursor = await connection.execute(work.FLOOR_RANGE, ["bench", each.id, each.lowest])
        rows = await cursor.fetchall()
    return messages_from_dict([row[0] for row in rows])


def _sql(pool: ConnectionPool, each: Conversation, _: None) -> None:
    with pool.connection() as connection:
        connection.execute(work.SQL_CONTEXT, _arguments(each.thread_id)).fetchone()


async def _asql(pool: AsyncConnectionPool[AsyncConnection], each: Conversation, _: None) -> None:
    async with pool.connection() as connection:
        await (await connection.execute(work.SQL_CONTEXT, _arguments(each.thread_id))).fetchone()


def _ours(memory: SupabaseMemory, each: Conversation, _: None) -> list[Any]:
    return memory.conversation(each.thread_id).context().messages


async def _aours(memory: SupabaseMemory, each: Conversation, _: None) -> list[Any]:
    return (await memory.conversation(each.thread_id).acontext()).messages


def _calls(memory: SupabaseMemory, each: Conversation) -> int:
    """Return the number of calls of one load."""
    calls = count()
    perform = memory._services.transport.perform

    def counted(call: Any) -> Any:
        next(calls)
        return perform(call)

    memory._services.transport.perform = counted  # type: ignore[method-assign]
    _ours(memory, each, None)
    memory._services.transport.perform = perform  # type: ignore[method-assign]
    return next(calls)


def _table(
    title: str, medians: Mapping[str, float], names: Mapping[str, str], found: Sequence[Conversation], calls: int
) -> Table:
    sizes = [each.size for each in found]
    rows: list[list[str | float]] = []
    notes = [f"{'met   ' if calls == 1 else 'MISSED'} round trips of one load: {calls} <= 1"]
    for color in ("sync", "async"):
        for kind, name in names.items():
            values = [medians[f"{color} {kind} {size}"] for size in sizes]
            rows.append([f"{color}: {name}", *values, f"{exponent(sizes, values):.3f}"])
        ratios = [medians[f"{color} ours {size}"] / medians[f"{color} floor {size}"] for size in sizes]
        rows.append([f"{color}: x floor", *ratios, ""])
        slope = exponent(sizes, [medians[f"{color} ours {size}"] for size in sizes])
        notes.append(verdict(f"{color}, median of the ratios", median(ratios), BOUND))
        notes.append(verdict(f"{color}, exponent", slope, GROWTH_BOUND))
    notes.append("messages read: " + ", ".join(str(len(each.document["messages"])) for each in found))
    return Table(title, ["ms", *[f"{size:,} messages" for size in sizes], "exponent"], rows, notes)


def _fitting(state: str, found: Sequence[Conversation]) -> Table:
    """Measure the work in Python on the database's answer, without I/O."""
    rows: list[list[str | float]] = []
    for each in found:
        whole, decoding = [], []
        payloads = [row["payload"] for row in each.document["messages"]]
        for _ in range(200):
            begun = time.perf_counter()
            codec.from_payloads(payloads)
            decoding.append((time.perf_counter() - begun) * 1000)
            flow = load_context(ConversationKey(each.thread_id, "bench"), budget=DEFAULT_BUDGET, policy=DEFAULT_POLICY)
            next(flow)
            begun = time.perf_counter()
            try:
                flow.send(each.document)
            except StopIteration:
                whole.append((time.perf_counter() - begun) * 1000)
        rows.append([f"{each.size:,}", float(len(payloads)), median(decoding), median(whole) - median(decoding)])
    worst = max(float(row[3]) for row in rows)
    columns = ["messages in the conversation", "read", "ms to make messages", "ms to fit them"]
    notes = [verdict("fitting, the slowest", worst, FIT_BOUND_MS)]
    return Table(f"Fitting a pack of 12,000 characters in Python, {state}", columns, rows, notes)


def _peaks(site: Site, state: str, found: Sequence[Conversation]) -> Table:
    """Measure the peak of Python's memory during one load, by tracemalloc."""
    direct, data_api, pool = site.direct(), site.data_api(), site.pool()
    loads: dict[str, Callable[[Conversation], object]] = {
        "range read + LangChain messages": lambda each: _floor(pool, each, None),
        "memory.context, direct": lambda each: _ours(direct, each, None),
        "memory.context, Data API": lambda each: _ours(data_api, each, None),
    }
    rows: list[list[str | float]] = []
    notes = []
    for name, load in loads.items():
        peaks = [_peak_kilobytes(partial(load, each)) for each in found]
        rows.append([name, *peaks, peaks[-1] / peaks[0]])
        if "memory.context" in name:
            notes.append(verdict(name, peaks[-1] / peaks[0], MEMORY_BOUND))
    columns = ["kB", *[f"{each.size:,} messages" for each in found], "ratio"]
    return Table(f"Peak memory of one load, {state}", columns, rows, notes)


def _peak_kilobytes(load: Callable[[], object]) -> float:
    """Return the peak of Python's memory during a call above the baseline; the median of three calls."""
    load()
    peaks = []
    for _ in range(3):
        tracemalloc.start()
        load()
        peaks.append(tracemalloc.get_traced_memory()[1] / 1000)
        tracemalloc.stop()
    return median(peaks)
