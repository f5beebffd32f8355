"""Checks of the transport, memory or folder that was passed, with hints on the right constructor."""

from __future__ import annotations

from os import PathLike
from typing import Final

from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.errors import ConfigurationError

HOW_TO_OPEN: Final = "Make one with SupabaseMemory.from_url, from_client, from_conn_string or embedded, and pass it."


def require_transport(transport: object, more: tuple[object, ...]) -> None:
    """Reject a wrong transport early.

    Args:
        transport: The argument.
        more: Further positional arguments.

    Raises:
        ConfigurationError: It is not a transport, or not the only argument.
    """
    is_memory = hasattr(transport, "_services")
    if more or is_memory or not callable(getattr(transport, "perform", None)):
        hint = wrong_constructor(transport)
        if is_memory:
            hint = "It is a memory already. For another user use memory.for_user(user_id) or memory.for_token(token)."
        raise wrong_type("transport", "a SupabaseTransport or a PostgresTransport, alone", transport, hint)


def require_folder(path: object) -> None:
    """Reject a path that is not a folder's.

    Raises:
        ConfigurationError: It is not a path, or it is a URL.
    """
    if path is not None and not isinstance(path, (str, PathLike)):
        raise wrong_type("path", "a folder's path", path, 'Pass "./memory", for example.')
    if isinstance(path, str) and "://" in path:
        hint = "Use SupabaseMemory.from_conn_string or from_url for a database that has an address."
        raise ConfigurationError("path must be a folder, not an address.", hint=hint)


def wrong_constructor(value: object) -> str:
    """Return a hint on how to create a memory from the wrong argument."""
    if isinstance(value, str):
        if value.startswith(("postgres://", "postgresql://")) or "host=" in value:
            return "Use SupabaseMemory.from_conn_string(conn_string)."
        return "Use SupabaseMemory.from_url(url, key)." if "://" in value else HOW_TO_OPEN
    if hasattr(value, "supabase_url"):
        return "Use SupabaseMemory.from_client(client)."
    if hasattr(value, "add_messages"):
        return "Pass the SupabaseMemory that the history is made over."
    if type(value).__module__.startswith(("psycopg", "asyncpg", "sqlalchemy")):
        return "Use SupabaseMemory.from_conn_string(conn_string), with the address of the database."
    if callable(getattr(value, "perform", None)):
        return "Make a memory over it: SupabaseMemory(transport)."
    return HOW_TO_OPEN
