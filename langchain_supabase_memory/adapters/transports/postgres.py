"""The direct connection: `psycopg` and its pool, safe behind a transaction pooler, able to act as a user."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from copy import copy
from functools import lru_cache, partial
from math import ceil
from typing import TYPE_CHECKING, Any, Final, LiteralString, Self, TypeAlias
from weakref import WeakSet

from langchain_supabase_memory import documents, fork
from langchain_supabase_memory.adapters import addresses
from langchain_supabase_memory.adapters.transports.credentials import Credential, claimed
from langchain_supabase_memory.adapters.transports.credentials import claims as checked_claims
from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo, of_postgres
from langchain_supabase_memory.adapters.transports.per_loop import PerLoop
from langchain_supabase_memory.adapters.transports.pools import AsyncPool
from langchain_supabase_memory.adapters.transports.response_shapes import unreadable, validate
from langchain_supabase_memory.adapters.transports.retry import aretry, retry
from langchain_supabase_memory.checks import number
from langchain_supabase_memory.deadline import Stopping, hold, in_thread, is_over, seconds_left
from langchain_supabase_memory.errors import (
    InvalidInputError,
    MissingDependencyError,
    SupabaseMemoryError,
    UnavailableError,
    connection_failed,
    from_code,
    from_error,
    is_refusal,
    node_unavailable,
)
from langchain_supabase_memory.settings import DEFAULT_RETRY_POLICY, RetryPolicy
from langchain_supabase_memory.settings import check_settings as checked_settings
from langchain_supabase_memory.unpicklable import Unpicklable

try:
    import psycopg
    from psycopg import sql
    from psycopg.adapt import AdaptersMap
    from psycopg.types.json import set_json_loads
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError:
    raise MissingDependencyError("A direct connection to Postgres", "postgres") from None

if TYPE_CHECKING:
    from langchain_supabase_memory.effects import Call

Claims: TypeAlias = Mapping[str, Any] | Callable[[], Mapping[str, Any]] | Callable[[], Awaitable[Mapping[str, Any]]]
"""The claims of a verified access token, or a function that gives the present ones, asked before each call.

`sub` is the user, `role` one of Supabase's three, `authenticated` by default."""

_ACT_AS: Final = "select set_config('request.jwt.claims', %s, true), set_config('role', %s, true)"

POOL_SIZE: Final = 8
"""The most connections of one pool; there is one pool for sync calls, and one for each event loop."""

TIMEOUT_SECONDS: Final = 10
"""How long to wait for a connection, in seconds."""


class PostgresTransport(Unpicklable):
    """Performs calls over a connection to Postgres.

    Args:
        conn_string: A Postgres connection string, or a function that gives one at the first call (it may block).
        claims: Whom to act as: the claims of an access token that you have verified, or a function that gives them. The
            role and the claims are set for the call's own transaction, so row level security decides and nothing stays
            on the connection. Only where none were given calls run as the role of the connection string, and the user
            is named with each: claims that name nobody, or a function that gives none, are an error.
        pool_size: The most connections of one pool.
        prepare: Whether statements are prepared by the server, which spares it their parsing. By default where no
            pooler stands between. Given up by itself, with the call repeated, where the server refuses.
        retry: How a call is repeated.

    Raises:
        ConfigurationError: The connection string cannot be parsed.
        AuthenticationError: The claims are none, name no user, or a role that is none of Supabase's.
    """

    def __init__(
        self,
        conn_string: str | Callable[[], str],
        *,
        claims: Claims | None = None,
        pool_size: int = POOL_SIZE,
        prepare: bool | None = None,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
    ) -> None:
        checked_settings(False, retry=retry)
        self._pools = _Pools(conn_string, pool_size, prepare)
        self._claims = None if claims is None else Credential(claims, checked_claims)
        self._retry = retry

    @property
    def acts_as_user(self) -> bool:
        """Whether calls carry claims."""
        return self._claims is not None

    @property
    def identity_is_callback(self) -> bool:
        """Whether a function says before each call who is signed in, so that the next may be another's."""
        return self._claims is not None and self._claims.is_callable

    @property
    def user(self) -> str | None:
        """The subject of the claims; `None` without any, or where a function gives them."""
        return None if self._claims is None or self._claims.value is None else claimed(self._claims.value[0])

    @property
    def endpoint(self) -> EndpointInfo:
        """The server, and whether a pooler stands before it; of one that is not started yet, nothing."""
        return self._pools.endpoint

    def for_token(self, identity: Claims) -> Self:
        """A transport over the same pools that acts as another user.

        Args:
            identity: The claims of an access token that you have verified, or a function that gives them.

        Raises:
            AuthenticationError: The claims are none, name no user, or a role that is none of Supabase's.
        """
        twin = copy(self)
        twin._claims = Credential(identity, self._check_identity)
        return twin

    def _check_identity(self, identity: object) -> tuple[str, str]:
        return checked_claims(identity)

    def perform(self, call: Call) -> Any:
        """Perform one call; see `Transport.perform`."""
        begun = time.monotonic()
        try:
            return self._perform_once(call)
        except UnavailableError as error:
            return retry(self._retry, self._perform_once, call, error, begun)

    async def aperform(self, call: Call) -> Any:
        """Perform one call; see `Transport.aperform`."""
        begun = time.monotonic()
        try:
            return await self._aperform_once(call)
        except UnavailableError as error:
            return await aretry(self._retry, self._aperform_once, call, error, begun)

    def close(self) -> None:
        """Close the pool of the sync calls."""
        self._pools.close()

    async def aclose(self) -> None:
        """Close this event loop's pool and that of the sync calls."""
        await asyncio.to_thread(self._pools.close)
        await self._pools.asynchronous.aclose()

    async def alisten(self, channel: str) -> AsyncIterator[None]:
        """Listen to a channel over a connection of its own; gives something whenever somebody has notified it.

        Nothing is heard behind a transaction pooler.

        Raises:
            UnavailableError: The connection could not be made, or was lost.
        """
        try:
            async with await self._pools.dedicated_connection() as connection:
                await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
                yield  # what was notified before is not heard: there may be something already
                async for _ in connection.notifies():
                    yield
        except psycopg.Error as error:
            failure = _translated(error)
        else:
            return
        raise failure

    def _perform_once(self, call: Call, *, is_repeated: bool = False) -> Any:
        claims = None if self._claims is None else self._claims.now()
        pool = self._pools.synchronous()
        statement, arguments = _statement(call)
        try:
            with pool.connection(seconds_left(TIMEOUT_SECONDS)) as connection, Stopping(partial(_stop, connection)):
                if claims is None:
                    cursor = connection.execute(statement, arguments)
                else:
                    with connection.pipeline(), connection.transaction():
                        connection.execute(_ACT_AS, claims)
                        cursor = connection.execute(statement, arguments)
                row = cursor.fetchone()
        except _FAILURES as error:
            failure = _translated(error)
            is_mended = self._pools.stops_preparing(error, pool.kwargs) or (_is_read_only(error) and not is_repeated)
            if is_mended or (_is_lost(error) and not is_over()):
                self._pools.discard(pool)
        else:
            return validate(call.function, _answer(row))
        if is_mended:
            return self._perform_once(call, is_repeated=True)
        raise failure

    async def _aperform_once(self, call: Call, *, is_repeated: bool = False) -> Any:
        claims = None if self._claims is None else await self._claims.anow()
        pool = await self._pools.asynchronous.get()
        statement, arguments = _statement(call)
        try:
            connection = await pool.take()
            try:
                if claims is None:
                    cursor = await connection.execute(statement, arguments)
                else:
                    async with connection.pipeline(), connection.transaction():
                        await connection.execute(_ACT_AS, claims)
                        cursor = await connection.execute(statement, arguments)
                row = await cursor.fetchone()
            finally:
                # A call that was cancelled may leave a transaction open: such a connection is not used again.
                is_idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
                pool.give_back(connection, is_usable=is_idle and not connection.closed)
        except _FAILURES as error:
            failure = _translated(error)
            is_mended = self._pools.stops_preparing(error, pool.kwargs) or (_is_read_only(error) and not is_repeated)
            if is_mended or _is_lost(error):
                await self._pools.asynchronous.aclose(pool)
        else:
            return validate(call.function, _answer(row))
        if is_mended:
            return await self._aperform_once(call, is_repeated=True)
        raise failure

    def __repr__(self) -> str:
        """The class: the connection string may hold a password."""
        return "PostgresTransport(…)"


class _Pools:
    """The pools behind a transport: one for sync calls, one per event loop. Shared by all users of one database."""

    def __init__(self, conn_string: str | Callable[[], str], pool_size: int, prepare: bool | None) -> None:
        number("pool_size", pool_size, integer=True, optional=False, example=POOL_SIZE)
        self._conn_string = conn_string
        self._pool_size = pool_size
        self._prepares = prepare
        self._is_pooled: bool | None = None
        self._parts = None if callable(conn_string) else addresses.postgres(conn_string)
        self._opened: ConnectionPool[_Connection] | None = None
        self._finalizer: weakref.finalize[..., _Pools] | None = None
        fork.run_in_each_process(self._begin)
        self.asynchronous = PerLoop(self._open_async, _AsyncPool.close)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        if self._finalizer is not None:
            self._finalizer.detach()
            fork.leave_to_parent(self._opened)  # freed, a pool waits for its threads
        self._opened = self._finalizer = None

    @property
    def endpoint(self) -> EndpointInfo:
        return (
            EndpointInfo("postgres", None)
            if self._parts is None
            else of_postgres(self._parts, is_pooled=self._is_pooled)
        )

    def synchronous(self) -> ConnectionPool[_Connection]:
        pool = self._opened
        if pool is None:
            hold(self._lock)
            try:
                if self._opened is None:
                    conn_string, settings = self._settings()
                    self._opened = ConnectionPool(conn_string, connection_class=_Connection, **settings)
                    self._opened.open()
                    # Also at the end of the process: the pool's threads must not outlive the interpreter.
                    self._finalizer = weakref.finalize(self, self._opened.close)
                pool = self._opened
            finally:
                self._lock.release()
        return pool

    def close(self) -> None:
        pool = self._opened
        if pool is not None:
            self.discard(pool)

    def stops_preparing(self, error: Exception, kwargs: Any) -> bool:
        """Whether a call failed for a prepared statement, before anything of it was done: it can be repeated without.

        A pooler may hand each call to another session of the server, or drop the statements of one, and an upgrade of
        the schema may change what a statement returns. Several calls may meet that at once: each is repeated whose own
        connection prepared, and the pools that are opened from then on prepare nothing.

        Args:
            error: Why it failed.
            kwargs: How the connections of its pool were made.
        """
        is_about_it = kwargs["prepare_threshold"] is not None and getattr(error, "sqlstate", None) in _OF_PREPARED
        if is_about_it:
            self._prepares = False
        return is_about_it

    def discard(self, pool: ConnectionPool[_Connection]) -> None:
        """Close a pool, so that the next call opens a fresh one; another thread may have done so already."""
        with self._lock:
            if self._opened is pool:
                assert self._finalizer is not None
                self._finalizer()
                self._opened = self._finalizer = None

    async def _open_async(self) -> _AsyncPool:
        conn_string, settings = await in_thread(self._settings)
        return _AsyncPool(conn_string, settings["kwargs"], self._pool_size)

    async def dedicated_connection(self) -> _AsyncConnection:
        """A connection outside of the pools, for who holds it for long."""
        conn_string, settings = await in_thread(self._settings)
        return await _AsyncConnection.connect(conn_string, **settings["kwargs"])

    def _settings(self) -> tuple[str, dict[str, Any]]:
        """Everything a pool needs, after one connection has shown that the address and the password are right."""
        conn_string = self._conn_string if isinstance(self._conn_string, str) else self._conn_string()
        self._parts = given = addresses.postgres(conn_string)
        kwargs: dict[str, Any] = {"autocommit": True, "prepare_threshold": None, "context": _OURS, **addresses.ENCODING}
        for name, value in (("connect_timeout", TIMEOUT_SECONDS), ("tcp_user_timeout", TIMEOUT_SECONDS * 1000)):
            if name not in given:
                kwargs[name] = value
        try:
            # The pool itself would only say that it waited in vain.
            first = (
                {**kwargs, "connect_timeout": ceil(seconds_left(TIMEOUT_SECONDS))}
                if "connect_timeout" in kwargs
                else kwargs
            )
            with _Connection.connect(conn_string, **first) as connection:
                if self._prepares is None:
                    # A pooler makes up the number of the server's process.
                    row = connection.execute("select pg_backend_pid()").fetchone()
                    self._prepares = row == (connection.info.backend_pid,)
                    self._is_pooled = not self._prepares
            if self._prepares:
                kwargs["prepare_threshold"] = _PREPARED_AT
        except psycopg.Error as error:
            failure = _translated(error)
        else:
            return conn_string, {
                "min_size": 1,
                "max_size": self._pool_size,
                "timeout": TIMEOUT_SECONDS,
                "open": False,
                "kwargs": kwargs,
            }
        raise failure


_CONNECTIONS: Final[WeakSet[psycopg.Connection[Any] | psycopg.AsyncConnection[Any]]] = WeakSet()
"""Those of this process."""


class _Connection(psycopg.Connection[Any]):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        _CONNECTIONS.add(self)


class _AsyncConnection(psycopg.AsyncConnection[Any]):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        _CONNECTIONS.add(self)


def _sever() -> None:
    """In a child process no connection of the parent reaches the server, to be mixed up or ended there."""
    for connection in list(_CONNECTIONS):
        if not connection.closed:
            fork.sever(connection.fileno())
            fork.leave_to_parent(connection)
    _CONNECTIONS.clear()


fork.run_in_each_process(_sever)


_PREPARED_AT: Final = 5
"""A connection prepares what it is sent so many times; psycopg's own default."""

_OF_PREPARED: Final = frozenset({"26000", "42P05", "0A000", "08P01"})
"""A statement is not there, is there already or returns something else now; or a pooler does not know the protocol."""


class _Adapted:
    """How our connections read values; those of the application are left as they are."""

    connection = None
    adapters = AdaptersMap(psycopg.adapters)


_OURS: Final = _Adapted()
set_json_loads(documents.loads, _OURS)


class _AsyncPool(AsyncPool[_AsyncConnection]):
    """The connections of one event loop.

    Not `psycopg_pool.AsyncConnectionPool`: its background tasks live in the loop, and one that misses its cancellation
    keeps `asyncio.run` from ever ending.
    """

    def __init__(self, conn_string: str, kwargs: dict[str, Any], size: int) -> None:
        super().__init__(partial(_AsyncConnection.connect, conn_string, **kwargs), _AsyncConnection.close, size)
        self.kwargs = kwargs


def _stop(connection: _Connection, ended: threading.Event) -> None:
    """End what a connection waits for: at the server, and where that does not answer, here.

    Args:
        connection: The connection, which another thread waits for.
        ended: Is set when that thread has what it waits for.
    """
    with suppress(psycopg.Error):
        connection.cancel_safe(timeout=_STOPPING_SECONDS)
    if not ended.wait(_STOPPING_SECONDS):
        with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as shared:
            shared.shutdown(socket.SHUT_RDWR)


_STOPPING_SECONDS: Final = 1.0
"""How long the server may take to end a statement that nobody waits for any more, in seconds; twice at most."""


@lru_cache(maxsize=256)
def _sql(function: str, names: tuple[str, ...]) -> LiteralString:
    # The names are constants of the flows, never a caller's.
    arguments = ", ".join(f"{name} => %s" for name in names)
    return f"select public.{function}({arguments})"


def _statement(call: Call) -> tuple[LiteralString, list[Any]]:
    try:
        values = [
            documents.dumps(value).decode() if isinstance(value, (list, dict)) else value
            for value in call.arguments.values()
        ]
    except (TypeError, ValueError, RecursionError):
        raise InvalidInputError from None
    return _sql(call.function, tuple(call.arguments)), values


_FAILURES: Final = (psycopg.Error, ValueError, RecursionError)
"""What a call raises; the last two are of values that cannot be sent, or documents that cannot be read."""


def _is_lost(error: Exception) -> bool:
    """Whether the connection is gone.

    Then every other of the pool may be too; a fresh pool tries the address first, and tells at once what is wrong.
    """
    if not isinstance(error, psycopg.OperationalError) or isinstance(error, PoolTimeout) or _is_of_node(error):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(_CONNECTION)


_CONNECTION: Final = ("08", "57P")
"""How SQLSTATEs begin that tell of a lost connection, or of a server that starts or stops."""


def _is_of_node(error: psycopg.Error) -> bool:
    """Whether a server that lives reports another one that is away, such as the node of Citus that has the rows.

    It ends the statement alone (ERROR). What ends a connection is FATAL.
    """
    return (error.sqlstate or "").startswith(_CONNECTION) and error.diag.severity_nonlocalized == "ERROR"


def _is_read_only(error: Exception) -> bool:
    """Whether the session takes no writes: for good, even where the database was read-only for a while."""
    return getattr(error, "sqlstate", None) == "25006"


def _answer(row: tuple[Any, ...] | None) -> Any:
    return None if row is None else row[0]


def _translated(error: Exception) -> SupabaseMemoryError:
    """Our error for psycopg's. Texts of the server are dropped, since they can hold rows; ours are kept."""
    if isinstance(error, (UnicodeEncodeError, psycopg.DataError)) and not getattr(error, "sqlstate", None):
        return InvalidInputError()
    if not isinstance(error, psycopg.Error):
        return unreadable()
    if error.sqlstate == "23514":
        return is_refusal(error.diag.constraint_name)
    if error.sqlstate:
        if error.sqlstate.startswith("PT"):
            return from_error(error.sqlstate, error.diag.message_primary, error.diag.message_hint)
        return node_unavailable(error.sqlstate) if _is_of_node(error) else from_code(error.sqlstate)
    if isinstance(error, PoolTimeout):
        return UnavailableError("No connection to Postgres became free in time.")
    return connection_failed(str(error))
