"""Calls over the Data API: the official client's `rpc` or our own requests, with the caller's token on each."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import httpx

from langchain_supabase_memory import fork
from langchain_supabase_memory.adapters import addresses
from langchain_supabase_memory.adapters.transports.credentials import Credential, subject
from langchain_supabase_memory.adapters.transports.credentials import token as checked_token
from langchain_supabase_memory.adapters.transports.endpoint import PROFILE, AsyncConnection, Endpoint
from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo, of_data_api
from langchain_supabase_memory.adapters.transports.http_errors import document
from langchain_supabase_memory.adapters.transports.per_loop import PerLoop
from langchain_supabase_memory.adapters.transports.pools import AsyncPool, Pool
from langchain_supabase_memory.adapters.transports.response_shapes import validate
from langchain_supabase_memory.adapters.transports.retry import aretry, retry
from langchain_supabase_memory.checks import number, wrong_type
from langchain_supabase_memory.deadline import apart, hold, in_thread, retrieve_exception, seconds_left
from langchain_supabase_memory.errors import (
    ConfigurationError,
    InvalidInputError,
    SupabaseMemoryError,
    TokenExpiredError,
    UnavailableError,
    host_not_found,
)
from langchain_supabase_memory.settings import DEFAULT_RETRY_POLICY, RetryPolicy
from langchain_supabase_memory.settings import check_settings as checked_settings
from langchain_supabase_memory.unpicklable import Unpicklable

if TYPE_CHECKING:
    from supabase import AsyncClient, Client

    from langchain_supabase_memory.effects import Call

AccessToken: TypeAlias = str | Callable[[], str] | Callable[[], Awaitable[str]]
"""A user's access token (a JWT), or a callback that returns the current one before each request."""

MAX_IN_FLIGHT: Final = 8
"""Concurrent requests per event loop, and per process for sync calls: beyond this the client slows down (measured)."""

TIMEOUT_SECONDS: Final = 10.0
"""The timeout of one request, in seconds; Supabase's own limit for a statement is 8 seconds."""


class SupabaseTransport(Unpicklable):
    """Performs calls through Supabase's Data API.

    Args:
        url: The project's url, such as `https://abc.supabase.co`.
        key: Its publishable or secret key (or the older `anon` and `service_role` keys).
        client: A client to use for sync calls instead of our own; it is never closed. A process that is forked from
            this one does not use it.
        async_client: The same for async calls, in the event loop where it is first used; another loop gets its own.
        access_token: The user that calls act as, so that row level security applies. Only without a token do calls use
            the key: an invalid token, or a callback that returns none, is an error.
        retry: How a call is retried.
        timeout_seconds: The timeout of one request, in seconds, for clients that we open.
        rest_path: The path of the Data API under `url`; empty for a bare PostgREST.

    Raises:
        ConfigurationError: The url or the key is missing, or the url is not valid.
        AuthenticationError: The access token is not valid.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        client: Client | None = None,
        async_client: AsyncClient | None = None,
        access_token: AccessToken | None = None,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        timeout_seconds: float = TIMEOUT_SECONDS,
        rest_path: str = "/rest/v1",
    ) -> None:
        checked_settings(False, retry=retry)
        self._clients = _Clients(url, key, client, async_client, timeout_seconds, rest_path)
        self._token = None if access_token is None else Credential(access_token, checked_token)
        self._retry = retry

    @classmethod
    def from_client(
        cls, client: Client | AsyncClient, *, access_token: AccessToken | None = None, retry: RetryPolicy
    ) -> SupabaseTransport:
        """Return a transport over your client; the other sync or async client is opened from its url and key if needed.

        Args:
            client: A `supabase.Client` or `supabase.AsyncClient`.
            access_token: As for the class; by default the user who is signed in at the client now.
            retry: As for the class.

        Raises:
            ConfigurationError: The value is not a client.
            AuthenticationError: The access token is not valid.
        """
        if not (hasattr(client, "supabase_url") and hasattr(client, "supabase_key")):
            hint = "Pass what supabase.create_client or acreate_client gives; for a url and a key use from_url."
            raise wrong_type("client", "a client of the package supabase", client, hint)
        # The client's Authorization header may already be a user's.
        from supabase import AsyncClient

        is_async = isinstance(client, AsyncClient)
        headers = {name.lower(): value for name, value in dict(client.options.headers).items()}
        said = headers.get("authorization", client.supabase_key)
        scheme, _, token = said.partition(" ")
        spoken = token if scheme.lower() == "bearer" else said
        if access_token is None and spoken != client.supabase_key:
            access_token = spoken
        return cls(
            str(client.supabase_url),
            str(client.supabase_key),
            client=None if is_async else client,  # type: ignore[arg-type]
            async_client=client if is_async else None,  # type: ignore[arg-type]
            access_token=access_token,
            retry=retry,
        )

    @property
    def acts_as_user(self) -> bool:
        """Whether an access token is sent."""
        return self._token is not None

    @property
    def identity_is_callback(self) -> bool:
        """Whether a callback returns the user before each call, so that the next call may be another user's."""
        return self._token is not None and self._token.is_callable

    @property
    def user(self) -> str | None:
        """The subject of the access token; `None` without one, or if a callback returns it."""
        return None if self._token is None or self._token.value is None else subject(self._token.value)

    @property
    def endpoint(self) -> EndpointInfo:
        """The Data API, and the url of the project's public signing keys."""
        return of_data_api(self._clients.url, self._clients.address)

    def for_token(self, identity: AccessToken) -> SupabaseTransport:
        """Return a transport over the same clients for another user; clients are shared, tokens never are.

        Args:
            identity: The user's access token, or a callback that returns it.

        Raises:
            AuthenticationError: The access token is not valid.
        """
        twin = copy(self)
        twin._token = Credential(identity, checked_token)
        return twin

    def perform(self, call: Call) -> Any:
        """Perform one call; see `Transport.perform`."""
        try:
            return self._perform(call)
        except TokenExpiredError:
            if self._token is None or not self._token.is_callable:
                raise
            return self._perform(call)  # the callback may have a new token

    def _perform(self, call: Call) -> Any:
        begun = time.monotonic()
        try:
            return self._perform_once(call)
        except UnavailableError as error:
            return retry(self._retry, self._perform_once, call, error, begun)

    async def _aperform(self, call: Call) -> Any:
        """The async twin of `_perform`, with async retries."""
        begun = time.monotonic()
        try:
            return await self._aperform_once(call)
        except UnavailableError as error:
            return await aretry(self._retry, self._aperform_once, call, error, begun)

    async def aperform(self, call: Call) -> Any:
        """Perform one call; see `Transport.aperform`."""
        try:
            return await self._aperform(call)
        except TokenExpiredError:
            if self._token is None or not self._token.is_callable:
                raise
            return await self._aperform(call)

    def close(self) -> None:
        """Close the sync client, if it is ours."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close this event loop's client and the sync one, if they are ours."""
        await in_thread(self._clients.close)
        await self._clients.asynchronous.aclose()

    def _perform_once(self, call: Call) -> Any:
        token = None if self._token is None else self._token.now()
        try:
            response = self._clients.send(call, token)
        except _FAILURES as error:
            failure = _translated(error)
        else:
            return validate(call.function, document(response))
        raise failure

    async def _aperform_once(self, call: Call) -> Any:
        token = None if self._token is None else await self._token.anow()
        requests = await self._clients.asynchronous.get()
        try:
            response = await requests.send(call, token)
        except _FAILURES as error:
            failure = _translated(error)
        else:
            return validate(call.function, document(response))
        raise failure

    def __repr__(self) -> str:
        """Return the address, without the key."""
        return f"SupabaseTransport({self._clients.address!r})"


class _Clients:
    """The clients of a transport: one for sync calls, one per event loop. Shared by all users of one project."""

    def __init__(
        self,
        url: str,
        key: str,
        client: Client | None,
        async_client: AsyncClient | None,
        timeout_seconds: float,
        rest_path: str,
    ) -> None:
        self.url = url
        self.address = addresses.data_api(url, key, rest_path)
        number("timeout_seconds", timeout_seconds, optional=False, example=10)
        self.endpoint = Endpoint(self.address, key, timeout_seconds)
        fork.run_in_each_process(self._begin)
        self._given: Client | None = client
        self._async_given: AsyncClient | None = async_client
        self.asynchronous: PerLoop[_OwnClient | _BorrowedClient] = PerLoop(self._open_async, _close_async)

    def _begin(self) -> None:
        # In a child process the application's client belongs to the parent; the child opens its own, like a second
        # loop.
        self._given = None
        self._async_given = None
        self._async_given_loop: asyncio.AbstractEventLoop | None = None
        self._opened: Pool[httpx.HTTPTransport] | None = None
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(MAX_IN_FLIGHT)

    def send(self, call: Call, token: str | None) -> httpx.Response:
        if self._given is None:
            return self._sent(self.endpoint.request(call, token))
        # The application's client has time limits of its own. A request holds its slot until it ends.
        return apart(partial(self._send_borrowed, self._given, call, token))

    def _send_borrowed(self, client: Client, call: Call, token: str | None) -> httpx.Response:
        hold(self._slots)
        try:
            seconds_left(TIMEOUT_SECONDS)  # nothing is sent for an abandoned call
            request = client.rpc(call.function, dict(call.arguments)).request
            _authorize(request, token)
            return request.send(httpx.Headers())
        finally:
            self._slots.release()

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _sent(self, request: httpx.Request) -> httpx.Response:
        pool = self._opened
        if pool is None:
            with self._lock:
                if self._opened is None:
                    self._opened = Pool(self.endpoint.opener(), MAX_IN_FLIGHT)
                pool = self._opened
        connection, is_whole = pool.take(), False
        try:
            response = self.endpoint.perform(connection, request)
            is_whole = True
            return response
        finally:
            pool.give_back(connection, is_usable=is_whole)

    async def _open_async(self) -> _OwnClient | _BorrowedClient:
        loop = asyncio.get_running_loop()
        given = self._async_given
        if given is not None and self._async_given_loop in (None, loop):
            self._async_given_loop = loop
            await in_thread(lambda: given.postgrest)  # created at its first use, which loads certificates
            return _BorrowedClient(given)
        return _OwnClient(self.endpoint, await in_thread(self.endpoint.async_opener))


async def _close_async(requests: _OwnClient | _BorrowedClient) -> None:
    await requests.close()


class _OwnClient:
    """Async requests of one event loop over our own connections."""

    def __init__(self, endpoint: Endpoint, opener: Callable[[], AsyncConnection]) -> None:
        self.endpoint = endpoint
        self._opener = opener
        self._pool = AsyncPool(self._open, AsyncConnection.aclose, MAX_IN_FLIGHT)

    async def send(self, call: Call, token: str | None) -> httpx.Response:
        request = self.endpoint.request(call, token)
        connection, is_whole = await self._pool.take(), False
        try:
            response = await connection.perform(request)
            is_whole = True
            return response
        finally:
            self._pool.give_back(connection, is_usable=is_whole)

    async def close(self) -> None:
        await self._pool.close()

    async def _open(self) -> AsyncConnection:
        return self._opener()


class _BorrowedClient:
    """Async requests over the application's client, which manages its own connections.

    A request canceled in transit may hold its slot there forever, so requests are never canceled: each one completes,
    and holds our slot until then, even if nobody waits for it.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._under_way: set[asyncio.Task[httpx.Response]] = set()  # the loop only holds weak references to tasks

    async def send(self, call: Call, token: str | None) -> httpx.Response:
        await self._slots.acquire()
        task = asyncio.create_task(self._send(call, token))
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Do nothing: the client belongs to the application."""

    async def _send(self, call: Call, token: str | None) -> httpx.Response:
        request: Any = self._client.rpc(call.function, dict(call.arguments)).request
        _authorize(request, token)
        response: httpx.Response = await request.send(httpx.Headers())
        return response

    def _ended(self, task: asyncio.Task[httpx.Response]) -> None:
        self._under_way.discard(task)
        self._slots.release()
        retrieve_exception(task)


_FAILURES: Final = (httpx.HTTPError, httpx.InvalidURL, TypeError, ValueError, RecursionError)
"""The exceptions of a request without a response; the last three are for arguments that are not valid JSON."""


def _authorize(request: Any, token: str | None) -> None:
    """Set the schema and the user's token on this request only, because the client's own headers are shared."""
    request.headers.update(PROFILE)  # the client may be configured for another schema
    if token is not None:
        request.headers["Authorization"] = f"Bearer {token}"


def _translated(error: Exception) -> SupabaseMemoryError:
    """Convert the error of a request without a response to ours."""
    kind = type(error).__name__
    cause = _cause(error)
    if isinstance(cause, socket.gaierror):
        return host_not_found(is_known_to_be_none=cause.errno in _NO_HOST)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return ConfigurationError(
            "The certificate of the project's url is not accepted.",
            hint="Check the url; for a certificate of your own set SSL_CERT_FILE, or pass a client with from_client.",
        )
    if isinstance(cause, ssl.SSLError) and "WRONG_VERSION_NUMBER" in str(cause):
        return ConfigurationError(
            "What answers at the project's url does not speak TLS.",
            hint="Begin the url with http:// (a local Supabase), or correct its port.",
        )
    if isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol)):
        return ConfigurationError(
            "The project's url is not a valid address.", hint="Copy it from the project's API settings."
        )
    if isinstance(error, httpx.TooManyRedirects):
        return ConfigurationError("The project's url redirects in a loop.", hint="Copy it from the API settings.")
    if not isinstance(error, httpx.HTTPError):
        return InvalidInputError()
    if isinstance(error, httpx.TimeoutException):
        hint = "Look at the project's state in the dashboard, and at firewalls between; the call is safe to repeat."
        return UnavailableError(f"The Data API did not answer in time ({kind}).", hint=hint)
    if isinstance(error, httpx.ConnectError):
        return UnavailableError(f"The Data API could not be reached ({kind}).")
    hint = "If it always does, the port is another server's, such as Postgres; the call is safe to repeat."
    return UnavailableError(f"The connection to the Data API broke off ({kind}).", hint=hint)


_NO_HOST: Final = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


def _cause(error: BaseException) -> BaseException:
    """Return the root cause of an httpx error."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, (socket.gaierror, ssl.SSLError)):
        found = found.__cause__ or found.__context__
    return error if found is None else found
