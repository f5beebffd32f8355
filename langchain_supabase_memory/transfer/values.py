"""What a source yields, and what is told at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langchain_supabase_memory.json_types import AnyMessage


@dataclass(frozen=True)
class ThreadStart:
    """A conversation begins here; what a source yields next belongs to it.

    Attributes:
        thread_id: Its id.
        place: Where it stands in the source, for errors: `line 3`, `conversation 7`. Never content.
        agent_id: Its agent, where the source knows one; else the import's.
        title: What a person calls it.
        metadata: What the application keeps beside it.
        created_at: When it was begun.
        updated_at: When it was last changed.
        opt_outs: What of it is not to be remembered, as the SQL function `memory_restore` takes it.
        about: What else the source knows of it, for `owner`; it is not stored.
        stands_alone: Whether it is kept where it has no message.
    """

    thread_id: str
    place: str
    agent_id: str | None = None
    title: str | None = field(default=None, repr=False)
    metadata: Mapping[str, Any] | None = field(default=None, repr=False)
    created_at: datetime | None = None
    updated_at: datetime | None = None
    opt_outs: list[Mapping[str, Any]] = field(default_factory=list, repr=False)
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)
    stands_alone: bool = False


@dataclass(frozen=True)
class SourceMessage:
    """A message of the conversation that was begun last.

    Attributes:
        place: Where it stands in the source.
        message: The message. Without an id it gets one that is derived from its place in the conversation.
        created_at: When it was said, with a time zone; `None` if nobody knows.
        metadata: What is stored beside it.
        row: In place of `message`: the row of an export of ours, as `memory_append` takes it.
        size: At least the bytes of the row.
    """

    place: str
    message: AnyMessage | None = field(default=None, repr=False)
    created_at: datetime | None = None
    metadata: Mapping[str, Any] | None = field(default=None, repr=False)
    row: Mapping[str, Any] | None = field(default=None, repr=False)
    size: int = 0


@dataclass(frozen=True)
class ThreadEdits:
    """What people have set of the conversation that was begun last, as `memory_restore` takes it.

    Attributes:
        document: The document.
        place: Where it stands in the source.
    """

    document: Mapping[str, Any] = field(repr=False)
    place: str


@dataclass(frozen=True)
class ThreadOptOuts:
    """Topics that are not to be remembered, in all conversations of the user.

    Attributes:
        opt_outs: As `memory_restore` takes them.
        place: Where they stand in the source.
    """

    opt_outs: list[Mapping[str, Any]] = field(repr=False)
    place: str


@dataclass(frozen=True)
class LossCount:
    """Something that cannot be kept, though nothing is wrong with it.

    Attributes:
        kind: What, without content.
        place: Where it stands in the source.
        count: How many.
    """

    kind: str
    place: str
    count: int = 1


@dataclass(frozen=True)
class SourceProblem:
    """Something that cannot be read: it ends the import, unless that is told to skip such.

    Attributes:
        why: What is wrong, without content.
        hint: The next action.
        place: Where it stands in the source.
        breaks: Whether a conversation may have begun here: what follows, up to the next one, is of none that is known.
    """

    why: str
    hint: str
    place: str
    breaks: bool = False


Event = ThreadStart | SourceMessage | ThreadEdits | ThreadOptOuts | LossCount | SourceProblem
"""What a source yields, in order."""

Source = Iterable[Event]
"""Conversations from elsewhere. It is read once, and only as far as what was read has been stored."""


@dataclass
class ImportReceipt:
    """What an import did, or would do.

    Attributes:
        conversations: How many conversations the source held.
        messages: How many messages it held.
        stored: How many of these are new.
        known: How many were there already, or were forgotten there: a repeat changes nothing. Those that are there
            with other words are in `lost`, too.
        expired: How many messages retention removed at once, or would.
        restored: How many titles, opt-outs, items and other settings of people were put back.
        refused: How many of these were not, because of an opt-out.
        lost: What could not be kept: what, how many, and where first.
        dry_run: Whether nothing was stored.
    """

    conversations: int = 0
    messages: int = 0
    stored: int = 0
    known: int = 0
    expired: int = 0
    restored: int = 0
    refused: int = 0
    lost: dict[str, tuple[int, str]] = field(default_factory=dict)
    dry_run: bool = False

    def record_loss(self, kind: str, place: str, count: int = 1) -> None:
        """Note something that cannot be kept."""
        before, first = self.lost.get(kind, (0, place))
        self.lost[kind] = (before + count, first)


@dataclass
class ExportReceipt:
    """What an export wrote.

    Attributes:
        conversations: How many conversations.
        messages: How many messages.
        bytes: How many bytes.
        superseded: How many more messages are in it that a graph has left; an import leaves them out.
    """

    conversations: int = 0
    messages: int = 0
    bytes: int = 0
    superseded: int = 0
