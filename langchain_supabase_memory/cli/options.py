"""What several commands share: the options that name a database, the memory that they open, errors as plain text."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from langchain_supabase_memory.errors import ConfigurationError, SupabaseMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_supabase_memory.memory import SupabaseMemory

DATABASE_URL = "SUPABASE_DB_URL"
"""The environment variable that holds a connection string."""


def plainly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Show our own errors as one clear text, not as a traceback."""

    @wraps(command)
    def run(*arguments: Any, **named: Any) -> Any:
        try:
            return command(*arguments, **named)
        except SupabaseMemoryError as error:
            raise click.ClickException(str(error)) from None

    return run


database_url_option = click.option(
    "--database-url", envvar=DATABASE_URL, help=f"A Postgres connection string; by default ${DATABASE_URL}."
)
embedded_option = click.option(
    "--embedded", type=click.Path(path_type=Path, file_okay=False), help="The folder of an embedded database instead."
)
url_option = click.option(
    "--url", envvar="SUPABASE_URL", help="The project's url, for the Data API; by default $SUPABASE_URL."
)
key_option = click.option("--key", envvar="SUPABASE_KEY", help="Its secret key; by default $SUPABASE_KEY.")


def opened(
    database_url: str | None, embedded: Path | None, url: str | None, key: str | None, **settings: Any
) -> SupabaseMemory:
    """The memory that the options name; its settings as for `SupabaseMemory`."""
    from langchain_supabase_memory.memory import SupabaseMemory

    if url and key and not database_url and not embedded:
        return SupabaseMemory.from_url(url, key, **settings)
    return SupabaseMemory.from_conn_string(conn_string(database_url, embedded), **settings)


def conn_string(database_url: str | None, embedded: Path | None) -> str:
    """The connection string that the options name.

    Raises:
        ConfigurationError: They name none.
    """
    if embedded is not None:
        from langchain_supabase_memory.transports.embedded import start

        return start(embedded)
    if not database_url:
        raise ConfigurationError(
            "No database is named.",
            hint=f"Pass --database-url postgresql://…, set {DATABASE_URL}, or pass --embedded FOLDER.",
        )
    return database_url
