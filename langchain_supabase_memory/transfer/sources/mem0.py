"""mem0's memories, as `get_all` answers them: https://docs.mem0.ai/api-reference/memory/get-memory."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.transfer.sources.foreign_memories import (
    Owners,
    memories,
    profile_events,
    read_records,
    text_of,
    time_of,
)
from langchain_supabase_memory.transfer.values import LossCount

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from langchain_supabase_memory.transfer.sources.foreign_memories import Found
    from langchain_supabase_memory.transfer.values import Event

EXPIRED: Final = "memories that have expired"
_HINT: Final = "A memory is an object with memory, user_id and created_at, as get_all of mem0 answers it."


def mem0(
    path: str | os.PathLike[str], *, source_user: str | None = None, encoding: str | None = None
) -> Iterator[Event]:
    """Read memories of mem0 into the user's profile: a list, an answer of `get_all` with `results`, or one a line.

    Args:
        path: The file; one that ends in `.jsonl` has a document in each line.
        source_user: The `user_id` of those that are read; without it the file must be one user's.
        encoding: The file's encoding; by default it is detected from the first bytes, or UTF-8.
    """
    found = read_mem0(path, source_user=source_user, encoding=encoding)
    yield from profile_events(found, path, "mem0")


def read_mem0(
    path: str | os.PathLike[str], *, source_user: str | None = None, encoding: str | None = None
) -> Iterator[Found]:
    """Read the memories that `mem0` imports; arguments as there."""
    read = partial(_memories, owners=Owners(source_user))
    yield from read_records(path, encoding, lists=("results", "memories"), name="memory", hint=_HINT, read=read)


def _memories(record: Mapping[str, Any], place: str, *, owners: Owners) -> Iterator[Found]:
    user_id = text_of(record, "user_id")
    text = text_of(record, "memory", required=True) or ""
    created_at, updated_at = time_of(record, "created_at"), time_of(record, "updated_at")
    expires_at = time_of(record, "expiration_date")
    if (other := owners.other(user_id, place)) is not None:
        yield other
        return
    if expires_at is not None and expires_at < datetime.now(UTC):
        yield LossCount(EXPIRED, place)
        return
    source_id = text_of(record, "id")
    about = {"created_at": created_at, "valid_at": updated_at, "source_id": source_id, "user_id": user_id}
    yield from memories(text, place, _label(record), **about)


def _label(record: Mapping[str, Any]) -> str:
    """Return what the source calls its kind: categories, or the type or category of an application's metadata."""
    metadata = record.get("metadata")
    named = [metadata.get("type"), metadata.get("category")] if isinstance(metadata, dict) else []
    categories = record.get("categories")
    named += categories if isinstance(categories, list) else []
    return next((each for each in named if isinstance(each, str)), "")
