"""Other packages on the same work, if installed; `__main__` documents how to install them for a run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5

from benchmarks import work

if TYPE_CHECKING:
    from contextlib import AsyncExitStack
    from typing import Self

    from benchmarks.services import Clients


class History:
    """langchain-postgres. It has no limit: the whole history is read."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._history: Any = import_module("langchain_postgres").PostgresChatMessageHistory

    @classmethod
    async def opened(cls, clients: Clients, stack: AsyncExitStack) -> Self:
        made = cls(await clients.async_pool())
        stack.push_async_callback(made._pool.close)
        async with made._pool.connection() as connection:
            await made._history.acreate_tables(connection, "peer_history")
        return made

    def said(self) -> Any:
        return work.said()

    async def load(self, thread: str) -> object:
        async with self._pool.connection() as connection:
            return await self._of(connection, thread).aget_messages()

    async def append(self, thread: str, said: Any) -> object:
        async with self._pool.connection() as connection:
            return await self._of(connection, thread).aadd_messages(said)

    async def turn(self, thread: str, said: Any) -> object:
        async with self._pool.connection() as connection:
            history = self._of(connection, thread)
            loaded: object = await history.aget_messages()
            await history.aadd_messages(said)
        return loaded

    async def fill(self, thread: str, messages: int) -> None:
        await self.append(thread, [message for _ in range(messages // 2) for message in work.said()])

    def _of(self, connection: Any, thread: str) -> Any:
        return self._history("peer_history", str(uuid5(NAMESPACE_OID, thread)), async_connection=connection)


class Saver:
    """LangGraph's saver below a graph of one node, which answers with the next text."""

    def __init__(self, saver: Any) -> None:
        self._saver = saver
        graph_module: Any = import_module("langgraph.graph")

        async def answer(_: Any) -> dict[str, Any]:
            return {"messages": [work.said()[1]]}

        builder = graph_module.StateGraph(graph_module.MessagesState)
        builder.add_node("answer", answer)
        builder.set_entry_point("answer")
        builder.set_finish_point("answer")
        self._graph = builder.compile(checkpointer=saver)

    @classmethod
    async def opened(cls, clients: Clients, stack: AsyncExitStack) -> Self:
        pool = await clients.async_pool(row_factory=import_module("psycopg.rows").dict_row)
        stack.push_async_callback(pool.close)
        saver: Any = import_module("langgraph.checkpoint.postgres.aio").AsyncPostgresSaver(pool)
        await saver.setup()
        return cls(saver)

    def said(self) -> Any:
        return work.said()

    async def load(self, thread: str) -> object:
        return await self._saver.aget_tuple(self._named(thread))

    async def append(self, thread: str, said: Any) -> object:
        return await self._graph.aupdate_state(self._named(thread), {"messages": said})

    async def turn(self, thread: str, said: Any) -> object:
        return await self._graph.ainvoke({"messages": said[:1]}, self._named(thread))

    async def fill(self, thread: str, messages: int) -> None:
        await self.append(thread, [message for _ in range(messages // 2) for message in work.said()])

    @staticmethod
    def _named(thread: str) -> dict[str, Any]:
        return {"configurable": {"thread_id": thread}}
