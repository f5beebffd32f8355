"""The tools that store; a server only offers them with the option for it."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from langchain_supabase_memory.agents.tools import output_limit
from langchain_supabase_memory.mcp.answers import ToolReply, reply
from langchain_supabase_memory.mcp.request_memory import current_request
from langchain_supabase_memory.mcp.run_tools import tool_call
from langchain_supabase_memory.mcp.spaces import within_space
from langchain_supabase_memory.operations.boards.kinds import BoardItemKind  # noqa: TC001  # the SDK reads it

LONGEST: Final = 1_000_000
BY: Final = "assistant (MCP)"
"""The author of a note, as shown on the board."""

_Id = Annotated[str, Field(min_length=1, max_length=512, description="Its id; a new id starts a conversation.")]


async def save_turn(
    user: Annotated[str, Field(min_length=1, max_length=LONGEST, description="What the person said, word for word.")],
    assistant: Annotated[str, Field(min_length=1, max_length=LONGEST, description="The final answer, word for word.")],
    conversation_id: _Id,
    idempotency_key: Annotated[
        str, Field(min_length=1, max_length=512, description="A key for this turn: repeated calls store it once.")
    ],
    space_id: Annotated[
        str | None, Field(max_length=512, description="A space whose members read it; by default the person's own.")
    ] = None,
) -> ToolReply:
    """Store a turn: the person's message and the answer. Use it after an answer that is worth remembering.

    If you don't know whether a call succeeded, repeat it with the same key.
    """
    async with within_space(space_id, role="contributor"):
        memory = current_request().memory
        handle = memory.conversation(conversation_id)
        stored = await handle.aadd_turn(user, assistant, idempotency_key=idempotency_key)
        # Index now, so that the turn is found even without a worker; a failure is made up for later.
        await memory._services.arun(tool_call(current_request(), conversation_id).indexed(handle._key))
    places = [each for each in stored.sequences if each is not None]
    if not places:
        return reply(output_limit.note("It was not stored: it has expired or was forgotten."))
    first, last = min(places), max(places)
    where = output_limit.sequence_range(first, last)
    what = f"Stored as messages {where}." if stored.appended else f"It was stored before, as messages {where}."
    source = {"thread_id": conversation_id, "from_sequence": first, "to_sequence": last}
    return reply(output_limit.note(what), [source])


async def note(
    kind: Annotated[BoardItemKind, Field(description="The kind of item; an action is something to do.")],
    text: Annotated[str, Field(min_length=1, max_length=500, description="The note, in one sentence.")],
    conversation_id: Annotated[str, Field(min_length=1, max_length=512, description="The conversation's id.")],
) -> ToolReply:
    """Write a note on a conversation's board. Use it when the person asks you to remember something.

    The same text twice is one note. A new id starts a conversation.
    """
    item = (
        await current_request()
        .memory.conversation(conversation_id)
        .board.aadd(kind, text, actor=BY, author_kind="model", begin=True)
    )
    return reply(output_limit.note(f"Noted on the board as {item}."), [{"thread_id": conversation_id}])
