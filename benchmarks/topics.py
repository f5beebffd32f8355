"""Measure how well topics are found: 24 planted topics, 40 episodes each, by words and by all-MiniLM-L6-v2.

    python -m benchmarks.topics [--by words|vectors]

By vectors it needs the interpreter of `.tools/retrieval`. Rand indices are adjusted: 1 is perfect, 0 chance.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import TYPE_CHECKING, Any, Final

import psycopg
from langchain_core.messages import AIMessage, HumanMessage

from benchmarks.harness import Table
from benchmarks.topic_corpus import adjusted_rand_index, talks
from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.operations.topics import assign
from tests.services.postgres import Cluster

if TYPE_CHECKING:
    from benchmarks.topic_corpus import Talk

_ROWS: Final = """
select c.thread_id, s.topic_id::text from memory.topic_stretches s
join memory.conversations c on c.user_id = s.user_id and c.id = s.conversation_id where s.user_id = 'topics'
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.topics", description="Measure how topics are found.")
    parser.add_argument("--by", choices=["words", "vectors"], action="append", help="only this; may be repeated")
    for by in parser.parse_args().by or ["words", "vectors"]:
        embeddings: Any = None
        if by == "vectors":
            from benchmarks.retrieval.embedder import MiniLM

            embeddings = MiniLM()
        with Cluster() as cluster:
            address = cluster.conn_string(cluster.migrated_database())
            with SupabaseMemory.from_conn_string(
                address, user_id="topics", model=None, embeddings=embeddings
            ) as memory:
                print(_measured(memory, address, by).text() + "\n", flush=True)


def _measured(memory: SupabaseMemory, address: str, by: str) -> Table:
    planted = talks()
    for number, each in enumerate(planted):
        conversation = memory.conversation(f"t{number:04d}")
        conversation.append([HumanMessage(text) if role == "user" else AIMessage(text) for role, text in each.messages])
        conversation.index()
    began = time.perf_counter()
    keys = [memory._services.key(f"t{number:04d}", None, None) for number in range(len(planted))]
    count = sum(memory._services.run(assign(key, embedder=memory._services.embedder_name)) for key in keys)
    assigned = time.perf_counter() - began
    rows = [("episodes", count), ("milliseconds an episode", round(1000 * assigned / count, 1))]
    rows.append(("Rand index right behind the index", _index(address, planted)))
    began = time.perf_counter()
    memory.topics.recluster()
    rows.append(("seconds to find them anew", round(time.perf_counter() - began, 2)))
    rows.append(("Rand index, found anew", _index(address, planted)))
    before = {each.id for each in memory.topics.read(limit=500)}
    rows.append(("topics", len(before)))
    draw = random.Random(41)
    for number in range(len(planted)):
        conversation = memory.conversation(f"t{number:04d}")
        for message in conversation.read():
            if message.message_id is not None and draw.random() < 0.1:
                conversation.forget_message(message.message_id)
        conversation.index()
    memory.topics.update()
    memory.topics.recluster()
    after = {each.id for each in memory.topics.read(limit=500)}
    rows.append(("ids kept after a tenth was forgotten", round(len(before & after) / len(before), 3)))
    return Table(f"Topics by {by}", ["", by], [[name, str(value)] for name, value in rows])


def _index(address: str, planted: list[Talk]) -> float:
    with psycopg.connect(address) as connection:
        found = connection.execute(_ROWS).fetchall()
    names = [planted[int(thread[1:])].topic for thread, _ in found]
    return round(adjusted_rand_index([topic for _, topic in found], list(names)), 3)


if __name__ == "__main__":
    main()
