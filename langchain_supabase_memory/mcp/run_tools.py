"""Runs the agents' tools on the memory of a request's user, without a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.agents.tools.binding import Binding, ToolCall
from langchain_supabase_memory.agents.tools.output_limit import shorten
from langchain_supabase_memory.errors import NotFoundError
from langchain_supabase_memory.language.messages.invisible import spell_out
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

_LONGEST: Final = 100
"""The maximum number of characters of an id in an error."""


def tool_call(served: RequestMemory, conversation_id: str | None = None) -> ToolCall:
    """Return a call of an agents' tool for the request's user.

    Args:
        served: The memory and the options of the request.
        conversation_id: The conversation; ignored by tools that need none.
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
    """Return the thread id of a call: the one it names, the server's, or else the agent's newest conversation.

    Raises:
        NotFoundError: There is no such conversation, or none yet.
        InvalidInputError: The id is not a usable string.
    """
    memory = served.memory
    named = conversation_id or served.options.conversation_id
    if named is not None:
        key = memory.conversation(named)._key
        if (yield from listing.find_info(key)) is None:
            # Otherwise a wrong id reads like a conversation in which nothing was said.
            raise NotFoundError(
                f"There is no conversation {_quoted(named)} with the agent {_quoted(key.agent_id)}.",
                hint="list_conversations lists those that there are.",
            )
        return named
    page = yield from listing.conversations(
        memory._services.owner(), agent_id=memory.agent_id, limit=1, retention=memory._services.settings.retention
    )
    if not page:
        raise NotFoundError("There is no conversation yet.", hint="Go on without the memory: nothing was said before.")
    return page[0].thread_id


async def run(answer: Callable[[ToolCall], Flow[Answer]]) -> CallToolResult:
    """Run a tool that needs no conversation.

    Args:
        answer: Creates the flow.
    """
    served = current_request()
    return reply(*await served.memory._services.arun(answer(tool_call(served))))


async def run_for_conversation(
    conversation_id: str | None, answer: Callable[[ToolCall], Flow[Answer]]
) -> CallToolResult:
    """Run a tool on one conversation.

    Args:
        conversation_id: The conversation that the call names, if any.
        answer: Creates the flow.
    """
    return reply(*await describe_conversation(conversation_id, answer))


async def describe_conversation(conversation_id: str | None, answer: Callable[[ToolCall], Flow[Answer]]) -> Answer:
    """Run a flow on one conversation for a resource or a prompt; return text and sources."""
    served = current_request()

    def flow() -> Flow[Answer]:
        thread_id = yield from resolve_conversation(served, conversation_id)
        return (yield from answer(tool_call(served, thread_id)))

    return await served.memory._services.arun(flow())


async def conversation(conversation_id: str | None = None) -> Conversation:
    """Return the handle of the call's conversation.

    Args:
        conversation_id: The conversation that the call names, if any.

    Raises:
        NotFoundError: There is no such conversation, or none yet.
    """
    served = current_request()
    return served.memory.conversation(await served.memory._services.arun(resolve_conversation(served, conversation_id)))


def _quoted(text: str) -> str:
    return f"'{shorten(spell_out(text), _LONGEST)}'"
