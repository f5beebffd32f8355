"""Pools of connections: as few as calls need, the warmest first, and no more than the server gives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread, Timer

import psycopg
import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.transports import pools
from langchain_supabase_memory.adapters.transports.pools import AsyncPool, Pool
from langchain_supabase_memory.deadline import limited
from langchain_supabase_memory.transports import PostgresTransport
from tests.services.postgres import Cluster, execute

CALLERS = 8


@pytest.fixture
def small(cluster: Cluster) -> Iterator[str]:
    """A database that takes two connections."""
    name = cluster.migrated_database()
    cluster.execute(f"alter database {name} connection limit 2", superuser=True)
    yield cluster.conn_string(name)
    cluster.execute(f"alter database {name} connection limit -1", superuser=True)


def sessions(conn_string: str, name: str) -> int:
    ((count,),) = execute(conn_string, "select count(*) from pg_stat_activity where application_name = %s", name)
    return int(count)


def test_calls_one_after_the_other_use_one_connection(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(f"{conn_string}?application_name={user_id}", user_id=user_id) as memory:
        conversation = memory.conversation("t")
        for number in range(5):
            conversation.append(f"{number}")
            assert sessions(conn_string, user_id) == 1


def test_a_server_that_gives_few_connections_serves_all_callers(small: str, user_id: str) -> None:
    transport = PostgresTransport(small, pool_size=CALLERS)
    with SupabaseMemory(transport, user_id=user_id, model=None) as memory, ThreadPoolExecutor(CALLERS) as threads:
        together = Barrier(CALLERS)

        def write(number: int) -> None:
            together.wait(30)
            for each in range(10):
                memory.conversation("t").append(f"{number} {each}")

        list(threads.map(write, range(CALLERS)))
        assert memory.conversation("t").count() == 10 * CALLERS
        assert memory.health().state == "closed"


async def test_so_it_does_in_an_event_loop(small: str, user_id: str) -> None:
    transport = PostgresTransport(small, pool_size=CALLERS)
    async with SupabaseMemory(transport, user_id=user_id, model=None) as memory:

        async def write(number: int) -> None:
            for each in range(10):
                await memory.conversation("t").aappend(f"{number} {each}")

        await asyncio.gather(*map(write, range(CALLERS)))
        assert await memory.conversation("t").acount() == 10 * CALLERS


class Connection:
    closed = False

    def close(self) -> None:
        self.closed = True


def refusing(most: int) -> tuple[list[Connection], type[Connection]]:
    """Connections of a server that takes only so many."""
    opened: list[Connection] = []

    class Opened(Connection):
        def __init__(self) -> None:
            if sum(not each.closed for each in opened) >= most:
                raise psycopg.OperationalError("too many")
            opened.append(self)

    return opened, Opened


def test_who_is_refused_waits_for_what_others_use_and_no_longer() -> None:
    opened, opener = refusing(1)
    pool = Pool(opener, 4)
    first = pool.take()
    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(pool.take)
        pool.give_back(first, is_usable=True)
        assert second.result(10) is first
        third = threads.submit(pool.take)
        pool.give_back(first, is_usable=False)
        assert third.result(10) is opened[1], "the other is closed, so one more is given"
    refused = Event()

    def take() -> None:
        with pytest.raises(TimeoutError):
            limited(0.05, pool.take)
        refused.set()

    Thread(target=take).start()
    assert refused.wait(10), "the deadline ends the wait"
    pool.give_back(opened[1], is_usable=True)
    _, opener = refusing(0)
    with pytest.raises(psycopg.OperationalError):
        Pool(opener, 4).take()


async def test_so_it_is_in_an_event_loop() -> None:
    opened, made = refusing(1)

    async def opener() -> Connection:
        await asyncio.sleep(0)
        return made()

    async def close(connection: Connection) -> None:
        connection.close()

    pool = AsyncPool(opener, close, 4)
    first = await pool.take()
    waiting = [asyncio.create_task(pool.take()) for _ in range(3)]
    await asyncio.sleep(0.01)
    waiting[0].cancel()
    await asyncio.sleep(0.01)
    pool.give_back(first, is_usable=True)
    assert await waiting[1] is first
    pool.give_back(first, is_usable=False)
    assert await waiting[2] is opened[1]
    pool.give_back(opened[1], is_usable=True)
    assert await pool.take() is opened[1], "no slot is lost"
    made = refusing(0)[1]
    with pytest.raises(psycopg.OperationalError):
        await AsyncPool(opener, close, 4).take()


def test_who_is_refused_waits_for_what_is_being_opened() -> None:
    opening, go_on, refusals = Event(), Event(), iter([False, True, True])

    def opener() -> Connection:
        if next(refusals):
            raise psycopg.OperationalError("no more connections allowed")
        opening.set()
        assert go_on.wait(10)
        return Connection()

    pool = Pool(opener, 4)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(pool.take)
        assert opening.wait(10)
        second = threads.submit(pool.take)
        time.sleep(0.05)
        go_on.set()
        pool.give_back(first.result(10), is_usable=True)
        assert second.result(10) is first.result()


async def test_so_it_waits_in_an_event_loop() -> None:
    """A pooler refuses at once, while those whom it lets in still sign in."""
    left = [1]

    async def opener() -> Connection:
        left[0] -= 1
        if left[0] < 0:
            raise psycopg.OperationalError("no more connections allowed")
        await asyncio.sleep(0.02)
        return Connection()

    async def close(connection: Connection) -> None:
        connection.close()

    async def call() -> None:
        pool.give_back(await pool.take(), is_usable=True)

    pool = AsyncPool(opener, close, CALLERS)
    await asyncio.gather(*(call() for _ in range(3 * CALLERS)))


async def test_if_none_can_be_opened_everybody_is_told() -> None:
    delays, opened = iter([0.01, 0.03, 0.02, 0.03]), []

    async def opener() -> Connection:
        opened.append(1)
        await asyncio.sleep(next(delays))
        raise psycopg.OperationalError("refused")

    async def close(_: Connection) -> None: ...

    pool = AsyncPool(opener, close, 4)
    refused = await asyncio.gather(*(pool.take() for _ in range(4)), return_exceptions=True)
    assert [type(each) for each in refused] == [psycopg.OperationalError] * 4
    assert len(opened) == 4, "nobody tries again"


def test_so_is_every_thread() -> None:
    together, opened = Barrier(4), []

    def opener() -> Connection:
        opened.append(1)
        together.wait(10)
        time.sleep(0.01 * len(opened))
        raise psycopg.OperationalError("refused")

    pool = Pool(opener, 4)
    with ThreadPoolExecutor(4) as threads:
        refused = [threads.submit(pool.take) for _ in range(4)]
        assert [type(each.exception(10)) for each in refused] == [psycopg.OperationalError] * 4
    assert len(opened) == 4


def test_the_warmest_is_taken_and_what_is_idle_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    _, opener = refusing(3)
    pool = Pool(opener, 3)
    one, two, three = (pool.take() for _ in range(3))
    for each in (one, two, three):
        pool.give_back(each, is_usable=True)
    for _ in range(20):
        now[0] += 60
        assert pool.take() is three
        pool.give_back(three, is_usable=True)
    assert (one.closed, two.closed, three.closed) == (True, True, False)
    pool.close()
    assert three.closed


@pytest.fixture
def address(cluster: Cluster, user_id: str) -> str:
    """A database whose sessions nobody takes over, and a name for them."""
    return f"{cluster.conn_string(cluster.migrated_database())}?application_name={user_id}"


def test_what_a_burst_opened_is_closed_although_no_call_follows(
    address: str, user_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may be waiting for it: a pooler in session mode has 15 in all."""
    monkeypatch.setattr(pools, "_IDLE_SECONDS", 0.3)
    with SupabaseMemory.from_conn_string(address, user_id=user_id) as memory, ThreadPoolExecutor(CALLERS) as threads:
        together = Barrier(CALLERS)

        def read(_: int) -> None:
            together.wait(30)
            memory.conversation("t").read()

        list(threads.map(read, range(CALLERS)))
        for _ in range(200):
            if sessions(address.partition("?")[0], user_id) == 1:
                break
            time.sleep(0.05)
        assert sessions(address.partition("?")[0], user_id) == 1, "the warmest stays"
        assert memory.conversation("t").count() == 0


def test_a_process_that_may_start_no_thread_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Timer) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Timer, "start", refused)
    pool = Pool(Connection, 2)
    for each in [pool.take(), pool.take()]:
        pool.give_back(each, is_usable=True)
    pool.close()


async def test_so_it_is_of_an_event_loop(address: str, user_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "_IDLE_SECONDS", 0.3)
    async with SupabaseMemory.from_conn_string(address, user_id=user_id) as memory:
        await asyncio.gather(*(memory.conversation("t").aread() for _ in range(CALLERS)))
        for _ in range(200):
            if sessions(address.partition("?")[0], user_id) == 1:
                break
            await asyncio.sleep(0.05)
        assert sessions(address.partition("?")[0], user_id) == 1
        assert await memory.conversation("t").acount() == 0
