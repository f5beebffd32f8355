"""What there is to choose from for a pack: the stored messages of a conversation, its summaries, the current turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import ToolMessage

from langchain_supabase_memory.context.decoded_entries import DECODED
from langchain_supabase_memory.context.media import limit_media
from langchain_supabase_memory.context.reasons import EXPIRES_SOON, SUPERSEDED, UNREADABLE
from langchain_supabase_memory.language.messages import attribution, codec, content
from langchain_supabase_memory.language.messages.blocks import Block, PromptEntry, blocks
from langchain_supabase_memory.operations.summaries import read_segment
from langchain_supabase_memory.values import Segment

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.settings import Retention


_STEP_BY_AGE: Final = 16
"""As many messages count as kept where only their age limits them."""


@dataclass(frozen=True)
class History:
    """What there is to choose from.

    Attributes:
        entries: The newest messages, in order, without the current turn.
        segments: The summaries to choose from, in order; the first may be none (everything fits verbatim).
        unread_from: The first message after the first choice that was not read; `None` if all were.
        question: The user's message that the newest block answers, where it lies before `entries`.
        current: The current turn: the user's message, and what followed it so far.
        superseded: Sequence and reason of stored messages that do not belong to this history.
        undecodable: Rows of which no message could be made, and that are not known as such yet.
        recallable: The last message of those from which what is asked for is recalled; -1 where nothing is.
        max_media: The most images and files of what is shown; `None` for no limit.
        characters: Characters of all stored messages since the newest segment, without the current turn.
    """

    entries: Sequence[PromptEntry] = ()
    segments: Sequence[Segment | None] = (None,)
    unread_from: int | None = None
    question: PromptEntry | None = None
    current: Sequence[PromptEntry] = ()
    superseded: Mapping[int, str] = field(default_factory=dict)
    undecodable: Sequence[Mapping[str, Any]] = ()
    recallable: int = -1
    max_media: int | None = None
    characters: int = 0

    @cached_property
    def truncated(self) -> tuple[list[Block], list[tuple[int, str]], int]:
        """Its blocks, what is left out of them and why, and the place at which the current turn begins.

        Results at the beginning of what was read belong to calls that were not, and are in no block.
        """
        rest = self.entries if self.unread_from is None else list(dropwhile(_is_result, self.entries))
        before = [*([] if self.question is None or self.current else [self.question]), *rest]
        return *blocks([*before, *self.current]), len(before)

    @cached_property
    def limited(self) -> list[Block]:
        """Its blocks, with a name in the place of each image and file beyond the limit."""
        made, _, start = self.truncated
        return limit_media(made, start, self.max_media)


def read_history(
    document: Mapping[str, Any],
    current: Sequence[PromptEntry] = (),
    branch: Sequence[BaseMessage] | None = None,
    pending: Sequence[BaseMessage] = (),
    *,
    recalls: bool = False,
    retention: Retention | None = None,
    is_in_space: bool = False,
) -> History:
    """Return what there is to choose from; the entries of the current turn get their numbers, where they are stored.

    Args:
        document: The answer of `memory_context`.
        current: The current turn.
        branch: The history as a graph's state has it.
        pending: Messages that could not be stored yet.
        recalls: Whether turns recall from what is not shown.
        retention: Where what expires next leaves in steps, the retention; `None` shows all that is kept.
        is_in_space: Whether a space owns the conversation: each member's message says who wrote it.
    """
    rows = document.get("messages", [])
    decoded = DECODED.decode([row["payload"] for row in rows])
    messages = [entry.message for entry in decoded]
    turn = {entry.message.id for entry in current if entry.message.id is not None}
    stored = {message.id: row["sequence"] for row, message in zip(rows, messages, strict=True)}
    authors = {message.id: row.get("author_name") for row, message in zip(rows, messages, strict=True)}
    asker = document.get("asked_by")

    def prompt_form(message: BaseMessage, label: str | None) -> BaseMessage:
        shown = content.in_prompt(message)
        return attribution.attributed(shown, label) if is_in_space else shown

    for entry in current:
        entry.sequences = (stored[entry.message.id],) if entry.message.id in stored else ()
    if is_in_space:  # what was not stored yet was written by who asks
        asked_now = [attribution.attributed(entry.message, authors.get(entry.message.id, asker)) for entry in current]
        current = [PromptEntry(shown, entry.sequences) for shown, entry in zip(asked_now, current, strict=True)]
    on_branch = {message.id: message for message in branch or ()}
    # What a run has left that names its checkpoint, and that is still to be moved out.
    left = set(document.get("superseded") or ())
    begin = _first_shown(document, retention)
    entries: list[PromptEntry] = []
    superseded: dict[int, str] = {}
    for row, stored_entry in zip(rows, decoded, strict=True):
        sequence, message = row["sequence"], stored_entry.message
        if message.id in turn:
            continue
        if message.content == content.HIDDEN and codec.unreadable_message(message) is not None:
            superseded[sequence] = UNREADABLE
            continue
        if sequence in left:
            superseded[sequence] = SUPERSEDED
            continue
        if sequence < begin:
            superseded[sequence] = EXPIRES_SOON
            continue
        held = on_branch.get(message.id)
        here = held if held is not None and content.is_conversation(held) else message
        form = prompt_form(here, row.get("author_name"))
        entry = stored_entry if form is message else PromptEntry(form)
        if form is not message and form == message:
            entry.like(stored_entry)
        entry.sequences = (sequence,)
        entries.append(entry)
    entries += [
        PromptEntry(prompt_form(message, asker))
        for message in pending
        if message.id not in stored and message.id not in turn
    ]
    segments = [read_segment(row) for row in document.get("segments", [])]
    whole = not segments or (bool(rows) and rows[0]["sequence"] <= segments[0].to_sequence)
    asked = document.get("asked")
    under_way = sum(entry.characters for entry in current if entry.sequences)
    return History(
        entries=entries,
        segments=[*([None] if whole else []), *segments],
        unread_from=document.get("unread_from"),
        question=None if asked is None else _question(asked, is_in_space),
        current=current,
        superseded=superseded,
        undecodable=codec.undecodable_rows(rows, messages),
        recallable=document.get("indexed_through", -1) if recalls else -1,
        characters=document.get("total_characters", 0) - document.get("summarized_characters", 0) - under_way,
    )


def _question(row: Mapping[str, Any], is_in_space: bool) -> PromptEntry:
    message = codec.from_payload(row["payload"])
    shown = attribution.attributed(message, row["author_name"]) if is_in_space else message
    return PromptEntry(shown, (row["sequence"],))


def _first_shown(document: Mapping[str, Any], retention: Retention | None) -> int:
    """Return the first sequence that is shown of what a retention keeps: a multiple of a step, of at most half of it.

    Where each turn pushes the oldest out, the prompt would begin elsewhere each time, and no provider could cache it.
    """
    first = document.get("first_sequence")
    if first is None or document["expired_through"] < 0:
        return 0
    # Without a retention only private conversations have such a place.
    kept = () if retention is None else (retention.max_messages, 2 * (retention.max_turns or 0))
    limits = [limit for limit in kept if limit]
    step = max(1, min(limits, default=_STEP_BY_AGE) // 2)
    has_few = document["next_sequence"] - first < 2 * step
    return int(first if has_few else -(-first // step) * step)


def _is_result(entry: PromptEntry) -> bool:
    return isinstance(entry.message, ToolMessage)
