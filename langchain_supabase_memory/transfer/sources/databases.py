"""Reads other libraries' tables in order, row by row, from Postgres or SQLite."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.adapters import addresses
from langchain_supabase_memory.errors import InvalidInputError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?")
_MANY: Final = 500
_HINT: Final = "Check the address, and the table's name and columns."


def rows(address: str, table: str, columns: Sequence[str], order: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield columns of all rows of a table.

    Args:
        address: A connection string of Postgres, or a file of SQLite (`sqlite:///chat.db`, or its path). A driver's
            name in it (`postgresql+psycopg`, `sqlite+aiosqlite`) is ignored.
        table: Its name, optionally with its schema.
        columns: The columns; one that the table does not have is null.
        order: The columns to sort by.

    Raises:
        InvalidInputError: There is no such table, its name is not valid, or it is in another kind of database.
        MissingDependencyError: The driver for the address is not installed.
    """
    if not _NAME.fullmatch(table):
        raise InvalidInputError("That is not a valid table name.", hint="Pass table='message_store', for example.")
    plain = re.sub(r"^(postgres(?:ql)?|sqlite)\+\w+://", r"\1://", address)
    if plain.startswith(("postgres://", "postgresql://")) or "host=" in plain:
        yield from _postgres(plain, table, columns, order)
    elif plain.startswith("sqlite://") or "://" not in plain:
        yield from _sqlite(sqlite_file(plain), table, columns, order)
    else:
        raise InvalidInputError(
            "Tables are read from Postgres and SQLite alone.",
            hint="Copy the table into a file of SQLite, or pass a generator of your own that reads it.",
        )


def sqlite_file(address: str) -> str:
    """Return the file of an SQLite address, which SQLite would create if it did not exist.

    Raises:
        InvalidInputError: There is no such file.
    """
    path = re.sub(r"^sqlite(\+\w+)?:///", "", address)
    if not Path(path).is_file():
        raise InvalidInputError("There is no such file of SQLite.", hint=_HINT)
    return path


def _query(table: str, columns: Sequence[str], order: Sequence[str], existing: set[str]) -> str:
    selected = ", ".join(name if name in existing else f"null as {name}" for name in columns)
    quoted = ".".join(f'"{part}"' for part in table.split("."))
    return f"select {selected} from {quoted} order by {', '.join(order)}"


def _postgres(address: str, table: str, columns: Sequence[str], order: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    try:
        import psycopg
    except ImportError:
        raise MissingDependencyError("Reading from Postgres", "postgres") from None
    try:
        with psycopg.connect(address, **addresses.ENCODING) as connection:
            quoted = ".".join(f'"{part}"' for part in table.split("."))
            head = connection.execute(f"select * from {quoted} limit 0".encode())
            names = {column.name for column in head.description or []}
            with connection.cursor(name="transfer") as cursor:  # a server-side cursor, so that rows are streamed
                cursor.itersize = _MANY
                cursor.execute(_query(table, columns, order, names).encode())
                yield from cursor
    except psycopg.Error as error:
        raise _refused(error.sqlstate) from None


def _sqlite(path: str, table: str, columns: Sequence[str], order: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    try:
        # Any thread may read, one at a time.
        with closing(
            sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        ) as db:
            names = {row[1] for row in db.execute(f'pragma table_info("{table}")')}
            yield from db.execute(_query(table, columns, order, names))
    except sqlite3.Error as error:
        raise _refused(error.sqlite_errorname if hasattr(error, "sqlite_errorname") else None) from None


def _refused(code: str | None) -> InvalidInputError:
    return InvalidInputError("The database to import from could not be read.", code=code, hint=_HINT)
