"""The middleware for `create_agent`: every message stored once, the context bounded, the state untouched."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, Final

from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage

from langchain_supabase_memory import effects
from langchain_supabase_memory.adapters.runnable_types import alternates
from langchain_supabase_memory.adapters.summarizer import Summarizer, summarizer
from langchain_supabase_memory.agents import slash_commands
from langchain_supabase_memory.agents.run.fail_open import FailOpen, GuardedTask, OnError
from langchain_supabase_memory.agents.run.graph_state import (
    GraphState,
    OnTrim,
    Rules,
    diff,
    graph_state,
    removals,
    store_new,
)
from langchain_supabase_memory.agents.run.identity import RunIdentity, current_run
from langchain_supabase_memory.agents.run.load import SUMMARIZING, Loader, recall_scope, report_event
from langchain_supabase_memory.agents.run.pack_cache import PackCache, same
from langchain_supabase_memory.agents.run.partial_answers import PartialAnswers
from langchain_supabase_memory.agents.run.prompt_cache import cache_controls, cache_key, cache_kind, with_breakpoint
from langchain_supabase_memory.agents.run.request_sizes import RequestSizes
from langchain_supabase_memory.agents.run.rollout_prompt import PromptStages, RolloutPrompt
from langchain_supabase_memory.checks import boolean, require_type
from langchain_supabase_memory.context.alternate import alternate_roles
from langchain_supabase_memory.context.shared_part import shared_request
from langchain_supabase_memory.errors import MissingDependencyError
from langchain_supabase_memory.language.messages import chaining, codec
from langchain_supabase_memory.language.messages.content import as_answer, is_marked_answer
from langchain_supabase_memory.memory.pending_manifests import build_manifest
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.operations.boards.perspective import EXAMPLE, Perspective
from langchain_supabase_memory.operations.branch import StateRecord
from langchain_supabase_memory.operations.recall.ranges import known_zone
from langchain_supabase_memory.operations.rollout.stages import Rollout
from langchain_supabase_memory.settings import INHERITED, Inherited, check_settings
from langchain_supabase_memory.unpicklable import Unpicklable

try:
    from typing import NotRequired

    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
        TracePolicy,
        hook_config,
        omit_payload,
    )
    from langgraph.types import Command
except ImportError:
    raise MissingDependencyError("SupabaseMemoryMiddleware", "agents") from None

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import tzinfo

    from langchain_core.messages import BaseMessage
    from langgraph.runtime import Runtime

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.effects import Effects, Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.settings import ContextBudget, SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey, RecallScope


class MemoryState(AgentState[Any]):
    """The agent's state, and which of it is stored: ids and digests are all that the memory keeps there."""

    supabase_memory_stored: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class SupabaseMemoryMiddleware(Unpicklable, AgentMiddleware[MemoryState, Any, Any]):
    """Gives an agent of `create_agent` a memory.

    What is new is stored right before and after each model call, so that an error, an interrupt, a retry or a killed
    process loses nothing and repeats nothing; the context is read with what is stored before, in one round trip. What
    other middleware refuses or redacts before the model is called is never stored as it came. At the end of a turn it
    is stored as it stands in the state then, whatever other middleware made of it. Each model call gets the bounded
    context in place of the whole history; it is not written into the state. The thread and the owner come from the
    run's configuration and context (see `identity.Bound`), never from what was said.

    Every message that was stored stays, in the order in which it was stored, until a state that held it takes it away:
    a run that names an earlier checkpoint leaves what lies beyond that, and a message that is removed from the state is
    gone. What was left is superseded: no prompt, summary or search has it, `coverage` names it, and it comes back when
    the state does. A run that merely lacks a message takes nothing away: it may be another run of the same thread. What
    disappears from the beginning of the state, or during a run from earlier turns, was trimmed and stays, unless
    `on_trim` says otherwise. Agents whose states differ need ids of their own (`agent_id`), and users threads of their
    own: a state that holds another user's messages is refused.

    Args:
        memory: Where the conversation is.
        budget: The most that a prompt may hold of the conversation; the memory's by default.
        policy: When and how older messages are summarized; the memory's by default.
        references: Whether a turn that the user points at ("the second one", "yung una") is put before their message.
        recall: Where to recall from what fits the user's message: `"conversation"`, `"agent"` or `"user"`; `None`:
            nothing. The memory's by default.
        spaces: The ids of at most 10 spaces, which are this agent's grant: what their members contributed is shown,
            with author and date, in at most `budget.shared` of the prompt. One that the user is not in is named in the
            report, and nothing of it is shown.
        agents: At most 10 other agents of the same user: what the boards of the newest conversations with them hold is
            shown there, too, and recall searches all conversations with them.
        model: The model that writes summaries; the memory's by default. Not the agent's: that is your choice. With
            `None` no summary is made.
        agent_id: The agent; by default the run's.
        project_id: A chain of responses (`use_previous_response_id`) is cut where this changes, as where the thread
            does; by default the run's `project_id`, if it has one.
        rollout: Introduces the context step by step, see `Rollout`; by default it is there at once.
        commands: Whether a user's message that is just `/summarize` (or `/summarise`) is answered by the memory: it
            summarizes now, and says what the board holds. Neither the command nor the answer is stored.
        on_trim: What becomes of messages that disappear from the beginning of the state, or during a run from earlier
            turns: `"keep"` them, as they were trimmed, or `"supersede"` them, as the application removed them.
        sends_history: Whether the application keeps the history itself and sends all of it with each run, without a
            checkpointer: then what it leaves out behind its first message was removed, such as the rest of a
            conversation whose question a person edits.
        time_zone: That of the user, such as `"Asia/Manila"`, in which days begin and recalled lines are dated. By
            default `time_zone` of the run's context or configuration, else the memory's.
        partial_answers: Whether what a model had streamed is stored when the run is stopped or the model fails: as an
            AI message with `response_metadata["supabase_memory"] == {"partial": True}`, behind which prompts say
            `[stopped]`. By default it is not.
        prompt_cache: Whether a provider's cache is told where the prompt's beginning ends: by one `cache_control` for
            Anthropic's models, by a `prompt_cache_key` for those of OpenAI and Mistral. `None`: for these by their
            class; `True`: also for other models that take `cache_control`, and other hosts; `False`: for none. Stands
            beside `AnthropicPromptCachingMiddleware`, in either order; list it before this one if it has `ttl="1h"`.
        on_error: What happens when the memory fails. By default (`"setup"`) a mistake in the set-up is raised at the
            first call, everything else is logged, and the agent answers without memory; see `guard.OnError`.
        deadline_seconds: How long the memory may hold up one call of the model, in seconds, by all that it does before
            it: storing, reading, computing, indexing. A model that writes a summary there may take the policy's
            `timeout_seconds` beyond that. What is stored afterwards has as long again. Once the seconds are used up the
            turn goes on without memory, for half a minute at least, and what is new waits in the outbox.
        perspective: What this agent watches: the order of the board's items, see `Perspective`. The usual by default.

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
        spaces: Sequence[str] = (),
        agents: Sequence[str] = (),
        model: Summarizer | Inherited | None = INHERITED,
        agent_id: str | None = None,
        project_id: str | None = None,
        rollout: Rollout | None = None,
        commands: bool = True,
        on_trim: OnTrim = "keep",
        sends_history: bool = False,
        time_zone: str | tzinfo | None = None,
        partial_answers: bool = False,
        prompt_cache: bool | None = None,
        on_error: OnError = "setup",
        deadline_seconds: float = 10.0,
        perspective: Perspective | None = None,
    ) -> None:
        super().__init__()
        self._memory = require_memory(memory)
        check_settings(budget=budget, policy=policy)
        truths = {"references": references, "commands": commands, "partial_answers": partial_answers}
        for name, given in truths.items():
            boolean(name, given)
        if prompt_cache is not None:
            boolean("prompt_cache", prompt_cache)
        known_zone(time_zone)
        require_type("perspective", perspective, Perspective, EXAMPLE, optional=True)
        require_type("rollout", rollout, Rollout, 'rollout=Rollout("parallel"), for example', optional=True)
        self._bound = RunIdentity(agent_id, project_id)
        self._guard = FailOpen(memory, summarizer(model, memory._services.model), on_error, deadline_seconds)
        self._loader = Loader(
            self._guard,
            budget or memory._services.settings.budget,
            policy or memory._services.config.policy,
            references,
            recall_scope(recall, memory),
            time_zone=time_zone,
            shared=shared_request(spaces, agents),
            holds_work=True,
            perspective=perspective,
        )
        self._staged = None if rollout is None else PromptStages(self._loader, rollout)
        self._ahead = PackCache()
        self._partial = PartialAnswers(self._guard) if partial_answers else None
        self._sizes = RequestSizes()
        self._commands = commands
        self._prompt_cache = prompt_cache
        self._rules = Rules(on_trim, sends_history)
        # Whole conversations stay out of the tracing of the hooks.
        self.trace_policy = TracePolicy(process_inputs=omit_payload)

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Take away what was removed since the last run, and answer a command to the memory without the model."""
        return effects.run(self._run_command(state, runtime))

    @hook_config(can_jump_to=["end"])
    async def abefore_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The async twin of `before_agent`."""
        return await effects.arun(self._run_command(state, runtime))

    def before_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store what came from tools, and load the context with it."""
        return effects.run(self._store_ahead(state, runtime))

    async def abefore_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The async twin of `before_model`."""
        return await effects.arun(self._store_ahead(state, runtime))

    def after_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store what the model answered."""
        return effects.run(self._store(state, runtime))

    async def aafter_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The async twin of `after_model`."""
        return await effects.arun(self._store(state, runtime))

    def after_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store what other middleware added at the end, and start the work that no answer waits for."""
        return effects.run(self._finish_turn(state, runtime))

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The async twin of `after_agent`."""
        return await effects.arun(self._finish_turn(state, runtime))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Store what came from the user, and give the model the bounded context."""
        return effects.run(self._answer(request, handler))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """The async twin of `wrap_model_call`, with a handler that is awaited."""
        return await effects.arun(self._answer(request, handler))

    def _run_command(self, state: MemoryState, runtime: Runtime[Any]) -> Effects[dict[str, Any] | None]:
        """Do what the user commands, and end the run; nothing if they command nothing."""
        run = self._thread(state)
        asked = slash_commands.command(run.conversation) if self._commands else None
        key = self._key(runtime)
        if asked is None:
            changes = removals(self._memory, key, run, rules=self._rules)
            if changes is None:
                return None
            return _remembered((yield from changes.stored(self._guard.begin(key, run.current)))) or None
        runtime.stream_writer({"type": SUMMARIZING, "thread_id": key.thread_id})
        guard = self._guard.begin(key, run.current)
        record = yield from store_new(guard, key, replace(run, current=[]), rules=self._rules)
        text = yield from guard.attempt(self._summarized(key), _UNSUMMARIZED, key, more=self._summarizing_seconds)
        messages = slash_commands.answer(asked, text or slash_commands.UNREACHED)
        return {**_remembered(record), "messages": messages, "jump_to": "end"}

    def _store(self, state: MemoryState, runtime: Runtime[Any]) -> Effects[dict[str, Any] | None]:
        """Bring the store to the state."""
        run, key = self._thread(state), self._key(runtime)
        if self._partial is not None:
            yield from self._partial.settle(key, run)
        record = yield from store_new(self._guard.begin(key, run.current), key, run, rules=self._rules)
        return _remembered(record) or None

    def _finish_turn(self, state: MemoryState, runtime: Runtime[Any]) -> Effects[dict[str, Any] | None]:
        """Bring the store to the state of the turn's end, and start what waited for it."""
        answer = _tool_answer(state["messages"])
        if answer is not None:
            state = {**state, "messages": [*state["messages"][:-1], answer]}
        update = yield from self._store(state, runtime)
        self._loader.finish_turn(self._key(runtime))
        return update if answer is None else {**(update or {}), "messages": [answer]}

    def _store_ahead(self, state: MemoryState, runtime: Runtime[Any]) -> Effects[dict[str, Any] | None]:
        """Bring the store to the state, and read the pack in the same round trip, for the call that follows.

        Only behind tools, whose results a limit may keep from the model. What the user said is stored as the model is
        called: other middleware may refuse it before.
        """
        run, key = self._thread(state), self._key(runtime)
        if self._partial is not None:
            yield from self._partial.settle(key, run)
        if not run.messages or not isinstance(run.messages[-1], ToolMessage):
            return None
        if self._staged is not None:  # the stage decides what is read, and when
            return (yield from self._store(state, runtime))
        loader = replace(self._loader, guard=self._guard.begin(key, run.current))
        changes = diff(self._memory, key, run, rules=self._rules)
        if changes is None:
            return None
        record, pack = yield from loader.stored(key, changes, run, runtime.stream_writer)
        if record is not None and pack is not None:
            self._ahead.put(record.token, key, run, pack)
        return _remembered(record) or None

    def _answer(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Effects[Any]:
        """The answer of the model to the bounded context, and of its handler in either color."""
        key, run, writer = self._key(request.runtime), self._requested(request), request.runtime.stream_writer
        state = run.origin or run
        stamp = record = None
        # Behind tools, what was stored before this call counts as well.
        is_begun = bool(state.messages) and isinstance(state.messages[-1], ToolMessage)
        guard = (self._guard.resume if is_begun else self._guard.begin)(key, state.current)
        loader = replace(self._loader, guard=guard)
        pack = self._ahead.pop(key, run)
        if pack is None:
            changes = diff(self._memory, key, state, rules=self._rules)
            if changes is not None and self._staged is None:
                record, pack = yield from loader.stored(key, changes, run, writer)
            elif changes is not None:
                record = yield from changes.stored(guard)
        if self._staged is None:
            prompt = RolloutPrompt(pack or (yield from loader.load(key, run, writer)))
        else:
            prompt = yield from self._staged.prompt(loader, key, run, writer)
        own = [*([] if request.system_message is None else [request.system_message]), *run.system]
        request_list = partial(self._sizes.encode, own, request.tools)
        if prompt.pack is not None:
            stamp = self._stamp(request, key, prompt.pack)
            request = self._apply_pack(request, run.system, prompt.pack, stamp)
            request = self._with_cache(request, key, run.current[0].id if run.current else None)
        elif prompt.messages is not None:
            messages: list[Any] = [*run.system, *prompt.messages]  # LangChain's own union of classes
            request = request.override(messages=messages)
        call: Callable[[], Any] = partial(handler, self._alternating(request))
        if self._partial is not None:
            call = self._partial.keeping(key, run, call)
        response = yield prompt.and_finish(call, writer)
        known = [*state.messages, *([] if prompt.pack is None else prompt.pack.messages)]
        response = replace(response, result=codec.distinct(_with_answer(response), known))
        if prompt.pack is not None:
            # By what the state says was asked: other middleware may have made another message of it for the request.
            lists = build_manifest(
                self._memory._services.config.manifests, prompt.pack, "middleware", request_list=request_list
            )
            self._memory._services.packs.put(key, state.current, lists)
        if record is None:
            return _stamped(response, stamp)
        return ExtendedModelResponse(_stamped(response, stamp), Command(update=_remembered(record)))

    def _thread(self, state: Mapping[str, Any]) -> GraphState:
        """The state's messages, and what of them was stored last."""
        return graph_state(state["messages"], current_run()[0], record=StateRecord.from_dict(state.get(_STORED)))

    def _requested(self, request: ModelRequest[Any]) -> GraphState:
        """The messages of a request; other middleware may have made others of the state's."""
        state = self._thread(request.state)
        if [*map(id, request.messages)] == [*map(id, request.state["messages"])]:
            return replace(state, record=None, origin=state)
        run = graph_state(request.messages)
        return replace(run, origin=state, lineage=state.lineage if same(run, state) else run.lineage)

    @property
    def _summarizing_seconds(self) -> float:
        """As long as several segments and a revision may take: somebody waits for just this."""
        policy, board = self._loader.policy, self._memory._services.config.board_policy
        return 4 * policy.timeout_seconds * policy.attempts + 2 * board.timeout_seconds * board.attempts

    def _summarized(self, key: ConversationKey) -> Flow[str]:
        policy = self._loader.policy.for_budget(self._loader.budget)
        config = self._memory._services.config
        return slash_commands.summarize_now(
            key,
            policy,
            config.board_policy,
            model=self._guard.writer_name,
            time_zone=config.time_zone,
            profile=config.profile,
        )

    def _key(self, runtime: object) -> ConversationKey:
        return self._bound.key(self._memory, current_run()[0], runtime)

    def _apply_pack(
        self,
        request: ModelRequest[Any],
        system: Sequence[BaseMessage],
        pack: ContextPack,
        stamp: Mapping[str, Any] | None,
    ) -> ModelRequest[Any]:
        messages: list[Any] = pack.prompt
        previous = None
        if stamp is not None:
            messages, previous = chaining.prepare(pack.chained, stamp)
        if previous is None:
            # The developer's own instructions, which are neither stored nor fitted; a chain has them already.
            messages = [*system, *messages]
        request.runtime.stream_writer(report_event(pack, None if stamp is None else previous is not None))
        return request.override(messages=messages)

    def _with_cache(self, request: ModelRequest[Any], key: ConversationKey, question: str | None) -> ModelRequest[Any]:
        """The request with what tells the provider's cache of its beginning; as it is where nothing does."""
        kind, settings = cache_kind(request.model, self._prompt_cache), request.model_settings
        if kind == "key":
            is_named = "prompt_cache_key" in {**settings, **getattr(request.model, "model_kwargs", {})}
            if is_named or not self._memory._services.is_owner_known(key):
                return request
            return request.override(model_settings={**settings, "prompt_cache_key": cache_key(key)})
        if kind is None or question is None:
            return request
        # Roles that alternate may have joined messages: the question is the last one that has its id.
        end = max((place for place, message in enumerate(request.messages) if message.id == question), default=0)
        others = [*cache_controls([*request.tools, settings])]
        messages: list[Any] = with_breakpoint(request.messages, end, request.system_message, others, request.model)
        return request.override(messages=messages)

    def _alternating(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """The request with roles that alternate, where that is asked for or the model is known to need it."""
        wanted = self._loader.budget.alternate_roles
        if not (alternates(request.model) if wanted is None else wanted):
            return request
        system = request.system_message
        messages: list[Any] = alternate_roles([*([] if system is None else [system]), *request.messages])
        if not (messages and isinstance(messages[0], SystemMessage)):
            return request.override(messages=messages)
        return request.override(system_message=messages[0], messages=messages[1:])

    def _stamp(self, request: ModelRequest[Any], key: ConversationKey, pack: ContextPack) -> dict[str, Any] | None:
        """What a chain of responses begins with; `None` if the model makes none."""
        if not getattr(request.model, "use_previous_response_id", False):
            return None
        return {
            "user": key.user_id,
            "thread": [key.agent_id, key.thread_id],
            "project": self._bound.project(current_run()[0], request.runtime),
            "model": getattr(request.model, "model_name", None),
            "summary": None if pack.summary is None else pack.summary.id,
            "from": pack.first_sequence,
        }


_STORED: Final = "supabase_memory_stored"
_UNSUMMARIZED: Final = GuardedTask("A summary that was asked for could not be made; nothing is lost")


def _remembered(record: StateRecord | None) -> dict[str, Any]:
    """What the state holds of what was stored; nothing if nothing was."""
    return {} if record is None else {_STORED: record.to_dict()}


def _with_answer(response: ModelResponse[Any]) -> list[BaseMessage]:
    """The response's messages. The tool's message of a structured response is the turn's answer."""
    if response.structured_response is None:
        return response.result
    return [as_answer(message) if isinstance(message, ToolMessage) else message for message in response.result]


def _tool_answer(messages: Sequence[BaseMessage]) -> ToolMessage | None:
    """The message of a tool that ended the run, such as one that returns directly, as the turn's answer.

    Returns:
        `None` if the run ended with something else, or the turn has its answer.
    """
    if not messages or not isinstance(messages[-1], ToolMessage):
        return None
    turn = takewhile(lambda message: not isinstance(message, HumanMessage), reversed(messages))
    is_answered = any(is_marked_answer(message.response_metadata) for message in turn)
    return None if is_answered else as_answer(messages[-1])


def _stamped(response: ModelResponse[Any], stamp: Mapping[str, Any] | None) -> ModelResponse[Any]:
    if stamp is None:
        return response
    return replace(response, result=[chaining.stamp(message, stamp) for message in response.result])
