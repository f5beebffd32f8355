"""The model that writes summaries: any LangChain chat model, runnable or function, in both colours."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from langchain_supabase_memory.deadline import in_thread, within
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.messages.content import LC_SOURCE, OURS

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_supabase_memory.flow import Ask

Summariser: TypeAlias = "Runnable[Any, Any] | Callable[[list[BaseMessage]], Any]"
"""A chat model, any runnable, or a function; it takes messages and gives a message or a text."""

_CONFIG: Final[RunnableConfig] = {
    "tags": ["nostream"],  # LangGraph's tag: these tokens are not streamed to the user
    "metadata": {LC_SOURCE: OURS},
    "run_name": "supabase_memory_summary",
}


class SummaryModel:
    """Asks a model, with a limit of time and so that nothing of it is streamed to the user.

    Args:
        model: A chat model, any runnable, or a function.

    Raises:
        ConfigurationError: It is none of these.
    """

    def __init__(self, model: Summariser) -> None:
        if not isinstance(model, Runnable) and not callable(model):
            raise ConfigurationError(
                f"A summary model cannot be a {type(model).__name__}.", hint="Pass a chat model, such as ChatOpenAI()."
            )
        self._model = model
        named = (getattr(model, name, None) for name in ("model_name", "model"))
        self.name = next((name for name in named if isinstance(name, str)), type(model).__name__)

    def answer(self, ask: Ask) -> BaseMessage:
        """Ask, and wait for the answer.

        Raises:
            TimeoutError: It took too long.
            Exception: Whatever the model raises.
        """
        prompt = list(ask.prompt)
        call = (
            partial(self._model.invoke, prompt, _CONFIG)
            if isinstance(self._model, Runnable)
            else partial(self._model, prompt)
        )
        return _message(within(ask.timeout_seconds, call))

    async def aanswer(self, ask: Ask) -> BaseMessage:
        """The async twin of `answer`."""
        prompt = list(ask.prompt)
        async with asyncio.timeout(ask.timeout_seconds):
            if isinstance(self._model, Runnable):
                return _message(await self._model.ainvoke(prompt, _CONFIG))
            answer = await in_thread(partial(self._model, prompt))
            return _message(await answer if asyncio.iscoroutine(answer) else answer)


def chosen(model: SummaryModel | None, default: SummaryModel | None) -> SummaryModel:
    """The model of a call, or the memory's.

    Raises:
        ConfigurationError: There is neither.
    """
    found = model or default
    if found is None:
        raise ConfigurationError(
            "There is no model to write summaries with.", hint="Pass model=ChatOpenAI(...) to the memory or the call."
        )
    return found


def _message(answer: Any) -> BaseMessage:
    if isinstance(answer, str):
        return AIMessage(answer)
    if not isinstance(answer, BaseMessage):
        raise TypeError(f"a summary model gave a {type(answer).__name__}, neither a message nor a text")
    return answer
