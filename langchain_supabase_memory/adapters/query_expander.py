"""The query expander: a chat model or function that derives more queries for a recall, cached, with a timeout."""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_supabase_memory.adapters.model_timeout import ModelTimeout
from langchain_supabase_memory.adapters.runnable_types import is_runnable
from langchain_supabase_memory.adapters.summarizer import SummaryModel
from langchain_supabase_memory.checks import number, wrong_type
from langchain_supabase_memory.effects import Ask
from langchain_supabase_memory.errors import ExpansionError, code_of
from langchain_supabase_memory.language.messages.reasoning import answer_text
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.language.prompts import questions_prompt
from langchain_supabase_memory.operations.model_calls import is_nothing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    from langchain_supabase_memory.effects import Expand

Expander: TypeAlias = (
    "BaseChatModel | Runnable[Any, Any] | Callable[[str], Iterable[str] | str | Awaitable[Iterable[str] | str]] | str"
)
"""Derives more queries from one.

A function takes the query and returns texts or lines; it may be a coroutine function.
"""

MAX_QUERIES: Final = 7
REMEMBERED: Final = 64
"""The number of queries whose expansions are cached, because an agent that uses tools repeats them."""

_LONGEST: Final = 2_000
"""The maximum number of a query's characters that the model sees."""

# Characters that lists and JSON put around a line.
_BEFORE: Final = re.compile(r"^(?:[\s\"'\[\]`*•–—-]|\d{1,2}[.)](?=\s|$))+")
_AFTER: Final = re.compile(r"[\s\"'\[\]`,]+$")
_FENCE: Final = re.compile(r"^\s*```\w*\s|```\s*$")


class ExpandModel:
    """Asks a model for more queries, to find what the person's own words do not name.

    Its answer is only used for searching and never enters a prompt. Blank lines, repeats and refusals are dropped.

    Args:
        model: A chat model, or its name, such as `"openai:gpt-5.5-mini"`; or a function of the query, which returns
            texts or lines.
        queries: The maximum number of additional queries, 1 to 7.
        characters: The maximum length of each in characters; longer ones are truncated.
        seconds: The timeout in seconds; after it, only the original query is used. After such a timeout the model is
            not called for thirty seconds.

    Raises:
        ConfigurationError: It is not a model, or a number is out of its range.
        MissingDependencyError: A package that the named model needs is not installed.
    """

    def __init__(self, model: Expander, *, queries: int = 3, characters: int = 200, seconds: float = 2.0) -> None:
        number(
            "queries", queries, minimum=1, above=False, below=MAX_QUERIES + 1, integer=True, optional=False, example=3
        )
        number("characters", characters, integer=True, optional=False, example=200)
        number("seconds", seconds, optional=False, example=2)
        self._model: SummaryModel | None = None
        self._function: Callable[[str], Any] | None = None
        if isinstance(model, str) or is_runnable(model):
            self._model = SummaryModel(model)
        elif callable(model) and not isinstance(model, type):
            self._function = model
        else:
            raise wrong_type("expand", "a chat model, its name or a function", model, "Pass a chat model, for example.")
        self._queries = queries
        self._characters = characters
        self._seconds = seconds
        self._patience = ModelTimeout(seconds)
        self._made: dict[bytes, list[str]] = {}

    def answer(self, step: Expand) -> list[str]:
        """Return more queries, the best first; empty if the model returned none.

        Raises:
            ExpansionError: The model failed, or took too long.
        """
        known = self._made.get(_digest(step.query))
        if known is not None:
            return known
        try:
            answer = self._patience.call(partial(self._call, step.query))
        except Exception as error:  # whatever a model, a provider or a network raises
            raise _failed(error) from None
        return self._store(step.query, answer)

    async def aanswer(self, step: Expand) -> list[str]:
        """The async twin of `answer`, with the model's async method."""
        known = self._made.get(_digest(step.query))
        if known is not None:
            return known
        try:
            if self._model is None:
                answer = await self._patience.acall(partial(self._call, step.query))
            else:
                asked, model = self._ask(step.query), self._model
                answer = str((await self._patience.wait(lambda: model.aanswer(asked))).text)
        except Exception as error:
            raise _failed(error) from None
        return self._store(step.query, answer)

    def __repr__(self) -> str:
        """Return a description, without keys."""
        name = getattr(self._function, "__name__", "function") if self._model is None else self._model.name
        return f"ExpandModel({name!r}, queries={self._queries})"

    def _call(self, query: str) -> Any:
        if self._function is not None:
            return self._function(query[:_LONGEST])
        assert self._model is not None
        return str(self._model.answer(self._ask(query)).text)

    def _ask(self, query: str) -> Ask:
        return Ask(questions_prompt(query[:_LONGEST], self._queries), self._seconds)

    def _store(self, query: str, answer: Any) -> list[str]:
        made = self._texts(query, answer)
        # One assignment, so that threads need no lock.
        self._made = dict([*self._made.items(), (_digest(query), made)][-REMEMBERED:])
        return made

    def _texts(self, query: str, answer: Any) -> list[str]:
        """Return the usable queries of an answer."""
        if isinstance(answer, str):
            answer = answer_text(answer)
            answer = [] if is_nothing(answer) else _parse_texts(answer)
        try:
            given = [each for each in answer if isinstance(each, str)]
        except TypeError:
            raise ExpansionError("The query expander returned something that is not text.") from None
        found: dict[str, str] = {query.strip().casefold(): ""}
        for each in given:
            text = clean(_AFTER.sub("", _BEFORE.sub("", each[: 4 * self._characters])))[: self._characters].strip()
            if text and not is_nothing(text):
                found.setdefault(text.casefold(), text)
        return [text for text in found.values() if text][: self._queries]


def expander(value: Expander | ExpandModel | None) -> ExpandModel | None:
    """Return the model for a query expander, or `None`.

    Raises:
        ConfigurationError: The value is not a model.
    """
    return value if value is None or isinstance(value, ExpandModel) else ExpandModel(value)


def _parse_texts(answer: str) -> list[Any]:
    """Return the texts of an answer: those of a JSON list, bare or under a key, fenced or not; else its lines."""
    try:
        given = json.loads(_FENCE.sub("", answer))
    except (ValueError, RecursionError):
        return answer.splitlines()
    if isinstance(given, dict):
        given = next((each for each in given.values() if isinstance(each, list)), None)
    return given if isinstance(given, list) else answer.splitlines()


def _digest(query: str) -> bytes:
    """Return the cache key of a query, so that its text is not stored."""
    return hashlib.sha256(query.encode("utf-8", "surrogatepass")).digest()


def _failed(error: Exception) -> ExpansionError:
    return ExpansionError(f"The query expander failed ({type(error).__name__}).", code=code_of(error))
