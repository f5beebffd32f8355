"""Encode the details of a pack's manifest from which its prompt can be rebuilt, in numbers. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.context.summary_part import note
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.operations.manifests import encoding
from langchain_supabase_memory.operations.recall.ranges import zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.language.messages.blocks import PromptEntry

REFERENCE: Final = -1
"""The number of the message of a turn that was pointed at."""

_EPOCH: Final = date(1970, 1, 1)


def head_details(pack: ContextPack) -> list[int]:
    """Return what the head says at its end: the offset of the time zone in minutes, the note, and the recall's scope.

    Args:
        pack: The pack.
    """
    there = zone(pack.remembered.time_zone if pack.recalled else pack.shared.time_zone)
    offset = datetime.now(UTC).astimezone(there).utcoffset()
    minutes = 0 if offset is None else int(offset.total_seconds() // 60)
    recall = encoding.RECALLS.index(pack.recall_scope or "none")
    if not pack.note:
        return [minutes, encoding.NONE, recall]
    return [minutes, 0 if pack.note == note(None) else pack.budget.max_messages or 0, recall]


def encode_details(pack: ContextPack, reference: PromptEntry | None) -> Iterator[list[int]]:
    """Yield the lists of the board, of messages that are not shown as they are stored, and of passages.

    Args:
        pack: The pack.
        reference: The entry of a turn that the user points at.
    """
    board = pack.board
    if board:
        shown = encoding.NONE if board.edited_summary is None else len(board.edited_summary)
        notes = 0 if not board.context_notes else 1 if board.places is None else 2
        yield [encoding.BOARD, board.version, shown, notes]
    current = [entry for entry in pack.fitted.current if entry is not reference]
    yield from _message_ranges(pack, "recent", pack.fitted.recent, current)
    yield from _message_ranges(pack, "current", current, pack.fitted.recent)
    later = 0
    for entry in (*([] if reference is None else [reference]), *pack.fitted.recent, *current):
        number = REFERENCE if entry is reference else entry.sequences[0] if entry.sequences else -2 - later
        later += entry is not reference and _is_stored_later(entry)
        if entry.cut_to is not None or entry.media_left_out:
            cut_to = encoding.NONE if entry.cut_to is None else entry.cut_to
            yield [encoding.ALTERED, number, cut_to, entry.media_left_out]
    yield from _passages(pack)


def _message_ranges(
    pack: ContextPack, name: str, entries: Sequence[PromptEntry], others: Sequence[PromptEntry]
) -> Iterator[list[int]]:
    """Yield the messages of a part, if they are not just the stored ones of its range."""
    shown = sorted(sequence for entry in entries for sequence in entry.sequences)
    later = sum(map(_is_stored_later, entries))
    ranges = _ranges(pack, shown, {sequence for entry in others for sequence in entry.sequences})
    if len(ranges) > 1 or (later and (shown or name == "recent")):
        code = next(place for place, each in enumerate(encoding.PARTS) if each == name)
        yield [encoding.SHOWN, code, later, *(number for each in ranges for number in each)]


def _ranges(pack: ContextPack, sequences: list[int], others: set[int]) -> list[tuple[int, int]]:
    """Return the ranges of sequences between which something is stored that is not shown."""
    summary = pack.summary
    hidden = (set(pack.fitted.omitted) | others).difference(sequences)
    left_out = [(first, last) for first, last, _ in pack.fitted.ranges]
    left_out += [(0, summary.to_sequence)] if summary is not None else []
    made: list[tuple[int, int]] = []
    for sequence in sequences:
        before = made[-1][1] if made else -1
        is_apart = sequence > before + 1 and (
            any(before < each < sequence for each in hidden)
            or any(first < sequence and last > before for first, last in left_out)
        )
        if made and not is_apart:
            made[-1] = made[-1][0], sequence
        else:
            made.append((sequence, sequence))
    return made


def _passages(pack: ContextPack) -> Iterator[list[int]]:
    here = (pack.key.thread_id, pack.key.agent_id)
    there = zone(pack.remembered.time_zone)
    for chunk in pack.recalled:
        repeats = chunk.repeats
        said = [0, 0, 0]
        if repeats is not None:
            days = (each.astimezone(there).date() - _EPOCH for each in (repeats.first, repeats.last))
            said = [repeats.count, *(day.days for day in days)]
        if (chunk.thread_id, chunk.agent_id) != here:
            yield [encoding.LOCATED, encoding.header(chunk.id), chunk.place, chunk.part, *said]
        elif repeats is not None:
            yield [encoding.REPEATED, chunk.from_sequence, chunk.to_sequence, chunk.part, *said]


def _is_stored_later(entry: PromptEntry) -> bool:
    """Return whether it is a message of the conversation that is not stored yet; a cut one is marked as ours, too."""
    is_changed = entry.cut_to is not None or entry.media_left_out > 0
    return not entry.sequences and (is_changed or content.is_conversation(entry.message))
