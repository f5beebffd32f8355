"""After a fork a child opens its own connections, and never uses, closes or awaits its parent's resources."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from langchain_supabase_memory import MemoryConfig, SupabaseMemory, fork
from langchain_supabase_memory.adapters.local_embeddings import LocalEmbeddings
from langchain_supabase_memory.adapters.telemetry.metrics import Metrics
from langchain_supabase_memory.adapters.telemetry.server import MetricsServer
from langchain_supabase_memory.adapters.transports.breaker import Breaker
from langchain_supabase_memory.errors import UnavailableError
from langchain_supabase_memory.language.lexicon import load_once
from langchain_supabase_memory.long_term.store import SupabaseStore
from langchain_supabase_memory.settings import BreakerPolicy
from langchain_supabase_memory.worker import Worker
from tests.fork_process import words
from tests.services.postgres import free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.services.data_api import DataApi

NOTHING = {"foreign": 0, "failed": 0, "failed_in_parent": 0, "inherited": 0, "lost": 0, "ended_badly": 0}


def in_child(function: Callable[[], Any]) -> Any:
    """What a function returns in a child process; one that waits for something of its parent's is ended."""
    mine, its = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.write(its, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(its)
    overdue = threading.Timer(30, os.kill, (process, 9))
    overdue.start()
    with os.fdopen(mine) as pipe:
        told = pipe.read()
    overdue.cancel()
    os.waitpid(process, 0)
    assert told, "the child did not come to its end"
    return json.loads(told)


@pytest.fixture
def address(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A caller, and its address."""
    caller: str = request.param
    if caller == "direct":
        return caller, request.getfixturevalue("conn_string")
    api: DataApi = request.getfixturevalue("data_api")
    return caller, api.url


def forked(address: tuple[str, str], way: str, children: int, reads: int) -> dict[str, int]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.fork_process", *address, way, str(children), str(reads)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout, done.stderr
    result: dict[str, int] = json.loads(done.stdout)
    assert result == NOTHING, done.stderr
    return result


EVERY = pytest.mark.parametrize("address", ["direct", "data_api", "client"], indirect=True)


@pytest.mark.slow
@pytest.mark.data_api
@EVERY
def test_children_of_a_process_whose_memory_is_in_use_read_what_is_their_users(address: tuple[str, str]) -> None:
    forked(address, "exit", 2, 50)


@pytest.mark.slow
@pytest.mark.data_api
@pytest.mark.parametrize(("way", "address"), [("pool", "direct"), ("executor", "data_api")], indirect=["address"])
def test_a_thousand_reads_in_pools_of_forked_workers(address: tuple[str, str], way: str) -> None:
    forked(address, way, 10, 100)


@pytest.mark.slow
@pytest.mark.data_api
@pytest.mark.parametrize("address", ["direct", "data_api"], indirect=True)
def test_a_child_that_closes_the_memory_closes_nothing_of_its_parent(address: tuple[str, str]) -> None:
    forked(address, "close", 2, 20)


@pytest.mark.slow
@pytest.mark.data_api
@pytest.mark.parametrize("address", ["direct", "data_api"], indirect=True)
def test_a_thousand_requests_to_a_server_that_was_loaded_before_it_forked(address: tuple[str, str]) -> None:
    users = [uuid.uuid4().hex for _ in range(4)]
    url = f"http://127.0.0.1:{free_port()}"
    names = {"FORK_DOOR": address[0], "FORK_ADDRESS": address[1], "FORK_USERS": " ".join(users)}
    options = ["--preload", "--workers", "3", "--threads", "4", "--bind", url.removeprefix("http://")]
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "gunicorn", *options, "--log-level", "error", "tests.fork_app"],
        env={**os.environ, **names},
    )

    def ask(place: int) -> int:
        user = users[place % len(users)]
        answer = httpx.get(f"{url}/", params={"user": user}, timeout=30)
        assert answer.status_code == 200
        assert answer.json()["texts"] == words(user)
        return int(answer.json()["process"])

    try:
        for _ in range(300):
            try:
                httpx.get(url, params={"user": users[0]}, timeout=30)
                break
            except httpx.TransportError:
                time.sleep(0.1)
        with ThreadPoolExecutor(8) as clients:
            processes = set(clients.map(ask, range(1_000)))
        assert len(processes) > 1
        assert server.pid not in processes
    finally:
        server.terminate()
        server.wait(60)


@pytest.mark.slow
def test_an_embedded_server_stops_with_the_last_process_that_uses_it(tmp_path: Path) -> None:
    script = """
import os, sys, time
from langchain_supabase_memory import SupabaseMemory
memory = SupabaseMemory.embedded(sys.argv[1])
talk = memory.conversation("t")
talk.add_turn("hello", "hello")
child = os.fork()
if child == 0:
    assert talk.count() == 2
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert talk.count() == 2  # the end of a child ends nothing
parent = os.getpid()
if os.fork() == 0:
    assert talk.count() == 2
    open(sys.argv[2] + ".ready", "w").close()
    while os.getppid() == parent:
        time.sleep(0.05)
    time.sleep(1)
    memory.close()
    with memory, open(sys.argv[2], "w") as result:
        result.write(str(talk.count()))
    sys.exit(0)
while not os.path.exists(sys.argv[2] + ".ready"):
    time.sleep(0.05)
"""
    result, folder = tmp_path / "result", tmp_path / "db"
    subprocess.run([sys.executable, "-W", "ignore", "-c", script, folder, result], check=True, timeout=120)
    for _ in range(600):
        if result.exists() and not (folder / "postmaster.pid").exists():
            break
        time.sleep(0.1)
    assert result.read_text() == "2"  # nor does the end of the parent, while a child uses it
    assert not (folder / "postmaster.pid").exists()


# --- What is in memory


@pytest.fixture
def memory() -> SupabaseMemory:
    """One that has opened nothing."""
    return SupabaseMemory.from_url("http://127.0.0.1:1", "key", user_id="u", config=MemoryConfig(metrics=Metrics()))


def test_a_lock_that_another_thread_holds_is_free_in_a_child() -> None:
    lock, held, ended = fork.Lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            ended.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    def take() -> str:
        with lock:
            return "taken"

    try:
        assert in_child(take) == "taken"
    finally:
        ended.set()
        thread.join()


def test_what_another_thread_is_loading_is_loaded_by_a_child_itself() -> None:
    held, ended = threading.Event(), threading.Event()
    parent = os.getpid()

    @load_once
    def data() -> int:
        held.set()
        if os.getpid() == parent:
            ended.wait()
        return os.getpid()

    thread = threading.Thread(target=data)
    thread.start()
    held.wait()
    try:
        assert in_child(data) != parent
    finally:
        ended.set()
        thread.join()


def test_a_failure_that_a_parent_saw_refuses_nothing_in_a_child() -> None:
    breaker = Breaker(BreakerPolicy(failures=1))
    breaker.failed(UnavailableError("away"), probe=False)
    with pytest.raises(UnavailableError):
        breaker.admit()
    assert in_child(lambda: breaker.circuit.state) == "closed"
    assert breaker.circuit.state == "open"


def test_causes_are_a_processs_own_and_those_of_its_users_are_too(memory: SupabaseMemory) -> None:
    theirs = memory._services.causes.for_user()
    with pytest.raises(UnavailableError), memory._services.causes.watching("embedder"):
        raise UnavailableError("away")
    assert in_child(lambda: [len(memory._services.causes.failures), len(theirs.failures)]) == [0, 0]
    assert len(theirs.failures) == 1


def test_numbers_begin_at_zero_in_a_child(memory: SupabaseMemory) -> None:
    memory._services.metrics.retried()

    def shown() -> list[str]:
        lines = memory._services.metrics.render()[0].decode().splitlines()
        return [line for line in lines if line.startswith("memory_retries_total")]

    assert in_child(shown) == ["memory_retries_total 0.0"]
    assert shown() == ["memory_retries_total 1.0"]


def test_a_child_does_not_answer_for_the_numbers_of_its_parent(memory: SupabaseMemory) -> None:
    with MetricsServer(memory._services.metrics, port=0) as server:
        port = server.port

        def begin_again() -> bool:
            server.close()  # which waits for no thread that is not there
            return MetricsServer(memory._services.metrics, port=0).start().port != port

        assert in_child(begin_again)
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}/healthz")


def test_a_worker_of_a_child_has_a_name_of_its_own_and_does_not_run_yet(memory: SupabaseMemory) -> None:
    named, worker = Worker(memory, name="mine"), Worker(memory)
    with worker.in_thread():
        while not worker.health()[1].get("error") and worker._stop is None:
            time.sleep(0.01)

        def seen() -> list[Any]:
            worker._refuse_twice()  # it may be begun
            return [named.name, worker.name != before, worker.health()[0]]

        before = worker.name
        assert in_child(seen) == ["mine", True, False]


def test_a_thread_that_sweeps_is_begun_anew_in_a_child(memory: SupabaseMemory) -> None:
    store = SupabaseStore(memory)
    first = store.start_ttl_sweeper(60)

    def again() -> bool:
        return store.start_ttl_sweeper(60) is not first

    try:
        assert in_child(again)
        assert store.start_ttl_sweeper(60) is first
    finally:
        store.stop_ttl_sweeper()


def test_a_model_that_works_with_threads_is_loaded_by_each_process(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []

    def load(_: LocalEmbeddings) -> object:
        loads.append(os.getpid())
        return object()

    monkeypatch.setattr(LocalEmbeddings, "_load", load)
    embeddings = LocalEmbeddings()
    embeddings._ready()

    def loaded() -> list[bool]:
        embeddings._ready()
        return [each == os.getpid() for each in loads]

    assert in_child(loaded) == [False, True]
    assert len(loads) == 1


def test_what_is_gone_is_not_begun_anew() -> None:
    class Thing:
        begun = 0

        def __init__(self) -> None:
            fork.run_in_each_process(self.begin)

        def begin(self) -> None:
            self.begun += 1

    things = [Thing()]
    before = len(fork._METHODS)
    assert in_child(lambda: things[0].begun) == 2
    assert things[0].begun == 1
    things.clear()
    gc.collect()
    assert len(fork._METHODS) < before
