"""The transport protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo
    from langchain_supabase_memory.effects import Call


class Transport(Protocol):
    """Performs calls of SQL functions. It opens connections at the first call, never in its constructor."""

    @property
    def acts_as_user(self) -> bool:
        """Whether calls carry a user's identity, so that the owner need not be named."""

    @property
    def identity_is_callback(self) -> bool:
        """Whether a callback returns the user before each call, so that the next call may be another user's."""

    @property
    def endpoint(self) -> EndpointInfo:
        """Where calls go, as far as it is known; contains no secrets."""

    def perform(self, call: Call) -> Any:
        """Perform one call, retrying while the server cannot be reached, and return its decoded document."""

    async def aperform(self, call: Call) -> Any:
        """The async twin of `perform`; it never blocks the event loop."""

    def for_token(self, identity: Any) -> Transport:
        """Return a transport over the same connections whose calls carry this identity."""

    def close(self) -> None:
        """Close what the sync methods opened, and nothing else."""

    async def aclose(self) -> None:
        """Close what the sync methods and this event loop's async methods opened, and nothing else."""
