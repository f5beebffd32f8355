"""A real LangChain agent whose context is bounded, with a tool for what was said before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage

from langchain_supabase_memory.demo.search import search_tool
from langchain_supabase_memory.errors import MissingDependencyError
from langchain_supabase_memory.messages import content
from langchain_supabase_memory.settings import ContextBudget

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from langchain_supabase_memory.memory import SupabaseMemory

BUDGET = ContextBudget(characters=4_000)
"""What a prompt may hold of the conversation: the rolling summary, and the newest messages as they were said."""

_PROMPT = (
    "You are the assistant of the person you talk with. You see a summary and the newest messages of a long "
    "conversation; what was said before them you find with search_conversation. Answer in one sentence, from what was "
    "said, and say so if you cannot find it."
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
        from langchain_supabase_memory.middleware import SupabaseMemoryMiddleware

        self._thread_id = thread_id
        self._agent = create_agent(
            model,
            [search_tool(memory, thread_id)],
            system_prompt=_PROMPT,
            middleware=[SupabaseMemoryMiddleware(memory, budget=BUDGET, on_error="raise")],
        )

    def ask(self, question: str) -> Answer:
        """One turn: the middleware loads the context and stores what is new."""
        meter = _Meter()
        config: RunnableConfig = {"callbacks": [meter], "configurable": {"thread_id": self._thread_id}}
        state: Any = {"messages": [HumanMessage(question)]}
        said: list[BaseMessage] = self._agent.invoke(state, config)["messages"]
        return Answer(str(said[-1].text), meter.characters, meter.tokens)


class _Meter(BaseCallbackHandler):
    """Counts what is sent to the model."""

    def __init__(self) -> None:
        self.characters = self.tokens = 0

    def on_chat_model_start(self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **_: Any) -> None:
        sent = [message for batch in messages for message in batch]
        self.characters += sum(map(content.characters, sent))
        self.tokens += sum(map(content.tokens, sent))
