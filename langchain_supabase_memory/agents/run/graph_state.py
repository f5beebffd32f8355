"""The thread of a run: a graph's messages, and how the store is brought to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_supabase_memory.agents.run import checkpoints, state_owners, task_ids
from langchain_supabase_memory.agents.run.alignment import align, comparable
from langchain_supabase_memory.agents.run.fail_open import FailOpen, GuardedTask
from langchain_supabase_memory.checks import boolean, choice
from langchain_supabase_memory.context.load import VIA
from langchain_supabase_memory.errors import InvalidInputError, UnavailableError
from langchain_supabase_memory.language.messages import codec, content
from langchain_supabase_memory.memory.outbox_delivery import flush_and_append
from langchain_supabase_memory.operations import branch as branches
from langchain_supabase_memory.operations import conversations
from langchain_supabase_memory.operations.branch import ALONE, BranchUpdate, Lineage, StateOwner, StateRecord
from langchain_supabase_memory.operations.pages import PAGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.effects import Effects, Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.branch import StateRecords
    from langchain_supabase_memory.operations.manifests.encoding import Lists
    from langchain_supabase_memory.values import ConversationKey

OnTrim: TypeAlias = Literal["keep", "supersede"]
"""What becomes of messages that disappear from the beginning of a graph's state, or during a run from earlier turns.

- `"keep"`: they were trimmed to save tokens; the memory keeps them.
- `"supersede"`: the application removed them; the memory shows them no more.
"""


@dataclass(frozen=True)
class Rules:
    """What it means that a state lacks a message.

    Attributes:
        on_trim: What becomes of messages that disappear from the state's beginning.
        sends_history: Whether the application keeps the history itself and sends all of it with each run, so that what
            it leaves out behind its first message was removed.

    Raises:
        ConfigurationError: A value is none of its choices.
    """

    on_trim: OnTrim = "keep"
    sends_history: bool = False

    def __post_init__(self) -> None:
        choice("on_trim", self.on_trim, ("keep", "supersede"))
        boolean("sends_history", self.sends_history)


_TRIES: Final = 6
"""How often a state is sent: as it seems to be new, as a whole, aligned, and with what it held."""

_BEYOND: Final = 20
"""How many more messages than twice those of a state are read to align it."""


@dataclass(frozen=True)
class GraphState:
    """A graph's messages, in three parts.

    Attributes:
        system: System messages at the front: the developer's own, which are neither stored nor fitted.
        branch: The history, as this branch of the graph has it.
        current: The current turn: from the user's last message on.
        lineage: Where the state comes from.
        record: What was stored last on this branch of the graph, where the state says so.
        origin: The state that these messages stand for, if other middleware may have changed them for one request.
        input_key: The key of the graph's state that holds the messages.
    """

    system: list[BaseMessage]
    branch: list[BaseMessage]
    current: list[BaseMessage]
    lineage: Lineage = ALONE
    record: StateRecord | None = None
    origin: GraphState | None = None
    input_key: str = "messages"

    @property
    def messages(self) -> list[BaseMessage]:
        """The history and the current turn."""
        return [*self.branch, *self.current]

    @property
    def conversation(self) -> list[BaseMessage]:
        """What belongs to the conversation."""
        return content.conversation_messages(self.messages)


def graph_state(
    messages: object,
    config: Mapping[str, Any] | None = None,
    *,
    record: StateRecord | None = None,
    input_key: str = "messages",
) -> GraphState:
    """Cut a graph's messages into their parts.

    Args:
        messages: A list of messages, or what LangChain makes messages of.
        config: The run's configuration.
        record: What was stored last on this branch of the graph, where the state says so.
        input_key: The key of the graph's state that holds the messages.

    Raises:
        InvalidInputError: They are no messages.
    """
    listed = codec.as_messages(messages)
    task_ids.name(listed, config)
    codec.ensure_ids(listed)
    codec.separate_ids(listed)
    front = next((place for place, each in enumerate(listed) if not isinstance(each, SystemMessage)), len(listed))
    rest = listed[front:]
    asked = [
        place for place, each in enumerate(rest) if isinstance(each, HumanMessage) and content.is_conversation(each)
    ]
    start = asked[-1] if asked else len(rest)
    return GraphState(listed[:front], rest[:start], rest[start:], branches.lineage(config), record, None, input_key)


def store(guard: FailOpen, key: ConversationKey, messages: Sequence[BaseMessage]) -> Effects[None]:
    """Store messages of a run; what is there already stays, and what fails waits.

    Args:
        guard: What is done about a failure.
        key: The conversation.
        messages: What is new.
    """
    yield from guard.attempt(_store(guard.memory, key, messages), _storing(messages), key)


def _store(memory: SupabaseMemory, key: ConversationKey, messages: Sequence[BaseMessage]) -> Flow[None]:
    yield from flush_and_append(memory._services, key, messages, metadata={"via": VIA}, replace=False)


def _storing(messages: Sequence[BaseMessage]) -> GuardedTask:
    """The task of storing messages: if it fails, they wait."""
    return GuardedTask("The messages could not be stored; they wait in the outbox", messages)


_UNMOVED: Final = GuardedTask("What was removed from the graph's state could not be taken away")


def store_new(guard: FailOpen, key: ConversationKey, run: GraphState, *, rules: Rules) -> Effects[StateRecord | None]:
    """Bring the store to a graph's state; what fails waits.

    Args:
        guard: What is done about a failure.
        key: The conversation.
        run: The state.
        rules: What it means that the state lacks a message.

    Returns:
        What is to be remembered of it; `None` if nothing was stored.
    """
    changes = diff(guard.memory, key, run, rules=rules)
    return None if changes is None else (yield from changes.stored(guard))


def diff(memory: SupabaseMemory, key: ConversationKey, run: GraphState, *, rules: Rules) -> StateDiff | None:
    """What of a graph's state may be new; `None` if nothing is."""
    changes = StateDiff.compute(memory, key, run, rules)
    return None if changes.is_done or not run.messages else changes


def removals(memory: SupabaseMemory, key: ConversationKey, run: GraphState, *, rules: Rules) -> StateDiff | None:
    """What the state held when it was stored last and lacks where a run begins; `None` if it lacks nothing.

    Args:
        memory: The memory.
        key: The conversation.
        run: The state, with the question of the run.
        rules: What it means that the state lacks a message.
    """
    changes = StateDiff.compute(memory, key, run, rules)
    if changes.own_messages is None or changes.own_messages.lacks_nothing(changes.ids()):
        return None
    return replace(changes, stores=False)


def moves(memory: SupabaseMemory, key: ConversationKey, run: GraphState, *, rules: Rules) -> StateDiff | None:
    """What brings the store to a state's history and stores nothing; `None` if the two are known to agree.

    What was removed from the history is taken away, and what the history has again comes back.

    Args:
        memory: The memory.
        key: The conversation.
        run: The state, with the question of the run.
        rules: What it means that the state lacks a message.
    """
    changes = StateDiff.compute(memory, key, run, rules)
    is_known = changes.is_newest and changes.stored_count >= len(changes.messages) - len(run.current)
    is_told = rules.sends_history or checkpoints.may_have_removed(run.lineage)
    if not run.messages or not (run.lineage.checkpoint_id or (is_told and not is_known)):
        return None
    return replace(changes, stores=False)


@dataclass(frozen=True)
class MissingMessages:
    """A state lacks messages that a graph stored; whether it held them once is not known. Nothing was stored.

    Attributes:
        ids: Theirs.
        run: The run of a server that stored them and came to no answer; `None`: any did.
    """

    ids: Sequence[str]
    run: str | None = None


@dataclass(frozen=True)
class StateDiff:
    """What of a graph's state may be new, and the flow that brings the store to it.

    Attributes:
        memory: The memory.
        key: The conversation.
        run: The state.
        messages: Those of its messages that count.
        record: What was stored last, as far as is known.
        own_messages: The same, where it is what this very state held.
        digests: Of the messages that count.
        stored_count: How many of them are stored as they are, as far as is known.
        is_newest: Whether nothing else was stored, as far as is known.
        rules: What it means that the state lacks a message.
        stores: Whether what is new is stored; else only what was removed is taken away.
    """

    memory: SupabaseMemory
    key: ConversationKey
    run: GraphState
    messages: list[BaseMessage]
    record: StateRecord | None
    own_messages: StateRecord | None
    digests: list[str]
    stored_count: int
    is_newest: bool
    rules: Rules
    stores: bool = True

    @classmethod
    def compute(cls, memory: SupabaseMemory, key: ConversationKey, run: GraphState, rules: Rules) -> StateDiff:
        """Those of a state; where that does not say what was stored last, this process may know it."""
        own = _of_this(run.record, key, memory._services.records)
        record, messages = own or memory._services.records.get(key), run.messages
        if record is not None and record.first is not None:
            messages = messages[next((place for place, each in enumerate(messages) if each.id == record.first), 0) :]
        chain = branches.digests(messages)
        known, is_newest = branches.known_count(messages, chain, record)
        return cls(memory, key, run, messages, record, own, chain, known, is_newest, rules)

    @property
    def is_done(self) -> bool:
        """Whether the state is stored as it is, as far as is known, and is where the run goes on."""
        return self.is_newest and self.stored_count == len(self.messages) and not self.run.lineage.checkpoint_id

    @property
    def task(self) -> GuardedTask:
        """What is to be done; if it fails, what may be new waits."""
        messages = self.messages[self.stored_count :] if self.stores else []
        if not self._is_mine:
            messages = [each for each in messages if any(each is one for one in self.run.current)]
        return _storing(content.conversation_messages(messages)) if self.stores else _UNMOVED

    @property
    def _is_mine(self) -> bool:
        """Whether the state is known to be this owner's without asking the database."""
        owner = self._owner
        return owner is None or (self.key.user_id is not None and owner == branches.owner_digest(self.key.user_id))

    @property
    def _owner(self) -> str | None:
        """Whose the state's history is, as a digest; `None` if nothing says so."""
        if self.own_messages is not None and self.own_messages.owner is not None:
            return self.own_messages.owner.user
        return state_owners.owner_of(self.run.lineage) if self.run.branch else None

    def stored(self, guard: FailOpen) -> Effects[StateRecord | None]:
        """Store what is new; what fails waits. Returns what is to be remembered, `None` if nothing was stored."""
        return (yield from self.resolved(guard, (yield from guard.attempt(self.flow(), self.task, self.key))))

    def resolved(self, guard: FailOpen, result: StateRecord | MissingMessages | None) -> Effects[StateRecord | None]:
        """What came of storing; where the state lacks something, once its checkpoints have told what that means.

        Args:
            guard: What is done about a failure.
            result: What `flow` returned, or `None` if it failed.
        """
        removed: list[str] | None = None
        ended = None
        for _ in range(_TRIES):
            if not isinstance(result, MissingMessages):
                return result
            if result.run is None:
                gone = yield from checkpoints.removed_ids(self.run.lineage, self.run.input_key, result.ids)
                removed = [*(removed or ()), *gone]
            else:
                ended = result.run
                if (yield from checkpoints.is_rolled_back(self.run.lineage, ended)):
                    removed = [*(removed or ()), *result.ids]
            result = yield from guard.attempt(self.flow(removed, ended), self.task, self.key)
        return None

    def flow(
        self, removed: Sequence[str] | None = None, ended: str | None = None
    ) -> Flow[StateRecord | MissingMessages]:
        """Store what is new; where the store has something else than was thought, bring it to the state.

        One round trip, but where the state parted from what is stored or is aligned.

        Args:
            removed: The ids of stored messages that the state held and lacks; `None` if that is not known.
            ended: The run of a server that stored before, where it was looked at.

        Returns:
            What is to be remembered; or what the state lacks, if nobody here knows whether it held that once.

        Raises:
            InvalidInputError: The state is another user's.
        """
        messages, chain, known, token = self.messages, self.digests, self.stored_count, uuid4().hex
        record, own = self.record, self.own_messages
        manifest = (
            self.memory._services.packs.pop(self.key, self.run.messages, messages[known:]) if self.stores else None
        )
        first = None if record is None or len(messages) == len(self.run.messages) else record.first
        # Without a checkpointer it may be resent with ids that were made just now.
        strict = bool(self.run.branch) and self.run.lineage.saver is None
        is_told = removed is not None
        if not is_told and self._lacks_nothing(is_moved=False):
            removed = []
        update = BranchUpdate({})
        for _ in range(_TRIES):
            update.document = {
                "token": token,
                "expected": None if record is None else record.token,
                "after": codec.row_id(messages[known - 1].id) if known else None,
                "ids": [codec.row_id(message.id) for message in messages[known:]],
                "strict": strict,
                "named": self.run.lineage.checkpoint_id,
                "removed": removed,
                "since": self._ids_since,
                "turn": self.run.current[0].id if self.run.current else None,
                "all": self.rules.on_trim == "supersede",
                "run": self.run.lineage.run,
                "ended": ended,
                **self._owner_of(own or record),
            }
            try:
                yield from self._send(messages[known:] if self.stores else [], update, manifest)
                break
            except conversations.OtherConversationError as elsewhere:
                answer = elsewhere.answer
                if answer.get("foreign") == "owner":
                    raise _of_another_run() from None
                if "foreign" in answer:  # another database's: what the state holds is new here
                    record = own = None
                elif "unfinished" in answer:
                    return MissingMessages(answer["lacking"], answer["unfinished"])
                elif "lacking" in answer:
                    if own is None and not self.rules.sends_history:
                        return MissingMessages(answer["lacking"])
                    removed = answer["lacking"] if own is None else own.ids_of(answer["lacking"])
                    continue
                elif "unfamiliar" in answer:
                    strict = False
                    place = yield from _align(self.memory, self.key, self.run)
                    messages = self.run.messages[place:]
                    chain, first = branches.digests(messages), messages[0].id if place else None
                elif not is_told and not self._lacks_nothing(is_moved=True):
                    removed = None
                known = 0
        else:
            raise UnavailableError("The conversation was changed by others at each try.", hint="Try again.")
        return self._with_record(token, messages, chain, known, first, update.answer, own or record)

    def _with_record(
        self,
        token: str,
        messages: Sequence[BaseMessage],
        chain: Sequence[str],
        stored_count: int,
        first: str | None,
        answer: Mapping[str, Any],
        record: StateRecord | None,
    ) -> StateRecord:
        turn = len(messages) - len(self.run.current)
        end = len(messages) if self.stores else turn
        # Where nothing was sent, no more is stored as it is now than was before: an edit is still to be sent.
        sent = len(messages) if self.stores else min(stored_count, turn)
        marks = branches.turn_marks(messages[:sent], chain, min(turn, sent))
        owner = StateOwner.from_answer(self.key, answer) or (None if record is None else record.owner)
        ids = [codec.row_id(message.id) for message in messages[:end] if content.is_conversation(message)]
        made = StateRecord(token, marks, first, branches.shorten_ids(ids), owner)
        self.memory._services.records.put(self.key, made)
        state_owners.keep(self.run.lineage, owner)
        return made

    def ids(self) -> list[str]:
        """The ids of the state's messages, as they are stored."""
        return [codec.row_id(message.id) for message in self.messages]

    def _lacks_nothing(self, *, is_moved: bool) -> bool:
        """Whether it is known that the state held nothing that it lacks.

        Args:
            is_moved: Whether something else was stored since.
        """
        if self.own_messages is not None:
            return self.is_newest or self.own_messages.lacks_nothing(self.ids())
        lineage = self.run.lineage
        tells = self.rules.sends_history or checkpoints.may_have_removed(lineage)
        return lineage.checkpoint_id or not tells or (self.is_newest and not is_moved)

    @property
    def _ids_since(self) -> str | None:
        """Where a lack counts from: within a run, what disappears of earlier turns was trimmed."""
        if not self.stores or self.own_messages is None or self.rules.on_trim == "supersede" or not self.run.current:
            return None
        return codec.row_id(self.run.current[0].id)

    def _owner_of(self, record: StateRecord | None) -> dict[str, Any]:
        """What the database is told, or asked, of the owner."""
        told: dict[str, Any] = {} if self._owner is None else {"owner": self._owner}
        owner = None if record is None else record.owner
        if owner is None:
            return {**told, "database": None}
        return (
            told if owner.database == self.memory._services.records.database else {**told, "database": owner.database}
        )

    def _send(self, messages: Sequence[BaseMessage], update: BranchUpdate, manifest: Lists | None) -> Flow[None]:
        lasting = content.conversation_messages(messages)
        # What is not sent yet is missed by nobody: the ids are all there.
        for first in range(0, max(len(lasting), 1), PAGE):
            page, whole = lasting[first : first + PAGE], update if first == 0 else None
            shown = manifest if first + PAGE >= len(lasting) else None  # with the answer, which comes last
            run = self.run.lineage.run
            metadata = {"via": VIA} if run is None else {"via": VIA, "run": run}
            yield from flush_and_append(
                self.memory._services, self.key, page, metadata=metadata, branch=whole, manifest=shown
            )


def _of_this(record: StateRecord | None, key: ConversationKey, records: StateRecords) -> StateRecord | None:
    """A state's record, if it is about this conversation; that of a thread that was copied is about another."""
    if record is None or record.owner is None:
        return record
    owner, database = record.owner, records.database
    is_here = (owner.agent_id, owner.thread_id) == (key.agent_id, key.thread_id)
    return record if is_here and database in (None, owner.database) else None


def _of_another_run() -> InvalidInputError:
    return InvalidInputError(
        "The graph's state holds another user's conversation, under the same thread and checkpointer.",
        hint="Give each user threads of their own: put the user's id into thread_id, such as f'{user_id}:chat'.",
    )


def _align(memory: SupabaseMemory, key: ConversationKey, run: GraphState) -> Flow[int]:
    """Give a state's messages the ids of those that are stored already, on the objects themselves.

    Returns:
        How many of the first are none of the state's any more: what comes before all that is stored.
    """
    columns: list[conversations.Column] = ["message_id", "role", "text", "payload"]
    messages, redactor = run.conversation, memory._services.redactor
    history = len(content.conversation_messages(run.branch))
    state = [comparable(codec.to_row(message, redactor)) for message in messages]
    wanted = min(2 * len(messages) + _BEYOND, PAGE)
    rows = yield from conversations.read_rows(key, last=wanted, columns=columns)
    places = align(state, history, list(map(comparable, rows)), is_whole=len(rows) < wanted)
    if places is None and len(rows) == wanted and 1 < history <= PAGE:
        # Left long ago for another question: then it is the beginning of what is stored.
        rows = yield from conversations.read_rows(key, from_sequence=0, to_sequence=history - 1, columns=columns)
        if list(map(comparable, rows)) == state[:history]:
            places = {place: place for place in range(history)}
    if places is None:
        return 0
    for place, stored in places.items():
        messages[place].id = rows[stored]["message_id"]
    return next(place for place, message in enumerate(run.messages) if message is messages[min(places)])
