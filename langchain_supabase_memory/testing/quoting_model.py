"""The offline stand-in for a chat model. It only quotes its prompt, so each right answer comes from the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_supabase_memory.language.sentences import sentences
from langchain_supabase_memory.testing import prompt_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import CallbackManagerForLLMRun

NOTHING = "I can see nothing about that."


_SAID: Final[frozenset[prompt_view.PromptPart]] = frozenset({"recalled", "passage", "summary", "recent"})
_NOTED: Final[frozenset[prompt_view.PromptPart]] = frozenset({"profile", "board", "shared"})


class OfflineQuotingModel(BaseChatModel):
    """A stand-in for a chat model, which quotes the line of its prompt that shares most words with the question.

    Without recalled messages in the prompt, it first calls its tool, if it has one, with the question. It is not a
    language model, so the demo runs without a key.
    """

    tool_name: str | None = None

    @property
    def _llm_type(self) -> str:
        return "offline-quoting-stand-in"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> OfflineQuotingModel:
        """Keep the name of the first tool."""
        return self.model_copy(update={"tool_name": tools[0].name if tools else None})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        asked = [index for index, message in enumerate(messages) if isinstance(message, HumanMessage)]
        last = asked[-1] if asked else len(messages)
        question, lines = prompt_view.question_and_lines(messages)
        has_result = any(isinstance(message, ToolMessage) for message in messages[last:])
        if self.tool_name and not has_result and not any(line.part == "recalled" for line in lines):
            call = {"name": self.tool_name, "args": {"query": question}, "id": f"call_{last}"}
            answer = AIMessage("", tool_calls=[call])
        else:
            answer = AIMessage(quote(lines, question) or NOTHING)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def quote(lines: Sequence[prompt_view.PromptLine], question: str) -> str:
    """Quote the line that shares most words with the question; an empty text if none shares a word.

    What was said is quoted before what was noted of it on a board or in a profile. Where no line shares a word, the
    turn that the question points at is quoted.
    """
    told = [line for line in lines if without_questions(line.text) and line.part != "turn"]
    for parts in (_SAID, _NOTED):
        best = prompt_view.rank(
            [line for line in told if line.part in parts], question, key=lambda line: without_questions(line.text)
        )
        if best:
            return f"“{best[0].text}”"
    return " ".join(f"“{line.text}”" for line in lines if line.part == "turn")


def without_questions(text: str) -> str:
    """Remove the questions from a text, since a question seldom answers another."""
    parts = [text[each.start : each.end] for each in sentences(text)]
    return " ".join(part for part in parts if "?" not in part)
