"""Shrink a message's data so that it can be stored: a note names what was removed, and no turn is dropped.

Media are removed first, the largest first; then what a tool stores for the application (`artifact`) and provider
metadata; then the middle of the longest texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import documents
from langchain_supabase_memory.language.messages.encoded_data import readable_size

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGE_BYTES: Final = 4_194_304
"""The default maximum size of a message in bytes, unless the database operator sets another; see `memory_limits`."""

_NEEDED: Final = frozenset({"content", "type", "id", "name", "role", "tool_calls", "tool_call_id", "status"})
"""Fields that are required to read a message."""

_FIELDS: Final = frozenset({"additional_kwargs", "response_metadata", "usage_metadata"})

_LONG: Final = 256
"""A text with fewer characters is not cut."""


def size(value: Any) -> int:
    """Return the size of a value as JSON, in bytes."""
    return len(documents.dumps(value))


def truncate(data: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """Reduce a message's data to `max_bytes`.

    Args:
        data: The `data` of a payload, as JSON.
        max_bytes: The maximum size in bytes.

    Returns:
        The data itself if it is small enough; else a copy in which notes give the size of what was removed.
    """
    made: dict[str, Any] = documents.loads(documents.dumps(data))
    left = size(made) - max_bytes
    if left <= 0:
        return data
    content = made.get("content")
    blocks = content if isinstance(content, list) else []
    media = [(size(block), place) for place, block in enumerate(blocks) if isinstance(block, dict)]
    for held, place in sorted(media, reverse=True):
        if left <= 0:
            break
        block = blocks[place]
        if not isinstance(block.get("text"), str) and held > _LONG:
            blocks[place] = {"type": "text", "text": _stub(_kind(block), held)}
            left -= held - size(blocks[place])
    for holder in (made.get("additional_kwargs"), made.get("response_metadata"), made):
        if not isinstance(holder, dict):
            continue
        spare = [(size(value), name) for name, value in holder.items() if holder is not made or name not in _NEEDED]
        for held, name in sorted(spare, reverse=True):
            if left <= 0 or held <= _LONG:
                break
            stub = _stub(type(holder[name]).__name__, held)
            # A field of the message keeps its type: a dictionary.
            holder[name] = {"left_out": stub} if holder is made and name in _FIELDS else stub
            left -= held - size(holder[name])
    for held_in, name, text in sorted(_texts(made), key=lambda each: len(each[2]), reverse=True):
        if left <= 0:
            break
        held = size(text)
        # Convert the remaining bytes to characters, whatever the alphabet.
        cut = _cut(text, max(held - left - 128, 0) * len(text) // held)
        if size(cut) < held:
            held_in[name] = cut
            left -= held - size(cut)
    if left > 0:  # very many small values
        made["content"] = _stub("message", size(data))
        for call in made.get("tool_calls") or []:
            call["args"] = {}
    return made


def _texts(value: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield every long text with its container and key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        if isinstance(item, str):
            if len(item) > _LONG:
                yield value, name, item
        else:
            yield from _texts(item)


def _cut(text: str, characters: int) -> str:
    """Return the beginning and the end of a text."""
    end = characters // 3
    return f"{text[: characters - end]}{_stub('text', size(text), '…')}{text[len(text) - end :]}"


def _kind(block: dict[str, Any]) -> str:
    """Return the name of a block: its media type, or else its own type."""
    source = block.get("source")
    places = (block, source if isinstance(source, dict) else {})
    found = [place.get(name) for place in places for name in ("mime_type", "media_type")]
    return next((" ".join(each.split())[:64] for each in found if isinstance(each, str)), str(block.get("type"))[:64])


def _stub(kind: str, size: int, edge: str = "") -> str:
    before, after = (f"{edge} ", f" {edge}") if edge else ("", "")
    return f"[{before}{kind}, {readable_size(size)}, left out: more than a message may have{after}]"
