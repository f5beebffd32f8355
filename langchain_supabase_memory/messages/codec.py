"""A LangChain message to its row, and a row to its message.

The payload is `{"type": …, "data": …}`, which is what LangChain's `message_to_dict` gives, made safe by the sanitiser.
Beside it go what is searched, counted and shown: role, plain text, characters, tokens, images.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.messages import (
    BaseMessage,
    BaseMessageChunk,
    ChatMessage,
    RemoveMessage,
    message_chunk_to_message,
    messages_from_dict,
)

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.messages import content, sanitiser
from langchain_supabase_memory.messages.redaction.payload import redacted
from langchain_supabase_memory.models import StoredMessage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.messages.redaction.redactor import Redactor

_logger = logging.getLogger(__name__)


def checked(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """The messages as a list, or an error before anything is done with them.

    Raises:
        InvalidInputError: `messages` is one message, a text, or holds something that is no message.
    """
    if isinstance(messages, (str, bytes, dict, BaseMessage)) or not isinstance(messages, Iterable):
        raise InvalidInputError(
            f"messages must be a list of LangChain messages, not {type(messages).__name__}.",
            hint="Wrap it: [HumanMessage(...)].",
        )
    listed = list(messages)
    for position, message in enumerate(listed):
        if isinstance(message, RemoveMessage) or not isinstance(message, BaseMessage):
            raise InvalidInputError(
                f"The item at position {position} is a {type(message).__name__}, which is no message to store.",
                hint="Use langchain_core.messages.convert_to_messages for texts, tuples and dictionaries.",
            )
    return listed


def ensure_ids(messages: Sequence[BaseMessage]) -> None:
    """Give every message without an id one, on the caller's own object, so that a retry is a retry.

    The prefix `lc_` marks an id as made by LangChain: it is not sent to model providers.
    """
    for message in messages:
        if not message.id:
            message.id = f"lc_{uuid4()}"


def to_row(message: BaseMessage, redactor: Redactor | None = None) -> dict[str, Any]:
    """A message as the row that `memory_append` takes.

    Args:
        message: A message with an id. A streamed chunk is stored as the message it amounts to.
        redactor: What takes secrets and personal data out first; the message itself stays as it is.

    Returns:
        `id`, `role`, `text`, `characters`, `tokens`, `images` and `payload`, all JSON.

    Raises:
        ConfigurationError: A rule of the redactor failed.
    """
    whole = message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message
    fields = {**whole.__dict__, **(whole.__pydantic_extra__ or {})}
    data = {key: sanitiser.encode(value) for key, value in fields.items()}
    role = content.role(whole)
    if redactor is not None:
        stored = redacted(data, redactor)
        if stored != data:
            data, whole = stored, from_payload({"type": whole.type, "data": stored})
    text = sanitiser.clean(content.words(whole))
    images = [_image(block) for block in content.media(whole.content)]
    return {
        "id": sanitiser.clean(str(whole.id)),
        "role": role,
        "text": text,
        "characters": content.characters(whole),
        "tokens": content.tokens(whole),
        "images": images or None,
        "payload": {"type": data["type"], "data": data},
    }


def numbered(rows: Iterable[Mapping[str, Any]]) -> list[tuple[int, BaseMessage]]:
    """Rows with a sequence and a payload as messages, each with its number."""
    return [(row["sequence"], from_payload(row["payload"])) for row in rows]


def from_payload(payload: Mapping[str, Any]) -> BaseMessage:
    """The message that a payload was made from.

    A type that this release of LangChain does not know becomes a `ChatMessage` of that role, and a warning: one
    strange row does not cost the conversation.

    Args:
        payload: What `to_row` made, or another writer of LangChain's own form.

    Returns:
        A fresh message.
    """
    data = sanitiser.decode(dict(payload["data"]))
    try:
        return messages_from_dict([{"type": payload["type"], "data": data}])[0]
    except (ValueError, TypeError) as error:
        fields = {"memory_message_id": data.get("id"), "memory_error": type(error).__name__}
        _logger.warning(
            "A stored message of type %r could not be restored: %s", payload["type"], type(error).__name__, extra=fields
        )
        body = data.get("content")
        return ChatMessage(
            role=str(payload["type"]),
            content=body if isinstance(body, (str, list)) else "",
            id=data.get("id"),
            additional_kwargs={"supabase_memory_unreadable": True},
        )


def from_payloads(payloads: Sequence[Mapping[str, Any]]) -> list[BaseMessage]:
    """The messages of many payloads; as `from_payload`, but faster."""
    decoded = [{"type": payload["type"], "data": sanitiser.decode(payload["data"])} for payload in payloads]
    try:
        return messages_from_dict(decoded)
    except (ValueError, TypeError):
        return [from_payload(payload) for payload in payloads]


def from_row(row: Mapping[str, Any]) -> StoredMessage:
    """A row of `memory_read` as a value; columns that were not asked for stay `None`."""
    return StoredMessage(
        sequence=row["sequence"],
        message=from_payload(row["payload"]) if row.get("payload") is not None else None,
        message_id=row.get("message_id"),
        role=row.get("role"),
        text=row.get("text"),
        characters=row.get("characters"),
        tokens=row.get("tokens"),
        created_at=_time(row.get("created_at")),
        updated_at=_time(row.get("updated_at")),
        metadata=row.get("metadata"),
        images=row.get("images"),
    )


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value).astimezone(UTC)


def _image(block: Mapping[str, Any]) -> dict[str, Any]:
    address = block.get("image_url") or block.get("url") or block.get("file_url") or block.get("file_id")
    if isinstance(address, dict):
        address = address.get("url")
    nested = block.get("source")
    source = nested if isinstance(nested, dict) else block
    inline = source.get("data") or source.get("base64") or block.get("file_data")
    described: dict[str, Any] = {
        "kind": "image" if block.get("type") in content.IMAGE_BLOCKS else str(block.get("type"))
    }
    mime_type = source.get("media_type") or source.get("mime_type") or block.get("mime_type")
    if isinstance(address, str) and address.startswith("data:"):
        mime_type = mime_type or address[5:].split(";", 1)[0]
        address, inline = None, address
    address = address or source.get("url")
    if isinstance(address, str):
        described["url"] = sanitiser.clean(address)
    elif isinstance(inline, (str, bytes)):
        described["inline_characters"] = len(inline)
    if isinstance(mime_type, str):
        described["mime_type"] = sanitiser.clean(mime_type)
    return described
