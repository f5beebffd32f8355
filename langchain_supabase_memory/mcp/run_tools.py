"""How a tool asks the memory of whoever sent the request: the agents' tools, without a graph around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.agents.tools.binding import Binding, ToolCall
from langchain_supabase_memory.errors import NotFoundError
from langchain_supabase_memory.mcp.answers import reply
from langchain_supabase_memory.mcp.request_memory import current_request
from langchain_supabase_memory.operations import listing

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.types import CallToolResult

    from langchain_supabase_memory.agents.tools.binding import Answer
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.mcp.request_memory import RequestMemory
    from langchain_supabase_memory.memory.conversation import Conversation


def tool_call(served: RequestMemory, conversation_id: str | None = None) -> ToolCall:
    """A call of an agents' tool in the name of whoever sent the request.

    Args:
        served: What the request is about.
        conversation_id: The conversation that is meant; of no account where none is.
    """
    options = served.options
    binding = Binding(
        memory=served.memory,
        thread_id=conversation_id,
        agent_id=served.memory.agent_id,
        characters=options.characters,
        time_zone=options.time_zone,
    )
    return ToolCall(binding, None, None, names=True)


def resolve_conversation(served: RequestMemory, conversation_id: str | None) -> Flow[str]:
    """The conversation that a call means: the one it names, the server's, or else the newest with the agent.

    Raises:
        NotFoundError: There is none yet.
    """
    named = conversation_id or served.options.conversation_id
    if named is not None:
        return named
    memory = served.memory
    page = yield from listing.conversations(
        memory._services.owner(), agent_id=memory.agent_id, limit=1, retention=memory._services.settings.retention
    )
    if not page:
        raise NotFoundError("There is no conversation yet.", hint="Go on without the memory: nothing was said before.")
    return page[0].thread_id


async def run(answer: Callable[[ToolCall], Flow[Answer]]) -> CallToolResult:
    """What a tool answers that needs no conversation.

    Args:
        answer: Makes the flow.
    """
    served = current_request()
    return reply(*await served.memory._services.arun(answer(tool_call(served))))


async def run_for_conversation(
    conversation_id: str | None, answer: Callable[[ToolCall], Flow[Answer]]
) -> CallToolResult:
    """What a tool answers of one conversation.

    Args:
        conversation_id: The conversation that the call names, if it names one.
        answer: Makes the flow.
    """
    return reply(*await describe_conversation(conversation_id, answer))


async def describe_conversation(conversation_id: str | None, answer: Callable[[ToolCall], Flow[Answer]]) -> Answer:
    """The same as text and sources, for what is no tool."""
    served = current_request()

    def flow() -> Flow[Answer]:
        thread_id = yield from resolve_conversation(served, conversation_id)
        return (yield from answer(tool_call(served, thread_id)))

    return await served.memory._services.arun(flow())


async def conversation(conversation_id: str | None = None) -> Conversation:
    """The handle of the conversation that a call means.

    Args:
        conversation_id: The conversation that the call names, if it names one.
    """
    served = current_request()
    if conversation_id is None:
        conversation_id = await served.memory._services.arun(resolve_conversation(served, None))
    return served.memory.conversation(conversation_id)
