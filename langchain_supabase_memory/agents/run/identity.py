"""Whose conversation a graph's run is: read from the run's context and configuration, never from what was said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.memory.services import same_user
from langchain_supabase_memory.values import RecallScope, Scope, check_id

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.values import ConversationKey


@dataclass(frozen=True)
class RunIdentity:
    """Ids that are said once, when a node or a middleware is made; what is `None` is read from each run.

    Attributes:
        agent_id: The agent.
        project_id: What a chain of responses must not cross, beside the thread.

    Raises:
        InvalidInputError: An id that is bound is not a usable string: an empty one would leave the choice to the run.
    """

    agent_id: str | None = None
    project_id: str | None = None

    def __post_init__(self) -> None:
        for name in ("agent_id", "project_id"):
            if getattr(self, name) is not None:
                check_id(name, getattr(self, name))

    def key(
        self, memory: SupabaseMemory, config: RunnableConfig | None, runtime: object, thread_id: str | None = None
    ) -> ConversationKey:
        """The conversation of a run.

        The thread is `configurable["thread_id"]`. A memory that was made for one user is that user's, and a run that
        names another is an error. Else the owner is, in this order: the user whom LangGraph's server authenticated,
        `user_id` of the run's context, `configurable["user_id"]`, and for an embedded memory
        `"me"`. Of what a run says, the server's own word among it, an empty id is none.

        The server's user is an object that the server made: what a client wrote under `langgraph_auth_user` is a
        mapping, and counts for nothing. The context and the configuration are the application's word: where they come
        from a client, that client chooses among the users of a memory that was made for nobody. Use
        `memory.for_user` or `memory.for_token`, or let the server authenticate.

        Args:
            memory: The memory.
            config: The run's configuration.
            runtime: The run's `Runtime`, if there is one.
            thread_id: Another thread of the same owner and agent.

        Raises:
            InvalidInputError: No thread or nobody is named, or the memory was made for another user.
        """
        if thread_id is None:
            thread_id = current_thread(config, runtime)
        if thread_id is None:
            raise InvalidInputError(
                "No thread is named.", hint='Pass {"configurable": {"thread_id": "..."}} as the config of the run.'
            )
        server = getattr(getattr(runtime, "server_info", None), "user", None)
        user_id = getattr(server, "identity", None) or of_run("user_id", config, runtime)
        agent_id = self.agent_id or of_run("agent_id", config, runtime)
        if user_id is not None:
            same_user(memory._services.made_for, user_id)
        return memory._services.key(thread_id, user_id, agent_id)

    def scope(
        self,
        memory: SupabaseMemory,
        config: RunnableConfig | None,
        runtime: object,
        reach: RecallScope,
        thread_id: str | None = None,
    ) -> Scope:
        """Where a run may search; nobody but its owner is ever in it. Arguments and errors as for `key`.

        Args:
            memory: The memory.
            config: The run's configuration.
            runtime: The run's `Runtime`, if there is one.
            reach: How far.
            thread_id: Another thread of the same owner and agent; of no account beyond a conversation.
        """
        key = self.key(memory, config, runtime, thread_id if reach == "conversation" else "any")
        return Scope(
            key.user_id,
            None if reach == "user" else key.agent_id,
            key.thread_id if reach == "conversation" else None,
        )

    def project(self, config: RunnableConfig | None, runtime: object) -> str | None:
        """The project of a run: the one that was bound, or `project_id` of the run's context or configuration."""
        return self.project_id or of_run("project_id", config, runtime)


def current_run() -> tuple[RunnableConfig | None, Any]:
    """The configuration and the runtime of the graph's run that this is called in; `None` outside of one."""
    from langgraph.config import get_config
    from langgraph.runtime import get_runtime

    try:
        return get_config(), get_runtime()
    except RuntimeError:
        return None, None


def current_thread(config: RunnableConfig | None, runtime: object) -> str | None:
    """The thread of a run; `None` if it has none."""
    configurable: Mapping[str, Any] = (config or {}).get("configurable") or {}
    known = getattr(getattr(runtime, "execution_info", None), "thread_id", None)
    return known or configurable.get("thread_id") or None


def of_run(name: str, config: RunnableConfig | None, runtime: object) -> Any:
    """What the application says for a run: of its context, or else of its configuration."""
    configurable: Mapping[str, Any] = (config or {}).get("configurable") or {}
    # Empty is unset: a server without authentication says so of its user.
    return _field(getattr(runtime, "context", None), name) or configurable.get(name) or None


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
