"""The contestants: the floors, the memory over both transports, and what an application would use instead.

Each one loads the data for the next prompt, about 12,000 characters where a limit is possible, and stores a turn of two
messages. All are async. `CONTESTANTS` documents the differences.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final, Protocol

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, messages_from_dict
from langchain_core.messages.base import message_to_dict

from benchmarks import work
from benchmarks.services import Clients
from benchmarks.titles import CAREFUL, DATA_API, DIRECT, FLOOR, FLOOR_LC, HISTORY, LOCK, LOCK_BARE, SAVER, SQL
from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.settings import DEFAULT_BUDGET

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

    from langchain_supabase_memory import SupabaseMemory

CHARACTERS: Final = DEFAULT_BUDGET.characters or 12_000
MESSAGES: Final = 28
"""This many messages of the mean length of 440 have about as many characters."""


class Contestant(Protocol):
    """Stores conversations, which are named by their threads."""

    def said(self) -> Any:
        """Return a turn in the form that `append` takes; called before the clock starts."""

    async def load(self, thread: str) -> object:
        """Load the data for the next prompt."""

    async def append(self, thread: str, said: Any) -> object:
        """Store a turn."""

    async def turn(self, thread: str, said: Any) -> object:
        """Load, then append."""

    async def fill(self, thread: str, messages: int) -> None:
        """Store a history; only used by contestants whose tables are not filled by SQL."""


class _Apart:
    """A turn is a load followed by an append."""

    def said(self) -> Any:
        return work.said()

    async def load(self, thread: str) -> object:
        raise NotImplementedError

    async def append(self, thread: str, said: Any) -> object:
        raise NotImplementedError

    async def turn(self, thread: str, said: Any) -> object:
        loaded = await self.load(thread)
        await self.append(thread, said)
        return loaded

    async def fill(self, thread: str, messages: int) -> None:
        raise NotImplementedError


class Floor(_Apart):
    """Uses prepared statements, binary results, and one pipelined round trip for a turn."""

    _READ: Final = (
        b"select role, text from bench.narrow where conversation = %s and characters_through > %s"
        b" order by characters_through"
    )
    _INSERT: Final = b"insert into bench.narrow values (%s, %s, 'user', %s), (%s, %s, 'assistant', %s)"
    _END: Final = (
        b"select characters_through from bench.narrow where conversation = %s order by characters_through desc limit 1"
    )

    _copy = ""

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection]) -> None:
        self._pool = pool
        self._ends: dict[str, int] = {}
        self._said = cycle([(work.text(), work.text()) for _ in range(64)])

    def said(self) -> Any:
        return next(self._said)

    async def load(self, thread: str) -> object:
        end = await self._end(thread)
        async with self._pool.connection() as connection, connection.cursor(binary=True) as cursor:
            await cursor.execute(self._READ, (self._copy + thread, end - CHARACTERS), prepare=True)
            return self._made(await cursor.fetchall())

    async def append(self, thread: str, said: Any) -> object:
        values = self._values(thread, await self._end(thread), said)
        async with self._pool.connection() as connection:
            return await connection.execute(self._INSERT, values, prepare=True)

    async def turn(self, thread: str, said: Any) -> object:
        end = await self._end(thread)
        values = self._values(thread, end, said)
        async with self._pool.connection() as connection:
            async with connection.pipeline():
                cursor = connection.cursor(binary=True)
                await cursor.execute(self._READ, (self._copy + thread, end - CHARACTERS), prepare=True)
                await connection.execute(self._INSERT, values, prepare=True)
            return self._made(await cursor.fetchall())

    def _texts(self, said: Any) -> tuple[str, str]:
        question, answer = said
        return question, answer

    def _made(self, rows: list[Any]) -> object:
        return rows

    def _values(self, thread: str, end: int, said: Any) -> tuple[Any, ...]:
        question, answer = self._texts(said)
        asked = end + len(question)
        self._ends[thread] = asked + len(answer)
        return self._copy + thread, asked, question, self._copy + thread, asked + len(answer), answer

    async def _end(self, thread: str) -> int:
        if thread not in self._ends:
            async with self._pool.connection() as connection:
                row = await (await connection.execute(self._END, [self._copy + thread])).fetchone()
            self._ends[thread] = row[0] if row else 0
        return self._ends[thread]


class FloorWithMessages(Floor):
    """Also converts from and to LangChain messages."""

    _copy = "lc "

    def said(self) -> Any:
        return work.said()

    def _texts(self, said: Any) -> tuple[str, str]:
        return said[0].content, said[1].content

    def _made(self, rows: list[Any]) -> object:
        return [HumanMessage(text) if role == "user" else AIMessage(text) for role, text in rows]


class Statement(_Apart):
    """Appends by one call of a SQL function with prepared arguments."""

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection], statement: bytes) -> None:
        self._pool = pool
        self._statement = statement

    def said(self) -> Any:
        rows = [codec.to_row(each.model_copy(update={"id": f"lc_{uuid.uuid4()}"})) for each in work.said()]
        return json.dumps(rows, ensure_ascii=False)

    async def append(self, thread: str, said: Any) -> object:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(self._statement, (thread, said), prepare=True)
            return await cursor.fetchone()


class Ours(_Apart):
    def __init__(self, memory: SupabaseMemory) -> None:
        self._memory = memory

    async def load(self, thread: str) -> object:
        return (await self._memory.conversation(thread).acontext()).messages

    async def append(self, thread: str, said: Any) -> object:
        return await self._memory.conversation(thread).aappend(said)


class Careful(_Apart):
    """Uses the same client as `supabase`: a batch insert, and a select of the newest messages."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def load(self, thread: str) -> object:
        query = self._client.from_("bench_careful").select("message").eq("conversation", thread)
        rows = (await query.order("id", desc=True).limit(MESSAGES).execute()).data
        return messages_from_dict([row["message"] for row in reversed(rows)])

    async def append(self, thread: str, said: list[BaseMessage]) -> object:
        rows = [{"conversation": thread, "message": message_to_dict(each)} for each in said]
        return await self._client.from_("bench_careful").insert(rows, returning="minimal").execute()


Opening = Callable[[Clients, AsyncExitStack], Awaitable[Contestant]]


async def _pool(clients: Clients, stack: AsyncExitStack) -> AsyncConnectionPool[AsyncConnection]:
    pool = await clients.async_pool(prepare_threshold=0)
    stack.push_async_callback(pool.close)
    return pool


async def _floor(clients: Clients, stack: AsyncExitStack) -> Contestant:
    return Floor(await _pool(clients, stack))


async def _floor_with_messages(clients: Clients, stack: AsyncExitStack) -> Contestant:
    return FloorWithMessages(await _pool(clients, stack))


async def _lock_bare(clients: Clients, stack: AsyncExitStack) -> Contestant:
    return Statement(await _pool(clients, stack), b"select bench.lock_and_insert(%s, %s)")


async def _lock(clients: Clients, stack: AsyncExitStack) -> Contestant:
    return Statement(await _pool(clients, stack), b"select bench.lock_and_insert_alike(%s, %s)")


async def _sql(clients: Clients, stack: AsyncExitStack) -> Contestant:
    statement = b"select public.memory_append(p_thread_id => %s, p_messages => %s, p_user_id => 'bench')"
    return Statement(await _pool(clients, stack), statement)


async def _ours(memory: SupabaseMemory, stack: AsyncExitStack) -> Contestant:
    stack.push_async_callback(memory.aclose)
    return Ours(memory)


async def _direct(clients: Clients, stack: AsyncExitStack) -> Contestant:
    return await _ours(clients.direct(), stack)


async def _data_api(clients: Clients, stack: AsyncExitStack) -> Contestant:
    return await _ours(clients.data_api(), stack)


async def _careful(clients: Clients, stack: AsyncExitStack) -> Contestant:
    client = clients.async_client()
    stack.push_async_callback(client.aclose)
    return Careful(client)


async def _history(clients: Clients, stack: AsyncExitStack) -> Contestant:
    from benchmarks.peers import History

    return await History.opened(clients, stack)


async def _saver(clients: Clients, stack: AsyncExitStack) -> Contestant:
    from benchmarks.peers import Saver

    return await Saver.opened(clients, stack)


CONTESTANTS: Final[dict[str, Opening]] = {
    FLOOR: _floor,
    FLOOR_LC: _floor_with_messages,
    LOCK_BARE: _lock_bare,
    LOCK: _lock,
    SQL: _sql,
    DIRECT: _direct,
    DATA_API: _data_api,
    CAREFUL: _careful,
    HISTORY: _history,
    SAVER: _saver,
}
"""How to open each contestant in its process, by its name in the tables."""

PEERS: Final = (HISTORY, SAVER)
APPEND_ONLY: Final = (LOCK_BARE, LOCK, SQL)
