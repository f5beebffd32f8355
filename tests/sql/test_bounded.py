"""The rows that an operation touches do not grow with the history, whatever the planner's statistics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.language.messages.codec import to_row
from tests.counting import NEVER, OTHERS, SHORT_ONES, messages, most_touched
from tests.services.postgres import Cluster

COPY = """
with made as (
  insert into memory.conversations (user_id, thread_id, next_sequence, message_count, total_characters, total_tokens)
  select user_id, '{name}', next_sequence, message_count, total_characters, total_tokens
  from memory.conversations where thread_id = 'long'
  returning user_id, id
)
insert into memory.conversation_messages (
  user_id, conversation_id, sequence, message_id, role, text, characters, tokens, payload)
select m.user_id, made.id, m.sequence, m.message_id, '{role}', m.text, m.characters, m.tokens, m.payload
from made, memory.conversations c
join memory.conversation_messages m on m.user_id = c.user_id and m.conversation_id = c.id
where c.thread_id = 'long'
"""

ANSWER = """
update memory.conversation_messages m
   set role = case m.sequence % 10 when 0 then 'user' when 9 then 'assistant' else 'tool' end
  from memory.conversations c
 where c.user_id = m.user_id and c.id = m.conversation_id and c.thread_id in ('answered', 'answered too')
"""
"""Five hundred turns of ten messages."""

SUMMARIZE = """
insert into memory.conversation_summaries (
  user_id, conversation_id, number, from_sequence, to_sequence, message_ids, built_on, content, characters, tokens,
  covered_characters, covered_tokens)
select c.user_id, c.id, n, n * 12 - 12, n * 12 - 1, '{}', nullif(n - 1, 0), 'A summary.', 10, 3, m.characters, 12
from memory.conversations c, generate_series(1, 400) n, lateral (
  select sum(m.characters) as characters from memory.conversation_messages m
  where m.user_id = c.user_id and m.conversation_id = c.id and m.sequence between n * 12 - 12 and n * 12 - 1) m
where c.thread_id = 'summarized';
update memory.conversations c
   set summarized_through = 4799, summarized_tokens = 4800, summarized_characters = (
     select sum(s.covered_characters) from memory.conversation_summaries s
     where s.user_id = c.user_id and s.conversation_id = c.id)
 where c.thread_id = 'summarized'
"""

COUNT = """
delete from memory.message_blocks;
select memory_private.update_block_counts(c.user_id, c.id, '{(,)}', 1, c.next_sequence) from memory.conversations c
where c.next_sequence >= 1024
"""


def filled(planner: Cluster, *, after_others: bool = False) -> str:
    """Create a database with the conversations, and return its name.

    Args:
        planner: The server.
        after_others: Whether statistics are from before, when only others were there.
    """
    name = planner.migrated_database()
    for table in ("conversations", "conversation_messages", "conversation_summaries"):
        planner.leave_unvacuumed(name, f"memory.{table}")
    if after_others:
        planner.execute(SHORT_ONES, database=name)
        planner.execute("analyze", database=name)
    with SupabaseMemory.from_conn_string(planner.conn_string(name), user_id="u") as memory:
        memory.conversation("long").append([HumanMessage(f"message {n}", id=f"m{n}") for n in range(5000)])
        for n in range(200):
            memory.conversation(f"short-{n}").append([HumanMessage("short")])
    copies = {"summarized": "user", "unasked": "assistant", "answered": "user", "answered too": "user"}
    for thread_id, role in copies.items():
        planner.execute(COPY.format(name=thread_id, role=role), database=name)
    planner.execute(ANSWER, database=name)
    planner.execute(SUMMARIZE, database=name)
    planner.execute(COUNT, database=name)
    return name


@pytest.fixture(scope="module", params=[NEVER, "analyzed"])
def connection(planner: Cluster, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """Conversations of 5,000 messages among 200 short ones, with good, bad and no statistics.

    One is as it was written; one has 400 segments; in one nobody ever asked anything; two have turns of ten messages.
    """
    name = filled(planner, after_others=True) if request.param == OTHERS else planner.copy_made_by(filled)
    if request.param == "analyzed":
        planner.execute("analyze", database=name)
    with psycopg.connect(planner.conn_string(name), autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
def test_an_append_touches_a_handful_of_rows(connection: psycopg.Connection) -> None:
    append = "select public.memory_append('long', %s, 'u')"
    assert most_touched(connection, append, [messages("new-{n}-a", "new-{n}-b")]) <= 10


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
def test_an_append_to_what_is_summarized_touches_a_handful_of_rows(connection: psycopg.Connection) -> None:
    append = "select public.memory_append('summarized', %s, 'u')"
    assert most_touched(connection, append, [messages("new-{n}-a", "new-{n}-b")]) <= 10


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
def test_a_replay_and_a_mixed_batch_touch_a_handful_of_rows(connection: psycopg.Connection) -> None:
    append = "select public.memory_append('long', %s, 'u')"
    # Both edits move the sums of what follows them, and each of those rows is looked up by its key.
    assert most_touched(connection, append, [messages("m4998", "m4999", "mixed-{n}")]) <= 90


def test_the_newest_n_touch_n_rows(connection: psycopg.Connection) -> None:
    assert most_touched(connection, "select public.memory_read('long', 'u', p_last => 20)", []) <= 25


def test_a_page_touches_a_page(connection: psycopg.Connection) -> None:
    read = "select public.memory_read('long', 'u', p_from => 3000, p_limit => 50)"
    assert most_touched(connection, read, []) <= 55


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_an_exact_search_touches_2000_messages(connection: psycopg.Connection, order: str) -> None:
    # What is found is read once more, with what lies around it; a row that is read ahead is one of fifty.
    absent = "select public.memory_find('[\"nothing of this\"]', 'long', p_user_id => 'u', p_order => %s)"
    assert most_touched(connection, absent, [order]) <= 2050
    every = (
        "select public.memory_find('[\"message\"]', null, p_user_id => 'u', p_order => %s, p_limit => 5, p_around => 2)"
    )
    assert most_touched(connection, every, [order]) <= 200


@pytest.mark.parametrize("connection", ["analyzed"], indirect=True)  # which autovacuum sees to within a minute
def test_a_time_window_touches_the_window(connection: psycopg.Connection) -> None:
    read = "select public.memory_read('long', 'u', p_since => now() + interval '1 hour')"
    assert most_touched(connection, read, []) <= 5


def test_a_count_touches_one_conversation(connection: psycopg.Connection) -> None:
    assert most_touched(connection, "select public.memory_count('long', 'u')", []) <= 3


@pytest.mark.parametrize("connection", ["analyzed"], indirect=True)  # which autovacuum sees to within a minute
def test_forgetting_the_newest_message_touches_a_handful_of_rows(connection: psycopg.Connection) -> None:
    append = "select public.memory_append('long', %s, 'u')"
    connection.execute(append.encode(), [messages(*(f"gone-{n}" for n in range(8)))])
    assert most_touched(connection, "select public.memory_forget_message('long', %s, 'u')", ["gone-{n}"]) <= 40


# A message of these has 12 characters: a pack of 1,200 has a hundred of them.


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
@pytest.mark.parametrize("thread_id", ["long", "summarized"])
def test_a_context_touches_what_the_budget_shows(connection: psycopg.Connection, thread_id: str) -> None:
    read = "select public.memory_context(%s, 'u', p_characters => 1200)"
    assert most_touched(connection, read, [thread_id]) <= 700


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
def test_a_context_in_which_nobody_asked_does_not_read_all_of_it(connection: psycopg.Connection) -> None:
    read = "select public.memory_context('unasked', 'u', p_characters => 1200)"
    assert most_touched(connection, read, []) <= 3000


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
@pytest.mark.parametrize("thread_id", ["long", "summarized"])
@pytest.mark.parametrize(
    "keep",
    ["p_keep_characters => 600", "p_keep_messages => 50", "p_until => 4999"],
    ids=["characters", "messages", "all"],
)
def test_what_is_to_be_summarized_touches_a_piece(connection: psycopg.Connection, thread_id: str, keep: str) -> None:
    read = f"select public.memory_pending(%s, 'u', p_characters => 1200, {keep})"
    assert most_touched(connection, read, [thread_id]) <= 2000


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
def test_a_commit_touches_what_it_covers(connection: psycopg.Connection) -> None:
    commit = """select public.memory_commit_summary('summarized', c.id, %s::bigint, 0, %s::bigint, %s::json, 'New', 1,
      p_user_id => 'u') from memory.conversations c where c.thread_id = 'summarized'"""

    def arguments(number: int) -> list[Any]:
        first = 4800 + 10 * number
        return [first - 1, first + 9, json.dumps([f"m{each}" for each in range(first, first + 10)])]

    assert most_touched(connection, commit, arguments) <= 15
    row = connection.execute("select max(number), max(to_sequence) from memory.conversation_summaries").fetchone()
    assert row == (408, 4879)


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
def test_what_is_due_of_one_user_touches_their_conversations(connection: psycopg.Connection) -> None:
    due = "select public.memory_due(p_messages => 100, p_user_id => 'u')"
    assert most_touched(connection, due, [], ("conversations",)) <= 250
    page = "select public.memory_due(p_messages => 0, p_limit => 10, p_after_user => 'u', p_after => '80000000-0000-0000-0000-000000000000')"
    assert most_touched(connection, page, [], ("conversations",)) <= 250


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
def test_the_newest_turns_touch_their_messages_and_an_index(connection: psycopg.Connection) -> None:
    # Their numbers are their place among all five hundred, which are counted: one question and one answer of each.
    assert most_touched(connection, "select public.memory_turns('answered', 'u', p_last => 5)", []) <= 1000 + 20
    assert most_touched(connection, "select public.memory_turns('answered', 'u', p_last => 1, p_skip => 3)", []) <= 1020
    answer = connection.execute("select public.memory_turns('answered', 'u', p_last => 2) -> 'turns'").fetchone()
    assert answer is not None
    assert [(turn["turn_number"], turn["from_sequence"]) for turn in answer[0]] == [(499, 4980), (500, 4990)]


LIMITS = {
    "turns": '{"turns": 500}',
    "few turns": '{"turns": 10}',
    "messages": '{"messages": 5000}',
    "age": '{"age": 86400, "summary_age": 86400}',
    "all": '{"turns": 10, "messages": 200, "age": 86400, "summary_age": 86400}',
}


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
def test_a_page_of_a_list_touches_a_few_rows_of_each_conversation(connection: psycopg.Connection) -> None:
    page = "select public.memory_conversations('u', p_limit => 50)"
    assert most_touched(connection, page, []) <= 50 * 6
    assert most_touched(connection, "select public.memory_conversations('u', p_thread_id => 'unasked')", []) <= 6
    chat = "select public.memory_read('long', 'u', p_last => 50, p_display => true, p_columns => '[\"text\"]')"
    assert most_touched(connection, chat, []) <= 55


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
@pytest.mark.parametrize("limits", LIMITS.values(), ids=list(LIMITS))
def test_an_append_with_a_limit_touches_what_the_limit_keeps_in_questions_and_answers(
    connection: psycopg.Connection, limits: str
) -> None:
    with connection.transaction(force_rollback=True):
        # Once, what is beyond the limit is removed; from then on each turn pushes out one.
        connection.execute("select public.memory_forget_expired(%s, 'u', p_thread_id => 'answered too')", [limits])
        append = "select public.memory_append('answered too', %s, 'u', p_retention => %s)"
        many = 2040 if limits == LIMITS["turns"] else 80
        rows = [to_row(HumanMessage("new", id="q{n}")), to_row(AIMessage("new", id="a{n}"))]
        assert most_touched(connection, append, [json.dumps(rows), limits]) <= many


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
@pytest.mark.parametrize("thread_id", ["long", "summarized"])
def test_where_everything_is_young_a_read_with_an_age_touches_what_it_returns(
    connection: psycopg.Connection, thread_id: str
) -> None:
    read = "select public.memory_read(%s, 'u', p_last => 20, p_retention => %s)"
    limits = '{"age": 86400, "summary_age": 86400, "messages": 9000}'
    assert most_touched(connection, read, [thread_id, limits]) <= 30


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
@pytest.mark.parametrize(
    "statement",
    [
        "select public.memory_turns('answered', 'u', p_last => 5)",
        "select public.memory_turns('answered', 'u', p_number => 250)",
        "select public.memory_turns('answered', 'u', p_since => now() - interval '1 hour')",
        """select public.memory_turns('answered too', 'u', p_last => 5,
           p_retention => '{"turns": 400, "messages": 3000, "age": 86400, "summary_age": 86400}')""",
        "select public.memory_forget_message('short-1', 'none', 'u')",
    ],
    ids=["newest", "number", "window", "retention", "message"],
)
def test_no_table_of_messages_is_scanned(connection: psycopg.Connection, statement: str) -> None:
    scanned = (
        "select coalesce(sum(seq_scan), 0) from pg_stat_xact_user_tables"
        " where relname in ('conversation_messages', 'conversation_summaries')"
    )
    for _ in range(8):  # a function's plan may change from its sixth call on
        with connection.transaction(force_rollback=True):
            before = connection.execute(scanned).fetchone()
            connection.execute(statement.encode())
            assert connection.execute(scanned).fetchone() == before


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
def test_the_view_of_turns_is_planned_without_a_scan(connection: psycopg.Connection) -> None:
    view = (
        "select * from memory.conversation_turns where user_id = 'u' and thread_id = 'answered' and turn_number > 490"
    )

    def scans() -> list[str]:
        plan = "\n".join(line for (line,) in connection.execute(f"explain {view}".encode()))
        return re.findall(r"Seq Scan on conversation_(?:messages|summaries)\b", plan)

    assert scans() == []
    with connection.transaction(force_rollback=True):
        for kind in ("indexscan", "indexonlyscan", "bitmapscan"):
            connection.execute(f"set local enable_{kind} = off".encode())
        assert scans(), "a plan shows it"


@pytest.mark.parametrize("connection", [NEVER, "analyzed", OTHERS], indirect=True)
def test_a_turn_of_a_graph_touches_a_handful_of_rows(connection: psycopg.Connection) -> None:
    def turn(number: int) -> list[Any]:
        ids = [f"graph-{number}-a", f"graph-{number}-b"]
        after, expected = (f"graph-{number - 1}-b", f"state-{number - 1}") if number else ("m4999", None)
        branch = {"token": f"state-{number}", "expected": expected, "after": after, "ids": ids, "removed": []}
        return [messages(*ids), json.dumps(branch)]

    append = "select public.memory_append('long', %s, 'u', p_branch => %s)"
    tables = ("conversation_messages", "conversation_summaries", "superseded_messages")
    assert most_touched(connection, append, turn, tables) <= 60
    found = connection.execute("select branch_token from memory.conversations where branch_token is not null")
    assert found.fetchone() == ("state-7",)
