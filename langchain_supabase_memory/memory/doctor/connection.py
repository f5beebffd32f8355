"""What a transport tells: the address, its kind, as whom calls speak, the clocks, the keys that sign tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.errors import PermissionDeniedError, SchemaError, SupabaseMemoryError
from langchain_supabase_memory.memory.doctor.finding import Finding, duration_text, green, red, yellow

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo

_KINDS: Final = {
    "data_api": "The Data API of Supabase.",
    "postgres": "A connection of its own to Postgres; NOTIFY wakes workers at once.",
    "pooler": "A connection to Postgres through a pooler; where that pools transactions, workers hear no NOTIFY and "
    "look every two seconds.",
}
_SPREAD: Final = (
    "A connection to Postgres, where Citus spreads the tables over nodes: no NOTIFY of a node reaches workers, which "
    "look every two seconds."
)
_PLAIN: Final = re.compile("[a-z_][a-z0-9_]*")
_LITTLE_SECONDS: Final = 5.0
_MUCH_SECONDS: Final = 60.0


def address(endpoint: EndpointInfo) -> Finding:
    """Where the database answered."""
    return green("address", f"{endpoint.address or 'The database'} answers.")


def kind(endpoint: EndpointInfo, *, is_distributed: bool = False) -> Finding:
    """Which kind of transport it is.

    Args:
        endpoint: Where calls go.
        is_distributed: Whether Citus spreads the tables over several nodes.
    """
    if is_distributed and endpoint.kind != "data_api":
        return green("transport", _SPREAD)
    return green("transport", _KINDS[endpoint.kind])


def connection_failed(endpoint: EndpointInfo, error: SupabaseMemoryError) -> list[Finding]:
    """Why the database could not be examined, at the line that it is about.

    Args:
        endpoint: Where calls go.
        error: What was raised.
    """
    if isinstance(error, SchemaError):
        return [address(endpoint), kind(endpoint), red("schema", error.reason, error.hint)]
    if isinstance(error, PermissionDeniedError):
        hint = "Pass the secret key of the project, or connect as the role that migrates."
        words = "This key, or this role, has no server's rights, and nobody is signed in."
        return [address(endpoint), kind(endpoint), red("key", words, hint)]
    where = f"{endpoint.address}: " if endpoint.address else ""
    return [red("address", f"{where}{error.reason}", error.hint)]


def role(name: str, *, sees_all: bool) -> Finding:
    """As whom calls speak, who have a server's rights.

    Args:
        name: The role.
        sees_all: Whether row level security shows it everybody's rows.
    """
    if sees_all:
        return green("key", f"Calls speak as {name}, with a server's rights.")
    return red(
        "key",
        f"Calls speak as {name}, to which row level security applies without a user's claims: every read is empty, "
        "and every write is refused.",
        f"Run as a superuser: alter role {_identifier(name)} bypassrls; and restart what is connected as it. Or "
        "connect as the role that migrates.",
    )


def _identifier(name: str) -> str:
    """A name as SQL takes it."""
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def check_user() -> Finding:
    """Calls carry a user's own token: the rest is hidden from it."""
    return yellow(
        "key",
        "Calls speak as a signed-in user, under row level security. What only a server sees is left out here: clock, "
        "pgvector, grants, vectors, workers, sizes and vacuum.",
        "To see it, run the doctor with the project's secret key or over a connection to Postgres.",
    )


def clock(server: datetime, sent_at: datetime, received: datetime) -> Finding:
    """The server's clock against ours.

    Args:
        server: What the server's clock said, at some time between.
        sent_at: What ours said before it was asked.
        received: What ours said when the answer came.
    """
    apart = max((sent_at - server).total_seconds(), (server - received).total_seconds(), 0.0)
    if apart <= _LITTLE_SECONDS:
        return green("clock", "This machine's clock and the server's agree.")
    which = "behind" if server > received else "ahead of"
    words = f"This machine's clock is {duration_text(apart)} {which} the server's."
    action = "Set the clock of this machine by NTP: times of messages, and the ends of tokens, go by it."
    return (red if apart > _MUCH_SECONDS else yellow)("clock", words, action)


def tokens(keys: int | None) -> Finding:
    """How the project signs its users' tokens.

    Args:
        keys: How many keys it shows; `None`: it shows nothing.
    """
    name = "tokens"
    if keys:
        return green(name, f"Users' tokens are signed by a key that anybody can check (JWKS, {keys} shown).")
    if keys is None:
        return yellow(
            name,
            "No Auth of a Supabase project answers beside this Data API, so that nobody knows how tokens are signed.",
            "Check the project's url; a bare PostgREST has none, and MCP over HTTP cannot be served with it.",
        )
    return yellow(
        name,
        "Users' tokens are signed by a shared secret (HS256): MCP over HTTP cannot be served with it.",
        "For MCP over HTTP move the project to asymmetric signing keys, in its settings of JWT keys.",
    )
