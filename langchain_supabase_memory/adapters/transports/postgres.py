"""The direct connection: `psycopg` and a pool, safe behind a transaction pooler, able to act as a user."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from functools import lru_cache, partial
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Final, LiteralString, Self, TypeAlias, TypeVar
from weakref import WeakSet

from langchain_supabase_memory import documents, fork
from langchain_supabase_memory.adapters import addresses
from langchain_supabase_memory.adapters.transports.credentials import Credential, claimed
from langchain_supabase_memory.adapters.transports.credentials import claims as checked_claims
from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo, of_postgres
from langchain_supabase_memory.adapters.transports.per_loop import PerLoop
from langchain_supabase_memory.adapters.transports.pools import AsyncPool, Pool
from langchain_supabase_memory.adapters.transports.response_shapes import unreadable, validate
from langchain_supabase_memory.adapters.transports.retry import aretry, retry
from langchain_supabase_memory.checks import number
from langchain_supabase_memory.deadline import (
    AbandonedError,
    apart,
    hold,
    in_thread,
    is_over,
    is_set,
    seconds_left,
    start_thread,
)
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
except ImportError:
    raise MissingDependencyError("A direct connection to Postgres", "postgres") from None

if TYPE_CHECKING:
    from psycopg.abc import PQGen

    from langchain_supabase_memory.effects import Call

T = TypeVar("T")

Claims: TypeAlias = Mapping[str, Any] | Callable[[], Mapping[str, Any]] | Callable[[], Awaitable[Mapping[str, Any]]]
"""The claims of a verified access token, or a callback that returns the current ones before each call.

`sub` is the user, `role` one of Supabase's three, `authenticated` by default.
"""

_ACT_AS: Final = "select set_config('request.jwt.claims', %s, true), set_config('role', %s, true)"

POOL_SIZE: Final = 8
"""The maximum size of a pool; there is one pool for sync calls, and one for each event loop."""

TIMEOUT_SECONDS: Final = 10
"""How long to wait for a connection, in seconds."""


class PostgresTransport(Unpicklable):
    """Performs calls over connections to Postgres.

    Args:
        conn_string: A Postgres connection string, or a function that returns one at the first call (it may block).
        claims: The user to act as: the claims of an access token that you have verified, or a callback that returns
            them. The role and the claims are set in the call's own transaction, so row level security applies and
            nothing stays on the connection. Only without claims do calls run as the role of the connection string, and
            then each call names its user. Claims without a user, or a callback that returns none, are an error.
        pool_size: The maximum size of a pool.
        prepare: Whether to use server-side prepared statements, which saves parsing. By default only without a pooler.
            If the server refuses them, they are disabled automatically and the call is repeated.
        retry: How a call is retried.

    Raises:
        ConfigurationError: The connection string cannot be parsed.
        AuthenticationError: The claims are not valid, name no user, or name a role that Supabase does not have.
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

    is_identity_verified: ClassVar[bool] = True
    """The application has verified the claims that it passes."""

    @property
    def acts_as_user(self) -> bool:
        """Whether calls carry claims."""
        return self._claims is not None

    @property
    def identity_is_callback(self) -> bool:
        """Whether a callback returns the user before each call, so that the next call may be another user's."""
        return self._claims is not None and self._claims.is_callable

    @property
    def user(self) -> str | None:
        """The subject of the claims; `None` without claims, or if a callback returns them."""
        return None if self._claims is None or self._claims.value is None else claimed(self._claims.value[0])

    @property
    def endpoint(self) -> EndpointInfo:
        """The server, and whether a pooler is in front of it; unknown before an embedded server has started."""
        return self._pools.endpoint

    def for_token(self, identity: Claims) -> Self:
        """Return a transport over the same pools that acts as another user.

        Args:
            identity: The claims of an access token that you have verified, or a callback that returns them.

        Raises:
            AuthenticationError: The claims are not valid, name no user, or name a role that Supabase does not have.
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
        """Close the pool for sync calls."""
        self._pools.close()

    async def aclose(self) -> None:
        """Close this event loop's pool and the pool for sync calls."""
        await asyncio.to_thread(self._pools.close)
        await self._pools.asynchronous.aclose()

    async def alisten(self, channel: str) -> AsyncIterator[None]:
        """Listen to a channel over a separate connection; yields at each notification.

        Behind a transaction pooler no notifications arrive.

        Raises:
            UnavailableError: The connection could not be made, or was lost.
        """
        try:
            async with await self._pools.dedicated_connection() as connection:
                await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
                yield  # earlier notifications do not arrive, so there may be changes already
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
            with pool.connection() as connection:
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
                # A canceled call may leave a transaction open, so its connection is not reused.
                pool.give_back(connection, is_usable=_is_idle(connection))
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
        """Return the class name, because the connection string may contain a password."""
        return "PostgresTransport(…)"


class _Pools:
    """The pools of a transport: one for sync calls, one per event loop. Shared by all users of one database."""

    def __init__(self, conn_string: str | Callable[[], str], pool_size: int, prepare: bool | None) -> None:
        number("pool_size", pool_size, integer=True, optional=False, example=POOL_SIZE)
        self._conn_string = conn_string
        self._pool_size = pool_size
        self._prepares = prepare
        self._is_pooled: bool | None = None
        self._parts = None if callable(conn_string) else addresses.postgres(conn_string)
        self._opened: _SyncPool | None = None
        self._finalizer: weakref.finalize[..., _Pools] | None = None
        fork.run_in_each_process(self._begin)
        self.asynchronous = PerLoop(self._open_async, _AsyncPool.close)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        if self._finalizer is not None:
            self._finalizer.detach()
        self._opened = self._finalizer = None

    @property
    def endpoint(self) -> EndpointInfo:
        return (
            EndpointInfo("postgres", None)
            if self._parts is None
            else of_postgres(self._parts, is_pooled=self._is_pooled)
        )

    def synchronous(self) -> _SyncPool:
        # To open it, names are looked up, and an embedded server starts, without a time limit.
        return self._opened or apart(self._open)

    def _open(self) -> _SyncPool:
        hold(self._lock)
        try:
            if self._opened is None:
                conn_string, kwargs, first = self._connect()
                self._opened = _SyncPool(conn_string, kwargs, self._pool_size, first)
                self._finalizer = weakref.finalize(self, self._opened.close)
            return self._opened
        finally:
            self._lock.release()

    def close(self) -> None:
        pool = self._opened
        if pool is not None:
            self.discard(pool)

    def stops_preparing(self, error: Exception, kwargs: Any) -> bool:
        """Return whether a prepared statement made a call fail, before it did anything, so that it can be repeated.

        A pooler may route each call to another server session, or drop a session's statements, and a schema upgrade may
        change a statement's result. Several calls may fail at once: each one whose own connection uses prepared
        statements is repeated, and pools opened from then on prepare nothing.

        Args:
            error: Why it failed.
            kwargs: The connection settings of its pool.
        """
        is_about_it = kwargs["prepare_threshold"] is not None and getattr(error, "sqlstate", None) in _OF_PREPARED
        if is_about_it:
            self._prepares = False
        return is_about_it

    def discard(self, pool: _SyncPool) -> None:
        """Close a pool, so that the next call opens a fresh one; another thread may have done so already."""
        with self._lock:
            if self._opened is pool:
                assert self._finalizer is not None
                self._finalizer()
                self._opened = self._finalizer = None

    async def _open_async(self) -> _AsyncPool:
        return _AsyncPool(*await in_thread(self._settings), self._pool_size)

    async def dedicated_connection(self) -> _AsyncConnection:
        """Open a connection outside the pools, for long-running use."""
        conn_string, kwargs = await in_thread(self._settings)
        return await _AsyncConnection.connect(conn_string, **kwargs)

    def _settings(self) -> tuple[str, dict[str, Any]]:
        """Return the address and the settings of connections, after one has verified the address and the password."""
        conn_string, kwargs, connection = self._connect()
        connection.close()
        return conn_string, kwargs

    def _connect(self) -> tuple[str, dict[str, Any], _Connection]:
        """Return the address and the settings of connections, and the first one."""
        conn_string = self._conn_string if isinstance(self._conn_string, str) else self._conn_string()
        self._parts = given = addresses.postgres(conn_string)
        kwargs: dict[str, Any] = {"autocommit": True, "prepare_threshold": None, "context": _OURS, **addresses.ENCODING}
        for name, value in (("connect_timeout", TIMEOUT_SECONDS), ("tcp_user_timeout", TIMEOUT_SECONDS * 1000)):
            if name not in given:
                kwargs[name] = value
        try:
            connection = _Connection.connect(conn_string, **_in_time(kwargs))
            try:
                if self._prepares is None:
                    # A pooler invents the server's process id.
                    row = connection.execute("select pg_backend_pid()").fetchone()
                    self._prepares = row == (connection.info.backend_pid,)
                    self._is_pooled = not self._prepares
            except BaseException:
                connection.close()
                raise
            if self._prepares:
                kwargs["prepare_threshold"] = connection.prepare_threshold = _PREPARED_AT
        except psycopg.Error as error:
            failure = _translated(error)
        else:
            return conn_string, kwargs, connection
        raise failure


_INTERVAL_SECONDS: Final = 0.1
"""How often a wait looks for an interrupt from the keyboard; psycopg's own."""

_CONNECTIONS: Final[WeakSet[psycopg.Connection[Any] | psycopg.AsyncConnection[Any]]] = WeakSet()
"""The connections of this process."""


class _Connection(psycopg.Connection[Any]):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        _CONNECTIONS.add(self)

    def wait(self, gen: PQGen[T], interval: float = _INTERVAL_SECONDS, timeout: float | None = None) -> T:
        """Wait for the server, no longer than the current deadline.

        Raises:
            AbandonedError: The deadline has passed.
        """
        if is_set():
            timeout = seconds_left(threading.TIMEOUT_MAX if timeout is None else timeout)
        try:
            return super().wait(gen, interval, timeout)
        except psycopg.Error:
            if is_over():
                raise AbandonedError from None
            raise


class _SyncPool(Pool[_Connection]):
    """The pool for sync calls."""

    def __init__(self, conn_string: str, kwargs: dict[str, Any], size: int, first: _Connection) -> None:
        # Names are looked up without a time limit.
        super().__init__(partial(apart, self._open), size, first)
        self._conn_string = conn_string
        self.kwargs = kwargs

    @contextmanager
    def connection(self) -> Iterator[_Connection]:
        """Take a connection for one call; one that is abandoned ends its statement without the caller."""
        connection = self.take()
        try:
            yield connection
        except AbandonedError:
            start_thread(partial(self._end, connection))
            raise
        except BaseException:
            self.give_back(connection, is_usable=_is_idle(connection))
            raise
        self.give_back(connection, is_usable=_is_idle(connection))

    def _open(self) -> _Connection:
        connection = _Connection.connect(self._conn_string, **_in_time(self.kwargs))
        if is_over():  # nobody waits for it any more
            connection.close()
        return connection

    def _end(self, connection: _Connection) -> None:
        """Cancel a connection's statement on the server, and close the connection."""
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=_ENDING_SECONDS)
        self.give_back(connection, is_usable=False)


def _in_time(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The settings of a connection that is made within the current deadline."""
    if "connect_timeout" not in kwargs:
        return kwargs
    return {**kwargs, "connect_timeout": ceil(seconds_left(kwargs["connect_timeout"]))}


def _is_idle(connection: _Connection | _AsyncConnection) -> bool:
    """Return whether a connection can be used again: it is open, and its call completed."""
    return connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE and not connection.closed


_ENDING_SECONDS: Final = 1.0
"""How long the server may take to cancel an abandoned statement, in seconds."""


class _AsyncConnection(psycopg.AsyncConnection[Any]):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        _CONNECTIONS.add(self)


def _sever() -> None:
    """Disconnect a child process from its parent's connections, so that it cannot disturb or end their sessions."""
    for connection in list(_CONNECTIONS):
        if not connection.closed:
            fork.sever(connection.fileno())
            fork.leave_to_parent(connection)
    _CONNECTIONS.clear()


fork.run_in_each_process(_sever)


_PREPARED_AT: Final = 5
"""The number of executions after which a connection prepares a statement; psycopg's own default."""

_OF_PREPARED: Final = frozenset({"26000", "42P05", "0A000", "08P01"})
"""The statement does not exist, already exists or has another result type now; or a pooler lacks the protocol."""


class _Adapted:
    """Our connections' own type adapters, separate from the application's."""

    connection = None
    adapters = AdaptersMap(psycopg.adapters)


_OURS: Final = _Adapted()
set_json_loads(documents.loads, _OURS)


class _AsyncPool(AsyncPool[_AsyncConnection]):
    """The pool of one event loop."""

    def __init__(self, conn_string: str, kwargs: dict[str, Any], size: int) -> None:
        super().__init__(partial(_AsyncConnection.connect, conn_string, **kwargs), _AsyncConnection.close, size)
        self.kwargs = kwargs


@lru_cache(maxsize=256)
def _sql(function: str, names: tuple[str, ...]) -> LiteralString:
    # The names are constants of the flows, never user input.
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
"""The exceptions of a call; the last two are for values that cannot be sent, or documents that cannot be read."""


def _is_lost(error: Exception) -> bool:
    """Return whether the connection is gone.

    Then the pool's other connections may be gone too; a fresh pool tries the address first, and reports problems at
    once.
    """
    if not isinstance(error, psycopg.OperationalError) or _is_of_node(error):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(_CONNECTION)


_CONNECTION: Final = ("08", "57P")
"""SQLSTATE prefixes of a lost connection, or of a server that is starting or stopping."""


def _is_of_node(error: psycopg.Error) -> bool:
    """Return whether a working server reports that another one is unavailable, such as the Citus node with the rows.

    That error ends only the statement (ERROR). An error that ends the connection is FATAL.
    """
    return (error.sqlstate or "").startswith(_CONNECTION) and error.diag.severity_nonlocalized == "ERROR"


def _is_read_only(error: Exception) -> bool:
    """Return whether the session is read-only; it stays so even after the database accepts writes again."""
    return getattr(error, "sqlstate", None) == "25006"


def _answer(row: tuple[Any, ...] | None) -> Any:
    return None if row is None else row[0]


def _translated(error: Exception) -> SupabaseMemoryError:
    """Convert psycopg's error to ours. The server's texts may contain rows, so only our own are retained."""
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
    return connection_failed(str(error))
