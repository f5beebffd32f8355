"""Processes with runs of one thread: they overlap with each other and across processes, or are killed."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_core.messages import AIMessage, ToolMessage

from langchain_supabase_memory import MemoryConfig, SupabaseMemory
from tests.chat_models import ScriptedModel, asks, config
from tests.operations.test_branches import Subject, texts
from tests.services.savers import either

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

Rounds: TypeAlias = "Sequence[Sequence[str]]"

_MOST_MEETING: Final = 3
"""The maximum number of a process's runs that wait for each other, since each takes a thread of the event loop."""

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.run_process"])


@dataclass(frozen=True)
class Setup:
    """The shared configuration of the processes.

    Attributes:
        conn_string: The memory's database.
        user_id: The owner.
        way: The way of `Subject`.
        kind: The kind of saver.
        address: Where its checkpoints are.
    """

    conn_string: str
    user_id: str
    way: str
    kind: str
    address: str


def overlapping(setup: Setup, questions: Sequence[Rounds]) -> list[list[str]]:
    """Ask questions in one process per list: all questions of a round at once, then those of the next.

    In a small round no question is answered before all of them have reached their model.

    Args:
        setup: The shared configuration.
        questions: Each process's questions in each round.

    Returns:
        The texts of the state at the end of each run.
    """
    begins, results = _CONTEXT.Barrier(len(questions)), _CONTEXT.Queue()
    meetings = [_CONTEXT.Barrier(sum(map(len, each))) for each in zip(*questions, strict=True)]
    processes = [
        _CONTEXT.Process(target=_main, args=(setup, each, begins, meetings, results), daemon=True) for each in questions
    ]
    for process in processes:
        process.start()
    try:
        return [state for _ in processes for state in results.get(timeout=120)]
    finally:
        for process in processes:
            process.join(10)
            process.kill()
        assert [process.exitcode for process in processes] == [0] * len(processes)


def killed(setup: Setup, question: str, stored: int) -> None:
    """Ask a question in a process that is killed when so many messages are stored, and no checkpoint of an answer is.

    Args:
        setup: The configuration.
        question: The question.
        stored: The number of the conversation's messages.
    """
    process = _CONTEXT.Process(target=_until_killed, args=(setup, question, stored), daemon=True)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def _until_killed(setup: Setup, question: str, stored: int) -> None:
    asyncio.run(_ask_until_killed(setup, question, stored))


async def _ask_until_killed(setup: Setup, question: str, stored: int) -> None:
    color = setup.way.rpartition("-")[2]
    with SupabaseMemory.from_conn_string(setup.conn_string, user_id=setup.user_id, model=None) as memory:
        async with either(setup.kind, setup.address, color) as saver:
            graph = Subject(memory, setup.way, lost_model(), saver=saver).graph
            put, aput = saver.put, saver.aput

            def is_answered(checkpoint: Any) -> bool:
                messages = checkpoint["channel_values"].get("messages") or [None]
                return isinstance(messages[-1], AIMessage) and str(messages[-1].text) != "before"

            def dying(given: Any, checkpoint: Any, *others: Any) -> Any:
                while is_answered(checkpoint):  # the saver is slow, and the run goes on meanwhile
                    if memory.conversation("t").count() == stored:
                        os.kill(os.getpid(), signal.SIGKILL)
                    time.sleep(0.01)
                return put(given, checkpoint, *others)

            async def adying(given: Any, checkpoint: Any, *others: Any) -> Any:
                while is_answered(checkpoint):
                    if await memory.conversation("t").acount() == stored:
                        os.kill(os.getpid(), signal.SIGKILL)
                    await asyncio.sleep(0.01)
                return await aput(given, checkpoint, *others)

            async def adropped(*_: Any) -> None:
                """Write nothing, as what is killed before."""

            saver.put, saver.put_writes = dying, lambda *_: None
            saver.aput, saver.aput_writes = adying, adropped
            await (
                graph.ainvoke(asks(question), config())
                if color == "async"
                else asyncio.to_thread(graph.invoke, asks(question), config())
            )


def lost_model() -> ScriptedModel:
    """A model whose answers say that they are lost; asked to look something up, it calls a tool first."""

    def script(shown: list[BaseMessage]) -> AIMessage | str:
        if any("look up" in str(each.text) for each in shown) and not isinstance(shown[-1], ToolMessage):
            return AIMessage("lost", tool_calls=[{"name": "look_up", "args": {"word": "lost"}, "id": "lost"}])
        return "lost"

    return ScriptedModel(script=script)


def _main(setup: Setup, rounds: Rounds, begins: Any, meetings: Any, results: Any) -> None:
    try:
        results.put(asyncio.run(_asked(setup, rounds, begins, meetings)))
    except BaseException:
        begins.abort()
        results.put([])
        raise


async def _asked(setup: Setup, rounds: Rounds, begins: Any, meetings: Any) -> list[list[str]]:
    color = setup.way.rpartition("-")[2]
    meeting: list[Any] = []

    def script(shown: list[BaseMessage]) -> str:
        for barrier in meeting:
            barrier.wait(60)
        return f"re {shown[-1].text}"

    async with (
        SupabaseMemory.from_conn_string(
            setup.conn_string, user_id=setup.user_id, model=None, config=MemoryConfig(recall=None)
        ) as memory,
        either(setup.kind, setup.address, color) as saver,
    ):
        graph = Subject(memory, setup.way, ScriptedModel(script=script), saver=saver).graph
        states: list[Any] = []
        for questions, barrier in zip(rounds, meetings, strict=True):
            meeting[:] = [barrier] if len(questions) <= _MOST_MEETING else []
            begins.wait(60)
            if color == "async":
                states += await asyncio.gather(*(graph.ainvoke(asks(text), config()) for text in questions))
            else:
                with ThreadPoolExecutor(len(questions)) as pool:
                    states += pool.map(lambda text: graph.invoke(asks(text), config()), questions)
        assert not len(memory._services.outbox)
    return [texts(state["messages"]) for state in states]
