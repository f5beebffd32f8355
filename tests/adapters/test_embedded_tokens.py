"""The embedded database takes a user's access token without its signature, and refuses every other token."""

from __future__ import annotations

import base64
import json
import logging
import time
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jwt
import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.transports import credentials, embedded_transport
from langchain_supabase_memory.adapters.transports.credentials import Credential, claimed, subject, token_claims
from langchain_supabase_memory.adapters.transports.embedded_transport import EmbeddedTransport
from langchain_supabase_memory.errors import AuthenticationError, ConfigurationError, TokenExpiredError
from tests.each_case import each_case
from tests.services.data_api import token

SECRET = "canary-8812"
MAYA = {"sub": "maya", "role": "authenticated"}


def unsigned(payload: str | bytes) -> str:
    """A token with this text as its claims."""
    given = payload.encode() if isinstance(payload, str) else payload
    return f"e30.{base64.urlsafe_b64encode(given).decode().rstrip('=')}.c2ln"


def of(**claims: object) -> str:
    return unsigned(json.dumps({**MAYA, "email": SECRET, **claims}))


def signed_in(given: Any) -> EmbeddedTransport:
    """A transport of a user, whose server is never started."""
    return EmbeddedTransport(lambda: pytest.fail("a server is started")).for_token(given)


def credential(given: Any) -> Credential[tuple[str, str]]:
    found = signed_in(given)._claims
    assert found is not None
    return found


async def identity(given: object, color: str) -> tuple[dict[str, Any], str]:
    """The claims and the role with which a call would be made."""
    text, role = credential(given).now() if color == "sync" else await credential(given).anow()
    return json.loads(text), role


def assert_silent(error: AuthenticationError) -> None:
    """Nothing that a person or a log reads shows what is in the token."""
    assert SECRET not in f"{error} {error!r} {error.__dict__}"
    assert SECRET not in "".join(traceback.format_exception(error, chain=True))
    assert error.hint


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """What reads tokens has another clock; no other code has."""
    now = time.time() + seconds
    monkeypatch.setattr(credentials, "time", SimpleNamespace(time=lambda: now))


REFUSED: list[tuple[str, object, str]] = [
    ("expired", of(exp=time.time() - 1), "has expired"),
    ("expired in 1970", of(exp=0), "has expired"),
    ("of a server", of(role="service_role"), "is a server's"),
    ("of a server, without a user", unsigned('{"role": "service_role"}'), "is a server's"),
    ("of an unknown role", of(role="postgres"), "none of Supabase's"),
    ("of no role", of(role=None), "none of Supabase's"),
    ("without sub", unsigned(json.dumps({"role": "authenticated", "email": SECRET})), "name no user"),
    ("sub None", of(sub=None), "name no user"),
    ("sub blank", of(sub=" \t"), "name no user"),
    ("sub a number", of(sub=7), "claim sub"),
    ("sub a list", of(sub=[SECRET]), "claim sub"),
    ("role a list", of(role=["authenticated"]), "claim role"),
    ("exp a text", of(exp=str(time.time() + 60)), "claim exp"),
    ("exp true", of(exp=True), "claim exp"),
    ("exp not a number", of(exp=float("nan")), "claim exp"),
    ("exp infinite", of(exp=float("inf")), "claim exp"),
    ("exp with many digits", of(exp=10**400), "claim exp"),
    ("no JSON", unsigned(SECRET), "cannot be read"),
    ("a list", unsigned(json.dumps([SECRET])), "cannot be read"),
    ("a text", unsigned(json.dumps(SECRET)), "cannot be read"),
    ("nested too deeply", unsigned("[" * 100_000), "cannot be read"),
    ("too many digits", unsigned('{"exp": ' + "9" * 10_000 + "}"), "cannot be read"),
    ("no UTF-8", unsigned(b'{"sub": "\xff"}'), "cannot be read"),
    ("no base64", f"e30.{SECRET.replace('-', '')}a.c2ln", "cannot be read"),
    ("without claims", "e30..c2ln", "cannot be read"),
    ("no JWT", SECRET, "no JWT"),
    ("a key of the project", f"sb_secret_{SECRET}", "key of the project"),
    ("with its scheme", f"Bearer {of()}", "not a token"),
    ("empty", "", "not a token"),
    ("None", None, "not by None"),
    ("bytes", of().encode(), "not by"),
    ("a number", 7, "not by"),
    ("a list of tokens", [of()], "not by"),
]


@each_case(("name", "given", "words"), REFUSED, ids=[name for name, _, _ in REFUSED])
async def test_what_names_no_signed_in_user_is_refused(name: str, given: object, words: str) -> None:
    async def asynchronous() -> object:
        return given

    attempts: list[tuple[object, str]] = [(given, "sync"), (lambda: given, "sync"), (lambda: given, "async")]
    for value, color in [*attempts, (asynchronous, "async")]:
        with pytest.raises(AuthenticationError, match=words) as caught:
            await identity(value, color)
        assert_silent(caught.value)


async def test_a_token_is_its_claims() -> None:
    given = of(exp=time.time() + 60)

    async def asynchronous() -> str:
        return given

    attempts: list[tuple[object, str]] = [(given, "sync"), (given, "async"), (lambda: given, "async")]
    for value, color in [*attempts, (lambda: given, "sync"), (asynchronous, "async")]:
        found, role = await identity(value, color)
        assert (found["sub"], found["email"], role) == ("maya", SECRET, "authenticated")


async def test_claims_are_taken_as_over_a_direct_connection() -> None:
    assert await identity(MAYA, "sync") == (MAYA, "authenticated")
    assert await identity(lambda: {"role": "anon"}, "async") == ({"role": "anon"}, "anon")


async def test_a_token_without_role_or_expiry_is_a_users() -> None:
    assert await identity(unsigned('{"sub": "maya"}'), "sync") == ({"sub": "maya"}, "authenticated")


def test_an_async_function_in_a_sync_call_is_a_mistake_of_the_application() -> None:
    async def given() -> str:
        return of()

    found = credential(given)
    with pytest.raises(ConfigurationError, match="Use the a… methods"):
        found.now()


def test_the_user_is_known_before_a_call_unless_a_function_says_it() -> None:
    assert signed_in(of()).user == "maya"
    assert signed_in(of()).acts_as_user
    assert signed_in(lambda: of()).user is None
    assert signed_in(lambda: of()).identity_is_callback


async def test_a_token_that_expires_after_it_was_passed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = credential(of(exp=time.time() + 60))
    assert found.now() == await found.anow()
    later(monkeypatch, 61)
    with pytest.raises(TokenExpiredError):
        found.now()
    with pytest.raises(TokenExpiredError):
        await found.anow()


def test_claims_that_are_changed_after_they_were_passed_name_the_same_user() -> None:
    given = dict(MAYA)
    found = credential(given)
    given["sub"] = "ken"
    assert json.loads(found.now()[0]) == MAYA


def test_only_the_first_token_of_a_process_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    embedded_transport._warn.cache_clear()
    with caplog.at_level(logging.WARNING):
        signed_in(MAYA)
        assert not caplog.records, "claims are verified by the caller"
        signed_in(of())
        signed_in(of(sub="ken"))
    (warned,) = caplog.records
    assert "does not check the signatures" in warned.message
    assert SECRET not in caplog.text


def test_what_a_token_names_can_be_asked_of_any_text() -> None:
    assert subject(of()) == claimed(json.dumps(MAYA)) == "maya"
    for _, given, words in REFUSED:
        if words in ("cannot be read", "is a server's", "name no user") and given != of(sub=" \t"):
            assert isinstance(given, str)
            assert subject(given) is None
    for text in ("", SECRET, "[]", '"maya"', "[" * 100_000, '{"sub": 7}', '{"sub": ""}'):
        assert claimed(text) is None
    assert token_claims(of())["sub"] == "maya"


async def test_rows_are_those_of_the_token(conn_string: str, user_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row level security holds; the signature is what nobody looks at."""
    users = [f"{user_id}-{number}" for number in range(2)]
    with SupabaseMemory(EmbeddedTransport(conn_string)) as bare:
        for user in users:
            bare.for_user(user).conversation("t").append(f"of {user}")
        forged = jwt.encode({**MAYA, "sub": users[0]}, "a secret of nobody, which is long enough", "HS256")
        given: list[str | Callable[[], str]] = [forged, lambda: forged]
        for memory in map(bare.for_token, given):
            for found in memory.conversation("t").read(), await memory.conversation("t").aread():
                assert [each.message and each.message.text for each in found] == [f"of {users[0]}"]
            assert memory.for_user(users[1]).forget_user().messages == 0
        memory = bare.for_token(token(user_id=users[0], expires_in=60))
        assert memory.conversation("t").count() == 1
        later(monkeypatch, 61)
        with pytest.raises(TokenExpiredError):
            memory.conversation("t").count()
        with pytest.raises(TokenExpiredError):
            await memory.conversation("t").acount()
        assert bare.for_user(users[1]).conversation("t").count() == 1
        await memory.aclose()
