"""Models of four providers that keep the payload of each request, and answer it without a network.

Each integration takes up to a second to import, so a test module imports this one in its tests: every test process
imports every test module.
"""

from __future__ import annotations

import json
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_mistralai import ChatMistralAI
from langchain_openai import AzureChatOpenAI, ChatOpenAI

__all__ = [
    "Anthropic",
    "AnthropicPromptCachingMiddleware",
    "AzureChatOpenAI",
    "Google",
    "Mistral",
    "OpenAI",
    "payloads",
]

payloads: list[dict[str, Any]] = []


def answer(payload: dict[str, Any]) -> ChatResult:
    """Keep a payload, and answer it: first with a call of a tool, where there is one."""
    payloads.append(json.loads(json.dumps(payload, default=str)))
    said = AIMessage(f"Answer {len(payloads)}: " + "the kiln and the glaze, " * 20)
    if payload.get("tools") and "tool_result" not in json.dumps(payload["messages"][-1], default=str):
        said = AIMessage("", tool_calls=[{"name": "look", "args": {"what": "kiln"}, "id": f"call_{len(payloads)}"}])
    return ChatResult(generations=[ChatGeneration(message=said)])


class Anthropic(ChatAnthropic):
    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **settings: Any) -> ChatResult:
        return answer(self._get_request_payload(messages, stop=stop, **settings))

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **settings: Any) -> ChatResult:
        return self._generate(messages, stop, **settings)


class OpenAI(ChatOpenAI):
    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **settings: Any) -> ChatResult:
        return answer(self._get_request_payload(messages, stop=stop, **settings))


class Mistral(ChatMistralAI):
    def completion_with_retry(self, run_manager: Any = None, **payload: Any) -> Any:
        answer(payload)
        return {"choices": [{"message": {"role": "assistant", "content": "So it is. " * 40}, "finish_reason": "stop"}]}


class Google(ChatGoogleGenerativeAI):
    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **settings: Any) -> ChatResult:
        settings.pop("tools", None)
        return answer(self._prepare_request(messages, stop=stop, **settings))
