"""A missing signed-in user is an error, and never grants more rights."""

from __future__ import annotations

import json
import time
import traceback
from collections import UserDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx
import jwt
import pytest
import yarl
from langchain_core.messages import HumanMessage
from supabase import AsyncClient, AsyncClientOptions, Client, ClientOptions

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.transports.breaker import CLOSED
from langchain_supabase_memory.errors import AuthenticationError, ConfigurationError, SupabaseMemoryError
from langchain_supabase_memory.settings import NO_RETRY
from langchain_supabase_memory.transports import PostgresTransport, SupabaseTransport
from tests.conftest import Caller
from tests.each_case import each_case
from tests.services.data_api import SECRET as SIGNED_BY
from tests.services.data_api import DataApi, token

pytestmark = pytest.mark.both_colors("each way in asks for credentials itself")

SECRET = "canary-5507"


def raising(error: Exception) -> Callable[[], Any]:
    def function() -> Any:
        raise error

    return function


def giving(value: Any) -> Callable[[], Any]:
    return lambda: value


class Odd:
    """What no application means to pass."""

    def __repr__(self) -> str:
        return SECRET


NOBODY: dict[str, Any] = {
    "None": None,
    "empty": "",
    "blank": "  ",
    "bytes": SECRET.encode(),
    "number": 7,
    "true": True,
    "object": Odd(),
    "list": [SECRET],
    "empty mapping": {},
}
"""What is a credential at neither caller."""

NO_TOKEN: dict[str, Any] = {
    **NOBODY,
    "several words": f"Bearer {SECRET}",
    "a line": f"{SECRET}\n",
    "a zero": f"{SECRET}\0",
    "no ASCII": f"{SECRET}é",
    "claims": {"sub": "u", "role": "authenticated"},
}
NO_CLAIMS: dict[str, Any] = {
    **NOBODY,
    "a token": SECRET,
    "no sub": {"role": "authenticated"},
    "no sub and no role": {"email": SECRET},
    "sub None": {"sub": None, "role": "authenticated"},
    "sub empty": {"sub": "", "role": "authenticated"},
    "sub blank": {"sub": " \t", "role": "authenticated"},
    "sub a number": {"sub": 7, "role": "authenticated"},
    "sub a list": {"sub": ["u"]},
    "role a list": {"sub": "u", "role": ["authenticated"]},
    "role a mapping": {"sub": "u", "role": {}},
    "role None": {"sub": "u", "role": None},
    "role empty": {"sub": "u", "role": ""},
    "role of an owner": {"sub": "u", "role": "postgres"},
    "no JSON": {"sub": "u", "exp": datetime(2026, 1, 1, tzinfo=UTC)},
    "not a number": {"sub": "u", "exp": float("nan")},
}
FAILURES: dict[str, Exception] = {
    "RuntimeError": RuntimeError(SECRET),
    "KeyError": KeyError(SECRET),
    "StopIteration": StopIteration(SECRET),
    "TimeoutError": TimeoutError(SECRET),
    "our own": SupabaseMemoryError(SECRET),
}


def bad(kind: str) -> dict[str, Any]:
    return NO_TOKEN if kind == "data_api" else NO_CLAIMS


def functions(kind: str, color: str) -> dict[str, Any]:
    """Functions that give nobody, by name."""
    found: dict[str, Any] = {"takes an argument": lambda _: "jwt"}
    found |= {f"gives {name}": giving(value) for name, value in bad(kind).items()}
    found |= {f"raises {name}": raising(error) for name, error in FAILURES.items()}

    if color == "sync":
        return found

    def awaited(function: Callable[[], Any]) -> Any:
        async def asynchronous() -> Any:
            return function()

        return asynchronous

    twice = {f"async, {name}": awaited(each) for name, each in found.items()}
    return {**found, **twice, "async, gives a function": awaited(giving(lambda: "jwt"))}


@pytest.fixture
async def others(caller: Caller, user_id: str) -> list[str]:
    """Two users who have said something each, which the bare key reads."""
    users = [f"{user_id}-{n}" for n in range(2)]
    for user in users:
        await caller(caller.service.for_user(user).conversation("t").append, [HumanMessage(f"of {user}")])
    return users


async def refuses(caller: Caller, memory: SupabaseMemory, user: str) -> None:
    """Whatever is asked, of whomever, nobody may."""
    theirs = memory.for_user(user).conversation("t")
    for verb in (theirs.read, memory.conversation("t").read, partial(memory.for_user(user).forget_user)):
        with pytest.raises(AuthenticationError) as caught:
            await caller(verb)
        assert_silent(caught.value)
    with pytest.raises(AuthenticationError):
        await caller(theirs.append, [HumanMessage("by nobody")])


def assert_silent(error: AuthenticationError) -> None:
    assert SECRET not in f"{error} {error!r} {error.__dict__}"
    assert error.hint
    assert SECRET not in "".join(traceback.format_exception(error, chain=False))


async def test_the_bare_key_reads_everybody(caller: Caller, others: list[str]) -> None:
    """The control: without this the tests below could not fail."""
    for user in others:
        found = await caller(caller.service.for_user(user).conversation("t").read)
        assert [each.message.text for each in found] == [f"of {user}"]
    assert not caller.service._services.transport.acts_as_user


async def test_a_function_that_gives_nobody_is_an_error(caller: Caller, others: list[str]) -> None:
    failures = functions(caller.kind, caller.color)
    assert len(failures) >= 20
    for name, function in failures.items():
        memory = caller.service.for_token(function)
        assert memory._services.transport.acts_as_user, name
        await refuses(caller, memory, others[0])
    for user in others:
        assert await caller(caller.service.for_user(user).conversation("t").count) == 1
    assert caller.service.health().failures == 0, "the database is not away"


def test_an_async_function_in_a_sync_call_is_a_mistake_of_the_application(caller: Caller, others: list[str]) -> None:
    async def given() -> str:
        return "jwt"

    for function in (given, lambda: given()):
        with pytest.raises(ConfigurationError, match="Use the a… methods"):
            caller.service.for_token(function).for_user(others[0]).conversation("t").read()


async def test_a_credential_that_is_none_is_an_error_when_it_is_given(caller: Caller) -> None:
    for value in bad(caller.kind).values():
        with pytest.raises(AuthenticationError) as caught:
            caller.service.for_token(value)
        assert_silent(caught.value)


async def test_what_a_function_raised_is_chained(caller: Caller) -> None:
    with pytest.raises(AuthenticationError, match="RuntimeError") as caught:
        await caller(caller.service.for_token(raising(error := RuntimeError(SECRET))).conversation("t").read)
    assert caught.value.__cause__ is error
    assert_silent(caught.value)


async def test_whoever_is_signed_in_now_speaks(caller: Caller, others: list[str]) -> None:
    """The same for what is right, so that not everything is refused."""
    present = others[0]

    def signed_in() -> Any:
        if caller.kind == "data_api":
            return token(user_id=present)
        return UserDict({"sub": present, "role": "authenticated"})  # any mapping

    async def asked() -> Any:
        return signed_in()

    for function in (signed_in, asked) if caller.color == "async" else (signed_in,):
        memory = caller.service.for_token(function)
        for present in others:
            found = await caller(memory.conversation("t").read)
            assert [each.message.text for each in found] == [f"of {present}"]
            stranger = next(each for each in others if each != present)
            assert (await caller(memory.for_user(stranger).forget_user)).messages == 0
            assert await caller(caller.service.for_user(stranger).conversation("t").count) == 1


async def test_an_anonymous_role_and_a_servers_need_no_user(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string).for_token({"role": "service_role"}) as memory:
        assert memory.for_user(user_id).conversation("t").count() == 0
        with pytest.raises(SupabaseMemoryError):
            memory.for_token({"role": "anon"}).for_user(user_id).conversation("t").count()


# --- Every constructor that takes a credential


@dataclass
class Made:
    """A constructor, and what it takes."""

    make: Callable[[Any], Any]
    bad: dict[str, Any]


@pytest.fixture
def client() -> Iterator[Client]:
    session = httpx.Client()
    yield Client("http://127.0.0.1:1", "key", ClientOptions(httpx_client=session))
    session.close()


def test_each_constructor_refuses_nobody(client: Client, conn_string: str) -> None:
    asynchronous = AsyncClient("http://127.0.0.1:1", "key", AsyncClientOptions(httpx_client=httpx.AsyncClient()))
    constructors = [
        Made(lambda given: SupabaseMemory.from_url("http://127.0.0.1:1", "key").for_token(given), NO_TOKEN),
        Made(lambda given: SupabaseMemory.from_client(client).for_token(given), NO_TOKEN),
        Made(lambda given: SupabaseMemory.from_client(asynchronous).for_token(given), NO_TOKEN),
        Made(lambda given: SupabaseTransport("http://127.0.0.1:1", "key", access_token=given), NO_TOKEN),
        Made(lambda given: SupabaseTransport.from_client(client, access_token=given, retry=NO_RETRY), NO_TOKEN),
        Made(lambda given: SupabaseMemory.from_conn_string(conn_string).for_token(given), NO_CLAIMS),
        Made(lambda given: PostgresTransport(conn_string, claims=given), NO_CLAIMS),
    ]
    for constructor in constructors:
        for value in constructor.bad.values():
            if value is None:
                continue  # left out: the key itself speaks, or the connection string's role
            with pytest.raises(AuthenticationError) as caught:
                constructor.make(value)
            assert_silent(caught.value)


def bare(memory: SupabaseMemory, data_api: DataApi) -> SupabaseMemory:
    """With no gateway before PostgREST."""
    memory._services.transport.inner._clients.address = data_api.url  # type: ignore[attr-defined]
    return memory


def test_a_client_whose_user_is_nobody_does_not_speak_with_its_key(data_api: DataApi, user_id: str) -> None:
    key = token("service_role")
    for spoken in ("Bearer ", "", "Bearer", "Bearer   "):
        session = httpx.Client()
        client = Client(data_api.url, key, ClientOptions(httpx_client=session, headers={"Authorization": spoken}))
        client.rest_url = yarl.URL(data_api.url)
        with pytest.raises(AuthenticationError):  # the server's, where it looks like a token
            bare(SupabaseMemory.from_client(client), data_api).for_user(user_id).conversation("t").count()
        session.close()
    session = httpx.Client()
    client = Client(data_api.url, key, ClientOptions(httpx_client=session))
    client.rest_url = yarl.URL(data_api.url)
    control = bare(SupabaseMemory.from_client(client), data_api)
    assert control.for_user(user_id).conversation("t").count() == 0
    session.close()


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_a_clients_user_speaks_whatever_the_case_of_the_scheme(data_api: DataApi, user_id: str, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {token(user_id=user_id)}"}
    with httpx.Client() as session:
        client = Client(data_api.url, token("anon"), ClientOptions(httpx_client=session, headers=headers))
        client.rest_url = yarl.URL(data_api.url)
        memory = bare(SupabaseMemory.from_client(client), data_api)
        memory.conversation("t").add_turn("Hello", "Hi.", idempotency_key="hello")
        assert [each.user_id for each in memory.conversations().conversations] == [user_id]


def test_a_function_is_asked_once_for_each_try(data_api: DataApi, user_id: str) -> None:
    asked = []

    def signed_in() -> str:
        asked.append(1)
        return token(user_id=user_id)

    with SupabaseMemory.from_url(data_api.url, token("anon"), rest_path="").for_token(signed_in) as memory:
        assert not asked, "a constructor asks nobody"
        for _ in range(3):
            memory.conversation("t").count()
    assert len(asked) == 3
    assert memory.health().state == CLOSED.state


# --- Claims of wrong types


NOW = int(time.time())
DAY = 86_400
"""In seconds: a suite may run for long after this is imported."""
WRONG_CLAIMS: list[tuple[dict[str, object], str]] = [
    ({"exp": "tomorrow"}, "claim"),
    ({"exp": str(NOW + 100)}, "claim"),
    ({"exp": True}, "claim"),
    ({"exp": [NOW + 100]}, "claim"),
    ({"nbf": "yesterday"}, "claim"),
    ({"iat": "now"}, "claim"),
    ({"sub": 5}, "claim"),
    ({"sub": {"id": "u"}}, "claim"),
    ({"aud": 5}, "claim"),
    ({"role": 5}, "role"),
    ({"role": "nobody"}, "role"),
    ({"role": "postgres"}, "role"),
]


@each_case(("wrong", "words"), WRONG_CLAIMS, ids=range(len(WRONG_CLAIMS)))
def test_a_claim_of_a_wrong_type_is_refused_with_its_reason_at_both_doors(
    data_api: DataApi, conn_string: str, wrong: dict[str, object], words: str
) -> None:
    claims = {"role": "authenticated", "sub": "maya", "exp": NOW + DAY, **wrong}
    signed = jwt.api_jws.encode(json.dumps(claims).encode(), SIGNED_BY, "HS256")
    memory = SupabaseMemory.from_url(data_api.url, token("anon"), rest_path="", retry=NO_RETRY).for_token(signed)
    with memory, pytest.raises(AuthenticationError, match=words) as caught:
        memory.conversation("t").count()
    assert caught.value.hint
    with pytest.raises(AuthenticationError, match="claim") as caught:
        SupabaseMemory.from_conn_string(conn_string).for_token(claims)
    assert caught.value.hint


def test_a_number_that_is_no_date_is_no_claim(conn_string: str) -> None:
    for number in (float("inf"), float("nan"), 10**400, -(10**400)):
        with pytest.raises(AuthenticationError, match="claim exp"):
            SupabaseMemory.from_conn_string(conn_string).for_token({"sub": "maya", "exp": number})
    SupabaseMemory.from_conn_string(conn_string).for_token({"sub": "maya", "exp": NOW + 0.5, "iat": None, "aud": ["a"]})


@each_case(
    ("more", "words"),
    [({"nbf": NOW + DAY}, "not valid yet.*clocks"), ({"iat": NOW + DAY}, "not valid yet.*clocks")],
)
def test_a_token_of_tomorrow_speaks_of_clocks(data_api: DataApi, more: dict[str, object], words: str) -> None:
    signed = token("authenticated", "maya", **more)  # type: ignore[arg-type]
    memory = SupabaseMemory.from_url(data_api.url, token("anon"), rest_path="", retry=NO_RETRY).for_token(signed)
    with memory, pytest.raises(AuthenticationError, match=words):
        memory.conversation("t").count()


def test_a_key_of_another_project_says_so(data_api: DataApi) -> None:
    of_another = jwt.encode(
        {"role": "service_role", "exp": NOW + DAY}, "another-secret-that-is-long-enough-for-it", "HS256"
    )
    with (
        SupabaseMemory.from_url(data_api.url, of_another, rest_path="", user_id="u", retry=NO_RETRY) as memory,
        pytest.raises(AuthenticationError, match="signed by another project"),
    ):
        memory.conversation("t").count()
