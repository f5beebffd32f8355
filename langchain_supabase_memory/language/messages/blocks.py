"""Messages in blocks that no provider wants to see cut, and histories made valid that were broken before us.

A block is one message; or an AI message with tool calls and its results, wherever runs at the same time have put them:
a result belongs to the newest call before it that has its id and no result, since ids of calls repeat across turns with
some providers. What providers refuse is written down in the tests.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

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
from langchain_supabase_memory.language.messages.rendering import Rendered, render

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_RESULT: Final = "[no result: this call was interrupted, or is still running]"
"""What stands in for the result of a call that never got one."""

ORPHAN: Final = "a tool result without its call"
"""Why a result is left out."""

_LONGEST_CALL_ID: Final = 40
# The blocks that name a call in a message's content, and the key under which they do.
_CALL_KEYS: Final = {
    "tool_use": "id",
    "tool_call": "id",
    "tool_call_chunk": "id",
    "invalid_tool_call": "id",
    "function_call": "call_id",
}


@dataclass
class PromptEntry:
    """A message on its way into a prompt.

    Attributes:
        message: The message, as it will be sent.
        sequences: Its number in the conversation; none if it is not stored or was not said, several if some were
            joined.
    """

    message: AnyMessage
    sequences: tuple[int, ...] = ()

    @cached_property
    def rendered(self) -> Rendered:
        """The message, rendered once for all who weigh and count it."""
        return render(self.message)

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """One, its characters and its tokens, as a report adds them up."""
        read = content.model_input(self.message, self.rendered)
        return 1, read.characters, read.tokens()


@dataclass(slots=True)
class Block:
    """Entries that stay together; the first leads.

    Attributes:
        entries: A message; or one with calls, and their results.
        place: The place of the first in the history it was cut from.
        marked_as_question: What `is_question` says where entries are copies; `None` where they are what was said.
    """

    entries: list[PromptEntry]
    place: int
    marked_as_question: bool | None = None

    @property
    def is_question(self) -> bool:
        """Whether this is a user's message, with which a turn begins."""
        if self.marked_as_question is not None:
            return self.marked_as_question
        message = self.entries[0].message
        return isinstance(message, HumanMessage) and content.is_conversation(message)

    @property
    def unanswered(self) -> list[Any]:
        """The calls without a result. One result answers one call, even where two calls share an id."""
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
    """Cut a history into blocks, and make it valid where it is not.

    A tool message without a call before it, a second result for one call, and a message without any content are left
    out. A call without a result gets `NO_RESULT`; those of the last block do not, for their results
    may still come. AI messages directly before calls become one with them. Roles that only some providers know become
    ones that all know; a stored system message becomes fenced data, for whoever can write into a conversation could
    have written it. Calls get ids that no other call has; those of the last block keep theirs as long as results are
    missing.

    Args:
        entries: The history, in order.

    Returns:
        The blocks, and the sequence and the reason of each stored message that was left out.
    """
    made: list[Block] = []
    left_out: list[tuple[int, str]] = []
    waiting: dict[str, list[Block]] = {}  # for each call that has no result yet, its block, once for each such call
    for place, entry in enumerate(entries):
        if _is_plain(entry.message):
            made.append(Block([entry], place))
            continue
        message = _without_empty_parts(_without_chunks(entry.message))
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
    used: set[str] = set()
    for block in made[:-1]:
        if content.tool_calls(block.entries[0].message):
            _answer(block)
            _name_calls(block, used)
    if made and not made[-1].unanswered:
        _name_calls(made[-1], used)
    return made, left_out


def _is_plain(message: BaseMessage) -> bool:
    """Whether a message stands as it is, as nearly every one: words of the user or the assistant, and no calls."""
    body = message.content
    if not isinstance(body, str) or not body or body.isspace():
        return False
    if type(message) is AIMessage:
        calls = message.tool_calls or message.invalid_tool_calls
        return not calls and _RAW_CALLS.isdisjoint(message.additional_kwargs)
    return type(message) is HumanMessage


_RAW_CALLS: Final = frozenset({"function_call", "tool_calls"})


def _with(entry: PromptEntry, message: BaseMessage) -> PromptEntry:
    return entry if message is entry.message else PromptEntry(message, entry.sequences)


def _without_chunks(message: BaseMessage) -> BaseMessage:
    return message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message


def _without_empty_parts(message: BaseMessage) -> BaseMessage:
    """The message without what providers refuse: empty texts, bare texts among blocks, blocks of calls it lost."""
    body = message.content
    if isinstance(message, AIMessage) and content.is_empty(message) and (said := content.words(message).strip()):
        return message.model_copy(update={"content": said})  # a refusal, a transcript: what stands beside the content
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
    # What a user sends in blocks that we do not know is not nothing.
    return content.is_empty(message) and not (
        isinstance(message, HumanMessage) and (content.words(message).strip() or content.hidden_characters(message))
    )


def _answer(block: Block) -> None:
    for call in block.unanswered:
        result = ToolMessage(NO_RESULT, tool_call_id=call["id"] or "", name=call.get("name"), status="error")
        block.entries.append(PromptEntry(content.mark_as_ours(result)))


def _with_known_role(message: BaseMessage) -> BaseMessage:
    """The message in a role that every provider knows."""
    if isinstance(message, HumanMessage):
        return message
    if isinstance(message, AIMessage):
        # Calls of the old interface, or that were taken out of the message, would be sent from there.
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
    """Whether an AI message goes on with calls after one without; Gemini wants calls right after the user's side."""
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

    Some providers leave ids out or count from 0 in every message; Anthropic refuses an id that is used twice, and
    langchain-google-genai takes the first result in the prompt that has it. A call whose arguments are no JSON becomes
    a call with one argument, its text, for Gemini is not sent invalid calls.
    """
    leader = block.entries[0].message
    if not isinstance(leader, AIMessage):
        return
    calls = content.tool_calls(leader)
    names: dict[str, list[str]] = {}
    for place, call in enumerate(calls):
        given = name = call["id"] or ""
        while not name or len(name) > _LONGEST_CALL_ID or name in used:
            name = "call_" + hashlib.sha256(f"{leader.id} {place} {name}".encode()).hexdigest()[:24]
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
        # The calls are sent in any case, and these would name them otherwise.
        body = [part for part in body if not _names_call(part)]
    update = {"content": body, "tool_calls": made, "invalid_tool_calls": []}
    block.entries[0] = PromptEntry(leader.model_copy(update=update), block.entries[0].sequences)
    for place, entry in enumerate(block.entries):
        if isinstance(entry.message, ToolMessage):
            name = next(answered[entry.message.tool_call_id])
            block.entries[place] = PromptEntry(entry.message.model_copy(update={"tool_call_id": name}), entry.sequences)
