"""A graph's streams deliver the model's answer, and nothing from the memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph

from langchain_supabase_memory import (
    ContextBudget,
    LoadContextNode,
    MemoryConfig,
    SaveTurnNode,
    SummaryPolicy,
    SupabaseMemory,
    SupabaseSummarizationNode,
    arecord_stream,
    record_stream,
)
from langchain_supabase_memory.errors import ConfigurationError
from tests.chat_models import ScriptedModel, says

OURS = "harbour summary"
COLORS = pytest.mark.parametrize("color", ["sync", "async"])


class State(MessagesState):
    summarized_messages: list[AnyMessage]


def config(thread_id: str = "t", **more: Any) -> Any:
    return {"configurable": {"thread_id": thread_id}, **more}


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, budget=ContextBudget(characters=600), model=lambda _: OURS
    ) as memory:
        yield memory


def talk(memory: SupabaseMemory, turns: int = 6) -> None:
    for turn in range(turns):
        memory.conversation("t").add_turn(f"Stored question {turn}: " + "colors and " * 12, f"Stored answer {turn}")


@contextmanager
def summarizing(conn_string: str, user_id: str, model: Any) -> Iterator[SupabaseMemory]:
    """A memory with turns enough that the next one has them summarized by the model."""
    policy = SummaryPolicy(messages=4, keep_messages=2, min_quality=None)
    with SupabaseMemory.from_conn_string(
        conn_string,
        user_id=user_id,
        budget=ContextBudget(characters=600),
        config=MemoryConfig(policy=policy),
        model=model,
    ) as memory:
        talk(memory)
        yield memory


def answering(key: str) -> Any:
    """A node whose answer is streamed word by word."""

    def answer(state: Any) -> Any:
        assert state[key] != state["messages"][-1:], "the model is shown the pack"
        return {"messages": [GenericFakeChatModel(messages=iter([AIMessage("The answer")])).invoke(state[key])]}

    return answer


def graph(memory: SupabaseMemory, kind: Any, key: str) -> Any:
    builder = StateGraph(State)
    builder.add_node("load", kind(memory, output_messages_key=key))
    builder.add_node("answer", answering(key))
    builder.add_node("save", SaveTurnNode(memory))
    builder.add_edge(START, "load")
    builder.add_edge("load", "answer")
    builder.add_edge("answer", "save")
    return builder.compile()


def wrapped(inner: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("agent", inner)
    builder.add_edge(START, "agent")
    return builder.compile()


async def parts(graph: Any, color: str, given: Any = None, **options: Any) -> list[Any]:
    """The parts of a stream."""
    given = given or {"messages": [SystemMessage("Be kind."), HumanMessage("What next?")]}
    options = {"config": config(), "stream_mode": "messages", **options}
    if color == "sync":
        return list(graph.stream(given, **options))
    return [part async for part in graph.astream(given, **options)]


def shown(streamed: list[Any]) -> str:
    """What the user of a stream sees: the texts of its messages."""
    assert all(isinstance(message, BaseMessage) for message, _ in streamed)
    return "".join(str(message.text) for message, _ in streamed)


@COLORS
@pytest.mark.parametrize("kind", [LoadContextNode, SupabaseSummarizationNode])
@pytest.mark.parametrize("subgraphs", [False, True])
@pytest.mark.parametrize("nested", [False, True])
async def test_a_prompt_is_in_no_stream(
    memory: SupabaseMemory, color: str, kind: Any, subgraphs: bool, nested: bool
) -> None:
    talk(memory)
    made = graph(memory, kind, "summarized_messages")
    streamed = await parts(wrapped(made) if nested else made, color, subgraphs=subgraphs)
    messages = [part[1] if subgraphs else part for part in streamed]
    assert shown(messages) == "The answer"


@COLORS
async def test_a_subgraph_that_the_parent_streams_gives_its_answer_alone(memory: SupabaseMemory, color: str) -> None:
    talk(memory)
    streamed = await parts(wrapped(graph(memory, SupabaseSummarizationNode, "messages")), color, subgraphs=True)
    assert shown([part for _, part in streamed]) == "The answer"


@COLORS
async def test_messages_that_replace_the_state_are_not_streamed(memory: SupabaseMemory, color: str) -> None:
    talk(memory)
    made = graph(memory, SupabaseSummarizationNode, "messages")
    assert shown(await parts(made, color)) == "The answer"


@COLORS
async def test_modes_beside_it_say_what_they_say(memory: SupabaseMemory, color: str) -> None:
    talk(memory)
    made = graph(memory, SupabaseSummarizationNode, "summarized_messages")
    streamed = await parts(made, color, stream_mode=["messages", "updates", "custom"])
    assert shown([part for mode, part in streamed if mode == "messages"]) == "The answer"
    updates = [part for mode, part in streamed if mode == "updates"]
    assert len(updates[0]["load"]["summarized_messages"]) > 1
    assert any(mode == "custom" for mode, _ in streamed)


@COLORS
async def test_a_node_that_is_called_by_hand_is_not_streamed(memory: SupabaseMemory, color: str) -> None:
    talk(memory)
    node = LoadContextNode(memory)

    @task
    def load(messages: list[BaseMessage]) -> list[BaseMessage]:
        loaded: list[BaseMessage] = node.invoke({"messages": messages})["context_messages"]
        return loaded

    @task
    async def aload(messages: list[BaseMessage]) -> list[BaseMessage]:
        loaded: list[BaseMessage] = (await node.ainvoke({"messages": messages}))["context_messages"]
        return loaded

    @entrypoint()
    def run(messages: list[BaseMessage]) -> AIMessage:
        assert len(load(messages).result()) > 1
        return AIMessage("The answer")

    @entrypoint()
    async def arun(messages: list[BaseMessage]) -> AIMessage:
        assert len(await aload(messages)) > 1
        return AIMessage("The answer")

    given = [HumanMessage("What next?")]
    assert shown(await parts(run if color == "sync" else arun, color, given)) in ("The answer", "What next?The answer")


def _graph_as_model() -> Any:
    """A graph that writes summaries, which streams of its own."""

    def write(state: Any) -> Any:
        return {"messages": [says(OURS).invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("write", write)
    builder.add_edge(START, "write")
    made: Any = builder.compile()

    def summarize(prompt: list[BaseMessage]) -> str:
        return str(made.invoke({"messages": prompt})["messages"][-1].text)

    return summarize


WRITERS: dict[str, Callable[[], Any]] = {
    "chat model": lambda: says(OURS),
    "one that streams": lambda: GenericFakeChatModel(messages=iter([AIMessage(OURS)] * 9)),
    "function": lambda: lambda prompt: says(OURS).invoke(prompt),
    "function with tags": lambda: lambda prompt: says(OURS).invoke(prompt, {"tags": ["mine"]}),
    "chain": lambda: RunnableLambda(lambda prompt: prompt) | says(OURS),
    "graph": _graph_as_model,
}


@COLORS
@pytest.mark.parametrize("writer", WRITERS)
async def test_a_summary_that_is_written_within_a_run_is_in_no_stream(
    conn_string: str, user_id: str, color: str, writer: str
) -> None:
    with summarizing(conn_string, user_id, WRITERS[writer]()) as memory:
        made = graph(memory, SupabaseSummarizationNode, "summarized_messages")
        streamed = await parts(made, color, subgraphs=True, stream_mode=["messages", "updates", "custom"])
        assert memory.conversation("t").summaries.list()[-1].content == OURS
    assert shown([part for _, mode, part in streamed if mode == "messages"]) == "The answer"
    assert {name for _, mode, part in streamed if mode == "updates" for name in part} == {"load", "answer", "save"}


@pytest.mark.parametrize("writer", WRITERS)
async def test_events_have_no_tokens_of_a_summary(conn_string: str, user_id: str, writer: str) -> None:
    with summarizing(conn_string, user_id, WRITERS[writer]()) as memory:
        made = graph(memory, SupabaseSummarizationNode, "summarized_messages")
        given = {"messages": [HumanMessage("What next?")]}
        events = [each async for each in made.astream_events(given, config(), version="v2")]
        assert memory.conversation("t").summaries.list()[-1].content == OURS
    tokens = [str(each["data"]["chunk"].text) for each in events if each["event"] == "on_chat_model_stream"]
    assert "".join(tokens) == "The answer"
    assert len([each for each in events if each["event"] == "on_chat_model_end"]) == 1


class Tokens(BaseCallbackHandler):
    """What an application streams by, that does it by a handler of its own; and counts by."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.starts = 0

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        self.starts += 1

    def on_llm_new_token(self, token: Any, **_: Any) -> None:
        self.tokens.append(str(token))


class Streaming(ScriptedModel):
    """A model that streams to every handler, as one with `streaming=True`."""

    streaming: bool = False


@COLORS
async def test_a_handler_of_the_application_counts_calls_and_gets_no_tokens(
    conn_string: str, user_id: str, color: str
) -> None:
    writer = Streaming(script=lambda _: OURS, streaming=True)
    with summarizing(conn_string, user_id, writer) as memory:
        made = graph(memory, SupabaseSummarizationNode, "summarized_messages")
        handler = Tokens()
        given, settings = {"messages": [HumanMessage("What next?")]}, config(callbacks=[handler])
        if color == "sync":
            made.invoke(given, settings)
        else:
            await made.ainvoke(given, settings)
        assert memory.conversation("t").summaries.list()[-1].content == OURS
    assert "harbour" not in "".join(handler.tokens)
    assert handler.starts >= 2  # what it costs is counted


@COLORS
async def test_models_of_recall_are_in_no_stream(conn_string: str, user_id: str, color: str) -> None:
    asked: list[str] = []

    def rerank(query: str, documents: Sequence[Document]) -> Sequence[Document]:
        asked.append("rerank")
        says(OURS).invoke(query)
        return documents

    with SupabaseMemory.from_conn_string(
        conn_string,
        user_id=user_id,
        budget=ContextBudget(characters=600),
        model=None,
        config=MemoryConfig(expander=says(OURS), reranker=rerank),
    ) as memory:
        talk(memory, 12)
        memory.conversation("t").index()
        made = graph(memory, SupabaseSummarizationNode, "summarized_messages")
        given = {"messages": [HumanMessage("Which colors were in stored question 2?")]}
        streamed = await parts(made, color, given)
    assert asked
    assert shown(streamed) == "The answer"


@pytest.mark.parametrize(
    ("query", "deltas", "words"),
    [
        (5, ["a"], "query must be a text or a HumanMessage, not a number"),
        ("Hello", 5, "deltas must be an"),
        ("Hello", [("a", {})], "A piece of deltas must be a text or an AIMessageChunk, not a tuple"),
    ],
)
async def test_what_is_no_stream_of_an_answer_is_refused(
    conn_string: str, user_id: str, query: Any, deltas: Any, words: str
) -> None:
    async def adeltas() -> AsyncIterator[Any]:
        for each in deltas:
            yield each

    async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        with pytest.raises(ConfigurationError, match=words):
            list(record_stream(memory, query, deltas, thread_id="t"))
        with pytest.raises(ConfigurationError, match=words):
            async for _ in arecord_stream(
                memory, query, adeltas() if isinstance(deltas, list) else deltas, thread_id="t"
            ):
                pass
        assert all(each.role == "user" for each in memory.conversation("t").read(columns=["role"]))


async def test_the_answer_of_a_model_that_does_not_stream_is_a_piece(memory: SupabaseMemory) -> None:
    pieces: list[Any] = [AIMessageChunk(content="The kiln "), AIMessage("is hot.", name="oven")]
    for number, each in enumerate((pieces, pieces[1:])):
        list(record_stream(memory, "Hello", each, thread_id=f"t{number}"))
    read = [memory.conversation(f"t{number}").read()[-1].message for number in range(2)]
    assert [(type(each), each and each.text) for each in read] == [
        (AIMessage, "The kiln is hot."),
        (AIMessage, "is hot."),
    ]
