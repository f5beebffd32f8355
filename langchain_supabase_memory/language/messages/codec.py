"""Convert a LangChain message to its row, and a row to its message.

The payload is `{"type": …, "data": …}`, the result of LangChain's `message_to_dict`, made safe by the sanitizer. Other
columns hold what is searched, counted and displayed: role, plain text, characters, tokens, images.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID, uuid4, uuid5

from langchain_core.messages import (
    BaseMessage,
    BaseMessageChunk,
    ChatMessage,
    RemoveMessage,
    convert_to_messages,
    message_chunk_to_message,
    messages_from_dict,
)

from langchain_supabase_memory.checks import type_name, wrong_type
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import attribution, content, rendering, sanitizer, truncation
from langchain_supabase_memory.language.messages.redaction.payload import redact_payload
from langchain_supabase_memory.values import LONGEST_ID, UNUSABLE, StoredMessage

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from langchain_core.messages import MessageLikeRepresentation
    from langchain_core.prompt_values import PromptValue

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.values import Role

    MessagesLike: TypeAlias = MessageLikeRepresentation | Iterable[MessageLikeRepresentation] | PromptValue
    """Input that LangChain accepts as messages."""

_IDS: Final = UUID("0f4f9a0b-7b1c-4f52-8f0e-5b8f0b6f2d11")
_UNREADABLE: Final = "supabase_memory_unreadable"


def as_messages(messages: object, name: str = "messages") -> list[BaseMessage]:
    """Convert anything that LangChain accepts as messages to a list of messages.

    Args:
        messages: One or several messages, texts, pairs of a role and a text, or dictionaries with a role and content;
            or a prompt value. A text becomes a user message.
        name: The argument's name, for the error message.

    Raises:
        InvalidInputError: An item is not a message.
    """
    if callable(to_messages := getattr(messages, "to_messages", None)):
        messages = to_messages()
    if isinstance(messages, (str, bytes, Mapping, BaseMessage)) or _is_pair(messages):
        messages = [messages]
    if not isinstance(messages, Iterable):
        hint = 'Pass messages: [HumanMessage("..."), AIMessage("...")].'
        raise wrong_type(name, "LangChain messages", messages, hint, InvalidInputError)
    return [_as_message(name, position, each) for position, each in enumerate(messages)]


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(each, str) for each in value)


def _as_message(name: str, position: int, value: object) -> BaseMessage:
    message = value
    if isinstance(value, (str, Mapping)) or _is_pair(value):
        with suppress(ValueError, TypeError, NotImplementedError, KeyError):  # its message may quote content
            (message,) = convert_to_messages([value])  # type: ignore[list-item]
    if isinstance(message, RemoveMessage) or not isinstance(message, BaseMessage):
        raise InvalidInputError(
            f"The item at position {position} of {name} is {type_name(value)}, which cannot be stored as a message.",
            hint='Pass messages, texts, ("user", "...") or {"role": "user", "content": "..."}.',
        )
    return attribution.own_words(message) if message.additional_kwargs else message


def ensure_ids(messages: Sequence[BaseMessage], idempotency_key: str | None = None) -> None:
    """Give every message without an id one, on the caller's own object, so that a retry is idempotent.

    The prefix `lc_` marks an id as created by LangChain: it is not sent to model providers.

    Args:
        messages: The messages of one call.
        idempotency_key: Identifies the call, so that the same call in another process gives the same ids, one for each
            position.
    """
    for place, message in enumerate(messages):
        if not message.id:
            made = uuid4() if idempotency_key is None else uuid5(_IDS, f"{place} {idempotency_key}")
            message.id = f"lc_{made}"


def write_ids_back(source: object, messages: Sequence[BaseMessage]) -> None:
    """Write the ids of messages into what they were made from, so that each is one message wherever it is passed.

    Args:
        source: What the messages were made from, as `as_messages` takes it. Only a list is changed: its dictionaries
            get an id, and what can hold none (a text, a pair) becomes its message.
        messages: The messages, with ids, in the same order.
    """
    if not isinstance(source, list):
        return
    for place, (each, message) in enumerate(zip(source, messages, strict=True)):
        if isinstance(each, dict):
            fields = each["data"] if isinstance(each.get("data"), dict) else each
            fields["id"] = message.id
        elif isinstance(each, (str, tuple)):
            source[place] = message


def separate_ids(messages: Sequence[BaseMessage]) -> None:
    """Give a message a new id if one before an earlier question has the same id, on the caller's own object.

    Some providers repeat their ids.

    Args:
        messages: The messages of one call, or of one state, in order.
    """
    places: dict[str, int] = {}
    asked, question = -1, ""
    for place, message in enumerate(messages):
        if not message.id:
            continue
        before = places.get(message.id)
        if before is not None and before < asked and _differ(messages[before], message):
            rename([message], [row_id(message.id)], question)
        places[message.id] = place
        if message.type == "human":
            asked, question = place, message.id


def _differ(one: BaseMessage, other: BaseMessage) -> bool:
    return one is not other and (one.type, one.content) != (other.type, other.content)


def distinct(messages: Sequence[BaseMessage], known_ids: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Make the ids of answers unique: some providers give every answer the same id.

    Args:
        messages: The model's answers.
        known_ids: The messages that they answer.

    Returns:
        The messages; each one with a duplicate id is a copy with a new id.
    """
    ids = {message.id for message in known_ids}
    return [
        message.model_copy(update={"id": f"lc_{uuid4()}"}) if message.id is not None and message.id in ids else message
        for message in messages
    ]


def rename(messages: Sequence[BaseMessage], ids: Collection[str], turn: str) -> dict[str, str]:
    """Replace ids that other messages have, on the caller's own objects, with ids derived from id and content.

    Args:
        messages: The messages of one call.
        ids: The stored ids that belong to other messages.
        turn: Distinguishes the turn, so that the same answer in two turns is two messages.

    Returns:
        The new ids by the old ones.
    """
    made: dict[str, str] = {}
    for message in messages:
        before = row_id(message.id)
        if before in ids:
            message.id = derived_id(f"{before} {turn} {message.type} {message.content}")
            made[before] = message.id
    return made


def row_id(message_id: object) -> str:
    """Return the id that a message is stored under: its own, or one derived from it if it is not valid."""
    cleaned = sanitizer.clean(str(message_id))
    is_usable = 0 < len(cleaned.encode()) <= LONGEST_ID and not UNUSABLE.search(cleaned)  # as `values.is_id`
    return cleaned if is_usable else derived_id(cleaned)


def derived_id(words: str) -> str:
    """Return an id that the same words always give, be there half a surrogate pair among them."""
    return f"lc_{uuid5(_IDS, sanitizer.clean(words))}"


def to_row(message: BaseMessage, redactor: Redactor | None = None) -> dict[str, Any]:
    """Convert a message to the row that `memory_append` takes.

    Args:
        message: A message with an id. A streamed chunk is stored as a complete message.
        redactor: Removes secrets and personal data first; the message itself is not changed.

    Returns:
        `id`, `role`, `text`, `characters`, `tokens`, `images` and `payload`, all JSON.

    Raises:
        ConfigurationError: A rule of the redactor failed.
    """
    whole = message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message
    fields = {**whole.__dict__, **(whole.__pydantic_extra__ or {})}
    data = {key: sanitizer.encode(value) for key, value in fields.items()}
    role = content.role(whole)
    if redactor is not None:
        stored = redact_payload(data, redactor)
        if stored != data:
            data, whole = stored, from_payload({"type": whole.type, "data": stored})
    return _row(whole, role, data)


def fit_row(row: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """Reduce a row to `max_bytes`: parts that exceed the limit are removed, and a note names them in place.

    A row whose payload cannot be read is not changed.
    """
    payload = row.get("payload")
    data = payload.get("data") if isinstance(payload, dict) else None
    if not (isinstance(data, dict) and "type" in data):
        return row
    for left in range(_TRIES, 0, -1):
        held = truncation.size(row)
        if held <= max_bytes:
            break
        # A text is stored twice, in the payload and in its column; the last round takes all excess from the payload.
        now = truncation.size(data)
        room = (now * max_bytes // held if left > 1 else now - (held - max_bytes)) - _BESIDE
        data = truncation.truncate(data, max(room, 0))
        row = {**row, **_row(from_payload({"type": row["payload"]["type"], "data": data}), row["role"], data)}
    return row


_TRIES: Final = 4
_BESIDE: Final = 512
"""The approximate size of a row's keys, in bytes."""


def _row(message: BaseMessage, role: Role, data: dict[str, Any]) -> dict[str, Any]:
    read = content.model_input(message)
    text = sanitizer.clean(read.words)
    images = [_image(block) for block in content.media(message.content)]
    return {
        "id": row_id(data.get("id")),
        "role": role,
        "text": text,
        "characters": max(read.characters, len(text)),
        "tokens": read.tokens(),
        "images": images or None,
        "payload": {"type": data["type"], "data": data},
    }


def from_payload(payload: Any) -> BaseMessage:
    """Convert a payload to its message. Never raises: one bad row does not lose the conversation.

    Args:
        payload: The output of `to_row`, LangChain's own form by another writer, or anything.

    Returns:
        A new message. If the payload has another shape or a type unknown to this release of LangChain, a `ChatMessage`
        with the available text, for which `unreadable_message` gives the reason.
    """
    data: Any = None
    try:
        data = sanitizer.decode(dict(payload["data"]))
        return messages_from_dict([{"type": payload["type"], "data": data}])[0]
    except Exception as error:  # a payload may hold anything
        found = data if isinstance(data, dict) else {}
        kind = payload.get("type") if isinstance(payload, dict) else None
        body = found.get("content")
        return ChatMessage(
            role=kind if isinstance(kind, str) else "unknown",
            content=body if isinstance(body, str) and body else content.HIDDEN,
            id=found["id"] if isinstance(found.get("id"), str) else None,
            additional_kwargs={_UNREADABLE: type(error).__name__},
        )


def unreadable_message(message: BaseMessage) -> str | None:
    """Return why a payload could not be decoded, as one word; `None` if it could."""
    reason = message.additional_kwargs.get(_UNREADABLE) if isinstance(message, ChatMessage) else None
    return None if reason is None else str(reason)


def undecodable_rows(rows: Iterable[Mapping[str, Any]], messages: Iterable[BaseMessage]) -> list[dict[str, Any]]:
    """Return the undecodable rows that are not recorded as such yet, in the form that `memory_set_aside` takes."""
    found = ((row, unreadable_message(message)) for row, message in zip(rows, messages, strict=True))
    return [
        {"sequence": row["sequence"], "reason": why}
        for row, why in found
        if why is not None and row.get("unreadable") is None
    ]


def from_payloads(payloads: Sequence[Mapping[str, Any]]) -> list[BaseMessage]:
    """Convert many payloads; like `from_payload`, but faster."""
    try:
        return messages_from_dict(
            [{"type": payload["type"], "data": sanitizer.decode(payload["data"])} for payload in payloads]
        )
    except Exception:  # one of them is malformed
        return [from_payload(payload) for payload in payloads]


def from_row(row: Mapping[str, Any]) -> StoredMessage:
    """Convert a row of `memory_read` to a value; columns that were not requested stay `None`."""
    return StoredMessage(
        sequence=row["sequence"],
        payload=from_payload(row["payload"]) if "payload" in row else None,
        message_id=row.get("message_id"),
        role=row.get("role"),
        text=row.get("text"),
        characters=row.get("characters"),
        tokens=row.get("tokens"),
        created_at=_time(row.get("created_at")),
        updated_at=_time(row.get("updated_at")),
        metadata=row.get("metadata"),
        images=row.get("images"),
        unreadable=row.get("unreadable"),
        author_id=row.get("author_id"),
        author_name=row.get("author_name"),
        parent=row.get("parent"),
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
        "kind": "image" if block.get("type") in rendering.IMAGE_BLOCKS else str(block.get("type"))
    }
    mime_type = source.get("media_type") or source.get("mime_type") or block.get("mime_type")
    if isinstance(address, str) and address.startswith("data:"):
        mime_type = mime_type or address[5:].split(";", 1)[0]
        address, inline = None, address
    address = address or source.get("url")
    if isinstance(address, str):
        described["url"] = sanitizer.clean(address)
    elif isinstance(inline, (str, bytes)):
        described["inline_characters"] = len(inline)
    if isinstance(mime_type, str):
        described["mime_type"] = sanitizer.clean(mime_type)
    return described
