"""Whole turns in many conversations at once: read the last 20 messages, then append two. Turns per second."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from itertools import cycle
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from langchain_core.messages import messages_from_dict

from benchmarks import work
from benchmarks.harness import Table, rotated, verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.services import Lab, Site

    Contestant = Callable[[int], Awaitable[object]]
    """Does one turn in the conversation of that number."""

LEVELS: Final = (1, 16, 64)
BOUND: Final = 0.6
_MESSAGES: Final = 200
_FLOOR_FILL: Final = """
insert into bench.floor
select m.user_id, ('00000000-0000-0000-0000-' || lpad(to_hex(substr(c.thread_id, 6)::bigint), 12, '0'))::uuid,
       -1 - m.sequence, m.message_id, m.role, m.text, m.characters, m.tokens, m.cumulative_characters, m.created_at,
       m.updated_at, m.metadata, m.images, m.payload
from memory.conversation_messages m join memory.conversations c on c.id = m.conversation_id
where c.thread_id like 'turn-%' and m.sequence < 200
"""


async def run(lab: Lab) -> list[Table]:
    site = lab.site("off")
    async with AsyncExitStack() as stack:
        contestants = await _contestants(site, stack)
        if lab.peers:
            from benchmarks import peers

            contestants |= await peers.contestants(site, stack, max(LEVELS), _MESSAGES)
        rates = {
            level: await _level(contestants, level, rounds=2 if lab.quick else 7, seconds=0.4 if lab.quick else 1.0)
            for level in LEVELS
        }
    base = "floor + LangChain messages"
    rows: list[list[str | float]] = []
    for name in contestants:
        cells = [(rates[level][name], rates[level][name] / rates[level][base]) for level in LEVELS]
        rows.append([name, *[value for cell in cells for value in cell]])
    columns = ["turns per second", *[name for level in LEVELS for name in (f"{level} at once", "x base")]]
    ratio = rates[64]["ours, direct"] / rates[64][base]
    notes = [f"base: {base}", verdict("ours, direct, at 64", ratio, BOUND, at_least=True)]
    title = f"Whole turns, async, conversations of {_MESSAGES} messages, synchronous_commit=off"
    return [Table(title, columns, rows, notes)]


async def _level(contestants: dict[str, Contestant], level: int, *, rounds: int, seconds: float) -> dict[str, float]:
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds):
        for name in rotated(list(contestants), number):
            rates[name].append(await _window(contestants[name], level, seconds))
    return {name: median(values) for name, values in rates.items()}


async def _window(contestant: Contestant, level: int, seconds: float) -> float:
    """Turns per second of so many conversations in parallel, each one turn after another."""
    await asyncio.gather(*(contestant(number) for number in range(level)))  # connections are open, caches warm
    begun = time.perf_counter()

    async def converse(number: int) -> int:
        turns = 0
        while time.perf_counter() < begun + seconds:
            await contestant(number)
            turns += 1
        return turns

    turns = sum(await asyncio.gather(*(converse(number) for number in range(level))))
    return turns / (time.perf_counter() - begun)


async def _contestants(site: Site, stack: AsyncExitStack) -> dict[str, Contestant]:
    direct, data_api, pool = site.direct(), site.data_api(), await site.async_pool()
    stack.push_async_callback(direct.aclose)
    stack.push_async_callback(data_api.aclose)
    stack.push_async_callback(pool.close)
    for number in range(max(LEVELS)):
        history = [message for _ in range(_MESSAGES // 2) for message in work.messages()]
        await direct.conversation(f"turn-{number}").aappend(history)
    site.cluster.execute(_FLOOR_FILL, database=site.database)
    site.cluster.execute("vacuum analyze", database=site.database, superuser=True)

    async def ours_direct(number: int) -> None:
        conversation = direct.conversation(f"turn-{number}")
        await conversation.aread(last=20)
        await conversation.aappend(work.said())

    async def ours_data_api(number: int) -> None:
        conversation = data_api.conversation(f"turn-{number}")
        await conversation.aread(last=20)
        await conversation.aappend(work.said())

    async def ours_context(number: int) -> None:
        conversation = direct.conversation(f"turn-{number}")
        await conversation.acontext()
        await conversation.aappend(work.said())

    values = cycle([work.turn().floor_values for _ in range(64)])
    numbers = work.numbers()
    width = len(next(values)) // 2

    async def floor(number: int) -> list[Any]:
        conversation = UUID(int=number)
        async with pool.connection() as connection:
            cursor = await connection.execute(work.FLOOR_READ, ["bench", conversation])
            payloads = [row[0] for row in await cursor.fetchall()]
        given = list(next(values))
        given[1] = given[width + 1] = conversation
        given[2], given[width + 2] = next(numbers), next(numbers)
        async with pool.connection() as connection:
            await connection.execute(work.FLOOR_INSERT, given)
        return payloads

    async def floor_messages(number: int) -> None:
        messages_from_dict((await floor(number))[::-1])

    return {
        "floor: raw psycopg": floor,
        "floor + LangChain messages": floor_messages,
        "ours, direct": ours_direct,
        "ours with the context pack, direct": ours_context,
        "ours, Data API": ours_data_api,
    }
