"""A job: all due duties of one conversation. A duty that fails does not block the others."""

from __future__ import annotations

import asyncio
import inspect
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.adapters.summarizer import asking
from langchain_supabase_memory.adapters.telemetry.alerts import is_poor
from langchain_supabase_memory.adapters.telemetry.logs import conversation_fields, error_fields
from langchain_supabase_memory.operations import summaries, topics
from langchain_supabase_memory.operations.boards.revise import revise_board
from langchain_supabase_memory.operations.recall import indexing
from langchain_supabase_memory.operations.recall import summaries as summary_recall
from langchain_supabase_memory.values import Scope
from langchain_supabase_memory.worker.model_answer_cache import with_cached_answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_supabase_memory.adapters.summarizer import SummaryModel
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.long_term.memories import LongTerm
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.work import Lease
    from langchain_supabase_memory.values import BoardResult, ConversationKey, IndexResult, SummaryResult
    from langchain_supabase_memory.worker.policy import JobKind

_logger = logging.getLogger(__name__)

_TRIES: Final = 3
"""How often a duty is tried if another worker commits first."""


@dataclass
class JobResult:
    """The result of one conversation's job.

    Attributes:
        index: The result of indexing.
        summary: The result of summarizing.
        board: The result of revising the board.
        promoted: How many items of the user's profile were promoted to long-term memory.
        failed: The failed duties, each with a one-word reason.
        conflict: Whether another worker committed first, so that the conversation must be processed again.
        poor: The quality of a summary below the policy's minimum; `None` if there is none.
    """

    index: IndexResult | None = None
    summary: SummaryResult | None = None
    board: BoardResult | None = None
    promoted: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    conflict: bool = False
    poor: float | None = None

    @property
    def error(self) -> str | None:
        """The reasons of the failures; `None` without a failure."""
        return ", ".join(self.failed.values())[:200] or None


async def run_job(
    memory: SupabaseMemory,
    lease: Lease,
    duties: tuple[JobKind, ...],
    model: SummaryModel | None,
    long_term: Callable[[str], LongTerm] | None,
) -> JobResult:
    """Do the due work of a conversation.

    Args:
        memory: A memory with server permissions.
        lease: The conversation's lease.
        duties: The duties to perform, except those that the lease excludes.
        model: The summarizer, behind its rate limits; without one, nothing is summarized.
        long_term: Returns the long-term memory of a user.

    Returns:
        The result. It lists failed duties instead of raising; they are retried later.
    """
    key = lease.key
    done = JobResult()
    duties = tuple(duty for duty in duties if duty not in lease.left_out)
    # Concurrent, so that a failing embedder does not delay the summarizer, and vice versa.
    sides = await asyncio.gather(
        _index(memory, lease, duties, done), _summarize(memory, lease, duties, model, done), return_exceptions=True
    )
    for raised in sides:
        if raised is not None:
            raise raised
    if long_term is not None and "promote" in duties and key.user_id is not None and not key.is_in_space:
        await _promote(memory, key, done, long_term)
    return done


async def _index(memory: SupabaseMemory, lease: Lease, duties: tuple[JobKind, ...], done: JobResult) -> None:
    if "index" not in duties:
        return
    flow = partial(
        indexing.index_messages,
        lease.key,
        memory._services.config.chunking,
        embedder=memory._services.embedder_name,
        respect_backoff=False,
        tone=memory._services.rates_tone,
    )
    done.index = await _attempt(memory, lease, done, "index", flow, None)
    if done.index is not None and done.index.chunks:
        await _assign_topics(memory, lease.key)


async def _assign_topics(memory: SupabaseMemory, key: ConversationKey) -> None:
    """Find topics for what was indexed now. What fails is left to the chore, and no reason to repeat the job."""
    try:
        await memory._services.arun(topics.assign(key, embedder=memory._services.embedder_name))
    except Exception as error:
        level = memory._services.causes.level("Topics could not be found", error, logging.WARNING, repeats=True)
        _logger.log(level, "Topics could not be found", extra={**conversation_fields(key), **error_fields(error)})


async def _summarize(
    memory: SupabaseMemory, lease: Lease, duties: tuple[JobKind, ...], model: SummaryModel | None, done: JobResult
) -> None:
    key = lease.key
    if model is not None and "summarize" in duties:
        done.summary = await _attempt(
            memory,
            lease,
            done,
            "summarize",
            lambda: summaries.summarize(
                key,
                memory._services.summary_policy(None),
                summarizer=model.name,
                respect_backoff=False,
                if_due=not lease.requested,
            ),
            model,
        )
    if model is not None and "board" in duties:
        policy, only_due = memory._services.config.board_policy, not lease.requested
        done.board = await _attempt(
            memory,
            lease,
            done,
            "board",
            lambda: revise_board(
                key,
                policy,
                summarizer=model.name,
                if_due=only_due,
                time_zone=memory._services.config.time_zone,
                profile=memory._services.config.profile,
            ),
            model,
        )
    scores = [each.quality for each in (done.summary, done.board) if each is not None and each.quality is not None]
    if scores and is_poor(min(scores), memory._services.config.policy.min_quality):
        done.poor = min(scores)
    # A summary of an earlier attempt may have no vector yet.
    is_new = done.summary is not None and (bool(done.summary.segments) or lease.attempts > 1)
    if memory._services.embeddings is not None and "index" in duties and is_new:
        await _embed_summaries(memory, key, done)


async def _attempt(
    memory: SupabaseMemory,
    lease: Lease,
    done: JobResult,
    duty: JobKind,
    flow: Callable[[], Flow[Any]],
    model: SummaryModel | None,
) -> Any:
    """Perform one duty, and repeat it if another worker committed first. An error does not stop the other duties."""
    result: Any = None
    for _ in range(_TRIES):
        try:
            result = await memory._services.arun(
                asking(flow() if model is None else with_cached_answers(flow(), lease, model.name), model)
            )
        except Exception as error:
            _failed(memory, lease.key, done, duty, error)
            return result
        if result.failed is not None:
            done.failed[duty] = result.failed
        if not result.conflict:
            return result
    done.conflict = True
    return result


async def _embed_summaries(memory: SupabaseMemory, key: ConversationKey, done: JobResult) -> None:
    assert memory._services.embeddings is not None
    scope = Scope(key.user_id, key.agent_id, key.thread_id)
    try:
        await memory._services.arun(summary_recall.index_summaries(scope, embedder=memory._services.embeddings.name))
    except Exception as error:
        _failed(memory, key, done, "index", error)


async def _promote(
    memory: SupabaseMemory, key: ConversationKey, done: JobResult, long_term: Callable[[str], LongTerm]
) -> None:
    # Its package brings vector stores, and NumPy.
    from langchain_supabase_memory.long_term.promotion import aforget_source, apromote

    assert key.user_id is not None
    try:
        found = long_term(key.user_id)
        target: LongTerm = await found if inspect.isawaitable(found) else found
        # First, so that of two values of the same the old one is gone before the new one is there.
        await aforget_source(memory.for_user(key.user_id), target)
        done.promoted = len((await apromote(memory.for_user(key.user_id), target)).stored)
    except Exception as error:  # a long-term memory can raise any error
        _failed(memory, key, done, "promote", error)


def _failed(memory: SupabaseMemory, key: ConversationKey, done: JobResult, duty: JobKind, error: Exception) -> None:
    done.failed.setdefault(duty, type(error).__name__)
    level = memory._services.causes.level(f"The duty {duty} failed", error, logging.WARNING, repeats=True)
    _logger.log(level, "A duty failed", extra={**conversation_fields(key), **error_fields(error), "memory_duty": duty})
