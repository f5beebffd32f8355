"""The complete summary of a conversation, with its topics, key facts and vector."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import EmbeddingError
from langchain_supabase_memory.operations.arguments import conversation_ids
from langchain_supabase_memory.operations.boards.board import read_board
from langchain_supabase_memory.operations.recall import summaries as summary_recall
from langchain_supabase_memory.operations.summaries.hierarchical import newest, summarize_levels
from langchain_supabase_memory.values import Scope, Segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.operations.boards.board import BoardItem
    from langchain_supabase_memory.settings import SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey


@dataclass(frozen=True)
class CompleteSummary:
    """The summary of a whole conversation.

    Attributes:
        summary: The summary, with the range that it covers, its topics and key facts; `None` if there is none.
        levels: How many levels it has; 1 if one answer was enough.
        embedded: Whether it has a vector of the current embedder.
        model_calls: How often the model was called.
        failed: Why it stopped early, in one word; finished parts stay.
        conflict: Whether another process was faster, or a message was edited or forgotten meanwhile.
        tokens: The approximate tokens of each summary that was written.
    """

    summary: Segment | None
    levels: int = 0
    embedded: bool = False
    model_calls: int = 0
    failed: str | None = None
    conflict: bool = False
    tokens: list[int] = field(default_factory=list)


def complete_summary(
    key: ConversationKey, policy: SummaryPolicy, *, summarizer: str | None = None, embedder: str | None = None
) -> Flow[CompleteSummary]:
    """Bring the complete summary of a conversation up to its newest message.

    Its topics and key facts are those of the board, each fact with its quote, so revise the board first.

    Args:
        key: The conversation.
        policy: The summary policy, with every number set.
        summarizer: The name that is recorded as the author.
        embedder: The embedder's name; without one the summary gets no vector, and keyword search finds it.

    Raises:
        SupabaseMemoryError: The database refused or could not be reached.
    """
    made = yield from summarize_levels(key, policy, model=summarizer)
    top = yield from newest(key)
    if top is None or made.failed is not None or made.conflict:
        return CompleteSummary(
            top, top.level if top else 0, False, made.model_calls, made.failed, made.conflict, made.tokens
        )
    known = yield from read_board(key)
    yield from call(
        "memory_describe_summary",
        {
            **conversation_ids(key),
            "p_id": top.id,
            "p_topics": [each.text for each in _items_of_summary(known.topics, top)],
            "p_key_facts": [
                {"text": each.text, "quote": each.quote, "message_ids": each.message_ids}
                for each in _items_of_summary(known.facts, top)
            ],
            "p_revision": known.revision,
        },
    )
    failed: str | None = None
    if embedder is not None:
        try:
            yield from summary_recall.index_summaries(
                Scope(key.user_id, key.agent_id, key.thread_id), embedder=embedder
            )
        except EmbeddingError as error:
            failed = type(error).__name__
    described = yield from newest(key)
    embedded = embedder is not None and failed is None
    return CompleteSummary(described, top.level, embedded, made.model_calls, failed, tokens=made.tokens)


def _items_of_summary(items: Sequence[BoardItem], top: Segment) -> list[BoardItem]:
    """Return the items that come from messages that the summary covers, so that they are forgotten with it."""
    return [each for each in items if not each.sequences or each.sequences[0] <= top.to_sequence]
