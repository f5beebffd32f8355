"""The owner of a graph run's conversation, read from the run's context and configuration, never from messages."""

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
    """Ids fixed when a node or middleware is created; those that are `None` are read from each run.

    Attributes:
        agent_id: The agent.
        project_id: The project. A chain of responses stays within one project and one thread.

    Raises:
        InvalidInputError: An id is not a usable string; an empty one would leave the choice to the run.
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
        """Return the key of a run's conversation.

        The thread is `configurable["thread_id"]`. A memory created for one user belongs to that user, and a run with
        another user's id is an error. Otherwise the owner is the first of: the user authenticated by LangGraph's
        server, `user_id` of the run's context, `configurable["user_id"]`, and `"me"` for an embedded memory. An empty
        id, even from the server, counts as missing.

        `private` of the run's context, or of the configuration, says that a conversation which the run begins is
        private; see `SupabaseMemory.conversation`.

        The server's user is an object that the server created. A mapping that a client sent as `langgraph_auth_user`
        is ignored. The context and the configuration are trusted: if they come from a client, that client can choose
        any user of a memory created without a user. To prevent this, use `memory.for_user` or `memory.for_token`, or
        let the server authenticate.

        Args:
            memory: The memory.
            config: The run's configuration.
            runtime: The run's `Runtime`, if there is one.
            thread_id: Another thread of the same owner and agent.

        Raises:
            InvalidInputError: The thread or the user is missing, the memory was created for another user, or `private`
                is neither true nor false.
        """
        private = is_private(config, runtime)
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
            same_user(memory._services.fixed_user_id, user_id)
        return memory._services.key(thread_id, user_id, agent_id, private=private)

    def scope(
        self,
        memory: SupabaseMemory,
        config: RunnableConfig | None,
        runtime: object,
        reach: RecallScope,
        thread_id: str | None = None,
    ) -> Scope:
        """Return the scope that a run may search, which only ever contains its owner's data. Errors as for `key`.

        Args:
            memory: The memory.
            config: The run's configuration.
            runtime: The run's `Runtime`, if there is one.
            reach: `conversation`, `agent` or `user`.
            thread_id: Another thread of the same owner and agent; ignored unless `reach` is `conversation`.
        """
        key = self.key(memory, config, runtime, thread_id if reach == "conversation" else "any")
        return Scope(
            key.user_id,
            None if reach == "user" else key.agent_id,
            key.thread_id if reach == "conversation" else None,
        )

    def project(self, config: RunnableConfig | None, runtime: object) -> str | None:
        """Return a run's project: the fixed one, or `project_id` of the run's context or configuration."""
        return self.project_id or of_run("project_id", config, runtime)


def current_run() -> tuple[RunnableConfig | None, Any]:
    """Return the configuration and runtime of the current graph run; `None` for both outside of a run."""
    from langgraph.config import get_config
    from langgraph.runtime import get_runtime

    try:
        return get_config(), get_runtime()
    except RuntimeError:
        return None, None


def current_thread(config: RunnableConfig | None, runtime: object) -> str | None:
    """Return the thread of a run; `None` if it has none."""
    configurable: Mapping[str, Any] = (config or {}).get("configurable") or {}
    known = getattr(getattr(runtime, "execution_info", None), "thread_id", None)
    return known or configurable.get("thread_id") or None


def is_private(config: RunnableConfig | None, runtime: object) -> bool:
    """Return whether a conversation that a run begins is private: its context or its configuration says so.

    Raises:
        InvalidInputError: The run says something else than true or false: a text would be true, whatever it says.
    """
    configurable: Mapping[str, Any] = (config or {}).get("configurable") or {}
    named = (_field(getattr(runtime, "context", None), "private"), configurable.get("private"))
    if any(not isinstance(each, bool | None) for each in named):
        raise InvalidInputError(
            "The run's private is neither true nor false.",
            hint='Pass {"configurable": {"private": True}}, or leave it out.',
        )
    return any(named)


def of_run(name: str, config: RunnableConfig | None, runtime: object) -> Any:
    """Return a value from the run's context, or else from its configuration."""
    configurable: Mapping[str, Any] = (config or {}).get("configurable") or {}
    # Empty counts as unset: a server without authentication sends an empty user.
    return _field(getattr(runtime, "context", None), name) or configurable.get(name) or None


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
