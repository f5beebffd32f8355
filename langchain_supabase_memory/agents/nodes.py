"""Nodes for a LangGraph graph, each a public `Runnable` in both colors.

```
START → SupabaseSummarizationNode → your model → SaveTurnNode → END
```
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypedDict

from langchain_core.messages import BaseMessage, RemoveMessage
from langchain_core.runnables import Runnable, RunnableConfig

from langchain_supabase_memory import effects
from langchain_supabase_memory.adapters.callbacks import hide_tokens
from langchain_supabase_memory.adapters.summarizer import Summarizer, asking, require_summarizer, summarizer
from langchain_supabase_memory.agents.run.fail_open import FailOpen, OnError
from langchain_supabase_memory.agents.run.graph_state import (
    GraphState,
    OnTrim,
    Rules,
    diff,
    graph_state,
    moves,
    store_new,
)
from langchain_supabase_memory.agents.run.identity import RunIdentity, current_run
from langchain_supabase_memory.agents.run.load import Loader, recall_scope, report_event, stream_writer
from langchain_supabase_memory.agents.run.rollout_prompt import PromptStages, RolloutPrompt
from langchain_supabase_memory.checks import boolean, refuse_unknown, require_type
from langchain_supabase_memory.context.alternate import alternate_roles
from langchain_supabase_memory.context.shared_part import shared_request
from langchain_supabase_memory.errors import ConfigurationError, SupabaseMemoryError
from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.memory.pending_manifests import build_manifest
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.operations import conversations, summaries
from langchain_supabase_memory.operations.boards.perspective import EXAMPLE, Perspective
from langchain_supabase_memory.operations.recall.ranges import known_zone
from langchain_supabase_memory.operations.rollout.stages import Rollout
from langchain_supabase_memory.settings import INHERITED, Inherited, check_settings
from langchain_supabase_memory.unpicklable import Unpicklable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo
    from typing import Unpack

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.effects import Effects, Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.settings import ContextBudget, SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey, RecallScope

REMOVE_ALL: Final = "__remove_all__"
"""LangGraph's id for removing all messages; written out, so that `langgraph` is not imported for it."""

_TRIES: Final = 5
"""How often a summary is made again because another summarizer was faster, or a message changed meanwhile."""


class _Settings(TypedDict, total=False):
    """What every node may be given; see `_Node`."""

    agent_id: str | None
    input_messages_key: str
    on_error: OnError
    deadline_seconds: float
    model: Summarizer | None
    name: str | None
    on_trim: OnTrim
    sends_history: bool


class _LoadSettings(_Settings, total=False):
    """What `LoadContextNode` may be given beside its key; see there."""

    budget: ContextBudget | None
    policy: SummaryPolicy | None
    references: bool
    recall: RecallScope | Inherited | None
    spaces: Sequence[str]
    agents: Sequence[str]
    rollout: Rollout | None
    time_zone: str | tzinfo | None
    perspective: Perspective | None


class _Node(Unpicklable, Runnable[Any, dict[str, Any]]):
    """What all nodes have: a memory, ids, and failures that do not stop the graph.

    Args:
        memory: Where the conversation is.
        agent_id: The agent; by default the run's.
        input_messages_key: The key of the state that holds the messages.
        on_error: What happens when the memory fails. By default (`"setup"`) a mistake in the set-up is raised at the
            first call, and everything else is logged; see `guard.OnError`.
        deadline_seconds: How long the memory may hold up the graph in this node, in seconds, by all that it does there;
            see `SupabaseMemoryMiddleware`.
        model: The summary model; the memory's by default. With `None` no summary is made.
        name: The node's name.
        on_trim: What becomes of messages that disappear from the state's beginning; see `SupabaseMemoryMiddleware`.
        sends_history: Whether the application sends the whole history with each run; see there.
    """

    def __init__(
        self,
        memory: SupabaseMemory,
        *,
        agent_id: str | None = None,
        input_messages_key: str = "messages",
        on_error: OnError = "setup",
        deadline_seconds: float = 10.0,
        model: Summarizer | Inherited | None = INHERITED,
        name: str | None = None,
        on_trim: OnTrim = "keep",
        sends_history: bool = False,
    ) -> None:
        require_type("name", name, str, 'name="save"', optional=True)
        require_type("input_messages_key", input_messages_key, str, 'input_messages_key="messages"')
        self.name = name or type(self).__name__
        self._memory = require_memory(memory)
        self._bound = RunIdentity(agent_id)
        self._input = input_messages_key
        self._rules = Rules(on_trim, sends_history)
        self._guard = FailOpen(memory, summarizer(model, memory._services.model), on_error, deadline_seconds)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002
        """Do what the node does.

        Args:
            input: The graph's state.
            config: The run's configuration.

        Returns:
            The update of the state.

        Raises:
            InvalidInputError: No thread or nobody is named, or the state holds no messages.
        """
        return effects.run(self._work(input, config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002
        """The async twin of `invoke`."""
        return await effects.arun(self._work(input, config))

    @abstractmethod
    def _work(self, state: object, config: RunnableConfig | None) -> Effects[dict[str, Any]]:
        """What the node does; returns the update of the state."""

    def _key(self, config: RunnableConfig | None) -> ConversationKey:
        ambient, runtime = current_run()
        return self._bound.key(self._memory, config or ambient, runtime)

    def _thread(self, state: object, config: RunnableConfig | None) -> GraphState:
        messages = state.get(self._input) if isinstance(state, dict) else getattr(state, self._input, None)
        return graph_state([] if messages is None else messages, config or current_run()[0], input_key=self._input)

    def __repr__(self) -> str:
        """The node's name; it reads nothing."""
        return f"{type(self).__name__}({self._memory!r})"


class SaveTurnNode(_Node):
    """Stores the state's messages: once each, in order, as they are now. Put it after the model.

    What the state has left, because the run names an earlier checkpoint or a message was removed, is superseded; see
    `SupabaseMemoryMiddleware`. Arguments as for every node, see `_Node`. It returns no update.
    """

    def _work(self, state: object, config: RunnableConfig | None) -> Effects[dict[str, Any]]:
        run, key = self._thread(state, config), self._key(config)
        yield from store_new(self._guard.begin(key, run.current), key, run, rules=self._rules)
        return {}


class LoadContextNode(_Node):
    """Puts the bounded context into the state under a key of its own, and stores no message.

    What the state has left, because the run names an earlier checkpoint or a message was removed, is superseded here
    already, and what the state has again comes back; see `SupabaseMemoryMiddleware`.
    If the memory fails, these are the state's own messages.

    Args:
        memory: Where the conversation is.
        output_messages_key: The key that the messages are returned under: the fenced summary, the recent messages,
            and the current turn.
        budget: The most that the pack may hold; the memory's by default. A node does not see the model that reads its
            messages: pass `alternate_roles=True` in it where that wants roles in turn.
        policy: When and how a summary is made; the memory's by default.
        references: Whether a turn that the user points at ("the second one", "yung una") is put before their message.
        recall: Where to recall from what fits the user's message: `"conversation"`, `"agent"` or `"user"`; `None`:
            nothing. The memory's by default.
        spaces: The spaces whose boards are shown; see `SupabaseMemoryMiddleware`.
        agents: The other agents whose boards are shown, and whose conversations are searched; see there.
        rollout: Introduces the context step by step, see `Rollout`; by default it is there at once. What runs beside
            the old context is waited for here, up to `deadline_seconds`; the middleware lets it run beside the model.
        time_zone: That of the user, in which days begin and recalled lines are dated; by default `time_zone` of the
            run's context or configuration, else the memory's.
        perspective: What this agent watches: the order of the board's items, see `Perspective`. The usual by default.
        settings: The arguments that every node has, see `_Node`.
    """

    _stores = False

    def __init__(
        self,
        memory: SupabaseMemory,
        *,
        output_messages_key: str = "context_messages",
        budget: ContextBudget | None = None,
        policy: SummaryPolicy | None = None,
        references: bool = True,
        recall: RecallScope | Inherited | None = INHERITED,
        spaces: Sequence[str] = (),
        agents: Sequence[str] = (),
        rollout: Rollout | None = None,
        time_zone: str | tzinfo | None = None,
        perspective: Perspective | None = None,
        **settings: Unpack[_Settings],
    ) -> None:
        refuse_unknown(type(self).__name__, settings, _Settings.__annotations__, ConfigurationError)
        super().__init__(memory, **settings)
        check_settings(budget=budget, policy=policy)
        boolean("references", references)
        known_zone(time_zone)
        require_type("perspective", perspective, Perspective, EXAMPLE, optional=True)
        require_type("rollout", rollout, Rollout, 'rollout=Rollout("parallel"), for example', optional=True)
        require_type("output_messages_key", output_messages_key, str, 'output_messages_key="summarized_messages"')
        self._output = output_messages_key
        self._alternates = bool((budget or memory._services.settings.budget).alternate_roles)
        if self._alternates and self._output == self._input:
            # They would be stored as they are: joined with what the memory said.
            raise ConfigurationError(
                "Messages whose roles alternate cannot replace the state's.",
                hint='Pass output_messages_key="summarized_messages", and give your model that key.',
            )
        self._loader = Loader(
            self._guard,
            budget or memory._services.settings.budget,
            policy or memory._services.config.policy,
            references,
            recall_scope(recall, memory),
            time_zone=time_zone,
            shared=shared_request(spaces, agents),
            perspective=perspective,
        )
        self._staged = None if rollout is None else PromptStages(self._loader, rollout)

    def _work(self, state: object, config: RunnableConfig | None) -> Effects[dict[str, Any]]:
        run, key, writer = self._thread(state, config), self._key(config), stream_writer()
        changes = (diff if self._stores else moves)(self._memory, key, run, rules=self._rules)
        guard = self._guard.begin(key, run.current)
        # A node that only loads also does so where nothing can be written; what else fails, the loading raises.
        storing = guard if self._stores else guard.with_listener(lambda _: None)
        loader = replace(self._loader, guard=guard)
        if self._staged is None:
            pack = None
            if changes is not None:
                _, pack = yield from loader.stored(key, changes, run, writer, storing)
            if pack is None:
                pack = yield from loader.load(key, run, writer)
            prompt = RolloutPrompt(pack)
        else:
            if changes is not None:
                yield from changes.stored(storing)
            prompt = yield from self._staged.prompt(loader, key, run, writer)
            yield from prompt.finish(writer)
        if prompt.pack is not None:
            lists = build_manifest(self._memory._services.config.manifests, prompt.pack, "node")
            self._memory._services.packs.put(key, run.current, lists)
        update = self._update(run, prompt.pack, prompt.messages)
        if self._alternates:
            update = {name: alternate_roles(messages) for name, messages in update.items()}
        hide_tokens(update.get(self._output, ()), config or current_run()[0])
        return update

    def _update(
        self, run: GraphState, pack: ContextPack | None, last: Sequence[BaseMessage] | None = None
    ) -> dict[str, Any]:
        if last is not None:
            return {self._output: [*run.system, *last]}
        if pack is None:
            return {self._output: [*run.system, *run.branch, *run.current]}
        stream_writer()(report_event(pack))
        messages = pack.prompt
        if self._output == self._input:
            # These become the state's own, and are stored as they are: the question stays as it was asked.
            messages = [*pack.messages, *(entry.message for entry in pack.fitted.current)]
        return {self._output: [*run.system, *messages]}


class SupabaseSummarizationNode(LoadContextNode):
    """Stores what is new in the state's messages, and returns them bounded: older ones as a rolling summary.

    It can stand where `langmem.short_term.SummarizationNode` stands: it reads `messages` and returns
    `summarized_messages`. Nothing else is kept in the state; the history stays in the database.

    Args:
        memory: Where the conversation is.
        output_messages_key: The key that the bounded messages are returned under. The same as `input_messages_key`
            replaces the state's messages, so that the state stays small.
        settings: The other arguments of `LoadContextNode`.

    Example:
        ```python
        builder.add_node("summarize", SupabaseSummarizationNode(memory, budget=ContextBudget(tokens=4000)))
        ```
    """

    _stores = True

    def __init__(
        self,
        memory: SupabaseMemory,
        *,
        output_messages_key: str = "summarized_messages",
        **settings: Unpack[_LoadSettings],
    ) -> None:
        super().__init__(memory, output_messages_key=output_messages_key, **settings)

    def _update(
        self, run: GraphState, pack: ContextPack | None, last: Sequence[BaseMessage] | None = None
    ) -> dict[str, Any]:
        update = super()._update(run, pack, last)
        if self._output != self._input:
            return update
        if pack is None and last is None:
            return {}
        return {self._output: [RemoveMessage(id=REMOVE_ALL), *update[self._output]]}


class SupabaseSummarizer(Unpicklable, Runnable[Any, str]):
    """Writes the summary for LangChain's own `SummarizationMiddleware(summarizer=...)`, and loses nothing.

    The messages are stored, the rolling summary is brought up to the last of them, and its text is returned; the
    original words stay in the database, whatever the middleware does to the graph's state.

    The middleware must hand over all that it removes: by default it trims that to 4,000 tokens before a summarizer sees
    it, so `trim_tokens_to_summarize=None` belongs with this class. Longer ranges take several calls of the model here.

    Args:
        memory: Where the conversation is; it needs a model, or `model` here.
        agent_id: The agent; by default the run's.
        policy: How; the memory's by default.
        model: The summary model; the memory's by default.

    Example:
        ```python
        SummarizationMiddleware(
            model,
            trigger=("tokens", 8000),
            summarizer=SupabaseSummarizer(memory, model=model),
            trim_tokens_to_summarize=None,
        )
        ```
    """

    def __init__(
        self,
        memory: SupabaseMemory,
        *,
        agent_id: str | None = None,
        policy: SummaryPolicy | None = None,
        model: Summarizer | None = None,
    ) -> None:
        self._memory = require_memory(memory)
        check_settings(policy=policy)
        self._bound = RunIdentity(agent_id)
        self._policy = (policy or memory._services.config.policy).for_budget(memory._services.settings.budget)
        self._model = require_summarizer(summarizer(INHERITED if model is None else model, memory._services.model))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> str:  # noqa: A002
        """The summary of these messages and all before them.

        Args:
            input: The messages to summarize.
            config: The run's configuration.

        Raises:
            InvalidInputError: No thread or nobody is named.
            SupabaseMemoryError: The model or the database failed; nothing was changed.
        """
        return self._memory._services.run(self._summary(input, config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> str:  # noqa: A002
        """The async twin of `invoke`."""
        return await self._memory._services.arun(self._summary(input, config))

    def _key(self, config: RunnableConfig | None) -> ConversationKey:
        ambient, runtime = current_run()
        return self._bound.key(self._memory, ambient or config, runtime)

    def _summary(self, messages: object, config: RunnableConfig | None) -> Flow[str]:
        flow = self._summarize(graph_state(messages).conversation, self._key(config))
        return asking(flow, self._model)

    def _summarize(self, messages: Sequence[BaseMessage], key: ConversationKey) -> Flow[str]:
        codec.ensure_ids(messages)
        # The middleware may hand over shortened copies under the originals' ids: what is stored stays.
        stored = yield from conversations.append(key, messages, replace=False, redactor=self._memory._services.redactor)
        until = max((sequence for sequence in stored.sequences if sequence is not None), default=None)
        for _ in range(_TRIES if until is not None else 0):
            made = yield from summaries.summarize(
                key, self._policy, summarizer=self._model.name, until=until, respect_backoff=False
            )
            if made.failed is not None:
                raise SupabaseMemoryError(f"The summary failed: {made.failed}.", hint="The history is untouched.")
            if not made.conflict:
                break
        newest: list[Any] = yield from summaries.list_segments(key, last=1)
        return newest[0].content if newest else "Nothing was said yet."
