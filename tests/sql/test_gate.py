"""The counted cost of each verb in a conversation of 1,100 messages, so that no regression goes unnoticed.

Times are noisy, counts are not. A change that makes a verb cheaper lowers its numbers here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import SupabaseMemory
from tests.counting import SHORT_ONES, Cost, CountingTransport
from tests.each_case import each_case
from tests.services.postgres import Cluster
from tests.verbs import OF_A_CONVERSATION, OF_A_DATABASE, WORDS, Subject

SIZE = 1100
SLACK = 1.1

BOUNDS = {
    "conversations, a page of 50": Cost(1, 211, 0, 0),
    "claim 4 conversations": Cost(1, 524, 5, 2040),
    "due work, a page of 50": Cost(1, 124, 0, 0),
    "retention of a user": Cost(1, 429, 0, 0),
    "context pack": Cost(1, 129, 0, 0),
    "read the last 20": Cost(1, 24, 0, 0),
    "turns, the last 10": Cost(1, 117, 0, 0),
    "turn by its number": Cost(1, 644, 0, 0),
    "resolve": Cost(1, 96, 0, 0),
    "count": Cost(1, 1, 0, 0),
    "recall": Cost(1, 1581, 0, 0),
    "find": Cost(1, 1165, 0, 0),
    "board": Cost(1, 1124, 0, 0),
    "status": Cost(1, 64, 0, 0),
    "append a turn": Cost(1, 34, 3, 3384),
    "append a turn with its manifest": Cost(1, 35, 4, 4160),
    "manifests, the last 20": Cost(1, 39, 0, 0),
    "append with a maximum age": Cost(1, 38, 3, 3408),
    "store a question and load its pack": Cost(1, 207, 2, 1752),
    "edit a message": Cost(1, 5295, 38, 6120),
    "forget a message": Cost(1, 3270, 32, 3596),
}
"""Round trips, rows and entries of indexes read, rows written, and bytes of the write-ahead log. What fails says the
numbers that it found."""


@pytest.fixture(scope="module")
def transport(cluster: Cluster) -> Iterator[CountingTransport]:
    """A user with sixty short conversations and a long one, which is indexed, summarized and on its board."""
    name = cluster.migrated_database()
    with SupabaseMemory.from_conn_string(cluster.conn_string(name), user_id="u") as memory:
        for number in range(60):
            memory.conversation(f"short-{number}").append([HumanMessage("short")])
        said = [(AIMessage if n % 2 else HumanMessage)(f"{n} {WORDS}", id=f"m-{n}") for n in range(SIZE)]
        memory.conversation("long").append(said)
        memory.conversation("long").index()
        memory.conversation("long").summaries.make()
        memory.conversation("long").board.revise()
    cluster.execute(SHORT_ONES, database=name)  # of others: so many that no plan reads all rows
    cluster.execute("vacuum analyze", database=name, superuser=True)
    settings = ("full_page_writes", "autovacuum")  # what writes to the log when it likes
    for setting in settings:
        cluster.execute(f"alter system set {setting} = off", superuser=True)
    cluster.execute("select pg_reload_conf()", superuser=True)
    try:
        with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
            yield CountingTransport(connection)
    finally:
        for setting in settings:
            cluster.execute(f"alter system reset {setting}", superuser=True)
        cluster.execute("select pg_reload_conf()", superuser=True)


@each_case("verb", [*OF_A_DATABASE, *OF_A_CONVERSATION])
def test_a_verb_costs_no_more_than_it_did(transport: CountingTransport, verb: str) -> None:
    # Without a model nothing is summarized on the way.
    memory = SupabaseMemory(transport, user_id="u", model=None)
    do = (
        partial(OF_A_CONVERSATION[verb], Subject(memory, "long", SIZE))
        if verb in OF_A_CONVERSATION
        else partial(OF_A_DATABASE[verb], memory)
    )
    costs, bound = [], BOUNDS[verb]
    for number in range(8):  # after five the planner turns to a generic plan
        do(number)
        costs.append(transport.taken())
    found = Cost(
        max(each.round_trips for each in costs),
        max(each.read for each in costs),
        max(each.written for each in costs),
        # A page is split, or cleaned, once in a while; and the server may vacuum beside what writes nothing.
        round((median if bound.wal else min)(each.wal for each in costs)),
    )
    within = (
        found.round_trips <= bound.round_trips
        and found.read <= bound.read * SLACK + 4
        and found.written <= bound.written * SLACK
        and found.wal <= bound.wal * SLACK + 100
    )
    assert within, f"{verb} costs {found}, and did cost {bound}"


GROWN = {"small": 2 * 1024 + 300, "large": 40 * 1024 + 300}
"""Two conversations of which equally much lies in the newest block, which is not full."""

FLAT = [
    "context pack",
    "turns, the last 10",
    "turn by its number",
    "resolve",
    "count",
    "board",
    "append a turn",
    "append with a maximum age",
    "store a question and load its pack",
    "edit a message",
    "forget a message",
]

FILL = """
with conversation as (
  insert into memory.conversations (user_id, thread_id, next_sequence, message_count, total_characters, total_tokens,
    indexed_through)
  values ('u', '{name}', {size}, {size}, {size} * 384, {size} * 100, {size} - 1) returning user_id, id)
insert into memory.conversation_messages (
  user_id, conversation_id, sequence, message_id, role, text, characters, tokens, payload)
select user_id, id, n, 'm-' || n, case n % 2 when 0 then 'user' else 'assistant' end, repeat('word', 96), 384, 100,
       json_build_object('type', case n % 2 when 0 then 'human' else 'ai' end, 'data', json_build_object(
         'content', repeat('word', 96), 'type', case n % 2 when 0 then 'human' else 'ai' end, 'id', 'm-' || n))
from conversation, generate_series(0, {size} - 1) n;
select memory_private.update_block_counts(c.user_id, c.id, '{{(,)}}', 1, c.next_sequence) from memory.conversations c
where c.thread_id = '{name}'
"""


@pytest.fixture(scope="module")
def grown(transport: CountingTransport) -> CountingTransport:
    for name, size in GROWN.items():
        for statement in FILL.format(name=name, size=size).split(";"):
            transport.connection.execute(statement.encode())
    transport.connection.execute("vacuum analyze")
    return transport


@each_case("verb", FLAT)
def test_a_verb_costs_the_same_in_a_conversation_of_twenty_times_the_length(
    grown: CountingTransport, verb: str
) -> None:
    costs: dict[str, list[Cost]] = {name: [] for name in GROWN}
    for number in range(8):
        for name, size in GROWN.items():
            OF_A_CONVERSATION[verb](Subject(SupabaseMemory(grown, user_id="u", model=None), name, size), number)
            costs[name].append(grown.taken())
    small, large = (max(each.read for each in costs[name]) for name in GROWN)
    # One entry for each block: what is far back is added up, not read.
    assert large <= small * SLACK + 2 * GROWN["large"] // 1024
    assert max(each.written for each in costs["large"]) <= max(each.written for each in costs["small"])
    small, large = (round(median(each.wal for each in costs[name])) for name in GROWN)
    assert large <= small * SLACK + 100
