"""What a transport is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo
    from langchain_supabase_memory.effects import Call


class Transport(Protocol):
    """Performs calls of SQL functions. It opens what it needs at the first call, never in its constructor."""

    @property
    def acts_as_user(self) -> bool:
        """Whether calls carry a user's identity, so that the owner need not be named."""

    @property
    def identity_is_callback(self) -> bool:
        """Whether a function says before each call who is signed in, so that the next may be another's."""

    @property
    def endpoint(self) -> EndpointInfo:
        """Where calls go, as far as that is known by now; nothing in it is secret."""

    def perform(self, call: Call) -> Any:
        """Perform one call, repeating it while the server cannot be reached, and return its decoded document."""

    async def aperform(self, call: Call) -> Any:
        """The async twin of `perform`; it never blocks the event loop."""

    def for_token(self, identity: Any) -> Transport:
        """A transport over the same connections whose calls carry this identity."""

    def close(self) -> None:
        """Close what the sync methods opened, and nothing else."""

    async def aclose(self) -> None:
        """Close what the sync methods and this event loop's async methods opened, and nothing else."""
