"""A graph's messages, and syncing the store to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_supabase_memory.agents.run import checkpoints, state_owners, task_ids
from langchain_supabase_memory.agents.run.alignment import align, align_around, comparable
from langchain_supabase_memory.agents.run.fail_open import FailOpen, GuardedTask
from langchain_supabase_memory.checks import boolean, choice
from langchain_supabase_memory.context.load import VIA
from langchain_supabase_memory.errors import InvalidInputError, UnavailableError
from langchain_supabase_memory.language.messages import codec, content
from langchain_supabase_memory.memory.outbox_delivery import flush_and_append, pending
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
"""What happens to messages that disappear from the start of a graph's state, or from earlier turns during a run.

- `"keep"`: they were trimmed to save tokens; the memory keeps them.
- `"supersede"`: the application removed them; the memory no longer returns them.
"""


@dataclass(frozen=True)
class Rules:
    """How to interpret a message that is missing from a state.

    Attributes:
        on_trim: What happens to messages that disappear from the state's start.
        sends_history: Whether the application stores the history itself and sends all of it with each run, so that a
            message missing after its first one was removed.

    Raises:
        ConfigurationError: A value is not one of its choices.
    """

    on_trim: OnTrim = "keep"
    sends_history: bool = False

    def __post_init__(self) -> None:
        choice("on_trim", self.on_trim, ("keep", "supersede"))
        boolean("sends_history", self.sends_history)


_CHECKPOINT: Final = "checkpoint"
"""The key of a message's metadata for the checkpoint that its graph's step ran from."""

_LOST: Final = 100
"""Among how many of the newest messages a resumed run looks for what it makes anew."""

_TRIES: Final = 6
"""How often a state is sent: first only what seems new, then all of it, aligned, and with its earlier messages."""

_BEYOND: Final = 20
"""Aligning a state reads twice its number of messages, plus this many."""


@dataclass(frozen=True)
class GraphState:
    """A graph's messages, in three parts.

    Attributes:
        system: The developer's system messages at the start, which are neither stored nor counted in the budget.
        branch: The history on this branch of the graph.
        current: The current turn, from the user's last message on.
        lineage: Where the state comes from.
        record: What was last stored on this branch of the graph, if the state has it.
        origin: The original state, if other middleware may have changed these messages for one request.
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
        """The messages that belong to the conversation."""
        return content.conversation_messages(self.messages)


def graph_state(
    messages: object,
    config: Mapping[str, Any] | None = None,
    *,
    record: StateRecord | None = None,
    input_key: str = "messages",
) -> GraphState:
    """Split a graph's messages into their parts.

    Args:
        messages: A list of messages, or anything that LangChain converts to messages.
        config: The run's configuration.
        record: What was last stored on this branch of the graph, if the state has it.
        input_key: The key of the graph's state that holds the messages.

    Raises:
        InvalidInputError: They are not messages.
    """
    listed = codec.as_messages(messages)
    task_ids.name(listed, config)
    codec.ensure_ids(listed)
    codec.separate_ids(listed)
    codec.write_ids_back(messages, listed)
    front = next((place for place, each in enumerate(listed) if not isinstance(each, SystemMessage)), len(listed))
    rest = listed[front:]
    asked = [
        place for place, each in enumerate(rest) if isinstance(each, HumanMessage) and content.is_conversation(each)
    ]
    start = asked[-1] if asked else len(rest)
    return GraphState(listed[:front], rest[:start], rest[start:], branches.lineage(config), record, None, input_key)


def store(guard: FailOpen, key: ConversationKey, messages: Sequence[BaseMessage]) -> Effects[None]:
    """Store a run's messages; existing ones are unchanged, and those that fail wait in the outbox.

    Args:
        guard: Handles a failure.
        key: The conversation.
        messages: The new messages.
    """
    yield from guard.attempt(_store(guard.memory, key, messages), _storing(messages), key)


def _store(memory: SupabaseMemory, key: ConversationKey, messages: Sequence[BaseMessage]) -> Flow[None]:
    yield from flush_and_append(memory._services, key, messages, metadata={"via": VIA}, replace=False)


def _storing(messages: Sequence[BaseMessage]) -> GuardedTask:
    """Create the task of storing messages; if it fails, they wait in the outbox."""
    return GuardedTask("The messages could not be stored; they wait in the outbox", messages)


_UNMOVED: Final = GuardedTask("Messages removed from the graph's state could not be removed from the memory")


def store_new(guard: FailOpen, key: ConversationKey, run: GraphState, *, rules: Rules) -> Effects[StateRecord | None]:
    """Sync the store to a graph's state; messages that fail wait in the outbox.

    Args:
        guard: Handles a failure.
        key: The conversation.
        run: The state.
        rules: How to interpret a missing message.

    Returns:
        The record to remember; `None` if nothing was stored.
    """
    changes = diff(guard.memory, key, run, rules=rules)
    return None if changes is None else (yield from changes.stored(guard))


def diff(memory: SupabaseMemory, key: ConversationKey, run: GraphState, *, rules: Rules) -> StateDiff | None:
    """Return what may be new in a graph's state; `None` if nothing is."""
    changes = StateDiff.compute(memory, key, run, rules)
    return None if changes.is_done or not run.messages else changes


def removals(memory: SupabaseMemory, key: ConversationKey, run: GraphState, *, rules: Rules) -> StateDiff | None:
    """Return what the state contained when last stored and lacks at the start of a run; `None` if nothing is missing.

    Args:
        memory: The memory.
        key: The conversation.
        run: The state, with the run's question.
        rules: How to interpret a missing message.
    """
    changes = StateDiff.compute(memory, key, run, rules)
    if changes.own_messages is None or changes.own_messages.lacks_nothing(changes.ids()):
        return None
    return replace(changes, stores=False)


def moves(memory: SupabaseMemory, key: ConversationKey, run: GraphState, *, rules: Rules) -> StateDiff | None:
    """Return a diff that syncs the store to a state's history without storing; `None` if both are known to agree.

    Messages removed from the history are superseded, and messages that the history has again are restored.

    Args:
        memory: The memory.
        key: The conversation.
        run: The state, with the run's question.
        rules: How to interpret a missing message.
    """
    changes = StateDiff.compute(memory, key, run, rules)
    is_known = changes.is_newest and changes.stored_count >= len(changes.messages) - len(run.current)
    is_told = rules.sends_history or checkpoints.may_have_removed(run.lineage)
    if not run.messages or not (run.lineage.checkpoint_id or (is_told and not is_known)):
        return None
    return replace(changes, stores=False)


@dataclass(frozen=True)
class MissingMessages:
    """Messages that a graph stored and a state lacks, perhaps because it never had them. Nothing was stored.

    Attributes:
        ids: The ids of these messages.
        run: The server run that stored them and never finished; `None` if any run did.
    """

    ids: Sequence[str]
    run: str | None = None


@dataclass(frozen=True)
class StateDiff:
    """The part of a graph's state that may be new, and the flow that syncs the store to it.

    Attributes:
        memory: The memory.
        key: The conversation.
        run: The state.
        messages: The state's messages to compare.
        record: The last known stored record.
        own_messages: That record, if it comes from this state itself.
        digests: The digests of the compared messages.
        stored_count: How many of them are known to be stored unchanged.
        is_newest: Whether nothing else is known to be stored after them.
        rules: How to interpret a missing message.
        stores: Whether new messages are stored; otherwise only removed ones are superseded.
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
        """Compute the diff of a state; if the state has no record, use the one that this process remembers."""
        own = _of_this(run.record, key, memory._services.records)
        record, messages = own or memory._services.records.get(key), run.messages
        if record is not None and record.first is not None:
            messages = messages[next((place for place, each in enumerate(messages) if each.id == record.first), 0) :]
        chain = branches.digests(messages)
        known, is_newest = branches.known_count(messages, chain, record)
        return cls(memory, key, run, messages, record, own, chain, known, is_newest, rules)

    @property
    def is_done(self) -> bool:
        """Whether the state is known to be stored unchanged, and the run continues from it."""
        is_stored = self.is_newest and self.stored_count == len(self.messages)
        return is_stored and not self.run.lineage.checkpoint_id and not self._may_have_lost(is_moved=False)

    def _may_have_lost(self, *, is_moved: bool) -> bool:
        """Return whether messages may be stored whose checkpoint never was. Arguments as of `_lacks_nothing`."""
        known = self.memory._services.records.get(self.key)
        is_own = known is not None and self.record is not None and known.token == self.record.token
        return (
            self.run.lineage.is_resumed and checkpoints.may_have_removed(self.run.lineage) and (is_moved or not is_own)
        )

    @property
    def task(self) -> GuardedTask:
        """The task; if it fails, messages that may be new wait in the outbox."""
        messages = self.messages[self.stored_count :] if self.stores else []
        if self._may_resend or not self._is_mine:  # the application sends the history again, perhaps under new ids
            messages = [each for each in messages if any(each is one for one in self.run.current)]
        return _storing(content.conversation_messages(messages)) if self.stores else _UNMOVED

    @property
    def _may_resend(self) -> bool:
        """Whether messages of the history may have new ids: without a checkpointer, the application sends it again."""
        return bool(self.run.branch) and self.run.lineage.saver is None

    @property
    def _is_mine(self) -> bool:
        """Whether the state is known to belong to this owner without a database call."""
        owner = self._owner
        return owner is None or (self.key.user_id is not None and owner == branches.owner_digest(self.key.user_id))

    @property
    def _owner(self) -> str | None:
        """The owner of the state's history, as a digest; `None` if it is unknown."""
        if self.own_messages is not None and self.own_messages.owner is not None:
            return self.own_messages.owner.user
        return state_owners.owner_of(self.run.lineage) if self.run.branch else None

    def stored(self, guard: FailOpen) -> Effects[StateRecord | None]:
        """Store new messages; those that fail wait in the outbox. Return the record, `None` if nothing was stored."""
        return (yield from self.resolved(guard, (yield from guard.attempt(self.flow(), self.task, self.key))))

    def resolved(self, guard: FailOpen, result: StateRecord | MissingMessages | None) -> Effects[StateRecord | None]:
        """Return the result of storing; if the state lacks messages, read its checkpoints and store again.

        Args:
            guard: Handles a failure.
            result: The result of `flow`, or `None` if it failed.
        """
        removed: list[str] | None = None
        ended = None
        for _ in range(_TRIES):
            if not isinstance(result, MissingMessages):
                return result
            if result.run is None:
                gone = yield from self._removed(result.ids)
                lost = yield from self._lost(guard, result.ids)
                removed = [*(removed or ()), *gone, *lost]
            else:
                ended = result.run
                if (yield from checkpoints.is_rolled_back(self.run.lineage, ended)):
                    removed = [*(removed or ()), *result.ids]
            result = yield from guard.attempt(self.flow(removed, ended), self.task, self.key)
        return None

    def _removed(self, ids: Sequence[str]) -> Effects[Sequence[str]]:
        """Return which missing messages were removed from the state."""
        if self.own_messages is not None:
            return self.own_messages.ids_of(ids)
        if self.rules.sends_history:
            return ids
        return (yield from checkpoints.removed_ids(self.run.lineage, self.run.input_key, ids))

    def _lost(self, guard: FailOpen, ids: Sequence[str]) -> Effects[list[str]]:
        """Return which missing messages a resumed run makes anew: what was stored, and the checkpoint never written."""
        if not self.run.lineage.is_resumed:
            return []
        rows = yield from guard.attempt(
            conversations.read_rows(self.key, last=_LOST, columns=["message_id", "role", "metadata"]),
            _UNMOVED,
            self.key,
        )
        missing = {*ids}
        stored = {
            row["message_id"]: (row["metadata"] or {}).get(_CHECKPOINT)
            for row in rows or ()
            if row["role"] != "user" and row["message_id"] in missing
        }
        gone = yield from checkpoints.unwritten(self.run.lineage, {each for each in stored.values() if each})
        return [message_id for message_id, checkpoint in stored.items() if checkpoint in gone]

    def flow(
        self, removed: Sequence[str] | None = None, ended: str | None = None
    ) -> Flow[StateRecord | MissingMessages]:
        """Store new messages; if the store differs from the expected state, sync it.

        This takes one round trip, unless the state diverged from the stored messages or must be aligned.

        Args:
            removed: The ids of stored messages that were removed from the state; `None` if that is unknown.
            ended: The server run that stored before, if it was checked.

        Returns:
            The record to remember; or the missing messages, if it is unknown whether the state ever had them.

        Raises:
            InvalidInputError: The state belongs to another user.
        """
        messages, chain, known, token = self.messages, self.digests, self.stored_count, uuid4().hex
        record, own = self.record, self.own_messages
        manifest = (
            self.memory._services.packs.pop(self.key, self.run.messages, messages[known:]) if self.stores else None
        )
        first = None if record is None or len(messages) == len(self.run.messages) else record.first
        may_resend = self._may_resend
        is_told = removed is not None
        if not is_told and self._lacks_nothing(is_moved=False):
            removed = []
        if may_resend and pending(self.memory._services, self.key):
            # First, so that the history can be compared with what waited.
            yield from flush_and_append(self.memory._services, self.key, [])
        update = BranchUpdate({})
        for _ in range(_TRIES):
            update.document = {
                "token": token,
                "expected": None if record is None else record.token,
                "after": codec.row_id(messages[known - 1].id) if known else None,
                "ids": [codec.row_id(message.id) for message in messages[known:]],
                "resent": self._history_ids(messages[known:]) if may_resend else None,
                "named": self.run.lineage.checkpoint_id,
                "removed": removed,
                "since": self._ids_since,
                "turn": codec.row_id(self.run.current[0].id) if self.run.current else None,
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
                if "foreign" in answer:  # from another database: the state's messages are new here
                    record = own = None
                elif "unfinished" in answer:
                    return MissingMessages(answer["lacking"], answer["unfinished"])
                elif "lacking" in answer:
                    if (own is None and not self.rules.sends_history) or self.run.lineage.is_resumed:
                        return MissingMessages(answer["lacking"])
                    removed = answer["lacking"] if own is None else own.ids_of(answer["lacking"])
                    continue
                elif "unfamiliar" in answer:
                    may_resend = False
                    place = yield from _align(self.memory, self.key, self.run)
                    messages = self.run.messages[place:]
                    chain, first = branches.digests(messages), messages[0].id if place else None
                elif not is_told and not self._lacks_nothing(is_moved=True):
                    removed = None
                known = 0
        else:
            raise UnavailableError("Others changed the conversation during each attempt.", hint="Try again.")
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
        # If nothing was sent, the number stored unchanged cannot have grown: an edit is still to be sent.
        sent = len(messages) if self.stores else min(stored_count, turn)
        marks = branches.turn_marks(messages[:sent], chain, min(turn, sent))
        owner = StateOwner.from_answer(self.key, answer) or (None if record is None else record.owner)
        ids = [codec.row_id(message.id) for message in messages[:end] if content.is_conversation(message)]
        made = StateRecord(token, marks, first, branches.shorten_ids(ids), owner)
        self.memory._services.records.put(self.key, made)
        state_owners.keep(self.run.lineage, owner)
        return made

    def _history_ids(self, messages: Sequence[BaseMessage]) -> list[str]:
        """Return the stored ids of those messages that belong to the conversation and precede the current turn."""
        turn = {id(each) for each in self.run.current}
        return [codec.row_id(each.id) for each in content.conversation_messages(messages) if id(each) not in turn]

    def ids(self) -> list[str]:
        """Return the stored ids of the state's messages."""
        return [codec.row_id(message.id) for message in self.messages]

    def _lacks_nothing(self, *, is_moved: bool) -> bool:
        """Return whether the state is known to have lost no message.

        Args:
            is_moved: Whether something else was stored since.
        """
        if self._may_have_lost(is_moved=is_moved):
            return False
        if self.own_messages is not None:
            return self.is_newest or self.own_messages.lacks_nothing(self.ids())
        lineage = self.run.lineage
        tells = self.rules.sends_history or checkpoints.may_have_removed(lineage)
        return lineage.checkpoint_id or not tells or (self.is_newest and not is_moved)

    @property
    def _ids_since(self) -> str | None:
        """The message from which missing ones count: within a run, earlier turns that disappear were trimmed."""
        if not self.stores or self.own_messages is None or self.rules.on_trim == "supersede" or not self.run.current:
            return None
        return codec.row_id(self.run.current[0].id)

    def _owner_of(self, record: StateRecord | None) -> dict[str, Any]:
        """Return the owner fields that are sent to the database, or requested from it."""
        told: dict[str, Any] = {} if self._owner is None else {"owner": self._owner}
        owner = None if record is None else record.owner
        if owner is None:
            return {**told, "database": None}
        return (
            told if owner.database == self.memory._services.records.database else {**told, "database": owner.database}
        )

    def _send(self, messages: Sequence[BaseMessage], update: BranchUpdate, manifest: Lists | None) -> Flow[None]:
        lasting = content.conversation_messages(messages)
        # The first page lists all ids, so messages on later pages do not count as missing.
        for first in range(0, max(len(lasting), 1), PAGE):
            page, whole = lasting[first : first + PAGE], update if first == 0 else None
            shown = manifest if first + PAGE >= len(lasting) else None  # on the last page, which has the answer
            yield from flush_and_append(
                self.memory._services, self.key, page, metadata=self._metadata(page), branch=whole, manifest=shown
            )

    def _metadata(self, messages: Sequence[BaseMessage]) -> dict[str, str]:
        """Return what is stored with messages: the server's run, and the checkpoint that is to hold an answer."""
        lineage = self.run.lineage
        metadata = {"via": VIA} if lineage.run is None else {"via": VIA, "run": lineage.run}
        is_said = all(isinstance(each, HumanMessage) for each in messages)
        if is_said or lineage.place is None or not checkpoints.may_have_removed(lineage):
            return metadata
        return {**metadata, _CHECKPOINT: lineage.place["checkpoint_id"]}


def _of_this(record: StateRecord | None, key: ConversationKey, records: StateRecords) -> StateRecord | None:
    """Return a state's record, if it is about this conversation; a copied thread's record is about another one."""
    if record is None or record.owner is None:
        return record
    owner, database = record.owner, records.database
    is_here = (owner.agent_id, owner.thread_id) == (key.agent_id, key.thread_id)
    return record if is_here and database in (None, owner.database) else None


def _of_another_run() -> InvalidInputError:
    return InvalidInputError(
        "The graph's state holds another user's conversation under the same thread and checkpointer.",
        hint="Give each user their own threads: include the user's id in thread_id, such as f'{user_id}:chat'. If it "
        "is this user's, name the user in this run, too: the config of a checkpoint holds no user_id.",
    )


def _align(memory: SupabaseMemory, key: ConversationKey, run: GraphState) -> Flow[int]:
    """Give a state's messages the ids of their stored copies, in place.

    Returns:
        How many messages at the state's start precede all stored ones and no longer count.
    """
    columns: list[conversations.Column] = ["message_id", "role", "text", "payload"]
    messages, redactor = run.conversation, memory._services.redactor
    history = len(content.conversation_messages(run.branch))
    state = [comparable(codec.to_row(message, redactor)) for message in messages]
    ids = [codec.row_id(message.id) for message in messages]
    wanted = min(2 * len(messages) + _BEYOND, PAGE)
    rows = yield from conversations.read_rows(key, last=wanted, columns=columns)
    stored, is_whole = list(map(comparable, rows)), len(rows) < wanted
    by_id = {row["message_id"]: number for number, row in enumerate(rows)}
    known = {place: by_id[each] for place, each in enumerate(ids) if each in by_id}
    if known:
        places = align_around(state, history, stored, known, is_whole=is_whole)
    else:
        places = align(state, history, stored, is_whole=is_whole)
    if places is None and not known and len(rows) == wanted and 1 < history <= PAGE:
        # The conversation branched long ago: then the history is the start of the stored messages.
        rows = yield from conversations.read_rows(key, from_sequence=0, to_sequence=history - 1, columns=columns)
        if list(map(comparable, rows)) == state[:history]:
            places = {place: place for place in range(history)}
    if places is None or places == known:  # the ids of the others are their own
        return 0
    for place, row in places.items():
        messages[place].id = rows[row]["message_id"]
    return next(place for place, message in enumerate(run.messages) if message is messages[min(places)])
