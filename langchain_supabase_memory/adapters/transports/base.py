"""What a transport is, and how a call is repeated."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

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

    from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo
    from langchain_supabase_memory.effects import Call
    from langchain_supabase_memory.settings import RetryPolicy


class Transport(Protocol):
    """Performs calls of SQL functions. It opens what it needs at the first call, never in its constructor."""

    @property
    def acts_as_user(self) -> bool:
        """Whether calls carry a user's identity, so that the owner need not be named."""

    @property
    def user_varies(self) -> bool:
        """Whether a function says before each call who is signed in, so that the next may be another's."""

    @property
    def endpoint(self) -> EndpointInfo:
        """Which door calls go through, as far as that is known by now; nothing in it is secret."""

    def perform(self, call: Call) -> Any:
        """Perform one call, repeating it while the server cannot be reached, and return its decoded document."""

    async def aperform(self, call: Call) -> Any:
        """The async twin of `perform`; it never blocks the event loop."""

    def as_user(self, identity: Any) -> Transport:
        """A transport over the same connections whose calls carry this identity."""

    def close(self) -> None:
        """Close what the sync methods opened, and nothing else."""

    async def aclose(self) -> None:
        """Close what the sync methods and this event loop's async methods opened, and nothing else."""


def repeat(policy: RetryPolicy, perform: Callable[[Call], Any], call: Call) -> Any:
    """Perform a call under a retry policy. Every verb is idempotent, so every verb is repeated.

    Args:
        policy: How often, how long.
        perform: Performs the call once.
        call: The call.

    Returns:
        What `perform` returns.

    Raises:
        UnavailableError: It could not be performed within the policy; any other error is raised at once.
        AbandonedError: Nobody waits for it any more.
    """
    begun = time.monotonic()
    try:
        return perform(call)  # nearly always enough, and tenacity's loop would cost as much as the call's own work
    except UnavailableError as error:
        if is_over():
            raise AbandonedError from None  # cut short: nothing is known about the database
        failed = [error]

    def tried(call: Call) -> Any:
        if failed:
            raise failed.pop()
        seconds_left(policy.deadline_seconds)  # who waits may have given up meanwhile
        return perform(call)

    return Retrying(**_arguments(policy, begun))(tried, call)


async def arepeat(policy: RetryPolicy, perform: Callable[[Call], Awaitable[Any]], call: Call) -> Any:
    """The async twin of `repeat`, with tenacity's async loop."""
    begun = time.monotonic()
    try:
        return await perform(call)
    except UnavailableError as error:
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
