"""The encoding of a manifest: lists of whole numbers, so that no text of a message can be in it. Pure.

`memory_manifests` describes the lists. Codes are positions in the tuples below and in the tables of `parts`, so new
ones are appended at the end.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from langchain_supabase_memory.documents import dumps
from langchain_supabase_memory.operations.manifests.parts import (
    PART_REASONS,
    PROMPT_PARTS,
    PartName,
    Reason,
    SharedKind,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Lists: TypeAlias = "list[list[int]]"
"""A manifest as it is stored."""

EntryPoint: TypeAlias = Literal["api", "middleware", "node", "history", "tool"]
"""What requested the pack: `conversation.context()`, or a component of a graph."""

Failure: TypeAlias = Literal["summary", "recall", "rerank"]
"""What failed while the pack was created."""

ENTRY_POINTS: Final[tuple[EntryPoint, ...]] = get_args(EntryPoint)
UNITS: Final = ("characters", "tokens")
PARTS: Final[tuple[PartName, ...]] = tuple(each.name for each in PROMPT_PARTS)
REASONS: Final[tuple[Reason, ...]] = tuple(PART_REASONS)
SHARED_KINDS: Final[tuple[SharedKind, ...]] = get_args(SharedKind)
FAILURES: Final[tuple[Failure, ...]] = get_args(Failure)
SCORES: Final = (
    "words", "meaning", "around", "speaker", "date", "kind", "question", "beside", "importance", "recency", "rerank",
    "reply",
)  # fmt: skip

_PLACES: Final = {name: place for place, name in enumerate(SCORES)}

HEAD: Final = 0
PART: Final = 1
ITEMS: Final = 2
PASSAGE: Final = 3
ELSEWHERE: Final = 4
OMITTED: Final = 5
USAGE: Final = 6
SHARED: Final = 7
PROFILE: Final = 8

OPTED_OUT: Final = 8
CUT: Final = 16
MORE: Final = 32
"""Bits of the head's flags; the lower bits are one for each of `FAILURES`."""

FLAGS: Final = 6
AGE: Final = 7
"""Positions in the head."""

NONE: Final = -1

LONGEST: Final = 1024
"""The maximum number of bytes of a manifest."""


def header(identity: str) -> int:
    """Return the first eight digits of a uuid as a number: unique enough on one board or for one user."""
    return int(identity[:8], 16)


def hundredths(score_parts: Mapping[str, float]) -> list[int]:
    """Return the parts of a score in the order of `SCORES`, up to the last one; non-finite parts count as 0."""
    found: list[int] = []
    for name, part in score_parts.items():
        place = _PLACES.get(name, -1)
        found += [0] * (place + 1 - len(found))
        if place >= 0:
            found[place] = round(part * 100) if isfinite(part) else 0
    return found


def fit_manifest(lists: Sequence[list[int]]) -> Lists:
    """Fit a manifest into its maximum size by dropping the least needed parts, and flag it as cut.

    Parts of scores and shared items are dropped first. Then as many omitted ranges, shared boards, passages, items and
    items of the profile are kept, in this order, as fit.
    """
    if _bytes(lists) <= LONGEST:
        return [*lists]
    head = [*lists[0]]
    head[FLAGS] |= CUT
    kept = [head, *(each for each in lists[1:] if each[0] in (PART, USAGE))]
    room = LONGEST - _bytes(kept)
    for row in _optional_parts(lists):
        while row[0] in (ITEMS, PROFILE) and len(row) > 1 and _bytes(row) + 1 > room:
            row = row[:-1]
        size = _bytes(row) + 1
        if size <= room and row not in ([ITEMS], [PROFILE]):
            kept.append(row)
            room -= size
    return kept


def _optional_parts(lists: Sequence[list[int]]) -> Iterator[list[int]]:
    """Yield the optional parts, the most needed first, without parts of scores and shared items."""
    for kind, length in ((OMITTED, None), (SHARED, 5), (PASSAGE, 4), (ELSEWHERE, 2), (ITEMS, None), (PROFILE, None)):
        yield from (each[:length] for each in lists if each[0] == kind)


def _bytes(lists: Sequence[Any]) -> int:
    return len(dumps(lists))


def name_of(names: Sequence[Any], code: int) -> Any:
    """Return the name of a code; `other` if it comes from a later release."""
    return names[code] if 0 <= code < len(names) else "other"
