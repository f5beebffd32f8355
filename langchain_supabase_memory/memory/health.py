"""Current failures of each part, reported by `health()` and logged once until the part works again."""

from __future__ import annotations

import copy
import logging
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from langchain_supabase_memory import fork
from langchain_supabase_memory.errors import (
    AccessError,
    ConfigurationError,
    DatabaseError,
    EmbeddingError,
    ExpansionError,
    MigrationConflictError,
    OutboxError,
    RerankingError,
    SchemaError,
    SupabaseMemoryError,
    TokenExpiredError,
    ToneError,
    UnavailableError,
    code_of,
)
from langchain_supabase_memory.values import Cause, Part, log_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_supabase_memory.adapters.transports.breaker import Breaker
    from langchain_supabase_memory.context.pack import ContextPack

_Key: TypeAlias = tuple[str, ...]

_DATABASE_ERRORS: Final = (AccessError, ConfigurationError, DatabaseError, SchemaError, UnavailableError)
_ERRORS_OF_ONE_CALL: Final = (MigrationConflictError, TokenExpiredError)
"""Errors that concern a call or a user, not the state of the database."""

_REFUSED_BY_ROLE: Final = "PT403"
"""The code with which a function refuses what a member's role in a space does not allow."""

_PARTS: Final[dict[Part, tuple[type[Exception], ...]]] = {
    "database": (*_DATABASE_ERRORS, OutboxError),
    "embedder": (EmbeddingError,),
    "reranker": (RerankingError,),
    "expander": (ExpansionError,),
    "tone": (ToneError,),
}
"""The part that an error comes from; errors of the summarizer and the long-term memory may be of any class."""

_CONSEQUENCES: Final[dict[Part, str]] = {
    "database": "messages wait in the outbox, and context is missing, until it answers",
    "embedder": "recall uses keyword search until it answers",
    "summarizer": "no summaries are written until it answers",
    "reranker": "recall keeps the first stage's order until it answers",
    "expander": "recall searches for the question as it is until it answers",
    "tone": "chunks are stored without a tone until it answers",
    "long term": "nothing is promoted to it or forgotten there until it answers",
}
_UNATTENDED: Final = """Context packs omit messages that no summary covers: this memory has no summarizer, and no \
worker has processed the conversation for an hour. Pass a model to the memory, or run a worker:
    memory = SupabaseMemory(..., model=ChatOpenAI(model="gpt-5.5"))  # without model=, summaries are quotes
    supabase-memory worker"""
_logger = logging.getLogger(__name__)


_MAX_KEYS: Final = 1_000
_MAX_LINES: Final = 5
_WINDOW_SECONDS: Final = 600.0
"""An intermittent cause is logged at most `_MAX_LINES` times within this many seconds."""


@dataclass(frozen=True)
class _Failure:
    """A failure that still stands.

    Attributes:
        cause: The cause.
        is_outage: Whether the database is unreachable for every function.
        function: The only function whose success clears it; `None`: any success does.
        is_logged: Whether it was logged.
    """

    cause: Cause
    is_outage: bool
    function: str | None
    is_logged: bool


class HealthTracker:
    """The failures of the database and the models. A memory and those of its users share one tracker.

    Args:
        breaker: Knows whether the database has answered any memory of this process.
        for_user: Whether calls use a user's own token; see `for_user`.
        clock: Monotonic seconds.
    """

    def __init__(
        self, breaker: Breaker, *, of_a_user: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._breaker = breaker
        self._clock = clock
        self._lock = fork.Lock()
        self._standing: dict[Part, _Failure] = {}
        self._logged: dict[Part, set[_Key]] = {}
        self._recent: dict[tuple[Part, _Key], deque[float]] = {}
        self._at: dict[_Key, float] = {}
        self._once: set[str] = set()
        self._of_a_user = of_a_user
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        # Trackers from `for_user` share these objects.
        for each in (self._standing, self._logged, self._recent, self._at, self._once):
            each.clear()

    def for_user(self) -> HealthTracker:
        """Return a tracker for calls with a user's own token: access errors then only concern that user."""
        twin = copy.copy(self)
        twin._of_a_user = True
        return twin

    def warn_if_unattended(self, pack: ContextPack, *, has_summarizer: bool) -> None:
        """Warn once that packs omit messages that nothing summarizes, and show two ways to fix it.

        Args:
            pack: A pack.
            has_summarizer: Whether due work is summarized before an answer.
        """
        if has_summarizer or not pack.unattended or "unattended" in self._once:
            return
        self._once.add("unattended")
        _logger.warning(_UNATTENDED, extra=log_fields(pack.key))

    @property
    def failures(self) -> tuple[Cause, ...]:
        """The failures that still stand, at most one per part."""
        with self._lock:
            return tuple(each.cause for each in self._standing.values())

    @property
    def has_answered(self) -> bool:
        """Whether the database has ever answered in this process."""
        return self._breaker.has_answered

    @contextmanager
    def watching(self, part: Part, *, settles: bool = True, function: str | None = None) -> Iterator[None]:
        """Record the failure of a block, or its success.

        Args:
            part: The part that the block calls.
            settles: Whether success means that the part works.
            function: The SQL function that is called.
        """
        try:
            yield
        except Exception as error:
            if part != "database" or self._is_of_the_database(error):
                self._record_failure(part, error, function)
            raise
        if settles:
            self._record_success(part, function)

    def level(self, action: str, error: BaseException, usual: int, *, repeats: bool = False) -> int:
        """Return the level at which to log a failure: the usual one first, then DEBUG until the part works again.

        Args:
            action: The failed action: a constant, without ids.
            error: The error.
            usual: A level of `logging`.
            repeats: Whether the action runs repeatedly: then a failure of no tracked part is logged once in ten
                minutes. Otherwise each one is logged.
        """
        part = next((part for part, kinds in _PARTS.items() if isinstance(error, kinds)), None)
        if part is None or (part == "database" and not self._is_of_the_database(error)):
            return usual if not repeats or self._is_first_of_late((action, *_identity(error))) else logging.DEBUG
        with self._lock:
            return usual if self._is_worth_logging(part, (action, *_identity(error))) else logging.DEBUG

    def _is_first_of_late(self, key: _Key) -> bool:
        now = self._clock()
        with self._lock:
            if now - self._at.get(key, -_WINDOW_SECONDS) < _WINDOW_SECONDS:
                return False
            if len(self._at) >= _MAX_KEYS:
                self._at.clear()
            self._at[key] = now
            return True

    def _is_of_the_database(self, error: BaseException) -> bool:
        if isinstance(error, _ERRORS_OF_ONE_CALL) or (self._of_a_user and isinstance(error, AccessError)):
            return False
        if isinstance(error, AccessError) and error.code == _REFUSED_BY_ROLE:
            return False
        return isinstance(error, _PARTS["database"])

    def _record_success(self, part: Part, function: str | None) -> None:
        if part not in self._standing and not self._logged.get(part):
            return  # the common case needs no lock
        with self._lock:
            standing = self._standing.get(part)
            if standing is not None and standing.function not in (None, function):
                return  # reads still succeed while a disk is full
            self._standing.pop(part, None)
            self._logged.pop(part, None)
        if standing is not None and standing.is_logged:
            cause = standing.cause
            text = "The %s works again, after %s failures since %s."
            _logger.info(text, _name(part), cause.times, f"{cause.since:%H:%M:%S} UTC", extra={"memory_part": part})

    def _record_failure(self, part: Part, error: Exception, function: str | None) -> None:
        is_outage = isinstance(error, UnavailableError) and error.is_away
        # The text of a foreign error may contain content; its class and code do not.
        reason = error.message if isinstance(error, SupabaseMemoryError) else f"{type(error).__name__}."
        code, now = code_of(error), datetime.now(UTC)
        with self._lock:
            before = self._standing.get(part)
            if isinstance(error, UnavailableError) and not error.was_sent and before is not None:
                return  # the breaker rejected it because of the standing failure
            cause = Cause(part, type(error).__name__, reason, code, 1, now, now)
            of_one_function = part == "database" and code is not None and not is_outage
            is_news = is_logged = self._is_worth_logging(part, _identity(error))
            same = before is not None and (before.cause.reason, before.cause.code) == (reason, code)
            if before is not None and (same or (before.is_outage and is_outage)):
                cause = replace(before.cause, times=before.cause.times + 1, last=now)
                is_logged = is_logged or before.is_logged
            self._standing[part] = _Failure(cause, is_outage, function if of_one_function else None, is_logged)
        if not is_news:
            return
        fields = {"memory_part": part, "memory_error": type(error).__name__, "memory_code": code}
        shown = f" [{code}]" if code else ""
        words = _name(part), reason.rstrip("."), shown, _CONSEQUENCES[part]
        _logger.warning("The %s failed: %s%s; %s.", *words, extra=fields)

    def _is_worth_logging(self, part: Part, key: _Key) -> bool:
        """Return whether to log it: not logged since the part worked, nor often recently. The lock is held."""
        logged = self._logged.setdefault(part, set())
        if key in logged:
            return False
        logged.add(key)
        recent = self._recent.setdefault((part, key), deque(maxlen=_MAX_LINES))
        now = self._clock()
        if len(recent) == _MAX_LINES and now - recent[0] < _WINDOW_SECONDS:
            return False
        recent.append(now)
        return True


def _name(part: Part) -> str:
    return "long-term memory" if part == "long term" else part


def _identity(error: BaseException) -> _Key:
    """Return the identity of a failure's cause: every outage is one cause, whatever its message."""
    if isinstance(error, UnavailableError) and error.is_away:
        return ("away",)
    return type(error).__name__, str(code_of(error)), error.message if isinstance(error, SupabaseMemoryError) else ""
