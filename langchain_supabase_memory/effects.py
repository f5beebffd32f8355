"""Flows: operations written once, as generators that yield steps and receive the answers.

Each step performs itself, sync or async: call a SQL function, ask a model, embed texts, rerank candidates, expand a
query, rate a tone, run a slow computation. Two small drivers, one sync and one async, run any flow, and only they
perform and observe steps. So there is no second copy of the logic, no hidden event loop and no thread in between. To
test a flow, step it by hand: `next(flow)` returns the first step, `flow.send(answer)` the next.

A graph's run is written in the same way, with steps that bring their own resources: anything that may fail or take long
is a step, and everything between two steps is plain code.

In an operation only `call`, `ask`, `embed`, `rerank`, `expand`, `rate_tone` and `offload` yield; the code above them
uses `yield from` and stays typed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from types import GeneratorType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeAlias, TypeVar, overload

from langchain_supabase_memory import sql_arguments
from langchain_supabase_memory.deadline import apart, in_thread
from langchain_supabase_memory.errors import SchemaMissingError, SchemaOutdatedError

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from contextlib import AbstractContextManager
    from functools import _lru_cache_wrapper

    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.values import Part

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R", contravariant=True)


SCHEMA: Final = "memory_schema"
"""The function that returns the database's installed schema; its answer does not imply that other calls work."""

INLINE_LIMIT: Final = 1000
"""The number of characters that are processed in about three milliseconds."""


Operation: TypeAlias = Literal[
    "write summary",
    "write board",
    "write chunks",
    "assign topics",
    "write topics",
    "recall",
    "recall summaries",
    "load context",
    "gauge queue",
    "use store",
]
"""The operations that are counted and timed."""


class Step(Protocol[R]):
    """A step of a flow: performs itself, sync or async, with the resources that it needs, if any."""

    @property
    def part(self) -> Part | None:
        """The part under which `memory.health()` counts a failure of this step; `None` for no part."""

    def perform(self, resources: R) -> Any:
        """Perform the step, and return its answer or raise."""

    async def aperform(self, resources: R) -> Any:
        """The async twin of `perform`."""


class Database(Protocol):
    """Performs calls: a transport."""

    def perform(self, call: Call) -> Any:
        """Perform one call, and return its decoded document."""

    async def aperform(self, call: Call) -> Any:
        """The async twin of `perform`."""


class Resources(Protocol):
    """The resources with which the steps of an operation are performed: a memory."""

    @property
    def transport(self) -> Database:
        """The transport that performs calls."""

    def answering(self, step: ModelStep) -> AbstractContextManager[Any]:
        """Return the model that a step asks for, with `answer` and `aanswer`, and disable streaming in the block.

        Raises:
            ConfigurationError: There is no such model.
        """

    def observing(self, flow: Flow[Any]) -> AbstractContextManager[Observer]:
        """Return the observer of a flow while it runs."""

    def load_observer(self) -> None:
        """Import what `observing` needs."""

    async def aload_observer(self) -> None:
        """The same in a thread, so that it holds up no event loop."""


@dataclass(frozen=True)
class Call:
    """One call of a SQL function in the schema `public`.

    Attributes:
        function: The function's name.
        arguments: Its named arguments. Lists and dictionaries are sent as JSON, all else unchanged.
        operation: The operation, if it is counted or timed.
    """

    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)  # repr=False: arguments hold content
    operation: Operation | None = None
    part: ClassVar[Part] = "database"

    def perform(self, resources: Resources) -> Any:
        """Perform the call."""
        return resources.transport.perform(self)

    async def aperform(self, resources: Resources) -> Any:
        """The async twin of `perform`."""
        return await resources.transport.aperform(self)


@dataclass(frozen=True)
class TranscriptLine:
    """One message as a summarizer sees it.

    Attributes:
        number: Its sequence in the conversation.
        role: The author's role: `user`, `assistant`, `system` or `tool`.
        speaker: The name on the message, if any.
        text: The text, including tool calls.
        said_at: The time, as ISO 8601.
    """

    number: int
    role: str
    speaker: str | None
    text: str = field(repr=False)
    said_at: str | None = None


@dataclass(frozen=True)
class Material:
    """The input of an answer, for summarizers that are not language models and read no prompt.

    Attributes:
        task: `summary`: a summary of `previous` and `lines`. `condense`: `previous` in fewer characters. `board`: the
            JSON document that `boards.schema.SCHEMA` describes.
        previous: The summary so far, if any.
        lines: The messages since then, in order.
        characters: The maximum characters of the summary.
        items: For a board: its current items, each with `id`, `kind`, `text`, `state` and `quote`.
        profile: For a board: whether the document also has what users say of themselves.
    """

    task: Literal["summary", "condense", "board"]
    previous: str | None = field(repr=False)
    lines: Sequence[TranscriptLine]
    characters: int
    items: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    profile: bool = False


class ModelStep:
    """A step that a model answers. No database connection is held meanwhile."""

    part: ClassVar[Part]

    def perform(self, resources: Resources) -> Any:
        """Ask the model."""
        with resources.answering(self) as model:
            return model.answer(self)

    async def aperform(self, resources: Resources) -> Any:
        """The async twin of `perform`."""
        with resources.answering(self) as model:
            return await model.aanswer(self)


@dataclass(frozen=True)
class Ask(ModelStep):
    """One prompt for the summarizer.

    Attributes:
        prompt: The messages to send.
        timeout_seconds: How long to wait for the answer, in seconds.
        material: The same input for a summarizer that is not a language model.
        schema: A JSON schema of the answer, if it should be a document and not text.
        model: The model to call; `None` means the memory's summarizer.
    """

    prompt: Sequence[BaseMessage] = field(repr=False)  # repr=False: prompts hold content
    timeout_seconds: float
    material: Material | None = None
    schema: Mapping[str, Any] | None = field(default=None, repr=False)
    model: Any = field(default=None, repr=False)
    part: ClassVar[Part] = "summarizer"


@dataclass(frozen=True)
class Embed(ModelStep):
    """Texts to embed.

    Attributes:
        texts: The texts; none of them is blank.
        is_query: Whether they are queries; some models embed those differently from documents.
        seconds: How long the caller waits for the vectors, in seconds, including all retries; `None` if nobody waits.
        embedder: The embedder to use; `None` means the memory's embedder.
    """

    texts: Sequence[str] = field(repr=False)  # repr=False: texts are content
    is_query: bool = False
    seconds: float | None = None
    embedder: Any = field(default=None, repr=False)
    part: ClassVar[Part] = "embedder"


@dataclass(frozen=True)
class Offload:
    """A computation that takes milliseconds of CPU time, or reads files once.

    Under an event loop, or within a deadline, it runs in a thread.

    Attributes:
        function: The function to call; it needs no other input and changes nothing.
    """

    function: Callable[[], Any] = field(repr=False)  # repr=False: it holds content
    part: ClassVar[None] = None

    def perform(self, _: object) -> Any:
        """Call the function."""
        return apart(self.function)

    async def aperform(self, _: object) -> Any:
        """Call the function in a thread."""
        return await in_thread(self.function)


RankingFunction: TypeAlias = tuple[int, float | None]
"""The index of a candidate, and its score if there is one."""


@dataclass(frozen=True)
class Rerank(ModelStep):
    """Candidates to reorder.

    Attributes:
        queries: The queries; each orders all candidates.
        documents: The candidates, in the first stage's order, each with an id.
    """

    queries: Sequence[str] = field(repr=False)  # repr=False: they are content
    documents: Sequence[Document] = field(repr=False)
    part: ClassVar[Part] = "reranker"


@dataclass(frozen=True)
class Expand(ModelStep):
    """A query to expand into more queries.

    Attributes:
        query: The query.
    """

    query: str = field(repr=False)  # repr=False: it is content
    part: ClassVar[Part] = "expander"


@dataclass(frozen=True)
class RateTone(ModelStep):
    """Texts of a user whose tone is to be rated.

    Attributes:
        texts: The texts.
    """

    texts: Sequence[str] = field(repr=False)  # repr=False: they are content
    part: ClassVar[Part] = "tone"


@dataclass(frozen=True)
class SyncAsync:
    """A step with separate sync and async implementations.

    Attributes:
        run: The sync function.
        arun: The coroutine function.
    """

    run: Callable[[], Any] = field(repr=False)  # repr=False: they may hold content
    arun: Callable[[], Awaitable[Any]] = field(repr=False)
    part: ClassVar[None] = None

    def perform(self, _: object) -> Any:
        """Run the sync function."""
        return self.run()

    async def aperform(self, _: object) -> Any:
        """The async twin of `perform`."""
        return await self.arun()


Flow: TypeAlias = Generator[Step[Resources], Any, T]
"""An operation: yields steps, and returns a `T`."""

Effects: TypeAlias = Generator[Step[object], Any, T]
"""A flow whose steps bring their own resources, such as a graph's run."""


def call(function: str, arguments: Mapping[str, Any], operation: Operation | None = None) -> Flow[Any]:
    """Call a SQL function and return its decoded document.

    Args:
        function: The SQL function's name.
        arguments: Its named arguments.
        operation: The operation, if it is counted or timed.

    Returns:
        The function's answer, as Python values.

    Raises:
        InvalidInputError: An argument has another type than the function takes.
        SchemaMissingError: The schema is not installed in the database.
        SchemaOutdatedError: The schema is installed, but from a release that lacks this function.
    """
    arguments = sql_arguments.checked(arguments)
    try:
        return (yield Call(function, arguments, operation))
    except SchemaMissingError as missing:
        installed = yield Call(SCHEMA)  # raises SchemaMissingError itself if nothing is installed
        raise SchemaOutdatedError(
            f"The memory's schema in this database is of release {installed['version']} and has no {function} as "
            f"release {version('langchain-supabase-memory')} calls it.",
            code=missing.code,
        ) from None


def ask(
    prompt: Sequence[BaseMessage],
    timeout_seconds: float,
    material: Material | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Flow[BaseMessage]:
    """Ask the summarizer and return its answer.

    Args:
        prompt: The messages to send.
        timeout_seconds: How long to wait, in seconds.
        material: The same input for a summarizer that is not a language model.
        schema: A JSON schema of the answer, if it should be a document.

    Raises:
        Exception: Whatever the model raises, or `TimeoutError`.
    """
    answer: BaseMessage = yield Ask(prompt, timeout_seconds, material, schema)
    return answer


def embed(texts: Sequence[str], *, is_query: bool = False, seconds: float | None = None) -> Flow[list[list[float]]]:
    """Embed texts and return a vector for each.

    Args:
        texts: What to embed.
        is_query: Whether they are queries.
        seconds: How long the caller waits for the vectors; `None` if nobody waits.

    Raises:
        EmbeddingError: The embedder failed or returned invalid vectors.
    """
    vectors: list[list[float]] = yield Embed(texts, is_query, seconds)
    return vectors


def rerank(queries: Sequence[str], documents: Sequence[Document]) -> Flow[list[list[RankingFunction]]]:
    """Return the candidates in a better order for each query; some may be left out.

    Args:
        queries: The queries.
        documents: The candidates.

    Raises:
        RerankingError: The reranker failed, or took too long.
    """
    orders: list[list[RankingFunction]] = yield Rerank(queries, documents)
    return orders


def expand(query: str) -> Flow[list[str]]:
    """Return more queries derived from one.

    Raises:
        ExpansionError: The query expander failed, or took too long.
    """
    texts: list[str] = yield Expand(query)
    return texts


def rate_tone(texts: Sequence[str]) -> Flow[list[float]]:
    """Return the tone of each text, from -1 to 1.

    Args:
        texts: What users said.

    Raises:
        ToneError: The function failed, took too long, or returned something else.
    """
    values: list[float] = yield RateTone(texts)
    return values


def offload(
    function: Callable[[], T], characters: int, *, warm_caches: Sequence[_lru_cache_wrapper[Any]] = ()
) -> Flow[T]:
    """Compute a value off the event loop if its input is long.

    Args:
        function: The function to call; it needs no outside data except `warm_caches`, and changes nothing.
        characters: About how many characters it reads. Short input is computed at once, since a thread would take
            longer.
        warm_caches: The caches it fills from files: functions without arguments behind `functools.cache`. Until each of
            them has been called once, this is computed off the event loop, however short the input is.

    Returns:
        The function's result.
    """
    if characters < INLINE_LIMIT and all(each.cache_info().currsize for each in warm_caches):
        return function()
    value: T = yield Offload(function)
    return value


def in_one_step(flow: Flow[T], resources: Resources) -> Effects[T]:
    """Run a flow as one step of a graph's run; its failure is the run's failure.

    Args:
        flow: A fresh flow.
        resources: The resources for its steps.

    Returns:
        The flow's result.
    """
    result: T = yield SyncAsync(lambda: run(flow, resources), lambda: arun(flow, resources))
    return result


def map_steps(flow: Flow[T], change: Callable[[Step[Any]], Step[Any]]) -> Flow[T]:
    """Return a flow with each of its steps replaced, under the same name.

    Args:
        flow: A fresh flow.
        change: Returns the step to perform instead.
    """
    return named_like(_map_steps(flow, change), flow)


def named_like(flow: Flow[S], original: Flow[T]) -> Flow[S]:
    """Give a flow another flow's name, which spans use as the operation's name."""
    if isinstance(flow, GeneratorType) and isinstance(original, GeneratorType):
        flow.__qualname__ = original.__qualname__
    return flow


def _map_steps(flow: Flow[T], change: Callable[[Step[Any]], Step[Any]]) -> Flow[T]:
    def performed(step: Step[Any]) -> Flow[Any]:
        return (yield change(step))

    try:
        return (yield from delegate(flow, next(flow), performed))
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


def delegate(flow: Flow[T], step: Step[Any], perform: Callable[[Step[Any]], Flow[Any]]) -> Flow[T]:
    """Run the rest of a flow, and perform each of its steps with another flow.

    Args:
        flow: A started flow; whoever started it closes it.
        step: The step at which it is suspended.
        perform: Returns the flow that performs a step.

    Returns:
        The flow's result.
    """
    try:
        while True:
            try:
                answer = yield from perform(step)
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result


@dataclass
class StepResult:
    """The answer to a step; `None` if the step failed."""

    answer: Any = None


class Observer:
    """Observes a running flow. This base class does nothing."""

    @contextmanager
    def step(self, step: Step[Any]) -> Iterator[StepResult]:
        """Observe the step that the block performs; the block stores the answer in the yielded result."""
        yield StepResult()

    def record_result(self, result: Any) -> None:
        """Observe the flow's result."""


@overload
def run(flow: Effects[T]) -> T: ...
@overload
def run(flow: Flow[T], resources: Resources) -> T: ...
def run(flow: Generator[Step[Any], Any, T], resources: Resources | None = None) -> T:
    """Run a flow.

    Args:
        flow: A fresh flow.
        resources: Performs and observes its steps; `None` if the steps bring their own resources.

    Returns:
        The flow's result.
    """
    if resources is not None:
        resources.load_observer()
    with _observing(flow, resources) as observer:
        try:
            step = next(flow)
            while True:
                try:
                    with observer.step(step) as seen:
                        seen.answer = step.perform(resources)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(seen.answer)
        except StopIteration as stop:
            result: T = stop.value
            observer.record_result(result)
            return result
        finally:
            flow.close()


@overload
async def arun(flow: Effects[T]) -> T: ...
@overload
async def arun(flow: Flow[T], resources: Resources) -> T: ...
async def arun(flow: Generator[Step[Any], Any, T], resources: Resources | None = None) -> T:
    """The async twin of `run`."""
    if resources is not None:
        await resources.aload_observer()
    with _observing(flow, resources) as observer:
        try:
            step = next(flow)
            while True:
                try:
                    with observer.step(step) as seen:
                        seen.answer = await step.aperform(resources)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(seen.answer)
        except StopIteration as stop:
            result: T = stop.value
            observer.record_result(result)
            return result
        finally:
            flow.close()


def _observing(flow: Flow[Any], resources: Resources | None) -> AbstractContextManager[Observer]:
    return nullcontext(Observer()) if resources is None else resources.observing(flow)
