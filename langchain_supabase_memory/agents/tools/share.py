"""A tool that copies a quote of the conversation onto the board of a space, after the person has agreed.

The model says what to share, never where: the space is the developer's. What is asked and what is stored are the same
words, those of the stored message.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langgraph.types import interrupt
from pydantic import BaseModel, Field

from langchain_supabase_memory.agents.tools.binding import Answer, Binding, Bindings, ToolCall, tool
from langchain_supabase_memory.agents.tools.output_limit import date_of, note
from langchain_supabase_memory.checks import boolean
from langchain_supabase_memory.errors import (
    InvalidInputError,
    MigrationConflictError,
    NotFoundError,
    PermissionDeniedError,
    TooLargeError,
)
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.operations import contributions, spaces
from langchain_supabase_memory.operations.boards.kinds import BoardItemKind  # noqa: TC001  # pydantic reads it
from langchain_supabase_memory.operations.boards.parse_answer import LONGEST_TEXT, TextMatcher
from langchain_supabase_memory.operations.conversations import read

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo
    from typing import Unpack

    from langchain_core.tools import BaseTool

    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.conversations import Column
    from langchain_supabase_memory.operations.spaces import SpaceInfo
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import ConversationKey, StoredMessage

NAME: Final = "share_with_team"

_LOOKED_AT: Final = 50
"""How many of the newest messages are searched for a quote whose message is not named."""

_LARGEST: Final = 2**31 - 1
_NAME: Final = 100
"""The maximum number of characters shown of a space's name."""

_COLUMNS: Final[Sequence[Column]] = ("message_id", "role", "text", "created_at")
_DESCRIPTION: Final = (
    "Share something that was said in this conversation with the user's team: a quote, word for word, which all "
    "members of the team can read from then on. Use it when the user asks for it. {asked}"
)
_ASKED: Final = "The user is asked before anything is shared. Share one quote at a time."


class _ShareArguments(BaseModel):
    quote: str = Field(
        min_length=1,
        max_length=LONGEST_TEXT,
        description="What to share, word for word as in the message, and no more than the team needs.",
    )
    kind: BoardItemKind = Field(default="fact", description="What it is; an action is something to do.")
    message: int | str | None = Field(
        default=None,
        description="The number of the message that says it, or its id; by default the user's newest that does.",
    )


@dataclass(frozen=True)
class QuoteToShare:
    """A quote that can be shared, as it stands in its message.

    Attributes:
        key: The conversation.
        message: The stored message, without its payload.
        words: The quote.
        space: The space, as the person sees it.
    """

    key: ConversationKey
    message: StoredMessage
    words: str = field(repr=False)
    space: SpaceInfo

    def question(self, zone: tzinfo) -> str:
        """Return what the person is asked, with one line for each fact, in which all characters are visible.

        Args:
            zone: The time zone of the date.
        """
        count = len(self.space.members)
        name = spell_out(" ".join(self.space.name.split()))
        said = "" if self.message.created_at is None else f" on {date_of(self.message.created_at, zone)}"
        return "\n".join(
            [
                f"Share this with {pluralize(count, 'member')} of a space?",
                f"Quote: {spell_out(' '.join(self.words.split()))}",
                f"From: message {self.message.sequence} by {self.message.role}{said}",
                f"Space: {name if len(name) <= _NAME else f'{name[:_NAME]} …'}",
                f"Id: {spell_out(self.space.space_id)}",
            ]
        )


def share_with_team_tool(
    memory: SupabaseMemory, *, space_id: str, ask: bool = True, **bound: Unpack[Bindings]
) -> BaseTool:
    """Create a tool that shares a quote of the conversation with the members of a space.

    With `ask`, the run stops before anything is shared (LangGraph's `interrupt`, which needs a checkpointer). The
    interrupt has the form of LangChain's `HumanInTheLoopMiddleware`: `action_requests` with the question as the
    `description`. Resume the run by `Command(resume={"decisions": [{"type": "approve"}]})`; whatever else is returned
    shares nothing. It is not one of the toolkit's tools, which only read.

    Args:
        memory: The memory that stores the conversation.
        space_id: The space. The model cannot name another.
        ask: Whether the person is asked first. Turn it off only where they are asked otherwise.
        bound: `thread_id`, `agent_id`, `characters`, `time_zone` and `on_error`; see `tools.binding.Binding`.

    Returns:
        The tool `share_with_team(quote, kind="fact", message=None)`, sync and async.

    Raises:
        InvalidInputError: `space_id` is not the id of a space.
        ConfigurationError: `ask` is no boolean.
    """
    binding = Binding.of(memory, bound)
    memory.space(space_id)  # refuses what is no id of a space
    boolean("ask", ask)
    description = _DESCRIPTION.format(asked=_ASKED if ask else "").rstrip()
    return tool(NAME, description, _ShareArguments, binding, partial(_share, space_id=space_id, ask=ask))


def _share(
    call: ToolCall,
    quote: str,
    kind: BoardItemKind = "fact",
    message: int | str | None = None,
    *,
    space_id: str,
    ask: bool,
) -> Flow[Answer]:
    if ask and not call.is_first:  # of questions asked at once, one's answer might be taken for another's
        return note("Nothing was shared: share one quote at a time. Call this again after the other call."), []
    retention = call.binding.memory._services.settings.retention
    found = yield from find_quote(call.key(), space_id, quote, message, retention=retention)
    if ask and not _has_agreed(found, kind, call.zone):
        return note("The user did not agree. Nothing was shared; do not ask again."), []
    return (yield from share_quote(found, kind))


def find_quote(
    key: ConversationKey, space_id: str, quote: str, message: int | str | None, *, retention: Retention | None
) -> Flow[QuoteToShare]:
    """Find what is to be shared, before anybody is asked.

    Args:
        key: The conversation.
        space_id: The space.
        quote: What the message says.
        message: The message's number or id; `None` means the newest of the user's that says it.
        retention: Messages beyond this retention are not shared.

    Raises:
        InvalidInputError: It cannot be shared; the text tells a model what to do next.
    """
    if key.is_in_space:
        raise InvalidInputError(
            "This conversation belongs to a team already.", hint="Nothing needs to be shared: its members read it."
        )
    try:
        space = yield from spaces.info(space_id, key.user_id)
    except (NotFoundError, MigrationConflictError) as error:
        raise _refusal(error) from None
    if space.role == "reader":
        raise _refusal(PermissionDeniedError())
    number = int(message) if isinstance(message, str) and message.isascii() and message.isdecimal() else message
    if isinstance(number, int):
        if not 0 <= number <= _LARGEST:
            raise InvalidInputError("There is no such message.", hint="Pass the number that a result of a tool shows.")
        rows = yield from read(key, from_sequence=number, to_sequence=number, columns=_COLUMNS, retention=retention)
    else:
        rows = yield from read(key, last=_LOOKED_AT, columns=_COLUMNS, retention=retention)
        rows = [each for each in rows if (each.role == "user" if number is None else each.message_id == number)]
    wanted = TextMatcher(quote.strip())
    for each in reversed(rows):
        words = TextMatcher(each.text or "").locate(wanted)
        if words is not None:
            return QuoteToShare(key, each, words, space)
    if message is not None and not rows:
        raise InvalidInputError(
            "There is no such message.", hint="Pass the number that a result of a tool shows, or leave it out."
        )
    where = "No new message of the user says" if message is None else "This message does not say"
    raise InvalidInputError(
        f"{where} that, so nothing was shared.",
        hint="Quote it word for word, and pass the number of the message that says it.",
    )


def share_quote(shareable: QuoteToShare, kind: BoardItemKind) -> Flow[Answer]:
    """Share it.

    Args:
        shareable: What is shared.
        kind: The kind of item.

    Raises:
        InvalidInputError: It cannot be shared; the text tells a model what to do next.
    """
    message_id = str(shareable.message.message_id)
    try:
        made = yield from contributions.contribute(
            shareable.key, message_id, quote=shareable.words, kind=kind, to=shareable.space.space_id
        )
    except (InvalidInputError, NotFoundError, PermissionDeniedError, TooLargeError, MigrationConflictError) as error:
        raise _refusal(error) from None
    words = "Shared with the team" if made.is_new else "The team has it already"
    source = {"thread_id": shareable.key.thread_id, "message_ids": [message_id], "item_id": made.item_id}
    place = shareable.message.sequence
    return note(f"{words}, as item {made.item_id} of its board."), [
        {**source, "from_sequence": place, "to_sequence": place}
    ]


def _has_agreed(shareable: QuoteToShare, kind: BoardItemKind, zone: tzinfo) -> bool:
    """Stop the run until the person has answered, and return whether they agree."""
    arguments = {"quote": shareable.words, "kind": kind, "message": shareable.message.sequence}
    request = {"name": NAME, "args": arguments, "description": shareable.question(zone)}
    review = {"action_name": NAME, "allowed_decisions": ["approve", "reject"]}
    try:
        answer: Any = interrupt({"action_requests": [request], "review_configs": [review]})
    except (RuntimeError, KeyError):  # no graph runs here
        raise InvalidInputError(
            "Nobody can be asked here, so nothing was shared.", hint="Tell the user how to share it by themselves."
        ) from None
    decisions = answer.get("decisions") if isinstance(answer, dict) else None
    return isinstance(decisions, list) and [
        each.get("type") if isinstance(each, dict) else None for each in decisions
    ] == ["approve"]


_REFUSALS: Final = {
    MigrationConflictError: ("Teams are not switched on here, so nothing was shared.", "Go on without sharing."),
    NotFoundError: (
        "The user is not in this team, or what they said is gone. Nothing was shared.",
        "Tell the user; do not try again.",
    ),
    PermissionDeniedError: (
        "In this team the user may only read, so nothing was shared.",
        "Tell the user to ask a manager of the team; do not try again.",
    ),
    TooLargeError: ("The team's board is full, so nothing was shared.", "Tell the user to withdraw what is old."),
    InvalidInputError: (
        "The message does not say that any more, or the user does not want it to be remembered. Nothing was shared.",
        "Tell the user; do not try again.",
    ),
}


def _refusal(error: Exception) -> InvalidInputError:
    """Return a refusal in words that tell a model what to do next."""
    words, hint = next(each for kind, each in _REFUSALS.items() if isinstance(error, kind))
    return InvalidInputError(words, hint=hint)
