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
from langchain_supabase_memory.context.manifest import POINTED_AT, is_reference
from langchain_supabase_memory.context.profile_part import ProfilePart
from langchain_supabase_memory.context.recall_part import RecallPart
from langchain_supabase_memory.context.shared_part import SharedPart
from langchain_supabase_memory.language.messages import content, fence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.token_meter import Meter, Sizes
    from langchain_supabase_memory.values import Chunk, ConversationKey


@dataclass(frozen=True)
class Position:
    """The state of a conversation in which a prompt was made.

    Attributes:
        conversation: Its id, which is another one if it was forgotten and begun anew; `None` if there is none.
        revision: How often messages were edited or forgotten.
        expired_through: The last message that has expired; -1 if none has.
    """

    conversation: str | None = None
    revision: int = 0
    expired_through: int = -1

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Position:
        """Return the position in the answer of `memory_context`."""
        return cls(document.get("conversation_id"), document.get("revision", 0), document.get("expired_through", -1))


NOWHERE = Position()
"""The position where there is no conversation."""


@dataclass(frozen=True)
class TurnParts:
    """The parts that an earlier prompt of the same turn showed.

    Attributes:
        key: The conversation.
        board: The part of the board.
        shared: The part of the boards of spaces and other agents.
        profile: The part of the user's profile.
        recalled: The recalled passages.
        reference: The message with the turn that the user points at; `None` if there is none.
        position: The state of the conversation in which they were chosen.
        takes_room: Whether the passages took room from the history.
    """

    key: ConversationKey
    board: BoardPart = field(repr=False)
    shared: SharedPart = field(repr=False)
    profile: ProfilePart = field(repr=False)
    recalled: RecallPart = field(repr=False)
    reference: BaseMessage | None = field(repr=False)
    position: Position
    takes_room: bool = False

    def is_current(self, position: Position) -> bool:
        """Return whether nothing was edited or forgotten since, and no passage has expired; the board may have changed.

        Args:
            position: The state of the conversation now.
        """
        is_same = replace(position, expired_through=self.position.expired_through) == self.position
        return is_same and position.expired_through < min(self._sequences(), default=position.expired_through + 1)

    @property
    def has_other_conversations(self) -> bool:
        """Whether a passage is from another conversation, which may have been changed meanwhile."""
        return any(not self._is_own(chunk) for chunk in self.recalled.chunks)

    def without_lost(self, chunks: Sequence[Chunk]) -> TurnParts:
        """Return the parts without passages of other conversations that are no longer found.

        Args:
            chunks: What the same question finds now.
        """
        known = {chunk.id for chunk in chunks}
        kept = [chunk for chunk in self.recalled.chunks if chunk.id in known or self._is_own(chunk)]
        return replace(self, recalled=replace(self.recalled, chunks=kept))

    def forms(self, meter: Meter) -> Sizes:
        """Return the sizes of the board and the passages; the rest is weighed by itself."""
        return self.board.forms(meter) + self.recalled.forms(meter)

    def _sequences(self) -> Iterator[int]:
        """Yield the first messages of this conversation that the passages and the reference have words of."""
        yield from (chunk.from_sequence for chunk in self.recalled.chunks if self._is_own(chunk))
        if self.reference is not None:
            yield self.reference.response_metadata[POINTED_AT][0]

    def _is_own(self, chunk: Chunk) -> bool:
        return (chunk.thread_id, chunk.agent_id) == (self.key.thread_id, self.key.agent_id)


def with_parts(turn: Sequence[BaseMessage], parts: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the current turn with parts in its question's message, or before it if it does not begin with a question.

    Args:
        turn: The current turn, after the message of a referenced turn if there is one.
        parts: The messages of the other parts. No message changes.
    """
    referenced = list(takewhile(is_reference, turn))
    rest, parts = turn[len(referenced) :], [*parts, *referenced]
    if not parts or not rest or not isinstance(rest[0], HumanMessage) or not content.is_conversation(rest[0]):
        return [*parts, *rest]
    return [fence.with_prefix(rest[0], "\n\n".join(str(each.text) for each in parts)), *rest[1:]]
