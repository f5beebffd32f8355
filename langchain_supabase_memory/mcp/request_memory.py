"""Whose memory a request is about: the transport says so before a handler runs, and nothing that a client writes."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from langchain_supabase_memory.agents.tools.output_limit import CHARACTERS
from langchain_supabase_memory.errors import AuthenticationError

if TYPE_CHECKING:
    from datetime import tzinfo

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from langchain_supabase_memory.memory.health import HealthTracker
    from langchain_supabase_memory.memory.memory import SupabaseMemory


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """What was said once, when the server was started.

    Attributes:
        conversation_id: The conversation that is meant where a call names none; by default the newest.
        characters: The most characters of one result.
        time_zone: In which times are shown, and "today" begins; UTC by default.
        write: Whether turns and notes can be stored.
        destructive: Whether something can be forgotten.
    """

    conversation_id: str | None = None
    characters: int = CHARACTERS
    time_zone: str | tzinfo | None = None
    write: bool = False
    destructive: bool = False


class MemoryOwner(Protocol):
    """Says whose memory a request is about."""

    @property
    def has_embeddings(self) -> bool:
        """Whether there is an embedder, so that what was said is found by meaning."""

    @property
    def health(self) -> HealthTracker:
        """What knows which failures are logged already."""

    def memory(self, context: ServerRequestContext[Any, Any]) -> SupabaseMemory | None:
        """The memory of whoever sent the request; `None` if that is nobody."""


@dataclass(frozen=True)
class OneOwner:
    """A server for one person, who was named when it was started.

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
        """Those of the memory."""
        return self.memory_given._services.causes

    def memory(self, context: ServerRequestContext[Any, Any]) -> SupabaseMemory | None:
        """The person's memory, whatever the request says."""
        del context
        return self.memory_given


@dataclass(frozen=True)
class RequestMemory:
    """What a request is about.

    Attributes:
        memory: The memory of whoever sent it.
        options: What was said when the server was started.
    """

    memory: SupabaseMemory
    options: ServerOptions


_present: ContextVar[RequestMemory | None] = ContextVar("served", default=None)

_NOBODY: Final = "Nobody is signed in."
_SIGN_IN: Final = "Sign in again in the client, then repeat the call."


def current_request() -> RequestMemory:
    """What the present request is about.

    Raises:
        AuthenticationError: Nobody sent it.
    """
    served = _present.get()
    if served is None:
        raise AuthenticationError(_NOBODY, hint=_SIGN_IN)
    return served


@dataclass(frozen=True)
class IdentityMiddleware:
    """What stands before every handler: it finds out whose memory the request is about.

    Attributes:
        owner: Says so.
        options: What was said when the server was started.
    """

    owner: MemoryOwner
    options: ServerOptions

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Handle one request in the name of whoever sent it."""
        memory = self.owner.memory(ctx)
        token = _present.set(None if memory is None else RequestMemory(memory, self.options))
        try:
            return await call_next(ctx)
        finally:
            _present.reset(token)
