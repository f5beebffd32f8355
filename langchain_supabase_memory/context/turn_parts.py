"""What belongs to one turn of a prompt: the board, recalled passages, and a turn that the user points at.

They stand in the message of the user's question, so that the next turn does not carry them and roles alternate. They
are chosen once for a turn: in its tool loop, each further prompt only appends.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage

from langchain_supabase_memory.context.board import BoardPart
from langchain_supabase_memory.context.manifest import REFERENCE_ID
from langchain_supabase_memory.context.recall_part import RecallPart
from langchain_supabase_memory.language.messages import content

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.token_meter import Meter, Sizes
    from langchain_supabase_memory.values import Chunk, ConversationKey

Position = tuple[int, int]
"""The revision of a conversation, which counts edits and deletions, and its last message that has expired."""


@dataclass(frozen=True)
class TurnParts:
    """The parts that an earlier prompt of the same turn showed.

    Attributes:
        board: The part of the board.
        recalled: The recalled passages.
        reference: The message with the turn that the user points at; `None` if there is none.
        position: The state of the conversation in which they were chosen.
    """

    board: BoardPart = field(repr=False)
    recalled: RecallPart = field(repr=False)
    reference: BaseMessage | None = field(repr=False)
    position: Position

    def is_current(self, document: Mapping[str, Any]) -> bool:
        """Return whether nothing was edited, forgotten or has expired since; then they may be shown again.

        Args:
            document: The answer of `memory_context`.
        """
        return position(document) == self.position

    def has_other_conversations(self, key: ConversationKey) -> bool:
        """Return whether a passage is from another conversation, which may have been changed meanwhile."""
        return any(not _is_of(chunk, key) for chunk in self.recalled.chunks)

    def without_lost(self, chunks: Sequence[Chunk], key: ConversationKey) -> TurnParts:
        """Return the parts without passages of other conversations that are no longer found.

        Args:
            chunks: What the same question finds now.
            key: The conversation.
        """
        known = {chunk.id for chunk in chunks}
        kept = [chunk for chunk in self.recalled.chunks if chunk.id in known or _is_of(chunk, key)]
        return replace(self, recalled=replace(self.recalled, chunks=kept))

    def forms(self, meter: Meter) -> Sizes:
        """Return the sizes of the board and the passages; the reference counts with the current turn."""
        return self.board.forms(meter) + self.recalled.forms(meter)


def position(document: Mapping[str, Any]) -> Position:
    """Return the position of a conversation, from the answer of `memory_context`."""
    return document.get("revision", 0), document.get("expired_through", -1)


def with_parts(turn: Sequence[BaseMessage], parts: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the current turn with parts in its question's message, or before it if it does not begin with a question.

    Args:
        turn: The current turn, after the message of a referenced turn if there is one.
        parts: The messages of the other parts. No message changes.
    """
    referenced = list(takewhile(lambda each: each.id == REFERENCE_ID, turn))
    rest, parts = turn[len(referenced) :], [*parts, *referenced]
    if not parts or not rest or not isinstance(rest[0], HumanMessage) or not content.is_conversation(rest[0]):
        return [*parts, *rest]
    return [content.with_prefix(rest[0], "\n\n".join(str(each.text) for each in parts)), *rest[1:]]


def _is_of(chunk: Chunk, key: ConversationKey) -> bool:
    return (chunk.thread_id, chunk.agent_id) == (key.thread_id, key.agent_id)
