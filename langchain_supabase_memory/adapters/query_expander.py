"""Further questions for a recall: made by a chat model or a function, few, short, cached, and with a deadline."""

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
"""What makes further questions of one. A function takes the question, and gives texts or lines; it may be a coroutine
function."""

MOST: Final = 7
REMEMBERED: Final = 64
"""How many questions' further ones are kept: an agent that uses tools asks them again."""

_LONGEST: Final = 2_000
"""The characters of a question that are shown."""

# What lists and JSON put around a line.
_BEFORE: Final = re.compile(r"^(?:[\s\"'\[\]`*•–—-]|\d{1,2}[.)](?=\s|$))+")
_AFTER: Final = re.compile(r"[\s\"'\[\]`,]+$")
_FENCE: Final = re.compile(r"^\s*```\w*\s|```\s*$")


class ExpandModel:
    """Asks a model for further questions, to find what the person's own words do not name.

    Whatever it answers is looked for and nothing else: it reaches no prompt. Blank lines, repeats and refusals are
    dropped.

    Args:
        model: A chat model, or its name, such as `"openai:gpt-5.5-mini"`; or a function of the question, which gives
            texts or lines.
        queries: The most further questions of one, 1 to 7.
        characters: The most characters of each; what is longer is cut.
        seconds: How long somebody waits for them, in seconds; then the question goes alone. After such a wait in vain
            the model is not asked for thirty seconds.

    Raises:
        ConfigurationError: It is no model, or a number is out of its range.
        MissingDependencyError: A package that a model by its name needs is not installed.
    """

    def __init__(self, model: Expander, *, queries: int = 3, characters: int = 200, seconds: float = 2.0) -> None:
        number("queries", queries, minimum=1, above=False, below=MOST + 1, integer=True, optional=False, example=3)
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
        """Further questions, the best first; none if the model gave none.

        Raises:
            ExpansionError: It failed, or took too long.
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
        """The async twin of `answer`, by the model's async method."""
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
        """What it is, without keys."""
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
        """What of an answer can be looked for."""
        if isinstance(answer, str):
            answer = answer_text(answer)
            answer = [] if is_nothing(answer) else _parse_texts(answer)
        try:
            given = [each for each in answer if isinstance(each, str)]
        except TypeError:
            raise ExpansionError("What makes further questions gave something that is no text.") from None
        found: dict[str, str] = {query.strip().casefold(): ""}
        for each in given:
            text = clean(_AFTER.sub("", _BEFORE.sub("", each[: 4 * self._characters])))[: self._characters].strip()
            if text and not is_nothing(text):
                found.setdefault(text.casefold(), text)
        return [text for text in found.values() if text][: self._queries]


def expander(value: Expander | ExpandModel | None) -> ExpandModel | None:
    """What makes further questions: what was given, or nothing.

    Raises:
        ConfigurationError: What was given is no model.
    """
    return value if value is None or isinstance(value, ExpandModel) else ExpandModel(value)


def _parse_texts(answer: str) -> list[Any]:
    """The texts of an answer: those of a list in JSON, alone or under a name, however it is fenced; else its lines."""
    try:
        given = json.loads(_FENCE.sub("", answer))
    except (ValueError, RecursionError):
        return answer.splitlines()
    if isinstance(given, dict):
        given = next((each for each in given.values() if isinstance(each, list)), None)
    return given if isinstance(given, list) else answer.splitlines()


def _digest(query: str) -> bytes:
    """What a question is remembered by: its words are not kept."""
    return hashlib.sha256(query.encode("utf-8", "surrogatepass")).digest()


def _failed(error: Exception) -> ExpansionError:
    return ExpansionError(f"What makes further questions failed ({type(error).__name__}).", code=code_of(error))
