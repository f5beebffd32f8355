"""Index due conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.operations import pages
from langchain_supabase_memory.operations.recall import indexing, summaries
from langchain_supabase_memory.values import IndexResult, Scope

if TYPE_CHECKING:
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.settings import ChunkPolicy
    from langchain_supabase_memory.values import ConversationKey


def index_due(
    user_id: str | None, chunking: ChunkPolicy, *, messages: int = 0, embedder: str | None = None, tone: bool = False
) -> Flow[dict[ConversationKey, IndexResult]]:
    """Index every conversation that has too many unindexed messages or an unindexed newest summary.

    Call it from a scheduled task if the policy's mode is `background`. Any number of processes may call it at once:
    one of them wins each batch, and the others change nothing.

    Args:
        user_id: Only this user's conversations; by default the memory's user.
        chunking: How messages become chunks.
        messages: How many unindexed messages to tolerate.
        embedder: The embedder's name; `None` without one.
        tone: Whether to have the tone of the users' words rated, too.

    Returns:
        The result for each conversation that was due.
    """
    done = {}
    for key in (yield from indexing.index_due(user_id=user_id, messages=messages, vectors=embedder is not None)):
        made = indexing.index_messages(key, chunking, embedder=embedder, tone=tone)
        done[key] = yield from pages.isolate_failure(key, made, lambda word: IndexResult(-1, failed=word))
    return (yield from summaries.index_summaries_due(done, Scope(user_id), embedder=embedder))
