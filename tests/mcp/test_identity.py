"""Client input never selects another user's memory: every tool, argument, header and metadata field is tried.

Each test first shows what the victim's own client sees: without it the attempts would prove nothing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CLIENT_INFO_META_KEY, Implementation

from langchain_supabase_memory import ExtractiveSummarizer, SummaryPolicy, SupabaseMemory
from tests.mcp.conftest import EVERY, READING, YES, Person, client
from tests.mcp.test_http import Bearer, serving, signed_in
from tests.services.project import PUBLISHABLE, Project

SECRET = "canary-4471"
SHOWN = (f"is {SECRET}", f"Noted: {SECRET}")
"""Words of the victim, which no client sends: the canary alone may come back, for ids have it."""

NAMES = (
    "user_id", "user", "owner", "sub", "subject", "p_user_id", "userId", "group_id", "workspace", "tenant", "claims",
    "access_token", "token", "authorization", "jwt", "role", "agent_id", "p_agent_id", "memory", "served", "ctx",
    "context", "config", "configurable", "runtime", "metadata", "_meta", "headers", "request", "answer", "key",
)  # fmt: skip
"""What an argument or a field might be called that says who somebody is."""

HEADERS = (
    "X-User-Id", "X-User", "X-Forwarded-User", "X-Auth-Request-User", "X-Supabase-User", "X-Supabase-Auth",
    "Remote-User", "apikey", "Cookie", "Forwarded", "X-Original-Authorization", "Proxy-Authorization", "X-Mcp-User",
    "X-Client-Info", "Content-Profile", "Prefer", "request.jwt.claims", "Mcp-Param-User-Id", "Mcp-Param-User",
    "Mcp-Param-Owner", "Mcp-Param-Sub", "Mcp-Param-Agent-Id", "Mcp-Param-Served", "Mcp-Param-Answer", "Mcp-Param-Ctx",
    "Mcp-Param-Access-Token",
)  # fmt: skip

PATHS = ("board", "summary", "messages/0-9")
PROMPTS = ("continue_conversation", "what_is_open")


@dataclass(frozen=True)
class Victim:
    """Whose memory nobody else may reach.

    Attributes:
        user_id: The owner.
        conversation_id: Their only conversation.
        message_id: A message of it.
        item_id: What is remembered of them.
        memory: Their memory.
    """

    user_id: str
    conversation_id: str
    message_id: str
    item_id: str
    memory: SupabaseMemory

    def said(self, token: str) -> list[Any]:
        """How a client might claim to be them."""
        claims = {"sub": self.user_id, "role": "authenticated"}
        return [self.user_id, claims, json.dumps(claims), {"configurable": {"user_id": self.user_id}}, token, ["*"]]

    def values(self, token: str) -> tuple[str, ...]:
        """The same for a header."""
        claims = {"sub": self.user_id, "role": "service_role"}
        return self.user_id, f"Bearer {token}", json.dumps(claims)


@pytest.fixture
async def victim(conn_string: str, user_id: str) -> AsyncIterator[Victim]:
    owner = f"{user_id}-victim"
    claims = {"sub": owner, "role": "authenticated"}
    async with SupabaseMemory.from_conn_string(conn_string, model=None).for_token(claims) as memory:
        conversation = memory.conversation(f"{SECRET}-thread")
        await conversation.aadd_turn(f"My kiln's code is {SECRET}", f"Noted: {SECRET}", idempotency_key="1")
        await conversation.summaries.amake(
            policy=SummaryPolicy(messages=1, keep_messages=1), model=ExtractiveSummarizer()
        )
        await conversation.aindex()
        await conversation.board.aadd("fact", f"The code is {SECRET}.", actor="victim")
        await conversation.board.aadd("action", f"Ask whether the code is {SECRET}.", actor="victim")
        item_id = await memory.profile.aremember(f"The code is {SECRET}.")
        (first, _) = await conversation.aread()
        assert first.message is not None
        assert first.message.id is not None
        yield Victim(owner, conversation._key.thread_id, first.message.id, item_id, memory)
        # Whatever was tried, nothing of theirs is gone or has come.
        assert await conversation.acount() == 2
        board = await conversation.board.aread()
        assert [each.text for each in (*board.facts, *board.action_items)] == [
            f"The code is {SECRET}.",
            f"Ask whether the code is {SECRET}.",
        ]
        assert len(await memory.aconversations()) == 1
        assert [each.value for each in await memory.profile.aread()] == [f"The code is {SECRET}."]


async def shown(call: Awaitable[Any]) -> bool:
    """Whether an answer, or a failure, has words of the victim."""
    try:
        said = str(await call)
    except MCPError as error:
        said = str(error)
    return any(words in said for words in SHOWN)


async def tried(made: Client, name: str, arguments: dict[str, Any], **more: Any) -> None:
    """Call a tool: whatever comes of it shows nothing of the victim."""
    assert not await shown(made.call_tool(name, arguments, **more)), (name, arguments, more)


async def the_victim_sees_it(made: Client, victim: Victim) -> None:
    """Each tool that reads, each resource and each prompt shows the victim their own words."""
    named = {"conversation_id": victim.conversation_id}
    for tool in (await made.list_tools()).tools:
        if tool.name not in READING or tool.name == "get_insights":  # has counts, and topics once a worker found some
            continue
        takes_it = "conversation_id" in tool.input_schema["properties"]
        for more in ({}, named) if takes_it else ({},):
            assert await shown(made.call_tool(tool.name, {**READING[tool.name], **more})), tool.name
    for uri in (
        "memory://conversations",
        *(f"memory://conversations/{victim.conversation_id}/{path}" for path in PATHS),
    ):
        assert await shown(made.read_resource(uri)), uri
    for prompt in PROMPTS:
        assert await shown(made.get_prompt(prompt)), prompt
        assert await shown(made.get_prompt(prompt, named)), prompt


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
        forgets = {"dry_run": False} if tool.name == "forget" else {}
        for name, schema in tool.input_schema["properties"].items():
            if schema.get("type") != "string" or "enum" in schema:
                continue
            for value in (
                victim.user_id,
                victim.conversation_id,
                victim.message_id,
                victim.item_id,
                f"' or user_id = '{victim.user_id}' --",
                f"{victim.user_id}/{victim.conversation_id}",
                "*",
                "%",
            ):
                await tried(made, tool.name, {**own, name: value, **forgets})
        both = {"conversation_id": victim.conversation_id, "message_id": victim.message_id}
        given = {name: value for name, value in both.items() if name in known}
        await tried(made, tool.name, {**own, **given, **forgets})


async def everything_else(made: Client, victim: Victim, token: str) -> None:
    """Metadata of a call, addresses of resources, arguments of prompts."""
    info = {
        "name": victim.user_id,
        "version": "1",
        "title": victim.user_id,
        "websiteUrl": f"https://x/{victim.user_id}",
    }
    for tool in EVERY:
        for said in victim.said(token)[:2]:
            meta: Any = dict.fromkeys(NAMES, said)
            await tried(made, tool, EVERY[tool], meta=meta)
        claimed: Any = {CLIENT_INFO_META_KEY: info}
        await tried(made, tool, EVERY[tool], meta=claimed)
    ids = (victim.conversation_id, victim.user_id, f"{victim.user_id}%2F{victim.conversation_id}")
    for path in PATHS:
        for address in ids:
            for extra in ("", f"?user_id={victim.user_id}", f"#{victim.user_id}"):
                uri = f"memory://conversations/{address}/{path}{extra}"
                assert not await shown(made.read_resource(uri)), uri
    for prompt in PROMPTS:
        for arguments in ({"conversation_id": victim.conversation_id}, {"user_id": victim.user_id}, {"ctx": token}):
            assert not await shown(made.get_prompt(prompt, arguments)), prompt


async def every_tool(made: Client, victim: Victim) -> None:
    """Each tool as a stranger would call it, with the ids of the victim where it takes them."""
    for name, arguments in EVERY.items():
        await tried(
            made, name, {**arguments, **({"conversation_id": victim.conversation_id} if name in READING else {})}
        )


def claiming(victim: Victim, token: str) -> Iterator[Implementation]:
    """Clients that say in what they are called that they are the victim."""
    for said in (victim.user_id, f"Bearer {token}", json.dumps({"sub": victim.user_id})):
        yield Implementation(
            name=said, version=said, title=said, description=said, website_url=f"https://x/?sub={said}"
        )


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
async def test_over_a_direct_connection(studio: SupabaseMemory, victim: Victim, project: Project, mode: str) -> None:
    token = project.token(victim.user_id)
    options: Any = {"write": True, "destructive": True, "elicitation_callback": Person(YES)}
    async with client(victim.memory, mode) as own:
        await the_victim_sees_it(own, victim)
    async with client(studio, mode, **options) as made:
        await every_argument(made, victim, token, singly=mode == "auto")  # what reads them knows no protocol
        await everything_else(made, victim, token)
    for info in claiming(victim, token):
        async with client(studio, mode, client_info=info, **options) as made:
            await every_tool(made, victim)


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
async def test_over_http(project: Project, user_id: str, victim: Victim, mode: str) -> None:
    theirs = project.token(victim.user_id)
    options: Any = {"mode": mode, "elicitation_callback": Person(YES)}
    async with serving(project, write=True, destructive=True) as address:
        async with signed_in(address, theirs, **options) as own:
            await the_victim_sees_it(own, victim)
        async with signed_in(address, project.token(user_id), **options) as made:
            await made.call_tool("save_turn", EVERY["save_turn"])
            await every_argument(made, victim, theirs, singly=False)
            await everything_else(made, victim, theirs)
        for info in claiming(victim, theirs):
            async with signed_in(address, project.token(user_id), client_info=info, **options) as made:
                await every_tool(made, victim)


class Forging(Bearer):
    """One's own token, and another header beside it.

    Attributes:
        header: Its name and value.
    """

    header: tuple[str, str] = ("X-None", "")

    def auth_flow(self, request: httpx2.Request) -> Any:
        name, value = self.header
        request.headers[name] = value
        yield from super().auth_flow(request)


@asynccontextmanager
async def forging(address: str, token: str, mode: str) -> AsyncIterator[tuple[Client, Forging]]:
    """A client whose next header a test says."""
    forged = Forging(token)
    async with signed_in(address, forged, mode, elicitation_callback=Person(YES)) as made:
        yield made, forged


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
async def test_no_header_and_no_query_is_heard(project: Project, user_id: str, victim: Victim, mode: str) -> None:
    theirs = project.token(victim.user_id)
    values = victim.values(theirs)
    query = f"?user_id={victim.user_id}&access_token={theirs}&apikey={PUBLISHABLE}"
    async with serving(project, write=True, destructive=True) as address:
        async with forging(address, project.token(user_id), mode) as (made, forged):
            for place, name in enumerate(HEADERS):
                # A tool's arguments may come in headers of this name; of the others each is tried with half of the tools.
                tools = [*EVERY.items()] if name.startswith("Mcp-Param") else [*EVERY.items()][place % 2 :: 2]
                for tool, (called, arguments) in enumerate(tools):
                    forged.header = name, values[(place + tool) % len(values)]
                    await tried(made, called, arguments)
                forged.header = name, values[place % len(values)]
                assert not await shown(made.read_resource(f"memory://conversations/{victim.conversation_id}/board")), (
                    name
                )
                assert not await shown(made.get_prompt("continue_conversation")), name
            assert 401 not in forged.statuses  # each was asked in one's own name
        # All at once, and in the address.
        for value in values:
            headers = dict.fromkeys(HEADERS, value)
            async with (
                httpx2.AsyncClient(auth=Bearer(project.token(user_id)), headers=headers, timeout=30) as http,
                Client(streamable_http_client(f"{address}{query}", http_client=http), mode=mode) as made,
            ):
                await every_tool(made, victim)
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
