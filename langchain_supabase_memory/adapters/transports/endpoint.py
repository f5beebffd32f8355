"""Requests to a project's Data API, directly over httpx transports.

httpx's client would merge headers, cookies and addresses, and check for redirects, at each request: a single address
needs none of that, and it takes more than half of a request's CPU time.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.request import getproxies, proxy_bypass

import httpx

from langchain_supabase_memory import documents
from langchain_supabase_memory.deadline import seconds_left

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from langchain_supabase_memory.effects import Call

PROFILE: Final = {"Content-Profile": "public"}
"""The schema of our functions; without this header, the Data API looks in the first schema that it exposes."""


_ONE: Final = httpx.Limits(max_connections=1, max_keepalive_connections=1)
"""Each httpx transport is one connection here; see `pools`."""


class Endpoint:
    """The Data API's endpoint; created without I/O.

    Args:
        address: The Data API's url.
        key: The project's key.
        timeout_seconds: The timeout of one request, in seconds.
    """

    def __init__(self, address: str, key: str, timeout_seconds: float) -> None:
        self._address = httpx.URL(address)
        self._urls: dict[str, httpx.URL] = {}
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            "Content-Type": "application/json",
            **PROFILE,
            "apikey": key,
            "Authorization": f"Bearer {key}",
        }
        self._headers = httpx.Headers(headers)
        self._timeout_seconds = timeout_seconds
        self._extensions = {"timeout": httpx.Timeout(timeout_seconds).as_dict()}

    def opener(self) -> Callable[[], httpx.HTTPTransport]:
        """The factory of connections for sync calls; reads the trusted certificates from files."""
        return partial(httpx.HTTPTransport, verify=httpx.create_ssl_context(), limits=_ONE, proxy=self._proxy())

    def async_opener(self) -> Callable[[], AsyncConnection]:
        """The async twin of `opener`; it reads the same files."""
        return partial(AsyncConnection, httpx.create_ssl_context(), self._proxy())

    def request(self, call: Call, token: str | None) -> httpx.Request:
        """Build the request for one call, with a timeout no longer than the current deadline.

        Args:
            call: The call.
            token: The user's access token; `None` uses the key.

        Raises:
            TypeError: An argument cannot be encoded as JSON.
            ValueError: An argument cannot be encoded as JSON.
            AbandonedError: The deadline has passed.
        """
        seconds = seconds_left(self._timeout_seconds)
        extensions = self._extensions
        if seconds < self._timeout_seconds:
            extensions = {"timeout": httpx.Timeout(seconds).as_dict()}
        headers = self._headers
        if token is not None:
            headers = headers.copy()
            headers["Authorization"] = f"Bearer {token}"
        url = self._urls.get(call.function)
        if url is None:
            path = f"{self._address.path.rstrip('/')}/rpc/{call.function}"
            url = self._urls[call.function] = self._address.copy_with(path=path)
        body = documents.dumps(call.arguments)
        return httpx.Request("POST", url, headers=headers, content=body, extensions=extensions)

    def perform(self, transport: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        """Send a request and read the whole response. Raises httpx's errors."""
        response = transport.handle_request(request)
        try:
            response.read()
        finally:
            response.close()
        return response

    def _proxy(self) -> str | None:
        """Return the proxy that the environment sets for this address."""
        if proxy_bypass(self._address.netloc.decode()):
            return None
        proxies = getproxies()
        return proxies.get(self._address.scheme) or proxies.get("all")


class AsyncConnection:
    """A connection for async calls, created without I/O.

    Args:
        trusted: The trusted certificates.
        proxy: A proxy's address, if there is one.
    """

    def __init__(self, trusted: ssl.SSLContext, proxy: str | None) -> None:
        self._transport = httpx.AsyncHTTPTransport(verify=trusted, limits=_ONE, proxy=proxy)
        self._stream: Any = None

    async def perform(self, request: httpx.Request) -> httpx.Response:
        """Send a request and read the whole response. Raises httpx's errors."""
        if request.url.scheme == "https":
            request.extensions["trace"] = self._trace
        response = await self._transport.handle_async_request(request)
        try:
            await response.aread()
        finally:
            await response.aclose()
        return response

    async def aclose(self) -> None:
        """Close the connection; does nothing if it is closed."""
        await self._transport.aclose()
        if self._stream is not None:
            await self._stream.aclose()

    async def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        # If it was canceled during the TLS handshake, the transport has lost the connection, which would stay open.
        if event == "connection.connect_tcp.complete":
            self._stream = info["return_value"]
