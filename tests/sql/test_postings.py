"""Posting lists hold the recorded places, in rows found by place, whatever the order of insertion and deletion."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from uuid import UUID

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.services.postgres import Cluster

FAR = 9007199254740991
WORDS = ("kiln", "glaze", "陶器", "x" * 100)

Posting = tuple[str, int, int]
"""A word, a place and a part."""


@pytest.fixture
def connection(conn_string: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conn_string) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def conversation(connection: psycopg.Connection, user_id: str) -> UUID:
    row = connection.execute(
        "insert into memory.conversations (user_id, thread_id) values (%s, 't') returning id", [user_id]
    ).fetchone()
    assert row is not None
    found: UUID = row[0]
    return found


def post(connection: psycopg.Connection, user_id: str, conversation: UUID, noted: dict[Posting, int]) -> None:
    connection.execute(
        "select memory_private.insert_postings(%s, %s, %s, %s::bigint[], %s::integer[], %s::integer[])",
        [user_id, conversation, *([key[at] for key in noted] for at in range(3)), list(noted.values())],
    )


def stored(connection: psycopg.Connection, user_id: str) -> dict[Posting, int]:
    """What the rows say, each posting checked to lie where a look-up by its place finds it."""
    rows = connection.execute(
        "select lexeme, first, array(select first + (p >> 45) from unnest(postings) p),"
        " array(select (p >> 15) & 1073741823 from unnest(postings) p), array(select p & 32767 from unnest(postings) p)"
        " from memory.chunk_postings where user_id = %s",
        [user_id],
    ).fetchall()
    firsts: dict[str, list[int]] = {}
    for lexeme, first, *_ in rows:
        firsts.setdefault(lexeme, []).append(first)
    found: dict[Posting, int] = {}
    for lexeme, first, places, parts, counts in rows:
        assert places
        assert [*zip(places, parts, strict=True)] == sorted(zip(places, parts, strict=True))
        for place, part, count in zip(places, parts, counts, strict=True):
            assert first == max(each for each in firsts[lexeme] if each <= place)
            assert place >> 17 == first >> 17
            assert (lexeme, place, part) not in found
            found[lexeme, place, part] = count
    return found


@pytest.mark.parametrize("seed", range(8))
def test_they_say_what_was_noted(connection: psycopg.Connection, user_id: str, conversation: UUID, seed: int) -> None:
    source = random.Random(seed)
    reach = (40, 300, 200_000, 2 * FAR)[seed % 4]
    kept: dict[Posting, int] = {}
    for _ in range(12):
        start = source.randint(-reach // 2, reach // 2)
        places = {max(-FAR, min(start + source.randint(0, min(reach, 90)), FAR)) for _ in range(source.randint(1, 40))}
        new = {
            (word, place, part): source.choice((1, 2, 32767))
            for place in places - {place for _, place, _ in kept}
            for word in WORDS
            if source.random() < 0.6
            for part in ((1,) if source.random() < 0.8 else (1, 2, 10**9))
        }
        post(connection, user_id, conversation, new)
        kept |= new
        assert stored(connection, user_id) == kept
        gone = source.sample(sorted({place for _, place, _ in kept}), min(len(kept), 5) // 2)
        for word, first in connection.execute(
            "select lexeme, first from memory.chunk_postings where user_id = %s", [user_id]
        ).fetchall():
            connection.execute(
                "select memory_private.delete_postings(%s, %s, %s, %s, %s::bigint[])",
                [user_id, word, conversation, first, gone],
            )
        kept = {key: count for key, count in kept.items() if key[1] not in gone}
        assert stored(connection, user_id) == kept


def test_a_list_that_is_full_is_left_as_it_is(connection: psycopg.Connection, user_id: str, conversation: UUID) -> None:
    written: list[int] = []
    for place in range(100):
        post(connection, user_id, conversation, {("kiln", place, 1): 1})
        row = connection.execute(
            "select cardinality(postings) from memory.chunk_postings where user_id = %s order by first desc limit 1",
            [user_id],
        ).fetchone()
        assert row is not None
        written.append(row[0])
    assert written == [place % 16 + 1 for place in range(100)]
    post(connection, user_id, conversation, {("glaze", place, 1): 1 for place in range(100)})
    rows = connection.execute(
        "select lexeme, array_agg(cardinality(postings) order by first) from memory.chunk_postings where user_id = %s"
        " group by lexeme order by lexeme",
        [user_id],
    ).fetchall()
    assert rows == [("glaze", [16] * 6 + [4]), ("kiln", [16] * 6 + [4])]


def test_they_go_with_their_conversation(connection: psycopg.Connection, user_id: str, conversation: UUID) -> None:
    post(connection, user_id, conversation, {(word, place, 1): 1 for word in WORDS for place in range(40)})
    connection.execute("delete from memory.conversations where user_id = %s", [user_id])
    assert stored(connection, user_id) == {}


def test_a_long_run_without_spaces_is_taken_apart_once(connection: psycopg.Connection) -> None:
    letters = random.Random(1).choices([chr(0x4E00 + each) for each in range(40)], k=300_000)
    text = "".join(letters) + " kiln 窯 陶器 記憶は"
    pairs = Counter(map("".join, pairwise(letters))) + Counter(["窯", "陶器", "記憶", "憶は"])
    rows = connection.execute("select lexeme, count from memory_private.lexemes('simple', %s)", [text]).fetchall()
    assert dict(rows) == {**pairs, "kiln": 1}


def test_the_words_of_a_long_text_cost_no_call_each(cluster: Cluster, conn_string: str) -> None:
    korean = " ".join(f"{chr(0xAC00 + at)}{chr(0xB000 + at)}은 전화" for at in range(500))
    plain = " ".join(f"привет{at} kiln{at}" for at in range(500))
    database = conninfo_to_dict(conn_string)["dbname"]
    with psycopg.connect(cluster.conn_string(str(database), "supabase_admin")) as connection:
        connection.execute("set local track_functions = 'all'")
        lexemes = connection.execute(
            "select count(*) from unnest(%s::text[]) t cross join lateral memory_private.lexemes('simple', t)",
            [[korean, plain]],
        ).fetchone()
        assert lexemes == (500 * 3 + 1 + 1000,), "each longer word of Korean, its two pairs, and the others as they are"
        calls = connection.execute(
            "select coalesce(sum(calls), 0) from pg_stat_xact_user_functions where funcname = 'word_forms'"
        ).fetchone()
        assert calls == (1,)
