"""A message as a person reads it on a terminal, and as a program reads it: who speaks, when, the words, what is beside.

Nothing in it is obeyed by a terminal, whatever was said: what is not seen is written as its code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import FunctionMessage, ToolMessage

from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.invisible import legible, spell_out
from langchain_supabase_memory.language.messages.rendering import call_line, render, short_name

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_supabase_memory.values import Role, StoredMessage

COLUMNS: Final = ("message_id", "role", "created_at", "payload")
"""What is read of a message for this."""


@dataclass(frozen=True)
class Spoken:
    """A message for a terminal.

    Attributes:
        sequence: Its number in the conversation.
        role: Who speaks, in a word.
        speaker: Who speaks, as it is shown.
        said_at: When.
        text: What was said, in lines.
        beside: What is beside it, a line each: media, calls of tools, why it cannot be read.
    """

    sequence: int
    role: Role
    speaker: str
    said_at: datetime
    text: str = field(repr=False)
    beside: list[str] = field(repr=False)


def spoken(stored: StoredMessage, *, tools: bool) -> Spoken:
    """A message for a terminal.

    Args:
        stored: The message, with `COLUMNS`.
        tools: Whether the arguments of its calls are shown, not the tools' names alone.
    """
    message, role = stored.message, stored.role or "user"
    assert stored.created_at is not None
    if message is None or stored.unreadable:
        why = f"[cannot be read: {stored.unreadable}]"
        return Spoken(stored.sequence, role, content.LABELS[role], stored.created_at, "", [spell_out(why)])
    whole, calls = render(message), content.tool_calls(message)
    beside = [whole.named] if whole.named and (whole.media or tools) else []
    if tools:
        beside += [*map(call_line, calls), *whole.calls.split("\n")]
    elif calls or whole.calls:
        names = ", ".join(dict.fromkeys(short_name(call.get("name")) for call in calls)) or "a tool"
        beside.append(f"[calls {names}]")
    beside = [spell_out(each) for each in beside if each]
    text = legible(whole.words).strip("\n")
    if not text.strip() and not beside:
        beside = [whole.named or "[says nothing]"]
    return Spoken(stored.sequence, role, _speaker(stored, role), stored.created_at, text, beside)


def document(stored: StoredMessage) -> dict[str, Any]:
    """A message for a program: its words, its calls with their arguments, and the names of what is no words."""
    message = stored.message
    whole = None if message is None else render(message)
    calls = [] if message is None else content.tool_calls(message)
    return {
        "sequence": stored.sequence,
        "message_id": stored.message_id,
        "role": stored.role,
        "name": None if message is None else message.name,
        "said_at": None if stored.created_at is None else stored.created_at.isoformat(),
        "text": whole.words if whole and not stored.unreadable else None,
        "calls": [{"name": call.get("name"), "arguments": call.get("args")} for call in calls],
        "beside": whole.named or None if whole else None,
        "unreadable": stored.unreadable,
    }


def is_tools(stored: StoredMessage) -> bool:
    """Whether it is a tool's result."""
    return isinstance(stored.message, (ToolMessage, FunctionMessage))


def _speaker(stored: StoredMessage, role: Role) -> str:
    """Who speaks, on one line. A name never stands alone, for a user can be called like an assistant."""
    return content.speaker(content.LABELS[role], None if stored.message is None else stored.message.name)
