"""The middleware for `create_agent`: every message stored once, the context bounded, the state untouched."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from langchain_supabase_memory import chaining
from langchain_supabase_memory.errors import MissingDependencyError
from langchain_supabase_memory.graph import Loader, after, recall_scope, report_event, store, store_new, storing, thread
from langchain_supabase_memory.guard import Guard, OnError
from langchain_supabase_memory.identity import Bound, running
from langchain_supabase_memory.summary_model import Summariser, SummaryModel

try:
    from typing import NotRequired

    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
except ImportError:
    raise MissingDependencyError("SupabaseMemoryMiddleware", "agents") from None

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from langchain_core.messages import BaseMessage
    from langgraph.runtime import Runtime

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory import SupabaseMemory
    from langchain_supabase_memory.models import ConversationKey
    from langchain_supabase_memory.recall.search import RecallScope
    from langchain_supabase_memory.settings import ContextBudget, SummaryPolicy


class MemoryState(AgentState[Any]):
    """The agent's state, and the id of the newest message that is stored: all that the memory keeps there."""

    supabase_memory_stored: NotRequired[Annotated[str, PrivateStateAttr]]


class SupabaseMemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Gives an agent of `create_agent` a memory.

    What is new is stored before and after each model call, so that an error, an interrupt, a retry or a killed process
    loses nothing and repeats nothing. Each model call gets the bounded context in place of the whole history; it is
    not written into the state. The thread and the owner come from the run's configuration and context (see
    `identity.Bound`), never from what was said.

    Args:
        memory: Where the conversation is.
        budget: The most that a prompt may hold of the conversation; the memory's by default.
        policy: When and how older messages are summarised; the memory's by default.
        references: Whether a turn that the user points at ("the second one", "yung una") is put before their message.
        recall: Where to recall from what fits the user's message: `"conversation"`, `"agent"` or `"user"`; `False` for
            nothing. By default the conversation, if the memory has an embedder.
        model: The model that writes summaries; the memory's by default. Not the agent's: that is your choice.
        user_id: The owner; by default the run's.
        agent_id: The agent; by default the run's.
        project_id: A chain of responses (`use_previous_response_id`) is cut where this changes, as where the thread
            does; by default the run's `project_id`, if it has one.
        on_error: What happens when the memory fails: it is logged, also raised, or also handed to a function. Unless
            it is raised, the agent answers without memory.
        deadline_seconds: How long one operation of the memory may take, in seconds.

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
        recall: RecallScope | bool | None = None,
        model: Summariser | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        project_id: str | None = None,
        on_error: OnError = "log",
        deadline_seconds: float = 10.0,
    ) -> None:
        super().__init__()
        self._memory = memory
        self._bound = Bound(user_id, agent_id, project_id)
        self._guard = Guard(memory, None if model is None else SummaryModel(model), on_error, deadline_seconds)
        self._loader = Loader(
            self._guard,
            budget or memory.budget,
            policy or memory.policy,
            references,
            recall_scope(recall, memory),
        )
        self.trace_policy = _without_payload()

    def before_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store what came from the user and from tools."""
        return self._store(state, runtime)

    async def abefore_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The async twin of `before_model`."""
        return await self._astore(state, runtime)

    def after_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store what the model answered."""
        return self._store(state, runtime)

    async def aafter_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The async twin of `after_model`."""
        return await self._astore(state, runtime)

    def after_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store what other middleware added at the end."""
        return self._store(state, runtime)

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The async twin of `after_agent`."""
        return await self._astore(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Give the model the bounded context."""
        key = self._key(request.runtime)
        pack = self._loader.load(key, thread(request.messages), request.runtime.stream_writer)
        if pack is None:
            return handler(request)
        stamp = self._stamp(request, key, pack)
        return _stamped(handler(self._bounded(request, pack, stamp)), stamp)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """The async twin of `wrap_model_call`."""
        key = self._key(request.runtime)
        pack = await self._loader.aload(key, thread(request.messages), request.runtime.stream_writer)
        if pack is None:
            return await handler(request)
        stamp = self._stamp(request, key, pack)
        return _stamped(await handler(self._bounded(request, pack, stamp)), stamp)

    def _key(self, runtime: Any) -> ConversationKey:
        return self._bound.key(self._memory, running()[0], runtime)

    def _store(self, state: MemoryState, runtime: Any) -> dict[str, Any] | None:
        fresh, flow, key = self._storing(state, runtime)
        if not fresh or not self._guard.run(flow, storing(fresh), key):
            return None
        return {_STORED: fresh[-1].id}

    async def _astore(self, state: MemoryState, runtime: Any) -> dict[str, Any] | None:
        fresh, flow, key = self._storing(state, runtime)
        if not fresh or not await self._guard.arun(flow, storing(fresh), key):
            return None
        return {_STORED: fresh[-1].id}

    def _storing(self, state: MemoryState, runtime: Any) -> tuple[list[BaseMessage], Flow[bool], ConversationKey]:
        """What may be new, and the flow that stores it."""
        said, stored, key = thread(state["messages"]).said, state.get(_STORED), self._key(runtime)
        fresh = after(said, stored)
        if stored is None:
            # A run without a checkpointer, or its first: the store itself is asked what it has.
            return fresh, store_new(self._memory, key, fresh), key
        return fresh, store(self._memory, key, fresh, replace=True), key

    def _bounded(
        self, request: ModelRequest[Any], pack: ContextPack, stamp: Mapping[str, Any] | None
    ) -> ModelRequest[Any]:
        messages: list[Any] = pack.prompt
        previous = None
        if stamp is not None:
            messages, previous = chaining.prepared(pack.chained, stamp)
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


def _stamped(response: ModelResponse[Any], stamp: Mapping[str, Any] | None) -> ModelResponse[Any]:
    if stamp is None:
        return response
    return replace(response, result=[chaining.stamped(message, stamp) for message in response.result])


def _without_payload() -> Any:
    """Keeps whole conversations out of the tracing of the hooks, where LangChain has that."""
    try:
        from langchain.agents.middleware.types import TracePolicy, omit_payload
    except ImportError:
        return None
    return TracePolicy(process_inputs=omit_payload)
