"""A small HTTP server for Prometheus and probes, with `/metrics` and `/healthz`, for an application or a worker."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_supabase_memory import fork
from langchain_supabase_memory.adapters.telemetry.metrics import NoMetrics
from langchain_supabase_memory.checks import function, require_type
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.unpicklable import Unpicklable
from langchain_supabase_memory.values import Health

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

HealthCheck: TypeAlias = Callable[[], "Health | tuple[bool, Mapping[str, Any]]"]
"""Reports health without blocking: `memory.health`, or a function that returns whether all is well and some counts.

It is called in its own thread.
"""

_PATIENCE_SECONDS: Final = 5.0
"""How long a client may be idle, in seconds."""

_logger = logging.getLogger(__name__)


class MetricsServer(Unpicklable):
    """Serves `/metrics` and `/healthz` from its own threads, so that no event loop waits for it.

    ```python
    with MetricsServer(metrics, memory.health) as server:
        print(server.port)
    ```

    `/healthz` returns 200 or, if something is wrong, 503, both with a small JSON object of counts. There is no
    authentication, so the default is to listen only on this machine.

    Args:
        metrics: The metrics to serve.
        health: The health check; without one, the server reports healthy as long as it responds.
        host: The address to listen on; `0.0.0.0` in a container.
        port: The port; 0 picks a free one.

    Raises:
        ConfigurationError: An argument has the wrong type.
    """

    def __init__(
        self, metrics: NoMetrics, health: HealthCheck | None = None, *, host: str = "127.0.0.1", port: int = 9464
    ) -> None:
        require_type("metrics", metrics, NoMetrics, "Metrics()")
        function("health", health, "memory.health or worker.health, without calling it")
        self._metrics = metrics
        self._health = health
        self._address = (host, port)
        self._server: _HTTPServer | None = None
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        """Reset in a child process, which has no server threads and does not own the port."""
        if self._server is not None:
            self._server.socket.close()
        self._server = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port; once it listens, the one that was picked."""
        return self._address[1] if self._server is None else int(self._server.server_address[1])

    def start(self) -> Self:
        """Start listening; does nothing if it already does.

        Raises:
            ConfigurationError: The port is in use, or this machine has no such address.
        """
        if self._server is not None:
            return self
        host, port = self._address
        try:
            self._server = _HTTPServer(self._address, self._answer)
        except (OSError, OverflowError) as error:
            raise ConfigurationError(
                f"The metrics cannot be served on {host}:{port} ({getattr(error, 'strerror', None) or 'no port'}).",
                hint="Pass another port (0 picks a free one), or stop the process that has it.",
            ) from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), daemon=True, name="supabase-memory-metrics"
        )
        self._thread.start()
        return self

    def close(self) -> None:
        """Finish the responses in progress, for at most five seconds each, and free the port."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is not None and thread is not None:
            server.shutdown()
            thread.join()
            server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self, path: str) -> tuple[HTTPStatus, str, bytes]:
        """Return status, media type and body for a path."""
        if path == "/metrics":
            try:
                body, content_type = self._metrics.render()
            except Exception as error:  # a collector in the application's registry
                return HTTPStatus.INTERNAL_SERVER_ERROR, _JSON, _json({"error": type(error).__name__})
            return HTTPStatus.OK, content_type, body
        if path == "/healthz":
            is_well, counts = self._report()
            status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
            return status, _JSON, _json({"status": "ok" if is_well else "unavailable", **counts})
        return HTTPStatus.NOT_FOUND, _JSON, _json({"status": "not found", "paths": ["/metrics", "/healthz"]})

    def _report(self) -> tuple[bool, Mapping[str, Any]]:
        if self._health is None:
            return True, {}
        try:
            health = self._health()
            if isinstance(health, Health):
                causes = {
                    each.part: {"error": each.error, "code": each.code, "since": each.since.isoformat()}
                    for each in health.causes
                }
                said = {
                    "circuit": health.state,
                    "failures": health.failures,
                    "waiting": health.pending,
                    "causes": causes,
                }
                return health.state != "open", said
            is_well, counts = health
            _json(counts)
        except Exception as error:  # its text may contain anything, its class does not
            return False, {"error": type(error).__name__}
        return is_well, counts


_JSON: Final = "application/json"


def _json(values: Mapping[str, Any]) -> bytes:
    return json.dumps(dict(values)).encode()


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for the responses in progress

    def __init__(self, address: tuple[str, int], answer: Callable[[str], tuple[HTTPStatus, str, bytes]]) -> None:
        self.answer = answer
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without the base class's DNS lookup of this host, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log at debug level: a client that disconnected is not an error, and needs no traceback on the console."""
        _logger.debug("A request for metrics broke off (%s).", type(sys.exception()).__name__)


class _Handler(BaseHTTPRequestHandler):
    server: _HTTPServer
    timeout = _PATIENCE_SECONDS
    server_version = "supabase-memory"
    sys_version = ""

    def do_GET(self) -> None:
        self._send(with_body=True)

    def do_HEAD(self) -> None:
        self._send(with_body=False)

    def log_message(self, *_: Any) -> None:
        """Log nothing: probes come every few seconds."""

    def _send(self, *, with_body: bool) -> None:
        status, content_type, body = self.server.answer(self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if with_body:
            self.wfile.write(body)
