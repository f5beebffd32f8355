"""A rollout at work: which context a call of the model receives, and the other one computed beside it.

Only one of the two is sent. What runs beside the answer has a thread or a task of its own, raises nothing, and is
waited for no longer than the guard's deadline; after that it goes on unheeded, and still records what it finds.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.context.load import SUPERSEDED, last_messages
from langchain_supabase_memory.context.recent import recent
from langchain_supabase_memory.deadline import in_thread, started, within
from langchain_supabase_memory.guard import Task
from langchain_supabase_memory.messages import content
from langchain_supabase_memory.rollout.comparison import Comparison, recorded
from langchain_supabase_memory.rollout.stages import stage_in, stage_of, standing
from langchain_supabase_memory.telemetry.logs import about

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from threading import Thread as RunningThread

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.graph import Loader, Thread
    from langchain_supabase_memory.models import ConversationKey
    from langchain_supabase_memory.rollout.stages import Rollout, Stage

COMPARISON: Final = "supabase_memory.comparison"
"""The type of the custom stream event that carries a comparison."""

_PATIENCE_SECONDS: Final = 2.0
"""The longest that a flag, or the database's word on the stage, is waited for."""

_MOST_KNOWN: Final = 10_000
"""For how many users the last stage is remembered."""

_logger = logging.getLogger(__name__)


@dataclass
class Prompt:
    """What a call of the model receives.

    Attributes:
        pack: The pack, if that is it.
        messages: The last messages, if they are it; with neither the memory failed, and the graph's own messages are.
        beside: What runs beside it.
        until: How long that is waited for, by the monotonic clock.
        compared: The comparison, as soon as there is one.
    """

    pack: ContextPack | None = None
    messages: list[BaseMessage] | None = None
    beside: RunningThread | asyncio.Task[None] | None = None
    until: float = 0.0
    compared: list[Comparison] = field(default_factory=list)

    def settle(self, writer: Callable[[Any], None]) -> None:
        """Wait for what runs beside the answer, no longer than the deadline, and tell the stream."""
        if self.beside is not None and not isinstance(self.beside, asyncio.Task):
            self.beside.join(max(0.0, self.until - time.monotonic()))
        self._tell(writer)

    async def asettle(self, writer: Callable[[Any], None]) -> None:
        """The async twin of `settle`."""
        if isinstance(self.beside, asyncio.Task):
            await asyncio.wait({self.beside}, timeout=max(0.0, self.until - time.monotonic()))
        self._tell(writer)

    def _tell(self, writer: Callable[[Any], None]) -> None:
        for comparison in self.compared[:1]:
            writer({"type": COMPARISON, "comparison": comparison.to_dict()})


@dataclass(frozen=True)
class _Old:
    """The old context and how long it took, in milliseconds."""

    messages: list[BaseMessage]
    ms: float


@dataclass(frozen=True)
class _New:
    """The pack, how long it took in milliseconds, and why there is none, in a word."""

    pack: ContextPack | None
    ms: float
    error: str | None


class Staged:
    """A loader behind a rollout.

    Args:
        loader: What loads the pack.
        rollout: The rollout.
    """

    def __init__(self, loader: Loader, rollout: Rollout) -> None:
        self._loader = loader
        self._guard = loader.guard
        self._rollout = rollout
        self._known: OrderedDict[tuple[str | None, str], Stage] = OrderedDict()
        self._said: dict[str, tuple[float, Mapping[str, Any] | None, bool]] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly

    def prompt(self, key: ConversationKey, run: Thread, writer: Callable[[Any], None]) -> Prompt:
        """What the model receives at the stage that holds now; a run's `settle` is to be called after the answer."""
        stage = self._stage(key)
        if stage == "on":
            return Prompt(self._loader.load(key, run, writer))
        if stage == "off" or stage == "parallel":
            old = self._old(key, run)
            given = Prompt(messages=old.messages)
            if stage == "parallel":
                self._start(given, lambda: self._compare(key, stage, old, self._new(key, run), given))
            return given
        begun = time.perf_counter()
        failures: list[str] = []
        pack = self._cut_over(stage, failures).load(key, run, writer)
        new = _New(pack, _ms(begun), None if pack is not None else _word(failures))
        given = Prompt(pack, None if pack is not None else self._of_state(run))
        self._start(given, lambda: self._compare(key, stage, self._old(key, run, beside=True), new, given))
        return given

    async def aprompt(self, key: ConversationKey, run: Thread, writer: Callable[[Any], None]) -> Prompt:
        """The async twin of `prompt`."""
        stage = await self._astage(key)
        if stage == "on":
            return Prompt(await self._loader.aload(key, run, writer))
        if stage == "off" or stage == "parallel":
            old = await self._aold(key, run)
            given = Prompt(messages=old.messages)
            if stage == "parallel":

                async def parallel() -> None:
                    await self._acompare(key, stage, old, await self._anew(key, run), given)

                self._astart(given, parallel)
            return given
        begun = time.perf_counter()
        failures: list[str] = []
        pack = await self._cut_over(stage, failures).aload(key, run, writer)
        new = _New(pack, _ms(begun), None if pack is not None else _word(failures))
        given = Prompt(pack, None if pack is not None else self._of_state(run))

        async def beside() -> None:
            await self._acompare(key, stage, await self._aold(key, run, beside=True), new, given)

        self._astart(given, beside)
        return given

    # The stage

    def _stage(self, key: ConversationKey) -> Stage:
        flag, seconds = self._rollout.flag, self._patience
        if flag is None:
            held = self._held(key)
            if held is not None:
                return held
            failures: list[str] = []
            said = self._guard.heard(lambda error: failures.append(type(error).__name__)).run(
                standing(key.agent_id, key.user_id), _UNSAID, key, seconds=seconds
            )
            return self._heard(key, said, bool(failures))

        def asked() -> Any:
            answer = flag(key)
            return asyncio.run(_answer(answer)) if inspect.isawaitable(answer) else answer

        try:
            return self._taken(key, within(seconds, asked))
        except Exception as error:
            return self._unknown(key, type(error).__name__)

    async def _astage(self, key: ConversationKey) -> Stage:
        flag, seconds = self._rollout.flag, self._patience
        if flag is None:
            held = self._held(key)
            if held is not None:
                return held
            failures: list[str] = []
            said = await self._guard.heard(lambda error: failures.append(type(error).__name__)).arun(
                standing(key.agent_id, key.user_id), _UNSAID, key, seconds=seconds
            )
            return self._heard(key, said, bool(failures))
        try:
            async with asyncio.timeout(seconds):
                # A function that may block gets a thread of its own.
                answer: Any = flag(key) if inspect.iscoroutinefunction(flag) else await in_thread(lambda: flag(key))
                return self._taken(key, await answer if inspect.isawaitable(answer) else answer)
        except Exception as error:
            return self._unknown(key, type(error).__name__)

    @property
    def _patience(self) -> float:
        return min(_PATIENCE_SECONDS, self._guard.deadline_seconds)

    def _taken(self, key: ConversationKey, answer: object) -> Stage:
        """What the flag said, if that is a stage."""
        stage = stage_of(answer)
        if stage is None:
            return self._unknown(key, f"no stage but a {type(answer).__name__}")
        return self._learned(key, stage)

    def _held(self, key: ConversationKey) -> Stage | None:
        """What the database said a moment ago; who is meant must be known, for a token's subject may change."""
        until, document, has_failed = self._said.get(key.agent_id, (0.0, None, False))
        if time.monotonic() >= until or (key.user_id is None and not has_failed):
            return None
        if has_failed:
            return self._last(key)
        return self._of(key, document)

    def _heard(self, key: ConversationKey, document: Mapping[str, Any] | None, has_failed: bool) -> Stage:
        """What the database just said; a failure is not asked again at once either."""
        held = time.monotonic() + self._rollout.cache_seconds
        if not has_failed:
            self._said[key.agent_id] = held, document, False
            return self._of(key, document)
        self._guard.memory.metrics.alert("rollout")
        _, before, had_failed = self._said.get(key.agent_id, (0.0, None, True))
        if had_failed or key.user_id is None:
            self._said[key.agent_id] = held, None, True
            return self._last(key)
        self._said[key.agent_id] = held, before, False
        return self._of(key, before)

    def _of(self, key: ConversationKey, document: Mapping[str, Any] | None) -> Stage:
        stage = self._rollout.stage if document is None else stage_in(document, key.user_id)
        return self._learned(key, stage) if stage is not None else self._unknown(key, "a stage of another release")

    def _learned(self, key: ConversationKey, stage: Stage) -> Stage:
        self._known.pop((key.user_id, key.agent_id), None)  # so that it becomes the newest
        self._known[key.user_id, key.agent_id] = stage
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return stage

    def _last(self, key: ConversationKey) -> Stage:
        return self._known.get((key.user_id, key.agent_id), "off")

    def _unknown(self, key: ConversationKey, why: str) -> Stage:
        stage = self._last(key)
        _logger.error(
            "The stage of the rollout could not be read (%s); %s holds (user %r, agent %r, thread %r)",
            why, stage, key.user_id, key.agent_id, key.thread_id,
            extra={**about(key), "memory_stage": str(stage), "memory_error": why},
        )  # fmt: skip
        self._guard.memory.metrics.alert("rollout")
        return stage

    # The two contexts

    def _cut_over(self, most: int, failures: list[str]) -> Loader:
        """The loader of a stage with at most so many recent messages; summarizing keeps up with that."""
        budget = self._loader.budget
        fewest = most if budget.max_messages is None else min(most, budget.max_messages)
        guard = self._guard.heard(lambda error: failures.append(type(error).__name__), raises=True)
        return replace(self._loader, guard=guard, budget=replace(budget, max_messages=fewest))

    def _of_state(self, run: Thread) -> list[BaseMessage]:
        """The last messages of the graph's own state; what this package put there is none of them."""
        branch = [message for message in run.branch if content.source(message) != content.OURS]
        return [*recent(branch, run.current, self._rollout.last_messages)]

    def _stored(self, key: ConversationKey, run: Thread) -> Flow[list[BaseMessage]] | None:
        """The last messages from the database, where the graph's state has not all of them; `None` where it has."""
        ours = any(content.source(message) == content.OURS for message in run.branch)
        if run.branch and not ours:
            return None
        return last_messages(
            key,
            self._rollout.last_messages,
            current=run.current,
            branch=run.branch,
            waiting=[message for message, _ in self._guard.memory.outbox.waiting(key)],
            retention=self._guard.memory.retention,
        )

    def _old(self, key: ConversationKey, run: Thread, *, beside: bool = False) -> _Old:
        begun = time.perf_counter()
        stored = self._stored(key, run)
        guard = self._guard.heard(lambda _: None) if beside else self._guard
        found = None if stored is None else guard.run(stored, _UNREAD, key)
        return _Old(self._of_state(run) if found is None else found, _ms(begun))

    async def _aold(self, key: ConversationKey, run: Thread, *, beside: bool = False) -> _Old:
        begun = time.perf_counter()
        stored = self._stored(key, run)
        guard = self._guard.heard(lambda _: None) if beside else self._guard
        found = None if stored is None else await guard.arun(stored, _UNREAD, key)
        return _Old(self._of_state(run) if found is None else found, _ms(begun))

    def _new(self, key: ConversationKey, run: Thread) -> _New:
        begun, failures = time.perf_counter(), list[str]()
        pack = None
        try:
            pack = self._listening(failures).load(key, run, _silent)
        except Exception as error:
            failures.append(type(error).__name__)
        return _New(pack, _ms(begun), None if pack is not None else _word(failures))

    async def _anew(self, key: ConversationKey, run: Thread) -> _New:
        begun, failures = time.perf_counter(), list[str]()
        pack = None
        try:
            pack = await self._listening(failures).aload(key, run, _silent)
        except Exception as error:
            failures.append(type(error).__name__)
        return _New(pack, _ms(begun), None if pack is not None else _word(failures))

    def _listening(self, failures: list[str]) -> Loader:
        return replace(self._loader, guard=self._guard.heard(lambda error: failures.append(type(error).__name__)))

    # Beside the answer

    def _start(self, given: Prompt, work: Callable[[], None]) -> None:
        given.until = time.monotonic() + self._guard.deadline_seconds

        def unharmed() -> None:
            try:
                work()
            except Exception as error:
                _note(error)

        given.beside = started(unharmed)

    def _astart(self, given: Prompt, work: Callable[[], Any]) -> None:
        given.until = time.monotonic() + self._guard.deadline_seconds

        async def unharmed() -> None:
            try:
                await work()
            except Exception as error:
                _note(error)

        given.beside = asyncio.create_task(unharmed())
        self._tasks.add(given.beside)
        given.beside.add_done_callback(self._tasks.discard)

    def _compare(self, key: ConversationKey, stage: Stage, old: _Old, new: _New, given: Prompt) -> None:
        found, only_old, through = _compared(key, stage, old, new)
        answer = None
        if self._rollout.record:
            record = recorded(key, found, only_old, through)
            answer = self._guard.heard(lambda _: None).run(record, _UNRECORDED, key)
        self._conclude(key, found, answer, given)

    async def _acompare(self, key: ConversationKey, stage: Stage, old: _Old, new: _New, given: Prompt) -> None:
        found, only_old, through = _compared(key, stage, old, new)
        answer = None
        if self._rollout.record:
            record = recorded(key, found, only_old, through)
            answer = await self._guard.heard(lambda _: None).arun(record, _UNRECORDED, key)
        self._conclude(key, found, answer, given)

    def _conclude(
        self, key: ConversationKey, found: Comparison, answer: Mapping[str, Any] | None, given: Prompt
    ) -> None:
        if answer is not None and answer["recorded"]:
            at = datetime.fromisoformat(answer["compared_at"])
            found = replace(found, covered_by_summary=answer["covered_by_summary"], compared_at=at)
        numbers = found.to_dict()
        names = [name for name in numbers if name not in ("thread_id", "user_id", "agent_id", "error")]
        _logger.info(
            "Contexts compared at stage %s (user %r, agent %r, thread %r): %d messages of %d tokens; the pack %s of %s",
            found.stage, key.user_id, key.agent_id, key.thread_id, found.old_messages, found.old_tokens,
            found.new_messages, found.new_tokens,
            extra={**about(key), "memory_error": found.error, **{f"memory_{name}": numbers[name] for name in names}},
        )  # fmt: skip
        given.compared.append(found)
        if self._rollout.on_comparison is not None:
            self._rollout.on_comparison(found)


_UNSAID: Final = Task("The stage of the rollout could not be read; the last one known holds")
_UNREAD: Final = Task("The last messages could not be read; the graph's own are used")
_UNRECORDED: Final = Task("A comparison could not be recorded")


def _compared(key: ConversationKey, stage: Stage, old: _Old, new: _New) -> tuple[Comparison, list[str], int]:
    """The comparison, the ids of the messages that the old context alone has, and through where the summary goes."""
    found = Comparison(
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
        return found, [], -1
    prompt = new.pack.prompt
    before, after = _ids(old.messages), _ids(prompt)
    only_old = [each for each in before if each not in after]
    found = replace(
        found,
        new_messages=len(prompt),
        new_tokens=sum(map(content.tokens, prompt)),
        new_characters=sum(map(content.characters, prompt)),
        shared=len(before) - len(only_old),
        only_old=len(only_old),
        only_new=sum(each not in before for each in after),
        omitted=sum(last - first + 1 for first, last, why in new.pack.omitted if why != SUPERSEDED),
    )
    return found, only_old, -1 if new.pack.summary is None else new.pack.summary.to_sequence


def _ids(messages: Sequence[BaseMessage]) -> dict[str, None]:
    """The ids of those that somebody said, in order."""
    return dict.fromkeys(str(message.id) for message in messages if content.was_said(message) and message.id)


def _word(failures: list[str]) -> str:
    return failures[-1] if failures else "unknown"


def _ms(begun: float) -> float:
    return (time.perf_counter() - begun) * 1000


def _note(error: Exception) -> None:
    failure = type(error).__name__  # its text may hold content, its class does not
    _logger.error("A comparison failed (%s).", failure, extra={"memory_error": failure})


def _silent(_: Any) -> None:
    """What runs beside the answer writes nothing into its stream."""


async def _answer(awaitable: Any) -> Any:
    return await awaitable
