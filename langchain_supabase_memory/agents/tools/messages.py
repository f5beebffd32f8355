"""Read the original messages of a range, page by page, such as those behind a cut passage or a summary."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from langchain_supabase_memory.agents.tools.binding import Answer, Binding, Bindings, ToolCall, tool
from langchain_supabase_memory.agents.tools.output_limit import (
    Passage,
    date_of,
    fit_passages,
    name,
    note,
    sequence_range,
    wrap,
)
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.language.chunks.units import is_recalled
from langchain_supabase_memory.language.messages import codec, content
from langchain_supabase_memory.operations.arguments import conversation_ids, retention_argument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo
    from typing import Unpack

    from langchain_core.tools import BaseTool

    from langchain_supabase_memory.agents.tools.output_limit import FittedPassages
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.values import ConversationKey, StoredMessage

PAGE: Final = 50
"""The maximum number of messages in one result."""

_LARGEST: Final = 2**31 - 1
_DESCRIPTION: Final = (
    "Read original messages of a conversation by their numbers: those that a summary or a passage stands for "
    '(messages="4-9"), or one that was cut ("it is message 4"). A long range comes in pages; each says how to go on.'
)


class _ReadArguments(BaseModel):
    first: int = Field(ge=0, le=_LARGEST, description="The number of the first message.")
    last: int = Field(ge=0, le=_LARGEST, description="The number of the last message; the same for one message.")
    skip: int = Field(
        default=0, ge=0, le=_LARGEST, description="How many characters of the first message were read already."
    )
    conversation_id: str | None = Field(
        default=None, max_length=512, description="Another conversation of the same user; by default this one."
    )


def read_messages_tool(memory: SupabaseMemory, **bound: Unpack[Bindings]) -> BaseTool:
    """Create a tool that reads the original messages of a range, page by page.

    Args:
        memory: The memory that stores the conversation.
        bound: `thread_id`, `agent_id`, `characters`, `time_zone` and `on_error`; see `tools.binding.Binding`.

    Returns:
        The tool `read_messages(first, last, skip=0, conversation_id=None)`, sync and async.
    """
    return tool("read_messages", _DESCRIPTION, _ReadArguments, Binding.of(memory, bound), read_originals)


def read_originals(
    call: ToolCall, first: int, last: int, skip: int = 0, conversation_id: str | None = None
) -> Flow[Answer]:
    """Return a page of original messages, and how to continue.

    Args:
        call: The call.
        first: The number of the first message.
        last: The number of the last message.
        skip: How many characters of the first message to skip because they were already read.
        conversation_id: Another conversation of the same owner and agent.
    """
    key = call.key(conversation_id)
    first, last = min(first, last), max(first, last)
    page, is_cut = yield from _page(call, key, {"p_from": first, "p_to": last, "p_limit": PAGE})
    if not page:
        newest, _ = yield from _page(call, key, {"p_last": 1, "p_limit": 1})
        last_one = f"The newest is {newest[-1].sequence}." if newest else "There are none in this conversation."
        return note(f"There is no message {sequence_range(first, last)}. {last_one}"), []
    shown = [
        _passage(stored, call.zone, skip if stored.sequence == first else 0, call.conversation_attributes(key))
        for stored in page
    ]
    fits = fit_passages(shown, call.binding.characters)
    seen = page[: max(fits.shown_count, 1)]
    ids = [each.message.id for each in seen]
    source = {"thread_id": key.thread_id, "from_sequence": seen[0].sequence, "to_sequence": seen[-1].sequence}
    sources = [{**source, "message_ids": ids}]
    more = _more(page, last, skip if page[0].sequence == first else 0, fits, is_cut)
    return wrap(fits.elements, more and more + (" and the same conversation_id." if conversation_id else ".")), sources


def _page(request: ToolCall, key: ConversationKey, bounds: dict[str, int]) -> Flow[tuple[list[StoredMessage], bool]]:
    """Return messages, and whether the database has more in the range."""
    retention = retention_argument(request.binding.memory._services.settings.retention)
    columns = ["role", "created_at", "payload", *(["author_id", "author_name"] if key.is_in_space else [])]
    arguments = {**conversation_ids(key), "p_columns": columns, "p_retention": retention}
    answer = yield from call("memory_read", {**arguments, **bounds})
    return [codec.from_row(row) for row in answer["messages"]], answer["more"]


def _passage(
    stored: StoredMessage, zone: tzinfo, skip: int, extra: Mapping[str, str | int] = MappingProxyType({})
) -> Passage:
    message = stored.message
    words = content.display_text(message)
    if is_recalled(message):
        # Recalled text would repeat earlier messages, recursively.
        words = f"[what the memory gave, {len(words):,} characters]"
    attributes: dict[str, str | int] = {
        "number": stored.sequence,
        "by": content.speaker(stored.role or "user", stored.speaker),
    }
    if stored.author_id is not None:
        attributes["author"] = name(stored.author_id)
    if stored.created_at is not None:
        attributes["at"] = date_of(stored.created_at, zone)
    attributes |= extra
    if skip:
        attributes["from_character"] = skip
    return Passage("message", words[skip:], attributes)


def _more(page: Sequence[StoredMessage], last: int, skip: int, fits: FittedPassages, is_cut: bool) -> str:
    """Say how to continue, if there is more."""
    if fits.full_count == len(page):
        return f"There is more: go on with first={page[-1].sequence + 1}, last={last}" if is_cut else ""
    following = page[fits.full_count].sequence
    skipped = fits.cut + (skip if fits.full_count == 0 else 0)
    start = f"first={following}, last={last}" + (f", skip={skipped}" if skipped else "")
    return f"There is more: go on with {start}"
