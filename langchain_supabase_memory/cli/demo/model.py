"""The offline stand-in for a chat model: it can only quote what its context holds.

So every right answer is the merit of the memory that put it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_supabase_memory.cli.demo import seen
from langchain_supabase_memory.language.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import CallbackManagerForLLMRun

NOTHING = "I can see nothing about that."


class OfflineQuotingModel(BaseChatModel):
    """No language model: it quotes the line of its prompt that shares most words with the question.

    Where nothing was recalled into its prompt it first asks its tool, if it has one, with the question's own words. It
    knows nothing, makes nothing up, and is here so that the demo runs without a key.
    """

    tool_name: str | None = None

    @property
    def _llm_type(self) -> str:
        return "offline-quoting-stand-in"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> OfflineQuotingModel:
        """Remember the tool to ask with."""
        return self.model_copy(update={"tool_name": tools[0].name if tools else None})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        last = max(place for place, message in enumerate(messages) if isinstance(message, HumanMessage))
        question = str(messages[last].text)
        lines = seen.lines([*messages[:last], *messages[last + 1 :]])
        answered = any(isinstance(message, ToolMessage) for message in messages[last:])
        if self.tool_name and not answered and not any(line.part == "recalled" for line in lines):
            call = {"name": self.tool_name, "args": {"query": question}, "id": f"call_{last}"}
            answer = AIMessage("", tool_calls=[call])
        else:
            answer = AIMessage(quote(lines, question) or NOTHING)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def quote(lines: Sequence[seen.Line], question: str) -> str:
    """The line that shares most with the question, in quotation marks; empty if none shares a word."""
    best = seen.ranked([line for line in lines if stated(line.text)], question, key=lambda line: stated(line.text))
    return f"“{best[0].text}”" if best else ""


def stated(text: str) -> str:
    """A line without the questions in it: a question seldom answers another."""
    parts = [text[each.start : each.end] for each in sentences(text)]
    return " ".join(part for part in parts if "?" not in part)
