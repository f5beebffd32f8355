"""Deliberate mistakes: each raises our own error as early as possible, with the next action."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable
from langgraph.store.memory import InMemoryStore
from supabase import create_client

import langchain_supabase_memory as package
from langchain_supabase_memory import (
    BoardPolicy,
    ChunkPolicy,
    ContextBudget,
    Retention,
    SummaryPolicy,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    WorkerPolicy,
    errors,
    tools,
)
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.adapters.transports.http_errors import failure
from langchain_supabase_memory.errors import (
    AuthenticationError,
    ConfigurationError,
    InvalidInputError,
    SupabaseMemoryError,
    UnavailableError,
)
from langchain_supabase_memory.settings import BreakerPolicy, RetryPolicy
from langchain_supabase_memory.telemetry import Metrics
from langchain_supabase_memory.types import Rollout
from tests.each_case import each_case
from tests.embedders import WordEmbedder
from tests.public import public_names

URL = "https://abcdefgh.supabase.co"
KEY = "sb_secret_canary"
CONN = "postgresql://postgres:canary@127.0.0.1:1/none"
JWT = "eyJhbGciOiJI.eyJzdWIi.canary"

memory: Any = SupabaseMemory.from_conn_string(CONN, user_id="u")
given: Any = None
given_object: Any = object()
history: Any = SupabaseChatMessageHistory("s", memory)
chat: Any = FakeListChatModel(responses=["x"])
client: Any = create_client(URL, JWT)
Memory: Any = SupabaseMemory
pkg: Any = package


async def tokens() -> str:
    return JWT


def awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """A coroutine that nobody awaited; closed, so that Python does not warn of it as well."""
    coroutine.close()
    return coroutine


@dataclass(frozen=True)
class Mistake:
    """Something that a newcomer does, the class of the error, and the words of the next action."""

    does: Callable[[], Any]
    words: str
    kind: type[SupabaseMemoryError] = ConfigurationError


def typed(make: Any, **arguments: Any) -> Callable[[], Any]:
    return lambda: make(**arguments)


# A memory and its address

OPENING = {
    "url and key to the class": Mistake(lambda: Memory(URL, KEY), r"Use SupabaseMemory.from_url\(url, key\)"),
    "url to the class": Mistake(lambda: Memory(URL), r"Use SupabaseMemory.from_url\(url, key\)"),
    "conn string to the class": Mistake(lambda: Memory(CONN), "Use SupabaseMemory.from_conn_string"),
    "client to the class": Mistake(lambda: Memory(client), r"Use SupabaseMemory.from_client\(client\)"),
    "client and key to the class": Mistake(lambda: Memory(client, KEY), r"SupabaseMemory.from_client\(client\)"),
    "None to the class": Mistake(lambda: Memory(None), "Make one with SupabaseMemory.from_url"),
    "a memory to the class": Mistake(lambda: Memory(memory), r"memory.for_token\(token\)"),
    "a psycopg module's class": Mistake(lambda: Memory(psycopg.Connection), "Pass an object of the class"),
    "url and key swapped": Mistake(lambda: Memory.from_url(KEY, URL), r"from_url\(url, key\)"),
    "conn string to from_url": Mistake(lambda: Memory.from_url(CONN, KEY), "Use SupabaseMemory.from_conn_string"),
    "url to from_conn_string": Mistake(
        lambda: Memory.from_conn_string(URL), r"Use SupabaseMemory.from_url\(url, key\)"
    ),
    "client to from_url": Mistake(lambda: Memory.from_url(client, KEY), "from_client"),
    "url to from_client": Mistake(lambda: Memory.from_client(URL), "for a url and a key use from_url"),
    "no key in the environment": Mistake(lambda: Memory.from_url(URL, None), "key is missing.*API settings"),
    "no url in the environment": Mistake(lambda: Memory.from_url(None, KEY), "not None.*API settings"),
    "no conn string in the environment": Mistake(lambda: Memory.from_conn_string(None), "os.environ, set it there"),
    "an empty conn string": Mistake(lambda: Memory.from_conn_string(" "), "is empty.*postgresql://"),
    "nonsense as conn string": Mistake(lambda: Memory.from_conn_string("nonsense"), "It looks like postgresql://"),
    "nonsense to migrate": Mistake(lambda: migrate("nonsense"), "It looks like postgresql://"),
    "url without a scheme": Mistake(lambda: Memory.from_url("abc.supabase.co", KEY), "Pass 'https://"),
    "url of the dashboard": Mistake(
        lambda: Memory.from_url("https://supabase.com/dashboard/project/abc", KEY), "the project ref is in"
    ),
    "url with rest/v1": Mistake(lambda: Memory.from_url(URL + "/rest/v1/", KEY), "Pass the url without /rest/v1"),
    "url with the port of Postgres": Mistake(lambda: Memory.from_url("http://localhost:54322", KEY), "54321"),
    "rest_path without a slash": Mistake(lambda: Memory.from_url(URL, KEY, rest_path="rest/v1"), "Leave it out"),
    "rest_path=None": Mistake(lambda: Memory.from_url(URL, KEY, rest_path=None), "Leave it out"),
    "a password with @": Mistake(
        lambda: Memory.from_conn_string("postgresql://postgres:can@ary@db.abc.supabase.co:5432/postgres"), "%40 for @"
    ),
    "a password with /": Mistake(
        lambda: Memory.from_conn_string("postgresql://postgres:can/ary@db.abc.supabase.co:5432/postgres"), "%2F for /"
    ),
    "a password with %": Mistake(lambda: Memory.from_conn_string("postgresql://postgres:c%nary@db.abc/x"), "%25 for %"),
    "the placeholder of a password": Mistake(
        lambda: Memory.from_conn_string("postgresql://postgres:[YOUR-PASSWORD]@db.abc.supabase.co:5432/postgres"),
        "Put the database's password in its place",
    ),
    "the url of SQLAlchemy": Mistake(
        lambda: Memory.from_conn_string("postgresql+psycopg://u:canary@h/x"), "Begin it with postgresql://"
    ),
    "an address as a folder": Mistake(lambda: Memory.embedded(CONN), "Use SupabaseMemory.from_conn_string"),
    "a number as a folder": Mistake(lambda: Memory.embedded(3), 'Pass "./memory"'),
}

# Who is signed in

SIGNED_IN = {
    "a key as a user's token": Mistake(
        lambda: Memory.from_url(URL, KEY).for_token(KEY), "the key goes to from_url", AuthenticationError
    ),
    "a user's id as a token": Mistake(
        lambda: Memory.from_url(URL, KEY).for_token("maya"), "goes into user_id", AuthenticationError
    ),
    "a coroutine as a token": Mistake(
        lambda: Memory.from_url(URL, KEY).for_token(awaited(tokens())), "Await it first", AuthenticationError
    ),
    "a session as a token": Mistake(
        lambda: Memory.from_url(URL, KEY).for_token({"access_token": JWT}),
        "Pass the session's access_token",
        AuthenticationError,
    ),
    "an async token function in a sync call": Mistake(
        lambda: Memory.from_url(URL, KEY).for_token(tokens).conversation("t").count(), "Use the a… methods"
    ),
    "a token as claims": Mistake(lambda: memory.for_token(JWT), "Verify the token", AuthenticationError),
}

# Settings

SETTINGS = {
    "budget=4000": Mistake(
        lambda: Memory.from_conn_string(CONN, budget=4000),
        r"Pass ContextBudget\(tokens=4000\) or ContextBudget\(characters=4000\)",
    ),
    "budget={}": Mistake(lambda: Memory.from_conn_string(CONN, budget={"tokens": 4000}), r"ContextBudget\(tokens="),
    "recall='thread'": Mistake(lambda: pkg.MemoryConfig(recall="thread"), '"conversation", "agent", "user" or None'),
    "recall=True": Mistake(lambda: pkg.MemoryConfig(recall=True), '"conversation", "agent", "user" or None'),
    "budget=None": Mistake(lambda: Memory.from_conn_string(CONN, budget=None), "ContextBudget"),
    "a class as budget": Mistake(lambda: Memory.from_conn_string(CONN, budget=ContextBudget), "object of the class"),
    "a board's policy": Mistake(lambda: pkg.MemoryConfig(policy=BoardPolicy()), "boards have board_policy"),
    "a summary's policy for boards": Mistake(lambda: pkg.MemoryConfig(board_policy=SummaryPolicy()), r"BoardPolicy\("),
    "retention=timedelta": Mistake(
        lambda: Memory.from_conn_string(CONN, retention=timedelta(days=30)),
        r"Retention\(max_age=timedelta\(days=30\)\)",
    ),
    "retention=30": Mistake(lambda: Memory.from_conn_string(CONN, retention=30), r"Retention\(max_turns="),
    "breaker=3": Mistake(lambda: pkg.MemoryConfig(breaker=3), r"BreakerPolicy\(failures=3\)"),
    "retry=3": Mistake(lambda: Memory.from_url(URL, KEY, retry=3), r"RetryPolicy\(attempts=4\)"),
    "chunking=256": Mistake(lambda: pkg.MemoryConfig(chunking=256), r"ChunkPolicy\(max_tokens=256\)"),
    "outbox_limit=None": Mistake(lambda: pkg.MemoryConfig(outbox_limit=None), "outbox_limit=1000"),
    "metrics=True": Mistake(lambda: pkg.MemoryConfig(metrics=True), r"metrics=Metrics\(\)"),
    "redact=True": Mistake(lambda: Memory.from_conn_string(CONN, redactor=True), "Pass SECRETS"),
    "redact=a list of texts": Mistake(lambda: Memory.from_conn_string(CONN, redactor=[r"\d+"]), r"pattern_rule\(name"),
    "user_id=7": Mistake(lambda: Memory.from_conn_string(CONN, user_id=7), r"user_id=str\(", InvalidInputError),
    "a budget in both": Mistake(typed(ContextBudget, characters=1, tokens=1), "tokens=4_000"),
    "a budget as text": Mistake(typed(ContextBudget, tokens="4000"), "not a text.*Pass tokens=20"),
    "a truth value as number": Mistake(typed(ContextBudget, max_messages=True), "not a truth value"),
    "a budget of nothing": Mistake(typed(ContextBudget, tokens=0), "above 0. Pass tokens="),
    "a fraction of a message": Mistake(typed(ContextBudget, max_messages=2.5), "whole number"),
    "a share in percent": Mistake(typed(ContextBudget, recalled=70), "below 1. Pass recalled=0.7"),
    "a name as token counter": Mistake(typed(ContextBudget, token_counter="gpt-5.5"), '"approximate"'),
    "a misspelled mode": Mistake(typed(SummaryPolicy, mode="inlin"), 'Did you mean "inline"'),
    "a prompt as text": Mistake(typed(SummaryPolicy, prompt="Summarize this"), "prompts.summary_prompt"),
    "a timedelta as seconds": Mistake(typed(SummaryPolicy, timeout_seconds=timedelta(seconds=9)), "timeout_seconds=60"),
    "days as a number": Mistake(typed(Retention, max_age=30), r"Pass max_age=timedelta\("),
    "days as a text": Mistake(typed(Retention, max_age="30 days"), r"Pass max_age=timedelta\("),
    "a pause as seconds": Mistake(typed(ChunkPolicy, pause=3600), r"Pass pause=timedelta\("),
    "an unknown language": Mistake(typed(ChunkPolicy, language="en-US"), 'Pass "english"'),
    "importance as a number": Mistake(typed(ChunkPolicy, importance=0.5), "a function of a kind and a text"),
    "attempts as text": Mistake(typed(RetryPolicy, attempts="3"), "attempts=4"),
    "negative patience": Mistake(typed(RetryPolicy, wait_seconds=-1), "wait_seconds=3"),
    "no failures": Mistake(typed(BreakerPolicy, failures=0), "failures=20"),
    "rules as one text": Mistake(lambda: pkg.Redactor("secret"), "Pass SECRETS"),
    "a stage that is none": Mistake(typed(Rollout, stage="half"), "Stages are"),
    "a flag that is no function": Mistake(typed(Rollout, flag="flag"), "a function of the conversation's key"),
    "duties as a text": Mistake(typed(WorkerPolicy, duties="index"), "Duties are index"),
    "concurrency as text": Mistake(typed(WorkerPolicy, concurrency="4"), "concurrency=4"),
}

# Models and embedders

MODELS = {
    "an embedder as model": Mistake(
        lambda: Memory.from_conn_string(CONN, model=WordEmbedder()), "An embedder goes into embeddings="
    ),
    "a model as embedder": Mistake(lambda: Memory.from_conn_string(CONN, embeddings=chat), "goes into model="),
    "a model's class": Mistake(lambda: Memory.from_conn_string(CONN, model=FakeListChatModel), "object of the class"),
    "a number as model": Mistake(lambda: Memory.from_conn_string(CONN, model=5), '"openai:gpt-5.5"'),
    "a name of nobody's": Mistake(lambda: Memory.from_conn_string(CONN, model="my-model"), '"openai:gpt-5.5"'),
    "an empty name": Mistake(lambda: Memory.from_conn_string(CONN, model=""), '"openai:gpt-5.5"'),
    "a provider without a model": Mistake(lambda: Memory.from_conn_string(CONN, model="openai:"), '"openai:gpt-5.5"'),
    "a key as a name": Mistake(lambda: Memory.from_conn_string(CONN, model="sk-canary"), '"openai:gpt-5.5"'),
    "an embedder's name without a provider": Mistake(
        lambda: Memory.from_conn_string(CONN, embeddings="nomic"), '"openai:text-embedding-3-small"'
    ),
    "a width as embedder": Mistake(lambda: pkg.models.EmbeddingModel(1536), "text-embedding-3-small"),
    "a batch of nothing": Mistake(lambda: pkg.models.EmbeddingModel(WordEmbedder(), batch=0), "batch=64"),
    "no model at all": Mistake(
        lambda: pkg.models.SupabaseSummarizer(Memory(memory._services.transport, model=None)),
        r"model=ChatOpenAI\(...\)",
    ),
}

# What is made over a memory

OVER = {
    "swapped history arguments": Mistake(
        lambda: pkg.SupabaseChatMessageHistory(memory, "session"),
        r'Pass SupabaseChatMessageHistory\("session-1", memory\)',
    ),
    "history over a url": Mistake(lambda: pkg.SupabaseChatMessageHistory("s", URL), "from_url"),
    "history with a number as budget": Mistake(
        lambda: pkg.SupabaseChatMessageHistory("s", memory, budget=4000),
        r"ContextBudget\(tokens=4000\)",
    ),
    "history with on_error='ignore'": Mistake(
        lambda: pkg.SupabaseChatMessageHistory("s", memory, on_error="ignore"),
        '"setup", "log", "raise" or a function',
    ),
    "middleware over a history": Mistake(
        lambda: pkg.SupabaseMemoryMiddleware(history), "that the history is made over"
    ),
    "middleware over a url": Mistake(lambda: pkg.SupabaseMemoryMiddleware(URL), "from_url"),
    "middleware over the class": Mistake(
        lambda: pkg.SupabaseMemoryMiddleware(Memory), r"SupabaseMemory\(...\)|from_url"
    ),
    "middleware with a number as budget": Mistake(
        lambda: pkg.SupabaseMemoryMiddleware(memory, budget=4000),
        r"ContextBudget\(tokens=4000\)",
    ),
    "middleware with recall='thread'": Mistake(
        lambda: pkg.SupabaseMemoryMiddleware(memory, recall="thread"),
        '"conversation", "agent", "user" or None',
    ),
    "middleware with a stage as rollout": Mistake(
        lambda: pkg.SupabaseMemoryMiddleware(memory, rollout="parallel"),
        r'Rollout\("parallel"\)',
    ),
    "middleware with sends_history=1": Mistake(
        lambda: pkg.SupabaseMemoryMiddleware(memory, sends_history=1), "Pass sends_history=True"
    ),
    "middleware with on_trim=True": Mistake(lambda: pkg.SupabaseMemoryMiddleware(memory, on_trim=True), '"keep"'),
    "middleware with a deadline as timedelta": Mistake(
        lambda: pkg.SupabaseMemoryMiddleware(memory, deadline_seconds=timedelta(seconds=5)),
        "deadline_seconds=10",
    ),
    "middleware with user_id=7": Mistake(
        lambda: pkg.SupabaseMemoryMiddleware(memory.for_user(7)),
        r"user_id=str\(",
        InvalidInputError,
    ),
    "a node over a transport": Mistake(
        lambda: pkg.SaveTurnNode(memory._services.transport), r"SupabaseMemory\(transport\)"
    ),
    "a node with a misspelled argument": Mistake(
        lambda: pkg.LoadContextNode(memory, bugdet=3),
        "Did you mean|There are",
    ),
    "a summarizing node with a policy of boards": Mistake(
        lambda: pkg.SupabaseSummarizationNode(memory, policy=BoardPolicy()),
        r"SummaryPolicy\(",
    ),
    "a tool over a client": Mistake(lambda: pkg.tools.get_turn_tool(client), "from_client"),
    "a tool with a misspelled argument": Mistake(
        lambda: pkg.tools.get_turn_tool(memory, charaters=1),
        "Did you mean characters",
    ),
    "a tool with scope='thread'": Mistake(
        lambda: pkg.tools.search_conversation_history_tool(memory, scope="thread"),
        '"conversation", "agent" or "user"',
    ),
    "a tool with characters as text": Mistake(lambda: pkg.tools.get_turn_tool(memory, characters="all"), "4,000"),
    "a toolkit over None": Mistake(lambda: pkg.SupabaseMemoryToolkit(given), "Make one with SupabaseMemory.from_url"),
    "a toolkit with scope='all'": Mistake(
        lambda: pkg.SupabaseMemoryToolkit(memory, scope="all"),
        '"conversation", "agent" or "user"',
    ),
    "a toolkit in no time zone": Mistake(
        lambda: pkg.SupabaseMemoryToolkit(memory, time_zone="Manila"), "Asia/Manila", InvalidInputError
    ),
    "a retriever over a url": Mistake(lambda: pkg.SupabaseMemoryRetriever(memory=URL), "from_url"),
    "a retriever over nothing": Mistake(lambda: pkg.SupabaseMemoryRetriever(), "Make one with SupabaseMemory.from_url"),
    "a retriever by position": Mistake(
        lambda: pkg.SupabaseMemoryRetriever(memory),
        "Pass memory=",
        InvalidInputError,
    ),
    "a retriever with k='4'": Mistake(
        lambda: pkg.SupabaseMemoryRetriever(memory=memory, k="four"),
        "valid integer",
        InvalidInputError,
    ),
    "a retriever with a misspelled field": Mistake(
        lambda: pkg.SupabaseMemoryRetriever(memory=memory, tread_id="t"),
        "Did you mean thread_id",
        InvalidInputError,
    ),
    "a retriever in no time zone": Mistake(
        lambda: pkg.SupabaseMemoryRetriever(memory=memory, time_zone="Manila"), "Asia/Manila", InvalidInputError
    ),
    "a store over a store": Mistake(lambda: pkg.SupabaseStore(InMemoryStore()), "Make one with SupabaseMemory"),
    "a store with an embedder as index": Mistake(
        lambda: pkg.SupabaseStore(memory, index=WordEmbedder()),
        'Pass index={"embed"',
    ),
    "a store with a chat model": Mistake(lambda: pkg.SupabaseStore(memory, index={"embed": chat}), "goes into model="),
    "a store with minutes as ttl": Mistake(lambda: pkg.SupabaseStore(memory, ttl=60), 'ttl={"default_ttl": 60}'),
    "a worker over a conn string": Mistake(lambda: pkg.Worker(CONN), "from_conn_string"),
    "a worker with a summary's policy": Mistake(
        lambda: pkg.Worker(memory, policy=SummaryPolicy()),
        r"WorkerPolicy\(concurrency=4\)",
    ),
    "a worker of one user": Mistake(
        lambda: pkg.Worker(memory.for_token({"sub": "u"})), "with the project's secret key"
    ),
    "long-term memory over a memory": Mistake(
        lambda: pkg.long_term.StoreLongTerm(memory, "u"), r"Pass SupabaseStore\(memory\)"
    ),
    "long-term memory over an embedder": Mistake(
        lambda: pkg.long_term.VectorStoreLongTerm(WordEmbedder(), "u"),
        "Pass a LangChain VectorStore",
    ),
    "promotion from a url": Mistake(lambda: pkg.long_term.promote(URL, given), "from_url"),
    "promotion to a store": Mistake(
        lambda: pkg.long_term.promote(memory, InMemoryStore()), r"Pass StoreLongTerm\(store, user_id"
    ),
    "clean-up every 15": Mistake(
        lambda: pkg.worker.cleanup(memory, 15).send(None),
        r"every=timedelta\(minutes=15\)",
    ),
    "a server of health that was called": Mistake(
        lambda: pkg.telemetry.MetricsServer(Metrics(), memory.health()),
        "memory.health or worker.health, without calling it",
    ),
    "a stream over None": Mistake(lambda: next(pkg.record_stream(given, "q", ["a"], thread_id="t")), "Make one with"),
}

# Calls

CALLS = {
    "last='5'": Mistake(lambda: memory.conversation("t").read(last="5"), "Pass last=20", InvalidInputError),
    "thread_id=123": Mistake(lambda: memory.conversation(123).read(), r"thread_id=str\(", InvalidInputError),
    "thread_id=None": Mistake(lambda: memory.conversation(None).read(), r"thread_id=str\(", InvalidInputError),
    "bytes as messages": Mistake(lambda: memory.conversation("t").append(b"hi"), "Pass messages", InvalidInputError),
    "a dict without content": Mistake(
        lambda: memory.conversation("t").append([{"role": "user"}]), "Pass messages", InvalidInputError
    ),
    "a coroutine as messages": Mistake(
        lambda: memory.conversation("t").append(awaited(tokens())), "Await it first", InvalidInputError
    ),
    "a naive time": Mistake(
        lambda: memory.conversation("t").read(since=datetime(2026, 1, 1)), "time zone|tz", InvalidInputError
    ),
    "budget=4000 of a call": Mistake(
        lambda: memory.conversation("t").context("q", budget=4000), r"ContextBudget\(tokens=4000\)"
    ),
    "a policy of boards for a call": Mistake(
        lambda: memory.conversation("t").summaries.make(policy=BoardPolicy(), model=chat), r"SummaryPolicy\("
    ),
    "retention as days of a call": Mistake(
        lambda: memory.conversation("t").append([HumanMessage("x")], retention=timedelta(days=1)), r"Retention\("
    ),
    "retention as a number of a read": Mistake(lambda: memory.conversation("t").read(retention=9), r"Retention\("),
    "chunking=256 of a call": Mistake(lambda: memory.conversation("t").index(chunking=256), r"ChunkPolicy\("),
    "a time zone by its city": Mistake(
        lambda: memory.recall("q", time_zone="Manila"), "Asia/Manila", InvalidInputError
    ),
    "a number as question": Mistake(lambda: memory.recall(7), "Pass the user's words", InvalidInputError),
    "a column that is none": Mistake(
        lambda: memory.conversation("t").read(columns=["content"]), "Pass some of sequence, message_id", InvalidInputError
    ),
    "a turn as text": Mistake(lambda: memory.conversation("t").turns.get("last"), "whole number|Pass", InvalidInputError),
    "nobody": Mistake(
        lambda: SupabaseMemory.from_conn_string(CONN).conversation("t").read(), r"memory\.for_user\(user_id\)", InvalidInputError
    ),
    "an index of nothing": Mistake(lambda: memory.conversation("t").chunks.reembed(), r"embeddings=OpenAIEmbeddings"),
}  # fmt: skip

ARGUMENTS = {
    "a number as the agent of a list": Mistake(
        lambda: memory.work.status(agent_id=5), "agent_id must be a text, not a number. Pass agent_id=", InvalidInputError
    ),
    "an object as the agent of the advice": Mistake(
        lambda: memory.advice(agent_id=given_object), "agent_id must be a text, not an object", InvalidInputError
    ),
    "a number for a dry run": Mistake(
        lambda: memory.conversation("t").forget(dry_run=1), "dry_run must be True or False, not a number", InvalidInputError
    ),
    "a word for a dry run": Mistake(
        lambda: memory.forget_expired(dry_run="yes"), "dry_run must be True or False, not a text", InvalidInputError
    ),
    "a text as the number of a summary": Mistake(
        lambda: memory.conversation("t").summaries.delete("1", actor="ana"), "number must be a whole number", InvalidInputError
    ),
    "a truth value as a similarity": Mistake(
        lambda: memory.recall_summaries("kiln", min_similarity=True), "min_similarity must be a number", InvalidInputError
    ),
    "a type of a recall alone": Mistake(
        lambda: memory.recall("kiln", types="fact"), "types must be a list of names, not a text", InvalidInputError
    ),
    "a column alone": Mistake(
        lambda: memory.conversation("t").read(columns="text"), "columns must be a list of names", InvalidInputError
    ),
    "a state alone": Mistake(
        lambda: memory.profile.read(states="held"), "states must be a list of names, not a text", InvalidInputError
    ),
    "a state that is none": Mistake(
        lambda: memory.profile.read(states=["new"]), "states has an unknown name, 'new'. Pass some of held", InvalidInputError
    ),
    "a time as text": Mistake(
        lambda: memory.conversation("t").append("x", created_at="2026-01-31T12:00:00Z"), "must be a datetime", InvalidInputError
    ),
    "metadata as text": Mistake(lambda: memory.conversation("t").append("x", metadata="web"), "Pass metadata="),
    "weights as a dictionary": Mistake(lambda: memory.recall("kiln", weights={"words": 1}), r"RecallWeights\("),
    "a space without a name": Mistake(
        lambda: memory.spaces.create(""), "name must not be empty", InvalidInputError
    ),
    "a number as the token of a space": Mistake(
        lambda: memory.spaces.join(5), "token must be a text, not a number", InvalidInputError
    ),
    "a number of messages as text": Mistake(
        lambda: memory.work.index_due(messages="5"), "messages must be a whole number", InvalidInputError
    ),
}  # fmt: skip

MISTAKES = {**ARGUMENTS, **OPENING, **SIGNED_IN, **SETTINGS, **MODELS, **OVER, **CALLS}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_met_by_what_to_do_next(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    mistake = MISTAKES[name]
    with pytest.raises(mistake.kind, match=mistake.words) as caught:
        mistake.does()
    error = caught.value
    assert error.code is None, "no server was asked"
    assert error.hint
    assert "canary" not in str(error)
    assert error.__cause__ is None


@each_case(
    "does",
    [
        lambda: Memory.from_url(URL, KEY, buget=3),
        lambda: Memory.embedded("x", modle=3),
        lambda: memory.conversation("t").read(lats=5),
        lambda: memory.conversation("t").turns.alist(lats=5),
        lambda: memory.conversation("t").context("q", time_rang="week"),
        lambda: memory.recall("q", limits=5),
        lambda: memory.work.status(stat="due"),
    ],
)
def test_a_misspelled_keyword_is_an_error_of_python(does: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        does()


@each_case("given", [-1, True, "3", 2.0, None])
def test_a_number_of_rows_is_a_whole_number(given: Any) -> None:
    """It is met before anybody is asked: no server is at this address. `None` means all where that is said."""
    memory = SupabaseMemory.from_conn_string("postgresql://nobody@127.0.0.1:1/none", user_id="u")
    thread = memory.conversation("t")
    calls: list[Callable[[], object]] = [
        lambda: memory.rollout.comparisons("t", last=given),
        lambda: memory.rollout.history(last=given),
    ]
    if given is not None:
        calls += [
            lambda: thread.read(last=given),
            lambda: thread.turns.list(last=given),
            lambda: memory.work.status(limit=given),
            lambda: memory.work.unreadable(limit=given),
        ]
    for does in calls:
        with pytest.raises(InvalidInputError, match=r"(last|limit) must be a whole number from 0\. Pass"):
            does()


def test_every_class_of_the_tree_says_what_to_do_next() -> None:
    listed = [each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, SupabaseMemoryError)]
    assert len(listed) > 15
    for kind in listed:
        made = kind("x", "agents") if kind is errors.MissingDependencyError else kind()
        assert len(made.message) > 10, kind
        assert re.search(r"\b(Run|Check|Look|Read|Refresh|Pass|Bring|Use|Beside|Call)\b", made.hint), (
            f"{kind.__name__} names no next action"
        )


def test_every_code_of_a_server_says_what_to_do_next() -> None:
    for code in errors._CODES:
        assert errors.from_code(code).hint, code
    for status in errors._STATUSES:
        assert errors.from_status(status).hint, status


def test_what_our_own_functions_say_has_a_hint_too() -> None:
    told = failure(httpx.Response(400, json={"code": "PT400", "message": "the GIN index", "hint": "use ->> there"}))
    assert str(told) == "The GIN index. [PT400] Use ->> there."
    silent = failure(httpx.Response(400, json={"code": "PT400", "message": "unknown action", "hint": None}))
    assert silent.hint == InvalidInputError.default_hint


FATAL = 'connection failed: connection to server at "canary.tenant.password", port 5432 failed: FATAL:  '


@each_case(
    ("said", "kind", "words"),
    [
        (FATAL + 'password authentication failed for user "canary"', AuthenticationError, "percent-encode"),
        (FATAL + 'role "canary" does not exist', AuthenticationError, "Check both"),
        (FATAL + "Tenant or user not found", AuthenticationError, "postgres.<project ref>"),
        (FATAL + "(ENOTFOUND) tenant/user postgres.canary not found", AuthenticationError, "postgres.<project ref>"),
        (FATAL + 'no pg_hba.conf entry for host "::1", user "canary"', AuthenticationError, "sslmode=require"),
        (FATAL + 'database "canary" does not exist', ConfigurationError, "Check the last part"),
        (FATAL + "sorry, too many clients already", UnavailableError, "Use a pooler"),
        (FATAL + "no more connections allowed (max_client_conn)", UnavailableError, "fewer workers"),
        (FATAL + "Connection refused", UnavailableError, "nothing listens.*Check both"),
        (FATAL + "Network is unreachable", UnavailableError, "use the session pooler's connection string"),
        ("connection timeout expired", UnavailableError, "use the session pooler's connection string"),
        (FATAL + "received invalid response to SSL negotiation: H", ConfigurationError, "not Postgres.*from_url"),
        (
            FATAL + "expected authentication request from server, but received H",
            ConfigurationError,
            "Check host and port",
        ),
        (FATAL + "server does not support SSL, but SSL was required", ConfigurationError, "Take sslmode=require out"),
        (FATAL + "SSL error: certificate verify failed", ConfigurationError, "Pass sslrootcert="),
        (
            "failed to resolve host 'canary': [Errno -2] Name or service not known",
            ConfigurationError,
            "the project ref",
        ),
        (
            "failed to resolve host 'canary': [Errno -3] Temporary failure in name resolution",
            UnavailableError,
            "Check the network's DNS",
        ),
        (FATAL + "server closed the connection unexpectedly", UnavailableError, "Check the address, the port"),
    ],
)
def test_what_postgres_says_of_a_connection_becomes_the_next_action(
    said: str, kind: type[SupabaseMemoryError], words: str
) -> None:
    error = errors.connection_failed(said)
    assert type(error) is kind
    assert re.search(words, str(error)), str(error)
    assert "canary" not in str(error)


@each_case(
    ("text", "said"),
    [
        ("memory_spaces() lists those you are in", "memory_spaces() lists those you are in."),
        ("p_branch is no object", "p_branch is no object."),
        ("store a message first", "Store a message first."),
    ],
)
def test_a_name_of_a_function_begins_no_sentence_with_a_capital(text: str, said: str) -> None:
    assert str(errors.from_error("PT404", text, text)) == f"{said[:-1]}. [PT404] {said}"


def test_no_error_is_raised_with_an_empty_hint() -> None:
    for path in Path(package.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "hint" and isinstance(node.value, ast.Constant):
                assert node.value.value, f"{path.name}:{node.value.lineno}"


# What a type checker sees


def test_no_public_method_takes_arguments_of_any_name() -> None:
    seen = 0
    for name, public in public_names().items():
        members = [(name, public)] if inspect.isfunction(public) else []
        if inspect.isclass(public) and public.__module__.startswith(package.__name__):
            hosts = (
                {"invoke", "ainvoke", "bind_tools"} if issubclass(public, Runnable) else set()
            )  # the host's own signature
            own = {key: each for base in public.__mro__ if base.__module__.startswith(package.__name__)
                   for key, each in vars(base).items()}  # fmt: skip
            members += [
                (f"{name}.{key}", getattr(each, "__func__", each))
                for key, each in own.items()
                if (key == "__init__" or not key.startswith("_")) and key not in hosts
            ]
        for where, member in members:
            if not inspect.isfunction(member) or not member.__module__.startswith(package.__name__):
                continue
            seen += 1
            for parameter in inspect.signature(member).parameters.values():
                if parameter.kind is parameter.VAR_KEYWORD and where != "SupabaseMemoryRetriever.__init__":
                    assert "Unpack[" in str(parameter.annotation), f"{where} takes **{parameter.name} of any name"
    assert seen > 200


if TYPE_CHECKING:
    # `make lint` fails where a type checker lets one of these pass: then a comment has nothing to ignore.

    def _refused(memory: SupabaseMemory) -> None:
        conversation = memory.conversation("t")
        conversation.read(lats=5)  # type: ignore[call-arg]
        conversation.turns.list(lats=5)  # type: ignore[call-arg]
        conversation.turns.as_text(lats=5)  # type: ignore[call-arg]
        memory.recall("q", limits=5)  # type: ignore[call-arg]
        conversation.context("q", time_rang="week")  # type: ignore[call-arg]
        package.LoadContextNode(memory, on_eror="log")  # type: ignore[call-arg]
        package.SupabaseSummarizationNode(memory, bugdet=None)  # type: ignore[call-arg]
        package.SupabaseMemoryRetriever(memory=memory, tread_id="t")  # type: ignore[call-arg]
        tools.get_turn_tool(memory, charaters=1)  # type: ignore[call-arg]
        SupabaseMemory.from_url("u", "k", modle=None)  # type: ignore[call-arg]
        SupabaseMemory(memory._services.transport, "key")  # type: ignore[arg-type]
        package.SupabaseMemoryMiddleware(memory, budget=4000)  # type: ignore[arg-type]
