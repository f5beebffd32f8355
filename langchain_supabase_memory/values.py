"""The values that go in and come out: what a conversation is called, what is stored, what was done."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import Any, Final, Literal, TypeAlias, cast, get_args, overload
from uuid import UUID

from langchain_supabase_memory import markup
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.json_types import AnyMessage
from langchain_supabase_memory.markup import minute

Role = Literal["user", "assistant", "system", "tool"]
"""Who speaks, in four words, whatever the message's class."""

DEFAULT_AGENT_ID = "default"
"""The agent of a conversation where none is named."""

LONGEST_ID = 512
"""The most bytes of an id, in UTF-8: three of them are an entry of an index."""


@dataclass(frozen=True)
class ConversationKey:
    """What names one conversation.

    Attributes:
        thread_id: Any string of 1 to 512 bytes of UTF-8, or a UUID: a LangGraph thread, a session, a ticket.
        user_id: The owner; `None` means the subject of the caller's access token.
        agent_id: Which of several agents the user talks to.

    Raises:
        InvalidInputError: An id is not a string, is empty, too long, or has a control character.
    """

    thread_id: str
    user_id: str | None = None
    agent_id: str = DEFAULT_AGENT_ID

    def __post_init__(self) -> None:
        for name in ("thread_id", "agent_id", "user_id"):
            if name != "user_id" or self.user_id is not None:
                object.__setattr__(self, name, as_id(name, getattr(self, name)))


RecallScope = Literal["conversation", "agent", "user"]
"""How far a search goes: one conversation, all of a user's with one agent, or all of the user's."""

RECALL_SCOPES: Final[tuple[RecallScope, ...]] = get_args(RecallScope)


@dataclass(frozen=True)
class Scope:
    """Where is looked: everything of a user, or of one of their agents, or of one thread.

    Attributes:
        user_id: The owner; `None` means the subject of the caller's access token.
        agent_id: Only with this agent; `None` means all.
        thread_id: Only in this thread; `None` means all.
    """

    user_id: str | None
    agent_id: str | None = None
    thread_id: str | None = None

    @classmethod
    def of(cls, key: ConversationKey) -> Scope:
        """One conversation."""
        return cls(key.user_id, key.agent_id, key.thread_id)


def log_fields(key: ConversationKey) -> dict[str, str | None]:
    """What a log record about a conversation says of it: its ids."""
    return {"memory_user_id": key.user_id, "memory_agent_id": key.agent_id, "memory_thread_id": key.thread_id}


def as_id(name: str, value: object) -> str:
    """An id as text: a UUID is one. Arguments and errors as for `check_id`."""
    text = str(value) if isinstance(value, UUID) else value
    check_id(name, text)
    return cast("str", text)


def check_id(name: str, value: object) -> None:
    """Refuse what cannot name anything.

    Args:
        name: What the id is called, for the error's text.
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


UNUSABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""What no id has: the same rule as the domain `memory.id` in `sql/tables`."""


def is_id(value: object) -> bool:
    """Whether a value can name something; see `check_id`."""
    return isinstance(value, str) and not UNUSABLE.search(value) and 0 < len(value.encode()) <= LONGEST_ID


@dataclass(frozen=True)
class StoredMessage:
    """One message as the database holds it. Fields that were not asked for are `None`.

    Attributes:
        sequence: Its number in the conversation, from 0, without gaps unless a message was forgotten.
        message: The LangChain message, exactly as it was stored; `None` if the payload was not asked for.
        message_id: The LangChain message's id.
        role: Who speaks.
        text: Its plain text.
        characters: Characters of text and tool calls, which is what a budget in characters counts.
        tokens: The approximate token count.
        created_at: When it was stored, by the database's clock, unless the caller gave a time.
        updated_at: When it was last replaced by a message of the same id; `None` if never.
        metadata: What the caller stored beside it.
        images: Its images and files: `[{"kind", "url" or "inline_characters", "mime_type"}]`.
        unreadable: Why no message can be made of it, in a word; `None` if one can.
    """

    sequence: int
    message: AnyMessage | None = None
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


@dataclass(frozen=True)
class FoundMessage:
    """A message that holds the texts which were looked for.

    Attributes:
        thread_id: The thread of its conversation.
        agent_id: The agent.
        message: It, with `message`, `message_id`, `role`, `text` and `created_at`.
        before: The messages before it, in order, as many as were asked for.
        after: Those after it.
    """

    thread_id: str
    agent_id: str
    message: StoredMessage = field(repr=False)
    before: list[StoredMessage] = field(default_factory=list, repr=False)
    after: list[StoredMessage] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class FoundPage(Sequence[FoundMessage]):
    """What one call has found; it can be used as a list.

    Attributes:
        messages: The messages, in the order that was asked for.
        read: How much was looked at: messages, and ten for each conversation.
        after: Pass it as `after` to go on from there; `None` if everything was looked at.
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
    """A stored message of which no LangChain message can be made: where it is, and why, without its content.

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
    """What an append did.

    Attributes:
        conversation_id: The conversation's uuid, as a string; `None` if there was nothing to append.
        sequences: The number of each message passed, in the order passed; `None` for one that is not stored, because
            nobody said it, or because it has expired or was forgotten.
        appended: How many were new.
        updated: The ids of those that were there with other content, and were replaced in place.
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
        title: What a person called it; else the writer's title; else the first words of the first question, in up to
            60 characters. `None` if nothing was said yet, or what was said is not to be remembered.
        metadata: What the application keeps beside it.
        message_count: How many messages it holds.
        last_message_at: When the newest question or final answer was said; `None` if there is none.
        last_message_role: Who said it.
        last_message_text: Its first words, in one line of up to 200 characters; `None` if it has none.
        created_at: When it was begun, by the database's clock.
        updated_at: When a message last came, changed or went.
        archived_at: Since when it is archived; `None` if it is not.
        opted_out_at: Since when it is not remembered; `None` if it is.
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


ConversationState = Literal["active", "archived"]
"""Whether a conversation goes on, or was archived as nothing was said for long; the next message brings it back."""


@dataclass(frozen=True)
class ConversationPage(Sequence[ConversationInfo]):
    """A page of a user's conversations, the most recently changed first; it can be used as a list of them.

    Attributes:
        conversations: The conversations.
        before: Pass it as `before` for the page before this one, of newer ones; `None` if there is none.
        after: Pass it as `after` for the page after this one, of older ones; `None` if there is none.
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
    """A stored summary: of a range of messages, and of the summary it was built on.

    Attributes:
        number: Its place in the conversation, from 1.
        id: Its uuid, as a string.
        from_sequence: The first message of its range.
        to_sequence: The last message of its range; with those before it, all up to here is covered.
        content: The summary of everything up to `to_sequence`.
        built_on: The number of the segment whose summary it goes on from; `None` for the first.
        message_ids: The messages that the model was shown for it; `None` if they were not asked for.
        level: 0 for a segment of the rolling summary; from 1 on, a level of the complete one.
        parts: At level 2 and above, the numbers of the summaries one level below that it was made from.
        quality: How much of the names, numbers, dates and open questions of its source it holds, from 0 to 1.
        topics: Of a complete summary, the topics.
        key_facts: Of a complete summary, the facts, each with `text`, `quote` and `message_ids`.
        edited_by: Who changed it, if a person did.
        edited_at: When.
        characters: Characters of `content`.
        tokens: Its approximate tokens.
        model: What wrote it.
        clipped: Whether the model would not keep to the length, so that the end was cut off.
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
    """What a summarization did.

    Attributes:
        through_sequence: The last message that is covered now; -1 if none.
        segments: The numbers of the segments that were stored.
        model_calls: How often the model was asked.
        failed: Why it stopped before its end, in a word: an exception's class, or `empty`, `refused`, `cut off`,
            `called a tool`; `None` if it did not.
        backing_off: Whether nothing was tried because an earlier failure asks for patience.
        conflict: Whether another summarizer was faster, or a message was edited or forgotten meanwhile.
        tokens: The approximate tokens of each summary that was written.
        quality: The poorest of them, from 0 to 1 (see `quality.quality`); `None` if none was.
        opted_out: Whether nothing was done because the conversation is not to be remembered.
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
    """What the revision of a board did.

    Attributes:
        through_sequence: The last message that the board has taken in; -1 if none.
        version: The board's version now.
        added: How many items are new.
        changed: How many were superseded, done, answered and so on.
        refused: How many items of the answers had no evidence.
        model_calls: How often the model was asked.
        failed: Why it stopped before its end, in a word; `None` if it did not. The board is as it was.
        conflict: Whether another worker was faster, or a message was edited or forgotten meanwhile.
        quality: Of the newest summary, from 0 to 1.
        opted_out: Whether nothing was done because the conversation is not to be remembered.
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
"""Where a message is: in the next pack as it was said, in a summary, in neither (and why), gone, or on no branch."""


@dataclass(frozen=True)
class CoveredRange:
    """Messages next to one another that share a state.

    Attributes:
        from_sequence: The first.
        to_sequence: The last.
        state: Where they are.
        segment: The number of the segment whose range they are in, if they are; a message shown verbatim, because the
            budget still has room for it, may be covered already.
        reason: Why they are omitted, or what else there is to know.
    """

    from_sequence: int
    to_sequence: int
    state: State
    segment: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class LevelFault:
    """What is wrong with a level of the complete summary.

    Attributes:
        level: Which level, from 1.
        number: The summary at which it shows.
        from_sequence: The first message that it is about.
        to_sequence: The last.
        kind: `gap`: nothing on the level covers these. `overlap`: two of the level do. `parts`: it has not exactly the
            range of the summaries that it was made from, or one of those is gone.
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
        ranges: In order, without gaps or overlaps between them: each sequence is in exactly one.
        gaps: Ranges that ought to be covered and are not: there should be none.
        overlaps: Ranges that two segments claim: there should be none.
        levels: What is wrong with the levels of the complete summary: there should be nothing.
    """

    ranges: list[CoveredRange]
    gaps: list[tuple[int, int]] = field(default_factory=list)
    overlaps: list[tuple[int, int]] = field(default_factory=list)
    levels: list[LevelFault] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether nothing fell between: no gap, no overlap, on no level, and nothing omitted."""
        return not (self.gaps or self.overlaps or self.levels or any(each.state == "omitted" for each in self.ranges))

    def range_of(self, sequence: int) -> CoveredRange:
        """The range that a message is in.

        Raises:
            KeyError: There is no such sequence in the conversation.
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
        """A line for each range."""
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
        number: Its place among the complete turns that are kept, from 1. When the oldest turn is removed, the others
            move up: `from_sequence` stays what it is.
        user_query: What the user said.
        ai_response: The final answer.
        created_at: When the user said it, by the database's clock.
        from_sequence: The number of the user's message in the conversation.
        to_sequence: The number of the final answer.
        user_images: The images and files of the user's message: `[{"kind", "url" or "inline_characters",
            "mime_type"}]`.
        ai_images: Those of the final answer.
    """

    number: int
    user_query: str
    ai_response: str
    created_at: datetime
    from_sequence: int
    to_sequence: int
    user_images: list[dict[str, Any]] = field(default_factory=list)
    ai_images: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Chunk:
    """A message, a part of a long one, or a tool's call with its results: what recall ranks and returns.

    Attributes:
        id: Its uuid, as a string: the same for the same words at the same place.
        thread_id: The conversation's thread.
        agent_id: The conversation's agent.
        place: Which unit of the conversation it is of; neighbors are next to one another.
        part: Which part of that unit, from 1.
        from_sequence: The first message it is made of.
        to_sequence: The last.
        message_ids: Their ids.
        episode: The first sequence of the episode of talk that it belongs to.
        type: `dialogue`, `action`, `fact`, `question` or `answer`.
        role: Who speaks.
        speaker: Their name, if the message has one.
        said_at: When it was said.
        content: The words, as they were said.
        importance: How much it is likely to matter, from 0 to 1.
        expires_at: Until when it is found; `None` for as long as its messages are kept.
        score: How well it fits the question, by the first stage; comparable within one result only.
        similarity: The cosine of its vector and the question's, -1 to 1; `None` without vectors.
        words: How well its words fit; 0 if none does, `None` if it was not searched for.
        score_parts: What each part adds to the score: `words`, `meaning`, `around`, `speaker`, `date`, `kind`,
            `question`, `importance`, `recency`, `beside` (see `RecallWeights`); those that add nothing are left out.
            `rerank` stands apart from the sum: what the reranker says of it, or one over its place where that says
            nothing.
        before: What was said right before it, if that was asked for.
        after: What was said right after it.
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


@dataclass(frozen=True)
class Recall:
    """What was found.

    Attributes:
        chunks: The best first.
        searched: How many chunks there were to choose from.
        approximate: Whether an index chose the candidates, so that a good one may have been missed.
        by_meaning: Whether vectors were compared, and not words alone.
        failed: Why vectors were not compared though there is an embedder, in a word; `None` if they were.
        rerank_failed: Why the reranker did not order it; `None` if it did, or if there is none.
        queries: What was looked for: the questions, and those that were made of them.
    """

    chunks: list[Chunk]
    searched: int = 0
    approximate: bool = False
    by_meaning: bool = False
    failed: str | None = None
    rerank_failed: str | None = None
    queries: tuple[str, ...] = field(default=(), repr=False)

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
    """What indexing did.

    Attributes:
        through_sequence: The last message that is indexed now; -1 if none.
        chunks: How many chunks were stored.
        failed: Why vectors are lacking, or why it stopped before its end, in a word; `None` if it did not.
        backing_off: Whether vectors are lacking because an earlier failure of the embedder asks for patience.
        conflict: Whether another indexer was faster, or a message was edited or forgotten meanwhile.
        summaries: How many summaries were embedded: the newest, if it had no vector of the present embedder.
        opted_out: Whether nothing was done because the conversation is not to be remembered.
        embedded: How many chunks got the vector that they lacked.
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
    """A conversation that fits a question: its newest summary, which covers all up to `to_sequence`.

    Attributes:
        thread_id: The conversation's thread.
        agent_id: The conversation's agent.
        number: The number of the segment.
        from_sequence: The first message that the segment added to the summary before it.
        to_sequence: The last message that is covered.
        content: The summary.
        created_at: When it was stored, by the database's clock.
        score: How well it fits the question; comparable within one result only.
        similarity: The cosine of its vector and the question's, -1 to 1; `None` if it was found by its words.
        score_parts: What each part adds to the score: `words` and `meaning`, which count half each; what adds nothing
            is left out.
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
        dry_run: Whether nothing was really removed.
        chunks: How many chunks.
        items: How many items of the store, which only a user's end takes with it.
    """

    conversations: int = 0
    messages: int = 0
    segments: int = 0
    dry_run: bool = False
    chunks: int = 0
    items: int = 0


Part: TypeAlias = Literal["database", "embedder", "writer", "reranker", "expander", "long term"]
"""What a memory consists of, each of which may fail by itself."""


@dataclass(frozen=True)
class Cause:
    """Why a part of the memory does not work now.

    Attributes:
        part: `database`, `embedder`, `writer` (what writes summaries and boards), `reranker`, `expander` (what makes
            further questions), or `long term` (the memory that facts are moved to).
        error: The class of its newest error.
        reason: What went wrong, without content.
        code: The server's or the provider's code, if there is one.
        times: How often in a row.
        since: When it began.
        last: When it was met last.
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
    """How a memory stands.

    Attributes:
        state: `closed`: calls pass; `open`: the database is away, and they are refused for a while; `half-open`: one is
            being tried.
        failures: Failures in a row.
        retry_in_seconds: When the next call will be tried, in seconds from now; 0 unless it is open.
        last_code: The server's code of the newest failure, if a server answered.
        pending: How many messages wait to be stored.
        causes: What does not work now, and why; a part that works again leaves it.
    """

    state: Literal["closed", "open", "half-open"]
    failures: int
    retry_in_seconds: float
    last_code: str | None
    pending: int
    causes: tuple[Cause, ...] = ()


@dataclass(frozen=True)
class Reference:
    """A turn that a user's words point at.

    Attributes:
        turn: The turn.
        span: Where the words stand in the text: their first character, and the one after their last.
        rule: The rule that matched, by its name.
    """

    turn: Turn
    span: tuple[int, int]
    rule: str
