"""The offline stand-in for a chat model: it can only quote what its context holds.

So every right answer is the merit of the memory that put it there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import unescape

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_supabase_memory.demo.agent import BUDGET
from langchain_supabase_memory.demo.search import rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import CallbackManagerForLLMRun

NOTHING = "I can see nothing about that."


class OfflineQuotingModel(BaseChatModel):
    """No language model: it asks its tool with the question's own words, then quotes the best line that it sees.

    It knows nothing, makes nothing up, and is here so that the demo runs without a key.
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
        answered = any(isinstance(message, ToolMessage) for message in messages[last:])
        if self.tool_name and not answered:
            call = {"name": self.tool_name, "args": {"query": question}, "id": f"call_{last}"}
            answer = AIMessage("", tool_calls=[call])
        else:
            found = [line for message in messages[last + 1 :] for line in str(message.text).splitlines()]
            seen = [str(message.text) for message in messages[:last] if message.type != "system"]
            # What its tool found comes best first already.
            answer = AIMessage(quoted(statements(found)) or quote(seen, question) or NOTHING)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def quote(lines: list[str], question: str) -> str:
    """The line that shares most with the question, in quotation marks; empty if none shares a word."""
    candidates = statements(lines)
    return quoted([candidates[place] for _, place in rank(candidates, question)])


def quoted(lines: list[str]) -> str:
    """The first line, in quotation marks; empty if there is none."""
    return f"“{lines[0]}”" if lines else ""


def statements(lines: list[str]) -> list[str]:
    """The lines that are no questions: a question seldom answers another."""
    return [line for line in lines if not line.rstrip().endswith("?")]


_NAMED = re.compile(r"\d|(?<=\w )[A-Z]\w+")
_TAGS = re.compile(r"<[^>]*>")


def quoting_summary(prompt: list[BaseMessage]) -> str:
    """The stand-in for a summary model: it quotes the lines with most names and numbers for their length.

    Args:
        prompt: What a summary model is asked (see `prompts.summary_prompt`).

    Returns:
        Whole lines of the summary so far and of what was said since, in order, within a quarter of the demo's budget.
    """
    lines = [unescape(line).strip() for line in _TAGS.sub("\n", str(prompt[-1].content)).splitlines()]
    candidates = list(dict.fromkeys(statements([line for line in lines if _NAMED.search(line)])))
    best = sorted(candidates, key=lambda line: -len(_NAMED.findall(line)) / (len(line) + 20))
    kept: set[str] = set()
    room = BUDGET.about_characters // 4
    for line in best:
        if len(line) < room:
            kept.add(line)
            room -= len(line) + 1
    return "\n".join(line for line in candidates if line in kept) or NOTHING
