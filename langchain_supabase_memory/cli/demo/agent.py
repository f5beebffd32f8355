"""A real LangChain agent whose context is bounded: what fits the question is recalled into it, or found with a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage

from langchain_supabase_memory.cli.demo import seen
from langchain_supabase_memory.errors import MissingDependencyError
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.settings import ContextBudget, SummaryPolicy

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.values import RecallScope

BUDGET = ContextBudget(characters=4_000)
"""What a prompt may hold of the conversation: the summary, the newest messages, what was recalled."""

POLICY = SummaryPolicy(characters=1_000, keep_characters=500, input_characters=8_000)
"""Most of a prompt may be recalled, so not much is left for the newest messages: older ones are summarized."""

_PROMPT = (
    "You are the assistant of the person you talk with. You see a summary and the newest messages of a long "
    "conversation, and what was recalled of it; if that is not enough, use search_conversation_history. Answer in one "
    "sentence, from what was said, and say so if you cannot find it."
)


@dataclass(frozen=True)
class Answer:
    """An answer, and what it took.

    Attributes:
        text: What the agent said.
        sent: The characters of the conversation in each prompt sent for it: from memory, asked now, found with a tool.
        own: The characters of the agent's own instructions in each.
        tokens: The approximate tokens of the conversation in all of them.
        recalled: How many messages were recalled into the prompt.
        source: The line of the last prompt that the answer is nearest to; `None` if there is none.
    """

    text: str
    sent: list[int]
    own: int
    tokens: int
    recalled: int
    source: seen.Line | None

    @property
    def characters(self) -> int:
        """The characters of the conversation in all prompts."""
        return sum(self.sent)


class DemoAgent:
    """Answers questions in one conversation, and stores what is said.

    Args:
        memory: Where the conversation is.
        thread_id: Which one it is.
        model: A chat model that can call tools.
        recall: From where what fits a question is recalled into the prompt; with `None` there is only the tool.

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

    def ask(self, question: str) -> Answer:
        """One turn: the middleware loads the context and stores what is new."""
        meter = _Meter()
        config: RunnableConfig = {"callbacks": [meter], "configurable": {"thread_id": self._thread_id}}
        state: Any = {"messages": [HumanMessage(question)]}
        said: list[BaseMessage] = self._agent.invoke(state, config)["messages"]
        text = str(said[-1].text)
        recalled = {line.message for line in meter.seen if line.part == "recalled"}
        return Answer(text, meter.sent, meter.own, meter.tokens, len(recalled), _source(meter.seen, text))


class _Meter(BaseCallbackHandler):
    """Counts what is sent to the model, and keeps the lines of the last prompt."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.own = self.tokens = 0
        self.seen: list[seen.Line] = []

    def on_chat_model_start(self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **_: Any) -> None:
        whole = [message for batch in messages for message in batch]
        said = [message for message in whole if message.type != "system"]
        self.sent.append(sum(map(content.characters, said)))
        self.own = sum(map(content.characters, whole)) - self.sent[-1]
        self.tokens += sum(map(content.tokens, said))
        last = max((place for place, message in enumerate(whole) if message.type == "human"), default=0)
        self.seen = seen.lines([*whole[:last], *whole[last + 1 :]])


def _source(lines: list[seen.Line], answer: str) -> seen.Line | None:
    """The line that an answer quotes, one with a date before others; else the dated line that is nearest to it."""
    quoted = [line for line in lines if line.text and line.text in answer]
    longest = max((len(line.text) for line in quoted), default=0)
    exact = sorted((line for line in quoted if len(line.text) == longest), key=lambda line: line.day is None)
    near = exact or seen.ranked([line for line in lines if line.day is not None], answer)
    return near[0] if near else None
