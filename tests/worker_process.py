"""A worker process with a scripted model, which logs each call and can kill the process.

The model's answer is a link of a chain: a digest of the previous summary and of the prompt. So every call can be traced
back from the last summary, and a call that no later one builds on was wasted.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import json
import logging
import multiprocessing
import os
import random
import re
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import ConfigDict

from langchain_supabase_memory import ChunkPolicy, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.adapters.transports.embedded import start
from langchain_supabase_memory.adapters.transports.postgres import PostgresTransport
from langchain_supabase_memory.adapters.transports.supabase import SupabaseTransport
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS
from langchain_supabase_memory.settings import BoardPolicy
from langchain_supabase_memory.worker import Worker, WorkerPolicy
from tests.embedders import WordEmbedder
from tests.memory_keywords import memory_keywords

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

    from langchain_supabase_memory.adapters.transports.base import Transport

FUNCTIONS: Final = (
    "memory_worker_claim",
    "memory_pending_chunks",
    "memory_commit_chunks",
    "memory_pending",
    "memory_commit_summary",
    "memory_embed_summaries",
    "memory_pending_board",
    "memory_commit_board",
    "memory_worker_finish",
)
"""The functions that a worker calls for each job."""

POLICIES: Final[dict[str, Any]] = {
    "policy": SummaryPolicy(
        messages=10, keep_messages=5, max_characters=300, attempts=1, mode="background", min_quality=None
    ),
    "board_policy": BoardPolicy(update_frequency=5, attempts=1),
    "chunking": ChunkPolicy(batch=8, mode="background"),
}
"""Short conversations are summarized, too."""


@dataclass(frozen=True)
class Plug:
    """The point where the process kills itself: the `count`-th call of a function, or answer of the model.

    Attributes:
        at: A SQL function's name, or `model`.
        when: Before the call is sent, during the call, or after its answer; always after for the model.
        count: The number of the call.
    """

    at: str
    when: Literal["before", "during", "after"] = "after"
    count: int = 1


@dataclass(frozen=True)
class Setup:
    """The configuration of a worker's process.

    Attributes:
        log: The file that logs its model's calls, one per line.
        conn_string: A direct connection; or
        url: a Data API, with
        key: a secret key; or
        folder: the folder of the embedded Postgres.
        plug: Where it kills itself.
        worker: The worker's policy.
        seconds: The range of the model's response time, in seconds.
        slow: One in this many calls of all processes takes `slow_seconds`; 0 for none.
        slow_seconds: The time of a slow call, in seconds.
        failing: One in this many raises, and one in this many and four returns nonsense; 0 for none.
        embeds: Whether it has an embedder.
        drains: Whether it exits when no work is left.
        memory: Settings of the memory.
    """

    log: str
    conn_string: str | None = None
    url: str | None = None
    key: str = ""
    folder: str | None = None
    plug: Plug | None = None
    worker: WorkerPolicy = field(default_factory=WorkerPolicy)
    seconds: tuple[float, float] = (0.0, 0.0)
    slow: int = 0
    slow_seconds: float = 0.0
    failing: int = 0
    embeds: bool = True
    drains: bool = False
    memory: dict[str, Any] = field(default_factory=lambda: dict(POLICIES))


def started(setup: Setup) -> ForkServerProcess:
    """Return a process of such a worker. It is forked from one that has imported everything, so it starts fast."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.worker_process"])
    process = context.Process(target=run, args=(setup,), daemon=True)
    process.start()
    return process


def run(setup: Setup) -> None:
    """Run the worker until SIGTERM."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    random.seed()
    logging.getLogger("langchain_supabase_memory").setLevel(logging.CRITICAL)
    asyncio.run(_run(setup))


def link(call: str, before: str, kind: str, said: Iterable[tuple[int, str]]) -> str:
    """Return the digest that the model answers this call and prompt with."""
    shown = "\n".join([call, before, kind, *(f"{number} {text}" for number, text in said)])
    return hashlib.sha256(shown.encode()).hexdigest()[:20]


def noted(log: Path) -> list[dict[str, Any]]:
    """Return the log lines of all processes, in order."""
    return [json.loads(line) for line in log.read_text().splitlines()]


def _note(log: str, **what: Any) -> int:
    """Append a line to the log, and return the offset of its end."""
    line = json.dumps({"pid": os.getpid(), **what}) + "\n"
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())  # one write, so that lines of several processes do not mix
        return os.lseek(file, 0, os.SEEK_CUR)
    finally:
        os.close(file)


def _asked(log: str, end: int) -> int:
    """Return the number, over all processes, of the call whose line ends there."""
    return Path(log).read_bytes()[:end].count(b'"event": "asked"')


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


_MESSAGE: Final = re.compile(r'<message number="(\d+)"[^>]*>\n(.*?)\n</message>', re.DOTALL)
_BEFORE: Final = re.compile(r"<summary_so_far>\n(.*?)\n</summary_so_far>", re.DOTALL)
_DIGEST: Final = re.compile(r"[0-9a-f]{20}")


class ChainModel(BaseChatModel):
    """Answers with the next link of the chain; for a board, also with a fact that quotes the last message."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    setup: Setup
    count: int = 0
    answers: int = 0

    @property
    def _llm_type(self) -> str:
        return "chain"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        setup = self.setup
        self.count += 1
        kind, before, said = read(messages)
        call = f"{os.getpid()}.{self.count}"
        what = {"kind": kind, "before": before, "numbers": [at for at, _ in said], "call": call}
        end = _note(setup.log, event="asked", **what)
        # Counted over all processes, since most are killed after few calls.
        place = _asked(setup.log, end) if setup.slow or setup.failing else 0
        is_slow = setup.slow and place % setup.slow == 0
        await asyncio.sleep(setup.slow_seconds if is_slow else random.uniform(*setup.seconds))
        if setup.failing and place % setup.failing == 0:
            _note(setup.log, event="failed", **what)
            raise ConnectionError
        if setup.failing and place % (setup.failing + 4) == 0:
            _note(setup.log, event="nonsense", **what)
            return _result("{" if kind == "board" else " ")
        made = link(call, before, kind, said)
        _note(setup.log, event="answered", made=made, **what)
        self.answers += 1
        if setup.plug is not None and setup.plug.at == "model" and self.answers == setup.plug.count:
            _die()
        if kind == "summary":
            return _result(f"The chain is at {made}.")
        at, text = said[-1]
        fact = {"text": f"Message {at} was read.", "source": at, "quote": text[:20]}
        lists: dict[str, list[Any]] = {each.plural: [] for each in BOARD_KINDS.values()}
        lists |= {"facts": [fact], "closed": []}
        return _result(json.dumps({"summary": f"The chain is at {made}.", **lists}))


def _result(text: str) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def read(prompt: Sequence[BaseMessage]) -> tuple[str, str, list[tuple[int, str]]]:
    """Return a prompt's task, its initial digest, and its new messages."""
    asked = str(prompt[-1].content)
    kind = "board" if asked.endswith("Revise the board.") else "summary"
    found = _BEFORE.search(asked)
    digest = None if found is None else _DIGEST.search(found.group(1))
    said = [(int(number), html.unescape(text)) for number, text in _MESSAGE.findall(asked)]
    return kind, "" if digest is None else digest.group(), said


class PluggedTransport:
    """A transport that may kill its process at a call, and that logs lost leases."""

    def __init__(self, inner: Transport, setup: Setup) -> None:
        self._inner = inner
        self._setup = setup
        self._count = 0
        self._finished: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def aperform(self, call: Call) -> Any:
        plug = self._setup.plug
        here = plug is not None and call.function == plug.at
        self._count += int(here)
        when = plug.when if plug is not None and here and self._count == plug.count else None
        if when == "before":
            _die()
        if call.function == "memory_worker_finish":
            self._finished.add(call.arguments["p_token"])
        if when == "during":
            under_way = asyncio.ensure_future(self._inner.aperform(call))
            await asyncio.wait([under_way], timeout=random.uniform(0, 0.005))
            _die()
        answer = await self._inner.aperform(call)
        if when == "after":
            _die()
        lost = int(call.function == "memory_worker_finish" and answer["outcome"] == "lost")
        if call.function == "memory_worker_heartbeat":
            # A lease that is being released at the same time is not lost.
            held = {lease["token"] for lease in call.arguments["p_leases"]}
            lost = len(held - set(answer) - self._finished)
        if lost:
            _note(self._setup.log, event="lost", leases=lost, function=call.function)
        return answer


def transport(setup: Setup) -> Transport:
    """Return the transport that the setup names."""
    if setup.url is not None:
        return SupabaseTransport(setup.url, setup.key, rest_path="")
    conn_string = setup.conn_string or start(setup.folder)
    return PostgresTransport(conn_string)


async def _run(setup: Setup) -> None:
    async with SupabaseMemory(
        PluggedTransport(transport(setup), setup),
        model=ChainModel(setup=setup),
        embeddings=WordEmbedder() if setup.embeds else None,
        **memory_keywords(setup.memory),
    ) as memory:
        worker = Worker(memory, policy=setup.worker)
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        if setup.drains:
            await worker.drain()
        else:
            _note(setup.log, event="begun")
            await worker.run()
        _note(setup.log, event="ended", cpu=time.process_time(), **worker.stats.outcomes)
