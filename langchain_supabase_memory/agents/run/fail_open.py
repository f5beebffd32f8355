"""Fail open: if the memory fails, messages wait in the outbox, the failure is logged, and the agent still answers."""

from __future__ import annotations

import copy
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from langchain_supabase_memory.adapters.summarizer import asking
from langchain_supabase_memory.adapters.telemetry.logs import conversation_fields
from langchain_supabase_memory.checks import choice, number
from langchain_supabase_memory.deadline import awithin, limited
from langchain_supabase_memory.errors import (
    AccessError,
    ConfigurationError,
    InvalidInputError,
    MigrationConflictError,
    OutboxError,
    SchemaError,
    SupabaseMemoryError,
    UnavailableError,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.adapters.summarizer import SummaryModel
    from langchain_supabase_memory.effects import Effects, Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.values import ConversationKey

T = TypeVar("T")
_logger = logging.getLogger(__name__)

OnError: TypeAlias = Literal["setup", "log", "raise"] | Callable[[SupabaseMemoryError], None]
"""What happens when the memory fails. The failure is always logged; in addition:

- `"setup"`: it is raised if it can only be a setup mistake: a wrong key, password or address, a missing schema or one
  of another release, or a permission that the memory's own key lacks. This applies until the database has answered
  once in this process; from then on, and for every other failure, the agent answers without memory. An error about a
  user's own token never counts as a setup mistake.
- `"log"`: nothing else happens.
- `"raise"`: it is raised.
- a function: it is passed to the function.
"""

_OF_THE_SETUP: Final = (AccessError, ConfigurationError, SchemaError)


def log_failed(
    error: SupabaseMemoryError, action: str, key: ConversationKey, on_error: OnError, memory: SupabaseMemory
) -> None:
    """Log a failure with user, agent and thread but without content, then apply `on_error`.

    For each ongoing cause, the first failure is logged as an error, and later ones at debug level.

    Raises:
        SupabaseMemoryError: `error`, with `"raise"`; with `"setup"`, if it is a setup mistake.
    """
    ids = (key.user_id, key.agent_id, key.thread_id)
    level = memory._services.causes.level(action, error, logging.ERROR)
    _logger.log(
        level, "%s (user %r, agent %r, thread %r): %s", action, *ids, error, extra=conversation_fields(key, error)
    )
    if is_raised(error, on_error, memory):
        raise error
    if callable(on_error):
        on_error(error)


def is_raised(error: Exception, on_error: OnError, memory: SupabaseMemory) -> bool:
    """Return whether a failure is raised instead of only logged.

    Args:
        error: The failure.
        on_error: The application's choice.
        memory: The memory that failed.
    """
    if on_error != "setup":
        return on_error == "raise"
    if isinstance(error, MigrationConflictError) or not isinstance(error, _OF_THE_SETUP):
        return False
    if isinstance(error, AccessError) and memory._services.transport.acts_as_user:
        return False
    if isinstance(error, ConfigurationError) and not any(
        cause.part == "database" and cause.reason == error.message for cause in memory._services.causes.failures
    ):
        return False  # the error is not from the database, such as an invalid redaction rule
    return not memory._services.causes.has_answered


def wrap_error(error: Exception) -> SupabaseMemoryError:
    """Convert any exception to this package's error; a foreign error's text is dropped, as it may hold content."""
    if isinstance(error, SupabaseMemoryError):
        return error
    made = SupabaseMemoryError(f"The memory failed ({type(error).__name__}).", hint="Please report this.")
    made.__suppress_context__ = True  # hide the text from tracebacks too
    return made


def check_on_error(on_error: OnError) -> OnError:
    """Return `on_error`, if it is valid.

    Raises:
        ConfigurationError: It is not valid.
    """
    if not callable(on_error):
        choice("on_error", on_error, ("setup", "log", "raise"), more="a function")
    return on_error


@dataclass(frozen=True)
class GuardedTask:
    """The purpose of a guarded flow.

    Attributes:
        failure: The log message if it fails.
        keep: Messages that go to the outbox if it fails.
        can_wait: Whether it is done behind the answer if it takes too long: no failure, and no end of the turn's time.
    """

    failure: str
    keep: Sequence[BaseMessage] = field(default=(), repr=False)
    can_wait: bool = False


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """A flow whose failure does not stop the run.

    Attributes:
        guard: Handles a failure.
        flow: A fresh flow.
        task: The flow's purpose.
        key: The conversation, for the log.
        seconds: The maximum time, in seconds.
    """

    guard: FailOpen
    flow: Flow[T] = field(repr=False)
    task: GuardedTask
    key: ConversationKey
    seconds: float
    part: ClassVar[None] = None

    def perform(self, _: object) -> T | None:
        """Run the flow. Returns and raises the same as `FailOpen.attempt`."""
        try:
            return limited(self.seconds, partial(self.guard.memory._services.run, self._flow))
        except Exception as error:
            self.guard.handle(error, self.task, self.key)
        return None

    async def aperform(self, _: object) -> T | None:
        """The async twin of `perform`, which cancels the flow at the deadline."""
        try:
            return await awithin(self.seconds, self.guard.memory._services.arun(self._flow))
        except Exception as error:
            self.guard.handle(error, self.task, self.key)
        return None

    @property
    def _flow(self) -> Flow[T]:
        return asking(self.flow, self.guard.model)


@dataclass
class _Budget:
    """Seconds spent of the deadline, and the time until which nothing is attempted after all of it was spent."""

    spent: float = 0.0
    rests_until: float = 0.0


_MAX_TURNS: Final = 1_000
"""For how many turns per memory the spent time is remembered."""

_REST_SECONDS: Final = 30.0
"""How long a turn continues without memory after its deadline was spent, in seconds; this includes resumed runs."""

_START_SECONDS: Final = 60.0
"""How long an embedded server may take to start, in seconds, at the first call; this is no part of the deadline."""

_Turns: TypeAlias = "OrderedDict[tuple[ConversationKey, str], _Budget]"

_BUDGETS: Final[WeakKeyDictionary[SupabaseMemory, _Turns]] = WeakKeyDictionary()
_NONE: Final[_Turns] = OrderedDict()


class FailOpen:
    """Run flows so that a failure loses the memory and not the answer.

    Args:
        memory: The memory.
        model: The summary model; `None` for none.
        on_error: What happens when the memory fails.
        deadline_seconds: The maximum time, in seconds, of one operation, or of all operations together after `begin`.

    Raises:
        ConfigurationError: `on_error` is not one of the choices, or the deadline is not positive.
    """

    def __init__(
        self, memory: SupabaseMemory, model: SummaryModel | None, on_error: OnError, deadline_seconds: float
    ) -> None:
        number("deadline_seconds", deadline_seconds, optional=False, example=10)
        self.memory = memory
        self.model = model
        self.deadline_seconds = deadline_seconds
        self._on_error = check_on_error(on_error)
        self._budget: _Budget | None = None

    @property
    def writer_name(self) -> str | None:
        """The summarizer name recorded with summaries; `None` without a summary model."""
        return None if self.model is None else self.model.name

    def begin(self, key: ConversationKey, current: Sequence[BaseMessage]) -> FailOpen:
        """Return a copy of this guard whose deadline covers all its attempts together.

        If the same turn spent the deadline recently, nothing is attempted.

        Args:
            key: The conversation.
            current: The current turn; if it is empty, nothing is remembered.
        """
        held = self._budget_of(key, current)
        if held is None or held.rests_until <= time.monotonic():
            held = _Budget()
        return self._with_budget(held, key, current)

    def resume(self, key: ConversationKey, current: Sequence[BaseMessage]) -> FailOpen:
        """Return a copy of this guard with the time left since the last `begin` for this turn, by any guard."""
        return self._with_budget(self._budget_of(key, current) or _Budget(), key, current)

    def _budget_of(self, key: ConversationKey, current: Sequence[BaseMessage]) -> _Budget | None:
        return _BUDGETS.get(self.memory, _NONE).get((key, str(current[0].id))) if current else None

    def _with_budget(self, budget: _Budget, key: ConversationKey, current: Sequence[BaseMessage]) -> FailOpen:
        if current:
            turns = _BUDGETS.setdefault(self.memory, OrderedDict())
            turns[key, str(current[0].id)] = budget
            while len(turns) > _MAX_TURNS:
                turns.popitem(last=False)
        guard = copy.copy(self)
        guard._budget = budget
        return guard

    @property
    def left_seconds(self) -> float:
        """The seconds left of the deadline."""
        return self.deadline_seconds - (0.0 if self._budget is None else self._budget.spent)

    def attempt(
        self, flow: Flow[T], task: GuardedTask, key: ConversationKey, *, seconds: float | None = None, more: float = 0.0
    ) -> Effects[T | None]:
        """Run a flow as one guarded step.

        Args:
            flow: A fresh flow.
            task: The flow's purpose.
            key: The conversation, for the log.
            seconds: The maximum time, in seconds; the time left of the deadline by default.
            more: Additional seconds, which do not count toward the deadline.

        Returns:
            The flow's result; `None` if it failed, took too long, or no time was left.

        Raises:
            InvalidInputError: An argument is not a message.
            SupabaseMemoryError: The flow failed, and `on_error` raises the failure.
        """
        if self.left_seconds <= 0:
            self.handle(TimeoutError(), task, key)
            return None
        services = self.memory._services
        if not services.causes.has_answered and services.transport.endpoint.address is None:
            more += _START_SECONDS
        begun = time.monotonic()
        try:
            result: T | None = yield Attempt(self, flow, task, key, (seconds or self.left_seconds) + more)
        finally:
            if self._budget is not None:
                self._budget.spent += max(0.0, time.monotonic() - begun - more)
        return result

    def with_listener(self, listener: Callable[[SupabaseMemoryError], None], *, raises: bool = False) -> FailOpen:
        """Return a copy of this guard with a listener, for work that runs next to an answer and must not stop it.

        Args:
            listener: Receives each failure, before a function passed as `on_error`.
            raises: Whether a failure is still raised if `on_error` raises it.
        """

        def on_error(error: SupabaseMemoryError) -> None:
            listener(error)
            if callable(self._on_error):
                self._on_error(error)
            elif raises and is_raised(error, self._on_error, self.memory):
                raise error

        guard = copy.copy(self)
        guard._on_error = on_error
        return guard

    def behind(self) -> FailOpen:
        """Return a copy of this guard for work that no answer waits for: a failure is reported, and never raised."""
        guard = self.with_listener(lambda _: None)
        guard._budget = None
        return guard

    def with_failures(self, failures: list[str], *, raises: bool = False) -> FailOpen:
        """Return a copy of this guard that appends each failure's class name to a list; see `with_listener`."""
        return self.with_listener(lambda error: failures.append(type(error).__name__), raises=raises)

    def handle(self, error: Exception, task: GuardedTask, key: ConversationKey) -> None:
        """Put messages in the outbox, log the failure, and apply `on_error`. Arguments and errors as in `attempt`."""
        if isinstance(error, InvalidInputError) and error.code is None:
            raise error  # an argument is not a message; messages that the database refuses go to the outbox
        try:
            self.memory._services.outbox.keep(key, task.keep)
        except OutboxError as full:
            error = full
        if isinstance(error, TimeoutError):
            if task.can_wait:
                return
            if self._budget is not None and self._budget.rests_until == 0.0:
                self._budget.spent = self.deadline_seconds
                self._budget.rests_until = time.monotonic() + _REST_SECONDS
            error = UnavailableError("The memory took too long.", hint="Raise deadline_seconds, or check the server.")
        log_failed(wrap_error(error), task.failure, key, self._on_error, self.memory)
