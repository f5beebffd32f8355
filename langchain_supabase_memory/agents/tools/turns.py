"""A tool that reads one turn of the conversation by its number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from langchain_supabase_memory.agents.tools.binding import Answer, Binding, Bindings, ToolCall, tool
from langchain_supabase_memory.agents.tools.output_limit import (
    Passage,
    date_of,
    fit_passages,
    note,
    sequence_range,
    shorten,
    wrap,
)
from langchain_supabase_memory.language.messages.content import indented
from langchain_supabase_memory.operations import turns

if TYPE_CHECKING:
    from typing import Unpack

    from langchain_core.tools import BaseTool

    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory

_LARGEST: Final = 2**31 - 1
_FRAME: Final = 800
"""A generous estimate of the characters that the fence, attributes and markers take."""
_DESCRIPTION: Final = "Read one earlier turn of this conversation: what the user asked and what was answered."


class _TurnArguments(BaseModel):
    n: int = Field(
        ge=-_LARGEST,
        le=_LARGEST,
        description="1 for the first turn, 2 for the second; -1 for the newest, -2 for the one before it.",
    )


def get_turn_tool(memory: SupabaseMemory, **bound: Unpack[Bindings]) -> BaseTool:
    """Create a tool that reads one turn of the conversation by its number.

    Args:
        memory: The memory that stores the conversation.
        bound: `thread_id`, `agent_id`, `characters`, `time_zone` and `on_error`; see `tools.binding.Binding`.

    Returns:
        The tool `get_turn(n)`, sync and async. A failure becomes the tool's answer instead of a graph error.
    """
    return tool("get_turn", _DESCRIPTION, _TurnArguments, Binding.of(memory, bound), read_turn)


def read_turn(call: ToolCall, n: int) -> Flow[Answer]:
    """Return one turn by its number, 1 for the first and -1 for the newest."""
    memory, key = call.binding.memory, call.key()
    turn = yield from turns.read_turn(key, n, retention=memory._services.settings.retention)
    if turn is None:
        return note(f"There is no turn {n}."), []
    characters = call.binding.characters
    half = (characters - _FRAME) // 2
    query, response = shorten(turn.user_query, half), shorten(turn.ai_response, half)
    where = sequence_range(turn.from_sequence, turn.to_sequence)
    attributes: dict[str, str | int] = {
        "number": turn.number,
        "messages": where,
        "at": date_of(turn.created_at, call.zone),
        **call.conversation_attributes(key),
    }
    shown = Passage("turn", f"User: {indented(query)}\nAssistant: {indented(response)}", attributes)
    source = {"thread_id": key.thread_id, "from_sequence": turn.from_sequence, "to_sequence": turn.to_sequence}
    return wrap(fit_passages([shown], characters).elements), [source]
