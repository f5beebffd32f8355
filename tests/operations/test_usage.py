"""Usage by day: what is counted, that nothing is counted twice, and when it goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import SupabaseMemory, Worker
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.types import UsageDay
from langchain_supabase_memory.worker.maintenance import ALL_SECONDS, ChoreSchedule
from tests.spaces import call

Server = psycopg.Connection[Any]
DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as found:
        yield found


@pytest.fixture
def server(conn_string: str) -> Iterator[Server]:
    with psycopg.connect(conn_string, autocommit=True) as connection:
        yield connection


def owner(memory: SupabaseMemory) -> str:
    assert memory.user_id is not None
    return memory.user_id


def say(server: Server, memory: SupabaseMemory, thread: str, count: int, at: datetime = DAY, pack: Any = None) -> None:
    """Store questions and answers in turn, all at one time."""
    begun = call(server, "count", thread_id=thread, user_id=owner(memory))
    roles = ["user" if number % 2 == 0 else "assistant" for number in range(count)]
    said = [
        {"id": f"{thread}{begun}-{number}", "role": role, "content": "word", "created_at": at.isoformat()}
        for number, role in enumerate(roles)
    ]
    call(
        server,
        "append",
        thread_id=thread,
        messages=said,
        user_id=owner(memory),
        **({} if pack is None else {"pack": pack}),
    )


def ids(server: Server, memory: SupabaseMemory) -> list[str]:
    rows = server.execute("select id from memory.conversations where user_id = %s", [owner(memory)])
    return [str(id_) for (id_,) in rows]


def total(memory: SupabaseMemory, what: str = "messages") -> int:
    days = memory.usage.by_day(since=date(2000, 1, 1), until=date(2999, 1, 1))
    return sum(int(getattr(each, what)) for each in days)


def test_days_have_what_was_said_sent_and_found(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("studio")
    conversation.append([HumanMessage("That's wrong, the kiln cracked."), AIMessage("Which one?")])
    conversation.index()
    pack = conversation.context("The new one.", recall="conversation")
    answer = AIMessage("I see.", usage_metadata={"input_tokens": 90, "output_tokens": 10, "total_tokens": 100,
                                                 "input_token_details": {"cache_read": 40}})  # fmt: skip
    conversation.append([HumanMessage("The new one."), answer], pack=pack)
    conversation.index()
    assert memory.usage.update() == 4
    (day,) = memory.usage.by_day()
    assert (day.turns, day.messages, day.characters) == (2, 4, 59)
    assert (day.packs, day.calls, day.recalls) == (1, 1, 0), "all that was said is shown"
    assert (day.input_tokens, day.cached_tokens, day.output_tokens) == (90, 40, 10)
    assert day.whole_tokens > 0
    assert day.pack_tokens > 0
    assert day.chunks == 4
    assert day.signals == {"correction": 1}
    assert memory.usage.update() == 0
    assert memory.usage.by_day() == [day]
    assert memory.usage.by_day(agent_id="another") == []


def test_each_day_has_its_own(memory: SupabaseMemory, server: Server) -> None:
    for number in (0, 0, 3):
        say(server, memory, f"t{number}", 2, DAY + timedelta(days=number))
    memory.usage.update()
    days = memory.usage.by_day(since=date(2026, 3, 1), until=date(2026, 3, 5))
    assert [(each.day, each.messages) for each in days] == [(date(2026, 3, 1), 4), (date(2026, 3, 4), 2)]
    with pytest.raises(InvalidInputError, match="no day"):
        memory.usage.by_day(since=DAY)
    assert memory.usage.by_day(since=date(2026, 4, 1), until=date(2026, 4, 2)) == [], "a day without anything"


def test_steps_are_bounded_and_repeats_change_nothing(memory: SupabaseMemory, server: Server) -> None:
    say(server, memory, "long", 250)
    steps, given = 0, {"conversations": ids(server, memory), "user_id": owner(memory), "limit": 100}
    while call(server, "worker_count_usage", **given)["more"]:
        steps += 1
        with server.transaction(force_rollback=True):  # killed in the middle, and repeated
            call(server, "worker_count_usage", **given)
    assert steps == 2
    assert total(memory) == 250
    for _ in range(3):
        memory.usage.update()
    assert total(memory) == 250


def test_two_workers_count_each_message_once(memory: SupabaseMemory, server: Server) -> None:
    for number in range(6):
        say(server, memory, f"t{number}", 40)
    threads = [threading.Thread(target=memory.usage.update) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert total(memory) == 240


def test_the_chore_counts_for_everybody(conn_string: str, memory: SupabaseMemory, server: Server) -> None:
    say(server, memory, "t", 2)
    server.execute("delete from memory_private.chores where name = 'usage_counted'")
    with SupabaseMemory.from_conn_string(conn_string, model=None) as everybody:
        everybody.usage.update()
        assert total(memory) == 2
        # The clock was ahead when all were counted.
        server.execute(
            "update memory_private.chores set done_at = now() + interval '9 days' where name = 'usage_counted'"
        )
        say(server, memory, "t", 2)
        everybody.usage.update()
        assert total(memory) == 4
        # An old conversation that did not change since is not looked at again.
        server.execute(
            "update memory.conversations set updated_at = now() - interval '3 days' where user_id = %s", [owner(memory)]
        )
        server.execute("update memory_private.chores set done_at = now() where name = 'usage_counted'")
        server.execute("delete from memory.usage_cursors where user_id = %s", [owner(memory)])
        everybody.usage.update()
        assert total(memory) == 4


async def test_a_worker_counts(memory: SupabaseMemory, server: Server) -> None:
    say(server, memory, "t", 2)
    await Worker(memory).drain()
    assert total(memory) == 2


async def test_a_worker_of_one_owner_counts_what_changed_and_once_a_day_all(
    memory: SupabaseMemory, server: Server
) -> None:
    schedule = ChoreSchedule(memory)
    memory.conversation("t").append([HumanMessage("Hi.")])
    assert await schedule.count_usage() == 1
    memory.conversation("new").append([HumanMessage("Hi.")])
    memory.conversation("old").append([HumanMessage("Hi.")])
    server.execute(
        "update memory.conversations set updated_at = now() - interval '9 days' where user_id = %s and thread_id = 'old'",
        [owner(memory)],
    )
    assert await schedule.count_usage() == 1
    schedule._counted_all_at = time.monotonic() - ALL_SECONDS
    assert await schedule.count_usage() == 1


def test_who_refuses_is_not_counted(memory: SupabaseMemory, server: Server) -> None:
    say(server, memory, "t", 2)
    memory.usage.update()
    memory.privacy.consent("analytics", False, actor="maya")
    assert total(memory) == 0
    say(server, memory, "t", 2)
    assert memory.usage.update() == 0
    assert call(server, "worker_count_usage", conversations=ids(server, memory), user_id=owner(memory))["counted"] == 0
    assert total(memory) == 0
    memory.privacy.consent("analytics", True, actor="maya")
    assert memory.usage.update() == 4


def test_what_is_opted_out_is_not_counted(memory: SupabaseMemory, server: Server) -> None:
    say(server, memory, "t", 2)
    memory.conversation("t").opt_out(actor="maya")
    assert memory.usage.update() == 0


def test_an_owner_who_is_erased_leaves_nothing(memory: SupabaseMemory, server: Server, conn_string: str) -> None:
    say(server, memory, "t", 2)
    with psycopg.connect(conn_string) as counting:
        told = ids(counting, memory)
        call(counting, "worker_count_usage", conversations=told, user_id=owner(memory))
        erasing = threading.Thread(target=lambda: memory.forget_user())
        erasing.start()
        erasing.join(0.5)
        assert erasing.is_alive(), "it waits for who counts"
        counting.commit()
        erasing.join()
    assert call(server, "worker_count_usage", conversations=told, user_id=owner(memory))["counted"] == 0
    for table in ("usage_days", "usage_cursors", "reads"):
        query = f"select count(*) from memory.{table} where user_id = %s"
        assert server.execute(query.encode(), [owner(memory)]).fetchall() == [(0,)]


def test_numbers_outlive_messages(memory: SupabaseMemory, server: Server) -> None:
    say(server, memory, "t", 4)
    memory.usage.update()
    memory.conversation("t").forget()
    assert total(memory) == 4
    say(server, memory, "t", 2)
    memory.usage.update()
    assert total(memory) == 6


def pack_of(*lists: list[int]) -> list[list[int]]:
    return [[0, 0, 0, 4000, 100, 0, 0, -1, 0, 2, 30, 70, 0, -1, 1], *lists]


def test_packs_are_read_from_their_manifests(memory: SupabaseMemory, server: Server) -> None:
    huge = 10**15
    packs = [
        pack_of([1, 2, 3, 2, 30, 8, 0, 1, -1], [1, 3, 6, 1, 9, 2, -1, -1, -1], [3, 0, 0, 1, 5], [4, 17]),
        pack_of([1, 0, 0, 1, 9, 100, 0, 1, 7], [14, 0, 0, 1, 4, 1, 2]),
        pack_of([6, huge, huge, huge, huge], [5, 0, 12, 1]),
        [[0, 9]],
        pack_of([1, 2, 3, 2, 0, 0, 0, 1, -1]),  # shows all of its conversation
    ]
    for number, pack in enumerate(packs):
        say(server, memory, f"t{number}", 2)
        server.execute(
            "insert into memory.context_manifests (user_id, conversation_id, sequence, from_sequence, made_at, pack)"
            " select user_id, id, 1, 0, %s, %s::json from memory.conversations where user_id = %s and thread_id = %s",
            [DAY, str(pack), owner(memory), f"t{number}"],
        )
    memory.usage.update()
    (day,) = memory.usage.by_day(since=DAY.date(), until=DAY.date())
    assert (day.packs, day.pack_tokens, day.whole_tokens, day.wider) == (5, 110, 280, 1)
    assert (day.recalls, day.recalls_empty, day.passages, day.boards_shown) == (3, 1, 4, 1)
    assert day.input_tokens == 10**12
    rows = server.execute(
        "select from_sequence, part, shown from memory.reads where user_id = %s order by 1, 2", [owner(memory)]
    ).fetchall()
    assert rows == [(0, 1, 1), (0, 1, 1), (4, 2, 1), (7, 0, 1)]


def test_summaries_and_boards_are_counted_once(memory: SupabaseMemory, server: Server) -> None:
    say(server, memory, "t", 2)
    memory.usage.update()
    server.execute(
        "insert into memory.conversation_summary_boards (user_id, conversation_id, version, updated_at)"
        " select user_id, id, 3, %s from memory.conversations where user_id = %s",
        [DAY, owner(memory)],
    )
    for _ in range(2):
        memory.usage.update()
    assert total(memory, "boards") == 3


def test_a_day_is_a_value() -> None:
    day = UsageDay("default", date(2026, 3, 1), whole_tokens=9, pack_tokens=4)
    assert day.spared_tokens == 5
    assert UsageDay("default", date(2026, 3, 1), pack_tokens=4).spared_tokens == 0
