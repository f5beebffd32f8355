"""A real LangChain agent whose context is bounded: the newest messages, and a tool for everything before them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage

from langchain_supabase_memory.demo.search import search_tool
from langchain_supabase_memory.errors import MissingDependencyError
from langchain_supabase_memory.messages.codec import to_row

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from langchain_supabase_memory.memory import SupabaseMemory

RECENT = 20
"""The newest messages that are always in the prompt."""

_PROMPT = (
    "You are the assistant of the person you talk with. You see the newest messages of a long conversation; what was "
    "said before them you find with search_conversation. Answer in one sentence, from what was said, and say so if "
    "you cannot find it."
)


@dataclass(frozen=True)
class Answer:
    """An answer, and what it took.

    Attributes:
        text: What the agent said.
        characters: The characters of all prompts sent for it.
        tokens: Their approximate tokens.
    """

    text: str
    characters: int
    tokens: int


class DemoAgent:
    """Answers questions in one conversation, and stores what is said.

    Args:
        memory: Where the conversation is.
        thread_id: Which one it is.
        model: A chat model that can call tools.

    Raises:
        MissingDependencyError: The extra `agents` is not installed.
    """

    def __init__(self, memory: SupabaseMemory, thread_id: str, model: BaseChatModel) -> None:
        try:
            from langchain.agents import create_agent
        except ImportError:
            raise MissingDependencyError("The demo's agent", "agents") from None
        self._memory = memory
        self._thread_id = thread_id
        self._agent = create_agent(model, [search_tool(memory, thread_id)], system_prompt=_PROMPT)

    def ask(self, question: str) -> Answer:
        """One turn: read the newest messages, let the agent answer, store what is new."""
        recent = self._memory.read(thread_id=self._thread_id, last=RECENT)
        asked = [*(stored.message for stored in recent if stored.message is not None), HumanMessage(question)]
        meter = _Meter()
        config: RunnableConfig = {"callbacks": [meter]}
        state: Any = {"messages": asked}  # its type names the messages by a union that no list of ours has
        said: list[BaseMessage] = self._agent.invoke(state, config)["messages"]
        self._memory.append(said[len(recent) :], thread_id=self._thread_id)
        return Answer(str(said[-1].text), meter.characters, meter.tokens)


class _Meter(BaseCallbackHandler):
    """Counts what is sent to the model."""

    def __init__(self) -> None:
        self.characters = self.tokens = 0

    def on_chat_model_start(self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **_: Any) -> None:
        rows = [to_row(message) for batch in messages for message in batch]
        self.characters += sum(row["characters"] for row in rows)
        self.tokens += sum(row["tokens"] for row in rows)
