"""The model that writes summaries: any LangChain chat model, runnable or function, in both colors."""

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
    """Writes without a language model, from the material itself."""

    def write(self, material: Material) -> str:
        """The answer: a text, or for a board a JSON document."""
        ...


Summarizer: TypeAlias = "Runnable[Any, Any] | Callable[[list[BaseMessage]], Any] | SummaryWriter | str"
"""A chat model, any runnable, or a function, which takes messages and gives a message or a text; or a `SummaryWriter`.

Or a chat model's name, such as `"openai:gpt-5.5"`, for LangChain's `init_chat_model`."""

_CONFIG: Final[RunnableConfig] = {
    "tags": [NOSTREAM],
    "metadata": {LC_SOURCE: OURS},
    "run_name": "supabase_memory_summary",
}

# OpenAI's own classes hold an answer to its schema if told to. Those of other providers that are derived from their
# base take the word too, and some refuse it.
_STRICT: Final = frozenset({"ChatOpenAI", "AzureChatOpenAI"})

# What servers say that have no structured output, and with what status.
_UNSTRUCTURED: Final = re.compile(
    r"response_format|json_schema|text\.format|structured.output|tool_choice|support.{0,20}\btool|\btools?\b.{0,40}support",
    re.IGNORECASE,
)
_REFUSED: Final = frozenset({400, 404, 422, 501})


class SummaryModel:
    """Asks a model, with a limit of time and so that nothing of it is streamed to the user.

    A document is asked for as structured output, where the model has it. Where its server says that it has not, later
    questions are plain from the beginning, and the document is looked for in the text.

    Args:
        model: A chat model or its name, any runnable, or a function.

    Raises:
        ConfigurationError: It is none of these, or a name of none, or the provider's key is missing.
        MissingDependencyError: A package that a model by its name needs is not installed.
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
        """Whether it is a model that is asked; a `SummaryWriter` takes this machine's time alone."""
        return self._writer is None

    def answer(self, ask: Ask) -> BaseMessage:
        """Ask, and wait for the answer.

        Raises:
            TimeoutError: It took too long.
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
        """The async twin of `answer`, by the model's async method."""
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
        """An answer as a message, without what the model thinks in its text; what is quoted stays as it was said."""
        if not is_runnable(self._model):
            message = _message(answer)
            return message if self._is_quoted(ask) else _without_thoughts(message)
        return _without_thoughts(_message(answer, self._required_fields(ask)))

    def _is_quoted(self, ask: Ask) -> bool:
        """Whether it answers from the material itself, and asks no model."""
        return self._writer is not None and ask.material is not None

    def _target(self, ask: Ask) -> Any:
        """A runnable, which is to be invoked with the prompt, or a function, which is to be called."""
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
            return self._model  # it answers with text, in which the document is looked for
        return structured

    def _required_fields(self, ask: Ask) -> Set[str]:
        """What a document has, where the model holds to its schema and nothing has cut it."""
        return frozenset(ask.schema["required"] if ask.schema is not None and self._is_strict else ())

    def _remember_refusal(self, error: Exception, ask: Ask) -> None:
        """Note it where a server says that it has no structured output."""
        if ask.schema is not None and getattr(error, "status_code", None) in _REFUSED:
            self._is_structured = self._is_structured and _UNSTRUCTURED.search(str(error)) is None


def summarizer(
    model: Summarizer | SummaryModel | Inherited | None, default: SummaryModel | None = None
) -> SummaryModel | None:
    """What writes summaries: what was given, or the default where nothing was; `None` for no summaries at all.

    Raises:
        ConfigurationError: What was given is no model.
    """
    if isinstance(model, Inherited):
        return default
    return model if model is None or isinstance(model, SummaryModel) else SummaryModel(model)


def summarizer_of(model: Summarizer | Inherited | None, default: SummaryModel | None) -> Flow[SummaryModel | None]:
    """The same within a flow: to make a model by its name takes imports, which would block an event loop."""
    make = partial(summarizer, model, default)
    return (yield from offload(make, INLINE_LIMIT)) if isinstance(model, str) else make()


def require_summarizer(model: SummaryModel | None) -> SummaryModel:
    """What writes summaries, if there is one.

    Raises:
        ConfigurationError: There is none.
    """
    if model is None:
        raise ConfigurationError(
            "There is no model to write summaries with.",
            hint=f'Pass model=ChatOpenAI(...), or model="{CHAT_MODEL}", to the memory or the call.',
        )
    return model


def asking(flow: Flow[T], model: SummaryModel | None) -> Flow[T]:
    """A flow whose questions go to a model of its own; `None` leaves them to the memory's."""

    def change(step: Step[Any]) -> Step[Any]:
        return replace(step, writer=model) if isinstance(step, Ask) and step.writer is None else step

    return flow if model is None else map_steps(flow, change)


def _blocks(model: object) -> bool:
    """Whether it is a chat model without an async side.

    LangChain's own default for those is a thread of the event loop's few, which the loop's end waits for.
    """
    if not is_chat_model(model):
        return False
    from langchain_core.language_models import BaseChatModel  # imported long since, by whoever made the model

    return all(getattr(type(model), name) is getattr(BaseChatModel, name) for name in ("_agenerate", "_astream"))


def _is_strict(model: object) -> bool:
    """Whether it is one of OpenAI's own, or derived from it; without importing them."""
    kinds = type(model).__mro__
    return any(kind.__name__ in _STRICT and kind.__module__.startswith("langchain_openai.") for kind in kinds)


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as OpenAI's strict mode wants it: every property is required, what may be left out is null instead."""
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
    """A structured answer as a message with its document as text; what says how it ended stays."""
    kept = raw if isinstance(raw, BaseMessage) else AIMessage("")
    calls = [*kept.tool_calls, *kept.invalid_tool_calls] if isinstance(kept, AIMessage) else []
    if not calls and str(kept.text).strip():
        return kept  # as it stands: LangChain's parser completes half a document
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
