"""The circuit breaker: after retries fail, it refuses calls at once while the database is unavailable.

When it is closed, calls pass. After several failures in a row it opens, and refuses calls for a while. Then it lets one
call through as a probe (half-open): if that succeeds the circuit closes, else it stays open for twice as long. All
other calls are refused meanwhile, and the waits have jitter, so that a recovering database does not receive everybody's
calls at once. After Nygard, "Release It!" (2007), chapter 5.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from langchain_supabase_memory import fork
from langchain_supabase_memory.effects import SCHEMA
from langchain_supabase_memory.errors import SupabaseMemoryError, UnavailableError
from langchain_supabase_memory.unpicklable import Unpicklable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_supabase_memory.adapters.transports.base import Transport
    from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo
    from langchain_supabase_memory.effects import Call
    from langchain_supabase_memory.settings import BreakerPolicy

State = Literal["closed", "open", "half-open"]


@dataclass(frozen=True)
class Circuit:
    """The state of a circuit.

    Attributes:
        state: `closed`: calls pass; `open`: they are refused; `half-open`: one is being tried.
        failures: Failures in a row.
        retry_in_seconds: When the next call will be tried, in seconds from now; 0 unless it is open.
        last_code: The server's code of the newest failure, if a server answered.
    """

    state: State
    failures: int
    retry_in_seconds: float
    last_code: str | None


CLOSED = Circuit("closed", 0, 0.0, None)


class Breaker:
    """The circuit breaker. Every method is thread-safe.

    Args:
        policy: When it opens, and for how long.
        clock: Monotonic seconds.
    """

    def __init__(self, policy: BreakerPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self.has_answered = False
        """Whether the database has ever completed a call, for any user; also before this process was forked."""
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_until = 0.0
        self._probing = False
        self._last_code: str | None = None

    def admit(self) -> bool:
        """Let a call pass, or refuse it.

        Returns:
            Whether it is the probe of an open circuit; pass this on when the call has ended.

        Raises:
            UnavailableError: The circuit is open.
        """
        with self._lock:
            if self._failures < self._policy.failures:
                return False
            wait = self._closed_until - self._clock()
            if self._probing or wait > 0:
                wait = max(wait, 0.0)
                raise UnavailableError(
                    "The database was away a moment ago.",
                    code=self._last_code,
                    hint=f"Nothing was sent. It recovers by itself; the next try is in {wait:.1f} seconds.",
                    retry_after_seconds=wait,
                    was_sent=False,
                )
            self._probing = True
            return True

    def succeeded(self) -> None:
        """Record that the database answered, even with an error."""
        with self._lock:
            self._failures = 0
            self._probing = False

    def failed(self, error: UnavailableError, *, probe: bool) -> None:
        """Record that the database was unavailable."""
        with self._lock:
            if self._failures >= self._policy.failures and not probe:
                return  # it started before the circuit opened, so it is not news
            self._probing = False
            self._failures += 1
            self._last_code = error.code
            over = self._failures - self._policy.failures
            if over >= 0:
                wait = min(self._policy.wait_seconds * 2.0 ** min(over, 32), self._policy.max_wait_seconds)
                self._closed_until = self._clock() + wait * random.uniform(0.75, 1.25)

    def gave_up(self, *, probe: bool) -> None:
        """Record that a call was abandoned before it ended, which says nothing about the database."""
        with self._lock:
            self._probing = self._probing and not probe

    @property
    def circuit(self) -> Circuit:
        """Return the current state."""
        with self._lock:
            if self._failures < self._policy.failures:
                return Circuit("closed", self._failures, 0.0, self._last_code if self._failures else None)
            wait = max(self._closed_until - self._clock(), 0.0)
            return Circuit("half-open" if self._probing else "open", self._failures, wait, self._last_code)


class BreakingTransport(Unpicklable):
    """A transport with a circuit breaker.

    Args:
        inner: The transport.
        breaker: The circuit breaker, shared by all transports to the same database.
    """

    def __init__(self, inner: Transport, breaker: Breaker) -> None:
        self.inner = inner
        self.breaker = breaker
        self._has_answered = False

    @property
    def acts_as_user(self) -> bool:
        """Whether calls carry a user's identity."""
        return self.inner.acts_as_user

    @property
    def identity_is_callback(self) -> bool:
        """Whether a callback returns the user before each call, so that the next call may be another user's."""
        return self.inner.identity_is_callback

    @property
    def user(self) -> str | None:
        """The user that every call acts as; `None` if calls act as no user, if the user varies, or if it is unknown."""
        return getattr(self.inner, "user", None)

    @property
    def accepted_user(self) -> str | None:
        """The same user, once the database or the application has verified who it is."""
        return self.user if self._has_answered or getattr(self.inner, "is_identity_verified", False) else None

    @property
    def endpoint(self) -> EndpointInfo:
        """Where calls go."""
        return self.inner.endpoint

    def perform(self, call: Call) -> Any:
        """Perform a call, or refuse it while the circuit is open."""
        with self._recording(call):
            return self.inner.perform(call)

    async def aperform(self, call: Call) -> Any:
        """The async twin of `perform`."""
        with self._recording(call):
            return await self.inner.aperform(call)

    def for_token(self, identity: Any) -> BreakingTransport:
        """Return a transport for another user with the same circuit."""
        return BreakingTransport(self.inner.for_token(identity), self.breaker)

    def close(self) -> None:
        """Close what the sync methods opened."""
        self.inner.close()

    async def aclose(self) -> None:
        """Close what the sync methods and this event loop's async methods opened."""
        await self.inner.aclose()

    def __repr__(self) -> str:
        """Return the inner transport's representation."""
        return repr(self.inner)

    @contextmanager
    def _recording(self, call: Call) -> Iterator[None]:
        probe = self.breaker.admit()
        try:
            yield
        except BaseException as error:
            if isinstance(error, UnavailableError) and error.is_away:
                self.breaker.failed(error, probe=probe)
            elif isinstance(error, SupabaseMemoryError) and error.code is not None:
                self.breaker.succeeded()  # it answered, even if with an error
            else:
                self.breaker.gave_up(probe=probe)
            raise
        self.breaker.succeeded()
        self._has_answered = True
        self.breaker.has_answered = self.breaker.has_answered or call.function != SCHEMA
