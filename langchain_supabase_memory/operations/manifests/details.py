"""The details of a manifest from which its prompt is rebuilt, as numbers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_supabase_memory.operations.manifests import encoding

if TYPE_CHECKING:
    from langchain_supabase_memory.operations.manifests.encoding import Lists


@dataclass(frozen=True)
class ShownMessages:
    """The messages that a part shows, where they are not just all of its range.

    Attributes:
        ranges: First and last of each range of stored messages.
        stored_later: How many were stored later, with the answer.
    """

    ranges: tuple[tuple[int, int], ...]
    stored_later: int = 0


@dataclass(frozen=True)
class AlteredMessage:
    """How a message is not shown whole.

    Attributes:
        cut_to: The characters that are left of its text and arguments; `None` if it is not cut.
        media_left_out: How many of its images and files are replaced by names.
    """

    cut_to: int | None
    media_left_out: int = 0


@dataclass(frozen=True)
class PassageDetails:
    """What a recalled passage says beside its words, and where it is.

    Attributes:
        count: How often its words were said; 0 if once.
        first: The day of the first time in the reader's time zone, in days since 1970.
        last: The day of the last time.
        place: Its place in another conversation; `None` if it is of this one.
        part: Its part there.
    """

    count: int = 0
    first: int = 0
    last: int = 0
    place: int | None = None
    part: int | None = None


@dataclass(frozen=True)
class ManifestDetails:
    """The details of a manifest from which its prompt is rebuilt.

    Attributes:
        time_offset: The minutes by which the reader's time zone was ahead of UTC.
        note: How many messages the prompt said that it shows; 0 if it only said that older ones are omitted, `None` if
            it said nothing.
        board_version: The version of the board that was read; `None` if nothing of it is shown.
        board_summary: The characters of a person's summary on the board that are shown; `None` if none are.
        board_notes: 1 if the board's notes are shown, 2 if they come right behind what is pinned, else 0.
        shown: The messages of a part by its name, where they are not just all of its range.
        altered: The messages that are not shown whole: by their sequences, by -2 and down where they were stored later;
            -1 is a turn that was pointed at.
        passages: Of passages, by first and last message and part; of another conversation by the first eight digits of
            the id.
    """

    time_offset: int = 0
    note: int | None = None
    board_version: int | None = None
    board_summary: int | None = None
    board_notes: int = 0
    shown: Mapping[str, ShownMessages] = field(default_factory=dict)
    altered: Mapping[int, AlteredMessage] = field(default_factory=dict)
    passages: Mapping[str, PassageDetails] = field(default_factory=dict)


def passage_key(first: int | None, last: int | None, part: int | None, identity: str | None) -> str:
    """Return the key of a passage in `ManifestDetails.passages`."""
    return identity if identity is not None else f"{first}-{last}/{part}"


def manifest_details(lists: Lists) -> ManifestDetails:
    """Decode the details of a stored manifest.

    Args:
        lists: The lists of numbers.
    """
    head = lists[0] if lists and lists[0][0] == encoding.HEAD else []
    board = next((row for row in lists if row[0] == encoding.BOARD and len(row) >= 4), None)
    return ManifestDetails(
        time_offset=head[encoding.TIME_OFFSET] if len(head) > encoding.TIME_OFFSET else 0,
        note=_known(head[encoding.NOTE]) if len(head) > encoding.NOTE else None,
        board_version=None if board is None else board[1],
        board_summary=None if board is None else _known(board[2]),
        board_notes=0 if board is None else board[3],
        shown={
            str(encoding.name_of(encoding.PARTS, row[1])): ShownMessages(
                tuple(zip(row[3::2], row[4::2], strict=False)), row[2]
            )
            for row in lists
            if row[0] == encoding.SHOWN and len(row) >= 3
        },
        altered={
            row[1]: AlteredMessage(_known(row[2]), row[3])
            for row in lists
            if row[0] == encoding.ALTERED and len(row) >= 4
        },
        passages=_passages(lists),
    )


def _passages(lists: Lists) -> dict[str, PassageDetails]:
    found: dict[str, PassageDetails] = {}
    for row in lists:
        if row[0] == encoding.REPEATED and len(row) >= 7:
            found[passage_key(row[1], row[2], row[3], None)] = PassageDetails(row[4], row[5], row[6])
        elif row[0] == encoding.LOCATED and len(row) >= 7:
            found[f"{row[1]:08x}"] = PassageDetails(row[4], row[5], row[6], row[2], row[3])
    return found


def _known(number: int) -> int | None:
    return number if number >= 0 else None
