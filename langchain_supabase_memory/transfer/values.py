"""Events that a source yields, and receipts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langchain_supabase_memory.json_types import AnyMessage


@dataclass(frozen=True)
class ThreadStart:
    """Starts a conversation, to which the next events belong.

    Attributes:
        thread_id: Its id.
        place: Its location in the source, for errors: `line 3`, `conversation 7`. Never content.
        agent_id: Its agent, if the source names one; else the import's.
        title: The title that a person set.
        metadata: The application's metadata.
        created_at: When it was created.
        updated_at: When it was last changed.
        opt_outs: Its opt-outs, as the SQL function `memory_restore` accepts them.
        about: What else the source knows about it, for `owner`; it is not stored.
        stands_alone: Whether it is stored even without messages.
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
    """A message of the current conversation.

    Attributes:
        place: Its location in the source.
        message: The message. Without an id it gets one that is derived from its position in the conversation.
        created_at: The time of the message, with a time zone; `None` if unknown.
        metadata: The metadata to store with it.
        row: Instead of `message`: the row of an export of this package, as `memory_append` accepts it.
        size: A lower bound of the row's size in bytes.
    """

    place: str
    message: AnyMessage | None = field(default=None, repr=False)
    created_at: datetime | None = None
    metadata: Mapping[str, Any] | None = field(default=None, repr=False)
    row: Mapping[str, Any] | None = field(default=None, repr=False)
    size: int = 0


@dataclass(frozen=True)
class ThreadEdits:
    """What people have set on the current conversation, as `memory_restore` accepts it.

    Attributes:
        document: The document.
        place: Its location in the source.
    """

    document: Mapping[str, Any] = field(repr=False)
    place: str


@dataclass(frozen=True)
class ThreadOptOuts:
    """Topics that are opted out of memory in all conversations of the user.

    Attributes:
        opt_outs: The opt-outs, as `memory_restore` accepts them.
        place: Their location in the source.
    """

    opt_outs: list[Mapping[str, Any]] = field(repr=False)
    place: str


@dataclass(frozen=True)
class UserProfile:
    """Items of the user's profile, and what they allow to be derived. Their messages come before.

    Attributes:
        document: The document, as `memory_restore` accepts it.
        place: Its location in the source.
    """

    document: Mapping[str, Any] = field(repr=False)
    place: str


@dataclass(frozen=True)
class UserTopics:
    """What a person made of topics: names, what they hid and merged. Topics themselves are found again.

    Attributes:
        topics: The topics, as `memory_restore` accepts them.
        place: Their location in the source.
    """

    topics: list[Mapping[str, Any]] = field(repr=False)
    place: str


@dataclass(frozen=True)
class LossCount:
    """Something valid that cannot be stored.

    Attributes:
        kind: A description without content.
        place: Its location in the source.
        count: How many.
    """

    kind: str
    place: str
    count: int = 1


@dataclass(frozen=True)
class SourceProblem:
    """Something that cannot be read: it ends the import, unless `skip` is set.

    Attributes:
        why: What is wrong, without content.
        hint: What to do next.
        place: Its location in the source.
        breaks: Whether a conversation may have started here, so that everything up to the next one belongs to an
            unknown conversation.
    """

    why: str
    hint: str
    place: str
    breaks: bool = False


Event = ThreadStart | SourceMessage | ThreadEdits | ThreadOptOuts | UserProfile | UserTopics | LossCount | SourceProblem
"""What a source yields, in order."""

Source = Iterable[Event]
"""Conversations to import. It is read once, and only as far as what was read has been stored."""


@dataclass
class ImportReceipt:
    """What an import did, or would do.

    Attributes:
        conversations: How many conversations the source had.
        messages: How many messages it had.
        items: How many items of the user's profile it had.
        stored: How many messages are new.
        known: How many already existed, or were forgotten there: a repeated import changes nothing. Those that exist
            with other content are also in `lost`.
        expired: How many messages retention removed at once, or would.
        restored: How many titles, opt-outs, items and other settings of people were restored.
        refused: How many of these were not restored: because of an opt-out, or because a summary's messages are not
            there, or have another summary.
        lost: What could not be stored: what, how many, and the first location.
        dry_run: Whether nothing was stored.
    """

    conversations: int = 0
    messages: int = 0
    items: int = 0
    stored: int = 0
    known: int = 0
    expired: int = 0
    restored: int = 0
    refused: int = 0
    lost: dict[str, tuple[int, str]] = field(default_factory=dict)
    dry_run: bool = False

    def record_loss(self, kind: str, place: str, count: int = 1) -> None:
        """Count something that cannot be stored."""
        before, first = self.lost.get(kind, (0, place))
        self.lost[kind] = (before + count, first)


@dataclass
class ExportReceipt:
    """What an export wrote.

    Attributes:
        conversations: How many conversations.
        messages: How many messages.
        bytes: How many bytes.
        superseded: How many additional superseded messages it has, which a graph's fork left behind; an import leaves
            them out.
    """

    conversations: int = 0
    messages: int = 0
    bytes: int = 0
    superseded: int = 0
