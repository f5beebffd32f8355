"""A query for one owner never reads another's rows, whatever the number of owners and the planner's statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.operations.recall import summaries as summary_recall
from langchain_supabase_memory.values import Scope
from tests.counting import NEVER, OTHERS, SHORT_ONES, CountingTransport
from tests.embedders import WordEmbedder
from tests.sql.test_replicas import REQUIRED, filled, verbs

if TYPE_CHECKING:
    from tests.services.postgres import Cluster

OWNER = "maya"
MOST = 4500
"""Rows and entries of indexes: fewer than the others have conversations, and a fifth of their messages."""

GIVEN = {
    **REQUIRED,
    "p_user_id": OWNER,
    "p_vector": str(WordEmbedder().embed_query("kiln")),
    "p_retention": '{"age": 86400, "turns": 5, "summary_age": 86400}',
}


@pytest.fixture(scope="module", params=[NEVER, OTHERS])
def address(request: pytest.FixtureRequest, cluster: Cluster) -> str:
    """Five thousand conversations of others, each due and summarized, and one owner's."""
    name = cluster.migrated_database(spaces=True)
    if request.param == NEVER:
        cluster.leave_unvacuumed(name, "memory.conversations")
        cluster.leave_unvacuumed(name, "memory.conversation_summaries")
    with psycopg.connect(cluster.conn_string(name, "supabase_admin"), autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")
        connection.execute(SHORT_ONES.encode())
        connection.execute(
            "insert into memory_private.work (user_id, conversation_id) select user_id, id from memory.conversations"
        )
        connection.execute(
            "insert into memory.conversation_summaries (user_id, conversation_id, number, from_sequence, to_sequence,"
            " message_ids, content, characters, tokens, covered_characters, covered_tokens)"
            " select user_id, id, 1, 0, 1, '{}', 'a kiln', 6, 2, 0, 0 from memory.conversations"
        )
        if request.param == OTHERS:
            connection.execute("analyze")
    filled(cluster.conn_string(name), OWNER)
    return cluster.conn_string(name)


def test_a_read_of_one_owner_reads_nobody_else(address: str) -> None:
    far: dict[str, int] = {}
    with psycopg.connect(address, autocommit=True) as connection:
        transport = CountingTransport(connection)
        reads = {name: required for name, (volatile, _, required) in verbs(connection).items() if volatile != "v"}
        for name, required in reads.items():
            [(names,)] = connection.execute(
                "select coalesce(proargnames[:pronargs], '{}') from pg_proc where oid = %s::regproc", [name]
            ).fetchall()
            if "p_user_id" not in names:
                continue
            wanted = {
                each: GIVEN[each] for each in names if each in required or each in ("p_user_id", "p_model", "p_vector")
            }
            for _ in range(7):  # after five the planner turns to a generic plan
                transport.perform(Call(name.removeprefix("public."), wanted))
                far[name] = max(transport.taken().read, far.get(name, 0))
    assert {"public.memory_recall_summaries", "public.memory_unembedded_summaries", "public.memory_status"} <= set(far)
    assert {name: read for name, read in far.items() if read > MOST} == {}


def test_a_vector_of_one_owner_s_summary_reads_nobody_else(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        transport = CountingTransport(connection)
        memory = SupabaseMemory(transport, user_id=OWNER, embeddings=WordEmbedder(), model=None)
        flow: Any = summary_recall.index_summaries(Scope(OWNER, "default", "t"), embedder="words")
        assert memory._services.run(flow) == 1
        assert transport.taken().read < MOST
