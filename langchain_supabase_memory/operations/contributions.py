"""Flows of contributions: quotes of members' own conversations on the board of a space."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage

from langchain_supabase_memory.checks import as_uuid
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.operations.arguments import conversation_ids
from langchain_supabase_memory.operations.boards.board import BoardItem
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, BoardItemKind
from langchain_supabase_memory.operations.boards.parse_answer import LONGEST_TEXT
from langchain_supabase_memory.operations.rows import value_of
from langchain_supabase_memory.values import SpaceRole, as_id

if TYPE_CHECKING:
    from langchain_supabase_memory.values import ConversationKey


@dataclass(frozen=True)
class Contribution:
    """A quote of one of a user's conversations on the board of a space.

    Attributes:
        space_id: The space.
        item_id: The item on its board; `space.withdraw(item_id)` takes it back.
        quote: Its words, as they stand in the message.
        thread_id: The conversation's thread.
        agent_id: Its agent.
        message_id: The message's id.
        contributed_at: When; `None` where it was just contributed.
        said_at: When the message was said; `None` in a list.
        is_new: Whether the board did not have it before.
    """

    space_id: str
    item_id: str
    quote: str = field(repr=False)
    thread_id: str
    agent_id: str
    message_id: str
    contributed_at: datetime | None = None
    said_at: datetime | None = None
    is_new: bool = False


@dataclass(frozen=True)
class SharedInSpace:
    """What one space holds of a user.

    Attributes:
        space_id: The space.
        role: What they may do there; `None` if they have left, or never were a member.
        since: Since when; `None` if they never were a member.
        messages: How many messages they wrote there.
        items: How many items of its board they contributed.
    """

    space_id: str
    role: SpaceRole | None
    since: datetime | None
    messages: int
    items: int


@dataclass(frozen=True)
class SharedData:
    """What spaces hold of a user.

    Attributes:
        spaces: The spaces that they are in, were in, or wrote in.
        contributions: Their newest 1,000 contributions, the newest first.
    """

    spaces: tuple[SharedInSpace, ...]
    contributions: tuple[Contribution, ...]


def contribute(
    key: ConversationKey, message: BaseMessage | str, *, quote: str, kind: BoardItemKind = "fact", to: str
) -> Flow[Contribution]:
    """Copy a quote from the conversation onto the board of a space. Nothing else of the message moves.

    Only the conversation's owner can follow the item back. It goes when the message is forgotten, expires, or does
    not say it any more, and when the conversation or the topic is opted out of.

    Args:
        key: The conversation.
        message: The stored message, or its id.
        quote: What it says, up to 500 characters. Spaces, case and the shape of quotation marks may differ.
        kind: The item's kind, such as `fact` or `action`; the page on boards lists all kinds.
        to: The id of the space. Its board is that of its conversation `board`.

    Returns:
        The contribution, with the words as they stand in the message.

    Raises:
        InvalidInputError: The message does not say that, it is not to be remembered, or the kind is not valid.
        NotFoundError: There is no such message of the user, no such space, or the user is not in it.
        PermissionDeniedError: The user is a reader of the space.
        TooLargeError: The space's board is full.
    """
    if kind not in tuple(BOARD_KINDS):
        raise InvalidInputError("Unknown kind of item.", hint=f"Kinds are {', '.join(BOARD_KINDS)}.")
    if not isinstance(quote, str) or not 0 < len(quote.strip()) <= LONGEST_TEXT:
        raise InvalidInputError(
            f"A quote is a text of 1 to {LONGEST_TEXT} characters.", hint="Quote the part of the message that matters."
        )
    message_id = as_id("message", message.id or "" if isinstance(message, BaseMessage) else message)
    arguments = {"p_message_id": message_id, "p_quote": quote, "p_kind": kind, "p_space": as_id("to", to)}
    made: dict[str, Any] = yield from call("memory_contribute", {**conversation_ids(key), **arguments})
    return value_of(Contribution, made, thread_id=key.thread_id, agent_id=key.agent_id, message_id=message_id)


def withdraw(space: str, member: str | None, item: Contribution | BoardItem | str) -> Flow[None]:
    """Take an item back that was contributed, as who contributed it or as a manager. Who has left may do so, too.

    Args:
        space: The space.
        member: Who withdraws it; `None` means the access token's subject, or a server by itself.
        item: The contribution, the item of the board, or its id.

    Raises:
        NotFoundError: Nobody has contributed such an item, or who asks never was in the space.
        PermissionDeniedError: Somebody else contributed it, and who asks is no manager.
    """
    if isinstance(item, Contribution):
        item_id = item.item_id
    else:
        item_id = item.id if isinstance(item, BoardItem) else as_uuid("item", item)
    yield from call("memory_withdraw", {"p_space": space, "p_item_id": item_id, "p_user_id": member})


def shared_data(owner: str | None) -> Flow[SharedData]:
    """Return what spaces hold of the user: where they are or were, what they wrote there, and what they quoted.

    Args:
        owner: The user; `None` means the access token's subject.
    """
    answer: dict[str, Any] = yield from call("memory_held", {"p_user_id": owner})
    roles = {each["space_id"]: each for each in answer["memberships"]}
    written = {each["space_id"]: each for each in answer["authored"]}
    spaces = [
        SharedInSpace(
            space_id,
            roles[space_id]["role"] if space_id in roles else None,
            datetime.fromisoformat(roles[space_id]["since"]) if space_id in roles else None,
            written.get(space_id, {}).get("messages", 0),
            written.get(space_id, {}).get("items", 0),
        )
        for space_id in sorted({*roles, *written})
    ]
    return SharedData(tuple(spaces), tuple(value_of(Contribution, row) for row in answer["contributions"]))
