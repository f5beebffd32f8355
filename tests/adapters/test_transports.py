"""The layer below the verbs: errors, retries, event loops, closing, and the Supabase client."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import psycopg
import pytest
import yarl
from langchain_core.messages import HumanMessage
from supabase import AsyncClient, AsyncClientOptions, Client, ClientOptions

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.transports.endpoint import Endpoint
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import (
    AuthenticationError,
    ConfigurationError,
    DatabaseError,
    InvalidInputError,
    PermissionDeniedError,
    SchemaMissingError,
    SupabaseMemoryError,
    TokenExpiredError,
    UnavailableError,
    from_code,
    from_status,
)
from langchain_supabase_memory.settings import NO_RETRY, RetryPolicy
from langchain_supabase_memory.transports import PostgresTransport, SupabaseTransport
from langchain_supabase_memory.worker.wake import CHANNEL, Wake
from tests.each_case import each_case
from tests.services.data_api import DataApi, token
from tests.services.postgres import Cluster, free_port

SECRET = "the user's secret words"
QUICK = RetryPolicy(attempts=3, wait_seconds=0.01, deadline_seconds=5)


# --- The client's edge: the real client, over a wire that answers what a test says


class Wire:
    """What the other end answers, in turn: a response, a document, or an error of the connection."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.requests: list[httpx.Request] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        outcome = self.outcomes.pop(0)
        if callable(outcome):
            outcome = await outcome()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if isinstance(outcome, httpx.Response) else httpx.Response(200, json=outcome)

    @property
    def arguments(self) -> Any:
        return json.loads(self.requests[-1].content)


def client_over(wire: Wire) -> AsyncClient:
    session = httpx.AsyncClient(transport=httpx.MockTransport(wire))
    return AsyncClient("http://127.0.0.1:1", "key", AsyncClientOptions(httpx_client=session))


def over(wire: Wire, **settings: Any) -> SupabaseMemory:
    client = client_over(wire)
    transport = SupabaseTransport("http://127.0.0.1:1", "key", async_client=client, **{"retry": QUICK, **settings})
    return SupabaseMemory(transport, user_id="u")


def error(status: int, **document: Any) -> httpx.Response:
    return httpx.Response(status, json={"message": None, "code": None, "hint": None, "details": None, **document})


async def test_one_append_is_one_request() -> None:
    wire = Wire({"conversation_id": "c", "sequences": [0], "appended": 1, "updated": []})
    await over(wire, access_token="a.signed.jwt").conversation("t", agent_id="a").aappend([HumanMessage("hi", id="m")])
    assert len(wire.requests) == 1
    assert wire.requests[0].url == "http://127.0.0.1:1/rest/v1/rpc/memory_append"
    named = wire.arguments
    assert (named["p_thread_id"], named["p_user_id"], named["p_agent_id"]) == ("t", "u", "a")
    assert [row["id"] for row in named["p_messages"]] == ["m"]
    assert wire.requests[0].headers["Authorization"] == "Bearer a.signed.jwt"


async def test_a_read_asks_for_its_bounds() -> None:
    wire = Wire({"messages": [], "more": False})
    assert await over(wire).conversation("t").aread(last=5, columns=["text"]) == []
    named = wire.arguments
    assert (named["p_last"], named["p_columns"], named["p_since"]) == (5, ["text"], None)
    # Without a token the client's own headers speak.
    assert wire.requests[0].headers["Authorization"] == "Bearer key"


@each_case(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("Server disconnected"),
        error(503, message="upstream"),
        httpx.Response(503, text=f"<html>{SECRET}</html>"),
        error(500, message="timeout", code="57014", details=SECRET),
        error(500, message="deadlock", code="40P01"),
        error(504, message="pool", code="PGRST003"),
    ],
    ids=lambda failure: getattr(failure, "text", "")[:40] or type(failure).__name__,
)
async def test_what_may_pass_is_tried_again_and_then_told(failure: Any) -> None:
    wire = Wire(failure, failure, 7)
    assert await over(wire).conversation("t").acount() == 7
    wire = Wire(failure, failure, failure)
    with pytest.raises(UnavailableError, match="safe to repeat") as caught:
        await over(wire).conversation("t").acount()
    assert len(wire.requests) == 3
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (error(403, code="42501", message=f"new row violates {SECRET}"), PermissionDeniedError),
        (error(409, code="23505", message="duplicate", details=f"Key ({SECRET})"), InvalidInputError),
        (error(400, code="22P05", message=SECRET), InvalidInputError),
        (error(401, code="PGRST301", message="JWSError"), AuthenticationError),
        (error(401, code="PGRST301", message="JWT expired"), TokenExpiredError),
        (error(401, code="PGRST303", message="JWT expired"), TokenExpiredError),
        (httpx.Response(401, json={"message": "Invalid API key", "hint": "Double check"}), AuthenticationError),
        (httpx.Response(404, text="<html>"), ConfigurationError),
        (error(500, code="XX001", message=SECRET), DatabaseError),
        (error(400, code="PT400", message="no user id", hint="pass user_id"), InvalidInputError),
    ],
    ids=lambda answer: f"{answer.status_code} {answer.text[-60:]}" if isinstance(answer, httpx.Response) else None,
)
async def test_what_will_not_pass_is_told_at_once_without_content(
    answer: httpx.Response, expected: type[SupabaseMemoryError], caplog: pytest.LogCaptureFixture
) -> None:
    wire = Wire(answer)
    with caplog.at_level(logging.DEBUG), pytest.raises(SupabaseMemoryError) as caught:
        await over(wire).conversation("t").acount()
    assert type(caught.value) is expected
    assert len(wire.requests) == 1
    assert SECRET not in f"{caught.value!r} {caught.value} {caplog.text}"
    assert caught.value.hint


async def test_the_deadline_ends_the_tries() -> None:
    wire = Wire(*[httpx.ConnectError("refused")] * 50)
    with pytest.raises(UnavailableError):
        policy = RetryPolicy(attempts=50, deadline_seconds=0.0, wait_seconds=0.01)
        await over(wire, retry=policy).conversation("t").acount()
    assert len(wire.requests) == 1


async def test_the_deadline_begins_with_the_first_try() -> None:
    async def slow() -> Exception:
        await asyncio.sleep(0.2)
        return httpx.ReadTimeout("slow")

    wire = Wire(*[slow] * 50)
    with pytest.raises(UnavailableError):
        policy = RetryPolicy(attempts=50, deadline_seconds=0.15, wait_seconds=0.01)
        await over(wire, retry=policy).conversation("t").acount()
    assert len(wire.requests) == 1


async def test_a_client_that_was_passed_is_never_closed() -> None:
    client = client_over(Wire(1))
    memory = SupabaseMemory.from_client(client, user_id="u")
    await memory.conversation("t").acount()
    await memory.aclose()
    assert not client.postgrest.session.is_closed
    await client.postgrest.session.aclose()


async def test_an_expired_token_is_asked_for_once_more_if_it_can_be() -> None:
    tokens = iter(["an.old.jwt", "a.new.jwt"])

    async def session() -> str:
        return next(tokens)

    wire = Wire(error(401, code="PGRST301", message="JWT expired"), 3)
    assert await over(wire, access_token=session).conversation("t").acount() == 3
    assert [request.headers["Authorization"] for request in wire.requests] == ["Bearer an.old.jwt", "Bearer a.new.jwt"]


# --- A server that misbehaves, for real


class _Gateway(BaseHTTPRequestHandler):
    """In front of PostgREST: commits, then drops the connection, for the first request of each kind."""

    upstream = ""
    dropped = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {
            k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length", "accept-encoding")
        }
        reply = httpx.post(self.upstream + self.path, content=body, headers=headers)
        if type(self).dropped == 0:
            type(self).dropped += 1
            self.connection.close()
            return
        self.send_response(reply.status_code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply.content)))
        self.end_headers()
        self.wfile.write(reply.content)

    def log_message(self, *_: Any) -> None:
        pass


def test_a_commit_whose_answer_is_lost_is_one_row(data_api: DataApi, user_id: str) -> None:
    handler = type("Gateway", (_Gateway,), {"upstream": data_api.url, "dropped": 0})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with SupabaseMemory.from_url(url, token("service_role"), user_id=user_id, rest_path="", retry=QUICK) as memory:
            result = memory.conversation("t").append([HumanMessage("once")])
            assert (result.sequences, result.appended) == ([0], 0)  # the second try found the first one's row
            assert memory.conversation("t").count() == 1
        server.shutdown()
    assert handler.dropped == 1  # type: ignore[attr-defined]


def test_no_server_no_schema_and_a_wrong_key_are_each_one_clear_error(data_api: DataApi, cluster: Cluster) -> None:
    with (
        SupabaseMemory.from_url(f"http://127.0.0.1:{free_port()}", "key", retry=NO_RETRY) as memory,
        pytest.raises(UnavailableError, match=r"Data API could not be reached \(ConnectError\)"),
    ):
        memory.for_user("u").conversation("t").count()
    with (
        SupabaseMemory.from_url(data_api.url, "no-jwt-and-no-key", rest_path="") as memory,
        pytest.raises(AuthenticationError, match="Check the project's url and key"),
    ):
        memory.for_user("u").conversation("t").count()
    with (
        DataApi(cluster, cluster.create_database()) as api,
        SupabaseMemory.from_url(api.url, token("service_role"), rest_path="") as memory,
        pytest.raises(SchemaMissingError, match="supabase-memory migrate"),
    ):
        memory.for_user("u").conversation("t").count()


@each_case(("url", "key"), [("", "k"), ("abc.supabase.co", "k"), (None, "k"), ("https://x", ""), ("https://x", "a b")])
def test_an_url_or_key_that_is_none_is_refused_when_the_memory_is_made(url: Any, key: Any) -> None:
    with pytest.raises(ConfigurationError, match="API settings"):
        SupabaseMemory.from_url(url, key)


def test_a_connection_string_that_is_none_is_refused_when_the_memory_is_made() -> None:
    for wrong in ("postgresql://user:pass word@@", "nonsense", 7):
        with pytest.raises(ConfigurationError, match="connection string"):
            SupabaseMemory.from_conn_string(wrong)  # type: ignore[arg-type]


def test_a_code_gets_the_class_of_its_longest_prefix() -> None:
    assert type(from_code("42501")) is PermissionDeniedError
    assert type(from_code("42P01")) is SchemaMissingError
    assert type(from_status(503)) is UnavailableError
    assert type(from_code("58030")) is UnavailableError
    assert type(from_code("58P01")) is ConfigurationError
    assert type(from_code("XX001")) is DatabaseError
    assert type(from_code(None)) is DatabaseError


# --- Event loops, threads, closing


def test_a_second_asyncio_run_works_and_leaves_nothing_open(data_api: DataApi, conn_string: str, user_id: str) -> None:
    memories = [
        SupabaseMemory.from_url(data_api.url, token("service_role"), user_id=user_id, rest_path=""),
        SupabaseMemory.from_conn_string(conn_string, user_id=user_id),
    ]

    async def say() -> int:
        return sum([await memory.conversation("t").acount() for memory in memories])

    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        for _ in range(3):
            assert asyncio.run(say()) == 0
        gc.collect()
    for memory in memories:
        inner = memory._services.transport.inner
        assert not inner._clients.asynchronous._held if hasattr(inner, "_clients") else True
        memory.close()


def test_one_memory_serves_twenty_threads(data_api: DataApi, conn_string: str, user_id: str) -> None:
    for memory in (
        SupabaseMemory.from_url(data_api.url, token("service_role"), user_id=user_id, rest_path=""),
        SupabaseMemory.from_conn_string(conn_string, user_id=user_id),
    ):
        with memory, ThreadPoolExecutor(20) as threads:
            list(threads.map(lambda n: memory.conversation(repr(memory)).append([HumanMessage(str(n))]), range(60)))  # noqa: B023
            assert memory.conversation(repr(memory)).count() == 60


async def test_async_calls_do_not_block_the_loop(conn_string: str, data_api: DataApi) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    slow = Call("memory_slow", {})
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            "create or replace function public.memory_slow() returns int language sql as"
            " 'select 1 from pg_sleep(0.3)'; grant execute on function public.memory_slow to service_role"
        )
        connection.execute("notify pgrst, 'reload schema'")
        await asyncio.sleep(1)
        ticking = asyncio.create_task(tick())
        for memory in (
            SupabaseMemory.from_url(data_api.url, token("service_role"), rest_path=""),
            SupabaseMemory.from_conn_string(conn_string),
        ):
            await memory._services.transport.aperform(Call("memory_schema"))  # the pool and the client are open now
            before = ticks
            assert await memory._services.transport.aperform(slow) == 1
            assert ticks - before > 15
            await memory.aclose()
        ticking.cancel()
        connection.execute("drop function public.memory_slow()")


async def test_a_clients_other_color_is_opened_when_it_is_needed(data_api: DataApi, user_id: str) -> None:
    key = token("service_role")
    sync_client = Client(data_api.url, key, ClientOptions(httpx_client=httpx.Client()))
    async_client = AsyncClient(data_api.url, key, AsyncClientOptions(httpx_client=httpx.AsyncClient()))
    for client in (sync_client, async_client):
        client.rest_url = yarl.URL(data_api.url)
        memory = SupabaseMemory.from_client(client, user_id=user_id)
        # A bare PostgREST, no gateway.
        memory._services.transport.inner._clients.endpoint = Endpoint(data_api.url, key, 10)  # type: ignore[attr-defined]
        await memory.conversation(type(client).__name__).aappend([HumanMessage("async")])
        memory.conversation(type(client).__name__).append([HumanMessage("sync")])
        assert await memory.conversation(type(client).__name__).acount() == 2
        await memory.aclose()
        assert not client.postgrest.session.is_closed  # what we did not open stays open
    sync_client.postgrest.session.close()
    await async_client.postgrest.session.aclose()


async def test_a_clients_user_is_kept(data_api: DataApi, user_id: str) -> None:
    headers = {"Authorization": f"Bearer {token(user_id=user_id)}"}
    client = Client(data_api.url, token("anon"), ClientOptions(headers=headers, httpx_client=httpx.Client()))
    client.rest_url = yarl.URL(data_api.url)
    memory = SupabaseMemory.from_client(client)
    memory._services.transport.inner._clients.endpoint = Endpoint(data_api.url, token("anon"), 10)  # type: ignore[attr-defined]
    memory.conversation("t").append([HumanMessage("mine")])
    assert await memory.conversation("t").acount() == 1  # the color that was opened speaks for the same user
    await memory.aclose()
    client.postgrest.session.close()


@pytest.mark.postgres
async def test_a_restarted_server_is_found_again(user_id: str) -> None:
    with Cluster() as cluster:
        from langchain_supabase_memory.adapters.schema.migrate import migrate

        conn_string = cluster.conn_string(cluster.create_database())
        migrate(conn_string)
        async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
            conversation = memory.conversation("t")
            conversation.append([HumanMessage("1")])
            await asyncio.gather(*(memory.conversation(str(n)).aappend([HumanMessage("2")]) for n in range(8)))
            cluster.restart()
            conversation.append([HumanMessage("3")])
            assert await conversation.acount() == 2
            cluster.halt()
            with pytest.raises(UnavailableError):
                SupabaseMemory(PostgresTransport(conn_string, retry=NO_RETRY), user_id=user_id).conversation(
                    "t"
                ).count()
            cluster.resume()
            assert await conversation.acount() == 2


def test_a_killed_writer_leaves_whole_turns(conn_string: str, user_id: str) -> None:
    program = (
        "import sys, itertools\n"
        "from langchain_core.messages import HumanMessage, AIMessage\n"
        "from langchain_supabase_memory import SupabaseMemory\n"
        "memory = SupabaseMemory.from_conn_string(sys.argv[1], user_id=sys.argv[2])\n"
        "for n in itertools.count():\n"
        "    turn = [HumanMessage(f'q{n}', id=f'q{n}'), AIMessage(f'a{n}', id=f'a{n}')]\n"
        "    memory.conversation('t').append(turn)\n"
        "    print(n, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, conn_string, user_id], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = max(int(line) for line, _ in zip(process.stdout, range(20), strict=False))
    process.kill()
    process.wait()
    process.stdout.close()
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        texts = [str(each.message.text) for each in memory.conversation("t").read()]
    turns = len(texts) // 2
    assert turns > acknowledged
    assert texts == [text for n in range(turns) for text in (f"q{n}", f"a{n}")]


def test_keys_and_passwords_are_shown_nowhere() -> None:
    memory = SupabaseMemory.from_url("https://abc.supabase.co", "sb_secret_key").for_token("jwt.of.a-user")
    direct = SupabaseMemory.from_conn_string("postgresql://u:hunter2@127.0.0.1:1/x")
    assert "sb_secret" not in repr(memory)
    assert "jwt" not in repr(memory)
    assert "hunter2" not in repr(direct)


async def test_a_listener_that_is_cancelled_as_it_hears_ends(conn_string: str) -> None:
    """On Python 3.11 psycopg before 3.3.6 lost a cancellation that came in one turn of the loop with an answer."""
    async with SupabaseMemory.from_conn_string(conn_string) as memory:
        with psycopg.connect(conn_string, autocommit=True) as sql:
            for turns in range(5):
                async with asyncio.timeout(20), Wake(memory._services.transport, 0.2) as wake:
                    while not await wake.wait():  # until it listens
                        sql.execute(f"notify {CHANNEL}")
                    sql.execute(f"notify {CHANNEL}")
                    time.sleep(0.1)  # it comes while the loop is busy
                    for _ in range(turns):
                        await asyncio.sleep(0)


@pytest.mark.parametrize("bypassed", [False, True])
async def test_the_proxy_that_the_environment_names_is_used(monkeypatch: pytest.MonkeyPatch, bypassed: bool) -> None:
    asked: list[str] = []

    class Proxying(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"3")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxying) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
        monkeypatch.setenv("no_proxy", "memory.invalid" if bypassed else "elsewhere.invalid")
        memory = SupabaseMemory.from_url("http://memory.invalid", "key", user_id="u", retry=NO_RETRY)
        if bypassed:
            with pytest.raises(SupabaseMemoryError):
                memory.conversation("t").count()
        else:
            assert memory.conversation("t").count() == await memory.conversation("t").acount() == 3
        await memory.aclose()
        proxy.shutdown()
    assert asked == ([] if bypassed else ["http://memory.invalid/rest/v1/rpc/memory_count"] * 2)
