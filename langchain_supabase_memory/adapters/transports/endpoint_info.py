"""Where calls go, and by which keys its tokens are signed; nothing in it is secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_supabase_memory import documents

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS: Final = 5.0
_KEYS: Final = "/auth/v1/.well-known/jwks.json"


@dataclass(frozen=True)
class EndpointInfo:
    """Where calls go.

    Attributes:
        kind: `data_api`; `postgres`, a connection of one's own to the server; or `pooler`, one that is shared.
        address: Where it is, without user, password and key; `None` as long as nobody knows.
        keys_url: Where the project shows the keys that its tokens are signed with; `None` without a Data API.
    """

    kind: Literal["data_api", "postgres", "pooler"]
    address: str | None
    keys_url: str | None = None


def of_data_api(url: str, address: str) -> EndpointInfo:
    """Where calls to a project go.

    Args:
        url: The project's url.
        address: That of its Data API.
    """
    return EndpointInfo("data_api", address, url.strip().rstrip("/") + _KEYS)


def of_postgres(parts: Mapping[str, Any], *, is_pooled: bool | None) -> EndpointInfo:
    """Where calls over a connection go.

    Args:
        parts: The parts of the connection string.
        is_pooled: Whether a pooler stands between; `None`: nobody has looked, and its port tells.
    """
    host, port = str(parts.get("host") or parts.get("hostaddr") or "localhost"), str(parts.get("port") or 5432)
    where = f"the socket in {host}" if host.startswith("/") else f"{host}:{port}"
    pooled = port == "6543" if is_pooled is None else is_pooled
    return EndpointInfo(
        "pooler" if pooled else "postgres", f"{where}, database {parts.get('dbname') or parts.get('user')}"
    )


def signing_keys(url: str) -> int | None:
    """How many keys a project shows by which anybody can check its tokens.

    Args:
        url: `keys_url` of its endpoint.

    Returns:
        How many: none where tokens are signed by a shared secret, HS256. `None`: nothing there says so.
    """
    import httpx

    try:
        answer = httpx.get(url, timeout=_SECONDS)
        document = documents.loads(answer.content) if answer.status_code == httpx.codes.OK else None
    except (httpx.HTTPError, ValueError, RecursionError):
        return None
    keys = document.get("keys") if isinstance(document, dict) else None
    return len(keys) if isinstance(keys, list) else None
