"""Every operation is a flow: written once, a generator that yields what it needs and receives the answer.

The surface to the outside is tiny: call a SQL function, ask a model, embed texts, rerank what was found, make further
questions of one, compute what takes long. Two small
drivers, one sync and one async, run any flow, so there is no second copy of the logic, no hidden event loop and no
thread between them. A flow is tested by stepping it by hand: `next(flow)` gives the first step, `flow.send(answer)` the
next.

Only `call`, `ask`, `embed`, `rerank`, `expand` and `compute` yield; everything above them uses `yield from` and stays
typed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from langchain_supabase_memory.errors import SchemaMissingError, SchemaOutdatedError

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage

S = TypeVar("S")
T = TypeVar("T")


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


@dataclass(frozen=True)
class Ask:
    """One prompt for the summary model. No connection is held while it thinks.

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


@dataclass(frozen=True)
class Embed:
    """Texts that are to become vectors. No connection is held meanwhile.

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


@dataclass(frozen=True)
class Offload:
    """What takes the processor milliseconds, or reads files once: beside an event loop it is done in a thread.

    Attributes:
        function: What to call; it needs nothing else from outside and changes nothing.
    """

    function: Callable[[], Any] = field(repr=False)  # repr=False: it holds content


RankingFunction: TypeAlias = tuple[int, float | None]
"""Which candidate, by its place among them, and how well it fits, where that is said."""


@dataclass(frozen=True)
class Rerank:
    """Candidates that are to be put into a better order. No connection is held meanwhile.

    Attributes:
        queries: The questions; each orders all candidates.
        documents: The candidates, in the first stage's order, each with an id.
    """

    queries: Sequence[str] = field(repr=False)  # repr=False: they are content
    documents: Sequence[Document] = field(repr=False)


@dataclass(frozen=True)
class Expand:
    """A question of which further ones are to be made. No connection is held meanwhile.

    Attributes:
        query: The question.
    """

    query: str = field(repr=False)  # repr=False: it is content


Step = Call | Ask | Embed | Offload | Rerank | Expand
"""All that an operation needs from the outside."""

Flow = Generator[Step, Any, T]
"""What an operation is: it yields steps, and returns a `T`."""


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


def map_steps(flow: Flow[T], change: Callable[[Step], Step]) -> Flow[T]:
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


def _map_steps(flow: Flow[T], change: Callable[[Step], Step]) -> Flow[T]:
    def performed(step: Step) -> Flow[Any]:
        return (yield change(step))

    try:
        return (yield from delegate(flow, next(flow), performed))
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


def delegate(flow: Flow[T], step: Step, perform: Callable[[Step], Flow[Any]]) -> Flow[T]:
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


def run(flow: Generator[S, Any, T], perform: Callable[[S], Any]) -> T:
    """Drive a flow with a function that performs one step.

    Args:
        flow: A fresh flow.
        perform: Performs a call, and returns its answer or raises.

    Returns:
        What the flow returns.
    """
    try:
        step = next(flow)
        while True:
            try:
                answer = perform(step)
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


async def arun(flow: Generator[S, Any, T], perform: Callable[[S], Awaitable[Any]]) -> T:
    """Drive a flow with a coroutine function that performs one step: the async twin of `run`."""
    try:
        step = next(flow)
        while True:
            try:
                answer = await perform(step)
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()
