"""What each verb costs in a conversation of 1,000 messages, counted: nothing gets dearer unseen.

Times are noise, counts are not. Whoever makes a verb cheaper lowers its numbers here.
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
from tests.services.postgres import Cluster
from tests.verbs import OF_A_CONVERSATION, OF_A_DATABASE, WORDS, Subject

SIZE = 1000
SLACK = 1.1

BOUNDS = {
    "conversations, a page of 50": Cost(1, 211, 0, 0),
    "claim 4 conversations": Cost(1, 524, 5, 2040),
    "what is due, 50 of them": Cost(1, 124, 0, 0),
    "retention of a user": Cost(1, 429, 0, 0),
    "context pack": Cost(1, 80, 0, 0),
    "read the last 20": Cost(1, 24, 0, 0),
    "turns, the last 10": Cost(1, 1037, 0, 0),
    "turn by its number": Cost(1, 1760, 0, 0),
    "resolve": Cost(1, 2502, 0, 0),
    "count": Cost(1, 1, 0, 0),
    "recall": Cost(1, 1457, 0, 0),
    "board": Cost(1, 1024, 0, 0),
    "status": Cost(1, 64, 0, 0),
    "append a turn": Cost(1, 34, 3, 3464),
    "append with a limit of age": Cost(1, 38, 3, 3476),
    "edit a message": Cost(1, 7652, 567, 818564),
    "forget a message": Cost(1, 8000, 809, 1193156),
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
        memory.conversation("long").summarize()
        memory.conversation("long").revise_board()
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


@pytest.mark.parametrize("verb", [*OF_A_DATABASE, *OF_A_CONVERSATION])
def test_a_verb_costs_no_more_than_it_did(transport: CountingTransport, verb: str) -> None:
    # Without a model nothing is summarized on the way.
    memory = SupabaseMemory(transport, user_id="u", model=None)
    do = (
        partial(OF_A_CONVERSATION[verb], Subject(memory, "long", SIZE))
        if verb in OF_A_CONVERSATION
        else partial(OF_A_DATABASE[verb], memory)
    )
    costs = []
    for number in range(8):  # after five the planner turns to a generic plan
        do(number)
        costs.append(transport.taken())
    found = Cost(
        max(each.round_trips for each in costs),
        max(each.read for each in costs),
        max(each.written for each in costs),
        # A page is split, or cleaned, once in a while.
        round(median(each.wal for each in costs)),
    )
    bound = BOUNDS[verb]
    within = (
        found.round_trips <= bound.round_trips
        and found.read <= bound.read * SLACK + 4
        and found.written <= bound.written * SLACK
        and found.wal <= bound.wal * SLACK + 100
    )
    assert within, f"{verb} costs {found}, and did cost {bound}"
