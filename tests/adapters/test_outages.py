"""Real outages: the real Postgres dies, stops, is full or read-only, under the real PostgREST and under a pool."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.errors import ConfigurationError, UnavailableError
from langchain_supabase_memory.settings import NO_RETRY, BreakerPolicy, RetryPolicy
from tests.memory_keywords import memory_keywords
from tests.services.data_api import DataApi, token
from tests.services.outages import SEEN
from tests.services.postgres import Cluster

pytestmark = pytest.mark.data_api

PATIENT = RetryPolicy(attempts=200, wait_seconds=0.05, max_wait_seconds=0.2, deadline_seconds=60)
NEVER = BreakerPolicy(failures=100_000)
OPENS_AT_ONCE = BreakerPolicy(failures=1, wait_seconds=60, max_wait_seconds=60)
WITHOUT: dict[str, Any] = {"model": None, "recall": None}
DOORS = pytest.mark.parametrize("kind", ["data_api", "direct"])
COLORS = pytest.mark.parametrize("color", ["sync", "async"])


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A server that may be killed."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def database(own: Cluster) -> str:
    return own.migrated_database()


@pytest.fixture(scope="module")
def api(own: Cluster, database: str) -> Iterator[DataApi]:
    with DataApi(own, database) as api:
        yield api


@pytest.fixture(autouse=True)
def _is_well(request: pytest.FixtureRequest) -> None:
    """What the test before has broken is whole again: each connection of PostgREST's pool."""
    if "api" not in request.fixturenames:
        return
    api: DataApi = request.getfixturevalue("api")
    key = {"Authorization": f"Bearer {token('service_role')}"}
    in_a_row = 0
    for _ in range(600):
        answer = httpx.post(f"{api.url}/rpc/memory_schema", json={}, headers=key, timeout=10)
        in_a_row = in_a_row + 1 if answer.status_code == 200 else 0
        if in_a_row == 20:
            return
        time.sleep(0.01)
    raise AssertionError("PostgREST does not come back")


def memory_over(kind: str, own: Cluster, database: str, api: DataApi, user_id: str, **more: Any) -> SupabaseMemory:
    if kind == "data_api":
        key = token("service_role")
        return SupabaseMemory.from_url(
            api.url, key, rest_path="", user_id=user_id, **memory_keywords({**WITHOUT, **more})
        )
    return SupabaseMemory.from_conn_string(
        own.conn_string(database), user_id=user_id, **memory_keywords({**WITHOUT, **more})
    )


async def done(color: str, verb: Callable[..., Any], *arguments: Any) -> Any:
    if color == "sync":
        return verb(*arguments)
    return await getattr(verb.__self__, "a" + verb.__name__)(*arguments)  # type: ignore[attr-defined]


def kill(cluster: Cluster) -> None:
    """Kill the server with all of its processes, as power that fails does."""
    lock = cluster.folder / "data" / "postmaster.pid"
    postmaster = psutil.Process(int(lock.read_text().split()[0]))
    postmaster.suspend()  # it starts no process that would outlive it, and hold its shared memory
    processes = [*postmaster.children(recursive=True), postmaster]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=10)
    lock.unlink(missing_ok=True)


def kill_one(cluster: Cluster, database: str) -> None:
    """Kill the process of a connection that waits for a lock, as the kernel does where memory is short."""
    with psycopg.connect(cluster.conn_string(database, "supabase_admin"), autocommit=True) as admin:
        for (pid,) in admin.execute("select pid from pg_stat_activity where wait_event_type = 'Lock'").fetchall():
            with suppress(ProcessLookupError):  # the server ends all of them when it sees the first one's end
                os.kill(pid, signal.SIGKILL)


def terminate(cluster: Cluster, database: str) -> None:
    with psycopg.connect(cluster.conn_string(database, "supabase_admin"), autocommit=True) as admin:
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and pid <> pg_backend_pid()",
            [database],
        )


def outages(cluster: Cluster, database: str) -> dict[str, Callable[[], None]]:
    def killed() -> None:
        kill(cluster)
        cluster.resume()

    def stopped() -> None:
        cluster.halt()
        cluster.resume()

    return {
        "killed": killed,
        "stopped": stopped,
        "restarted": cluster.restart,
        "a connection killed": partial(kill_one, cluster, database),
        "terminated": partial(terminate, cluster, database),
    }


@contextmanager
def locked(cluster: Cluster, database: str, user_id: str) -> Iterator[None]:
    """While this lasts the row of a user's conversations is held, so that appends wait."""
    with closing(psycopg.connect(cluster.conn_string(database, "supabase_admin"))) as connection:
        connection.execute("select 1 from memory.conversations where user_id = %s for update", [user_id])
        yield


def waits(cluster: Cluster, database: str, count: int) -> None:
    """Return when so many calls wait for a lock."""
    with psycopg.connect(cluster.conn_string(database, "supabase_admin"), autocommit=True) as admin:
        for _ in range(400):
            found = admin.execute("select count(*) from pg_stat_activity where wait_event_type = 'Lock'").fetchone()
            if found is not None and found[0] >= count:
                return
            time.sleep(0.02)
    raise AssertionError("no call waits")


@DOORS
@pytest.mark.parametrize("outage", ["killed", "stopped", "restarted", "a connection killed", "terminated"])
def test_a_database_that_dies_during_a_call_loses_and_doubles_nothing(
    own: Cluster, database: str, api: DataApi, user_id: str, kind: str, outage: str
) -> None:
    with memory_over(kind, own, database, api, user_id, retry=PATIENT, breaker=NEVER) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage("before", id="0")])
        raw = {"p_thread_id": "t", "p_user_id": user_id, "p_messages": [{"role": "user", "content": "raw", "id": "r"}]}
        key = {"Authorization": f"Bearer {token('service_role')}"}
        threads = ThreadPoolExecutor()
        with locked(own, database, user_id):
            appended = threads.submit(conversation.append, [HumanMessage("during", id="1")])
            answered = threads.submit(httpx.post, f"{api.url}/rpc/memory_append", json=raw, headers=key, timeout=60)
            waits(own, database, 2)
            outages(own, database)[outage]()
        assert appended.result(60).appended == 1
        answer = answered.result(60)
        texts = [each.message.text for each in conversation.read()]
        assert [text for text in texts if text != "raw"] == ["before", "during"]
        if answer.status_code != 200:
            assert (answer.status_code, answer.json()["code"]) in {(each.status, each.code) for each in SEEN}, (
                answer.text
            )
        assert memory.health().causes == ()


@COLORS
async def test_an_empty_code_is_an_outage_whatever_the_status(
    own: Cluster, database: str, api: DataApi, user_id: str, color: str
) -> None:
    memory = memory_over("data_api", own, database, api, user_id, retry=NO_RETRY, breaker=OPENS_AT_ONCE)
    await done(color, memory.conversation("t").append, [HumanMessage("before")])
    failed: list[BaseException] = []

    def append() -> None:
        try:
            memory.conversation("t").append([HumanMessage("during")])
        except UnavailableError as error:
            failed.append(error)

    thread = threading.Thread(target=append)
    with locked(own, database, user_id):
        thread.start()
        waits(own, database, 1)
        kill_one(own, database)
    thread.join(30)
    (error,) = failed
    assert isinstance(error, UnavailableError)
    assert error.is_away
    assert "lost the database" in str(error) or "connection" in str(error)
    assert memory.health().state == "open"
    await memory.aclose()


@DOORS
def test_a_full_disk_refuses_what_is_written_and_nothing_that_is_read(
    own: Cluster, database: str, api: DataApi, user_id: str, kind: str
) -> None:
    with memory_over(kind, own, database, api, user_id, retry=NO_RETRY, breaker=OPENS_AT_ONCE) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage("before")])
        own.execute(
            "create function memory.full() returns trigger language plpgsql as $$ begin"
            " raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;"
            "create trigger full_disk before insert on memory.conversation_messages execute function memory.full()",
            database=database,
        )
        try:
            for _ in range(3):
                with pytest.raises(UnavailableError, match="disk of the database is full.*Free space"):
                    conversation.append([HumanMessage("during")])
                assert conversation.count() == 1
                assert conversation.context().messages
            health = memory.health()
            assert health.state == "closed"
            (cause,) = health.causes
            assert (cause.code, cause.times) == ("53100", 3), "a read mends no write"
        finally:
            own.execute("drop function memory.full() cascade", database=database)
        conversation.append([HumanMessage("after")])
        assert memory.health().causes == ()


@COLORS
async def test_what_was_read_only_for_a_while_is_written_at_once(
    own: Cluster, api: DataApi, user_id: str, color: str
) -> None:
    database = own.migrated_database()
    memory = SupabaseMemory.from_conn_string(own.conn_string(database), user_id=user_id, **memory_keywords(WITHOUT))
    conversation = memory.conversation("t")
    own.execute(f"alter database {database} set default_transaction_read_only = on", superuser=True)
    for _ in range(2):
        assert await done(color, conversation.count) == 0
        with pytest.raises(ConfigurationError, match="takes no writes"):
            await done(color, conversation.append, [HumanMessage("during")])
    assert await done(color, conversation.count) == 0  # over a connection that is read-only for good
    own.execute(
        f"set default_transaction_read_only = off; alter database {database} reset default_transaction_read_only",
        superuser=True,
    )
    await done(color, conversation.append, [HumanMessage("after")])
    assert await done(color, conversation.count) == 1
    await memory.aclose()


def storm(memory: SupabaseMemory, outage: Callable[[], None], rounds: int) -> int:
    """Six threads append while the database goes away again and again; how many messages were acknowledged."""
    ended = threading.Event()
    acknowledged = [0] * 6

    def write(number: int) -> None:
        while not ended.is_set():
            message = HumanMessage("x" * 5000, id=str(acknowledged[number]))
            memory.conversation(str(number)).append([message])
            acknowledged[number] += 1

    with ThreadPoolExecutor() as threads:
        written = [threads.submit(write, number) for number in range(6)]
        for _ in range(rounds):
            before = sum(acknowledged)
            outage()
            for _ in range(600):
                if sum(acknowledged) >= before + 12:
                    break
                time.sleep(0.05)
        ended.set()
        for each in written:
            each.result(60)
    for number, count in enumerate(acknowledged):
        assert memory.conversation(str(number)).count() == count
    return sum(acknowledged)


@pytest.mark.slow
@DOORS
@pytest.mark.parametrize("outage", ["killed", "stopped", "restarted"])
def test_writers_live_through_many_outages(
    own: Cluster, database: str, api: DataApi, user_id: str, kind: str, outage: str
) -> None:
    with memory_over(kind, own, database, api, user_id, retry=PATIENT, breaker=NEVER) as memory:
        assert storm(memory, outages(own, database)[outage], 4) >= 48


@pytest.mark.slow
@DOORS
def test_a_server_that_is_halted_by_a_signal_is_waited_for(
    own: Cluster, database: str, api: DataApi, user_id: str, kind: str
) -> None:
    postmaster = psutil.Process(int((own.folder / "data" / "postmaster.pid").read_text().split()[0]))
    with memory_over(kind, own, database, api, user_id, retry=PATIENT, breaker=NEVER) as memory:
        memory.conversation("t").append([HumanMessage("0", id="0")])
        processes = [postmaster, *postmaster.children(recursive=True)]
        for process in processes:
            process.suspend()
        with ThreadPoolExecutor() as threads:
            appended = threads.submit(memory.conversation("t").append, [HumanMessage("1", id="1")])
            time.sleep(11)  # longer than one request waits
            for process in processes:
                process.resume()
            assert appended.result(60).sequences == [1]
        assert memory.conversation("t").count() == 2


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of 60 MB, which only root may make."""
    folder = Path(tempfile.mkdtemp(prefix="lsm-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


@pytest.mark.slow
def test_a_disk_that_is_really_full(small_disk: Path, user_id: str) -> None:
    with Cluster() as cluster:
        shutil.chown(small_disk, "pgserver")
        cluster.execute(f"create tablespace small location '{small_disk}'", superuser=True)
        database = cluster.migrated_database()
        cluster.execute(f"alter database {database} set tablespace small", superuser=True)
        with DataApi(cluster, database) as api:
            memories = [memory_over(kind, cluster, database, api, kind) for kind in ("data_api", "direct")]
            for memory in memories:
                memory.conversation("t").append([HumanMessage("hello " * 20) for _ in range(50)])
            with (small_disk / "fill").open("wb", 0) as file, suppress(OSError):
                while True:
                    file.write(b"x" * 4096)
            for memory in memories:
                conversation = memory.conversation("t")
                for _ in range(5):
                    with pytest.raises(UnavailableError, match="disk of the database is full"):
                        conversation.append([HumanMessage(os.urandom(200_000).hex())])
                    assert conversation.count() == 50
                    assert conversation.context().messages
                assert memory.health().state == "closed"
            (small_disk / "fill").unlink()
            for memory in memories:
                memory.conversation("t").append([HumanMessage("room again")])
                assert memory.conversation("t").count() == 51
                memory.close()
