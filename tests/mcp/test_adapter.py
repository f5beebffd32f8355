"""A LangChain agent uses the server through `langchain.mcp`, in process, over stdio and over HTTP."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.mcp.request_memory import OneOwner
from langchain_supabase_memory.mcp.server import MemoryServer
from tests.chat_models import calls, says
from tests.cli.running import PROGRAM, surroundings
from tests.mcp.conftest import FENCE, READING
from tests.mcp.test_http import serving
from tests.services.project import Project


async def used(target: Any) -> str:
    """What an agent's model is told when it searches."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # langchain.mcp is a beta and says so
        from langchain.mcp import MCPAdapter  # a second of the processor

    async with MCPAdapter(target) as adapter:
        tools = await adapter.list_tools()
        assert {each.name for each in tools} == set(READING)
        model = says(calls("search_conversation_history", query="kiln"), "It showed E-47.")
        agent = create_agent(model, tools)
        state = await agent.ainvoke({"messages": [HumanMessage("What did my kiln show?")]})
    (result,) = [each for each in state["messages"] if isinstance(each, ToolMessage)]
    assert result.status == "success"
    return str(result.text)


async def test_in_process(studio: SupabaseMemory) -> None:
    said = await used(MemoryServer(OneOwner(studio)))
    assert said.startswith(FENCE)
    assert "My kiln shows E-47" in said


async def test_over_stdio(studio: SupabaseMemory, conn_string: str, user_id: str) -> None:
    env = surroundings(SUPABASE_DB_URL=conn_string, SUPABASE_MEMORY_USER=user_id)
    server = {"command": PROGRAM[0], "args": [*PROGRAM[1:], "mcp"], "env": env}
    assert "My kiln shows E-47" in await used({"mcpServers": {"memory": server}})


@pytest.mark.parametrize("whose", ["own", "other"])
async def test_over_http(project: Project, studio: SupabaseMemory, user_id: str, whose: str) -> None:
    from fastmcp.client import Client as FastMCPClient  # a second of the processor
    from fastmcp.client.auth import BearerAuth

    user = user_id if whose == "own" else f"{user_id}-other"
    async with serving(project) as address:
        said = await used(FastMCPClient(address, auth=BearerAuth(project.token(user))))
    assert ("My kiln shows E-47" in said) is (whose == "own")
