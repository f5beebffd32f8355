"""What a pack says of everything before its recent messages: the summary, and that something is left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.messages import fence
from langchain_supabase_memory.language.messages.content import indented
from langchain_supabase_memory.values import Segment

if TYPE_CHECKING:
    from langchain_core.messages import HumanMessage

MESSAGE_ID: Final = "lc_supabase_memory"
"""The id of the message that carries the summary: always the same, so that it replaces itself in a graph's state."""

BORDER: Final = "=== CONVERSATION CONTEXT ==="
TITLE: Final = "Conversation so far"


@dataclass(frozen=True)
class SummaryPart:
    """The part of a pack that comes first, and changes least.

    Attributes:
        summary: The segment whose summary is shown; `None` without one.
        text: Its summary, cut to what the budget has for it.
        note: That older messages are left out; empty if none is.
    """

    summary: Segment | None = None
    text: str = ""
    note: str = ""

    @cached_property
    def message(self) -> HumanMessage | None:
        """The head as a message, the summary in it fenced; `None` if it says nothing."""
        noted = [fence.element("note", self.note)] if self.note else []
        if self.summary is None:
            # What we say ourselves needs no fence.
            return fence.message(noted[0], MESSAGE_ID) if noted else None
        summary = fence.element("summary", self.text, messages=f"0-{self.summary.to_sequence}")
        return fence.message(fence.fenced([summary, *noted]), MESSAGE_ID)

    def lines(self) -> list[str]:
        """The head in a text form."""
        made = [TITLE, ""]
        if self.summary is not None:
            made += [f"Summary of messages 0 to {self.summary.to_sequence}:", f"  {indented(self.text)}", ""]
        if self.note:
            made += [self.note, ""]
        return made

    def with_note(self) -> list[str]:
        """The head in the text form, with the borders and the title of the recent messages."""
        return [BORDER, *self.lines(), "Recent messages:", BORDER]


def note(shown_count: int | None) -> str:
    """That something is left out.

    Args:
        shown_count: The most messages that are shown, where the budget limits their number. How many are shown changes
            with every turn, which would cost the prompt's beginning its place in a provider's cache.
    """
    return f"older messages omitted; showing last {shown_count} messages" if shown_count else "older messages omitted"


def opening() -> HumanMessage:
    """What stands first where the assistant spoke first: Anthropic and Gemini want the user's side there."""
    return fence.message(fence.element("note", "The conversation begins with the assistant."), MESSAGE_ID)
