"""Partial answers of stopped runs: stored if the application asks for it, and marked as partial."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field
from starlette.responses import StreamingResponse

from langchain_supabase_memory import (
    MemoryConfig,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    arecord_stream,
    record_stream,
)
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import ConfigurationError

ANSWER = "One two three four five six seven."
PLACE: Any = {"configurable": {"thread_id": "t"}}
PAGE = Path(__file__).parents[2] / "docs" / "streaming.md"


class BrokenError(Exception):
    """The provider hangs up."""


class Streaming(GenericFakeChatModel):
    """Streams word by word, as LangChain's own fake does; fails before a word if it is told to, so many times."""

    fails: int = 0
    shown: list[list[BaseMessage]] = Field(default_factory=list)

    def _stream(self, messages: list[BaseMessage], *given: Any, **named: Any) -> Iterator[ChatGenerationChunk]:
        self.shown.append(messages)
        for place, chunk in enumerate(super()._stream(messages, *given, **named)):
            if place == 4 and self.fails:
                self.fails -= 1
                raise BrokenError
            yield chunk

    def _generate(self, messages: list[BaseMessage], *given: Any, **named: Any) -> Any:
        self.shown.append(messages)
        return super()._generate(messages, *given, **named)


class Slow(Streaming):
    """Takes its time between two pieces."""

    async def _astream(
        self, messages: list[BaseMessage], *given: Any, **named: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in super()._stream(messages, *given, **named):
            yield chunk
            await asyncio.sleep(0.2)


def model(*answers: str, fails: int = 0) -> Streaming:
    return Streaming(messages=iter([AIMessage(each) for each in answers or [ANSWER] * 9]), fails=fails)


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=None, config=MemoryConfig(recall=None)
    ) as memory:
        yield memory


def agent(memory: SupabaseMemory, chat: Streaming, *beside: Any, keeps: bool = True, saver: Any = None) -> Any:
    keeping = SupabaseMemoryMiddleware(memory, partial_answers=keeps)
    return create_agent(chat, middleware=[keeping, *beside], checkpointer=saver)


def asked(text: str = "Count") -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def stored(memory: SupabaseMemory) -> list[tuple[str, str, bool]]:
    """Who said what, and whether it is marked as partial."""
    read = [each.message for each in memory.conversation("t").read()]
    marks = [each.response_metadata.get("supabase_memory") == {"partial": True} for each in read]
    return [(each.type, str(each.text), mark) for each, mark in zip(read, marks, strict=True)]


async def stopped(agent: Any, pieces: int, text: str = "Count") -> None:
    """Ask, and leave after so many pieces."""
    stream = agent.astream(asked(text), PLACE, stream_mode="messages")
    for _ in range(pieces):
        await anext(stream)
    await stream.aclose()


async def test_a_stream_that_is_left_keeps_what_came(memory: SupabaseMemory) -> None:
    await stopped(agent(memory, model()), 5)
    (question, (kind, text, mark)) = stored(memory)
    assert question == ("human", "Count", False)
    assert (kind, mark) == ("ai", True)
    assert text
    assert ANSWER.startswith(text)
    assert text != ANSWER


async def test_a_cancelled_task_keeps_what_came(memory: SupabaseMemory) -> None:
    begun = asyncio.Event()

    async def ask() -> None:
        async with aclosing(agent(memory, model()).astream(asked(), PLACE, stream_mode="messages")) as stream:
            async for _ in stream:
                begun.set()
                await asyncio.sleep(0)

    task = asyncio.create_task(ask())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [(kind, mark) for kind, _, mark in stored(memory)] == [("human", False), ("ai", True)]


async def test_a_response_whose_reader_leaves_keeps_what_came(memory: SupabaseMemory) -> None:
    """Starlette cancels it again and again; the run has a task of its own, as the page on streaming says."""
    keeping, begun = agent(memory, Slow(messages=iter([AIMessage(ANSWER)]))), asyncio.Event()

    async def pieces() -> AsyncIterator[str]:
        async for piece, _ in keeping.astream(asked(), PLACE, stream_mode="messages"):
            yield str(piece.text)

    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    written: dict[str, Any] = {"asyncio": asyncio, "pieces": lambda thread, text: pieces()}
    exec(next(each for each in blocks if "pieces_while_read" in each), written)

    async def receive() -> dict[str, Any]:
        await begun.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message.get("body"):
            begun.set()

    response = StreamingResponse(written["pieces_while_read"]("t", "Count"))
    await response({"type": "http", "asgi": {"spec_version": "2.3"}}, receive, send)
    for _ in range(500):
        if len(stored(memory)) == 2:
            break
        await asyncio.sleep(0.01)
    (_, (kind, text, mark)) = stored(memory)
    assert (kind, mark) == ("ai", True)
    assert ANSWER.startswith(text)
    assert text != ANSWER


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_a_model_that_fails_in_the_middle_leaves_what_came(memory: SupabaseMemory, color: str) -> None:
    failing = agent(memory, model(fails=1))
    with pytest.raises(BrokenError):
        if color == "sync":
            list(failing.stream(asked(), PLACE, stream_mode="messages"))
        else:
            _ = [each async for each in failing.astream(asked(), PLACE, stream_mode="messages")]
    assert stored(memory) == [("human", "Count", False), ("ai", "One two ", True)]


def test_a_sync_stream_that_is_closed_keeps_the_answer_with_the_next_turn(memory: SupabaseMemory) -> None:
    """LangGraph lets the model end, and calls no hook with its answer."""
    chat = model()
    keeping = agent(memory, chat, saver=InMemorySaver())
    stream = keeping.stream(asked(), PLACE, stream_mode="messages")
    next(stream)
    stream.close()
    assert stored(memory) == [("human", "Count", False)]
    keeping.invoke(asked("Go on"), PLACE)
    assert stored(memory) == [
        ("human", "Count", False), ("ai", ANSWER, True), ("human", "Go on", False), ("ai", ANSWER, False),
    ]  # fmt: skip
    assert f"{ANSWER} [stopped]" in [each.text for each in chat.shown[-1]]


def test_a_stopped_answer_is_no_other_users(conn_string: str, user_id: str) -> None:
    signed_in = [user_id]
    with SupabaseMemory.from_conn_string(conn_string, model=None, config=MemoryConfig(recall=None)) as everybody:
        keeping = agent(
            everybody.for_token(lambda: {"sub": signed_in[0], "role": "authenticated"}), model(ANSWER, "Hi")
        )
        stream = keeping.stream(asked(), PLACE, stream_mode="messages")
        next(stream)
        stream.close()
        signed_in[0] = f"{user_id}-ben"
        keeping.invoke(asked("Hello"), PLACE)
        theirs = everybody.for_user(signed_in[0]).conversation("t").read()
        assert [each.message.text for each in theirs if each.message] == ["Hello", "Hi"]


@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["without a checkpointer", "with one"])
async def test_the_next_prompt_says_that_the_answer_was_stopped(memory: SupabaseMemory, saver: Any) -> None:
    chat = model()
    keeping = agent(memory, chat, saver=saver)
    await stopped(keeping, 5)
    await keeping.ainvoke(asked("Go on"), PLACE)
    (text,) = [text for kind, text, mark in stored(memory) if mark]
    assert [each.text for each in chat.shown[-1]] == ["Count", f"{text.rstrip()} [stopped]", "Go on"]
    assert [kind for kind, _, _ in stored(memory)] == ["human", "ai", "human", "ai"]
    pack = memory.conversation("t").context()
    assert f"{text.rstrip()} [stopped]" in pack.text()


@pytest.mark.parametrize("outside", [True, False], ids=["outside of the memory", "inside"])
async def test_a_retry_leaves_the_whole_answer_alone(memory: SupabaseMemory, outside: bool) -> None:
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, retry_on=(BrokenError,))
    keeping: Any = SupabaseMemoryMiddleware(memory, partial_answers=True)
    trying: Any = create_agent(model(fails=1), middleware=[retry, keeping] if outside else [keeping, retry])
    _ = [each async for each in trying.astream(asked(), PLACE, stream_mode="messages")]
    assert stored(memory) == [("human", "Count", False), ("ai", ANSWER, False)]


def test_a_failed_run_that_is_resumed_replaces_what_came(memory: SupabaseMemory) -> None:
    keeping = agent(memory, model(fails=1), saver=InMemorySaver())
    with pytest.raises(BrokenError):
        list(keeping.stream(asked(), PLACE, stream_mode="messages"))
    assert [mark for _, _, mark in stored(memory)] == [False, True]
    list(keeping.stream(None, PLACE, stream_mode="messages"))
    assert stored(memory) == [("human", "Count", False), ("ai", ANSWER, False)]


class Guard(AgentMiddleware[Any, Any, Any]):
    """Asks a helper model before the agent's, which it marks as LangChain's `internal_call_metadata()` does."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        async for _ in model("This must not be answered.").astream(
            "Guard", {"metadata": {"lc_internal_call": "token"}}
        ):
            pass
        raise BrokenError


async def test_what_a_helper_of_other_middleware_says_is_no_answer(memory: SupabaseMemory) -> None:
    with pytest.raises(BrokenError):
        await agent(memory, model(), Guard()).ainvoke(asked(), PLACE)
    assert stored(memory) == [("human", "Count", False)]


async def test_a_whole_answer_of_the_same_id_replaces_a_partial_one(memory: SupabaseMemory) -> None:
    await stopped(agent(memory, model()), 5)
    *_, partial = [each.message for each in memory.conversation("t").read()]
    assert partial is not None
    memory.conversation("t").append([AIMessage(ANSWER, id=partial.id)])
    assert stored(memory)[-1] == ("ai", ANSWER, False)


async def test_what_ends_is_stored_once_and_unmarked(memory: SupabaseMemory) -> None:
    keeping = agent(memory, model(), saver=InMemorySaver())
    _ = [each async for each in keeping.astream(asked(), PLACE, stream_mode="messages")]
    list(keeping.stream(asked("Again"), PLACE, stream_mode="messages"))
    keeping.invoke(asked("Once more"), PLACE)
    assert [(kind, mark) for kind, _, mark in stored(memory)] == [("human", False), ("ai", False)] * 3


async def test_nothing_is_kept_unless_it_is_asked_for(memory: SupabaseMemory) -> None:
    await stopped(agent(memory, model(), keeps=False), 5)
    with pytest.raises(BrokenError):
        list(agent(memory, model(fails=1), keeps=False).stream(asked(), PLACE, stream_mode="messages"))
    assert not any(mark for _, _, mark in stored(memory))
    with pytest.raises(ConfigurationError, match="partial_answers"):
        SupabaseMemoryMiddleware(memory, partial_answers="yes")  # type: ignore[arg-type]


async def test_nothing_is_kept_of_an_answer_without_a_word(memory: SupabaseMemory) -> None:
    failing = agent(memory, model("   a", fails=1))
    with pytest.raises((BrokenError, StopIteration, RuntimeError)):
        failing.invoke(asked(), PLACE)  # nobody streams: nothing was shown to anybody
        failing.invoke(asked(), PLACE)
    assert not any(mark for _, _, mark in stored(memory))


async def test_a_failing_memory_does_not_hide_why_the_answer_ended(
    memory: SupabaseMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = agent(memory, model(fails=1))
    perform = memory._services.transport.perform

    def away(call: Call) -> Any:
        if "partial" in str(call.arguments):
            raise ConnectionError
        return perform(call)

    monkeypatch.setattr(memory._services.transport, "perform", away)
    with pytest.raises(BrokenError):
        list(failing.stream(asked(), PLACE, stream_mode="messages"))
    monkeypatch.undo()
    assert "One two [stopped]" in memory.conversation("t").context().text(), "what waits is shown, too"
    assert memory.flush() == 0, "it waited, and nothing waits on"
    assert stored(memory)[-1] == ("ai", "One two ", True)


async def test_a_recorded_stream_keeps_what_came(memory: SupabaseMemory) -> None:
    def deltas() -> Iterator[AIMessageChunk]:
        for word in ANSWER.split():
            yield AIMessageChunk(content=f"{word} ", id="a")

    async def adeltas() -> AsyncIterator[AIMessageChunk]:
        for each in deltas():
            yield each

    stream = record_stream(memory, "Count", deltas(), thread_id="t", partial_answers=True)
    next(stream)
    next(stream)
    stream.close()
    assert stored(memory) == [("human", "Count", False), ("ai", "One two ", True)]
    other = arecord_stream(memory, "Again", adeltas(), thread_id="t", partial_answers=True)
    await anext(other)
    await other.aclose()
    assert len(stored(memory)) == 4, "the same id behind another question is another answer"
    memory.conversation("t").forget()
    other = arecord_stream(memory, "Count", adeltas(), thread_id="t", partial_answers=True)
    await anext(other)
    await other.aclose()
    assert stored(memory) == [("human", "Count", False), ("ai", "One ", True)]
    list(record_stream(memory, "Count", deltas(), thread_id="t"))
