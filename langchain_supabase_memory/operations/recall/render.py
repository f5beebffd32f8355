"""What was found, as text for a prompt: in the order it was said, dated, each line with the number of its message."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.messages import content, fence
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.operations.recall.ranges import zone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.values import Chunk, ConversationKey

MESSAGE_ID: Final = "lc_supabase_memory_recalled"
"""The id of the message that carries what was recalled."""


FRAME: Final = fence.fenced([fence.element("recalled", "")])
"""What stands around the lines in a message."""

TITLE: Final = "Recalled:"
"""What stands above the lines in a text."""


def lines(
    chunks: Sequence[Chunk], time_zone: str | tzinfo | None = None, conversation: ConversationKey | None = None
) -> list[str]:
    """Chunks as lines: a date, and under it who said what.

    Args:
        chunks: In any order.
        time_zone: That of the reader, for the dates; UTC by default.
        conversation: The reader's conversation: a line from another one names it, for its numbers are others.

    Returns:
        The lines, in the order in which it was said. Only the first line of a chunk begins at the margin.
    """
    there = zone(time_zone)
    ordered = sorted(chunks, key=lambda each: (each.said_at, each.place, each.part))
    made = []
    for date, said in groupby(ordered, key=lambda each: day(each, there)):
        made += [date, *(line(each, conversation) for each in said)]
    return made


def day(chunk: Chunk, time_zone: tzinfo) -> str:
    """The line above the chunks of a day, such as `2026-08-14:`."""
    return f"{chunk.said_at.astimezone(time_zone).date().isoformat()}:"


def line(chunk: Chunk, conversation: ConversationKey | None = None) -> str:
    """A chunk as a line, such as `User (Maya) [12]: I am allergic to peanuts`, or `User [12 of "studio"]: …`.

    Args:
        chunk: The chunk.
        conversation: The reader's conversation, if it has one.
    """
    is_elsewhere = conversation is not None and (chunk.thread_id, chunk.agent_id) != (
        conversation.thread_id,
        conversation.agent_id,
    )
    of = f" of {json.dumps(spell_out(chunk.thread_id), ensure_ascii=False)}" if is_elsewhere else ""
    speaker = content.speaker(content.LABELS[chunk.role], chunk.speaker)
    return f"{speaker} [{chunk.from_sequence}{of}]: {content.indented(chunk.content)}"


def message(
    chunks: Sequence[Chunk], time_zone: str | tzinfo | None = None, conversation: ConversationKey | None = None
) -> BaseMessage | None:
    """Chunks as a fenced message, to stand before the user's; `None` if there are none."""
    if not chunks:
        return None
    said = fence.element("recalled", "\n".join(lines(chunks, time_zone, conversation)))
    return fence.message(fence.fenced([said]), MESSAGE_ID)
