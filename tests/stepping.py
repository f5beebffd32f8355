"""Step a flow by hand, so that a test sees its effects, or drive it with a test's own answers."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.adapters.telemetry.metrics import NO_METRICS, NoMetrics
from langchain_supabase_memory.effects import Call, Flow, Offload, Step
from langchain_supabase_memory.memory import instrumentation

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from langchain_supabase_memory.effects import ModelStep, Observer


class Answers:
    """Drives a flow: a function answers its calls, and other effects are errors."""

    def __init__(self, answer: Callable[[Call], Any], metrics: NoMetrics = NO_METRICS) -> None:
        self._answer = answer
        self._metrics = metrics

    @property
    def transport(self) -> Answers:
        return self

    def perform(self, call: Call) -> Any:
        return self._answer(call)

    async def aperform(self, call: Call) -> Any:
        return self._answer(call)

    def answering(self, step: ModelStep) -> AbstractContextManager[Any]:
        raise AssertionError(f"no model is asked for: {step}")

    def load_observer(self) -> None:
        pass

    async def aload_observer(self) -> None:
        pass

    def observing(self, flow: Flow[Any]) -> AbstractContextManager[Observer]:
        return instrumentation.observing(flow, self._metrics, lambda _: nullcontext())


def sent(flow: Flow[Any], answer: Any) -> Step[Any]:
    """Answer a step, and return the next one that is not a computation."""
    step = flow.send(answer)
    while isinstance(step, Offload):
        step = flow.send(step.function())
    return step
