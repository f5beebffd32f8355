"""Nothing that a client writes says whose memory it is: every tool, argument, header and metadata field is tried."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from langchain_supabase_memory import SupabaseMemory
from tests.mcp.conftest import EVERY, YES, Person, client
from tests.mcp.test_http import Bearer, serving
from tests.services.project import PUBLISHABLE, Project

SECRET = "canary-4471"

NAMES = (
    "user_id", "user", "owner", "sub", "subject", "p_user_id", "userId", "group_id", "workspace", "tenant", "claims",
    "access_token", "token", "authorization", "jwt", "role", "agent_id", "p_agent_id", "memory", "served", "ctx",
    "context", "config", "configurable", "runtime", "metadata", "_meta", "headers", "request", "answer", "key",
)  # fmt: skip
"""What an argument or a field might be called that says who somebody is."""

HEADERS = (
    "X-User-Id", "X-User", "X-Forwarded-User", "X-Auth-Request-User", "X-Supabase-User", "X-Supabase-Auth", "Remote-User",
    "apikey", "Cookie", "Forwarded", "X-Original-Authorization", "Proxy-Authorization", "X-Mcp-User", "Mcp-Param-User-Id",
    "request.jwt.claims",
)  # fmt: skip


@dataclass(frozen=True)
class Victim:
    """Whose memory nobody else may reach.

    Attributes:
        user_id: The owner.
        conversation_id: Their only conversation.
        message_id: A message of it.
        memory: Their memory.
    """

    user_id: str
    conversation_id: str
    message_id: str
    memory: SupabaseMemory

    def said(self, token: str) -> list[Any]:
        """How a client might claim to be them."""
        claims = {"sub": self.user_id, "role": "authenticated"}
        return [self.user_id, claims, json.dumps(claims), {"configurable": {"user_id": self.user_id}}, token, ["*"]]


@pytest.fixture
async def victim(conn_string: str, user_id: str) -> AsyncIterator[Victim]:
    owner = f"{user_id}-victim"
    claims = {"sub": owner, "role": "authenticated"}
    async with SupabaseMemory.from_conn_string(conn_string, claims=claims, model=None) as memory:
        conversation = memory.conversation(f"{SECRET}-thread")
        await conversation.aadd_turn(f"My kiln's code is {SECRET}", f"Noted: {SECRET}", idempotency_key="1")
        await conversation.aindex()
        await conversation.aadd_board_item("fact", f"The code is {SECRET}.", by="victim")
        (first, _) = await conversation.aread()
        assert first.message is not None
        assert first.message.id is not None
        yield Victim(owner, conversation.key.thread_id, first.message.id, memory)
        # Whatever was tried, nothing of theirs is gone or has come.
        assert await conversation.acount() == 2
        assert [each.text for each in (await conversation.aboard()).facts] == [f"The code is {SECRET}."]
        assert len(await memory.aconversations()) == 1


async def tried(made: Client, name: str, arguments: dict[str, Any], **more: Any) -> None:
    """Call a tool: whatever comes of it tells nothing of the victim."""
    try:
        said = str(await made.call_tool(name, arguments, **more))
    except MCPError as error:
        said = str(error)
    assert "is " + SECRET not in said, (name, arguments)
    assert "Noted: " + SECRET not in said, (name, arguments)


async def every_argument(made: Client, victim: Victim, token: str, *, singly: bool) -> None:
    """Arguments that no tool has, and every text that one has with ids of the victim."""
    tools = (await made.list_tools()).tools
    assert {each.name for each in tools} == set(EVERY)
    for tool in tools:
        own = EVERY[tool.name]
        known = set(tool.input_schema["properties"])
        assert not known & set(NAMES) - {"user", "role"}, tool.name
        assert tool.name == "save_turn" or "user" not in known
        unknown = [name for name in NAMES if name not in known]
        claimed = victim.said(token)
        for place, name in enumerate(unknown if singly else []):
            await tried(made, tool.name, {**own, name: claimed[place % len(claimed)]})
        for said in claimed:
            await tried(made, tool.name, {**own, **dict.fromkeys(unknown, said)})
        for name, schema in tool.input_schema["properties"].items():
            if schema.get("type") != "string" or "enum" in schema:
                continue
            for value in (
                victim.user_id,
                victim.conversation_id,
                victim.message_id,
                f"' or user_id = '{victim.user_id}' --",
                f"{victim.user_id}/{victim.conversation_id}",
                "*",
                "%",
            ):
                forgets = {"dry_run": False} if tool.name == "forget" else {}
                await tried(made, tool.name, {**own, name: value, **forgets})
        both = {"conversation_id": victim.conversation_id, "message_id": victim.message_id}
        given = {name: value for name, value in both.items() if name in known}
        await tried(made, tool.name, {**own, **given, **({"dry_run": False} if tool.name == "forget" else {})})


async def everything_else(made: Client, victim: Victim, token: str) -> None:
    """Metadata of a call, addresses of resources, arguments of prompts."""
    for tool in EVERY:
        for said in victim.said(token)[:2]:
            meta: Any = dict.fromkeys(NAMES, said)
            await tried(made, tool, EVERY[tool], meta=meta)
    ids = (victim.conversation_id, victim.user_id, f"{victim.user_id}%2F{victim.conversation_id}")
    for path in ("board", "summary", "messages/0-9"):
        for address in ids:
            for extra in ("", f"?user_id={victim.user_id}", f"#{victim.user_id}"):
                uri = f"memory://conversations/{address}/{path}{extra}"
                try:
                    said_text = str(await made.read_resource(uri))
                except MCPError as error:
                    said_text = str(error)
                assert "is " + SECRET not in said_text, uri
    for prompt in ("continue_conversation", "what_is_open"):
        for arguments in ({"conversation_id": victim.conversation_id}, {"user_id": victim.user_id}, {"ctx": token}):
            try:
                said_text = str(await made.get_prompt(prompt, arguments))
            except MCPError as error:
                said_text = str(error)
            assert "is " + SECRET not in said_text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_a_direct_connection(studio: SupabaseMemory, victim: Victim, project: Project, mode: str) -> None:
    token = project.token(victim.user_id)
    options: Any = {"write": True, "destructive": True, "elicitation_callback": Person(YES)}
    async with client(studio, mode, **options) as made:
        await every_argument(made, victim, token, singly=True)
        await everything_else(made, victim, token)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_http(project: Project, user_id: str, victim: Victim, mode: str) -> None:
    async with serving(project, write=True, destructive=True) as address:
        theirs = project.token(victim.user_id)
        async with (
            httpx2.AsyncClient(auth=Bearer(project.token(user_id)), timeout=30) as http,
            Client(
                streamable_http_client(address, http_client=http), mode=mode, elicitation_callback=Person(YES)
            ) as made,
        ):
            await made.call_tool("save_turn", EVERY["save_turn"])
            # Each protocol carries one half: what reads them is the same as in process, where both do.
            if mode == "auto":
                await every_argument(made, victim, theirs, singly=False)
            else:
                await everything_else(made, victim, theirs)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_no_header_and_no_query_is_heard(project: Project, user_id: str, victim: Victim, mode: str) -> None:
    async with serving(project) as address:
        theirs = project.token(victim.user_id)
        values = (victim.user_id, f"Bearer {theirs}", json.dumps({"sub": victim.user_id, "role": "service_role"}))
        for value in values:
            headers = dict.fromkeys(HEADERS, value)
            for query in ("", f"?user_id={victim.user_id}&access_token={theirs}&apikey={PUBLISHABLE}"):
                async with (
                    httpx2.AsyncClient(auth=Bearer(project.token(user_id)), headers=headers, timeout=30) as http,
                    Client(streamable_http_client(f"{address}{query}", http_client=http), mode=mode) as made,
                ):
                    found = await made.call_tool("list_conversations", {})
                    assert "There are no conversations." in str(found)
                    await tried(made, "search_conversation_history", {"query": "kiln code"})
                    await tried(made, "get_turn", {"n": 1, "conversation_id": victim.conversation_id})
                # The same without a token of one's own: nobody.
                async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
                    assert (await http.post(f"{address}{query}", json={})).status_code == 401


async def test_of_two_authorizations_none_adds_the_others_rights(
    project: Project, user_id: str, victim: Victim
) -> None:
    mine, theirs = project.token(user_id), project.token(victim.user_id)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with serving(project) as address, httpx2.AsyncClient(timeout=30) as http:
        joined = await http.post(address, json=body, headers={"Authorization": f"Bearer {mine}, Bearer {theirs}"})
        assert joined.status_code == 401
