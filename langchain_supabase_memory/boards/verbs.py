"""What is done with boards by who holds a memory: a sync and an async method for each verb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from langchain_supabase_memory.boards.answer import ENTITY_TYPES, KINDS, STATES
from langchain_supabase_memory.boards.board import BoardItem, edit
from langchain_supabase_memory.boards.reading import LONGEST_TEXT
from langchain_supabase_memory.boards.revise import revise
from langchain_supabase_memory.conversations import person
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.messages.redaction.payload import redacted_value
from langchain_supabase_memory.messages.sanitizer import clean

if TYPE_CHECKING:
    from langchain_supabase_memory.boards.answer import Kind
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.models import BoardResult, ConversationKey
    from langchain_supabase_memory.settings import BoardPolicy

T = TypeVar("T")

LONGEST_SUMMARY = 10_000
"""The most characters of a summary that a person writes."""


class Runner(Protocol):
    """What drives the flows: a memory."""

    model: Any
    board_policy: BoardPolicy
    redactor: Redactor | None

    def key(self, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> ConversationKey:
        """The conversation that ids name."""

    def run(self, flow: Flow[T], *, model: Any = None) -> T:
        """Drive a flow."""

    async def arun(self, flow: Flow[T], *, model: Any = None) -> T:
        """Drive a flow."""


class Boards:
    """The verbs over boards. `by` is who does it: it is noted with each change, with the time.

    What a person adds, edits, pins or deletes survives every regeneration: no model changes what a person wrote,
    supersedes what is pinned, or brings back what was deleted.

    Args:
        memory: The memory.
    """

    def __init__(self, memory: Runner) -> None:
        self._memory = memory

    def revise(self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> BoardResult:
        """Bring a board up to the newest message now, whether it is due or not. See `boards.revise.revise`.

        Raises:
            ConfigurationError: There is no model.
        """
        return self._memory.run(self._revise(self._memory.key(thread_id, user_id, agent_id)))

    async def arevise(self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> BoardResult:
        """The async twin of `revise`."""
        return await self._memory.arun(self._revise(self._memory.key(thread_id, user_id, agent_id)))

    def add(
        self,
        kind: Kind,
        text: str,
        *,
        thread_id: str,
        by: str,
        entity_type: str | None = None,
        state: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> str:
        """Write an item; the same twice is one.

        Args:
            kind: `fact`, `entity`, `topic`, `action` or `question`.
            text: What it says, up to 500 characters.
            thread_id: The conversation's thread.
            by: Who writes it.
            entity_type: Of an entity, what it is: a person, a place, an organization, a date or other.
            state: Of an action or a question, its state; `open` by default.
            user_id: The owner; the memory's by default.
            agent_id: The agent; the memory's by default.

        Returns:
            The item's id.

        Raises:
            InvalidInputError: The kind, the type, the state or the text is none.
            NotFoundError: There is no such conversation.
        """
        return self._memory.run(
            self._add(self._memory.key(thread_id, user_id, agent_id), kind, text, by, entity_type, state)
        )

    async def aadd(
        self,
        kind: Kind,
        text: str,
        *,
        thread_id: str,
        by: str,
        entity_type: str | None = None,
        state: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> str:
        """The async twin of `add`."""
        key = self._memory.key(thread_id, user_id, agent_id)
        return await self._memory.arun(self._add(key, kind, text, by, entity_type, state))

    def edit(
        self,
        item: BoardItem | str,
        *,
        thread_id: str,
        by: str,
        text: str | None = None,
        state: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        """Change an item's words or state.

        Args:
            item: The item, or its id.
            thread_id: The conversation's thread.
            by: Who changes it.
            text: What it says from now on.
            state: Its state from now on.
            user_id: The owner; the memory's by default.
            agent_id: The agent; the memory's by default.

        Raises:
            InvalidInputError: Nothing is changed, the text is none, or the board has such an item already.
            NotFoundError: There is no such item.
        """
        self._memory.run(self._edit(self._memory.key(thread_id, user_id, agent_id), item, by, text, state))

    async def aedit(
        self,
        item: BoardItem | str,
        *,
        thread_id: str,
        by: str,
        text: str | None = None,
        state: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        """The async twin of `edit`."""
        await self._memory.arun(self._edit(self._memory.key(thread_id, user_id, agent_id), item, by, text, state))

    def pin(
        self,
        item: BoardItem | str,
        *,
        thread_id: str,
        by: str,
        pinned: bool = True,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        """Hold on to an item, or let go of it: what is pinned stands first, and no model supersedes or closes it.

        Raises:
            NotFoundError: There is no such item.
        """
        key = self._memory.key(thread_id, user_id, agent_id)
        self._memory.run(edit(key, "pin" if pinned else "unpin", by=person(by), item_id=_id(item)))

    async def apin(
        self,
        item: BoardItem | str,
        *,
        thread_id: str,
        by: str,
        pinned: bool = True,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        """The async twin of `pin`."""
        key = self._memory.key(thread_id, user_id, agent_id)
        await self._memory.arun(edit(key, "pin" if pinned else "unpin", by=person(by), item_id=_id(item)))

    def delete(
        self,
        item: BoardItem | str,
        *,
        thread_id: str,
        by: str,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        """Delete an item for good: its words go, and no model writes the same again.

        What was said stays in the history: to forget that, call `memory.forget_message`.

        Raises:
            NotFoundError: There is no such item.
        """
        key = self._memory.key(thread_id, user_id, agent_id)
        self._memory.run(edit(key, "delete", by=person(by), item_id=_id(item)))

    async def adelete(
        self,
        item: BoardItem | str,
        *,
        thread_id: str,
        by: str,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        """The async twin of `delete`."""
        key = self._memory.key(thread_id, user_id, agent_id)
        await self._memory.arun(edit(key, "delete", by=person(by), item_id=_id(item)))

    def edit_summary(
        self,
        text: str,
        *,
        thread_id: str,
        by: str,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        """Write what the board's summary is to say first; an empty text takes that back.

        Raises:
            InvalidInputError: It is no text, or longer than 10,000 characters.
            NotFoundError: There is no such conversation.
        """
        key = self._memory.key(thread_id, user_id, agent_id)
        self._memory.run(edit(key, "summary", by=person(by), text=_summary(text, self._memory.redactor)))

    async def aedit_summary(
        self,
        text: str,
        *,
        thread_id: str,
        by: str,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        """The async twin of `edit_summary`."""
        key = self._memory.key(thread_id, user_id, agent_id)
        await self._memory.arun(edit(key, "summary", by=person(by), text=_summary(text, self._memory.redactor)))

    def regenerate(
        self, *, thread_id: str, by: str, user_id: str | None = None, agent_id: str | None = None
    ) -> BoardResult:
        """Write a board anew from the messages; what a person wrote, edited, pinned or deleted stays so.

        Raises:
            ConfigurationError: There is no model.
            NotFoundError: There is no such conversation.
        """
        return self._memory.run(self._regenerate(self._memory.key(thread_id, user_id, agent_id), by))

    async def aregenerate(
        self, *, thread_id: str, by: str, user_id: str | None = None, agent_id: str | None = None
    ) -> BoardResult:
        """The async twin of `regenerate`."""
        return await self._memory.arun(self._regenerate(self._memory.key(thread_id, user_id, agent_id), by))

    def _revise(self, key: ConversationKey) -> Flow[BoardResult]:
        name = None if self._memory.model is None else self._memory.model.name
        return revise(key, self._memory.board_policy, model=name)

    def _regenerate(self, key: ConversationKey, by: str) -> Flow[BoardResult]:
        yield from edit(key, "regenerate", by=person(by))
        return (yield from self._revise(key))

    def _add(
        self, key: ConversationKey, kind: Kind, text: str, by: str, entity_type: str | None, state: str | None
    ) -> Flow[str]:
        if kind not in KINDS:
            raise InvalidInputError("That is no kind of item.", hint=f"Kinds are {', '.join(KINDS)}.")
        if entity_type is not None and entity_type not in ENTITY_TYPES:
            raise InvalidInputError("That is no type of entity.", hint=f"Types are {', '.join(ENTITY_TYPES)}.")
        states = STATES[kind]
        if state is not None and state not in states:
            raise InvalidInputError(f"That is no state of a {kind}.", hint=f"States are {', '.join(states)}.")
        first = state or states[0]
        written = edit(
            key,
            "add",
            by=person(by),
            kind=kind,
            entity_type=entity_type,
            text=_text(text, self._memory.redactor),
            state=first,
        )
        return str((yield from written))

    def _edit(
        self, key: ConversationKey, item: BoardItem | str, by: str, text: str | None, state: str | None
    ) -> Flow[str | None]:
        if text is None and state is None:
            raise InvalidInputError("Nothing is changed.", hint="Pass text, or state.")
        if state is not None and not any(state in states for states in STATES.values()):
            raise InvalidInputError("That is no state.", hint=f"States are {', '.join(sorted(_ALL_STATES))}.")
        return edit(
            key,
            "edit",
            by=person(by),
            item_id=_id(item),
            text=None if text is None else _text(text, self._memory.redactor),
            state=state,
        )


_ALL_STATES = {state for states in STATES.values() for state in states}


def _id(item: BoardItem | str) -> str:
    return item.id if isinstance(item, BoardItem) else item


def _text(text: str, redactor: Redactor | None) -> str:
    words = redacted_value(" ".join(clean(text).split()), redactor) if isinstance(text, str) else ""
    if not words or len(words) > LONGEST_TEXT:
        raise InvalidInputError(
            f"An item is a text of 1 to {LONGEST_TEXT} characters.", hint="Write it shorter, or as several items."
        )
    return str(words)


def _summary(text: str, redactor: Redactor | None) -> str:
    if not isinstance(text, str) or len(text) > LONGEST_SUMMARY:
        raise InvalidInputError(
            f"A summary is a text of at most {LONGEST_SUMMARY:,} characters.", hint="An empty one takes it back."
        )
    return str(redacted_value(clean(text).strip(), redactor))
