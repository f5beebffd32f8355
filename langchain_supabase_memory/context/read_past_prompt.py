"""The flow that reads what a past prompt was made of, by the numbers of its manifest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.context.past_prompt import PromptRebuilder, RebuiltPrompt, Sources, shown_sequences
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError, NotFoundError
from langchain_supabase_memory.operations import profile
from langchain_supabase_memory.operations.arguments import check_limit, conversation_ids, retention_argument
from langchain_supabase_memory.operations.boards.board import board_of
from langchain_supabase_memory.operations.conversations import read_rows
from langchain_supabase_memory.operations.manifests.listing import manifests
from langchain_supabase_memory.operations.manifests.manifest import Manifest
from langchain_supabase_memory.operations.recall.chunk_rows import chunk
from langchain_supabase_memory.operations.recall.ranges import zone
from langchain_supabase_memory.operations.summaries import read_segment
from langchain_supabase_memory.operations.turns import turn_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import tzinfo

    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import ConversationKey


def prompt(
    key: ConversationKey,
    answer: Manifest | int,
    *,
    retention: Retention | None = None,
    time_zone: str | tzinfo | None = None,
) -> Flow[RebuiltPrompt]:
    """Rebuild what the prompt of a past answer was made of: each part with its words, in the order of the model.

    It is made from the answer's manifest and from what is stored, so each part says whether it is as it was, and
    if not, why: what was edited, forgotten or has expired since does not come back. The board is read as it was.
    Boards of spaces and other agents are named, and not read. One round trip with a manifest, two with a number;
    one more for each 1,000 messages, or about 4 MiB, of a part, and one where it showed a profile.

    Args:
        key: The conversation.
        answer: A manifest of `manifests`, or the number of the message that answered: the last one that was stored
            with the manifest.
        retention: The retention to apply; by default all messages are retained.
        time_zone: The reader's time zone.

    Raises:
        InvalidInputError: It is neither a stored manifest nor a number.
        NotFoundError: No manifest is stored for the answer.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    answer = yield from stored_manifest(key, answer, retention)
    sources = yield from read_sources(key, answer, retention)
    if any(part.name == "profile" for part in answer.parts):
        person = yield from profile.read(key.user_id, states=("held", "superseded"), limit=None)
        sources = replace(sources, profile=person)
    return PromptRebuilder(key, answer, sources, zone(time_zone)).rebuild()


def stored_manifest(key: ConversationKey, answer: Manifest | int, retention: Retention | None) -> Flow[Manifest]:
    """Return the manifest of an answer; as it is if it is one.

    Args:
        key: The conversation.
        answer: A stored manifest, or the number of the message that answered.
        retention: The retention to apply.

    Raises:
        InvalidInputError: It is neither a stored manifest nor a number.
        NotFoundError: No manifest is stored for the answer.
    """
    if not isinstance(answer, Manifest):
        number = check_limit("answer", answer)
        if number is None:
            raise InvalidInputError("answer must be a manifest or a number.", hint="Pass one of manifests().manifests.")
        page = yield from manifests(key, limit=1, from_sequence=number, to_sequence=number, retention=retention)
        if not page.manifests:
            raise NotFoundError(
                "No prompt is stored for this answer.", hint="Manifests expire, and are deleted with their messages."
            )
        answer = page.manifests[0]
    if answer.to_sequence is None:
        raise InvalidInputError("The manifest is not stored.", hint="Pass one of manifests().manifests.")
    return answer


def read_sources(key: ConversationKey, manifest: Manifest, retention: Retention | None) -> Flow[Sources]:
    """Read what is stored of what a manifest names, but for the profile: in one round trip, mostly.

    Args:
        key: The conversation.
        manifest: A stored manifest.
        retention: The retention to apply.
    """
    found = yield from call("memory_prompt", {**conversation_ids(key), **_arguments(manifest, retention)})
    return Sources() if found is None else (yield from _read(key, manifest, found, retention))


def _ranges(manifest: Manifest) -> list[tuple[int, int]]:
    """The ranges of messages that are read."""
    made: list[tuple[int, int]] = []
    for name in ("recent", "current"):
        stored, later = shown_sequences(manifest, name)
        made += [*stored, *((number, number) for number in later)]
    return made


def _arguments(manifest: Manifest, retention: Retention | None) -> dict[str, Any]:
    parts = {part.name: part for part in manifest.parts}
    details = manifest.details
    passages: list[list[Any]] = []
    for each in manifest.passages:
        place = details.passages.get(each.id) if each.id is not None else None
        if each.id is None:
            passages.append([each.first, each.last, each.part])
        elif place is not None:
            passages.append([each.id, place.place, place.part])
        else:  # the manifest has no room for where it is
            passages.append([each.id, -1, 0])
    has_board = "board" in parts or bool(passages)
    return {
        "p_messages": _ranges(manifest),
        "p_segment": parts["summary"].number if "summary" in parts else None,
        "p_at": manifest.made_at.isoformat() if has_board and manifest.made_at is not None else None,
        "p_version": details.board_version if has_board else None,
        "p_passages": passages,
        "p_turn": parts["reference"].first if "reference" in parts else None,
        "p_retention": retention_argument(retention),
    }


def _read(
    key: ConversationKey, manifest: Manifest, document: Mapping[str, Any], retention: Retention | None
) -> Flow[Sources]:
    rows: dict[int, Mapping[str, Any]] = {}
    for (_, last), page in zip(_ranges(manifest), document["messages"], strict=True):
        rows.update((row["sequence"], row) for row in page["messages"])
        if page["more"] and page["messages"]:
            rest = yield from read_rows(
                key,
                from_sequence=page["messages"][-1]["sequence"] + 1,
                to_sequence=last,
                columns=("payload", "updated_at", "author_name"),
                retention=retention,
            )
            rows.update((row["sequence"], row) for row in rest)
    for row in _superseded(document):
        rows.setdefault(row["sequence"], row)
    segment, turn, board = document["segment"], document["turn"], document["board"]
    return Sources(
        rows=dict(sorted(rows.items())),
        expired=document["expired"],
        segment=None if segment is None else read_segment(segment),
        board=None if board is None else board_of(key, board),
        passages={each["number"]: chunk(each["chunk"]) for each in document["passages"]},
        turn=None if turn is None else turn_of(turn),
    )


def _superseded(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for page in document["superseded"] or ():
        yield from page["messages"]
