"""An answer that is streamed: passed on piece by piece, and stored once, as one message, when it is complete."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, message_chunk_to_message

from langchain_supabase_memory import effects
from langchain_supabase_memory.agents.run.fail_open import FailOpen, OnError
from langchain_supabase_memory.agents.run.graph_state import store
from langchain_supabase_memory.checks import boolean
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.language.messages import codec, content
from langchain_supabase_memory.memory.require_memory import require_memory

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Sequence

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
    """Pass a streamed answer on, and store the turn when it is complete.

    The user's query is stored before the first piece. If the stream fails or is abandoned, the turn stays incomplete,
    and no part of an answer is stored unless `partial_answers` says so.

    Args:
        memory: Where the conversation is.
        query: What the user said.
        deltas: The pieces of the answer.
        thread_id: The conversation's thread.
        agent_id: The agent; the memory's by default.
        partial_answers: Whether what came is stored if the stream fails or is abandoned, marked as partial; see
            `SupabaseMemoryMiddleware`.
        on_error: What happens when storing fails; what was said waits in the outbox. See `guard.OnError`.
        deadline_seconds: How long storing may take, in seconds, before the answer and after it.

    Yields:
        The pieces, as they come.
    """
    key = require_memory(memory)._services.key(thread_id, None, agent_id)
    boolean("partial_answers", partial_answers)
    turn = _Turn(key, FailOpen(memory, None, on_error, deadline_seconds))
    asked = _question(query)
    effects.run(turn.store_query(asked))
    try:
        for delta in deltas:
            turn.pieces.append(delta)
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
    """The async twin of `record_stream`, over an async stream."""
    key = require_memory(memory)._services.key(thread_id, None, agent_id)
    boolean("partial_answers", partial_answers)
    turn = _Turn(key, FailOpen(memory, None, on_error, deadline_seconds))
    asked = _question(query)
    await effects.arun(turn.store_query(asked))
    try:
        async for delta in deltas:
            turn.pieces.append(delta)
            yield delta
    except BaseException:
        if partial_answers:
            with suppress(SupabaseMemoryError):
                await effects.arun(turn.store_partial())
        raise
    await effects.arun(turn.store_answer(asked))


@dataclass(frozen=True)
class _Turn:
    """A turn whose answer is streamed: the conversation, what is done about failures, the pieces so far."""

    key: ConversationKey
    guard: FailOpen
    pieces: list[str | AIMessageChunk] = field(default_factory=list, repr=False)

    def store_query(self, messages: list[BaseMessage]) -> Effects[None]:
        """Store what the user said."""
        yield from store(self.guard.begin(self.key, messages), self.key, messages)

    def store_answer(self, messages: list[BaseMessage]) -> Effects[None]:
        """Store the answer to what the user said as one message."""
        yield from store(self.guard.begin(self.key, messages), self.key, _merge(self.pieces))

    def store_partial(self) -> Effects[None]:
        """Store what came of the answer, marked as partial."""
        for whole in _merge(self.pieces):
            if whole.text.strip():
                yield from store(
                    self.guard.begin(self.key, []), self.key, [content.partial(str(whole.text), str(whole.id))]
                )


def _question(query: str | HumanMessage) -> list[BaseMessage]:
    """What the user said, with an id."""
    asked: list[BaseMessage] = [HumanMessage(query) if isinstance(query, str) else query]
    codec.ensure_ids(asked)
    return asked


def _merge(pieces: Sequence[str | AIMessageChunk]) -> list[BaseMessage]:
    """One message of all pieces; none, if nothing came."""
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
