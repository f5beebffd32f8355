"""Checks of the connection: the address, the transport, the role of calls, the clocks, the keys that sign tokens."""

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
    """Report the address at which the database answered."""
    return green("address", f"{endpoint.address or 'The database'} answers.")


def kind(endpoint: EndpointInfo, *, is_distributed: bool = False) -> Finding:
    """Report the kind of transport.

    Args:
        endpoint: The endpoint of calls.
        is_distributed: Whether Citus spreads the tables over several nodes.
    """
    if is_distributed and endpoint.kind != "data_api":
        return green("transport", _SPREAD)
    return green("transport", _KINDS[endpoint.kind])


def connection_failed(endpoint: EndpointInfo, error: SupabaseMemoryError) -> list[Finding]:
    """Report why the database could not be checked, under the line that the error concerns.

    Args:
        endpoint: The endpoint of calls.
        error: The exception.
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
    """Check the role of calls with a server's rights.

    Args:
        name: The role.
        sees_all: Whether row level security shows it all users' rows.
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
    """Quote a name for SQL if necessary."""
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def check_user() -> Finding:
    """Report that calls use a user's own token, which hides the other checks."""
    return yellow(
        "key",
        "Calls speak as a signed-in user, under row level security. Checks that need a server's rights are left out: "
        "clock, pgvector, grants, vectors, workers, sizes and vacuum.",
        "To see it, run the doctor with the project's secret key or over a connection to Postgres.",
    )


def clock(server: datetime, sent_at: datetime, received: datetime) -> Finding:
    """Compare the server's clock with the local one.

    Args:
        server: The server's time, at some point during the call.
        sent_at: The local time before the call.
        received: The local time after the call.
    """
    apart = max((sent_at - server).total_seconds(), (server - received).total_seconds(), 0.0)
    if apart <= _LITTLE_SECONDS:
        return green("clock", "This machine's clock and the server's agree.")
    which = "behind" if server > received else "ahead of"
    words = f"This machine's clock is {duration_text(apart)} {which} the server's."
    action = "Set the clock of this machine by NTP: times of messages, and the ends of tokens, go by it."
    return (red if apart > _MUCH_SECONDS else yellow)("clock", words, action)


def tokens(keys: int | None) -> Finding:
    """Check how the project signs its users' tokens.

    Args:
        keys: How many keys it publishes; `None` if it does not answer.
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
