"""The flows over chunks: index what is new or has changed, list them, move them to another embedding model.

No connection and no lock is held while the embedder works; what it was computed from is compared at the commit.
"""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.chunks import kinds
from langchain_supabase_memory.chunks.segments import APART, Before, Placed, placed
from langchain_supabase_memory.chunks.units import Said, Unit, texts, units
from langchain_supabase_memory.conversations import PAGE, keys, named, set_aside
from langchain_supabase_memory.errors import EmbeddingError, SupabaseMemoryError
from langchain_supabase_memory.flow import Flow, call, compute, embed
from langchain_supabase_memory.messages import codec, content
from langchain_supabase_memory.models import Chunk, ConversationKey, IndexResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_supabase_memory.settings import ChunkPolicy

_IDS: Final = uuid.UUID("5b7c4d0e-6d0a-4c39-9a3e-1f6c0a9d2b11")
_REEMBEDDED: Final = 100
"""How many chunks are embedded anew in one transaction."""
_PATIENCE: Final = 5
"""After so many failures in a row, what an embedder refuses is found by its words alone."""


def index(
    key: ConversationKey,
    policy: ChunkPolicy,
    *,
    model: str | None,
    patient: bool = True,
    most_batches: int | None = None,
) -> Flow[IndexResult]:
    """Index what is not indexed yet, batch by batch; the same messages never make a second chunk.

    Args:
        key: The conversation; one that does not exist has nothing to index.
        policy: How.
        model: The embedder's name; `None` without one.
        patient: Whether to wait after an earlier failure.
        most_batches: The most batches that are indexed now; `None` means all.

    Returns:
        What was done. An embedder that failed is no error: nothing is changed, and the next try comes later. After five
        failures in a row, what it refuses is indexed by its words alone, so that one message does not hold up all that
        follow; `reembed` makes up for it.

    Raises:
        MigrationConflictError: What is stored was embedded by another model.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    made = batches = 0
    failed: str | None = None
    while True:
        pending = yield from call("memory_pending_chunks", {**named(key), "p_model": model, "p_messages": policy.batch})
        if pending is None:
            return IndexResult(-1, made)
        through = pending["through_sequence"]
        if pending.get("opted_out"):
            return IndexResult(through, made, opted_out=True)
        said = [Said.from_row(row) for row in pending["messages"]]
        yield from set_aside(key, codec.strange(pending["messages"], [each.message for each in said]))
        stale = pending["stale"] or []
        if patient and pending["waiting"] and (said or stale):
            return IndexResult(through, made, waiting=True)
        before = pending["before"]
        make = partial(
            units,
            said,
            most_tokens=policy.max_tokens,
            more=pending["more"],
            after_question=before is not None and before["is_question"],
            importance=policy.importance,
        )
        fresh, taken = yield from compute(make, sum(content.characters(each.message) for each in said))
        if not taken and not stale:
            return IndexResult(through, made)  # nothing, or calls that wait for their results
        anew = [(_again(row, policy), Placed(row["place"], row["segment"], None)) for row in stale]
        all_units = [*fresh, *(unit for found, _ in anew for unit in found)]
        embedded = model
        try:
            vectors = yield from _vectors(all_units, model)
        except EmbeddingError as error:
            if pending["failures"] < _PATIENCE:
                yield from _failed(key, error.message)
                return IndexResult(through, made, failed=error.message)
            embedded, failed = None, error.message
            vectors = yield from _vectors(all_units, None)
        firsts = [next(iter(vectors[unit.messages[0].sequence]), None) for unit in fresh]
        places = placed(fresh, firsts, _before(before), pause=policy.pause, most_tokens=policy.max_segment_tokens)
        groups = [*(([unit], place) for unit, place in zip(fresh, places, strict=True)), *anew]
        commit = yield from call(
            "memory_commit_chunks",
            {
                **named(key),
                "p_conversation_id": pending["conversation_id"],
                "p_through": through,
                "p_revision": pending["revision"],
                "p_to": said[taken - 1].sequence if taken else through,
                "p_chunks": [
                    row for found, place in groups for row in _rows(found, place, pending["conversation_id"], vectors)
                ],
                "p_stale": [row["place"] for row in stale],
                "p_model": embedded,
                "p_max_age": None if policy.max_age is None else policy.max_age.total_seconds(),
                "p_language": policy.language,
            },
        )
        if not commit["committed"]:
            return IndexResult(commit["through_sequence"], made, failed=failed, overtaken=True)
        made += commit["chunks"]
        batches += 1
        if (not pending["more"] and len(stale) < policy.batch) or batches == most_batches:
            return IndexResult(commit["through_sequence"], made, failed=failed)


def due(*, user_id: str | None = None, messages: int = 0) -> Flow[list[ConversationKey]]:
    """The conversations of which more than so many messages are not indexed yet, or an edited one is.

    Args:
        user_id: Only this user's; `None` means everybody's that the caller may see.
        messages: How many do not matter.
    """
    return (yield from keys("memory_index_due", {"p_messages": messages, "p_user_id": user_id}))


def chunks(key: ConversationKey) -> Flow[list[Chunk]]:
    """The chunks of a conversation that are not expired, in order."""
    found: list[Chunk] = []
    while True:
        page, more = yield from _page(key, found[-1] if found else None, PAGE, None)
        found += page
        if not more:
            return found


def reembed(key: ConversationKey, *, model: str, drop: bool = False) -> Flow[int]:
    """Embed every chunk that has no vector of a model. The vectors of other models stay in use meanwhile.

    Args:
        key: The conversation.
        model: The new embedder's name.
        drop: Whether to remove the vectors of other models, once no chunk lacks one of this.

    Returns:
        How many chunks were embedded.

    Raises:
        EmbeddingError: The embedder failed; what was done so far stays, and the next call goes on.
    """
    made = 0
    last: Chunk | None = None
    while True:
        page, more = yield from _page(key, last, _REEMBEDDED, model)
        vectors = (yield from embed([each.content for each in page])) if page else []
        rows = [
            {"id": each.id, "place": each.place, "part": each.part, "embedding": vector}
            for each, vector in zip(page, vectors, strict=True)
        ]
        is_last = not more
        is_complete = not drop
        if rows or (is_last and drop):
            arguments = {**named(key), "p_model": model, "p_embeddings": rows, "p_drop": drop and is_last}
            answer = yield from call("memory_reembed", arguments)
            made += answer["embedded"]
            is_complete = is_complete or answer["complete"]
        if is_last and is_complete:
            return made
        last = None if is_last else page[-1]  # from the beginning, if others were indexed meanwhile without this model


def chunk(row: Mapping[str, Any], **found: Any) -> Chunk:
    """A chunk as the SQL functions show it, as a value."""
    times = {name: row[name] and datetime.fromisoformat(row[name]) for name in ("said_at", "expires_at")}
    fields = {name: row[name] for name in Chunk.__dataclass_fields__ if name in row}
    return Chunk(**{**fields, **times, **found})


def _page(key: ConversationKey, last: Chunk | None, limit: int, lacking: str | None) -> Flow[tuple[list[Chunk], bool]]:
    """The next chunks, and whether there are more."""
    place = {} if last is None else {"p_place": last.place, "p_part": last.part}
    page = yield from call("memory_chunks", {**named(key), **place, "p_limit": limit, "p_lacking": lacking})
    return [chunk(row) for row in page["chunks"]], page["more"]


def _before(row: Mapping[str, Any] | None) -> Before | None:
    """What is indexed already; of what has several parts, the first says what it is about."""
    if row is None:
        return None
    near = row["near"]
    if len(near) > 1 and near[-1]["place"] - near[-2]["place"] >= APART:
        near = near[-1:]  # a pause lies between
    count, tokens = row["same"]
    return Before(
        place=row["place"],
        segment=row["segment"],
        ended_at=datetime.fromisoformat(row["ended_at"]),
        completes=(row["type"] == "action" and row["is_group"]) or kinds.completes(near[-1]["content"]),
        units=count,
        tokens=tokens,
        near=[(e["content"], e["embedding"] and json.loads(e["embedding"])) for e in near if e["content"]],
        known=row["cohesion"],
    )


def _again(row: Mapping[str, Any], policy: ChunkPolicy) -> list[Unit]:
    """What is left at a place whose messages were edited or forgotten."""
    said = [Said.from_row(each) for each in row["messages"] or []]
    found, _ = units(said, most_tokens=policy.max_tokens, more=True, importance=policy.importance)
    return found


def _vectors(made: Sequence[Unit], model: str | None) -> Flow[dict[int, list[list[float]]]]:
    """The vectors of each unit's parts, by the number of its first message."""
    # What is not to be remembered is shown to no embedder; at the commit it is left out.
    shown = [unit for unit in made if not unit.hidden]
    said = texts(shown)
    found: dict[int, list[list[float]]] = {unit.messages[0].sequence: [] for unit in made}
    if model is not None and said:
        vectors = iter((yield from embed(said)))
        found |= {unit.messages[0].sequence: [next(vectors) for _ in unit.parts] for unit in shown}
    return found


def _rows(
    found: Sequence[Unit], place: Placed, conversation_id: str, vectors: Mapping[int, Sequence[Sequence[float]]]
) -> Iterator[dict[str, Any]]:
    """The rows of what stands at one place."""
    numbers = count(1)
    for unit in found:
        embedded = vectors[unit.messages[0].sequence]
        ids = [each.message_id for each in unit.messages]
        first, last = unit.messages[0].sequence, unit.messages[-1].sequence
        # Of a place and its last edit, never of words: an id tells nothing, and outlives an indexing anew.
        edited = max((each.edited_at for each in unit.messages if each.edited_at), default="")
        for at, (part, number) in enumerate(zip(unit.parts, numbers, strict=False)):
            yield {
                "place": place.place,
                "part": number,
                "id": str(uuid.uuid5(_IDS, f"{conversation_id} {first} {last} {number} {edited}")),
                "from_sequence": unit.messages[0].sequence,
                "to_sequence": unit.messages[-1].sequence,
                "message_ids": ids,
                "segment": place.segment,
                "type": part.kind,
                "role": unit.role,
                "speaker": unit.speaker,
                "said_at": unit.said_at.isoformat(),
                "content": part.text,
                "tokens": part.tokens,
                "importance": part.importance,
                "cohesion": place.cohesion if number == 1 else None,
                "has_time": part.marks.has_time,
                "has_number": part.marks.has_number,
                "embedding": embedded[at] if embedded else None,
                "hidden": unit.hidden,
            }


def _failed(key: ConversationKey, reason: str) -> Flow[None]:
    try:
        yield from call("memory_fail_index", {**named(key), "p_error": reason})
    except SupabaseMemoryError:
        return  # the note is only for patience; that it failed is said to the caller
