"""A fake of OpenAI's Responses API, which records its requests and answers."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ResponsesApi:
    """Records the body of each request; its answers are `answer 1`, `answer 2`, … with ids `resp_1`, `resp_2`, …"""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.age = 0.0  # of its answers, in seconds
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                api.requests.append(body)
                answer = json.dumps(_response(len(api.requests), body, api.age)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _response(number: int, body: dict[str, Any], age: float) -> dict[str, Any]:
    text = {"type": "output_text", "text": f"answer {number}", "annotations": []}
    message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": time.time() - age,
        "status": "completed",
        "model": body["model"],
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "previous_response_id": body.get("previous_response_id"),
        "usage": {
            "input_tokens": 1,
            "output_tokens": 1,
            "total_tokens": 2,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }
