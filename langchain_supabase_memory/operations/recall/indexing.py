"""The flows over chunks: index new or changed messages, list chunks, move them to another embedding model.

No connection or lock is held while the embedder works; the commit checks that its input has not changed.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import documents
from langchain_supabase_memory.effects import Flow, call, embed, offload, rate_tone
from langchain_supabase_memory.errors import EmbeddingError, MigrationConflictError, SupabaseMemoryError, ToneError
from langchain_supabase_memory.language import query_hints, signals
from langchain_supabase_memory.language.chunks import kinds
from langchain_supabase_memory.language.chunks.episodes import APART, PlacedUnit, PreviousUnits, assign_episodes
from langchain_supabase_memory.language.chunks.speech import PartSignals, SpeechBefore, signals_of
from langchain_supabase_memory.language.chunks.units import StoredText, Unit, texts, units
from langchain_supabase_memory.language.messages import codec, content
from langchain_supabase_memory.operations.arguments import check_limit, conversation_ids
from langchain_supabase_memory.operations.pages import PAGE, keys
from langchain_supabase_memory.operations.recall.chunk_rows import chunk
from langchain_supabase_memory.operations.unreadable import quarantine
from langchain_supabase_memory.values import Chunk, ConversationKey, IndexResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_supabase_memory.settings import ChunkPolicy

_IDS: Final = uuid.UUID("5b7c4d0e-6d0a-4c39-9a3e-1f6c0a9d2b11")
_PASSES: Final = 10
"""How often a re-embedding restarts because others index with another embedder."""

_REEMBEDDED: Final = 100
"""How many chunks are embedded again in one transaction."""
_BEGINNING: Final = (-1, 0)
"""The position before the first place and part."""
_PATIENCE: Final = 5
"""After this many failures in a row, texts are embedded one at a time."""
_FEW: Final = 8
"""How many texts are tried one at a time in one transaction."""


def index_messages(
    key: ConversationKey,
    chunking: ChunkPolicy,
    *,
    embedder: str | None,
    respect_backoff: bool = True,
    max_batches: int | None = None,
    seconds: float | None = None,
    tone: bool = False,
) -> Flow[IndexResult]:
    """Index unindexed messages batch by batch; the same messages never create a second chunk.

    Keyword search finds the messages at once. Vectors may come later: if there is no embedder or it fails, the next
    indexing that has an embedder adds them.

    Args:
        key: The conversation; if it does not exist, there is nothing to index.
        chunking: The chunk policy; the memory's by default.
        embedder: The embedder's name; `None` without one.
        respect_backoff: Whether to wait for the end of the backoff before a failed embedder is called again.
        max_batches: The maximum number of batches of messages, and of missing vectors, to process now; `None` means
            all.
        seconds: The timeout for the vectors of one batch, in seconds; `None` means no timeout.
        tone: Whether to have the tone of the user's words rated, too.

    Returns:
        The result. If the embedder fails, nothing is raised: the vectors are missing, and it is called again later.

    Raises:
        MigrationConflictError: The stored vectors come from another model.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    made = batches = 0
    failed: str | None = None
    asked = embedder  # `None` once it fails, or during its backoff
    while True:
        pending = yield from call(
            "memory_pending_chunks", {**conversation_ids(key), "p_model": embedder, "p_messages": chunking.batch}
        )
        if pending is None:
            return IndexResult(-1, made)
        through = pending["through_sequence"]
        if pending.get("opted_out"):
            return IndexResult(through, made, opted_out=True)
        waiting = respect_backoff and pending["waiting"]
        if waiting:
            asked = None
        said = [StoredText.from_row(row, is_in_space=key.is_in_space) for row in pending["messages"]]
        yield from quarantine(key, codec.undecodable_rows(pending["messages"], [each.message for each in said]))
        stale = pending["stale"] or []
        before = pending["before"]
        speech = pending["speech"]
        make = partial(
            units,
            said,
            max_tokens=chunking.max_tokens,
            more=pending["more"],
            after_question=before is not None and before["is_question"],
            importance=chunking.importance,
            listens=speech is not None,
        )
        fresh, taken = yield from offload(
            make, sum(content.characters(each.message) for each in said), warm_caches=(*query_hints.KEPT, *signals.KEPT)
        )
        if not taken and not stale:
            break  # nothing, or tool calls without their results
        anew = [
            (_again(key, row, chunking, speech is not None), PlacedUnit(row["place"], row["stretch"], None))
            for row in stale
        ]
        all_units = [*fresh, *(unit for found, _ in anew for unit in found)]
        try:
            vectors = yield from _vectors(all_units, asked, seconds)
        except EmbeddingError as error:
            asked, failed = None, error.reason
            vectors = yield from _vectors(all_units, None, None)
        by_unit = _unit_signals(fresh, said, anew, speech, before, vectors)
        tones = (yield from _tones(all_units)) if tone and speech is not None and speech["tone"] else {}
        firsts = [next(iter(vectors[unit.messages[0].sequence]), None) for unit in fresh]
        places = assign_episodes(
            fresh, firsts, _before(before), pause=chunking.pause, max_tokens=chunking.max_episode_tokens
        )
        groups = [*(([unit], place) for unit, place in zip(fresh, places, strict=True)), *anew]
        commit = yield from call(
            "memory_commit_chunks",
            {
                **conversation_ids(key),
                "p_conversation_id": pending["conversation_id"],
                "p_through": through,
                "p_revision": pending["revision"],
                "p_to": said[taken - 1].sequence if taken else through,
                "p_chunks": [
                    row
                    for found, place in groups
                    for row in _rows(found, place, pending["conversation_id"], vectors, by_unit, tones)
                ],
                "p_stale": [row["place"] for row in stale],
                "p_model": asked,
                "p_max_age": None if chunking.max_age is None else chunking.max_age.total_seconds(),
                "p_language": chunking.language,
            },
            "write chunks",
        )
        through = commit["through_sequence"]
        if not commit["committed"]:
            return IndexResult(through, made, failed=failed, conflict=True)
        made += commit["chunks"]
        batches += 1
        if (not pending["more"] and len(stale) < chunking.batch) or batches == max_batches:
            break
    if failed is not None:
        yield from _failed(key, failed)
        return IndexResult(through, made, failed=failed)
    place = pending["unembedded_from"]
    if place is None or asked is None:
        return IndexResult(through, made, backing_off=waiting and place is not None)
    embedded, failed = yield from _embed_missing(key, asked, place, pending["failures"], max_batches, seconds)
    return IndexResult(through, made, failed=failed, embedded=embedded)


def index_due(*, user_id: str | None = None, messages: int = 0, vectors: bool = False) -> Flow[list[ConversationKey]]:
    """Return the conversations with more than `messages` unindexed messages, or with an edited message.

    Args:
        user_id: Only this user's conversations; `None` means all users that the caller may access.
        messages: How many unindexed messages to tolerate.
        vectors: Whether conversations with chunks that lack a vector are due, too.
    """
    check_limit("messages", messages, optional=False)
    return (yield from keys("memory_index_due", {"p_messages": messages, "p_user_id": user_id, "p_vectors": vectors}))


def chunks(key: ConversationKey) -> Flow[list[Chunk]]:
    """List the chunks that have not expired, in order.

    Args:
        key: The conversation.
    """
    found: list[Chunk] = []
    while True:
        page, more = yield from _page(key, (found[-1].place, found[-1].part) if found else _BEGINNING, PAGE, None)
        found += page
        if not more:
            return found


def reembed(key: ConversationKey, *, embedder: str, drop: bool = False) -> Flow[int]:
    """Embed every chunk with the memory's embedder. The vectors of other models stay in use meanwhile.

    Args:
        key: The conversation.
        embedder: The embedder's name; `None` without one.
        drop: Whether to delete the vectors of other models, once every chunk has one of this model.

    Returns:
        How many chunks were embedded.

    Raises:
        ConfigurationError: There is no embedder.
        EmbeddingError: The embedder failed; finished work stays, and the next call continues.
        MigrationConflictError: With `drop`, others kept indexing with another embedder; nothing was deleted.
    """
    made = 0
    after = _BEGINNING
    passes = 1
    while True:
        page, more = yield from _page(key, after, _REEMBEDDED, embedder)
        vectors = (yield from embed([each.content for each in page])) if page else []
        after = (page[-1].place, page[-1].part) if page else after
        embedded, is_complete = yield from _stored(
            key, embedder, list(zip(page, vectors, strict=True)), after, drop=drop and not more
        )
        made += embedded
        if not more:
            if not drop or is_complete:
                return made
            if passes == _PASSES:
                raise MigrationConflictError(
                    f"Others have gone on indexing with another embedder during {passes} passes; nothing was removed.",
                    hint="Give workers and other memories the new embedder first, then call reembed(drop=True) again.",
                )
            after, passes = _BEGINNING, passes + 1  # others were indexed meanwhile without this model


def _embed_missing(
    key: ConversationKey, model: str, place: int, failures: int, max_pages: int | None, seconds: float | None
) -> Flow[tuple[int, str | None]]:
    """Embed the chunks from a place on that lack a vector; return how many got one, and why it stopped early.

    An embedder that failed often in a row may reject only one text: then texts are tried one at a time, and those
    that are rejected are skipped.
    """
    made = pages = 0
    after = (place, 0)
    singly = failures >= _PATIENCE
    while True:
        page, more = yield from _page(key, after, _FEW if singly else _REEMBEDDED, model)
        try:
            if singly:
                rows = yield from _accepted(page, seconds)
            else:
                texts = [each.content for each in page]
                rows = list(zip(page, (yield from embed(texts, seconds=seconds)) if page else [], strict=True))
        except EmbeddingError as error:
            yield from _failed(key, error.reason)
            return made, error.reason
        after = (page[-1].place, page[-1].part) if page else after
        embedded, _ = yield from _stored(key, model, rows, after)
        made += embedded
        pages += 1
        if not more or pages == max_pages:
            return made, None


def _accepted(page: Sequence[Chunk], seconds: float | None) -> Flow[list[tuple[Chunk, list[float]]]]:
    """Return the chunks that the embedder accepts, each with its vector.

    Raises:
        EmbeddingError: It accepts none of them.
    """
    taken: list[tuple[Chunk, list[float]]] = []
    refusal = None
    for each in page:
        try:
            (vector,) = yield from embed([each.content], seconds=seconds)
        except EmbeddingError as error:
            refusal = error
        else:
            taken.append((each, vector))
    if refusal is not None and not taken:
        raise refusal
    return taken


def _stored(
    key: ConversationKey,
    model: str,
    embedded: Sequence[tuple[Chunk, list[float]]],
    after: tuple[int, int],
    *,
    drop: bool = False,
) -> Flow[tuple[int, bool]]:
    """Store vectors and how far they are complete; return how many were stored, and whether none is missing."""
    rows = [{"id": each.id, "place": each.place, "part": each.part, "embedding": vector} for each, vector in embedded]
    place = {"p_place": after[0], "p_part": after[1]}
    answer = yield from call(
        "memory_reembed", {**conversation_ids(key), "p_model": model, "p_embeddings": rows, "p_drop": drop, **place}
    )
    return answer["embedded"], answer["complete"]


def _page(
    key: ConversationKey, after: tuple[int, int], limit: int, model: str | None
) -> Flow[tuple[list[Chunk], bool]]:
    """Return the next chunks after a place and part, and whether there are more."""
    place = {"p_place": after[0], "p_part": after[1]}
    page = yield from call("memory_chunks", {**conversation_ids(key), **place, "p_limit": limit, "p_lacking": model})
    return [chunk(row) for row in page["chunks"]], page["more"]


def _before(row: Mapping[str, Any] | None) -> PreviousUnits | None:
    """Return the previous units; of a unit with several parts, the first one determines its topic."""
    if row is None:
        return None
    near = row["near"]
    if len(near) > 1 and near[-1]["place"] - near[-2]["place"] >= APART:
        near = near[-1:]  # separated by a pause
    count, tokens = row["same"]
    return PreviousUnits(
        place=row["place"],
        episode=row["stretch"],
        ended_at=datetime.fromisoformat(row["ended_at"]),
        completes=(row["type"] == "action" and row["is_group"]) or kinds.completes(near[-1]["content"]),
        units=count,
        tokens=tokens,
        near=[(e["content"], e["embedding"] and documents.loads(e["embedding"])) for e in near if e["content"]],
        known=row["cohesion"],
    )


def _again(key: ConversationKey, row: Mapping[str, Any], policy: ChunkPolicy, listens: bool) -> list[Unit]:
    """Return the units that are left at a place whose messages were edited or forgotten."""
    said = [StoredText.from_row(each, is_in_space=key.is_in_space) for each in row["messages"] or []]
    found, _ = units(said, max_tokens=policy.max_tokens, more=True, importance=policy.importance, listens=listens)
    return found


def _unit_signals(
    fresh: Sequence[Unit],
    messages: Sequence[StoredText],
    anew: Sequence[tuple[list[Unit], PlacedUnit]],
    speech: Mapping[str, Any] | None,
    before: Mapping[str, Any] | None,
    vectors: Mapping[int, Sequence[Sequence[float]]],
) -> dict[int, dict[int, PartSignals]]:
    """Return the signals of units. A place that is indexed anew has only those of its own words."""
    if speech is None or not speech["signals"]:
        return {}
    # Only a question is compared with them.
    asked = (
        _earlier_questions(speech, before)
        if any(part.kind == "question" for unit in fresh for part in unit.parts)
        else []
    )
    told = signals_of(fresh, messages, SpeechBefore(asked, speech["tool_failed"]), vectors)
    for found, _ in anew:
        told |= signals_of(found, (), SpeechBefore(), {})
    return told


def _earlier_questions(speech: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[signals.AskedText]:
    """Return the user's newest questions, in order."""
    # The newest two units come with their vectors anyway.
    embedded = {each["place"]: each["embedding"] for each in before["near"]} if before else {}
    return [
        signals.AskedText(
            signals.mask_foreign(each["content"]),
            documents.loads(vector) if (vector := embedded.get(each["place"])) else None,
            each["speaker"],
        )
        for each in speech["asked"][-signals.EARLIER :]
    ]


def _tones(units: Sequence[Unit]) -> Flow[dict[int, int]]:
    """Return the tone of what users say, from -100 to 100, by the sequence of the message; empty if that fails."""
    spoken = {
        unit.messages[0].sequence: words
        for unit in units
        if unit.speech is not None and not unit.hidden and (words := unit.speech.own_words)
    }
    if not spoken:
        return {}
    try:
        rated = yield from rate_tone(list(spoken.values()))
    except ToneError:
        return {}  # `health` counts it; the chunks have none
    return {sequence: round(value * 100) for sequence, value in zip(spoken, rated, strict=True)}


def _vectors(units: Sequence[Unit], model: str | None, seconds: float | None) -> Flow[dict[int, list[list[float]]]]:
    """Return the vectors of each unit's parts, by the number of its first message."""
    # Opted-out text is not sent to the embedder; the commit leaves it out.
    shown = [unit for unit in units if not unit.hidden]
    said = texts(shown)
    found: dict[int, list[list[float]]] = {unit.messages[0].sequence: [] for unit in units}
    if model is not None and said:
        vectors = iter((yield from embed(said, seconds=seconds)))
        found |= {unit.messages[0].sequence: [next(vectors) for _ in unit.parts] for unit in shown}
    return found


def _rows(
    units: Sequence[Unit],
    place: PlacedUnit,
    conversation_id: str,
    vectors: Mapping[int, Sequence[Sequence[float]]],
    by_unit: Mapping[int, Mapping[int, PartSignals]],
    tones: Mapping[int, int],
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the units at one place."""
    numbers = count(1)
    for unit in units:
        embedded = vectors[unit.messages[0].sequence]
        ids = [each.message_id for each in unit.messages]
        first, last = unit.messages[0].sequence, unit.messages[-1].sequence
        parts_told = by_unit.get(first, {})
        # The id depends on the place and its last edit, not on the text: it reveals nothing and survives
        # re-indexing.
        edited = max((each.edited_at for each in unit.messages if each.edited_at), default="")
        for at, (part, number) in enumerate(zip(unit.parts, numbers, strict=False)):
            yield {
                "place": place.place,
                "part": number,
                "id": str(uuid.uuid5(_IDS, f"{conversation_id} {first} {last} {number} {edited}")),
                "from_sequence": unit.messages[0].sequence,
                "to_sequence": unit.messages[-1].sequence,
                "message_ids": ids,
                "stretch": place.episode,
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
                "told": [f"[{begins},{ends}]" for begins, ends in part.retrieved_text],
                "embedding": embedded[at] if embedded else None,
                "hidden": unit.hidden,
                **_speech_row(parts_told.get(at), tones.get(first) if at == 0 else None),
            }


def _speech_row(part: PartSignals | None, tone: int | None) -> dict[str, Any]:
    """Return the keys of a row for what a user's words tell; most have none."""
    row: dict[str, Any] = {}
    if part is not None:
        row["signals"] = part.bits
        row["quotes"] = [f"[{start},{end})" for start, end in part.quotes]
    if tone is not None:
        row["tone"] = tone
    return row


def _failed(key: ConversationKey, reason: str) -> Flow[None]:
    try:
        yield from call("memory_fail_index", {**conversation_ids(key), "p_error": reason})
    except SupabaseMemoryError:
        return  # the record drives the backoff and `status`; the caller gets the failure anyway
