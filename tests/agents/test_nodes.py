"""The nodes in real graphs, sync and async."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from langchain_supabase_memory import (
    ContextBudget,
    LoadContextNode,
    SaveTurnNode,
    SupabaseMemory,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.agents.nodes import REMOVE_ALL
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError, UnavailableError
from tests.chat_models import config, question

BUDGET = ContextBudget(characters=2500)


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, budget=BUDGET, model=lambda _: "They counted."
    ) as memory:
        yield memory


class Bounded(MessagesState):
    """What langmem's own example has."""

    summarized_messages: list[AnyMessage]


class Loaded(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    context_messages: list[AnyMessage]


def answering(key: str, shown: list[list[BaseMessage]]) -> Any:
    def model(state: Any) -> Any:
        shown.append(state[key])
        return {"messages": [AIMessage(f"answer {len(shown)} " + "word " * 30)]}

    return model


def graph(memory: SupabaseMemory, output: str, shown: list[list[BaseMessage]], *, saves: bool) -> Any:
    builder = StateGraph(Bounded)
    builder.add_node("summarize", SupabaseSummarizationNode(memory, output_messages_key=output))
    builder.add_node("model", answering(output, shown))
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "model")
    if saves:
        builder.add_node("save", SaveTurnNode(memory))
        builder.add_edge("model", "save")
        builder.add_edge("save", END)
    return builder.compile(checkpointer=InMemorySaver())


async def run(graph: Any, color: str, text: str) -> Any:
    given = {"messages": [HumanMessage(text)]}
    return graph.invoke(given, config()) if color == "sync" else await graph.ainvoke(given, config())


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("output", ["summarized_messages", "messages"])
@pytest.mark.parametrize("saves", [True, False])
async def test_a_long_conversation_stays_bounded(memory: SupabaseMemory, color: str, output: str, saves: bool) -> None:
    shown: list[list[BaseMessage]] = []
    compiled = graph(memory, output, shown, saves=saves)
    for number in range(25):
        await run(compiled, color, f"question {number} " + "word " * 20)
    for number, messages in enumerate(shown):
        assert question(messages).startswith(f"question {number} ")
        assert sum(len(str(message.content)) for message in messages) <= 2500
    assert "They counted." in str(shown[-1][0].content)
    stored = [str(each.message.text).split(" word")[0] for each in memory.conversation("t").read()]
    expected = [text for n in range(25) for text in (f"question {n}", f"answer {n + 1}")]
    assert stored == (expected if saves else expected[:-1])
    assert memory.conversation("t").coverage().complete
    state = compiled.get_state(config()).values["messages"]
    assert len(state) == 50 if output == "summarized_messages" else len(state) < 20


def test_the_developers_system_message_stays_in_front_and_is_not_stored(memory: SupabaseMemory) -> None:
    node = SupabaseSummarizationNode(memory)
    given = {"messages": [SystemMessage("Be kind."), HumanMessage("hello")]}
    update = node.invoke(given, config())
    assert [message.text for message in update["summarized_messages"]] == ["Be kind.", "hello"]
    assert memory.conversation("t").count() == 1


def test_replacing_begins_with_the_removal_of_all(memory: SupabaseMemory) -> None:
    node = SupabaseSummarizationNode(memory, output_messages_key="messages")
    update = node.invoke({"messages": [HumanMessage("hello")]}, config())
    assert update["messages"][0].id == REMOVE_ALL
    from langgraph.graph.message import REMOVE_ALL_MESSAGES

    assert REMOVE_ALL == REMOVE_ALL_MESSAGES


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_a_graph_of_small_nodes(memory: SupabaseMemory, color: str) -> None:
    shown: list[list[BaseMessage]] = []
    builder = StateGraph(Loaded)
    builder.add_node("load", LoadContextNode(memory))
    builder.add_node("model", answering("context_messages", shown))
    builder.add_node("save", SaveTurnNode(memory))
    for first, then in ((START, "load"), ("load", "model"), ("model", "save"), ("save", END)):
        builder.add_edge(first, then)
    compiled: Any = builder.compile()  # no checkpointer: the memory is the history
    for text in ("I am Maya", "Who am I?"):
        await run(compiled, color, text)
    assert [message.text.split(" word")[0] for message in shown[1]] == ["I am Maya", "answer 1", "Who am I?"]
    assert memory.conversation("t").count() == 4


def test_a_node_run_twice_stores_once(memory: SupabaseMemory) -> None:
    node = SaveTurnNode(memory)
    state = {"messages": [HumanMessage("a"), AIMessage("b")]}
    for _ in range(3):
        assert node.invoke(state, config()) == {}
    assert memory.conversation("t").count() == 2


def test_state_may_be_an_object_and_messages_may_be_plain(memory: SupabaseMemory) -> None:
    @dataclass
    class State:
        messages: Any

    SaveTurnNode(memory).invoke(State([{"role": "user", "content": "hello"}, ("ai", "hi")]), config())
    assert [each.message.text for each in memory.conversation("t").read()] == ["hello", "hi"]


def test_bad_input_says_what_to_do(memory: SupabaseMemory) -> None:
    with pytest.raises(InvalidInputError, match="thread_id"):
        SaveTurnNode(memory).invoke({"messages": []}, {})
    with pytest.raises(InvalidInputError, match="cannot be stored as a message|must be LangChain messages"):
        SaveTurnNode(memory).invoke({"messages": [object()]}, config())
    with pytest.raises(ConfigurationError, match="on_error"):
        SaveTurnNode(memory, on_error="whatever")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="model must be"):
        SupabaseSummarizationNode(memory, model=3)  # type: ignore[arg-type]


def test_the_state_goes_on_where_the_memory_is_away() -> None:
    errors: list[Exception] = []
    with SupabaseMemory.from_conn_string("postgresql://127.0.0.1:1/none?connect_timeout=1", user_id="u") as away:
        node = SupabaseSummarizationNode(away, on_error=errors.append, deadline_seconds=2)
        update = node.invoke({"messages": [HumanMessage("hello")]}, config())
    assert [message.text for message in update["summarized_messages"]] == ["hello"]
    assert errors
    assert isinstance(errors[0], UnavailableError)
    assert len(away._services.outbox) == 1
