"""A toolkit with all tools that read, bound to the same owner."""

from __future__ import annotations

from datetime import tzinfo  # noqa: TC003  # pydantic needs it
from typing import TYPE_CHECKING, Any

from langchain_core.tools.base import BaseToolkit
from pydantic import ConfigDict, Field, SkipValidation

from langchain_supabase_memory.agents.run.fail_open import OnError  # noqa: TC001  # pydantic needs it
from langchain_supabase_memory.agents.tools.binding import Binding, Bindings
from langchain_supabase_memory.agents.tools.history import (
    get_conversation_summary_tool,
    recall_context_tool,
    search_conversation_history_tool,
)
from langchain_supabase_memory.agents.tools.messages import read_messages_tool
from langchain_supabase_memory.agents.tools.output_limit import CHARACTERS
from langchain_supabase_memory.agents.tools.profile import get_profile_tool
from langchain_supabase_memory.agents.tools.turns import get_turn_tool
from langchain_supabase_memory.checks import choice, refuse_unknown
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.memory.memory import SupabaseMemory  # noqa: TC001  # pydantic needs it
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.values import RECALL_SCOPES, RecallScope

if TYPE_CHECKING:
    from typing import Unpack

    from langchain_core.tools import BaseTool


class _Bindings(Bindings, total=False):
    scope: RecallScope


class SupabaseMemoryToolkit(BaseToolkit):
    """Tools that let an agent search and read earlier messages, and what is known of the user.

    ```python
    agent = create_agent(model, SupabaseMemoryToolkit(memory).get_tools())
    ```

    Attributes:
        memory: The memory that stores the conversations.
        thread_id: The conversation; by default the run's.
        agent_id: The agent; by default the run's.
        scope: The scope of `search_conversation_history`: `conversation`, `agent` or `user`.
        characters: The maximum number of characters of one result.
        time_zone: The time zone of displayed times; by default `time_zone` of the run's context or configuration, else
            the memory's.
        on_error: What happens when the memory fails; see `fail_open.OnError`.

    Raises:
        InvalidInputError: An id is not a usable string, or there is no such time zone.
        ConfigurationError: `characters` is too small, or an argument has an invalid value.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: SupabaseMemory = Field(exclude=True, repr=False)
    thread_id: str | None = None
    agent_id: str | None = None
    scope: RecallScope = "conversation"
    characters: int = CHARACTERS
    time_zone: SkipValidation[str | tzinfo | None] = None  # our own validation has clearer errors
    on_error: SkipValidation[OnError] = "setup"

    def __init__(self, memory: SupabaseMemory, **bound: Unpack[_Bindings]) -> None:
        refuse_unknown("SupabaseMemoryToolkit", bound, _Bindings.__annotations__, ConfigurationError)
        fields: Any = {"memory": require_memory(memory), **bound}
        rest: Any = {name: value for name, value in bound.items() if name != "scope"}
        Binding.of(memory, rest)  # validates before pydantic does, for clearer errors
        choice("scope", bound.get("scope", "conversation"), RECALL_SCOPES)
        super().__init__(**fields)

    def get_tools(self) -> list[BaseTool]:
        """Return all tools that read.

        These are `search_conversation_history`, `get_conversation_summary`, `recall_context`, `get_turn`,
        `read_messages` and `get_profile`.
        """
        bound: Any = {name: getattr(self, name) for name in Bindings.__annotations__}
        return [
            search_conversation_history_tool(self.memory, scope=self.scope, **bound),
            get_conversation_summary_tool(self.memory, **bound),
            recall_context_tool(self.memory, **bound),
            get_turn_tool(self.memory, **bound),
            read_messages_tool(self.memory, **bound),
            get_profile_tool(self.memory, **bound),
        ]
