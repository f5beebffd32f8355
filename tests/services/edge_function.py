"""A fake of the Edge Function `memory-embed`, with its own vectors; it records requests."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATH = "/functions/v1/memory-embed"
KEY = "a-key"
WIDTH = 384


def vector(text: str) -> list[float]:
    """Return the vector of a text, which only depends on its length."""
    return [float(place == len(text) % WIDTH) for place in range(WIDTH)]


@dataclass
class EdgeFunction:
    """The server. Use it as a context manager.

    Attributes:
        answers: The next answers instead of vectors: a status and a body.
        requests: The inputs of the requests.
    """

    answers: list[tuple[int, bytes]] = field(default_factory=list)
    requests: list[list[str]] = field(default_factory=list)

    def __enter__(self) -> EdgeFunction:
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                status, body = served._answer(
                    self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))
                )
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        named = {name.lower(): value for name, value in headers.items()}
        if path != PATH:
            return 404, b'{"code": "NOT_FOUND", "message": "Requested function was not found"}'
        if named.get("authorization") != f"Bearer {KEY}" or named.get("apikey") != KEY:
            return 401, b'{"code": 401, "message": "Invalid JWT"}'
        texts = json.loads(body)["input"]
        self.requests.append(texts)
        if self.answers:
            return self.answers.pop(0)
        return 200, json.dumps({"model": "gte-small", "embeddings": [*map(vector, texts)]}).encode()
