"""Zep's facts, the edges of a user's graph: https://help.getzep.com/sdk-reference/graph/edge/get-user-edges."""

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

ENDED: Final = "facts that hold no more"
ELSEWHERE: Final = "facts about something else than the user"
_HINT: Final = "An edge is an object with fact, name, source_node_uuid and created_at, as Zep's graph.edge answers it."


def zep(path: str | os.PathLike[str], *, node: str | None = None, encoding: str | None = None) -> Iterator[Event]:
    """Read Zep's facts about a user into their profile: a list of edges, an answer with `edges`, or one a line.

    Facts that hold no more are left out.

    Args:
        path: The file; one that ends in `.jsonl` has a document in each line.
        node: The uuid of the user's node: only facts that begin there are about the user. By default all are read,
            also those about people and things of which the user told.
        encoding: The file's encoding; by default it is detected from the first bytes, or UTF-8.
    """
    yield from profile_events(read_zep(path, node=node, encoding=encoding), path, "zep")


def read_zep(path: str | os.PathLike[str], *, node: str | None = None, encoding: str | None = None) -> Iterator[Found]:
    """Read the facts that `zep` imports; arguments as there."""
    read = partial(_facts, node=node, owners=Owners(None))
    yield from read_records(path, encoding, lists=("edges",), name="edge", hint=_HINT, read=read)


def _facts(record: Mapping[str, Any], place: str, *, node: str | None, owners: Owners) -> Iterator[Found]:
    graph = text_of(record, "graph_uuid") or text_of(record, "group_id")
    text = text_of(record, "fact", required=True) or ""
    created_at, valid_at = time_of(record, "created_at"), time_of(record, "valid_at")
    ends = [end for end in (time_of(record, "invalid_at"), time_of(record, "expired_at")) if end is not None]
    if (other := owners.other(graph, place)) is not None:
        yield other
        return
    if node is not None and text_of(record, "source_node_uuid") != node:
        yield LossCount(ELSEWHERE, place)
        return
    if ends and min(ends) <= datetime.now(UTC):
        yield LossCount(ENDED, place)
        return
    about = {"created_at": created_at, "valid_at": valid_at, "invalid_at": min(ends, default=None)}
    source_id = text_of(record, "uuid")
    yield from memories(text, place, text_of(record, "name") or "", source_id=source_id, user_id=graph, **about)
