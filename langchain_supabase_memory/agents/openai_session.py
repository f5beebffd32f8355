"""`SupabaseSession`: the memory as a session of the OpenAI Agents SDK.

A session stores items of the Responses API. Each item is one message: its text is searched, summarized and shown like
any other, and the item itself lies in the message, so that the SDK reads back what it wrote. What others stored in the
conversation, such as a LangChain agent, is given as items, too.

The SDK asks for a protocol, so nothing of it is imported.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.provider_storage import is_held, portable_items
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.unpicklable import Unpicklable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from uuid import UUID

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.values import StoredMessage

ITEM: Final = "openai_item"
"""The key of an item in the message that stores it."""

_WORDS: Final = ("input_text", "output_text", "text", "refusal")


class SupabaseSession(Unpicklable):
    """A conversation as a session of the OpenAI Agents SDK: `Runner.run(agent, "…", session=session)`.

    It makes no connection of its own, so one may be created for each run.

    Args:
        session_id: The conversation's thread: any string of 1 to 512 bytes, or a UUID.
        memory: Where it is stored.
        agent_id: The agent; the memory's by default.
        session_settings: The SDK's `SessionSettings`: its `limit` is the number of items that a run reads.

    Raises:
        InvalidInputError: An id is not a usable string, or nobody is named as the owner.

    Example:
        ```python
        session = SupabaseSession("studio", memory)
        result = await Runner.run(agent, "My kiln shows E-47", session=session)
        ```
    """

    def __init__(
        self,
        session_id: str | UUID,
        memory: SupabaseMemory,
        *,
        agent_id: str | None = None,
        session_settings: Any = None,
    ) -> None:
        require_memory(memory)
        self._conversation = memory.conversation(session_id, agent_id=agent_id)
        self.session_id = str(session_id)
        self.session_settings = session_settings

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items of the conversation, in order.

        Args:
            limit: The number of the newest items to return; that of the settings by default, and else all.

        Raises:
            SupabaseMemoryError: The database refused or could not be reached.
        """
        most = getattr(self.session_settings, "limit", None) if limit is None else limit
        if most is not None and most <= 0:
            return []
        # A message holds one item at least.
        messages = await self._conversation.aread(last=most, columns=("payload", "created_at"))
        items = _portable(messages)
        return items if most is None else items[-most:]

    async def add_items(self, items: list[Any]) -> None:
        """Append items; the same item twice is two messages.

        Args:
            items: Items of the Responses API.

        Raises:
            SupabaseMemoryError: The database refused or could not be reached.
        """
        if items:
            await self._conversation.aappend([_message(item) for item in items])

    async def pop_item(self) -> Any | None:
        """Remove the newest message, with what was derived from it, and return its last item.

        Raises:
            SupabaseMemoryError: The database refused or could not be reached.
        """
        found = await self._conversation.aread(last=1)
        message = found[0].message if found else None
        if message is None or message.id is None:
            return None
        await self._conversation.aforget_message(message.id)
        items = [*_items(found[0])]
        return items[-1] if items else None

    async def clear_session(self) -> None:
        """Delete the conversation, with what was derived from it.

        Raises:
            SupabaseMemoryError: The database refused or could not be reached.
        """
        await self._conversation.aforget()


def _portable(messages: Sequence[StoredMessage]) -> list[dict[str, Any]]:
    """Return the items of messages; old ones need nothing that OpenAI may have deleted."""
    made: list[dict[str, Any]] = []
    for is_new, group in groupby(messages, lambda each: is_held(each.created_at and each.created_at.timestamp())):
        items = [item for message in group for item in _items(message)]
        made += items if is_new else portable_items(items)
    return made


def _message(item: Mapping[str, Any]) -> BaseMessage:
    """Return the message that stores an item."""
    kept = {ITEM: dict(item)}
    match item.get("type", "message"):
        case "function_call":
            call = {"name": item["name"], "args": _arguments(item.get("arguments")), "id": item["call_id"]}
            return AIMessage("", tool_calls=[call], additional_kwargs=kept)
        case "function_call_output":
            held = item.get("output")
            text = held if isinstance(held, str) else _text(held)
            return ToolMessage(text, tool_call_id=item["call_id"], additional_kwargs=kept)
        case "message":
            text = _text(item.get("content"))
            if item.get("role") == "assistant":
                return AIMessage(text, additional_kwargs=kept)
            kind = HumanMessage if item.get("role") == "user" else SystemMessage
            return kind(text, additional_kwargs=kept)
    return AIMessage("", additional_kwargs=kept)  # thoughts, and calls of hosted tools


def _items(stored: StoredMessage) -> Iterator[dict[str, Any]]:
    """Yield the items of a message: the one that it stores, or those that say the same."""
    message = stored.message
    if message is None:
        return
    item = message.additional_kwargs.get(ITEM)
    if isinstance(item, dict):
        yield item
        return
    if isinstance(message, ToolMessage):
        yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": message.text}
        return
    roles = {"human": "user", "ai": "assistant"}
    if message.text or not isinstance(message, AIMessage):
        yield {"role": roles.get(message.type, message.type), "content": message.text}
    for call in content.tool_calls(message):
        yield {
            "type": "function_call",
            "name": call["name"],
            "call_id": call["id"],
            "arguments": json.dumps(call["args"], ensure_ascii=False),
        }


def _arguments(text: Any) -> dict[str, Any]:
    try:
        parsed = json.loads(text or "{}")
    except (TypeError, ValueError):
        return {"input": str(text)}
    return parsed if isinstance(parsed, dict) else {"input": parsed}


def _text(body: Any) -> str:
    """Return the text of an item's content."""
    if isinstance(body, str):
        return body
    parts: Sequence[Any] = body if isinstance(body, list) else []
    words = (part.get("text") or part.get("refusal") for part in parts if part.get("type") in _WORDS)
    return "\n\n".join(each for each in words if isinstance(each, str))
