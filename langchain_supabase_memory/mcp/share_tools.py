"""The tools of spaces: list them, read a board, share a quote and take it back, both after asking the person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, Elicit
from mcp.server.mcpserver.resolve import Resolve
from pydantic import BaseModel, Field

from langchain_supabase_memory.agents.tools.output_limit import Passage, date_of, fit_passages, name, note, wrap
from langchain_supabase_memory.agents.tools.share import QuoteToShare, find_quote, share_quote
from langchain_supabase_memory.errors import MigrationConflictError, NotFoundError
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.mcp.answers import ToolReply, reply
from langchain_supabase_memory.mcp.consent import require_dialog
from langchain_supabase_memory.mcp.request_memory import current_request
from langchain_supabase_memory.mcp.run_tools import conversation, tool_call
from langchain_supabase_memory.mcp.spaces import spaces_off, within_space
from langchain_supabase_memory.operations.boards.kinds import BoardItemKind  # noqa: TC001  # the SDK reads it
from langchain_supabase_memory.operations.boards.parse_answer import LONGEST_TEXT
from langchain_supabase_memory.values import DEFAULT_AGENT_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.types import CallToolResult

    from langchain_supabase_memory.operations.boards.board import BoardItem
    from langchain_supabase_memory.operations.contributions import Contribution
    from langchain_supabase_memory.operations.spaces import SpaceInfo

_LARGEST: Final = 2**31 - 1
_ABOUT: Final = 200
"""The maximum number of characters shown of what a space is for."""

_BOARD: Final = "board"
"""The conversation of a space whose board has the contributed items."""

_ELSEWHERE: Final = "Tell the person to use a client with elicitation, or the application itself."

SpaceId = Annotated[str, Field(max_length=512, description="The space, from list_spaces.")]
Skip = Annotated[int, Field(ge=0, le=_LARGEST, description="How many to skip, as the previous page says.")]
_Quote = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_TEXT, description="What to share, word for word, and no more than needed."),
]
_Message = Annotated[
    int | str | None, Field(description="The number of the message that says it, or its id; by default the newest.")
]
_Conversation = Annotated[
    str | None, Field(min_length=1, max_length=512, description="Where it was said; by default the newest.")
]
_Item = Annotated[str, Field(min_length=1, max_length=64, description="The id of the item, from read_space_board.")]


class ShareConsent(BaseModel):
    """What the person is asked before something is shared.

    Attributes:
        share: Whether it is to be shared.
    """

    share: bool = Field(title="Share it", description="All members of the space can read and copy it.")


class WithdrawConsent(BaseModel):
    """What the person is asked before an item is taken back.

    Attributes:
        withdraw: Whether it is to be taken back.
    """

    withdraw: bool = Field(title="Take it back", description="It goes from the board with its history.")


async def list_spaces(skip: Skip = 0) -> ToolReply:
    """List the spaces that the person shares with others: id, name, and the person's role.

    Use it to find the space_id for other tools.
    """
    try:
        found = await current_request().memory.spaces.alist()
    except MigrationConflictError:
        raise spaces_off() from None
    return _page([_space(each) for each in found], skip, "The person is in no space.")


async def read_space_board(
    space_id: SpaceId,
    kind: Annotated[BoardItemKind | None, Field(description="Only items of this kind.")] = None,
    skip: Skip = 0,
) -> ToolReply:
    """Read what the members of a space have shared, each item with its author and date.

    Use it for "what does the team know?" and "what did Ben share?".
    """
    async with within_space(space_id):
        board = await current_request().memory.conversation(_BOARD, agent_id=DEFAULT_AGENT_ID).board.aread()
        items = [each for each in board.items if each.superseded_at is None and kind in (None, each.kind)]
        items.sort(key=lambda each: (not each.pinned, -(each.said_at or each.first_seen_at).timestamp()))
        return _page([_item(each) for each in items], skip, "There is nothing of this kind on the board.")


async def ask_to_share(
    space_id: str, quote: str, message: int | str | None, conversation_id: str | None, ctx: Context[object, object]
) -> Elicit[ShareConsent]:
    """Ask the person for consent to share the very words that will be stored.

    Raises:
        ConfigurationError: The client cannot ask.
        InvalidInputError: It cannot be shared.
    """
    require_dialog(ctx, "nothing is shared", _ELSEWHERE)
    found = await _find(space_id, quote, message, conversation_id)
    return Elicit(found.question(tool_call(current_request()).zone), ShareConsent)


async def share_with_space(
    answer: Annotated[ElicitationResult[ShareConsent], Resolve(ask_to_share)],
    space_id: SpaceId,
    quote: _Quote,
    kind: Annotated[BoardItemKind, Field(description="What it is; an action is something to do.")] = "fact",
    message: _Message = None,
    conversation_id: _Conversation = None,
) -> ToolReply:
    """Share a quote from the person's own conversation with a space, word for word. The person is asked first.

    Use it only when the person asks.
    """
    if not (isinstance(answer, AcceptedElicitation) and answer.data.share):
        return reply(note("The person did not agree. Nothing was shared; do not ask again."))
    found = await _find(space_id, quote, message, conversation_id)
    return reply(*await current_request().memory._services.arun(share_quote(found, kind)))


async def ask_to_withdraw(space_id: str, item_id: str, ctx: Context[object, object]) -> Elicit[WithdrawConsent]:
    """Ask the person for consent to take back an item that they have shared.

    Raises:
        ConfigurationError: The client cannot ask.
        NotFoundError: The person has shared no such item.
    """
    require_dialog(ctx, "nothing is taken back", _ELSEWHERE)
    found = await _own_item(space_id, item_id)
    lines = [
        "Take this back from a space?",
        f"Quote: {spell_out(' '.join(found.quote.split()))}",
        f"Id: {spell_out(space_id)}",
    ]
    return Elicit("\n".join(lines), WithdrawConsent)


async def withdraw_from_space(
    answer: Annotated[ElicitationResult[WithdrawConsent], Resolve(ask_to_withdraw)], space_id: SpaceId, item_id: _Item
) -> ToolReply:
    """Take back what the person shared with a space. The person is asked first.

    Use it only when the person asks. What others shared cannot be taken back.
    """
    if not (isinstance(answer, AcceptedElicitation) and answer.data.withdraw):
        return reply(note("The person did not agree. Nothing was taken back; do not ask again."))
    found = await _own_item(space_id, item_id)
    await current_request().memory.space(space_id).awithdraw(found)
    return reply(note("Taken back: it is on the board no more."))


async def _find(space_id: str, quote: str, message: int | str | None, conversation_id: str | None) -> QuoteToShare:
    handle = await conversation(conversation_id)
    services = current_request().memory._services
    retention = services.settings.retention
    return await services.arun(find_quote(handle._key, space_id, quote, message, retention=retention))


async def _own_item(space_id: str, item_id: str) -> Contribution:
    """Return what the person has shared; a manager's right to take others' items back is not for a model to use.

    Raises:
        NotFoundError: The person has shared no such item.
        ConfigurationError: Spaces are switched off in the database.
    """
    try:
        shared = await current_request().memory.spaces.ashared_data()
    except MigrationConflictError:
        raise spaces_off() from None
    own = (each for each in shared.contributions if (each.space_id, each.item_id) == (space_id, item_id))
    found = next(own, None)
    if found is None:
        raise NotFoundError(
            "The person has shared no such item.", hint="read_space_board shows the ids of items and who shared them."
        )
    return found


def _page(passages: Sequence[Passage], skip: int, nothing: str) -> CallToolResult:
    """Return as many passages as fit, and where to go on."""
    rest = passages[skip:]
    if not rest:
        return reply(note("There are no more." if passages else nothing))
    more = f"There are {len(passages)} in all."
    fits = fit_passages(rest, current_request().options.characters, more)
    following = skip + max(fits.shown_count, 1)
    if following < len(passages):
        more = f"{more} Go on with skip={following}."
    return reply(wrap(fits.elements, more), [dict(each.source) for each in rest[: fits.shown_count] if each.source])


def _space(space: SpaceInfo) -> Passage:
    about = space.about if len(space.about) <= _ABOUT else f"{space.about[:_ABOUT]} …"
    return Passage("space", f"{space.name}\n{about}".rstrip(), {"id": space.space_id, "role": str(space.role)})


def _item(item: BoardItem) -> Passage:
    attributes: dict[str, str | int] = {
        "id": item.id,
        "by": name(item.contributed_by or item.edited_by or item.author),
        "at": date_of(item.said_at or item.first_seen_at, tool_call(current_request()).zone),
        "state": item.state,
    }
    if item.pinned:
        attributes["pinned"] = "yes"
    return Passage(item.kind, item.text, attributes, {"thread_id": _BOARD})
