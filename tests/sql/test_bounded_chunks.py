"""The rows of indexing and forgetting do not grow with the conversation, and those of recall not with other users."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from tests.counting import NEVER, OTHERS, SHORT_ONES, messages, most_touched
from tests.services.postgres import Cluster

TABLES = ("working_memory_chunks", "chunk_postings", "chunk_embeddings")

FILL = """
with conversation as (
  insert into memory.conversations (user_id, thread_id, next_sequence, message_count, total_characters, indexed_through,
    chunk_count, speakers, language)
  select 'u', t, size, size, size * 12, size - 1, size, array(select 's' || n * 100 from generate_series(1, 49) n) || array['Ana'],
         'english'
  from (values ('long', 5000), ('short', 100)) as t (t, size) returning user_id, id, next_sequence as size),
message as (
  insert into memory.conversation_messages (user_id, conversation_id, sequence, message_id, role, text, characters, tokens,
    payload)
  select user_id, id, n, 'm' || n, 'user', 'message', 12, 3, '{"type": "human", "data": {}}'
  from conversation, generate_series(0, size - 1) n),
chunk as (
  insert into memory.working_memory_chunks (user_id, conversation_id, place, part, id, from_sequence, to_sequence,
    message_ids, stretch, type, role, speaker, said_at, content, characters, tokens, lexemes, terms, importance, expires_at)
  select user_id, id, n, 1, gen_random_uuid(), n, n, array['m' || n], n / 20 * 20, 'dialogue', 'user',
         case when n % 100 = 0 then 's' || n else 'Ana' end, '2026-03-02', 'number n' || n, length('number n' || n), 3, 4, 4, 0.5, now() + n * interval '1 second' + interval '7 days'
  from conversation, generate_series(0, size - 1) n),
lexeme as (
  insert into memory.chunk_postings (user_id, lexeme, conversation_id, first, postings)
  select user_id, w, id, min(n), array_agg(((n - n / 16 * 16)::bigint << 45) | 32769 order by n)
  from conversation, generate_series(0, size - 1) n, unnest(array['number', 'march', '2026']) w
  group by user_id, w, id, n / 16
  union all
  select user_id, 'n' || n, id, n, array[32769] from conversation, generate_series(0, size - 1) n)
insert into memory.chunk_embeddings (user_id, conversation_id, place, part, model, dimensions, embedding)
select user_id, id, n, 1, 'words', 3, '[1,0,0]' from conversation, generate_series(0, size - 1) n
"""


def filled(planner: Cluster, *, after_others: bool = False) -> str:
    name = planner.migrated_database()
    for table in ("conversations", "conversation_messages", *TABLES):
        planner.leave_unvacuumed(name, f"memory.{table}")
    if after_others:
        planner.execute(SHORT_ONES, database=name)
        planner.execute("analyze", database=name)
    planner.execute(FILL, database=name)
    return name


@pytest.fixture(scope="module", params=[NEVER, "analyzed", OTHERS])
def connection(planner: Cluster, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """A conversation of 5,000 chunks and one of 100, with good, bad and no statistics."""
    name = filled(planner, after_others=True) if request.param == OTHERS else planner.copy_made_by(filled)
    if request.param == "analyzed":
        planner.execute("analyze", database=name)
    with psycopg.connect(planner.conn_string(name), autocommit=True) as connection:
        yield connection


def chunk(place: int) -> dict[str, Any]:
    return {
        "place": place, "part": 1, "id": f"00000000-0000-4000-8000-{place:012}", "from_sequence": place,
        "to_sequence": place, "message_ids": [f"m{place}"], "stretch": place, "type": "fact", "role": "user",
        "speaker": None, "said_at": "2026-03-02", "content": f"a new number {place}", "tokens": 4,
        "importance": 0.5, "cohesion": 0.5, "has_time": False, "has_number": True, "embedding": [0.0, 1.0, 0.0],
    }  # fmt: skip


def test_what_is_pending_touches_the_end(connection: psycopg.Connection) -> None:
    read = "select public.memory_pending_chunks('long', 'u', p_model => 'words')"
    assert most_touched(connection, read, [], ("conversation_messages", *TABLES)) <= 150


def test_a_commit_touches_what_it_stores(connection: psycopg.Connection) -> None:
    commit = """select public.memory_commit_chunks('long', c.id, c.indexed_through, c.revision, c.indexed_through + 1,
      %s::json, p_model => 'words', p_max_age => 604800, p_user_id => 'u')
      from memory.conversations c where c.thread_id = 'long'"""
    assert most_touched(connection, commit, lambda n: [json.dumps([chunk(6000 + n)])], TABLES) <= 60


def test_an_edit_touches_its_chunk(connection: psycopg.Connection) -> None:
    append = "select public.memory_append('long', %s, 'u')"
    assert most_touched(connection, append, lambda n: [messages(f"m{1000 + n}")], TABLES) <= 80


def test_forgetting_a_message_touches_its_chunk(connection: psycopg.Connection) -> None:
    forget = "select public.memory_forget_message('long', %s, 'u')"
    assert most_touched(connection, forget, lambda n: [f"m{2000 + n}"], TABLES) <= 80


def test_forgetting_all_of_a_speaker_touches_their_chunk(connection: psycopg.Connection) -> None:
    forget = "select public.memory_forget_message('long', %s, 'u')"
    assert most_touched(connection, forget, lambda n: [f"m{3000 + n * 100}"], TABLES) <= 80
    row = connection.execute("select speakers from memory.conversations where thread_id = 'long'").fetchone()
    assert row is not None
    assert "s2900" in row[0]
    assert "s3000" not in row[0]
    assert "Ana" in row[0]


def test_retention_touches_what_goes(connection: psycopg.Connection) -> None:
    # The first eight go one after the other.
    append = "select public.memory_append('long', %s, 'u', p_retention => %s)"
    kept = connection.execute("select message_count from memory.conversations where thread_id = 'long'").fetchone()
    assert kept is not None

    def arguments(number: int) -> list[Any]:
        return [messages(f"new-{number}"), json.dumps({"messages": kept[0]})]

    assert most_touched(connection, append, arguments, TABLES) <= 100


def test_nothing_expired_touches_nothing(connection: psycopg.Connection) -> None:
    cleanup = "select public.memory_forget_expired(p_user_id => 'u')"
    assert most_touched(connection, cleanup, [], TABLES) <= 10


@pytest.mark.parametrize("connection", [NEVER, OTHERS], indirect=True)  # else it knows that all of it is little
def test_recall_touches_its_own_conversation(connection: psycopg.Connection) -> None:
    """Beside one of 5,000 chunks; it looks at each of its hundred, their words and their vectors."""
    ask = json.dumps(
        {
            "query": "number n7",
            "vectors": [{"names": [], "vector": [1, 0, 0]}],
            "model": "words",
            "limit": 10,
            "neighbors": 1,
        }
    )
    recall = "select public.memory_recall(%s::json, 'short', 'default', 'u')"
    assert most_touched(connection, recall, [ask], TABLES) <= 800


def test_recall_around_candidates_does_not_touch_everything(connection: psycopg.Connection) -> None:
    ask = json.dumps({"query": "n77 n2500", "limit": 2, "exact_below": 0})
    recall = "select public.memory_recall(%s::json, 'long', 'default', 'u')"
    assert most_touched(connection, recall, [ask], TABLES) <= 200


RANKED_BY = {
    "user_id": "text", "conversations": "uuid[]", "lexemes": "text[]", "name_lexemes": "text[]",
    "is_question": "boolean", "vector": "extensions.halfvec", "model": "text", "chunks": "bigint",
    "since": "timestamptz", "until": "timestamptz", "types": "text[]", "min_importance": "float8",
    "conversation": "uuid", "without": "int8multirange", "width": "integer", "speakers": "text[]", "wants": "text[]",
    "dates": "json", "said_order": "text", "zone": "text", "weights": "json", "min_similarity": "float8",
    "min_share": "float8", "max_ranked": "integer", "reads_all": "boolean", "near_conversations": "uuid[]", "near_places": "bigint[]", "max_near": "integer",
}  # fmt: skip
"""The names that the statement has, in the order of the arguments below, and their types."""


def plan(connection: psycopg.Connection, *, candidates: bool, lexemes: list[str], places: list[int]) -> dict[str, Any]:
    """The executed plan of the ranking of the only conversation; with candidates, around those near by meaning."""
    function = "memory_private.rank_near" if candidates else "memory_private.rank_all"
    row = connection.execute("select proconfig from pg_proc where oid = %s::regproc", [function]).fetchone()
    assert row is not None
    for setting, _, value in (each.partition("=") for each in row[0]):
        connection.execute("select set_config(%s, %s, true)", [setting, value.strip('"')])
    row = connection.execute(
        "select memory_private.ranking_sql(%s, true, false), c.id, c.chunk_count from memory.conversations c",
        [candidates],
    ).fetchone()
    assert row is not None
    statement, conversation, size = row
    around = [[str(conversation)] * len(places), places] if candidates else [[], []]
    given = ["u", [str(conversation)], lexemes, [], True, "[1,0,0]", "words", size, *[None] * 6, 3,
             [], [], "[]", None, "UTC", "{}", None, None, 70, False, *around, 200]  # fmt: skip
    for number, field in enumerate(RANKED_BY, 1):
        statement = re.sub(rf"\bv_{field}\b", f"${number}", statement)
    connection.execute(f"prepare ranked ({', '.join(RANKED_BY.values())}) as {statement}".encode())
    arguments = ", ".join(["%s"] * len(given))
    explain = f"explain (analyze, costs off, timing off, format json) execute ranked ({arguments})"
    row = psycopg.ClientCursor(connection).execute(explain.encode(), given).fetchone()
    connection.execute("deallocate ranked")
    assert row is not None
    found: dict[str, Any] = row[0][0]["Plan"]
    return found


@pytest.mark.parametrize("candidates", [False, True])
@pytest.mark.parametrize("analyzed", [False, True])
def test_an_import_is_ranked_by_joins_on_equality(planner: Cluster, analyzed: bool, candidates: bool) -> None:
    """No two rows are compared that are not of one chunk, before the first ANALYZE either: else it is quadratic."""
    name = planner.migrated_database()
    for table in ("conversations", *TABLES):
        planner.leave_unvacuumed(name, f"memory.{table}")
    planner.execute(FILL.replace("('long', 5000), ('short', 100)", "('long', 3000)"), database=name)
    if analyzed:
        planner.execute("analyze", database=name)
    with psycopg.connect(planner.conn_string(name)) as connection:
        ranked = plan(connection, candidates=candidates, lexemes=["number", "n7", "2026"], places=[*range(0, 3000, 2)])
    assert removed(ranked) <= 20_000


def removed(plan: dict[str, Any]) -> int:
    """How many pairs of rows the joins of a plan have looked at in vain."""
    here: int = plan.get("Rows Removed by Join Filter", 0) * plan["Actual Loops"]
    return here + sum(removed(each) for each in plan.get("Plans", []))


def made(plan: dict[str, Any]) -> int:
    """How many rows the steps of a plan have made or dropped, all together."""
    here = sum(plan.get(name, 0) for name in ("Actual Rows", "Rows Removed by Join Filter", "Rows Removed by Filter"))
    return int(here * plan["Actual Loops"]) + sum(made(each) for each in plan.get("Plans", []))


LONG = "".join(f"Paragraph {n} says number {n % 7} of March 2026 to a reader. " * 15 + "\n\n" for n in range(550))
"""A message of half a megabyte."""


def with_half_a_megabyte(planner: Cluster) -> str:
    name = planner.migrated_database()
    for table in ("conversations", *TABLES):
        planner.leave_unvacuumed(name, f"memory.{table}")
    with SupabaseMemory.from_conn_string(planner.conn_string(name), user_id="u") as memory:
        conversation = memory.conversation("long")
        texts = [*(f"The number {n} came in March." for n in range(20)), LONG, *(f"Number {n}?" for n in range(20, 40))]
        conversation.append([HumanMessage(text, id=f"m{n}") for n, text in enumerate(texts)])
        conversation.index()
    planner.execute(
        "insert into memory.chunk_embeddings (user_id, conversation_id, place, part, model, dimensions, embedding)"
        " select user_id, conversation_id, place, part, 'words', 3, '[1,0,0]' from memory.working_memory_chunks",
        database=name,
    )
    return name


@pytest.fixture(scope="module", params=[False, True], ids=["never analyzed", "analyzed"])
def long_message(planner: Cluster, request: pytest.FixtureRequest) -> str:
    """A database with one conversation: a message of half a megabyte among forty short ones."""
    name = planner.copy_made_by(with_half_a_megabyte)
    if request.param:
        planner.execute("analyze", database=name)
    return name


@pytest.mark.parametrize("candidates", [False, True])
def test_a_message_of_five_hundred_parts_is_ranked_part_by_part(
    planner: Cluster, long_message: str, candidates: bool
) -> None:
    """Neighbors are looked at message by message: no step makes rows for pairs of parts, which would be a quarter million."""
    lexemes = ["number", "march", "2026", "paragraph", "reader"]
    with psycopg.connect(planner.conn_string(long_message)) as connection:
        row = connection.execute("select chunk_count from memory.conversations").fetchone()
        assert row is not None
        assert row[0] > 500
        ranked = plan(connection, candidates=candidates, lexemes=lexemes, places=[20])
    assert made(ranked) <= 40 * len(lexemes) * row[0]
