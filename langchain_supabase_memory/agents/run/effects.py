"""What a graph's run does with its memory, step by step: written once, and driven in two colors.

A step does itself, sync or async; what lies between two steps is plain code. So whatever may fail or take long is a
step, and a run is tested by stepping it by hand, as an operation is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from langchain_supabase_memory import effects as driver
from langchain_supabase_memory.adapters.summarizer import asking

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from langchain_supabase_memory.adapters.summarizer import SummaryModel
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory

T = TypeVar("T")


class Step(Protocol):
    """What does itself in both colors."""

    @property
    def run(self) -> Callable[[], Any]:
        """Does it, and returns what comes of it."""

    @property
    def arun(self) -> Callable[[], Awaitable[Any]]:
        """The async twin of `run`."""


@dataclass(frozen=True)
class SyncAsync:
    """A step that is done in another way in each color.

    Attributes:
        run: Does it.
        arun: Does it, as a coroutine function.
    """

    run: Callable[[], Any] = field(repr=False)  # repr=False: they may hold content
    arun: Callable[[], Awaitable[Any]] = field(repr=False)


Effects: TypeAlias = "Generator[Step, Any, T]"
"""What a run does: it yields steps, and returns a `T`."""


def run(steps: Effects[T]) -> T:
    """Drive steps, and return what they return."""
    return driver.run(steps, lambda step: step.run())


async def arun(steps: Effects[T]) -> T:
    """The async twin of `run`."""
    return await driver.arun(steps, lambda step: step.arun())


@dataclass(frozen=True)
class FlowStep(Generic[T]):
    """A flow, and the memory that performs it. Nothing else in this package's agents drives one.

    Attributes:
        memory: The memory.
        flow: A fresh flow.
        model: The summary model; the memory's by default.
    """

    memory: SupabaseMemory
    flow: Flow[T] = field(repr=False)
    model: SummaryModel | None = None

    def run(self) -> T:
        """Perform it, and return what it returns or raise what it raises."""
        return self.memory.run(asking(self.flow, self.model))

    async def arun(self) -> T:
        """The async twin of `run`."""
        return await self.memory.arun(asking(self.flow, self.model))


def perform(memory: SupabaseMemory, flow: Flow[T]) -> Effects[T]:
    """The one step of a flow whose failure is the run's own."""
    result: T = yield FlowStep(memory, flow)
    return result
