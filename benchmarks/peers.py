"""Other packages on the same work, if they are installed; how to install them for a run is said in `__main__`."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import UUID

from benchmarks import work

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from benchmarks.services import Site
    from benchmarks.throughput import Contestant


async def contestants(site: Site, stack: AsyncExitStack, conversations: int, messages: int) -> dict[str, Contestant]:
    """Langchain-postgres's history and LangGraph's saver, with as many conversations of as many messages."""
    return {
        "langchain-postgres": await _history(site, stack, conversations, messages),
        "LangGraph AsyncPostgresSaver": await _saver(site, stack, conversations, messages),
    }


async def _history(site: Site, stack: AsyncExitStack, conversations: int, messages: int) -> Contestant:
    history_class: Any = import_module("langchain_postgres").PostgresChatMessageHistory
    pool = await site.async_pool()
    stack.push_async_callback(pool.close)
    async with pool.connection() as connection:
        await history_class.acreate_tables(connection, "peer_history")

    async def turn(number: int, said: list[Any]) -> None:
        # It knows no bound: the whole history is read.
        async with pool.connection() as connection:
            history = history_class("peer_history", str(UUID(int=number)), async_connection=connection)
            await history.aget_messages()
            await history.aadd_messages(said)

    for number in range(conversations):
        await turn(number, [message for _ in range(messages // 2) for message in work.messages()])
    return lambda number: turn(number, work.messages())


async def _saver(site: Site, stack: AsyncExitStack, conversations: int, messages: int) -> Contestant:
    saver_class: Any = import_module("langgraph.checkpoint.postgres.aio").AsyncPostgresSaver
    graph_module: Any = import_module("langgraph.graph")
    dict_row: Any = import_module("psycopg.rows").dict_row
    pool = await site.async_pool(row_factory=dict_row)
    stack.push_async_callback(pool.close)
    saver = saver_class(pool)
    await saver.setup()

    async def answer(_: Any) -> dict[str, Any]:
        return {"messages": [work.messages()[1]]}

    builder = graph_module.StateGraph(graph_module.MessagesState)
    builder.add_node("answer", answer)
    builder.set_entry_point("answer")
    builder.set_finish_point("answer")
    graph = builder.compile(checkpointer=saver)

    async def fill(number: int) -> None:
        history = [message for _ in range(messages // 2) for message in work.messages()]
        await graph.aupdate_state(_thread(number), {"messages": history})

    await asyncio.gather(*(fill(number) for number in range(conversations)))
    return lambda number: graph.ainvoke({"messages": [work.messages()[0]]}, _thread(number))


def _thread(number: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": f"peer-{number}"}}
