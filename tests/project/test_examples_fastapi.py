"""`examples/fastapi_chat`, started by uvicorn: two users talk with one agent at once, and neither sees the other."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.services.data_api import DataApi
from tests.services.examples import EXAMPLES, copied, started
from tests.services.postgres import Cluster, free_port
from tests.services.project import PUBLISHABLE, Project

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
]  # a server and, once, a database start first, on a machine that may be busy

USERS = {"maya": "My kiln shows E-47.", "noor": "My loom is of birch."}
QUESTIONS = {"maya": "What does my kiln show?", "noor": "What is my loom of?"}
THREAD = "studio"
"""The same for both: an id is no secret."""


THREADS = ["a/b", "a/tokens", "..", "?a=1&thread=b", "#a", "100%", "a%2Fb", "two  words ", "a+b", "😀 ñ", "x" * 500]
"""Names that an address has another meaning for."""


@contextmanager
def service(folder: Path, **variables: str) -> Iterator[str]:
    """The address of the service, started as its README says, in its folder if that is there already."""
    port, own = free_port(), folder / "fastapi_chat"
    command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port)]
    with started(
        command, own if own.exists() else copied("fastapi_chat", folder), "/openapi.json", variables, port=port
    ) as (url, log):
        yield url
        said = log.read_text()
        assert "Traceback" not in said, said
        assert "without memory" not in said, said


@pytest.fixture(scope="module")
def of_project(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("project")
    with service(folder, SUPABASE_URL=project.url, SUPABASE_PUBLISHABLE_KEY=PUBLISHABLE) as url:
        yield url


async def say(url: str, token: str, text: str, thread_id: str = THREAD) -> str:
    async with client(url, token) as http:
        answer = await http.post("/chat", params={"thread": thread_id}, json={"text": text})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["text"])


async def held(url: str, token: str, thread_id: str = THREAD) -> list[dict[str, Any]]:
    async with client(url, token) as http:
        found: list[dict[str, Any]] = (await http.get("/chat", params={"thread": thread_id})).json()
        return found


def client(url: str, token: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


async def two_talk(url: str, tokens: dict[str, str]) -> None:
    """Several turns of both at once, in a thread of the same name; each is remembered, and has nothing of the other's."""
    await asyncio.gather(*(say(url, tokens[name], text) for name, text in USERS.items()))
    for _ in range(3):
        answers = await asyncio.gather(*(say(url, tokens[name], text) for name, text in QUESTIONS.items()))
        for answer, own in zip(answers, USERS.values(), strict=True):
            assert own in answer
    for name, other in (("maya", "noor"), ("noor", "maya")):
        answer = await say(url, tokens[name], QUESTIONS[other])
        assert USERS[other] not in answer
        texts = [each["text"] for each in await held(url, tokens[name])]
        assert texts[0] == USERS[name]
        assert len(texts) == 10
        assert not any(USERS[other] in text for text in texts)


async def test_on_a_project_two_users_talk_with_one_agent_at_once(
    of_project: str, project: Project, user_id: str
) -> None:
    await two_talk(of_project, {name: project.token(f"{user_id}-{name}") for name in USERS})


async def test_a_user_names_nobody_elses_conversation(
    of_project: str, project: Project, conn_string: str, user_id: str
) -> None:
    """The only thing that a client chooses is the thread; what else it sends is passed over."""
    maya, noor = f"{user_id}-maya", f"{user_id}-noor"
    await say(of_project, project.token(maya), USERS["maya"], "private")
    assert await held(of_project, project.token(noor), "private") == []
    async with client(of_project, project.token(noor)) as http:
        forged = {"text": QUESTIONS["maya"], "user_id": maya, "configurable": {"user_id": maya}, "agent_id": "x"}
        named = {"thread": "private", "user_id": maya}
        answer = await http.post("/chat", params=named, json=forged, headers={"x-user-id": maya})
    assert "E-47" not in answer.json()["text"]
    with psycopg.connect(conn_string) as connection:
        rows = connection.execute(
            "select user_id, thread_id, message_count from memory.conversations where user_id = any(%s) order by 1",
            [[maya, noor]],
        ).fetchall()
    assert rows == [(maya, "private", 2), (noor, "private", 2)]


@pytest.mark.parametrize("thread", THREADS)
async def test_any_thread_can_be_named(of_project: str, project: Project, user_id: str, thread: str) -> None:
    token = project.token(user_id)
    answer = await say(of_project, token, USERS["maya"], thread)
    assert [each["text"] for each in await held(of_project, token, thread)] == [USERS["maya"], answer]
    async with client(of_project, token) as http:
        asked = await http.get("/chat/tokens", params={"thread": thread})
        streamed = await http.post("/chat/stream", params={"thread": thread}, json={"text": QUESTIONS["maya"]})
    assert asked.json()["conversation"] > 0
    assert USERS["maya"] in streamed.text


@pytest.mark.parametrize("thread", ["", "a" * 513, "😀" * 129, "a%00b", "a%0Ab"])
async def test_a_thread_that_cannot_be_one_is_refused(
    of_project: str, project: Project, user_id: str, thread: str
) -> None:
    async with client(of_project, project.token(user_id)) as http:
        answer = await http.post(f"/chat?thread={thread}", json={"text": "Hello"})
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "body", ['""', '" \\n "', '"half \\ud800"', "5"], ids=["empty", "blank", "surrogate", "number"]
)
@pytest.mark.parametrize("path", [f"/chat?thread={THREAD}", f"/chat/stream?thread={THREAD}"])
async def test_words_that_say_nothing_are_refused(
    of_project: str, project: Project, user_id: str, path: str, body: str
) -> None:
    async with client(of_project, project.token(user_id)) as http:
        answer = await http.post(path, content=f'{{"text": {body}}}', headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "half" not in answer.text


async def test_a_user_whom_the_memory_refuses_hears_why(of_project: str, project: Project) -> None:
    async with client(of_project, project.token("a\tb")) as http:
        answers = [await http.post(f"/chat{path}?thread={THREAD}", json={"text": "Hello"}) for path in ("", "/stream")]
        answers.append(await http.get(f"/chat?thread={THREAD}"))
    assert [each.status_code for each in answers] == [422, 422, 422]
    assert all("control character" in each.json()["detail"] for each in answers)


async def test_while_the_database_is_away_people_are_answered_and_told_so(
    cluster: Cluster, database: str, data_api: DataApi, tmp_path: Path, user_id: str
) -> None:
    """What cannot be done behind an answer breaks no connection, on which the next request waits already."""
    del data_api  # so that this test is known to need PostgREST
    with Project(cluster, database) as away:
        away.stop_data_api()
        port = free_port()
        with started(
            [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port)],
            copied("fastapi_chat", tmp_path),
            "/openapi.json",
            {"SUPABASE_URL": away.url, "SUPABASE_PUBLISHABLE_KEY": PUBLISHABLE},
            port=port,
        ) as (url, log):
            async with client(url, away.token(user_id)) as http:
                for path in ("", "/stream"):
                    assert (await http.post(f"/chat{path}?thread={THREAD}", json={"text": "Hello"})).status_code == 200
                    assert (await http.get(f"/chat?thread={THREAD}")).status_code == 503
    assert "Traceback" not in log.read_text()
    assert log.read_text().count("A board waits for the next answer: ") == 2


async def test_the_board_is_brought_up_to_date_after_the_answer(
    of_project: str, project: Project, conn_string: str, user_id: str
) -> None:
    await say(of_project, project.token(user_id), USERS["maya"])
    query = "select text from memory.conversation_board_items where user_id = %s"
    async with asyncio.timeout(60):
        with psycopg.connect(conn_string, autocommit=True) as connection:
            while not (rows := connection.execute(query, [user_id]).fetchall()):
                await asyncio.sleep(0.05)
    assert any("E-47" in text for (text,) in rows)


@pytest.mark.parametrize("kind", ["none", "nonsense", "expired", "server", "unknown key", "other issuer", "nobody"])
async def test_who_is_not_signed_in_is_refused(of_project: str, project: Project, user_id: str, kind: str) -> None:
    tokens = {
        "none": None,
        "nonsense": "a.b.c",
        "expired": project.token(user_id, expires_in=-60),
        "server": project.token(user_id, role="service_role"),
        "unknown key": project.token(user_id, key=1),  # which is not published
        "other issuer": project.token(user_id, iss="https://elsewhere.example/auth/v1"),
        "nobody": project.token(None),
    }
    bearer = tokens[kind]
    headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
    async with httpx.AsyncClient(base_url=of_project, headers=headers, timeout=60) as http:
        answers = [
            await http.post(f"/chat?thread={THREAD}", json={"text": "Hello"}),
            await http.get(f"/chat?thread={THREAD}"),
        ]
        assert [each.status_code for each in answers] == [401, 401]
        assert (await http.post("/sign-in/maya")).status_code == 404  # it is for a look without an account


@pytest.mark.postgres  # its own process starts it
async def test_without_an_account_it_keeps_users_apart_too_and_remembers_after_a_restart(tmp_path: Path) -> None:
    async def tokens(url: str) -> dict[str, str]:
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            return {name: (await http.post(f"/sign-in/{name}")).json() for name in USERS}

    with service(tmp_path) as url:
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            for name in "space:x", " ", "a%00b", "a%0Ab", "x" * 10_000:
                assert (await http.post(f"/sign-in/{name}")).status_code == 422, name
        first = await tokens(url)
        page = (EXAMPLES / "fastapi_chat" / "README.md").read_text()
        said = re.findall(r'^say \$(\w+) "(.*?)"(?: +# (.*))?$', page, re.MULTILINE)
        answers = [{"text": await say(url, first[who], text, "page")} for who, text, _ in said]
        shown = [(json.loads(shown), answer) for (*_, shown), answer in zip(said, answers, strict=True) if shown]
        assert len(shown) == 2
        assert [each for each, _ in shown] == [answer for _, answer in shown]
        await two_talk(url, first)
    with service(tmp_path) as url:
        second = await tokens(url)
        assert USERS["maya"] in await say(url, second["maya"], QUESTIONS["maya"])
        async with client(url, first["maya"]) as http:
            assert (await http.get(f"/chat?thread={THREAD}")).status_code == 401  # of the process before
