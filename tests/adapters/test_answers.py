"""Malformed answers are rejected at no cost: a proxy in front of the real PostgREST falsifies responses."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any

import psycopg
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_supabase_memory import (
    MemoryConfig,
    SaveTurnNode,
    SummaryPolicy,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.adapters.transports.endpoint import Endpoint
from langchain_supabase_memory.adapters.transports.http_errors import LONGEST_RETRY_AFTER_SECONDS, retry_after_seconds
from langchain_supabase_memory.adapters.transports.postgres import PostgresTransport
from langchain_supabase_memory.adapters.transports.response_shapes import SHAPES, parse, validate
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import (
    AuthenticationError,
    ConfigurationError,
    DatabaseError,
    InvalidInputError,
    SchemaOutdatedError,
    SupabaseMemoryError,
    TooLargeError,
    UnavailableError,
    from_code,
)
from langchain_supabase_memory.settings import NO_RETRY, BreakerPolicy, RetryPolicy
from langchain_supabase_memory.worker import Worker, WorkerPolicy
from tests.chat_models import ScriptedModel, question
from tests.memory_keywords import memory_keywords
from tests.services.data_api import DataApi, token
from tests.services.outages import SEEN
from tests.services.postgres import Cluster
from tests.services.proxy import TRUTH, Lie, Proxy

SECRET = "canary-9142"
QUICK = RetryPolicy(attempts=2, wait_seconds=0.005, max_wait_seconds=0.01, deadline_seconds=5)
PATIENT = BreakerPolicy(failures=100_000)
"""Never opens: what a lie is taken for is looked at, and not what comes of many."""
ANSWER = '{"summary": "What was said."}'
COLORS = pytest.mark.parametrize("color", ["sync", "async"])

HTML = f"<!doctype html><title>{SECRET}</title><p>Please log in".encode()
PAGE = {"Content-Type": "text/html"}


def page(status: int, **headers: str) -> Lie:
    return Lie(f"{status} page", status, {**PAGE, **headers}, HTML, is_forwarded=False)


NO_ANSWERS = [
    Lie("200 page", 200, PAGE, HTML),
    Lie("200 page, not forwarded", 200, PAGE, HTML, is_forwarded=False),
    Lie("page as JSON", 200, body=HTML),
    Lie("cut", body=lambda body: body[: len(body) // 2] if len(body) > 1 else b"[{"),
    Lie("empty", 200, body=b""),
    Lie("blank", 200, body=b" \n"),
    Lie("no content", 204, body=b""),
    Lie("no UTF-8", 200, body=b'{"a": "\xff\xfe\xfa"}'),
    Lie("no gzip", 200, {"Content-Encoding": "gzip"}, b"plain"),
    Lie("deep", 200, body=b"[" * 200_000 + b"]" * 200_000),
    Lie("a long number", 200, body=b"9" * 10_000),
    Lie("another kind", 200, body=f'"{SECRET}"'.encode()),
    Lie("true", 200, body=b"true"),
    Lie("another object", 200, body=f'{{"data": "{SECRET}"}}'.encode()),
    Lie("an error as success", 200, body=b'{"code": "57P01", "message": "no"}'),
]
"""What no function answers; `memory_append` and `memory_count` neither `null` nor `[]`."""
NOTHING = [Lie("null", 200, body=b"null"), Lie("[]", 200, body=b"[]")]

OUTAGES = [
    *(Lie(f"{each.status} {each.code!r}", each.status, body=each.body, is_forwarded=False) for each in SEEN),
    Lie("empty code", 500, body=b'{"code": "", "message": "server closed the connection"}', is_forwarded=False),
    Lie("500 without code", 500, body=b'{"message": "upstream"}', is_forwarded=False),
    Lie("500 with a number", 500, body=b'{"code": 500, "message": "upstream"}', is_forwarded=False),
    Lie("500 that is a list", 500, body=b"[[]]", is_forwarded=False),
    Lie("503 too deep", 503, body=b"[" * 200_000, is_forwarded=False),
    *map(page, (408, 425, 429, 500, 502, 503, 504, 507, 509, *range(520, 528), 529, 530, 598)),
    *(
        Lie(code, 503, body=f'{{"code": "{code}", "message": "{SECRET}"}}'.encode(), is_forwarded=False)
        for code in ("57P03", "08006", "53300", "53200", "58030", "25P04")
    ),
    Lie("dropped", drops="before"),
    Lie("dropped after", drops="after"),
    Lie("dropped in the midst", drops="midst"),
]
ERRORS: list[tuple[Lie, type[SupabaseMemoryError], str]] = [
    (page(404), ConfigurationError, "rest_path"),
    (page(540), ConfigurationError, "paused.*Restore"),
    (page(413), TooLargeError, "less at once, or raise the limit"),
    (page(301, Location=f"https://elsewhere/{SECRET}"), ConfigurationError, "redirect"),
    (page(302), ConfigurationError, "redirect"),
    (page(307), ConfigurationError, "redirect"),
    (page(308), ConfigurationError, "redirect"),
    (page(401), AuthenticationError, "sign-in is in front.*key"),
    (page(403), AuthenticationError, "a firewall or a sign-in"),
    (page(400), DatabaseError, "which proxy"),
    (page(405), ConfigurationError, "no Data API"),
    (page(407), ConfigurationError, "HTTPS_PROXY"),
    (page(431), TooLargeError, "headers"),
    (page(501), ConfigurationError, "no Data API"),
    (page(511), ConfigurationError, "Sign in to the network"),
    (page(418), DatabaseError, "418"),
    (Lie("PGRST106", 406, body=b'{"code": "PGRST106", "message": ""}'), ConfigurationError, "Add public to the exposed"),
    (
        Lie("another schema", 404, body=b'{"code": "PGRST202", "message": "Could not find the function api.memory_count(p_thread_id) in the schema cache"}'),
        ConfigurationError,
        "Add public to the exposed",
    ),
    (Lie("PT413", 413, body=b'{"code": "PT413", "message": "too much", "hint": "send less"}'), TooLargeError, "Too mu"),
    (Lie("PGRST202", 404, body=b'{"code": "PGRST202", "message": ""}'), SchemaOutdatedError, "migrate"),
    (Lie("PGRST125", 404, body=b'{"code": "PGRST125", "message": ""}'), ConfigurationError, "rest_path"),
    (
        Lie("23514", 400, body=f'{{"code": "23514", "message": "new row for relation \\"m\\" violates check constraint \\"m_text_check\\"", "details": "Failing row contains ({SECRET})."}}'.encode()),
        InvalidInputError,
        "its check m_text_check",
    ),
]  # fmt: skip
EVERY = [*NO_ANSWERS, *NOTHING, *OUTAGES, *(lie for lie, _, _ in ERRORS)]


@pytest.fixture(scope="module")
def proxy(data_api: DataApi) -> Iterator[Proxy]:
    with Proxy(data_api.url) as proxy:
        yield proxy


@pytest.fixture
async def through(proxy: Proxy, user_id: str) -> AsyncIterator[Callable[..., SupabaseMemory]]:
    """Makes memories that speak through the proxy, which is truthful again afterwards."""
    made = []

    def make(**settings: Any) -> SupabaseMemory:
        settings = {"user_id": user_id, "retry": QUICK, "breaker": PATIENT, **settings}
        made.append(
            SupabaseMemory.from_url(proxy.url, token("service_role"), rest_path="", **memory_keywords(settings))
        )
        return made[-1]

    proxy.truthful()
    yield make
    proxy.truthful()
    for memory in made:
        await memory.aclose()


async def done(color: str, verb: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a verb, or its async twin."""
    if color == "sync":
        return verb(*arguments, **named)
    return await getattr(verb.__self__, "a" + verb.__name__)(*arguments, **named)  # type: ignore[attr-defined]


def assert_silent(error: BaseException) -> None:
    assert SECRET not in f"{error} {error!r} {error.__dict__}"
    assert SECRET not in "".join(traceback.format_exception(error))


def texts(memory: SupabaseMemory, thread_id: str) -> list[str]:
    return [str(each.message.text) for each in memory.conversation(thread_id).read()]


# --- What each is taken for


@COLORS
async def test_what_is_no_answer_or_an_outage_is_tried_again(through: Any, proxy: Proxy, color: str) -> None:
    memory = through()
    for number, lie in enumerate([*NO_ANSWERS, *NOTHING, *OUTAGES]):
        thread = f"{lie.name} {number}"
        proxy.tells(lie)
        result = await done(color, memory.conversation(thread).append, [HumanMessage("once", id="m")])
        assert result.sequences == [0], lie
        assert [name for _, name in proxy.requests] == [lie.name, "truth"], lie
        assert memory.conversation(thread).count() == 1, lie
        proxy.tells(lie, lie)
        with pytest.raises(UnavailableError) as caught:
            await done(color, memory.conversation(thread).count)
        assert [name for _, name in proxy.requests] == [lie.name] * 2, lie
        assert_silent(caught.value)
        assert "in time" not in str(caught.value), lie  # none of them is a timeout
        assert caught.value.hint


@COLORS
async def test_what_is_an_error_is_told_at_once(through: Any, proxy: Proxy, color: str) -> None:
    memory = through()
    for lie, expected, words in ERRORS:
        proxy.tells(lie)
        with pytest.raises(SupabaseMemoryError) as caught:
            await done(color, memory.conversation("t").count)
        assert type(caught.value) is expected, lie
        assert re.search(words, str(caught.value)), str(caught.value)
        asked = [name for _, name in proxy.requests]
        # That a function is missing is looked into once.
        assert asked in ([lie.name], [lie.name, "truth"]) if lie.name == "PGRST202" else asked == [lie.name], lie
        assert_silent(caught.value)


@COLORS
async def test_what_takes_too_long_says_so(through: Any, proxy: Proxy, color: str) -> None:
    memory = through(retry=NO_RETRY)
    clients = memory._services.transport.inner._clients
    clients.endpoint = Endpoint(clients.address, "key", 0.1)
    proxy.tells(Lie("slow", delay_seconds=0.3))
    with pytest.raises(UnavailableError, match=r"did not answer in time \(ReadTimeout\)"):
        await done(color, memory.conversation("t").count)


@COLORS
async def test_a_true_answer_under_a_wrong_label_is_one(through: Any, proxy: Proxy, color: str) -> None:
    memory = through()
    proxy.tells(Lie("labeled wrongly", 200, PAGE), Lie("with a mark", body=lambda body: b"\xef\xbb\xbf" + body))
    assert await done(color, memory.conversation("t").count) == 0
    assert await done(color, memory.conversation("t").count) == 0
    assert len(proxy.requests) == 2


@COLORS
async def test_what_a_server_asks_to_wait_is_waited(through: Any, proxy: Proxy, color: str) -> None:
    memory = through()
    for status in (429, 503):
        proxy.tells(page(status, **{"Retry-After": "1"}))
        begun = time.monotonic()
        assert await done(color, memory.conversation("t").count) == 0
        assert 1 <= time.monotonic() - begun < 20
    # Longer than the deadline: it is told at once, with the time.
    proxy.tells(page(429, **{"Retry-After": "77"}))
    begun = time.monotonic()
    with pytest.raises(UnavailableError, match="too many requests") as caught:
        await done(color, memory.conversation("t").count)
    assert time.monotonic() - begun < 20
    assert (caught.value.retry_after_seconds, len(proxy.requests)) == (77, 1)


@COLORS
@pytest.mark.parametrize(
    ("status", "code"),
    [*((each.status, each.code) for each in SEEN), (503, "PGRST003"), (500, "57P03"), (429, ""), (409, "40001")],
)
async def test_what_a_server_asks_to_wait_is_told_whatever_code_comes_with_it(
    through: Any, proxy: Proxy, color: str, status: int, code: str
) -> None:
    memory = through()
    body = json.dumps({"code": code, "message": "away", "details": None, "hint": None}).encode()
    proxy.tells(Lie("asks", status, body=body, headers={"Retry-After": "77"}))
    with pytest.raises(UnavailableError) as caught:
        await done(color, memory.conversation("t").count)
    assert caught.value.retry_after_seconds == 77
    assert len(proxy.requests) == 1, "it is longer than the deadline, so nobody asks again"


def test_retry_after_is_seconds_or_a_date() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=60)
    for date in (format_datetime(soon, usegmt=True), soon.strftime("%a, %d %b %Y %H:%M:%S -0000")):
        assert 57 <= (retry_after_seconds(date) or 0) <= 60
    assert retry_after_seconds(format_datetime(soon - timedelta(days=1))) == 0
    assert retry_after_seconds(" 5 ") == 5
    for much in ("99999999", "9" * 400, format_datetime(soon + timedelta(days=9))):
        assert retry_after_seconds(much) == LONGEST_RETRY_AFTER_SECONDS
    for nothing in (None, "", "-5", "1.5", "soon", "nan", "inf", "Wed, 99 Foo 2026 00:00:00 GMT"):
        assert retry_after_seconds(nothing) is None


@COLORS
async def test_only_what_says_that_the_database_is_away_opens_the_circuit(
    through: Any, proxy: Proxy, color: str
) -> None:
    neutral = {"429 page", "deep", "a long number", "503 '53100'", "53200", "58030", "25P04"}
    for lie in EVERY:
        memory = through(retry=NO_RETRY, breaker=BreakerPolicy(failures=1))
        proxy.tells(lie)
        with pytest.raises(SupabaseMemoryError):
            await done(color, memory.conversation("t").count)
        is_away = lie.name not in neutral and lie not in [each for each, _, _ in ERRORS]
        assert memory.health().state == ("open" if is_away else "closed"), lie


# --- The shapes


def a_document(name: str) -> Any:
    """The smallest answer of a function."""
    shape = SHAPES[name]
    parts = {key: a_document(function) for key, function in shape.parts.items()}
    return {**dict.fromkeys(shape.keys), **parts} if shape.kind is dict else shape.kind()


def test_a_shape_is_its_kind_and_its_keys() -> None:
    for name, shape in SHAPES.items():
        right = a_document(name)
        assert validate(name, right) is right
        if shape.or_null:
            assert validate(name, None) is None
        wrong: list[Any] = [{}, [], "", 0, True, 0.5] + ([] if shape.or_null else [None])
        if shape.kind is dict:
            wrong += [{key: part for key, part in right.items() if key != gone} for gone in shape.keys]
            wrong += [{**right, key: {}} for key in shape.parts]
        for document in wrong:
            if type(document) is not shape.kind or shape.keys:
                with pytest.raises(UnavailableError, match=name):
                    validate(name, document)
    assert validate("a_function_of_somebody_else", "anything") == "anything"


def test_a_body_is_parsed_or_no_answer() -> None:
    assert parse(b'{"a": [1, null]}') == {"a": [1, None]}
    with pytest.raises(UnavailableError, match="is nothing"):
        parse(b"  ")
    with pytest.raises(UnavailableError, match="is no JSON"):
        parse(b"{")


# --- The other caller


@pytest.fixture
def direct(cluster: Cluster) -> Iterator[tuple[psycopg.Connection[Any], PostgresTransport]]:
    """A database of its own, where functions may be replaced by ones that lie."""
    conn_string = cluster.conn_string(cluster.migrated_database())
    transport = PostgresTransport(conn_string, retry=QUICK)
    with psycopg.connect(conn_string, autocommit=True) as connection:
        yield connection, transport
    transport.close()


@COLORS
async def test_a_direct_connection_takes_nothing_for_an_answer_either(direct: Any, color: str) -> None:
    connection, transport = direct
    connection.execute("drop function public.memory_schema()")
    connection.execute("create table calls (one int)")

    async def asked(body: str, returns: str = "json") -> Any:
        connection.execute(
            f"create function public.memory_schema() returns {returns} language plpgsql as"
            f" $$begin raise log 'asked'; {body} end$$".encode()
        )
        try:
            return await done(color, transport.perform, Call("memory_schema"))
        finally:
            connection.execute("drop function public.memory_schema()")
            await transport.aclose()

    right = '{"version": "1", "tables": 1, "code": "x", "dimensions": 3}'
    assert (await asked(f"return '{right}';"))["dimensions"] == 3
    deep = "repeat('[', 5000) || repeat(']', 5000)"
    for body in ("return null;", "return '[]';", "return '{}';", f"return {deep};", "return repeat('9', 5000);"):
        with pytest.raises(UnavailableError) as caught:
            await asked(body)
        assert caught.value.is_away == ("repeat" not in body)
    for code, expected in {
        "57P01": UnavailableError, "57P02": UnavailableError, "57P03": UnavailableError, "08006": UnavailableError,
        "53300": UnavailableError, "PT413": TooLargeError, "23514": InvalidInputError,
    }.items():  # fmt: skip
        with pytest.raises(SupabaseMemoryError) as raised:
            await asked(f"raise exception 'too much' using errcode = '{code}', constraint = 'a_check', hint = 'less';")
        assert type(raised.value) is expected
        assert raised.value.code == code
        if code == "23514":
            assert "its check a_check" in str(raised.value)


async def test_what_a_check_refuses_names_it_at_both_doors_and_not_the_row(
    direct: Any, through: Any, conn_string: str
) -> None:
    name = "conversation_messages_canary_check"
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            f"alter table memory.conversation_messages add constraint {name} check (text <> '{SECRET}') not valid".encode()
        )
        try:
            with SupabaseMemory.from_conn_string(conn_string, user_id="u") as other:
                for memory in (through(), other):
                    with pytest.raises(InvalidInputError, match=name) as caught:
                        memory.conversation("t").append([HumanMessage(SECRET)])
                    assert_silent(caught.value)
        finally:
            connection.execute(f"alter table memory.conversation_messages drop constraint {name}".encode())


def test_no_message_speaks_of_time_where_none_ran_out() -> None:
    for code in ("40001", "40P01", "08006", "53300", "53100", "57P01", "57P03", "PGRST000", "PGRST001"):
        assert isinstance(from_code(code), UnavailableError)
        assert "time" not in str(from_code(code))


# --- Nothing is lost: what is said while the proxy lies is stored once, in order, when it is truthful again

WRITES = ["memory_append"]


def lies() -> list[Lie]:
    """One of each sort, for what takes longer to try."""
    named = {lie.name: lie for lie in EVERY}
    some = ("200 page", "cut", "empty", "null", "deep", "another object", "400 ''", "521 page", "dropped after",
            "404 page", "413 page", "540 page", "401 page", "PT413", "23514", "dropped in the midst", "302 page")  # fmt: skip
    return [named[name] for name in some]


def turn(name: str) -> list[Any]:
    return [HumanMessage(f"q {name}"), AIMessage(f"a {name}")]


@COLORS
async def test_a_history_keeps_the_turn_whatever_is_raised(
    through: Any, proxy: Proxy, color: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory = through()
    for lie in EVERY:
        name = lie.name
        history = SupabaseChatMessageHistory(name, memory)
        proxy.always(lie)
        try:
            await done(color, history.add_messages, turn("1"))
        except InvalidInputError:
            assert name == "23514"
        assert history.pending == 2, lie
        assert history.last_error is not None
        proxy.truthful()
        await done(color, history.add_messages, turn("2"))
        assert history.pending == 0, lie
        assert history.last_error is None, lie
        assert texts(memory, name) == ["q 1", "a 1", "q 2", "a 2"], lie
    assert SECRET not in caplog.text


@COLORS
async def test_a_history_keeps_the_turn_when_what_fails_is_not_ours(
    through: Any, color: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As a mistake of ours would be, in whatever becomes of an answer."""
    memory = through()
    transport = memory._services.transport.inner
    for error in (TypeError(SECRET), KeyError(SECRET), RecursionError(SECRET), ValueError(SECRET), OSError(SECRET)):
        history = SupabaseChatMessageHistory(type(error).__name__, memory)
        raising = SupabaseChatMessageHistory(type(error).__name__, memory, on_error="raise")

        def fails(*_: Any, error: Exception = error) -> Any:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(transport, "_perform_once", fails)
            patch.setattr(transport, "_aperform_once", fails)
            await done(color, history.add_messages, turn("1"))
            assert type(error).__name__ in str(history.last_error)
            with pytest.raises(SupabaseMemoryError) as caught:
                await done(color, raising.add_messages, turn("2"))
            assert_silent(caught.value)
            assert [message.text for message in history.messages] == ["q 1", "a 1", "q 2", "a 2"]
        assert history.pending == 4
        assert memory.flush() == 0
        assert texts(memory, type(error).__name__) == ["q 1", "a 1", "q 2", "a 2"]
    assert SECRET not in caplog.text


@COLORS
async def test_a_history_is_cleared_when_the_database_has_forgotten_and_not_before(
    through: Any, proxy: Proxy, color: str
) -> None:
    memory = through()
    history = SupabaseChatMessageHistory("s", memory)
    await done(color, history.add_messages, turn("1"))
    proxy.always(page(503))
    await done(color, history.add_messages, turn("2"))
    assert history.pending == 2
    with pytest.raises(UnavailableError):
        await done(color, history.clear)
    assert history.pending == 2, "nothing was forgotten, so nothing may be lost"
    proxy.truthful()
    assert memory.flush() == 0
    assert texts(memory, "s") == ["q 1", "a 1", "q 2", "a 2"]
    proxy.always(page(503))
    await done(color, history.add_messages, turn("3"))
    proxy.truthful()
    await done(color, history.clear)
    assert (history.pending, memory.flush(), texts(memory, "s")) == (0, 0, [])


@COLORS
async def test_what_is_refused_for_good_holds_nothing_else_back(
    through: Any, conn_string: str, user_id: str, color: str
) -> None:
    """A message that the database will never take waits, while the others of its conversation and all others pass."""
    memory = through()
    name = "conversation_messages_refusal_check"
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            f"alter table memory.conversation_messages add constraint {name}"
            f" check (user_id <> '{user_id}' or text <> 'refused') not valid".encode()
        )
        try:
            history = SupabaseChatMessageHistory("s", memory)
            with pytest.raises(InvalidInputError, match=name):
                await done(color, history.add_messages, [HumanMessage("refused"), AIMessage("a 1")])
            assert history.pending == 2
            await done(color, history.add_messages, turn("2"))
            assert history.pending == 1
            assert texts(memory, "s") == ["a 1", "q 2", "a 2"]
            other = memory._services.key("another")
            memory._services.outbox.keep(other, [HumanMessage("waits", id="w")])
            with pytest.raises(InvalidInputError, match=name):
                await done(color, memory.flush)
            assert (len(memory._services.outbox), texts(memory, "another")) == (1, ["waits"])
        finally:
            connection.execute(f"alter table memory.conversation_messages drop constraint {name}".encode())
    assert await done(color, memory.flush) == 0
    assert texts(memory, "s") == ["a 1", "q 2", "a 2", "refused"]


@COLORS
async def test_what_waits_and_is_too_large_at_once_goes_one_by_one(through: Any, proxy: Proxy, color: str) -> None:
    memory = through()
    history = SupabaseChatMessageHistory("s", memory)
    proxy.always(page(503))
    for number in range(4):
        await done(color, history.add_messages, turn(str(number)))
    proxy.tells(page(413))
    await done(color, history.add_messages, turn("4"))
    assert history.pending == 0
    assert texts(memory, "s") == [f"{who} {number}" for number in range(5) for who in "qa"]


def echo(value: Any) -> AIMessage:
    return AIMessage(f"heard {question(value)}")


class State(MessagesState):
    summarized_messages: list[Any]


def with_history(memory: SupabaseMemory) -> Any:
    return RunnableWithMessageHistory(RunnableLambda(echo), partial(SupabaseChatMessageHistory, memory=memory))


def agent(memory: SupabaseMemory) -> Any:
    model = ScriptedModel(script=lambda shown: f"heard {question(shown)}")
    return create_agent(model, [], middleware=[SupabaseMemoryMiddleware(memory)], checkpointer=InMemorySaver())


def graph(memory: SupabaseMemory) -> Any:
    builder = StateGraph(State)
    builder.add_node("summarize", SupabaseSummarizationNode(memory))
    builder.add_node("model", lambda state: {"messages": [echo(state["messages"])]})
    builder.add_node("save", SaveTurnNode(memory))
    for source, target in ((START, "summarize"), ("summarize", "model"), ("model", "save"), ("save", END)):
        builder.add_edge(source, target)
    return builder.compile(checkpointer=InMemorySaver())


WAYS: dict[str, Callable[[SupabaseMemory], Any]] = {"history": with_history, "agent": agent, "nodes": graph}


async def said(color: str, way: str, runnable: Any, thread: str, text: str) -> None:
    """Say something; the answer comes, whatever the memory does."""
    message = [HumanMessage(text)]
    given = message if way == "history" else {"messages": message}
    config = {"configurable": {"session_id": thread, "thread_id": thread}}
    result = runnable.invoke(given, config) if color == "sync" else await runnable.ainvoke(given, config)
    answer = result if way == "history" else result["messages"][-1]
    assert answer.text == f"heard {text}"


def both(numbers: Sequence[str]) -> list[str]:
    return [text for number in numbers for text in (number, f"heard {number}")]


@COLORS
@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_comes_and_its_turn_is_stored_once(
    through: Any, proxy: Proxy, color: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory = through()
    runnable = WAYS[way](memory)
    for lie in lies():
        if lie.name == "23514" and way != "history":
            continue  # an InvalidInputError is raised there: a mistake of the caller's
        proxy.truthful()
        await said(color, way, runnable, lie.name, "1")
        proxy.always(lie)
        await said(color, way, runnable, lie.name, "2")
        assert len(memory._services.outbox) > 0, lie
        proxy.truthful()
        await said(color, way, runnable, lie.name, "3")
        assert memory.flush() == 0
        assert texts(memory, lie.name) == both(["1", "2", "3"]), lie
    assert SECRET not in caplog.text


@COLORS
@pytest.mark.parametrize("way", WAYS)
async def test_at_random_nothing_is_lost_doubled_or_reordered(
    through: Any, proxy: Proxy, color: str, way: str, fuzz: int
) -> None:
    chance = random.Random(f"{color} {way}")
    among = [lie for lie in EVERY if lie.name != "23514"]
    for run in range(2 * fuzz):
        memory = through(breaker=BreakerPolicy(failures=3, wait_seconds=0.001, max_wait_seconds=0.01))
        runnable = WAYS[way](memory)
        thread = f"{way} {color} {run}"
        proxy.truthful()
        memory.conversation(thread).count()  # from here on no failure is taken for a mistake in the set-up
        for number in range(12):
            proxy.tells(*chance.choices(among, k=chance.randrange(6)))
            if chance.random() < 0.2:
                proxy.always(chance.choice(among), chance.choice([None, WRITES]))
            await said(color, way, runnable, thread, str(number))
        proxy.truthful()
        time.sleep(0.02)  # until the circuit lets a call pass
        assert memory.flush() == 0
        assert texts(memory, thread) == both([str(number) for number in range(12)]), thread


# --- A worker


@pytest.fixture
def apart(cluster: Cluster) -> Iterator[Proxy]:
    """A database where nobody else's work is, its PostgREST, and the proxy."""
    with DataApi(cluster, cluster.migrated_database()) as api, Proxy(api.url) as proxy:
        yield proxy


async def test_a_worker_goes_on_and_leaves_nothing_undone(apart: Proxy, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(7)
    memory = SupabaseMemory.from_url(
        apart.url, token("service_role"), rest_path="", user_id="u", retry=NO_RETRY, model=lambda _: ANSWER,
        config=MemoryConfig(policy=SummaryPolicy(messages=4, keep_messages=1, attempts=1, mode="background", min_quality=None), breaker=BreakerPolicy(failures=3, wait_seconds=0.01, max_wait_seconds=0.05)),
    )  # fmt: skip
    policy = WorkerPolicy(
        poll_seconds=0.05, debounce_seconds=0.0, retry_seconds=0.1, lease_seconds=1.0, max_attempts=99
    )
    for number in range(4):
        memory.conversation(str(number)).append([HumanMessage(f"{number} {place}") for place in range(9)])
    among = [*NO_ANSWERS, *OUTAGES, *(lie for lie, _, _ in ERRORS)]
    with caplog.at_level(logging.DEBUG, logger="langchain_supabase_memory"):  # httpcore's own shows headers
        worker = Worker(memory, policy=policy)
        working = asyncio.create_task(worker.run())
        apart.liar = lambda _: chance.choice(among) if chance.random() < 0.5 and worker._has_begun else TRUTH
        await asyncio.sleep(1.5)
        assert not working.done()
        apart.truthful()
        for _ in range(200):
            await asyncio.sleep(0.05)
            if (await memory.work.aqueue()).depth == 0:
                break
        else:
            pytest.fail(f"something was left undone: {await memory.work.aqueue()} {await memory.work.astatus()}")
        worker.stop()
        await working
    states = await memory.work.astatus()
    assert [each.summarized_through for each in states] == [7] * 4
    assert [each.board_through for each in states] == [8] * 4
    assert SECRET not in caplog.text
    await memory.aclose()
