"""The tool that forgets: it says what would be removed, and asks the person, not the model, before removing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, Elicit
from mcp.server.mcpserver.resolve import Resolve
from pydantic import BaseModel, Field

from langchain_supabase_memory.agents.tools.output_limit import note
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.mcp.answers import ToolReply, reply
from langchain_supabase_memory.mcp.consent import consent_question, item_question, require_dialog
from langchain_supabase_memory.mcp.request_memory import current_request
from langchain_supabase_memory.mcp.run_tools import conversation
from langchain_supabase_memory.values import Receipt  # noqa: TC001  # the SDK reads it

if TYPE_CHECKING:
    from langchain_supabase_memory.operations.profile import ProfileItem

_Id = Annotated[str | None, Field(min_length=1, max_length=512)]


class ForgetConsent(BaseModel):
    """What the person is asked.

    Attributes:
        forget: Whether it is to be forgotten.
    """

    forget: bool = Field(title="Forget it", description="This cannot be undone.")


_NOT_ASKED: Final = ForgetConsent(forget=False)


async def ask(
    conversation_id: str | None,
    message_id: str | None,
    item_id: str | None,
    dry_run: bool,
    ctx: Context[object, object],
) -> ForgetConsent | Elicit[ForgetConsent]:
    """Ask the person for consent, if something would be removed.

    Raises:
        ConfigurationError: The client cannot ask.
        InvalidInputError: The arguments name nothing to forget.
    """
    if conversation_id is None and message_id is None and item_id is None:
        raise InvalidInputError("Nothing is named.", hint="Pass conversation_id, message_id, or item_id.")
    if item_id is not None and (conversation_id is not None or message_id is not None):
        raise InvalidInputError("An item is of no conversation.", hint="Pass item_id by itself.")
    if dry_run:
        return _NOT_ASKED
    command = "forget" if item_id is None else "profile delete"
    elsewhere = f"Tell the person to run `supabase-memory {command}`, or to use a client with elicitation."
    require_dialog(ctx, "nothing is forgotten", elsewhere)
    if item_id is not None:
        item = await _item(item_id)
        return _NOT_ASKED if item is None else Elicit(item_question(item), ForgetConsent)
    receipt = await _forget(conversation_id, message_id, dry_run=True)
    if not (receipt.conversations or receipt.messages):
        return _NOT_ASKED
    return Elicit(
        await consent_question(await conversation(conversation_id), message_id, _describe(receipt)), ForgetConsent
    )


async def forget(
    answer: Annotated[ElicitationResult[ForgetConsent], Resolve(ask)],
    conversation_id: Annotated[
        _Id, Field(description="The conversation; for a message, by default the newest.")
    ] = None,
    message_id: Annotated[_Id, Field(description="One message, from `message_ids` of a result.")] = None,
    item_id: Annotated[_Id, Field(description="One item of get_profile.")] = None,
    dry_run: Annotated[bool, Field(description="Only report what would be forgotten.")] = True,
) -> ToolReply:
    """Permanently forget a conversation, a message, or something about the person, with all that came of it.

    Use it only when the person asks: first as a dry run, then with dry_run=false, which asks them to confirm.
    """
    agreed = isinstance(answer, AcceptedElicitation) and answer.data.forget
    if item_id is not None:
        counts = await _forget_item(item_id, dry_run=not agreed)
    else:
        counts = _describe(await _forget(conversation_id, message_id, dry_run=not agreed))
    if not counts:
        words = "There is nothing with this id."
    elif agreed:
        words = f"Forgotten: {counts}."
    elif dry_run:
        words = f"This would be forgotten: {counts}. Nothing was forgotten yet."
    else:
        words = "The person did not agree. Nothing was forgotten; do not ask again."
    return reply(note(words))


async def _forget(conversation_id: str | None, message_id: str | None, *, dry_run: bool) -> Receipt:
    handle = await conversation(conversation_id)  # without an id a message is named, which `ask` has checked
    if message_id is None:
        return await handle.aforget(dry_run=dry_run)
    return await handle.aforget_message(message_id, dry_run=dry_run)


async def _forget_item(item_id: str, *, dry_run: bool) -> str:
    """Forget an item of the profile; return what goes, and nothing if there is no such item."""
    if await _item(item_id) is None:
        return ""
    if not dry_run:
        await current_request().memory.profile.adelete(item_id)
    return "1 item of the profile"


async def _item(item_id: str) -> ProfileItem | None:
    try:
        named = str(UUID(item_id))
    except ValueError:
        return None
    listed = await current_request().memory.profile.ahistory(named)
    return next((each for each in listed if each.id == named), None)


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
