"""The embedder: any LangChain embedder, sync and async, in batches, with retries, timeouts and checked results."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_supabase_memory.adapters import model_loading
from langchain_supabase_memory.adapters.runnable_types import is_embedder, is_runnable
from langchain_supabase_memory.checks import number, wrong_type
from langchain_supabase_memory.deadline import awithin, ends_at, in_thread, within
from langchain_supabase_memory.effects import Embed, map_steps
from langchain_supabase_memory.errors import ConfigurationError, EmbeddingError, code_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_core.embeddings import Embeddings

    from langchain_supabase_memory.effects import Flow, Step

T = TypeVar("T")

DIGITS: Final = 6
"""The decimals of a vector that are sent to the database, which stores fewer."""

REMEMBERED: Final = 64
"""The number of queries whose vectors are cached."""

_REST_SECONDS: Final = 30.0
_MIN_SECONDS: Final = 0.001


class EmbeddingModel:
    """Calls an embedder.

    Args:
        embeddings: Any LangChain embedder, or its name, such as `"openai:text-embedding-3-small"`, for LangChain's
            `init_embeddings`.
        name: The name stored with its vectors; by default the embedder's own model name, or its class. Vectors with
            different names are never compared.
        batch: The maximum number of texts in one call of the embedder.
        characters: The maximum length of one text in characters; longer texts are truncated, as the embedder would.
        attempts: The maximum number of tries of one call, including the first.
        timeout_seconds: How long to wait for one call, in seconds.
        wait_seconds: How long to wait before the second try, in seconds; it doubles with each try.
        question_seconds: How long to wait for a query's vector, in seconds, including all tries; without one, the
            search uses keywords. After such a timeout the embedder is not called for thirty seconds.

    Raises:
        ConfigurationError: It is not an embedder or the name of one, the provider's key is missing, or a number is not
            positive.
        MissingDependencyError: A package that the named embedder needs is not installed.
    """

    def __init__(
        self,
        embeddings: Embeddings | str,
        *,
        name: str | None = None,
        batch: int = 64,
        characters: int = 24_000,
        attempts: int = 3,
        timeout_seconds: float = 60.0,
        wait_seconds: float = 0.5,
        question_seconds: float = 5.0,
    ) -> None:
        if isinstance(embeddings, str):
            embeddings = model_loading.load_embedder(embeddings)
        if not is_embedder(embeddings):
            hint = f'Pass LangChain Embeddings, or their name, such as "{model_loading.EMBEDDER}".'
            if isinstance(embeddings, EmbeddingModel):
                hint = "It is an EmbeddingModel already: pass it as it is."
            elif is_runnable(embeddings):
                hint = f"A chat model goes into model=. {hint}"
            raise wrong_type("embeddings", "an embedder or its name", embeddings, hint)
        for what, count in (("batch", batch), ("characters", characters), ("attempts", attempts)):
            number(what, count, integer=True, optional=False, example=64)
        number("timeout_seconds", timeout_seconds, optional=False, example=60)
        number("question_seconds", question_seconds, optional=False, example=5)
        number("wait_seconds", wait_seconds, above=False, optional=False, example=0.5)
        self._embeddings = embeddings
        named = (getattr(embeddings, each, None) for each in ("model", "model_name", "model_id"))
        self.name = name or next((each for each in named if isinstance(each, str)), type(embeddings).__name__)
        self._batch = batch
        self._characters = characters
        self._attempts = attempts
        self._timeout_seconds = timeout_seconds
        self._wait_seconds = wait_seconds
        self._question_seconds = question_seconds
        self._resting: tuple[float, EmbeddingError] | None = None
        self._questions: dict[bytes, list[float]] = {}

    def answer(self, embed: Embed) -> list[list[float]]:
        """Return a vector for each text. The newest queries are cached, because an agent that uses tools repeats them.

        Raises:
            EmbeddingError: The embedder failed at every try, or returned something that is not a vector.
        """
        known = self._cached(embed)
        if known is not None:
            return known
        until = min(self._until(embed), ends_at())
        vectors: list[list[float]] = []
        for wanted, call in self._calls(embed):
            for attempt in range(self._attempts):
                try:
                    answer = within(self._at_most(until), call)
                    break
                except Exception as error:  # whatever an embedder, a provider or a network raises
                    time.sleep(self._pause(attempt, until, error, embed))
            vectors += _normalized(answer, wanted)
        return self._store(embed, _of_one_width(vectors))

    async def aanswer(self, embed: Embed) -> list[list[float]]:
        """The async twin of `answer`, with the embedder's async methods."""
        known = self._cached(embed)
        if known is not None:
            return known
        until = self._until(embed)
        vectors: list[list[float]] = []
        for wanted, call in self._acalls(embed):
            for attempt in range(self._attempts):
                try:
                    answer = await awithin(self._at_most(until), call())
                    break
                except Exception as error:
                    await asyncio.sleep(self._pause(attempt, until, error, embed))
            vectors += _normalized(answer, wanted)
        return self._store(embed, _of_one_width(vectors))

    def __repr__(self) -> str:
        """Return its name, without keys."""
        return f"EmbeddingModel({self.name!r})"

    def _until(self, embed: Embed) -> float:
        """Return the deadline, by the monotonic clock.

        Raises:
            EmbeddingError: A query timed out a moment ago.
        """
        now = time.monotonic()
        if embed.is_query and self._resting is not None and now < self._resting[0]:
            _, failure = self._resting
            raise EmbeddingError(failure.message, code=failure.code)
        seconds = self._question_seconds if embed.is_query else embed.seconds
        return math.inf if seconds is None else now + seconds

    def _at_most(self, until: float) -> float:
        return max(min(self._timeout_seconds, until - time.monotonic()), _MIN_SECONDS)

    def _pause(self, attempt: int, until: float, error: Exception, embed: Embed) -> float:
        """Return how long to wait before the next attempt, in seconds.

        Raises:
            EmbeddingError: There is no other attempt, or no time for one.
        """
        wait: float = self._wait_seconds * 2**attempt
        if attempt + 1 < self._attempts and time.monotonic() + wait < until:
            return wait
        failure = _failed(error)
        if embed.is_query and isinstance(error, TimeoutError):
            self._resting = (time.monotonic() + _REST_SECONDS, failure)
        raise failure from None

    def _cached(self, embed: Embed) -> list[list[float]] | None:
        found = [self._questions.get(_digest(text)) for text in embed.texts] if embed.is_query else [None]
        return [each for each in found if each is not None] if None not in found else None

    def _store(self, embed: Embed, vectors: list[list[float]]) -> list[list[float]]:
        if embed.is_query:
            # One assignment, so that threads need no lock: at worst one of them embeds the query again.
            newest = [*self._questions.items(), *zip(map(_digest, embed.texts), vectors, strict=True)][-REMEMBERED:]
            self._questions = dict(newest)
        return vectors

    def _calls(self, embed: Embed) -> Iterator[tuple[int, Callable[[], Any]]]:
        """Yield for each call how many vectors it should return, and the call."""
        if embed.is_query:
            for text in embed.texts:
                yield 1, partial(self._query, text)
            return
        for texts in self._batches(embed.texts):
            yield len(texts), partial(self._embeddings.embed_documents, texts)

    def _acalls(self, embed: Embed) -> Iterator[tuple[int, Callable[[], Any]]]:
        from langchain_core.embeddings import Embeddings  # already imported by whoever created the embedder

        # LangChain's default for an embedder without async methods waits for its thread even when it is canceled.
        kind = type(self._embeddings)
        method = "aembed_query" if embed.is_query else "aembed_documents"
        if getattr(kind, method) is getattr(Embeddings, method):
            for wanted, call in self._calls(embed):
                yield wanted, partial(in_thread, call)
        elif embed.is_query:
            yield len(embed.texts), partial(self._aqueries, embed.texts)
        else:
            for texts in self._batches(embed.texts):
                yield len(texts), partial(self._embeddings.aembed_documents, texts)

    def _query(self, text: str) -> list[list[float]]:
        return [self._embeddings.embed_query(text[: self._characters])]

    async def _aqueries(self, texts: Sequence[str]) -> list[list[float]]:
        return list(await asyncio.gather(*(self._embeddings.aembed_query(text[: self._characters]) for text in texts)))

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        for first in range(0, len(texts), self._batch):
            yield [text[: self._characters] for text in texts[first : first + self._batch]]


def embedder(model: Embeddings | EmbeddingModel | str | None) -> EmbeddingModel | None:
    """Return the model for an embedder, or `None`.

    Raises:
        ConfigurationError: The value is not an embedder.
    """
    return model if model is None or isinstance(model, EmbeddingModel) else EmbeddingModel(model)


def embedding(flow: Flow[T], model: EmbeddingModel | None) -> Flow[T]:
    """Return a flow that embeds its texts with another embedder; `None` uses the memory's."""

    def change(step: Step[Any]) -> Step[Any]:
        return replace(step, embedder=model) if isinstance(step, Embed) and step.embedder is None else step

    return flow if model is None else map_steps(flow, change)


def require_embedder(model: EmbeddingModel | None) -> EmbeddingModel:
    """Return the embedder, if there is one.

    Raises:
        ConfigurationError: There is no embedder.
    """
    if model is None:
        raise ConfigurationError(
            "There is no embedder.",
            hint=f'Pass embeddings=OpenAIEmbeddings(...), or embeddings="{model_loading.EMBEDDER}", to the memory.',
        )
    return model


def _digest(text: str) -> bytes:
    """Return the cache key of a query, so that its text is not stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _failed(error: Exception) -> EmbeddingError:
    if isinstance(error, EmbeddingError):  # from an embedder of this package: its message has a hint and no content
        return EmbeddingError(error.message, code=error.code, hint=error.hint)
    return EmbeddingError(f"The embedder failed ({type(error).__name__}).", code=code_of(error))


def _normalized(vectors: Any, count: int) -> list[list[float]]:
    """Normalize the vectors of one call to length one, after checking that there is one for each text."""
    try:
        given = list(vectors)
    except TypeError:
        raise EmbeddingError(
            "The embedder returned something that is not a vector.", hint="Check the embedder."
        ) from None
    if len(given) != count:
        raise EmbeddingError(f"The embedder gave {len(given)} vectors for {count} texts.", hint="Check the embedder.")
    made = []
    for vector in given:
        try:
            numbers = [float(number) for number in vector]
            length = math.hypot(*numbers)
        except (TypeError, ValueError, OverflowError):
            raise EmbeddingError(
                "The embedder returned something that is not a vector.", hint="Check the embedder."
            ) from None
        if not length or not math.isfinite(length):
            raise EmbeddingError(
                "The embedder gave a vector that is empty, all zero or not finite.", hint="Check the embedder."
            )
        made.append([round(number / length, DIGITS) for number in numbers])
    return made


def _of_one_width(vectors: list[list[float]]) -> list[list[float]]:
    if len({len(vector) for vector in vectors}) > 1:
        raise EmbeddingError("The embedder gave vectors of several widths.", hint="Check the embedder.")
    return vectors
