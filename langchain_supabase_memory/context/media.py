"""The limit on images and files in a pack: the newest stay, a name replaces older ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage

from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.blocks import Block, PromptEntry
from langchain_supabase_memory.language.messages.rendering import render

if TYPE_CHECKING:
    from collections.abc import Sequence


def limit_media(blocks: Sequence[Block], start: int, max_media: int | None) -> list[Block]:
    """Limit the images and files in blocks to the newest.

    Args:
        blocks: The history and the current turn, in order.
        start: The position of the current turn. Media that the user sends in it count, and always stay.
        max_media: The maximum number of images and files; `None` for no limit.

    Returns:
        The same blocks; those with older media are copies marked as ours, with a name instead of each.
    """
    counts = {id(entry): _count(entry) for block in blocks for entry in block.entries} if max_media is not None else {}
    if max_media is None or sum(counts.values()) <= max_media:
        return list(blocks)
    asked = [block for block in blocks if block.place >= start and block.is_question]
    left = max_media - sum(counts[id(entry)] for block in asked for entry in block.entries)
    made: list[Block] = []
    for block in reversed(blocks):
        if any(block is each for each in asked):
            made.append(block)
            continue
        entries: list[PromptEntry] = []
        for entry in reversed(block.entries):
            excess = counts[id(entry)] - max(left, 0)
            left -= counts[id(entry)]
            entries.append(entry if excess <= 0 else without_media(entry, excess))
        same = all(new is old for new, old in zip(reversed(entries), block.entries, strict=True))
        made.append(block if same else replace(block, entries=entries[::-1], marked_as_question=block.is_question))
    return made[::-1]


def _count(entry: PromptEntry) -> int:
    body = entry.message.content
    if content.is_screen(entry.message):
        return 0  # a provider takes nothing else in its place
    return 0 if isinstance(body, str) else sum(map(_is_media, content.media(body)))


def _is_media(block: Mapping[str, Any]) -> bool:
    """Return whether it is media and not a text file, which counts by its text."""
    return render(HumanMessage([dict(block)])).media > 0


def without_media(entry: PromptEntry, count: int) -> PromptEntry:
    """Return an entry whose first images and files are replaced by names.

    Args:
        entry: The entry.
        count: How many are replaced.
    """
    blocks: list[Any] = []
    first = count
    for block in entry.message.content:
        if first > 0 and isinstance(block, Mapping) and content.media([block]) and _is_media(block):
            blocks.append({"type": "text", "text": _name(block)})
            first -= 1
        else:
            blocks.append(block)
    made = content.mark_as_ours(entry.message.model_copy(update={"content": blocks}))
    return PromptEntry(made, entry.sequences, media_left_out=count)


def _name(block: Mapping[str, Any]) -> str:
    """Return the name of an omitted image or file, such as "[image/png, 2 KB; left out of this prompt]"."""
    whole = render(HumanMessage([dict(block)]))
    return "\n".join(filter(None, [whole.words, f"{whole.named.removesuffix(']')}; left out of this prompt]"]))
