"""An answer that is streamed: passed on piece by piece, and stored once, as one message, when it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, message_chunk_to_message

from langchain_supabase_memory.graph import store, storing
from langchain_supabase_memory.guard import Guard, OnError
from langchain_supabase_memory.memory import opened
from langchain_supabase_memory.messages import codec

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable

    from langchain_supabase_memory.memory import SupabaseMemory

Delta = TypeVar("Delta", str, AIMessageChunk)
"""A piece of an answer: text, or a chunk of a model's stream."""


def record_stream(
    memory: SupabaseMemory,
    query: str | HumanMessage,
    deltas: Iterable[Delta],
    *,
    thread_id: str,
    user_id: str | None = None,
    agent_id: str | None = None,
    on_error: OnError = "setup",
    deadline_seconds: float = 10.0,
) -> Generator[Delta, None, None]:
    """Pass a streamed answer on, and store the turn when it is complete.

    The user's query is stored before the first piece. If the stream fails or is abandoned, the turn stays incomplete:
    no half of an answer is stored.

    Args:
        memory: Where the conversation is.
        query: What the user said.
        deltas: The pieces of the answer.
        thread_id: The conversation's thread.
        user_id: The owner; the memory's by default.
        agent_id: The agent; the memory's by default.
        on_error: What happens when storing fails; what was said waits in the outbox. See `guard.OnError`.
        deadline_seconds: How long storing may take, in seconds.

    Yields:
        The pieces, as they come.
    """
    key = opened(memory).key(thread_id, user_id, agent_id)
    guard = Guard(memory, None, on_error, deadline_seconds)
    asked: list[BaseMessage] = [HumanMessage(query) if isinstance(query, str) else query]
    codec.ensure_ids(asked)
    guard.run(store(memory, key, asked, replace=False), storing(asked), key)
    pieces: list[Delta] = []
    for delta in deltas:
        pieces.append(delta)
        yield delta
    answer = _whole(pieces)
    guard.run(store(memory, key, answer, replace=False), storing(answer), key)


async def arecord_stream(
    memory: SupabaseMemory,
    query: str | HumanMessage,
    deltas: AsyncIterable[Delta],
    *,
    thread_id: str,
    user_id: str | None = None,
    agent_id: str | None = None,
    on_error: OnError = "setup",
    deadline_seconds: float = 10.0,
) -> AsyncGenerator[Delta, None]:
    """The async twin of `record_stream`."""
    key = opened(memory).key(thread_id, user_id, agent_id)
    guard = Guard(memory, None, on_error, deadline_seconds)
    asked: list[BaseMessage] = [HumanMessage(query) if isinstance(query, str) else query]
    codec.ensure_ids(asked)
    await guard.arun(store(memory, key, asked, replace=False), storing(asked), key)
    pieces: list[Delta] = []
    async for delta in deltas:
        pieces.append(delta)
        yield delta
    answer = _whole(pieces)
    await guard.arun(store(memory, key, answer, replace=False), storing(answer), key)


def _whole(pieces: list[Delta]) -> list[BaseMessage]:
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
