"""Start the servers: one Postgres that flushes to disk, with one project for each setting of `synchronous_commit`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx
from postgrest import AsyncPostgrestClient, SyncPostgrestClient
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from benchmarks import floors
from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.adapters.transports.postgres import POOL_SIZE
from langchain_supabase_memory.adapters.transports.supabase import MAX_IN_FLIGHT
from tests.services.data_api import DataApi, token
from tests.services.postgres import Cluster

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_FLOOR: Final = """
create schema bench;
grant usage on schema bench to service_role;
create table bench.floor (
  user_id text, conversation_id uuid, sequence bigint, message_id text, role text, text text, characters integer,
  tokens integer, created_at timestamptz default clock_timestamp(),
  updated_at timestamptz, metadata jsonb, images jsonb, payload json, final boolean,
  primary key (user_id, conversation_id, sequence));
grant insert, select on bench.floor to service_role;
create function public.bench_insert(rows json) returns void language sql volatile security invoker as $$
  insert into bench.floor (user_id, conversation_id, sequence, message_id, role, text, characters, tokens,
                           payload)
  select * from json_to_recordset(rows) as r (
    user_id text, conversation_id uuid, sequence bigint, message_id text, role text, text text, characters integer,
    tokens integer, payload json)
$$;
create function public.bench_read(conversation uuid, lowest bigint) returns json
language sql stable security invoker as $$
  select json_agg(payload order by sequence) from bench.floor
  where user_id = 'bench' and conversation_id = conversation and sequence >= lowest
$$;
create view public.bench_messages with (security_invoker = on) as select * from bench.floor;
revoke all on public.bench_messages from public, anon, authenticated;
grant select on public.bench_messages to service_role;
revoke all on function public.bench_insert, public.bench_read from public, anon, authenticated;
grant execute on function public.bench_insert, public.bench_read to service_role;
"""


class FlushingCluster(Cluster):
    """A cluster as in production: commits are flushed to disk."""

    def restart(self, *, first: bool = False) -> None:
        if not first:
            self._pg_ctl("stop", "-m", "fast")
        # A large WAL limit, so that filling a million messages triggers no checkpoint during the measurements.
        options = f"-p {self.port} -k {self.folder} -h 127.0.0.1 -c max_connections=200 -c max_wal_size=8GB"
        self._pg_ctl("start", "-l", str(self.folder / "log"), "-o", options)


@dataclass
class Clients:
    """Clients of one project, configured as the package configures its own.

    Attributes:
        conn_string: Its database.
        url: Its Data API.
        stack: Closes the clients.
    """

    conn_string: str
    url: str
    stack: ExitStack

    def direct(self, user_id: str = "bench") -> SupabaseMemory:
        """Return a memory over a connection, without a summarizer, so that no summary runs during measurements."""
        memory = SupabaseMemory.from_conn_string(self.conn_string, user_id=user_id, model=None)
        self.stack.callback(memory.close)
        return memory

    def data_api(self) -> SupabaseMemory:
        """Return a memory over the Data API, without a summarizer."""
        key = token("service_role")
        memory = SupabaseMemory.from_url(self.url, key, rest_path="", user_id="bench", model=None)
        self.stack.callback(memory.close)
        return memory

    def pool(self) -> ConnectionPool:
        pool = ConnectionPool(self.conn_string, **self.pool_settings())
        pool.open(wait=True)
        self.stack.callback(pool.close)
        return pool

    async def async_pool(self, **more: Any) -> AsyncConnectionPool:
        """Return a pool of the running event loop; the caller closes it."""
        pool = AsyncConnectionPool(self.conn_string, **self.pool_settings(**more))
        await pool.open(wait=True)
        return pool

    @staticmethod
    def pool_settings(**more: Any) -> dict[str, Any]:
        kwargs = {"autocommit": True, "prepare_threshold": None, **more}
        return {"min_size": 1, "max_size": POOL_SIZE, "open": False, "kwargs": kwargs}

    def client(self) -> SyncPostgrestClient:
        session = httpx.Client(timeout=10, limits=_LIMITS)
        self.stack.callback(session.close)
        return SyncPostgrestClient(self.url, headers=_headers(), http_client=session, retry_enabled=False)

    def async_client(self) -> AsyncPostgrestClient:
        """Return a client of the running event loop; the caller closes it."""
        session = httpx.AsyncClient(timeout=10, limits=_LIMITS)
        return AsyncPostgrestClient(self.url, headers=_headers(), http_client=session, retry_enabled=False)


@dataclass
class Site(Clients):
    """One project on a server of this run."""

    cluster: Cluster
    database: str

    @property
    def superuser(self) -> str:
        """The connection string of a superuser."""
        return self.cluster.conn_string(self.database, "supabase_admin")

    def execute(self, statement: str) -> None:
        self.cluster.execute(statement, database=self.database, superuser=True)


_LIMITS: Final = httpx.Limits(max_connections=MAX_IN_FLIGHT, max_keepalive_connections=MAX_IN_FLIGHT)


def _headers() -> dict[str, str]:
    key = token("service_role")
    return {"apikey": key, "Authorization": f"Bearer {key}"}


@dataclass
class Lab:
    """The resources of a run. Servers start on first use, and stop on exit.

    Attributes:
        quick: Whether to run fewer rounds.
        peers: Whether other packages take part.
        million: Whether growth is measured up to a million.
        largest: The number of messages in the larger database of `millions`.
    """

    quick: bool = False
    peers: bool = False
    million: bool = False
    largest: int = 100_000
    _sites: dict[str, Site] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _cluster: FlushingCluster | None = None

    def site(self, commit: str = "off") -> Site:
        """Return a project with `synchronous_commit` `on` or `off` for every connection."""
        if commit not in self._sites:
            self._sites[commit] = self.another(commit)
        return self._sites[commit]

    def another(self, commit: str, *, partitions: int | None = None, spaces: bool = False) -> Site:
        """Create a new project, with owners' tables in `partitions` partitions, and spaces switched on or off."""
        if self._cluster is None:
            self._cluster = FlushingCluster()
            self._stack.callback(self._cluster.stop)
            self._cluster.start()
        cluster = self._cluster
        database = cluster.create_database()
        cluster.execute(f"alter database {database} set synchronous_commit = {commit}", superuser=True)
        migrate(cluster.conn_string(database), partitions=partitions, spaces=spaces)
        cluster.execute(_FLOOR, database=database)
        cluster.execute(floors.TABLES, database=database)
        api = DataApi(cluster, database)
        self._stack.callback(api.stop)
        api.start()
        return Site(cluster.conn_string(database), api.url, self._stack, cluster, database)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
