"""Our own requests to a project's Data API, over the transport of httpx.

Its client would merge headers, cookies and addresses, and look for redirects, at each request: none of that is needed
for one address, and it takes more than half of the processor's time for a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.request import getproxies, proxy_bypass

import httpx

from langchain_supabase_memory import documents

if TYPE_CHECKING:
    from langchain_supabase_memory.flow import Call

PROFILE: Final = {"Content-Profile": "public"}
"""Names the schema of our functions: else the Data API looks in the first that it exposes."""


class Endpoint:
    """Where functions are called; made without I/O.

    Args:
        address: The Data API's url.
        key: The project's key.
        timeout_seconds: How long one request may take.
        connections: The most at once.
    """

    def __init__(self, address: str, key: str, timeout_seconds: float, connections: int) -> None:
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
        self._extensions = {"timeout": httpx.Timeout(timeout_seconds).as_dict()}
        self._limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)

    def open(self) -> httpx.HTTPTransport:
        """Connections for sync calls; it reads the certificates that are trusted from files."""
        return httpx.HTTPTransport(limits=self._limits, proxy=self._proxy())

    def open_async(self) -> httpx.AsyncHTTPTransport:
        """Connections for one event loop; it reads the certificates that are trusted from files."""
        return httpx.AsyncHTTPTransport(limits=self._limits, proxy=self._proxy())

    def request(self, call: Call, token: str | None) -> httpx.Request:
        """One call as a request.

        Args:
            call: The call.
            token: The user's access token; `None` lets the key speak.

        Raises:
            TypeError: An argument is no JSON.
            ValueError: The same.
        """
        headers = self._headers
        if token is not None:
            headers = headers.copy()
            headers["Authorization"] = f"Bearer {token}"
        url = self._urls.get(call.function)
        if url is None:
            path = f"{self._address.path.rstrip('/')}/rpc/{call.function}"
            url = self._urls[call.function] = self._address.copy_with(path=path)
        body = documents.dumps(call.arguments)
        return httpx.Request("POST", url, headers=headers, content=body, extensions=self._extensions)

    def perform(self, transport: httpx.HTTPTransport, call: Call, token: str | None) -> httpx.Response:
        """One call and its response, read to its end; as `request`, and httpx's errors."""
        response = transport.handle_request(self.request(call, token))
        try:
            response.read()
        finally:
            response.close()
        return response

    async def aperform(self, transport: httpx.AsyncHTTPTransport, call: Call, token: str | None) -> httpx.Response:
        """The async twin of `perform`."""
        response = await transport.handle_async_request(self.request(call, token))
        try:
            await response.aread()
        finally:
            await response.aclose()
        return response

    def _proxy(self) -> str | None:
        """The proxy that the environment names for this address."""
        if proxy_bypass(self._address.netloc.decode()):
            return None
        proxies = getproxies()
        return proxies.get(self._address.scheme) or proxies.get("all")
