"""Measure storing a batch of chunks, next to a bare insert of the same rows and of the vectors alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from benchmarks.harness import WARM_UP, timed

if TYPE_CHECKING:
    from uuid import UUID

    from psycopg_pool import ConnectionPool

    from benchmarks.corpus import Corpus

BATCH: Final = 16
ROUNDS: Final = 150
WRITER: Final = "writer"
OURS: Final = "memory_commit_chunks, JSON ready"
SAME_ROWS: Final = "floor: bare INSERT of the same rows"
VECTORS: Final = "bare INSERT of the vectors only"

_CONVERSATION: Final = (
    b"insert into memory.conversations (user_id, id, thread_id, next_sequence, message_count, language)"
    b" values ('writer', %(id)s, %(id)s::text, 10000, 10000, 'english')"
)
_BARE_CHUNKS: Final = b"""
insert into memory.working_memory_chunks (
  user_id, conversation_id, place, part, id, from_sequence, to_sequence, message_ids, stretch, type, role, said_at,
  content, characters, tokens, lexemes, terms, importance)
select 'writer', %(id)s, n, 1, gen_random_uuid(), n, n, '{m}', 0, 'dialogue', 'user', now(), '', 0, 0, 0, 0, 0
from generate_series(0, %(number)s - 1) n
"""
_INSERT_VECTORS: Final = """
insert into memory.chunk_embeddings (user_id, conversation_id, place, part, model, dimensions, embedding)
select 'writer', %(id)s, v.place, 1, 'bench', %(width)s, v.vector::extensions.halfvec
from unnest(%(places)s::bigint[], %(vectors)s::text[]) as v (place, vector)
"""
_INSERT_ALL: Final = f"""
with chunks as (
  insert into memory.working_memory_chunks (
    user_id, conversation_id, place, part, id, from_sequence, to_sequence, message_ids, stretch, type, role, said_at,
    content, characters, tokens, lexemes, terms, importance, cohesion)
  select 'writer', %(id)s, i.place, i.part, i.id, i.from_sequence, i.to_sequence, '{{m}}', i.stretch, i.type, i.role,
         i.said_at, i.content, i.characters, i.tokens, 14, 14, i.importance, i.cohesion
  from json_to_recordset(%(chunks)s) as i (
    place bigint, part integer, id uuid, from_sequence bigint, to_sequence bigint, stretch bigint, type text, role text,
    said_at timestamptz, content text, characters integer, tokens integer, importance real, cohesion real)),
postings as (
  insert into memory.chunk_postings (user_id, lexeme, conversation_id, first, postings)
  select 'writer', l.lexeme, %(id)s, l.first, array_agg(((l.place - l.first) << 45) | 32769 order by l.place)
  from (select l.lexeme, l.place, min(l.place) over (partition by l.lexeme) as first
        from unnest(%(lexemes)s::text[], %(lexeme_places)s::bigint[]) as l (lexeme, place)) l
  group by l.lexeme, l.first)
{_INSERT_VECTORS}"""
_COMMIT: Final = b"""
select public.memory_commit_chunks(
  p_thread_id => %(id)s::text, p_conversation_id => %(id)s, p_through => %(through)s, p_revision => 0, p_to => %(to)s,
  p_chunks => %(chunks)s, p_model => 'bench', p_user_id => 'writer')
"""


@dataclass(frozen=True)
class _Batch:
    """New chunks in every form, at consecutive places from `first` on."""

    first: int
    chunks: str
    chunks_with_vectors: str
    lexemes: list[str]
    lexeme_places: list[int]
    vectors: list[str]

    @property
    def places(self) -> list[int]:
        return list(range(self.first, self.first + BATCH))


async def measured(made: Corpus, pool: ConnectionPool, width: int, *, seconds: float) -> dict[str, list[float]]:
    """Return the times of each contestant, each with its own conversation."""
    ids: dict[str, UUID] = {name: uuid4() for name in (VECTORS, SAME_ROWS, OURS)}
    batches = count()
    with pool.connection() as connection:
        for name, id_ in ids.items():
            connection.execute(_CONVERSATION, {"id": id_})
            if name == VECTORS:  # the chunks that the vectors belong to
                connection.execute(_BARE_CHUNKS, {"id": id_, "number": (ROUNDS + WARM_UP) * BATCH * len(ids)})
    through = -1

    def floor(batch: _Batch) -> None:
        values = {
            "id": ids[SAME_ROWS], "chunks": batch.chunks, "lexemes": batch.lexemes,
            "lexeme_places": batch.lexeme_places, "width": width, "places": batch.places, "vectors": batch.vectors,
        }  # fmt: skip
        with pool.connection() as connection:
            connection.execute(_INSERT_ALL.encode(), values)

    def vectors(batch: _Batch) -> None:
        values = {"id": ids[VECTORS], "width": width, "places": batch.places, "vectors": batch.vectors}
        with pool.connection() as connection:
            connection.execute(_INSERT_VECTORS.encode(), values)

    def ours(batch: _Batch) -> None:
        nonlocal through
        last = batch.first + BATCH - 1
        values = {"id": ids[OURS], "through": through, "to": last, "chunks": batch.chunks_with_vectors}
        with pool.connection() as connection:
            row = connection.execute(_COMMIT, values).fetchone()
        assert row is not None
        assert row[0]["committed"], row[0]
        through = last

    def supply() -> _Batch:
        # Each contestant gets different vectors: one that is already in the index costs less.
        return _batch(made, next(batches) * BATCH)

    contestants: dict[str, Any] = {VECTORS: vectors, SAME_ROWS: floor, OURS: ours}
    return await timed(contestants, supply, rounds=ROUNDS, seconds=seconds)


def _batch(made: Corpus, first: int) -> _Batch:
    fresh = made.fresh(BATCH)
    rows = []
    for place, (words, _) in enumerate(fresh, first):
        content = f"I was at the {' and the '.join(words)}"
        rows.append(
            {
                "place": place, "part": 1, "id": str(uuid4()), "from_sequence": place, "to_sequence": place,
                "message_ids": [f"m-{place}"], "stretch": first, "type": "dialogue", "role": "user", "speaker": None,
                "said_at": "2026-11-21T10:00:00+00:00", "content": content, "characters": len(content),
                "tokens": len(content) // 4, "importance": 0.3, "cohesion": 0.6, "has_time": False, "has_number": False,
            }
        )  # fmt: skip
    pairs = [
        (lexeme, place)
        for place, (words, _) in enumerate(fresh, first)
        for lexeme in dict.fromkeys([*words, "novemb", "2026"])
    ]
    return _Batch(
        first=first,
        chunks=json.dumps(rows),
        chunks_with_vectors=json.dumps(
            [{**row, "embedding": vector} for row, (_, vector) in zip(rows, fresh, strict=True)]
        ),
        lexemes=[lexeme for lexeme, _ in pairs],
        lexeme_places=[place for _, place in pairs],
        vectors=[json.dumps(vector) for _, vector in fresh],
    )
