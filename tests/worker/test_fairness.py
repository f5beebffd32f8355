"""One owner's flood delays nobody: claims rotate by owner, one job each, at most half of a worker's slots."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.language.messages.codec import to_row
from langchain_supabase_memory.operations import work
from langchain_supabase_memory.operations.work import Lease
from tests.services.emptied import delete_from
from tests.services.postgres import Cluster, execute

SLOTS: Final = 4

FLOOD: Final = """
insert into memory.conversations (user_id, thread_id, next_sequence)
select 'flood', 't' || n, 1 from generate_series(1, %s) n
"""
OWNERS: Final = """
insert into memory.conversations (user_id, thread_id, next_sequence)
select 'user ' || n, 't', 1 from generate_series(1, %s) n
"""
MARK: Final = """
insert into memory_private.work (user_id, conversation_id, run_after)
select c.user_id, c.id, clock_timestamp() - interval '1 minute' from memory.conversations c where c.next_sequence > 0
on conflict do nothing
"""


SPACES: Final = """
insert into memory.spaces (user_id, name, created_by)
select 'space:00000000-0000-4000-8000-' || lpad(n::text, 12, '0'), 'Space ' || n, 'rich' from generate_series(1, %s) n
"""
IN_SPACES: Final = """
insert into memory.conversations (user_id, thread_id, next_sequence) select s.user_id, 't', 1 from memory.spaces s
"""


@pytest.fixture
def memory(cluster: Cluster, own: str, own_address: str) -> Iterator[SupabaseMemory]:
    """A memory of a server, in a database that is empty."""
    delete_from(cluster, own, "memory.conversations", "memory_private.owners")
    with SupabaseMemory.from_conn_string(own_address) as memory:
        yield memory


def claimed(memory: SupabaseMemory, limit: int = SLOTS, held: Any = None, slots: int | None = SLOTS) -> list[Lease]:
    flow = work.claim("w", limit=limit, lease_seconds=60, debounce_seconds=0, slots=slots, limits=held)
    return memory._services.run(flow)


def owners(leases: list[Lease]) -> list[str]:
    return [str(lease.key.user_id) for lease in leases]


def say(memory: SupabaseMemory, user_id: str, thread_id: str = "t") -> None:
    memory.for_user(user_id).conversation(thread_id).append([HumanMessage("m")])


def due(own_address: str) -> int:
    ((count,),) = execute(own_address, "select count(*) from memory_private.work where run_after <= clock_timestamp()")
    return int(count)


@contextmanager
def busy(*tasks: Callable[[], None]) -> Iterator[threading.Event]:
    """Each task again and again in a thread of its own, until the block ends. What one raises is raised here."""
    stop = threading.Event()

    def repeat(task: Callable[[], None]) -> None:
        while not stop.is_set():
            task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        running = [pool.submit(repeat, task) for task in tasks]
        try:
            yield stop
        finally:
            stop.set()
    for each in running:
        each.result()


def test_a_backlog_of_four_hundred_does_not_come_before_another_owners_one(
    memory: SupabaseMemory, own_address: str
) -> None:
    execute(own_address, FLOOD, 400)
    execute(own_address, MARK)
    say(memory, "honest")
    assert sorted(owners(claimed(memory, limit=2))) == ["flood", "honest"]


def test_requests_move_a_conversation_only_within_its_owner(memory: SupabaseMemory, own_address: str) -> None:
    execute(own_address, FLOOD, 20)
    execute(own_address, MARK)
    say(memory, "honest")
    for number in range(1, 11):
        assert memory.for_user("flood").conversation(f"t{number}").summaries.request(priority=9)
    leases = claimed(memory, limit=3)
    assert owners(leases) == ["flood", "honest", "flood"]
    assert [lease.requested for lease in leases] == [True, False, True], "and before the owner's others"


def test_a_request_is_taken_before_it_has_settled_but_not_before_others(memory: SupabaseMemory) -> None:
    say(memory, "honest")
    say(memory, "asking")

    def settled() -> list[Lease]:
        return memory._services.run(work.claim("w", limit=4, lease_seconds=60, debounce_seconds=60))

    assert settled() == []
    assert memory.for_user("asking").conversation("t").summaries.request()
    assert owners(settled()) == ["asking"]


def test_each_of_many_owners_gets_one_before_anybody_gets_two(memory: SupabaseMemory, own_address: str) -> None:
    execute(own_address, OWNERS, 100)
    for thread in ("u", "v"):
        execute(own_address, OWNERS.replace("'t', 1", f"'{thread}', 1"), 100)
    execute(own_address, MARK)
    rounds = [owners(claimed(memory, limit=20, slots=20)) for _ in range(15)]
    for number in range(3):
        seen = [user for each in rounds[5 * number : 5 * number + 5] for user in each]
        assert len(set(seen)) == len(seen) == 100, f"in round {number}"
    assert claimed(memory) == []


def test_a_batch_goes_round_too(memory: SupabaseMemory, own_address: str) -> None:
    execute(own_address, FLOOD, 50)
    execute(own_address, OWNERS, 3)
    execute(own_address, MARK)
    found = owners(claimed(memory, limit=10, slots=None))
    assert Counter(found[:4]) == Counter({"flood": 1, "user 1": 1, "user 2": 1, "user 3": 1})
    assert found[4:] == ["flood"] * 6, "and what is left is for who has more"


def test_an_owner_has_half_of_the_slots_while_others_wait(memory: SupabaseMemory, own_address: str) -> None:
    execute(own_address, FLOOD, 50)
    execute(own_address, MARK)
    assert owners(claimed(memory)) == ["flood"] * 4, "nobody waits: all of them"
    for thread_id in ("a", "b", "c"):
        say(memory, "honest", thread_id)
    held = {"flood": 3}
    assert owners(claimed(memory, limit=1, held=held)) == ["honest"]
    held = {"flood": 2, "honest": 1}
    assert owners(claimed(memory, limit=1, held=held)) == ["honest"], "even if it was the other's turn"
    assert owners(claimed(memory, limit=2, held={"flood": 2})) == ["honest", "flood"], "what nobody else wants is free"
    assert owners(claimed(memory, limit=3, held={"flood": 1})) == ["flood"] * 3


def test_a_worker_with_one_slot_serves_all_in_turn(memory: SupabaseMemory, own_address: str) -> None:
    execute(own_address, FLOOD, 10)
    execute(own_address, OWNERS, 2)
    execute(own_address, MARK)
    found = [owners(claimed(memory, limit=1, slots=1)) for _ in range(6)]
    assert sorted(found[:3]) == [["flood"], ["user 1"], ["user 2"]]
    assert found[3:] == [["flood"]] * 3


def test_what_came_later_is_not_before_who_waits(memory: SupabaseMemory, own_address: str) -> None:
    """A flood of fresh conversations makes its owner's turn no earlier."""
    for name in ("flood", "a", "b"):
        say(memory, name)
    assert owners(claimed(memory, limit=1)) == ["flood"]
    for number in range(20):
        say(memory, "flood", f"t{number}")
    assert owners(claimed(memory, limit=1)) == ["a"]
    assert owners(claimed(memory, limit=1)) == ["b"]


def test_under_a_flood_without_pause_an_honest_owner_waits_a_few_claims(
    memory: SupabaseMemory, own_address: str
) -> None:
    """Counted in claims and not in seconds: of one slot, so that each claim is one chance."""
    execute(own_address, FLOOD, 400)
    execute(own_address, MARK)
    waited: list[int] = []
    served: Counter[str] = Counter()

    def append() -> None:
        say(memory, "flood", f"t{random.randrange(2000)}")

    def request() -> None:
        memory.for_user("flood").conversation(f"t{random.randrange(400)}").summaries.request(priority=0)

    with busy(append, append, request):
        for number in range(20):
            say(memory, "honest", f"t{number}")
            count = 0
            while True:
                count += 1
                leases = claimed(memory, limit=1, slots=1)
                served.update(owners(leases))
                for lease in leases:
                    memory._services.run(work.finish(lease))
                if "honest" in owners(leases):
                    break
                assert count < 50
            waited.append(count)
    assert max(waited) <= 4, waited
    assert served["flood"] >= 10, "it gets its turns, too"


def test_one_owner_whose_turn_is_locked_keeps_nobody_waiting(memory: SupabaseMemory, own_address: str) -> None:
    execute(own_address, FLOOD, 10)
    execute(own_address, OWNERS, 1)
    execute(own_address, MARK)
    with psycopg.connect(own_address) as other:
        other.execute("select 1 from memory_private.owners where user_id = 'flood' for update")
        # A claim that waits for it would never be answered.
        assert owners(claimed(memory, limit=3)) == ["user 1", "flood", "flood"]


def test_what_is_appended_while_a_claim_is_open_is_not_lost(memory: SupabaseMemory, own_address: str) -> None:
    """The claim has seen that nothing is left, and writes that down; the append comes after it."""
    say(memory, "u", "a")
    batch = json.dumps([to_row(HumanMessage("m", id="m"))])
    with psycopg.connect(own_address) as worker, psycopg.connect(own_address) as talker, ThreadPoolExecutor(1) as aside:
        talker.execute("select public.memory_append('b', %s, 'u')", [batch])  # open: not to be seen
        row = worker.execute("select public.memory_worker_claim('w', 4, 60, 0)").fetchone()
        assert row is not None
        assert [each["thread_id"] for each in row[0]] == ["a"]
        committing = aside.submit(talker.commit)
        time.sleep(0.2)
        assert not committing.done(), "it waits to say whose turn it is"
        worker.commit()
        committing.result(10)
    assert [lease.key.thread_id for lease in claimed(memory)] == ["b"]


def test_a_transaction_that_appends_to_several_conversations_blocks_no_other(
    memory: SupabaseMemory, own_address: str
) -> None:
    """Two that meet in one conversation wait for each other in one order: who waits for it holds no turn."""
    batch = json.dumps([to_row(HumanMessage("m", id="m"))])
    append = "select public.memory_append(%s, %s, 'u')"
    with psycopg.connect(own_address) as one, psycopg.connect(own_address) as other, ThreadPoolExecutor(1) as aside:
        one.execute(append.encode(), ["a", batch])
        other.execute(append.encode(), ["b", batch])
        waiting = aside.submit(one.execute, append.encode(), ["b", batch])
        time.sleep(0.2)
        other.commit()
        waiting.result(10)
        one.commit()
    assert len(claimed(memory)) == 2


def test_nothing_deadlocks_and_nothing_sleeps_on(memory: SupabaseMemory, own_address: str) -> None:
    """Appends, claims, finishes, failures, heartbeats, releases, revivals and deletions of six owners at once."""
    finished: Counter[str] = Counter()
    users = [f"u{number}" for number in range(6)]

    def talk() -> None:
        user, thread = random.choice(users), f"t{random.randrange(8)}"
        say(memory, user, thread)
        if random.random() < 0.2:
            memory.for_user(user).conversation(thread).summaries.request()
        if random.random() < 0.1:
            memory.for_user(user).conversation(thread).forget()

    def think() -> None:
        leases = claimed(memory, limit=5, slots=5)
        memory._services.run(work.heartbeat(leases, lease_seconds=60))
        memory._services.run(work.release(leases[3:]))
        for lease in leases[:3]:
            error = random.choice([None, None, "TimeoutError"])
            failed = None if error is None or random.random() < 0.5 else {"board": error}
            finished[
                memory._services.run(work.finish(lease, error=error, failed=failed, max_attempts=3, retry_seconds=0.01))
            ] += 1

    def bring_back() -> None:
        memory._services.run(work.retry(None))
        memory._services.run(work.reconcile())
        time.sleep(0.05)

    with busy(talk, talk, talk, think, think, bring_back):
        time.sleep(4)
    assert finished["done"] > 20
    assert finished["lost"] == 0
    found = "select deadlocks from pg_stat_database where datname = current_database()"
    assert execute(own_address, found) == [(0,)], "nor is one hidden by trying again"
    memory._services.run(work.retry(None))
    time.sleep(0.1)
    for _ in range(200):
        leases = claimed(memory, limit=20, slots=None)
        for lease in leases:
            memory._services.run(work.finish(lease))
        if not leases and due(own_address) == 0:
            break
    assert execute(own_address, "select user_id, run_after::text, lease_token from memory_private.work") == []
    assert execute(own_address, "select user_id from memory_private.owners") == []


def test_what_waits_or_leased_comes_again_when_its_time_has_come(memory: SupabaseMemory) -> None:
    for thread_id in ("fails", "is lost"):
        say(memory, "u", thread_id)
    flow = work.claim("w", limit=2, lease_seconds=0.4, debounce_seconds=0)
    first = next(lease for lease in memory._services.run(flow) if lease.key.thread_id == "fails")
    memory._services.run(work.finish(first, error="TimeoutError", retry_seconds=0.2))
    assert claimed(memory) == []
    time.sleep(0.5)
    assert sorted(lease.key.thread_id for lease in claimed(memory)) == ["fails", "is lost"]


def test_an_owner_who_was_forgotten_leaves_no_name(memory: SupabaseMemory, own_address: str) -> None:
    for thread_id in ("a", "b", "c"):
        say(memory, "u", thread_id)
    assert execute(own_address, "select user_id from memory_private.owners") == [("u",)]
    memory.for_user("u").conversation("a").forget()
    assert execute(own_address, "select user_id from memory_private.owners") == [("u",)]
    memory.for_user("u").forget_user()
    assert execute(own_address, "select user_id from memory_private.owners") == []


def test_an_owner_whose_turn_was_lost_gets_it_back(memory: SupabaseMemory, own_address: str) -> None:
    """As after a restore without triggers: what is due can always be derived."""
    say(memory, "u")
    execute(own_address, "delete from memory_private.owners")
    assert claimed(memory) == []
    memory._services.run(work.reconcile())
    assert owners(claimed(memory)) == ["u"]


# --- What it touches

TOUCHED: Final = (
    "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint from pg_stat_xact_user_tables"
    " where relname in ('work', 'conversations', 'owners')"
)


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
def crowd(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """10,000 conversations of one owner that wait, each of a priority of its own, and 1,000 owners of one."""
    name = cluster.migrated_database()
    for table in ("memory_private.work", "memory_private.owners", "memory.conversations"):
        cluster.leave_unvacuumed(name, table)
    own_address = cluster.conn_string(name)
    execute(own_address, FLOOD, 10_000)
    execute(own_address, OWNERS, 1_000)
    execute(own_address, MARK)
    later = "run_after = clock_timestamp() + interval '1 hour'"
    execute(own_address, f"update memory_private.work set {later}, priority = (random() * 60000 - 30000)::integer"
                     " where user_id = 'flood' and random() < 0.9")  # fmt: skip
    execute(own_address, f"update memory_private.work set {later} where user_id <> 'flood' and user_id like '%5'")
    if request.param == "analyzed":
        cluster.execute("analyze", database=name)
    with psycopg.connect(own_address, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize(("limit", "user"), [(1, None), (4, None), (50, None), (4, "flood")])
def test_a_claim_reads_no_backlog(crowd: psycopg.Connection, limit: int, user: str | None) -> None:
    """Of each piece: its owner and its row, found, locked and written, and its conversation; and some priorities."""
    most = 0
    for _ in range(8):  # after five the planner turns to a generic plan
        with crowd.transaction(force_rollback=True):
            before = crowd.execute(TOUCHED).fetchone()
            row = crowd.execute(
                "select public.memory_worker_claim('w', %s, 60, 1, p_slots => %s, p_user_id => %s)",
                [limit, limit, user],
            ).fetchone()
            after = crowd.execute(TOUCHED).fetchone()
            assert before is not None
            assert after is not None
            assert row is not None
            assert len(row[0]) == limit
            most = max(most, after[0] - before[0])
    assert most <= 12 * limit + 70, most


def test_a_request_and_an_append_read_no_backlog(crowd: psycopg.Connection) -> None:
    batch = json.dumps([to_row(HumanMessage("m"))])
    for statement in (
        f"select public.memory_append('new', '{batch}', 'flood')",
        "select public.memory_request('t1', 'flood')",
        "delete from memory.conversations where user_id = 'flood' and thread_id = 't2'",
    ):
        with crowd.transaction(force_rollback=True):
            before = crowd.execute(TOUCHED).fetchone()
            crowd.execute(statement.encode())
            crowd.execute("set constraints all immediate")
            after = crowd.execute(TOUCHED).fetchone()
            assert before is not None
            assert after is not None
            assert after[0] - before[0] <= 15, statement


@pytest.fixture(scope="module")
def of_spaces(cluster: Cluster, shared: str) -> str:
    """The address of another one, in which spaces are switched on."""
    return cluster.conn_string(shared)


@pytest.fixture
def with_spaces(cluster: Cluster, shared: str, of_spaces: str) -> Iterator[SupabaseMemory]:
    """A memory of a server, in a database where somebody has created forty spaces, each with something due."""
    delete_from(cluster, shared, "memory.conversations", "memory_private.owners", "memory.spaces")
    execute(of_spaces, SPACES, 40)
    execute(of_spaces, IN_SPACES)
    execute(of_spaces, OWNERS, 3)
    execute(of_spaces, MARK)
    with SupabaseMemory.from_conn_string(of_spaces) as memory:
        yield memory


def accounts(leases: list[Lease]) -> list[str]:
    return ["rich" if user.startswith("space:") else user for user in owners(leases)]


def test_somebody_with_many_spaces_has_one_turn_in_a_round(with_spaces: SupabaseMemory, of_spaces: str) -> None:
    for each in ("u", "v"):
        execute(of_spaces, OWNERS.replace("'t', 1", f"'{each}', 1"), 3)
    execute(of_spaces, MARK)
    found = [user for _ in range(6) for user in accounts(claimed(with_spaces, limit=2, slots=None))]
    for number in range(3):
        assert Counter(found[4 * number : 4 * number + 4]) == Counter(
            {"rich": 1, "user 1": 1, "user 2": 1, "user 3": 1}
        ), found


def test_what_nobody_else_waits_for_goes_to_all_spaces(with_spaces: SupabaseMemory) -> None:
    found = owners(claimed(with_spaces, limit=50, slots=None))
    assert len(set(found)) == len(found) == 43
    assert len(set(accounts(claimed(with_spaces)))) == 0


def test_spaces_of_one_person_get_half_of_the_slots_together(with_spaces: SupabaseMemory, of_spaces: str) -> None:
    first = claimed(with_spaces, limit=SLOTS)
    assert Counter(accounts(first))["rich"] == 1
    held = {str(lease.key.user_id): 1 for lease in claimed(with_spaces, limit=2, slots=None)}
    assert len(held) == 2
    execute(of_spaces, OWNERS.replace("'t', 1", "'u', 1"), 3)
    execute(of_spaces, MARK)
    assert "rich" not in accounts(claimed(with_spaces, limit=3, held=held)), "they have two of four"


def test_two_workers_claim_for_spaces_of_one_person_without_a_deadlock(
    with_spaces: SupabaseMemory, of_spaces: str
) -> None:
    with SupabaseMemory.from_conn_string(of_spaces) as other, ThreadPoolExecutor(2) as pool:
        memories = [with_spaces, other] * 20
        found = [
            user for each in pool.map(lambda m: owners(claimed(m, limit=2, slots=None)), memories) for user in each
        ]
    assert len(found) == len(set(found))
    assert len(found) >= 40
