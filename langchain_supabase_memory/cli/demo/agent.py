"""A real LangChain agent with a limited context, which recalls matching messages or searches with a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage

from langchain_supabase_memory.errors import MissingDependencyError
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.settings import ContextBudget, SummaryPolicy
from langchain_supabase_memory.testing import prompt_view

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.values import RecallScope

BUDGET = ContextBudget(characters=4_000)
"""The conversation's share of a prompt: the summary, the newest messages and the recalled ones."""

POLICY = SummaryPolicy(characters=1_000, keep_characters=500, input_characters=8_000)
"""Recall may take most of a prompt, so few of the newest messages fit, and older ones are summarized."""

_PROMPT = (
    "You are the assistant of the person you talk with. You see a summary and the newest messages of a long "
    "conversation, and what was recalled of it; if that is not enough, use search_conversation_history. Answer in one "
    "sentence, from what was said, and say so if you cannot find it."
)


@dataclass(frozen=True)
class AgentAnswer:
    """An answer and its costs.

    Attributes:
        text: The answer's text.
        sent: The characters of the conversation in each prompt: from memory, from the question, from a tool.
        own: The characters of the agent's own instructions in each prompt.
        tokens: The approximate tokens of the conversation in all prompts.
        recalled: The number of recalled messages in the prompt.
        source: The line of the last prompt that best matches the answer; `None` if there is none.
    """

    text: str
    sent: list[int]
    own: int
    tokens: int
    recalled: int
    source: prompt_view.PromptLine | None

    @property
    def characters(self) -> int:
        """The characters of the conversation in all prompts."""
        return sum(self.sent)


class DemoAgent:
    """Answer questions in one conversation, and store both.

    Args:
        memory: The memory.
        thread_id: The conversation.
        model: A chat model that can call tools.
        recall: The conversations that recall searches for the prompt; with `None` the agent has only the tool.

    Raises:
        MissingDependencyError: The extra `agents` is not installed.
    """

    def __init__(
        self,
        memory: SupabaseMemory,
        thread_id: str,
        model: BaseChatModel,
        *,
        recall: RecallScope | None = "conversation",
    ) -> None:
        try:
            from langchain.agents import create_agent
        except ImportError:
            raise MissingDependencyError("The demo's agent", "agents") from None
        from langchain_supabase_memory.agents.middleware import SupabaseMemoryMiddleware
        from langchain_supabase_memory.agents.tools import read_messages_tool, search_conversation_history_tool

        self._thread_id = thread_id
        self._agent = create_agent(
            model,
            [search_conversation_history_tool(memory), read_messages_tool(memory)],
            system_prompt=_PROMPT,
            middleware=[SupabaseMemoryMiddleware(memory, budget=BUDGET, recall=recall, on_error="raise")],
        )

    def ask(self, question: str) -> AgentAnswer:
        """Run one turn. The middleware loads the context and stores the new messages."""
        meter = _Meter()
        config: RunnableConfig = {"callbacks": [meter], "configurable": {"thread_id": self._thread_id}}
        state: Any = {"messages": [HumanMessage(question)]}
        messages: list[BaseMessage] = self._agent.invoke(state, config)["messages"]
        text = str(messages[-1].text)
        recalled = {line.message for line in meter.lines if line.part == "recalled"}
        return AgentAnswer(text, meter.sent, meter.own, meter.tokens, len(recalled), _source(meter.lines, text))


class _Meter(BaseCallbackHandler):
    """Count the characters of each prompt, and store the lines of the last one."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.own = self.tokens = 0
        self.lines: list[prompt_view.PromptLine] = []

    def on_chat_model_start(self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **_: Any) -> None:
        prompt = [message for batch in messages for message in batch]
        rest = [message for message in prompt if message.type != "system"]
        self.sent.append(sum(map(content.characters, rest)))
        self.own = sum(map(content.characters, prompt)) - self.sent[-1]
        self.tokens += sum(map(content.tokens, rest))
        self.lines = prompt_view.question_and_lines(prompt)[1]


def _source(lines: list[prompt_view.PromptLine], answer: str) -> prompt_view.PromptLine | None:
    """Return the line that an answer quotes, preferably one with a date; else the best matching dated line."""
    quoted = [line for line in lines if line.text and line.text in answer]
    longest = max((len(line.text) for line in quoted), default=0)
    exact = sorted((line for line in quoted if len(line.text) == longest), key=lambda line: line.day is None)
    nearest = exact or prompt_view.rank([line for line in lines if line.day is not None], answer)
    return nearest[0] if nearest else None
