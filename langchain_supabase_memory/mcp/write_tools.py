"""The tools that store; a server only offers them with the option for it."""

from __future__ import annotations

from typing import Annotated, Final

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, Elicit
from mcp.server.mcpserver.resolve import Resolve
from pydantic import BaseModel, Field

from langchain_supabase_memory.agents.tools import output_limit
from langchain_supabase_memory.agents.tools.output_limit import note
from langchain_supabase_memory.agents.tools.profile import TextToRemember, check_text, remember_text
from langchain_supabase_memory.language.messages.content import mark_as_relayed
from langchain_supabase_memory.mcp.answers import ToolReply, reply
from langchain_supabase_memory.mcp.consent import has_dialog
from langchain_supabase_memory.mcp.request_memory import current_request
from langchain_supabase_memory.mcp.run_tools import tool_call
from langchain_supabase_memory.mcp.spaces import within_space
from langchain_supabase_memory.operations.profile import LONGEST_SUBJECT, LONGEST_VALUE, ProfileKind
from langchain_supabase_memory.operations.turns import messages_of

LONGEST: Final = 1_000_000
ASSISTANT: Final = "assistant (MCP)"
"""Who suggests what a person was not asked about, as shown to the person."""

_Id = Annotated[str, Field(min_length=1, max_length=512, description="Its id; a new id starts a new conversation.")]


async def save_turn(
    user: Annotated[str, Field(min_length=1, max_length=LONGEST, description="What the person said, word for word.")],
    assistant: Annotated[str, Field(min_length=1, max_length=LONGEST, description="Your final answer, word for word.")],
    conversation_id: _Id,
    idempotency_key: Annotated[
        str,
        Field(min_length=1, max_length=512, description="A key for this turn: a repeated call stores it once."),
    ],
    space_id: Annotated[
        str | None, Field(max_length=512, description="A space whose members read it; by default the person's own.")
    ] = None,
) -> ToolReply:
    """Store a turn: the person's message and your answer. Use it after an answer worth remembering.

    If you are not sure a call succeeded, repeat it with the same key.
    """
    async with within_space(space_id, role="contributor"):
        memory = current_request().memory
        handle = memory.conversation(conversation_id)
        # Only the model says that the person wrote this, so it proves nothing of them.
        messages = [mark_as_relayed(each) for each in messages_of(user, assistant)]
        stored = await handle.aappend(messages, idempotency_key=idempotency_key)
        # Index now, so that the turn is found even without a worker; a failure is made up for later.
        await memory._services.arun(tool_call(current_request(), conversation_id).indexed(handle._key))
    places = [each for each in stored.sequences if each is not None]
    if not places:
        return reply(note("It was not stored: it has expired or was forgotten."))
    first, last = min(places), max(places)
    where = output_limit.sequence_range(first, last)
    what = f"Stored as messages {where}." if stored.appended else f"It was stored before, as messages {where}."
    source = {"thread_id": conversation_id, "from_sequence": first, "to_sequence": last}
    return reply(note(what), [source])


class RememberConsent(BaseModel):
    """What the person is asked before something is remembered.

    Attributes:
        remember: Whether it is to be remembered.
    """

    remember: bool = Field(title="Remember it", description="Assistants read it in all later conversations.")


async def ask_to_remember(
    text: str, kind: ProfileKind, about: str | None, ctx: Context[object, object]
) -> RememberConsent | Elicit[RememberConsent]:
    """Ask the person for consent, if the client can, to the very words that will be stored.

    Raises:
        InvalidInputError: It cannot be remembered.
    """
    wanted = await _checked(text, kind, about)
    return Elicit(wanted.question(), RememberConsent) if has_dialog(ctx) else RememberConsent(remember=True)


async def remember(
    answer: Annotated[ElicitationResult[RememberConsent], Resolve(ask_to_remember)],
    ctx: Context[object, object],
    text: Annotated[
        str, Field(min_length=1, max_length=LONGEST_VALUE, description="One short sentence, in the person's words.")
    ],
    kind: Annotated[
        ProfileKind, Field(description="An instruction says how to answer; a constraint says what must not be.")
    ] = "fact",
    about: Annotated[
        str | None,
        Field(
            max_length=LONGEST_SUBJECT,
            description="Its subject, such as home; replaces what was known about it.",
        ),
    ] = None,
) -> ToolReply:
    """Remember something about the person in all later conversations. Use it when the person asks you to.

    The person is asked first, or it waits until they confirm it; the result says which.
    """
    if not (isinstance(answer, AcceptedElicitation) and answer.data.remember):
        return reply(note("The person did not agree. Nothing was remembered; do not ask again."))
    wanted = await _checked(text, kind, about)
    flow = remember_text(wanted, assistant=None if has_dialog(ctx) else ASSISTANT)
    return reply(*await current_request().memory._services.arun(flow))


async def _checked(text: str, kind: ProfileKind, about: str | None) -> TextToRemember:
    served = current_request()
    return await served.memory._services.arun(check_text(tool_call(served), text, kind, about))
