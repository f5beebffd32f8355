"""Chat models with scripted answers, which record their prompts; and what a graph is run with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from pydantic import Field

from langchain_supabase_memory.language.messages import fence


def question(prompt: Sequence[BaseMessage]) -> str:
    """The user's own words in the last message of a prompt."""
    return fence.without_prefix(prompt[-1]).text


Script = Callable[[list[BaseMessage]], AIMessage | str]


class ScriptedModel(BaseChatModel):
    """Answers as a function of its prompt."""

    script: Script
    shown: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> ScriptedModel:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        self.shown.append(messages)
        answer = self.script(messages)
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(answer) if isinstance(answer, str) else answer)]
        )

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> Iterator[ChatGenerationChunk]:
        message = self._generate(messages).generations[0].message
        assert isinstance(message, AIMessage)
        for word in str(message.text).split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word + " "))
        if message.tool_calls:
            calls: Any = [
                {"name": call["name"], "args": "{}", "id": call["id"], "index": place, "type": "tool_call_chunk"}
                for place, call in enumerate(message.tool_calls)
            ]
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=calls))


def says(*answers: AIMessage | str) -> ScriptedModel:
    """Return a model that gives these answers in turn, then repeats the last one."""
    left = list(answers)
    return ScriptedModel(script=lambda _: left.pop(0) if len(left) > 1 else left[0])


@tool
def look_up(word: str = "") -> str:
    """Look a word up."""
    return f"meaning of {word}"


def calls(name: str, **arguments: Any) -> AIMessage:
    """Return an answer that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call_{name}_{len(arguments)}"}])


def asks(text: str) -> Any:
    """What a person asks of a graph."""
    return {"messages": [HumanMessage(text)]}


def config(thread_id: str = "t", **configurable: Any) -> Any:
    """The settings of a run in a conversation."""
    return {"configurable": {"thread_id": thread_id, **configurable}}
