"""Fixtures of the MCP server's tests: a project with an issuer, a user's memory, and clients of the SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.mcp.request_memory import OneOwner, ServerOptions
from langchain_supabase_memory.mcp.server import MemoryServer
from tests.services.data_api import DataApi
from tests.services.postgres import Cluster
from tests.services.project import Project

MODES = {"auto": "2026-07-28", "legacy": "2025-11-25"}
"""How a client begins, and the protocol that both then speak: today's, and the newest of those before it."""

READING: dict[str, dict[str, Any]] = {
    "search_conversation_history": {"query": "kiln"},
    "get_context": {"question": "What did my kiln show?"},
    "list_conversations": {},
    "get_conversation_summary": {},
    "get_profile": {},
    "get_insights": {},
    "read_messages": {"first": 0, "last": 9},
    "get_turn": {"n": 1},
}
WRITING: dict[str, dict[str, Any]] = {
    "save_turn": {"user": "hello", "assistant": "hi", "conversation_id": "studio", "idempotency_key": "1"},
    "remember": {"text": "Likes clay."},
}
FORGETTING: dict[str, dict[str, Any]] = {"forget": {"conversation_id": "studio"}}
EVERY = {**READING, **WRITING, **FORGETTING}
SPACE_ID = "space:00000000-0000-4000-8000-000000000000"
READING_SPACES = {name: arguments for name, arguments in READING.items() if name not in ("get_profile", "get_insights")}
"""Those that take a space: what is remembered or counted of a person is in none."""

IN_SPACES: dict[str, dict[str, Any]] = {
    "list_spaces": {},
    "read_space_board": {"space_id": SPACE_ID},
    "share_with_space": {"space_id": SPACE_ID, "quote": "My kiln shows E-47"},
    "withdraw_from_space": {"space_id": SPACE_ID, "item_id": "00000000-0000-4000-8000-000000000000"},
}
"""The tools of spaces, with a space that nobody is in; `test_spaces.py` has others."""

FOUND = {
    "search_conversation_history": "My kiln shows E-47",
    "get_context": "Assistant: That is the thermocouple.",
    "list_conversations": '<conversation id="studio" messages="2"',
    "get_conversation_summary": "There is no summary yet. There are 2 messages",
    "get_profile": "I fire the kiln on Fridays.",
    "get_insights": "messages of the person: 1",
    "read_messages": '<message number="1" by="assistant"',
    "get_turn": "User: My kiln shows E-47",
}
"""What each reading tool gives of `studio`."""

FENCE = "<conversation_memory>"


def result_text(result: CallToolResult) -> str:
    """Return the text that the model reads, of a result that is not a failure."""
    assert not result.is_error, words(result)
    assert result.structured_content is not None
    assert result.structured_content["text"] == words(result)
    return words(result)


def failed(result: CallToolResult) -> str:
    """What the model reads of a failure."""
    assert result.is_error
    return words(result)


def words(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert block.text.startswith(FENCE)
    return block.text


class Person:
    """Who is asked by elicitation.

    Attributes:
        answer: What they say.
        asked: What they were asked.
    """

    def __init__(self, answer: ElicitResult) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        del context
        self.asked.append(params.message)
        return self.answer


YES = ElicitResult(action="accept", content={"forget": True, "remember": True})


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    """The person's own, as `supabase-memory mcp --user` opens it, with tools that write."""
    claims = {"sub": user_id, "role": "authenticated"}
    with SupabaseMemory.from_conn_string(conn_string, model=None).for_token(claims) as memory:
        yield memory


async def count_insights(conn_string: str, user_id: str) -> None:
    """Find topics and count usage, as a worker does."""
    async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as server:
        await server.topics.aupdate()
        await server.usage.aupdate()


@pytest.fixture
async def studio(memory: SupabaseMemory, conn_string: str, user_id: str) -> AsyncIterator[SupabaseMemory]:
    """A memory with a conversation that is indexed and counted, and something that is remembered."""
    conversation = memory.conversation("studio")
    await conversation.aadd_turn("My kiln shows E-47", "That is the thermocouple.", idempotency_key="kiln")
    await conversation.aindex()
    await memory.profile.aremember("I fire the kiln on Fridays.")
    await count_insights(conn_string, user_id)
    yield memory
    await memory.aclose()


@asynccontextmanager
async def client(memory: SupabaseMemory, mode: str = "auto", **settings: Any) -> AsyncIterator[Client]:
    """A client of a server in this process; what is no option of the server is one of the client."""
    options = {name: settings.pop(name) for name in list(settings) if name in ServerOptions.__annotations__}
    async with Client(MemoryServer(OneOwner(memory), ServerOptions(**options)), mode=mode, **settings) as made:
        assert made.protocol_version == MODES[mode]
        yield made


@pytest.fixture(scope="session")
def project(cluster: Cluster, database: str, data_api: DataApi) -> Iterator[Project]:
    """An issuer and a Data API under one address. It goes back to its first key when a test has rotated it."""
    del data_api  # so that these tests are known to need PostgREST
    with Project(cluster, database) as project:
        yield project
