"""The summarizer: any LangChain chat model, runnable or function, sync and async."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from langchain_core.messages import AIMessage, BaseMessage

from langchain_supabase_memory.adapters.callbacks import NOSTREAM
from langchain_supabase_memory.adapters.model_loading import CHAT_MODEL, load_chat_model
from langchain_supabase_memory.adapters.runnable_types import is_chat_model, is_embedder, is_runnable
from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.deadline import awithin, in_thread, within
from langchain_supabase_memory.effects import INLINE_LIMIT, Ask, map_steps, offload
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.language.messages import reasoning
from langchain_supabase_memory.language.messages.content import LC_SOURCE, OURS
from langchain_supabase_memory.settings import Inherited

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    from langchain_core.runnables import Runnable, RunnableConfig

    from langchain_supabase_memory.effects import Flow, Material, Step

T = TypeVar("T")


class SummaryWriter(Protocol):
    """Writes summaries from the material itself, without a language model."""

    def write(self, material: Material) -> str:
        """Return the answer: a text, or for a board a JSON document."""
        ...


Summarizer: TypeAlias = "Runnable[Any, Any] | Callable[[list[BaseMessage]], Any] | SummaryWriter | str"
"""A chat model, any runnable, or a function that takes messages and returns a message or text; or a `SummaryWriter`.

Or a chat model's name, such as `"openai:gpt-5.5"`, for LangChain's `init_chat_model`.
"""

_CONFIG: Final[RunnableConfig] = {
    "tags": [NOSTREAM],
    "metadata": {LC_SOURCE: OURS},
    "run_name": "supabase_memory_summary",
}

# OpenAI's own classes can enforce a schema strictly. Classes of other providers that derive from their base accept the
# keyword too, and some of those servers refuse it.
_STRICT: Final = frozenset({"ChatOpenAI", "AzureChatOpenAI"})

# Messages of servers without structured output, and their statuses.
_UNSTRUCTURED: Final = re.compile(
    r"response_format|json_schema|text\.format|structured.output|tool_choice|support.{0,20}\btool|\btools?\b.{0,40}support",
    re.IGNORECASE,
)
_REFUSED: Final = frozenset({400, 404, 422, 501})


class SummaryModel:
    """Asks a model, with a timeout and without streaming to the user.

    A document is requested as structured output, if the model supports it. If its server says that it does not, later
    prompts request plain text, and the document is parsed from that.

    Args:
        model: A chat model or its name, any runnable, or a function.

    Raises:
        ConfigurationError: It is none of these, not the name of a model, or the provider's key is missing.
        MissingDependencyError: A package that the named model needs is not installed.
    """

    def __init__(self, model: Summarizer) -> None:
        if isinstance(model, str):
            model = load_chat_model(model)
        self._writer = None if is_runnable(model) else getattr(model, "write", None)
        is_one = is_runnable(model) or callable(model) or callable(self._writer)
        if not is_one or isinstance(model, type):
            hint = f'Pass a chat model, or its name, such as "{CHAT_MODEL}".'
            if is_embedder(model):
                hint = f"An embedder goes into embeddings=. {hint}"
            raise wrong_type("model", "a chat model, its name, a runnable or a function", model, hint)
        self._model: Any = model
        self._is_structured = is_chat_model(model)
        self._is_strict = _is_strict(model)
        self._blocks = _blocks(model)
        named = (getattr(model, name, None) for name in ("model_name", "model", "name"))
        self.name = next((name for name in named if isinstance(name, str)), type(model).__name__)

    @property
    def is_model(self) -> bool:
        """Whether it calls a model; a `SummaryWriter` only uses CPU time on this machine."""
        return self._writer is None

    def answer(self, ask: Ask) -> BaseMessage:
        """Ask, and wait for the answer.

        Raises:
            TimeoutError: The model took too long.
            Exception: Whatever the model raises.
        """
        asked = self._target(ask)
        if not is_runnable(asked):
            return self._read(within(ask.timeout_seconds, asked), ask)
        try:
            answer = within(ask.timeout_seconds, partial(asked.invoke, list(ask.prompt), _CONFIG))
            return self._read(answer, ask)
        except Exception as error:
            self._remember_refusal(error, ask)
            raise

    async def aanswer(self, ask: Ask) -> BaseMessage:
        """The async twin of `answer`, with the model's async method."""
        try:
            return await awithin(ask.timeout_seconds, self._ask_within(ask))
        except Exception as error:
            self._remember_refusal(error, ask)
            raise

    async def _ask_within(self, ask: Ask) -> BaseMessage:
        asked = self._target(ask)
        if not is_runnable(asked):
            answer = await in_thread(asked)
            return self._read(await answer if asyncio.iscoroutine(answer) else answer, ask)
        if self._blocks:
            answer = await in_thread(partial(asked.invoke, list(ask.prompt), _CONFIG))
        else:
            answer = await asked.ainvoke(list(ask.prompt), _CONFIG)
        return self._read(answer, ask)

    def _read(self, answer: Any, ask: Ask) -> BaseMessage:
        """Return an answer as a message without reasoning in its text; extractive answers stay verbatim."""
        if not is_runnable(self._model):
            message = _message(answer)
            return message if self._is_quoted(ask) else _without_thoughts(message)
        return _without_thoughts(_message(answer, self._required_fields(ask)))

    def _is_quoted(self, ask: Ask) -> bool:
        """Return whether it answers from the material itself, without a model."""
        return self._writer is not None and ask.material is not None

    def _target(self, ask: Ask) -> Any:
        """Return a runnable to invoke with the prompt, or a function to call."""
        if self._writer is not None and self._is_quoted(ask):
            return partial(self._writer, ask.material)
        if not is_runnable(self._model):
            return partial(self._model, list(ask.prompt))
        model: Any = self._model
        if ask.schema is None or not self._is_structured:
            return self._model
        given, more = (_strict(ask.schema), {"strict": True}) if self._is_strict else (dict(ask.schema), {})
        try:
            structured: Runnable[Any, Any] = model.with_structured_output(given, include_raw=True, **more)
        except (NotImplementedError, AttributeError, ValueError, TypeError):
            return self._model  # it answers with text, from which the document is parsed
        return structured

    def _required_fields(self, ask: Ask) -> Set[str]:
        """Return the fields of a document that a strict model always returns unless the answer was truncated."""
        return frozenset(ask.schema["required"] if ask.schema is not None and self._is_strict else ())

    def _remember_refusal(self, error: Exception, ask: Ask) -> None:
        """Remember that a server has no structured output."""
        if ask.schema is not None and getattr(error, "status_code", None) in _REFUSED:
            self._is_structured = self._is_structured and _UNSTRUCTURED.search(str(error)) is None


def summarizer(
    model: Summarizer | SummaryModel | Inherited | None, default: SummaryModel | None = None
) -> SummaryModel | None:
    """Return the summarizer for a value, or the default if none was passed; `None` for no summaries at all.

    Raises:
        ConfigurationError: The value is not a model.
    """
    if isinstance(model, Inherited):
        return default
    return model if model is None or isinstance(model, SummaryModel) else SummaryModel(model)


def summarizer_of(model: Summarizer | Inherited | None, default: SummaryModel | None) -> Flow[SummaryModel | None]:
    """Load a summarizer within a flow: loading by name imports packages, which would block an event loop."""
    make = partial(summarizer, model, default)
    return (yield from offload(make, INLINE_LIMIT)) if isinstance(model, str) else make()


def require_summarizer(model: SummaryModel | None) -> SummaryModel:
    """Return the summarizer, if there is one.

    Raises:
        ConfigurationError: There is no summarizer.
    """
    if model is None:
        raise ConfigurationError(
            "There is no model to write summaries with.",
            hint=f'Pass model=ChatOpenAI(...), or model="{CHAT_MODEL}", to the memory or the call.',
        )
    return model


def asking(flow: Flow[T], model: SummaryModel | None) -> Flow[T]:
    """Return a flow that asks another summarizer; `None` uses the memory's."""

    def change(step: Step[Any]) -> Step[Any]:
        return replace(step, model=model) if isinstance(step, Ask) and step.model is None else step

    return flow if model is None else map_steps(flow, change)


def _blocks(model: object) -> bool:
    """Return whether a chat model has no async methods.

    LangChain's default for those uses one of the event loop's few threads, which closing the loop waits for.
    """
    if not is_chat_model(model):
        return False
    from langchain_core.language_models import BaseChatModel  # already imported by whoever created the model

    return all(getattr(type(model), name) is getattr(BaseChatModel, name) for name in ("_agenerate", "_astream"))


def _is_strict(model: object) -> bool:
    """Return whether it is one of OpenAI's own classes, or derived from one, without importing them."""
    kinds = type(model).__mro__
    return any(kind.__name__ in _STRICT and kind.__module__.startswith("langchain_openai.") for kind in kinds)


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a schema for OpenAI's strict mode: every property is required, and optional ones may be null."""
    made: dict[str, Any] = dict(schema)
    if "properties" in made:
        needed = made.get("required", ())
        made["properties"] = {
            name: _strict(each if name in needed else _or_null(each)) for name, each in made["properties"].items()
        }
        made |= {"required": list(made["properties"]), "additionalProperties": False}
    if isinstance(made.get("items"), Mapping):
        made["items"] = _strict(made["items"])
    return made


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return {**schema, "type": [*kinds, *({"null"} - {*kinds})]}


def _message(answer: Any, required: Set[str] = frozenset()) -> BaseMessage:
    if isinstance(answer, str):
        return AIMessage(answer)
    if isinstance(answer, dict) and {"raw", "parsed"} <= answer.keys():
        return _structured(answer["raw"], answer["parsed"], required)
    if not isinstance(answer, BaseMessage):
        raise TypeError(f"a summary model gave a {type(answer).__name__}, neither a message nor a text")
    return answer


def _without_thoughts(message: BaseMessage) -> BaseMessage:
    text = str(message.text)
    said = reasoning.answer_text(text)
    if said == text:
        return message
    blocks = message.content if isinstance(message.content, list) else []
    others = [block for block in blocks if not (isinstance(block, str) or block.get("type") == "text")]
    return message.model_copy(update={"content": [*others, {"type": "text", "text": said}] if others else said})


def _structured(raw: Any, parsed: Any, required: Set[str]) -> BaseMessage:
    """Return a structured answer as a message with its document as text, with its finish reason."""
    kept = raw if isinstance(raw, BaseMessage) else AIMessage("")
    calls = [*kept.tool_calls, *kept.invalid_tool_calls] if isinstance(kept, AIMessage) else []
    if not calls and str(kept.text).strip():
        return kept  # verbatim: LangChain's parser completes a truncated document
    if parsed is None and len(calls) != 1:
        return kept
    given = calls[0]["args"] if parsed is None else parsed if isinstance(parsed, dict) else parsed.model_dump()
    ended = kept.response_metadata
    if isinstance(given, dict) and not required <= given.keys():
        ended = {**ended, "finish_reason": "length"}  # the arguments of a streamed call are completed likewise
    return AIMessage(
        given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str),
        additional_kwargs=kept.additional_kwargs if "refusal" in kept.additional_kwargs else {},
        response_metadata=ended,
    )
