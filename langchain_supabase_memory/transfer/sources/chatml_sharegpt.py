"""Lists of messages in the ChatML and ShareGPT formats."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from langchain_supabase_memory.transfer import ids
from langchain_supabase_memory.transfer.sources.safe_iter import UnreadableTimeError
from langchain_supabase_memory.transfer.sources.thoughts import answer, reasoning_field
from langchain_supabase_memory.transfer.values import SourceMessage, SourceProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_supabase_memory.transfer.values import Event

_ROLES: Final = {
    "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant",
    "model": "assistant", "bard": "assistant", "bing": "assistant", "system": "system",
    "function_call": "call", "tool_call": "call",
    "observation": "result", "tool": "result", "function_response": "result", "tool_response": "result",
}  # fmt: skip
_TIMES: Final = ("created_at", "timestamp", "create_time")


def chatml(items: Sequence[Any], thread: str, place: str) -> Iterator[Event]:
    """Yield a ChatML conversation's messages: `role`, `content`, `name`, `tool_calls`, `tool_call_id`, `created_at`."""
    for number, each in enumerate(items):
        where = f"{place}, message {number + 1}"
        try:
            message = message_of(each)
            said_at = time_of(next((each[name] for name in _TIMES if each.get(name) is not None), None))
        except Exception:  # whatever a document contains; the error's text may include it
            yield SourceProblem("The message cannot be read.", "It needs a role and a content.", where)
            continue
        message.id = message.id or _derived(thread, number, each)
        yield SourceMessage(where, message, said_at)


def message_of(item: Mapping[str, Any]) -> BaseMessage:
    """Convert a message from ChatML.

    Raises:
        Exception: The item is not a ChatML message.
    """
    role = {"human": "user", "developer": "system"}.get(item["role"], item["role"])
    body = item.get("content")
    if not isinstance(body, str | list | None):
        raise TypeError
    names = ("id", "name", "tool_calls", "tool_call_id", "function_call")
    given = {name: item[name] for name in names if item.get(name) is not None}
    if role == "function":  # OpenAI's format before tools
        return ToolMessage(body or "", tool_call_id=given.get("tool_call_id") or str(given.get("name")))
    made = convert_to_messages([{"role": role, "content": "" if body is None else body, **given}])[0]
    if not isinstance(made, AIMessage) or not isinstance(made.content, str):
        return made
    return made.model_copy(update={"content": answer(made.content, reasoning_field(item)).content})


def sharegpt(items: Sequence[Any], thread: str, place: str) -> Iterator[Event]:
    """Yield the messages of a ShareGPT conversation: `from` and `value`."""
    call: str | None = None
    for number, each in enumerate(items):
        where = f"{place}, message {number + 1}"
        found = isinstance(each, dict) and isinstance(each.get("value"), str)
        role = _ROLES.get(str(each.get("from"))) if found else None
        if role is None:
            yield SourceProblem(
                "The message cannot be read.", 'It needs "from" (human, gpt, system) and "value".', where
            )
            continue
        name = _derived(thread, number, each)
        if role == "call":
            call = f"call_{name}"
        yield SourceMessage(where, _shared(role, each["value"], name, call))


def _derived(thread: str, number: int, item: Mapping[str, Any]) -> str:
    """Return an id derived from the position and the text, so that two conversations with the same id lose nothing."""
    return ids.message_id(thread, number, json.dumps(item, sort_keys=True))


def _shared(role: str, text: str, name: str, call: str | None) -> BaseMessage:
    if role == "user":
        return HumanMessage(text, id=name)
    if role == "system":
        return SystemMessage(text, id=name)
    if role == "result" and call is not None:
        return ToolMessage(text, tool_call_id=call, id=name)
    if role == "call" and call is not None:
        try:
            made = json.loads(text)
            function, arguments = made["name"], made.get("arguments") or made.get("parameters") or {}
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
            return AIMessage("", tool_calls=[{"name": str(function), "args": dict(arguments), "id": call}], id=name)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return AIMessage(text, id=name)
    return answer(text, id=name)


def time_of(value: Any) -> datetime | None:
    """Parse a time: ISO 8601 (UTC if it has no zone), or seconds since 1970.

    Raises:
        UnreadableTimeError: The value is not a time.
    """
    if value is None:
        return None
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        raise UnreadableTimeError from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
