"""Shorten one message, with a mark that says how to read the original. The original does not change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.blocks import PromptEntry
from langchain_supabase_memory.language.messages.encoded_data import without_data

if TYPE_CHECKING:
    from langchain_supabase_memory.context.token_meter import Meter

_TRIES: Final = 6
_MIN_CHARACTERS: Final = 8
"""The characters that an argument's quotes, colon and comma take."""


def truncate(entry: PromptEntry, room: int, meter: Meter) -> PromptEntry:
    """Shorten a message to a maximum size, or as far as possible.

    Args:
        entry: The message, with its number if it is stored.
        room: The maximum size.
        meter: The meter.

    Returns:
        The entry itself if it fits or truncation does not make it smaller; otherwise a copy marked as ours, with
        the middle of its text left out, long arguments of its tool calls cut, and a mark.
    """
    if content.is_screen(entry.message) or content.screen_calls(entry.message):
        return entry  # a provider takes nothing else in their place
    read = content.model_input(entry.message, entry.rendered)
    words, mark = without_data(read.words), _mark(entry, read.characters)
    best = _shortened_message(entry, words, 0, mark)
    least = meter.weigh(best)
    if meter.weigh(entry) <= max(room, least):
        return entry
    characters = min(read.characters, meter.room_in_characters(room - least))
    for _ in range(_TRIES):
        if least > room or characters <= 0:
            break
        copy = _shortened_message(entry, words, characters, mark)
        weight = meter.weigh(copy)
        if weight <= room:
            return copy
        # The excess is assumed to be proportional to the text, not to the mark.
        characters = min(characters - 1, characters * (room - least) // max(weight - least, 1))
    return best


def cut_to(entry: PromptEntry, characters: int) -> PromptEntry:
    """Shorten a message as it was shortened before.

    Args:
        entry: The message, with its number if it was stored then.
        characters: The `cut_to` of the shortened message.
    """
    read = content.model_input(entry.message, entry.rendered)
    return _shortened_message(entry, without_data(read.words), characters, _mark(entry, read.characters))


def _shortened_message(entry: PromptEntry, full_text: str, characters: int, mark: str) -> PromptEntry:
    """Return a copy with a mark, and about this many characters of its text and arguments."""
    message = entry.message
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    # The text gets what the calls do not need; calls get at most half if they need more.
    of_calls = len(content.calls_text(calls))
    for_calls = min(of_calls, characters // 2 if full_text else characters)
    text = _middle_out(full_text, characters - for_calls, mark)
    if isinstance(message, AIMessage):
        if for_calls < of_calls:
            calls = [{**call, "args": _cut(call["args"], for_calls // len(calls))} for call in calls]
        short = AIMessage(text, id=message.id, name=message.name, tool_calls=calls)
        made: BaseMessage = _with_signed_thoughts(message, short) if calls else short
    elif isinstance(message, ToolMessage):
        call_id = message.tool_call_id
        made = ToolMessage(text, tool_call_id=call_id, id=message.id, name=message.name, status=message.status)
    else:
        metadata = message.response_metadata  # of a turn that is pointed at: where it stands
        made = HumanMessage(text, id=message.id, name=message.name, response_metadata=metadata)
    return PromptEntry(content.mark_as_ours(made), entry.sequences, characters, entry.media_left_out)


_SIGNED: Final = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_content", "function_call_signature"}
)
_SIGNED_BESIDE: Final = ("__gemini_function_call_thought_signatures__", "reasoning_content")
"""Fields of `additional_kwargs` that providers want back with the calls of a turn under way."""

_FORM: Final = ("model_provider", "output_version")
"""Fields of `response_metadata` by which integrations read the blocks of a message."""


def _with_signed_thoughts(message: AIMessage, short: AIMessage) -> AIMessage:
    """Return a shortened call behind the signed thoughts of its original: providers reject a turn under way without."""
    thoughts = [block for block in content.blocks(message.content) if _is_signed(block)]
    beside = {key: message.additional_kwargs[key] for key in _SIGNED_BESIDE if key in message.additional_kwargs}
    if not thoughts and not beside:
        return short
    return short.model_copy(
        update={
            "content": [*thoughts, {"type": "text", "text": short.content}] if thoughts else short.content,
            "additional_kwargs": beside,
            "response_metadata": {
                key: message.response_metadata[key] for key in _FORM if key in message.response_metadata
            },
        }
    )


def _is_signed(block: Mapping[str, Any]) -> bool:
    """Return whether a block is a thought that its provider signed or encrypted, and that it accepts by itself."""
    thought = content.native(block)
    kind = thought.get("type")
    if not isinstance(kind, str) or kind not in _SIGNED:
        return False
    if kind == "redacted_thinking":
        return True
    places = (thought, thought.get("extras"), thought.get("reasoning_content"))
    return any(isinstance(place, Mapping) and place.get("signature") for place in places)


def _mark(entry: PromptEntry, characters: int) -> str:
    size = f"{characters:,} characters"
    media = len(content.media(entry.message.content))
    where = ""
    if entry.sequences:
        low, high = entry.sequences[0], entry.sequences[-1]
        which = f"message {low}" if low == high else f"messages {low} to {high}"
        where = f"; it is {which}: read_messages(first={low}, last={high})"
    return f"[… {size}{f' and {media} images or files' if media else ''}, cut{where} …]"


def _middle_out(text: str, characters: int, mark: str) -> str:
    """Return the beginning, the mark and the end of a text; all of the text if it fits."""
    if not text or characters <= 0:
        return mark
    first = len(text) if len(text) <= characters else characters * 2 // 3
    return "\n".join(filter(None, [text[:first], mark, text[len(text) - min(characters, len(text)) + first :]]))


def _cut(value: Any, characters: int) -> Any:
    """Cut texts and lists in a call's arguments; their names stay."""
    if isinstance(value, str):
        return value if len(value) <= characters else value[: max(characters - 1, 0)] + "…" * (characters > 0)
    if isinstance(value, dict):
        keys = list(value)[: max(characters // _MIN_CHARACTERS, 0)]
        shares = {key: characters // len(keys) - _MIN_CHARACTERS - len(str(key)) for key in keys}
        return {key: _cut(value[key], share) for key, share in shares.items() if share > 0}
    if isinstance(value, list):
        kept = value[: max(characters // _MIN_CHARACTERS, 0)]
        return [_cut(item, characters // len(kept) - _MIN_CHARACTERS) for item in kept]
    return value
