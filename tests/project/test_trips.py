"""The work of a verb, not its time: how many calls it makes in the package, and that nothing is done twice."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

import langchain_supabase_memory
from langchain_supabase_memory import MemoryConfig, SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.types import ContextPack
from tests.chat_models import ScriptedModel
from tests.conftest import Caller

PACKAGE = f"{Path(langchain_supabase_memory.__file__).parent}/"


class Trip:
    """The files of the package that a call enters, and how often each function of it is called.

    Args:
        call: What is done.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        threading.setprofile(self._enter)  # a turn is done in threads
        sys.setprofile(self._enter)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.calls}

    @property
    def rooms(self) -> set[str]:
        """The first folder under the package, or the module that lies there."""
        return {file.partition("/")[0] for file in self.files}

    def _enter(self, frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE):
            self.calls[file.removeprefix(PACKAGE), frame.f_code.co_name] += 1


def turn(number: int) -> list[BaseMessage]:
    """A user's message, and the answer."""
    return [HumanMessage(f"Which kiln did I buy on day {number}?"), AIMessage(f"Kiln {number}, by the river.")]


def turn_with_tools() -> list[BaseMessage]:
    """A turn of blocks, a picture, a call and its result."""
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/kiln.png"}}
    return [
        HumanMessage([{"type": "text", "text": "Which kiln is this?"}, picture], id="asked"),
        AIMessage("", tool_calls=[{"name": "look", "args": {"at": "kiln.png"}, "id": "c"}], id="called"),
        ToolMessage("A hot one.", tool_call_id="c", artifact={"seen": "at noon"}, id="result"),
        AIMessage([{"type": "text", "text": "A hot one."}], id="answered"),
    ]


def rows(value: Any) -> Iterator[str]:
    """The ids of the rows of messages in a value that is to become JSON."""
    if isinstance(value, dict) and "payload" in value:
        yield value["id"]
    elif isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from rows(each)


def test_an_append_goes_a_short_way(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        conversation = memory.conversation("t")
        conversation.append(turn(1))
        trip = Trip(lambda: conversation.append(turn(2)))
    # One checks the arguments' types, one is the pool of connections.
    assert len(trip.files) <= 20, sorted(trip.files)
    assert len(trip.rooms) <= 8, sorted(trip.rooms)


def test_an_append_renders_each_message_once(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        messages = turn_with_tools()
        trip = Trip(lambda: memory.conversation("t").append(messages))
    assert trip.calls["language/messages/rendering.py", "render"] == len(messages)
    assert trip.calls["language/tokens.py", "count_tokens"] == len(messages)
    assert trip.calls["language/messages/rendering.py", "as_json"] == 1, "the arguments of one call"


async def test_an_append_dumps_each_message_once(caller: Caller, user_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dumped: Counter[str] = Counter()
    dumps = orjson.dumps

    def count(value: Any) -> bytes:
        dumped.update(rows(value))
        return dumps(value)

    monkeypatch.setattr(orjson, "dumps", count)
    conversation = caller.service.for_user(user_id).conversation("t")
    messages = turn_with_tools()
    await caller(conversation.append, messages)
    assert dumped == dict.fromkeys([str(each.id) for each in messages], 1)
    assert [each.message for each in await caller(conversation.read)] == messages


def test_a_pack_renders_each_message_once(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        conversation = memory.conversation("t")
        asked, *rest = turn_with_tools()
        asked.content = "Which kiln is this?"
        conversation.append([*turn(1), asked, *rest])
        packs: list[ContextPack] = []
        trip = Trip(lambda: packs.append(conversation.context("And the other one?")))
        later = Trip(lambda: (packs[0].report(), packs[0].manifest))
    assert len(packs[0].messages) == 6
    assert trip.calls["language/messages/rendering.py", "render"] == 7, "the messages, and the question"
    assert later.calls["language/messages/rendering.py", "render"] == 0
    assert later.calls["language/tokens.py", "count_tokens"] <= 14, "words and calls of each, once"


def test_a_turn_of_the_middleware_does_its_work_once(conn_string: str, user_id: str) -> None:
    model = ScriptedModel(script=lambda _: "A hot one.")
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=MemoryConfig(recall=None)) as memory:
        agent = create_agent(model, middleware=[SupabaseMemoryMiddleware(memory)], checkpointer=InMemorySaver())
        run: RunnableConfig = {"configurable": {"thread_id": "t"}}
        agent.invoke({"messages": [HumanMessage("Which kiln is this?")]}, run)
        trip = Trip(lambda: agent.invoke({"messages": [HumanMessage("And that one?")]}, run))
    # The question and the answer as they are stored; the pack's two messages, and the question.
    assert trip.calls["language/messages/rendering.py", "render"] == 2 + 3
    assert trip.calls["agents/run/graph_state.py", "graph_state"] == 5, "one for each hook, and one for the call"
