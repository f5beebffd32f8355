"""Applies the script over a connection, in one transaction, so a failure leaves the database unchanged."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, replace
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

_OWNER: Final = (
    "Connect as a role that may create schemas in this database, as postgres may on Supabase; if there is a memory in"
    " it, as the role that set it up."
)

_LOCKED: Final = (
    "Another session holds a lock: end its transaction, or wait for the other migration, and migrate again; or raise"
    " lock_timeout."
)

_VECTOR_SCHEMA: Final = (
    "select n.nspname from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace"
    " where e.extname = 'vector'"
)


def ensure(conn_string: str) -> None:
    """Migrate a database unless it already has this release's schema; for callers that share the database.

    Errors as for `migrate`.
    """
    import psycopg

    found = None
    with suppress(psycopg.Error), psycopg.connect(conn_string, connect_timeout=10, **addresses.ENCODING) as connection:
        found = connection.execute("select public.memory_schema()").fetchone()
    if found is None or found[0] | {"spaces": False} != asdict(
        script.current(found[0].get("vector_schema", script.VECTOR_SCHEMA))
    ):
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
    spaces: bool | None = None,
    partitions: int | None = None,
    citus: bool | None = None,
) -> script.Installed:
    """Set up a database, or upgrade it to this release. Safe to repeat, and safe to run concurrently.

    On Supabase the roles and `auth` functions stay as they are; on other Postgres servers missing ones are created.
    pgvector is used in the schema that contains it; if it is not installed, it is created in `extensions`.

    Args:
        conn_string: A Postgres connection string, direct or through a pooler, of a role that may create schemas, such
            as Supabase's `postgres`.
        vector_index: Also create an index over chunk vectors of this width, 1 to 4,000 dimensions, for owners with more
            than ten thousand chunks. It slows down indexing, and stays until you drop it.
        realtime: Whether Supabase's Realtime publishes changes of conversations and boards; `None` leaves that
            unchanged.
        spaces: Whether people share spaces: members read what a space owns. That makes each read somewhat dearer.
            `False` closes all spaces, whose rows stay; `None` leaves it unchanged, and a new database without.
        partitions: For a new database: spread the owners' tables over this many partitions, 2 to 64. `None` leaves a
            database unchanged, and creates plain tables in a new one.
        citus: For a new database with the extension citus: distribute the owners' tables over its nodes, with all of
            one owner's rows on one node. The role must be a superuser. `None` leaves a database unchanged, and creates
            plain tables in a new one.

    Returns:
        What is now installed in the database.

    Raises:
        ConfigurationError: `vector_index` or `partitions` is out of range, the name of pgvector's schema is not usable,
            `citus` is combined with `partitions` or `realtime`, the database does not store text as UTF8, or the server
            is a read replica.
        MissingDependencyError: The extra `postgres` is not installed.
        MigrationConflictError: The tables are from a newer release, from files that were edited since, or partitioned
            or distributed differently than requested; the extension citus is missing; `spaces` is requested, and a user
            is named like a space; or `standard_conforming_strings` is off.
        AuthenticationError: The password or the role is wrong.
        UnavailableError: The server cannot be reached.
        SchemaError: A statement failed; nothing was changed.
    """
    try:
        import psycopg
    except ImportError:
        raise MissingDependencyError("Migrating a database", "postgres") from None
    # The script is checked before anything is sent to the server.
    lock, *_ = script.parts(
        vector_index=vector_index, realtime=realtime, spaces=spaces, partitions=partitions, citus=bool(citus)
    )
    addresses.postgres(conn_string)

    def apply() -> script.Installed:
        # Two simple queries in one transaction, and no session state, so any pooler works.
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
                spaces=spaces,
                partitions=partitions or _partitions(connection),
                citus=_is_distributed(connection) if citus is None else citus,
            )
            connection.execute(text.encode())
            return replace(script.current(vector_schema), spaces=_has_spaces(connection))

    try:
        for pause in _PAUSES:
            try:
                return apply()
            except psycopg.errors.DeadlockDetected:  # with calls of applications, which continue meanwhile
                time.sleep(pause)
        return apply()
    except psycopg.Error as error:
        failure = from_code(error.sqlstate) if error.sqlstate else connection_failed(str(error))
        if isinstance(failure, MigrationConflictError):
            failure = from_error(str(error.sqlstate), error.diag.message_primary, error.diag.message_hint)
        elif error.diag.message_primary and not isinstance(failure, ConfigurationError):
            # A migration contains no user content, so the server's own message may be shown.
            kind = type(failure) if isinstance(failure, (AccessError, UnavailableError)) else SchemaError
            if isinstance(failure, AccessError):
                action = f"{_OWNER} Nothing was changed."
            elif isinstance(error, psycopg.errors.LockNotAvailable):
                action = f"{_LOCKED} Nothing was changed."
            else:
                action = "Nothing was changed."
            failure = kind(
                f"The migration failed: {error.diag.message_primary}.",
                code=error.sqlstate,
                hint=error.diag.message_hint or action,
            )
        raise failure from None


def _partitions(connection: psycopg.Connection[Any]) -> int | None:
    """Return the number of partitions of the existing tables."""
    [(count,)] = connection.execute(_PARTITIONS).fetchall()
    return count or None


def _has_spaces(connection: psycopg.Connection[Any]) -> bool:
    """Return whether spaces are switched on."""
    return connection.execute("select memory_private.has_spaces()").fetchall() == [(True,)]


def _is_distributed(connection: psycopg.Connection[Any]) -> bool:
    """Return whether Citus distributes the existing tables."""
    [(is_there,)] = connection.execute("select to_regclass('pg_catalog.pg_dist_partition') is not null").fetchall()
    return is_there and connection.execute(_DISTRIBUTED).fetchall() == [(1,)]
