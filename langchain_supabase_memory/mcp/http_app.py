"""The server over HTTP: Supabase Auth authenticates its users, and row level security limits what they see."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl, ValidationError

from langchain_supabase_memory.adapters.addresses import is_publishable
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.mcp.server import MemoryServer
from langchain_supabase_memory.mcp.sessions import SessionLimitMiddleware
from langchain_supabase_memory.mcp.tokens import SigningKeys, TokenVerifier
from langchain_supabase_memory.mcp.unavailable_middleware import ServiceUnavailableMiddleware

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from starlette.applications import Starlette

    from langchain_supabase_memory.mcp.request_memory import ServerOptions
    from langchain_supabase_memory.memory.health import HealthTracker
    from langchain_supabase_memory.memory.memory import SupabaseMemory

PATH: Final = "/mcp"
"""The path of the server."""

_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class SignedInOwner:
    """Owner of a request over HTTP: the user of the request's own token.

    Attributes:
        shared: A memory with the publishable key, whose connections all users share; it has no rights without a token.
    """

    shared: SupabaseMemory

    @property
    def has_embeddings(self) -> bool:
        """Whether the memory has an embedder."""
        return self.shared._services.embedder_name is not None

    @property
    def health(self) -> HealthTracker:
        """The health of the shared memory, whose calls carry a user's own token."""
        return self.shared._services.causes.for_user()

    def memory(self, context: ServerRequestContext[Any, Any]) -> SupabaseMemory | None:
        """Return the memory of the user whose token came with this very request; `None` without one."""
        user = getattr(context.request, "scope", {}).get("user")
        if not isinstance(user, AuthenticatedUser):
            return None
        return self.shared.for_token(user.access_token.token)


@dataclass(frozen=True, kw_only=True)
class AuthSite:
    """The server's address, and the issuer that signs its users in.

    Attributes:
        issuer: The authorization server: `https://<project ref>.supabase.co/auth/v1`.
        address: The server's own address, as clients know it, with its path.

    Raises:
        ConfigurationError: One of them is not a valid address.
    """

    issuer: str
    address: str

    def __post_init__(self) -> None:
        for name in ("issuer", "address"):
            given = getattr(self, name)
            try:
                AnyHttpUrl(given)
            except ValidationError:
                raise ConfigurationError(
                    f"The {name} is not a valid address.", hint="Pass https://… with a host, as clients know it."
                ) from None

    @property
    def keys(self) -> str:
        """The url of the issuer's public keys."""
        return f"{self.issuer.rstrip('/')}/.well-known/jwks.json"


def own_address(host: str, port: int) -> str:
    """Return the server's address if none is configured: the address it listens on.

    Args:
        host: The address to listen on.
        port: The port.

    Raises:
        ConfigurationError: Clients cannot use this address.
    """
    if _is_every(host):
        raise ConfigurationError(
            f"The host {host or 'of no name'} means all addresses of this machine; clients need a specific one.",
            hint="Pass --public-url https://…/mcp as well, the address by which clients reach the server.",
        )
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


def publishable(key: str | None) -> str:
    """Return the project's key, if it grants no rights without a token.

    Raises:
        ConfigurationError: The key is missing, or is a secret key, which bypasses row level security.
    """
    if not key:
        raise ConfigurationError(
            "The project's publishable key is missing.", hint="Pass --key sb_publishable_… or set SUPABASE_KEY."
        )
    if not is_publishable(key):
        raise ConfigurationError(
            "Over HTTP the server takes no secret key: it would see all users' conversations.",
            hint="Pass the publishable key, --key sb_publishable_…, from the project's API settings.",
        )
    return key


def app(
    shared: SupabaseMemory, site: AuthSite, options: ServerOptions, *, keys: SigningKeys | None = None
) -> Starlette:
    """Return the server as an ASGI application.

    Args:
        shared: A memory with the publishable key.
        site: The server's address, and the issuer that signs its users in.
        options: The options of the server.
        keys: The issuer's keys, if they were already fetched.
    """
    auth = AuthSettings(
        issuer_url=AnyHttpUrl(site.issuer),
        resource_server_url=AnyHttpUrl(site.address),
        validate_token_resource=False,  # the verifier checks the audience itself
    )
    verifier = TokenVerifier(site.issuer, keys or SigningKeys(site.keys))
    server = MemoryServer(SignedInOwner(shared), options, auth=auth, token_verifier=verifier)
    made = server.streamable_http_app(streamable_http_path=PATH, transport_security=_hosts(site.address))
    server.session_manager.asgi_app = SessionLimitMiddleware(server.session_manager.asgi_app)  # type: ignore[assignment]
    made.add_middleware(ServiceUnavailableMiddleware)
    return made


def _is_every(host: str) -> bool:
    """Return whether a listening host stands for all addresses of a machine, which clients cannot use as an address."""
    try:
        return ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return host in ("", "0")


def _hosts(address: str) -> TransportSecuritySettings:
    """Return the allowed host names: only the server's own, so that no web page reaches it by another name."""
    own = urlsplit(address)
    local = [each for host in _LOCAL for each in (host, f"{host}:*")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[own.netloc, *local],
        allowed_origins=[f"{own.scheme}://{own.netloc}", *(f"http://{each}" for each in local)],
    )
