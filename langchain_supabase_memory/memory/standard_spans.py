"""Standard spans: the names of OpenTelemetry's conventions for memory operations of generative AI, on our own spans.

The names are those of the span `gen_ai.memory.client` in open-telemetry/semantic-conventions-genai, as of commit
7e7e4e763354b505b8e1f76512f17a1977b00f70 (merged by its pull request 140; in development). Texts are recorded only if
the variable of the conventions says so: like OpenTelemetry's own variables, it is read from the environment.
"""

from __future__ import annotations

import json
import os
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.context.pack import ContextPack
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.values import (
    AppendResult,
    BoardResult,
    Chunk,
    FoundPage,
    Recall,
    RecalledSummary,
    Receipt,
    SummaryResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo
    from langchain_supabase_memory.effects import Call
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor

CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable by which spans of generative AI may record texts; without it, none does."""

OPERATION: Final = "gen_ai.operation.name"
STORE_ID: Final = "gen_ai.memory.store.id"
RECORD_ID: Final = "gen_ai.memory.record.id"
RECORD_COUNT: Final = "gen_ai.memory.record.count"
QUERY: Final = "gen_ai.memory.query.text"
RECORDS: Final = "gen_ai.memory.records"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

_CAPTURING: Final = ("true", "1", "span_only", "span_and_event")
"""The values that let spans record texts; with `EVENT_ONLY`, only events do, and there are none here."""

_OPERATIONS: Final = {
    "search_memory": ("recall", "recall_summaries", "context", "find", "find_page"),
    "create_memory": ("add_item", "contribute"),
    "update_memory": (
        *("edit_item", "pin_item", "edit_summary", "edit_segment", "regenerate_summaries", "rate"),
        *("confirm", "correct", "pin", "reinstate"),
    ),
    # The caller does not choose whether records are created, updated or consolidated.
    "upsert_memory": (
        "append",
        "append_and_load",
        "add_turn",
        "flush_and_append",
        "remember",
        "summarize",
        "revise_board",
    ),
    "delete_memory": (
        *("forget", "forget_user", "forget_message", "forget_expired", "delete", "delete_item", "delete_segment"),
        *("withdraw", "sweep"),
    ),
    "create_memory_store": ("create",),
}
_OPERATION_OF: Final = {verb: name for name, verbs in _OPERATIONS.items() for verb in verbs}

_STORE_ARGUMENTS: Final = ("p_space", "p_thread_id")
_RECORD_ARGUMENTS: Final = ("p_message_id", "p_item_id", "p_chunk_id", "p_id")
_STORE_OPERATIONS: Final = {"search": "search_memory", "put": "upsert_memory", "delete": "delete_memory"}


def operation_name(verb: str) -> str | None:
    """Return the conventions' name of an operation; `None` if they have none, as for reading by number.

    Args:
        verb: The name of the flow.
    """
    return _OPERATION_OF.get(verb)


def store_operation_name(operations: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the conventions' name of a batch of a `SupabaseStore`; `None` if it has several or none.

    Args:
        operations: The argument of `memory_store`.
    """
    names = {_STORE_OPERATIONS.get(each["op"]) for each in operations}
    return names.pop() if len(names) == 1 else None


def captures_content() -> bool:
    """Return whether spans may record texts."""
    return os.environ.get(CAPTURE, "").strip().lower() in _CAPTURING


def server_attributes(endpoint: EndpointInfo) -> dict[str, Any]:
    """Return where an operation goes: the host without user, password and key, and its port.

    Args:
        endpoint: Where calls go.
    """
    found = {SERVER_ADDRESS: endpoint.host, SERVER_PORT: endpoint.port}
    return {name: value for name, value in found.items() if value is not None}


def call_attributes(call: Call, redactor: Redactor | None) -> dict[str, Any]:
    """Return the standard attributes that a call's arguments hold.

    A user's id may be a name or an address, and namespaces of a store often have one, so neither is recorded.

    Args:
        call: The call of a SQL function.
        redactor: Removes secrets and personal data from recorded texts.
    """
    arguments = call.arguments
    found: dict[str, Any] = {
        STORE_ID: _first(arguments, _STORE_ARGUMENTS),
        RECORD_ID: _first(arguments, _RECORD_ARGUMENTS),
    }
    if captures_content():
        found[QUERY] = redact_value("\n".join(_queries(arguments)), redactor) or None
        written = list(_written_records(call))
        found[RECORDS] = _json(written) if written else None
    return {name: value for name, value in found.items() if value is not None}


def result_attributes(result: Any) -> dict[str, Any]:
    """Return the standard attributes that an operation's result holds.

    Args:
        result: The result of the flow.
    """
    found: dict[str, Any] = {}
    count = _count(result)
    if count is not None:
        found[RECORD_COUNT] = count
    if captures_content():
        records = [_record(each) for each in _records(result)]
        if records:
            found[RECORDS] = _json(records)
    return found


def _first(arguments: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((value for name in names if isinstance(value := arguments.get(name), str)), None)


def _queries(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the questions of a search as they are sent to the database."""
    asked = arguments.get("p_ask") or arguments.get("p_recall") or {}
    for each in (asked, *asked.get("more", ())):
        if each.get("query"):
            yield each["query"]
    yield from arguments.get("p_texts") or ()
    for each in arguments.get("p_ops") or ():
        if each.get("query"):
            yield each["query"]


def _written_records(call: Call) -> Iterator[dict[str, Any]]:
    """Yield what is stored, as it is sent to the database: after redaction."""
    arguments = call.arguments
    for row in arguments["p_messages"] if call.function == "memory_append" else ():
        yield {"id": row["id"], "content": row["text"]}
    for each in arguments.get("p_ops") or ():
        if each["op"] == "put":
            yield {"id": each["key"], "content": each["value"]}
    if isinstance(arguments.get("p_text"), str):
        yield {"content": arguments["p_text"]}
    item = arguments.get("p_item")
    if item is not None:
        yield {"content": item}


@singledispatch
def _count(result: Any) -> int | None:
    """Return how many records an operation was about; `None` if it does not say."""
    return None


@_count.register
def _(result: AppendResult) -> int:
    return result.appended + len(result.updated)


@_count.register
def _(result: SummaryResult) -> int:
    return len(result.segments)


@_count.register
def _(result: BoardResult) -> int:
    return result.added + result.changed


@_count.register
def _(result: Receipt) -> int:
    return result.messages


@_count.register
def _(result: Recall) -> int:
    return len(result.chunks)


@_count.register
def _(result: ContextPack) -> int:
    return len(result.fitted.recent) + len(result.recalled)


@_count.register
def _(result: tuple) -> int | None:  # type: ignore[type-arg]  # what was appended, and the context
    return _count(result[0]) if result else None


@_count.register(FoundPage)
@_count.register(list)
def _(result: Any) -> int:
    return len(list(_records(result)))


def _records(result: Any) -> Iterator[Any]:
    """Yield what a search found."""
    match result:
        case Recall():
            yield from result.chunks
        case ContextPack():
            yield from result.recalled
        case FoundPage():
            yield from result.messages
        case list():
            for each in result:
                yield from each if isinstance(each, list) else (each,)


def _record(result: Any) -> dict[str, Any]:
    """Return one record as the conventions' schema has it: `content`, and `id`, `score` and `metadata` if known."""
    match result:
        case Chunk():
            return _known(result.id, result.content, result.score, {"thread_id": result.thread_id, "role": result.role})
        case RecalledSummary():
            return _known(None, result.content, result.score, {"thread_id": result.thread_id, "number": result.number})
    message = getattr(result, "message", None)
    if message is not None:
        return _known(message.message_id, message.text, None, {"thread_id": result.thread_id, "role": message.role})
    return _known(getattr(result, "key", None), getattr(result, "value", None), getattr(result, "score", None), None)


def _known(name: str | None, content: Any, score: float | None, metadata: Any) -> dict[str, Any]:
    made = {"id": name, "score": score, "metadata": metadata}
    return {"content": content, **{key: value for key, value in made.items() if value is not None}}


def _json(records: list[dict[str, Any]]) -> str:
    return json.dumps(records, ensure_ascii=False, default=str)
