"""Cancelled calls leave every connection usable: the next call succeeds immediately, over both transports."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import anyio
import psutil
import psycopg
import pytest
import yarl
from supabase import AsyncClient, AsyncClientOptions

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.transports.endpoint import Endpoint
from langchain_supabase_memory.adapters.transports.postgres import POOL_SIZE
from langchain_supabase_memory.adapters.transports.supabase import MAX_IN_FLIGHT
from langchain_supabase_memory.deadline import AbandonedError, apart, awithin, hold, limited, seconds_left, within
from langchain_supabase_memory.errors import UnavailableError
from langchain_supabase_memory.settings import RetryPolicy
from tests.services.data_api import DataApi, token
from tests.services.postgres import Cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

AT_ONCE = 40
NO_RETRY = RetryPolicy(attempts=1)


@pytest.fixture(params=["direct", "data_api", "client"])
async def memory(request: pytest.FixtureRequest, user_id: str) -> AsyncIterator[SupabaseMemory]:
    """A memory through a caller, or over a client of the application's, which is closed in the end."""
    if request.param == "direct":
        yield SupabaseMemory.from_conn_string(request.getfixturevalue("conn_string"), user_id=user_id, retry=NO_RETRY)
        return
    url, key = request.getfixturevalue("data_api").url, token("service_role")
    if request.param == "data_api":
        yield SupabaseMemory.from_url(url, key, rest_path="", user_id=user_id, retry=NO_RETRY)
        return
    client = AsyncClient(url, key, AsyncClientOptions())
    client.rest_url = yarl.URL(url)
    memory = SupabaseMemory.from_client(client, user_id=user_id, retry=NO_RETRY)
    memory._services.transport.inner._clients.endpoint = Endpoint(url, key, 10)  # type: ignore[attr-defined]
    yield memory
    await client.postgrest.session.aclose()


# --- Ways to cut a call short; each after so many steps of the event loop


async def steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def by_the_task(call: Callable[[], Awaitable[Any]], after: int) -> None:
    task = asyncio.ensure_future(call())
    await steps(after)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def by_a_time_out(call: Callable[[], Awaitable[Any]], after: int) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(after / 4_000):
            await call()


async def by_a_server_whose_client_is_gone(call: Callable[[], Awaitable[Any]], after: int) -> None:
    """As Starlette ends a response: a scope of anyio, which cancels again at each step until its block has ended."""
    async with anyio.create_task_group() as group:
        group.start_soon(call)  # type: ignore[arg-type]
        await steps(after)
        group.cancel_scope.cancel()


async def twice(call: Callable[[], Awaitable[Any]], after: int) -> None:
    task = asyncio.ensure_future(call())
    await steps(after)
    task.cancel()
    await steps(after % 3)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


WAYS = [by_the_task, by_a_time_out, by_a_server_whose_client_is_gone, twice]


async def cut_short(memory: SupabaseMemory, count: int) -> None:
    """Cut so many calls short at all steps of their way, and then make as many at once as there are connections."""
    talk = memory.conversation("t")
    await talk.acount()
    for first in range(0, count, AT_ONCE):
        await asyncio.gather(
            *(
                WAYS[place % len(WAYS)](
                    talk.acount if place % 3 else partial(talk.aadd_turn, f"q{place}", "a"), place * 7 % 60
                )
                for place in range(first, min(first + AT_ONCE, count))
            )
        )
    async with asyncio.timeout(30):  # for ever, if a place was lost
        await asyncio.gather(*(talk.acount() for _ in range(4 * MAX_IN_FLIGHT)))
        assert (await talk.aadd_turn("after", "stored")).appended == 2
    await memory.aclose()


@pytest.mark.data_api
async def test_a_call_after_cancelled_ones_succeeds(memory: SupabaseMemory) -> None:
    await cut_short(memory, 400)


@pytest.mark.slow
@pytest.mark.data_api
async def test_a_call_after_ten_thousand_cancelled_ones_succeeds(memory: SupabaseMemory) -> None:
    await cut_short(memory, 10_000)


# --- Sync calls that nobody waits for any more


LIMITS = pytest.mark.parametrize("limit", [within, limited])


def left_alone(memory: SupabaseMemory, count: int, limit: Callable[..., Any]) -> None:
    """Wait for so many calls only for a moment, from several threads, and then make as many as there are connections."""
    talk = memory.conversation("t")
    talk.count()

    def leave(place: int) -> None:
        with suppress(TimeoutError, AbandonedError):
            limit(place * 7 % 60 / 4_000, lambda: talk.add_turn(f"q{place}", "a " * 500))

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(leave, range(count)))
        assert limit(30, lambda: talk.add_turn("after", "stored")).appended == 2
        list(threads.map(lambda _: limit(30, talk.count), range(4 * POOL_SIZE)))
    memory.close()


@pytest.mark.data_api
@LIMITS
def test_a_call_after_ones_that_nobody_waited_for_succeeds(memory: SupabaseMemory, limit: Callable[..., Any]) -> None:
    left_alone(memory, 200, limit)


@pytest.mark.slow
@pytest.mark.data_api
@LIMITS
def test_a_call_after_ten_thousand_that_nobody_waited_for_succeeds(
    memory: SupabaseMemory, limit: Callable[..., Any]
) -> None:
    left_alone(memory, 10_000, limit)


@LIMITS
def test_a_statement_that_nobody_waits_for_is_ended_at_the_server(
    conn_string: str, user_id: str, limit: Callable[..., Any]
) -> None:
    memory = SupabaseMemory.from_conn_string(conn_string, user_id=user_id, retry=NO_RETRY)
    talk = memory.conversation("t")
    talk.add_turn("hello", "hello")
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%memory_append%'"
    with psycopg.connect(conn_string) as holder, psycopg.connect(conn_string, autocommit=True) as other:
        holder.execute("select from memory.conversations where user_id = %s for update", [user_id])
        for _ in range(2 * POOL_SIZE):  # each would hold a connection as long as the lock is held
            with pytest.raises(TimeoutError):
                limit(0.1, lambda: talk.add_turn("waits", "waits"))
        assert limit(30, talk.count) == 2
        for _ in range(100):
            if other.execute(waiting).fetchone() == (0,):
                break
            time.sleep(0.05)
        assert other.execute(waiting).fetchone() == (0,)
        holder.rollback()
    assert talk.add_turn("after", "stored").appended == 2
    memory.close()


@contextmanager
def stopped(cluster: Cluster) -> Iterator[None]:
    """A server whose processes all stand still: connections are accepted, and nothing is answered."""
    postmaster = psutil.Process(int((cluster.folder / "data" / "postmaster.pid").read_text().split()[0]))
    processes = [postmaster, *postmaster.children(recursive=True)]
    try:
        for process in processes:
            process.suspend()
        yield
    finally:
        for process in processes:
            process.resume()


@pytest.mark.slow
@pytest.mark.data_api
@pytest.mark.parametrize("caller", ["direct", "data_api"])
@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_server_that_stood_still_is_used_at_once_when_it_goes_on(caller: str, color: str) -> None:
    with Cluster() as cluster:
        database = cluster.migrated_database()
        with DataApi(cluster, database) as api:
            url = api.url
            memory = (
                SupabaseMemory.from_conn_string(cluster.conn_string(database), user_id="u", retry=NO_RETRY)
                if caller == "direct"
                else SupabaseMemory.from_url(url, token("service_role"), rest_path="", user_id="u", retry=NO_RETRY)
            )
            if color == "sync":
                with ThreadPoolExecutor(60) as threads:
                    _stood_still(cluster, memory, threads)
            else:
                asyncio.run(_astood_still(cluster, memory))


def _stood_still(cluster: Cluster, memory: SupabaseMemory, threads: ThreadPoolExecutor) -> None:
    talk = memory.conversation("t")
    talk.count()

    def leave(place: int) -> None:
        with suppress(TimeoutError, AbandonedError, UnavailableError):
            limited(1, lambda: talk.add_turn(f"q{place}", "a"))

    with stopped(cluster):
        list(threads.map(leave, range(60)))
    assert within(5, lambda: talk.add_turn("after", "stored")).appended == 2
    memory.close()


async def _astood_still(cluster: Cluster, memory: SupabaseMemory) -> None:
    talk = memory.conversation("t")
    await talk.acount()

    async def leave(place: int) -> None:
        with suppress(TimeoutError, UnavailableError):
            await awithin(1, talk.aadd_turn(f"q{place}", "a"))

    with stopped(cluster):
        await asyncio.gather(*(leave(place) for place in range(60)))
    assert (await awithin(5, talk.aadd_turn("after", "stored"))).appended == 2
    await memory.aclose()


# --- What is opened for one call


async def test_a_connection_that_is_cancelled_while_it_is_secured_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        memory = SupabaseMemory.from_url(f"https://127.0.0.1:{silent.getsockname()[1]}", "key", user_id="u")
        talk = memory.conversation("t")
        connections = []
        for _ in range(30):
            task = asyncio.ensure_future(talk.acount())
            await asyncio.sleep(0.05)  # it waits for the other end's part of the handshake
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.01)
            connections.append(len(psutil.Process().net_connections()))
        assert connections[-1] == connections[0]
        await memory.aclose()


# --- Waiting, by the deadline alone


@pytest.mark.parametrize(("outer", "inner"), product((within, limited), repeat=2))
def test_what_is_left_is_the_least_of_all_deadlines(outer: Callable[..., Any], inner: Callable[..., Any]) -> None:
    assert outer(5, lambda: seconds_left(7)) <= 5
    assert outer(5, lambda: inner(60, lambda: seconds_left(100))) <= 5
    with pytest.raises(TimeoutError):
        outer(0.05, lambda: inner(60, lambda: apart(lambda: time.sleep(0.2))))
    assert seconds_left(7) == 7


def test_nothing_is_begun_after_the_deadline() -> None:
    ended = threading.Event()
    begun: list[str] = []

    def late() -> None:
        try:
            ended.wait()
            seconds_left(60)
            begun.append("a wait")
        except AbandonedError:
            begun.append("abandoned")
        finally:
            done.set()

    done = threading.Event()
    with pytest.raises(TimeoutError):
        within(0.01, late)
    ended.set()
    done.wait()
    assert begun == ["abandoned"]


def test_a_lock_is_waited_for_no_longer_than_the_deadline() -> None:
    lock, failed, done = threading.Lock(), list[type[BaseException]](), threading.Event()

    def take() -> None:
        try:
            hold(lock)
        except AbandonedError as error:
            failed.append(type(error))
        finally:
            done.set()

    with lock:
        with suppress(TimeoutError):
            within(0.05, take)
        assert done.wait(30)
    assert failed == [AbandonedError]


def test_a_thread_that_is_begun_within_a_deadline_has_none() -> None:
    def begin() -> list[float]:
        seconds: list[float] = []
        thread = threading.Thread(target=lambda: seconds.append(seconds_left(7)))
        thread.start()
        thread.join()
        return seconds

    assert within(5, begin) == [7]


def test_what_has_a_time_limit_of_its_own_needs_no_thread() -> None:
    assert limited(5, threading.current_thread) is threading.current_thread()
    assert limited(5, lambda: apart(threading.current_thread)) is not threading.current_thread()
    assert apart(threading.current_thread) is threading.current_thread()
