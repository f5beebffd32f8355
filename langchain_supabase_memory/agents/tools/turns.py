"""One turn of the conversation by its number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from langchain_supabase_memory.agents.tools.bound import Answer, Asked, Binding, Bindings, tool
from langchain_supabase_memory.agents.tools.bounded import Passage, dated, fenced, fitted, noted, range_of, shortened
from langchain_supabase_memory.language.messages.content import indented
from langchain_supabase_memory.operations import turns

if TYPE_CHECKING:
    from typing import Unpack

    from langchain_core.tools import BaseTool

    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory

_LARGEST: Final = 2**31 - 1
_FRAME: Final = 800
"""What fence, attributes and marks take of a result, amply."""
_DESCRIPTION: Final = "Read one earlier turn of this conversation: what the user asked and what was answered."


class _Arguments(BaseModel):
    n: int = Field(
        ge=-_LARGEST,
        le=_LARGEST,
        description="1 for the first turn, 2 for the second; -1 for the newest, -2 for the one before it.",
    )


def get_turn_tool(memory: SupabaseMemory, **bound: Unpack[Bindings]) -> BaseTool:
    """A tool with which an agent reads one turn of its conversation by its number.

    Args:
        memory: Where the conversation is.
        bound: `thread_id`, `user_id`, `agent_id`, `characters`, `time_zone` and `on_error`; see `tools.bound.Binding`.

    Returns:
        The tool `get_turn(n)`, sync and async. A failure becomes an answer of the tool, and no error of the graph.
    """
    return tool("get_turn", _DESCRIPTION, _Arguments, Binding.of(memory, bound), one_turn)


def one_turn(asked: Asked, n: int) -> Flow[Answer]:
    """One turn by its number, 1 for the first and -1 for the newest."""
    memory, key = asked.binding.memory, asked.key()
    turn = yield from turns.turn(key, n, retention=memory.settings.retention)
    if turn is None:
        return noted(f"There is no turn {n}."), []
    characters = asked.binding.characters
    half = (characters - _FRAME) // 2
    query, response = shortened(turn.user_query, half), shortened(turn.ai_response, half)
    where = range_of(turn.from_sequence, turn.to_sequence)
    attributes: dict[str, str | int] = {
        "number": turn.number,
        "messages": where,
        "at": dated(turn.created_at, asked.zone),
        **asked.named(key),
    }
    shown = Passage("turn", f"User: {indented(query)}\nAssistant: {indented(response)}", attributes)
    source = {"thread_id": key.thread_id, "from_sequence": turn.from_sequence, "to_sequence": turn.to_sequence}
    return fenced(fitted([shown], characters).elements), [source]
