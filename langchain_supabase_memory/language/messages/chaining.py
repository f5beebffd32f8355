"""Responses API chaining: decide whether a provider may continue from a response that it holds.

`ChatOpenAI(use_previous_response_id=True)` looks for the newest AI message whose `response_metadata["id"]` begins with
`resp_`, and only sends the messages after it. That is correct as long as the provider's chain began with the same
context: the same thread, project and model, the same summary, the same first message. So each response is stamped with
these, its id is stored with its message, and a request omits the ids as soon as the stamp differs, or once the provider
may have deleted the response: OpenAI holds it for 30 days, and a conversation may rest for longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage

from langchain_supabase_memory.language.messages.provider_storage import is_held

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STAMP: Final = "supabase_memory"
"""The key of `response_metadata` that holds a response's stamp; it is not sent to providers."""

_RESPONSE: Final = "resp_"


def response_id(message: BaseMessage) -> str | None:
    """Return the response id of an AI message, if a provider may hold it."""
    found = message.response_metadata.get("id") if isinstance(message, AIMessage) else None
    return found if isinstance(found, str) and found.startswith(_RESPONSE) else None


def cut(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages without response ids, so that all of them are sent; changed messages are copies."""
    return [message if response_id(message) is None else _without_id(message) for message in messages]


def prepare(messages: Sequence[BaseMessage], stamp: Mapping[str, Any]) -> tuple[list[BaseMessage], str | None]:
    """Return the messages of a request: with response ids if the newest response belongs to this context, else without.

    Args:
        messages: The messages to send.
        stamp: The context's stamp; see `SupabaseMemoryMiddleware`.

    Returns:
        The messages, and the id of the response that the provider continues from; `None` if everything is sent.
    """
    newest = next((message for message in reversed(messages) if response_id(message) is not None), None)
    if (
        newest is not None
        and newest.response_metadata.get(STAMP) == dict(stamp)
        and is_held(newest.response_metadata.get("created_at"))
    ):
        return list(messages), response_id(newest)
    return cut(messages), None


def stamp(message: BaseMessage, stamp: Mapping[str, Any]) -> BaseMessage:
    """Return a response with its stamp if it has an id, else the message itself."""
    if response_id(message) is None:
        return message
    return message.model_copy(update={"response_metadata": {**message.response_metadata, STAMP: dict(stamp)}})


def _without_id(message: BaseMessage) -> BaseMessage:
    kept = {key: value for key, value in message.response_metadata.items() if key not in ("id", STAMP)}
    return message.model_copy(update={"response_metadata": kept})
