"""Pass a streamed answer through, and store it as one message when it is complete."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, message_chunk_to_message

from langchain_supabase_memory import effects
from langchain_supabase_memory.agents.run.fail_open import FailOpen, OnError
from langchain_supabase_memory.agents.run.graph_state import store
from langchain_supabase_memory.checks import boolean, wrong_type
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.language.messages import codec, content
from langchain_supabase_memory.memory.require_memory import require_memory

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

    from langchain_supabase_memory.effects import Effects
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.values import ConversationKey

Delta = TypeVar("Delta", str, AIMessageChunk)
"""A piece of an answer: text, or a chunk of a model's stream."""


def record_stream(
    memory: SupabaseMemory,
    query: str | HumanMessage,
    deltas: Iterable[Delta],
    *,
    thread_id: str,
    agent_id: str | None = None,
    partial_answers: bool = False,
    on_error: OnError = "setup",
    deadline_seconds: float = 10.0,
) -> Generator[Delta, None, None]:
    """Pass a streamed answer through, and store the turn when it is complete.

    The user's query is stored before the first piece. If the stream fails or is abandoned, the turn stays incomplete,
    and no part of the answer is stored unless `partial_answers` is set.

    Args:
        memory: The memory that stores the conversation.
        query: The user's message.
        deltas: The pieces of the answer.
        thread_id: The conversation's thread.
        agent_id: The agent; the memory's by default.
        partial_answers: Whether to store the received part, marked as partial, if the stream fails or is abandoned;
            see `SupabaseMemoryMiddleware`.
        on_error: What happens when storing fails; the messages wait in the outbox. See `fail_open.OnError`.
        deadline_seconds: The maximum time to store, in seconds, before the answer and after it.

    Yields:
        The pieces, as they arrive.

    Raises:
        ConfigurationError: An argument or a piece is of another type.
    """
    key = require_memory(memory)._services.key(thread_id, None, agent_id)
    boolean("partial_answers", partial_answers)
    turn = _Turn(key, FailOpen(memory, None, on_error, deadline_seconds))
    asked = _question(query)
    if not isinstance(deltas, Iterable):
        raise wrong_type("deltas", "an iterable", deltas, f"{_PIECES} arecord_stream takes an async one.")
    effects.run(turn.store_query(asked))
    try:
        for delta in deltas:
            turn.take(delta)
            yield delta
    except BaseException:
        if partial_answers:
            with suppress(SupabaseMemoryError):
                effects.run(turn.store_partial())
        raise
    effects.run(turn.store_answer(asked))


async def arecord_stream(
    memory: SupabaseMemory,
    query: str | HumanMessage,
    deltas: AsyncIterable[Delta],
    *,
    thread_id: str,
    agent_id: str | None = None,
    partial_answers: bool = False,
    on_error: OnError = "setup",
    deadline_seconds: float = 10.0,
) -> AsyncGenerator[Delta, None]:
    """The async twin of `record_stream`, for an async stream."""
    key = require_memory(memory)._services.key(thread_id, None, agent_id)
    boolean("partial_answers", partial_answers)
    turn = _Turn(key, FailOpen(memory, None, on_error, deadline_seconds))
    asked = _question(query)
    if not isinstance(deltas, AsyncIterable):
        raise wrong_type("deltas", "an async iterable", deltas, f"{_PIECES} record_stream takes a sync one.")
    await effects.arun(turn.store_query(asked))
    try:
        async for delta in deltas:
            turn.take(delta)
            yield delta
    except BaseException:
        if partial_answers:
            with suppress(SupabaseMemoryError):
                await effects.arun(turn.store_partial())
        raise
    await effects.arun(turn.store_answer(asked))


_PIECES: Final = 'Pass model.stream(...), or the first of each pair of graph.stream(..., stream_mode="messages").'
"""What a stream of pieces is made by."""


@dataclass(frozen=True)
class _Turn:
    """A turn whose answer is streamed: the conversation, the error handler, and the pieces so far."""

    key: ConversationKey
    guard: FailOpen
    pieces: list[str | AIMessageChunk] = field(default_factory=list, repr=False)

    def take(self, piece: object) -> None:
        """Add a piece: a text, a chunk, or the whole answer of a model that does not stream.

        Raises:
            ConfigurationError: It is none of these, such as a pair of a graph's stream.
        """
        if isinstance(piece, (str, AIMessageChunk)):
            self.pieces.append(piece)
        elif isinstance(piece, AIMessage):
            self.pieces.append(AIMessageChunk(**piece.model_dump(exclude={"type"})))
        else:
            raise wrong_type("A piece of deltas", "a text or an AIMessageChunk", piece, _PIECES)

    def store_query(self, messages: list[BaseMessage]) -> Effects[None]:
        """Store the user's message."""
        yield from store(self.guard.begin(self.key, messages), self.key, messages)

    def store_answer(self, messages: list[BaseMessage]) -> Effects[None]:
        """Store the answer to the user's message as one message."""
        yield from store(self.guard.begin(self.key, messages), self.key, _merge(self.pieces))

    def store_partial(self) -> Effects[None]:
        """Store the received part of the answer, marked as partial."""
        for whole in _merge(self.pieces):
            if whole.text.strip():
                yield from store(
                    self.guard.begin(self.key, []), self.key, [content.partial(str(whole.text), str(whole.id))]
                )


def _question(query: str | HumanMessage) -> list[BaseMessage]:
    """Return the user's message, with an id."""
    if not isinstance(query, (str, HumanMessage)):
        raise wrong_type("query", "a text or a HumanMessage", query, "Pass the user's words.")
    asked: list[BaseMessage] = [HumanMessage(query) if isinstance(query, str) else query]
    codec.ensure_ids(asked)
    return asked


def _merge(pieces: Sequence[str | AIMessageChunk]) -> list[BaseMessage]:
    """Merge all pieces into one message; empty if nothing arrived."""
    chunks = [AIMessageChunk(content=piece) if isinstance(piece, str) else piece for piece in pieces]
    if not chunks:
        return []
    whole: AIMessageChunk = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    message = message_chunk_to_message(whole)
    if not isinstance(message, AIMessage):
        return []
    codec.ensure_ids([message])
    return [message]
