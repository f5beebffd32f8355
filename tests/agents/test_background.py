"""Work behind the answer: what the next prompt does not need yet is made while the model answers."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import ContextBudget, SummaryPolicy, SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.agents.run.load import SUMMARIZING
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.memory import background, services
from langchain_supabase_memory.memory.background import BackgroundTasks
from langchain_supabase_memory.values import ConversationKey
from tests.chat_models import ScriptedModel, says
from tests.services.data_api import DataApi, token
from tests.services.proxy import Lie, Proxy

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGET = ContextBudget(characters=12_000)
THREAD: Any = {"configurable": {"thread_id": "t"}}
SECRET = "canary-7711"


def talk(characters: int, number: int = 0) -> list[Any]:
    """A question and an answer of so many characters together."""
    words = "the glaze of the kiln settled on the shelf. " * (characters // 88 + 1)
    half = words[: characters // 2]
    return [HumanMessage(f"Told {number}: {half}"), AIMessage(f"Heard {number}: {half}")]


def fill(memory: SupabaseMemory, characters: int) -> None:
    """A conversation of about so many characters, in turns of 800."""
    for number in range(characters // 800):
        memory.conversation("t").append(talk(800, number))


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, memory: SupabaseMemory) -> Callable[..., Any]:
    async def ask(chat: ScriptedModel, text: str = "Good morning.", **settings: Any) -> list[Any]:
        agent = create_agent(chat, [], middleware=[SupabaseMemoryMiddleware(memory, budget=BUDGET, **settings)])
        given: Any = {"messages": [HumanMessage(text)]}
        if request.param == "sync":
            return [*agent.stream(given, THREAD, stream_mode="custom")]
        return [each async for each in agent.astream(given, THREAD, stream_mode="custom")]

    return ask


def summarizing(events: list[Any]) -> list[str]:
    return [each["by"] for each in events if each["type"] == SUMMARIZING]


class Slow(ExtractiveSummarizer):
    """The default writer, which waits until it may write."""

    def __init__(self) -> None:
        super().__init__()
        self.may, self.asked = threading.Event(), threading.Event()

    def write(self, material: Any) -> str:
        self.asked.set()
        assert self.may.wait(20)
        return super().write(material)


async def test_what_the_prompt_shows_whole_is_summarized_behind_the_answer(memory: SupabaseMemory, ask: Any) -> None:
    fill(memory, 8_800)
    conversation, chat = memory.conversation("t"), says("Morning!")
    assert summarizing(await ask(chat)) == ["background"]
    assert "Told 0" in str(chat.shown[0][0].text)
    await memory.aflush()
    assert memory.health().background == 0
    assert conversation.summaries.list()
    assert conversation.chunks.list(), "words are indexed before a segment takes their place"
    assert summarizing(await ask(chat)) == []
    assert "Told 0:" not in str(chat.shown[1][-2].text)
    assert not conversation.context(budget=BUDGET).omitted


async def test_what_the_prompt_would_leave_out_is_summarized_before_it(memory: SupabaseMemory, ask: Any) -> None:
    fill(memory, 20_000)
    chat = says("Morning!")
    assert summarizing(await ask(chat)) == ["self"]
    assert "Told 0" in str(chat.shown[0][0].text), "the summary quotes it"
    assert memory.conversation("t").coverage(budget=BUDGET).complete


async def test_no_answer_waits_and_a_conversation_has_one_task(memory: SupabaseMemory, ask: Any) -> None:
    fill(memory, 8_800)
    writer, chat = Slow(), says("Morning!")
    assert summarizing(await ask(chat, model=writer)) == ["background"]
    assert await asyncio.to_thread(writer.asked.wait, 20)
    await ask(chat, model=writer)
    assert len(chat.shown) == 2, "both answered while the writer waits"
    assert memory.health().background == 1
    writer.may.set()
    await memory.aflush()
    assert len(memory.conversation("t").summaries.list()) == 1


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("budget", [BUDGET, ContextBudget(characters=3_000)], ids=["default", "small"])
@pytest.mark.parametrize("scope", ["conversation", "agent", "user"])
async def test_who_looks_into_other_conversations_finds_short_ones(
    memory: SupabaseMemory, color: str, budget: ContextBudget, scope: Any
) -> None:
    """One turn is all that was said there: it never leaves its own prompt."""
    chat = says("Noted.")
    agent: Any = create_agent(chat, [], middleware=[SupabaseMemoryMiddleware(memory, budget=budget, recall=scope)])
    for thread, text in (("one", "My locker code is 7391."), ("two", "What is my locker code?")):
        asked, config = {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}}
        if color == "sync":
            agent.invoke(asked, config)
        else:
            await agent.ainvoke(asked, config)
        await memory.aflush()
    assert ("7391" in str(chat.shown[-1][-1].text)) is (scope != "conversation")
    assert bool(memory.conversation("one").chunks.list()) is (scope != "conversation")


async def test_a_turn_that_indexes_nothing_starts_no_task(memory: SupabaseMemory, ask: Any) -> None:
    fill(memory, 5_600)  # more than a quarter of the budget, and no segment is due
    conversation = memory.conversation("t")
    assert conversation.context("Good morning.", budget=BUDGET, recall="conversation").index_soon
    assert not conversation.context("Good morning.", budget=BUDGET, recall=None).index_soon
    await ask(says("Morning!"), recall=None)
    assert memory.health().background == 0
    await ask(says("Morning!"))
    await memory.aflush()
    assert conversation.chunks.list()


async def test_a_failure_is_logged_never_raised_and_the_work_stays_due(
    memory: SupabaseMemory, ask: Any, caplog: pytest.LogCaptureFixture
) -> None:
    fill(memory, 8_800)

    def fails(_: Any) -> str:
        raise RuntimeError(SECRET)

    chat = says("Morning!")
    with caplog.at_level(logging.DEBUG, "langchain_supabase_memory"):
        await ask(chat, model=fails, on_error="raise")
        await memory.aflush()
    assert chat.shown
    assert "The summarizer failed: RuntimeError" in caplog.text
    assert SECRET not in caplog.text
    assert memory.health().causes[0].part == "summarizer"
    assert not memory.conversation("t").summaries.list()
    memory.conversation("t").summaries.make()
    assert memory.conversation("t").summaries.list()


async def test_words_are_never_out_of_reach_in_between(memory: SupabaseMemory, ask: Any) -> None:
    """Whatever is made when: what a prompt neither shows nor summarizes can be recalled."""
    writer, chat = Slow(), ScriptedModel(script=lambda _: talk(900)[1].text)
    policy = SummaryPolicy(timeout_seconds=30)
    for number in range(24):
        if number % 3 == 2:  # a task is late for some turns
            writer.may.set()
            await memory.aflush()
            writer.may.clear()
        else:
            writer.may.set() if number > 9 else None
        await ask(chat, f"Told {number}: {talk(500)[0].text}", model=writer, policy=policy, deadline_seconds=30)
        pack = memory.conversation("t").context(budget=BUDGET)
        assert not pack.lacks_summary
        assert not pack.index_due
    writer.may.set()


def test_closing_waits_for_the_work(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        fill(memory, 8_800)
        agent = create_agent(says("Hi"), [], middleware=[SupabaseMemoryMiddleware(memory, budget=BUDGET)])
        agent.invoke({"messages": [HumanMessage("Hello")]}, THREAD)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        assert memory.conversation("t").summaries.list()


@pytest.mark.parametrize("patience", [5.0, 0.2])
def test_a_slow_database_delays_no_answer_and_closing_only_for_a_while(
    data_api: DataApi, user_id: str, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "CLOSE_SECONDS", patience)
    with Proxy(data_api.url) as proxy:
        memory = SupabaseMemory.from_url(proxy.url, token("service_role"), rest_path="", user_id=user_id)
        fill(memory, 8_800)
        proxy.always(Lie("slow", delay_seconds=1.0), ["memory_pending_chunks"])
        agent = create_agent(says("Hi"), [], middleware=[SupabaseMemoryMiddleware(memory, budget=BUDGET)])
        agent.invoke({"messages": [HumanMessage("Hello")]}, THREAD)
        assert memory.health().background == 1
        memory.close()
        proxy.truthful()
        with SupabaseMemory.from_url(data_api.url, token("service_role"), rest_path="", user_id=user_id) as after:
            assert bool(after.conversation("t").summaries.list()) == (patience > 1)
            after.conversation("t").summaries.make()
            assert after.conversation("t").summaries.list(), "what was not done is still due"
        memory._services.background.join(5)


def test_event_loops_that_come_and_go_lose_no_work(conn_string: str, user_id: str) -> None:
    memory = SupabaseMemory.from_conn_string(conn_string, user_id=user_id)
    fill(memory, 8_800)
    agent = create_agent(says("Hi"), [], middleware=[SupabaseMemoryMiddleware(memory, budget=BUDGET)])
    given: Any = {"messages": [HumanMessage("Hello")]}

    async def turn() -> None:
        await agent.ainvoke(given, THREAD)
        await memory._services.transport.aclose()  # what this loop opened, and the sync pool

    asyncio.run(turn())
    memory.flush()
    assert memory.conversation("t").summaries.list()
    memory.close()


PROGRAM = """
import os, sys
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_supabase_memory import ContextBudget, SupabaseMemory, SupabaseMemoryMiddleware
from tests.chat_models import says
def answer(user_id):
    memory = SupabaseMemory.from_conn_string(sys.argv[1], user_id=user_id)
    middleware = SupabaseMemoryMiddleware(memory, budget=ContextBudget(characters=12_000))
    agent = create_agent(says("Hi"), [], middleware=[middleware])
    agent.invoke({"messages": [HumanMessage("Hello")]}, {"configurable": {"thread_id": "t"}})
    return memory
def wait(child):
    assert os.waitpid(child, 0)[1] == 0
_, _, at_once, killed, forked = sys.argv
if not (process := os.fork()):
    answer(killed)
    os._exit(0)
wait(process)
if not (process := os.fork()):
    memory = answer(forked)
    if not (child := os.fork()):
        print(memory.health().background)
        sys.stdout.flush()
        os._exit(0)
    wait(child)
    sys.exit()
wait(process)
answer(at_once)
"""
"""One process ends for each user: all three have what is imported once."""


def test_a_process_may_end_with_work_behind_the_answer(conn_string: str, user_id: str) -> None:
    users = {end: f"{user_id}-{end}" for end in ("at once", "killed", "forked")}
    with ExitStack() as stack:
        memories = {
            end: stack.enter_context(SupabaseMemory.from_conn_string(conn_string, user_id=user))
            for end, user in users.items()
        }
        for memory in memories.values():
            fill(memory, 8_800)
        command = [sys.executable, "-c", PROGRAM, conn_string, *users.values()]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env={**os.environ})
        assert ended.stderr == ""
        assert ended.stdout == "0\n", "a child has none of its parent's work"
        for end, memory in memories.items():
            conversation = memory.conversation("t")
            if end != "killed":
                assert conversation.summaries.list(), f"the end of the process waits for it: {end}"
            conversation.summaries.make()
            assert conversation.summaries.list(), end
            assert conversation.coverage(budget=BUDGET).complete, end
            assert len(conversation.read()) == 24, end


def test_tasks_are_bounded_in_threads_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_MAX_WAITING", 50)
    tasks, may, running = BackgroundTasks(), threading.Event(), []

    def task(number: int) -> None:
        running.append(number)
        wait(may)

    keys = [ConversationKey(f"t{number}", "u", "a") for number in range(10_000)]
    accepted = [tasks.start(None, key, partial(task, number)) for number, key in enumerate(keys)]
    time.sleep(0.05)
    assert sum(accepted) == len(tasks) <= 52
    assert len(running) <= 2
    assert tasks.start(None, keys[0], partial(task, 0)), "one for this conversation is there"
    assert not tasks.join(0.01)
    may.set()
    assert tasks.join(20)
    assert sorted(running) == [number for number, each in enumerate(accepted) if each]


def wait(may: threading.Event) -> None:
    may.wait(20)


def test_each_identity_waits_for_its_own_tasks_alone() -> None:
    tasks, may = BackgroundTasks(), threading.Event()
    mine, other = object(), object()
    tasks.start(mine, ConversationKey("t", None, "a"), lambda: None)
    tasks.start(other, ConversationKey("t", None, "a"), partial(wait, may))
    assert tasks.join(5, mine)
    assert not tasks.join(0.01, other)
    tasks.start(mine, ConversationKey("u", None, "a"), lambda: None)
    may.set()
    assert tasks.join(20)


def test_a_task_that_breaks_ends_no_thread_and_tells_no_content(caplog: pytest.LogCaptureFixture) -> None:
    tasks, after = BackgroundTasks(), threading.Event()

    def breaks() -> None:
        raise KeyboardInterrupt(SECRET)

    tasks.start(None, ConversationKey("t", "u", "a"), breaks)
    tasks.start(None, ConversationKey("v", "u", "a"), after.set)
    assert tasks.join(20)
    assert after.is_set()
    assert "KeyboardInterrupt" in caplog.text
    assert SECRET not in json.dumps(caplog.text)
