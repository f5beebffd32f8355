"""The `Memory` value, and the `LongTerm` protocol."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Protocol

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages.sanitizer import clean, decode, encode
from langchain_supabase_memory.values import check_id

MAX_LIMIT: Final = 1000
"""The maximum number of memories that one recall returns."""

_IDS: Final = uuid.UUID("8a0f1f6e-52a5-4a77-b7e3-0d9c6f1e4c55")


@dataclass(frozen=True)
class Memory:
    """One long-term memory.

    Attributes:
        text: The memory's text, one or a few sentences.
        kind: A kind that you choose: `"fact"`, `"preference"`, `"event"`.
        importance: Its importance, from 0 to 1.
        said_at: The time of the message or event, with a time zone.
        thread_id: The thread that it comes from.
        message_ids: The messages that it comes from.
        quote: The original wording, if `text` differs from it.
        metadata: Additional data, as for `messages.sanitizer`.
        id: Its UUID, as a string. By default it is derived from the user, the text and the source when the memory is
            stored: the same fact from the same source is the same memory.
        score: How well it matches the query, if the store returns a score; not part of the memory.

    Raises:
        InvalidInputError: The text is blank, the importance is not between 0 and 1, the time is naive, or the id is
            not a UUID.
    """

    text: str = field(repr=False)
    kind: str = "fact"
    importance: float = 0.5
    said_at: datetime | None = None
    thread_id: str | None = None
    message_ids: tuple[str, ...] = ()
    quote: str | None = field(default=None, repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    id: str | None = None
    score: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise InvalidInputError(
                "A memory's text must be a string that is not blank.", hint="Pass the text to remember."
            )
        check_id("kind", self.kind)
        number = self.importance
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number <= 1:
            raise InvalidInputError("importance must be a number from 0 to 1.", hint="Pass importance=0.5.")
        if self.said_at is not None and (not isinstance(self.said_at, datetime) or self.said_at.tzinfo is None):
            raise InvalidInputError(
                "said_at must be a datetime with a time zone.", hint="Pass datetime.now(timezone.utc), for example."
            )
        if isinstance(self.message_ids, str) or not isinstance(self.metadata, Mapping):
            raise InvalidInputError(
                "message_ids must be a list of ids, and metadata a dictionary.", hint='Pass message_ids=("m1",).'
            )
        if self.id is not None:
            _checked_uuid(self.id)
        object.__setattr__(self, "text", clean(self.text))
        object.__setattr__(self, "quote", None if self.quote is None else clean(self.quote))
        object.__setattr__(self, "thread_id", None if self.thread_id is None else clean(self.thread_id))
        object.__setattr__(self, "message_ids", tuple(clean(str(each)) for each in self.message_ids))

    def with_owner(self, user_id: str) -> Memory:
        """Return the memory with an id, derived for this user if it has none."""
        if self.id is not None:
            return self
        source = [user_id, self.text, self.thread_id, *self.message_ids]
        return replace(self, id=str(uuid.uuid5(_IDS, json.dumps(source))))

    def to_json(self) -> dict[str, Any]:
        """Return the stored form, without the id."""
        return {
            "text": self.text,
            "kind": self.kind,
            "importance": float(self.importance),
            "said_at": None if self.said_at is None else self.said_at.isoformat(),
            "thread_id": self.thread_id,
            "message_ids": list(self.message_ids),
            "quote": self.quote,
            "metadata": encode(dict(self.metadata)),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], id_: str, score: float | None = None) -> Memory | None:
        """Parse the output of `to_json`; `None` if the value is something else that the store also holds."""
        said_at = value.get("said_at")
        try:
            return cls(
                text=value["text"],
                kind=value["kind"],
                importance=value["importance"],
                said_at=None if said_at is None else datetime.fromisoformat(said_at),
                thread_id=value.get("thread_id"),
                message_ids=tuple(value.get("message_ids") or ()),
                quote=value.get("quote"),
                metadata=decode(value.get("metadata") or {}),
                id=id_,
                score=score,
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return None


@dataclass(frozen=True)
class Remembered:
    """The result of `remember`.

    Attributes:
        stored: The ids of the new memories.
        known: The ids of memories that already existed, which are unchanged.
    """

    stored: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)


class LongTerm(Protocol):
    """The long-term memories of one user. `StoreLongTerm` and `VectorStoreLongTerm` implement it; you can write others.

    Attributes:
        user_id: The user who owns the memories; no method reaches another user's.
        name: A name that distinguishes this long-term memory from the user's others, to record what it received.
    """

    @property
    def user_id(self) -> str:
        """The user who owns the memories."""

    @property
    def name(self) -> str:
        """The name that distinguishes this long-term memory from the user's others."""

    def remember(self, memories: Iterable[Memory]) -> Remembered:
        """Store each memory once; one whose id already exists is unchanged."""

    async def aremember(self, memories: Iterable[Memory]) -> Remembered:
        """The async twin of `remember`."""

    def recall(self, query: str, limit: int = 5, kinds: Collection[str] | None = None) -> list[Memory]:
        """Return the memories that best match a query, the best first; of equal texts, only the first."""

    async def arecall(self, query: str, limit: int = 5, kinds: Collection[str] | None = None) -> list[Memory]:
        """The async twin of `recall`."""

    def forget(self, ids: Iterable[str]) -> None:
        """Delete memories, if they exist."""

    async def aforget(self, ids: Iterable[str]) -> None:
        """The async twin of `forget`."""


def fold_text(text: str) -> str:
    """Normalize a text's case and spaces."""
    return " ".join(text.casefold().split())


def derived_id(user_id: str, id_: str) -> str:
    """Return a memory's id in a store shared by all users, which is unique to its user."""
    return str(uuid.uuid5(_IDS, json.dumps(["stored", user_id, id_])))


def check_ids(ids: Iterable[str]) -> list[str]:
    """Return memory ids without duplicates.

    Raises:
        InvalidInputError: `ids` is a string, or one of them is not a UUID.
    """
    if isinstance(ids, str):
        raise InvalidInputError("ids must be a list of ids, not a string.", hint="Pass [id].")
    return list(dict.fromkeys(_checked_uuid(each) for each in ids))


def check_question(query: str, limit: int, kinds: Collection[str] | None) -> tuple[str, list[str] | None]:
    """Validate a query, and return it cleaned, with the sorted kinds.

    Raises:
        InvalidInputError: An argument is not valid.
    """
    if not isinstance(query, str):
        raise InvalidInputError(f"A query must be a string, not {type(query).__name__}.", hint="Pass the user's text.")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidInputError(f"limit must be a whole number from 1 to {MAX_LIMIT:,}.", hint="Pass limit=5.")
    if isinstance(kinds, str):
        raise InvalidInputError("kinds must be a list, not a string.", hint=f'Pass ["{kinds[:20]}"].')
    for kind in kinds or ():
        check_id("kind", kind)
    return clean(query), None if kinds is None else sorted(set(kinds))


def distinct(memories: Iterable[Memory]) -> list[Memory]:
    """Return the first memory of each text."""
    first: dict[str, Memory] = {}
    for memory in memories:
        first.setdefault(fold_text(memory.text), memory)
    return list(first.values())


def _checked_uuid(id_: object) -> str:
    try:
        return str(uuid.UUID(str(id_)))
    except ValueError:
        raise InvalidInputError("A memory's id is not a UUID.", hint="Pass the ids that remember() returned.") from None
