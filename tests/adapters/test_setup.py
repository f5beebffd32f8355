"""A configuration error is raised at the first call; later, or for a user's own token, the agent still answers."""

from __future__ import annotations

import asyncio
import logging
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
import yarl
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from supabase import Client, ClientOptions

from langchain_supabase_memory import (
    LoadContextNode,
    SaveTurnNode,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseMemoryToolkit,
    effects,
    record_stream,
)
from langchain_supabase_memory.agents.run.fail_open import FailOpen, GuardedTask
from langchain_supabase_memory.errors import (
    AuthenticationError,
    ConfigurationError,
    PermissionDeniedError,
    SchemaMissingError,
    SchemaOutdatedError,
    SupabaseMemoryError,
    UnavailableError,
)
from langchain_supabase_memory.settings import NO_RETRY
from langchain_supabase_memory.types import Rollout
from langchain_supabase_memory.worker import cleanup
from tests.chat_models import calls, says
from tests.services.data_api import DataApi, token, verified
from tests.services.postgres import Cluster, free_port

SECRET = "the blue kiln"
CONFIG: Any = {"configurable": {"thread_id": "t"}}
ASKED: Any = {"messages": [HumanMessage(SECRET)]}


@pytest.fixture(scope="module")
def empty(cluster: Cluster) -> str:
    """A project whose database nobody migrated."""
    return cluster.create_database()


@pytest.fixture(scope="module")
def empty_api(cluster: Cluster, empty: str) -> Iterator[DataApi]:
    with DataApi(cluster, empty) as api:
        yield api


@pytest.fixture(scope="module")
def stranger() -> Iterator[str]:
    """A web server that answers whatever it does not understand, as most do."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1000)
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def set_up(
    cluster: Cluster, data_api: DataApi, empty_api: DataApi, empty: str, stranger: str, user_id: str
) -> dict[str, Any]:
    """A memory for each mistake, its class, and the words of the next action."""
    direct, over_http = SupabaseMemory.from_conn_string, SupabaseMemory.from_url
    here: Any = {"user_id": user_id}
    role = cluster.conn_string("postgres", "nobody_of_this_name")
    forged = token("service_role")[:-8] + "AAAAAAAA"
    return {
        "nothing migrated": (direct(cluster.conn_string(empty), **here), SchemaMissingError, "supabase-memory migrate"),
        "nothing migrated, over http": (
            over_http(empty_api.url, token("service_role"), rest_path="", **here),
            SchemaMissingError,
            "supabase-memory migrate",
        ),
        "a wrong user": (direct(role, **here), AuthenticationError, "Check both in the connection string"),
        "no such database": (
            direct(cluster.conn_string("no_such_database"), **here),
            ConfigurationError,
            "Check the last part of the connection string",
        ),
        "no such host": (
            direct("postgresql://u:p@db.nobody.invalid:5432/postgres", **here),
            ConfigurationError,
            "Check the project ref",
        ),
        "no such host, over http": (
            over_http("https://nobody.invalid", "sb_secret_x", **here),
            ConfigurationError,
            "Check the project ref",
        ),
        "a wrong key": (over_http(data_api.url, forged, rest_path="", **here), AuthenticationError, "url and key"),
        "a publishable key alone": (
            over_http(data_api.url, token("anon"), rest_path="", **here),
            PermissionDeniedError,
            "pass the signed-in user's access_token",
        ),
        "no rest_path": (over_http(data_api.url, token("service_role"), **here), ConfigurationError, 'rest_path=""'),
        "http to Postgres": (
            direct(f"postgresql://u:p@{stranger}/postgres", **here),
            ConfigurationError,
            "Check host and port",
        ),
        "TLS where there is none": (
            over_http(f"https://{stranger}", "sb_secret_x", **here),
            ConfigurationError,
            "Begin the url with http://",
        ),
    }


NAMES = [
    "nothing migrated", "nothing migrated, over http", "a wrong user", "no such database", "no such host",
    "no such host, over http", "a wrong key", "a publishable key alone", "no rest_path", "http to Postgres",
    "TLS where there is none",
]  # fmt: skip


def agent(memory: SupabaseMemory, **settings: Any) -> Any:
    return create_agent(says("answered"), [], middleware=[SupabaseMemoryMiddleware(memory, **settings)])


@pytest.mark.parametrize("name", NAMES)
async def test_it_is_raised_at_the_first_call_and_nothing_is_lost(set_up: Any, name: str) -> None:
    assert sorted(set_up) == sorted(NAMES)
    memory, kind, words = set_up[name]
    with memory:
        with pytest.raises(kind, match=words) as caught:
            agent(memory).invoke(ASKED, CONFIG)
        assert SECRET not in str(caught.value)
        assert len(memory._services.outbox) == 1
        with pytest.raises(kind, match=words):
            await agent(memory).ainvoke({"messages": [HumanMessage("again")]}, CONFIG)
        assert len(memory._services.outbox) == 2
        assert [cause.part for cause in memory.health().causes] == ["database"]
        await memory.aclose()


async def test_a_database_of_another_release_is_a_mistake_in_the_set_up(cluster: Cluster, user_id: str) -> None:
    database = cluster.migrated_database()
    cluster.execute("drop function public.memory_append", database=database)
    async with SupabaseMemory.from_conn_string(cluster.conn_string(database), user_id=user_id) as memory:
        for _ in range(2):  # what the database says of its release is no sign that it works
            with pytest.raises(SchemaOutdatedError, match="supabase-memory migrate"):
                await agent(memory).ainvoke(ASKED, CONFIG)


WAYS: dict[str, Callable[[SupabaseMemory], Any]] = {
    "history read": lambda memory: SupabaseChatMessageHistory("t", memory).messages,
    "history write": lambda memory: SupabaseChatMessageHistory("t", memory).add_messages([HumanMessage("x")]),
    "save": lambda memory: SaveTurnNode(memory).invoke(ASKED, CONFIG),
    "load": lambda memory: LoadContextNode(memory).invoke(ASKED, CONFIG),
    "stream": lambda memory: next(record_stream(memory, "q", ["a"], thread_id="t")),
    "tool": lambda memory: SupabaseMemoryToolkit(memory, thread_id="t").get_tools()[0].invoke("kiln"),
    "tools in an agent": lambda memory: create_agent(
        says(calls("get_turn", n=1), "done"), SupabaseMemoryToolkit(memory).get_tools()
    ).invoke(ASKED, CONFIG),
    "with history": lambda memory: RunnableWithMessageHistory(
        ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")]) | says("answered"),
        lambda session_id: SupabaseChatMessageHistory(session_id, memory),
        input_messages_key="input",
        history_messages_key="history",
    ).invoke({"input": "q"}, {"configurable": {"session_id": "t"}}),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_raises_it(cluster: Cluster, empty: str, user_id: str, way: str) -> None:
    with (
        SupabaseMemory.from_conn_string(cluster.conn_string(empty), user_id=user_id) as memory,
        pytest.raises(SchemaMissingError, match="migrate"),
    ):
        WAYS[way](memory)


def test_the_application_may_choose_otherwise(
    cluster: Cluster, empty: str, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    with SupabaseMemory.from_conn_string(cluster.conn_string(empty), user_id=user_id) as memory:
        heard: list[SupabaseMemoryError] = []
        for on_error in ("log", heard.append):
            with caplog.at_level(logging.ERROR, "langchain_supabase_memory"):
                answer = agent(memory, on_error=on_error).invoke({"messages": [HumanMessage(SECRET)]}, CONFIG)
            assert answer["messages"][-1].text == "answered"
            assert "supabase-memory migrate" in caplog.text
            assert SECRET not in caplog.text
        assert {type(error) for error in heard} == {SchemaMissingError}
        get_turn = SupabaseMemoryToolkit(memory, thread_id="t", on_error="log").get_tools()[3]
        assert "migrate" in get_turn.invoke({"n": 1})


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_what_has_worked_is_logged_and_shown_when_it_breaks(
    cluster: Cluster, user_id: str, color: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = cluster.migrated_database()
    async with SupabaseMemory.from_conn_string(cluster.conn_string(database), user_id=user_id) as memory:
        made = agent(memory)

        async def answer(text: str) -> str:
            asked = {"messages": [HumanMessage(text)]}
            given = made.invoke(asked, CONFIG) if color == "sync" else await made.ainvoke(asked, CONFIG)
            return str(given["messages"][-1].text)

        assert await answer("first") == "answered"
        assert memory.health().causes == ()
        cluster.execute("alter schema memory_private rename to gone", database=database)
        with caplog.at_level(logging.ERROR, "langchain_supabase_memory"):
            assert await answer(SECRET) == "answered"
        (cause,) = memory.health().causes
        assert cause.part == "database"
        assert SECRET not in caplog.text
        assert len(memory._services.outbox) == 2
        cluster.execute("alter schema gone rename to memory_private", database=database)
        memory.flush()
        assert [each.message.text for each in memory.conversation("t").read()] == [
            "first", "answered", SECRET, "answered",
        ]  # fmt: skip


def test_a_user_s_own_token_is_never_a_mistake_in_the_set_up(data_api: DataApi, conn_string: str, user_id: str) -> None:
    expired = token("authenticated", user_id, expires_in=-60)
    forged = token("authenticated", user_id)[:-8] + "AAAAAAAA"
    for given in (expired, forged):
        of_project = SupabaseMemory.from_url(data_api.url, token("anon"), rest_path="")
        given_at_once = SupabaseMemory.from_url(data_api.url, token("anon"), rest_path="").for_token(given)
        # Of whom a function names before each call, only messages with an owner wait.
        asked_each_time = of_project.for_token(lambda given=given: given)
        named = {"configurable": {**CONFIG["configurable"], "user_id": user_id}}
        for memory, config in (
            (of_project.for_token(given), CONFIG),
            (given_at_once, CONFIG),
            (asked_each_time, named),
        ):
            with memory:
                answer = agent(memory).invoke({"messages": [HumanMessage("x")]}, config)
                assert answer["messages"][-1].text == "answered"
                assert len(memory._services.outbox) == 2
                assert memory.health().causes == ()
    nobody = SupabaseMemory.from_conn_string(conn_string).for_token(lambda: {"role": "anon", "sub": user_id})
    with nobody:
        assert agent(nobody).invoke(ASKED, CONFIG)["messages"][-1].text == "answered"


def test_a_missing_schema_is_a_mistake_whoever_is_signed_in(empty_api: DataApi, user_id: str) -> None:
    of_project = SupabaseMemory.from_url(empty_api.url, token("anon"), rest_path="")
    with of_project.for_token(token("authenticated", user_id)) as memory, pytest.raises(SchemaMissingError):
        agent(memory).invoke(ASKED, CONFIG)


def test_what_one_user_s_call_has_shown_holds_for_the_next(cluster: Cluster, data_api: DataApi, user_id: str) -> None:
    memory = SupabaseMemory.from_url(data_api.url, token("anon"), rest_path="")
    memory.for_token(token("authenticated", user_id)).conversation("t").count()
    assert memory._services.causes.has_answered
    assert memory.for_token(token("authenticated", f"{user_id}-2"))._services.causes.has_answered
    with SupabaseMemory(
        memory._services.transport, user_id=user_id
    ) as same:  # over the same transport, with a key of no rights
        assert agent(same).invoke(ASKED, CONFIG)["messages"][-1].text == "answered"


def test_an_outage_is_never_a_mistake_in_the_set_up(user_id: str) -> None:
    for memory in (
        SupabaseMemory.from_conn_string(f"postgresql://u:p@127.0.0.1:{free_port()}/x", user_id=user_id, retry=NO_RETRY),
        SupabaseMemory.from_url(f"http://127.0.0.1:{free_port()}", "sb_secret_x", user_id=user_id, retry=NO_RETRY),
    ):
        with memory:
            assert agent(memory).invoke(ASKED, CONFIG)["messages"][-1].text == "answered"
            with pytest.raises(UnavailableError, match="safe to repeat|recovers"):
                memory.conversation("t").count()


async def test_what_runs_beside_an_answer_raises_nothing(
    cluster: Cluster, empty: str, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with SupabaseMemory.from_conn_string(cluster.conn_string(empty), user_id=user_id) as memory:
        guard, key = FailOpen(memory, None, "setup", 5), memory._services.key("t")
        heard: list[SupabaseMemoryError] = []

        def flow() -> Any:
            from langchain_supabase_memory.operations.conversations import count

            return count(key)

        beside = guard.with_listener(heard.append)
        assert effects.run(beside.attempt(flow(), GuardedTask("x"), key)) is None
        assert await effects.arun(beside.attempt(flow(), GuardedTask("x"), key)) is None
        assert [type(error) for error in heard] == [SchemaMissingError] * 2
        with pytest.raises(SchemaMissingError):
            effects.run(guard.with_listener(heard.append, raises=True).attempt(flow(), GuardedTask("x"), key))

        # A node that stores nothing, with the old context from the state: the memory is asked beside it alone.
        node = LoadContextNode(memory, rollout=Rollout(flag=lambda _: "parallel"))
        state = {"messages": [HumanMessage("a"), AIMessage("b"), HumanMessage("c")]}
        for given in (node.invoke(state, CONFIG), await node.ainvoke(state, CONFIG)):
            assert [message.text for message in given["context_messages"]] == ["a", "b", "c"]

        with caplog.at_level(logging.ERROR, "langchain_supabase_memory"), suppress(TimeoutError):
            async with asyncio.timeout(1):
                await cleanup(memory, timedelta(hours=1))
        assert "A clean-up failed" in caplog.text


def test_a_write_whose_error_is_swallowed_is_seen(cluster: Cluster, user_id: str) -> None:
    database = cluster.migrated_database()
    with SupabaseMemory.from_conn_string(cluster.conn_string(database), user_id=user_id) as memory:
        history = SupabaseChatMessageHistory("t", memory)

        def answer(_: Any) -> AIMessage:
            cluster.execute("alter schema memory_private rename to gone", database=database)
            return AIMessage("answered")

        prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])
        runnable = RunnableWithMessageHistory(
            prompt | RunnableLambda(answer),
            lambda _: history,
            input_messages_key="input",
            history_messages_key="history",
        )
        given = runnable.invoke({"input": "q"}, {"configurable": {"session_id": "t"}})
        assert given.text == "answered"
        assert history.pending == 2
        assert isinstance(history.last_error, SupabaseMemoryError)
        assert memory.health().causes[0].code == history.last_error.code


def test_claims_that_were_verified_are_a_user_s(conn_string: str, user_id: str) -> None:
    memory = SupabaseMemory.from_conn_string(conn_string).for_token(verified(token("authenticated", user_id)))
    with memory:
        assert memory._services.causes is not None
        assert agent(memory).invoke(ASKED, CONFIG)["messages"][-1].text == "answered"
        assert memory.conversation("t").count() == 2


@pytest.mark.parametrize("by", ["url", "client"])
def test_a_data_api_that_does_not_expose_public_says_so_and_its_order_is_no_matter(
    cluster: Cluster, user_id: str, by: str
) -> None:
    database = cluster.migrated_database()
    cluster.execute(
        "create schema api; grant usage on schema api to anon, authenticated, service_role", database=database
    )

    @contextmanager
    def memory_over(api: DataApi) -> Iterator[SupabaseMemory]:
        key = token("service_role")
        if by == "url":
            with SupabaseMemory.from_url(api.url, key, rest_path="", user_id=user_id) as memory:
                yield memory
            return
        client = Client(api.url, key, ClientOptions(schema="api"))
        client.rest_url = yarl.URL(api.url)  # a bare PostgREST has no path
        with SupabaseMemory.from_client(client, user_id=user_id) as memory:
            yield memory
        client.postgrest.session.close()

    with DataApi(cluster, database, schemas="api") as api, memory_over(api) as memory:
        with pytest.raises(ConfigurationError, match="does not expose the schema public.*Add public"):
            memory.conversation("t").count()
        assert [each.next_action for each in memory.doctor() if each.state == "red"] == [
            "Add public to the exposed schemas in the project's API settings."
        ]
    with DataApi(cluster, database, schemas="api,public") as api, memory_over(api) as memory:
        memory.conversation("t").append([HumanMessage("hi")])
        assert memory.conversation("t").count() == 1
