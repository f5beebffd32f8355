"""Due work and the queue's verbs: marked in the same transaction, claimed under a lease, finished by position."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from psycopg.rows import dict_row

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.effects import Flow
from langchain_supabase_memory.errors import (
    AuthenticationError,
    InvalidInputError,
    PermissionDeniedError,
    SupabaseMemoryError,
    TooLargeError,
)
from langchain_supabase_memory.language.messages.codec import to_row
from langchain_supabase_memory.operations import work
from langchain_supabase_memory.operations.work import Lease
from langchain_supabase_memory.settings import BoardPolicy, SummaryPolicy
from langchain_supabase_memory.values import ConversationKey
from tests.conftest import Caller
from tests.each_case import each_case
from tests.services.data_api import token
from tests.services.emptied import delete_from
from tests.services.postgres import Cluster

T = TypeVar("T")


async def do(caller: Caller, flow: Flow[T], memory: SupabaseMemory | None = None) -> T:
    """Drive a flow in the caller's color, with a server's rights unless another memory is given."""
    memory = memory or caller.service
    return await memory._services.arun(flow) if caller.color == "async" else memory._services.run(flow)


def claiming(user_id: str, worker: str = "w", *, limit: int = 10, lease: float = 60, settle: float = 0) -> Any:
    return work.claim(worker, limit=limit, lease_seconds=lease, debounce_seconds=settle, user_id=user_id)


async def claimed(caller: Caller, user_id: str, **how: Any) -> list[Lease]:
    return await do(caller, claiming(user_id, **how))


async def one(caller: Caller, user_id: str, **how: Any) -> Lease:
    (lease,) = await claimed(caller, user_id, **how)
    return lease


async def say(caller: Caller, user_id: str, *texts: str, thread_id: str = "t", memory: Any = None) -> None:
    messages = [HumanMessage(text, id=f"id of {text}") for text in texts]
    await caller((memory or caller.service.for_user(user_id)).conversation(thread_id).append, messages)


def rows(conn_string: str, user_id: str) -> list[dict[str, Any]]:
    """The queue of a user, as it is stored."""
    with psycopg.connect(conn_string, row_factory=dict_row) as connection:
        return connection.execute(
            "select w.user_id, w.since, nullif(w.run_after, 'infinity') as run_after, w.attempts, w.error, w.worker, w.paused,"
            " w.lease_token, w.dead_at, c.thread_id, extract(epoch from nullif(w.run_after, 'infinity') - clock_timestamp())::float8 as wait"
            " from memory_private.work w join memory.conversations c on c.user_id = w.user_id and c.id = w.conversation_id"
            " where w.user_id = %s order by c.thread_id",
            [user_id],
        ).fetchall()


def change(conn_string: str, statement: str, *arguments: Any) -> int:
    with psycopg.connect(conn_string, autocommit=True) as connection:
        return connection.execute(statement.encode(), arguments).rowcount


def now_due(conn_string: str, user_id: str) -> None:
    """What waits need not wait any more."""
    change(
        conn_string,
        "update memory_private.work w set run_after = now(), paused = coalesce((select jsonb_object_agg("
        " d.key, d.value || jsonb_build_object('until', now())) from jsonb_each(w.paused) d), '{}')"
        " where user_id = %s and run_after < 'infinity'",
        user_id,
    )


# --- What is marked


async def test_fifty_messages_are_one_piece_of_work(caller: Caller, user_id: str, conn_string: str) -> None:
    for number in range(50):
        await say(caller, user_id, f"m{number}")
    (row,) = rows(conn_string, user_id)
    assert (row["attempts"], row["lease_token"], row["dead_at"]) == (0, None, None)
    lease = await one(caller, user_id)
    assert lease.key == ConversationKey("t", user_id, "default")
    assert lease.position[:2] == (50, 0)
    assert (lease.attempts, lease.requested) == (1, False)
    assert await do(caller, work.finish(lease)) == "done"
    assert rows(conn_string, user_id) == []


async def test_fifty_messages_write_the_queue_once(user_id: str, conn_string: str) -> None:
    first: list[Any] = []
    with psycopg.connect(conn_string, autocommit=True) as connection:
        for number in range(50):
            append(connection, user_id, f"m{number}")
            found = connection.execute(
                "select xmin::text, ctid::text from memory_private.work where user_id = %s", [user_id]
            ).fetchall()
            first = first or found
            assert found == first
    assert len(first) == 1


async def test_a_burst_is_left_alone_until_it_has_settled(caller: Caller, user_id: str, conn_string: str) -> None:
    await say(caller, user_id, "m")
    assert await claimed(caller, user_id, settle=60) == []
    change(
        conn_string,
        "update memory_private.work set run_after = now() - interval '61 seconds' where user_id = %s",
        user_id,
    )
    assert len(await claimed(caller, user_id, settle=60)) == 1


async def test_work_does_not_wait_for_a_clock_that_was_set_back(caller: Caller, user_id: str, conn_string: str) -> None:
    await say(caller, user_id, "m0")
    ahead = "set run_after = run_after + interval '1 day', since = since + interval '1 day'"
    change(conn_string, f"update memory_private.work {ahead} where user_id = %s", user_id)
    change(
        conn_string,
        "update memory_private.owners set turn_at = turn_at + interval '1 day', due_at = due_at + interval '1 day'"
        " where user_id = %s",
        user_id,
    )
    assert await claimed(caller, user_id) == []
    await say(caller, user_id, "m1")
    assert (await one(caller, user_id)).position[0] == 2


async def test_a_retry_that_stores_nothing_is_no_second_piece(caller: Caller, user_id: str, conn_string: str) -> None:
    await say(caller, user_id, "m")
    before = rows(conn_string, user_id)
    await say(caller, user_id, "m")
    after = rows(conn_string, user_id)
    assert [row["run_after"] for row in before] == [row["run_after"] for row in after]
    lease = await one(caller, user_id)
    await say(caller, user_id, "m")
    assert await do(caller, work.finish(lease)) == "done"
    assert rows(conn_string, user_id) == []


def test_what_is_rolled_back_leaves_no_mark(user_id: str, conn_string: str) -> None:
    with psycopg.connect(conn_string) as connection:
        append(connection, user_id, "m")
        row = connection.execute("select 1 from memory_private.work where user_id = %s", [user_id]).fetchone()
        assert row is not None
        connection.rollback()
    assert rows(conn_string, user_id) == []


async def test_edits_and_forgetting_a_message_mark(caller: Caller, user_id: str, conn_string: str) -> None:
    await say(caller, user_id, "a", "b")
    assert await do(caller, work.finish(await one(caller, user_id))) == "done"
    await caller(caller.service.for_user(user_id).conversation("t").append, [HumanMessage("changed", id="id of a")])
    lease = await one(caller, user_id)
    assert lease.position[:2] == (2, 1)
    assert await do(caller, work.finish(lease)) == "done"
    await caller(caller.service.for_user(user_id).conversation("t").forget_message, "id of b")
    assert await do(caller, work.finish(await one(caller, user_id))) == "done"
    assert rows(conn_string, user_id) == []


@pytest.mark.parametrize("change_", ["message", "edit", "forget", "stale"])
async def test_what_happens_while_a_piece_runs_is_looked_at_again(
    caller: Caller, user_id: str, conn_string: str, change_: str
) -> None:
    await say(caller, user_id, "a", "b")
    lease = await one(caller, user_id)
    if change_ == "message":
        await say(caller, user_id, "c")
    elif change_ == "edit":
        await caller(caller.service.for_user(user_id).conversation("t").append, [HumanMessage("changed", id="id of a")])
    elif change_ == "forget":
        await caller(caller.service.for_user(user_id).conversation("t").forget_message, "id of b")
    else:  # as when a message of a chunk expires: neither the number of messages nor the revision says so
        change(conn_string, "update memory.conversations set has_stale = true where user_id = %s", user_id)
    assert await claimed(caller, user_id) == [], "never two at once"
    assert await do(caller, work.finish(lease)) == "again"
    again = await one(caller, user_id)
    assert (again.attempts, again.token != lease.token) == (1, True)
    assert await do(caller, work.finish(again)) == "done", "and then it is done"


async def test_forgetting_leaves_nothing_in_the_queue(caller: Caller, user_id: str, conn_string: str) -> None:
    canary = f"canary-{user_id}"
    await say(caller, user_id, canary, thread_id=canary)
    lease = await one(caller, user_id)
    await do(caller, work.finish(lease, error="TimeoutError"))
    await say(caller, user_id, f"{canary} again", thread_id=canary)
    now_due(conn_string, user_id)
    lease = await one(caller, user_id)
    await caller(caller.service.for_user(user_id).conversation(canary).forget)
    assert await do(caller, work.finish(lease)) == "gone"
    assert await do(caller, work.heartbeat([lease], lease_seconds=60)) == set()
    assert await do(caller, work.release([lease])) == 0
    with psycopg.connect(conn_string) as connection:
        for table in ("work", "chores"):
            left = connection.execute(
                f"select count(*) from memory_private.{table} r where r::text like %s".encode(), [f"%{user_id}%"]
            ).fetchone()
            assert left == (0,), table
    assert await claimed(caller, user_id) == []


async def test_the_queue_holds_no_content(caller: Caller, user_id: str, conn_string: str) -> None:
    await say(caller, user_id, "a-canary-of-the-queue")
    await do(caller, work.finish(await one(caller, user_id), error="TimeoutError"))
    assert "canary" not in str(rows(conn_string, user_id))


# --- Two at once, step by step


def append(connection: psycopg.Connection[Any], user_id: str, *texts: str) -> None:
    batch = json.dumps([to_row(HumanMessage(text, id=f"id of {text}")) for text in texts])
    connection.execute("select public.memory_append('t', %s, %s)", [batch, user_id])


@pytest.fixture
def two(conn_string: str) -> Iterator[tuple[psycopg.Connection, psycopg.Connection]]:
    """Two connections that are stepped by hand."""
    with psycopg.connect(conn_string) as one, psycopg.connect(conn_string) as other:
        yield one, other
        one.rollback()
        other.rollback()


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def is_kept_waiting(future: Future[Any]) -> bool:
    time.sleep(0.3)
    return not future.done()


Two = tuple[psycopg.Connection, psycopg.Connection]


def run_in(connection: psycopg.Connection[Any], flow: Flow[T]) -> T:
    """Drive a flow over one connection, inside whatever transaction is open."""
    try:
        step: Any = next(flow)
        while True:
            names = ", ".join(f"{name} => %s" for name in step.arguments)
            given = [json.dumps(each) if isinstance(each, (list, dict)) else each for each in step.arguments.values()]
            row = connection.execute(f"select public.{step.function}({names})".encode(), given).fetchone()
            assert row is not None
            step = flow.send(row[0])
    except StopIteration as end:
        result: T = end.value
        return result


def test_a_message_whose_transaction_is_open_while_a_worker_finishes_is_not_lost(
    two: Two, aside: ThreadPoolExecutor, user_id: str, conn_string: str
) -> None:
    talker, worker = two
    append(talker, user_id, "a")
    talker.commit()
    append(talker, user_id, "b")  # open: the mark is there already, so nothing is written
    (lease,) = run_in(worker, claiming(user_id))
    worker.commit()
    assert lease.position[0] == 1, "b is not seen"
    finishing = aside.submit(run_in, worker, work.finish(lease))
    assert is_kept_waiting(finishing), "it must not decide before b is there or not"
    talker.commit()
    assert finishing.result(10) == "again"
    worker.commit()
    (lease,) = run_in(worker, claiming(user_id))
    assert lease.position[0] == 2


def test_a_message_whose_transaction_is_rolled_back_is_no_reason_to_look_again(
    two: Two, aside: ThreadPoolExecutor, user_id: str, conn_string: str
) -> None:
    talker, worker = two
    append(talker, user_id, "a")
    talker.commit()
    append(talker, user_id, "b")
    (lease,) = run_in(worker, claiming(user_id))
    worker.commit()
    finishing = aside.submit(run_in, worker, work.finish(lease))
    assert is_kept_waiting(finishing)
    talker.rollback()
    assert finishing.result(10) == "done"
    worker.commit()
    assert rows(conn_string, user_id) == []


def test_a_message_that_waits_for_a_worker_to_finish_is_marked_anew(
    two: Two, aside: ThreadPoolExecutor, user_id: str, conn_string: str
) -> None:
    talker, worker = two
    append(talker, user_id, "a")
    talker.commit()
    (lease,) = run_in(worker, claiming(user_id))
    worker.commit()
    assert run_in(worker, work.finish(lease)) == "done"  # open: the mark is gone, for nobody but itself
    appending = aside.submit(append, talker, user_id, "b")
    assert is_kept_waiting(appending)
    worker.commit()
    appending.result(10)
    talker.commit()
    (lease,) = run_in(worker, claiming(user_id))
    assert lease.position[0] == 2


def test_a_first_message_is_claimed_as_soon_as_it_is_there(two: Two, user_id: str) -> None:
    talker, worker = two
    append(talker, user_id, "a")
    assert run_in(worker, claiming(user_id)) == []
    worker.commit()
    talker.commit()
    assert len(run_in(worker, claiming(user_id))) == 1


def test_a_wish_whose_transaction_is_open_while_a_worker_finishes_is_not_lost(
    two: Two, aside: ThreadPoolExecutor, user_id: str
) -> None:
    talker, worker = two
    append(talker, user_id, "a")
    talker.commit()
    (lease,) = run_in(worker, claiming(user_id))
    worker.commit()
    key = ConversationKey("t", user_id, "default")
    assert run_in(talker, work.request(key))
    finishing = aside.submit(run_in, worker, work.finish(lease))
    assert is_kept_waiting(finishing)
    talker.commit()
    assert finishing.result(10) == "again"
    worker.commit()
    (lease,) = run_in(worker, claiming(user_id, settle=60))
    assert lease.requested


def test_a_claim_passes_by_what_another_is_claiming(two: Two, user_id: str) -> None:
    one, other = two
    append(one, user_id, "a")
    one.commit()
    assert len(run_in(one, claiming(user_id))) == 1  # open
    assert run_in(other, claiming(user_id)) == []
    one.rollback()
    other.commit()
    assert len(run_in(other, claiming(user_id))) == 1


def test_rederiving_passes_by_what_is_being_forgotten(two: Two, user_id: str, conn_string: str) -> None:
    one, other = two
    append(one, user_id, "a")
    one.commit()
    change(conn_string, "delete from memory_private.work where user_id = %s", user_id)
    one.execute("select public.memory_forget('t', %s)", [user_id])  # open
    other.execute("set local lock_timeout = '5s'")
    run_in(other, work.reconcile())
    other.commit()
    one.commit()
    assert rows(conn_string, user_id) == []


def test_many_claimers_at_once_never_get_the_same(user_id: str, conn_string: str, aside: ThreadPoolExecutor) -> None:
    with psycopg.connect(conn_string, autocommit=True) as connection:
        for number in range(60):
            batch = json.dumps([to_row(HumanMessage("m", id="m"))])
            connection.execute("select public.memory_append(%s, %s, %s)", [f"t{number}", batch, user_id])
    start = threading.Barrier(2)

    def claimer(name: str) -> list[str]:
        got: list[str] = []
        with psycopg.connect(conn_string, autocommit=True) as connection:
            start.wait()
            while leases := run_in(connection, claiming(user_id, name, limit=2)):
                got += [lease.key.thread_id for lease in leases]
        return got

    futures = [aside.submit(claimer, name) for name in ("a", "b")]
    got = [future.result(30) for future in futures]
    assert sorted(got[0] + got[1]) == sorted(f"t{number}" for number in range(60))
    assert {(row["worker"], row["attempts"]) for row in rows(conn_string, user_id)} <= {("a", 1), ("b", 1)}


# --- Leases


async def test_a_lease_that_ran_out_is_taken_over_and_the_zombie_changes_nothing(
    caller: Caller, user_id: str, conn_string: str
) -> None:
    await say(caller, user_id, "m")
    await caller(caller.service.for_user(user_id).conversation("t").summaries.request)
    zombie = await one(caller, user_id, worker="zombie", lease=0.2)
    assert await claimed(caller, user_id) == []
    time.sleep(0.3)
    heir = await one(caller, user_id, worker="heir")
    assert (heir.attempts, heir.position) == (2, zombie.position)
    before = rows(conn_string, user_id)
    served = "select served_at from memory.conversations where user_id = %s"
    for error in (None, "TimeoutError"):
        assert await do(caller, work.finish(zombie, error=error, served=True)) == "lost"
    assert await do(caller, work.heartbeat([zombie], lease_seconds=600)) == set()
    assert await do(caller, work.release([zombie])) == 0
    after = rows(conn_string, user_id)
    assert [{**row, "wait": 0} for row in before] == [{**row, "wait": 0} for row in after]
    with psycopg.connect(conn_string) as connection:
        assert connection.execute(served, [user_id]).fetchone() == (None,)
    assert await do(caller, work.finish(heir, served=True)) == "done"


async def test_a_lease_that_ran_out_and_that_nobody_took_is_still_held(caller: Caller, user_id: str) -> None:
    await say(caller, user_id, "m")
    lease = await one(caller, user_id, lease=0.1)
    time.sleep(0.2)
    assert await do(caller, work.heartbeat([lease], lease_seconds=60)) == {lease.token}
    assert await claimed(caller, user_id) == []
    assert await do(caller, work.finish(lease)) == "done"


async def test_a_heartbeat_says_which_leases_are_held(caller: Caller, user_id: str) -> None:
    for thread_id in ("a", "b", "c"):
        await say(caller, user_id, "m", thread_id=thread_id)
    leases = await claimed(caller, user_id)
    assert len(leases) == 3
    await do(caller, work.finish(leases[1]))
    held = await do(caller, work.heartbeat(leases, lease_seconds=60))
    assert held == {leases[0].token, leases[2].token}
    assert await do(caller, work.heartbeat([], lease_seconds=60)) == set()


async def test_giving_back_counts_no_try(caller: Caller, user_id: str, conn_string: str) -> None:
    await say(caller, user_id, "m")
    for _ in range(3):
        lease = await one(caller, user_id)
        assert lease.attempts == 1
        assert await do(caller, work.release([lease])) == 1
    await do(caller, work.finish(await one(caller, user_id), error="TimeoutError"))
    now_due(conn_string, user_id)
    lease = await one(caller, user_id)
    assert lease.attempts == 2
    await do(caller, work.release([lease]))
    assert (await one(caller, user_id)).attempts == 2
    assert rows(conn_string, user_id)[0]["error"] == "TimeoutError"


# --- Failures


async def test_failures_wait_longer_and_longer_with_jitter_and_then_it_is_dead(
    caller: Caller, user_id: str, conn_string: str
) -> None:
    threads = [f"t{number}" for number in range(6)]
    for thread_id in threads:
        await say(caller, user_id, "m", thread_id=thread_id)
    for attempt in range(1, 13):
        leases = await claimed(caller, user_id)
        assert [lease.attempts for lease in leases] == [attempt] * 6
        for lease in leases:
            assert await do(caller, work.finish(lease, error="TimeoutError", max_attempts=13)) == "retry"
        longest = min(30 * 2 ** (attempt - 1), 3600)
        waits = [row["wait"] for row in rows(conn_string, user_id)]
        assert all(longest * 0.5 - 30 <= wait <= longest for wait in waits)
        assert min(waits) >= min(longest * 0.5 - 10, 1790)
        assert len(set(waits)) == 6
        if attempt > 3:
            assert max(waits) - min(waits) > longest / 100, "jitter"
        assert await claimed(caller, user_id) == []
        now_due(conn_string, user_id)
    for lease in await claimed(caller, user_id):
        assert await do(caller, work.finish(lease, error="x" * 500, max_attempts=13)) == "dead"
    for row in rows(conn_string, user_id):
        assert row["dead_at"] is not None
        assert row["error"] == "x" * 200
    now_due(conn_string, user_id)
    await say(caller, user_id, "another", thread_id="t0")
    assert await claimed(caller, user_id) == [], "what is dead stays so, whatever is said"
    states = await caller(caller.service.for_user(user_id).work.status, state="dead")
    assert sorted(each.key.thread_id for each in states) == threads

    assert await caller(caller.service.for_user(user_id).conversation("t1").work.retry) == 1
    assert [(each.key.thread_id, each.attempts) for each in await claimed(caller, user_id)] == [("t1", 1)]
    assert await caller(caller.service.for_user(user_id).work.retry, agent_id="nobody") == 0
    assert await caller(caller.service.for_user(user_id).work.retry) == 5
    assert await caller(caller.service.for_user(user_id).work.retry) == 0
    assert {each.attempts for each in await claimed(caller, user_id)} == {1}


async def test_a_success_forgets_earlier_failures(caller: Caller, user_id: str, conn_string: str) -> None:
    await say(caller, user_id, "m")
    await do(caller, work.finish(await one(caller, user_id), error="TimeoutError"))
    now_due(conn_string, user_id)
    lease = await one(caller, user_id)
    await say(caller, user_id, "n")
    assert await do(caller, work.finish(lease)) == "again"
    (row,) = rows(conn_string, user_id)
    assert (row["attempts"], row["error"]) == (0, None)


async def test_a_failure_says_so_even_if_more_was_said(caller: Caller, user_id: str, conn_string: str) -> None:
    await say(caller, user_id, "m")
    lease = await one(caller, user_id)
    await say(caller, user_id, "n")
    assert await do(caller, work.finish(lease, error="TimeoutError")) == "retry"
    now_due(conn_string, user_id)
    assert (await one(caller, user_id)).position[0] == 2


# --- Wishes and priorities


async def test_a_wish_goes_first_and_is_marked_as_served(caller: Caller, user_id: str) -> None:
    for thread_id in ("a", "b", "c"):
        await say(caller, user_id, "m", thread_id=thread_id)
    assert await caller(caller.service.for_user(user_id).conversation("c").summaries.request)
    assert not await caller(caller.service.for_user(user_id).conversation("none").summaries.request)
    lease = await one(caller, user_id, limit=1, settle=60)
    assert (lease.key.thread_id, lease.requested) == ("c", True)
    assert await do(caller, work.finish(lease, served=True)) == "done"
    await say(caller, user_id, "n", thread_id="c")
    leases = await claimed(caller, user_id)
    assert [(each.key.thread_id, each.requested) for each in leases] == [("a", False), ("b", False), ("c", False)]


async def test_a_wish_for_what_is_idle_makes_it_due(caller: Caller, user_id: str, conn_string: str) -> None:
    await say(caller, user_id, "m")
    await do(caller, work.finish(await one(caller, user_id)))
    await caller(caller.service.for_user(user_id).conversation("t").summaries.request)
    lease = await one(caller, user_id)
    assert lease.requested
    assert await do(caller, work.finish(lease, served=False)) == "done"


async def test_a_wish_brings_back_what_is_dead(caller: Caller, user_id: str, conn_string: str) -> None:
    await say(caller, user_id, "m")
    lease = await one(caller, user_id)
    assert await do(caller, work.finish(lease, error="TimeoutError", max_attempts=1)) == "dead"
    await caller(caller.service.for_user(user_id).conversation("t").summaries.request)
    lease = await one(caller, user_id)
    assert (lease.attempts, lease.requested) == (1, True)


async def test_a_wish_is_not_kept_waiting_by_an_earlier_failure(caller: Caller, user_id: str) -> None:
    await say(caller, user_id, "m")
    await do(caller, work.finish(await one(caller, user_id), error="TimeoutError"))
    await caller(caller.service.for_user(user_id).conversation("t").summaries.request)
    lease = await one(caller, user_id)
    await caller(caller.service.for_user(user_id).conversation("t").summaries.request)
    assert await do(caller, work.finish(lease, error="TimeoutError", max_attempts=1)) == "again"
    assert (await one(caller, user_id)).requested


async def test_a_wish_while_a_piece_runs_is_done_afterwards(caller: Caller, user_id: str) -> None:
    await say(caller, user_id, "m")
    lease = await one(caller, user_id)
    assert not lease.requested
    await caller(caller.service.for_user(user_id).conversation("t").summaries.request)
    assert await claimed(caller, user_id) == [], "not beside the one that runs"
    assert await do(caller, work.finish(lease)) == "again"
    first = await one(caller, user_id, settle=60)
    assert first.requested
    await caller(caller.service.for_user(user_id).conversation("t").summaries.request)  # once more, meanwhile
    assert await do(caller, work.finish(first, served=True)) == "again"
    second = await one(caller, user_id, settle=60)
    assert second.requested, "the second wish is another one"
    assert await do(caller, work.finish(second, served=True)) == "done"


async def test_priority_goes_before_age_and_age_before_the_rest(caller: Caller, user_id: str) -> None:
    for thread_id in ("a", "b", "c", "d"):
        await say(caller, user_id, "m", thread_id=thread_id)
    for thread_id, priority in (("d", 7), ("a", -7)):
        await caller(caller.service.for_user(user_id).conversation(thread_id).summaries.request, priority=priority)
    order = [(await one(caller, user_id, limit=1)).key.thread_id for _ in range(4)]
    assert order == ["d", "b", "c", "a"], "even a wish of low priority waits"
    status = await caller(caller.service.for_user(user_id).work.status)
    assert {each.key.thread_id: each.priority for each in status} == {"a": -7, "b": 0, "c": 0, "d": 7}


async def test_a_priority_stays(caller: Caller, user_id: str) -> None:
    await say(caller, user_id, "m", thread_id="a")
    await say(caller, user_id, "m", thread_id="b")
    await caller(caller.service.for_user(user_id).conversation("b").summaries.request, priority=1)
    for lease in await claimed(caller, user_id):
        await do(caller, work.finish(lease, served=True))
    for thread_id in ("a", "b"):
        await say(caller, user_id, "n", thread_id=thread_id)
    assert [each.key.thread_id for each in await claimed(caller, user_id)] == ["b", "a"]


async def test_a_priority_that_is_none_is_refused(caller: Caller, user_id: str) -> None:
    await say(caller, user_id, "m")
    with pytest.raises(SupabaseMemoryError):
        await caller(caller.service.for_user(user_id).conversation("t").summaries.request, priority=40_000)


# --- From time to time


async def test_a_chore_goes_to_one_of_many(caller: Caller, user_id: str, conn_string: str) -> None:
    chore = f"chore of {user_id} {caller.kind} {caller.color}"
    assert await do(caller, work.takes_turn(chore, 60))
    assert not await do(caller, work.takes_turn(chore, 60))
    assert not await do(caller, work.takes_turn(chore, 0.001)), "the one before said when"
    change(conn_string, "update memory_private.chores set run_after = now() where name = %s", chore)
    assert await do(caller, work.takes_turn(chore, 60))
    ahead = "set run_after = run_after + interval '1 day', done_at = done_at + interval '1 day'"
    change(conn_string, f"update memory_private.chores {ahead} where name = %s", chore)
    assert await do(caller, work.takes_turn(chore, 60)), "the clock was set back"
    assert not await do(caller, work.takes_turn(chore, 60))


def test_a_chore_goes_to_one_of_many_who_ask_at_once(user_id: str, conn_string: str, aside: ThreadPoolExecutor) -> None:
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        start = threading.Barrier(2)

        def ask(number: int) -> bool:
            start.wait()
            return memory._services.run(work.takes_turn(f"raced by {user_id}", 60))

        assert sorted(aside.map(ask, range(2))) == [False, True]


@pytest.mark.not_on_citus("a setting that keeps triggers from running does not reach the nodes")
async def test_what_was_written_behind_the_triggers_back_is_found(
    caller: Caller, user_id: str, conn_string: str, cluster: Cluster, database: str
) -> None:
    await say(caller, user_id, "m", thread_id="known")
    with psycopg.connect(cluster.conn_string(database, "supabase_admin")) as connection:
        connection.execute("set local session_replication_role = replica")
        append(connection, user_id, "m")
    assert [row["thread_id"] for row in rows(conn_string, user_id)] == ["known"]
    assert await do(caller, work.reconcile()) >= 1
    assert [row["thread_id"] for row in rows(conn_string, user_id)] == ["known", "t"]
    assert len(await claimed(caller, user_id)) == 2
    await do(caller, work.reconcile())
    assert await claimed(caller, user_id) == [], "what is leased stays so"


async def test_what_was_given_up_is_tried_once_more_in_an_hour_in_which_something_was_said(
    caller: Caller, user_id: str, conn_string: str
) -> None:
    async def is_given_up() -> bool:
        failed = await do(caller, work.finish(await one(caller, user_id), error="TimeoutError", max_attempts=3))
        now_due(conn_string, user_id)
        return failed == "dead"

    await say(caller, user_id, "m")
    assert [await is_given_up() for _ in range(3)] == [False, False, True]
    await do(caller, work.reconcile())
    assert await claimed(caller, user_id) == [], "nothing was said"
    await say(caller, user_id, "n")
    await do(caller, work.reconcile())
    assert await claimed(caller, user_id) == [], "not yet"
    back = "update memory_private.work set dead_at = now() - interval '2 hours' where user_id = %s"
    change(conn_string, back, user_id)
    await do(caller, work.reconcile())
    assert await is_given_up(), "and only once"
    change(conn_string, back, user_id)
    earlier = "update memory.conversations set updated_at = now() - interval '3 hours' where user_id = %s"
    change(conn_string, earlier, user_id)
    await do(caller, work.reconcile())
    assert await claimed(caller, user_id) == [], "nothing was said since"


@pytest.mark.not_on_citus("switches a trigger off, which Citus refuses")
async def test_only_what_a_worker_would_do_something_for_is_found(
    caller: Caller, user_id: str, conn_string: str
) -> None:
    """Else everything that is idle would be worked on for nothing, again and again."""
    await say(caller, user_id, "a", "b", "c")
    key = ConversationKey("t", user_id, "default")
    assert await do(caller, work.finish(await one(caller, user_id))) == "done"

    async def is_found(**due: Any) -> bool:
        await do(caller, work.reconcile(**due))
        return bool(change(conn_string, "delete from memory_private.work where user_id = %s", user_id))

    assert await is_found(index=True)
    change(conn_string, "update memory.conversations set indexed_through = 2 where user_id = %s", user_id)
    assert not await is_found(index=True)
    change(conn_string, "alter table memory.conversations disable trigger conversations_mark_work")
    try:
        change(conn_string, "update memory.conversations set has_stale = true where user_id = %s", user_id)
    finally:
        change(conn_string, "alter table memory.conversations enable trigger conversations_mark_work")
    assert await is_found(index=True)
    assert not await is_found(index=False)
    assert not await is_found(index=False, board=BoardPolicy(update_frequency=4))
    assert await is_found(index=False, board=BoardPolicy(update_frequency=3))
    assert not await is_found(index=False, summary=SummaryPolicy(messages=3))
    assert await is_found(index=False, summary=SummaryPolicy(messages=2))
    assert await is_found(index=False, summary=SummaryPolicy(characters=2))
    await do(caller, work.request(key))
    change(conn_string, "delete from memory_private.work where user_id = %s", user_id)
    assert await is_found(index=False), "a wish that was lost"


async def test_the_idle_are_archived_until_somebody_goes_on(caller: Caller, user_id: str, conn_string: str) -> None:
    await say(caller, user_id, "m")
    key = ConversationKey("t", user_id, "default")
    assert key not in await do(caller, work.idle(60))
    age = "update memory.conversations set updated_at = now() - interval '2 minutes' where user_id = %s"
    change(conn_string, age, user_id)
    assert key in await do(caller, work.idle(60))
    assert not await do(caller, work.archive(key, 0)), "it has moved on"
    assert await do(caller, work.archive(key, 1))
    assert key not in await do(caller, work.idle(60))
    status = await caller(caller.service.for_user(user_id).conversation("t").work.status)
    assert status.archived_at is not None
    await say(caller, user_id, "n")
    status = await caller(caller.service.for_user(user_id).conversation("t").work.status)
    assert status.archived_at is None
    change(conn_string, age, user_id)
    assert key in await do(caller, work.idle(60))
    assert not await do(caller, work.archive(replace(key, thread_id="none"), 0))


# --- What is seen


async def test_the_status_of_each_state(caller: Caller, user_id: str, conn_string: str) -> None:
    for thread_id in ("dead", "due", "idle", "running", "waiting"):
        await say(caller, user_id, "m", "n", thread_id=thread_id)
    for lease in await claimed(caller, user_id, worker="someone"):
        name = lease.key.thread_id
        if name == "dead":
            await do(caller, work.finish(lease, error="TimeoutError", max_attempts=1))
        elif name == "waiting":
            await do(caller, work.finish(lease, error="ValueError"))
        elif name == "due":
            await do(caller, work.release([lease]))
        elif name == "idle":
            await do(caller, work.finish(lease))
    found = await caller(caller.service.for_user(user_id).work.status)
    assert {each.key.thread_id: each.state for each in found} == {
        each.key.thread_id: each.key.thread_id for each in found
    }
    assert len(found) == 5
    by_name = {each.key.thread_id: each for each in found}
    assert (by_name["running"].worker, by_name["running"].attempts) == ("someone", 1)
    assert (by_name["waiting"].error, by_name["dead"].error) == ("ValueError", "TimeoutError")
    assert (by_name["waiting"].due_since is None, by_name["idle"].due_since is None) == (False, True)
    due = by_name["due"]
    assert (due.messages, due.next_sequence, due.summarized_through, due.board_through) == (2, 2, -1, -1)
    for state in by_name:
        named = await caller(caller.service.for_user(user_id).work.status, state=state)
        assert [each.key.thread_id for each in named] == [state]
    only = await caller(caller.service.for_user(user_id).conversation("idle", agent_id="default").work.status)
    assert only == by_name["idle"]
    assert await caller(caller.service.for_user(user_id).work.status, agent_id="nobody") == []
    assert await caller(caller.service.for_user(f"{user_id}-nobody").work.status) == []


async def test_a_lease_that_ran_out_is_due(caller: Caller, user_id: str) -> None:
    await say(caller, user_id, "m")
    await claimed(caller, user_id, lease=0.1)
    time.sleep(0.2)
    (status,) = await caller(caller.service.for_user(user_id).work.status)
    assert status.state == "due"


async def test_a_long_status_comes_whole(caller: Caller, user_id: str, conn_string: str, monkeypatch: Any) -> None:
    change(
        conn_string,
        "insert into memory.conversations (user_id, thread_id, next_sequence)"
        " select %s, 't' || n, 1 from generate_series(1, 250) n",
        user_id,
    )
    await do(caller, work.reconcile())
    assert len(rows(conn_string, user_id)) == 250
    monkeypatch.setattr(work, "PAGE", 100)
    for state in (None, "due"):
        found = await caller(caller.service.for_user(user_id).work.status, state=state)
        assert len({each.key.thread_id for each in found}) == len(found) == 250
        assert len(await caller(caller.service.for_user(user_id).work.status, state=state, limit=130)) == 130
    assert len(await caller(caller.service.for_user(user_id).work.status, state="dead")) == 0


@pytest.fixture
def empty(cluster: Cluster, own: str, own_address: str) -> Iterator[SupabaseMemory]:
    """A memory whose queue is empty."""
    delete_from(cluster, own, "memory.conversations", "memory_private.chores")
    with SupabaseMemory.from_conn_string(own_address, user_id="u") as memory:
        yield memory


def test_the_queue_in_numbers(empty: SupabaseMemory, own_address: str) -> None:
    assert empty.work.queue() == replace(
        empty.work.queue(), depth=0, due=0, leases=0, waiting=0, dead=0, lag_seconds=0.0
    )
    assert empty.work.queue().next_seconds is None
    for number in range(5):
        empty.conversation(f"t{number}").append([HumanMessage("m")])
    change(own_address, "update memory_private.work set since = now() - interval '1 hour'")
    leases = empty._services.run(claiming("u", limit=4))
    empty._services.run(work.finish(leases[0], error="TimeoutError", max_attempts=1))
    empty._services.run(work.finish(leases[1], error="TimeoutError"))
    empty._services.run(work.finish(leases[2]))
    queue = empty.work.queue()
    assert (queue.depth, queue.due, queue.leases, queue.waiting, queue.dead) == (3, 1, 1, 1, 1)
    assert 3599 < queue.lag_seconds < 3700
    assert queue.next_seconds == 0
    empty._services.run(work.finish(empty._services.run(claiming("u"))[0]))
    assert 10 < float(empty.work.queue().next_seconds or 0) <= 30
    now_due(own_address, "u")
    queue = empty.work.queue()
    assert (queue.due, queue.waiting) == (2, 0), "what need not wait any more does not"


def test_a_wish_counts_as_due_at_once(empty: SupabaseMemory) -> None:
    empty.conversation("t").append([HumanMessage("m")])
    assert empty.conversation("t").summaries.request()
    queue = empty.work.queue()
    assert (queue.depth, queue.due, queue.next_seconds) == (1, 1, 0)


# --- What it touches

CROWD = """
insert into memory.conversations (user_id, thread_id, next_sequence)
select 'user-' || n % 50, 'thread-' || n, 1 from generate_series(1, 4000) n;
insert into memory_private.work (user_id, conversation_id, priority, run_after, lease_token, lease_until, dead_at, attempts)
select c.user_id, c.id, n % 5,
  case when n <= 20 then clock_timestamp() - interval '1 minute' else clock_timestamp() + interval '1 hour' end,
  case when n % 3 = 0 and n > 20 then gen_random_uuid() end,
  case when n % 3 = 0 and n > 20 then clock_timestamp() + interval '1 hour' end,
  case when n % 3 = 1 and n > 20 then clock_timestamp() end, 1
from (select c.*, row_number() over () as n from memory.conversations c) c where n <= 3000
"""

TOUCHED = (
    "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint from pg_stat_xact_user_tables"
    " where relname in ('work', 'conversations')"
)


COUNTS = pytest.mark.not_on_citus("counts what the server reads that is asked, and the nodes read")


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
def crowd(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """Twenty conversations that are ready, beside 1,000 idle, 1,000 leased, 1,000 dead and 1,000 that wait."""
    name = cluster.migrated_database()
    for table in ("memory_private.work", "memory.conversations"):
        cluster.leave_unvacuumed(name, table)
    cluster.execute(CROWD, database=name)
    if request.param == "analyzed":
        cluster.execute("analyze", database=name)
    with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
        yield connection


def most_touched(connection: psycopg.Connection, statement: str) -> int:
    """The most rows that one of eight calls touches: after five the planner turns to a generic plan."""
    most = 0
    for _ in range(8):
        with connection.transaction(force_rollback=True):
            before = connection.execute(TOUCHED).fetchone()
            connection.execute(statement.encode())
            after = connection.execute(TOUCHED).fetchone()
            assert before is not None
            assert after is not None
            most = max(most, after[0] - before[0])
    return most


@COUNTS
@pytest.mark.parametrize("limit", [1, 4, 20, 50])
def test_a_claim_does_not_touch_what_is_not_ready(crowd: psycopg.Connection, limit: int) -> None:
    # Of each row that it takes: found, locked, changed, and its conversation; and one row for each priority.
    assert most_touched(crowd, f"select public.memory_worker_claim('w', {limit}, 60, 1)") <= 6 * min(limit, 20) + 20


@COUNTS
def test_a_claim_takes_what_is_ready_in_order(crowd: psycopg.Connection) -> None:
    with crowd.transaction(force_rollback=True):
        crowd.execute("update memory_private.work set run_after = now() where dead_at is not null")
        crowd.execute("set constraints all immediate")
        leases = run_in(crowd, work.claim("w", limit=200, lease_seconds=60, debounce_seconds=0))
        assert len(leases) == 200
        row = crowd.execute(
            "select json_object_agg(p.user_id, p.priorities) from ("
            " select w.user_id, array_agg(w.priority order by o.n) as priorities"
            " from unnest(%s::uuid[]) with ordinality o (token, n)"
            " join memory_private.work w on w.lease_token = o.token group by w.user_id) p",
            [[lease.token for lease in leases]],
        ).fetchone()
        assert row is not None
        assert max(map(len, row[0].values())) > 1
        for priorities in row[0].values():
            assert priorities == sorted(priorities, reverse=True)


@COUNTS
def test_a_page_of_rederiving_touches_no_more_than_a_page(crowd: psycopg.Connection) -> None:
    page = (
        "select public.memory_worker_rederive(p_limit => 10, p_after_user => 'user-30', p_after => gen_random_uuid())"
    )
    assert most_touched(crowd, page) <= 60


@COUNTS
def test_the_status_of_one_user_touches_what_is_theirs(crowd: psycopg.Connection) -> None:
    assert most_touched(crowd, "select public.memory_status('user-1', p_state => 'due')") <= 400
    assert most_touched(crowd, "select public.memory_status('user-1')") <= 400


@COUNTS
def test_the_status_of_some_conversations_touches_those_alone(crowd: psycopg.Connection) -> None:
    row = crowd.execute(
        "select json_agg(c.id) from (select id from memory.conversations where user_id = 'user-1' limit 5) c"
    ).fetchone()
    assert row is not None
    assert most_touched(crowd, f"select public.memory_status('user-1', p_ids => '{json.dumps(row[0])}')") <= 60
    assert most_touched(crowd, "select public.memory_status(p_limit => 25)") <= 400, "the first page of everybody's"


async def test_status_is_of_some_conversations_and_goes_on_behind_one(caller: Caller, user_id: str) -> None:
    for thread in ("a", "b", "c"):
        await caller(caller.service.for_user(user_id).conversation(thread).add_turn, "hello", "hi")
    every = await caller(caller.service.for_user(user_id).work.status)
    ids = [each.id for each in every]
    assert ids == sorted(ids)
    assert [each.id for each in await caller(caller.service.for_user(user_id).work.status, ids=ids[1:])] == ids[1:]
    assert await caller(caller.service.for_user(user_id).work.status, ids=[]) == []
    behind = await caller(caller.service.for_user(user_id).work.status, after=(user_id, ids[0]), limit=1)
    assert [each.id for each in behind] == [ids[1]]
    with pytest.raises(InvalidInputError):
        await caller(caller.service.for_user(user_id).work.status, ids=["no id"])
    with pytest.raises(TooLargeError):
        await caller(caller.service.for_user(user_id).work.status, ids=[ids[0]] * 10_001)


@COUNTS
def test_an_append_touches_one_row_of_the_queue(crowd: psycopg.Connection) -> None:
    batch = json.dumps([to_row(AIMessage("m"))])
    assert most_touched(crowd, f"select public.memory_append('thread-100', '{batch}', 'user-0')") <= 10


# --- Who may


def server_verbs(lease: Lease) -> dict[str, Flow[Any]]:
    return {
        "claim": work.claim("w", limit=1, lease_seconds=1, debounce_seconds=0),
        "claim of theirs": claiming(str(lease.key.user_id)),
        "heartbeat": work.heartbeat([lease], lease_seconds=600),
        "finish": work.finish(lease),
        "fail": work.finish(lease, error="forged", max_attempts=1),
        "release": work.release([lease]),
        "retry": work.retry(None),
        "retry of theirs": work.retry(lease.key.user_id),
        "chore": work.takes_turn("forged", 1e9),
        "rederive": work.reconcile(),
        "idle": work.idle(1e-9),
        "archive": work.archive(lease.key, 1),
        "queue": work.queue(),
    }


@pytest.mark.parametrize("who", ["owner", "stranger", "nobody", "anon", "anon with a subject"])
async def test_only_a_server_works(caller: Caller, user_id: str, conn_string: str, who: str) -> None:
    await say(caller, user_id, "m")
    lease = await one(caller, user_id)
    before = [{**row, "wait": 0} for row in rows(conn_string, user_id)]
    tokens = {
        "owner": token(user_id=user_id),
        "stranger": token(user_id=f"{user_id}-stranger"),
        "nobody": token(),
        "anon": token("anon"),
        "anon with a subject": token("anon", user_id),
    }
    if caller.kind == "direct" and who == "nobody":
        with pytest.raises(AuthenticationError):
            caller.as_token(tokens[who])
        return
    memory = caller.as_token(tokens[who])
    for name, flow in server_verbs(lease).items():
        with pytest.raises(PermissionDeniedError):
            await do(caller, flow, memory)
            pytest.fail(name)
    assert [{**row, "wait": 0} for row in rows(conn_string, user_id)] == before
    assert change(conn_string, "delete from memory_private.chores where name = 'forged'") == 0


async def test_an_owner_asks_for_and_sees_their_own(caller: Caller, user_id: str, conn_string: str) -> None:
    memory = caller.as_token(token(user_id=user_id))
    await say(caller, user_id, "m", memory=memory)
    await say(caller, f"{user_id}-other", "m")
    (row,) = rows(conn_string, user_id)
    assert row["user_id"] == user_id
    (status,) = await caller(memory.work.status)
    assert (status.key.user_id, status.state) == (user_id, "due")
    await claimed(caller, user_id)
    await claimed(caller, f"{user_id}-other")
    for asking in (memory, memory.for_user(user_id)):
        (status,) = await caller(asking.work.status, state="running")
        assert status.key.user_id == user_id
        assert await caller(asking.conversation("t").summaries.request)


async def test_a_stranger_sees_and_asks_for_nothing(caller: Caller, user_id: str, conn_string: str) -> None:
    await say(caller, user_id, "m")
    await do(caller, work.finish(await one(caller, user_id), error="TimeoutError", max_attempts=1))
    before = [{**row, "wait": 0} for row in rows(conn_string, user_id)]
    # Over a direct connection claims without a subject are refused before anything is asked.
    nobody = [token()] if caller.kind == "data_api" else []
    for access in (token(user_id=f"{user_id}-stranger"), *nobody):
        stranger = caller.as_token(access)
        for state in (None, "dead", "due", "idle"):
            assert await caller(stranger.for_user(user_id).work.status, state=state) == []
            assert user_id not in [
                each.key.user_id for each in await do(caller, work.status(None, state=state), stranger)
            ]
        assert not await caller(stranger.for_user(user_id).conversation("t").summaries.request, priority=9)
    for anonymous in (caller.as_token(token("anon")), caller.as_token(token("anon", user_id))):
        theirs = anonymous.for_user(user_id).conversation("t")
        for verb in (theirs.work.status, theirs.summaries.request):
            with pytest.raises(PermissionDeniedError):
                await caller(verb)
        with pytest.raises(PermissionDeniedError):
            await do(caller, work.archive(ConversationKey("t", user_id, "default"), 1), anonymous)
    assert [{**row, "wait": 0} for row in rows(conn_string, user_id)] == before


def test_an_owner_pushes_in_before_nobody_by_sql_either(user_id: str, conn_string: str) -> None:
    """As when the schema itself is exposed to the Data API."""
    with psycopg.connect(conn_string) as connection:
        append(connection, user_id, "m")
        connection.execute("update memory.conversations set priority = 3 where user_id = %s", [user_id])
        claims = json.dumps({"sub": user_id, "role": "authenticated"})
        connection.execute("select set_config('request.jwt.claims', %s, true)", [claims])
        connection.execute("set local role authenticated")
        find = "select priority from memory.conversations where user_id = %s order by thread_id"
        for wanted, got in ((9, 3), (-1, -1), (0, -1)):
            connection.execute("update memory.conversations set priority = %s where user_id = %s", [wanted, user_id])
            assert connection.execute(find.encode(), [user_id]).fetchall() == [(got,)]
        ask = "update memory.conversations set priority = 9, requested_at = now() where user_id = %s"
        connection.execute(ask.encode(), [user_id])
        assert connection.execute("select priority from memory_private.work").fetchall() == [(-1,)]
        make = "insert into memory.conversations (user_id, thread_id, priority) values (%s, 'u', 9)"
        connection.execute(make.encode(), [user_id])
        assert connection.execute(find.encode(), [user_id]).fetchall() == [(-1,), (0,)]


@each_case("role", ["anon", "authenticated", "service_role"])
def test_nobody_calls_the_triggers_function(conn_string: str, role: str) -> None:
    with psycopg.connect(conn_string) as connection:
        connection.execute(f"set local role {role}".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select memory_private.mark_work()")


@pytest.mark.parametrize("table", ["work", "chores"])
def test_a_user_changes_nothing_in_the_queue_by_sql(user_id: str, conn_string: str, table: str) -> None:
    with psycopg.connect(conn_string) as connection:
        append(connection, user_id, "m")
        connection.execute("select set_config('request.jwt.claims', %s, true)", [json.dumps({"sub": user_id})])
        connection.execute("set local role authenticated")
        for statement in (f"delete from memory_private.{table}", f"insert into memory_private.{table} default values"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute(statement.encode())
        if table == "work":
            seen = connection.execute("select distinct user_id from memory_private.work").fetchall()
            assert seen == [(user_id,)]
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("update memory_private.work set priority = 9")
