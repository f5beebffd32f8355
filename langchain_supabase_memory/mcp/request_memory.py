"""Whose memory a request is about: the transport decides it before a handler runs, never the client's arguments."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from langchain_supabase_memory.agents.tools.output_limit import CHARACTERS
from langchain_supabase_memory.errors import AuthenticationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from langchain_supabase_memory.memory.health import HealthTracker
    from langchain_supabase_memory.memory.memory import SupabaseMemory


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The options set when the server is started.

    Attributes:
        conversation_id: The conversation of calls that name none; by default the newest.
        characters: The maximum number of characters of one result.
        time_zone: The time zone of displayed times and of "today"; UTC by default.
        write: Whether turns can be stored, and something about the person remembered.
        destructive: Whether something can be forgotten.
        spaces: Whether the person's spaces are served, too.
    """

    conversation_id: str | None = None
    characters: int = CHARACTERS
    time_zone: str | tzinfo | None = None
    write: bool = False
    destructive: bool = False
    spaces: bool = False


class MemoryOwner(Protocol):
    """Decides whose memory a request is about."""

    @property
    def has_embeddings(self) -> bool:
        """Whether there is an embedder, for search by meaning."""

    @property
    def health(self) -> HealthTracker:
        """Tracks which failures were already logged."""

    def memory(self, context: ServerRequestContext[Any, Any]) -> SupabaseMemory | None:
        """Return the memory of the request's user; `None` if there is no user."""


@dataclass(frozen=True)
class OneOwner:
    """Owner of every request: one person, named when the server was started.

    Attributes:
        memory_given: Their memory.
    """

    memory_given: SupabaseMemory

    @property
    def has_embeddings(self) -> bool:
        """Whether the memory has an embedder."""
        return self.memory_given._services.embedder_name is not None

    @property
    def health(self) -> HealthTracker:
        """The health of the memory."""
        return self.memory_given._services.causes

    def memory(self, context: ServerRequestContext[Any, Any]) -> SupabaseMemory | None:
        """Return the person's memory, whatever the request says."""
        del context
        return self.memory_given


@dataclass(frozen=True)
class RequestMemory:
    """The memory and the options of a request.

    Attributes:
        memory: The memory of the request's user.
        options: The options of the server.
    """

    memory: SupabaseMemory
    options: ServerOptions


_present: ContextVar[RequestMemory | None] = ContextVar("served", default=None)

_NOT_SIGNED_IN: Final = "No user is signed in."
_SIGN_IN: Final = "Sign in again in the client, then repeat the call."


def current_request() -> RequestMemory:
    """Return the memory and the options of the current request.

    Raises:
        AuthenticationError: The request has no user.
    """
    served = _present.get()
    if served is None:
        raise AuthenticationError(_NOT_SIGNED_IN, hint=_SIGN_IN)
    return served


@contextmanager
def as_request(served: RequestMemory | None) -> Iterator[None]:
    """Make this memory the one of the current request within the block.

    Args:
        served: The memory and its options; `None` if the request has no user.
    """
    token = _present.set(served)
    try:
        yield
    finally:
        _present.reset(token)


@dataclass(frozen=True)
class IdentityMiddleware:
    """Runs before every handler and determines whose memory the request is about.

    Attributes:
        owner: Decides whose memory it is.
        options: The options of the server.
    """

    owner: MemoryOwner
    options: ServerOptions

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Handle one request as its user."""
        memory = self.owner.memory(ctx)
        with as_request(None if memory is None else RequestMemory(memory, self.options)):
            return await call_next(ctx)
