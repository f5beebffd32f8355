"""What is under the verbs: errors, retries, event loops, closing, and the Supabase client's edge."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import httpx
import psycopg
import pytest
import yarl
from langchain_core.messages import HumanMessage
from postgrest.exceptions import APIError
from supabase import AsyncClient, AsyncClientOptions, Client, ClientOptions

from langchain_supabase_memory import PostgresTransport, RetryPolicy, SupabaseMemory, SupabaseTransport
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
)
from langchain_supabase_memory.flow import Call
from langchain_supabase_memory.settings import NO_RETRY
from tests.services.data_api import DataApi, token
from tests.services.postgres import Cluster, free_port

SECRET = "the user's secret words"
QUICK = RetryPolicy(attempts=3, wait_seconds=0.01, deadline_seconds=5)


# --- The client's edge, held with a mock of the client itself


def mocked(*outcomes: Any) -> tuple[AsyncClient, MagicMock]:
    """A client whose requests end as told, and the request that it makes."""
    client = AsyncMock(spec=AsyncClient)
    client.supabase_url, client.supabase_key = "http://127.0.0.1:1", "key"
    client.options = AsyncClientOptions()
    client.postgrest = MagicMock()
    request = MagicMock()
    request.request.headers = {}
    request.execute = AsyncMock(side_effect=outcomes)
    client.rpc = MagicMock(return_value=request)
    return client, request


def over(client: AsyncClient, **settings: Any) -> SupabaseMemory:
    transport = SupabaseTransport("http://127.0.0.1:1", "key", async_client=client, **{"retry": QUICK, **settings})
    return SupabaseMemory(transport, user_id="u")


def answer(data: Any) -> MagicMock:
    return MagicMock(data=data)


async def test_one_append_is_one_request() -> None:
    client, request = mocked(answer({"conversation_id": "c", "sequences": [0], "appended": 1, "updated": []}))
    await over(client, access_token="jwt").aappend([HumanMessage("hi", id="m")], thread_id="t", agent_id="a")
    client.rpc.assert_called_once()  # type: ignore[attr-defined]
    function, arguments = client.rpc.call_args.args  # type: ignore[attr-defined]
    assert function == "memory_append"
    assert (arguments["p_thread_id"], arguments["p_user_id"], arguments["p_agent_id"]) == ("t", "u", "a")
    assert [row["id"] for row in arguments["p_messages"]] == ["m"]
    assert request.request.headers == {"Authorization": "Bearer jwt"}


async def test_a_read_asks_for_its_bounds() -> None:
    client, request = mocked(answer([]))
    assert await over(client).aread(thread_id="t", last=5, columns=["text"]) == []
    arguments = client.rpc.call_args.args[1]  # type: ignore[attr-defined]
    assert (arguments["p_last"], arguments["p_columns"], arguments["p_since"]) == (5, ["text"], None)
    assert request.request.headers == {}  # without a token the client's own headers speak


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("Server disconnected"),
        APIError({"message": "upstream", "code": None}),
        APIError({"message": "JSON could not be generated", "code": 503, "details": SECRET}),
        APIError({"message": "timeout", "code": "57014", "details": SECRET}),
        APIError({"message": "deadlock", "code": "40P01"}),
        APIError({"message": "pool", "code": "PGRST003"}),
    ],
)
async def test_what_may_pass_is_tried_again_and_then_told(failure: Exception) -> None:
    client, request = mocked(failure, failure, answer(7))
    assert await over(client).acount(thread_id="t") == 7
    client, request = mocked(failure, failure, failure)
    with pytest.raises(UnavailableError, match="safe to repeat") as caught:
        await over(client).acount(thread_id="t")
    assert request.execute.await_count == 3
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"code": "42501", "message": f"new row violates {SECRET}"}, PermissionDeniedError),
        ({"code": "23505", "message": "duplicate", "details": f"Key ({SECRET})"}, InvalidInputError),
        ({"code": "22P05", "message": SECRET}, InvalidInputError),
        ({"code": "PGRST301", "message": "JWSError"}, AuthenticationError),
        ({"code": "PGRST301", "message": "JWT expired"}, TokenExpiredError),
        ({"code": "PGRST303", "message": "JWT expired"}, TokenExpiredError),
        ({"code": None, "message": "Invalid API key", "hint": "Double check"}, AuthenticationError),
        ({"code": 404, "message": "JSON could not be generated", "details": "<html>"}, ConfigurationError),
        ({"code": "XX000", "message": SECRET}, DatabaseError),
        ({"code": "PT400", "message": "no user id", "hint": "pass user_id"}, InvalidInputError),
    ],
)
async def test_what_will_not_pass_is_told_at_once_without_content(
    error: dict[str, Any], expected: type[SupabaseMemoryError], caplog: pytest.LogCaptureFixture
) -> None:
    client, request = mocked(APIError({"hint": None, "details": None, **error}))
    with caplog.at_level(logging.DEBUG), pytest.raises(SupabaseMemoryError) as caught:
        await over(client).acount(thread_id="t")
    assert type(caught.value) is expected
    assert request.execute.await_count == 1
    assert SECRET not in f"{caught.value!r} {caught.value} {caplog.text}"
    assert caught.value.hint


async def test_the_deadline_ends_the_tries() -> None:
    client, request = mocked(*[httpx.ConnectError("refused")] * 50)
    with pytest.raises(UnavailableError):
        policy = RetryPolicy(attempts=50, deadline_seconds=0.0, wait_seconds=0.01)
        await over(client, retry=policy).acount(thread_id="t")
    assert request.execute.await_count == 1


async def test_the_deadline_begins_with_the_first_try() -> None:
    client, request = mocked()

    async def slow() -> None:
        await asyncio.sleep(0.2)
        raise httpx.ReadTimeout("slow")

    request.execute.side_effect = slow
    with pytest.raises(UnavailableError):
        policy = RetryPolicy(attempts=50, deadline_seconds=0.15, wait_seconds=0.01)
        await over(client, retry=policy).acount(thread_id="t")
    assert request.execute.await_count == 1


async def test_a_client_that_was_passed_is_never_closed() -> None:
    client, _ = mocked(answer(1))
    memory = over(client)
    await memory.acount(thread_id="t")
    await memory.aclose()
    client.postgrest.aclose.assert_not_called()  # type: ignore[attr-defined]


async def test_an_expired_token_is_asked_for_once_more_if_it_can_be() -> None:
    expired = APIError({"code": "PGRST301", "message": "JWT expired", "hint": None, "details": None})
    tokens = iter(["old", "new"])

    async def session() -> str:
        return next(tokens)

    client, request = mocked(expired, answer(3))
    assert await over(client, access_token=session).acount(thread_id="t") == 3
    assert request.request.headers["Authorization"] == "Bearer new"


def test_an_async_token_function_in_a_sync_call_says_so() -> None:
    async def session() -> str:
        return "jwt"

    memory = SupabaseMemory.from_url("http://127.0.0.1:1", "key", access_token=session)
    with pytest.raises(ConfigurationError, match="Use the a… methods"):
        memory.count(thread_id="t")


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
            result = memory.append([HumanMessage("once")], thread_id="t")
            assert (result.sequences, result.appended) == ([0], 0)  # the second try found the first one's row
            assert memory.count(thread_id="t") == 1
        server.shutdown()
    assert handler.dropped == 1  # type: ignore[attr-defined]


def test_no_server_no_schema_and_a_wrong_key_are_each_one_clear_error(data_api: DataApi, cluster: Cluster) -> None:
    with (
        SupabaseMemory.from_url(f"http://127.0.0.1:{free_port()}", "key", retry=NO_RETRY) as memory,
        pytest.raises(UnavailableError, match=r"Data API could not be reached \(ConnectError\)"),
    ):
        memory.count(thread_id="t", user_id="u")
    with (
        SupabaseMemory.from_url(data_api.url, "no-jwt-and-no-key", rest_path="") as memory,
        pytest.raises(AuthenticationError, match="Check the project's url and key"),
    ):
        memory.count(thread_id="t", user_id="u")
    api = DataApi(cluster, cluster.create_database())
    try:
        with (
            SupabaseMemory.from_url(api.start().url, token("service_role"), rest_path="") as memory,
            pytest.raises(SchemaMissingError, match="supabase-memory migrate"),
        ):
            memory.count(thread_id="t", user_id="u")
    finally:
        api.stop()


@pytest.mark.parametrize(
    ("url", "key"), [("", "k"), ("abc.supabase.co", "k"), (None, "k"), ("https://x", ""), ("https://x", "a b")]
)
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
    assert type(from_code("503")) is UnavailableError
    assert type(from_code("58030")) is DatabaseError
    assert type(from_code(None)) is DatabaseError


# --- Event loops, threads, closing


def test_a_second_asyncio_run_works_and_leaves_nothing_open(data_api: DataApi, conn_string: str, user_id: str) -> None:
    memories = [
        SupabaseMemory.from_url(data_api.url, token("service_role"), user_id=user_id, rest_path=""),
        SupabaseMemory.from_conn_string(conn_string, user_id=user_id),
    ]

    async def say() -> int:
        return sum([await memory.acount(thread_id="t") for memory in memories])

    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        for _ in range(3):
            assert asyncio.run(say()) == 0
        gc.collect()
    for memory in memories:
        inner = memory.transport.inner  # type: ignore[attr-defined]
        assert not inner._clients.asynchronous._held if hasattr(inner, "_clients") else True
        memory.close()


def test_one_memory_serves_twenty_threads(data_api: DataApi, conn_string: str, user_id: str) -> None:
    for memory in (
        SupabaseMemory.from_url(data_api.url, token("service_role"), user_id=user_id, rest_path=""),
        SupabaseMemory.from_conn_string(conn_string, user_id=user_id),
    ):
        with memory, ThreadPoolExecutor(20) as threads:
            list(threads.map(lambda n: memory.append([HumanMessage(str(n))], thread_id=repr(memory)), range(60)))  # noqa: B023
            assert memory.count(thread_id=repr(memory)) == 60


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
            await memory.transport.aperform(Call("memory_schema"))  # the pool and the client are open now
            before = ticks
            assert await memory.transport.aperform(slow) == 1
            assert ticks - before > 15
            await memory.aclose()
        ticking.cancel()
        connection.execute("drop function public.memory_slow()")


async def test_a_clients_other_colour_is_opened_when_it_is_needed(data_api: DataApi, user_id: str) -> None:
    key = token("service_role")
    sync_client = Client(data_api.url, key, ClientOptions(httpx_client=httpx.Client()))
    async_client = AsyncClient(data_api.url, key, AsyncClientOptions(httpx_client=httpx.AsyncClient()))
    for client in (sync_client, async_client):
        client.rest_url = yarl.URL(data_api.url)
        memory = SupabaseMemory.from_client(client, user_id=user_id)
        memory.transport.inner._clients.address = data_api.url  # type: ignore[attr-defined]  # a bare PostgREST, no gateway
        await memory.aappend([HumanMessage("async")], thread_id=type(client).__name__)
        memory.append([HumanMessage("sync")], thread_id=type(client).__name__)
        assert await memory.acount(thread_id=type(client).__name__) == 2
        await memory.aclose()
        assert not client.postgrest.session.is_closed  # what we did not open stays open
    sync_client.postgrest.session.close()
    await async_client.postgrest.session.aclose()


async def test_a_clients_user_is_kept(data_api: DataApi, user_id: str) -> None:
    headers = {"Authorization": f"Bearer {token(user_id=user_id)}"}
    client = Client(data_api.url, token("anon"), ClientOptions(headers=headers, httpx_client=httpx.Client()))
    client.rest_url = yarl.URL(data_api.url)
    memory = SupabaseMemory.from_client(client)
    memory.transport.inner._clients.address = data_api.url  # type: ignore[attr-defined]
    memory.append([HumanMessage("mine")], thread_id="t")
    assert await memory.acount(thread_id="t") == 1  # the colour that was opened speaks for the same user
    await memory.aclose()
    client.postgrest.session.close()


async def test_a_restarted_server_is_found_again(user_id: str) -> None:
    cluster = Cluster().start()
    try:
        from langchain_supabase_memory.schema.migrate import migrate

        conn_string = cluster.conn_string(cluster.create_database())
        migrate(conn_string)
        async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
            memory.append([HumanMessage("1")], thread_id="t")
            await asyncio.gather(*(memory.aappend([HumanMessage("2")], thread_id=str(n)) for n in range(8)))
            cluster.restart()
            memory.append([HumanMessage("3")], thread_id="t")
            assert await memory.acount(thread_id="t") == 2
            cluster.halt()
            with pytest.raises(UnavailableError):
                SupabaseMemory(PostgresTransport(conn_string, retry=NO_RETRY), user_id=user_id).count(thread_id="t")
            cluster.resume()
            assert await memory.acount(thread_id="t") == 2
    finally:
        cluster.stop()


def test_a_killed_writer_leaves_whole_turns(conn_string: str, user_id: str) -> None:
    program = (
        "import sys, itertools\n"
        "from langchain_core.messages import HumanMessage, AIMessage\n"
        "from langchain_supabase_memory import SupabaseMemory\n"
        "memory = SupabaseMemory.from_conn_string(sys.argv[1], user_id=sys.argv[2])\n"
        "for n in itertools.count():\n"
        "    memory.append([HumanMessage(f'q{n}', id=f'q{n}'), AIMessage(f'a{n}', id=f'a{n}')], thread_id='t')\n"
        "    print(n, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, conn_string, user_id], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = max(int(line) for line, _ in zip(process.stdout, range(20), strict=False))
    process.kill()
    process.wait()
    process.stdout.close()
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        texts = [str(each.message.text) for each in memory.read(thread_id="t") if each.message]
    turns = len(texts) // 2
    assert turns > acknowledged
    assert texts == [text for n in range(turns) for text in (f"q{n}", f"a{n}")]


def test_keys_and_passwords_are_shown_nowhere() -> None:
    memory = SupabaseMemory.from_url("https://abc.supabase.co", "sb_secret_key", access_token="jwt-of-a-user")
    direct = SupabaseMemory.from_conn_string("postgresql://u:hunter2@127.0.0.1:1/x")
    assert "sb_secret" not in repr(memory)
    assert "jwt" not in repr(memory)
    assert "hunter2" not in repr(direct)
