"""The current stage of a rollout, from the application's flag or the database; the last known one if they fail."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.adapters.telemetry.logs import conversation_fields
from langchain_supabase_memory.agents.run.fail_open import FailOpen, GuardedTask
from langchain_supabase_memory.deadline import in_thread, within
from langchain_supabase_memory.effects import SyncAsync
from langchain_supabase_memory.operations.rollout.stages import read_decision, stage_from_state, stage_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from langchain_supabase_memory.effects import Effects
    from langchain_supabase_memory.operations.rollout.stages import Rollout, Stage
    from langchain_supabase_memory.values import ConversationKey

_PATIENCE_SECONDS: Final = 2.0
"""The maximum time to wait for the flag, or for the database's stage."""

_MAX_KNOWN: Final = 10_000
"""The number of users whose last stage is remembered."""

_logger = logging.getLogger(__name__)


class Stages:
    """The known stages of a rollout's users.

    Args:
        guard: Handles a failure.
        rollout: The rollout.
    """

    def __init__(self, guard: FailOpen, rollout: Rollout) -> None:
        self._guard = guard
        self._rollout = rollout
        self._known: OrderedDict[tuple[str | None, str], Stage] = OrderedDict()
        self._answers: dict[str, tuple[float, Mapping[str, Any] | None, bool]] = {}

    def holding(self, key: ConversationKey) -> Effects[Stage]:
        """Return the current stage of a conversation."""
        if self._rollout.flag is None:
            return (yield from self._decided(key))
        flag = partial(self._rollout.flag, key)
        try:
            answer = yield SyncAsync(partial(_flagged, flag, self._patience), partial(_aflagged, flag, self._patience))
            return self._checked_flag(key, answer)
        except Exception as error:
            return self._unknown(key, type(error).__name__)

    def _decided(self, key: ConversationKey) -> Effects[Stage]:
        """Return the stage from the database, or the cached one."""
        stage = self._remembered(key)
        if stage is not None:
            return stage
        failures: list[str] = []
        flow = read_decision(key.agent_id, key.user_id)
        document = yield from self._guard.with_failures(failures).attempt(flow, _UNDECIDED, key, seconds=self._patience)
        return self._cache_database(key, document, bool(failures))

    @property
    def _patience(self) -> float:
        return min(_PATIENCE_SECONDS, self._guard.deadline_seconds)

    def _checked_flag(self, key: ConversationKey, answer: object) -> Stage:
        """Return the flag's stage, if it is valid."""
        stage = stage_of(answer)
        if stage is None:
            return self._unknown(key, f"not a stage but a {type(answer).__name__}")
        return self._remember(key, stage)

    def _remembered(self, key: ConversationKey) -> Stage | None:
        """Return the cached stage from the database; this needs a known user, as a token's subject may change."""
        until, document, has_failed = self._answers.get(key.agent_id, (0.0, None, False))
        if time.monotonic() >= until or (key.user_id is None and not has_failed):
            return None
        if has_failed:
            return self._fallback(key)
        return self._from_document(key, document)

    def _cache_database(self, key: ConversationKey, document: Mapping[str, Any] | None, has_failed: bool) -> Stage:
        """Cache the database's answer and return its stage; a failure is cached too, so it is not retried at once."""
        until = time.monotonic() + self._rollout.cache_seconds
        if not has_failed:
            self._answers[key.agent_id] = until, document, False
            return self._from_document(key, document)
        self._guard.memory._services.metrics.alert("rollout")
        _, before, had_failed = self._answers.get(key.agent_id, (0.0, None, True))
        if had_failed or key.user_id is None:
            self._answers[key.agent_id] = until, None, True
            return self._fallback(key)
        self._answers[key.agent_id] = until, before, False
        return self._from_document(key, before)

    def _from_document(self, key: ConversationKey, document: Mapping[str, Any] | None) -> Stage:
        stage = self._rollout.stage if document is None else stage_from_state(document, key.user_id)
        return self._remember(key, stage) if stage is not None else self._unknown(key, "a stage from another release")

    def _remember(self, key: ConversationKey, stage: Stage) -> Stage:
        self._known.pop((key.user_id, key.agent_id), None)  # so that it becomes the newest
        self._known[key.user_id, key.agent_id] = stage
        while len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)
        return stage

    def _fallback(self, key: ConversationKey) -> Stage:
        return self._known.get((key.user_id, key.agent_id), "off")

    def _unknown(self, key: ConversationKey, why: str) -> Stage:
        stage = self._fallback(key)
        _logger.error(
            "The stage of the rollout could not be read (%s); using %s (user %r, agent %r, thread %r)",
            why, stage, key.user_id, key.agent_id, key.thread_id,
            extra={**conversation_fields(key), "memory_stage": str(stage), "memory_error": why},
        )  # fmt: skip
        self._guard.memory._services.metrics.alert("rollout")
        return stage


_UNDECIDED: Final = GuardedTask("The stage of the rollout could not be read; using the last known one")


def _flagged(flag: Callable[[], object], seconds: float) -> object:
    """Call a flag with a time limit in seconds."""

    def call_flag() -> object:
        answer = flag()
        return asyncio.run(_answer(answer)) if inspect.isawaitable(answer) else answer

    return within(seconds, call_flag)


async def _aflagged(flag: Callable[[], object], seconds: float) -> object:
    """The async twin of `_flagged`; a function that may block gets its own thread."""
    async with asyncio.timeout(seconds):
        answer = flag() if inspect.iscoroutinefunction(flag) else await in_thread(flag)
        return await answer if inspect.isawaitable(answer) else answer


async def _answer(awaitable: Awaitable[object]) -> object:
    return await awaitable
