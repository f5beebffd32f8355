"""The tool that forgets: it says what would be removed, and asks the person, not the model, before removing it."""

from __future__ import annotations

from typing import Annotated, Final

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, Elicit
from mcp.server.mcpserver.resolve import Resolve
from pydantic import BaseModel, Field

from langchain_supabase_memory.agents.tools.output_limit import note
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.mcp.answers import ToolReply, reply
from langchain_supabase_memory.mcp.consent import consent_question, require_dialog
from langchain_supabase_memory.mcp.run_tools import conversation
from langchain_supabase_memory.values import Receipt  # noqa: TC001  # the SDK reads it

_Id = Annotated[str | None, Field(min_length=1, max_length=512)]


class DeletionConsent(BaseModel):
    """What the person is asked.

    Attributes:
        forget: Whether it is to be forgotten.
    """

    forget: bool = Field(title="Forget it", description="This cannot be undone.")


_NOT_ASKED: Final = DeletionConsent(forget=False)


async def ask(
    conversation_id: str | None, message_id: str | None, dry_run: bool, ctx: Context[object, object]
) -> DeletionConsent | Elicit[DeletionConsent]:
    """Ask the person for consent, if something would be removed.

    Raises:
        ConfigurationError: The client cannot ask.
        InvalidInputError: The arguments name nothing to forget.
    """
    if conversation_id is None and message_id is None:
        raise InvalidInputError("Nothing is named.", hint="Pass conversation_id, message_id, or both.")
    if dry_run:
        return _NOT_ASKED
    elsewhere = "Tell the person to run `supabase-memory forget`, or to use a client with elicitation."
    require_dialog(ctx, "nothing is forgotten", elsewhere)
    receipt = await _forget(conversation_id, message_id, dry_run=True)
    if _is_empty(receipt):
        return _NOT_ASKED
    return Elicit(
        await consent_question(await conversation(conversation_id), message_id, _describe(receipt)), DeletionConsent
    )


async def forget(
    answer: Annotated[ElicitationResult[DeletionConsent], Resolve(ask)],
    conversation_id: Annotated[
        _Id, Field(description="The conversation; for a message, by default the newest.")
    ] = None,
    message_id: Annotated[_Id, Field(description="One message, from `message_ids` of a result.")] = None,
    dry_run: Annotated[bool, Field(description="Only say what would be forgotten.")] = True,
) -> ToolReply:
    """Forget a conversation or one message, with everything made from it, for good.

    Use it only when the person asks for it: first as a dry run, then with dry_run=false, which asks the person.
    """
    agreed = isinstance(answer, AcceptedElicitation) and answer.data.forget
    receipt = await _forget(conversation_id, message_id, dry_run=not agreed)
    if _is_empty(receipt):
        words = "There is nothing with this id."
    elif agreed:
        words = f"Forgotten: {_describe(receipt)}."
    elif dry_run:
        words = f"This would be forgotten: {_describe(receipt)}. Nothing was forgotten yet."
    else:
        words = "The person did not agree. Nothing was forgotten; do not ask again."
    return reply(note(words))


async def _forget(conversation_id: str | None, message_id: str | None, *, dry_run: bool) -> Receipt:
    handle = await conversation(conversation_id)  # without an id a message is named, which `ask` has checked
    if message_id is None:
        return await handle.aforget(dry_run=dry_run)
    return await handle.aforget_message(message_id, dry_run=dry_run)


def _is_empty(receipt: Receipt) -> bool:
    return not (receipt.conversations or receipt.messages)


def _describe(receipt: Receipt) -> str:
    counts = {
        "conversation": receipt.conversations,
        "message": receipt.messages,
        "summary": receipt.segments,
        "passage": receipt.chunks,
    }
    named = [f"{count:,} {_plural(word) if count != 1 else word}" for word, count in counts.items() if count]
    return ", ".join(named)


def _plural(word: str) -> str:
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
