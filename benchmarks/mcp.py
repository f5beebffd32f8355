"""Measure a search over MCP stdio, next to the same recall in this process and a tool that does nothing."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from mcp import Client, StdioServerParameters

from benchmarks.harness import Table, interleaved, verdict
from langchain_supabase_memory import SupabaseMemory

if TYPE_CHECKING:
    from benchmarks.services import Lab

BOUND: Final = 1.2
"""The maximum cost of a search, in empty tool calls, in addition to its recall."""

_USER: Final = "mcp"
_TURNS: Final = 500
_RECALL: Final = "memory.recall in this process"
_SEARCH: Final = "search_conversation_history over stdio"
_EMPTY: Final = "floor: an empty tool over stdio"
_PROGRAM: Final = "from langchain_supabase_memory.cli import main; main()"
_FLOOR: Final = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("floor", log_level="WARNING")
@server.tool()
async def empty(query: str, limit: int) -> str:
    return ""
server.run()
"""


async def run(lab: Lab) -> list[Table]:
    site = lab.site()
    claims = {"sub": _USER, "role": "authenticated"}
    async with AsyncExitStack() as stack:
        memory = await stack.enter_async_context(SupabaseMemory.from_conn_string(site.conn_string).for_token(claims))
        await _fill(memory)
        environment = {"SUPABASE_DB_URL": site.conn_string, "SUPABASE_MEMORY_USER": _USER}
        ours = await stack.enter_async_context(_client(["-c", _PROGRAM, "mcp"], environment))
        floor = await stack.enter_async_context(_client(["-c", _FLOOR], {}))
        numbers = count()
        contestants: dict[str, Any] = {
            _RECALL: lambda query: memory.arecall(query, limit=5),
            _SEARCH: lambda query: ours.call_tool("search_conversation_history", {"query": query, "limit": 5}),
            _EMPTY: lambda query: floor.call_tool("empty", {"query": query, "limit": 5}),
        }
        medians = await interleaved(
            contestants,
            lambda: f"What did kiln {next(numbers) % _TURNS} show?",
            rounds=60 if lab.quick else 400,
            seconds=15 if lab.quick else 60,
        )
    beside = (medians[_SEARCH] - medians[_RECALL]) / medians[_EMPTY]
    rows: list[list[str | float]] = [[name, medians[name]] for name in contestants]
    notes = [verdict("overhead of a search over stdio, in empty tool calls", beside, BOUND)]
    return [Table(f"A search over MCP in {2 * _TURNS:,} messages", ["one call", "ms"], rows, notes)]


async def _fill(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("studio")
    for number in range(_TURNS):
        await conversation.aadd_turn(
            f"My kiln {number} shows E-{number}", f"That is thermocouple {number}.", idempotency_key=str(number)
        )
    await conversation.aindex()


def _client(arguments: list[str], environment: dict[str, str]) -> Client:
    return Client(StdioServerParameters(command=sys.executable, args=arguments, env=environment))
