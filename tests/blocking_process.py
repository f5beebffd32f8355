"""Use every async surface first in a separate process, and report what blocks its event loop.

Each use runs in a fork of a process that has only executed an application's top-level imports: nothing has been used,
so nothing is read, cached or connected yet. Each report is a line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import base64
import hashlib
import json
import logging
import multiprocessing
import os
import shutil
import socket
import ssl
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import blockbuster.blockbuster
import httpx
import mcp
import psycopg
from langchain.agents import create_agent
from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import MessagesState
from langgraph.store.memory import InMemoryStore
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from supabase import AsyncClient
from tiktoken.load import load_tiktoken_bpe
from yarl import URL

from langchain_supabase_memory import (
    PERSONAL_DATA,
    SECRETS,
    BoardPolicy,
    ChunkPolicy,
    ContextBudget,
    LoadContextNode,
    Retention,
    SaveTurnNode,
    SummaryPolicy,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseMemoryRetriever,
    SupabaseMemoryToolkit,
    SupabaseStore,
    SupabaseSummarizationNode,
    Worker,
    WorkerPolicy,
    arecord_stream,
)
from langchain_supabase_memory.adapters.transports.pools import AsyncPool
from langchain_supabase_memory.agents.deepagents_files import MemoryFiles
from langchain_supabase_memory.agents.openai_session import SupabaseSession
from langchain_supabase_memory.deadline import in_thread
from langchain_supabase_memory.errors import ConfigurationError, MigrationConflictError, NotFoundError
from langchain_supabase_memory.inspector import application, edit_routes, profile_routes, space_routes, topic_routes
from langchain_supabase_memory.language import tokens
from langchain_supabase_memory.long_term import Memory, StoreLongTerm, VectorStoreLongTerm, aforget_source, apromote
from langchain_supabase_memory.mcp.request_memory import OneOwner, ServerOptions
from langchain_supabase_memory.mcp.server import MemoryServer
from langchain_supabase_memory.models import EdgeEmbeddings, SupabaseSummarizer
from langchain_supabase_memory.telemetry import Metrics
from langchain_supabase_memory.testing import STORE_CHECKS, acheck_store
from langchain_supabase_memory.transfer import aexport_conversations, aimport_conversations
from langchain_supabase_memory.transfer.sources import jsonl
from langchain_supabase_memory.transports import PostgresTransport, SupabaseTransport
from langchain_supabase_memory.types import Conversation, Perspective, Rollout
from langchain_supabase_memory.worker import cleanup
from tests.chat_models import ScriptedModel, calls, says
from tests.embedders import WordEmbedder
from tests.memory_keywords import memory_keywords
from tests.owners import conversation_of

PACKAGE = str(Path(sys.modules["langchain_supabase_memory"].__file__ or "").parent)
THREAD: Any = {"thread_id": "prepared"}
NO_SPACE = f"space:{UUID(int=0)}"
POINTING = "What did you say in the second one? And what is my budget?"
BOARD = json.dumps(
    {
        "summary": "They plan a studio.",
        "context_notes": "",
        "new_items": [{"kind": "fact", "text": "The budget is 4,000 euros.", "quote": "My budget is 4,000 euros", "message": 0}],
        "closed_items": [],
    }
)  # fmt: skip


def conversation() -> list[AnyMessage]:
    """Return a conversation with all that the rules look for: facts, questions, promises, names, dates, secrets."""
    said: list[AnyMessage] = []
    for number in range(8):
        said += [
            HumanMessage(f"My budget is {4000 + number} euros. Can Maya Olsen bring the kiln on 3 May? My password: hunter{number}"),
            AIMessage(f"I will write to Maya Olsen tomorrow. The kiln number {number} needs 16 amperes; is that enough?"),
        ]  # fmt: skip
    return said


class Blocked:
    """Records what blocks the event loop, and which async functions of the package run in it."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.ran: set[str] = set()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch this thread's event loop."""
        original = blockbuster.blockbuster.BlockingError.__init__

        def init(error: blockbuster.blockbuster.BlockingError, function: str) -> None:
            original(error, function)
            self.add(function)

        # Other code may catch and suppress the exception, so it is recorded on creation.
        blockbuster.blockbuster.BlockingError.__init__ = init  # type: ignore[method-assign,assignment]
        # BlockBuster does not see calls outside of Python.
        for owner, name in (
            (ssl, "create_default_context"),
            (socket, "getaddrinfo"),
            (psycopg, "connect"),
            (psycopg.Connection, "connect"),
        ):
            setattr(owner, name, self._noted(f"{owner.__name__}.{name}", getattr(owner, name)))
        sys.meta_path.insert(0, self)
        buster = blockbuster.BlockBuster()
        buster.activate()
        sys.setprofile(self._called)
        threading.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            buster.deactivate()

    def add(self, what: str) -> None:
        """Record a blocking call and its location."""
        frames = [each for each in traceback.extract_stack() if "blocking_process" not in each.filename]
        frames = [each for each in frames if "blockbuster" not in each.filename]
        ours = [each for each in frames if each.filename.startswith(PACKAGE)]
        where = [*ours[-3:], *frames[-(1 if ours else 6) :]]
        told = [f"{'/'.join(Path(each.filename).parts[-2:])}:{each.lineno} {each.name}" for each in where]
        self.found.append(f"{what} in " + " > ".join(told))

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """Record an import by this package while its event loop waits."""
        if _in_loop():
            frame: Any = sys._getframe(1)
            while frame is not None and "importlib" in frame.f_code.co_filename:
                frame = frame.f_back
            if frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
                self.add(f"import {name}")
        return None

    def _noted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def noted(*arguments: Any, **named: Any) -> Any:
            if _in_loop():
                self.add(name)
            return function(*arguments, **named)

        return noted

    def _called(self, frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & 0x280 and code.co_filename.startswith(PACKAGE):
            self.ran.add(f"{Path(code.co_filename).relative_to(PACKAGE)}:{code.co_qualname}")


class _Formatting(logging.Handler):
    """Formats log records and discards them."""

    def emit(self, record: logging.LogRecord) -> None:
        self.format(record)


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class AsyncEmbedder(WordEmbedder):
    """An embedder with its own async methods."""

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return (await self.aembed_documents([text]))[0]


@dataclass
class Place:
    """The database's address, and the optional parts.

    Attributes:
        transport: `direct`, `data_api` or `embedded`.
        address: A connection string, a URL or a folder.
        key: The key of the Data API.
        user_id: The owner of the prepared conversation.
        vocabulary: Whether `tiktoken` has its vocabulary on disk.
        metrics: The metrics registry.
    """

    transport: str
    address: str
    key: str
    user_id: str
    vocabulary: bool
    metrics: Metrics | None = None

    def memory(self, **named: Any) -> SupabaseMemory:
        """Return a memory with every optional part: with async methods over one transport, without over the others."""
        is_async = self.transport == "direct"
        settings: Any = {
            "user_id": self.user_id,
            "embeddings": self.embedder(),
            "model": RunnableLambda(_written, afunc=_awritten) if is_async else _written,
            "reranker": AsyncCompressor() if is_async else _reranked,
            "expander": RunnableLambda(_written, afunc=_awritten) if is_async else _expanded,
            "budget": ContextBudget(tokens=900),
            "policy": SummaryPolicy(messages=4, keep_messages=2, attempts=1),
            "board_policy": BoardPolicy(update_frequency=2, attempts=1),
            "chunking": ChunkPolicy(mode="inline"),
            "retention": Retention(max_turns=500),
            "metrics": self.metrics,
            "redactor": [*SECRETS, *PERSONAL_DATA],
            **named,
        }
        if self.transport == "direct":
            return SupabaseMemory.from_conn_string(self.address, **memory_keywords(settings))
        if self.transport == "embedded":
            return SupabaseMemory.embedded(self.address, **memory_keywords(settings))
        return SupabaseMemory.from_url(self.address, self.key, rest_path="", **memory_keywords(settings))

    def embedder(self) -> Embeddings:
        """Return an embedder, with async methods only for the direct transport."""
        return AsyncEmbedder(384) if self.transport == "direct" else WordEmbedder(384)


def _reranked(_: str, documents: Any) -> Any:
    time.sleep(0.001)
    return documents[::-1]


async def _areranked(_: str, documents: Any) -> Any:
    await asyncio.sleep(0.001)
    return documents[::-1]


class AsyncCompressor(BaseDocumentCompressor):
    """Has its own async methods."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return _reranked(query, documents)

    async def acompress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return await _areranked(query, documents)


def _expanded(_: str) -> list[str]:
    time.sleep(0.001)
    return ["the kiln"]


def _written(prompt: Any) -> Any:
    words = "\n".join(str(each.text) for each in prompt)
    return (
        BOARD
        if "new_items" in words or '"kind"' in words
        else "They plan a studio with a kiln; the budget is 4000 euros."
    )


async def _awritten(prompt: Any) -> Any:
    await asyncio.sleep(0)
    return _written(prompt)


Use = Callable[[Place], Awaitable[None]]
USES: dict[str, Use] = {}
VERBS: dict[str, Use] = {}
"""Single calls. Their file reads do not depend on the transport, so they share a process for all but one transport."""


def use(function: Use) -> Use:
    """Register what an application may do first in its process."""
    USES[function.__name__] = function
    return function


def _verb(name: str, call: Callable[[SupabaseMemory], Any]) -> None:
    async def used(place: Place) -> None:
        async with place.memory() as memory:
            await call(memory)

    VERBS[name] = used


for _name, _call in {
    "append": lambda memory: memory.conversation("a").aappend([HumanMessage("My password: hunter2")]),
    "forget": lambda memory: memory.conversation("gone").aforget(),
    "add_turn": lambda memory: memory.conversation("b").aadd_turn("Hello", "Hello, Maya"),
    "opt_out": lambda memory: memory.conversation("c").aopt_out("kiln", actor="ana"),
    "opt_in": lambda memory: memory.conversation("c").aopt_in("kiln", actor="ana"),
    "memory.conversations": lambda memory: memory.aconversations(limit=3),
    "memory.recall": lambda memory: memory.arecall(POINTING, time_range="week"),
    "memory.find": lambda memory: memory.afind("kiln", around=1),
    "memory.recall_summaries": lambda memory: memory.arecall_summaries(POINTING),
    "memory.forget_user": lambda memory: memory.for_user(memory.user_id or "nobody").aforget_user(dry_run=True),
    "memory.forget_expired": lambda memory: memory.aforget_expired(),
    "privacy.opt_out": lambda memory: memory.privacy.aopt_out("horoscope", actor="ana"),
    "privacy.opt_in": lambda memory: memory.privacy.aopt_in("horoscope", actor="ana"),
    "privacy.opt_outs": lambda memory: memory.privacy.aopt_outs(),
    "privacy.changes": lambda memory: memory.privacy.achanges(),
    "memory.flush": lambda memory: memory.aflush(),
    "memory.doctor": lambda memory: memory.adoctor(),
    "work.status": lambda memory: memory.work.astatus(**THREAD),
    "work.queue": lambda memory: memory.work.aqueue(),
    "work.retry": lambda memory: memory.work.aretry(**THREAD),
    "work.unreadable": lambda memory: memory.work.aunreadable(),
    "work.summarize_due": lambda memory: memory.work.asummarize_due(),
    "work.index_due": lambda memory: memory.work.aindex_due(),
    "rollout.set": lambda memory: memory.rollout.aset("parallel", actor="ana", agent_id="set"),
    "rollout.stage": lambda memory: memory.rollout.astage(),
    "rollout.history": lambda memory: memory.rollout.ahistory(),
    "rollout.comparisons": lambda memory: memory.rollout.acomparisons("a"),
    "rollout.report": lambda memory: memory.rollout.areport(),
}.items():
    _verb(_name, _call)


def _prepared(name: str, call: Callable[[Conversation], Any]) -> None:
    _verb(name, lambda memory: call(conversation_of(memory, **THREAD)))


for _name, _about in {
    "read": lambda prepared: prepared.aread(last=3),
    "reinstate": lambda prepared: prepared.superseded.areinstate(["none"]),
    "info": lambda prepared: prepared.ainfo(),
    "update": lambda prepared: prepared.aupdate(title="A kiln", metadata={"color": "blue"}),
    "count": lambda prepared: prepared.acount(),
    "forget_message": lambda prepared: prepared.aforget_message("none", dry_run=True),
    "turns": lambda prepared: prepared.turns.alist(last=2),
    "turns_as_text": lambda prepared: prepared.turns.aas_text(),
    "turn": lambda prepared: prepared.turns.aget(1),
    "resolve": lambda prepared: prepared.aresolve(POINTING),
    "context": lambda prepared: prepared.acontext(POINTING, query=POINTING),
    "context_in_a_perspective": lambda prepared: prepared.acontext(
        POINTING, perspective=Perspective("kilns, mga bayad")
    ),
    "coverage": lambda prepared: prepared.acoverage(),
    "summarize": lambda prepared: prepared.summaries.amake(),
    "complete_summary": lambda prepared: prepared.summaries.acomplete(),
    "summaries": lambda prepared: prepared.summaries.alist(),
    "request_summary": lambda prepared: prepared.summaries.arequest(),
    "regenerate_summaries": lambda prepared: prepared.summaries.aregenerate(actor="ana"),
    "board": lambda prepared: prepared.board.aread(),
    "board_in_a_perspective": lambda prepared: prepared.board.aread(perspective=Perspective("kilns, mga bayad")),
    "revise_board": lambda prepared: prepared.board.arevise(),
    "edit_board_summary": lambda prepared: prepared.board.aedit_summary("By hand", actor="ana"),
    "regenerate_board": lambda prepared: prepared.board.aregenerate(actor="ana"),
    "index": lambda prepared: prepared.aindex(),
    "index_summaries": lambda prepared: prepared.summaries.aindex(),
    "reembed": lambda prepared: prepared.chunks.areembed(),
    "chunks": lambda prepared: prepared.chunks.alist(),
    "find": lambda prepared: prepared.afind("kiln", around=1),
    "recall": lambda prepared: prepared.arecall(POINTING, time_range="week"),
    "opt_outs": lambda prepared: prepared.privacy.aopt_outs(),
    "changes": lambda prepared: prepared.privacy.achanges(),
    "status": lambda prepared: prepared.work.astatus(),
    "retry": lambda prepared: prepared.work.aretry(),
    "manifests": lambda prepared: prepared.amanifests(),
}.items():
    _prepared(_name, _about)


@use
async def controls(place: Place) -> None:
    async with place.memory() as memory:
        told = memory.conversation("controls")
        await told.aappend(conversation())
        await told.aindex()
        await told.summaries.amake()
        await memory.privacy.arate((await told.chunks.alist())[0], actor="ana", useful=True)
        await told.summaries.aedit(1, "By hand.", actor="ana")
        await told.summaries.adelete(1, actor="ana")


@use
async def profile(place: Place) -> None:
    async with place.memory() as memory:
        item = await memory.profile.aremember("Drinks tea.", kind="preference", subject="drink")
        await memory.profile.apin(item)
        await memory.profile.aconfirm(item)
        item = await memory.profile.acorrect(item, "Drinks milk.")
        await memory.profile.ahistory(item)
        await memory.profile.aread()
        await memory.profile.adelete(item)
        await memory.privacy.aconsent("tone", False, actor="ana")
        await memory.privacy.aconsents()


@use
async def topics(place: Place) -> None:
    """Find them, and what a person makes of them; that there is none to change is refused."""

    async def rate(texts: Sequence[str]) -> list[float]:
        await asyncio.sleep(0)
        return [0.5 for _ in texts]

    async with place.memory(tone=rate) as memory:
        told = memory.conversation("topics")
        await memory.privacy.aconsent("tone", True, actor="ana")
        await told.aappend(conversation())
        await told.aindex()
        await memory.topics.aupdate()
        await memory.topics.arecluster()
        await memory.topics.adays()
        for topic in await memory.topics.aread():
            await memory.topics.aget(topic)
            await memory.topics.aforget(topic, actor="ana", dry_run=True)


@use
async def usage(place: Place) -> None:
    async with place.memory() as memory:
        await memory.usage.aupdate()
        await memory.usage.aby_day()
        await memory.usage.ainsights()
        await memory.aadvice()


@use
async def openai_session(place: Place) -> None:
    async with place.memory() as memory:
        session = SupabaseSession("agents-sdk", memory)
        await session.add_items([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}])
        await session.get_items()
        await session.pop_item()
        await session.clear_session()


@use
async def deepagents_files(place: Place) -> None:
    async with place.memory() as memory:
        files = MemoryFiles(memory, thread_id="files")
        for path in ("/profile.md", "/board.md", "/summary.md"):
            assert (await files.aread(path)).error is None
        await files.als("/")
        await files.aglob("*.md")
        await files.agrep("kiln")
        await files.adownload_files(["/board.md"])
        await files.aupload_files([("/board.md", b"")])
        for answer in (await files.awrite("/a", "b"), await files.aedit("/a", "b", "c"), await files.adelete("/a")):
            assert answer.error


@use
async def store_checks(_: Place) -> None:
    assert len(await acheck_store(lambda index: nullcontext(InMemoryStore(index=index)))) < len(STORE_CHECKS)


@use
async def spaces(place: Place) -> None:
    """Each call is made, and refused: nobody is in that space."""
    async with place.memory() as memory:
        told, space = memory.conversation("controls"), memory.space(f"space:{UUID(int=0)}")
        for call in (
            memory.spaces.acreate("Studio"), memory.spaces.alist(), memory.spaces.ajoin("a.b"),
            memory.spaces.ashared_data(), told.acontribute("m", quote="kiln", kind="fact", to=space.space_id),
            space.ainfo(), space.aupdate(name="Studio"), space.ainvite(), space.awithdraw_invitations(),
            space.aset_member("ben", "reader"), space.aset_name("Ben"), space.aleave(), space.awithdraw(str(UUID(int=0))), space.aforget(),
        ):  # fmt: skip
            with suppress(MigrationConflictError, NotFoundError):
                await call


@use
async def boards(place: Place) -> None:
    async with place.memory() as memory:
        told = memory.conversation("boards")
        await told.aappend(conversation())
        with suppress(NotFoundError):
            await told.aprompt(1)
        with suppress(NotFoundError):
            await told.awhy(1, "kiln")
        item = await told.board.aadd("fact", "The kiln is new.", actor="ana")
        await told.board.aedit(item, actor="ana", text="The kiln is old.")
        await told.board.apin(item, actor="ana")
        await told.board.adelete(item, actor="ana")


@use
async def as_user(place: Place) -> None:
    """A sync, async or blocking function names the signed-in user; connections are shared."""
    said = place.key if place.transport == "data_api" else {"sub": place.user_id}

    async def identity() -> Any:
        await asyncio.sleep(0)
        return said

    def blocks() -> Any:
        time.sleep(0.001)
        return said

    named: Any = (
        {"user_id": place.user_id} if place.transport == "data_api" else {}
    )  # the key is a server's, without a user
    async with place.memory() as memory:
        for function in (identity, blocks):
            await conversation_of(memory.for_token(function), "as-user", **named).aappend([HumanMessage("Hello")])


@use
async def client(place: Place) -> None:
    """An application's own client, which creates its session on first use."""
    if place.transport != "data_api":
        return
    client = await in_thread(lambda: AsyncClient(place.address, place.key))
    client.rest_url = URL(place.address)  # the tests' PostgREST has no gateway
    memory = SupabaseMemory.from_client(client, user_id=place.user_id)
    await conversation_of(memory, **THREAD).acount()
    await memory.aclose()


@use
async def transports(place: Place) -> None:
    """An application's own transport or client."""
    if place.transport == "direct":
        made: Any = SupabaseMemory(PostgresTransport(place.address), user_id=place.user_id)
    elif place.transport == "embedded":
        made = place.memory()
    else:
        made = SupabaseMemory(SupabaseTransport(place.address, place.key, rest_path=""), user_id=place.user_id)
    async with made as memory:
        await conversation_of(memory, **THREAD).acount()


@use
async def away(place: Place) -> None:
    """An unreachable database: the retries wait without blocking."""
    if place.transport == "data_api":
        memory = SupabaseMemory.from_url("http://127.0.0.1:1", place.key, rest_path="", user_id="me")
    else:
        memory = SupabaseMemory.from_conn_string("postgresql://x@127.0.0.1:1/x", user_id="me")
    async with memory:
        history = SupabaseChatMessageHistory("away", memory)
        await history.aadd_messages([HumanMessage("Hello")])
        assert history.pending == 1


@use
async def few_connections(_: Place) -> None:
    """A server that gives one connection: another call waits for it."""
    given: list[object] = []

    async def opener() -> object:
        if given:
            raise ConnectionRefusedError
        given.append(object())
        return given[0]

    async def close(_: object) -> None:
        given.clear()

    pool = AsyncPool(opener, close, 2)
    first = await pool.take()
    second = asyncio.create_task(pool.take())
    await asyncio.sleep(0.01)
    pool.give_back(first, is_usable=True)
    assert await second is first
    await pool.close()


@use
async def unsecured(place: Place) -> None:
    """A server without TLS, where the connection must be secure."""
    if place.transport != "data_api":
        return

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with SupabaseMemory.from_url(url, place.key, rest_path="", user_id="me") as memory:
            with suppress(ConfigurationError):
                await conversation_of(memory, **THREAD).acount()


@use
async def history(place: Place) -> None:
    async with place.memory() as memory:
        made = SupabaseChatMessageHistory("history", memory)
        await made.aadd_messages([HumanMessage("My password: hunter2")])
        await made.aget_messages()
        await made.aclear()


@use
async def streaming(place: Place) -> None:
    async def deltas() -> AsyncIterator[AIMessageChunk]:
        for word in ("Hello", ", ", "Maya"):
            yield AIMessageChunk(content=word)

    async with place.memory() as memory:
        assert [each async for each in arecord_stream(memory, "Hello", deltas(), thread_id="stream")]


@use
async def partial_answers(place: Place) -> None:
    async with place.memory() as memory:
        agent: Any = create_agent(says("Yes."), middleware=[SupabaseMemoryMiddleware(memory, partial_answers=True)])
        await agent.ainvoke({"messages": "Hello"}, {"configurable": {"thread_id": "partial"}})


@use
async def expiry(place: Place) -> None:
    async with place.memory() as memory:
        task = asyncio.create_task(cleanup(memory, timedelta(seconds=0.05), retention=Retention(max_turns=100)))
        await asyncio.sleep(0.5)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _talked(place: Place, thread_id: str, model: Any = None, tools: Any = (), **named: Any) -> None:
    async with place.memory() as memory:
        middleware = SupabaseMemoryMiddleware(memory, **named)
        agent: Any = create_agent(
            model or says("I will write to Maya."), list(tools), middleware=[middleware], checkpointer=InMemorySaver()
        )
        for text in ("My budget is 4,000 euros", POINTING, "/summarize"):
            await agent.ainvoke({"messages": text}, {"configurable": {"thread_id": thread_id}})


@use
async def agent(place: Place) -> None:
    """The README's agent, with a token budget, recall and references; it ends with a command."""
    await _talked(place, "prepared", recall="user", on_error="raise")


@use
async def agent_in_parallel(place: Place) -> None:
    def flag(_: Any) -> str:
        return "parallel"

    await _talked(place, "parallel", rollout=Rollout(stage="parallel", flag=flag, on_comparison=lambda _: None))


@use
async def agent_cut_over(place: Place) -> None:
    async def flag(_: Any) -> Any:
        return 25

    await _talked(place, "over", rollout=Rollout(stage=25, flag=flag, on_comparison=lambda _: None))


@use
async def agent_of_an_application_without_a_loop(place: Place) -> None:
    """An application's async function runs in a separate event loop."""

    async def flag(_: Any) -> str:
        return "on"

    def talked() -> None:
        with place.memory() as memory:
            middleware = SupabaseMemoryMiddleware(memory, rollout=Rollout(flag=flag))
            agent: Any = create_agent(says("Yes."), middleware=[middleware])
            agent.invoke({"messages": "Hello"}, {"configurable": {"thread_id": "sync"}})

    await asyncio.to_thread(talked)


@use
async def agent_in_stages(place: Place) -> None:
    await _talked(place, "stages", rollout=Rollout(stage="parallel"))


@use
async def agent_chaining(place: Place) -> None:
    class Chaining(ScriptedModel):
        use_previous_response_id: bool = True
        model_name: str = "chaining"

    await _talked(
        place, "chain", Chaining(script=lambda _: AIMessage("Yes.", response_metadata={"id": "resp_1"})), project_id="p"
    )


@use
async def counters(place: Place) -> None:
    """`tiktoken` counts tokens if its vocabulary is on disk; an application's own counter may block."""
    async with place.memory() as memory:
        await conversation_of(memory, **THREAD).acontext("Hello")
        assert (tokens.best_counter() is tokens.count_tokens) is not place.vocabulary

        def counted(messages: Any) -> int:
            return len(Path(__file__).read_text()) // 10_000 * len(messages)

        await conversation_of(memory, **THREAD).acontext(
            "Hello", budget=ContextBudget(tokens=500, token_counter=counted)
        )


@use
async def agent_with_tools(place: Place) -> None:
    async with place.memory() as memory:
        asked: list[Any] = [
            calls("search_conversation_history", query=POINTING),
            calls("recall_context", context_type="action_items"),
            "Done.",
        ]
        agent: Any = create_agent(
            says(*asked), SupabaseMemoryToolkit(memory).get_tools(), middleware=[SupabaseMemoryMiddleware(memory)]
        )
        await agent.ainvoke({"messages": "Hello"}, {"configurable": {"thread_id": "prepared"}})


def _tool(name: str, **arguments: Any) -> None:
    async def used(place: Place) -> None:
        async with place.memory() as memory:
            (made,) = [each for each in SupabaseMemoryToolkit(memory, **THREAD).get_tools() if each.name == name]
            answer = await made.ainvoke(arguments)
            assert "failed" not in str(answer), answer

    VERBS["-".join([name, *map(str, arguments.values())])] = used


_tool("search_conversation_history", query=POINTING)
_tool("get_conversation_summary")
_tool("get_turn", n=1)
_tool("read_messages", first=0, last=3)
_tool("get_profile")
for _kind in ("action_items", "questions", "facts", "entities"):
    _tool("recall_context", context_type=_kind)


import_module("jsonschema")  # the SDK's client imports it at its first result, in this same process


@use
async def mcp_server(place: Place) -> None:
    """A client's requests to the server in this process: each read tool, a resource and a prompt."""
    asked: dict[str, dict[str, Any]] = {
        "search_conversation_history": {"query": POINTING},
        "get_context": {"question": POINTING},
        "list_conversations": {},
        "get_profile": {},
        "get_insights": {},
        "get_conversation_summary": {},
        "remember": {"text": "I like clay."},
        "list_spaces": {},
        "read_space_board": {"space_id": NO_SPACE},
        "share_with_space": {"space_id": NO_SPACE, "quote": "kiln", "conversation_id": "mcp"},
        "withdraw_from_space": {"space_id": NO_SPACE, "item_id": str(UUID(int=0))},
        "save_turn": {"user": "a", "assistant": "b", "conversation_id": "mcp", "idempotency_key": "1"},
    }
    async with (
        place.memory() as memory,
        mcp.Client(MemoryServer(OneOwner(memory), ServerOptions(write=True, spaces=True))) as client,
    ):
        for name, arguments in asked.items():
            assert not (await client.call_tool(name, arguments)).is_error or "space" in name, name
        await client.read_resource("memory://conversations")
        await client.get_prompt("what_is_open")


@use
async def retriever(place: Place) -> None:
    async with place.memory() as memory:
        assert await SupabaseMemoryRetriever(memory=memory, thread_id="prepared").ainvoke(POINTING)


@use
async def graph(place: Place) -> None:
    """The nodes in a graph; the first one returns what bounds the state."""

    async def answer(_: Any) -> dict[str, Any]:
        return {"messages": [AIMessage("Yes.")]}

    async with place.memory() as memory:
        builder: Any = StateGraph(MessagesState)
        builder.add_node("bound", SupabaseSummarizationNode(memory, output_messages_key="messages", recall="agent"))
        builder.add_node("answer", answer)
        builder.add_node("save", SaveTurnNode(memory))
        builder.add_edge(START, "bound").add_edge("bound", "answer").add_edge("answer", "save").add_edge("save", END)
        made = builder.compile(checkpointer=InMemorySaver())
        for text in ("Hello", POINTING):
            await made.ainvoke({"messages": text}, {"configurable": {"thread_id": "graph"}})


@use
async def nodes(place: Place) -> None:
    """The nodes alone, outside any graph."""
    config: Any = {"configurable": THREAD}
    async with place.memory() as memory:
        state = {"messages": [HumanMessage(POINTING)]}
        await LoadContextNode(memory, rollout=Rollout(stage="parallel")).ainvoke(state, config)
        await SupabaseSummarizer(memory).ainvoke(conversation(), {"configurable": {"thread_id": "summarizer"}})


@use
async def removed_and_taken_back(place: Place) -> None:
    """Nodes read the checkpoints for a removed message, and for a run that a server rolled back."""

    async def answer(state: Any) -> dict[str, Any]:
        if state["messages"][-1].text == "Fail":
            raise ZeroDivisionError
        return {"messages": [AIMessage("Yes.")]}

    async with place.memory() as memory:
        builder: Any = StateGraph(MessagesState)
        builder.add_node("save", SaveTurnNode(memory)).add_node("answer", answer).add_node(
            "again", SaveTurnNode(memory)
        )
        builder.add_edge(START, "save").add_edge("save", "answer").add_edge("answer", "again").add_edge("again", END)
        made = builder.compile(checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "removed"}}
        state = await made.ainvoke({"messages": "Hello"}, config)
        await made.aupdate_state(config, {"messages": [RemoveMessage(id=state["messages"][-1].id)]})
        await made.ainvoke({"messages": "And now?"}, config)
        assert len(await memory.conversation("removed").superseded.alist()) == 1
        for run, text in enumerate(("Fail", "Hello")):
            server: Any = {"configurable": {"thread_id": "taken", "run_id": f"r{run}", "assistant_id": "a"}}
            with suppress(ZeroDivisionError):
                await builder.compile(checkpointer=InMemorySaver()).ainvoke({"messages": text}, server)
        assert len(await memory.conversation("taken").superseded.alist()) == 1


@use
async def save_turn(place: Place) -> None:
    async with place.memory() as memory:
        await SaveTurnNode(memory).ainvoke({"messages": conversation()}, {"configurable": {"thread_id": "saved"}})


@use
async def store(place: Place) -> None:
    async with place.memory() as memory:
        made = SupabaseStore(memory, index={"embed": place.embedder(), "dims": 384}, ttl={"default_ttl": 60})
        await made.aput(("kiln",), "one", {"text": "My password: hunter2"})
        await made.aget(("kiln",), "one")
        await made.asearch(("kiln",), query="kiln")
        await made.alist_namespaces()
        await made.areindex()
        await made.asweep()
        await made.adelete(("kiln",), "one")


@use
async def store_batched(place: Place) -> None:
    async with place.memory() as memory:
        await SupabaseStore(memory).abatch([])
        await SupabaseStore(memory, index={"embed": lambda texts: place.embedder().embed_documents(texts)}).aput(
            ("a",), "b", {"c": "d"}
        )


def _long_term(place: Place, memory: SupabaseMemory) -> list[Any]:
    return [
        StoreLongTerm(SupabaseStore(memory), place.user_id),
        StoreLongTerm(InMemoryStore(), place.user_id),
        VectorStoreLongTerm(InMemoryVectorStore(place.embedder()), place.user_id),
    ]


@use
async def edge_embeddings(_: Place) -> None:
    """Over HTTP, with a fake of the Edge Function in the same event loop."""
    body = json.dumps({"model": "gte-small", "embeddings": [[0.0] * 384]}).encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        writer.write(f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert len(await EdgeEmbeddings(f"http://127.0.0.1:{port}", "key").aembed_query("kiln")) == 384
    server.close()


@use
async def inspector(place: Place) -> None:
    """Mounted in an application, whose event loop it shares: every page, every form, and live changes."""
    async with place.memory() as memory:
        told = memory.conversation("inspected")
        await told.aappend(conversation())
        await told.aindex()
        await told.aopt_out("horoscope", actor="ana")
        item = await told.board.aadd("fact", "The kiln is new.", actor="ana")
        app = application(memory, write=True)
        address, asked = "http://127.0.0.1", "?thread=inspected"
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=address) as http,
        ):
            for path in (
                "/",
                "/?state=due",
                "/?state=opted-out",
                "/queue",
                "/doctor",
                "/recall?q=kiln",
                "/profile",
                "/profile/export",
                "/topics",
                "/insights",
                "/search?q=kiln",
                "/spaces",
                f"/spaces/space?space={NO_SPACE}",
                "/spaces/shared",
                "/no",
                "/static/inspector.js",
            ):
                await http.get(path)
            for path in (
                "",
                "/prompt",
                "/prompts",
                "/prompts/turn",
                "/board",
                "/board/history",
                "/summaries",
                "/savings",
                "/message",
            ):
                await http.get(f"/conversation{path}{asked}&question=kiln&number=1")
            await http.get(f"/conversation/board/item{asked}&item={item}")
            await http.get(f"/conversation/message{asked}&number=1", headers={"hx-request": "true"})
            await http.get(f"/conversation/messages{asked}&first=0&last=1", headers={"hx-request": "true"})
            await http.get(f"/recall{asked}&q=kiln")
            gate = app.state.inspector.sessions
            form = {
                "csrf_token": gate.form_token(str(http.cookies.get(gate.cookie))),
                "pin": item,
                "item": item,
                "text": "By hand.",
            }

            async def changed(path: str, more: dict[str, str], undo: str = f"/conversation/undo{asked}") -> None:
                """Send a form, and undo it where that is offered."""
                answer = await http.post(path, data={**form, **more}, headers={"origin": address})
                for token in parse_qs(urlsplit(answer.headers.get("location", "")).query).get("undo", ()):
                    await http.post(undo, data={**form, "undo": token}, headers={"origin": address})

            other = await told.board.aadd("fact", "The kiln is old.", actor="ana")
            await changed(f"/conversation/board/edit{asked}", {"item": other, "delete": "1"})
            for path in [route.path for route in edit_routes.ROUTES]:
                if "retry" not in path:
                    await changed(f"{path}{asked}", {"kind": "fact", "number": "1"})
            for cause in ("", "other"):
                await http.post("/queue/retry", data={**form, "cause": cause}, headers={"origin": address})
            kept = await memory.profile.aremember("Drinks tea.", kind="preference", subject="drink")
            await http.get(f"/profile/item?item={kept}")
            for path in [route.path for route in profile_routes.ROUTES]:
                sent = {"item": kept, "pin": kept, "kind": "fact", "value": "Milk.", "purpose": "tone", "allowed": "on"}
                await changed(path, sent, "/profile/undo")
            for path in [route.path for route in topic_routes.ROUTES]:
                await http.post(path, data={**form, "topic": kept, "into": kept}, headers={"origin": address})
            with suppress(MigrationConflictError):  # where spaces are off
                made = await memory.spaces.acreate("Studio")
                await told.aappend([HumanMessage("The kiln is hot.", id="quoted")])
                shared = await told.acontribute("quoted", quote="The kiln is hot.", to=made.space_id)
                named = f"?space={made.space_id}&item={shared.item_id}"
                for path in ("/spaces/space", "/spaces/erase", "/spaces/shared", "/spaces/source"):
                    await http.get(f"{path}{named}")
                await _followed(app, f"about=space&space={made.space_id}", gate.cookie)
                for path in [route.path for route in space_routes.ROUTES]:
                    sent = {**form, "name": "Studio", "role": "reader", "member": "ben", "token": "a.b"}
                    await http.post(f"{path}{named}", data=sent, headers={"origin": address})
            for about in ("conversation", "list", "queue", "database", "profile"):
                await _followed(app, f"about={about}&thread=inspected", gate.cookie)
        everybodys = application(SupabaseMemory(memory._services.transport))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(everybodys), base_url=address) as http:
            for path in ("/", "/?list=conversations", "/spaces"):
                await http.get(path)


async def _followed(app: Any, query: str, cookie: str) -> None:
    """Wait for the first event of a page."""
    heard = asyncio.Event()
    headers = [(b"host", b"127.0.0.1"), (b"cookie", f"{cookie}=session".encode())]
    scope = {"type": "http", "method": "GET", "path": "/events", "query_string": query.encode(), "headers": headers}
    more = {"http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 80), "root_path": "", "app": app}

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if b"event:" in message.get("body", b""):
            heard.set()

    async with asyncio.TaskGroup() as group:
        following = group.create_task(app({**scope, **more}, receive, send))
        await heard.wait()
        await app.state.inspector.notifier.wait()
        following.cancel()


@use
async def long_term(place: Place) -> None:
    async with place.memory() as memory:
        for made in _long_term(place, memory):
            done = await made.aremember([Memory("The kiln is new.")])
            await made.arecall("kiln")
            await made.aforget(done.stored)


@use
async def promoting(place: Place) -> None:
    async with place.memory() as memory:
        for made in _long_term(place, memory):
            item = await memory.profile.aremember(made.name)
            await apromote(memory, made)
            await memory.profile.adelete(item)
            await aforget_source(memory, made)


@use
async def taking_along(place: Place) -> None:
    async with place.memory() as memory:
        folder = await asyncio.to_thread(tempfile.mkdtemp)
        await aexport_conversations(memory, f"{folder}/all.jsonl")
        await aimport_conversations(memory, jsonl(f"{folder}/all.jsonl"))
        await aexport_conversations(memory, f"{folder}/pages", format="markdown")
        await asyncio.to_thread(shutil.rmtree, folder)


def _worker(place: Place, memory: SupabaseMemory) -> Worker:
    kept = InMemoryStore()
    return Worker(
        memory,
        policy=WorkerPolicy(poll_seconds=0.1, debounce_seconds=0.0, archive_after=timedelta(days=1)),
        long_term=lambda user_id: StoreLongTerm(kept, user_id),
        on_alert=lambda *_: None,
    )


@use
async def worker(place: Place) -> None:
    """It runs next to an application, which appends meanwhile."""
    async with place.memory() as memory, _worker(place, memory) as made:
        await memory.conversation("worker").aappend(conversation())
        for _ in range(100):
            await asyncio.sleep(0.05)
            if made.stats.pieces:
                break


@use
async def worker_in_a_thread(place: Place) -> None:
    def work() -> None:
        with place.memory() as memory, _worker(place, memory).in_thread():
            time.sleep(0.2)

    await asyncio.to_thread(work)


@use
async def worker_drained(place: Place) -> None:
    async with place.memory() as memory:
        await memory.conversation("drained").aappend(conversation())
        await _worker(place, memory).drain(20)


async def verbs(place: Place) -> None:
    """All single calls, in sequence."""
    for used in VERBS.values():
        await used(place)


async def prepare(place: Place) -> None:
    """Prepare the data for the uses."""
    async with place.memory() as memory:
        prepared = conversation_of(memory, **THREAD)
        await prepared.aappend(conversation())
        await prepared.summaries.amake()
        await prepared.aindex()
        await prepared.board.arevise()
        await prepared.aappend(conversation())


def _vocabulary(is_there: bool) -> None:
    """Write a vocabulary of single bytes under the name of `tiktoken`'s real one, if it should exist."""
    folder = Path(os.environ["TIKTOKEN_CACHE_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    if not is_there:
        return
    lines = "".join(f"{base64.b64encode(bytes([each])).decode()} {each}\n" for each in range(256))
    path = folder / hashlib.sha1(tokens._VOCABULARY.encode()).hexdigest()
    path.write_text(lines)
    import_module("tiktoken_ext.openai_public").ENCODING_CONSTRUCTORS["o200k_base"] = lambda: {
        "name": "o200k_base",
        "pat_str": r"\S+|\s+",
        "mergeable_ranks": load_tiktoken_bpe(str(path)),
        "special_tokens": {},
    }


def _used(name: str, place: Place) -> dict[str, Any]:
    """Run one use in this process, which does nothing else."""
    blocked, failed = Blocked(), None
    logging.basicConfig(level=logging.INFO, handlers=[_Formatting()])
    trace.set_tracer_provider(provider := TracerProvider())
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    _vocabulary(place.vocabulary)
    # Objects that an application creates at startup, with their imports.
    place.metrics = Metrics()
    place.memory()

    async def main() -> None:
        with blocked.watched():
            await asyncio.wait_for(ALL[name](place), 150)

    try:
        asyncio.run(main())
    except BaseException:
        failed = traceback.format_exc()
    return {"use": name, "blocked": sorted(set(blocked.found)), "failed": failed, "ran": sorted(blocked.ran)}


async def everything(place: Place) -> None:
    """Run everything against a database that lives as long as the process that uses it."""
    for used in (prepare, verbs, agent):
        await used(place)


async def blocking(_: Place) -> None:
    """Block in known ways, to show that they are detected."""
    ssl.create_default_context()
    socket.getaddrinfo("127.0.0.1", 1)
    with suppress(psycopg.Error):
        psycopg.connect("postgresql://x@127.0.0.1:1/x")
    exec(compile("import tests.stepping", f"{PACKAGE}/memory/core.py", "exec"))
    with suppress(blockbuster.BlockingError):
        Path(__file__).read_text()
    time.sleep(0.001)


ALL: dict[str, Use] = {
    **{each.__name__: each for each in (prepare, verbs, everything, blocking)},
    **USES,
    **VERBS,
}


def main() -> None:
    """Prepare the data, then run each use in its own process, and print a line for each result."""
    parser = argparse.ArgumentParser()
    for name in ("transport", "address", "key", "user", "only"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--vocabulary", action="store_true")
    given = parser.parse_args()
    place = Place(given.transport, given.address, given.key, given.user, given.vocabulary)
    names = given.only.split(",") if given.only else ["prepare"]
    names += [] if given.only else [*USES, *(VERBS if given.transport == "direct" else ["verbs"])]
    # A worker of this pool does one task, so each use starts from the current, unused state of this process.
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        _say(pool.apply(_task, ((names[0], place),)))
        for result in pool.imap_unordered(_task, [(name, place) for name in names[1:]], chunksize=1):
            _say(result)


def _say(result: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()


def _task(task: tuple[str, Place]) -> dict[str, Any]:
    try:
        return _used(*task)
    finally:
        atexit._run_exitfuncs()  # a pool's process skips them, and the embedded database would keep running


if __name__ == "__main__":
    main()
