"""The contestants of a whole turn: the same default agent with no memory, with others' memories, and with this one.

Its model answers at once. A turn is what an application does with a user's message: it calls the agent, and where the
agent has no memory, reads the last messages before and stores the new ones afterwards.
"""

from __future__ import annotations

import json
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final, Protocol

import psycopg
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, messages_from_dict
from langchain_core.messages.base import message_to_dict
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore
from langmem import create_manage_memory_tool, create_search_memory_tool
from langmem.short_term import RunningSummary, SummarizationNode
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from benchmarks import fill
from benchmarks.talks import sixty
from langchain_supabase_memory import SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.worker.policy import WorkerPolicy
from langchain_supabase_memory.worker.worker import Worker
from tests.services.data_api import token

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AsyncExitStack

    from benchmarks.services import Site

BARE: Final = "no memory"
BY_HAND: Final = "by hand, psycopg, the last 20"
STOCK: Final = "SummarizationMiddleware, PostgresSaver"
LANGMEM: Final = "langmem's SummarizationNode, PostgresSaver"
LANGMEM_STORE: Final = "the same, with langmem's tools and PostgresStore"
OURS: Final = "this package, direct"
OURS_WITHOUT_RECALL: Final = "this package, direct, recall=None"
API_BY_HAND: Final = "by hand, supabase-py, the last 20"
OURS_API: Final = "this package, Data API"

_LAST: Final = 20
_TOKENS: Final = 4000
_SUMMARY: Final = "They spoke of the studio, of orders, of dates and of what is to be done next week. " * 6
_ANSWERS: Final = cycle([turn.assistant for turn in sixty(sentences=4)])


class Instant(BaseChatModel):
    """A chat model that answers at once, in the caller's thread, with a few hundred characters.

    Attributes:
        answer: What it says every time; `None` for ever new answers.
    """

    answer: str | None = None

    @property
    def _llm_type(self) -> str:
        return "instant"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.answer or next(_ANSWERS)))])

    async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
        return self._generate()

    def bind_tools(self, *_: Any, **__: Any) -> Instant:
        return self


class Agent(Protocol):
    """A contestant. A thread is one conversation of one user, both of that name."""

    async def fill(self, threads: Sequence[str], said: list[BaseMessage]) -> None:
        """Let each conversation hold these messages already."""

    def turn(self, thread: str, text: str) -> object:
        """Answer a user's message."""

    async def aturn(self, thread: str, text: str) -> object:
        """The async twin of `turn`."""


def _run(thread: str) -> Any:
    return {"configurable": {"thread_id": thread, "user_id": thread}}


def _new(said: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages as new objects, which a graph gives ids."""
    return [type(each)(content=each.content) for each in said]


class Bare:
    """Knows nothing but the message."""

    def __init__(self) -> None:
        self._agent: Any = create_agent(Instant(), [])

    async def fill(self, threads: Sequence[str], said: list[BaseMessage]) -> None:
        """Do nothing."""

    def turn(self, thread: str, text: str) -> object:
        return self._agent.invoke({"messages": [HumanMessage(text)]}, _run(thread))

    async def aturn(self, thread: str, text: str) -> object:
        return await self._agent.ainvoke({"messages": [HumanMessage(text)]}, _run(thread))


class ByHand:
    """One select of the last messages before the agent is called, and one insert after it."""

    _READ: Final = b"select message from public.bench_careful where conversation = %s order by id desc limit 20"
    _ADD: Final = b"insert into public.bench_careful (conversation, message) values (%s, %s), (%s, %s)"

    def __init__(self, site: Site, pool: ConnectionPool, apool: AsyncConnectionPool) -> None:
        self._site = site
        self._pool = pool
        self._apool = apool
        self._agent: Any = create_agent(Instant(), [])

    async def fill(self, threads: Sequence[str], said: list[BaseMessage]) -> None:
        _copied(self._site, threads, said)

    def turn(self, thread: str, text: str) -> object:
        with self._pool.connection() as connection:
            rows = connection.execute(self._READ, [thread]).fetchall()
        done = self._agent.invoke(self._asked(rows, text), _run(thread))
        with self._pool.connection() as connection:
            return connection.execute(self._ADD, self._values(thread, done))

    async def aturn(self, thread: str, text: str) -> object:
        async with self._apool.connection() as connection:
            rows = await (await connection.execute(self._READ, [thread])).fetchall()
        done = await self._agent.ainvoke(self._asked(rows, text), _run(thread))
        async with self._apool.connection() as connection:
            return await connection.execute(self._ADD, self._values(thread, done))

    def _asked(self, rows: list[Any], text: str) -> Any:
        return {"messages": [*messages_from_dict([message for (message,) in reversed(rows)]), HumanMessage(text)]}

    def _values(self, thread: str, done: Any) -> list[str]:
        return [value for each in done["messages"][-2:] for value in (thread, json.dumps(message_to_dict(each)))]


class ApiByHand:
    """The same with the client of supabase-py."""

    def __init__(self, site: Site, client: Any, aclient: Any) -> None:
        self._site = site
        self._client = client
        self._aclient = aclient
        self._agent: Any = create_agent(Instant(), [])

    async def fill(self, threads: Sequence[str], said: list[BaseMessage]) -> None:
        _copied(self._site, threads, said)

    def turn(self, thread: str, text: str) -> object:
        done = self._agent.invoke(self._asked(self._read(self._client, thread).execute(), text), _run(thread))
        return self._add(self._client, thread, done).execute()

    async def aturn(self, thread: str, text: str) -> object:
        found = await self._read(self._aclient, thread).execute()
        done = await self._agent.ainvoke(self._asked(found, text), _run(thread))
        return await self._add(self._aclient, thread, done).execute()

    def _read(self, client: Any, thread: str) -> Any:
        query = client.from_("bench_careful").select("message").eq("conversation", thread)
        return query.order("id", desc=True).limit(_LAST)

    def _add(self, client: Any, thread: str, done: Any) -> Any:
        rows = [{"conversation": thread, "message": message_to_dict(each)} for each in done["messages"][-2:]]
        return client.from_("bench_careful").insert(rows, returning="minimal")

    def _asked(self, found: Any, text: str) -> Any:
        return {"messages": [*messages_from_dict([row["message"] for row in reversed(found.data)]), HumanMessage(text)]}


def _copied(site: Site, threads: Sequence[str], said: list[BaseMessage]) -> None:
    rows = [json.dumps(message_to_dict(each)) for each in said]
    statement = b"copy public.bench_careful (conversation, message) from stdin"
    with psycopg.connect(site.superuser) as connection, connection.cursor().copy(statement) as copy:
        for thread in threads:
            for row in rows:
                copy.write_row((thread, row))


class Graph:
    """A graph with a checkpointer, compiled once for each kind of call."""

    def __init__(self, graph: Any, agraph: Any) -> None:
        self._graph = graph
        self._agraph = agraph

    async def fill(self, threads: Sequence[str], said: list[BaseMessage]) -> None:
        """Send the history with a first message: what is too long is summarized then."""
        for thread in threads:
            await self._agraph.ainvoke({"messages": _new(said)}, _run(thread))

    def turn(self, thread: str, text: str) -> object:
        return self._graph.invoke({"messages": [HumanMessage(text)]}, _run(thread))

    async def aturn(self, thread: str, text: str) -> object:
        return await self._agraph.ainvoke({"messages": [HumanMessage(text)]}, _run(thread))


def stock(saver: Any) -> Any:
    """The default agent with LangChain's summarizer, whose model answers at once, too."""
    summarizer = SummarizationMiddleware(
        Instant(answer=_SUMMARY), trigger=("tokens", _TOKENS), keep=("messages", _LAST)
    )
    return create_agent(Instant(), [], middleware=[summarizer], checkpointer=saver)


class _State(MessagesState):
    context: dict[str, RunningSummary]
    summarized_messages: list[BaseMessage]


def langmem(saver: Any, store: Any = None) -> Any:
    """langmem's graph of a summary and an answer; with a store, its tools search before and add a memory after it."""
    model = Instant()
    namespace = ("memories", "{user_id}")
    search: Any = store and create_search_memory_tool(namespace, store=store)
    manage: Any = store and create_manage_memory_tool(namespace, store=store)

    def prompt(state: _State, found: str) -> list[BaseMessage]:
        return [HumanMessage(found), *state["summarized_messages"]] if found else state["summarized_messages"]

    def answer(state: _State, config: Any) -> dict[str, Any]:
        asked = state["messages"][-1].text
        found = search.invoke({"query": asked}, config) if store else ""
        said = model.invoke(prompt(state, found))
        if store:
            manage.invoke({"content": asked, "action": "create"}, config)
        return {"messages": [said]}

    async def aanswer(state: _State, config: Any) -> dict[str, Any]:
        asked = state["messages"][-1].text
        found = await search.ainvoke({"query": asked}, config) if store else ""
        said = await model.ainvoke(prompt(state, found))
        if store:
            await manage.ainvoke({"content": asked, "action": "create"}, config)
        return {"messages": [said]}

    node = SummarizationNode(
        model=Instant(answer=_SUMMARY), max_tokens=_TOKENS, max_summary_tokens=256,
        token_counter=count_tokens_approximately, output_messages_key="summarized_messages",
    )  # fmt: skip
    graph = StateGraph(_State).add_node("summarize", node).add_node("answer", RunnableLambda(answer, aanswer))
    return graph.add_edge(START, "summarize").add_edge("summarize", "answer").compile(saver)


class Ours:
    """The default agent with this package's middleware."""

    def __init__(self, site: Site, memory: SupabaseMemory, **options: Any) -> None:
        self._site = site
        self.memory = memory
        self._agent: Any = create_agent(Instant(), [], middleware=[SupabaseMemoryMiddleware(memory, **options)])

    async def fill(self, threads: Sequence[str], said: list[BaseMessage]) -> None:
        """Store the history in the first, leave it to a worker, and copy the result to the others."""
        first, *others = threads
        conversation = self.memory.for_user(first).conversation(first)
        for at in range(0, len(said), 500):
            await conversation.aappend(_new(said[at : at + 500]))
        await Worker(self.memory, policy=WorkerPolicy(debounce_seconds=0)).drain()
        fill.copies(self._site.superuser, first, others)

    def turn(self, thread: str, text: str) -> object:
        return self._agent.invoke({"messages": [HumanMessage(text)]}, _run(thread))

    async def aturn(self, thread: str, text: str) -> object:
        return await self._agent.ainvoke({"messages": [HumanMessage(text)]}, _run(thread))


async def opened(ours: Site, others: Site, stack: AsyncExitStack) -> Mapping[str, Agent]:
    """Open the contestants by their names in the tables.

    Args:
        ours: The project of this package.
        others: The project of everything else.
        stack: Closes what it opens.
    """

    async def pools(name: str, **more: Any) -> tuple[ConnectionPool, AsyncConnectionPool]:
        conn_string, settings = named(others.conn_string, name), others.pool_settings(**more)
        pool, apool = ConnectionPool(conn_string, **settings), AsyncConnectionPool(conn_string, **settings)
        pool.open(wait=True)
        await apool.open(wait=True)
        stack.callback(pool.close)
        stack.push_async_callback(apool.close)
        return pool, apool

    async def savers(name: str) -> tuple[Any, Any, ConnectionPool, AsyncConnectionPool]:
        pool, apool = await pools(name, prepare_threshold=0, row_factory=dict_row)
        saver: Any = PostgresSaver(pool)  # type: ignore[arg-type]
        saver.setup()
        asaver: Any = AsyncPostgresSaver(apool)  # type: ignore[arg-type]
        return saver, asaver, pool, apool

    def memory(name: str) -> SupabaseMemory:
        made = SupabaseMemory.from_conn_string(named(ours.conn_string, name))
        stack.push_async_callback(made.aclose)
        return made

    stock_saver, stock_asaver, *_ = await savers(STOCK)
    langmem_saver, langmem_asaver, *_ = await savers(LANGMEM)
    saver, asaver, pool, apool = await savers(LANGMEM_STORE)
    store: Any = PostgresStore(pool)  # type: ignore[arg-type]
    store.setup()
    astore: Any = AsyncPostgresStore(apool)  # type: ignore[arg-type]
    aclient = others.async_client()
    stack.push_async_callback(aclient.aclose)
    api = SupabaseMemory.from_url(ours.url, token("service_role"), rest_path="")
    stack.push_async_callback(api.aclose)
    return {
        BARE: Bare(),
        BY_HAND: ByHand(others, *await pools(BY_HAND, prepare_threshold=5)),
        STOCK: Graph(stock(stock_saver), stock(stock_asaver)),
        LANGMEM: Graph(langmem(langmem_saver), langmem(langmem_asaver)),
        LANGMEM_STORE: Graph(langmem(saver, store), langmem(asaver, astore)),
        OURS: Ours(ours, memory(OURS)),
        OURS_WITHOUT_RECALL: Ours(ours, memory(OURS_WITHOUT_RECALL), recall=None),
        API_BY_HAND: ApiByHand(others, others.client(), aclient),
        OURS_API: Ours(ours, api),
    }


def named(conn_string: str, name: str) -> str:
    """Return the connection string of a contestant, whose server processes carry the name."""
    return make_conninfo(conn_string, application_name=name)
