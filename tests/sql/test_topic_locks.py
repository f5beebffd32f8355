"""Topics and two writers: no order of locks ends in a deadlock, and each looks at a topic once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from langchain_supabase_memory import SupabaseMemory
from tests.counting import TOUCHED
from tests.spaces import call

Writer = Callable[[psycopg.Connection[Any], str], Any]

FIRST: dict[str, Writer] = {
    "forgets a message": lambda c, user: call(c, "forget_message", thread_id="t1", message_id="t1-0", user_id=user),
    "forgets a conversation": lambda c, user: call(c, "forget", thread_id="t1", user_id=user),
    "opts out": lambda c, user: call(c, "opt_out", by="ana", topic="solder", user_id=user),
}
"""Each deletes stretches, and has their topics described at its end."""


def found_anew(connection: psycopg.Connection[Any], user: str) -> Any:
    page = call(connection, "topic_stretches", user_id=user)
    groups = [{"topic_id": None, "members": [row[:2] for row in page["stretches"]]}]
    return call(connection, "commit_topics", version=page["version"], clusters=groups, user_id=user)


def forget_topic(connection: psycopg.Connection[Any], user: str) -> Any:
    topic = call(connection, "topics", user_id=user)[0]["id"]
    return call(connection, "forget_topic", topic_id=topic, by="ana", words=[], user_id=user)


def refuse(purpose: str) -> Writer:
    return lambda c, user: call(c, "consent", purpose=purpose, allowed=False, by="ana", user_id=user)


SECOND: dict[str, Writer] = {
    "finds topics anew": found_anew,
    "forgets a topic": forget_topic,
    "assigns": lambda c, user: call(c, "assign_topics", thread_id="t2", user_id=user),
    **{f"refuses {purpose}": refuse(purpose) for purpose in ("topics", "signals", "tone", "profile")},
}


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("second", SECOND)
def test_two_writers_both_end(
    first: str, second: str, conn_string: str, user_id: str, sql: psycopg.Connection[Any]
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        for thread in ("t0", "t1", "t2"):
            texts = [f"The kettle of {thread} leaks at the seam.", "Solder the seam of the kettle."]
            said = [{"id": f"{thread}-{n}", "role": "user", "content": text} for n, text in enumerate(texts)]
            call(sql, "append", thread_id=thread, messages=said, user_id=user_id)
            memory.conversation(thread).index()
        memory.topics.update()
    failures: list[BaseException] = []
    ended = threading.Event()

    with psycopg.connect(conn_string) as one, psycopg.connect(conn_string, autocommit=True) as two:

        def run() -> None:
            try:
                SECOND[second](two, user_id)
            except BaseException as error:
                if getattr(error, "sqlstate", "") != "PT404":  # the other one took the topic away
                    failures.append(error)
            ended.set()

        FIRST[first](one, user_id)
        writer = threading.Thread(target=run)
        writer.start()
        asked = "select cardinality(pg_blocking_pids(%s))"
        while not ended.is_set() and sql.execute(asked, [two.info.backend_pid]).fetchall() == [(0,)]:
            time.sleep(0.01)
        one.commit()
        writer.join()
    assert failures == []
    words = sql.execute(
        "select exists (select from memory.topics t cross join unnest(t.terms) w where t.user_id = %(user)s"
        " and not exists (select from memory.topic_stretches s where s.user_id = %(user)s and s.topic_id = t.id))",
        {"user": user_id},
    ).fetchall()
    assert words == [(False,)], "no topic has words of what is gone"


def test_forgetting_a_long_conversation_of_one_topic_looks_at_it_once(
    sql: psycopg.Connection[Any], user_id: str
) -> None:
    with sql.transaction():
        topic, kept, gone = sql.execute("select gen_random_uuid(), gen_random_uuid(), gen_random_uuid()").fetchall()[0]
        sql.execute(
            "insert into memory.conversations (user_id, agent_id, thread_id, id)"
            " values (%(user)s, 'default', 'kept', %(kept)s), (%(user)s, 'default', 'gone', %(gone)s)",
            {"user": user_id, "kept": kept, "gone": gone},
        )
        sql.execute(
            "insert into memory.topics (user_id, id, words, terms, weights, stretches)"
            " values (%s, %s, '{kiln}', '{kiln}', '{1}', 6000)",
            [user_id, topic],
        )
        sql.execute(
            "insert into memory.topic_stretches (user_id, conversation_id, stretch, topic_id, due, at, words, terms)"
            " select %s, c, n, %s, false, now(), '{kiln}', '{kiln}'"
            " from unnest(%s) c cross join generate_series(1, 3000) n",
            [user_id, topic, [kept, gone]],
        )
    with sql.transaction():
        before = sql.execute(TOUCHED, [["topic_stretches"]]).fetchall()[0][0]
        call(sql, "forget", thread_id="gone", user_id=user_id)
        sql.execute("set constraints all immediate")  # what a commit does
        read = sql.execute(TOUCHED, [["topic_stretches"]]).fetchall()[0][0] - before
    assert read <= 6000, "millions, where each stretch counted those that were left"
    assert sql.execute("select stretches from memory.topics where user_id = %s", [user_id]).fetchall() == [(3000,)]


def test_what_is_deleted_after_a_topic_was_described_is_seen_too(sql: psycopg.Connection[Any], user_id: str) -> None:
    """A transaction of the application's own may have its constraints checked in the middle."""
    with sql.transaction():
        sql.execute(
            "insert into memory.conversations (user_id, agent_id, thread_id) select %s, 'default', n::text"
            " from generate_series(1, 3) n",
            [user_id],
        )
        sql.execute(
            "with t as (insert into memory.topics (user_id, words, terms, weights, stretches)"
            " values (%(user)s, '{kiln}', '{kiln}', '{1}', 3) returning id)"
            " insert into memory.topic_stretches (user_id, conversation_id, stretch, topic_id, due, at, words, terms)"
            " select %(user)s, c.id, 1, t.id, false, now(), '{kiln}', '{kiln}' from t, memory.conversations c"
            " where c.user_id = %(user)s",
            {"user": user_id},
        )
    with sql.transaction():
        for thread in ("1", "2"):
            sql.execute("delete from memory.conversations where user_id = %s and thread_id = %s", [user_id, thread])
            sql.execute("set constraints all immediate")
            sql.execute("set constraints all deferred")
    assert sql.execute("select stretches from memory.topics where user_id = %s", [user_id]).fetchall() == [(1,)]


def test_a_refusal_that_an_import_brings_deletes_what_was_derived(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        memory.conversation("t").append("The kettle leaks at the seam.")
        memory.conversation("t").index()
        memory.topics.update()
        assert memory.topics.read()
        with psycopg.connect(conn_string, autocommit=True) as connection:
            refused = [{"purpose": "topics", "allowed": False, "by": "ana", "at": "2026-01-01T00:00:00Z"}]
            call(connection, "restore", edits={"consents": refused}, thread_id=None, user_id=user_id)
            held = connection.execute("select count(*) from memory.topic_stretches where user_id = %s", [user_id])
            assert held.fetchall() == [(0,)]
        assert memory.topics.read(hidden=True) == []


@pytest.mark.parametrize("checked", ["deferred", "immediate"])
def test_a_topic_counts_what_it_lost_whenever_constraints_are_checked(
    checked: str, sql: psycopg.Connection[Any], conn_string: str, user_id: str
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        for thread in ("a", "b", "c"):
            memory.conversation(thread).append(f"The kettle of {thread} leaks at the seam.")
            memory.conversation(thread).index()
        memory.topics.update()
        assert [each.episodes for each in memory.topics.read()] == [3]
        with sql.transaction():
            sql.execute(f"set constraints all {checked}".encode())
            for thread in ("a", "b"):
                call(sql, "forget", thread_id=thread, user_id=user_id)
        assert [each.episodes for each in memory.topics.read()] == [1]
        memory.conversation("c").forget()
        assert memory.topics.read() == []


def test_an_episode_reads_its_topic_once(sql: psycopg.Connection[Any], conn_string: str, user_id: str) -> None:
    """What a topic's row says is computed from its 200 newest episodes."""
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        call(
            sql, "append", thread_id="new", messages=[{"role": "user", "content": "The kettle leaks."}], user_id=user_id
        )
        memory.conversation("new").index()
    with sql.transaction():
        sql.execute(
            "with c as (insert into memory.conversations (user_id, thread_id) values (%(user)s, 'old') returning id),"
            " t as (insert into memory.topics (user_id, words, terms, weights, stretches)"
            " values (%(user)s, '{kettle}', '{kettle}', '{1}', 1000) returning id)"
            " insert into memory.topic_stretches (user_id, conversation_id, stretch, topic_id, due, at, words, terms)"
            " select %(user)s, c.id, n, t.id, false, now(), '{kettle}', '{kettle}'"
            " from c, t, generate_series(1, 1000) n",
            {"user": user_id},
        )
    with sql.transaction():
        before = sql.execute(TOUCHED, [["topic_stretches"]]).fetchall()[0][0]
        assert call(sql, "assign_topics", thread_id="new", user_id=user_id)["assigned"] == 1
        read = sql.execute(TOUCHED, [["topic_stretches"]]).fetchall()[0][0] - before
    assert sql.execute("select stretches from memory.topics where user_id = %s", [user_id]).fetchall() == [(1001,)]
    assert 200 <= read < 250
