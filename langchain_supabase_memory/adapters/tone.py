"""The function that rates the tone of what users say, with a timeout and checked results."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from langchain_supabase_memory.adapters.model_timeout import ModelTimeout
from langchain_supabase_memory.adapters.runnable_types import is_runnable
from langchain_supabase_memory.checks import number, wrong_type
from langchain_supabase_memory.errors import ToneError, code_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from langchain_core.runnables import Runnable

    from langchain_supabase_memory.effects import RateTone


class RatesTone(Protocol):
    """An object that rates the tone of texts."""

    def rate(self, texts: list[str]) -> Sequence[float] | Awaitable[Sequence[float]]:
        """Return a number from -1 to 1 for each text."""


Tone: TypeAlias = (
    "Callable[[list[str]], Sequence[float] | Awaitable[Sequence[float]]]"
    " | Runnable[list[str], Sequence[float]] | RatesTone"
)
"""Rates the tone of texts: takes a list, and returns a number from -1 to 1 for each; it may be a coroutine function."""


class ToneModel:
    """Calls what rates the tone.

    Args:
        tone: A function of a list of texts, a runnable, or an object with `rate`; it returns a number from -1 to 1 for
            each text.
        seconds: The timeout in seconds; after it, chunks are stored without a tone. After such a timeout it is not
            called for thirty seconds.

    Raises:
        ConfigurationError: It rates nothing, or the number is out of its range.
    """

    def __init__(self, tone: Tone, *, seconds: float = 10.0) -> None:
        self._runnable = tone if is_runnable(tone) else None
        given = getattr(tone, "rate", None)
        self._function: Any = given if callable(given) else tone
        if isinstance(tone, type) or (self._runnable is None and not callable(self._function)):
            hint = "Pass a function that returns a number from -1 to 1 for each text of a list."
            raise wrong_type("tone", "a function, a runnable or an object with rate", tone, hint)
        number("seconds", seconds, optional=False, example=10)
        self._name = type(tone).__name__ if self._function is not tone else getattr(tone, "__name__", "function")
        self._patience = ModelTimeout(seconds)

    def answer(self, step: RateTone) -> list[float]:
        """Return the tone of each text.

        Raises:
            ToneError: It failed, took too long, or returned something else.
        """
        try:
            answer = self._patience.call(self._call(step))
        except Exception as error:  # whatever a function, a model or a network raises
            raise _failed(error) from None
        return _checked(answer, len(step.texts))

    async def aanswer(self, step: RateTone) -> list[float]:
        """The async twin of `answer`, with a runnable's async method."""
        runnable, texts = self._runnable, list(step.texts)
        try:
            if runnable is None:
                answer = await self._patience.acall(self._call(step))
            else:
                answer = await self._patience.wait(lambda: runnable.ainvoke(texts))
        except Exception as error:
            raise _failed(error) from None
        return _checked(answer, len(texts))

    def __repr__(self) -> str:
        """Return a description, without keys."""
        return f"ToneModel({self._name})"

    def _call(self, step: RateTone) -> Callable[[], Any]:
        return partial(self._function if self._runnable is None else self._runnable.invoke, list(step.texts))


def tone_model(value: Tone | ToneModel | None) -> ToneModel | None:
    """Return the model for what rates the tone, or `None`.

    Raises:
        ConfigurationError: The value rates nothing.
    """
    return value if value is None or isinstance(value, ToneModel) else ToneModel(value)


def _checked(answer: Any, count: int) -> list[float]:
    """Return the numbers of an answer.

    Raises:
        ToneError: It is not one number from -1 to 1 for each text.
    """
    try:
        values = [float(each) for each in answer if not isinstance(each, (str, bool))]
    except (TypeError, ValueError, OverflowError):
        raise ToneError("What rates the tone returned something that is no list of numbers.") from None
    if len(values) != count or not all(math.isfinite(each) and -1 <= each <= 1 for each in values):
        raise ToneError("What rates the tone did not return a number from -1 to 1 for each text.")
    return values


def _failed(error: Exception) -> ToneError:
    # The message of another package's error may contain content; its class does not.
    return ToneError(f"What rates the tone failed ({type(error).__name__}).", code=code_of(error))
