"""Group messages that belong together into the texts that are ranked and returned."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_supabase_memory.language import query_hints
from langchain_supabase_memory.language.chunks import kinds
from langchain_supabase_memory.language.chunks.parts import parts
from langchain_supabase_memory.language.chunks.speech import Speech
from langchain_supabase_memory.language.messages import codec, content, fence
from langchain_supabase_memory.language.messages.encoded_data import shorten_middle
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.language.tokens import count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from langchain_supabase_memory.language.chunks.kinds import Kind
    from langchain_supabase_memory.values import Role

_FENCED: Final = re.compile(rf"\s*(?:[^\n]*\n){{0,4}}[ \t]*(?:\d+[ \t]+)?<{fence.TAG}>")
"""The fence at the beginning of a tool's result; what reads files puts a few lines and a line's number before it."""


@dataclass(frozen=True)
class StoredText:
    """A stored message with the data that indexing needs."""

    sequence: int
    message_id: str
    message: BaseMessage = field(repr=False)
    said_at: datetime
    hidden: bool = False  # it mentions a topic that is not to be remembered
    edited_at: str | None = None  # in the database's format

    @classmethod
    def from_row(cls, row: Mapping[str, Any], *, is_in_space: bool = False) -> StoredText:
        """Create one from a row of `memory_pending_chunks`.

        Args:
            row: The row.
            is_in_space: Whether a space owns it: a member speaks as who the database says, whatever it says itself.
        """
        message = codec.from_payload(row["payload"])
        if is_in_space and content.role(message) == "user":
            message = message.model_copy(update={"name": row["author_id"]})
        time = datetime.fromisoformat(row["created_at"])
        return cls(
            row["sequence"], row["message_id"], message, time, bool(row.get("hidden")), edited_at=row.get("updated_at")
        )


@dataclass(frozen=True)
class UnitPart:
    """A text of a unit, short enough for an embedder.

    Attributes:
        text: The text.
        kind: Its kind.
        importance: How much it is likely to matter, from 0 to 1.
        marks: Its features.
        tokens: Its approximate number of tokens.
        retrieved_text: The days that it mentions, as offsets from the day of the message, in UTC.
    """

    text: str = field(repr=False)
    kind: Kind
    importance: float
    marks: query_hints.Marks
    tokens: int
    retrieved_text: tuple[query_hints.Days, ...] = ()


@dataclass(frozen=True)
class Unit:
    """A message, or a tool call with its results.

    Attributes:
        messages: Its messages, in order.
        role: The role of the speaker.
        speaker: The speaker's name, if the message has one; in a space a member's id.
        parts: Its texts, in order.
        is_asked: Whether it is a user message, which begins a turn.
        completes: Whether it completes something.
        speech: What a user's words tell; `None` for other messages, and where that is not wanted.
    """

    messages: tuple[StoredText, ...]
    role: Role
    speaker: str | None
    parts: tuple[UnitPart, ...]
    is_asked: bool
    completes: bool
    speech: Speech | None = None

    @property
    def said_at(self) -> datetime:
        """When its first message was sent."""
        return self.messages[0].said_at

    @property
    def hidden(self) -> bool:
        """Whether it mentions a topic that is not to be remembered."""
        return any(each.hidden for each in self.messages)

    @property
    def tokens(self) -> int:
        """The approximate number of tokens in its texts."""
        return sum(part.tokens for part in self.parts)


def units(
    messages: Sequence[StoredText],
    *,
    max_tokens: int,
    more: bool = False,
    after_question: bool = False,
    importance: Callable[[str, Kind], float] | None = None,
    listens: bool = False,
) -> tuple[list[Unit], int]:
    """Group messages into units.

    System messages are instructions, not talk. Text that the memory itself put into a prompt or returned as a tool
    result is already stored. Neither becomes a unit.

    Args:
        messages: Messages of one conversation, in order.
        max_tokens: The maximum number of tokens in one text.
        more: Whether more messages follow.
        after_question: Whether the message before the first one asked something.
        importance: Rates how much a text of a kind matters, from 0 to 1; `kinds.importance` by default.
        listens: Whether to find what the user's words tell.

    Returns:
        The units, and the number of messages they account for: calls at the end that may still get results wait.
    """
    made: list[Unit] = []
    place = 0
    asked = after_question
    while place < len(messages):
        group = [messages[place]]
        calls = len(content.tool_calls(group[0].message))
        while calls and place + len(group) < len(messages) and _is_result(messages[place + len(group)]):
            group.append(messages[place + len(group)])
        if calls >= len(group) and place + len(group) == len(messages) and not (more and place == 0):
            break  # results are still to come, unless one call fills the whole batch
        place += len(group)
        unit = _unit(group, max_tokens, asked, importance, listens)
        if unit is not None:
            made.append(unit)
            asked = unit.parts[-1].kind == "question"
    return made, place


def _unit(
    group: Sequence[StoredText],
    max_tokens: int,
    is_question: bool,
    importance: Callable[[str, Kind], float] | None,
    listens: bool,
) -> Unit | None:
    first = group[0].message
    role = content.role(first)
    recalled = {
        each.message.tool_call_id
        for each in group
        if isinstance(each.message, ToolMessage) and is_recalled(each.message)
    }
    said = [_without(each.message, recalled) for each in group if content.is_conversation(each.message)]
    spoken = [_message_texts(message) for message in said if not is_recalled(message)]
    text = clean(shorten_middle("\n".join(words for words, _ in spoken if words)))
    named = clean(shorten_middle("\n".join(names for _, names in spoken if names)))
    if role == "system" or not (text.strip() or named) or text.strip() == content.HIDDEN:
        return None
    is_action = bool(content.tool_calls(first)) or _is_result(group[0])
    day = group[0].said_at.astimezone(UTC).date()

    def part(text: str) -> UnitPart:
        marks = query_hints.marks(text)
        kind = kinds.chunk_kind(marks, is_action=is_action, after_question=is_question)
        weight = kinds.importance(text, marks, kind) if importance is None else min(max(importance(text, kind), 0), 1)
        told = query_hints.relative_days(text, day) if marks.has_time else ()
        return UnitPart(text, kind, weight, marks, count_tokens(text), told)

    texts = parts(text, max_tokens)
    found = [part(each) for each in texts]
    for each in parts(named, max_tokens):
        # Marks are taken from the prose only: the size of a file is not a number that a speaker mentioned.
        whole = f"{found[-1].text}\n{each}" if found else each
        tokens = count_tokens(whole)
        if found and tokens <= max_tokens:
            found[-1] = replace(found[-1], text=whole, tokens=tokens)
        else:
            found.append(replace(part(""), text=each, tokens=count_tokens(each)))
    return Unit(
        tuple(group),
        role,
        clean(first.name) if first.name else None,
        tuple(found),
        is_asked=role == "user",
        completes=(is_action and len(group) > 1) or kinds.completes(found[0].text),
        speech=Speech.of(text, texts) if listens and role == "user" and texts else None,
    )


def _without(message: BaseMessage, ids: Collection[str]) -> BaseMessage:
    """Return a message without its calls to the memory's own tools: a search query is not part of the talk."""
    return content.without_calls(message, ids) if ids and isinstance(message, AIMessage) else message


def is_recalled(message: BaseMessage) -> bool:
    """Return whether a tool result is the memory's own output, which is already stored at its source."""
    return isinstance(message, ToolMessage) and _FENCED.match(str(message.text)) is not None


def _is_result(stored: StoredText) -> bool:
    return isinstance(stored.message, ToolMessage)


def _message_texts(message: BaseMessage) -> tuple[str, str]:
    """Return a message's prose, with the name of a tool, and the names of its non-text content."""
    text, named = content.prose_text(message)
    text = text.strip()
    called = content.plain_name(message.name) if isinstance(message, ToolMessage) else ""
    return f"[{called}] {text}" if called else text, named


def texts(units: Iterable[Unit]) -> list[str]:
    """Return the texts of units, in order, for the embedder."""
    return [part.text for unit in units for part in unit.parts]
