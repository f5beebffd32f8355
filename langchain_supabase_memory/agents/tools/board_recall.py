"""Recall a conversation's items by kind, from its board and, by rules, from the chunks of newer messages.

Messages that the board covers are read from the board. Newer ones, or all of them without a board, are derived and not
stored: each call reads the most important chunks, the newest first among equals, and sorts them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.agents.tools.output_limit import Passage, date_of, name, sequence_range
from langchain_supabase_memory.checks import choice
from langchain_supabase_memory.effects import TranscriptLine, offload
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language import extractive
from langchain_supabase_memory.language.extractive.facts import facts
from langchain_supabase_memory.language.extractive.tasks import about_tasks, tasks
from langchain_supabase_memory.language.extractive.utterances import utterances
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.query_hints.names import capitalized
from langchain_supabase_memory.language.spelling import WORD, compose, keys
from langchain_supabase_memory.operations.boards.board import read_board as read_board
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, ContextType
from langchain_supabase_memory.operations.recall import indexing, search
from langchain_supabase_memory.operations.recall.query import Filters, RecallQuery
from langchain_supabase_memory.values import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import tzinfo

    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.language.chunks.kinds import Kind
    from langchain_supabase_memory.language.extractive.utterances import Sentence
    from langchain_supabase_memory.operations.boards.board import Board, BoardItem
    from langchain_supabase_memory.operations.boards.kinds import BoardKind
    from langchain_supabase_memory.values import Chunk, ConversationKey

MAX_PASSAGES: Final = 500
"""How many chunks are read, the most important first."""

ALL: Final = 3_000
"""Conversations of at most this many chunks are read in order, to find what followed a question."""

_SHOWN: Final = 40

_KINDS: Final[Mapping[str, BoardKind]] = {each.context_type: each for each in BOARD_KINDS.values() if each.context_type}
"""The kinds of items that can be recalled, by their name for the model."""


@dataclass(frozen=True)
class DerivedItems:
    """The items of one kind.

    Attributes:
        passages: The items, the most important first.
        note: What was not read; empty if everything was.
    """

    passages: list[Passage] = field(default_factory=list)
    note: str = ""


def recall_derived(
    key: ConversationKey,
    kind: ContextType,
    zone: tzinfo,
    *,
    is_visible: Callable[[Chunk | BoardItem], bool] = lambda _: False,
) -> Flow[DerivedItems]:
    """Return a conversation's items of one kind.

    Args:
        key: The conversation.
        kind: The kind of item to recall.
        zone: The time zone of displayed times.
        is_visible: Whether the model already sees a chunk or an item, which is then omitted.

    Returns:
        The items, each with its message range and date.

    Raises:
        InvalidInputError: There is no such kind.
        SupabaseMemoryError: The database refused the request or could not be reached.
    """
    choice("kind", kind, _KINDS, error=InvalidInputError)
    board: Board = yield from read_board(key)
    items = list_board(board, kind, key, zone, is_visible)
    types: tuple[Kind, ...] | None = ("question",) if kind == "questions" else None
    question = RecallQuery("", Filters(limit=MAX_PASSAGES + 1, types=types))  # one extra, to detect that there are more
    result = yield from search.recall_chunks(Scope.of(key), [question])
    newer = [each for each in result.chunks[:MAX_PASSAGES] if each.to_sequence > board.through_sequence]
    chunks = _distinct(each for each in newer if not is_visible(each))
    if kind == "questions":
        ordered = (yield from indexing.chunks(key)) if chunks and result.searched <= ALL else None
        made = _open_first([*items, *_questions(chunks, ordered, zone)])
    else:
        characters = sum(len(each.content) for each in chunks)
        made = yield from offload(partial(_sorted, kind, chunks, zone), characters, warm_caches=extractive.KEPT)
        made = [*items, *made]
    notes = [
        f"Only the {MAX_PASSAGES} most important passages were looked at." if len(result.chunks) > MAX_PASSAGES else ""
    ]
    notes += [f"{len(made) - _SHOWN} less important ones are left out." if len(made) > _SHOWN else ""]
    return DerivedItems(made[:_SHOWN], " ".join(filter(None, notes)))


def list_board(
    board: Board,
    kind: ContextType,
    key: ConversationKey,
    zone: tzinfo,
    is_visible: Callable[[Chunk | BoardItem], bool] = lambda _: False,
) -> list[Passage]:
    """List the board's items of one kind: open or valid ones first, then pinned, by importance, and newest."""
    of = _KINDS[kind]
    items = [each for each in board.of_kind(of.kind, open_only=False) if not each.message_ids or not is_visible(each)]
    items.sort(key=lambda each: (not each.is_open, not each.pinned, -_importance(each), -each.last_seen_at.timestamp()))
    return [_from_board(of.tag, each, key, zone) for each in items]


def _importance(item: BoardItem) -> float:
    return len(item.sequences) if BOARD_KINDS[item.kind].is_name else item.importance


def _from_board(tag: str, item: BoardItem, key: ConversationKey, zone: tzinfo) -> Passage:
    first, also = (
        (sequence_range(item.sequences[0], item.sequences[0]), item.sequences[1:]) if item.sequences else ("", [])
    )
    attributes: dict[str, str | int] = {
        "messages": first,
        "also": ", ".join(map(str, also[-5:])),
        "by": "" if item.sequences else name(item.edited_by or item.author),
        "writer": "" if item.sequences else item.editor_kind or item.author_kind,
        "at": date_of(item.first_seen_at, zone),
        "state": item.state if BOARD_KINDS[item.kind].can_close else "",
        "type": item.type or "",
        "pinned": "yes" if item.pinned else "",
    }
    source: dict[str, object] = {"thread_id": key.thread_id, "item_id": item.id, "message_ids": item.message_ids}
    if item.sequences:
        source |= {"from_sequence": min(item.sequences), "to_sequence": max(item.sequences)}
    return Passage(tag, item.text, _non_empty(attributes), source)


def _open_first(passages: Sequence[Passage]) -> list[Passage]:
    return sorted(passages, key=lambda each: each.attributes.get("state") != "open")


def _questions(chunks: Sequence[Chunk], ordered: Sequence[Chunk] | None, zone: tzinfo) -> list[Passage]:
    """List questions, the user's unanswered ones first; unsorted if the conversation is too long to read in full."""
    if ordered is None:
        return [_passage("question", each, zone) for each in chunks]
    places: dict[int, list[Chunk]] = {}
    for each in ordered:
        places.setdefault(each.place, []).append(each)
    states = [(_is_open(each, places), each) for each in chunks]
    states.sort(key=lambda state: (not state[0], state[1].role != "user"))
    return [_passage("question", each, zone, state="open" if open_ else "answered") for open_, each in states]


def _is_open(chunk: Chunk, places: Mapping[int, Sequence[Chunk]]) -> bool:
    """Return whether a question is unanswered: within the next two units, other speakers only ask questions."""
    following = [each for after in (1, 2) for each in places.get(chunk.place + after, ())]
    others = [each for each in following if (each.role, each.speaker) != (chunk.role, chunk.speaker)]
    return all(each.type == "question" for each in others)


def _facts(chunks: Sequence[Chunk], zone: tzinfo) -> list[Passage]:
    ordered, sentences = _sentences(chunks)
    used = about_tasks(tasks(sentences))
    found = [each for each, _ in facts(each for each in sentences if each.text not in used)]
    found.sort(key=lambda each: -ordered[each.place].importance)
    return [_passage("fact", ordered[each.place], zone, text=each.text) for each in found]


def _action_items(chunks: Sequence[Chunk], zone: tzinfo) -> list[Passage]:
    """List tasks, the open ones first, and then tool calls."""
    ordered, sentences = _sentences(chunks)
    found = sorted(tasks(sentences), key=lambda each: -ordered[each.sentence.place].importance)
    to_do = [
        _passage("to_do", ordered[each.sentence.place], zone, text=each.sentence.text, state=each.state)
        for each in found
    ]
    return _open_first(to_do) + [_passage("tool_use", each, zone) for each in chunks if each.type == "action"]


def _sentences(chunks: Sequence[Chunk]) -> tuple[Sequence[Chunk], list[Sentence]]:
    """Return chunks in the order of the conversation, and their sentences with their index in that order."""
    said = [each for each in chunks if each.type != "action"]
    ordered = sorted(said, key=lambda each: (each.from_sequence, each.part))
    lines = [TranscriptLine(each.from_sequence, each.role, each.speaker, each.content) for each in ordered]
    return ordered, list(utterances(lines))


def _entities(chunks: Sequence[Chunk], zone: tzinfo) -> list[Passage]:
    texts = [compose(each.content) for each in chunks]
    # A word with a capital inside a sentence is a name; it also counts at the start of one.
    known = {word for text in texts for word in capitalized(text, inside=True)}
    places: dict[str, list[Chunk]] = {}
    for chunk, text in zip(chunks, texts, strict=True):
        for word in known.intersection(capitalized(text)):
            places.setdefault(word, []).append(chunk)
    entities = [(word, len(listed), max(listed, key=lambda each: each.said_at)) for word, listed in places.items()]
    entities.sort(key=lambda entity: (-entity[1], -entity[2].said_at.timestamp(), entity[0]))
    return [
        _passage("entity", last, zone, text=name(word), passages=count, by="")  # the speaker is not the entity
        for word, count, last in entities
    ]


_SORTED: Final[Mapping[str, Callable[[Sequence[Chunk], tzinfo], list[Passage]]]] = {
    "action_items": _action_items,
    "facts": _facts,
    "entities": _entities,
}


def _sorted(kind: ContextType, chunks: Sequence[Chunk], zone: tzinfo) -> list[Passage]:
    """Derive items of one kind from chunks by rules; empty if the kind has no rule."""
    return _SORTED[kind](chunks, zone) if kind in _SORTED else []


def _distinct(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Drop duplicate texts, ignoring case and punctuation; keep the first, which is the most important."""
    first: dict[str, Chunk] = {}
    for each in chunks:
        first.setdefault(" ".join(keys(WORD.findall(compose(each.content)))) or each.content, each)
    return list(first.values())


def _passage(tag: str, chunk: Chunk, zone: tzinfo, *, text: str | None = None, **attributes: str | int) -> Passage:
    shown = {
        "messages": sequence_range(chunk.from_sequence, chunk.to_sequence),
        "by": content.speaker(chunk.role, chunk.speaker),
        "at": date_of(chunk.said_at, zone),
        **attributes,
    }
    source = {
        "thread_id": chunk.thread_id,
        "from_sequence": chunk.from_sequence,
        "to_sequence": chunk.to_sequence,
        "message_ids": chunk.message_ids,
    }
    return Passage(tag, chunk.content if text is None else text, _non_empty(shown), source)


def _non_empty(attributes: Mapping[str, str | int]) -> dict[str, str | int]:
    """Return the attributes that are not empty."""
    return {name: value for name, value in attributes.items() if value != ""}
