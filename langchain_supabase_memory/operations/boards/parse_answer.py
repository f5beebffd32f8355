"""Parse a summarizer's answer into a revision: items with evidence are accepted, the others are refused."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, BoardItemKind, BoardKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_supabase_memory.effects import TranscriptLine
    from langchain_supabase_memory.operations.boards.profile_answer import NewProfileItem

LONGEST_TEXT: Final = 500
"""The maximum number of characters of an item."""

LONGEST_QUOTE: Final = 1000
"""The maximum number of characters of its quote."""

_NUMBER: Final = re.compile(r"-?\d+")
# Different forms of quotation marks and dashes, folded into one.
_ALIKE: Final = str.maketrans(dict.fromkeys('’‘‚‛“”„‟«»‹›「」『』"', "'") | dict.fromkeys("‐‑‒–—―−", "-"))
_LONGEST_ANSWER: Final = 1_000_000
_STARTS: Final = 50
_MAX_ITEMS: Final = 200
"""The maximum number of items of one list."""


@dataclass(frozen=True)
class NewItem:
    """A new item with its evidence, by the names that `memory_commit_board` takes.

    Attributes:
        kind: Its kind.
        text: Its text.
        sequence: The message that supports it.
        quote: The supporting part of that message.
        state: Its state.
        type: For an entity, its type.
        replaces: The id of the item that it contradicts.
        id: Its own id.
    """

    kind: BoardItemKind
    text: str = field(repr=False)
    sequence: int
    quote: str = field(repr=False)
    state: str
    type: str | None = None
    replaces: str | None = None
    id: str = field(default_factory=lambda: str(uuid4()), compare=False)


@dataclass(frozen=True)
class ClosedItem:
    """An item that is done, cancelled, answered or dropped, as `memory_commit_board` takes it.

    Attributes:
        id: Its id.
        state: Its new state.
        sequence: The message that supports the change.
    """

    id: str
    state: str
    sequence: int


@dataclass(frozen=True)
class Revision:
    """What a summarizer reports as new or changed.

    Attributes:
        summary: The summary of the conversation so far.
        context_notes: Notes on how to continue.
        items: New items, each with evidence.
        closed: Items that were closed.
        refused: How many items had no evidence or were malformed.
        title: The topic of the conversation; empty if the summarizer gave none.
        profile: What the messages say of the user, if that was asked for.
    """

    summary: str = field(repr=False)
    context_notes: str = field(repr=False)
    items: list[NewItem]
    closed: list[ClosedItem]
    refused: int
    title: str = field(default="", repr=False)
    profile: list[NewProfileItem] = field(default_factory=list)


def document(text: str) -> Mapping[str, Any] | None:
    """Find the JSON document in a text, ignoring text around it; `None` if there is none that revises a board."""
    for candidate in _candidates(text):
        try:
            found = json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and len(found) == 1 and isinstance(next(iter(found.values())), dict):
            found = next(iter(found.values()))  # wrapped in an object with one key
        if isinstance(found, dict) and isinstance(found.get("summary"), str):
            return found
    return None


def _candidates(text: str) -> Iterator[str]:
    """Yield candidates for the document: from a brace to the last one, as is and without trailing commas."""
    end = text.rfind("}", 0, _LONGEST_ANSWER)
    start = text.find("{")
    for _ in range(_STARTS):
        if not 0 <= start < end:
            return
        body = text[start : end + 1]
        yield body
        yield re.sub(r",(\s*[}\]])", r"\1", body)
        try:
            _, length = _DECODER.raw_decode(body)  # text follows it: a remark, or a second attempt
        except (ValueError, RecursionError):
            length = 1
        else:
            yield body[:length]
        start = text.find("{", start + length)


_DECODER: Final = json.JSONDecoder(strict=False)


def parse_revision(
    answer: Mapping[str, Any], lines: Sequence[TranscriptLine], ids: Mapping[str, tuple[str, BoardItemKind]]
) -> Revision:
    """Check an answer against the messages.

    Args:
        answer: The document.
        lines: The transcript lines in the prompt. Tool results get no more trust than messages.
        ids: The short ids of the items in the prompt, with their real ids and kinds.

    Returns:
        The revision; it contains only what has evidence.
    """
    parts: dict[int, str] = {}
    for line in lines:
        parts[line.number] = parts.get(line.number, "") + line.text
    texts = {number: TextMatcher(text) for number, text in parts.items()}
    items: list[NewItem] = []
    refused = 0
    for kind in BOARD_KINDS.values():
        refused += max(len(_as_list(answer.get(kind.plural))) - _MAX_ITEMS, 0)
        for given in _as_list(answer.get(kind.plural))[:_MAX_ITEMS]:
            made = _item(kind, given, texts, ids)
            if made is None:
                refused += 1
            else:
                items.append(made)
    closed: list[ClosedItem] = []
    for given in _as_list(answer.get("closed"))[:_MAX_ITEMS]:
        found = ids.get(str(given.get("id"))) if isinstance(given, dict) else None
        state = str(given.get("state")) if isinstance(given, dict) else ""
        number = _number(given.get("source")) if isinstance(given, dict) else None
        if found is None or number not in texts or state not in BOARD_KINDS[found[1]].states[1:]:
            refused += 1
        else:
            closed.append(ClosedItem(found[0], state, number))
    notes = answer.get("context_notes")
    return Revision(
        _words(answer.get("summary"), lines=True),
        _words(notes, lines=True)[: 2 * LONGEST_TEXT] if isinstance(notes, str) else "",
        items,
        closed,
        refused,
        _title(answer.get("title")),
    )


class TextMatcher:
    """A text that is normalized lazily and at most once."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def normalize(self) -> tuple[str, list[int]]:
        """The normalized text, and the original position of each of its characters."""
        return _normalize(self.text)

    def locate(self, quote: TextMatcher) -> str | None:
        """Find the part of this text that matches a quote, ignoring spaces, case, invisible characters and marks."""
        if not quote.text:
            return None
        if quote.text in self.text:
            return quote.text
        folded, places = self.normalize
        wanted = quote.normalize[0]
        start = folded.find(wanted) if wanted else -1
        return None if start < 0 else self.text[places[start] : places[start + len(wanted) - 1] + 1]


def _normalize(text: str) -> tuple[str, list[int]]:
    """Normalize a text; return it with the original position of each character."""
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text.translate(_ALIKE)):
        for each in letter if letter.isascii() else unicodedata.normalize("NFKD", letter.casefold()):
            if not each.isspace() and (each.isascii() or unicodedata.category(each) not in ("Cc", "Cf")):
                letters.append(each.casefold())
                places.append(place)
    return "".join(letters), places


def _item(
    kind: BoardKind, value: Any, texts: Mapping[int, TextMatcher], ids: Mapping[str, tuple[str, BoardItemKind]]
) -> NewItem | None:
    if not isinstance(value, dict):
        return None
    text = _words(value.get("text"))[:LONGEST_TEXT].rstrip()
    words = value.get("quote")
    if not text or not isinstance(words, str):
        return None
    number = _number(value.get("source"))
    quote = TextMatcher(clean(words[: 2 * LONGEST_QUOTE]).strip())  # the beginning of a longer one is enough evidence
    found = texts[number].locate(quote) if number is not None and number in texts else None
    if found is None:
        # A wrong message number is accepted if exactly one message contains the quote.
        elsewhere = [(at, part) for at, said in texts.items() if (part := said.locate(quote)) is not None]
        if len(elsewhere) != 1 or len(elsewhere[0][1]) < _TELLING:
            return None
        number, found = elsewhere[0]
    assert number is not None
    state = str(value.get("state"))
    replaces = ids.get(str(value.get("replaces")))
    return NewItem(
        kind.kind,
        text,
        number,
        found[:LONGEST_QUOTE],
        state if state in kind.states else kind.states[0],
        _one_of(value.get("type"), kind.types) if kind.types else None,
        replaces[0] if replaces is not None and replaces[1] == kind.kind else None,
    )


_TELLING: Final = 12  # a quote of this many characters hardly matches by chance


def _title(value: Any) -> str:
    """Return a title without the marks that models like to put around it."""
    return _words(value)[:LONGEST_TEXT].strip(" \"'“”„«»*#.")


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _words(value: Any, *, lines: bool = False) -> str:
    if not isinstance(value, str):
        return ""
    text = clean(value).strip()
    return text if lines else " ".join(text.split())


def _one_of(value: Any, choices: Sequence[str]) -> str:
    return value if isinstance(value, str) and value in choices else choices[-1]


def _number(value: Any) -> int | None:
    """Return a message's number, even if it is written as text such as "[12]"."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    found = _NUMBER.search(str(value))
    return int(found.group()) if found and len(found.group()) < 19 else None
