"""What nodes and the middleware share: a graph's messages against the store."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, convert_to_messages

from langchain_supabase_memory import branch as branches
from langchain_supabase_memory import conversations, summaries, turns
from langchain_supabase_memory.alignment import aligned, spoken
from langchain_supabase_memory.branch import ALONE, Lineage, Record
from langchain_supabase_memory.checks import choice
from langchain_supabase_memory.context.load import VIA, context, index_now, referring
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.guard import Guard, Task
from langchain_supabase_memory.messages import codec, content
from langchain_supabase_memory.models import SummaryResult
from langchain_supabase_memory.recall.search import RECALL_SCOPES
from langchain_supabase_memory.settings import Inherited
from langchain_supabase_memory.telemetry.alerts import alert, is_poor, of_quality

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.context.recalled import Recalling
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory import SupabaseMemory
    from langchain_supabase_memory.models import ConversationKey, Reference
    from langchain_supabase_memory.recall.search import RecallScope
    from langchain_supabase_memory.settings import ContextBudget, Retention, SummaryPolicy

EVENT: Final = "supabase_memory.context"
"""The type of the custom stream event that carries a pack's report."""

INDEXING: Final = "supabase_memory.indexing"
"""The type of the custom stream event that says that older messages are being indexed."""

_STEPS: Final = 3
"""How often a state is sent: as it seems to be new, as a whole, and aligned."""

_BEYOND: Final = 20
"""How many more messages than twice those of a state are read to align it."""

SUMMARIZING: Final = "supabase_memory.summarizing"
"""The type of the custom stream event that says that a summary is being made.

Beside `type` and `thread_id` it has `by`: `self`, before this answer, which waits for it; or `worker`, for which no
answer waits, with `state`: `running` while a worker holds the conversation, `due` if a summary waits for one.
"""


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
    def said(self) -> list[BaseMessage]:
        """What belongs to the conversation."""
        return content.said(self.messages)


def thread(
    messages: Any, config: Mapping[str, Any] | None = None, *, trims: bool = False, record: Record | None = None
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
        listed = codec.checked(convert_to_messages(messages))
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


def store(
    memory: SupabaseMemory, key: ConversationKey, messages: Sequence[BaseMessage], *, replace: bool
) -> Flow[bool]:
    """Store messages of a graph.

    Returns:
        True, so that success can be told from a guarded failure.
    """
    yield from memory.deliver(key, messages, metadata={"via": VIA}, replace=replace)
    return True


def storing(messages: Sequence[BaseMessage]) -> Task:
    """The task of storing messages: if it fails, they wait."""
    return Task("The messages could not be stored; they wait in the outbox", messages)


@dataclass(frozen=True)
class Following:
    """The storing of a graph's state: what of it may be new, and the flow that brings the store to it.

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

    @property
    def task(self) -> Task:
        """What is to be done; if it fails, what may be new waits."""
        return storing(content.said(self.messages[self.known :]))

    def flow(self) -> Flow[Record]:
        """Store what is new; where the store has something else than was thought, bring it to the state.

        One round trip, but where the state was forked or is aligned. Returns what is to be remembered.
        """
        messages, chain, known, token = self.messages, self.digests, self.known, uuid4().hex
        first = None if self.record is None or len(messages) == len(self.run.messages) else self.record.first
        # Without a checkpointer it may be resent with ids that were made just now.
        strict = bool(self.run.branch) and not self.run.lineage.whole
        for _ in range(_STEPS):
            try:
                yield from self._send(messages[known:], token, messages[known - 1].id if known else None, strict)
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

    def _send(self, messages: Sequence[BaseMessage], token: str, after: str | None, strict: bool) -> Flow[None]:
        branch = {
            "token": token,
            "expected": None if self.record is None else self.record.token,
            "after": None if after is None else codec.row_id(after),
            "ids": [codec.row_id(message.id) for message in messages],
            "strict": strict,
            **asdict(self.run.lineage),
        }
        said = content.said(messages)
        # What is not sent yet is missed by nobody: the ids are all there.
        for first in range(0, max(len(said), 1), conversations.PAGE):
            page, whole = said[first : first + conversations.PAGE], branch if first == 0 else None
            yield from self.memory.deliver(self.key, page, metadata={"via": VIA}, branch=whole)


def following(memory: SupabaseMemory, key: ConversationKey, run: Thread) -> Following:
    """The storing of a state; where that does not say what was stored last, this process may know it.

    Args:
        memory: The memory.
        key: The conversation.
        run: The state.
    """
    record, messages = run.record or memory.records.of(key), run.messages
    if record is not None and record.first is not None:
        messages = messages[next((place for place, each in enumerate(messages) if each.id == record.first), 0) :]
    chain = branches.digests(messages)
    known, is_newest = branches.known(messages, chain, record)
    return Following(memory, key, run, messages, record, chain, known, is_newest and known == len(messages))


def unstored(memory: SupabaseMemory, key: ConversationKey, run: Thread) -> Following | None:
    """The storing of a state; `None` if there is nothing to store. Arguments as for `following`."""
    changes = following(memory, key, run)
    return changes if run.messages and not changes.is_done else None


def _align(memory: SupabaseMemory, key: ConversationKey, run: Thread) -> Flow[int]:
    """Give a state's messages the ids of those that are stored already, on the objects themselves.

    Returns:
        How many of the first are none of the state's any more: what comes before all that is stored.
    """
    columns: list[conversations.Column] = ["message_id", "role", "text", "payload"]
    said, redactor = content.said(run.messages), memory.redactor
    history = len(content.said(run.branch))
    state = [spoken(codec.to_row(message, redactor)) for message in said]
    wanted = min(2 * len(said) + _BEYOND, conversations.PAGE)
    rows = yield from conversations.read_rows(key, last=wanted, columns=columns)
    found = aligned(state, history, list(map(spoken, rows)), is_whole=len(rows) < wanted)
    if found is None and len(rows) == wanted and 1 < history <= conversations.PAGE:
        # Left long ago for another question: then it is the beginning of what is stored.
        rows = yield from conversations.read_rows(key, from_sequence=0, to_sequence=history - 1, columns=columns)
        if list(map(spoken, rows)) == state[:history]:
            found = {place: place for place in range(history)}
    if found is None:
        return 0
    for place, stored in found.items():
        said[place].id = rows[stored]["message_id"]
    return next(place for place, message in enumerate(run.messages) if message is said[min(found)])


@dataclass(frozen=True)
class Loader:
    """Loads the pack of a graph's run, and first makes a summary and indexes where that is due.

    Attributes:
        guard: What runs the flows.
        budget: The most that a pack may hold.
        policy: When and how a summary is made.
        references: Whether a turn that the user points at is put before their message.
        recall: Where to recall from what fits the user's message; `None` for nothing.
        retention: What is kept; the memory's by default.
    """

    guard: Guard
    budget: ContextBudget
    policy: SummaryPolicy
    references: bool = True
    recall: RecallScope | None = None
    retention: Retention | None = None

    def load(self, key: ConversationKey, run: Thread, writer: Callable[[Any], None]) -> ContextPack | None:
        """The pack; `None` if the memory failed."""
        query = self._query(run)
        if self.references and run.current:
            run = self._with(run, self.guard.run(self._resolve(key, run), _UNRESOLVED, key))
        pack = self.guard.run(self._context(key, run, query), _UNREAD, key)
        made = False
        self._tell(key, pack, writer)
        for event, flow, task, seconds in self._due(key, pack, query):
            writer(_said(event, key))
            self._look_at(key, self.guard.run(flow, task, key, seconds=seconds))
            made = True
        return (self.guard.run(self._context(key, run, query), _UNREAD, key) or pack) if made else pack

    async def aload(self, key: ConversationKey, run: Thread, writer: Callable[[Any], None]) -> ContextPack | None:
        """The async twin of `load`."""
        query = self._query(run)
        if self.references and run.current:
            run = self._with(run, await self.guard.arun(self._resolve(key, run), _UNRESOLVED, key))
        pack = await self.guard.arun(self._context(key, run, query), _UNREAD, key)
        made = False
        self._tell(key, pack, writer)
        for event, flow, task, seconds in self._due(key, pack, query):
            writer(_said(event, key))
            self._look_at(key, await self.guard.arun(flow, task, key, seconds=seconds))
            made = True
        return (await self.guard.arun(self._context(key, run, query), _UNREAD, key) or pack) if made else pack

    def _tell(self, key: ConversationKey, pack: ContextPack | None, writer: Callable[[Any], None]) -> None:
        """Say that a worker summarizes the conversation, or is awaited; not where it is done here."""
        if pack is not None:
            self.guard.memory.causes.look_at(pack, has_writer=self._is_done_here)
        if pack is None or (pack.due and self._is_done_here):
            return
        if pack.work == "running" or (pack.work == "due" and pack.due and self.policy.mode == "background"):
            writer({"type": SUMMARIZING, "thread_id": key.thread_id, "by": "worker", "state": pack.work})

    @property
    def _is_done_here(self) -> bool:
        """Whether a summary that is due is made before the answer."""
        return self.policy.mode == "inline" and self.guard.model is not None

    def _look_at(self, key: ConversationKey, result: Any) -> None:
        """Give an alert if a summary that was made is poor."""
        if isinstance(result, SummaryResult) and is_poor(result.quality, self.policy.min_quality):
            alert(self.guard.memory.metrics, "quality", of_quality(key, result.quality or 0.0))

    def _query(self, run: Thread) -> Recalling | None:
        """What is recalled: what fits the user's message."""
        if self.recall is None or not run.current:
            return None
        found = self.guard.memory.recalling(str(run.current[0].text), self.recall)
        # Another embedder than what is stored was made with costs the meaning, and not the answer.
        return None if found is None else replace(found, strict=False)

    def _due(
        self, key: ConversationKey, pack: ContextPack | None, query: Recalling | None
    ) -> Iterator[tuple[str, Flow[Any], Task, float]]:
        """What is to be done before the answer: the event that says so, the flow, the task, its time in seconds."""
        if pack is None:
            return
        if pack.due and self._is_done_here:
            # One segment's tries; further segments are made as long as there is time.
            seconds = self.guard.deadline_seconds + self.policy.timeout_seconds * self.policy.attempts
            yield SUMMARIZING, self._summarize(key, pack.due_through), _UNMADE, seconds
        if pack.index_due and query is not None:
            yield INDEXING, index_now(key, query), _UNINDEXED, self.guard.deadline_seconds * 3

    def _context(self, key: ConversationKey, run: Thread, query: Recalling | None) -> Flow[ContextPack]:
        """The pack; where another branch is stored than the state is on, the store is brought to the state first."""
        pack = yield from self._read(key, run, query)
        record = None if run.origin is None else run.origin.record
        if run.origin is None or record is None or pack.branch_token in (None, record.token):
            return pack
        # The run goes on from a checkpoint that lies behind the hook that stores.
        yield from following(self.guard.memory, key, run.origin).flow()
        return (yield from self._read(key, run, query))

    def _read(self, key: ConversationKey, run: Thread, query: Recalling | None) -> Flow[ContextPack]:
        return context(
            key,
            budget=self.budget,
            policy=self.policy,
            current=run.current,
            branch=run.branch,
            lineage=run.lineage,
            waiting=[message for message, _ in self.guard.memory.outbox.waiting(key)],
            retention=self.retention or self.guard.memory.retention,
            recalling=query,
            prepared=False,
        )

    def _resolve(self, key: ConversationKey, run: Thread) -> Flow[Reference | None]:
        return turns.resolve(key, str(run.current[0].text), retention=self.guard.memory.retention)

    def _with(self, run: Thread, found: Reference | None) -> Thread:
        """The current turn with the turn that it points at before it."""
        if found is None:
            return run
        return replace(run, current=[referring(found.turn, self.budget), *run.current])

    def _summarize(self, key: ConversationKey, least: int | None) -> Flow[Any]:
        name = None if self.guard.model is None else self.guard.model.name
        return summaries.summarize(
            key,
            self.policy.within(self.budget if self.recall is None else self.budget.beside_recalled),
            model=name,
            least=least,
            most_segments=self.policy.inline_segments,
        )


_UNREAD: Final = Task("The context could not be read; the agent answers without memory")
_UNRESOLVED: Final = Task("A reference could not be resolved; the agent answers without it")
_UNINDEXED: Final = Task("Older messages could not be indexed; they are not recalled yet")
_UNMADE: Final = Task("A summary could not be made; the pack says what it omits")


def recall_scope(recall: RecallScope | Inherited | None, memory: SupabaseMemory) -> RecallScope | None:
    """Where a graph recalls from: as it was said, or as its memory does.

    Raises:
        ConfigurationError: It is none of the choices.
    """
    if isinstance(recall, Inherited):
        return memory.recall_scope
    choice("recall", recall, RECALL_SCOPES, optional=True, more="None")
    return recall


def stream_writer() -> Callable[[Any], None]:
    """The writer of the graph's custom stream; outside of a graph one that does nothing."""
    from langgraph.config import get_stream_writer

    try:
        return get_stream_writer()
    except (RuntimeError, KeyError):
        return lambda _: None


def _said(event: str, key: ConversationKey) -> dict[str, Any]:
    """The custom stream event of what is done before the answer."""
    by = {"by": "self"} if event == SUMMARIZING else {}
    return {"type": event, "thread_id": key.thread_id, **by}


def report_event(pack: ContextPack, previous_response_id: bool | None = None) -> Mapping[str, Any]:
    """The custom stream event of a pack."""
    return {"type": EVENT, "report": pack.report(previous_response_id=previous_response_id).to_dict()}
