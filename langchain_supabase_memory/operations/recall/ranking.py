"""Rankings on the client: merge several, apply a reranker, and keep what fits."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from langchain_supabase_memory.language.messages import content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.documents import Document

    from langchain_supabase_memory.effects import RankingFunction
    from langchain_supabase_memory.values import Chunk


def interleave(rankings: Sequence[Sequence[Chunk]], steps: Sequence[int]) -> list[Chunk]:
    """Merge several rankings into one: the best of each first, then the second best, and so on.

    Args:
        rankings: The rankings, each the best first.
        steps: How many positions one step in each ranking counts: with 2, it gets every other position.

    Returns:
        Each chunk once, at its best position; of exact duplicates only the best one.
    """
    places: dict[str, tuple[int, int, Chunk]] = {}
    for number, (ranking, step) in enumerate(zip(rankings, steps, strict=True)):
        for place, chunk in enumerate(ranking, 1):
            said = chunk.content.strip(" ").lower()  # as in the database
            held = places.get(said)
            if held is None or (place * step, number) < held[:2]:
                places[said] = (place * step, number, chunk)
    return [chunk for _, _, chunk in sorted(places.values(), key=lambda each: each[:2])]


def fit_chunks(chunks: Sequence[Chunk], limit: int | None, characters: int | None) -> list[Chunk]:
    """Select the best chunks that fit, as `memory_private.recall_one` does.

    Chunks that no longer fit are skipped. Each chunk is returned once: a chunk that was found itself is listed
    itself, and a neighbor of several chunks is listed with the best of them.

    Args:
        chunks: The chunks, the best first, each with its neighbors.
        limit: The maximum number of chunks.
        characters: The maximum number of characters returned.
    """
    left = inf if characters is None else characters
    kept: list[tuple[Chunk, set[str]]] = []
    taken: set[str] = set()
    for chunk in chunks:
        if len(kept) == limit or left <= 0:
            break
        fresh = {each.id: len(each.content) for each in (*chunk.before, chunk, *chunk.after) if each.id not in taken}
        if not fresh or sum(fresh.values()) > left:
            continue
        left -= sum(fresh.values())
        taken.update(fresh)
        kept.append((chunk, set(fresh)))
    own = {chunk.id for chunk, _ in kept}
    return [
        replace(
            chunk,
            before=[each for each in chunk.before if each.id in fresh - own],
            after=[each for each in chunk.after if each.id in fresh - own],
        )
        for chunk, fresh in kept
    ]


def documents(chunks: Sequence[Chunk]) -> list[Document]:
    """Return chunks as documents for a reranker: with day and speaker before the text, as questions name them."""
    from langchain_core.documents import Document

    return [
        Document(
            f"[{each.said_at:%Y-%m-%d}] {content.speaker(content.LABELS[each.role], each.speaker)}: {each.content}",
            id=each.id,
            metadata={
                "chunk_id": each.id,
                "thread_id": each.thread_id,
                "agent_id": each.agent_id,
                "place": each.place,
                "from_sequence": each.from_sequence,
                "to_sequence": each.to_sequence,
                "role": each.role,
                "speaker": each.speaker,
                "said_at": each.said_at.isoformat(),
                "score": each.score,
                "score_parts": dict(each.score_parts),
            },
        )
        for each in chunks
    ]


def reorder(chunks: Sequence[Chunk], order: Sequence[RankingFunction]) -> list[Chunk]:
    """Return chunks in a reranker's order, followed by those that it did not rank, in their previous order."""
    first = [
        replace(chunks[place], score_parts={**chunks[place].score_parts, "rerank": 1 / rank if fit is None else fit})
        for rank, (place, fit) in enumerate(order, 1)
    ]
    known = {place for place, _ in order}
    return [*first, *(chunk for place, chunk in enumerate(chunks) if place not in known)]
