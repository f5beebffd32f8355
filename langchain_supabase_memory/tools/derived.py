"""What can be recalled of a conversation by its kind: from its board, and by rules from the chunks of what is newer.

What the board has taken in stands on it. The rest, and everything where no board was written, is derived and not kept:
each call reads the most important chunks, the newest first among equals, and sorts them.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal, get_args

from langchain_supabase_memory import boards, cues, indexing
from langchain_supabase_memory.cues.lexicon import WORD, composed, keys
from langchain_supabase_memory.cues.names import capitalized
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.flow import compute
from langchain_supabase_memory.recall import search
from langchain_supabase_memory.recall.question import Question
from langchain_supabase_memory.tools.bounded import Passage, dated, name, range_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import tzinfo

    from langchain_supabase_memory.boards.answer import Kind as ItemKind
    from langchain_supabase_memory.boards.board import Board, BoardItem
    from langchain_supabase_memory.chunks.kinds import Kind
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.models import Chunk, ConversationKey

ContextType = Literal["action_items", "questions", "facts", "entities"]
"""The kinds of what can be recalled."""

MOST: Final = 500
"""How many chunks are looked at: the most important."""

ALL: Final = 3_000
"""Conversations of at most so many chunks are read in order, to know what followed a question."""

_SHOWN: Final = 40
_TYPES: Final[dict[ContextType, tuple[Kind, ...] | None]] = {
    "action_items": None,
    "questions": ("question",),
    "facts": ("fact", "answer"),
    "entities": None,
}


_ITEMS: Final[dict[ContextType, tuple[ItemKind, str]]] = {
    "action_items": ("action", "to_do"),
    "questions": ("question", "question"),
    "facts": ("fact", "fact"),
    "entities": ("entity", "entity"),
}
"""What a board calls them, and what a result does."""


@dataclass(frozen=True)
class Derived:
    """What was found of a kind.

    Attributes:
        passages: The most important first.
        note: What was not looked at; empty if all was.
    """

    passages: list[Passage] = field(default_factory=list)
    note: str = ""


def recalled(
    key: ConversationKey,
    kind: ContextType,
    zone: tzinfo,
    *,
    seen: Callable[[Chunk | BoardItem], bool] = lambda _: False,
) -> Flow[Derived]:
    """What a conversation has of a kind.

    Args:
        key: The conversation.
        kind: What is to be recalled.
        zone: In which times are shown.
        seen: Whether a chunk, or an item, is seen by the model anyhow, and left out.

    Returns:
        It, with the range and the date of each.

    Raises:
        InvalidInputError: There is no such kind.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    if kind not in get_args(ContextType):
        raise InvalidInputError("There is no such kind.", hint=f"Kinds are {', '.join(get_args(ContextType))}.")
    board: Board = yield from boards.board(key)
    items = _items(board, kind, key, zone, seen)
    question = Question("", limit=MOST + 1, types=_TYPES[kind])  # one more, to know whether that is all
    scope = search.Scope(key.user_id, key.agent_id, key.thread_id)
    found = yield from search.recall(scope, question, model=None)
    newer = [each for each in found.chunks[:MOST] if each.to_sequence > board.through_sequence]
    chunks = _once(each for each in newer if not seen(each))
    if kind == "questions":
        ordered = (yield from indexing.chunks(key)) if chunks and found.searched <= ALL else None
        made = _open_first([*items, *_questions(chunks, ordered, zone)])
    else:
        characters = sum(len(each.content) for each in chunks)
        made = yield from compute(partial(_SORTED[kind], chunks, zone), characters, kept=(*cues.KEPT, _promises))
        made = [*items, *made]
    notes = [f"Only the {MOST} most important passages were looked at." if len(found.chunks) > MOST else ""]
    notes += [f"{len(made) - _SHOWN} less important ones are left out." if len(made) > _SHOWN else ""]
    return Derived(made[:_SHOWN], " ".join(filter(None, notes)))


def _items(
    board: Board, kind: ContextType, key: ConversationKey, zone: tzinfo, seen: Callable[[Chunk | BoardItem], bool]
) -> list[Passage]:
    """What the board has of a kind: what holds first, then what a person pinned, what matters most, what is newest."""
    item_kind, tag = _ITEMS[kind]
    items = [each for each in board.of(item_kind, open_only=False) if not each.message_ids or not seen(each)]
    items.sort(key=lambda each: (not each.is_open, not each.pinned, -_importance(each), -each.last_seen_at.timestamp()))
    return [_from_board(tag, each, key, zone) for each in items]


def _importance(item: BoardItem) -> float:
    return len(item.sequences) if item.kind == "entity" else item.importance


def _from_board(tag: str, item: BoardItem, key: ConversationKey, zone: tzinfo) -> Passage:
    first, also = (range_of(item.sequences[0], item.sequences[0]), item.sequences[1:]) if item.sequences else ("", [])
    said: dict[str, str | int] = {
        "messages": first,
        "also": ", ".join(map(str, also[-5:])),
        "by": "" if item.sequences or item.edited_by is None else name(item.edited_by),
        "at": dated(item.first_seen_at, zone),
        "state": item.state if item.kind in ("action", "question") else "",
        "type": item.type or "",
        "pinned": "yes" if item.pinned else "",
    }
    source: dict[str, object] = {"thread_id": key.thread_id, "item_id": item.id, "message_ids": item.message_ids}
    if item.sequences:
        source |= {"from_sequence": min(item.sequences), "to_sequence": max(item.sequences)}
    return Passage(tag, item.text, {key: value for key, value in said.items() if value != ""}, source)


def _open_first(passages: Sequence[Passage]) -> list[Passage]:
    return sorted(passages, key=lambda each: each.attributes.get("state") != "open")


def _facts(chunks: Sequence[Chunk], zone: tzinfo) -> list[Passage]:
    return [_passage("fact", each, zone) for each in chunks]


def _questions(chunks: Sequence[Chunk], ordered: Sequence[Chunk] | None, zone: tzinfo) -> list[Passage]:
    """Questions, those of the user that nobody answered first; in a conversation too long to know, as they come."""
    if ordered is None:
        return [_passage("question", each, zone) for each in chunks]
    places: dict[int, list[Chunk]] = {}
    for each in ordered:
        places.setdefault(each.place, []).append(each)
    states = [(_is_open(each, places), each) for each in chunks]
    states.sort(key=lambda state: (not state[0], state[1].role != "user"))
    return [_passage("question", each, zone, state="open" if open_ else "answered") for open_, each in states]


def _is_open(chunk: Chunk, places: Mapping[int, Sequence[Chunk]]) -> bool:
    """Whether nobody else said anything right after a question, within two units, but another question."""
    following = [each for after in (1, 2) for each in places.get(chunk.place + after, ())]
    others = [each for each in following if (each.role, each.speaker) != (chunk.role, chunk.speaker)]
    return all(each.type == "question" for each in others)


def _action_items(chunks: Sequence[Chunk], zone: tzinfo) -> list[Passage]:
    promised = [each for each in chunks if each.type != "action" and promises(each.content)]
    done = [each for each in chunks if each.type == "action"]
    return [_passage("to_do", each, zone) for each in promised] + [_passage("tool_use", each, zone) for each in done]


def _entities(chunks: Sequence[Chunk], zone: tzinfo) -> list[Passage]:
    texts = [composed(each.content) for each in chunks]
    # What has a capital inside a sentence is a name; it is counted where it begins one, too.
    known = {word for text in texts for word in capitalized(text, inside=True)}
    places: dict[str, list[Chunk]] = {}
    for chunk, text in zip(chunks, texts, strict=True):
        for word in known.intersection(capitalized(text)):
            places.setdefault(word, []).append(chunk)
    found = [(word, len(listed), max(listed, key=lambda each: each.said_at)) for word, listed in places.items()]
    found.sort(key=lambda entity: (-entity[1], -entity[2].said_at.timestamp(), entity[0]))
    return [
        _passage("entity", last, zone, text=name(word), passages=count, by="")  # who says it names nobody
        for word, count, last in found
    ]


_SORTED: Final[Mapping[str, Callable[[Sequence[Chunk], tzinfo], list[Passage]]]] = {
    "action_items": _action_items,
    "facts": _facts,
    "entities": _entities,
}


def promises(text: str) -> bool:
    """Whether somebody promises to do something, or asks somebody else to."""
    return _promises().search(" ".join(keys(WORD.findall(composed(text))))) is not None


@cache
def _promises() -> re.Pattern[str]:
    languages = tomllib.loads(files(__package__).joinpath("promises.toml").read_text(encoding="utf-8"))
    phrases = sorted({phrase for listed in languages.values() for phrase in listed})
    return re.compile(r"\b(?:" + "|".join(phrase.replace("*", r"\w*") for phrase in phrases) + r")\b")


def _once(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Each text once, whatever its case and its punctuation: the first, which is the most important."""
    found: dict[str, Chunk] = {}
    for each in chunks:
        found.setdefault(" ".join(keys(WORD.findall(composed(each.content)))) or each.content, each)
    return list(found.values())


def _passage(tag: str, chunk: Chunk, zone: tzinfo, *, text: str | None = None, **attributes: str | int) -> Passage:
    said = {
        "messages": range_of(chunk.from_sequence, chunk.to_sequence),
        "by": name(chunk.speaker or chunk.role),
        "at": dated(chunk.said_at, zone),
        **attributes,
    }
    source = {
        "thread_id": chunk.thread_id,
        "from_sequence": chunk.from_sequence,
        "to_sequence": chunk.to_sequence,
        "message_ids": chunk.message_ids,
    }
    shown = {key: value for key, value in said.items() if value != ""}
    return Passage(tag, chunk.content if text is None else text, shown, source)
