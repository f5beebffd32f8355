"""Recalled chunks as text for a prompt: in chronological order, dated, each line with its message number."""

from __future__ import annotations

import json
from datetime import UTC
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.messages import content, fence
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.operations.recall.ranges import zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.values import Chunk, ConversationKey

MESSAGE_ID: Final = "lc_supabase_memory_recalled"
"""The id of the message that carries the recalled chunks."""


FRAME: Final = fence.fenced([fence.element("recalled", "")])
"""The frame around the lines in a message."""

TITLE: Final = "Recalled:"
"""The heading of the lines in a text."""


def lines(
    chunks: Sequence[Chunk], time_zone: str | tzinfo | None = None, conversation: ConversationKey | None = None
) -> list[str]:
    """Render chunks as lines: a date, and below it who said what.

    Args:
        chunks: The chunks, in any order.
        time_zone: The reader's time zone, for the dates; UTC by default.
        conversation: The reader's conversation: a line from another one names it, because its numbers differ.

    Returns:
        The lines in chronological order. Only the first line of a chunk is not indented.
    """
    there = zone(time_zone)
    return under_days((day(each, there), line(each, conversation, there)) for each in in_order(chunks))


def in_order(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return chunks in the order in which they were said."""
    return sorted(chunks, key=lambda each: (each.said_at, each.place, each.part))


def under_days(dated: Iterable[tuple[str, str]]) -> list[str]:
    """Return lines with their days above them, each day once.

    Args:
        dated: The day and the line of each chunk, in chronological order.
    """
    made = []
    for date, said in groupby(dated, key=itemgetter(0)):
        made += [date, *(each for _, each in said)]
    return made


def day(chunk: Chunk, time_zone: tzinfo) -> str:
    """Return the line above the chunks of a day, such as `2026-08-14:`."""
    return f"{chunk.said_at.astimezone(time_zone).date().isoformat()}:"


def line(chunk: Chunk, conversation: ConversationKey | None = None, time_zone: tzinfo = UTC) -> str:
    """Render a chunk as a line, such as `User (Maya) [12]: I am allergic to nuts`, or `User [12 of "studio"]: …`.

    A chunk of another agent names it: `User [12 of "studio" with bookkeeper]: …`.

    What was said several times says so, and what no longer holds says what holds now.

    Args:
        chunk: The chunk.
        conversation: The reader's conversation, if it has one.
        time_zone: The reader's time zone, for dates.
    """
    is_elsewhere = conversation is not None and (chunk.thread_id, chunk.agent_id) != (
        conversation.thread_id,
        conversation.agent_id,
    )
    of = f" of {json.dumps(spell_out(chunk.thread_id), ensure_ascii=False)}" if is_elsewhere else ""
    if conversation is not None and chunk.agent_id != conversation.agent_id:
        of += f" with {spell_out(chunk.agent_id)}"
    speaker = content.speaker(content.LABELS[chunk.role], chunk.speaker)
    noted = "".join(f" ({note})" for note in notes(chunk, time_zone))
    return f"{speaker} [{chunk.from_sequence}{of}]: {content.indented(chunk.content)}{noted}"


def notes(chunk: Chunk, time_zone: tzinfo) -> list[str]:
    """Return what a reader must know beside the words of a chunk: how often they were said, and what holds now.

    Args:
        chunk: The chunk.
        time_zone: The reader's time zone.
    """
    made = []
    if chunk.repeats is not None:
        first, last = (
            each.astimezone(time_zone).date().isoformat() for each in (chunk.repeats.first, chunk.repeats.last)
        )
        made.append(f"said {chunk.repeats.count} times, {first} to {last}")
    for each in chunk.newer:
        since = each.superseded_at.astimezone(time_zone).date().isoformat()
        place = "" if each.sequence is None else f" [{each.sequence}]"
        made.append(f"no longer holds; since {since}{place}: {content.indented(each.text)}")
    return made


def message(dated: Sequence[str]) -> BaseMessage:
    """Return the lines of chunks, which are escaped, as a fenced message that goes before the user's."""
    return fence.message(fence.fenced([fence.element_of_lines("recalled", dated)]), MESSAGE_ID)
