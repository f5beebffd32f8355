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


WORK = """
insert into memory_private.work (user_id, conversation_id, run_after, lease_token, lease_until, dead_at)
select c.user_id, c.id, case when n <= 7 then 'infinity' else now() end,
       case when n between 8 and 10 then gen_random_uuid() end,
       case when n between 8 and 10 then now() + interval '1 hour' end, case when n <= 7 then now() end
from (select c.*, row_number() over (order by c.updated_at) as n from memory.conversations c) c
on conflict (user_id, conversation_id) do update
  set run_after = excluded.run_after, lease_token = excluded.lease_token, lease_until = excluded.lease_until,
      dead_at = excluded.dead_at
"""
"""All of 13,000 are due, but for three that are leased and seven that were given up."""


SUMMARY = """
insert into memory.conversation_summaries (
  user_id, conversation_id, number, from_sequence, to_sequence, message_ids, content, characters, tokens,
  covered_characters, covered_tokens)
select c.user_id, c.id, 1, 0, 1, '{}', 'a kiln', 6, 2, 0, 0 from memory.conversations c
where c.user_id = 'user-999' and c.thread_id = 'thread-1'
"""


def filled(planner: Cluster, *, after_others: bool = False) -> str:
    name = planner.migrated_database()
    planner.leave_unvacuumed(name, "memory.conversations")
    planner.execute(SHORT_ONES, database=name)
    planner.execute("update memory.conversations set next_sequence = 4", database=name)
    if after_others:
        planner.execute("analyze", database=name)
    planner.execute(CONVERSATIONS, database=name)
    planner.execute(WORK, database=name)
    return name


@pytest.fixture(scope="module", params=[NEVER, "analyzed", OTHERS])
def connection(planner: Cluster, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    name = filled(planner, after_others=True) if request.param == OTHERS else planner.copy_made_by(filled)
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


def test_a_look_for_what_is_behind_reads_a_page_though_work_is_taken_for_empty(planner: Cluster) -> None:
    name = planner.migrated_database()
    with psycopg.connect(planner.conn_string(name, "supabase_admin"), autocommit=True) as connection:
        connection.execute("vacuum analyze")
    planner.leave_unvacuumed(name, "memory_private.work")
    planner.execute(CONVERSATIONS, database=name)
    with psycopg.connect(planner.conn_string(name), autocommit=True) as connection:
        place = "p_after_user => 'u', p_after => '00000000-0000-0000-0000-000000000000'"
        assert most_read(connection, f"select public.memory_worker_rederive(p_limit => 500, {place})") <= 500 * 6


def test_the_queue_is_counted_up_to_10000(connection: psycopg.Connection) -> None:
    assert most_read(connection, "select public.memory_worker_queue()") <= 10_000 + 1000
    row = connection.execute("select public.memory_worker_queue()").fetchone()
    assert row is not None
    queue = row[0]
    assert (queue["has_more"], queue["leases"], queue["dead"], queue["next_seconds"]) == (True, 3, 7, 0)
    assert 9_900 <= queue["due"] <= queue["depth"] <= 10_000
    assert queue["lag_seconds"] > 0


def test_the_queue_of_an_owner_is_counted_whole(connection: psycopg.Connection) -> None:
    row = connection.execute("select public.memory_worker_queue('user-7')").fetchone()
    assert row is not None
    assert (row[0]["has_more"], row[0]["due"], row[0]["depth"]) == (False, 5, 5)


@pytest.mark.parametrize("connection", ["analyzed", OTHERS], indirect=True)  # autovacuum sees to that within a minute
@each_case("state", ["running", "dead"])
def test_work_in_hand_or_given_up_is_found_beside_all_that_is_due(connection: psycopg.Connection, state: str) -> None:
    call = f"select public.memory_status(p_state => '{state}')"
    assert most_read(connection, call) <= 100


def test_a_look_for_summaries_without_a_vector_looks_at_1000_conversations(connection: psycopg.Connection) -> None:
    call = "select public.memory_unembedded_summaries('words')"
    assert most_read(connection, call) <= 2200
    row = connection.execute(call).fetchone()
    assert row is not None
    assert row[0]["summaries"] == []
    assert row[0]["after"] is not None


def test_summaries_without_a_vector_are_found_beyond_a_page_that_has_none(connection: psycopg.Connection) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute(SUMMARY.encode())
        found, pages = [], 0
        after: dict[str, str] | None = {}
        while after is not None:
            row = connection.execute(
                "select public.memory_unembedded_summaries('words', p_after_user => %s, p_after => %s)",
                [after.get("user"), after.get("id")],
            ).fetchone()
            assert row is not None
            found += [each["user_id"] for each in row[0]["summaries"]]
            after, pages = row[0]["after"], pages + 1
    assert (found, pages) == (["user-999"], 14)


_ANALYZED = pytest.mark.parametrize("connection", ["analyzed"], indirect=True)


def buffers(connection: psycopg.Connection, statement: str) -> int:
    """Return the fewest blocks of tables and indexes that one of eight calls reads: the others also plan it."""
    counts = []
    for _ in range(8):
        with connection.transaction(force_rollback=True):
            rows = connection.execute(f"explain (analyze, buffers, format json) {statement}".encode()).fetchall()
        plan = rows[0][0][0]["Plan"]
        counts.append(int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]))
    return min(counts)


@_ANALYZED
@each_case(
    "look",
    [
        """memory_forget_expired('{"messages": 1000}',""",
        "memory_worker_rederive(p_index => false,",
        "memory_index_due(",
        "memory_due(p_messages => 0,",
        "memory_unembedded_summaries('words',",
        "memory_status(",
        "memory_status(p_state => 'due',",
    ],
)
def test_a_late_page_of_an_owner_is_not_read_from_their_first_row(connection: psycopg.Connection, look: str) -> None:
    """A row comparison beside an equation is only a filter: no row is returned, but each entry before is read."""
    ids = connection.execute("select id from memory.conversations where user_id = 'u' order by id").fetchall()
    first, late = (
        buffers(
            connection, f"select public.{look} p_limit => 5, p_user_id => 'u', p_after_user => 'u', p_after => '{id_}')"
        )
        for (id_,) in (ids[0], ids[6500])
    )
    assert late <= first + 15


def test_a_late_page_of_what_is_idle_is_a_page(planner: Cluster) -> None:
    name = planner.copy_made_by(filled)
    with psycopg.connect(planner.conn_string(name, "supabase_admin"), autocommit=True) as connection:
        connection.execute("delete from memory_private.work where user_id = 'u'")
        connection.execute("vacuum analyze")
    with psycopg.connect(planner.conn_string(name), autocommit=True) as connection:
        ids = connection.execute("select id from memory.conversations where user_id = 'u' order by id").fetchall()
        place = f"p_after_user => 'u', p_after => '{ids[6500][0]}'"
        assert buffers(connection, f"select public.memory_status('u', p_state => 'idle', p_limit => 5, {place})") <= 60


ITEMS = """
insert into memory.store_items (user_id, namespace, key, value)
select 'u', '{kilns}', lpad(n::text, 5, '0'), '{"kiln": "blue"}'
from generate_series(1, 8000) n
"""


def test_a_late_page_of_an_owners_items_is_not_read_from_their_first(planner: Cluster) -> None:
    name = planner.migrated_database()
    planner.execute(ITEMS, database=name)
    planner.execute("analyze", database=name)
    with psycopg.connect(planner.conn_string(name), autocommit=True) as connection:
        [(path,)] = connection.execute("select memory_private.store_path('{kilns}')").fetchall()
        first, late = (
            buffers(
                connection,
                "select public.memory_store_reindex('words', 3, p_user_id => 'u', p_after => "
                f"json_build_object('user_id', 'u', 'path', $path${path}$path$, 'key', '{key}'))",
            )
            for key in ("00000", "06500")
        )
        assert late <= first + 15


@_ANALYZED
@each_case(
    "sweep",
    ["memory_forget_expired(p_limit => 1000,", "memory_worker_usage(1000, p_seconds => 900,", "memory_worker_topics("],
)
def test_a_sweep_of_an_owner_reads_what_is_due(connection: psycopg.Connection, sweep: str) -> None:
    assert buffers(connection, f"select public.{sweep} p_user_id => 'u')") <= 60


@_ANALYZED
def test_what_changed_of_an_owner_is_listed_once(connection: psycopg.Connection) -> None:
    """Few are found by the hour, many by their keys."""
    for days in (30, 3650):
        listed: list[str] = []
        after = None
        while after is not None or not listed:
            [(page,)] = connection.execute(
                "select public.memory_worker_usage(1000, p_seconds => %s, p_user_id => 'u', p_after => %s)",
                [days * 86_400, after],
            ).fetchall()
            listed += [each["id"] for each in page["conversations"]]
            after = (page["after"] or {}).get("id")
        rows = connection.execute(
            "select id::text from memory.conversations where user_id = 'u'"
            " and updated_at >= date_trunc('hour', now() - %s * interval '1 day')",
            [days],
        ).fetchall()
        assert sorted(listed) == sorted(id_ for (id_,) in rows)
