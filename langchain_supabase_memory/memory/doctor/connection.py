"""Checks of the connection: the address, the transport, the role of calls, the clocks, the keys that sign tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import PermissionDeniedError, SchemaError, SupabaseMemoryError
from langchain_supabase_memory.humanize import duration
from langchain_supabase_memory.memory.doctor.finding import Finding, green, red, yellow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo

_KINDS: Final = {
    "data_api": "Calls go through Supabase's Data API.",
    "postgres": "Calls use a direct connection to Postgres. NOTIFY wakes workers at once.",
    "pooler": "Calls go to Postgres through a pooler. If it pools transactions, workers receive no NOTIFY and poll "
    "every two seconds.",
}
_DISTRIBUTED: Final = (
    "Calls go to Postgres with Citus. Workers receive no NOTIFY from the nodes and poll every two seconds."
)
_PLAIN: Final = re.compile("[a-z_][a-z0-9_]*")
_CLOCK_YELLOW_SECONDS: Final = 5.0
_CLOCK_RED_SECONDS: Final = 60.0

_WRONG_SETTINGS: Final = {
    ("default_transaction_read_only", "on"): "every write is refused. Supabase sets it where the disk is full",
    ("row_security", "off"): "every call for a signed-in user is refused",
    ("session_replication_role", "replica"): "no trigger runs, and workers never get work",
    ("standard_conforming_strings", "off"): "the functions of this package fail",
}
"""The settings that break calls, by name and value: what happens."""

_SHORTEST_TIMEOUTS: Final = {"statement_timeout": 3_000, "transaction_timeout": 3_000, "lock_timeout": 1_000}
"""The shortest time limits that calls under load keep to, in milliseconds."""


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
        return green("transport", _DISTRIBUTED)
    return green("transport", _KINDS[endpoint.kind])


def connection_failed(endpoint: EndpointInfo, error: SupabaseMemoryError) -> list[Finding]:
    """Report why the database could not be checked, in the finding that the error concerns.

    Args:
        endpoint: The endpoint of calls.
        error: The exception.
    """
    if isinstance(error, SchemaError):
        return [address(endpoint), kind(endpoint), red("schema", error.reason, error.hint)]
    if isinstance(error, PermissionDeniedError):
        hint = "Pass the project's secret key, or connect as the role that runs the migrations."
        words = "This key or role has no server's rights, and no user is signed in."
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
        return green("key", f"Calls run as {name}, with a server's rights.")
    return red(
        "key",
        f"Calls run as {name}. Row level security applies to this role, and no user is signed in: every read is empty, "
        "and every write is refused.",
        f"Run as a superuser: alter role {_identifier(name)} bypassrls; then restart the clients of this role. Or "
        "connect as the role that runs the migrations.",
    )


def _identifier(name: str) -> str:
    """Quote a name for SQL if necessary."""
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def check_user() -> Finding:
    """Report that calls use a user's own token, so some checks are skipped."""
    return yellow(
        "key",
        "Calls run as a signed-in user, under row level security. Checks that need a server's rights are skipped: "
        "clock, settings, pgvector, access, checkpoints, vectors, workers, retention, Realtime, sizes and autovacuum.",
        "To run all checks, use the project's secret key or a direct connection to Postgres.",
    )


def clock(server: datetime, sent_at: datetime, received: datetime) -> Finding:
    """Compare the server's clock with the local one.

    Args:
        server: The server's time, at some point during the call.
        sent_at: The local time before the call.
        received: The local time after the call.
    """
    apart = max((sent_at - server).total_seconds(), (server - received).total_seconds(), 0.0)
    if apart <= _CLOCK_YELLOW_SECONDS:
        return green("clock", "The clocks of this machine and the server agree.")
    which = "behind" if server > received else "ahead of"
    words = f"This machine's clock is {duration(apart)} {which} the server's."
    action = "Synchronize this machine's clock by NTP. Message times and the expiry of tokens depend on it."
    return (red if apart > _CLOCK_RED_SECONDS else yellow)("clock", words, action)


def settings(rows: Sequence[Mapping[str, Any]]) -> Finding:
    """Check the settings of the server's sessions that calls depend on.

    Args:
        rows: The settings, as `memory_worker_doctor` returns them.
    """
    name = "settings"
    for row in rows:
        effect = _WRONG_SETTINGS.get((row["name"], row["value"]))
        if effect is not None:
            return red(name, f"The setting {row['name']} is {row['value']}: {effect}.", _reset(row))
    for row in rows:
        if 0 < (row["milliseconds"] or 0) < _SHORTEST_TIMEOUTS.get(row["name"], 0):
            words = f"The setting {row['name']} is {row['value']}, which is short: calls fail where the server is busy."
            return yellow(name, words, _reset(row))
    return green(name, "The settings of the database and the role suit the calls.")


def _reset(row: Mapping[str, Any]) -> str:
    """Return what to do about a setting."""
    if row["reset"] is None:
        return (
            "Change it in the server's configuration or the options of the connection string, and restart the clients."
        )
    return f"Run: {row['reset']}; then restart the clients."


def tokens(keys: int | None) -> Finding:
    """Check how the project signs its users' tokens.

    Args:
        keys: How many keys it publishes; `None` if it does not answer.
    """
    name = "tokens"
    if keys:
        return green(name, f"The project signs users' tokens with an asymmetric key (JWKS, {keys} published).")
    if keys is None:
        return yellow(
            name,
            "No Supabase Auth answers at this project's URL, so it is unknown how tokens are signed.",
            "Check the project's URL. A bare PostgREST has no Auth, and MCP over HTTP needs it.",
        )
    return yellow(
        name,
        "The project signs users' tokens with a shared secret (HS256). MCP over HTTP does not work with it.",
        "For MCP over HTTP, switch to asymmetric signing keys in the project's settings, under JWT keys.",
    )
