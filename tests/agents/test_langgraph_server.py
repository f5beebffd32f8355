"""LangGraph's own server: `langgraph dev` runs the README's code, with `langgraph-sdk` as the client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.memory.services import DefaultUser
from tests.owners import conversation_of
from tests.project.test_documentation import FILES, fenced
from tests.services.data_api import SECRET, token
from tests.services.postgres import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # two servers start first, on a machine that may be busy

OWNER = "owner-of-the-server"
"""Whose is what nobody in particular says: the user of the memory that is served."""

OTHER_GRAPHS = f'''
"""Graphs beside the README's: with a budget in tokens and recall, of nodes, and one that shows what the server gives."""

import os

import asyncio

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_supabase_memory import *
from langchain_supabase_memory.testing import OfflineQuotingModel
from langchain_supabase_memory.memory.services import DefaultUser

memory = SupabaseMemory.from_conn_string(
    os.environ["SUPABASE_DB_URL"],
    user_id=DefaultUser("{OWNER}"),
    model=ExtractiveSummarizer(),
    redactor=[*SECRETS],
    config=MemoryConfig(policy=SummaryPolicy(messages=4, keep_messages=2)),
)
middleware = SupabaseMemoryMiddleware(memory, budget=ContextBudget(tokens=400), recall="user", agent_id="bounded")
bounded = create_agent(
    OfflineQuotingModel(), SupabaseMemoryToolkit(memory, agent_id="bounded").get_tools(), middleware=[middleware]
)


class Waits(AgentMiddleware):
    """Keeps the model busy where the user says so."""

    async def awrap_model_call(self, request, handler):
        if "wait" in request.messages[-1].text:
            await asyncio.sleep(60)
        return await handler(request)


slow = create_agent(
    OfflineQuotingModel(), middleware=[SupabaseMemoryMiddleware(memory, agent_id="slow"), Waits()]
)


class State(MessagesState):
    summarized_messages: list


async def answer(state):
    return {{"messages": [await OfflineQuotingModel().ainvoke(state["summarized_messages"])]}}


builder = StateGraph(State)
builder.add_node("summarize", SupabaseSummarizationNode(memory, agent_id="nodes", budget=ContextBudget(tokens=400)))
builder.add_node("answer", answer)
builder.add_node("save", SaveTurnNode(memory, agent_id="nodes"))
builder.add_edge(START, "summarize")
builder.add_edge("summarize", "answer")
builder.add_edge("answer", "save")
builder.add_edge("save", END)
nodes = builder.compile()
'''

AGENTS = {"agent": "default", "bounded": "bounded", "nodes": "nodes"}
"""The graphs, and the agent under whose id each keeps its messages."""


@dataclass
class Server:
    """A server that is running.

    Attributes:
        url: Its address.
        log: The file that it writes what it says to.
    """

    url: str
    log: Path


@contextmanager
def serving(folder: Path, conn_string: str, *, with_auth: bool) -> Iterator[Server]:
    """`langgraph dev` over the README's files; it is not ready yet."""
    for text in FILES:
        path = folder / text.split("\n")[0].removeprefix("# ")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    agent = folder / "myapp" / "agent.py"
    stand_in = (
        "from langchain_supabase_memory.testing import OfflineQuotingModel\n"
        "from langchain_supabase_memory.memory.services import DefaultUser\n"
    )
    served = re.sub(r'"openai:[^"]+"', "OfflineQuotingModel()", agent.read_text()).replace('"me"', f'"{OWNER}"')
    served = served.replace('["SUPABASE_DB_URL"])', f'["SUPABASE_DB_URL"], user_id=DefaultUser("{OWNER}"))')
    agent.write_text(stand_in + served)
    (folder / "others.py").write_text(OTHER_GRAPHS)
    (config,) = (json.loads(text) for text in fenced("json") if '"graphs"' in text)
    config["graphs"] |= {name: f"./others.py:{name}" for name in ("bounded", "nodes", "slow")}
    if not with_auth:
        del config["auth"]
    (folder / "langgraph.json").write_text(json.dumps(config))
    port, log = free_port(), folder / "log"
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LANGSMITH", "LANGCHAIN", "LANGGRAPH"))
    }
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)],
            cwd=folder,
            stdout=out,
            stderr=out,
            env={
                **kept,
                "SUPABASE_DB_URL": conn_string,
                "SUPABASE_JWT_SECRET": SECRET,
                "LANGSMITH_TRACING": "false",
                "LANGGRAPH_CLI_NO_ANALYTICS": "1",
                "LANGGRAPH_NO_VERSION_CHECK": "true",
            },
        ) as process,
    ):
        try:
            yield Server(f"http://127.0.0.1:{port}", log)
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()


def ready(server: Server) -> Server:
    """The server, as soon as it answers."""
    for _ in range(600):
        try:
            if httpx.get(f"{server.url}/ok", timeout=5).status_code == 200:
                return server
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise RuntimeError(f"langgraph dev did not answer within two minutes:\n{server.log.read_text()[-5000:]}")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, conn_string: str) -> Iterator[dict[str, Server]]:
    """One server without authentication, and one with it, both starting at once."""
    with ExitStack() as stack:
        started = {
            name: stack.enter_context(serving(tmp_path_factory.mktemp(name), conn_string, with_auth=name == "private"))
            for name in ("open", "private")
        }
        yield {name: ready(server) for name, server in started.items()}


Connect = Callable[..., LangGraphClient]


@pytest.fixture
async def connect(servers: dict[str, Server]) -> AsyncIterator[Connect]:
    """Gives clients of the open server, or of the private one for the bearer of a token that Supabase's Auth signed."""
    async with AsyncExitStack() as stack:
        made = []

        def connect(user_id: str | None = None, *, server: str = "open") -> LangGraphClient:
            headers = {} if user_id is None else {"authorization": f"Bearer {token(user_id=user_id)}"}
            name = server if user_id is None else "private"
            made.append(get_client(url=servers[name].url, headers=headers, api_key=None))
            return made[-1]

        yield connect
        for client in made:
            await stack.enter_async_context(client)


@pytest.fixture
async def stored(conn_string: str) -> AsyncIterator[SupabaseMemory]:
    """The database behind the servers."""
    async with SupabaseMemory.from_conn_string(conn_string, user_id=DefaultUser(OWNER)) as memory:
        yield memory


async def said(client: LangGraphClient, graph: str, thread_id: str, text: str, **named: Any) -> str:
    """Say something, and give the answer."""
    given: Any = {"messages": [{"role": "user", "content": text}]}
    state: Any = await client.runs.wait(thread_id, graph, input=given, **named)
    assert "__error__" not in state, state
    return str(state["messages"][-1]["content"])


async def words(memory: SupabaseMemory, **where: Any) -> list[str]:
    stored = [each.message for each in await conversation_of(memory, **where).aread()]
    return [str(each.text) for each in stored if isinstance(each, HumanMessage)]


TURNS = [
    "My kiln shows E-47.",
    "The thermocouple is of type K.",
    "Maya Olsen comes on 3 May.",
    "The clay is porcelain.",
    "What does my kiln show?",
]


@pytest.mark.parametrize("graph", AGENTS)
async def test_several_turns_are_remembered(connect: Connect, stored: SupabaseMemory, graph: str) -> None:
    client = connect()
    thread = await client.threads.create()
    answers = [await said(client, graph, thread["thread_id"], text) for text in TURNS]
    assert "E-47" in answers[-1]
    assert await words(stored, thread_id=thread["thread_id"], agent_id=AGENTS[graph]) == TURNS


@pytest.mark.parametrize("graph", AGENTS)
@pytest.mark.parametrize(
    "named",
    [{"context": {"user_id": "", "agent_id": ""}}, {"config": {"configurable": {"user_id": "", "agent_id": ""}}}],
    ids=["context", "configurable"],
)
async def test_an_empty_id_is_unset(
    connect: Connect, stored: SupabaseMemory, graph: str, named: dict[str, Any]
) -> None:
    client = connect()
    thread = await client.threads.create()
    await said(client, graph, thread["thread_id"], "Hello", **named)
    assert await words(stored, thread_id=thread["thread_id"], agent_id=AGENTS[graph]) == ["Hello"]


@pytest.mark.parametrize("graph", AGENTS)
async def test_without_authentication_the_run_says_whose_it_is(
    connect: Connect, stored: SupabaseMemory, graph: str
) -> None:
    client = connect()
    thread = await client.threads.create()
    await said(client, graph, thread["thread_id"], "Hello", context={"user_id": "run-maya"})
    where = {"thread_id": thread["thread_id"], "agent_id": AGENTS[graph]}
    assert await words(stored, user_id="run-maya", **where) == ["Hello"]
    assert await words(stored, **where) == []


@pytest.mark.parametrize("graph", AGENTS)
async def test_with_authentication_each_user_has_their_own(
    connect: Connect, stored: SupabaseMemory, graph: str
) -> None:
    threads = {}
    for user_id in ("maya", "noor"):
        client = connect(user_id)
        threads[user_id] = (await client.threads.create())["thread_id"]
        await said(client, graph, threads[user_id], f"My secret is of {user_id}.")
        # What the run says does not matter where the server knows.
        await said(client, graph, threads[user_id], "What is my secret?", context={"user_id": "maya"})
    for user_id, thread_id in threads.items():
        held = await words(stored, user_id=user_id, thread_id=thread_id, agent_id=AGENTS[graph])
        assert held == [f"My secret is of {user_id}.", "What is my secret?"]
    answer = await said(connect("noor"), graph, threads["noor"], "Whose secret is of maya?")
    assert "of maya" not in answer.replace("Whose secret is of maya?", "")


async def test_a_fork_and_an_edit_reach_the_store(connect: Connect, stored: SupabaseMemory) -> None:
    client = connect()
    thread_id = (await client.threads.create())["thread_id"]
    await said(client, "agent", thread_id, "My kiln is red.")
    before = (await client.threads.get_state(thread_id))["checkpoint"]
    await said(client, "agent", thread_id, "No, it is blue.")
    await said(client, "agent", thread_id, "No, it is green.", checkpoint=before)
    pack = await stored.conversation(thread_id).acontext("And now?")
    assert "green" in pack.text()
    assert "blue" not in pack.text()


@pytest.mark.parametrize("turns_before", [0, 1])
async def test_a_run_that_the_server_takes_back_is_superseded(
    connect: Connect, stored: SupabaseMemory, turns_before: int
) -> None:
    client = connect()
    thread_id = (await client.threads.create())["thread_id"]
    for _ in range(turns_before):
        await said(client, "slow", thread_id, "My kiln is red.")
    given: Any = {"messages": [{"role": "user", "content": "Please wait, my kiln is blue."}]}
    await client.runs.create(thread_id, "slow", input=given)
    where = {"thread_id": thread_id, "agent_id": "slow"}
    for _ in range(300):
        if "Please wait, my kiln is blue." in await words(stored, **where):
            break
        await asyncio.sleep(0.1)
    await said(client, "slow", thread_id, "Hello again.", multitask_strategy="rollback")
    assert await words(stored, **where) == [*["My kiln is red."] * turns_before, "Hello again."]
    left = await conversation_of(stored, **where).superseded.alist()
    assert [each.message.text for each in left if each.message] == ["Please wait, my kiln is blue."]


async def test_a_run_that_is_interrupted_by_another_keeps_what_it_said(
    connect: Connect, stored: SupabaseMemory
) -> None:
    client = connect()
    thread_id = (await client.threads.create())["thread_id"]
    given: Any = {"messages": [{"role": "user", "content": "Please wait, I have a dog."}]}
    await client.runs.create(thread_id, "slow", input=given)
    where = {"thread_id": thread_id, "agent_id": "slow"}
    for _ in range(300):
        if await words(stored, **where):
            break
        await asyncio.sleep(0.1)
    await said(client, "slow", thread_id, "Hello again.", multitask_strategy="interrupt")
    assert await words(stored, **where) == ["Please wait, I have a dog.", "Hello again."]


async def test_the_store_is_the_servers(connect: Connect, conn_string: str) -> None:
    client = connect()
    await client.store.put_item(["facts", "maya"], "kiln", {"text": "The kiln is a Skutt 818"})
    await client.store.put_item(["facts", "noor"], "kiln", {"text": "The kiln is a Nabertherm"})
    found = await client.store.search_items(["facts"], query="which kiln is a Skutt", limit=1)
    assert [each["value"] for each in found["items"]] == [{"text": "The kiln is a Skutt 818"}]
    item = await client.store.get_item(["facts", "noor"], "kiln")
    assert item["value"] == {"text": "The kiln is a Nabertherm"}
    listed = await client.store.list_namespaces(prefix=["facts"])
    assert listed["namespaces"] == [["facts", "maya"], ["facts", "noor"]]
    await client.store.delete_item(["facts", "noor"], "kiln")
    with psycopg.connect(conn_string) as connection:
        rows = connection.execute("select key from memory.store_items where user_id = %s", [OWNER]).fetchall()
    assert rows == [("kiln",)]


async def test_with_authentication_the_store_is_each_users_own(connect: Connect) -> None:
    maya, noor = (connect(user_id) for user_id in ("maya", "noor"))
    await maya.store.put_item(["maya", "facts"], "kiln", {"text": "of maya"})
    await noor.store.put_item(["noor", "facts"], "kiln", {"text": "of noor"})
    assert [each["value"] for each in (await noor.store.search_items(["noor"]))["items"]] == [{"text": "of noor"}]
    with pytest.raises(Exception, match="403|Forbidden|AssertionError|500"):
        await noor.store.search_items(["maya"])


async def test_nobody_is_refused(connect: Connect) -> None:
    with pytest.raises(Exception, match="401|Unauthorized"):
        await connect(server="private").threads.create()


def test_nothing_blocked_nothing_failed_and_nothing_is_nobodys(servers: dict[str, Server], conn_string: str) -> None:
    """Last, about all of the above: the server itself watches with BlockBuster."""
    for server in servers.values():
        log = server.log.read_text()
        assert "Background run succeeded" in log, log[-3000:]
        assert "Blocking call" not in log
        ours = [line for line in log.splitlines() if re.search(r"langchain_supabase_memory", line)]
        assert [line for line in ours if re.search(r"\[(warning|error|critical)", line)] == []
        assert "BlockingError" not in log
        assert "without memory" not in log
    with psycopg.connect(conn_string) as connection:
        rows = connection.execute("select count(*) from memory.conversations where user_id = ''").fetchone()
    assert rows == (0,)
