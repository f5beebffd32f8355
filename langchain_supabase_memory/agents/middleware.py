"""The middleware for `create_agent`: every message stored once, the context bounded, the state untouched."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from langchain_supabase_memory.adapters.writer import Summarizer, writer
from langchain_supabase_memory.agents import slash_commands
from langchain_supabase_memory.agents.run import steps
from langchain_supabase_memory.agents.run.ahead import Ahead, same
from langchain_supabase_memory.agents.run.guard import Guard, OnError, Task
from langchain_supabase_memory.agents.run.identity import Bound, running
from langchain_supabase_memory.agents.run.load import SUMMARIZING, Loader, recall_scope, report_event
from langchain_supabase_memory.agents.run.staged import Prompt, Staged
from langchain_supabase_memory.agents.run.thread import Thread, news, store_new, thread
from langchain_supabase_memory.checks import of_type, truth
from langchain_supabase_memory.errors import MissingDependencyError
from langchain_supabase_memory.language.messages import chaining
from langchain_supabase_memory.memory.opened import opened
from langchain_supabase_memory.memory.packs import noted
from langchain_supabase_memory.operations.branch import Record
from langchain_supabase_memory.operations.rollout.stages import Rollout
from langchain_supabase_memory.settings import INHERITED, Inherited, checked

try:
    from typing import NotRequired

    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
        TracePolicy,
        hook_config,
        omit_payload,
    )
except ImportError:
    raise MissingDependencyError("SupabaseMemoryMiddleware", "agents") from None

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from langgraph.runtime import Runtime

    from langchain_supabase_memory.agents.run.steps import Steps
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.settings import ContextBudget, SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey, RecallScope


class MemoryState(AgentState[Any]):
    """The agent's state, and which of it is stored: ids and digests are all that the memory keeps there."""

    supabase_memory_stored: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class SupabaseMemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Gives an agent of `create_agent` a memory.

    What is new is stored before and after each model call, so that an error, an interrupt, a retry or a killed process
    loses nothing and repeats nothing; the context is read with what is stored before, in one round trip. At the end of
    a turn it is stored as it stands in the state then, whatever other middleware made of it. Each model call gets the
    bounded context in place of the whole history; it is not written into the state. The thread and the owner come from
    the run's configuration and context (see `identity.Bound`), never from what was said.

    The graph's state decides which of its messages are current. What the newest state has left, because the graph was
    forked, went back in time, made an answer anew, or removed a message, is superseded: no prompt, summary or search
    has it, `coverage` names it, and it comes back when the state does. What was stored by hand, or before the graph's
    thread began, always stays. So does what a state without a checkpointer does not have, and what was trimmed: by
    LangChain's `SummarizationMiddleware`, by `SupabaseSummarizationNode`, or by the application, which says so with
    `trims`. A checkpointer that was wiped begins a new thread behind what is stored; a fork from before the first
    message is known by the checkpoint that the run names. Agents whose states differ need ids of their own
    (`agent_id`).

    Args:
        memory: Where the conversation is.
        budget: The most that a prompt may hold of the conversation; the memory's by default.
        policy: When and how older messages are summarized; the memory's by default.
        references: Whether a turn that the user points at ("the second one", "yung una") is put before their message.
        recall: Where to recall from what fits the user's message: `"conversation"`, `"agent"` or `"user"`; `None`:
            nothing. The memory's by default.
        model: The model that writes summaries; the memory's by default. Not the agent's: that is your choice. With
            `None` no summary is made.
        user_id: The owner; by default the run's.
        agent_id: The agent; by default the run's.
        project_id: A chain of responses (`use_previous_response_id`) is cut where this changes, as where the thread
            does; by default the run's `project_id`, if it has one.
        rollout: Introduces the context step by step, see `Rollout`; by default it is there at once.
        commands: Whether a user's message that is just `/summarize` (or `/summarise`) is answered by the memory: it
            summarizes now, and says what the board holds. Neither the command nor the answer is stored.
        trims: Whether the application trims the state itself, with `RemoveMessage`: then messages that are missing at
            its beginning were not removed.
        on_error: What happens when the memory fails. By default (`"setup"`) a mistake in the set-up is raised at the
            first call, everything else is logged, and the agent answers without memory; see `guard.OnError`.
        deadline_seconds: How long the memory may hold up one call of the model, in seconds, by all that it does before
            it: storing, reading, computing, indexing. A model that writes a summary there may take the policy's
            `timeout_seconds` beyond that. What is stored afterwards has as long again. Once the seconds are used up the
            turn goes on without memory, for half a minute at least, and what is new waits in the outbox.

    Raises:
        ConfigurationError: An argument is none of its choices.

    Example:
        ```python
        agent = create_agent(model, tools, middleware=[SupabaseMemoryMiddleware(memory)])
        agent.invoke({"messages": "Hello"}, {"configurable": {"thread_id": "studio", "user_id": "maya"}})
        ```
    """

    state_schema = MemoryState

    def __init__(
        self,
        memory: SupabaseMemory,
        *,
        budget: ContextBudget | None = None,
        policy: SummaryPolicy | None = None,
        references: bool = True,
        recall: RecallScope | Inherited | None = INHERITED,
        model: Summarizer | Inherited | None = INHERITED,
        user_id: str | None = None,
        agent_id: str | None = None,
        project_id: str | None = None,
        rollout: Rollout | None = None,
        commands: bool = True,
        trims: bool = False,
        on_error: OnError = "setup",
        deadline_seconds: float = 10.0,
    ) -> None:
        super().__init__()
        self._memory = opened(memory)
        checked(budget=budget, policy=policy)
        for name, given in (("references", references), ("commands", commands), ("trims", trims)):
            truth(name, given)
        of_type("rollout", rollout, Rollout, 'rollout=Rollout("parallel"), for example', optional=True)
        self._bound = Bound(user_id, agent_id, project_id)
        self._guard = Guard(memory, writer(model, memory.model), on_error, deadline_seconds)
        self._loader = Loader(
            self._guard,
            budget or memory.settings.budget,
            policy or memory.settings.policy,
            references,
            recall_scope(recall, memory),
        )
        self._staged = None if rollout is None else Staged(self._loader, rollout)
        self._ahead = Ahead()
        self._commands = commands
        self._trims = trims
        # Whole conversations stay out of the tracing of the hooks.
        self.trace_policy = TracePolicy(process_inputs=omit_payload)

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Answer a command to the memory, so that the model does not see it."""
        return steps.run(self._obey(state, runtime))

    @hook_config(can_jump_to=["end"])
    async def abefore_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The async twin of `before_agent`."""
        return await steps.arun(self._obey(state, runtime))

    def before_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store what came from the user and from tools, and load the context with it."""
        return steps.run(self._store_ahead(state, runtime))

    async def abefore_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The async twin of `before_model`."""
        return await steps.arun(self._store_ahead(state, runtime))

    def after_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store what the model answered."""
        return steps.run(self._store(state, runtime))

    async def aafter_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The async twin of `after_model`."""
        return await steps.arun(self._store(state, runtime))

    def after_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store what other middleware added at the end."""
        return steps.run(self._store(state, runtime))

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The async twin of `after_agent`."""
        return await steps.arun(self._store(state, runtime))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Give the model the bounded context."""
        return steps.run(self._answer(request, handler))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """The async twin of `wrap_model_call`."""
        return await steps.arun(self._answer(request, handler))

    def _obey(self, state: MemoryState, runtime: Runtime[Any]) -> Steps[dict[str, Any] | None]:
        """Do what the user commands, and end the run; nothing if they command nothing."""
        run = self._thread(state)
        asked = slash_commands.command(run.conversation) if self._commands else None
        if asked is None:
            return None
        key = self._key(runtime)
        runtime.stream_writer({"type": SUMMARIZING, "thread_id": key.thread_id})
        guard = self._guard.begin(key, run.current)
        record = yield from store_new(guard, key, replace(run, current=[]))
        text = yield from guard.attempt(self._summarized(key), _UNSUMMARIZED, key, more=self._summarizing_seconds)
        messages = slash_commands.answer(asked, text or slash_commands.UNREACHED)
        return {**_remembered(record), "messages": messages, "jump_to": "end"}

    def _store(self, state: MemoryState, runtime: Runtime[Any]) -> Steps[dict[str, Any] | None]:
        """Bring the store to the state."""
        run, key = self._thread(state), self._key(runtime)
        record = yield from store_new(self._guard.begin(key, run.current), key, run)
        return _remembered(record) or None

    def _store_ahead(self, state: MemoryState, runtime: Runtime[Any]) -> Steps[dict[str, Any] | None]:
        """Bring the store to the state, and read the pack in the same round trip, for the call that follows."""
        if self._staged is not None:  # the stage decides what is read, and when
            return (yield from self._store(state, runtime))
        run, key = self._thread(state), self._key(runtime)
        loader = replace(self._loader, guard=self._guard.begin(key, run.current))
        changes = news(self._memory, key, run)
        if changes is None:
            return None
        record, pack = yield from loader.stored(key, changes, runtime.stream_writer)
        if record is not None and pack is not None:
            self._ahead.keep(record.token, key, run, pack)
        return _remembered(record) or None

    def _answer(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Steps[Any]:
        """The answer of the model to the bounded context, and of its handler in either color."""
        key, run, writer = self._key(request.runtime), self._requested(request), request.runtime.stream_writer
        stamp = None
        guard = self._guard.resume(key, (run if run.origin is None else run.origin).current)
        if self._staged is None:
            loader = replace(self._loader, guard=guard)
            prompt = Prompt(self._ahead.taken(key, run) or (yield from loader.load(key, run, writer)))
        else:
            prompt = yield from self._staged.prompt(guard, key, run, writer)
        if prompt.pack is not None:
            stamp = self._stamp(request, key, prompt.pack)
            request = self._bounded(request, prompt.pack, stamp)
        elif prompt.messages is not None:
            messages: list[Any] = [*run.system, *prompt.messages]  # LangChain's own union of classes
            request = request.override(messages=messages)
        response = yield prompt.settled(partial(handler, request), writer)
        if prompt.pack is not None:
            # By what the state says was asked: other middleware may have made another message of it for the request.
            current = (run if run.origin is None else run.origin).current
            lists = noted(self._memory.settings.manifests, prompt.pack, "middleware")
            self._memory.packs.keep(key, current, lists)
        return _stamped(response, stamp)

    def _thread(self, state: Mapping[str, Any]) -> Thread:
        """The state's messages, and what of them was stored last."""
        return thread(state["messages"], running()[0], trims=self._trims, record=Record.of(state.get(_STORED)))

    def _requested(self, request: ModelRequest[Any]) -> Thread:
        """The messages of a request; other middleware may have made others of the state's."""
        state = self._thread(request.state)
        run = thread(request.messages)
        return replace(run, origin=state, lineage=state.lineage if same(run, state) else run.lineage)

    @property
    def _summarizing_seconds(self) -> float:
        """As long as several segments and a revision may take: somebody waits for just this."""
        policy, board = self._loader.policy, self._memory.settings.board_policy
        return 4 * policy.timeout_seconds * policy.attempts + 2 * board.timeout_seconds * board.attempts

    def _summarized(self, key: ConversationKey) -> Flow[str]:
        policy = self._loader.policy.for_budget(self._loader.budget)
        return slash_commands.summarized(key, policy, self._memory.settings.board_policy, model=self._guard.writer_name)

    def _key(self, runtime: object) -> ConversationKey:
        return self._bound.key(self._memory, running()[0], runtime)

    def _bounded(
        self, request: ModelRequest[Any], pack: ContextPack, stamp: Mapping[str, Any] | None
    ) -> ModelRequest[Any]:
        messages: list[Any] = pack.prompt
        previous = None
        if stamp is not None:
            messages, previous = chaining.prepared(pack.chained, stamp)
        if previous is None:
            # The developer's own instructions, which are neither stored nor fitted; a chain has them already.
            messages = [*thread(request.messages).system, *messages]
        request.runtime.stream_writer(report_event(pack, None if stamp is None else previous is not None))
        return request.override(messages=messages)

    def _stamp(self, request: ModelRequest[Any], key: ConversationKey, pack: ContextPack) -> dict[str, Any] | None:
        """What a chain of responses begins with; `None` if the model makes none."""
        if not getattr(request.model, "use_previous_response_id", False):
            return None
        return {
            "user": key.user_id,
            "thread": [key.agent_id, key.thread_id],
            "project": self._bound.project(running()[0], request.runtime),
            "model": getattr(request.model, "model_name", None),
            "summary": None if pack.summary is None else pack.summary.id,
            "from": pack.first_sequence,
        }


_STORED: Final = "supabase_memory_stored"
_UNSUMMARIZED: Final = Task("A summary that was asked for could not be made; nothing is lost")


def _remembered(record: Record | None) -> dict[str, Any]:
    """What the state holds of what was stored; nothing if nothing was."""
    return {} if record is None else {_STORED: record.to_dict()}


def _stamped(response: ModelResponse[Any], stamp: Mapping[str, Any] | None) -> ModelResponse[Any]:
    if stamp is None:
        return response
    return replace(response, result=[chaining.stamped(message, stamp) for message in response.result])
