"""A real HTTP proxy in front of PostgREST that falsifies answers on request."""

from __future__ import annotations

import http.client
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self
from urllib.parse import urlsplit

JSON = "application/json; charset=utf-8"


@dataclass(frozen=True)
class Lie:
    """A falsified answer.

    Attributes:
        name: Its name.
        status: Its HTTP status; the real one by default.
        headers: Its headers besides the length; the content type is JSON by default.
        body: The body, or a function of the real body; the real body by default.
        is_forwarded: Whether PostgREST still receives the request.
        drops: When the connection is closed: before the request is forwarded, after that, or in the middle of the body.
        delay_seconds: The delay of the answer, in seconds.
    """

    name: str
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | Callable[[bytes], bytes] | None = None
    is_forwarded: bool = True
    drops: Literal["before", "after", "midst"] | None = None
    delay_seconds: float = 0.0


TRUTH = Lie("truth")


class Proxy:
    """A proxy in front of a server; `with Proxy(url) as proxy` provides `proxy.url`.

    Attributes:
        script: The answers to the next requests, in order; then the real ones.
        liar: The answer to a request for a function once the script is used up.
        requests: The requested functions, each with the name of its answer.
    """

    def __init__(self, upstream: str) -> None:
        self.script: deque[Lie] = deque()
        self.liar: Callable[[str], Lie] = lambda _: TRUTH
        self.requests: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        address = urlsplit(upstream)
        handler = type("Handler", (_Handler,), {"proxy": self, "upstream": (address.hostname, address.port)})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def tells(self, *lies: Lie) -> None:
        """Give these answers in turn, and then the real ones."""
        self.truthful()
        self.script.extend(lies)

    def always(self, lie: Lie, functions: Iterable[str] | None = None) -> None:
        """Give the same answer to every request, or to those for some functions, until `truthful` is called."""
        among = None if functions is None else frozenset(functions)
        self.liar = lambda function: lie if among is None or function in among else TRUTH

    def truthful(self) -> None:
        """Give real answers from now on, and clear the record of requests."""
        with self._lock:
            self.script.clear()
            self.requests.clear()
            self.liar = lambda _: TRUTH

    def next(self, function: str) -> Lie:
        with self._lock:
            lie = self.script.popleft() if self.script else self.liar(function)
            self.requests.append((function, lie.name))
            return lie

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise the body waits for the acknowledgment of the headers
    wbufsize = -1
    proxy: Proxy
    upstream: tuple[str, int]

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        lie = self.proxy.next(self.path.rsplit("/", 1)[-1])
        if lie.drops == "before":
            self.close_connection = True
            return
        status, body = self._forwarded(sent) if lie.is_forwarded else (200, b"")
        time.sleep(lie.delay_seconds)
        if lie.drops == "after":
            self.close_connection = True
            return
        if lie.body is not None:
            body = lie.body if isinstance(lie.body, bytes) else lie.body(body)
        self.send_response(lie.status or status)
        for name, value in {"Content-Type": JSON, "Content-Length": str(len(body)), **lie.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if lie.drops == "midst":
            body, self.close_connection = body[: len(body) // 2], True
        self.wfile.write(body)
        self.wfile.flush()

    def _forwarded(self, sent: bytes) -> tuple[int, bytes]:
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in ("host", "connection", "accept-encoding")
        }
        connection = http.client.HTTPConnection(*self.upstream, timeout=30)
        try:
            connection.request("POST", self.path, sent, headers)
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def log_message(self, *_: Any) -> None:
        pass

    def handle(self) -> None:
        with suppress(ConnectionError):  # the client disconnected early
            super().handle()
