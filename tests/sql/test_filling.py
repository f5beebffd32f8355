"""The benchmarks' generated rows match those of appends and indexing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from benchmarks import fill, work
from langchain_supabase_memory import ContextBudget, SupabaseMemory
from tests.embedders import WordEmbedder
from tests.recount import assert_counted

if TYPE_CHECKING:
    from tests.services.postgres import Cluster

OWN = {
    "conversations": "id created_at updated_at updated_hour updated_before user_id thread_id branch_token",
    "conversation_messages": "user_id conversation_id created_at",
    "working_memory_chunks": "user_id conversation_id id created_at said_at expires_at",
    "chunk_postings": "user_id conversation_id",
    "chunk_embeddings": "user_id conversation_id",
}
"""What differs from one owner, and from one minute, to the next."""


def rows(connection: psycopg.Connection[Any], table: str, owner: str) -> list[Any]:
    kept = f"select to_jsonb(t) - %s::text[] as row from memory.{table} t where user_id = %s order by 1"
    return connection.execute(kept.encode(), [OWN[table].split(), owner]).fetchall()


def test_a_crowd_is_as_if_each_had_talked(cluster: Cluster) -> None:
    address, embedder = cluster.conn_string(name := cluster.migrated_database()), WordEmbedder()
    wanted = fill.Crowd(messages=2000, words=1500, vectors=1200)
    fill.crowd(cluster.conn_string(name, "supabase_admin"), wanted, embedder)
    with psycopg.connect(address) as connection:
        with SupabaseMemory.from_conn_string(address, embeddings=embedder, model=None) as memory:
            for thread in range(10):
                said = memory.for_user("owner-11").conversation(f"talk-{thread}").read()
                assert [each.sequence for each in said] == list(range(10))
                real = memory.for_user("real").conversation(f"talk-{thread}")
                real.append([each.message for each in said if each.message is not None])
                real.index()
            assert memory.for_user("owner-11").recall("refund").chunks
            assert not memory.for_user("owner-17").recall("refund").chunks
        for table in OWN:
            assert rows(connection, table, "owner-11") == rows(connection, table, "real") != [], table
            assert len(rows(connection, table, "owner-1")) == len(rows(connection, table, "owner-11")), table
        found = connection.execute(
            "select c.user_id, bool_and(c.indexed_through = 9), bool_and(c.unembedded_from is null),"
            " (select count(*) from memory.chunk_embeddings e where e.user_id = c.user_id) > 0,"
            " (select count(*) from memory_private.work w where w.user_id = c.user_id)"
            " from memory.conversations c where c.user_id = any (%s) group by 1 order by 1",
            [["owner-5", "owner-11", "owner-12", "owner-14", "owner-15", "owner-19"]],
        ).fetchall()
        assert found == [
            ("owner-11", True, True, True, 1), ("owner-12", True, False, False, 1), ("owner-14", True, False, False, 1),
            ("owner-15", False, True, False, 1), ("owner-19", False, True, False, 1), ("owner-5", True, True, True, 1),
        ]  # fmt: skip
        for owner in ("owner-5", "owner-11", "owner-19"):
            assert_counted(connection, owner)


def test_copies_of_an_owner_are_as_if_each_had_talked(cluster: Cluster) -> None:
    address = cluster.conn_string(name := cluster.migrated_database())
    budget = ContextBudget(characters=1000)
    with SupabaseMemory.from_conn_string(address, budget=budget) as memory, psycopg.connect(address) as connection:
        for owner in ("first", "real"):
            conversation = memory.for_user(owner).conversation(owner)
            conversation.append([work.short(place).model_copy(update={"id": f"m-{place}"}) for place in range(60)])
            conversation.index()
            conversation.summaries.make()
        fill.copies(cluster.conn_string(name, "supabase_admin"), "first", ["second", "third"])
        for table in (each for each in OWN if each != "chunk_embeddings"):
            for owner in ("second", "third"):
                assert rows(connection, table, owner) == rows(connection, table, "first") != [], table
        copied, real = (memory.for_user(owner).conversation(owner) for owner in ("third", "real"))
        assert (
            [each.content for each in copied.summaries.list()] == [each.content for each in real.summaries.list()] != []
        )
        assert copied.context("refund?").messages == real.context("refund?").messages
        copied.append([work.short(60), work.short(61)])
        assert copied.count() == 62
        assert memory.for_user("second").conversation("second").count() == 60
