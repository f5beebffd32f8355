"""The MCP server over HTTP: sign-in, accepted tokens, and isolation of two users."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import httpx2
import jwt
import pytest
import uvicorn
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.errors import ConfigurationError, UnavailableError
from langchain_supabase_memory.mcp.http_app import AuthSite, app, own_address
from langchain_supabase_memory.mcp.request_memory import ServerOptions
from langchain_supabase_memory.mcp.sessions import MAX_SESSIONS
from langchain_supabase_memory.mcp.tokens import ALGORITHMS, SigningKeys
from tests.adapters.test_breaker import Clock
from tests.cli.running import PROGRAM, refused, surroundings
from tests.mcp.conftest import EVERY, FOUND, MODES, READING, YES, Person, failed, result_text
from tests.services.data_api import SECRET, token
from tests.services.postgres import free_port
from tests.services.project import PUBLISHABLE, Key, Project

Ask = dict[str, str]


@asynccontextmanager
async def serving(
    project: Project, *, pause: float = 0.0, clock: Callable[[], float] = time.monotonic, **options: Any
) -> AsyncIterator[str]:
    """A server for the project's users, on a port of this machine: its address."""
    port = free_port()
    site = AuthSite(issuer=project.issuer, address=f"http://127.0.0.1:{port}/mcp")
    keys = SigningKeys(site.keys, pause_seconds=pause, clock=clock)
    await keys.load()
    async with SupabaseMemory.from_url(project.url, PUBLISHABLE, model=None) as shared:
        made = app(shared, site, ServerOptions(**options), keys=keys)
        server = uvicorn.Server(uvicorn.Config(made, port=port, log_level="warning"))
        task = asyncio.create_task(server.serve())
        while not server.started:
            assert not task.done()
            await asyncio.sleep(0.01)
        try:
            yield site.address
        finally:
            server.should_exit = True
            await task


class Bearer(httpx2.Auth):
    """Puts the present token on each request.

    Attributes:
        token: It.
        statuses: What was answered.
    """

    def __init__(self, token: str) -> None:
        self.token = token
        self.statuses: list[int] = []

    def auth_flow(self, request: httpx2.Request) -> Any:
        request.headers["Authorization"] = f"Bearer {self.token}"
        response = yield request
        self.statuses.append(response.status_code)


@asynccontextmanager
async def signed_in(
    address: str, bearer: str | Bearer, mode: str = "auto", headers: Ask | None = None, **settings: Any
) -> AsyncIterator[Client]:
    """A client of whoever has this token."""
    auth = Bearer(bearer) if isinstance(bearer, str) else bearer
    async with (
        httpx2.AsyncClient(auth=auth, headers=headers, timeout=30) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode, **settings) as client,
    ):
        assert client.protocol_version == MODES[mode]
        yield client


def initialize() -> dict[str, Any]:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def asking(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.mark.parametrize("mode", MODES)
async def test_who_signs_in_sees_their_own(project: Project, studio: SupabaseMemory, user_id: str, mode: str) -> None:
    person = Person(YES)
    async with serving(project, write=True, destructive=True) as address:
        async with signed_in(address, project.token(user_id), mode, elicitation_callback=person) as client:
            assert client.protocol_version == MODES[mode]
            for name, arguments in READING.items():
                assert FOUND[name] in result_text(await client.call_tool(name, arguments)), name
            saved = {**EVERY["save_turn"], "conversation_id": "garden"}
            assert "Stored" in result_text(await client.call_tool("save_turn", saved))
            gone = await client.call_tool("forget", {"conversation_id": "garden", "dry_run": False})
            assert "Forgotten: 1 conversation" in result_text(gone)
            prompt = await client.get_prompt("continue_conversation")
            assert "E-47" in str(prompt.messages[0].content)
        async with signed_in(address, project.token(f"{user_id}-other"), mode) as client:
            assert "There are no conversations." in result_text(await client.call_tool("list_conversations", {}))
            for arguments in ({"n": 1}, {"n": 1, "conversation_id": "studio"}):
                assert "E-47" not in str(await client.call_tool("get_turn", arguments))
            with pytest.raises(MCPError, match="There is no conversation 'studio'"):
                await client.read_resource("memory://conversations/studio/messages/0-9")
    assert len(person.asked) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_two_users_over_one_server_never_meet(project: Project, user_id: str, mode: str) -> None:
    users = [f"{user_id}-{number}" for number in range(2)]
    async with serving(project, write=True) as address:

        async def talk(user: str, other: str) -> None:
            async with signed_in(address, project.token(user), mode) as client:
                for number in range(5):
                    turn = {"user": f"I am {user}", "assistant": f"Hello {user}", "conversation_id": "studio"}
                    await client.call_tool("save_turn", {**turn, "idempotency_key": str(number)})
                    answers = await asyncio.gather(
                        client.call_tool("get_turn", {"n": -1}),
                        client.call_tool("search_conversation_history", {"query": f"I am {other}", "limit": 20}),
                        client.call_tool("list_conversations", {}),
                        client.call_tool("get_context", {"question": f"Who is {other}?"}),
                        client.read_resource("memory://conversations"),
                        client.get_prompt("continue_conversation"),
                    )
                    for answer in answers:
                        assert user in str(answer)
                        assert other not in str(answer)

        await asyncio.gather(*(talk(user, other) for user, other in (users, users[::-1])), *(
            talk(user, other) for user, other in (users, users[::-1])
        ))  # fmt: skip


async def test_a_session_of_one_user_is_closed_to_another(
    project: Project, studio: SupabaseMemory, user_id: str
) -> None:
    mine, theirs = project.token(user_id), project.token(f"{user_id}-other")
    async with serving(project) as address, httpx.AsyncClient(headers=HEADERS, timeout=30) as http:
        begun = await http.post(address, json=initialize(), headers={"Authorization": f"Bearer {mine}"})
        session = {"Mcp-Session-Id": begun.headers["Mcp-Session-Id"]}
        notified = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await http.post(address, json=notified, headers={"Authorization": f"Bearer {mine}", **session})
        body = asking("get_turn", {"n": 1})
        own = await http.post(address, json=body, headers={"Authorization": f"Bearer {mine}", **session})
        assert "E-47" in own.text
        stolen = await http.post(address, json=body, headers={"Authorization": f"Bearer {theirs}", **session})
        assert stolen.status_code in (403, 404)
        assert "E-47" not in stolen.text
        refreshed = project.token(user_id, expires_in=7200)  # the same user's next token goes on
        again = await http.post(address, json=body, headers={"Authorization": f"Bearer {refreshed}", **session})
        assert "E-47" in again.text


@pytest.mark.parametrize("mode", MODES)
async def test_a_token_that_expires_in_the_middle_of_a_session(
    project: Project, studio: SupabaseMemory, user_id: str, mode: str
) -> None:
    bearer = Bearer(project.token(user_id))
    async with serving(project) as address, signed_in(address, bearer, mode) as client:
        assert "E-47" in result_text(await client.call_tool("get_turn", {"n": 1}))
        bearer.token = project.token(user_id, expires_in=-1)
        bearer.statuses.clear()
        with pytest.raises(MCPError) as caught:
            await client.call_tool("get_turn", {"n": 1})
        assert set(bearer.statuses) == {401}
        assert "E-47" not in str(caught.value)
        bearer.token = project.token(user_id)
        assert "E-47" in result_text(await client.call_tool("get_turn", {"n": 1}))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_each_way_to_sign(project: Project, studio: SupabaseMemory, user_id: str, algorithm: str) -> None:
    (place,) = [place for place, key in enumerate(project.keys) if key.key_id == f"only {algorithm}"]
    project.published = [project.keys[place].public]
    try:
        async with serving(project) as address:
            async with signed_in(address, project.token(user_id, key=place)) as client:
                assert "E-47" in result_text(await client.call_tool("get_turn", {"n": 1}))
            async with httpx.AsyncClient(headers=HEADERS) as http:
                forged = Key(project.keys[place].key_id, algorithm)
                signed = jwt.encode(project.claims(user_id), forged.private, algorithm, headers={"kid": forged.key_id})
                answer = await http.post(address, json=initialize(), headers={"Authorization": f"Bearer {signed}"})
                assert answer.status_code == 401
    finally:
        project.published = [project.keys[0].public]


async def test_a_token_that_the_database_refuses_is_a_result(project: Project, user_id: str) -> None:
    unknown = Key("unknown")  # the issuer publishes it, and the Data API does not know it yet
    project.keys.append(unknown)
    project.published = [unknown.public]
    try:
        async with serving(project) as address, signed_in(address, project.token(user_id, key=-1)) as client:
            for name, arguments in READING.items():
                assert "Ask the person to sign in again" in failed(await client.call_tool(name, arguments)), name
    finally:
        project.keys.pop()
        project.published = [project.keys[0].public]


def bad_tokens(project: Project, user_id: str) -> dict[str, str]:
    """Tokens that are not good, by what is wrong with them."""
    first = project.keys[0]
    claims = project.claims(user_id)
    another = Key(first.key_id)

    def signed(key: Any, algorithm: str, kid: str | None = first.key_id, **more: Any) -> str:
        said = {name: value for name, value in {**claims, **more}.items() if value is not None}
        body = json.dumps(said).encode()  # PyJWT itself refuses to write wrong types
        return jwt.api_jws.encode(body, key, algorithm, headers={"typ": "JWT"} if kid is None else {"kid": kid})

    pem = first.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head, body, _ = project.token(user_id).split(".")
    none = jwt.encode(claims, "", "none", headers={"kid": first.key_id})
    return {
        "no token": "secret",
        "a key of the project": PUBLISHABLE,
        "a secret key": "sb_secret_x",
        "signed by the project's secret": token(user_id=user_id),
        "the same with a key's id": signed(SECRET, "HS256"),
        "signed by the public key": _with_public_key(pem, claims, first.key_id),
        "not signed": none,
        "a signature that is missing": f"{head}.{body}.",
        "another's words under it": f"{head}.{body[:-4]}AAAA.{project.token(user_id).split('.')[2]}",
        "signed by another key": signed(another.private, "ES256"),
        "a key that nobody knows": signed(another.private, "ES256", "nobody"),
        "no key's id": signed(first.private, "ES256", None),
        "another issuer": signed(first.private, "ES256", iss="https://example.com/auth/v1"),
        "no issuer": signed(first.private, "ES256", iss=None),
        "another audience": signed(first.private, "ES256", aud="anon"),
        "no audience": signed(first.private, "ES256", aud=None),
        "a server's role": signed(first.private, "ES256", role="service_role"),
        "no role": signed(first.private, "ES256", role=None),
        "a role of an owner": signed(first.private, "ES256", role="postgres"),
        "expired": project.token(user_id, expires_in=-1),
        "never expires": signed(first.private, "ES256", exp=None),
        "an end that is a text": signed(first.private, "ES256", exp=str(int(time.time()) + 3600)),
        "an end that is a word": signed(first.private, "ES256", exp="tomorrow"),
        "an end without end": signed(first.private, "ES256", exp=float("inf")),
        "an end that is no number": signed(first.private, "ES256", exp=float("nan")),
        "an end that is a list": signed(first.private, "ES256", exp=[int(time.time()) + 3600]),
        "a beginning that is a text": signed(first.private, "ES256", nbf=str(int(time.time()) - 60)),
        "a time that is a text": signed(first.private, "ES256", iat=str(int(time.time()) - 60)),
        "a user that is a number": signed(first.private, "ES256", sub=5),
        "a role that is a list": signed(first.private, "ES256", role=["authenticated"]),
        "not yet": signed(first.private, "ES256", nbf=int(time.time()) + 3600),
        "nobody": project.token(None),
        "a blank user": project.token(" "),
    }


def _with_public_key(pem: bytes, claims: dict[str, Any], kid: str) -> str:
    """The old trick: a token signed by HS256 with the public key as its secret."""
    import base64
    import hashlib
    import hmac

    def part(document: dict[str, Any]) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=")

    body = part({"alg": "HS256", "typ": "JWT", "kid": kid}) + b"." + part(claims)
    signature = base64.urlsafe_b64encode(hmac.new(pem, body, hashlib.sha256).digest()).rstrip(b"=")
    return (body + b"." + signature).decode()


async def test_a_token_that_is_not_good_is_refused_before_anything_is_done(
    project: Project, studio: SupabaseMemory, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with serving(project) as address, httpx.AsyncClient(headers=HEADERS, timeout=30) as http:
        body = asking("get_turn", {"n": 1})
        for header in (None, "", "Bearer", "Basic eDp5", project.token(user_id)):
            answer = await http.post(address, json=body, headers={} if header is None else {"Authorization": header})
            assert answer.status_code == 401
        for what, bearer in bad_tokens(project, user_id).items():
            for sent in (initialize(), body):
                answer = await http.post(address, json=sent, headers={"Authorization": f"Bearer {bearer}"})
                assert answer.status_code == 401, what
                assert "resource_metadata=" in answer.headers["WWW-Authenticate"]
                assert "E-47" not in answer.text
            assert len(bearer) < 20 or bearer not in caplog.text
        good = await http.post(
            address, json=initialize(), headers={"Authorization": f"Bearer {project.token(user_id)}"}
        )
        assert good.status_code == 200


async def test_clients_are_told_where_to_sign_in_and_pages_in_a_browser_stay_out(
    project: Project, user_id: str
) -> None:
    async with serving(project) as address, httpx.AsyncClient(headers=HEADERS, timeout=30) as http:
        origin = address.removesuffix("/mcp")
        said = (await http.get(f"{origin}/.well-known/oauth-protected-resource/mcp")).json()
        assert said["resource"] == address
        assert said["authorization_servers"] == [project.issuer]
        bearer = {"Authorization": f"Bearer {project.token(user_id)}"}
        for header in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            answer = await http.post(address, json=initialize(), headers={**bearer, **header})
            assert answer.status_code in (403, 421)
        huge = await http.post(address, content=b"[" * 5_000_000, headers=bearer)
        assert huge.status_code == 413
        for body in (b"no JSON", b"[" * 50_000, b'{"jsonrpc": "2.0"', b"\xff\xfe", b"null"):
            answer = await http.post(address, content=body, headers=bearer)
            assert answer.status_code == 400
            assert "Traceback" not in answer.text


async def test_a_client_that_goes_away_disturbs_nobody(project: Project, studio: SupabaseMemory, user_id: str) -> None:
    bearer = {"Authorization": f"Bearer {project.token(user_id)}"}
    async with serving(project) as address:
        host, _, port = address.removeprefix("http://").removesuffix("/mcp").partition(":")
        for cut in (20, 200, None):
            reader, writer = await asyncio.open_connection(host, int(port))
            body = json.dumps(asking("search_conversation_history", {"query": "kiln"}))
            lines = [f"{name}: {value}" for name, value in {**HEADERS, **bearer}.items()]
            head = ["POST /mcp HTTP/1.1", f"Host: {host}:{port}", *lines, f"Content-Length: {len(body)}", "", body]
            writer.write("\r\n".join(head).encode()[:cut])
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            del reader
        async with signed_in(address, project.token(user_id)) as client:
            assert "E-47" in result_text(await client.call_tool("get_turn", {"n": 1}))


async def test_keys_are_rotated(project: Project, studio: SupabaseMemory, user_id: str) -> None:
    try:
        async with serving(project) as address:
            async with signed_in(address, project.token(user_id)) as client:
                assert "E-47" in result_text(await client.call_tool("get_turn", {"n": 1}))
            project.rotate()
            async with signed_in(address, project.token(user_id, key=1)) as client:
                assert "E-47" in result_text(await client.call_tool("get_turn", {"n": 1}))
            async with httpx.AsyncClient(headers=HEADERS) as http:
                old = {"Authorization": f"Bearer {project.token(user_id)}"}
                assert (await http.post(address, json=initialize(), headers=old)).status_code == 401
    finally:
        project.published = [project.keys[0].public]


@pytest.mark.parametrize(
    "change",
    [{"kid": ["a"]}, {"kid": {}}, {"kid": None}, {"alg": "none"}, {"kty": []}, {"x": "é"}, {"crv": None}],
    ids=str,
)
async def test_a_key_that_cannot_be_read_takes_no_other_away(project: Project, change: dict[str, Any]) -> None:
    try:
        project.published = [{**project.keys[1].public, **change}, project.keys[0].public]
        keys = SigningKeys(AuthSite(issuer=project.issuer, address="http://127.0.0.1/mcp").keys)
        assert await keys.key("first") is not None
        assert await keys.key("second") is None
    finally:
        project.published = [project.keys[0].public]


async def test_keys_are_kept_and_an_unknown_one_is_asked_for_once(project: Project, user_id: str) -> None:
    async with serving(project, pause=3600) as address, httpx.AsyncClient(headers=HEADERS) as http:
        fetched = project.fetched
        good = {"Authorization": f"Bearer {project.token(user_id)}"}
        unknown = jwt.encode(project.claims(user_id), Key("x").private, "ES256", headers={"kid": "x"})
        for _ in range(5):
            assert (await http.post(address, json=initialize(), headers=good)).status_code == 200
            bad = await http.post(address, json=initialize(), headers={"Authorization": f"Bearer {unknown}"})
            assert bad.status_code == 401
        assert project.fetched == fetched


@contextmanager
def away(project: Project) -> Iterator[None]:
    """The issuer answers nothing."""
    project.status = 503
    try:
        yield
    finally:
        project.status = 200


async def test_while_the_issuer_is_away_its_keys_go_on_for_an_hour_and_are_fetched_after_a_pause_alone(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "langchain_supabase_memory.mcp.tokens")
    clock = Clock()
    keys = SigningKeys(AuthSite(issuer=project.issuer, address="http://127.0.0.1/mcp").keys, clock=clock)
    await keys.load()
    begun = project.fetched
    with away(project):
        clock.now += 601
        for _ in range(6):
            assert await keys.key("first") is not None
        assert project.fetched == begun + 1
        clock.now += 9
        assert await keys.key("first") is not None
        assert project.fetched == begun + 1
        clock.now += 1
        assert await keys.key("first") is not None
        assert project.fetched == begun + 2
        with pytest.raises(UnavailableError):  # whether the issuer has made another key nobody knows
            await keys.key("another")
        clock.now += 3_600
        for key_id in ("first", "another", "first"):
            with pytest.raises(UnavailableError):
                await keys.key(key_id)
        assert project.fetched == begun + 3
    with pytest.raises(UnavailableError):
        await keys.key("first")
    clock.now += 10
    assert await keys.key("first") is not None
    assert await keys.key("another") is None
    assert project.fetched == begun + 4
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"], "one outage"


async def test_an_issuer_that_hangs_delays_one_request_and_then_none(project: Project) -> None:
    clock = Clock()
    keys = SigningKeys(AuthSite(issuer=project.issuer, address="http://127.0.0.1/mcp").keys, clock=clock)
    await keys.load()
    begun = project.fetched
    clock.now += 601
    with away(project):
        project.answering.clear()
        try:
            asking = asyncio.create_task(keys.key("first"))
            while project.fetched == begun:
                await asyncio.sleep(0.005)
            assert await keys.key("first") is not None  # while the other waits
            assert not asking.done()
            clock.now += 11
        finally:
            project.answering.set()
        assert await asking is not None
        assert await keys.key("first") is not None
        assert project.fetched == begun + 1  # the pause begins when a try has ended


async def test_an_issuer_whose_answer_trickles_in_holds_nobody_for_longer(project: Project) -> None:
    """A byte now and then is no silence, and what comes of it is no answer."""
    keys = SigningKeys(AuthSite(issuer=project.issuer, address="http://127.0.0.1/mcp").keys, timeout_seconds=0.3)
    project.pause = 0.05
    try:
        for asking in (keys.load(), keys.key("first")):
            with pytest.raises(UnavailableError):
                await asyncio.wait_for(asking, 20)
    finally:
        project.pause = 0.0


async def test_while_nobody_can_tell_whether_a_token_is_good_clients_are_told_to_wait(
    project: Project, studio: SupabaseMemory, user_id: str
) -> None:
    clock = Clock()
    good = {"Authorization": f"Bearer {project.token(user_id)}"}
    unknown = {"Authorization": f"Bearer {project.token(user_id, key=1)}"}
    bearer = Bearer(project.token(user_id))
    async with (
        serving(project, clock=clock) as address,
        httpx.AsyncClient(headers=HEADERS) as http,
        signed_in(address, bearer) as client,
    ):
        with away(project):
            answer = await http.post(address, json=initialize(), headers=unknown)
            assert answer.status_code == 503
            assert (await http.post(address, json=initialize(), headers=good)).status_code == 200
            clock.now += 3_601
            for headers in (good, unknown):
                answer = await http.post(address, json=initialize(), headers=headers)
                assert answer.status_code == 503
                assert "with the same token" in answer.json()["error_description"]
                assert int(answer.headers["Retry-After"]) > 0
                assert "WWW-Authenticate" not in answer.headers  # which would have the person sign in anew
            bearer.statuses.clear()
            with pytest.raises(MCPError):
                await client.call_tool("get_turn", {"n": 1})
            assert set(bearer.statuses) == {503}
            for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": f"Bearer {token(user_id=user_id)}"}):
                assert (await http.post(address, json=initialize(), headers=headers)).status_code == 401
        assert "E-47" in result_text(await client.call_tool("get_turn", {"n": 1}))


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        ({"published": []}, ConfigurationError, r"secret \(HS256\).*Rotate to an asymmetric key"),
        ({"published": [{"kty": "oct", "k": "c2VjcmV0", "kid": "s"}]}, ConfigurationError, "HS256"),
        ({"published": [{"kty": "EC"}]}, ConfigurationError, "HS256"),
        ({"published": [7, None, "x"]}, ConfigurationError, "HS256"),
        ({"status": 503}, UnavailableError, "HTTP 503"),
    ],
)
async def test_it_does_not_start_where_no_token_could_be_verified(
    project: Project, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], kind: type[Exception], says: str
) -> None:
    for name, value in change.items():
        monkeypatch.setattr(project, name, value)
    with pytest.raises(kind) as caught:
        async with serving(project):
            pass
    assert re.search(says, str(caught.value))
    url = ("--url", project.url, "--key", PUBLISHABLE)
    assert str(caught.value) in await asyncio.to_thread(refused, "mcp", "--http", *url)


def test_what_it_refuses_to_start_with() -> None:
    url = ("--url", "http://127.0.0.1:1")
    for key in ("sb_secret_abc", token("service_role"), token("authenticated", "u"), "x"):
        said = refused("mcp", "--http", *url, "--key", key)
        assert "Over HTTP the server takes no secret key" in said
        assert key not in said
    assert "publishable key is missing" in refused("mcp", "--http", *url)
    assert "url is missing" in refused("mcp", "--http", "--key", PUBLISHABLE)
    assert "--user cannot apply. Over HTTP each request belongs to its signed-in user." in refused(
        "mcp", "--http", *url, "--key", PUBLISHABLE, "--user", "maya"
    )
    assert "its signed-in user" in refused("mcp", "--http", *url, "--key", PUBLISHABLE, "--token", "a.b.c")
    assert "needs the Data API" in refused("mcp", "--http", "--database-url", "postgresql://x@127.0.0.1:1/x")
    assert "needs the Data API" in refused("mcp", "--http", "--embedded", "folder")
    refusal = refused("mcp", "--http", *url, "--key", PUBLISHABLE, "--public-url", "memory.example.com")
    assert "The address is not a valid address" in refusal
    for host in ("0.0.0.0", "::", "[::0]", "0", ""):
        refusal = refused("mcp", "--http", *url, "--key", PUBLISHABLE, "--host", host)
        assert "clients need a specific one. Pass --public-url https://…/mcp" in refusal
    named = ("--host", "0.0.0.0", "--public-url", "https://memory.example.com/mcp")
    assert "could not be fetched" in refused("mcp", "--http", *url, "--key", PUBLISHABLE, *named)
    assert own_address("127.0.0.1", 8000) == "http://127.0.0.1:8000/mcp"
    assert own_address("::1", 8000) == "http://[::1]:8000/mcp"
    assert "could not be fetched" in refused("mcp", "--http", *url, "--key", PUBLISHABLE)


async def test_the_command(project: Project, studio: SupabaseMemory, user_id: str) -> None:
    port = free_port()
    arguments = ["mcp", "--http", "--url", project.url, "--key", PUBLISHABLE, "--port", str(port), "--thread", "studio"]
    server = subprocess.Popen([*PROGRAM, *arguments], stderr=subprocess.PIPE, text=True, env=surroundings())
    try:
        assert server.stderr is not None
        assert f"Listening at http://127.0.0.1:{port}/mcp" in await asyncio.to_thread(server.stderr.readline)
        address = f"http://127.0.0.1:{port}/mcp"
        async with signed_in(address, project.token(user_id)) as client:
            assert "E-47" in result_text(await client.call_tool("get_turn", {"n": 1}))
        server.send_signal(signal.SIGTERM)
        _, said = await asyncio.to_thread(server.communicate, timeout=60)
        assert server.returncode in (0, -signal.SIGTERM, 143)
        assert "Traceback" not in said
        assert "kiln" not in said
    finally:
        server.kill()
        server.wait()


async def opened(client: httpx.AsyncClient, address: str, bearer: str) -> tuple[int, str]:
    """A new session of a user: what was answered, and its id."""
    auth = {"Authorization": f"Bearer {bearer}"}
    answer = await client.post(address, json=initialize(), headers={**HEADERS, **auth})
    return answer.status_code, answer.headers.get("mcp-session-id", "")


async def lives(client: httpx.AsyncClient, address: str, bearer: str, session: str) -> bool:
    """Whether a session of a user still answers."""
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    headers = {**HEADERS, "Authorization": f"Bearer {bearer}", "mcp-session-id": session}
    answer = await client.post(address, json=listing, headers=headers)
    assert answer.status_code in (200, 404)
    return answer.status_code == 200


async def test_one_user_has_so_many_sessions_and_takes_no_place_of_anothers(project: Project, user_id: str) -> None:
    ana, ben = project.token(user_id), project.token(f"{user_id}-ben")
    async with serving(project) as address, httpx.AsyncClient(timeout=30) as client:
        (_, of_ben) = await opened(client, address, ben)
        of_ana = [(await opened(client, address, ana))[1] for _ in range(MAX_SESSIONS)]
        assert all([await lives(client, address, ana, each) for each in of_ana])
        assert await lives(client, address, ana, of_ana[0])  # so it is no longer the one that was idle for longest
        more = [(await opened(client, address, ana)) for _ in range(3)]
        assert [status for status, _ in more] == [200] * 3
        living = [await lives(client, address, ana, each) for each in [*of_ana, *(session for _, session in more)]]
        assert living == [True, False, False, False, *[True] * (MAX_SESSIONS - 1)]
        assert await lives(client, address, ben, of_ben)
        assert not await lives(client, address, ben, of_ana[0]), "another user's session is none"
        # One that is ended makes room.
        headers = {**HEADERS, "Authorization": f"Bearer {ana}", "mcp-session-id": of_ana[0]}
        assert (await client.delete(address, headers=headers)).status_code == 200
        await opened(client, address, ana)
        assert await lives(client, address, ana, of_ana[4])


async def test_who_is_slow_to_open_sessions_takes_no_place_of_anothers(project: Project, user_id: str) -> None:
    ana, ben = project.token(user_id), project.token(f"{user_id}-ben")
    say, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def slowly() -> AsyncIterator[bytes]:
        begun.release()
        await say.wait()
        yield json.dumps(initialize()).encode()

    async with serving(project) as address, httpx.AsyncClient(timeout=30, limits=httpx.Limits()) as client:
        auth = {**HEADERS, "Authorization": f"Bearer {ana}"}
        slow = [asyncio.create_task(client.post(address, content=slowly(), headers=auth)) for _ in range(MAX_SESSIONS)]
        for _ in slow:
            await begun.acquire()
        refused_status = 0
        for _ in range(200):  # until the server has met them all
            refused_status, session = await opened(client, address, ana)
            if refused_status == 429:
                break
        assert (refused_status, session) == (429, "")
        assert (await opened(client, address, ben))[0] == 200
        say.set()
        assert {(await each).status_code for each in slow} == {200}
        assert (await opened(client, address, ana))[0] == 200
