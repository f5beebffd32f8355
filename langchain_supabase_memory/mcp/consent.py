"""The question to a person before something is forgotten, remembered or shared, in their own words.

The client shows it to the person, who owns the content; no log contains any of it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.agents.tools.output_limit import date_of
from langchain_supabase_memory.agents.tools.profile import describe_item
from langchain_supabase_memory.errors import ConfigurationError, NotFoundError
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.mcp.request_memory import current_request
from langchain_supabase_memory.mcp.run_tools import tool_call

if TYPE_CHECKING:
    from datetime import datetime

    from mcp.server.mcpserver import Context

    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.operations.profile import ProfileItem

_WORDS: Final = 100
"""The maximum number of characters shown of a title, and of a message."""

_LOOKED_AT: Final = 2_000
"""The number of newest messages that are searched for the message to forget, to show how it begins."""


def has_dialog(context: Context[object, object]) -> bool:
    """Return whether the client can ask the person."""
    capabilities = context.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


def require_dialog(context: Context[object, object], outcome: str, hint: str) -> None:
    """Check that the client can ask the person.

    Args:
        context: The request.
        outcome: What does not happen if it cannot.
        hint: What the person can do instead.

    Raises:
        ConfigurationError: The client cannot ask.
    """
    if not has_dialog(context):
        raise ConfigurationError(f"This client cannot ask the person, so {outcome}.", hint=hint)


async def consent_question(conversation: Conversation, message_id: str | None, counts: str) -> str:
    """Return the question, with one line for each fact.

    Args:
        conversation: The conversation to forget, or the message's conversation.
        message_id: The message, if only one is to be forgotten.
        counts: How much would be removed.
    """
    lines = [f"Permanently forget {counts}?"]
    if message_id is not None:
        lines.append(await _of_message(conversation, message_id))
    info = None
    with suppress(NotFoundError):
        info = await conversation.ainfo()
    if info is not None and info.title:
        lines.append(f"Conversation: {_begun(info.title)}")
    lines.append(f"Id: {spell_out(conversation._key.thread_id)}")
    if info is not None:
        lines.append(f"Begun: {_day(info.created_at)}; last changed: {_day(info.updated_at)}")
    return "\n".join(lines)


def item_question(item: ProfileItem) -> str:
    """Return the question before an item of the profile is forgotten, with one line for each fact."""
    since = item.held_at or item.first_seen_at
    return "\n".join(
        [
            f"Permanently forget this about you?\n{item.kind}: {_begun(describe_item(item))}",
            f"Since: {_day(since)}",
            "No conversation brings it back.",
        ]
    )


async def _of_message(conversation: Conversation, message_id: str) -> str:
    named = await conversation.aread(last=_LOOKED_AT, columns=("message_id",))
    place = next((each.sequence for each in reversed(named) if each.message_id == message_id), None)
    if place is None:
        return f"Message: {spell_out(message_id)}"
    columns: Final = ("role", "text", "created_at")
    for found in await conversation.aread(from_sequence=place, to_sequence=place, columns=columns):
        said = "" if found.created_at is None else f" on {_day(found.created_at)}"
        return f"Message {place} by {found.role}{said}: {_begun(found.text or '(no text)')}"
    return f"Message {place}, which was just deleted."


def _begun(text: str) -> str:
    """Return the beginning of a text on one line, with all characters visible."""
    words = spell_out(" ".join(text.split()))
    return words if len(words) <= _WORDS else f"{words[:_WORDS]} …"


def _day(time: datetime) -> str:
    return date_of(time, tool_call(current_request()).zone)
