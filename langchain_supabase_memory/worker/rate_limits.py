"""Rate limits of a model: concurrent calls, calls per minute, and a backoff after failures."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Any, Final

from langchain_core.rate_limiters import InMemoryRateLimiter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.adapters.embedder import EmbeddingModel
    from langchain_supabase_memory.adapters.summarizer import SummaryModel
    from langchain_supabase_memory.effects import Ask, Embed

_PATIENCE: Final = 3
_LONGEST_SECONDS: Final = 60.0


class RateLimiter:
    """Limit the calls of one model.

    After three failures in a row, across all conversations, the next calls wait: first about a second, then twice that,
    up to a minute. So a provider that is down or refuses calls is tried rarely, not once per conversation.

    Args:
        at_once: The maximum number of concurrent calls.
        per_minute: The maximum number of calls per minute; `None` for no limit.
    """

    def __init__(self, at_once: int, per_minute: float | None = None) -> None:
        self._slots = asyncio.Semaphore(at_once)
        self._rate = (
            None
            if per_minute is None
            else InMemoryRateLimiter(
                requests_per_second=per_minute / 60,
                check_every_n_seconds=min(0.1, 6 / per_minute),
                max_bucket_size=max(1.0, per_minute / 60),
            )
        )
        self._failures = 0
        self._resume_at = 0.0

    async def through(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Make a call as soon as the limits allow it.

        Raises:
            Exception: Any error of the call.
        """
        async with self._slots:
            pause = self._resume_at - time.monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
            if self._rate is not None:
                await self._rate.aacquire()
            try:
                answer = await call()
            except Exception:
                self._failed()
                raise
            self._failures = 0
            return answer

    def _failed(self) -> None:
        self._failures += 1
        if self._failures >= _PATIENCE:
            longest = min(2.0 ** (self._failures - _PATIENCE), _LONGEST_SECONDS)
            self._resume_at = time.monotonic() + longest * random.uniform(0.5, 1)


class LimitedModel:
    """A summary model behind rate limits, with the interface that a memory needs.

    Args:
        model: The model.
        limits: Its limits.
        count_call: Called before each call of the model.
    """

    def __init__(self, model: SummaryModel, limits: RateLimiter, count_call: Callable[[], None]) -> None:
        self._model = model
        self._limits = limits
        self._count_call = count_call
        self.name = model.name

    def answer(self, ask: Ask) -> BaseMessage:
        """Call the model without limits, because a worker only makes async calls."""
        return self._model.answer(ask)

    async def aanswer(self, ask: Ask) -> BaseMessage:
        """Call the model within the limits."""

        async def call() -> BaseMessage:
            self._count_call()
            return await self._model.aanswer(ask)

        answer: BaseMessage = await self._limits.through(call)
        return answer


class LimitedEmbedder:
    """An embedder behind rate limits, with the interface that a memory needs."""

    def __init__(self, model: EmbeddingModel, limits: RateLimiter) -> None:
        self._model = model
        self._limits = limits
        self.name = model.name

    def answer(self, embed: Embed) -> list[list[float]]:
        """Embed without limits, because a worker only makes async calls."""
        return self._model.answer(embed)

    async def aanswer(self, embed: Embed) -> list[list[float]]:
        """Embed within the limits."""
        vectors: list[list[float]] = await self._limits.through(lambda: self._model.aanswer(embed))
        return vectors
