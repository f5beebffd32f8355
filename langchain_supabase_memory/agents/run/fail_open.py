"""Memory is never in the way: a failure of it is kept, logged and shown, and the agent answers all the same."""

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
from langchain_supabase_memory.deadline import awithin, within
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
"""What happens when the memory fails: it is logged, and beside that

- `"setup"`: raised, if it can only be a mistake in the set-up: a wrong key, password or address, no schema or one of
  another release, a permission that the memory's own key lacks. That holds until the database has answered once in
  this process; from then on, and for everything else, the agent answers without memory. What the database says of a
  user's own token is never such a mistake.
- `"log"`: nothing.
- `"raise"`: raised.
- a function: handed to it.
"""

_OF_THE_SETUP: Final = (AccessError, ConfigurationError, SchemaError)


def log_failed(
    error: SupabaseMemoryError, action: str, key: ConversationKey, on_error: OnError, memory: SupabaseMemory
) -> None:
    """Log a failure with user, agent and thread and without content, then do as `on_error` says.

    While one cause stands, the first failure is logged as an error, and the others for who debugs.

    Raises:
        SupabaseMemoryError: `error`, with `"raise"`; with `"setup"`, if it is a mistake in the set-up.
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
    """Whether a failure is raised and not only logged.

    Args:
        error: The failure.
        on_error: What the application chose.
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
        return False  # something else than the database refused, such as a rule of redaction
    return not memory._services.causes.has_answered


def wrap_error(error: Exception) -> SupabaseMemoryError:
    """An error of this package for whatever was raised; the text of another is dropped, since it may hold content."""
    if isinstance(error, SupabaseMemoryError):
        return error
    made = SupabaseMemoryError(f"The memory failed ({type(error).__name__}).", hint="Please report this.")
    made.__suppress_context__ = True  # nor does a traceback show it
    return made


def check_on_error(on_error: OnError) -> OnError:
    """`on_error`, if it is one of the choices.

    Raises:
        ConfigurationError: It is not.
    """
    if not callable(on_error):
        choice("on_error", on_error, ("setup", "log", "raise"), more="a function")
    return on_error


@dataclass(frozen=True)
class GuardedTask:
    """What a guarded flow is for.

    Attributes:
        failure: What to say if it fails, for the log.
        keep: Messages that wait in the outbox if it fails.
    """

    failure: str
    keep: Sequence[BaseMessage] = field(default=(), repr=False)


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """A flow that may fail without stopping anything.

    Attributes:
        guard: What is done about a failure.
        flow: A fresh flow.
        task: What it is for.
        key: The conversation, for the log.
        seconds: How long it may take.
    """

    guard: FailOpen
    flow: Flow[T] = field(repr=False)
    task: GuardedTask
    key: ConversationKey
    seconds: float
    part: ClassVar[None] = None

    def perform(self, _: object) -> T | None:
        """Run the flow. What is returned and raised: as for `FailOpen.attempt`."""
        try:
            return within(self.seconds, partial(self.guard.memory._services.run, self._flow))
        except Exception as error:
            self.guard.handle(error, self.task, self.key)
        return None

    async def aperform(self, _: object) -> T | None:
        """The async twin of `perform`, which ends the flow at the deadline."""
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
    """How much of the deadline is used up, in seconds, and until when nothing more is tried after it was all of it."""

    spent: float = 0.0
    rests_until: float = 0.0


_MOST_TURNS: Final = 1_000
"""Of how many turns of a memory it is known what is used up."""

_REST_SECONDS: Final = 30.0
"""How long a turn goes on without memory after its deadline was used up, in seconds: a run that is resumed has it."""

_Turns: TypeAlias = "OrderedDict[tuple[ConversationKey, str], _Budget]"

_BUDGETS: Final[WeakKeyDictionary[SupabaseMemory, _Turns]] = WeakKeyDictionary()
_NONE: Final[_Turns] = OrderedDict()


class FailOpen:
    """Runs flows so that a failure costs the memory and not the answer.

    Args:
        memory: The memory.
        model: The summary model; `None` for none.
        on_error: What happens when the memory fails.
        deadline_seconds: How long one operation may take, in seconds, or all of them together from `begin` on.

    Raises:
        ConfigurationError: `on_error` is none of the choices, or the deadline is not positive.
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
        """What summaries are noted to be written by; `None` without a summary model."""
        return None if self.model is None else self.model.name

    def begin(self, key: ConversationKey, current: Sequence[BaseMessage]) -> FailOpen:
        """The same guard, with its deadline for all that it attempts together.

        Where that was used up a moment ago, in the same turn, nothing is attempted.

        Args:
            key: The conversation.
            current: The turn under way; of none nothing is remembered.
        """
        held = self._budget_of(key, current)
        if held is None or held.rests_until <= time.monotonic():
            held = _Budget()
        return self._with_budget(held, key, current)

    def resume(self, key: ConversationKey, current: Sequence[BaseMessage]) -> FailOpen:
        """The same guard, with what is left of the deadline since the newest `begin` for this turn, by any guard."""
        return self._with_budget(self._budget_of(key, current) or _Budget(), key, current)

    def _budget_of(self, key: ConversationKey, current: Sequence[BaseMessage]) -> _Budget | None:
        return _BUDGETS.get(self.memory, _NONE).get((key, str(current[0].id))) if current else None

    def _with_budget(self, budget: _Budget, key: ConversationKey, current: Sequence[BaseMessage]) -> FailOpen:
        if current:
            turns = _BUDGETS.setdefault(self.memory, OrderedDict())
            turns[key, str(current[0].id)] = budget
            while len(turns) > _MOST_TURNS:
                turns.popitem(last=False)
        guard = copy.copy(self)
        guard._budget = budget
        return guard

    @property
    def left_seconds(self) -> float:
        """What is left of the deadline."""
        return self.deadline_seconds - (0.0 if self._budget is None else self._budget.spent)

    def attempt(
        self, flow: Flow[T], task: GuardedTask, key: ConversationKey, *, seconds: float | None = None, more: float = 0.0
    ) -> Effects[T | None]:
        """The one step of a guarded flow.

        Args:
            flow: A fresh flow.
            task: What it is for.
            key: The conversation, for the log.
            seconds: How long it may take; what is left of the deadline by default.
            more: How long it may take beyond that, which does not count.

        Returns:
            What it returns; `None` if it failed or took too long, or if nothing was left.

        Raises:
            InvalidInputError: Something passed is no message.
            SupabaseMemoryError: It failed, and `on_error` says that it is raised.
        """
        if self.left_seconds <= 0:
            self.handle(TimeoutError(), task, key)
            return None
        begun = time.monotonic()
        try:
            result: T | None = yield Attempt(self, flow, task, key, (seconds or self.left_seconds) + more)
        finally:
            if self._budget is not None:
                self._budget.spent += max(0.0, time.monotonic() - begun - more)
        return result

    def with_listener(self, listener: Callable[[SupabaseMemoryError], None], *, raises: bool = False) -> FailOpen:
        """The same guard with a listener, for what runs beside an answer and must not stop it.

        Args:
            listener: Is handed each failure, before a function given as `on_error` is.
            raises: Whether a failure is raised all the same, where `on_error` says so.
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

    def with_failures(self, failures: list[str], *, raises: bool = False) -> FailOpen:
        """The same guard, which also adds the class of each failure to a list. Arguments as for `with_listener`."""
        return self.with_listener(lambda error: failures.append(type(error).__name__), raises=raises)

    def handle(self, error: Exception, task: GuardedTask, key: ConversationKey) -> None:
        """Keep what waits, log the failure, and do as `on_error` says. Arguments and errors as for `attempt`."""
        if isinstance(error, InvalidInputError) and error.code is None:
            raise error  # what was passed is no message; what the database refuses waits like everything else
        try:
            self.memory._services.outbox.keep(key, task.keep)
        except OutboxError as full:
            error = full
        if isinstance(error, TimeoutError):
            if self._budget is not None and self._budget.rests_until == 0.0:
                self._budget.spent = self.deadline_seconds
                self._budget.rests_until = time.monotonic() + _REST_SECONDS
            error = UnavailableError("The memory took too long.", hint="Raise deadline_seconds, or look at the server.")
        log_failed(wrap_error(error), task.failure, key, self._on_error, self.memory)
