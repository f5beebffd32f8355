"""Change notifications for a page: streams that end and restart, and a notifier that keeps running."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import httpx
import psycopg
import pytest
import uvicorn
from langchain_core.messages import HumanMessage
from starlette.applications import Starlette
from starlette.routing import Mount

from langchain_supabase_memory import SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.inspector import application, live_updates
from tests.inspector.test_screens import talk
from tests.inspector.visiting import Person
from tests.services.postgres import free_port


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams as short as a test."""
    monkeypatch.setattr(live_updates, "STREAM_SECONDS", 0.5)
    monkeypatch.setattr(live_updates, "POLL_SECONDS", 0.1)


def test_a_server_that_mounts_it_can_end_while_a_page_listens(memory: SupabaseMemory) -> None:
    """A mounted application is told of no end, and a server waits for its connections first."""
    app = Starlette(routes=[Mount("/memory", application(memory))])
    server = uvicorn.Server(uvicorn.Config(app, port=free_port(), log_config=None))

    async def run() -> None:
        await server.serve()
        await memory.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server has ended"
            thread.join(0.05)
        address = f"http://127.0.0.1:{server.config.port}/memory/events?about=list"
        with httpx.stream("GET", address, timeout=60) as events:
            lines = events.iter_lines()
            assert next(lines) == "retry: 2000"
            server.should_exit = True
            assert "event: again" in [*lines]
        thread.join(60)
        assert not thread.is_alive()
    finally:
        server.force_exit = True
        thread.join(60)


async def test_who_leaves_while_it_is_looked_costs_no_connection(
    memory: SupabaseMemory, conn_string: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = application(memory)
    server = uvicorn.Server(uvicorn.Config(app, port=free_port(), log_config=None))
    serving = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(60), await psycopg.AsyncConnection.connect(conn_string, autocommit=True) as other:
            while not server.started:
                await asyncio.sleep(0.01)
            address = f"http://127.0.0.1:{server.config.port}/events?about=list"
            async with httpx.AsyncClient(timeout=60) as http, other.transaction():
                await other.execute("lock table memory.conversations in access exclusive mode")
                async with http.stream("GET", address) as events:
                    assert await anext(events.aiter_lines()) == "retry: 2000"
                    while not await waiting(other):
                        await asyncio.sleep(0.01)
                await asyncio.sleep(0.2)
                assert await waiting(other), "the look was cut short"
            while app.state.inspector.notifier.pages:
                await asyncio.sleep(0.01)
    finally:
        server.should_exit = True
        await serving
    assert [each.getMessage() for each in caplog.records if each.name.startswith("psycopg")] == []


async def waiting(connection: psycopg.AsyncConnection[Any]) -> int:
    """How many wait for what this connection has locked."""
    cursor = await connection.execute(
        "select count(*) from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))"
    )
    return int((await cursor.fetchone() or [0])[0])


async def test_a_stream_that_ends_has_another_begin(memory: SupabaseMemory) -> None:
    await memory.conversation("t").aadd_turn("a", "b")
    async with Person(memory) as person:
        first = await person.answer("/events", about="conversation", thread="t", seen="another")
        assert [line for line in first.text.splitlines() if line.startswith("event")] == [
            "event: changed",
            "event: again",
        ]
        page = await person.page("/conversation", thread="t")
        (body,) = page.all("body")
        second = await person.http.get(str(body["data-events"]))
        assert [line for line in second.text.splitlines() if line.startswith("event")] == ["event: again"]


class Broken:
    """A transport whose listening is a mistake of ours, a few times."""

    def __init__(self) -> None:
        self.left = 3

    @property
    def alisten(self) -> Any:
        self.left -= 1
        if self.left >= 0:
            raise RuntimeError("a secret")
        return None


async def test_a_beat_that_fails_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    transport: Any = Broken()
    beat = live_updates.ChangeNotifier(transport)
    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(60), beat.listening():
            while transport.left >= 0:
                await beat.wait(60)
    assert "cannot listen" in caplog.text
    assert "secret" not in caplog.text


async def test_a_newest_segment_that_is_edited_reaches_open_pages(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aappend([*talk(40), HumanMessage("And now?", id="now")])
    await said.summaries.amake(policy=SummaryPolicy(messages=10, keep_messages=6))
    newest = (await said.summaries.alist())[-1]
    async with Person(memory) as person:
        (body,) = (await person.page("/conversation/summaries", thread="t")).all("body")
        await said.summaries.aedit(newest.number, "About a kiln.", actor="maya")
        told = await person.http.get(str(body["data-events"]))
    assert "event: changed" in told.text
