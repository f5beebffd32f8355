"""The tools that store; a server has them only if it was started so."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from langchain_supabase_memory.agents.tools.bounded import noted, range_of
from langchain_supabase_memory.mcp.answers import Reply, reply
from langchain_supabase_memory.mcp.asking import asked
from langchain_supabase_memory.mcp.served import present
from langchain_supabase_memory.operations.boards.answer import ItemKind  # noqa: TC001  # the SDK reads it

LONGEST: Final = 1_000_000
BY: Final = "assistant (MCP)"
"""Who wrote a note, as the board names it."""

_Id = Annotated[str, Field(min_length=1, max_length=512, description="Which; any text names a new one.")]


async def save_turn(
    user: Annotated[str, Field(min_length=1, max_length=LONGEST, description="What the person said, word for word.")],
    assistant: Annotated[str, Field(min_length=1, max_length=LONGEST, description="The final answer, word for word.")],
    conversation_id: _Id,
    idempotency_key: Annotated[
        str, Field(min_length=1, max_length=512, description="Names this turn: the same key stores it once.")
    ],
) -> Reply:
    """Store a turn: what the person said and the answer. Use it after an answer that is worth remembering.

    Repeat it with the same key if you don't know whether it arrived.
    """
    memory = present().memory
    handle = memory.conversation(conversation_id)
    stored = await handle.aadd_turn(user, assistant, idempotency_key=idempotency_key)
    # So that it is found at once where no worker indexes; what fails here is made up for later.
    await memory.arun(asked(present(), conversation_id).indexed(handle.key))
    places = [each for each in stored.sequences if each is not None]
    if not places:
        return reply(noted("It was not stored: it has expired, or was forgotten."))
    first, last = min(places), max(places)
    where = range_of(first, last)
    what = f"Stored as messages {where}." if stored.appended else f"It was stored before, as messages {where}."
    source = {"thread_id": conversation_id, "from_sequence": first, "to_sequence": last}
    return reply(noted(what), [source])


async def note(
    kind: Annotated[ItemKind, Field(description="What it is; an action is something to do.")],
    text: Annotated[str, Field(min_length=1, max_length=500, description="It in one sentence.")],
    conversation_id: Annotated[str, Field(min_length=1, max_length=512, description="On whose board.")],
) -> Reply:
    """Write a note on a conversation's board. Use it when the person says that something is to be remembered.

    The same text twice is one note. A conversation that is not there begins with it.
    """
    item = (
        await present()
        .memory.conversation(conversation_id)
        .aadd_board_item(kind, text, by=BY, author_kind="model", begin=True)
    )
    return reply(noted(f"Noted on the board as {item}."), [{"thread_id": conversation_id}])
