"""A fake OpenAI server with Chat Completions and the Responses API, streamed or not, scripted by a test.

It records every request, and rejects those that OpenAI would reject, by the rules of OpenAI's API reference and its
guide to structured outputs.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"

_PARAMETERS = {
    CHAT: {"messages", "response_format", "stream_options", "max_completion_tokens"},
    RESPONSES: {"input", "instructions", "text", "max_output_tokens", "previous_response_id"},
}
_COMMON = {
    "model",
    "stream",
    "temperature",
    "top_p",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "store",
    "metadata",
}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_PIECE = 29  # characters

# The JSON Schema keywords that a strict schema may have.
_KEYWORDS = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "enum",
    "const",
    "$ref",
    "$defs",
}
_KEYWORDS |= {"description", "title", "pattern", "format", "minItems", "maxItems", "multipleOf"}
_KEYWORDS |= {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
# The limits of 2024, which have been raised since.
_MOST_PROPERTIES, _DEEPEST, _MOST_CHARACTERS, _MOST_CHOICES = 100, 5, 15_000, 500


@dataclass(frozen=True)
class Schema:
    """The required form of an answer.

    Attributes:
        kind: `format` for a response format, `tool` for the arguments of a call.
        name: Its name.
        strict: Whether the answer must match it.
        body: The JSON schema.
    """

    kind: str
    name: str
    strict: bool
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """A recorded request.

    Attributes:
        path: The path.
        body: The document.
    """

    path: str
    body: Mapping[str, Any]

    @property
    def prompt(self) -> str:
        """Return the text of all messages."""
        messages = self.body.get("messages" if self.path == CHAT else "input", [])
        parts = [each["content"] for each in messages]
        return "\n".join(each if isinstance(each, str) else "".join(part["text"] for part in each) for each in parts)

    @property
    def schema(self) -> Schema | None:
        """Return the required form of the answer, if any."""
        form = self.body.get("response_format") if self.path == CHAT else self.body.get("text", {}).get("format")
        if form is not None and form["type"] == "json_schema":
            given = form["json_schema"] if self.path == CHAT else form
            return Schema("format", given["name"], given.get("strict") is True, given["schema"])
        for tool in self.body.get("tools", []):
            given = tool["function"] if self.path == CHAT else tool
            return Schema("tool", given["name"], given.get("strict") is True, given["parameters"])
        return None


@dataclass(frozen=True)
class Answer:
    """The server's scripted answer.

    Attributes:
        text: The model's text; the arguments, if the request forces a call.
        finish: The finish reason of Chat Completions: `stop`, `length`, `content_filter`.
        refusal: The text of a refusal.
        status: The HTTP status; from 400 on, `text` is the error's message.
        headers: Additional headers.
        hangs: Whether no answer comes until the server stops.
    """

    text: str = field(default="", repr=False)
    finish: str = "stop"
    refusal: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False


Script = Callable[[Request], "Answer | str"]


class OpenAiApi:
    """Answers by `script`, which may be replaced at any time; `requests` records the requests."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self._stopped = threading.Event()
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                # Azure has another path, which contains the model's name.
                request = Request(CHAT if self.path.startswith("/openai/deployments/") else self.path, body)
                api.requests.append(request)
                found = violations(request)
                answer = Answer(found[0], status=400) if found else api.script(request)
                answer = Answer(answer) if isinstance(answer, str) else answer
                if answer.hangs:
                    api._stopped.wait()
                    return
                if answer.status >= 400:
                    error = {"message": answer.text, "type": "error", "param": None, "code": None}
                    self._send("application/json", json.dumps({"error": error}), answer)
                elif body.get("stream"):
                    self._send("text/event-stream", "".join(_events(request, answer)), answer)
                else:
                    self._send("application/json", json.dumps(_whole(request, answer)), answer)

            def _send(self, kind: str, text: str, answer: Answer) -> None:
                self.send_response(answer.status)
                self.send_header("Content-Type", kind)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


# --- What OpenAI refuses


def violations(request: Request) -> list[str]:
    """Return why OpenAI would answer with 400; empty if it would not."""
    if request.path not in _PARAMETERS:
        return [f"Invalid URL (POST {request.path})"]
    found = [
        f"Unknown parameter: '{name}'." for name in sorted(set(request.body) - _COMMON - _PARAMETERS[request.path])
    ]
    messages = request.body.get("messages" if request.path == CHAT else "input")
    if not messages or any(each["role"] not in ("system", "developer", "user", "assistant") for each in messages):
        found.append("Invalid messages.")
    elif not request.prompt.strip():
        found.append("Empty messages.")
    schema = request.schema
    if schema is None:
        return found
    if not _NAME.fullmatch(schema.name):
        found.append(
            f"Invalid name: '{schema.name}'. Expected a string that matches '^[a-zA-Z0-9_-]+$', of at most 64."
        )
    if schema.kind == "tool" and _forced(request) != schema.name:
        found.append("Tool choice is none of the tools.")
    if schema.strict:
        found += [f"Invalid schema for response_format '{schema.name}': {each}" for each in strict_faults(schema.body)]
    return found


def strict_faults(schema: Mapping[str, Any]) -> list[str]:
    """Return the violations of the rules for strict schemas."""
    found: list[str] = []
    if schema.get("type") != "object" or "anyOf" in schema:
        found.append("the root is no object")
    nodes = list(_nodes(schema, (), 1))
    for path, depth, node in nodes:
        where = f"In context={path}, "
        found += [f"{where}'{name}' is not permitted." for name in sorted(set(node) - _KEYWORDS)]
        types = node.get("type", [])
        types = [types] if isinstance(types, str) else types
        if not (types or node.keys() & {"anyOf", "$ref", "enum", "const"}) or set(types) - _TYPES:
            found.append(f"{where}schema must have a 'type' key.")
        if "object" in types:
            if node.get("additionalProperties") is not False:
                found.append(f"{where}'additionalProperties' is required to be supplied and to be false.")
            if set(node.get("required", ())) != set(node.get("properties", {})):
                found.append(f"{where}'required' is required to be an array including every key in properties.")
            if depth > _DEEPEST:
                found.append(f"{where}nested too deeply.")
        if "array" in types and not isinstance(node.get("items"), dict):
            found.append(f"{where}array schema missing items.")
    names = [name for _, _, node in nodes for name in node.get("properties", {})]
    choices = [choice for _, _, node in nodes for choice in node.get("enum", [])]
    if len(names) > _MOST_PROPERTIES or len(choices) > _MOST_CHOICES:
        found.append("too many properties or choices")
    if sum(len(str(each)) for each in [*names, *choices]) > _MOST_CHARACTERS:
        found.append("names and choices are too long")
    return found


def _nodes(
    schema: Mapping[str, Any], path: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], int, Mapping[str, Any]]]:
    yield path, depth, schema
    for kind in ("properties", "$defs"):
        for name, each in schema.get(kind, {}).items():
            yield from _nodes(each, (*path, kind, name), depth + 1)
    if isinstance(schema.get("items"), dict):
        yield from _nodes(schema["items"], (*path, "items"), depth)
    for place, each in enumerate(schema.get("anyOf", [])):
        yield from _nodes(each, (*path, "anyOf", str(place)), depth)


def _forced(request: Request) -> str | None:
    """Return the name of the tool that must be called."""
    choice = request.body.get("tool_choice")
    if not isinstance(choice, dict):
        return None
    return str((choice.get("function", choice) if request.path == CHAT else choice).get("name"))


# --- What OpenAI answers


def _whole(request: Request, answer: Answer) -> dict[str, Any]:
    if request.path == RESPONSES:
        return _response(request, answer)
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    finish = answer.finish
    name = _forced(request)
    if answer.refusal is not None:
        message["content"] = None
    elif name is not None:
        message |= {"content": None, "tool_calls": [_call(name, answer.text)]}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {**_completion(request, "chat.completion"), "choices": [choice], "usage": usage}


def _completion(request: Request, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": request.body["model"]}


def _call(name: str, arguments: str) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def _response(request: Request, answer: Answer, *, begun: bool = False) -> dict[str, Any]:
    """Return a response; `begun` is its announcement before it is streamed."""
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    status = "incomplete" if answer.finish in reasons else "completed"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "in_progress" if begun else status,
        "incomplete_details": {"reason": reasons[answer.finish]} if answer.finish in reasons and not begun else None,
        "error": None,
        "model": request.body["model"],
        "output": [] if begun else [_item(request, answer, status)],
        "parallel_tool_calls": True,
        "tool_choice": request.body.get("tool_choice", "auto"),
        "tools": request.body.get("tools", []),
        "text": request.body.get("text", {"format": {"type": "text"}}),
        "usage": None
        if begun
        else {
            "input_tokens": 1,
            "output_tokens": 1,
            "total_tokens": 2,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _item(request: Request, answer: Answer, status: str) -> dict[str, Any]:
    """Return the only item of a response's output."""
    name = _forced(request)
    if name is not None and answer.refusal is None:
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": status}
        return {**call, "name": name, "arguments": answer.text}
    part = _part(answer)
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": [part]}


def _part(answer: Answer) -> dict[str, Any]:
    if answer.refusal is not None:
        return {"type": "refusal", "refusal": answer.refusal}
    return {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}


def _events(request: Request, answer: Answer) -> Iterator[str]:
    """Yield an answer as server-sent events."""
    if request.path == RESPONSES:
        for number, event in enumerate(_response_events(request, answer)):
            yield f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n"
        return
    head = _completion(request, "chat.completion.chunk")
    for delta, finish in [*((each, None) for each in _deltas(request, answer)), ({}, answer.finish)]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        yield f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"
    if request.body.get("stream_options", {}).get("include_usage"):
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        yield f"data: {json.dumps({**head, 'choices': [], 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


def _deltas(request: Request, answer: Answer) -> Iterator[dict[str, Any]]:
    name = _forced(request)
    if answer.refusal is not None:
        yield {"role": "assistant", "content": None}
        yield from ({"refusal": piece} for piece in _pieces(answer.refusal))
    elif name is not None:
        yield {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **_call(name, "")}]}
        for piece in _pieces(answer.text):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
    else:
        yield {"role": "assistant", "content": ""}
        yield from ({"content": piece} for piece in _pieces(answer.text))


def _response_events(request: Request, answer: Answer) -> Iterator[dict[str, Any]]:
    done = _response(request, answer)
    (item,) = done["output"]
    yield {"type": "response.created", "response": _response(request, answer, begun=True)}
    within = {"output_index": 0, "item_id": item["id"]}
    if item["type"] == "function_call":
        begun = {**item, "arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": 0, "item": begun}
        for piece in _pieces(answer.text):
            yield {"type": "response.function_call_arguments.delta", "delta": piece, **within}
        yield {
            "type": "response.function_call_arguments.done",
            "arguments": answer.text,
            "name": item["name"],
            **within,
        }
    else:
        begun = {**item, "content": [], "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": 0, "item": begun}
        within |= {"content_index": 0}
        (part,) = item["content"]
        kind = part["type"].removeprefix("output_")
        empty = {**part, kind: ""}
        yield {"type": "response.content_part.added", "part": empty, **within}
        for piece in _pieces(part[kind]):
            yield {"type": f"response.{part['type']}.delta", "delta": piece, "logprobs": [], **within}
        yield {"type": f"response.{part['type']}.done", kind: part[kind], "logprobs": [], **within}
        yield {"type": "response.content_part.done", "part": part, **within}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": f"response.{done['status']}", "response": done}


def _pieces(text: str) -> list[str]:
    """Split a text into pieces at arbitrary positions."""
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)] or [""]
