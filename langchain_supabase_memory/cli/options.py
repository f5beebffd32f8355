"""What several commands share: the options that name a database, the memory that they open, errors as plain text."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from langchain_supabase_memory.errors import ConfigurationError, SupabaseMemoryError
from langchain_supabase_memory.language.messages.invisible import spelled_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_supabase_memory.memory.memory import SupabaseMemory

DATABASE_URL = "SUPABASE_DB_URL"
"""The environment variable that holds a connection string."""

_DOORS = (("database_url",), ("embedded",), ("url", "key"))
"""The parameters that name a database, by the way to it."""


def plainly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Show our own errors as one clear text, not as a traceback."""

    @wraps(command)
    def run(*arguments: Any, **named: Any) -> Any:
        try:
            return command(*arguments, **named)
        except SupabaseMemoryError as error:
            raise click.ClickException(spelled_lines(str(error))) from None

    return run


database_url_option = click.option(
    "--database-url", envvar=DATABASE_URL, help=f"A Postgres connection string; by default ${DATABASE_URL}."
)
embedded_option = click.option(
    "--embedded", type=click.Path(path_type=Path, file_okay=False), help="The folder of an embedded database instead."
)
url_option = click.option(
    "--url",
    envvar="SUPABASE_URL",
    help=f"The project's url, for the Data API; by default $SUPABASE_URL, unless ${DATABASE_URL} is set. "
    "What is typed goes before what is in the environment.",
)
key_option = click.option("--key", envvar="SUPABASE_KEY", help="Its secret key; by default $SUPABASE_KEY.")


def typed(*names: str) -> list[str]:
    """Those of these parameters that stand on the command line; the others come from the environment or by default."""
    context = click.get_current_context()
    return [name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]


def refuse(names: Sequence[str], why: str) -> None:
    """Refuse options that would have no effect.

    Args:
        names: The parameters.
        why: Why they have none, as a sentence.

    Raises:
        UsageError: One of them stands on the command line.
    """
    given = typed(*names)
    if given:
        raise click.UsageError(f"{_options(given)} cannot apply. {why}", click.get_current_context())


def opened(
    database_url: str | None, embedded: Path | None, url: str | None, key: str | None, **settings: Any
) -> SupabaseMemory:
    """The memory that the options name; its settings as for `SupabaseMemory`.

    What stands on the command line goes before the environment, and there the direct connection before the Data API.

    Raises:
        UsageError: They name two.
        ConfigurationError: They name none, or half of one.
    """
    from langchain_supabase_memory.memory.memory import SupabaseMemory

    is_direct = database_url or typed("database_url", "embedded")
    over_http = typed("url", "key") or (not is_direct and (url or key))
    if not over_http:
        return SupabaseMemory.from_conn_string(conn_string(database_url, embedded), **settings)
    _refuse_two()
    if not (url and key):
        missing, option = ("key", "--key sb_secret_…") if url else ("url", "--url https://….supabase.co")
        raise ConfigurationError(
            f"The project's {missing} is missing.",
            hint=f"Pass {option} or set SUPABASE_{missing.upper()}; or name a database directly, by --database-url.",
        )
    return SupabaseMemory.from_url(url, key, **settings)


def conn_string(database_url: str | None, embedded: Path | None) -> str:
    """The connection string that the options name.

    Raises:
        UsageError: They name two databases.
        ConfigurationError: They name none.
    """
    _refuse_two()
    if embedded is not None:
        from langchain_supabase_memory.adapters.transports.embedded import start

        return start(embedded)
    if not database_url:
        ways = [f"--database-url postgresql://… (or set {DATABASE_URL})", "--embedded FOLDER"]
        if "url" in click.get_current_context().params:
            ways.insert(1, "--url and --key of the Data API (or set SUPABASE_URL and SUPABASE_KEY)")
        raise ConfigurationError("No database is named.", hint=f"Pass {', or '.join(ways)}.")
    return database_url


def _refuse_two() -> None:
    given = [names for door in _DOORS if (names := typed(*door))]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(map(_options, given))} exclude each other.", click.get_current_context())


def _options(names: Sequence[str]) -> str:
    """Parameters as they are typed."""
    return ", ".join("--" + name.replace("_", "-") for name in names)
