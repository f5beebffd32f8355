"""Tools for agents. Whose conversation it is comes from how the tool was made or from the run, never from arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.identity import Bound, running
from langchain_supabase_memory.messages import fence

if TYPE_CHECKING:
    from langchain_supabase_memory.memory import SupabaseMemory
    from langchain_supabase_memory.models import ConversationKey, Turn


def get_turn_tool(
    memory: SupabaseMemory, *, thread_id: str | None = None, user_id: str | None = None, agent_id: str | None = None
) -> BaseTool:
    """A tool with which an agent reads one turn of its conversation by its number.

    Args:
        memory: Where the conversation is.
        thread_id: The thread; by default the run's.
        user_id: The owner; by default the run's (see `identity.Bound`).
        agent_id: The agent; by default the run's.

    Returns:
        The tool `get_turn(number)`, sync and async. A failure becomes an answer of the tool, and no error of the graph.
    """
    bound = Bound(user_id, agent_id)

    def key() -> ConversationKey:
        if thread_id is not None:
            return memory.key(thread_id, user_id, agent_id)
        return bound.key(memory, *running())

    def shown(found: Turn | None, number: int) -> str:
        if found is None:
            return f"There is no turn {number}."
        text = f"User: {found.user_query}\nAssistant: {found.ai_response}"
        said = fence.element("turn", text, number=found.number, at=f"{found.created_at:%Y-%m-%d %H:%M}")
        return fence.fenced([said])

    def get_turn(number: int) -> str:
        """Read one earlier turn of this conversation: what the user asked and what was answered.

        Args:
            number: 1 for the first turn, 2 for the second; -1 for the newest, -2 for the one before it.
        """
        try:
            where = key()
            found = memory.turn(number, thread_id=where.thread_id, user_id=where.user_id, agent_id=where.agent_id)
        except SupabaseMemoryError as error:
            raise ToolException(str(error)) from None
        return shown(found, number)

    async def aget_turn(number: int) -> str:
        try:
            where = key()
            found = await memory.aturn(
                number, thread_id=where.thread_id, user_id=where.user_id, agent_id=where.agent_id
            )
        except SupabaseMemoryError as error:
            raise ToolException(str(error)) from None
        return shown(found, number)

    return StructuredTool.from_function(
        get_turn, aget_turn, name="get_turn", parse_docstring=True, handle_tool_error=True
    )
