"""What nodes and the middleware share: a graph's messages against the store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, convert_to_messages

from langchain_supabase_memory import conversations, summaries, turns
from langchain_supabase_memory.context.load import VIA, context, index_now, referring
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.guard import Guard, Task
from langchain_supabase_memory.messages import codec, content
from langchain_supabase_memory.models import SummaryResult
from langchain_supabase_memory.telemetry.alerts import alert, is_poor, of_quality

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.context.recalled import Recalling
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory import SupabaseMemory
    from langchain_supabase_memory.models import ConversationKey, Reference
    from langchain_supabase_memory.recall.search import RecallScope
    from langchain_supabase_memory.settings import ContextBudget, SummaryPolicy

EVENT: Final = "supabase_memory.context"
"""The type of the custom stream event that carries a pack's report."""

INDEXING: Final = "supabase_memory.indexing"
"""The type of the custom stream event that says that older messages are being indexed."""

SUMMARISING: Final = "supabase_memory.summarising"
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
    """

    system: list[BaseMessage]
    branch: list[BaseMessage]
    current: list[BaseMessage]

    @property
    def said(self) -> list[BaseMessage]:
        """What belongs to the conversation."""
        return content.said([*self.branch, *self.current])


def thread(messages: Any) -> Thread:
    """Cut a graph's messages into their parts.

    Args:
        messages: A list of messages, or what LangChain makes messages of.

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
    return Thread(listed[:front], rest[:start], rest[start:])


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


def store_new(memory: SupabaseMemory, key: ConversationKey, messages: Sequence[BaseMessage]) -> Flow[bool]:
    """Store those of a graph's messages that come after the newest stored one; all, if that is not among them."""
    newest = yield from conversations.read_rows(key, last=1, columns=["message_id"])
    known = newest[0]["message_id"] if newest else None
    place = next((place for place, message in enumerate(messages) if message.id == known), -1)
    fresh = messages[place + 1 :]
    if not fresh:
        return True
    return (yield from store(memory, key, fresh, replace=False))


def after(messages: Sequence[BaseMessage], newest_stored: str | None) -> list[BaseMessage]:
    """The messages from the newest stored one on, and that one too if its calls may have been edited since."""
    place = next((place for place, each in enumerate(messages) if each.id == newest_stored), None)
    if newest_stored is None or place is None:
        return list(messages)
    edited = isinstance(messages[place], AIMessage) and bool(content.tool_calls(messages[place]))
    fresh = list(messages[place + 1 :])
    return [messages[place], *fresh] if edited and fresh else fresh


@dataclass(frozen=True)
class Loader:
    """Loads the pack of a graph's run, and first makes a summary and indexes where that is due.

    Attributes:
        guard: What runs the flows.
        budget: The most that a pack may hold.
        policy: When and how a summary is made.
        references: Whether a turn that the user points at is put before their message.
        recall: Where to recall from what fits the user's message; `None` for nothing.
    """

    guard: Guard
    budget: ContextBudget
    policy: SummaryPolicy
    references: bool = True
    recall: RecallScope | None = None

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
        """Say that a worker summarises the conversation, or is awaited; not where it is done here."""
        if pack is None or (pack.due and self._is_done_here):
            return
        if pack.work == "running" or (pack.work == "due" and pack.due and self.policy.mode == "background"):
            writer({"type": SUMMARISING, "thread_id": key.thread_id, "by": "worker", "state": pack.work})

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
            yield SUMMARISING, self._summarise(key), _UNMADE, seconds
        if pack.index_due and query is not None:
            yield INDEXING, index_now(key, query), _UNINDEXED, self.guard.deadline_seconds * 3

    def _context(self, key: ConversationKey, run: Thread, query: Recalling | None) -> Flow[ContextPack]:
        return context(
            key,
            budget=self.budget,
            policy=self.policy,
            current=run.current,
            branch=run.branch,
            waiting=[message for message, _ in self.guard.memory.outbox.waiting(key)],
            retention=self.guard.memory.retention,
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

    def _summarise(self, key: ConversationKey) -> Flow[Any]:
        name = None if self.guard.model is None else self.guard.model.name
        return summaries.summarise(
            key,
            self.policy.within(self.budget if self.recall is None else self.budget.beside_recalled),
            model=name,
            most_segments=self.policy.inline_segments,
        )


_UNREAD: Final = Task("The context could not be read; the agent answers without memory")
_UNRESOLVED: Final = Task("A reference could not be resolved; the agent answers without it")
_UNINDEXED: Final = Task("Older messages could not be indexed; they are not recalled yet")
_UNMADE: Final = Task("A summary could not be made; the pack says what it omits")


def recall_scope(recall: RecallScope | bool | None, memory: SupabaseMemory) -> RecallScope | None:
    """Where a graph recalls from: as it was said; by default the conversation, if the memory has an embedder."""
    if recall is None:
        recall = memory.embeddings is not None
    if isinstance(recall, bool):
        return "conversation" if recall else None
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
    by = {"by": "self"} if event == SUMMARISING else {}
    return {"type": event, "thread_id": key.thread_id, **by}


def report_event(pack: ContextPack, previous_response_id: bool | None = None) -> Mapping[str, Any]:
    """The custom stream event of a pack."""
    return {"type": EVENT, "report": pack.report(previous_response_id=previous_response_id).to_dict()}
