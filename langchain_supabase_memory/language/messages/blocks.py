"""Group messages into blocks that providers require whole, and repair histories that are already broken.

A block is one message, or an AI message with tool calls and its results, wherever parallel runs have put them. A result
belongs to the newest earlier call with its id and no result, since some providers repeat call ids across turns. The
tests list what providers reject.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    BaseMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
)
from langchain_core.messages.tool import tool_call

from langchain_supabase_memory.json_types import AnyMessage
from langchain_supabase_memory.language.messages import content, fence
from langchain_supabase_memory.language.messages.provider_storage import AUDIO, ITEMS_BESIDE, without_expired
from langchain_supabase_memory.language.messages.rendering import Rendered, render

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_RESULT: Final = "[no result: this call was interrupted, or is still running]"
"""The text that replaces the missing result of a call."""

NOT_CALLED: Final = "[no result: this call was not made, as its arguments are no JSON object]"
"""The text that replaces the missing result of a call whose arguments could not be parsed: no tool got it."""

ORPHAN: Final = "a tool result without its call"
"""The reason for dropping a result."""

_LONGEST_CALL_ID: Final = 40
# The blocks that name a call in a message's content, and the key of the call's id.
_CALL_KEYS: Final = {
    "tool_use": "id",
    "tool_call": "id",
    "tool_call_chunk": "id",
    "invalid_tool_call": "id",
    "function_call": "call_id",
}


@dataclass
class PromptEntry:
    """A message that is about to go into a prompt.

    Attributes:
        message: The message as it will be sent.
        sequences: Its sequence in the conversation; empty if it is not stored or not part of the conversation, several
            if messages were merged.
        cut_to: The characters that are left of its text and arguments; `None` if it is whole.
        media_left_out: How many of its images and files are replaced by names.
        equal: An entry with an equal message, which is measured in place of this one; no field.
    """

    message: AnyMessage
    sequences: tuple[int, ...] = ()
    cut_to: int | None = None
    media_left_out: int = 0
    equal: ClassVar[PromptEntry | None] = None

    @cached_property
    def rendered(self) -> Rendered:
        """The message, rendered once for all callers."""
        return render(self.message) if self.equal is None else self.equal.rendered

    @cached_property
    def model_input(self) -> content.ModelInput:
        """What a model is sent of it."""
        return content.model_input(self.message, self.rendered) if self.equal is None else self.equal.model_input

    @cached_property
    def characters(self) -> int:
        """The characters that a model is sent of it."""
        return self.model_input.characters if self.equal is None else self.equal.characters

    @cached_property
    def transcript_characters(self) -> int:
        """The characters that it counts in a budget of characters."""
        return content.weight(self.message, self.rendered) if self.equal is None else self.equal.transcript_characters

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """One, its characters and its tokens, as a report sums them."""
        return (1, self.characters, self.model_input.tokens()) if self.equal is None else self.equal.counts

    def like(self, entry: PromptEntry) -> PromptEntry:
        """Take the measures of an entry with an equal message, also those to come. Returns this entry."""
        own, known = self.__dict__, entry.__dict__
        own["equal"] = entry  # no field: whoever serializes a pack has each message once
        own.update({name: known[name] for name in _MEASURES if name in known})  # a property takes longer to find them
        return self


_MEASURES: Final = tuple(name for name, each in vars(PromptEntry).items() if isinstance(each, cached_property))


@dataclass(slots=True)
class Block:
    """Entries that stay together; the first leads.

    Attributes:
        entries: A message, or one with calls and their results.
        place: The index of the first entry in the original history.
        marked_as_question: The value of `is_question` if the entries are copies; `None` if they are original messages.
    """

    entries: list[PromptEntry]
    place: int
    marked_as_question: bool | None = None

    @property
    def is_question(self) -> bool:
        """Whether this is a user message, which begins a turn."""
        if self.marked_as_question is not None:
            return self.marked_as_question
        message = self.entries[0].message
        return isinstance(message, HumanMessage) and content.is_conversation(message)

    @property
    def unanswered(self) -> list[Any]:
        """Return the calls without a result. One result answers one call, even if two calls share an id."""
        results = [each.message for each in self.entries[1:]]
        answered = [result.tool_call_id for result in results if isinstance(result, ToolMessage)]
        waiting = []
        for call in content.tool_calls(self.entries[0].message):
            if (call["id"] or "") in answered:
                answered.remove(call["id"] or "")
            else:
                waiting.append(call)
        return waiting


def blocks(entries: Iterable[PromptEntry]) -> tuple[list[Block], list[tuple[int, str]]]:
    """Split a history into blocks, and make it valid.

    Dropped are a tool message without an earlier call, a second result for one call, and a message without content. A
    call without a result gets `NO_RESULT`, except in the last block, whose results may still come. AI messages right
    before calls are merged with them. Roles that only some providers know become common ones. A stored system message
    becomes fenced data, since anyone who can write to a conversation could have written it. Calls get unique ids; those
    of the last block keep theirs while results are missing.

    Args:
        entries: The history, in order.

    Returns:
        The blocks, and the sequence and reason of each stored message that was dropped.
    """
    made: list[Block] = []
    left_out: list[tuple[int, str]] = []
    waiting: dict[str, list[Block]] = {}  # for each call without a result, its block, once per call
    for place, entry in enumerate(entries):
        if is_plain(entry.message):
            made.append(Block([entry], place))
            continue
        message = _without_empty_parts(without_expired(_without_chunks(entry.message)))
        if isinstance(message, ToolMessage):
            if called := waiting.get(message.tool_call_id):
                called.pop().entries.append(_with(entry, message))
            else:
                left_out += [(sequence, ORPHAN) for sequence in entry.sequences]
            continue
        message = _with_known_role(message)
        if _is_empty(message):
            left_out += [(sequence, "empty") for sequence in entry.sequences]
            continue
        block = Block([_with(entry, message)], place)
        while made and _continues(made[-1], block):
            block = _merge(made.pop(), block)
        made.append(block)
        for call in content.tool_calls(block.entries[0].message):
            waiting.setdefault(call["id"] or "", []).append(block)
        for call_id in content.screen_calls(block.entries[0].message):
            waiting.setdefault(call_id, []).append(block)
    used: set[str] = set()
    for block in made[:-1]:
        _remove_unanswered_screen_calls(block)
        if content.tool_calls(block.entries[0].message):
            _answer(block)
            _name_calls(block, used)
    if made and not made[-1].unanswered:
        _name_calls(made[-1], used)
    return made, left_out


def is_plain(message: BaseMessage) -> bool:
    """Return whether a message needs no change, as nearly all: text of the user or the assistant, without calls."""
    body = message.content
    if not isinstance(body, str) or not body or body.isspace():
        return False
    if type(message) is AIMessage:
        calls = message.tool_calls or message.invalid_tool_calls
        return not calls and _SENT_BESIDE.isdisjoint(message.additional_kwargs)
    return type(message) is HumanMessage


_RAW_CALLS: Final = frozenset({"function_call", "tool_calls"})
_SENT_BESIDE: Final = _RAW_CALLS | ITEMS_BESIDE | {AUDIO}
"""Fields of `additional_kwargs` that are sent with an AI message."""


def _with(entry: PromptEntry, message: BaseMessage) -> PromptEntry:
    return entry if message is entry.message else PromptEntry(message, entry.sequences)


def _without_chunks(message: BaseMessage) -> BaseMessage:
    return message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message


def _without_empty_parts(message: BaseMessage) -> BaseMessage:
    """Return the message without what providers reject: empty texts, bare texts among blocks, blocks of lost calls."""
    body = message.content
    if isinstance(message, AIMessage) and content.is_empty(message) and (said := content.words(message).strip()):
        return message.model_copy(update={"content": said})  # a refusal or transcript, stored outside the content
    if isinstance(body, str):
        return message if not body or body.strip() else message.model_copy(update={"content": ""})
    ids = [call["id"] for call in content.tool_calls(message)]
    listed = [{"type": "text", "text": part} if isinstance(part, str) else part for part in body]
    kept = [
        part
        for part in listed
        if (part.get("type") != "text" or str(part.get("text") or "").strip())
        and (not _names_call(part) or part.get(_CALL_KEYS[part["type"]]) in ids)
    ]
    return message if kept == body else message.model_copy(update={"content": kept})


def _names_call(part: Any) -> bool:
    return isinstance(part.get("type"), str) and part["type"] in _CALL_KEYS


def _is_empty(message: BaseMessage) -> bool:
    # A user message in blocks of an unknown kind is not empty.
    return content.is_empty(message) and not (
        isinstance(message, HumanMessage) and (content.words(message).strip() or content.hidden_characters(message))
    )


def _answer(block: Block) -> None:
    for call in block.unanswered:
        text = NO_RESULT if isinstance(call["args"], dict) else NOT_CALLED
        result = ToolMessage(text, tool_call_id=call["id"] or "", name=call.get("name"), status="error")
        block.entries.append(PromptEntry(content.mark_as_ours(result)))


def _remove_unanswered_screen_calls(block: Block) -> None:
    """Take away the computer calls of which no screenshot came, with the thoughts that their provider pairs with them.

    No text can answer such a call.
    """
    leader = block.entries[0].message
    given = {entry.message.tool_call_id for entry in block.entries[1:] if isinstance(entry.message, ToolMessage)}
    lost = [call_id for call_id in content.screen_calls(leader) if call_id not in given]
    if not lost:
        return
    dropped: set[int] = set()
    for place, part in enumerate(leader.content):
        if any(call_id in lost for call_id in content.screen_calls(AIMessage([part]))):
            dropped |= {place, *([place - 1] if place and _is_thought(leader.content[place - 1]) else [])}
    kept: list[Any] = [part for place, part in enumerate(leader.content) if place not in dropped]
    made = leader.model_copy(update={"content": kept})
    if content.is_empty(made):
        made = made.model_copy(update={"content": NO_RESULT})
    block.entries[0] = PromptEntry(made, block.entries[0].sequences)


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "reasoning"


def _with_known_role(message: BaseMessage) -> BaseMessage:
    """Return the message in a role that every provider knows."""
    if isinstance(message, HumanMessage):
        return message
    if isinstance(message, AIMessage):
        # Legacy calls, and calls that were removed from the message, would still be sent from here.
        raw = _RAW_CALLS & message.additional_kwargs.keys()
        if not raw or content.tool_calls(message):
            return message
        kept = {key: value for key, value in message.additional_kwargs.items() if key not in raw}
        return message.model_copy(update={"additional_kwargs": kept})
    text = content.display_text(message)
    if isinstance(message, ChatMessage):
        said_by = content.role(message)
        if said_by == "assistant":
            return AIMessage(message.content, id=message.id)
        if said_by == "user":
            known = message.role.lower() in {"user", "human"}
            return HumanMessage(message.content if known else f"{message.role}: {text}", id=message.id)
    if isinstance(message, (SystemMessage, ChatMessage, FunctionMessage)) and text.strip():
        name = "tool_result" if content.role(message) == "tool" else "system_note"
        known_to_all = fence.message(fence.fenced([fence.element(name, text)]), "")
        known_to_all.id = message.id
        return known_to_all
    return HumanMessage(text, id=message.id)


def _continues(before: Block, block: Block) -> bool:
    """Return whether a message with calls continues one without; Gemini wants calls right after the user's message."""
    first, message = before.entries[0].message, block.entries[0].message
    return isinstance(first, AIMessage) and not content.tool_calls(first) and bool(content.tool_calls(message))


def _merge(before: Block, block: Block) -> Block:
    first, entry = before.entries[0], block.entries[0]
    parts = [*_parts(first.message), *_parts(entry.message)]
    texts = all(part.keys() == {"type", "text"} for part in parts)
    body = "\n\n".join(part["text"] for part in parts) if texts else parts
    message = entry.message.model_copy(update={"content": body})
    return Block([PromptEntry(message, first.sequences + entry.sequences)], before.place)


def _parts(message: BaseMessage) -> list[Any]:
    body = message.content
    return body if isinstance(body, list) else [{"type": "text", "text": body}] if body else []


def _name_calls(block: Block, used: set[str]) -> None:
    """Give every call of an answered block, and its result, an id that no earlier call has.

    Some providers omit ids or count from 0 in every message. Anthropic rejects an id that is used twice, and
    langchain-google-genai takes the first result in the prompt that has it. A call whose arguments are not JSON becomes
    a call with one argument, its text, since Gemini is not sent invalid calls.
    """
    leader = block.entries[0].message
    if not isinstance(leader, AIMessage):
        return
    calls = content.tool_calls(leader)
    names: dict[str, list[str]] = {}
    for place, call in enumerate(calls):
        given = name = call["id"] or ""
        while not name or len(name) > _LONGEST_CALL_ID or name in used:
            name = "call_" + hashlib.sha256(f"{leader.id} {place} {name}".encode(errors="replace")).hexdigest()[:24]
        used.add(name)
        names.setdefault(given, []).append(name)
    if not leader.invalid_tool_calls and all(each == [given] for given, each in names.items()):
        return

    called, answered = ({given: iter(each) for given, each in names.items()} for _ in range(2))
    made = [
        tool_call(
            name=call["name"] or "unknown",
            args=call["args"] if isinstance(call["args"], dict) else {"arguments": call["args"] or ""},
            id=next(called[call["id"] or ""]),
        )
        for call in calls
    ]
    body = leader.content
    if isinstance(body, list):
        # The calls are sent in any case, and these blocks would give them other ids.
        body = [part for part in body if not _names_call(part)]
    update = {"content": body, "tool_calls": made, "invalid_tool_calls": []}
    block.entries[0] = PromptEntry(leader.model_copy(update=update), block.entries[0].sequences)
    for place, entry in enumerate(block.entries):
        if isinstance(entry.message, ToolMessage) and entry.message.tool_call_id in answered:
            name = next(answered[entry.message.tool_call_id])
            block.entries[place] = PromptEntry(entry.message.model_copy(update={"tool_call_id": name}), entry.sequences)
