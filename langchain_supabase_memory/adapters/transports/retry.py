"""Retries of a failed call; the first try is the transport's own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tenacity import (
    AsyncRetrying,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
    wait_random_exponential,
)

from langchain_supabase_memory.deadline import seconds_left
from langchain_supabase_memory.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tenacity import RetryCallState

    from langchain_supabase_memory.effects import Call
    from langchain_supabase_memory.settings import RetryPolicy


def retry(
    policy: RetryPolicy, perform: Callable[[Call], Any], call: Call, error: UnavailableError, begun: float
) -> Any:
    """Retry a call after its first try failed. Every method is idempotent, so every call may be retried.

    Args:
        policy: How often to retry, and for how long.
        perform: Performs the call once.
        call: The call.
        error: The error of the first try.
        begun: When the first try began, by `time.monotonic`, in seconds.

    Returns:
        The result of `perform`.

    Raises:
        UnavailableError: It could not be performed within the policy; any other error is raised at once.
        AbandonedError: The caller has stopped waiting.
    """
    failed = [error]

    def tried(call: Call) -> Any:
        if failed:
            raise failed.pop()
        seconds_left(policy.deadline_seconds)  # the caller may have stopped waiting meanwhile
        return perform(call)

    return Retrying(**_arguments(policy, begun))(tried, call)


async def aretry(
    policy: RetryPolicy, perform: Callable[[Call], Awaitable[Any]], call: Call, error: UnavailableError, begun: float
) -> Any:
    """The async twin of `retry`, with tenacity's async loop."""
    failed = [error]

    async def tried(call: Call) -> Any:
        if failed:
            raise failed.pop()
        return await perform(call)

    return await AsyncRetrying(**_arguments(policy, begun))(tried, call)


class _Wait:
    """Waits before another try, with jitter, for at least as long as the server asks."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._jitter = wait_random_exponential(multiplier=policy.wait_seconds, max=policy.max_wait_seconds)

    def __call__(self, state: RetryCallState) -> float:
        error = None if state.outcome is None else state.outcome.exception()
        asked_seconds = error.retry_after_seconds if isinstance(error, UnavailableError) else None
        return (asked_seconds or 0.0) + self._jitter(state)


def _arguments(policy: RetryPolicy, begun: float) -> dict[str, Any]:
    """Return tenacity's settings for a loop whose first try, started at that time, has already failed."""
    left_seconds = seconds_left(policy.deadline_seconds - (time.monotonic() - begun))
    return {
        "stop": stop_after_attempt(policy.attempts) | stop_before_delay(left_seconds),
        "wait": _Wait(policy),
        "retry": retry_if_exception_type(UnavailableError),
        "reraise": True,
    }
