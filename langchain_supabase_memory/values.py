"""Values passed in and returned: conversation keys, stored messages, results of operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import IntFlag
from html import escape
from typing import Any, Final, Literal, TypeAlias, cast, get_args, overload
from uuid import UUID

from langchain_supabase_memory import markup
from langchain_supabase_memory.checks import as_list
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.json_types import AnyMessage
from langchain_supabase_memory.markup import minute

Role = Literal["user", "assistant", "system", "tool"]
"""The author's role, one of four, whatever the message's class."""

DEFAULT_AGENT_ID = "default"
"""The agent of a conversation if none is named."""

LONGEST_ID = 512
"""The maximum length of an id in bytes of UTF-8: three ids fit into one index entry."""


@dataclass(frozen=True)
class ConversationKey:
    """Identifies one conversation.

    Attributes:
        thread_id: Any string of 1 to 512 bytes of UTF-8, or a UUID: a LangGraph thread, a session, a ticket.
        user_id: The owner; `None` means the subject of the caller's access token.
        agent_id: Which of several agents the user talks to.
        author_id: In a space: for whom a server writes; `None` elsewhere, and for the subject of a token.
        private: Whether a conversation that is begun by this key is private: nothing is derived from it, and it is
            deleted a day after its last message.

    Raises:
        InvalidInputError: An id is not a string, is empty, is too long, or has a control character.
    """

    thread_id: str
    user_id: str | None = None
    agent_id: str = DEFAULT_AGENT_ID
    author_id: str | None = None
    private: bool = False

    def __post_init__(self) -> None:
        for name in ("thread_id", "agent_id", "user_id", "author_id"):
            if name in ("thread_id", "agent_id") or getattr(self, name) is not None:
                object.__setattr__(self, name, as_id(name, getattr(self, name)))

    @property
    def is_in_space(self) -> bool:
        """Whether a space owns the conversation."""
        return self.user_id is not None and self.user_id.startswith(SPACE)


SpaceRole: TypeAlias = Literal["reader", "contributor", "manager"]
"""What a member of a space may do: read; append, too, and edit and forget their own messages; manage the others."""

SPACE_ROLES: Final[tuple[SpaceRole, ...]] = get_args(SpaceRole)

SPACE: Final = "space:"
"""How the ids of spaces begin, and no user's."""

RecallScope = Literal["conversation", "agent", "user"]
"""The scope of a search: one conversation, all of a user's with one agent, or all of the user's."""

RECALL_SCOPES: Final[tuple[RecallScope, ...]] = get_args(RecallScope)


@dataclass(frozen=True)
class Scope:
    """Limits a search to a user, to one of their agents, or to one thread.

    Attributes:
        user_id: The owner; `None` means the subject of the caller's access token.
        agent_id: Only this agent; `None` means all.
        thread_id: Only this thread; `None` means all.
    """

    user_id: str | None
    agent_id: str | None = None
    thread_id: str | None = None

    @classmethod
    def of(cls, key: ConversationKey) -> Scope:
        """Return the scope of one conversation."""
        return cls(key.user_id, key.agent_id, key.thread_id)


def log_fields(key: ConversationKey) -> dict[str, str | None]:
    """Return a conversation's ids as fields of a log record."""
    return {"memory_user_id": key.user_id, "memory_agent_id": key.agent_id, "memory_thread_id": key.thread_id}


def as_id(name: str, value: object) -> str:
    """Return an id as text; UUIDs are accepted. Arguments and errors as for `check_id`."""
    text = str(value) if isinstance(value, UUID) else value
    check_id(name, text)
    return cast("str", text)


def check_id(name: str, value: object) -> None:
    """Check that a value is a valid id.

    Args:
        name: The id's name, for the error message.
        value: The id.

    Raises:
        InvalidInputError: `value` is not a string of 1 to 512 bytes of UTF-8 without control characters.
    """
    if not isinstance(value, str):
        raise InvalidInputError(
            f"{name} must be a string, not {type(value).__name__}.", hint=f"Pass {name}=str(...), for example."
        )
    if UNUSABLE.search(value):
        raise InvalidInputError(
            f"{name} has a control character or half a surrogate pair.", hint=f"Remove it from {name}."
        )
    if not 0 < len(value.encode()) <= LONGEST_ID:
        raise InvalidInputError(
            f"{name} must have 1 to {LONGEST_ID} bytes of UTF-8, not {len(value.encode())}.",
            hint=f"Pass a shorter {name}." if value else f"Pass a {name}.",
        )


def as_space_id(value: object) -> str:
    """Return the id of a space as text.

    Args:
        value: The id.

    Raises:
        InvalidInputError: It is not the id of a space.
    """
    if not (isinstance(value, str) and value.startswith(SPACE)):
        raise InvalidInputError(
            "That is not the id of a space.", hint="Pass the space_id that memory.spaces.list() returns."
        )
    return as_id("space_id", value)


UNUSABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that ids must not contain: the same rule as the domain `memory.id` in `sql/tables`."""


def is_id(value: object) -> bool:
    """Return whether a value is a valid id; see `check_id`."""
    return isinstance(value, str) and not UNUSABLE.search(value) and 0 < len(value.encode()) <= LONGEST_ID


class Signal(IntFlag):
    """What a user's words tell about how a conversation goes; each member is one bit of what is stored."""

    CORRECTION = 1
    """They say that something was wrong or misunderstood."""
    ASKED_AGAIN = 2
    """They repeat a question of their own."""
    THANKS = 4
    """They thank."""
    COMPLAINT = 8
    """They complain about the answers or the service."""
    CONFUSION = 16
    """They do not understand."""
    GIVING_UP = 32
    """They no longer want it done."""
    ASKS_FOR_PERSON = 64
    """They ask for a human being."""
    TOOL_FAILED = 128
    """A tool failed right before they spoke."""

    @property
    def label(self) -> str:
        """Its name in lower case, as lists and the command line take it: `asked_again`."""
        return str(self.name).lower()


NO_SIGNALS: Final = Signal(0)
"""No signal."""

ALL_SIGNALS: Final = 255
"""The bits of all signals."""


def as_signals(signals: Iterable[Signal | str], name: str = "signals") -> int:
    """Return the bits of signals.

    Args:
        signals: Members of `Signal`, or their labels; one may stand alone.
        name: The argument's name, for the error message.

    Raises:
        InvalidInputError: One of them is not a signal.
    """
    names = {each.label: each for each in Signal}
    bits = 0
    hint = f"Pass some of {', '.join(names)}."
    for each in [signals] if isinstance(signals, (str, Signal)) else as_list(name, signals, "a list of signals", hint):
        found = names.get(each) if isinstance(each, str) else each
        if not isinstance(found, Signal) or not 0 < found <= ALL_SIGNALS:
            raise InvalidInputError(f"{name} has something that is no signal.", hint=hint)
        bits |= found
    if not bits:
        raise InvalidInputError(f"{name} has no signal.", hint=hint)
    return bits


@dataclass(frozen=True)
class FoundSignal:
    """A signal of a conversation.

    Attributes:
        signal: Which one.
        quote: The user's words that tell it. For `TOOL_FAILED`, what they said right after.
        sequence: The sequence of the message.
        message_id: Its id.
        said_at: When it was sent.
        speaker: The name on the message, if any.
    """

    signal: Signal
    quote: str = field(repr=False)
    sequence: int
    message_id: str
    said_at: datetime
    speaker: str | None = None


@dataclass(frozen=True)
class StoredMessage:
    """One message as stored in the database. Fields that were not requested are `None`.

    Attributes:
        sequence: Its number in the conversation, from 0, without gaps unless a message was forgotten.
        payload: What `message` returns; `None` if the column was not requested.
        message_id: The LangChain message's id.
        role: The author's role.
        text: Its plain text.
        characters: The number of characters of text and tool calls, which is what a budget in characters counts.
        tokens: The approximate token count.
        created_at: When it was stored, by the database's clock, unless the caller passed a time.
        updated_at: When it was last replaced by a message with the same id; `None` if never.
        metadata: The caller's metadata.
        images: Its images and files: `[{"kind", "url" or "inline_characters", "mime_type"}]`.
        unreadable: Why the message cannot be decoded, in a word; `None` if it can.
        author_id: In a space: who wrote it, or whose agent answered; `None` elsewhere.
        author_name: In a space: what they are called there; `None` elsewhere.
        parent: Where a branch of a graph begins: the number of the message that it follows, or -1 and down where it
            begins in place of message 0 and up; `None` of any other message.
    """

    sequence: int
    payload: AnyMessage | None = None
    message_id: str | None = None
    role: Role | None = None
    text: str | None = None
    characters: int | None = None
    tokens: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    metadata: Mapping[str, Any] | None = None
    images: list[dict[str, Any]] | None = None
    unreadable: str | None = None
    author_id: str | None = None
    author_name: str | None = None
    parent: int | None = None

    @property
    def message(self) -> AnyMessage:
        """The LangChain message, exactly as it was stored. One that cannot be read is empty; see `unreadable`.

        Raises:
            InvalidInputError: The column `payload` was not requested, as with `display=True`.
        """
        if self.payload is None:
            raise InvalidInputError(
                "This message was read without its payload.",
                hint='Use its text, or read with "payload" among the columns.',
            )
        return self.payload

    @property
    def speaker(self) -> str | None:
        """The name of who speaks: in a space the author's, elsewhere what the message says; `None` without one."""
        if self.role == "user" and (self.author_id is not None or self.author_name is not None):
            return self.author_name or self.author_id
        return None if self.payload is None else self.payload.name


@dataclass(frozen=True)
class FoundMessage:
    """A message that contains the search texts.

    Attributes:
        thread_id: The thread of its conversation.
        agent_id: The agent.
        message: The message, with `payload`, `message_id`, `role`, `text` and `created_at`.
        before: The messages before it, in order, as many as were requested.
        after: The messages after it, likewise.
    """

    thread_id: str
    agent_id: str
    message: StoredMessage = field(repr=False)
    before: list[StoredMessage] = field(default_factory=list, repr=False)
    after: list[StoredMessage] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class FoundPage(Sequence[FoundMessage]):
    """One page of search results; it can be used as a list.

    Attributes:
        messages: The messages, in the requested order.
        read: How many messages were scanned, plus ten for each conversation.
        after: Pass it as `after` to continue; `None` if everything was scanned.
    """

    messages: list[FoundMessage]
    read: int = 0
    after: str | None = None

    def _repr_html_(self) -> str:
        rows = (
            (
                each.thread_id,
                each.message.sequence,
                each.message.role,
                minute(each.message.created_at),
                each.message.text,
            )
            for each in self
        )
        note = f"{self.read:,} looked at" + ("; there is more, by after=" if self.after else "")
        return markup.table("Found", ("thread", "message", "role", "said", "text"), rows, note=note)

    @overload
    def __getitem__(self, index: int) -> FoundMessage: ...
    @overload
    def __getitem__(self, index: slice) -> list[FoundMessage]: ...
    def __getitem__(self, index: int | slice) -> FoundMessage | list[FoundMessage]:
        return self.messages[index]

    def __len__(self) -> int:
        return len(self.messages)


@dataclass(frozen=True)
class UnreadableMessage:
    """A stored message that cannot be decoded into a LangChain message: where it is and why, without its content.

    Attributes:
        user_id: The owner.
        agent_id: The agent.
        thread_id: The thread.
        sequence: Its number in the conversation.
        message_id: Its id.
        reason: Why, in a word.
    """

    user_id: str
    agent_id: str
    thread_id: str
    sequence: int
    message_id: str
    reason: str


@dataclass(frozen=True)
class AppendResult:
    """The result of an append.

    Attributes:
        conversation_id: The conversation's uuid, as a string; `None` if there was nothing to append.
        sequences: The number of each message passed, in the order passed; `None` for one that is not stored, because no
            person or model wrote it, or because it has expired or was forgotten.
        appended: How many messages were new.
        updated: The ids of existing messages whose content differed and was replaced in place.
    """

    conversation_id: str | None
    sequences: list[int | None] = field(default_factory=list)
    appended: int = 0
    updated: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ConversationInfo:
    """One conversation of a user, as listed.

    Attributes:
        id: Its uuid, as a string.
        user_id: Its owner.
        agent_id: The agent.
        thread_id: The thread.
        title: The title that a person set; else the summarizer's title; else the first words of the first question, up
            to 60 characters. `None` if there are no messages yet, or if the conversation is opted out.
        metadata: The application's metadata.
        message_count: How many messages it holds.
        last_message_at: The time of the newest question or final answer; `None` if there is none.
        last_message_role: The role of its author.
        last_message_text: Its first words, on one line of up to 200 characters; `None` if it has no text.
        created_at: When the conversation was created, by the database's clock.
        updated_at: When a message was last added, changed or removed.
        archived_at: Since when it is archived; `None` if it is not.
        opted_out_at: Since when it is opted out of memory; `None` if it is not.
        private: Whether it is private: never remembered, and deleted a day after its last message.
        signals: What users' words tell in it; `Signal.THANKS in info.signals` asks for one.
    """

    id: str
    user_id: str
    agent_id: str
    thread_id: str
    title: str | None = field(repr=False)
    metadata: Mapping[str, Any] = field(repr=False)
    message_count: int
    last_message_at: datetime | None
    last_message_role: Role | None
    last_message_text: str | None = field(repr=False)
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    opted_out_at: datetime | None
    private: bool = False
    signals: Signal = NO_SIGNALS


ConversationState = Literal["active", "archived"]
"""Whether a conversation is active, or was archived after long inactivity; its next message reactivates it."""


@dataclass(frozen=True)
class ConversationPage(Sequence[ConversationInfo]):
    """A page of a user's conversations, the most recently changed first; it can be used as a list.

    Attributes:
        conversations: The conversations.
        before: Pass it as `before` for the page of newer conversations; `None` if there is none.
        after: Pass it as `after` for the page of older conversations; `None` if there is none.
    """

    conversations: list[ConversationInfo]
    before: str | None = None
    after: str | None = None

    def _repr_html_(self) -> str:
        rows = (
            (
                each.title,
                each.thread_id,
                each.agent_id,
                f"{each.message_count:,}",
                minute(each.updated_at),
                each.last_message_text,
            )
            for each in self
        )
        note = "there are more, by after=" if self.after else None
        return markup.table(
            "Conversations", ("title", "thread", "agent", "messages", "changed", "last said"), rows, note=note
        )

    @overload
    def __getitem__(self, index: int) -> ConversationInfo: ...
    @overload
    def __getitem__(self, index: slice) -> list[ConversationInfo]: ...
    def __getitem__(self, index: int | slice) -> ConversationInfo | list[ConversationInfo]:
        return self.conversations[index]

    def __len__(self) -> int:
        return len(self.conversations)


@dataclass(frozen=True)
class Segment:
    """A stored summary of a range of messages and of the summary that it continues.

    Attributes:
        number: Its position in the conversation, from 1.
        id: Its uuid, as a string.
        from_sequence: The first message of its range.
        to_sequence: The last message of its range; together with earlier segments, it covers everything up to here.
        content: The summary of everything up to `to_sequence`.
        built_on: The number of the segment whose summary it continues; `None` for the first.
        message_ids: The messages in the model's prompt; `None` if they were not requested.
        level: 0 for a segment of the rolling summary; from 1 on, a level of the hierarchical summary.
        parts: At level 2 and above, the numbers of the summaries one level below that it combines.
        quality: The share of its source's names, numbers, dates and open questions that it retains, from 0 to 1.
        topics: The topics of a hierarchical summary.
        key_facts: The facts of a hierarchical summary, each with `text`, `quote` and `message_ids`.
        edited_by: The person who edited it, if any.
        edited_at: When it was edited.
        characters: The number of characters of `content`.
        tokens: Its approximate token count.
        model: The model that wrote it.
        clipped: Whether the model exceeded the length, so that the end was cut off.
        created_at: When it was stored, by the database's clock.
    """

    number: int
    id: str
    from_sequence: int
    to_sequence: int
    content: str = field(repr=False)
    built_on: int | None
    characters: int
    tokens: int
    model: str | None
    clipped: bool
    created_at: datetime
    message_ids: list[str] | None = field(default=None, repr=False)
    level: int = 0
    parts: list[int] | None = None
    quality: float | None = None
    topics: list[str] | None = field(default=None, repr=False)
    key_facts: list[dict[str, Any]] | None = field(default=None, repr=False)
    edited_by: str | None = None
    edited_at: datetime | None = None


@dataclass(frozen=True)
class SummaryResult:
    """The result of a summarization.

    Attributes:
        through_sequence: The last message that is covered now; -1 if none.
        segments: The numbers of the segments that were stored.
        model_calls: The number of model calls.
        failed: Why it stopped early, in a word: an exception's class, or `empty`, `refused`, `cut off`, `called a
            tool`; `None` if it did not.
        backing_off: Whether nothing was tried because of the wait after an earlier failure.
        conflict: Whether another summarizer was faster, or a message was edited or forgotten meanwhile.
        tokens: The approximate token count of each new summary.
        quality: The lowest quality among them, from 0 to 1 (see `quality.quality`); `None` if there is none.
        opted_out: Whether nothing was done because the conversation is opted out of memory.
    """

    through_sequence: int
    segments: list[int] = field(default_factory=list)
    model_calls: int = 0
    failed: str | None = None
    backing_off: bool = False
    conflict: bool = False
    tokens: list[int] = field(default_factory=list)
    quality: float | None = None
    opted_out: bool = False


@dataclass(frozen=True)
class BoardResult:
    """The result of a board revision.

    Attributes:
        through_sequence: The last message that the board covers; -1 if none.
        version: The board's version now.
        added: How many items are new.
        changed: How many items were superseded, done, answered and so on.
        refused: How many proposed items had no evidence.
        model_calls: The number of model calls.
        failed: Why it stopped early, in a word; `None` if it did not. The board is then unchanged.
        conflict: Whether another worker was faster, or a message was edited or forgotten meanwhile.
        quality: The quality of the newest summary, from 0 to 1.
        opted_out: Whether nothing was done because the conversation is opted out of memory.
    """

    through_sequence: int
    version: int = 0
    added: int = 0
    changed: int = 0
    refused: int = 0
    model_calls: int = 0
    failed: str | None = None
    conflict: bool = False
    quality: float | None = None
    opted_out: bool = False


State = Literal["verbatim", "segment", "omitted", "expired", "forgotten", "superseded"]
"""Where a message is: verbatim in the next pack, in a summary, omitted (and why), gone, or on no branch."""


@dataclass(frozen=True)
class CoveredRange:
    """Adjacent messages that share a state.

    Attributes:
        from_sequence: The first message.
        to_sequence: The last message.
        state: Where they are.
        segment: The number of the segment whose range they are in, if any; a message that is verbatim, because the
            budget still has room for it, may be covered already.
        reason: Why they are omitted, or another note.
    """

    from_sequence: int
    to_sequence: int
    state: State
    segment: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class LevelFault:
    """An inconsistency in a level of the hierarchical summary.

    Attributes:
        level: The level, from 1.
        number: The summary at which it was found.
        from_sequence: The first message affected.
        to_sequence: The last message affected.
        kind: `gap`: no summary of the level covers these. `overlap`: two summaries of the level do. `parts`: its range
            differs from that of its parts, or a part is gone.
    """

    level: int
    number: int
    from_sequence: int
    to_sequence: int
    kind: Literal["gap", "overlap", "parts"]


@dataclass(frozen=True)
class Coverage:
    """Where every message of a conversation is.

    Attributes:
        ranges: In order, without gaps or overlaps: each sequence is in exactly one.
        gaps: Ranges that should be covered and are not; should be empty.
        overlaps: Ranges that two segments cover; should be empty.
        levels: Inconsistencies in the levels of the hierarchical summary; should be empty.
    """

    ranges: list[CoveredRange]
    gaps: list[tuple[int, int]] = field(default_factory=list)
    overlaps: list[tuple[int, int]] = field(default_factory=list)
    levels: list[LevelFault] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing: no gap, no overlap, no level fault, and nothing omitted."""
        return not (self.gaps or self.overlaps or self.levels or any(each.state == "omitted" for each in self.ranges))

    def range_of(self, sequence: int) -> CoveredRange:
        """Return the range that contains a message.

        Raises:
            KeyError: The conversation has no such sequence.
        """
        for each in self.ranges:
            if each.from_sequence <= sequence <= each.to_sequence:
                return each
        raise KeyError(sequence)

    def _repr_html_(self) -> str:
        colors = {"verbatim": "#3ecf8e", "segment": "#9bd7bd", "omitted": "#e5484d"}
        strip = "".join(
            f'<div title="{escape(line)}" style="flex:{each.to_sequence - each.from_sequence + 1};'
            f'background:{colors.get(each.state, "#8888")};border-inline-end:1px solid #8884"></div>'
            for each, line in zip(self.ranges, str(self).splitlines(), strict=True)
        )
        return f'<div style="display:flex;height:1.2em;max-width:50em">{strip}</div><pre>{escape(str(self))}</pre>'

    def __str__(self) -> str:
        """Return a line for each range."""
        return "\n".join(
            f"{each.from_sequence}-{each.to_sequence}: {each.state}"
            + (f" {each.segment}" if each.segment is not None else "")
            + (f" ({each.reason})" if each.reason else "")
            for each in self.ranges
        )


@dataclass(frozen=True)
class Turn:
    """A user's message and everything up to its final answer.

    Attributes:
        number: Its position among the complete turns that are stored, from 1. When the oldest turn is removed, the
            others move up, while `from_sequence` stays the same.
        user_query: The text of the user's message.
        ai_response: The final answer.
        created_at: The time of the user's message, by the database's clock.
        from_sequence: The number of the user's message in the conversation.
        to_sequence: The number of the final answer.
        user_images: The images and files of the user's message: `[{"kind", "url" or "inline_characters",
            "mime_type"}]`.
        ai_images: The images and files of the final answer.
        author_name: In a space: what its members call who asked; `None` elsewhere.
    """

    number: int
    user_query: str
    ai_response: str
    created_at: datetime
    from_sequence: int
    to_sequence: int
    user_images: list[dict[str, Any]] = field(default_factory=list)
    ai_images: list[dict[str, Any]] = field(default_factory=list)
    author_name: str | None = None


@dataclass(frozen=True)
class Repeats:
    """How often the words of a chunk were said.

    Attributes:
        count: The number of times, in the scope of the recall; in a large scope, among the candidates.
        first: The first time.
        last: The last time.
        sequence: The first message that said them; `None` in a scope of several conversations.
    """

    count: int
    first: datetime
    last: datetime
    sequence: int | None = None


@dataclass(frozen=True)
class NewerFact:
    """What holds now in place of something that a chunk says, as the board knows.

    Attributes:
        old: The board item that no longer holds.
        superseded_at: When that was said.
        text: The board item that holds now.
        sequence: Its newest message; `None` if it has none.
    """

    old: str = field(repr=False)
    superseded_at: datetime
    text: str = field(repr=False)
    sequence: int | None = None


@dataclass(frozen=True)
class Chunk:
    """A message, a part of a long one, or a tool call with its results: what recall ranks and returns.

    Attributes:
        id: Its uuid, as a string: the same for the same text at the same position.
        thread_id: The conversation's thread.
        agent_id: The conversation's agent.
        place: The index of its unit in the conversation; neighboring units have consecutive indexes.
        part: Which part of that unit, from 1.
        from_sequence: The first message that it consists of.
        to_sequence: The last message that it consists of.
        message_ids: Their ids.
        episode: The first sequence of its episode.
        type: `dialogue`, `action`, `fact`, `question` or `answer`.
        role: The author's role.
        speaker: The author's name, if the message has one.
        said_at: The time of the message.
        content: The text, verbatim.
        importance: How important it probably is, from 0 to 1.
        expires_at: Until when recall finds it; `None` for as long as its messages are stored.
        score: How well it matches the query, by the first stage; comparable only within one result.
        similarity: The cosine similarity of its vector and the query's, -1 to 1; `None` without vectors.
        words: Its keyword score; 0 if no keyword matches, `None` if it was not searched for.
        score_parts: What each part adds to the score: `words`, `meaning`, `around`, `speaker`, `date`, `kind`,
            `question`, `importance`, `recency`, `beside`, `reply` (see `RecallWeights`); parts that add nothing are
            left out. `rerank` is not part of the sum: it is the reranker's score, or one over its rank if the
            reranker gives none.
        before: The text right before it, if it was requested.
        after: The text right after it, if it was requested.
        repeats: How often its words were said; `None` if once, or if nothing was searched for.
        newer: What a board knows to have superseded what it says.
        signals: What a user's words tell in it; only in `chunks.list()`.
        tone: The tone of a user's words, from -1 to 1; `None` if it was not rated, and outside of `chunks.list()`.
    """

    id: str
    thread_id: str
    agent_id: str
    place: int
    part: int
    from_sequence: int
    to_sequence: int
    message_ids: list[str] = field(repr=False)
    episode: int
    type: Literal["dialogue", "action", "fact", "question", "answer"]
    role: Role
    speaker: str | None
    said_at: datetime
    content: str = field(repr=False)
    importance: float
    expires_at: datetime | None = None
    score: float | None = None
    similarity: float | None = None
    words: float | None = None
    score_parts: Mapping[str, float] = field(default_factory=dict)
    before: list[Chunk] = field(default_factory=list, repr=False)
    after: list[Chunk] = field(default_factory=list, repr=False)
    repeats: Repeats | None = None
    newer: list[NewerFact] = field(default_factory=list)
    signals: Signal = NO_SIGNALS
    tone: float | None = None


@dataclass(frozen=True)
class Recall:
    """The result of a recall.

    Attributes:
        chunks: The chunks, best first.
        searched: How many chunks were candidates.
        approximate: Whether an index chose the candidates, so that a good one may have been missed.
        by_meaning: Whether vectors were compared in addition to keywords.
        failed: Why vectors were not compared although there is an embedder, in a word; `None` if they were.
        rerank_failed: Why the reranker did not order the chunks; `None` if it did, or if there is none.
        queries: The queries used: the original ones and their expansions.
        fits: Whether something found fits: it has enough of a query's words or of its meaning, or was said by whom or
            when a query names. If not, a prompt shows none of it.
    """

    chunks: list[Chunk]
    searched: int = 0
    approximate: bool = False
    by_meaning: bool = False
    failed: str | None = None
    rerank_failed: str | None = None
    queries: tuple[str, ...] = field(default=(), repr=False)
    fits: bool = True

    def _repr_html_(self) -> str:
        rows = (
            (
                None if each.score is None else f"{each.score:.2f}",
                each.thread_id,
                each.from_sequence,
                minute(each.said_at),
                each.speaker or each.role,
                each.content,
            )
            for each in self.chunks
        )
        how = "by meaning and by words" if self.by_meaning else "by words"
        note = f"{len(self.chunks):,} of {self.searched:,} chunks, {how}"
        return markup.table("Recalled", ("score", "thread", "message", "said", "speaker", "text"), rows, note=note)


@dataclass(frozen=True)
class IndexResult:
    """The result of indexing.

    Attributes:
        through_sequence: The last message that is indexed now; -1 if none.
        chunks: How many chunks were stored.
        failed: Why vectors are missing, or why it stopped early, in a word; `None` if it did not.
        backing_off: Whether vectors are missing because of the wait after an earlier failure of the embedder.
        conflict: Whether another indexer was faster, or a message was edited or forgotten meanwhile.
        summaries: How many summaries were embedded: the newest, if it had no vector from the current embedder.
        opted_out: Whether nothing was done because the conversation is opted out of memory.
        embedded: How many chunks got a missing vector.
    """

    through_sequence: int
    chunks: int = 0
    failed: str | None = None
    backing_off: bool = False
    conflict: bool = False
    summaries: int = 0
    opted_out: bool = False
    embedded: int = 0


@dataclass(frozen=True)
class RecalledSummary:
    """A conversation that matches a query: its newest summary, which covers everything up to `to_sequence`.

    Attributes:
        thread_id: The conversation's thread.
        agent_id: The conversation's agent.
        number: The number of the segment.
        from_sequence: The first message that the segment added to the summary before it.
        to_sequence: The last message that is covered.
        content: The summary.
        created_at: When it was stored, by the database's clock.
        score: How well it matches the query; comparable only within one result.
        similarity: The cosine similarity of its vector and the query's, -1 to 1; `None` if keywords found it.
        score_parts: What each part adds to the score: `words` and `meaning`, each with half the weight; parts that add
            nothing are left out.
    """

    thread_id: str
    agent_id: str
    number: int
    from_sequence: int
    to_sequence: int
    content: str = field(repr=False)
    created_at: datetime
    score: float
    similarity: float | None = None
    score_parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Receipt:
    """What was removed, or would be.

    Attributes:
        conversations: How many conversations.
        messages: How many messages.
        segments: How many summaries.
        dry_run: Whether nothing was actually removed.
        chunks: How many chunks.
        items: How many store items; only deleting a whole user or space removes them.
        members: How many members a space had.
        contributions: How many quotes went from the boards of spaces.
        authored: How many messages a deleted user wrote in spaces.
        memberships: In how many spaces a deleted user was.
        spaces: How many spaces went with a deleted user, because nobody was left to manage them.
        profile: How many items of the user's profile went, because nothing else says so.
    """

    conversations: int = 0
    messages: int = 0
    segments: int = 0
    dry_run: bool = False
    chunks: int = 0
    items: int = 0
    members: int = 0
    contributions: int = 0
    authored: int = 0
    memberships: int = 0
    spaces: int = 0
    profile: int = 0

    def __repr__(self) -> str:
        """The counts; of those about spaces and profiles, which most users do not have, those above zero."""
        counts = {each.name: getattr(self, each.name) for each in fields(self)}
        shown = (f"{name}={count}" for name, count in counts.items() if count or name not in _OFTEN_NONE)
        return f"Receipt({', '.join(shown)})"


_OFTEN_NONE: Final = frozenset({"members", "contributions", "authored", "memberships", "spaces", "profile"})

Part: TypeAlias = Literal["database", "embedder", "summarizer", "reranker", "expander", "tone", "long term"]
"""The parts of a memory, each of which may fail independently."""


@dataclass(frozen=True)
class Cause:
    """Why a part of the memory is failing.

    Attributes:
        part: `database`, `embedder`, `summarizer`, `reranker`, `expander` (the query expander), `tone` (what rates
            the tone), or `long term` (the memory that profiles are promoted to).
        error: The class of its newest error.
        reason: What went wrong, without content.
        code: The server's or the provider's code, if there is one.
        times: How many failures in a row.
        since: When it started failing.
        last: When it last failed.
    """

    part: Part
    error: str
    reason: str
    code: str | None
    times: int
    since: datetime
    last: datetime


@dataclass(frozen=True)
class Health:
    """The health of a memory.

    Attributes:
        state: `closed`: calls pass; `open`: the database is unavailable, and calls are refused for a while;
            `half-open`: one call is being tried.
        failures: Failures in a row.
        retry_in_seconds: When the next call will be tried, in seconds from now; 0 unless the circuit is open.
        last_code: The server's code of the newest failure, if a server answered.
        pending: How many messages wait to be stored.
        causes: What is failing now, and why; a part that works again is removed.
        background: How many conversations are summarized or indexed behind an answer, or wait for it, in this process.
    """

    state: Literal["closed", "open", "half-open"]
    failures: int
    retry_in_seconds: float
    last_code: str | None
    pending: int
    causes: tuple[Cause, ...] = ()
    background: int = 0


@dataclass(frozen=True)
class Reference:
    """A turn that a user's words refer to.

    Attributes:
        turn: The turn.
        span: The position of the words in the text: the index of their first character, and one past their last.
        rule: The name of the rule that matched.
    """

    turn: Turn
    span: tuple[int, int]
    rule: str
