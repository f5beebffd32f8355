"""One cause is logged once until it is resolved, and `health()` records its origin."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.adapters.transports.breaker import Breaker, BreakingTransport
from langchain_supabase_memory.errors import (
    EmbeddingError,
    InvalidInputError,
    PermissionDeniedError,
    SupabaseMemoryError,
    UnavailableError,
    from_code,
)
from langchain_supabase_memory.memory.health import HealthTracker
from langchain_supabase_memory.settings import BreakerPolicy, RetryPolicy
from tests.adapters.test_breaker import CALL, Clock, Scripted
from tests.chat_models import ScriptedModel

LOGGER = "langchain_supabase_memory"
ONCE = RetryPolicy(attempts=1)
NOWHERE = "postgresql://a:b@127.0.0.1:1/x"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def causes(clock: Clock) -> HealthTracker:
    return HealthTracker(Breaker(BreakerPolicy()), clock=clock)


def fails(causes: HealthTracker, error: Exception, function: str = "memory_append", part: Any = "database") -> None:
    with pytest.raises(type(error)), causes.watching(part, function=function):
        raise error


def works(causes: HealthTracker, function: str = "memory_append", part: Any = "database") -> None:
    with causes.watching(part, function=function):
        pass


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records if record.levelno >= logging.INFO]


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOGGER)


def test_an_outage_is_one_line_whatever_words_it_comes_in(
    causes: HealthTracker, caplog: pytest.LogCaptureFixture
) -> None:
    for code in ("57P01", "PGRST000", "08006", "57P03", "PGRST001", None):
        fails(causes, UnavailableError(f"away as {code}", code=code))
        fails(causes, UnavailableError(f"the next try is in {code}", was_sent=False), "memory_context")
    (cause,) = causes.failures
    assert (cause.reason, cause.code, cause.times) == ("away as 57P01", "57P01", 6)
    assert cause.since <= cause.last
    works(causes, "memory_count")
    assert causes.failures == ()
    (warning, info) = lines(caplog)
    assert warning[0] == "WARNING"
    assert "away as 57P01" in warning[1]
    assert info[0] == "INFO"
    assert "database works again, after 6 failures" in info[1]


def test_each_outage_is_told_but_one_that_comes_and_goes_is_bounded(
    causes: HealthTracker, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(40):
        fails(causes, UnavailableError(code="57P01"))
        works(causes)
    assert [level for level, _ in lines(caplog)] == ["WARNING", "INFO"] * 5
    clock.now += 601
    fails(causes, UnavailableError(code="57P01"))
    assert len(lines(caplog)) == 11


def test_a_read_mends_no_write_and_anything_mends_an_outage(causes: HealthTracker) -> None:
    for code in ("53100", "25006", "42501", "57014"):
        fails(causes, from_code(code))
        works(causes, "memory_count")
        assert [each.code for each in causes.failures] == [code]
        works(causes)
        assert causes.failures == ()
    fails(causes, UnavailableError(code="57P03"))
    works(causes, "memory_count")
    assert causes.failures == ()


def test_what_is_another_cause_is_another_line(causes: HealthTracker, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        fails(causes, UnavailableError(code="57P03"))
        fails(causes, PermissionDeniedError(code="42501"))
        fails(causes, EmbeddingError("no key"), part="embedder")
    assert len(lines(caplog)) == 3
    assert [(each.part, each.code) for each in causes.failures] == [("database", "42501"), ("embedder", None)]


def test_a_failure_is_logged_as_usual_once_and_then_for_who_debugs(causes: HealthTracker) -> None:
    def level(error: SupabaseMemoryError, what: str = "Reading failed") -> int:
        return causes.level(what, error, logging.ERROR)

    outage = [level(UnavailableError("one")), level(UnavailableError("two")), level(UnavailableError(was_sent=False))]
    assert outage == [logging.ERROR, logging.DEBUG, logging.DEBUG]
    assert level(UnavailableError(), "Writing failed") == logging.ERROR
    assert [level(EmbeddingError()), level(EmbeddingError())] == [logging.ERROR, logging.DEBUG]
    # What is one call's own is no outage.
    assert [level(from_code("PT404")), level(from_code("PT404"))] == [logging.ERROR] * 2
    works(causes, "memory_count")
    assert level(UnavailableError()) == logging.ERROR


def test_what_is_done_again_and_again_is_logged_once_in_ten_minutes_whatever_fails(
    causes: HealthTracker, clock: Clock
) -> None:
    def level(error: Exception, what: str = "A chore was left undone") -> int:
        return causes.level(what, error, logging.WARNING, repeats=True)

    for error in (ConnectionError("a"), InvalidInputError("b"), UnavailableError(code="57P01")):
        assert [level(error) for _ in range(3)] == [logging.WARNING, logging.DEBUG, logging.DEBUG]
    assert level(TimeoutError()) == level(ConnectionError("a"), "Another") == logging.WARNING
    clock.now += 601
    assert [level(ConnectionError("a")) for _ in range(2)] == [logging.WARNING, logging.DEBUG]
    for number in range(5_000):
        level(InvalidInputError(str(number)))
    assert len(causes._at) <= 1_000


def test_the_breaker_says_when_it_tries_again_and_not_in_the_reason() -> None:
    inner, clock = Scripted(), Clock()
    transport = BreakingTransport(inner, Breaker(BreakerPolicy(failures=1), clock))
    inner.error = UnavailableError(code="57P01")
    with pytest.raises(UnavailableError):
        transport.perform(CALL)
    reasons = set()
    for _ in range(5):
        with pytest.raises(UnavailableError, match="next try is in") as caught:
            transport.perform(CALL)
        clock.now += 0.1
        reasons.add(caught.value.reason)
        assert not caught.value.was_sent
        assert 0 < (caught.value.retry_after_seconds or 0) <= 2
    assert len(reasons) == 1


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_an_agent_in_an_outage_logs_two_lines_for_each_part_of_it(
    color: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory = SupabaseMemory.from_conn_string(NOWHERE, user_id="u", model=None, retry=ONCE)
    memory._services.causes._breaker.has_answered = True
    agent = create_agent(ScriptedModel(script=lambda _: "answered"), middleware=[SupabaseMemoryMiddleware(memory)])
    for number in range(20):
        asked: Any = {"messages": [HumanMessage("hi")]}
        config: Any = {"configurable": {"thread_id": str(number)}}
        answer = agent.invoke(asked, config) if color == "sync" else await agent.ainvoke(asked, config)
        assert answer["messages"][-1].text == "answered"
    found = lines(caplog)
    assert len(found) <= 4, found
    assert [level for level, _ in found].count("WARNING") == 1
    (cause,) = memory.health().causes
    assert "could not be reached" in cause.reason
    assert memory.health().failures == cause.times
    await memory.aclose()
