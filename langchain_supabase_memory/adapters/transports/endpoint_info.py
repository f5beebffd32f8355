"""Where calls go, and which keys sign the tokens; contains no secrets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from langchain_supabase_memory import documents

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS: Final = 5.0
_KEYS: Final = "/auth/v1/.well-known/jwks.json"
_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True)
class EndpointInfo:
    """Where calls go.

    Attributes:
        kind: `data_api`; `postgres`, a direct connection to the server; or `pooler`, a shared one.
        address: The address, without user, password and key; `None` as long as it is unknown.
        keys_url: The url of the project's public signing keys; `None` without a Data API.
        host: The server's domain name, IP address or Unix socket; `None` if it is unknown or one of several.
        port: The server's port; `None` for a socket and where `host` is.
    """

    kind: Literal["data_api", "postgres", "pooler"]
    address: str | None
    keys_url: str | None = None
    host: str | None = None
    port: int | None = None


def of_data_api(url: str, address: str) -> EndpointInfo:
    """Return the endpoint of a project.

    Args:
        url: The project's url.
        address: The address of its Data API.
    """
    parts = urlsplit(address)
    port = parts.port or _PORTS.get(parts.scheme)
    return EndpointInfo("data_api", address, url.strip().rstrip("/") + _KEYS, parts.hostname, port)


def of_postgres(parts: Mapping[str, Any], *, is_pooled: bool | None) -> EndpointInfo:
    """Return the endpoint of a Postgres connection.

    Args:
        parts: The parts of the connection string.
        is_pooled: Whether a pooler is in between; `None`: unknown, so it is guessed from the port.
    """
    host, port = str(parts.get("host") or parts.get("hostaddr") or "localhost"), str(parts.get("port") or 5432)
    is_socket = host.startswith("/")
    where = f"the socket in {host}" if is_socket else f"{host}:{port}"
    pooled = port == "6543" if is_pooled is None else is_pooled
    server: tuple[str | None, int | None] = (None, None)
    if is_socket:
        server = (f"{host}/.s.PGSQL.{port}", None)
    elif "," not in host and port.isdecimal():
        server = (host, int(port))
    kind: Literal["pooler", "postgres"] = "pooler" if pooled else "postgres"
    address = f"{where}, database {parts.get('dbname') or parts.get('user')}"
    return EndpointInfo(kind, address, host=server[0], port=server[1])


def signing_keys(url: str) -> int | None:
    """Return how many public keys a project publishes for verifying its tokens.

    Args:
        url: `keys_url` of its endpoint.

    Returns:
        The number of keys: 0 if tokens are signed with a shared secret, HS256. `None` if the response does not say.
    """
    import httpx

    try:
        answer = httpx.get(url, timeout=_SECONDS)
        document = documents.loads(answer.content) if answer.status_code == httpx.codes.OK else None
    except (httpx.HTTPError, ValueError, RecursionError):
        return None
    keys = document.get("keys") if isinstance(document, dict) else None
    return len(keys) if isinstance(keys, list) else None
