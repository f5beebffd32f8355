"""Lists and a worker's looks read the page that they return, however much there is beside it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.counting import NEVER, OTHERS, SHORT_ONES, most_read
from tests.each_case import each_case
from tests.services.postgres import Cluster

CONVERSATIONS = """
insert into memory.conversations (user_id, agent_id, thread_id, created_at, updated_at, next_sequence)
select 'u', case when n = 7777 then 'rare' when n % 10 = 0 then 'other' else 'default' end, 'thread-' || n, t, t, 1
from generate_series(1, 8000) n, lateral (select now() - (n * 7919 % 8000) * interval '20 minutes') x (t)
"""
"""One owner's conversations of four months, three an hour, in no order."""


@pytest.fixture(scope="module", params=[NEVER, "analyzed", OTHERS])
def connection(planner: Cluster, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    name = planner.migrated_database()
    planner.leave_unvacuumed(name, "memory.conversations")
    planner.execute(SHORT_ONES, database=name)
    planner.execute("update memory.conversations set next_sequence = 4", database=name)
    if request.param == OTHERS:
        planner.execute("analyze", database=name)
    planner.execute(CONVERSATIONS, database=name)
    if request.param == "analyzed":
        planner.execute("analyze", database=name)
    with psycopg.connect(planner.conn_string(name), autocommit=True) as connection:
        yield connection


PLACE = "to_char(now() - interval '40 days', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') || '/' || md5('')::uuid"


@each_case(
    ("page", "most"),
    [
        ("null", 70),
        (f"p_after => {PLACE}", 70),
        (f"p_before => {PLACE}", 70),
        ("p_until => now() - interval '70 days'", 70),
        ("p_since => now() - interval '9 days'", 70),
        ("p_state => 'active'", 70),
        ("p_agent_id => 'default'", 70 + 201),
        ("p_agent_id => 'rare'", 10),
        ("p_thread_id => 'thread-77'", 10),
    ],
)
def test_a_page_of_conversations_reads_a_page(connection: psycopg.Connection, page: str, most: int) -> None:
    # The last hour of a page is read whole, and of an agent at most 201 conversations are looked up before.
    assert most_read(connection, f"select public.memory_conversations('u', {page})") <= most


@each_case(
    ("look", "most"), [("365 * 86400", 5), ("60 * 86400", 110), ("0", 110), ("60 * 86400, p_user_id => 'u'", 110)]
)
def test_a_look_for_idle_conversations_reads_a_page(connection: psycopg.Connection, look: str, most: int) -> None:
    assert most_read(connection, f"select public.memory_worker_idle({look})") <= most
