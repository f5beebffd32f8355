"""Find episode boundaries: a pause, a change of topic, a completed action, or a size limit.

Every decision only looks back, so the same messages give the same episodes in whatever batches they arrive.
"""

from __future__ import annotations

import re
import struct
from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from operator import mul
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

    from langchain_supabase_memory.language.chunks.units import Unit

APART: Final = 3
"""Added to a unit's place after a long pause, so that neighbor expansion does not cross it."""

KNOWN: Final = 20
NEAR: Final = 2

_ENOUGH: Final = 5
_WORD: Final = re.compile(r"[^\W\d_]{4,}|\d{2,}")


@dataclass(frozen=True)
class PreviousUnits:
    """The state of the units that are already indexed.

    Attributes:
        place: The place of the newest unit.
        episode: The first sequence of its episode.
        ended_at: When its last message was sent.
        completes: Whether it completes something.
        units: The number of units in its episode so far.
        tokens: The approximate number of tokens in its episode so far.
        near: The text and vector of the newest units of the same sitting, at most two, in order.
        known: For each of the newest twenty units, its similarity to what came before it.
    """

    place: int
    episode: int
    ended_at: datetime
    completes: bool
    units: int
    tokens: int
    near: Sequence[tuple[str, Sequence[float] | None]] = field(repr=False)
    known: Sequence[float | None] = field(repr=False)


@dataclass(frozen=True)
class PlacedUnit:
    """The position of a unit.

    Attributes:
        place: Its number in the conversation.
        episode: The first sequence of its episode.
        cohesion: Its similarity to what came before it, from 0 to 1; `None` for the first unit.
    """

    place: int
    episode: int
    cohesion: float | None


def assign_episodes(
    units: Sequence[Unit],
    vectors: Sequence[Sequence[float] | None],
    before: PreviousUnits | None,
    *,
    pause: timedelta,
    max_tokens: int,
) -> list[PlacedUnit]:
    """Assign units their places and episodes.

    The topic changes before a user message whose similarity to the preceding units is more than one standard deviation
    below the mean of the last twenty. This is the depth of a valley in TextTiling (Hearst 1997), without looking ahead.

    Args:
        units: New units, in order.
        vectors: The vector of each unit's first text; `None` without an embedder.
        before: The state of the units that are already indexed; `None` if there are none.
        pause: The silence that separates two sittings.
        max_tokens: The maximum number of tokens in an episode.
    """
    near = deque(
        (_WordsAndVector(text, _stored(vector)) for text, vector in before.near) if before else (), maxlen=NEAR
    )
    known = deque(before.known if before else (), maxlen=KNOWN)
    size, count = (before.tokens, before.units) if before else (0, 0)
    place = before.place if before else -1
    episode = before.episode if before else None
    said_at = before.ended_at if before else None
    completed = before is not None and before.completes

    found = []
    for unit, vector in zip(units, vectors, strict=True):
        paused = said_at is not None and unit.said_at - said_at > pause
        if paused:
            near.clear()
        said = _WordsAndVector(unit.parts[0].text, _stored(vector))
        cohesion = _cohesion(said, near)
        ends = paused or size + unit.tokens > max_tokens
        if not ends and unit.is_asked:
            ends = completed or (count > 1 and _changes(cohesion, known))
        if episode is None or ends:
            episode, size, count = unit.messages[0].sequence, 0, 0
        place += APART if paused else 1
        found.append(PlacedUnit(place, episode, cohesion))
        near.append(said)
        known.append(cohesion)
        size, count = size + unit.tokens, count + 1
        said_at, completed = unit.messages[-1].said_at, unit.completes
    return found


class _WordsAndVector:
    """A text with its vector and its words, which are computed once."""

    def __init__(self, text: str, vector: Sequence[float] | None) -> None:
        self.text, self.vector = text, vector

    @cached_property
    def words(self) -> frozenset[str]:
        # Five letters: "glaze" and "glazes" are one word, whatever the language.
        return frozenset(word[:5] for word in _WORD.findall(self.text.casefold()))


def _changes(cohesion: float | None, values: Iterable[float | None]) -> bool:
    """Return whether a unit is less similar to what came before it than most, given enough known values."""
    earlier = [each for each in values if each is not None]
    return cohesion is not None and len(earlier) >= _ENOUGH and cohesion < fmean(earlier) - pstdev(earlier)


def _cohesion(candidate: _WordsAndVector, neighbors: Iterable[_WordsAndVector]) -> float | None:
    """Return the similarity of a text to its neighbors: by vectors if there are any, else by shared words."""
    vector, others = candidate.vector, [each.vector for each in neighbors if each.vector is not None]
    if vector is not None and others:
        return round(max(0.0, fmean(sum(map(mul, vector, each)) for each in others)), 4)
    words, before = candidate.words, frozenset[str]().union(*(each.words for each in neighbors))
    if not words or not before:
        return None
    return round(len(words & before) / min(len(words), len(before)), 4)


def _stored(vector: Sequence[float] | None) -> Sequence[float] | None:
    """Return a vector in half precision, as the database stores it, so that both sources give the same values."""
    if vector is None:
        return None
    form = f"{len(vector)}e"
    return struct.unpack(form, struct.pack(form, *vector))
