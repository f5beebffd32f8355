"""A message as text for a terminal, and as JSON for programs.

The text contains no control sequences: invisible characters are shown as their codes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import FunctionMessage, ToolMessage

from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.invisible import legible, spell_out
from langchain_supabase_memory.language.messages.rendering import call_line, render, short_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from langchain_supabase_memory.values import FoundSignal, Role, StoredMessage

COLUMNS: Final = ("message_id", "role", "created_at", "author_id", "author_name", "payload")
"""The columns of a message that this module needs."""


@dataclass(frozen=True)
class MessageView:
    """A message for a terminal.

    Attributes:
        sequence: Its number in the conversation.
        role: The speaker's role.
        speaker: The speaker's name for display.
        said_at: The time of the message.
        text: The text, with line breaks.
        annotations: One line each for media, tool calls, or the reason why the message cannot be read.
    """

    sequence: int
    role: Role
    speaker: str
    said_at: datetime
    text: str = field(repr=False)
    annotations: list[str] = field(repr=False)


def message_view(stored: StoredMessage, *, tools: bool, signals: Sequence[FoundSignal] = ()) -> MessageView:
    """Create the view of a message.

    Args:
        stored: The message, with `COLUMNS`.
        tools: Whether to show the arguments of tool calls in addition to the tools' names.
        signals: What its words tell.
    """
    message, role = stored.payload, stored.role or "user"
    assert stored.created_at is not None
    if message is None or stored.unreadable:
        reason = f"[cannot be read: {stored.unreadable}]"
        return MessageView(stored.sequence, role, content.LABELS[role], stored.created_at, "", [spell_out(reason)])
    rendering, calls = render(message), content.tool_calls(message)
    annotations = [rendering.named] if rendering.named and (rendering.media or tools) else []
    if tools:
        annotations += [*map(call_line, calls), *rendering.calls.split("\n")]
    elif calls or rendering.calls:
        names = ", ".join(dict.fromkeys(short_name(call.get("name")) for call in calls)) or "a tool"
        annotations.append(f"[calls {names}]")
    annotations = [spell_out(each) for each in annotations if each]
    annotations += [f'[{each.signal.label}: "{spell_out(each.quote)}"]' for each in signals]
    text = legible(rendering.words).strip("\n")
    if not text.strip() and not annotations:
        annotations = [rendering.named or "[says nothing]"]
    # The role precedes each name, because a user can have an assistant's name.
    speaker = content.speaker(content.LABELS[role], stored.speaker)
    return MessageView(stored.sequence, role, speaker, stored.created_at, text, annotations)


def message_document(stored: StoredMessage) -> dict[str, Any]:
    """Create the JSON document of a message: its text, its tool calls, and the names of its media."""
    message = stored.payload
    rendering = None if message is None else render(message)
    calls = [] if message is None else content.tool_calls(message)
    return {
        "sequence": stored.sequence,
        "message_id": stored.message_id,
        "role": stored.role,
        "name": None if message is None else message.name,
        "author_id": stored.author_id,
        "said_at": None if stored.created_at is None else stored.created_at.isoformat(),
        "text": rendering.words if rendering and not stored.unreadable else None,
        "calls": [{"name": call.get("name"), "arguments": call.get("args")} for call in calls],
        "beside": rendering.named or None if rendering else None,
        "unreadable": stored.unreadable,
    }


def is_tool_result(stored: StoredMessage) -> bool:
    """Return whether a message is the result of a tool."""
    return isinstance(stored.message, (ToolMessage, FunctionMessage))
