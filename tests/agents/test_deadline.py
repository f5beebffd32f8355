"""A turn has one deadline: an unresponsive database delays it once, whatever the memory needs."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import MessagesState, StateGraph

from langchain_supabase_memory import (
    LoadContextNode,
    SaveTurnNode,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    effects,
)
from langchain_supabase_memory.adapters.transports.embedded_transport import EmbeddedTransport
from langchain_supabase_memory.agents.run.fail_open import FailOpen, GuardedTask
from langchain_supabase_memory.agents.streaming import record_stream
from langchain_supabase_memory.effects import offload
from langchain_supabase_memory.errors import UnavailableError
from langchain_supabase_memory.values import ConversationKey
from tests.counting import recorded_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.effects import Flow

KEY = ConversationKey("t", user_id="u")
RUN: RunnableConfig = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def silent() -> Iterator[SupabaseMemory]:
    """A memory of a server that accepts connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        memory = SupabaseMemory.from_url(url, "key", rest_path="", user_id="u")
        recorded_calls(memory)
        yield memory
        memory.close()


def asked(memory: SupabaseMemory) -> list[str]:
    transport: Any = memory._services.transport
    found: list[str] = transport.calls
    return found


def state(*words: str) -> list[BaseMessage]:
    made: list[BaseMessage] = []
    for word in words:
        made += [HumanMessage(word), AIMessage(f"{word}!")]
    return [*made, HumanMessage("what about the second one?")]


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_turn_of_an_agent_waits_once(silent: SupabaseMemory, color: str) -> None:
    middleware = SupabaseMemoryMiddleware(silent, deadline_seconds=1, on_error="log")
    agent = create_agent(FakeListChatModel(responses=["hello"]), middleware=[middleware])
    messages: Any = {"messages": state("one", "two")}
    result = agent.invoke(messages, RUN) if color == "sync" else asyncio.run(agent.ainvoke(messages, RUN))
    assert isinstance(result["messages"][-1], AIMessage)
    # Storing, reading, the turn that is pointed at, storing the answer, and storing at the end: the first is waited for.
    assert len(asked(silent)) == 1
    # The application sends its history again: what waits is this turn's question and answer.
    assert len(silent._services.outbox) == 2


@pytest.mark.parametrize("color", ["sync", "async"])
def test_the_start_of_an_embedded_server_is_no_part_of_a_deadline(
    conn_string: str, user_id: str, color: str, caplog: pytest.LogCaptureFixture
) -> None:
    starts: list[float] = []

    def start() -> str:
        if not starts:
            time.sleep(1.2)
        starts.append(time.monotonic())
        return conn_string

    with SupabaseMemory(EmbeddedTransport(start), user_id=user_id, model=None) as memory:
        middleware = SupabaseMemoryMiddleware(memory, deadline_seconds=1, on_error="log")
        agent = create_agent(FakeListChatModel(responses=["hello"]), middleware=[middleware])
        asked: Any = {"messages": [HumanMessage("Hello")]}
        _ = agent.invoke(asked, RUN) if color == "sync" else asyncio.run(agent.ainvoke(asked, RUN))
        assert [each.ai_response for each in memory.conversation("t").turns.list()] == ["hello"]
        assert not [each for each in caplog.records if each.levelname == "ERROR"]


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_turn_of_a_graph_waits_once(silent: SupabaseMemory, color: str) -> None:
    builder: Any = StateGraph(MessagesState)
    builder.add_node("load", LoadContextNode(silent, output_messages_key="messages", deadline_seconds=1))
    builder.add_node("save", SaveTurnNode(silent, deadline_seconds=1))
    builder.set_entry_point("load")
    builder.add_edge("load", "save")
    graph = builder.compile()
    messages = {"messages": state("one")}
    if color == "sync":
        graph.invoke(messages, RUN)
    else:
        asyncio.run(graph.ainvoke(messages, RUN))
    assert len(asked(silent)) == 1


def test_a_stream_waits_once(silent: SupabaseMemory) -> None:
    options: Any = {"thread_id": "t", "deadline_seconds": 1, "on_error": "log"}
    assert list(record_stream(silent, "hello", ["hel", "lo"], **options)) == ["hel", "lo"]
    assert len(asked(silent)) == 1
    assert [message.text for message, _ in silent._services.outbox.pending(silent._services.key("t"))] == [
        "hello",
        "hello",
    ]


def test_a_read_of_a_history_waits_once(silent: SupabaseMemory) -> None:
    history = SupabaseChatMessageHistory("t", silent, deadline_seconds=1, on_error="log")
    assert history.messages == []
    assert len(asked(silent)) == 1


def test_the_next_turn_is_tried_again(silent: SupabaseMemory) -> None:
    agent = create_agent(
        FakeListChatModel(responses=["hello"]),
        middleware=[SupabaseMemoryMiddleware(silent, deadline_seconds=1, on_error="log")],
    )
    for turn in range(2):
        agent.invoke({"messages": [HumanMessage(f"turn {turn}")]}, RUN)
        assert len(asked(silent)) == turn + 1


@pytest.fixture
def memory() -> SupabaseMemory:
    """One that nothing is asked of."""
    return SupabaseMemory.from_url("http://127.0.0.1:1", "key", user_id="u")


def long(ended: threading.Event) -> Flow[int]:
    def work() -> int:
        ended.wait()
        return 1

    return (yield from offload(work, 1_000_000))


@pytest.mark.parametrize("color", ["sync", "async"])
def test_the_processors_work_is_given_up_with_the_deadline(memory: SupabaseMemory, color: str) -> None:
    ended = threading.Event()
    guard = FailOpen(memory, None, "log", 0.1).begin(KEY, [HumanMessage("hello", id="1")])

    def both() -> effects.Effects[list[int | None]]:
        first = yield from guard.attempt(long(ended), GuardedTask("It takes long"), KEY)
        return [first, (yield from guard.attempt(long(ended), GuardedTask("Nothing is left for it"), KEY))]

    try:
        assert (effects.run(both()) if color == "sync" else asyncio.run(effects.arun(both()))) == [None, None]
    finally:
        ended.set()


def test_a_guard_shares_what_is_left_with_those_that_come_after_it_in_the_same_turn(memory: SupabaseMemory) -> None:
    first, second = FailOpen(memory, None, "raise", 0.1), FailOpen(memory, None, "raise", 0.1)
    turn, ended = [HumanMessage("hello", id="1")], threading.Event()

    def attempted(guard: FailOpen) -> None:
        with pytest.raises(UnavailableError, match="took too long"):
            effects.run(guard.attempt(long(ended), GuardedTask("It takes long"), KEY))

    try:
        attempted(first.begin(KEY, turn))
        for guard in (first.resume(KEY, turn), second.resume(KEY, turn), second.begin(KEY, turn)):
            assert guard.left_seconds <= 0
            attempted(guard)
    finally:
        ended.set()
    assert second.begin(KEY, [HumanMessage("hello", id="2")]).left_seconds == 0.1
    assert second.left_seconds == 0.1  # what runs beside an answer has a deadline of its own


def test_what_a_model_has_beyond_the_deadline_does_not_count(memory: SupabaseMemory) -> None:
    guard = FailOpen(memory, None, "raise", 0.2).begin(KEY, [HumanMessage("hello", id="1")])

    def slow() -> Flow[int]:
        return (yield from offload(lambda: threading.Event().wait(0.3) or 1, 1_000_000))

    assert effects.run(guard.attempt(slow(), GuardedTask("A model is asked"), KEY, more=60)) == 1
    assert guard.left_seconds == 0.2
