"""Reads write nothing: a read replica can answer them, also where something has expired and nobody has removed it yet."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import psycopg
from langchain_core.messages import HumanMessage
from psycopg import sql

from langchain_supabase_memory import ChunkPolicy, ContextBudget, Retention, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from tests.embedders import WordEmbedder

WRITES = re.compile(
    r"\b(insert\s+into|delete\s+from|update\s+memory\w*\.|for\s+(no\s+key\s+)?(update|share)|for\s+key\s+share|pg_notify"
    r"|pg_advisory\w+)\b"
)

REQUIRED = {
    "p_ask": '{"query": "kiln"}',
    "p_min_importance": "0",
    "p_model": "words",
    "p_query": "kiln",
    "p_seconds": "0",
    "p_texts": '["kiln"]',
    "p_thread_id": "t",
}
"""What verbs that only read have to be told."""


def verbs(connection: psycopg.Connection) -> dict[str, tuple[str, bool, list[str]]]:
    """Every verb: how volatile it is, whether it or what it calls writes, and its required arguments."""
    rows = connection.execute(
        "select n.nspname || '.' || p.proname, p.provolatile::text, p.prosrc,"
        " coalesce(p.proargnames[:p.pronargs - p.pronargdefaults], '{}')"
        " from pg_proc p join pg_namespace n on n.oid = p.pronamespace"
        " where n.nspname = 'memory_private' or starts_with(obj_description(p.oid), 'langchain-supabase-memory:')"
    ).fetchall()
    bodies = {name: body for name, _, body, _ in rows}

    def writes(name: str, seen: set[str]) -> bool:
        if name in seen or name not in bodies:
            return False
        seen.add(name)
        called = re.findall(r"\b(?:memory_private|public)\.\w+(?=\()", bodies[name])
        return WRITES.search(bodies[name]) is not None or any(writes(each, seen) for each in called)

    return {
        name: (volatile, writes(name, set()), required)
        for name, volatile, _, required in rows
        if name.startswith("public.")
    }


def filled(conn_string: str, user_id: str) -> None:
    """A conversation with a summary, a board and chunks, of which half is too old."""
    memory = SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=ExtractiveSummarizer(), embeddings=WordEmbedder()
    )
    with memory:
        old = datetime.now(UTC) - timedelta(days=2)
        for number in range(20):
            asked = [HumanMessage(f"The kiln number {number} stands in Riga.", id=f"m{number}")]
            memory.conversation("t").append(asked, created_at=old if number < 10 else None)
            memory.conversation("t").add_turn(f"Where is kiln {number}?", "In Riga.")
        memory.conversation("t").summarize()
        memory.conversation("t").revise_board()
        memory.conversation("t").index()


def test_a_verb_that_writes_nothing_is_stable_and_runs_where_nothing_can_be_written(
    conn_string: str, user_id: str
) -> None:
    filled(conn_string, user_id)
    given = {**REQUIRED, "p_user_id": user_id, "p_retention": '{"age": 86400, "turns": 5, "summary_age": 86400}'}
    with psycopg.connect(conn_string, autocommit=True) as connection:
        found = verbs(connection)
        assert {name for name, (volatile, writes, _) in found.items() if (volatile == "v") is not writes} == set()
        reads = {name: required for name, (volatile, _, required) in found.items() if volatile != "v"}
        assert {"public.memory_context", "public.memory_read", "public.memory_turns"} <= set(reads)
        connection.execute("set default_transaction_read_only = on")
        for name, required in reads.items():
            names = connection.execute(
                "select coalesce(proargnames[:pronargs], '{}') from pg_proc where oid = %s::regproc", [name]
            ).fetchone()
            assert names is not None
            assert set(required) <= set(given), name
            arguments = [
                sql.SQL("{} => {}").format(sql.Identifier(each), sql.Literal(given[each]))
                for each in names[0]
                if each in required or (each in given and each not in REQUIRED)
            ]
            call = sql.SQL("select {}({})").format(sql.Identifier(*name.split(".")), sql.SQL(", ").join(arguments))
            connection.execute(call)


def test_a_memory_on_a_replica_answers_every_read(conn_string: str, user_id: str) -> None:
    filled(conn_string, user_id)
    replica = f"{conn_string}?options=-c%20default_transaction_read_only%3Don"
    memory = SupabaseMemory.from_conn_string(
        replica,
        user_id=user_id,
        retention=Retention(max_age=timedelta(days=1)),
        embeddings=WordEmbedder(),
        policy=SummaryPolicy(mode="background"),
        chunking=ChunkPolicy(mode="background"),
    )
    with memory:
        assert "m9" not in {each.message_id for each in memory.conversation("t").read(columns=["message_id"])}
        assert memory.conversation("t").count() == len(memory.conversation("t").read()) == 50
        assert len(memory.conversation("t").turns()) == 20
        pack = memory.conversation("t").context("Where is kiln 3?", budget=ContextBudget(characters=3000))
        assert pack.expired
        assert "The kiln number 3 " not in "".join(each.content for each in pack.recalled)
        assert memory.conversation("t").coverage().of(0).state == "expired"
        assert memory.conversation("t").summaries()
        assert not memory.conversation("t").board().is_empty
        assert memory.conversation("t").recall("kiln")
        assert [each.message_count for each in memory.conversations()] == [50]
        assert memory.work.status()
