"""Applies the script over a connection: one transaction, so a failure leaves the database as it was."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.adapters import addresses
from langchain_supabase_memory.adapters.schema import script
from langchain_supabase_memory.errors import (
    AccessError,
    ConfigurationError,
    MigrationConflictError,
    MissingDependencyError,
    SchemaError,
    UnavailableError,
    connection_failed,
    from_code,
    from_error,
)

if TYPE_CHECKING:
    import psycopg

_PAUSES: Final = (0.1, 0.3, 1.0, 3.0)
"""How long to wait after each deadlock, in seconds."""

_VECTOR_SCHEMA: Final = (
    "select n.nspname from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace"
    " where e.extname = 'vector'"
)


def ensure(conn_string: str) -> None:
    """Set a database up unless it is of this release: for who opens one that others may be using just now.

    Errors as for `migrate`.
    """
    import psycopg

    found = None
    with suppress(psycopg.Error), psycopg.connect(conn_string, connect_timeout=10, **addresses.ENCODING) as connection:
        found = connection.execute("select public.memory_schema()").fetchone()
    if found is None or found[0] != asdict(script.current(found[0].get("vector_schema", script.VECTOR_SCHEMA))):
        migrate(conn_string)


_PARTITIONS: Final = (
    "select count(*) from pg_catalog.pg_inherits i where i.inhparent = to_regclass('memory.conversations')"
)

_DISTRIBUTED: Final = (
    "select count(*) from pg_catalog.pg_dist_partition p where p.logicalrelid = to_regclass('memory.conversations')"
)


def migrate(
    conn_string: str,
    *,
    vector_index: int | None = None,
    realtime: bool | None = None,
    partitions: int | None = None,
    citus: bool | None = None,
) -> script.Installed:
    """Set a database up, or bring it to this release. Safe to repeat, and safe when two run at once.

    On Supabase the roles and `auth` functions are left as they are; on another Postgres those that are missing are
    made. pgvector is used in the schema where it lies; where it is not there, it is created in `extensions`.

    Args:
        conn_string: A Postgres connection string of a role that may create schemas, such as Supabase's `postgres`: a
            direct one, or that of a pooler.
        vector_index: Also make an index over the vectors of chunks of this width, 1 to 4,000 dimensions, which serves
            owners of more than ten thousand. It makes indexing slower, and stays until you drop it.
        realtime: Whether Supabase's Realtime publishes that conversations and boards change; `None` leaves that as it
            is.
        partitions: For a new database: spread the tables of owners over this many partitions, 2 to 64. `None` leaves
            a database as it is, and makes plain tables in a new one.
        citus: For a new database with the extension citus: spread the tables of owners over its nodes, all of one
            owner on one of them. Then the role is a superuser. `None` leaves a database as it is, and makes plain
            tables in a new one.

    Returns:
        What the database is now set up with.

    Raises:
        ConfigurationError: `vector_index` or `partitions` is out of range, the name of pgvector's schema cannot be
            written, `citus` comes with `partitions` or `realtime`, the database does not store text as UTF8, or the
            server is a read replica.
        MissingDependencyError: The extra `postgres` is not installed.
        MigrationConflictError: The tables are of a newer release, or from files that were edited since, or not in as
            many partitions, or not as spread, as asked for; or the extension citus is missing.
        AuthenticationError: The password or the role is wrong.
        UnavailableError: The server cannot be reached.
        SchemaError: A statement failed; nothing was changed.
    """
    try:
        import psycopg
    except ImportError:
        raise MissingDependencyError("Migrating a database", "postgres") from None
    # The script is checked before the server is asked for anything.
    lock, *_ = script.parts(vector_index=vector_index, realtime=realtime, partitions=partitions, citus=bool(citus))
    addresses.postgres(conn_string)

    def apply() -> script.Installed:
        # Two simple queries in one transaction, and nothing that lasts longer: any pooler may sit between.
        with psycopg.connect(
            conn_string, connect_timeout=10, prepare_threshold=None, **addresses.ENCODING
        ) as connection:
            addresses.check_encoding(connection.info.parameter_status("server_encoding"))
            connection.execute(lock.sql.encode())
            found = connection.execute(_VECTOR_SCHEMA).fetchone()
            vector_schema = script.VECTOR_SCHEMA if found is None else str(found[0])
            text = script.text(
                vector_schema,
                plain=True,
                vector_index=vector_index,
                realtime=realtime,
                partitions=partitions or _partitions(connection),
                citus=_is_distributed(connection) if citus is None else citus,
            )
            connection.execute(text.encode())
            return script.current(vector_schema)

    try:
        for pause in _PAUSES:
            try:
                return apply()
            except psycopg.errors.DeadlockDetected:  # with calls of applications, which go on meanwhile
                time.sleep(pause)
        return apply()
    except psycopg.Error as error:
        failure = from_code(error.sqlstate) if error.sqlstate else connection_failed(str(error))
        if isinstance(failure, MigrationConflictError):
            failure = from_error(str(error.sqlstate), error.diag.message_primary, error.diag.message_hint)
        elif error.diag.message_primary and not isinstance(failure, ConfigurationError):
            # A migration carries no user's content, so the server's own words may be shown.
            kind = type(failure) if isinstance(failure, (AccessError, UnavailableError)) else SchemaError
            failure = kind(
                f"The migration failed: {error.diag.message_primary}.",
                code=error.sqlstate,
                hint=error.diag.message_hint or "Nothing was changed.",
            )
        raise failure from None


def _partitions(connection: psycopg.Connection[Any]) -> int | None:
    """Into how many partitions the tables that are there are spread."""
    [(count,)] = connection.execute(_PARTITIONS).fetchall()
    return count or None


def _is_distributed(connection: psycopg.Connection[Any]) -> bool:
    """Whether Citus spreads the tables that are there."""
    [(is_there,)] = connection.execute("select to_regclass('pg_catalog.pg_dist_partition') is not null").fetchall()
    return is_there and connection.execute(_DISTRIBUTED).fetchall() == [(1,)]
