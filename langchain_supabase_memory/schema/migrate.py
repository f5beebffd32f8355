"""Applies the script over a connection: one transaction, so a failure leaves the database as it was."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

from langchain_supabase_memory.errors import (
    AccessError,
    MigrationConflictError,
    MissingDependencyError,
    SchemaError,
    UnavailableError,
    from_code,
)
from langchain_supabase_memory.schema import script
from langchain_supabase_memory.settings import DEFAULT_DIMENSIONS

_PAUSES: Final = (0.1, 0.3, 1.0, 3.0)
"""How long to wait after each deadlock, in seconds."""


def ensure(conn_string: str, *, dimensions: int = DEFAULT_DIMENSIONS) -> None:
    """Set a database up unless it is of this release: for who opens one that others may be using just now.

    Arguments and errors as for `migrate`.
    """
    import psycopg

    expected, found = script.current(dimensions), None
    with suppress(psycopg.Error), psycopg.connect(conn_string, connect_timeout=10) as connection:
        found = connection.execute("select public.memory_schema()").fetchone()
    if found is None or script.Installed(**found[0]) != expected:
        migrate(conn_string, dimensions=dimensions)


def migrate(conn_string: str, *, dimensions: int = DEFAULT_DIMENSIONS, vector_index: bool = False) -> script.Installed:
    """Set a database up, or bring it to this release. Safe to repeat, and safe when two run at once.

    On Supabase the roles and `auth` functions are left as they are; on another Postgres those that are missing are
    made.

    Args:
        conn_string: A Postgres connection string of a role that may create schemas, such as Supabase's `postgres`.
        dimensions: The embedding width, 1 to 16,000. It is recorded, and cannot change later.
        vector_index: Also make an index over the vectors of chunks, which serves owners of more than ten thousand. It
            makes indexing slower, and stays until you drop it.

    Returns:
        What the database is now set up with.

    Raises:
        ConfigurationError: The width is out of range; an index takes 4,000 dimensions at most.
        MissingDependencyError: The extra `postgres` is not installed.
        MigrationConflictError: The database was set up with another width, or from edited files.
        AuthenticationError: The password or the role is wrong.
        UnavailableError: The server cannot be reached.
        SchemaError: A statement failed; nothing was changed.
    """
    try:
        import psycopg
    except ImportError:
        raise MissingDependencyError("Migrating a database", "postgres") from None
    # The script is checked before the server is asked for anything.
    sql = script.text(dimensions, plain=True, vector_index=vector_index)

    def apply() -> None:
        # A session pooler or a direct connection: the script is one simple query in one transaction.
        with psycopg.connect(conn_string, connect_timeout=10, prepare_threshold=None) as connection:
            connection.execute(sql.encode())

    try:
        for pause in _PAUSES:
            try:
                apply()
            except psycopg.errors.DeadlockDetected:  # with calls of applications, which go on meanwhile
                time.sleep(pause)
            else:
                return script.current(dimensions)
        apply()
    except psycopg.Error as error:
        failure = from_code(error.sqlstate) if error.sqlstate else UnavailableError("Postgres could not be reached.")
        if isinstance(failure, MigrationConflictError):
            failure = MigrationConflictError(
                str(error.diag.message_primary).capitalize() + ".",
                code=error.sqlstate,
                hint=str(error.diag.message_hint).capitalize() + ".",
            )
        elif error.diag.message_primary:
            # A migration carries no user's content, so the server's own words may be shown.
            kind = type(failure) if isinstance(failure, (AccessError, UnavailableError)) else SchemaError
            failure = kind(
                f"The migration failed: {error.diag.message_primary}.",
                code=error.sqlstate,
                hint=error.diag.message_hint or "Nothing was changed.",
            )
        raise failure from None
    return script.current(dimensions)
