"""`examples/langgraph_server`, started by `langgraph dev`: two users at once, each with their own threads and items."""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from langgraph_sdk import Auth, get_client
from langgraph_sdk.client import LangGraphClient

from langchain_supabase_memory import SupabaseMemory
from tests.project.test_documentation import fenced
from tests.project.test_examples_fastapi import QUESTIONS, USERS
from tests.services.examples import EXAMPLES, copied, started
from tests.services.postgres import free_port
from tests.services.project import Project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # a server starts first, on a machine that may be busy

Connect = Callable[[str | None], LangGraphClient]


@contextmanager
def serving(folder: Path, project: Project, conn_string: str) -> Iterator[tuple[str, Path]]:
    """The address of `langgraph dev`, as the README starts it, and what it says."""
    port = free_port()
    variables = {
        "SUPABASE_URL": project.url,
        "SUPABASE_DB_URL": conn_string,
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
    }
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
    with started(command, copied("langgraph_server", folder), "/ok", variables, port=port) as served:
        yield served


@pytest.fixture(scope="module")
def server(project: Project, conn_string: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    with serving(tmp_path_factory.mktemp("langgraph"), project, conn_string) as served:
        yield served


@pytest.fixture
async def connect(server: tuple[str, Path]) -> AsyncIterator[Connect]:
    """Gives clients that carry a token, or none."""
    async with AsyncExitStack() as stack:
        made = []

        def connect(token: str | None) -> LangGraphClient:
            headers = {} if token is None else {"authorization": f"Bearer {token}"}
            made.append(get_client(url=server[0], headers=headers, api_key=None))
            return made[-1]

        yield connect
        for client in made:
            await stack.enter_async_context(client)


async def say(client: LangGraphClient, thread_id: str, text: str, **named: Any) -> str:
    given: Any = {"messages": [{"role": "user", "content": text}]}
    state: Any = await client.runs.wait(thread_id, "agent", input=given, **named)
    assert "__error__" not in state, state
    return str(state["messages"][-1]["content"])


async def status(call: Awaitable[Any]) -> int:
    """Of a call that is refused."""
    with pytest.raises(httpx.HTTPStatusError) as refused:
        await call
    return refused.value.response.status_code


async def test_two_users_talk_at_once_and_each_is_remembered_alone(
    connect: Connect, project: Project, conn_string: str, user_id: str
) -> None:
    ids = {name: f"{user_id}-{name}" for name in USERS}
    clients = {name: connect(project.token(ids[name])) for name in USERS}
    threads = {name: (await client.threads.create())["thread_id"] for name, client in clients.items()}

    async def both(says: dict[str, str], **named: Any) -> list[str]:
        return await asyncio.gather(*(say(clients[name], threads[name], text, **named) for name, text in says.items()))

    await both(USERS)
    # Whoever else is named in a run, the token decides.
    answers = await both(QUESTIONS, context={"user_id": ids["maya"]})
    for answer, own in zip(answers, USERS.values(), strict=True):
        assert own in answer
    async with SupabaseMemory.from_conn_string(conn_string) as memory:
        for name, said in USERS.items():
            stored = await memory.for_user(ids[name]).conversation(threads[name]).aread()
            texts = [str(each.message.text) for each in stored if each.message is not None]
            assert texts[::2] == [said, QUESTIONS[name]]
            assert len(texts) == 4
    assert [each["thread_id"] for each in await clients["noor"].threads.search()] == [threads["noor"]]
    assert "E-47" not in await say(clients["noor"], threads["noor"], QUESTIONS["maya"])
    assert await status(clients["noor"].threads.get_state(threads["maya"])) == 404
    assert await status(clients["noor"].runs.create(threads["maya"], "agent", input={"messages": []})) == 404


async def test_no_field_of_a_run_says_whose_it_is(
    connect: Connect, server: tuple[str, Path], project: Project, conn_string: str, user_id: str
) -> None:
    maya, noor = (f"{user_id}-{name}" for name in USERS)
    other = (await connect(project.token(maya)).threads.create())["thread_id"]
    await say(connect(project.token(maya)), other, USERS["maya"])
    thread = (await connect(project.token(noor)).threads.create())["thread_id"]
    claims = {"identity": maya, "is_authenticated": True, "permissions": []}
    forged: list[dict[str, Any]] = [
        {"config": {"configurable": {"user_id": maya}}},
        {"config": {"configurable": {"langgraph_auth_user": claims}}},
        {"config": {"configurable": {"langgraph_auth_user_id": maya}}},
        {"config": {"configurable": {"user_id": maya, "thread_id": other}}},
        {"config": {"metadata": {"user_id": maya, "langgraph_auth_user": claims}}},
        {"checkpoint": {"user_id": maya, "langgraph_auth_user": claims, "langgraph_auth_user_id": maya}},
        {"context": {"user_id": maya, "langgraph_auth_user": claims}},
        {"metadata": {"owner": maya, "user_id": maya}},
    ]
    headers = {"authorization": f"Bearer {project.token(noor)}", "x-user-id": maya, "langgraph-auth-user-id": maya}
    async with httpx.AsyncClient(base_url=server[0], headers=headers, timeout=60) as http:
        for more in forged:
            said = {"messages": [{"role": "user", "content": QUESTIONS["maya"]}]}
            answer = await http.post(
                f"/threads/{thread}/runs/wait", json={"assistant_id": "agent", "input": said, **more}
            )
            assert "E-47" not in answer.text, more
            assert answer.status_code == 200, (more, answer.text)
            assert "__error__" not in answer.json(), more
    with psycopg.connect(conn_string) as connection:
        rows = connection.execute(
            "select user_id, thread_id, message_count from memory.conversations where user_id like %s order by 1",
            [f"{user_id}-%"],
        ).fetchall()
    assert rows == [(maya, other, 2), (noor, thread, 2 * len(forged))]


async def test_metadata_that_is_forged_makes_no_thread_anybody_elses(
    connect: Connect, server: tuple[str, Path], project: Project, user_id: str
) -> None:
    maya, noor = (f"{user_id}-{name}" for name in USERS)
    headers = {"authorization": f"Bearer {project.token(noor)}"}
    made = []
    async with httpx.AsyncClient(base_url=server[0], headers=headers, timeout=60) as http:
        for metadata in ({}, {"owner": maya}, {"owner": {"$contains": maya}}):
            answer = await http.post("/threads", json={"metadata": metadata})
            assert answer.status_code == 200, (metadata, answer.text)
            made.append(answer.json())
            assert answer.json()["metadata"]["owner"] == noor
            thread = f"/threads/{answer.json()['thread_id']}"
            assert (await http.patch(thread, json={"metadata": metadata})).status_code == 200
            said = {"messages": [{"role": "user", "content": "Hello"}]}
            run = {"assistant_id": "agent", "input": said, "metadata": metadata}
            assert (await http.post(f"{thread}/runs/wait", json=run)).status_code == 200
            found = await http.post("/threads/search", json={"metadata": metadata})
            assert {each["metadata"]["owner"] for each in found.json()} == {noor}
            assert (await http.get(thread)).json()["metadata"]["owner"] == noor
    client = connect(project.token(maya))
    assert await client.threads.search() == []
    for each in made:
        assert await status(client.threads.get(each["thread_id"])) == 404


@pytest.mark.parametrize("given", [{"metadata": None}, {}, {"metadata": {"owner": "noor", "color": "blue"}}])
async def test_a_thread_is_its_makers_whatever_its_metadata_is(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some releases of the server refuse a null before it comes here."""
    monkeypatch.setenv("SUPABASE_URL", "http://127.0.0.1:1")
    rules = runpy.run_path(str(EXAMPLES / "langgraph_server" / "auth.py"))
    user: Any = Auth.types.StudioUser("maya")
    ctx = Auth.types.AuthContext(user=user, permissions=[], resource="threads", action="create")
    held = given.get("metadata")
    assert await rules["own_threads"](ctx, given) == {"owner": "maya"}
    assert given["metadata"]["owner"] == "maya"
    assert held is None or held is given["metadata"]


async def test_the_store_is_each_users_own(connect: Connect, project: Project, conn_string: str, user_id: str) -> None:
    ids = [f"{user_id}-{name}" for name in USERS]
    maya, noor = (connect(project.token(each)) for each in ids)
    await asyncio.gather(
        *(
            client.store.put_item([own, "facts"], "tool", {"text": said})
            for client, own, said in zip((maya, noor), ids, USERS.values(), strict=True)
        )
    )
    found = (await noor.store.search_items([ids[1]]))["items"]
    assert [each["value"] for each in found] == [{"text": USERS["noor"]}]
    for refused in (
        noor.store.get_item([ids[0], "facts"], "tool"),
        noor.store.search_items([ids[0]]),
        noor.store.search_items([]),
        noor.store.put_item([ids[0], "facts"], "tool", {"text": "mine"}),
        noor.store.delete_item([ids[0], "facts"], "tool"),
        noor.store.list_namespaces(prefix=[ids[0]]),
        noor.store.list_namespaces(),
    ):
        assert await status(refused) == 403
    with psycopg.connect(conn_string) as connection:
        rows = connection.execute(
            "select value->>'text' from memory.store_items where user_id = 'server' and namespace[1] = %s", [ids[0]]
        ).fetchall()
    assert rows == [(USERS["maya"],)]


async def test_what_is_not_said_to_be_allowed_is_refused(connect: Connect, project: Project, user_id: str) -> None:
    client = connect(project.token(user_id))
    assert await status(client.assistants.create("agent")) == 403
    assert [each["graph_id"] for each in await client.assistants.search()] == ["agent"]


@pytest.mark.parametrize("kind", ["none", "nonsense", "expired", "server", "other issuer"])
async def test_who_is_not_signed_in_is_refused(connect: Connect, project: Project, user_id: str, kind: str) -> None:
    tokens = {
        "none": None,
        "nonsense": "a.b.c",
        "expired": project.token(user_id, expires_in=-60),
        "server": project.token(user_id, role="service_role"),
        "other issuer": project.token(user_id, iss="https://elsewhere.example/auth/v1"),
    }
    assert await status(connect(tokens[kind]).threads.create()) == 401


async def test_the_scheme_may_be_written_in_small_letters(
    server: tuple[str, Path], project: Project, user_id: str
) -> None:
    """As RFC 9110 says of schemes; another scheme is nobody's."""
    for scheme, code in (("bearer", 200), ("BEARER", 200), ("Basic", 401)):
        headers = {"authorization": f"{scheme} {project.token(user_id)}"}
        async with httpx.AsyncClient() as client:
            answer = await client.post(f"{server[0]}/threads", json={}, headers=headers)
        assert answer.status_code == code


async def test_while_the_keys_cannot_be_fetched_nobody_is_sent_to_sign_in_anew(
    project: Project, user_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUPABASE_URL", "http://127.0.0.1:1")
    rules = runpy.run_path(str(EXAMPLES / "langgraph_server" / "auth.py"))
    for token, code in ((project.token(user_id), 503), ("a.b.c", 401)):
        with pytest.raises(Auth.exceptions.HTTPException) as refused:
            await rules["authenticate"](f"Bearer {token}")
        assert refused.value.status_code == code


def test_it_names_what_is_there() -> None:
    """`langgraph.json` has the keys of the page on the server."""
    (page,) = (json.loads(text) for text in fenced("json") if '"graphs"' in text)
    assert json.loads((EXAMPLES / "langgraph_server" / "langgraph.json").read_text()).keys() == page.keys()


def test_nothing_blocked_and_nothing_failed(server: tuple[str, Path]) -> None:
    """Last, about all of the above: the server itself watches with BlockBuster."""
    log = server[1].read_text()
    assert "Background run succeeded" in log, log[-3000:]
    for trouble in ("Blocking call", "BlockingError", "without memory", "Traceback"):
        assert trouble not in log, log[-3000:]
