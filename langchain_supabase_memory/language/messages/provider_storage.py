"""Leave out of a prompt what a message only names by an id, once the provider may have deleted what it names.

| what | held by OpenAI | then it answers |
| --- | --- | --- |
| the sound of an answer | about an hour | that the audio is not found |
| reasoning without `encrypted_content`, a generated image | 30 days, if at all | "Item with id 'rs_…' not found" |

An item whose reasoning is left out may not be named either: "'msg_…' was provided without its required 'reasoning'
item". So texts and calls lose their ids, and calls of hosted tools, which cannot be sent without one, are left out.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage

from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.rendering import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

AUDIO: Final = "audio"
"""The field of `additional_kwargs` with the sound of an answer."""

_HELD_SECONDS: Final = 29 * 86_400.0
"""How long a provider surely holds a response, in seconds: a day less than OpenAI does, for clocks that differ."""

_REASONING: Final = "reasoning"
_ITEM_IDS: Final = "__openai_function_call_ids__"
# Where `ChatOpenAI(output_version="v0")` puts the items that are not text.
ITEMS_BESIDE: Final = frozenset({_REASONING, "tool_outputs", _ITEM_IDS})
"""Fields of `additional_kwargs` with items of the Responses API, or their ids."""

_WITHOUT_ID: Final = frozenset(
    {"message", "text", "output_text", "refusal", "function_call", "custom_tool_call", "tool_call"}
)
"""Items and blocks that can be sent without the id of the item."""


def is_held(created_at: object) -> bool:
    """Return whether a provider still holds a response.

    Args:
        created_at: When it was created, in seconds since 1970; one without a time counts as new.
    """
    return not isinstance(created_at, (int, float)) or time.time() - created_at < _HELD_SECONDS


def without_expired(message: BaseMessage) -> BaseMessage:
    """Return a message without what its provider may have deleted; the message itself if there is nothing of it."""
    if not isinstance(message, AIMessage):
        return message
    return _without_items(_without_audio(message))


def portable_items(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return items, or the blocks that become items, so that their provider needs nothing that it may have deleted.

    Args:
        items: Items of the Responses API, in order.
    """
    made: list[dict[str, Any]] = []
    is_lost = False  # whether the reasoning before an item is left out
    lost_ids: set[object] = set()
    for item in items:
        native = content.native(item)
        kind = native.get("type", "message")
        if kind == _REASONING:
            is_lost = _is_only_named(native)
            if not is_lost:
                made.append(dict(item))
        elif kind in _WITHOUT_ID:
            made.append(_without_id(item))
            is_lost = False
        elif is_lost:
            lost_ids |= {native.get(key) for key in ("id", "call_id")} - {None}
        elif not lost_ids & {native.get(key) for key in ("call_id", "tool_call_id", "approval_request_id")}:
            made.append(dict(item))
    return made


def _is_only_named(reasoning: Mapping[str, Any]) -> bool:
    """Return whether reasoning is nothing but the id of what OpenAI holds: its summary is not read by a model."""
    extras = reasoning.get("extras")
    beside = extras if isinstance(extras, dict) else {}
    is_whole = reasoning.get("encrypted_content") or beside.get("encrypted_content")
    return str(reasoning.get("id", "")).startswith("rs_") and not is_whole


def _without_id(item: Mapping[str, Any]) -> dict[str, Any]:
    if item.get("type") != "tool_call":
        return {key: value for key, value in item.items() if key != "id"}
    extras = item.get("extras")  # a standard call's own id is that which its result names
    if not isinstance(extras, dict):
        return dict(item)
    return {**item, "extras": {key: value for key, value in extras.items() if key != "item_id"}}


def _without_items(message: AIMessage) -> AIMessage:
    known = message.response_metadata
    has_items = isinstance(message.content, list) or not ITEMS_BESIDE.isdisjoint(message.additional_kwargs)
    if not has_items or is_held(known.get("created_at")):
        return message
    body: Any = message.content
    if isinstance(body, list):
        parts = [{"type": "text", "text": each} if isinstance(each, str) else each for each in body]
        body = portable_items(map(_named_image, parts))
        if str(message.id).startswith("msg_") and all(part.get("type") == "text" for part in body):
            body = "\n\n".join(str(part.get("text")) for part in body)  # blocks of v0 would get the message's id
    beside = {key: value for key, value in message.additional_kwargs.items() if key not in ITEMS_BESIDE}
    return message.model_copy(update={"content": body, "additional_kwargs": beside})


def _named_image(block: dict[str, Any]) -> dict[str, Any]:
    """Return a name in place of a generated image, of which only the id is sent; other blocks as they are."""
    native = content.native(block)
    is_image = native.get("type") in ("image", "image_generation_call")
    if not is_image or not str(native.get("id", "")).startswith("ig_"):
        return block
    return {"type": "text", "text": render(AIMessage([block])).named or "[image]"}


def _without_audio(message: AIMessage) -> AIMessage:
    audio = message.additional_kwargs.get(AUDIO)
    until = audio.get("expires_at") if isinstance(audio, dict) else None
    if not isinstance(until, (int, float)) or until > time.time():
        return message
    text = message.content or content.words(message)  # the transcript is what stays of it
    beside = {key: value for key, value in message.additional_kwargs.items() if key != AUDIO}
    return message.model_copy(update={"content": text, "additional_kwargs": beside})
