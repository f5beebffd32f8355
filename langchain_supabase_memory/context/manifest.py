"""Create the manifest of a pack: its contents and the reasons, in numbers. Pure; it only reads the pack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_core.messages import HumanMessage

from langchain_supabase_memory.context.manifest_details import encode_details, head_details
from langchain_supabase_memory.context.reasons import (
    BEYOND,
    CUT,
    FOR_RECALLED,
    LEFT_OUT,
    LEFT_TO_RECALL,
    MEDIA,
    NO_ROOM,
    SUPERSEDED,
    TOO_MANY,
    UNREADABLE,
)
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.blocks import ORPHAN
from langchain_supabase_memory.operations.manifests import encoding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.language.messages.blocks import PromptEntry
    from langchain_supabase_memory.operations.manifests.encoding import EntryPoint, Lists
    from langchain_supabase_memory.operations.manifests.parts import PartName, Reason

REFERENCE_ID: Final = "lc_supabase_memory_reference"
"""The id of the message that carries a referenced turn."""

POINTED_AT: Final = "turn"
"""The key of that message's response metadata with the turn's first and last sequence and its number."""


def is_reference(message: BaseMessage) -> bool:
    """Return whether a message carries a referenced turn; a person's message that has its id does not."""
    return message.id == REFERENCE_ID and not content.is_conversation(message)


_REASONS: Final[dict[str, Reason]] = {
    BEYOND: "budget",
    TOO_MANY: "messages",
    CUT: "cut",
    NO_ROOM: "no_room",
    LEFT_TO_RECALL: "quotes",
    FOR_RECALLED: "recalled",
    SUPERSEDED: "branch",
    UNREADABLE: "unreadable",
    ORPHAN: "orphan",
    MEDIA: "media",
}


def encode_manifest(pack: ContextPack, kind: EntryPoint) -> Lists:
    """Return the manifest of a pack as it is stored, before it is cut to its maximum size.

    Args:
        pack: The pack.
        kind: What requested it.
    """
    budget, board = pack.budget, pack.board
    flags = sum(
        1 << bit for bit, error in enumerate((pack.summary_error, pack.recall_error, pack.rerank_error)) if error
    )
    flags |= (encoding.OPTED_OUT if pack.opted_out else 0) | (encoding.MORE if board.has_more else 0)
    head = [
        encoding.HEAD,
        encoding.ENTRY_POINTS.index(kind),
        int(budget.tokens is not None),
        budget.tokens or budget.characters or 0,
        pack.used,
        _turn(pack),
        flags,
        encoding.NONE,
        board.left_out,
        *pack.full_history,
        *head_details(pack),
    ]
    items = [[encoding.ITEMS, *(encoding.header(item.id) for item in board.items)]] if board.items else []
    profile = [[encoding.PROFILE, *(encoding.header(item.id) for item in pack.profile.items)]] if pack.profile else []
    details = encode_details(pack, next((each for each in pack.fitted.current if is_reference(each.message)), None))
    return [head, *_parts(pack), *items, *profile, *_shared(pack), *_passages(pack), *_omitted(pack), *details]


def _turn(pack: ContextPack) -> int:
    """Return the sequence of the user's message; -1 if it is not stored yet."""
    fitted = pack.fitted
    said = [entry for entry in fitted.current if not is_reference(entry.message)]
    if not said and fitted.recent and isinstance(fitted.recent[-1].message, HumanMessage):
        said = fitted.recent[-1:]
    return said[0].sequences[0] if said and said[0].sequences else encoding.NONE


def _parts(pack: ContextPack) -> Iterator[list[int]]:
    reference = next((each for each in pack.fitted.current if is_reference(each.message)), None)
    for section in pack.sections:
        counts = [section.messages, section.characters, section.tokens]
        if section.name == "profile":
            yield _part("profile", "held", counts)
        elif section.name == "summary" and pack.summary is not None:
            yield _part("summary", "older", counts, 0, pack.summary.to_sequence, pack.summary.number)
        elif section.name == "note":
            yield _part("note", "omitted" if pack.note else "opening", counts)
        elif section.name == "recent" and section.messages:
            yield _part("recent", _recent(pack), counts, *_sequence_range(pack.fitted.recent))
        elif section.name == "board":
            yield _part("board", "holds", counts)
        elif section.name == "shared":
            yield _part("shared", "shared", counts)
        elif section.name == "recalled":
            yield _part("recalled", _recalled(pack), counts)
        elif section.name == "current":
            if reference is not None:
                counts = [each - beside for each, beside in zip(counts, reference.counts, strict=True)]
                pointed_at = reference.message.response_metadata[POINTED_AT]
                yield _part("reference", "pointed_at", [*reference.counts], *pointed_at)
            yield _part("current", "asked", counts, *_sequence_range(pack.fitted.current))


def _part(
    name: PartName, reason: Reason, counts: list[int], first: int = encoding.NONE, last: int = encoding.NONE,
    number: int = encoding.NONE,
) -> list[int]:  # fmt: skip
    return [encoding.PART, encoding.PARTS.index(name), encoding.REASONS.index(reason), *counts, first, last, number]


def _recent(pack: ContextPack) -> Reason:
    """Return why these recent messages are shown."""
    left_out = {*pack.fitted.omitted.values(), *(why for _, _, why in pack.fitted.ranges)} & {*LEFT_OUT, NO_ROOM}
    return "messages" if TOO_MANY in left_out else "newest" if left_out else "all"


def _recalled(pack: ContextPack) -> Reason:
    """Return how the passages were found."""
    if any("rerank" in chunk.score_parts for chunk in pack.recalled) and pack.rerank_error is None:
        return "reranked"
    return "meaning" if any(chunk.similarity is not None for chunk in pack.recalled) else "words"


def _shared(pack: ContextPack) -> Iterator[list[int]]:
    """Yield a list for each board of a space or another agent: its place among them, and what is shown of it."""
    for kind in encoding.SHARED_KINDS:
        for place, board in enumerate(each for each in pack.shared.boards if each.kind == kind):
            items = (encoding.header(item.id) for item in board.items)
            code = encoding.SHARED_KINDS.index(kind)
            yield [encoding.SHARED, code, place, int(board.is_refused), board.left_out, *items]


def _passages(pack: ContextPack) -> Iterator[list[int]]:
    here = (pack.key.thread_id, pack.key.agent_id)
    for chunk in pack.recalled:
        scores = encoding.hundredths(chunk.score_parts)
        if (chunk.thread_id, chunk.agent_id) == here:
            yield [encoding.PASSAGE, chunk.from_sequence, chunk.to_sequence, chunk.part, *scores]
        else:
            yield [encoding.ELSEWHERE, encoding.header(chunk.id), *scores]


def _omitted(pack: ContextPack) -> Iterator[list[int]]:
    for first, last, why in pack.omitted:
        reason = _REASONS.get(why.partition(";")[0], "other")
        yield [encoding.OMITTED, first, last, encoding.REASONS.index(reason)]


def _sequence_range(entries: list[PromptEntry]) -> list[int]:
    """Return the first and the last stored sequence of messages."""
    shown = [sequence for entry in entries for sequence in entry.sequences]
    return [min(shown), max(shown)] if shown else [encoding.NONE, encoding.NONE]
