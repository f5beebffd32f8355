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
from langchain_supabase_memory.values import RECALL_SCOPES

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
RECALLS: Final = ("none", *RECALL_SCOPES)
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
BOARD: Final = 9
SHOWN: Final = 10
ALTERED: Final = 11
REPEATED: Final = 12
LOCATED: Final = 13
PASSAGES: Final = 14
REQUEST: Final = 15

OPTED_OUT: Final = 8
CUT: Final = 16
MORE: Final = 32
"""Bits of the head's flags; the lower bits are one for each of `FAILURES`."""

FLAGS: Final = 6
AGE: Final = 7
TIME_OFFSET: Final = 12
NOTE: Final = 13
RECALL: Final = 14
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

    Parts of scores and shared items are dropped first. Then as many omitted ranges, details of messages, shared boards,
    passages with their details, items and items of the profile are kept, in this order, as fit.
    """
    if _bytes(lists) <= LONGEST:
        return [*lists]
    head = [*lists[0]]
    head[FLAGS] |= CUT
    kept = [head, *(each for each in lists[1:] if each[0] in (PART, USAGE, REQUEST))]
    room = LONGEST - _bytes(kept)
    for row in _optional_parts(lists):
        step = _STEPS.get(row[0], 0)
        while step and len(row) > 1 and _bytes(row) + 1 > room:
            row = row[:-step]
        size = _bytes(row) + 1
        if size <= room and (not step or len(row) > 1):
            kept.append(row)
            room -= size
    return kept


_STEPS: Final = {ITEMS: 1, PROFILE: 1, PASSAGES: 3}
"""How many numbers an entry has in lists that are shortened where they do not fit."""


def _optional_parts(lists: Sequence[list[int]]) -> Iterator[list[int]]:
    """Yield the optional parts, the most needed first, without parts of scores and shared items."""
    passages = [PASSAGES, *(n for row in lists if row[0] == PASSAGE for n in (row[1], row[2] - row[1], row[3]))]
    shorter = [*lists, passages]
    for kind, length in (
        (OMITTED, None), (BOARD, None), (SHOWN, None), (ALTERED, None), (SHARED, 5), (PASSAGES, None), (ELSEWHERE, 2),
        (REPEATED, None), (LOCATED, None), (ITEMS, None), (PROFILE, None),
    ):  # fmt: skip
        yield from (each[:length] for each in shorter if each[0] == kind)


def _bytes(lists: Sequence[Any]) -> int:
    return len(dumps(lists))


def name_of(names: Sequence[Any], code: int) -> Any:
    """Return the name of a code; `other` if it comes from a later release."""
    return names[code] if 0 <= code < len(names) else "other"
