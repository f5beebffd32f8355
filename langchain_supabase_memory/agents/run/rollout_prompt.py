"""A rollout at work: which context a call of the model receives, and the other one computed beside it.

Only one of the two is sent. What runs beside the answer has a thread or a task of its own, raises nothing, and is
waited for no longer than the guard's deadline; after that it goes on unheeded, and still records what it finds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import effects
from langchain_supabase_memory.adapters.telemetry.logs import conversation_fields
from langchain_supabase_memory.agents.run.fail_open import GuardedTask
from langchain_supabase_memory.agents.run.stage import Stages
from langchain_supabase_memory.context.load import last_messages, omitted_messages
from langchain_supabase_memory.context.recent_messages import recent_messages
from langchain_supabase_memory.deadline import Run, start_thread
from langchain_supabase_memory.effects import SyncAsync
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.memory.outbox_delivery import pending
from langchain_supabase_memory.operations.rollout.comparison import Comparison, record_comparison

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.messages import BaseMessage
    from langgraph.types import StreamWriter

    from langchain_supabase_memory.agents.run.fail_open import FailOpen
    from langchain_supabase_memory.agents.run.graph_state import GraphState
    from langchain_supabase_memory.agents.run.load import Loader
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.effects import Effects, Flow
    from langchain_supabase_memory.operations.rollout.stages import Rollout, Stage
    from langchain_supabase_memory.values import ConversationKey

COMPARISON: Final = "supabase_memory.comparison"
"""The type of the custom stream event that carries a comparison."""

_logger = logging.getLogger(__name__)


@dataclass
class RolloutPrompt:
    """What a call of the model receives.

    Attributes:
        pack: The pack, if that is it.
        messages: The last messages, if they are it; with neither the memory failed, and the graph's own messages are.
        shadow: What runs beside it.
        until: How long that is waited for, by the monotonic clock.
        compared: The comparison, as soon as there is one.
    """

    pack: ContextPack | None = None
    messages: list[BaseMessage] | None = field(default=None, repr=False)
    shadow: Run | asyncio.Task[None] | None = None
    until: float = 0.0
    compared: list[Comparison] = field(default_factory=list)

    def finish(self, writer: StreamWriter) -> Effects[None]:
        """Wait for what runs beside the answer, no longer than the deadline, and tell the stream."""
        if self.shadow is not None:
            yield SyncAsync(self._join, self._ajoin)
        for comparison in self.compared[:1]:
            writer({"type": COMPARISON, "comparison": comparison.to_dict()})

    def and_finish(self, answer: Callable[[], Any], writer: StreamWriter) -> SyncAsync:
        """The step that gets the answer, and settles whatever comes of it.

        Args:
            answer: Gives the answer, or an awaitable of it.
            writer: The custom stream.
        """

        def run() -> Any:
            try:
                return answer()
            finally:
                effects.run(self.finish(writer))

        async def arun() -> Any:
            try:
                return await answer()
            finally:
                await effects.arun(self.finish(writer))

        return SyncAsync(run, arun)

    def _join(self) -> None:
        if isinstance(self.shadow, Run):
            self.shadow.join(self._left)

    async def _ajoin(self) -> None:
        if isinstance(self.shadow, asyncio.Task):
            await asyncio.wait({self.shadow}, timeout=self._left)

    @property
    def _left(self) -> float:
        return max(0.0, self.until - time.monotonic())


@dataclass(frozen=True)
class _Old:
    """The old context and how long it took, in milliseconds."""

    messages: list[BaseMessage] = field(repr=False)
    ms: float


@dataclass(frozen=True)
class _New:
    """The pack, how long it took in milliseconds, and why there is none, in a word."""

    pack: ContextPack | None
    ms: float
    error: str | None


class PromptStages:
    """A loader behind a rollout.

    Args:
        loader: What loads the pack.
        rollout: The rollout.
    """

    def __init__(self, loader: Loader, rollout: Rollout) -> None:
        self._loader = loader
        self._guard = loader.guard
        self._rollout = rollout
        self._stages = Stages(loader.guard, rollout)
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly

    def prompt(
        self, loader: Loader, key: ConversationKey, run: GraphState, writer: StreamWriter
    ) -> Effects[RolloutPrompt]:
        """What the model receives at the stage that holds now; its `settle` is to be done after the answer.

        Args:
            loader: Loads what the answer waits for; what runs beside it has its own deadline.
            key: The conversation.
            run: The run's messages.
            writer: The custom stream, which is told what is done meanwhile.
        """
        stage = yield from self._stages.holding(key)
        if stage == "on":
            return RolloutPrompt((yield from loader.load(key, run, writer)))
        if stage == "off" or stage == "parallel":
            old = yield from self._old(loader.guard, key, run)
            prompt = RolloutPrompt(messages=old.messages)
            if stage == "parallel":
                yield from self._start(prompt, self._shadow_old(key, stage, old, run, prompt))
            return prompt
        failures: list[str] = []
        new = yield from _load(self._cut_over(loader, stage, failures), failures, key, run, writer)
        prompt = RolloutPrompt(new.pack, None if new.pack is not None else self._of_state(run))
        yield from self._start(prompt, self._shadow_new(key, stage, new, run, prompt))
        return prompt

    # The two contexts

    def _cut_over(self, loader: Loader, max_messages: int, failures: list[str]) -> Loader:
        """The loader of a stage with at most so many recent messages; summarizing keeps up with that."""
        budget = loader.budget
        fewest = max_messages if budget.max_messages is None else min(max_messages, budget.max_messages)
        guard = loader.guard.with_failures(failures, raises=True)
        return replace(loader, guard=guard, budget=replace(budget, max_messages=fewest))

    def _of_state(self, run: GraphState) -> list[BaseMessage]:
        """The last messages of the graph's own state; what this package put there is none of them."""
        branch = [message for message in run.branch if content.source(message) != content.OURS]
        return [*recent_messages(branch, run.current, self._rollout.last_messages)]

    def _stored(self, key: ConversationKey, run: GraphState) -> Flow[list[BaseMessage]] | None:
        """The last messages from the database, where the graph's state has not all of them; `None` where it has."""
        ours = any(content.source(message) == content.OURS for message in run.branch)
        if run.branch and not ours:
            return None
        return last_messages(
            key,
            self._rollout.last_messages,
            current=run.current,
            branch=run.branch,
            pending=pending(self._guard.memory._services, key),
            retention=self._guard.memory._services.settings.retention,
        )

    def _old(self, guard: FailOpen, key: ConversationKey, run: GraphState) -> Effects[_Old]:
        begun = time.perf_counter()
        flow = self._stored(key, run)
        messages = None if flow is None else (yield from guard.attempt(flow, _UNREAD, key))
        return _Old(self._of_state(run) if messages is None else messages, _ms(begun))

    def _new(self, key: ConversationKey, run: GraphState) -> Effects[_New]:
        begun, failures = time.perf_counter(), list[str]()
        loader = replace(self._loader, guard=self._guard.with_failures(failures))
        try:
            return (yield from _load(loader, failures, key, run, _silent))
        except Exception as error:
            return _New(None, _ms(begun), type(error).__name__)

    # Beside the answer

    def _start(self, prompt: RolloutPrompt, work: Effects[None]) -> Effects[None]:
        """Let work run beside the answer."""
        prompt.until = time.monotonic() + self._guard.deadline_seconds
        work = _suppress_errors(work)
        prompt.shadow = yield SyncAsync(lambda: start_thread(lambda: effects.run(work)), lambda: self._task(work))

    async def _task(self, work: Effects[None]) -> asyncio.Task[None]:
        task = asyncio.create_task(effects.arun(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _shadow_old(
        self, key: ConversationKey, stage: Stage, old: _Old, run: GraphState, prompt: RolloutPrompt
    ) -> Effects[None]:
        new = yield from self._new(key, run)
        yield from self._compare(key, stage, old, new, prompt)

    def _shadow_new(
        self, key: ConversationKey, stage: Stage, new: _New, run: GraphState, prompt: RolloutPrompt
    ) -> Effects[None]:
        old = yield from self._old(self._silent, key, run)
        yield from self._compare(key, stage, old, new, prompt)

    def _compare(
        self, key: ConversationKey, stage: Stage, old: _Old, new: _New, prompt: RolloutPrompt
    ) -> Effects[None]:
        comparison, only_old, through = _compare_packs(key, stage, old, new)
        answer = None
        if self._rollout.record:
            record = record_comparison(key, comparison, only_old, through)
            answer = yield from self._silent.attempt(record, _UNRECORDED, key)
        self._record(key, comparison, answer, prompt)

    @property
    def _silent(self) -> FailOpen:
        """The guard of what runs beside the answer: it raises nothing."""
        return self._guard.with_listener(lambda _: None)

    def _record(
        self, key: ConversationKey, comparison: Comparison, answer: Mapping[str, Any] | None, prompt: RolloutPrompt
    ) -> None:
        if answer is not None and answer["recorded"]:
            at = datetime.fromisoformat(answer["compared_at"])
            comparison = replace(comparison, covered_by_summary=answer["covered_by_summary"], compared_at=at)
        numbers = {f"memory_{name}": value for name, value in comparison.to_dict().items() if name not in _NO_NUMBERS}
        _logger.info(
            "Contexts compared at stage %s (user %r, agent %r, thread %r): %d messages of %d tokens; the pack %s of %s",
            comparison.stage, key.user_id, key.agent_id, key.thread_id, comparison.old_messages, comparison.old_tokens,
            comparison.new_messages, comparison.new_tokens,
            extra={**conversation_fields(key), "memory_error": comparison.error, **numbers},
        )  # fmt: skip
        prompt.compared.append(comparison)
        if self._rollout.on_comparison is not None:
            self._rollout.on_comparison(comparison)


_NO_NUMBERS: Final = ("thread_id", "user_id", "agent_id", "error")
_UNREAD: Final = GuardedTask("The last messages could not be read; the graph's own are used")
_UNRECORDED: Final = GuardedTask("A comparison could not be recorded")


def _load(
    loader: Loader, failures: list[str], key: ConversationKey, run: GraphState, writer: StreamWriter
) -> Effects[_New]:
    """What a loader gives, how long it took, and the last of the failures if it gives nothing."""
    begun = time.perf_counter()
    pack = yield from loader.load(key, run, writer)
    error = None if pack is not None else next(reversed(failures), "unknown")
    return _New(pack, _ms(begun), error)


def _suppress_errors(work: Effects[None]) -> Effects[None]:
    """Work whose failure is logged, and nobody's else."""
    try:
        yield from work
    except Exception as error:
        failure = type(error).__name__  # its text may hold content, its class does not
        _logger.error("A comparison failed (%s).", failure, extra={"memory_error": failure})


def _compare_packs(key: ConversationKey, stage: Stage, old: _Old, new: _New) -> tuple[Comparison, list[str], int]:
    """The comparison, the ids of the messages that the old context alone has, and through where the summary goes."""
    comparison = Comparison(
        thread_id=key.thread_id,
        user_id=key.user_id,
        agent_id=key.agent_id,
        stage=str(stage),
        old_messages=len(old.messages),
        old_tokens=sum(map(content.tokens, old.messages)),
        old_characters=sum(map(content.characters, old.messages)),
        old_ms=round(old.ms, 3),
        new_ms=round(new.ms, 3),
        error=new.error,
    )
    if new.pack is None:
        return comparison, [], -1
    prompt = new.pack.prompt
    before, after = _ids(old.messages), _ids(prompt)
    only_old = [each for each in before if each not in after]
    comparison = replace(
        comparison,
        new_messages=len(prompt),
        new_tokens=sum(map(content.tokens, prompt)),
        new_characters=sum(map(content.characters, prompt)),
        shared=len(before) - len(only_old),
        only_old=len(only_old),
        only_new=sum(each not in before for each in after),
        omitted=omitted_messages(new.pack),
    )
    return comparison, only_old, -1 if new.pack.summary is None else new.pack.summary.to_sequence


def _ids(messages: Sequence[BaseMessage]) -> dict[str, None]:
    """The ids of those that somebody said, in order."""
    return dict.fromkeys(str(message.id) for message in messages if content.is_conversation(message) and message.id)


def _ms(begun: float) -> float:
    return (time.perf_counter() - begun) * 1000


def _silent(_: object) -> None:
    """What runs beside the answer writes nothing into its stream."""
