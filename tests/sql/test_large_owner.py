"""One owner with a million messages: a day's work is bounded by the day, and pages by what they show."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from benchmarks import fill
from langchain_supabase_memory import SupabaseMemory
from tests.counting import Cost, CountingTransport
from tests.services.postgres import Cluster

PER_CONVERSATION = 1_000
TOPICS = 40
EPISODE = 2
"""How many messages an episode has."""

SMALL, LARGE, HUGE = 2_000, 20_000, 1_000_000

# Everything but the newest day: indexed, counted, in topics, and changed long ago.
_COUNTED = """
set session_replication_role = replica;
update memory.conversations c set updated_at = now() - interval '10 days';
insert into memory.usage_cursors (user_id, conversation_id, through_sequence, indexed_through)
select c.user_id, c.id, c.next_sequence - 1, c.indexed_through from memory.conversations c;
insert into memory.usage_days (user_id, agent_id, day, turns, messages, characters)
select 'big', 'default', (now() - interval '10 days')::date - n, 10, 20, 2000 from generate_series(0, 999) n;
insert into memory.topics (user_id, words, terms, weights, stretches, first_at, last_at)
select 'big', array['word' || n], array['word' || n], array[1], 1, now() - interval '1 year', now() - interval '10 days'
from generate_series(1, {topics}) n;
insert into memory.topic_stretches (user_id, conversation_id, stretch, topic_id, due, strength, at, messages, words, terms)
select c.user_id, c.id, s.stretch, t.ids[1 + s.stretch / {episode} % {topics}], false, 0.5,
       now() - interval '10 days' - s.stretch * interval '1 minute', {episode}, w.words, w.words
from memory.conversations c
cross join lateral generate_series(0, c.next_sequence - 1, {episode}) s (stretch)
cross join (select array_agg(t.id order by t.words) as ids, array_agg(t.words order by t.words) as words
            from memory.topics t) t
cross join lateral (select array[(t.words[1 + s.stretch / {episode} % {topics} : 1 + s.stretch / {episode} % {topics}])[1][1]]
                    as words) w;
update memory.topics t set stretches = (select count(*) from memory.topic_stretches s where s.topic_id = t.id);
insert into memory.topic_clusterings (user_id, stretches, clustered_at)
select 'big', count(*), now() from memory.topic_stretches;
"""
_NOTHING_ELSE = "vacuum analyze"


@dataclass(frozen=True)
class Work:
    """What a day's work and each page cost an owner.

    Attributes:
        topics: Finding topics for a day's episodes.
        anew: Finding all topics anew.
        usage: Counting a day.
        pages: Each page by its name.
    """

    topics: Cost
    anew: Cost
    usage: Cost
    pages: dict[str, Cost]


def measured(cluster: Cluster, messages: int) -> Work:
    """Fill a database with an owner, let a day pass, and count what its chores and pages read."""
    name = cluster.migrated_database()
    superuser = cluster.conn_string(name, "supabase_admin")
    number = max(1, messages // PER_CONVERSATION)
    fill.fill(superuser, fill.Filling("old-", PER_CONVERSATION, number, "big", unindexed=0))
    with psycopg.connect(superuser, autocommit=True) as connection:
        for statement in _COUNTED.format(topics=TOPICS, episode=EPISODE).split(";\n"):
            connection.execute(statement.encode())
        connection.execute(_NOTHING_ELSE)
    with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
        transport = CountingTransport(connection)
        server = SupabaseMemory(transport, model=None)
        memory = server.for_user("big")

        def cost(verb: object) -> Cost:
            transport.taken()
            assert callable(verb)
            verb()
            return transport.taken()

        server.usage.update()
        for turn in range(10):
            for thread in ("old-0", "old-1"):
                memory.conversation(thread).append([HumanMessage(f"word1 kiln {turn}"), AIMessage(f"noted {turn}")])
        for thread in ("old-0", "old-1"):
            memory.conversation(thread).index()
        usage, topics = cost(server.usage.update), cost(memory.topics.update)
        assert memory.usage.by_day()[-1].turns == 20
        pages = {
            "topics": cost(memory.topics.read),
            "days": cost(memory.usage.by_day),
            "topic days": cost(memory.topics.days),
            "signals": cost(memory.conversation("old-0").turns.signals),
            "advice": cost(memory.advice),
            "conversations": cost(memory.conversations),
        }
        anew = cost(memory.topics.recluster)
        miscounted = connection.execute(
            "select t.id from memory.topics t where t.stretches <>"
            " (select count(*) from memory.topic_stretches s where s.topic_id = t.id)"
        ).fetchall()
        assert miscounted == []
    return Work(topics, anew, usage, pages)


def check(work: Work) -> None:
    """A day of twenty turns in two conversations, whatever was before."""
    assert work.usage.read < 500
    assert work.usage.written < 20
    assert work.topics.written < 20
    # What a topic's row says is computed from its 200 newest episodes; the day's are of two topics at most.
    assert work.topics.read < 5_000
    # Of 2,000 episodes by ten pages, and of the 200 newest of each topic.
    assert work.anew.read < 80_000
    assert work.anew.written < 10_000
    assert work.pages["topics"].read < 6_000
    assert work.pages["days"].read < 100
    assert work.pages["signals"].read < 100
    assert work.pages["advice"].read < 20_000, "of the 200 newest conversations"
    assert not any(page.written for page in work.pages.values())


def test_a_days_chores_are_bounded_by_the_day_and_pages_by_what_they_show(cluster: Cluster) -> None:
    small, large = measured(cluster, SMALL), measured(cluster, LARGE)
    check(small)
    check(large)
    assert large.usage.read < 2 * small.usage.read
    assert large.pages["days"].read == small.pages["days"].read


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_so_they_are_of_a_million_messages(cluster: Cluster) -> None:
    check(measured(cluster, HUGE))
