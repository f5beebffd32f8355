"""Calls that hang, cancel themselves, or raise a BaseException: the caller always continues."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_supabase_memory.adapters.summarizer import SummaryModel
from langchain_supabase_memory.deadline import (
    InterruptedCallError,
    awithin,
    in_thread,
    limited,
    seconds_left,
    start_thread,
    within,
)
from langchain_supabase_memory.effects import Ask
from tests.each_case import each_case

STRANGE = [asyncio.CancelledError, GeneratorExit, StopIteration, StopAsyncIteration]
SECRET = "a secret that was said"


def raising(error: Callable[[str], BaseException]) -> Callable[[], Any]:
    def call() -> Any:
        raise error(SECRET)

    return call


@each_case("error", STRANGE)
async def test_what_is_no_error_becomes_one_without_what_it_says(error: type[BaseException]) -> None:
    async def call() -> None:
        raise error(SECRET)

    attempts: list[Callable[[], Any]] = [
        lambda: in_thread(raising(error)),
        lambda: asyncio.to_thread(within, 5, raising(error)),
        lambda: asyncio.to_thread(limited, 5, raising(error)),
    ]
    if not issubclass(error, (StopIteration, StopAsyncIteration)):  # no coroutine can end by those
        attempts.append(lambda: awithin(5, call()))
    for attempt in attempts:
        with pytest.raises(InterruptedCallError, match=error.__name__) as raised:
            await attempt()
        assert SECRET not in repr(raised.value)
        assert raised.value.__cause__ is None


async def test_an_error_comes_as_it_is() -> None:
    async def call() -> None:
        try:
            raise KeyError("before")
        except KeyError as before:
            raise ValueError("x") from before

    with pytest.raises(ValueError, match="x") as raised:
        await awithin(5, call())
    assert isinstance(raised.value.__cause__, KeyError)


async def test_who_is_cancelled_cancels_what_it_waits_for() -> None:
    cancelled = asyncio.Event()

    async def call() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    task = asyncio.create_task(awithin(60, call()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()


async def test_what_swallows_its_cancellation_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    over = asyncio.Event()

    async def stubborn() -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue
        raise ValueError(SECRET)

    with pytest.raises(TimeoutError):
        await awithin(0.01, stubborn())
    over.set()
    await asyncio.sleep(0.01)
    # Threads that another test left behind may log at any time; what becomes of a task is logged in its loop's own.
    logged = [each.getMessage() for each in caplog.records if each.thread == threading.get_ident()]
    assert logged == [], "nor is what becomes of it a matter for the log"


class Blocking(BaseChatModel):
    """A chat model without an async side."""

    over: Any
    threads: list[str]

    @property
    def _llm_type(self) -> str:
        return "blocking"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.threads.append(threading.current_thread().name)
        self.over.wait(30)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("late"))])


def test_a_model_that_blocks_takes_no_thread_that_others_need_and_none_that_the_end_waits_for() -> None:
    over = threading.Event()
    model = Blocking(over=over, threads=[])
    count = 40  # more than the threads of any event loop here

    async def main() -> list[Any]:
        writer = SummaryModel(model)
        asks = [writer.aanswer(Ask([HumanMessage("x")], 0.2)) for _ in range(count)]
        return await asyncio.gather(*asks, return_exceptions=True)

    begun = time.monotonic()
    answers = asyncio.run(main())
    assert time.monotonic() - begun < 25, "the loop's end waited for the threads"
    over.set()
    assert [type(each) for each in answers] == [TimeoutError] * count
    while len(model.threads) < count and time.monotonic() - begun < 25:
        time.sleep(0.01)  # on a busy machine the last thread is begun and not yet there
    assert len(model.threads) == count, "each was asked"


async def test_a_model_that_cancels_itself_is_a_model_that_failed(caplog: pytest.LogCaptureFixture) -> None:
    async def cancelling(_: list[BaseMessage]) -> str:
        raise asyncio.CancelledError(SECRET)

    with caplog.at_level(logging.DEBUG), pytest.raises(InterruptedCallError):
        await SummaryModel(cancelling).aanswer(Ask([HumanMessage("x")], 5))
    assert SECRET not in caplog.text


def test_threads_are_used_again_and_keep_nothing_of_the_run_before() -> None:
    started: list[threading.Thread] = []
    start, outer = threading.Thread.start, threading.local()

    def counted(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    def use() -> tuple[float, bool]:
        was_used = hasattr(outer, "used")
        outer.used = True
        return seconds_left(7), was_used

    within(5, lambda: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", counted)
        found = [within(5, use) for _ in range(20)]
        assert len(started) <= 1, "one that another test waits for may have taken the idle one"
        start_thread(lambda: found.append((seconds_left(7), False))).join(5)
    assert [seconds for seconds, _ in found[:-1]] == [pytest.approx(5, abs=1)] * 20
    assert found[-1][0] == 7, "a deadline ends with its run"
    assert any(was_used for _, was_used in found)


def test_many_at_once_have_a_thread_each() -> None:
    together = threading.Barrier(30)

    def meet() -> None:
        together.wait(10)

    runs = [start_thread(meet) for _ in range(30)]
    for run in runs:
        run.join(10)
    assert not together.broken


def test_a_child_process_starts_with_threads_of_its_own() -> None:
    within(5, lambda: None)
    child = os.fork()
    if child == 0:
        os._exit(0 if within(5, lambda: 7) == 7 else 1)
    assert os.waitpid(child, 0)[1] == 0
