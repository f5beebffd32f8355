"""Periodic chores for all conversations, each run by the first worker whose turn it is.

A worker of one owner runs the chores for that owner only, on its own clock, because the database's schedule has no
owners.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.adapters.summarizer import asking
from langchain_supabase_memory.adapters.telemetry.logs import conversation_fields, error_fields
from langchain_supabase_memory.errors import AccessError, EmbeddingError, SchemaError, UnavailableError
from langchain_supabase_memory.operations import topics, usage, work
from langchain_supabase_memory.operations.boards.revise import revise_board
from langchain_supabase_memory.operations.conversations import forget_expired
from langchain_supabase_memory.operations.recall import summaries as summary_recall
from langchain_supabase_memory.operations.summaries.complete import complete_summary
from langchain_supabase_memory.values import Scope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import timedelta

    from langchain_supabase_memory.adapters.summarizer import SummaryModel
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.worker.policy import WorkerPolicy

HEARTBEAT: Final = "heartbeat"
"""The chore of every worker: to report that it is alive."""

HEARTBEAT_SECONDS: Final = 30.0
"""The minimum time between two heartbeats, in seconds, for any number of workers."""

ALL_SECONDS: Final = 86_400.0
"""How often a worker of one owner counts the usage of all conversations, not only of those that changed."""

_logger = logging.getLogger(__name__)


@dataclass
class ChoreSchedule:
    """Decide whether this worker runs a chore now.

    Attributes:
        memory: A memory with server permissions. Its user is the owner of the conversations, `None` for all users.
    """

    memory: SupabaseMemory
    _next: dict[str, float] = field(default_factory=dict)
    _counted_all_at: float | None = None
    _counted_at: float = 0.0

    async def is_mine(self, name: str, seconds: float) -> bool:
        """Return whether to run a chore now; if so, it is not due again for this many seconds."""
        if self.memory.user_id is None:
            return await self.memory._services.arun(work.takes_turn(name, seconds))
        now = time.monotonic()
        if self._next.get(name, now) > now:
            return False
        self._next[name] = now + seconds
        return True

    async def count_usage(self) -> int:
        """Count usage. A worker of one owner looks at all conversations once a day, and else at those that changed."""
        now, seconds = time.monotonic(), None
        is_of_one = self.memory.user_id is not None
        if is_of_one and self._counted_all_at is not None and now - self._counted_all_at < ALL_SECONDS:
            seconds = now - self._counted_at
        counted = await self.memory._services.arun(usage.count_changed(self.memory.user_id, seconds))
        self._counted_at = now
        self._counted_all_at = now if seconds is None else self._counted_all_at
        return counted


async def run_maintenance(turns: ChoreSchedule, policy: WorkerPolicy, model: SummaryModel | None) -> None:
    """Run the due chores, and write a heartbeat.

    Args:
        turns: The schedule, with the memory.
        policy: The intervals.
        model: The summarizer, behind its rate limits.

    Raises:
        SupabaseMemoryError: The database refused the request or could not be reached; the rest runs next time.
    """
    memory = turns.memory
    await memory._services.arun(work.takes_turn(HEARTBEAT, HEARTBEAT_SECONDS))
    await _chore(turns, "rederive", policy.reconcile_every, lambda: _reconcile(memory, policy, model))
    await _chore(turns, "expire", policy.sweep_every, lambda: _expire(memory))
    if memory._services.embedder_name is not None and "index" in policy.duties:
        name = memory._services.embedder_name
        await _chore(turns, "embed", policy.reconcile_every, lambda: _embed(memory, name))
    if "index" in policy.duties:
        await _chore(turns, "topics", policy.sweep_every, lambda: _topics(memory))
    await _chore(turns, "usage", policy.sweep_every, turns.count_usage)
    if policy.archive_after is not None:
        age = policy.archive_after
        await _chore(turns, "archive", policy.sweep_every, lambda: _archive(memory, age, model))


async def _chore(turns: ChoreSchedule, name: str, interval: timedelta, do: Callable[[], Awaitable[int]]) -> None:
    if not await turns.is_mine(name, interval.total_seconds()):
        return
    try:
        count = await do()
    except (UnavailableError, AccessError, SchemaError):
        raise
    except Exception as error:  # the other chores still run
        _warn(turns.memory, "A chore was left undone", error, {"memory_chore": name})
    else:
        _logger.info("A chore is done", extra={"memory_chore": name, "memory_count": count})


def _warn(memory: SupabaseMemory, action: str, error: Exception, fields: Mapping[str, Any]) -> None:
    """Log a failure, once per ongoing cause."""
    named = f"{action} {fields.get('memory_chore', '')}"
    level = memory._services.causes.level(named, error, logging.WARNING, repeats=True)
    _logger.log(level, action, extra={**fields, **error_fields(error)})


async def _reconcile(memory: SupabaseMemory, policy: WorkerPolicy, model: SummaryModel | None) -> int:
    """Mark conversations as due only if a job would change something, so that idle ones are not checked repeatedly."""
    summary = memory._services.summary_policy(None) if model is not None and "summarize" in policy.duties else None
    board = memory._services.config.board_policy if model is not None and "board" in policy.duties else None
    index = "index" in policy.duties
    vectors = index and memory._services.embeddings is not None
    user_id = memory.user_id
    return await memory._services.arun(
        work.reconcile(summary=summary, board=board, index=index, vectors=vectors, user_id=user_id)
    )


async def _expire(memory: SupabaseMemory) -> int:
    # Not the memory's own method, which only covers the memory's user.
    gone = await memory._services.arun(forget_expired(memory._services.settings.retention, user_id=memory.user_id))
    return gone.messages + gone.chunks


async def _embed(memory: SupabaseMemory, model: str) -> int:
    """Embed summaries that have no vector because a worker was killed or the embedder was unavailable."""
    try:
        return await memory._services.arun(
            summary_recall.index_summaries(Scope(memory.user_id, None, None), embedder=model)
        )
    except EmbeddingError as error:
        _warn(memory, "Summaries could not be embedded", error, {})
        return 0


async def _topics(memory: SupabaseMemory) -> int:
    """Find topics for what another process indexed, and find topics anew where that is due."""
    done = await memory._services.arun(topics.update(memory.user_id, embedder=memory._services.embedder_name))
    return done.episodes + done.owners


async def _archive(memory: SupabaseMemory, age: timedelta, model: SummaryModel | None) -> int:
    """Completely summarize and archive idle conversations; those that fail are retried next time."""
    archived = 0
    for key in await memory._services.arun(work.idle(age.total_seconds(), memory.user_id)):
        try:
            status = await memory._services.arun(
                work.status(key.user_id, agent_id=key.agent_id, thread_id=key.thread_id)
            )
            if not status:
                continue
            if model is not None:
                board = await memory._services.arun(
                    asking(
                        revise_board(
                            key,
                            memory._services.config.board_policy,
                            summarizer=model.name,
                            time_zone=memory._services.config.time_zone,
                            profile=memory._services.config.profile,
                        ),
                        model,
                    )
                )
                within, embedder = memory._services.summary_policy(), memory._services.embedder_name
                flow = complete_summary(key, within, summarizer=model.name, embedder=embedder)
                made = await memory._services.arun(asking(flow, model))
                if board.failed or made.failed or made.conflict or board.conflict:
                    continue
            archived += await memory._services.arun(work.archive(key, status[0].next_sequence))
        except Exception as error:
            _warn(memory, "A conversation could not be archived", error, conversation_fields(key))
    return archived
