"""The OpenAI Agents SDK with a model that answers from a script, and a tool."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import agents
from openai.types import responses as openai_responses

sdk: Any = agents
responses: Any = openai_responses


class ScriptedModel(sdk.Model):  # type: ignore[misc]
    """Answers in turn, and keeps what it was sent."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)
        self.sent: list[Any] = []

    async def get_response(self, *_: Any, **given: Any) -> Any:
        self.sent.append(given["input"])
        return sdk.ModelResponse(output=[self.outputs.pop(0)], usage=sdk.Usage(), response_id=None)

    async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield


def answer(text: str) -> Any:
    words = responses.ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return responses.ResponseOutputMessage(
        id="msg_1", content=[words], role="assistant", status="completed", type="message"
    )


def call() -> Any:
    return responses.ResponseFunctionToolCall(
        call_id="c1", name="code", arguments='{"name": "E-47"}', type="function_call"
    )


@sdk.function_tool  # type: ignore[untyped-decorator]
def code(name: str) -> str:
    """What a code means."""
    return f"{name}: the thermocouple"
