"""What a model's request has beside the memory's parts: the tokens of its system prompt and of its tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_supabase_memory.language.tokens import count_tokens
from langchain_supabase_memory.operations.manifests import encoding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage


class RequestSizes:
    """Counts the tokens of system prompts and tools. The tools of an agent are the same objects in each call."""

    def __init__(self) -> None:
        self._counted: tuple[tuple[Any, ...], int] = ((), 0)

    def encode(self, system: Sequence[BaseMessage], tools: Sequence[Any]) -> list[int]:
        """Return the approximate tokens as a list of a manifest: numbers only.

        Args:
            system: The system messages that are not the memory's.
            tools: The tools: LangChain's, or the dictionaries of a provider.
        """
        words = sum(count_tokens(str(message.text)) for message in system)
        return [encoding.REQUEST, words, len(tools), self._tool_tokens(tuple(tools))]

    def _tool_tokens(self, tools: tuple[Any, ...]) -> int:
        before, tokens = self._counted
        if len(before) != len(tools) or any(one is not other for one, other in zip(before, tools, strict=True)):
            tokens = sum(map(_tokens_of, tools))
            self._counted = tools, tokens
        return tokens


def _tokens_of(tool: Any) -> int:
    schema = tool if isinstance(tool, dict) else convert_to_openai_tool(tool)
    return count_tokens(json.dumps(schema, ensure_ascii=False, default=str))
