"""The loading of a run's context: the pack, and before it what is due for it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from langchain_supabase_memory.adapters.telemetry.alerts import alert, is_poor, of_quality
from langchain_supabase_memory.agents.run.expiring_cache import ExpiringCache
from langchain_supabase_memory.agents.run.fail_open import Attempt, FailOpen, GuardedTask
from langchain_supabase_memory.agents.run.identity import current_run, of_run
from langchain_supabase_memory.checks import choice
from langchain_supabase_memory.context.append_and_load import append_and_load
from langchain_supabase_memory.context.load import (
    index_before_loading,
    is_index_due,
    load_after_expiry,
    load_context,
    referenced_turn_message,
)
from langchain_supabase_memory.context.manifest import is_reference
from langchain_supabase_memory.context.shared_part import NOTHING_SHARED, SharedRequest
from langchain_supabase_memory.memory.context_defaults import recall_options
from langchain_supabase_memory.memory.outbox_delivery import pending
from langchain_supabase_memory.operations import summaries, turns
from langchain_supabase_memory.operations.branch import StateRecord
from langchain_supabase_memory.operations.recall.query import Filters
from langchain_supabase_memory.operations.recall.ranges import zone
from langchain_supabase_memory.settings import Inherited
from langchain_supabase_memory.values import RECALL_SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import tzinfo

    from langchain_core.messages import BaseMessage
    from langgraph.types import StreamWriter

    from langchain_supabase_memory.agents.run.graph_state import GraphState, StateDiff
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.context.recall_part import RecallRequest
    from langchain_supabase_memory.context.turn_parts import TurnParts
    from langchain_supabase_memory.effects import Effects, Flow
    from langchain_supabase_memory.language.references import Match
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.boards.perspective import Perspective
    from langchain_supabase_memory.operations.manifests.beginning import Beginning
    from langchain_supabase_memory.settings import ContextBudget, Retention, SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey, RecallScope, Reference, SummaryResult

T = TypeVar("T")

EVENT: Final = "supabase_memory.context"
"""The type of the custom stream event that carries a pack's report."""

INDEXING: Final = "supabase_memory.indexing"
"""The type of the custom stream event that says that older messages are being indexed."""

SUMMARIZING: Final = "supabase_memory.summarizing"
"""The type of the custom stream event that says that a summary is being made.

Beside `type` and `thread_id` it has `by`: `self`, before this answer, which waits for it; `background`, in this process
behind the answer; or `worker`, with `state`: `running` while a worker holds the conversation, `due` if a summary
waits for one.
"""


_INDEXING_SECONDS: Final = 60.0
"""How long indexing behind an answer may take, in seconds."""

_BEGINNING_SECONDS: Final = 3_600.0
"""How long a provider's cache may hold the beginning of a prompt, in seconds."""

_TURN_SECONDS: Final = 900.0
"""How long the parts of a turn are kept for its next model call, in seconds."""


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
        time_zone: That of the user; by default `time_zone` of the run's context or configuration, else the memory's.
        shared: Whose boards are shown beside that of the conversation.
        holds_work: Whether what can wait is done after `finish_turn`, so that it moves no prompt of a tool loop; else
            while the model answers.
        perspective: The order of the board's items; the usual one without it.
        held: What is done when the turn ends.
        turns: The parts that turns under way show, by the conversation and the id of the question.
        beginnings: What the last prompt of each conversation began with.
        late: The conversations of which something took too long before an answer, and is done behind it.
    """

    guard: FailOpen
    budget: ContextBudget
    policy: SummaryPolicy
    references: bool = True
    recall: RecallScope | None = None
    retention: Retention | None = None
    time_zone: str | tzinfo | None = None
    shared: SharedRequest = NOTHING_SHARED
    holds_work: bool = False
    perspective: Perspective | None = None
    held: ExpiringCache[ConversationKey, Callable[[], None]] = field(
        default_factory=lambda: ExpiringCache(_TURN_SECONDS), repr=False
    )
    turns: ExpiringCache[tuple[ConversationKey, str], TurnParts] = field(
        default_factory=lambda: ExpiringCache(_TURN_SECONDS), repr=False
    )
    beginnings: ExpiringCache[ConversationKey, Beginning] = field(
        default_factory=lambda: ExpiringCache(_BEGINNING_SECONDS), repr=False
    )
    late: ExpiringCache[ConversationKey, bool] = field(default_factory=lambda: ExpiringCache(_TURN_SECONDS), repr=False)

    def load(self, key: ConversationKey, run: GraphState, writer: StreamWriter) -> Effects[ContextPack | None]:
        """The pack; `None` if the memory failed.

        Args:
            key: The conversation.
            run: The run's messages.
            writer: The custom stream, which is told what is done meanwhile.
        """
        query = self._query(run)
        match = yield from self._match(key, run)
        if match is not None:
            reference = yield from self.guard.attempt(self._referenced(key, match), _UNRESOLVED, key)
            if reference is not None:
                run = _with_reference(run, referenced_turn_message(reference.turn, self.budget, zone(self._zone)))
        pack = yield from self.guard.attempt(self._context(key, run, query), _UNREAD, key)
        return None if pack is None else (yield from self._finished(key, run, query, pack, writer))

    def stored(
        self,
        key: ConversationKey,
        changes: StateDiff,
        run: GraphState,
        writer: StreamWriter,
        storing: FailOpen | None = None,
    ) -> Effects[tuple[StateRecord | None, ContextPack | None]]:
        """Bring the store to a state, and load the pack with it where one round trip can do both.

        Args:
            key: The conversation.
            changes: What of the state is new.
            run: The messages that the pack is for.
            writer: The custom stream, which is told what is done meanwhile.
            storing: What is done where the storing fails; by default what is done where the loading does.

        Returns:
            What is to be remembered of what was stored, `None` if nothing was; and the pack, `None` if it is still to
            be loaded.
        """
        storing = storing or self.guard
        match = yield from self._match(key, run)
        if match is not None or pending(self.guard.memory._services, key):
            # The turn that is pointed at may be new itself; and what waits is shown until it is stored.
            return (yield from changes.stored(storing)), None
        query = self._query(run)
        flow = append_and_load(changes.flow(), self._context(key, run, query))
        record, pack = (yield from storing.attempt(flow, changes.task, key)) or (None, None)
        if not isinstance(record, StateRecord):
            return (yield from changes.resolved(storing, record)), None
        return record, None if pack is None else (yield from self._finished(key, run, query, pack, writer))

    def _match(self, key: ConversationKey, run: GraphState) -> Effects[Match | None]:
        """The words of the user that point at a turn; once for a turn."""
        if not self.references or not run.current or self._turn(key, run) is not None:
            return None
        return (yield from self.guard.attempt(turns.find_references(str(run.current[0].text)), _UNRESOLVED, key))

    def _finished(
        self,
        key: ConversationKey,
        run: GraphState,
        query: RecallRequest | None,
        pack: ContextPack,
        writer: StreamWriter,
    ) -> Effects[ContextPack]:
        """The pack, read again if something was due before the answer."""
        self._report(key, pack, writer)
        if (yield from self._prepare(key, pack, query, writer)):
            pack = (yield from self.guard.attempt(self._context(key, run, query), _UNREAD, key)) or pack
        if not self.guard.memory._services.is_owner_known(key):
            return pack
        before, beginning = self.beginnings.get(key), pack.beginning
        moved = None if before is None else beginning.moved_since(before)
        self.beginnings.set(key, beginning)
        if moved is not None:
            pack = replace(pack, moved=moved)
        question = next(iter(_turn_ids(run)), None)
        if question is not None:
            self.turns.set((key, question), pack.turn_parts)
        return pack

    def _turn(self, key: ConversationKey, run: GraphState) -> TurnParts | None:
        """The parts that the turn's earlier prompts showed; `None` for its first prompt, or in another process."""
        if not self.guard.memory._services.is_owner_known(key):
            return None
        question, *loop = _turn_ids(run) or [None]
        return self.turns.get((key, question)) if question is not None and loop else None

    def _report(self, key: ConversationKey, pack: ContextPack, writer: StreamWriter) -> None:
        """Say that a worker summarizes the conversation, or is awaited; not where it is done here."""
        self.guard.memory._services.causes.warn_if_unattended(pack, has_summarizer=self._is_done_here)
        if pack.due and self._is_done_here:
            return
        if pack.work == "running" or (pack.work == "due" and pack.due and self.policy.mode == "background"):
            writer({"type": SUMMARIZING, "thread_id": key.thread_id, "by": "worker", "state": pack.work})

    @property
    def _retention(self) -> Retention | None:
        return self.retention or self.guard.memory._services.settings.retention

    @property
    def _zone(self) -> str | tzinfo | None:
        """The time zone that the run is in."""
        return self.time_zone or of_run("time_zone", *current_run()) or self.guard.memory._services.config.time_zone

    @property
    def _shared(self) -> SharedRequest:
        """Whose boards are shown, dated for the run."""
        is_any = self.shared.spaces or self.shared.agents
        return replace(self.shared, time_zone=zone(self._zone)) if is_any else self.shared

    @property
    def _is_done_here(self) -> bool:
        """Whether a summary that is due is made before the answer."""
        return self.policy.mode == "inline" and self.guard.model is not None

    def _check_state(self, key: ConversationKey, result: SummaryResult | None) -> None:
        """Give an alert if a summary that was made is poor."""
        if result is not None and is_poor(result.quality, self.policy.min_quality):
            alert(self.guard.memory._services.metrics, "quality", of_quality(key, result.quality or 0.0))

    def _query(self, run: GraphState) -> RecallRequest | None:
        """What is recalled: what fits the user's message."""
        if self.recall is None or not run.current:
            return None
        filters = Filters(time_zone=self._zone)
        # Another embedder than what is stored was made with costs the meaning, and not the answer.
        return recall_options(self.guard.memory._services, str(run.current[0].text), self.recall, filters, strict=False)

    def _prepare(
        self, key: ConversationKey, pack: ContextPack, query: RecallRequest | None, writer: StreamWriter
    ) -> Effects[bool]:
        """Make a summary, and index, where that is due before the answer.

        Returns:
            Whether anything was due.
        """
        services = self.guard.memory._services
        if not services.may_derive(key) or (self.late.get(key) and services.background.is_busy(services.identity, key)):
            return False
        is_summary_due, summarized = pack.due and self._is_done_here, None
        expired = self._retention if pack.expired else None
        if (is_summary_due or pack.index_soon) and not pack.lacks_summary and self._can_wait(key):
            # The prompt shows all that the segment will stand for: this answer does not need it.
            if self._start(key, expired, summarizes=is_summary_due, indexes=not pack.opted_out) and is_summary_due:
                writer({"type": SUMMARIZING, "thread_id": key.thread_id, "by": "background"})
            is_summary_due = False
        if is_summary_due:
            writer(_event(SUMMARIZING, key))
            # A model has the time that the policy gives it; further tries and segments are made while some is left.
            model = self.guard.model
            more = self.policy.timeout_seconds if model is not None and model.is_model else 0.0
            summarize = load_after_expiry(key, expired, self._summarize(key, pack.due_through))
            summarized, is_late = yield from self._in_half_the_time(summarize, _UNMADE, key, more)
            self._check_state(key, summarized)
            if is_late:
                self._finish_behind(key, expired, pack, summarizes=True)
                return True
        if query is None or not is_index_due(pack, query, summarized):
            return is_summary_due
        writer(_event(INDEXING, key))
        index = load_after_expiry(key, expired, index_before_loading(key, query))
        _, is_late = yield from self._in_half_the_time(index, _UNINDEXED, key)
        if is_late:
            self._finish_behind(key, expired, pack, summarizes=False)
        return True

    def _in_half_the_time(
        self, flow: Flow[T], task: GuardedTask, key: ConversationKey, more: float = 0.0
    ) -> Effects[tuple[T | None, bool]]:
        """Run what can wait in half of the time that is left: the other half is for reading. What cannot has it all.

        Returns:
            The flow's result, `None` if it failed; and whether it took too long, and can wait.
        """
        can_wait = self._can_wait(key)
        begun, seconds = time.monotonic(), self.guard.left_seconds / (2 if can_wait else 1)
        result = yield from self.guard.attempt(flow, replace(task, can_wait=can_wait), key, seconds=seconds, more=more)
        return result, can_wait and result is None and time.monotonic() - begun >= seconds + more

    def _finish_behind(
        self, key: ConversationKey, expired: Retention | None, pack: ContextPack, *, summarizes: bool
    ) -> None:
        """Do behind the answer what took too long before it; no answer waits for it meanwhile."""
        self.late.set(key, True)
        self._start(key, expired, summarizes=summarizes, indexes=not pack.opted_out)

    def _can_wait(self, key: ConversationKey) -> bool:
        """Whether work may be done behind the answer: whoever a callback names then may be somebody else."""
        return self.guard.memory._services.is_owner_known(key)

    def _start(self, key: ConversationKey, expired: Retention | None, *, summarizes: bool, indexes: bool) -> bool:
        """Index and summarize behind the answer. Words are indexed before a segment takes their place.

        Returns:
            Whether it is done soon; not where too much waits already.
        """
        guard, services = self.guard.behind(), self.guard.memory._services
        chunking, embedder = services.config.chunking, services.embedder_name
        indexes = indexes and self.recall is not None and chunking.mode == "inline"

        def work() -> None:
            if indexes:
                from langchain_supabase_memory.operations.recall.indexing import index_messages

                index = index_messages(
                    key,
                    chunking,
                    embedder=embedder,
                    max_batches=chunking.inline_batches,
                    tone=services.rates_tone,
                )
                indexing = load_after_expiry(key, expired, index)
                Attempt(guard, indexing, _UNINDEXED, key, _INDEXING_SECONDS).perform(None)
            if not summarizes or services.lifetime.is_closed:
                return
            summarizing = load_after_expiry(key, expired, self._summarize(key, None))
            seconds = self.policy.timeout_seconds * self.policy.attempts
            self._check_state(key, Attempt(guard, summarizing, _UNMADE, key, seconds).perform(None))

        if self.holds_work:
            self.held.set(key, work)
            return True
        return services.background.start(services.identity, key, work)

    def finish_turn(self, key: ConversationKey) -> None:
        """Start what waited for the turn's end. It returns at once.

        Args:
            key: The conversation.
        """
        work, services = self.held.pop(key), self.guard.memory._services
        if work is not None:
            services.background.start(services.identity, key, work)

    def _context(self, key: ConversationKey, run: GraphState, query: RecallRequest | None) -> Flow[ContextPack]:
        turn = self._turn(key, run)
        if turn is not None and turn.reference is not None:
            run = _with_reference(run, turn.reference)
        return load_context(
            key,
            budget=self.budget,
            policy=self.policy,
            current=run.current,
            branch=run.branch,
            lineage=run.lineage,
            pending=pending(self.guard.memory._services, key),
            retention=self._retention,
            recalling=query,
            recalls=self.recall is not None,
            prepared=False,
            turn=turn,
            shared=self._shared,
            profile=self.guard.memory._services.config.profile,
            perspective=self.perspective,
        )

    def _referenced(self, key: ConversationKey, match: Match) -> Flow[Reference | None]:
        return turns.referenced_turn(key, match, retention=self.guard.memory._services.settings.retention)

    def _summarize(self, key: ConversationKey, min_through: int | None) -> Flow[SummaryResult]:
        return summaries.summarize(
            key,
            self.policy.for_budget(self.budget, recalls=self.recall is not None),
            summarizer=self.guard.writer_name,
            at_least_through=min_through,
            max_segments=self.policy.inline_segments,
        )


_UNREAD: Final = GuardedTask("The context could not be read; the agent answers without memory")
_UNRESOLVED: Final = GuardedTask("A reference could not be resolved; the agent answers without it")
_UNINDEXED: Final = GuardedTask("Older messages could not be indexed; they are not recalled yet")
_UNMADE: Final = GuardedTask("A summary could not be made; the pack says what it omits")


def recall_scope(recall: RecallScope | Inherited | None, memory: SupabaseMemory) -> RecallScope | None:
    """Where a graph recalls from: as it was said, or as its memory does.

    Raises:
        ConfigurationError: It is none of the choices.
    """
    if isinstance(recall, Inherited):
        return memory._services.config.recall
    choice("recall", recall, RECALL_SCOPES, optional=True, more="None")
    return recall


def stream_writer() -> StreamWriter:
    """The writer of the graph's custom stream; outside of a graph one that does nothing."""
    from langgraph.config import get_stream_writer

    try:
        return get_stream_writer()
    except (RuntimeError, KeyError):
        return lambda _: None


def _turn_ids(run: GraphState) -> list[str | None]:
    """The ids of the current turn's messages, that of the user's first."""
    return [message.id for message in run.current if not is_reference(message)]


def _with_reference(run: GraphState, reference: BaseMessage) -> GraphState:
    """The current turn with the turn that it points at before it."""
    return replace(run, current=[reference, *run.current])


def _event(event: str, key: ConversationKey) -> dict[str, str]:
    """The custom stream event of what is done before the answer."""
    by = {"by": "self"} if event == SUMMARIZING else {}
    return {"type": event, "thread_id": key.thread_id, **by}


def report_event(pack: ContextPack, previous_response_id: bool | None = None) -> Mapping[str, object]:
    """The custom stream event of a pack."""
    return {"type": EVENT, "report": pack.report(previous_response_id=previous_response_id).to_dict()}
