"""The model that writes summaries: any LangChain chat model, runnable or function, in both colours."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from langchain_supabase_memory.deadline import in_thread, within
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.messages.content import LC_SOURCE, OURS

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_supabase_memory.flow import Ask, Material


class Writer(Protocol):
    """Writes without a language model, from the material itself."""

    def write(self, material: Material) -> str:
        """The answer: a text, or for a board a JSON document."""
        ...


Summariser: TypeAlias = "Runnable[Any, Any] | Callable[[list[BaseMessage]], Any] | Writer"
"""A chat model, any runnable, or a function, which takes messages and gives a message or a text; or a `Writer`."""

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
        self._writer = None if isinstance(model, Runnable) else getattr(model, "write", None)
        if not isinstance(model, Runnable) and not callable(model) and not callable(self._writer):
            raise ConfigurationError(
                f"A summary model cannot be a {type(model).__name__}.", hint="Pass a chat model, such as ChatOpenAI()."
            )
        self._model: Any = model
        named = (getattr(model, name, None) for name in ("model_name", "model", "name"))
        self.name = next((name for name in named if isinstance(name, str)), type(model).__name__)

    @property
    def is_model(self) -> bool:
        """Whether it is asked with prompts; else it writes from the material, without a language model."""
        return self._writer is None

    def answer(self, ask: Ask) -> BaseMessage:
        """Ask, and wait for the answer.

        Raises:
            TimeoutError: It took too long.
            Exception: Whatever the model raises.
        """
        asked = self._asked(ask)
        if isinstance(asked, Runnable):
            return _message(within(ask.timeout_seconds, partial(asked.invoke, list(ask.prompt), _CONFIG)))
        return _message(within(ask.timeout_seconds, asked))

    async def aanswer(self, ask: Ask) -> BaseMessage:
        """The async twin of `answer`."""
        asked = self._asked(ask)
        async with asyncio.timeout(ask.timeout_seconds):
            if isinstance(asked, Runnable):
                return _message(await asked.ainvoke(list(ask.prompt), _CONFIG))
            answer = await in_thread(asked)
            return _message(await answer if asyncio.iscoroutine(answer) else answer)

    def _asked(self, ask: Ask) -> Runnable[Any, Any] | Callable[[], Any]:
        """What is to be invoked with the prompt, or called."""
        if self._writer is not None and ask.material is not None:
            return partial(self._writer, ask.material)
        if not isinstance(self._model, Runnable):
            return partial(self._model, list(ask.prompt))
        if ask.schema is None or not isinstance(self._model, BaseChatModel):
            return self._model
        try:
            return self._model.with_structured_output(dict(ask.schema), include_raw=True)
        except (NotImplementedError, AttributeError, ValueError, TypeError):
            return self._model  # it answers with text, in which the document is looked for


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
    if isinstance(answer, dict) and {"raw", "parsed"} <= answer.keys():
        return _structured(answer["raw"], answer["parsed"])
    if not isinstance(answer, BaseMessage):
        raise TypeError(f"a summary model gave a {type(answer).__name__}, neither a message nor a text")
    return answer


def _unparsed(raw: BaseMessage) -> BaseMessage:
    """An answer that could not be read, with the arguments of its call as text, in which the document is looked for."""
    calls = [*raw.tool_calls, *raw.invalid_tool_calls] if isinstance(raw, AIMessage) else []
    if len(calls) != 1:
        return raw
    given = calls[0]["args"]
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
    return AIMessage(text, response_metadata=raw.response_metadata)


def _structured(raw: Any, parsed: Any) -> BaseMessage:
    """A structured answer as a message with its document as text; what says how it ended stays."""
    kept = raw if isinstance(raw, BaseMessage) else AIMessage("")
    if parsed is None:
        return _unparsed(kept)
    document = parsed if isinstance(parsed, dict) else parsed.model_dump()
    return AIMessage(
        json.dumps(document, ensure_ascii=False, default=str),
        additional_kwargs=kept.additional_kwargs if "refusal" in kept.additional_kwargs else {},
        response_metadata=kept.response_metadata,
    )
