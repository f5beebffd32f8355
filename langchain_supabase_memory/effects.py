"""Every operation is a flow: written once, a generator that yields what it needs and receives the answer.

What it yields are steps, each of which performs itself, sync or async: call a SQL function, ask a model, embed texts,
rerank what was found, make further questions of one, compute what takes long. Two small drivers, one sync and one
async, run any flow, and are the one place where a step is performed and observed; so there is no second copy of the
logic, no hidden event loop and no thread between them. A flow is tested by stepping it by hand: `next(flow)` gives the
first step, `flow.send(answer)` the next.

What a graph's run does is written in the same way, of steps that bring what they are performed with: whatever may fail
or take long is a step, and what lies between two of them is plain code.

In an operation only `call`, `ask`, `embed`, `rerank`, `expand` and `offload` yield; what is above them uses `yield
from` and stays typed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from types import GeneratorType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeAlias, TypeVar, overload

from langchain_supabase_memory.deadline import in_thread
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
"""The function that says what a database is set up with; that it answers does not show that anything else will."""

INLINE_LIMIT: Final = 1000
"""The characters that text is read of in about three milliseconds."""


Operation: TypeAlias = Literal[
    "write summary",
    "write board",
    "write chunks",
    "recall",
    "recall summaries",
    "load context",
    "gauge queue",
    "use store",
]
"""The operations that are counted and timed."""


class Step(Protocol[R]):
    """What a flow yields: it performs itself in both colors, with the resources that it asks for, or with none."""

    @property
    def part(self) -> Part | None:
        """What `memory.health()` counts its failure under; `None`: nothing."""

    def perform(self, resources: R) -> Any:
        """Perform it, and return its answer or raise."""

    async def aperform(self, resources: R) -> Any:
        """The async twin of `perform`."""


class Database(Protocol):
    """What performs calls: a transport."""

    def perform(self, call: Call) -> Any:
        """Perform one call, and return its decoded document."""

    async def aperform(self, call: Call) -> Any:
        """The async twin of `perform`."""


class Resources(Protocol):
    """What the steps of an operation are performed with: a memory."""

    @property
    def transport(self) -> Database:
        """What performs calls."""

    def answering(self, step: ModelStep) -> AbstractContextManager[Any]:
        """The model that a step asks for, with `answer` and `aanswer`, while nothing of it is streamed.

        Raises:
            ConfigurationError: There is none.
        """

    def observing(self, flow: Flow[Any]) -> AbstractContextManager[Observer]:
        """What observes a flow while it is driven."""


@dataclass(frozen=True)
class Call:
    """One call of a SQL function of the schema `public`.

    Attributes:
        function: Its name.
        arguments: Its named arguments. Lists and dictionaries travel as JSON, everything else as itself.
        operation: What it does, where that is counted or timed.
    """

    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)  # repr=False: arguments hold content
    operation: Operation | None = None
    part: ClassVar[Part] = "database"

    def perform(self, resources: Resources) -> Any:
        """Call it."""
        return resources.transport.perform(self)

    async def aperform(self, resources: Resources) -> Any:
        """The async twin of `perform`."""
        return await resources.transport.aperform(self)


@dataclass(frozen=True)
class TranscriptLine:
    """One message as a writer of summaries sees it.

    Attributes:
        number: Its sequence in the conversation.
        role: Who said it: `user`, `assistant`, `system` or `tool`.
        speaker: The name that the message carries, if any.
        text: What was said, tool calls included.
        said_at: When, as ISO 8601.
    """

    number: int
    role: str
    speaker: str | None
    text: str = field(repr=False)
    said_at: str | None = None


@dataclass(frozen=True)
class Material:
    """What an answer is to be written from, for writers that are no language model and read no prompt.

    Attributes:
        task: `summary`: a summary of `previous` and `lines`. `condense`: `previous` in fewer characters. `board`: the
            JSON document that `boards.answer.SCHEMA` describes.
        previous: The summary so far, if any.
        lines: What was said since, in order.
        characters: The most characters of the summary.
        items: For a board: its present items, each with `id`, `kind`, `text`, `state` and `quote`.
    """

    task: Literal["summary", "condense", "board"]
    previous: str | None = field(repr=False)
    lines: Sequence[TranscriptLine]
    characters: int
    items: Sequence[Mapping[str, Any]] = field(default=(), repr=False)


class ModelStep:
    """A step that a model answers. No connection is held meanwhile."""

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
    """One prompt for the summary model.

    Attributes:
        prompt: The messages to send.
        timeout_seconds: How long to wait for the answer, in seconds.
        material: The same for a writer that is no language model.
        schema: A JSON schema of the answer, where it is to be a document and not a text.
        writer: Who is asked; `None` means the memory's summary model.
    """

    prompt: Sequence[BaseMessage] = field(repr=False)  # repr=False: prompts hold content
    timeout_seconds: float
    material: Material | None = None
    schema: Mapping[str, Any] | None = field(default=None, repr=False)
    writer: Any = field(default=None, repr=False)
    part: ClassVar[Part] = "writer"


@dataclass(frozen=True)
class Embed(ModelStep):
    """Texts that are to become vectors.

    Attributes:
        texts: What to embed; none of them is blank.
        is_query: Whether they are questions; some models embed those differently from what is searched.
        seconds: How long somebody waits for them, in seconds, all tries included; `None` if nobody does.
        embedder: Who embeds them; `None` means the memory's embedder.
    """

    texts: Sequence[str] = field(repr=False)  # repr=False: texts are content
    is_query: bool = False
    seconds: float | None = None
    embedder: Any = field(default=None, repr=False)
    part: ClassVar[Part] = "embedder"


@dataclass(frozen=True)
class Offload:
    """What takes the processor milliseconds, or reads files once: beside an event loop it is done in a thread.

    Attributes:
        function: What to call; it needs nothing else from outside and changes nothing.
    """

    function: Callable[[], Any] = field(repr=False)  # repr=False: it holds content
    part: ClassVar[None] = None

    def perform(self, _: object) -> Any:
        """Call it."""
        return self.function()

    async def aperform(self, _: object) -> Any:
        """Call it in a thread."""
        return await in_thread(self.function)


RankingFunction: TypeAlias = tuple[int, float | None]
"""Which candidate, by its place among them, and how well it fits, where that is said."""


@dataclass(frozen=True)
class Rerank(ModelStep):
    """Candidates that are to be put into a better order.

    Attributes:
        queries: The questions; each orders all candidates.
        documents: The candidates, in the first stage's order, each with an id.
    """

    queries: Sequence[str] = field(repr=False)  # repr=False: they are content
    documents: Sequence[Document] = field(repr=False)
    part: ClassVar[Part] = "reranker"


@dataclass(frozen=True)
class Expand(ModelStep):
    """A question of which further ones are to be made.

    Attributes:
        query: The question.
    """

    query: str = field(repr=False)  # repr=False: it is content
    part: ClassVar[Part] = "expander"


@dataclass(frozen=True)
class SyncAsync:
    """A step that is done in another way in each color.

    Attributes:
        run: Does it.
        arun: Does it, as a coroutine function.
    """

    run: Callable[[], Any] = field(repr=False)  # repr=False: they may hold content
    arun: Callable[[], Awaitable[Any]] = field(repr=False)
    part: ClassVar[None] = None

    def perform(self, _: object) -> Any:
        """Do it."""
        return self.run()

    async def aperform(self, _: object) -> Any:
        """The async twin of `perform`."""
        return await self.arun()


Flow: TypeAlias = Generator[Step[Resources], Any, T]
"""What an operation is: it yields steps, and returns a `T`."""

Effects: TypeAlias = Generator[Step[object], Any, T]
"""A flow whose steps bring what they are performed with, such as a graph's run."""


def call(function: str, arguments: Mapping[str, Any], operation: Operation | None = None) -> Flow[Any]:
    """The innermost verb: one call, and its decoded document.

    Args:
        function: The SQL function's name.
        arguments: Its named arguments.
        operation: What it does, where that is counted or timed.

    Returns:
        The function's answer, as Python values.

    Raises:
        SchemaMissingError: Nothing of ours is in the database.
        SchemaOutdatedError: The database is set up, but by a release that lacks this function.
    """
    try:
        return (yield Call(function, arguments, operation))
    except SchemaMissingError as missing:
        installed = yield Call(SCHEMA)  # raises SchemaMissingError itself where there is none
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
    """The other innermost verb: one question to the summary model, and its answer.

    Args:
        prompt: The messages to send.
        timeout_seconds: How long to wait, in seconds.
        material: The same for a writer that is no language model.
        schema: A JSON schema of the answer, where it is to be a document.

    Raises:
        Exception: Whatever the model raises, or `TimeoutError`.
    """
    answer: BaseMessage = yield Ask(prompt, timeout_seconds, material, schema)
    return answer


def embed(texts: Sequence[str], *, is_query: bool = False, seconds: float | None = None) -> Flow[list[list[float]]]:
    """The third innermost verb: a vector for each text.

    Args:
        texts: What to embed.
        is_query: Whether they are questions.
        seconds: How long somebody waits for them; `None` if nobody does.

    Raises:
        EmbeddingError: The embedder failed, or its vectors are none.
    """
    vectors: list[list[float]] = yield Embed(texts, is_query, seconds)
    return vectors


def rerank(queries: Sequence[str], documents: Sequence[Document]) -> Flow[list[list[RankingFunction]]]:
    """A further innermost verb: for each question the candidates in a better order; some may be left out.

    Args:
        queries: The questions.
        documents: The candidates.

    Raises:
        RerankingError: The reranker failed, or took too long.
    """
    orders: list[list[RankingFunction]] = yield Rerank(queries, documents)
    return orders


def expand(query: str) -> Flow[list[str]]:
    """A further innermost verb: further questions of one.

    Args:
        query: The question.

    Raises:
        ExpansionError: What makes them failed, or took too long.
    """
    texts: list[str] = yield Expand(query)
    return texts


def offload(
    function: Callable[[], T], characters: int, *, warm_caches: Sequence[_lru_cache_wrapper[Any]] = ()
) -> Flow[T]:
    """The fourth innermost verb: a value that takes the processor long, if what it is made from is long.

    Args:
        function: What to call; it needs nothing from outside but what is in `warm_caches`, and changes nothing.
        characters: About how many it reads. Of few it is computed at once: a thread would take longer.
        warm_caches: What it reads from files and caches: functions without arguments behind `functools.cache`. While
            one of them was never called, this is computed beside the event loop, however few the characters are.

    Returns:
        What it returns.
    """
    if characters < INLINE_LIMIT and all(each.cache_info().currsize for each in warm_caches):
        return function()
    value: T = yield Offload(function)
    return value


def in_one_step(flow: Flow[T], resources: Resources) -> Effects[T]:
    """A flow as one step of a graph's run, whose failure is the run's own.

    Args:
        flow: A fresh flow.
        resources: What its steps are performed with.

    Returns:
        What it returns.
    """
    result: T = yield SyncAsync(lambda: run(flow, resources), lambda: arun(flow, resources))
    return result


def map_steps(flow: Flow[T], change: Callable[[Step[Any]], Step[Any]]) -> Flow[T]:
    """A flow with each of its steps changed, under its own name.

    Args:
        flow: A fresh flow.
        change: Gives the step that is performed in a step's place.
    """
    return named_like(_map_steps(flow, change), flow)


def named_like(flow: Flow[S], original: Flow[T]) -> Flow[S]:
    """A flow that does what another does, under that one's name: it is what spans call the operation."""
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
    """The rest of a flow, with each of its steps done by another flow.

    Args:
        flow: A flow that was begun; who began it closes it.
        step: The step that it stands at.
        perform: Makes the flow that does a step.

    Returns:
        What the flow returns.
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
    """What a step was answered; `None` if it failed."""

    answer: Any = None


class Observer:
    """What observes a flow while it is driven. This one observes nothing."""

    @contextmanager
    def step(self, step: Step[Any]) -> Iterator[StepResult]:
        """Observe a step that is performed in the block, and its answer that the block puts into what it is given."""
        yield StepResult()

    def record_result(self, result: Any) -> None:
        """Observe what the flow returned."""


@overload
def run(flow: Effects[T]) -> T: ...
@overload
def run(flow: Flow[T], resources: Resources) -> T: ...
def run(flow: Generator[Step[Any], Any, T], resources: Resources | None = None) -> T:
    """Drive a flow.

    Args:
        flow: A fresh flow.
        resources: What its steps are performed with, and what observes it; none where they bring it themselves.

    Returns:
        What the flow returns.
    """
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
