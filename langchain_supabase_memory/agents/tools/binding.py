"""What all tools share: the conversation's owner, sync and async calls, and error handling.

The owner is set when the tool is created or by the run (see `identity.RunIdentity`), never by an argument: an argument
can only select another thread of the same owner and agent.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, TypeVar

from langchain_core.tools import ToolException
from langgraph.errors import GraphBubbleUp

from langchain_supabase_memory.adapters.telemetry.logs import conversation_fields, error_fields
from langchain_supabase_memory.agents.run import fail_open
from langchain_supabase_memory.agents.run.identity import RunIdentity, of_run
from langchain_supabase_memory.agents.tools import output_limit
from langchain_supabase_memory.checks import refuse_unknown
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError, SupabaseMemoryError
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.operations.recall import indexing
from langchain_supabase_memory.operations.recall.ranges import zone
from langchain_supabase_memory.values import check_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import tzinfo

    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool
    from pydantic import BaseModel

    from langchain_supabase_memory.agents.run.fail_open import OnError
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.boards.board import BoardItem
    from langchain_supabase_memory.values import Chunk, ConversationKey, RecallScope, Scope

T = TypeVar("T")
_logger = logging.getLogger(__name__)

PATIENCE: Final = 10.0
"""How long a search waits for pending messages to be indexed, in seconds; then it continues without them."""

Answer: TypeAlias = tuple[str, list[dict[str, Any]]]
"""A tool's result: the text for the model, and its sources for the application."""


class Bindings(TypedDict, total=False):
    """The arguments that every tool takes in addition to its memory; see `Binding`."""

    thread_id: str | None
    agent_id: str | None
    characters: int
    time_zone: str | tzinfo | None
    on_error: OnError


@dataclass(frozen=True, kw_only=True)
class Binding:
    """The settings of a tool, fixed when it is created.

    Attributes:
        memory: The memory that stores the conversations.
        thread_id: The conversation; by default the run's.
        agent_id: The agent; by default the run's.
        characters: The maximum number of characters of one result.
        time_zone: The time zone of displayed times and of "today"; by default `time_zone` of the run's context or
            configuration, else the memory's.
        on_error: What happens when the memory fails. The failure is logged and reported to the model; by default
            (`"setup"`) a setup mistake is raised at the first call instead; see `fail_open.OnError`.

    Raises:
        InvalidInputError: An id is not a usable string, or there is no such time zone.
        ConfigurationError: `characters` is too small, or an argument has the wrong type.
    """

    memory: SupabaseMemory
    thread_id: str | None = None
    agent_id: str | None = None
    characters: int = output_limit.CHARACTERS
    time_zone: str | tzinfo | None = None
    on_error: OnError = "setup"

    @classmethod
    def of(cls, memory: SupabaseMemory, bound: Bindings) -> Binding:
        """Create the settings from a tool's arguments, after checking them.

        Raises:
            ConfigurationError: There is no such argument; see the class for the other errors.
        """
        refuse_unknown("A tool", bound, Bindings.__annotations__, ConfigurationError)
        return cls(memory=require_memory(memory), **bound)

    def __post_init__(self) -> None:
        fail_open.check_on_error(self.on_error)
        for name in ("thread_id", "agent_id"):
            if getattr(self, name) is not None:
                check_id(name, getattr(self, name))
        output_limit.check_limit(self.characters)
        zone(self.time_zone)


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool.

    Attributes:
        binding: The tool's settings.
        config: The configuration of the run.
        runtime: The run's `Runtime`.
        present: The ids of the messages of the current turn, which the model already sees.
        names: Whether an answer names its conversation, because no graph run implies it.
        is_first: Whether the model's message has no earlier call of the same tool.
    """

    binding: Binding
    config: RunnableConfig | None
    runtime: object
    present: frozenset[str] = field(default_factory=frozenset)
    names: bool = False
    is_first: bool = True

    def conversation_attributes(self, key: ConversationKey) -> dict[str, str | int]:
        """Return the attributes that name a passage's conversation, if the answer must name it."""
        return {"conversation_id": key.thread_id} if self.names else {}

    @property
    def zone(self) -> tzinfo:
        """The user's time zone."""
        where = self.binding
        said = where.time_zone or of_run("time_zone", self.config, self.runtime)
        return zone(said or where.memory._services.config.time_zone)

    @property
    def embedder(self) -> str | None:
        """The name of the memory's embedder."""
        return self.binding.memory._services.embedder_name

    def key(self, conversation_id: str | None = None) -> ConversationKey:
        """Return the key of the current conversation, or of another one of the same owner and agent."""
        where = self.binding
        bound = RunIdentity(where.agent_id)
        return bound.key(where.memory, self.config, self.runtime, conversation_id or where.thread_id)

    def scope(self, reach: RecallScope, conversation_id: str | None = None) -> Scope:
        """Return the scope to search."""
        where = self.binding
        bound = RunIdentity(where.agent_id)
        thread_id = conversation_id or where.thread_id
        return bound.scope(where.memory, self.config, self.runtime, reach, thread_id)

    def location(self, scope: Scope, thread_id: str, agent_id: str) -> dict[str, str | int]:
        """Return the attributes that name a passage's conversation, if more than one was searched.

        Conversations with another agent can be found but not opened: a `conversation_id` is of the same agent.
        """
        if scope.thread_id is not None and not self.names:
            return {}
        if agent_id == self.scope("agent").agent_id:
            return {"conversation_id": thread_id}
        return {"conversation": thread_id, "agent": agent_id}

    def can_see(self, chunk: Chunk | BoardItem) -> bool:
        """Return whether the model already sees the text, because it belongs to the current turn."""
        return not self.present.isdisjoint(chunk.message_ids)

    def indexed(self, key: ConversationKey) -> Flow[bool]:
        """Index pending messages, if the memory indexes inline.

        Returns:
            Whether all messages are searchable now. A failure to index does not fail the search.
        """
        services = self.binding.memory._services
        chunking = services.config.chunking
        if chunking.mode != "inline" or not services.may_derive(key):
            return True
        try:
            done = yield from _with_deadline(indexing.index_messages(key, chunking, embedder=self.embedder), PATIENCE)
        except SupabaseMemoryError as error:
            ids = (key.user_id, key.agent_id, key.thread_id)
            level = self.binding.memory._services.causes.level("Indexing failed", error, logging.WARNING)
            text = "Indexing failed (user %r, agent %r, thread %r): %s"
            _logger.log(level, text, *ids, error, extra=conversation_fields(key, error))
            return False
        return done is not None and done.failed is None and not done.backing_off


def tool(
    name: str, description: str, schema: type[BaseModel], binding: Binding, answer: Callable[..., Flow[Answer]]
) -> BaseTool:
    """Create a sync and async tool that runs a flow. A failure becomes the tool's answer instead of a graph error.

    Args:
        name: The tool's name for the model.
        description: The tool's description for the model.
        schema: The tool's arguments. Others are ignored, so they cannot select another owner.
        binding: The tool's settings, with the conversation's owner.
        answer: Creates the flow from the call and the arguments.
    """
    # LangGraph takes a second to import, and who only runs the flows, as the MCP server does, needs none of it.
    from langchain_supabase_memory.agents.tools.structured_tool import structured_tool

    return structured_tool(name, description, schema, binding, answer)


@contextmanager
def run_reporting(name: str, binding: Binding) -> Iterator[None]:
    """Report a failure to the model, without content, unless `on_error` raises it."""
    try:
        yield
    except GraphBubbleUp:  # the graph waits for a person
        raise
    except InvalidInputError as error:
        raise ToolException(str(error)) from None
    except SupabaseMemoryError as error:
        level = binding.memory._services.causes.level(f"The tool {name} failed", error, logging.WARNING)
        _logger.log(level, "The tool %s failed: %s", name, error, extra={"memory_tool": name, **error_fields(error)})
        if fail_open.is_raised(error, binding.on_error, binding.memory):
            raise
        if callable(binding.on_error):
            binding.on_error(error)
        raise ToolException(str(error)) from None
    except Exception as error:
        # A bug in this package: the error's text may hold content, its class does not.
        fields = {"memory_tool": name, **error_fields(error)}
        _logger.error("The tool %s failed (%s). Please report this.", name, type(error).__name__, extra=fields)
        raise ToolException(f"The memory failed ({type(error).__name__}).") from None


def _with_deadline(flow: Flow[T], seconds: float) -> Flow[T | None]:
    """Run a flow with a deadline, checked between two steps; return `None` if it expires."""
    end = time.monotonic() + seconds
    try:
        step = next(flow)
        while time.monotonic() < end:
            try:
                answer = yield step
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()
    return None
