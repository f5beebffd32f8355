"""Run a contestant in its own process, so that its CPU time is separate and its event loop is not shared."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
import traceback
import tracemalloc
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Literal

from benchmarks.services import Clients

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection
    from typing import Self

    from benchmarks.contestants import Contestant

_TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Task:
    """A task for a contestant.

    Attributes:
        verb: A turn is a load and an append. `peak` measures the memory of a load; `fill` stores a history.
        threads: The conversations, used in order.
        count: The number of repetitions in all; for `fill`, the number of messages in each.
        at_once: The number of concurrent conversations.
    """

    verb: Literal["load", "append", "turn", "peak", "fill"]
    threads: Sequence[str]
    count: int
    at_once: int = 1


@dataclass(frozen=True)
class Done:
    """The cost of a task.

    Attributes:
        milliseconds: The time of each repetition.
        seconds: The total time, in seconds.
        processor: The process's own CPU time meanwhile, in seconds.
        peak_kilobytes: The peak of Python's memory during `peak`.
    """

    milliseconds: list[float]
    seconds: float
    processor: float
    peak_kilobytes: float = 0.0


class Process:
    """A contestant's process; it starts immediately and stops with the block."""

    def __init__(self, name: str, clients: Clients) -> None:
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, name, clients.conn_string, clients.url), daemon=True
        )
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.is_alive():
            self._pipe.send(None)
        self._process.join(10)
        self._process.terminate()

    def do(self, task: Task) -> Done:
        """Send a task, and wait for the result.

        Raises:
            RuntimeError: The process failed, exited, or took too long.
        """
        self._pipe.send(task)
        if not self._pipe.poll(_TIMEOUT_SECONDS):
            raise RuntimeError(f"{self.name} did not finish {task.verb} in {_TIMEOUT_SECONDS} s")
        answer = self._pipe.recv()
        if isinstance(answer, str):
            raise RuntimeError(f"{self.name} failed:\n{answer}")
        assert isinstance(answer, Done)
        return answer


def _serve(pipe: Connection, name: str, conn_string: str, url: str) -> None:
    try:
        asyncio.run(_served(pipe, name, conn_string, url))
    except Exception:
        pipe.send(traceback.format_exc())


async def _served(pipe: Connection, name: str, conn_string: str, url: str) -> None:
    from benchmarks.contestants import (
        CONTESTANTS,
    )  # imported here, so that the parent does not import every contestant's package

    with ExitStack() as stack:
        async with AsyncExitStack() as closing:
            contestant = await CONTESTANTS[name](Clients(conn_string, url, stack), closing)
            while (task := pipe.recv()) is not None:
                pipe.send(await _done(contestant, task))


async def _done(contestant: Contestant, task: Task) -> Done:
    if task.verb == "fill":
        for thread in task.threads:
            await contestant.fill(thread, task.count)
        return Done([], 0, 0)
    if task.verb == "peak":
        await contestant.load(task.threads[0])
        tracemalloc.start()
        await contestant.load(task.threads[0])
        peak = tracemalloc.get_traced_memory()[1] / 1000
        tracemalloc.stop()
        return Done([], 0, 0, peak)
    # Inputs are prepared before the clock starts; one coroutine handles each conversation.
    said = [None if task.verb == "load" else contestant.said() for _ in range(task.count)]
    work = list(zip(islice(cycle(task.threads), task.count), said, strict=True))
    milliseconds: list[float] = []

    async def converse(number: int) -> None:
        for thread, given in work[number :: task.at_once]:
            begun = time.perf_counter()
            await _once(contestant, task.verb, thread, given)
            milliseconds.append((time.perf_counter() - begun) * 1000)

    processor, begun = time.process_time(), time.perf_counter()
    await asyncio.gather(*(converse(number) for number in range(task.at_once)))
    return Done(milliseconds, time.perf_counter() - begun, time.process_time() - processor)


async def _once(contestant: Contestant, verb: str, thread: str, given: Any) -> None:
    if verb == "load":
        await contestant.load(thread)
    elif verb == "append":
        await contestant.append(thread, given)
    else:
        await contestant.turn(thread, given)
