"""Passages that recall found and did not return, each with the reason: its score, its rank, or no room. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from langchain_supabase_memory.values import Chunk, Recall

MAX_NEAR_MISSES: Final = 5
"""How many passages that just missed are shown."""

MissReason: TypeAlias = Literal["floor", "room", "rank"]
"""Why a passage was not returned: its score is below the minimum, it has no room, or the limit was reached."""


@dataclass(frozen=True)
class NearMiss:
    """A passage that was not returned.

    Attributes:
        chunk: The passage.
        rank: Its rank among all that recall finds, from 1.
        reason: Why it was not returned.
        text: The reason in words, with its numbers.
    """

    chunk: Chunk
    rank: int
    reason: MissReason
    text: str


def near_misses(
    returned: Recall, ranked: Recall, *, limit: int, characters: int | None, min_similarity: float | None
) -> list[NearMiss]:
    """Return the best passages that a recall did not return.

    Args:
        returned: What it returned.
        ranked: What the same question finds with a larger limit, and with no minimum and no bound on characters.
        limit: The most passages that it could return.
        characters: The most characters that it could return; `None` for any number.
        min_similarity: Its minimum similarity; `None` for none.
    """
    shown = {chunk.id for chunk in returned.chunks}
    left = None if characters is None else characters - sum(len(chunk.content) for chunk in returned.chunks)
    best_words = max((chunk.words or 0.0 for chunk in ranked.chunks), default=0.0) or 1.0
    missed: list[NearMiss] = []
    for rank, chunk in enumerate(ranked.chunks, 1):
        if chunk.id in shown or len(missed) == MAX_NEAR_MISSES:
            continue
        # As in the database: without a vector the keyword score, in relation to the best.
        score = (chunk.words or 0.0) / best_words if chunk.similarity is None else chunk.similarity
        name = "keyword score" if chunk.similarity is None else "similarity"
        size = len(chunk.content)
        if min_similarity is not None and score < min_similarity:
            missed.append(NearMiss(chunk, rank, "floor", f"its {name} of {score:.2f} is below {min_similarity:.2f}"))
        elif left is not None and len(shown) < limit and size > left:
            missed.append(NearMiss(chunk, rank, "room", f"no room: it has {size:,} characters, and {left:,} were left"))
        else:
            missed.append(NearMiss(chunk, rank, "rank", f"its rank is {rank}, beyond the limit of {limit}"))
    return missed
