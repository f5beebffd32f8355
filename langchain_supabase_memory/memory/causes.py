"""What stands in the way now: the newest failure of each part, said once in the log and kept for `health()`."""

from __future__ import annotations

import copy
import logging
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from langchain_supabase_memory import fork
from langchain_supabase_memory.errors import (
    AccessError,
    ConfigurationError,
    DatabaseError,
    MigrationConflictError,
    SchemaError,
    SupabaseMemoryError,
    TokenExpiredError,
    UnavailableError,
    code_of,
)
from langchain_supabase_memory.values import Cause, log_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.adapters.transports.breaker import Breaker
    from langchain_supabase_memory.context.pack import ContextPack

Part: TypeAlias = Literal["database", "embedder", "writer", "reranker", "expander"]

_OF_THE_DATABASE: Final = (AccessError, ConfigurationError, DatabaseError, SchemaError, UnavailableError)
_OF_ONE_CALL: Final = (MigrationConflictError, TokenExpiredError)
"""What says something about a call or a user, and nothing about how the database stands."""

_COSTS: Final[dict[Part, str]] = {
    "database": "memories wait or are missing until it answers",
    "embedder": "what was said is found by its words until it answers",
    "writer": "nothing is summarized until it answers",
    "reranker": "what is recalled comes in the first stage's order until it answers",
    "expander": "questions are looked for as they are until it answers",
}
_UNATTENDED: Final = """Packs leave out messages that no summary covers: this memory has no writer, and for an hour no \
worker has taken the conversation up. Give the memory a writer, or run a worker beside it:
    memory = SupabaseMemory(..., model=ChatOpenAI(model="gpt-5.5"))  # without model= quotes are selected
    supabase-memory worker"""
_logger = logging.getLogger(__name__)


class Causes:
    """The newest failure of the database, the embedder and the writer. A memory and those of its users share one.

    Args:
        breaker: What knows whether the database has answered, whichever memory asked it.
        of_a_user: Whether calls carry a user's own token; see `of_a_user`.
    """

    def __init__(self, breaker: Breaker, *, of_a_user: bool = False) -> None:
        self._breaker = breaker
        self._lock = fork.Lock()
        self._standing: dict[Part, Cause] = {}
        self._said: set[tuple[Part, str, str | None]] = set()
        self._of_a_user = of_a_user
        fork.in_each_process(self._begin)

    def _begin(self) -> None:
        # What `of_a_user` gives shares both.
        self._standing.clear()
        self._said.clear()

    def of_a_user(self) -> Causes:
        """The same for calls with a user's own token: that the database refuses it is that user's affair."""
        twin = copy.copy(self)
        twin._of_a_user = True
        return twin

    def look_at(self, pack: ContextPack, *, has_writer: bool) -> None:
        """Say once that packs leave out what nobody is there to summarize, with the two lines that mend it.

        Args:
            pack: A pack.
            has_writer: Whether what is due is summarized before an answer.
        """
        said: tuple[Part, str, None] = ("writer", "unattended", None)
        if has_writer or not pack.unattended or said in self._said:
            return
        self._said.add(said)
        _logger.warning(_UNATTENDED, extra=log_fields(pack.key))

    @property
    def standing(self) -> tuple[Cause, ...]:
        """The failures that nothing has mended yet, one for each part at most."""
        with self._lock:
            return tuple(self._standing.values())

    @property
    def has_answered(self) -> bool:
        """Whether the database has answered once in this process."""
        return self._breaker.has_answered

    @contextmanager
    def watching(self, part: Part, *, settles: bool = True) -> Iterator[None]:
        """Note what a block raises, and that all is well where it raises nothing, if that settles it."""
        try:
            yield
        except Exception as error:
            if part != "database" or self._is_of_the_database(error):
                self._failed(part, error)
            raise
        if settles:
            self._answered(part)

    def _is_of_the_database(self, error: Exception) -> bool:
        if isinstance(error, _OF_ONE_CALL) or (self._of_a_user and isinstance(error, AccessError)):
            return False
        return isinstance(error, _OF_THE_DATABASE)

    def _answered(self, part: Part) -> None:
        if part not in self._standing:
            return  # the usual case takes no lock
        with self._lock:
            self._standing.pop(part, None)

    def _failed(self, part: Part, error: Exception) -> None:
        # The text of an error that is not ours may hold content; its class and code do not.
        reason = error.message if isinstance(error, SupabaseMemoryError) else f"{type(error).__name__}."
        code, now = code_of(error), datetime.now(UTC)
        with self._lock:
            before = self._standing.get(part)
            same = before is not None and (before.reason, before.code) == (reason, code)
            since, times = (before.since, before.times + 1) if before is not None and same else (now, 1)
            self._standing[part] = Cause(part, type(error).__name__, reason, code, times, since, now)
            said = (part, reason, code)
            if said in self._said:
                return
            self._said.add(said)
        fields = {"memory_part": part, "memory_error": type(error).__name__, "memory_code": code}
        shown = f" [{code}]" if code else ""
        _logger.warning("The %s failed: %s%s; %s.", part, reason.rstrip("."), shown, _COSTS[part], extra=fields)
