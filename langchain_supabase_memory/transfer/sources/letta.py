"""Letta's memory blocks, of an agent file: https://docs.letta.com/guides/core-concepts/agent-file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.transfer.sources.foreign_memories import (
    UnreadableError,
    changed_at,
    fields,
    memories,
    profile_events,
    read_document,
    text_of,
    time_of,
)
from langchain_supabase_memory.transfer.values import LossCount, SourceProblem

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.transfer.sources.foreign_memories import Found
    from langchain_supabase_memory.transfer.values import Event

ELSEWHERE: Final = "memory blocks about something else than the user"
_HINT: Final = "A block is an object with a label and a value, as Letta exports it."


def letta(
    path: str | os.PathLike[str], *, labels: Sequence[str] = ("human",), encoding: str | None = None
) -> Iterator[Event]:
    """Read Letta's memory blocks about the user into their profile: an agent file (`.af`), or a list of blocks.

    A line of a block becomes an item.

    Args:
        path: The file.
        labels: The labels of the blocks that are about the user.
        encoding: The file's encoding; by default it is detected from the first bytes, or UTF-8.
    """
    yield from profile_events(read_letta(path, labels=labels, encoding=encoding), path, "letta")


def read_letta(
    path: str | os.PathLike[str], *, labels: Sequence[str] = ("human",), encoding: str | None = None
) -> Iterator[Found]:
    """Read memory blocks of Letta: of an agent file (`.af`), of an agent's state, or a list of blocks.

    A line of a block becomes a memory. Blocks have no times: all have that of the agent file, or of its last change.
    Arguments as for `letta`.

    Raises:
        InvalidInputError: The file holds no blocks.
    """
    document = read_document(path, encoding)
    try:
        at = time_of(document, "created_at") if isinstance(document, dict) else None
    except UnreadableError:
        at = None
    at = at or changed_at(path)
    for number, block in enumerate(_blocks(document), 1):
        place = f"block {number}"
        try:
            record = fields(block)
            label, value = text_of(record, "label", required=True) or "", text_of(record, "value") or ""
            source_id = text_of(record, "id")
        except UnreadableError as error:
            yield SourceProblem(str(error), _HINT, place)
            continue
        if label not in labels:
            yield LossCount(ELSEWHERE, place)
            continue
        yield from memories(value, place, created_at=at, source_id=source_id)


def _blocks(document: Any) -> list[Any]:
    """Return the blocks of any of the documents that Letta writes."""
    holders = [document]
    if isinstance(document, dict):
        holders = [document.get("blocks"), document.get("core_memory")]  # agent files of now, and the first ones
        memory = document.get("memory")
        holders.append(memory.get("blocks") if isinstance(memory, dict) else None)
    for each in holders:
        if isinstance(each, list):
            return each
    raise InvalidInputError(
        "The file holds no memory blocks.", hint="Export the agent from Letta again, or write its blocks as a list."
    )
