"""A process with a used memory, and its children, which concurrently read the messages of one user each.

Run as `python -m tests.fork_process DOOR ADDRESS WAY CHILDREN READS`; it prints the errors as JSON.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
import threading
import traceback
import uuid
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import psutil
from langchain_core.messages import HumanMessage
from psycopg.conninfo import conninfo_to_dict

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.operations.branch import StateRecord
from tests.services.data_api import token

if TYPE_CHECKING:
    from collections.abc import Iterator

USERS = [uuid.uuid4().hex for _ in range(3)]


@dataclass
class Result:
    """The errors.

    Attributes:
        foreign: Reads that returned other data than the user's own messages.
        failed: Reads that failed, in the children.
        failed_in_parent: Reads that failed in the parent while children were forked and ended.
        inherited: Parent state in a child: waiting messages, states, packs, failures.
        lost: The parent's Postgres connections that no longer exist.
        ended_badly: Children that did not end normally.
    """

    foreign: int = 0
    failed: int = 0
    failed_in_parent: int = 0
    inherited: int = 0
    lost: int = 0
    ended_badly: int = 0


def made(caller: str, address: str) -> SupabaseMemory:
    if caller == "direct":
        return SupabaseMemory.from_conn_string(address)
    if caller == "client":
        return over_client(address)
    return SupabaseMemory.from_url(address, token("service_role"), rest_path="")


def over_client(address: str) -> SupabaseMemory:
    """Return a memory over an application's client; its address is a bare PostgREST, without a gateway."""
    import yarl
    from supabase import Client

    from langchain_supabase_memory.adapters.transports.endpoint import Endpoint

    client = Client(address, token("service_role"))
    client.rest_url = yarl.URL(address)
    memory = SupabaseMemory.from_client(client)
    memory._services.transport.inner._clients.endpoint = Endpoint(address, token("service_role"), 10)  # type: ignore[attr-defined]
    return memory


def words(user: str) -> list[str]:
    return [f"I am {user}", "ok"]


class Parent:
    """A process with a used memory, sync and async, which other threads use continuously."""

    def __init__(self, caller: str, address: str) -> None:
        self.process = os.getpid()
        self.memory = made(caller, address)
        self.port = int(str(conninfo_to_dict(address)["port"])) if caller == "direct" else None
        for user in USERS:
            self.memory.for_user(user).conversation("t").add_turn(*words(user))
        self.memory._services.records.put(self.memory._services.key("t", USERS[0]), StateRecord("token", [], None))
        self.memory._services.outbox.keep(self.memory._services.key("t", USERS[0]), [HumanMessage("waits", id="w")])
        self.result = Result()
        self.loop = asyncio.new_event_loop()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self.loop.run_forever), threading.Thread(target=self._read_on)]
        for thread in self._threads:
            thread.daemon = True
            thread.start()
        self.aread()
        self.before = self.connections()

    def __enter__(self) -> Parent:
        return self

    def __exit__(self, *_: object) -> None:
        if os.getpid() != self.process:
            return  # an exiting child
        self._ended.set()
        self._threads[1].join()
        self.aread()
        if self.read_once(USERS[0]) != words(USERS[0]):
            self.result.failed_in_parent += 1
        self.result.lost += len(self.before - self.connections())

    def connections(self) -> set[int]:
        """Return this process's Postgres connections by local port; HTTP connections only last seconds."""
        open_ = psutil.Process().net_connections()
        return {each.laddr.port for each in open_ if each.raddr and each.raddr.port == self.port}

    def read_once(self, user: str) -> list[str | None]:
        return [row.text for row in self.memory.for_user(user).conversation("t").read(columns=["text"])]

    def aread(self) -> None:
        read = self.memory.for_user(USERS[0]).conversation("t").aread(columns=["text"])
        if [row.text for row in asyncio.run_coroutine_threadsafe(read, self.loop).result(30)] != words(USERS[0]):
            self.result.failed_in_parent += 1

    def _read_on(self) -> None:
        while not self._ended.wait(0.01):
            try:
                if self.read_once(USERS[0]) != words(USERS[0]):
                    self.result.failed_in_parent += 1
            except Exception:
                traceback.print_exc()
                self.result.failed_in_parent += 1


def child(memory: SupabaseMemory, place: int, reads: int) -> dict[str, Any]:
    """Read one user's messages, sync and async."""
    user, result = USERS[1 + place % 2], Result()
    result.inherited = len(memory._services.outbox) + (
        memory._services.records.get(memory._services.key("t", USERS[0])) is not None
    )
    talk = memory.for_user(user).conversation("t")

    async def aread(count: int) -> None:
        await asyncio.gather(*(checked(await_=talk.aread(columns=["text"])) for _ in range(count)))

    async def checked(await_: Any) -> None:
        try:
            seen([row.text for row in await await_])
        except Exception:
            traceback.print_exc()
            result.failed += 1

    def seen(texts: list[str | None]) -> None:
        result.foreign += texts != words(user)

    for _ in range(reads // 2):
        try:
            seen([row.text for row in talk.read(columns=["text"])])
        except Exception:
            traceback.print_exc()
            result.failed += 1
    asyncio.run(aread(reads - reads // 2))
    return asdict(result)


def forked(parent: Parent, count: int, reads: int, leave: str) -> Iterator[dict[str, Any]]:
    """Fork concurrent children by `os.fork`; they exit through the interpreter or immediately."""
    running = []
    for place in range(count):
        mine, its = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(mine)
            os.write(its, json.dumps(child(parent.memory, place, reads)).encode())
            if leave == "exit":
                sys.exit(0)
            if leave == "close":
                parent.memory.close()
                asyncio.run(parent.memory.aclose())
            os._exit(0)
        os.close(its)
        running.append((process, mine))
    for process, mine in running:
        with os.fdopen(mine) as pipe:
            told = pipe.read()
        _, status = os.waitpid(process, 0)
        yield {**json.loads(told or "{}"), "ended_badly": int(status != 0 or not told)}


PARENT: Parent | None = None


def job(place: int, reads: int) -> dict[str, Any]:
    assert PARENT is not None
    return child(PARENT.memory, place, reads)


def pooled(count: int, reads: int) -> Iterator[dict[str, Any]]:
    """Start children of `multiprocessing`, like Celery's prefork pool: few processes with many jobs."""
    with multiprocessing.get_context("fork").Pool(3) as pool:
        yield from [each.get(120) for each in [pool.apply_async(job, (place, reads)) for place in range(count)]]


def executed(count: int, reads: int) -> Iterator[dict[str, Any]]:
    with ProcessPoolExecutor(3, multiprocessing.get_context("fork")) as pool:
        yield from [each.result(120) for each in [pool.submit(job, place, reads) for place in range(count)]]


def main(caller: str, address: str, way: str, children: int, reads: int) -> None:
    global PARENT
    with Parent(caller, address) as PARENT:
        if way == "pool":
            results = pooled(children, reads)
        elif way == "executor":
            results = executed(children, reads)
        else:
            results = forked(PARENT, children, reads, way)
        total = PARENT.result
        for each in results:
            for name, count in each.items():
                setattr(total, name, getattr(total, name) + count)
    sys.stdout.write(json.dumps(asdict(PARENT.result)))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
