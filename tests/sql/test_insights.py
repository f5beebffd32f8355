"""Counts over all users: what is given out, and that nobody can tell by it whether somebody is among them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.errors import InvalidInputError
from tests.spaces import call

Server = psycopg.Connection[Any]
TODAY = datetime.now(UTC).date()
TRIES = 1000
WEEK = 7
SCALE = 80.0
"""Of the noise, at k = 5."""


@pytest.fixture
def server(conn_string: str) -> Iterator[Server]:
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute("delete from memory.usage_days where agent_id like 'insight%'")
        yield connection
        connection.execute("delete from memory.usage_days where agent_id like 'insight%'")


def fill(server: Server, agent_id: str, users: int, days: int = 1, prefix: str = "u", before: date = TODAY) -> None:
    """Have so many users talk on each of the last whole days before one; all of them thank."""
    server.execute(
        "insert into memory.usage_days (user_id, agent_id, day, turns, signals)"
        " select %s || n, %s, %s::date - d, 1, '{0,0,2,0,0,0,0,0}' from generate_series(1, %s) n, generate_series(1, %s) d",
        [prefix, agent_id, before, users, days],
    )


def cells(server: Server, agent_id: str, **asked: Any) -> dict[tuple[str, str], int]:
    answer = call(server, "worker_insights", agent_id=agent_id, **asked)
    return {(each["day"], each["what"]): each["users"] for each in answer["cells"]}


def test_many_users_are_counted_and_few_are_not(server: Server) -> None:
    fill(server, "insight many", 3000)
    found = cells(server, "insight many")
    day = str(TODAY - timedelta(days=1))
    assert set(found) == {(day, "talked"), (day, "thanks")}
    assert all(abs(users - 3000) < 20 * SCALE for users in found.values())
    assert cells(server, "insight many") == found, "asked again, the same"
    assert cells(server, "insight many", k=10**6) == {}
    fill(server, "insight few", 4)
    assert cells(server, "insight few") == {}, "however the noise falls"
    assert cells(server, "insight few", k=0) == {}
    assert call(server, "worker_insights", k=-9)["least"] == 405


def test_today_is_not_given_out(server: Server) -> None:
    server.execute(
        "insert into memory.usage_days (user_id, agent_id, day, turns) select 'u' || n, 'insight today', %s, 1"
        " from generate_series(1, 500) n",
        [TODAY],
    )
    assert cells(server, "insight today", to=TODAY + timedelta(days=3)) == {}


def test_one_user_less_draws_other_noise(server: Server) -> None:
    fill(server, "insight drawn", 3000, days=30)
    before = cells(server, "insight drawn", **{"from": TODAY - timedelta(days=40)})
    server.execute("delete from memory.usage_days where agent_id = 'insight drawn' and user_id = 'u1'")
    after = cells(server, "insight drawn", **{"from": TODAY - timedelta(days=40)})
    differences = [before[each] - after[each] for each in before if each in after]
    assert len(differences) == 60
    assert sum(each == 1 for each in differences) < 10, "a difference is no user"


def test_no_call_lowers_k(server: Server) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        server.execute("update memory_private.insight_rules set k = 4")
    with server.transaction(force_rollback=True):
        server.execute("set local role service_role")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            server.execute("update memory_private.insight_rules set k = 5")


def test_who_is_signed_in_asks_nothing_and_writes_nothing(server: Server) -> None:
    for refused in (
        "select public.memory_worker_insights()",
        "select * from memory.insights",
        "insert into memory.usage_days (user_id, agent_id, day) values ('u', 'insight x', '2026-01-01')",
        "select * from memory_private.insight_rules",
    ):
        with server.transaction(force_rollback=True):
            server.execute("select set_config('request.jwt.claims', '{\"sub\": \"u\"}', true)")
            server.execute("set local role authenticated")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                server.execute(refused.encode())


def likelihood(shown: float | None, users: int, least: float) -> float:
    """Return how likely an answer is, if so many users share the cell."""

    def below(value: float) -> float:
        return 0.5 * math.exp(value / SCALE) if value < 0 else 1 - 0.5 * math.exp(-value / SCALE)

    if shown is None:
        return below(least - users)
    return below(shown + 0.5 - users) - below(shown - 0.5 - users)


@pytest.mark.parametrize("others", [4, 404])
def test_nobody_tells_whether_somebody_is_among_them(server: Server, others: int) -> None:
    """Who knows both databases and the noise says which one it is as by guessing; overlapping answers say no more.

    The days and the secrets are fixed, so that the tries are the same ones each time.
    """
    drawn, before = random.Random(others), date(2026, 3, 1)
    agent, overlapping = f"insight attack {others}", ((7, 2), (6, 1), (4, 4))
    fill(server, agent, others, days=WEEK, before=before)
    right = 0
    with server.transaction(force_rollback=True):
        for number in range(TRIES):
            is_in = drawn.random() < 0.5
            with server.transaction(force_rollback=True):
                server.execute("update memory_private.insight_rules set secret = %s", [drawn.randbytes(36).hex()])
                if is_in:
                    fill(server, agent, 1, days=WEEK, prefix="target", before=before)
                found = cells(
                    server, agent, **{"from": before - timedelta(days=WEEK), "to": before - timedelta(days=1)}
                )
                first, last = overlapping[number % len(overlapping)]
                days = {str(before - timedelta(days=day)) for day in range(last, first + 1)}
                again = cells(
                    server, agent, **{"from": before - timedelta(days=first), "to": before - timedelta(days=last)}
                )
                assert again == {cell: users for cell, users in found.items() if cell[0] in days}
            evidence = 0.0
            for day in range(1, WEEK + 1):
                shown = found.get((str(before - timedelta(days=day)), "talked"))
                if others < 4:
                    continue
                with_target = likelihood(shown, others + 1, 405) if others + 1 >= 5 else float(shown is None)
                without = likelihood(shown, others, 405) if others >= 5 else float(shown is None)
                evidence += math.log(max(with_target, 1e-12)) - math.log(max(without, 1e-12))
            guess = evidence > 0 if evidence else drawn.random() < 0.5
            right += guess == is_in
    share = right / TRIES
    assert share < 0.5 + 3 * 0.5 / math.sqrt(TRIES)


def test_without_a_secret_the_same_attack_is_right(server: Server) -> None:
    """The control: exact counts tell it at once."""
    fill(server, "insight control", 60)
    exact = "select count(*) from memory.usage_days where agent_id = 'insight control'"
    before = server.execute(exact.encode()).fetchall()
    fill(server, "insight control", 1, prefix="target")
    assert server.execute(exact.encode()).fetchall() != before


def test_insights_as_values(conn_string: str, server: Server) -> None:
    fill(server, "insight values", 3000)
    with SupabaseMemory.from_conn_string(conn_string, model=None) as memory:
        found = memory.usage.insights(agent_id="insight values")
        assert (found.k, found.least, found.error) == (5, 405, 240)
        assert {each.what for each in found.counts} == {"talked", "thanks"}
        with pytest.raises(InvalidInputError, match="k must be"):
            memory.usage.insights(k=-1)
    rows = server.execute("select what from memory.insights where agent_id = 'insight values'").fetchall()
    assert {what for (what,) in rows} == {"talked", "thanks"}
