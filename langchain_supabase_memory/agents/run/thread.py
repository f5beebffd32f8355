"""The thread of a run: a graph's messages, and how the store is brought to them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, convert_to_messages

from langchain_supabase_memory.agents.run.alignment import aligned, spoken
from langchain_supabase_memory.agents.run.guard import Guard, Task
from langchain_supabase_memory.context.load import VIA
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import codec, content
from langchain_supabase_memory.memory.delivery import deliver
from langchain_supabase_memory.operations import branch as branches
from langchain_supabase_memory.operations import conversations
from langchain_supabase_memory.operations.branch import ALONE, Lineage, Record
from langchain_supabase_memory.operations.pages import PAGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.agents.run.steps import Steps
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.manifests.codes import Lists
    from langchain_supabase_memory.values import ConversationKey

_TRIES: Final = 3
"""How often a state is sent: as it seems to be new, as a whole, and aligned."""

_BEYOND: Final = 20
"""How many more messages than twice those of a state are read to align it."""


@dataclass(frozen=True)
class Thread:
    """A graph's messages, in three parts.

    Attributes:
        system: System messages at the front: the developer's own, which are neither stored nor fitted.
        branch: The history, as this branch of the graph has it.
        current: The current turn: from the user's last message on.
        lineage: What the lack of a message means.
        record: What was stored last on this branch of the graph, where the state says so.
        origin: The state that these messages stand for, if other middleware may have changed them for one request.
    """

    system: list[BaseMessage]
    branch: list[BaseMessage]
    current: list[BaseMessage]
    lineage: Lineage = ALONE
    record: Record | None = None
    origin: Thread | None = None

    @property
    def messages(self) -> list[BaseMessage]:
        """The history and the current turn."""
        return [*self.branch, *self.current]

    @property
    def conversation(self) -> list[BaseMessage]:
        """What belongs to the conversation."""
        return content.said(self.messages)


def thread(
    messages: object, config: Mapping[str, Any] | None = None, *, trims: bool = False, record: Record | None = None
) -> Thread:
    """Cut a graph's messages into their parts.

    Args:
        messages: A list of messages, or what LangChain makes messages of.
        config: The run's configuration.
        trims: Whether the application trims the state itself.
        record: What was stored last on this branch of the graph, where the state says so.

    Raises:
        InvalidInputError: They are no messages.
    """
    try:
        listed = codec.checked(convert_to_messages(cast("Any", messages)))
    except InvalidInputError:
        raise
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InvalidInputError(
            f"The graph's messages are none ({type(error).__name__}).", hint="Pass a list of LangChain messages."
        ) from None
    codec.ensure_ids(listed)
    front = next((place for place, each in enumerate(listed) if not isinstance(each, SystemMessage)), len(listed))
    rest = listed[front:]
    asked = [place for place, each in enumerate(rest) if isinstance(each, HumanMessage) and content.was_said(each)]
    start = asked[-1] if asked else len(rest)
    lineage = branches.lineage(rest, config, trims=trims, begun=record is not None)
    return Thread(listed[:front], rest[:start], rest[start:], lineage, record)


def store(guard: Guard, key: ConversationKey, messages: Sequence[BaseMessage]) -> Steps[None]:
    """Store messages of a run; what is there already stays, and what fails waits.

    Args:
        guard: What is done about a failure.
        key: The conversation.
        messages: What is new.
    """
    yield from guard.attempt(_store(guard.memory, key, messages), _storing(messages), key)


def _store(memory: SupabaseMemory, key: ConversationKey, messages: Sequence[BaseMessage]) -> Flow[None]:
    yield from deliver(memory, key, messages, metadata={"via": VIA}, replace=False)


def _storing(messages: Sequence[BaseMessage]) -> Task:
    """The task of storing messages: if it fails, they wait."""
    return Task("The messages could not be stored; they wait in the outbox", messages)


def store_new(guard: Guard, key: ConversationKey, run: Thread) -> Steps[Record | None]:
    """Bring the store to a graph's state; what fails waits.

    Args:
        guard: What is done about a failure.
        key: The conversation.
        run: The state.

    Returns:
        What is to be remembered of it; `None` if nothing was stored.
    """
    changes = news(guard.memory, key, run)
    return None if changes is None else (yield from changes.stored(guard))


def news(memory: SupabaseMemory, key: ConversationKey, run: Thread) -> Changes | None:
    """What of a graph's state may be new; `None` if nothing is."""
    changes = Changes.of(memory, key, run)
    return None if changes.is_done or not run.messages else changes


@dataclass(frozen=True)
class Changes:
    """What of a graph's state may be new, and the flow that brings the store to it.

    Attributes:
        memory: The memory.
        key: The conversation.
        run: The state.
        messages: Those of its messages that count.
        record: What was stored last, as far as is known.
        digests: Of the messages that count.
        known: How many of them are stored as they are, as far as is known.
        is_done: Whether that is all, and nothing else was stored.
    """

    memory: SupabaseMemory
    key: ConversationKey
    run: Thread
    messages: list[BaseMessage]
    record: Record | None
    digests: list[str]
    known: int
    is_done: bool

    @classmethod
    def of(cls, memory: SupabaseMemory, key: ConversationKey, run: Thread) -> Changes:
        """Those of a state; where that does not say what was stored last, this process may know it."""
        record, messages = run.record or memory.records.of(key), run.messages
        if record is not None and record.first is not None:
            messages = messages[next((place for place, each in enumerate(messages) if each.id == record.first), 0) :]
        chain = branches.digests(messages)
        known, is_newest = branches.known(messages, chain, record)
        return cls(memory, key, run, messages, record, chain, known, is_newest and known == len(messages))

    @property
    def task(self) -> Task:
        """What is to be done; if it fails, what may be new waits."""
        return _storing(content.said(self.messages[self.known :]))

    def stored(self, guard: Guard) -> Steps[Record | None]:
        """Store what is new; what fails waits. Returns what is to be remembered, `None` if nothing was stored."""
        return (yield from guard.attempt(self.flow(), self.task, self.key))

    def flow(self) -> Flow[Record]:
        """Store what is new; where the store has something else than was thought, bring it to the state.

        One round trip, but where the state was forked or is aligned. Returns what is to be remembered.
        """
        messages, chain, known, token = self.messages, self.digests, self.known, uuid4().hex
        manifest = self.memory.packs.answered(self.key, self.run.messages, messages[known:])
        first = None if self.record is None or len(messages) == len(self.run.messages) else self.record.first
        # Without a checkpointer it may be resent with ids that were made just now.
        strict = bool(self.run.branch) and not self.run.lineage.whole
        for _ in range(_TRIES):
            try:
                after = messages[known - 1].id if known else None
                yield from self._send(messages[known:], token, after, strict, manifest)
                break
            except conversations.ElsewhereError as elsewhere:
                known = 0
                if elsewhere.is_unfamiliar:
                    strict = False
                    place = yield from _align(self.memory, self.key, self.run)
                    messages = self.run.messages[place:]
                    chain, first = branches.digests(messages), messages[0].id if place else None
        made = Record(token, branches.marks(messages, chain, len(messages) - len(self.run.current)), first)
        self.memory.records.keep(self.key, made)
        return made

    def _send(
        self, messages: Sequence[BaseMessage], token: str, after: str | None, strict: bool, manifest: Lists | None
    ) -> Flow[None]:
        branch = {
            "token": token,
            "expected": None if self.record is None else self.record.token,
            "after": None if after is None else codec.row_id(after),
            "ids": [codec.row_id(message.id) for message in messages],
            "strict": strict,
            **asdict(self.run.lineage),
        }
        lasting = content.said(messages)
        # What is not sent yet is missed by nobody: the ids are all there.
        for first in range(0, max(len(lasting), 1), PAGE):
            page, whole = lasting[first : first + PAGE], branch if first == 0 else None
            shown = manifest if first + PAGE >= len(lasting) else None  # with the answer, which comes last
            yield from deliver(self.memory, self.key, page, metadata={"via": VIA}, branch=whole, manifest=shown)


def _align(memory: SupabaseMemory, key: ConversationKey, run: Thread) -> Flow[int]:
    """Give a state's messages the ids of those that are stored already, on the objects themselves.

    Returns:
        How many of the first are none of the state's any more: what comes before all that is stored.
    """
    columns: list[conversations.Column] = ["message_id", "role", "text", "payload"]
    messages, redactor = run.conversation, memory.redactor
    history = len(content.said(run.branch))
    state = [spoken(codec.to_row(message, redactor)) for message in messages]
    wanted = min(2 * len(messages) + _BEYOND, PAGE)
    rows = yield from conversations.read_rows(key, last=wanted, columns=columns)
    places = aligned(state, history, list(map(spoken, rows)), is_whole=len(rows) < wanted)
    if places is None and len(rows) == wanted and 1 < history <= PAGE:
        # Left long ago for another question: then it is the beginning of what is stored.
        rows = yield from conversations.read_rows(key, from_sequence=0, to_sequence=history - 1, columns=columns)
        if list(map(spoken, rows)) == state[:history]:
            places = {place: place for place in range(history)}
    if places is None:
        return 0
    for place, stored in places.items():
        messages[place].id = rows[stored]["message_id"]
    return next(place for place, message in enumerate(run.messages) if message is messages[min(places)])
