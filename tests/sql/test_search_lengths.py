"""A chunk's length for ranking counts what lies beside it, in whatever order chunks are stored."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.testing import transcript

if TYPE_CHECKING:
    from collections.abc import Iterator

LENGTHS = (
    "select k.place, k.part, k.lexemes, k.neighbor_share, k.search_length from memory.working_memory_chunks k"
    " where k.user_id = %s order by k.place, k.part"
)


@pytest.fixture
def connection(conn_string: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conn_string) as connection:
        yield connection
        connection.rollback()


def expected(rows: list[tuple[Any, ...]]) -> dict[tuple[int, int], tuple[float, float]]:
    """The share and length of each chunk, computed here."""
    messages: dict[int, int] = defaultdict(int)
    for place, _, lexemes, *_ in rows:
        messages[place] += lexemes
    counted = {place: min(30, lexemes) for place, lexemes in messages.items()}
    found = {}
    for place, part, lexemes, *_ in rows:
        share = min(1, 30 / max(messages[place], 1))
        near = sum(counted.get(place + distance, 0) for distance in range(-2, 3))
        beside = sum(counted.get(place + distance, 0) for distance in range(-1, 2))
        found[place, part] = share, lexemes * (1 - share / 2) + (near + beside) / 4
    return found


def check(connection: psycopg.Connection, user_id: str) -> None:
    rows = connection.execute(LENGTHS, [user_id]).fetchall()
    assert rows
    wanted = expected(rows)
    for place, part, _, share, length in rows:
        assert (share, length) == pytest.approx(wanted[place, part], rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_chunks_come_in_any_order(connection: psycopg.Connection, user_id: str, seed: int) -> None:
    random_ = random.Random(seed)
    row = connection.execute(
        "insert into memory.conversations (user_id, thread_id, language) values (%s, 't', 'english') returning id",
        [user_id],
    ).fetchone()
    assert row is not None
    places = [place for place in range(30) if random_.random() < 0.8]
    random_.shuffle(places)
    through = -1
    while places:
        batch, places = places[: (size := random_.randint(1, 7))], places[size:]
        chunks = [
            {"place": place, "part": part, "id": f"{row[0]}"[:-8] + f"{place:04}{part:04}", "from_sequence": place,
             "to_sequence": place, "message_ids": [f"m{place}"], "stretch": 0, "type": "fact", "role": "user",
             "speaker": None, "said_at": "2026-03-02", "content": "kiln glaze " * random_.randint(0, 40), "tokens": 4,
             "importance": 0.5, "cohesion": 0.5, "has_time": False, "has_number": False}
            for place in batch for part in range(1, random_.randint(2, 4))
        ]  # fmt: skip
        document = connection.execute(
            "select public.memory_commit_chunks('t', %s, %s, 0, %s, %s::json, p_user_id => %s)",
            [row[0], through, through + 1, json.dumps(chunks), user_id],
        ).fetchone()
        assert document is not None
        assert document[0]["committed"]
        through += 1
        check(connection, user_id)


def test_a_language_that_is_recognized_later_changes_them(
    connection: psycopg.Connection, conn_string: str, user_id: str
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        conversation = memory.conversation("t")
        for line in transcript.load()[:30]:
            conversation.append([line.message])
            conversation.index()
        check(connection, user_id)
        assert conversation.recall(transcript.load()[20].message.text).chunks


def test_only_what_is_worth_a_share_of_the_best_is_returned(
    connection: psycopg.Connection, conn_string: str, user_id: str
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        conversation = memory.conversation("t")
        conversation.append([line.message for line in transcript.load()[:60]])
        conversation.index()

    def scores(share: float | None) -> list[float]:
        row = connection.execute(
            "select public.memory_recall(%s::json, 't', null, %s)",
            [json.dumps({"query": "When does the kiln fire the mugs?", "min_share": share}), user_id],
        ).fetchone()
        assert row is not None
        return [each["score"] for each in row[0]["chunks"]]

    everything, half = scores(None), scores(0.5)
    assert half == [each for each in everything if each >= everything[0] / 2]
    assert 0 < len(half) < len(everything)
    assert scores(0.0) == [each for each in everything if each >= 0]
