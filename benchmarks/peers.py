"""Other packages on the same work, if they are installed; how to install them for a run is said in `__main__`."""

from __future__ import annotations

import asyncio
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import UUID

from benchmarks import work

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AsyncExitStack

    from benchmarks.services import Site
    from benchmarks.throughput import Contestant

    Load = Callable[[], Awaitable[object]]
    """Loads the messages of one conversation for the next prompt."""


async def contestants(site: Site, stack: AsyncExitStack, conversations: int, messages: int) -> dict[str, Contestant]:
    """Whole turns with langchain-postgres's history and LangGraph's saver, in so many conversations."""
    return {
        "langchain-postgres": await _history_turns(site, stack, conversations, messages),
        "LangGraph AsyncPostgresSaver": await _saver_turns(site, stack, conversations, messages),
    }


async def loads(site: Site, stack: AsyncExitStack, sizes: Sequence[int]) -> dict[int, dict[str, Load]]:
    """Loads of one conversation of each size, by the same packages."""
    histories, savers = _Histories(site), _Savers(site)
    await histories.open(stack)
    await savers.open(stack)
    made: dict[int, dict[str, Load]] = {}
    for size in sizes:
        said = [message for _ in range(size // 2) for message in work.said()]
        await histories.turn(size, said)
        await savers.fill(size, said)
        made[size] = {
            "langchain-postgres": partial(histories.load, size),
            "LangGraph AsyncPostgresSaver": partial(savers.load, size),
        }
    return made


class _Histories:
    """langchain-postgres. It knows no bound: the whole history is read."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._history: Any = import_module("langchain_postgres").PostgresChatMessageHistory
        self._pool: Any = None

    async def open(self, stack: AsyncExitStack) -> None:
        self._pool = await self._site.async_pool()
        stack.push_async_callback(self._pool.close)
        async with self._pool.connection() as connection:
            await self._history.acreate_tables(connection, "peer_history")

    async def load(self, number: int) -> object:
        async with self._pool.connection() as connection:
            return await self._of(connection, number).aget_messages()

    async def turn(self, number: int, said: list[Any]) -> None:
        async with self._pool.connection() as connection:
            history = self._of(connection, number)
            await history.aget_messages()
            await history.aadd_messages(said)

    def _of(self, connection: Any, number: int) -> Any:
        return self._history("peer_history", str(UUID(int=number)), async_connection=connection)


class _Savers:
    """LangGraph's saver below a graph of one node, which answers with the next text."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._saver: Any = None
        self.graph: Any = None

    async def open(self, stack: AsyncExitStack) -> None:
        saver_class: Any = import_module("langgraph.checkpoint.postgres.aio").AsyncPostgresSaver
        graph_module: Any = import_module("langgraph.graph")
        pool = await self._site.async_pool(row_factory=import_module("psycopg.rows").dict_row)
        stack.push_async_callback(pool.close)
        self._saver = saver_class(pool)
        await self._saver.setup()

        async def answer(_: Any) -> dict[str, Any]:
            return {"messages": [work.said()[1]]}

        builder = graph_module.StateGraph(graph_module.MessagesState)
        builder.add_node("answer", answer)
        builder.set_entry_point("answer")
        builder.set_finish_point("answer")
        self.graph = builder.compile(checkpointer=self._saver)

    async def fill(self, number: int, said: list[Any]) -> None:
        await self.graph.aupdate_state(self._thread(number), {"messages": said})

    async def load(self, number: int) -> object:
        return await self._saver.aget_tuple(self._thread(number))

    async def turn(self, number: int) -> object:
        return await self.graph.ainvoke({"messages": [work.said()[0]]}, self._thread(number))

    @staticmethod
    def _thread(number: int) -> dict[str, Any]:
        return {"configurable": {"thread_id": f"peer-{number}"}}


async def _history_turns(site: Site, stack: AsyncExitStack, conversations: int, messages: int) -> Contestant:
    histories = _Histories(site)
    await histories.open(stack)
    for number in range(conversations):
        await histories.turn(number, [message for _ in range(messages // 2) for message in work.said()])
    return lambda number: histories.turn(number, work.said())


async def _saver_turns(site: Site, stack: AsyncExitStack, conversations: int, messages: int) -> Contestant:
    savers = _Savers(site)
    await savers.open(stack)
    fills = (
        savers.fill(number, [message for _ in range(messages // 2) for message in work.said()])
        for number in range(conversations)
    )
    await asyncio.gather(*fills)
    return savers.turn
