"""How a manifest is written: lists of whole numbers, so that nothing that was said can be in it. Pure.

`memory_manifests` describes the lists. Codes are places in the tuples below and in the tables of `parts`: new ones come
at their ends.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from langchain_supabase_memory.documents import dumps
from langchain_supabase_memory.operations.manifests.parts import PART_REASONS, PROMPT_PARTS, PartName, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Lists: TypeAlias = "list[list[int]]"
"""A manifest as it is stored."""

EntryPoint: TypeAlias = Literal["api", "middleware", "node", "history", "tool"]
"""Who asked for the pack: `conversation.context()`, or what a graph is composed from."""

Failure: TypeAlias = Literal["summary", "recall", "rerank"]
"""What failed while the pack was made."""

ENTRY_POINTS: Final[tuple[EntryPoint, ...]] = get_args(EntryPoint)
UNITS: Final = ("characters", "tokens")
PARTS: Final[tuple[PartName, ...]] = tuple(each.name for each in PROMPT_PARTS)
REASONS: Final[tuple[Reason, ...]] = tuple(PART_REASONS)
FAILURES: Final[tuple[Failure, ...]] = get_args(Failure)
SCORES: Final = (
    "words", "meaning", "around", "speaker", "date", "kind", "question", "beside", "importance", "recency", "rerank",
)  # fmt: skip

_PLACES: Final = {name: place for place, name in enumerate(SCORES)}

HEAD: Final = 0
PART: Final = 1
ITEMS: Final = 2
PASSAGE: Final = 3
ELSEWHERE: Final = 4
OMITTED: Final = 5
USAGE: Final = 6

OPTED_OUT: Final = 8
CUT: Final = 16
MORE: Final = 32
"""Bits of the head's flags; below them one for each of `FAILURES`."""

FLAGS: Final = 6
AGE: Final = 7
"""Places in the head."""

NONE: Final = -1

LONGEST: Final = 1024
"""The most bytes of a manifest."""


def header(identity: str) -> int:
    """The first eight digits of a uuid as a number: enough to know it again on one board or among one user's chunks."""
    return int(identity[:8], 16)


def hundredths(score_parts: Mapping[str, float]) -> list[int]:
    """The parts of a score in the order of `SCORES`, up to the last that there is; what is no number counts as 0."""
    found: list[int] = []
    for name, part in score_parts.items():
        place = _PLACES.get(name, -1)
        found += [0] * (place + 1 - len(found))
        if place >= 0:
            found[place] = round(part * 100) if isfinite(part) else 0
    return found


def fit_manifest(lists: Sequence[list[int]]) -> Lists:
    """A manifest within its size: what is needed least goes first, and then it says that it is cut.

    Parts of scores go first. Then of what is left out, of passages and of items only as many are kept, in this order,
    as there is room for.
    """
    if _bytes(lists) <= LONGEST:
        return [*lists]
    head = [*lists[0]]
    head[FLAGS] |= CUT
    kept = [head, *(each for each in lists[1:] if each[0] in (PART, USAGE))]
    room = LONGEST - _bytes(kept)
    for row in _optional_parts(lists):
        while row[0] == ITEMS and len(row) > 1 and _bytes(row) + 1 > room:
            row = row[:-1]
        size = _bytes(row) + 1
        if size <= room and row != [ITEMS]:
            kept.append(row)
            room -= size
    return kept


def _optional_parts(lists: Sequence[list[int]]) -> Iterator[list[int]]:
    """What may be left out, the most needed first, without the parts of scores."""
    for kind, length in ((OMITTED, None), (PASSAGE, 4), (ELSEWHERE, 2), (ITEMS, None)):
        yield from (each[:length] for each in lists if each[0] == kind)


def _bytes(lists: Sequence[Any]) -> int:
    return len(dumps(lists))


def name_of(names: Sequence[Any], code: int) -> Any:
    """What a code stands for; `other` if it is of a later release."""
    return names[code] if 0 <= code < len(names) else "other"
