"""A thousand concurrent conversations on the embedded Postgres, together with two workers."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from psycopg.rows import dict_row

from langchain_supabase_memory import ChunkPolicy, SupabaseMemory
from langchain_supabase_memory.adapters.transports.embedded import start
from langchain_supabase_memory.worker import WorkerPolicy
from tests import worker_process
from tests.memory_keywords import memory_keywords
from tests.worker_process import POLICIES, Setup

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

CONVERSATIONS: Final = 1000
TURNS: Final = 10
ROUNDS: Final = 2
SETTINGS: Final = {**POLICIES, "chunking": ChunkPolicy(mode="background")}
WRITERS: Final = 8

EACH: Final = """
select c.thread_id, c.next_sequence, c.indexed_through, c.summarized_through, b.through_sequence as board_through,
       m.count, m.numbers, s.edges, s.covered, k.count as chunks, k.sequences
from memory.conversations c
join memory.conversation_summary_boards b on b.user_id = c.user_id and b.conversation_id = c.id
cross join lateral (
  select count(*), count(distinct m.sequence) as numbers from memory.conversation_messages m
  where m.user_id = c.user_id and m.conversation_id = c.id) m
cross join lateral (
  select json_agg(json_build_array(s.from_sequence, s.to_sequence) order by s.number) as edges,
         sum(cardinality(s.message_ids)) as covered
  from memory.conversation_summaries s
  where s.user_id = c.user_id and s.conversation_id = c.id and s.level = 0) s
cross join lateral (
  select count(*), count(distinct k.from_sequence) as sequences from memory.working_memory_chunks k
  where k.user_id = c.user_id and k.conversation_id = c.id and k.from_sequence = k.to_sequence and not k.stale) k
where c.user_id = 'u'
"""


def said(thread: str, first: int, count: int) -> list[BaseMessage]:
    """Some messages of a conversation."""
    return [
        (AIMessage if number % 2 else HumanMessage)(
            f"{thread} {number}: the boat leaves on day {number}.", id=f"{number}"
        )
        for number in range(first, first + count)
    ]


@pytest.mark.timeout(900)
async def test_nothing_is_lost_and_the_backlog_drains(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", str(tmp_path / "postgres")
    policy = WorkerPolicy(concurrency=4, debounce_seconds=2, poll_seconds=1)
    setup = Setup(str(log), folder=folder, worker=policy, embeds=False, memory=SETTINGS)
    threads = [f"t{number}" for number in range(CONVERSATIONS)]
    messages = 2 * TURNS
    each = messages // ROUNDS
    async with SupabaseMemory.embedded(folder, user_id="u", **memory_keywords(SETTINGS)) as memory:
        assert {each.state for each in await memory.adoctor()} == {"green"}
        begun = time.monotonic()
        workers = [worker_process.started(setup) for _ in range(2)]
        try:
            left = iter([(thread, number * each) for number in range(ROUNDS) for thread in threads])

            async def write() -> None:
                for thread, first in left:
                    await memory.conversation(thread).aappend(said(thread, first, each))

            await asyncio.gather(*(write() for _ in range(WRITERS)))
            while (queue := await memory.work.aqueue()).depth and time.monotonic() < begun + 800:
                await asyncio.sleep(0.25)
            for worker in workers:
                worker.terminate()
                worker.join(20)
            assert [worker.exitcode for worker in workers] == [0, 0]
        finally:
            for worker in workers:
                worker.kill()
        assert (queue.depth, queue.dead) == (0, 0)
        with psycopg.connect(start(folder), row_factory=dict_row) as connection:
            found: list[dict[str, Any]] = connection.execute(EACH.encode()).fetchall()
        assert sorted(row["thread_id"] for row in found) == sorted(threads)
        for row in found:
            assert (row["next_sequence"], row["count"], row["numbers"]) == (messages,) * 3
            assert (row["indexed_through"], row["chunks"], row["sequences"]) == (messages - 1, messages, messages)
            assert row["board_through"] > messages - 1 - POLICIES["board_policy"].update_frequency
            edges = row["edges"]
            assert [first for first, _ in edges] == [0, *(last + 1 for _, last in edges)][:-1]
            assert edges[-1][1] == row["summarized_through"] == row["covered"] - 1
            assert messages - row["covered"] <= POLICIES["policy"].messages
        for thread in threads[::50]:
            coverage = await memory.conversation(thread).acoverage()
            assert (coverage.gaps, coverage.overlaps, coverage.complete) == ([], [], True)
        notes = worker_process.noted(log)
        answers = [note["made"] for note in notes if note["event"] == "answered"]
        assert len(set(answers)) == len(answers), "no answer was asked for twice"
        pieces = [sum(note.get(name, 0) for name in ("done", "again")) for note in notes if note["event"] == "ended"]
        assert all(pieces), "both have worked"
