"""Profile the CPU time by function: of an append, a context pack and a worker's job.

    python -m benchmarks.profile [--only append|load|work] [--rounds N] [--lines N]

Microseconds are client time per append, load or conversation, as cProfile measures them. Profiling inflates calls, so
compare functions, and measure with `python -m benchmarks`. The first row is the same work without cProfile.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from benchmarks import work
from benchmarks.harness import Table
from langchain_supabase_memory import ContextBudget, MemoryConfig, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.worker import Worker, WorkerPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.messages import BaseMessage

MESSAGES: Final = 40
"""The messages of the worker's conversation: one summary, one revision of the board, its index."""
_BUDGET: Final = ContextBudget(characters=12_000)
_ROOT: Final = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.profile", description="Profile append, context pack and worker."
    )
    parser.add_argument("--only", choices=[*_SUBJECTS], action="append", help="only this subject; may be repeated")
    parser.add_argument(
        "--rounds",
        type=int,
        default=20,
        help="conversations for a worker; appends and loads are ten times as many",
    )
    parser.add_argument("--lines", type=int, default=30, help="functions per table")
    given = parser.parse_args()
    with TemporaryDirectory() as folder, SupabaseMemory.embedded(folder, user_id="profile", model=None) as memory:
        for name in given.only or _SUBJECTS:
            for table in _SUBJECTS[name](memory, given.rounds, given.lines):
                print(table.text() + "\n", flush=True)


def _append(memory: SupabaseMemory, rounds: int, lines: int) -> list[Table]:
    turns = [work.said() for _ in range(20 * rounds + 20)]
    conversation = memory.conversation("append")

    def append(first: int) -> None:
        for turn in turns[first : first + 10 * rounds]:
            conversation.append(turn)

    append(0)
    return [_table("An append of two messages", lambda: append(20), lines, 10 * rounds)]


def _load(memory: SupabaseMemory, rounds: int, lines: int) -> list[Table]:
    conversation = memory.conversation("load")
    conversation.append([message for _ in range(100) for message in work.said()])

    def load() -> None:
        for _ in range(10 * rounds):
            conversation.context(budget=_BUDGET)

    load()
    return [_table("A context pack of 12,000 characters", load, lines, 10 * rounds)]


def _work(memory: SupabaseMemory, rounds: int, lines: int) -> list[Table]:
    made = []
    for name, model in (("extractive", None), ("chat model", _answer)):
        settings: dict[str, Any] = {} if model is None else {"model": model}
        policy = SummaryPolicy(messages=20, keep_messages=10, mode="background")
        worked = SupabaseMemory(
            memory._services.transport,
            user_id=f"profile {name}",
            config=MemoryConfig(policy=policy),
            **settings,
        )

        def prepare(part: int, worked: SupabaseMemory = worked, name: str = name) -> None:
            for number in range(rounds):
                said = [message for _ in range(MESSAGES // 2) for message in work.said()]
                worked.conversation(f"{part} {number}").append(said)

        async def drain(worked: SupabaseMemory = worked) -> None:
            await Worker(worked, policy=WorkerPolicy(debounce_seconds=0)).drain()

        prepare(0)
        asyncio.run(drain())
        title = f"A worker's piece of work: {MESSAGES} messages, {name} writer"
        made.append(_table(title, lambda: asyncio.run(drain()), lines, rounds, prepare))
    return made


def _answer(prompt: list[BaseMessage]) -> str:
    """Return a plausible chat model answer at no cost."""
    if not str(prompt[-1].content).endswith("Revise the board."):
        return "The invoice of 42 euros for Zürich is due on Tuesday; a refund was asked for yesterday."
    lists: dict[str, list[Any]] = {name: [] for name in ("facts", "entities", "topics", "action_items", "closed")}
    return json.dumps({"summary": "An invoice of 42 euros is due on Tuesday.", "pending_questions": [], **lists})


_SUBJECTS: Final[dict[str, Callable[[SupabaseMemory, int, int], list[Table]]]] = {
    "append": _append, "load": _load, "work": _work,
}  # fmt: skip


def _table(
    title: str, do: Callable[[], object], lines: int, times: int, prepare: Callable[[int], object] = lambda _: None
) -> Table:
    """Run the work once without and once with a profiler."""
    prepare(1)
    begun = time.process_time()
    do()
    plain = time.process_time() - begun
    prepare(2)
    with _profiled() as profiles:
        do()
    found: dict[tuple[str, int, str], tuple[int, int, float, float, object]] = {}
    stats = pstats.Stats(profiles[0])
    for profile in profiles[1:]:
        stats.add(profile)
    found = stats.stats  # type: ignore[attr-defined]
    rows: list[list[str | float]] = [["all of it, without cProfile", 1.0, "", 1e6 * plain / times]]
    for place, (_, calls, own, total, _) in sorted(found.items(), key=lambda each: -each[1][2])[:lines]:
        rows.append([_name(place), calls / times, 1e6 * own / times, 1e6 * total / times])
    return Table(f"{title}, microseconds of processor", ["", "calls", "itself", "with what it calls"], rows)


@contextmanager
def _profiled() -> Iterator[list[cProfile.Profile]]:
    """Profile this thread and those that start meanwhile, since texts are parsed in threads off the event loop."""
    profiles = [cProfile.Profile(time.thread_time)]

    def begin(*_: object) -> None:
        profiles.append(cProfile.Profile(time.thread_time))
        profiles[-1].enable()

    threading.setprofile(begin)
    profiles[0].enable()
    try:
        yield profiles
    finally:
        profiles[0].disable()
        threading.setprofile(None)


def _name(place: tuple[str, int, str]) -> str:
    file, line, function = place
    if file == "~":
        return function
    path = Path(file)
    is_ours = path.is_relative_to(_ROOT) and ".venv" not in path.parts
    return f"{function} ({path.relative_to(_ROOT) if is_ours else Path(*path.parts[-2:])}:{line})"


if __name__ == "__main__":
    main()
