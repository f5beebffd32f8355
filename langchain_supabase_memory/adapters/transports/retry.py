"""Further tries of a call that could not be performed; the first one is the transport's own."""

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

from langchain_supabase_memory.deadline import AbandonedError, is_over, seconds_left
from langchain_supabase_memory.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tenacity import RetryCallState

    from langchain_supabase_memory.effects import Call
    from langchain_supabase_memory.settings import RetryPolicy


def retry(
    policy: RetryPolicy, perform: Callable[[Call], Any], call: Call, error: UnavailableError, begun: float
) -> Any:
    """Perform a call again after its first try failed. Every verb is idempotent, so every verb is tried again.

    Args:
        policy: How often, how long.
        perform: Performs the call once.
        call: The call.
        error: What the first try raised.
        begun: When the first try began, by `time.monotonic`, in seconds.

    Returns:
        What `perform` returns.

    Raises:
        UnavailableError: It could not be performed within the policy; any other error is raised at once.
        AbandonedError: Nobody waits for it any more.
    """
    if is_over():
        raise AbandonedError from None  # cut short: nothing is known about the database
    failed = [error]

    def tried(call: Call) -> Any:
        if failed:
            raise failed.pop()
        seconds_left(policy.deadline_seconds)  # who waits may have given up meanwhile
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
    """How long to wait before another try: with jitter, after what the server asks for."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._jitter = wait_random_exponential(multiplier=policy.wait_seconds, max=policy.max_wait_seconds)

    def __call__(self, state: RetryCallState) -> float:
        error = None if state.outcome is None else state.outcome.exception()
        asked_seconds = error.retry_after_seconds if isinstance(error, UnavailableError) else None
        return (asked_seconds or 0.0) + self._jitter(state)


def _arguments(policy: RetryPolicy, begun: float) -> dict[str, Any]:
    """Tenacity's settings for a loop whose first try, begun at that time, has failed already."""
    left_seconds = policy.deadline_seconds - (time.monotonic() - begun)
    return {
        "stop": stop_after_attempt(policy.attempts) | stop_before_delay(left_seconds),
        "wait": _Wait(policy),
        "retry": retry_if_exception_type(UnavailableError),
        "reraise": True,
    }
