"""The circuit breaker: with a fake clock, with threads and tasks, and with a real server that goes down."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.adapters.transports.breaker import CLOSED, Breaker, BreakingTransport, Circuit
from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import (
    AuthenticationError,
    ConfigurationError,
    InvalidInputError,
    TooLargeError,
    UnavailableError,
)
from langchain_supabase_memory.settings import NO_RETRY, BreakerPolicy
from tests.each_case import each_case
from tests.services.postgres import Cluster

POLICY = BreakerPolicy(failures=3, wait_seconds=1.0, max_wait_seconds=30.0)
CALL = Call("memory_count", {})


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """A transport whose database answers, fails or hangs as the test says."""

    acts_as_user = False
    identity_is_callback = False
    endpoint = EndpointInfo("postgres", None)

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.calls = 0
        self.hold: threading.Event | None = None
        self.ahold: asyncio.Event | None = None
        self.entered = threading.Event()

    def perform(self, call: Call) -> Any:
        self.calls += 1
        self.entered.set()
        if self.hold is not None:
            assert self.hold.wait(30)
        if self.error is not None:
            raise self.error
        return "answer"

    async def aperform(self, call: Call) -> Any:
        self.calls += 1
        if self.ahold is not None:
            await self.ahold.wait()
        if self.error is not None:
            raise self.error
        return "answer"

    def for_token(self, identity: Any) -> Scripted:
        return self

    def close(self) -> None: ...

    async def aclose(self) -> None: ...


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def inner() -> Scripted:
    return Scripted()


@pytest.fixture
def transport(inner: Scripted, clock: Clock) -> BreakingTransport:
    return BreakingTransport(inner, Breaker(POLICY, clock))


def fail(transport: BreakingTransport, inner: Scripted, times: int = 3, code: str | None = None) -> None:
    inner.error = UnavailableError(code=code)
    for _ in range(times):
        with pytest.raises(UnavailableError) as caught:
            transport.perform(CALL)
        assert caught.value is inner.error
    inner.error = None


def refused(transport: BreakingTransport, inner: Scripted) -> bool:
    """Whether a call is refused before it reaches the database."""
    before = inner.calls
    with pytest.raises(UnavailableError, match="Nothing was sent"):
        transport.perform(CALL)
    return inner.calls == before


def test_a_policy_that_means_nothing_is_refused() -> None:
    wrong: list[dict[str, Any]] = [{"failures": 0}, {"wait_seconds": 0}, {"max_wait_seconds": -1}]
    for settings in wrong:
        with pytest.raises(ConfigurationError):
            BreakerPolicy(**settings)


def test_it_opens_after_failures_in_a_row_and_then_refuses_at_once(
    transport: BreakingTransport, inner: Scripted
) -> None:
    assert transport.breaker.circuit == CLOSED
    fail(transport, inner, 2, code="57P03")
    assert transport.breaker.circuit == Circuit("closed", 2, 0.0, "57P03")
    assert transport.perform(CALL) == "answer"
    assert transport.breaker.circuit == CLOSED, "in a row, not in all"
    fail(transport, inner, 3, code="57P03")
    circuit = transport.breaker.circuit
    assert (circuit.state, circuit.failures, circuit.last_code) == ("open", 3, "57P03")
    assert 0.75 <= circuit.retry_in_seconds <= 1.25
    assert refused(transport, inner)
    assert inner.calls == 6


def test_what_is_refused_carries_the_code_and_counts_as_no_failure(
    transport: BreakingTransport, inner: Scripted
) -> None:
    fail(transport, inner, code="57P03")
    for _ in range(10):
        with pytest.raises(UnavailableError) as caught:
            transport.perform(CALL)
        assert caught.value.code == "57P03"
    assert transport.breaker.circuit.failures == 3


def test_it_closes_when_a_try_succeeds(transport: BreakingTransport, inner: Scripted, clock: Clock) -> None:
    fail(transport, inner)
    clock.now += 0.74
    assert refused(transport, inner)
    clock.now += 0.52
    assert transport.perform(CALL) == "answer"
    assert transport.breaker.circuit == CLOSED
    fail(transport, inner, 2)
    assert transport.breaker.circuit.state == "closed"


def test_it_doubles_its_wait_up_to_the_longest(transport: BreakingTransport, inner: Scripted, clock: Clock) -> None:
    fail(transport, inner)
    for wait in (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, *[30.0] * 60):
        found = transport.breaker.circuit.retry_in_seconds
        assert wait * 0.75 <= found <= wait * 1.25
        clock.now += found
        fail(transport, inner, 1)
        assert transport.breaker.circuit.state == "open"
    clock.now += 40
    assert transport.perform(CALL) == "answer"
    fail(transport, inner)
    assert transport.breaker.circuit.retry_in_seconds <= 1.25, "then it begins anew"


@pytest.mark.parametrize(
    "error",
    [
        InvalidInputError("no", code="22P02"),
        UnavailableError(code="40P01"),
        UnavailableError(code="40001"),
        UnavailableError(code="55P03"),
        UnavailableError(code="57014"),
        UnavailableError(code="429"),
        TooLargeError(code="413"),
        TooLargeError(code="PT413"),
        ConfigurationError(code="404"),
        ConfigurationError(code="540"),
        AuthenticationError(code="401"),
    ],
    ids=lambda error: str(error.code),
)
def test_an_error_that_the_database_answered_is_no_failure(
    transport: BreakingTransport, inner: Scripted, clock: Clock, error: Exception
) -> None:
    inner.error = error
    for _ in range(10):
        with pytest.raises(type(error)):
            transport.perform(CALL)
    assert transport.breaker.circuit == CLOSED
    fail(transport, inner)
    clock.now += 2
    inner.error = error
    with pytest.raises(type(error)):
        transport.perform(CALL)
    assert transport.breaker.circuit == CLOSED


@pytest.mark.parametrize("code", [None, "408", "500", "502", "522", "53300", "57P01", "08006"])
def test_that_the_database_is_away_is_a_failure(
    transport: BreakingTransport, inner: Scripted, code: str | None
) -> None:
    fail(transport, inner, code=code)
    assert transport.breaker.circuit.state == "open"


def test_what_cannot_be_read_says_nothing_of_the_database(transport: BreakingTransport, inner: Scripted) -> None:
    """One user's row may make an answer so; the others' calls go on."""
    fail(transport, inner, 2)
    inner.error = UnavailableError(is_away=False)
    for _ in range(5):
        with pytest.raises(UnavailableError):
            transport.perform(CALL)
    assert transport.breaker.circuit == Circuit("closed", 2, 0.0, None)


def test_of_fifty_threads_exactly_one_tries(transport: BreakingTransport, inner: Scripted, clock: Clock) -> None:
    fail(transport, inner)
    clock.now += 2
    inner.hold = threading.Event()
    before = inner.calls
    start = threading.Barrier(50)

    def one() -> str:
        start.wait()
        try:
            return str(transport.perform(CALL))
        except UnavailableError:
            return "refused"

    with ThreadPoolExecutor(50) as threads:
        futures = [threads.submit(one) for _ in range(50)]
        inner.entered.wait(30)
        # The forty-nine others end while the one is still trying.
        while sum(each.done() for each in futures) < 49:
            threading.Event().wait(0.01)
        assert transport.breaker.circuit.state == "half-open"
        inner.hold.set()
        answers = [each.result() for each in futures]
    assert sorted(answers) == ["answer", *["refused"] * 49]
    assert inner.calls == before + 1
    assert transport.breaker.circuit == CLOSED


def test_many_that_fail_at_once_open_it_no_longer_than_one(
    transport: BreakingTransport, inner: Scripted, clock: Clock
) -> None:
    inner.hold = threading.Event()
    inner.error = UnavailableError()
    with ThreadPoolExecutor(40) as threads:
        futures = [threads.submit(transport.perform, CALL) for _ in range(40)]
        while inner.calls < 40:
            threading.Event().wait(0.01)
        inner.hold.set()
        assert all(isinstance(each.exception(), UnavailableError) for each in futures)
    circuit = transport.breaker.circuit
    assert (circuit.state, circuit.failures) == ("open", 3)
    assert circuit.retry_in_seconds <= 1.25


def test_what_was_under_way_does_not_end_another_ones_try(clock: Clock) -> None:
    breaker = Breaker(POLICY, clock)
    assert [breaker.admit() for _ in range(6)] == [False] * 6
    for _ in range(3):
        breaker.failed(UnavailableError(), probe=False)
    clock.now += 2
    assert breaker.admit() is True
    breaker.failed(UnavailableError(), probe=False)  # a late one
    breaker.gave_up(probe=False)  # and one that was cancelled
    assert breaker.circuit.state == "half-open"
    with pytest.raises(UnavailableError):
        breaker.admit()
    breaker.succeeded()
    assert breaker.circuit == CLOSED


async def test_a_cancelled_try_frees_its_place(transport: BreakingTransport, inner: Scripted, clock: Clock) -> None:
    fail(transport, inner)
    clock.now += 2
    inner.ahold = asyncio.Event()
    trying = asyncio.create_task(transport.aperform(CALL))
    await asyncio.sleep(0)
    assert transport.breaker.circuit.state == "half-open"
    with pytest.raises(UnavailableError):
        await transport.aperform(CALL)
    trying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trying
    assert (transport.breaker.circuit.state, transport.breaker.circuit.failures) == ("open", 3)
    inner.ahold.set()
    assert await transport.aperform(CALL) == "answer"
    assert transport.breaker.circuit == CLOSED


async def test_of_fifty_tasks_exactly_one_tries(transport: BreakingTransport, inner: Scripted, clock: Clock) -> None:
    fail(transport, inner)
    clock.now += 2
    before = inner.calls
    inner.ahold = asyncio.Event()
    tasks = [asyncio.create_task(transport.aperform(CALL)) for _ in range(50)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    while len(done) < 49:
        await asyncio.sleep(0)
        done = {each for each in tasks if each.done()}
    inner.ahold.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert inner.calls == before + 1
    assert sum(each == "answer" for each in answers) == 1


def test_users_share_the_circuit(transport: BreakingTransport, inner: Scripted) -> None:
    server = SupabaseMemory(transport, user_id="u")
    user = server.for_token({"sub": "v", "role": "authenticated"})
    fail(transport, inner)
    assert isinstance(user._services.transport, BreakingTransport)
    assert refused(user._services.transport, inner)
    assert user.health().state == server.health().state == "open"


def test_health_says_what_waits(transport: BreakingTransport) -> None:
    memory = SupabaseMemory(transport, user_id="u")
    memory._services.outbox.keep(memory._services.key("t"), [HumanMessage("waiting", id="w")])
    health = memory.health()
    assert (health.state, health.failures, health.retry_in_seconds, health.last_code) == ("closed", 0, 0.0, None)
    assert health.pending == 1


_NODE_IS_AWAY = """
create or replace function memory_private.resolve_owner(p_user_id text) returns text language plpgsql as $function$
begin
  if p_user_id = 'lost' then
    raise exception 'connection to the remote node failed' using errcode = '{code}';
  end if;
  return p_user_id;
end
$function$
"""
_SESSIONS = "select pid from pg_stat_activity where datname = %s and query like '%%memory_count%%'"
"""Those that have counted: one that only tried the address ends by itself."""


@each_case("code", ["08006", "08001", "57P01", "57P03"])
@each_case("color", ["sync", "async"])
async def test_a_node_that_a_living_server_reports_as_away_stops_no_other_user(
    cluster: Cluster, color: str, code: str
) -> None:
    """The error ends a statement and no connection: neither the circuit nor the pool is opened for all."""
    name = cluster.migrated_database()
    address = cluster.conn_string(name)
    cluster.execute(_NODE_IS_AWAY.format(code=code), database=name)
    async with SupabaseMemory.from_conn_string(address, model=None, retry=NO_RETRY) as memory:

        async def count(user_id: str) -> int:
            talk = memory.for_user(user_id).conversation("t")
            found: int = await talk.acount() if color == "async" else talk.count()
            return found

        def sessions() -> set[Any]:
            with psycopg.connect(cluster.conn_string(user="supabase_admin")) as connection:
                return set(connection.execute(_SESSIONS, [name]))

        for _ in range(3):
            assert await count("there") == 0
        before = sessions()
        assert before
        for _ in range(2 * BreakerPolicy().failures):
            with pytest.raises(UnavailableError, match="a node of it") as caught:
                await count("lost")
            assert (caught.value.code, caught.value.is_away) == (code, False)
        assert memory.health().state == "closed"
        assert await count("there") == 0
        assert before <= sessions()  # no connection ended; a pool of threads may have opened one more


@each_case("color", ["sync", "async"])
@pytest.mark.postgres
async def test_a_server_that_goes_away_and_comes_back(color: str) -> None:
    with Cluster() as cluster:
        name = cluster.create_database()
        migrate(cluster.conn_string(name))
        clock = Clock()
        memory = SupabaseMemory.from_conn_string(cluster.conn_string(name), user_id="u", retry=NO_RETRY)
        assert isinstance(memory._services.transport, BreakingTransport)
        memory._services.transport.breaker = Breaker(POLICY, clock)

        async def count() -> int:
            found: int = (
                await memory.conversation("t").acount() if color == "async" else memory.conversation("t").count()
            )
            return found

        memory.conversation("t").append([HumanMessage("before")])
        assert await count() == 1
        cluster.halt()
        for _ in range(3):
            with pytest.raises(UnavailableError):
                await count()
        assert memory.health().state == "open"
        for _ in range(1000):  # at once: none of them reaches out for the server
            with pytest.raises(UnavailableError, match="Nothing was sent"):
                await count()
        clock.now += 2
        with pytest.raises(UnavailableError) as caught:
            await count()
        assert "Nothing was sent" not in str(caught.value), "one of them tried"
        assert (memory.health().state, memory.health().failures) == ("open", 4)
        cluster.resume()
        with pytest.raises(UnavailableError, match="Nothing was sent"):
            await count()
        clock.now += 4
        # The pool may still hold a connection of the old server.
        for _ in range(3):
            try:
                assert await count() == 1
                break
            except UnavailableError:
                clock.now += 60
        assert memory.health().state == "closed"
        assert await count() == 1
        await memory.aclose()
