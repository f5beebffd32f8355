"""A real Citus cluster: a coordinator and two workers, from a folder of binaries with Citus and pgvector.

This repository and its packages do not include Citus: `make test-citus PG=...` names the folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from langchain_supabase_memory.adapters.schema.migrate import migrate
from tests.services.postgres import Cluster

WORKERS: Final = 2


@dataclass
class _Node(Cluster):
    """One server with Citus loaded."""

    options: ClassVar[str] = (
        " -c shared_preload_libraries=citus -c citus.shard_count=4 -c max_prepared_transactions=200"
    )


@dataclass
class CitusCluster(_Node):
    """A coordinator, which is used like any server, and its workers. `stop` stops all of them.

    Attributes:
        workers: The servers with the owners' tables.
    """

    workers: list[_Node] = field(default_factory=list)

    def start(self) -> Self:
        super().start()
        for _ in range(WORKERS):
            worker = _Node(bin=self.bin)
            self.workers.append(worker)
            worker.start()
        return self

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()
        super().stop()

    def conn_string(self, database: str = "postgres", user: str = "supabase_admin") -> str:
        """Return the connection string of the migrating role: a superuser, as Citus requires for triggers and roles."""
        return super().conn_string(database, user)

    def execute(self, statement: str, *, database: str = "postgres", superuser: bool = True) -> None:
        """Run a statement as the migrating role, a superuser."""
        super().execute(statement, database=database, superuser=True)

    def distributed_database(self) -> str:
        """Create a database on every node, connect the nodes, and return its name."""
        name = self.create_database(supabase=False)
        for worker in self.workers:
            worker.execute(f"create database {name}", superuser=True)
            worker.execute("create schema extensions", database=name, superuser=True)
            worker.execute("create extension vector schema extensions", database=name, superuser=True)
        for node in (self, *self.workers):
            node.execute("create extension citus", database=name, superuser=True)
        self.execute(f"select citus_set_coordinator_host('127.0.0.1', {self.port})", database=name, superuser=True)
        for worker in self.workers:
            self.execute(f"select citus_add_node('127.0.0.1', {worker.port})", database=name, superuser=True)
        return name

    def migrated_database(self, *, spaces: bool = False, vector_schema: str = "extensions", **options: Any) -> str:
        """Create a database whose owners are distributed over the workers, and return its name."""
        assert (vector_schema, options) == ("extensions", {}), "not on Citus"
        name = self.distributed_database()
        migrate(self.conn_string(name), citus=True, spaces=spaces or None)
        return name
