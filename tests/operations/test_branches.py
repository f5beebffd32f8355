"""The graph's branch decides: after any change of a graph's state, the store, pack and coverage agree with it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
)
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import Command, RetryPolicy

from langchain_supabase_memory import (
    ContextBudget,
    ExtractiveSummarizer,
    LoadContextNode,
    Retention,
    SaveTurnNode,
    SummaryPolicy,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.agents.run import task_ids
from langchain_supabase_memory.context.load import VIA
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import content, fence
from langchain_supabase_memory.language.messages.codec import to_row
from tests.agents.test_middleware import Broken
from tests.chat_models import ScriptedModel, asks, calls, config, look_up, question, says
from tests.conftest import Caller
from tests.recount import assert_counted
from tests.services.data_api import token

WAYS = ["middleware-sync", "middleware-async", "nodes-sync", "nodes-async", "load-sync", "load-async"]


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [str(fence.without_prefix(message).text).strip() for message in messages]


class Bounded(MessagesState):
    summarized_messages: list[AnyMessage]
    context_messages: list[AnyMessage]


@dataclass
class Subject:
    """A graph with a memory, one way of several: `middleware`, `nodes`, `load` or `functional`, and a color.

    Attributes:
        reader: A sync saver of the same database, where `saver` is an async one.
    """

    memory: SupabaseMemory
    way: str
    chat: ScriptedModel = field(default_factory=lambda: ScriptedModel(script=lambda given: f"re {question(given)}"))
    saver: Any = field(default_factory=InMemorySaver)
    others: tuple[Sequence[Any], Sequence[Any]] = ((), ())
    on_trim: Any = "keep"
    reader: Any = None

    def __post_init__(self) -> None:
        makers = {"middleware": self._agent, "nodes": self._nodes, "load": self._nodes, "functional": self._functional}
        self.graph: Any = makers[self.way.partition("-")[0]]()
        self.read = self.graph if self.reader is None else self.graph.copy({"checkpointer": self.reader})

    def _agent(self) -> Any:
        ours = SupabaseMemoryMiddleware(self.memory, on_trim=self.on_trim)
        middleware = [*self.others[0], ours, *self.others[1]]
        return create_agent(self.chat, [look_up], middleware=middleware, checkpointer=self.saver)

    def _nodes(self) -> Any:
        node, key = (
            (LoadContextNode, "context_messages")
            if self.way.startswith("load")
            else (SupabaseSummarizationNode, "summarized_messages")
        )

        def model(state: Any) -> Any:
            return {"messages": [self.chat.invoke(state[key])]}

        builder = StateGraph(Bounded)
        builder.add_node("load", node(self.memory, on_trim=self.on_trim))
        builder.add_node("model", model)
        builder.add_node("save", SaveTurnNode(self.memory, on_trim=self.on_trim))
        for first, then in ((START, "load"), ("load", "model"), ("model", "save"), ("save", END)):
            builder.add_edge(first, then)
        return builder.compile(checkpointer=self.saver)

    def _functional(self) -> Any:
        load, save = (each(self.memory, on_trim=self.on_trim) for each in (LoadContextNode, SaveTurnNode))

        @entrypoint(checkpointer=self.saver)
        def flow(given: Any, *, previous: Any = None) -> Any:
            state: Any = add_messages((previous or {}).get("messages", []), given["messages"])
            answer = self.chat.invoke(load.invoke({"messages": state})["context_messages"])
            save.invoke({"messages": [*state, answer]})
            return {"messages": [*state, answer]}

        @entrypoint(checkpointer=self.saver)
        async def aflow(given: Any, *, previous: Any = None) -> Any:
            state: Any = add_messages((previous or {}).get("messages", []), given["messages"])
            answer = await self.chat.ainvoke((await load.ainvoke({"messages": state}))["context_messages"])
            await save.ainvoke({"messages": [*state, answer]})
            return {"messages": [*state, answer]}

        return flow if self.way.endswith("-sync") else aflow

    async def __call__(self, given: Any, settings: Any = None) -> Any:
        if isinstance(given, str):
            given = asks(given)
        if self.way.endswith("-sync"):
            return self.graph.invoke(given, settings or config())
        return await self.graph.ainvoke(given, settings or config())

    async def talks(self, *questions: str) -> None:
        for each in questions:
            await self(each)

    @property
    def state(self) -> list[BaseMessage]:
        return list(self.read.get_state(config()).values["messages"])

    def checkpoint(self, messages: int) -> Any:
        """The newest checkpoint that has so many messages and waits for the user; of none, the first of all."""
        history = list(self.read.get_state_history(config()))
        if messages == 0:
            return history[-1].config
        return next(
            each.config for each in history if not each.next and len(each.values.get("messages", [])) == messages
        )

    def update(self, *messages: BaseMessage) -> None:
        self.read.update_state(config(), {"messages": list(messages)})

    def agrees(self, before: Sequence[str] = (), sequences: int | None = None) -> None:
        """The store, the pack and the coverage have what the state has, behind what was there before it."""
        state = content.conversation_messages(self.state)
        stored = self.memory.conversation("t").read()
        assert texts([each.message for each in stored if each.message]) == [*before, *texts(state)]
        assert [each.message for each in stored][len(before) :] == state
        pack = self.memory.conversation("t").context()
        assert texts(content.conversation_messages(pack.messages)) == [*before, *texts(state)]
        assert pack.omitted == []
        if isinstance(state[-1], AIMessage) and not state[-1].tool_calls:
            assert texts(content.conversation_messages(self.chat.shown[-1])) == [*before, *texts(state[:-1])]
        coverage = self.memory.conversation("t").coverage()
        assert coverage.complete
        shown = [
            number
            for each in coverage.ranges
            for number in range(each.from_sequence, each.to_sequence + 1)
            if each.state == "verbatim"
        ]
        assert shown == [each.sequence for each in stored]
        assert {each.state for each in coverage.ranges} <= {"verbatim", "superseded", "forgotten"}
        if sequences is not None:
            assert coverage.ranges[-1].to_sequence + 1 == sequences


SUMS = """
select c.message_count = count(m.sequence) and c.total_characters = coalesce(sum(m.characters), 0)
   and c.total_tokens = coalesce(sum(m.tokens), 0)
from memory.conversations c left join memory.conversation_messages m on m.user_id = c.user_id and m.conversation_id = c.id
where c.user_id = %s group by c.user_id, c.id
"""


@pytest.fixture
def sums(conn_string: str, user_id: str) -> Callable[[], None]:
    def check() -> None:
        with psycopg.connect(conn_string) as connection:
            assert all(row[0] for row in connection.execute(SUMS, [user_id]).fetchall())
            assert_counted(connection, user_id)

    return check


# --- Forks and time travel


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kept", [0, 2, 4])
async def test_a_fork_takes_the_other_branch_out(memory: SupabaseMemory, sums: Any, way: str, kept: int) -> None:
    subject = Subject(memory, way)
    await subject.talks("one", "two", "three")
    first = subject.state
    await subject("other", subject.checkpoint(kept))
    assert texts(subject.state) == [*texts(first[:kept]), "other", "re other"]
    subject.agrees(sequences=8)
    assert "re three" not in str(subject.chat.shown[-1])
    await subject("on")
    subject.agrees(sequences=10)
    sums()


@pytest.mark.parametrize("way", WAYS)
async def test_a_branch_comes_back_with_its_state(memory: SupabaseMemory, sums: Any, way: str) -> None:
    subject = Subject(memory, way)
    await subject.talks("one", "two")
    there = subject.graph.get_state(config()).config
    await subject("other", subject.checkpoint(2))
    away = subject.graph.get_state(config()).config
    subject.agrees(sequences=6)
    await subject("three", there)
    assert texts(subject.state)[-3:] == ["re two", "three", "re three"]
    subject.agrees(sequences=8)
    await subject("again other", away)
    assert texts(subject.state) == ["one", "re one", "other", "re other", "again other", "re again other"]
    subject.agrees(sequences=10)
    sums()


@pytest.mark.parametrize("way", WAYS)
async def test_the_first_message_is_edited_where_it_was_sent(memory: SupabaseMemory, way: str) -> None:
    subject = Subject(memory, way)
    await subject.talks("one", "two")
    edited = subject.graph.update_state(subject.checkpoint(0), asks("edited"), as_node="__start__")
    await subject(None, edited)
    assert texts(subject.state) == ["edited", "re edited"]
    subject.agrees(sequences=6)


@pytest.mark.parametrize("way", WAYS)
async def test_what_waited_for_another_branch_is_on_none(memory: SupabaseMemory, sums: Any, way: str) -> None:
    subject = Subject(memory, way)
    await subject("one")
    inner: Any = memory._services.transport
    memory._services.transport = Broken(inner)  # type: ignore[assignment]
    await subject("two")
    assert len(memory._services.outbox) == 2
    memory._services.transport = inner
    await subject("other", subject.checkpoint(2))
    assert len(memory._services.outbox) == 0
    subject.agrees(sequences=6)
    sums()


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_is_made_anew(memory: SupabaseMemory, way: str) -> None:
    """The run goes on from a checkpoint in the middle of a turn."""
    subject = Subject(memory, way, chat=says("first", "second", "third"))
    await subject("one")
    node = "model"
    before = next(each.config for each in subject.graph.get_state_history(config()) if node in each.next)
    await subject(None, before)
    assert texts(subject.state) == ["one", "second"]
    subject.agrees(sequences=3)


async def test_a_signed_in_user_forks_what_is_theirs_by_every_door(caller: Caller, user_id: str) -> None:
    theirs = caller.as_token(token("authenticated", sub=user_id))
    subject = Subject(theirs, f"middleware-{caller.color}")
    await subject.talks("one", "two")
    there = subject.graph.get_state(config()).config
    await subject("other", subject.checkpoint(0))
    await subject("three", there)
    read = await caller(theirs.conversation("t").read)
    assert [each.message for each in read] == subject.state
    states = [each.state for each in (await caller(theirs.conversation("t").coverage)).ranges]
    assert states == ["verbatim", "superseded", "verbatim"]


# --- Messages removed


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("places", [[0], [0, 1], [2], [1, 2], [5], [4, 5]], ids=str)
async def test_what_is_removed_is_removed(memory: SupabaseMemory, sums: Any, way: str, places: list[int]) -> None:
    subject = Subject(memory, way, on_trim="supersede")
    await subject.talks("one", "two", "three")
    gone = [subject.state[place] for place in places]
    subject.update(*[RemoveMessage(id=str(message.id)) for message in gone])
    await subject("four")
    assert len(subject.state) == 8 - len(places)
    subject.agrees(sequences=8)
    assert not set(texts(gone)) & set(texts(subject.chat.shown[-1]))
    sums()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("on_trim", ["keep", "supersede"])
async def test_all_are_removed(memory: SupabaseMemory, way: str, on_trim: str) -> None:
    subject = Subject(memory, way, on_trim=on_trim)
    await subject.talks("one", "two")
    subject.update(RemoveMessage(id=REMOVE_ALL_MESSAGES))
    await subject("three")
    subject.agrees([] if on_trim == "supersede" else ["one", "re one", "two", "re two"], sequences=6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("places", [[1], [1, 2], [3], [5], [4, 5]], ids=str)
async def test_what_is_removed_behind_the_first_is_removed_by_default(
    memory: SupabaseMemory, sums: Any, way: str, places: list[int]
) -> None:
    subject = Subject(memory, way)
    await subject.talks("one", "two", "three")
    subject.update(*[RemoveMessage(id=str(subject.state[place].id)) for place in places])
    await subject("four")
    subject.agrees(sequences=8)
    sums()


@pytest.mark.parametrize("way", WAYS)
async def test_what_is_edited_beside_a_removal_is_stored(memory: SupabaseMemory, sums: Any, way: str) -> None:
    subject = Subject(memory, way)
    await subject.talks("one", "two", "three")
    _, _, removed, _, edited, _ = subject.state
    subject.update(RemoveMessage(id=str(removed.id)), edited.model_copy(update={"content": "edited"}))
    await subject("four")
    assert texts(subject.state) == ["one", "re one", "re two", "edited", "re three", "four", "re four"]
    subject.agrees(sequences=8)
    sums()


@pytest.mark.parametrize("way", WAYS)
async def test_what_the_application_trims_stays(memory: SupabaseMemory, way: str) -> None:
    subject = Subject(memory, way)
    await subject.talks("one", "two", "three")
    subject.update(*[RemoveMessage(id=str(message.id)) for message in subject.state[:2]])
    await subject("four")
    subject.agrees(["one", "re one"], sequences=8)
    before = subject.checkpoint(4)
    await subject("other", before)  # what comes later is superseded all the same
    subject.agrees(["one", "re one"], sequences=10)


@pytest.mark.parametrize("way", ["middleware-sync", "middleware-async"])
async def test_what_a_summary_stands_for_stays(memory: SupabaseMemory, way: str) -> None:
    stock = SummarizationMiddleware(says("They counted."), trigger=("messages", 6), keep=("messages", 2))
    subject = Subject(memory, way, others=((stock,), ()))
    asked = [f"q{number}" for number in range(6)]
    await subject.talks(*asked)
    assert "They counted." in subject.state[0].text
    assert texts([each.message for each in memory.conversation("t").read()]) == [
        text for each in asked for text in (each, f"re {each}")
    ]
    assert {each.state for each in memory.conversation("t").coverage().ranges} == {"verbatim"}
    subject.update(RemoveMessage(id=str(subject.state[-1].id)))
    await subject("last")
    assert texts(subject.state)[-3:] == ["q5", "last", "re last"]
    assert memory.conversation("t").coverage().range_of(11).state == "superseded"


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_what_our_node_trims_stays(memory: SupabaseMemory, color: str) -> None:
    def model(state: Any) -> Any:
        return {"messages": [AIMessage(f"re {state['messages'][-1].text}")]}

    budget = ContextBudget(characters=1500)
    builder = StateGraph(MessagesState)
    builder.add_node("load", SupabaseSummarizationNode(memory, output_messages_key="messages", budget=budget))
    builder.add_node("model", model)
    builder.add_node("save", SaveTurnNode(memory))
    for first, then in ((START, "load"), ("load", "model"), ("model", "save"), ("save", END)):
        builder.add_edge(first, then)
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    for number in range(12):
        given = asks(f"q{number} " + "word " * 30)
        graph.invoke(given, config()) if color == "sync" else await graph.ainvoke(given, config())
    assert len(graph.get_state(config()).values["messages"]) < 20
    assert memory.conversation("t").count() == 24
    assert not [each for each in memory.conversation("t").coverage().ranges if each.state == "superseded"]


# --- Edits


@pytest.mark.parametrize("way", ["middleware-sync", "middleware-async"])
@pytest.mark.parametrize("place", range(4))
async def test_an_edit_reaches_the_store(memory: SupabaseMemory, sums: Any, way: str, place: int) -> None:
    subject = Subject(memory, way, chat=says(calls("look_up", word="kiln"), "An oven.", "Indeed."))
    await subject("What is a kiln?")
    said = subject.state[place]
    subject.update(said.model_copy(update={"content": "said otherwise"}))
    await subject("Really?")
    assert subject.state[place].text == "said otherwise"
    subject.agrees(sequences=6)
    sums()


@pytest.mark.parametrize("way", ["nodes-sync", "nodes-async"])
@pytest.mark.parametrize("place", range(4))
async def test_an_edit_reaches_the_store_through_nodes(memory: SupabaseMemory, way: str, place: int) -> None:
    subject = Subject(memory, way)
    await subject.talks("one", "two")
    subject.update(subject.state[place].model_copy(update={"content": "said otherwise"}))
    await subject("three")
    assert subject.state[place].text == "said otherwise"
    subject.agrees(sequences=6)


@pytest.mark.parametrize("way", ["middleware-sync", "middleware-async"])
@pytest.mark.parametrize("order", ["before", "after"])
async def test_what_is_redacted_in_the_state_is_redacted_here(memory: SupabaseMemory, way: str, order: str) -> None:
    redacts = PIIMiddleware(
        "email", strategy="redact", apply_to_input=True, apply_to_output=True, apply_to_tool_results=True
    )
    others = ((redacts,), ()) if order == "before" else ((), (redacts,))
    chat = says(calls("look_up", word="ana@example.com"), "Write to ana@example.com.", "Thanks, bob@example.com")
    subject = Subject(memory, way, chat=chat, others=others)
    await subject("I am eve@example.com")
    stored = memory.conversation("t").read()
    assert [each.message for each in stored] == subject.state
    assert "eve@" not in str(stored)
    assert "Write to ana@" not in str(stored)
    assert "meaning of ana@" not in str(stored)
    await subject("Bye from eve@example.com")
    stored = memory.conversation("t").read()
    assert [each.message for each in stored] == subject.state
    assert [each.sequence for each in stored] == list(range(6))
    assert "eve@" not in str(stored)


class Again(AgentMiddleware[Any, Any, Any]):
    """Takes an answer back that the first call of the model gives, and asks once more."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 1

    def after_agent(self, state: Any, runtime: Any) -> Any:
        last = state["messages"][-1]
        self.left -= 1
        return None if self.left < 0 else {"messages": [RemoveMessage(id=last.id), AIMessage("better")]}


@pytest.mark.parametrize("way", ["middleware-sync", "middleware-async"])
async def test_the_turn_as_it_stands_at_its_end_is_stored(memory: SupabaseMemory, way: str) -> None:
    subject = Subject(memory, way, others=((), (Again(),)))  # after_agent runs backwards: ours comes last
    await subject("one")
    assert texts(subject.state) == ["one", "better"]
    subject.agrees(sequences=3)


@pytest.mark.parametrize("way", ["middleware-sync", "middleware-async"])
async def test_an_interrupt_and_its_resumption(memory: SupabaseMemory, way: str) -> None:
    chat = says(calls("look_up", word="kiln"), "done")
    asks_first = HumanInTheLoopMiddleware(interrupt_on={"look_up": True})
    subject = Subject(memory, way, chat=chat, others=((), (asks_first,)))
    await subject("go")
    decision = {"type": "edit", "edited_action": {"name": "look_up", "args": {"word": "oven"}}}
    await subject(Command(resume={"decisions": [decision]}))
    assert "oven" in subject.state[2].text
    subject.agrees(sequences=4)


# --- Retries


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("kept", [True, False], ids=["checkpointer", "none"])
async def test_an_agent_that_is_retried_stores_its_question_once(
    memory: SupabaseMemory, color: str, kept: bool
) -> None:
    numbers = iter(range(100))

    def script(given: list[BaseMessage]) -> AIMessage | str:
        number = next(numbers)
        if number == 1:
            raise RuntimeError("down")
        if isinstance(given[-1], ToolMessage):
            return "done"
        return AIMessage("", tool_calls=[{"name": "look_up", "args": {"word": f"w{number}"}, "id": f"c{number}"}])

    chat = ScriptedModel(script=script)
    agent: Any = create_agent(chat, [look_up], middleware=[SupabaseMemoryMiddleware(memory)])
    builder = StateGraph(MessagesState)
    policy = RetryPolicy(max_attempts=3, initial_interval=0.01, jitter=False, retry_on=lambda _: True)
    builder.add_node("agent", agent, retry_policy=policy)
    builder.add_edge(START, "agent")
    graph: Any = builder.compile(checkpointer=InMemorySaver() if kept else None)
    state: list[BaseMessage] = []
    conversation = memory.conversation("t")
    first = {"messages": [HumanMessage("go")]}
    state = (graph.invoke(first, config()) if color == "sync" else await graph.ainvoke(first, config()))["messages"]
    stored = [each.message for each in conversation.read()]
    # What the first try called, and what came of it, was seen: it stays, and the question is there once.
    assert texts(stored) == ["go", "", "meaning of w0", "", "meaning of w2", "done"]
    assert [each for each in stored if each in state] == state
    assert texts(content.conversation_messages(conversation.context().messages)) == texts(stored)
    assert conversation.coverage().complete


# --- What must not be lost


@pytest.mark.parametrize("way", WAYS)
async def test_without_a_checkpointer_the_memory_is_the_history(memory: SupabaseMemory, way: str) -> None:
    subject = Subject(memory, way, saver=None)
    await subject.talks("one", "two", "three")
    assert texts(subject.chat.shown[-1]) == ["one", "re one", "two", "re two", "three"]
    assert memory.conversation("t").count() == 6
    assert {each.state for each in memory.conversation("t").coverage().ranges} == {"verbatim"}


@pytest.mark.parametrize("way", WAYS)
async def test_a_wiped_checkpointer_costs_nothing(conn_string: str, memory: SupabaseMemory, way: str) -> None:
    await Subject(memory, way).talks("one", "two")
    before = ["one", "re one", "two", "re two"]
    with SupabaseMemory.from_conn_string(conn_string, user_id=memory.user_id) as restarted:
        subject = Subject(restarted, way)
        await subject.talks("three")
        subject.agrees(before, sequences=6)
        await subject.talks("four")
        subject.agrees(before, sequences=8)
        # What the new thread does to itself it does to itself alone.
        await subject("other", subject.checkpoint(0))
        subject.agrees(before, sequences=10)
        subject.update(RemoveMessage(id=str(subject.state[1].id)))
        await subject("last")
        subject.agrees(before, sequences=12)


@pytest.mark.parametrize("way", WAYS)
async def test_a_process_that_knows_nothing_sees_a_fork_too(conn_string: str, memory: SupabaseMemory, way: str) -> None:
    saver = InMemorySaver()
    first = Subject(memory, way, saver=saver)
    await first.talks("one", "two")
    with SupabaseMemory.from_conn_string(conn_string, user_id=memory.user_id) as another:
        second = Subject(another, way, saver=saver)
        await second("other", second.checkpoint(2))
        second.agrees(sequences=6)
    await first.talks("on")
    first.agrees(sequences=8)


async def test_what_was_stored_by_hand_is_on_every_branch(memory: SupabaseMemory) -> None:
    memory.conversation("t").append([HumanMessage("welcome")])
    subject = Subject(memory, "middleware-sync")
    await subject("one")
    memory.conversation("t").append([AIMessage("a reminder")])
    await subject("two")
    await subject("other", subject.checkpoint(0))
    stored = texts([each.message for each in memory.conversation("t").read()])
    assert stored == ["welcome", "a reminder", "other", "re other"]
    assert texts(subject.chat.shown[-1]) == ["welcome", "a reminder", "other"]


async def test_a_node_that_only_loads_leaves_the_old_branch_out(memory: SupabaseMemory) -> None:
    shown: list[list[BaseMessage]] = []

    class State(MessagesState):
        context_messages: list[AnyMessage]

    def model(state: Any) -> Any:
        shown.append(state["context_messages"])
        return {"messages": [AIMessage(f"re {state['messages'][-1].text}")]}

    builder = StateGraph(State)
    for name, node in (("load", LoadContextNode(memory)), ("model", model), ("save", SaveTurnNode(memory))):
        builder.add_node(name, node)
    for first, then in ((START, "load"), ("load", "model"), ("model", "save"), ("save", END)):
        builder.add_edge(first, then)
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    for text in ("one", "two"):
        graph.invoke(asks(text), config())
    graph.invoke(asks("other"), list(graph.get_state_history(config()))[-1].config)
    assert texts(shown[-1]) == ["other"]
    assert texts([each.message for each in memory.conversation("t").read()]) == ["other", "re other"]


async def test_a_forgotten_conversation_is_not_brought_back_by_the_state(memory: SupabaseMemory) -> None:
    subject = Subject(memory, "middleware-sync")
    await subject.talks("one", "two")
    memory.conversation("t").forget()
    await subject("three")
    assert texts([each.message for each in memory.conversation("t").read()]) == ["three", "re three"]


# --- What was made from it


async def test_what_was_made_from_a_branch_goes_and_comes_with_it(memory: SupabaseMemory) -> None:
    quoting = SupabaseMemory(memory._services.transport, user_id=memory.user_id, model=ExtractiveSummarizer())
    policy = SummaryPolicy(keep_messages=2, input_characters=4000)
    subject = Subject(memory, "middleware-sync")
    await subject.talks(
        "My dog is called Anton.", "I live in Bruno.", "My cat is called Cesar.", "I was born in Dario."
    )
    there = subject.graph.get_state(config()).config

    conversation = memory.conversation("t")

    def derived() -> dict[str, str]:
        return {
            "summary": str([each.content for each in conversation.summaries.list()]),
            "chunks": str([each.content for each in conversation.recall("Do I live in Bruno or Other?").chunks]),
            "board": str([each.text for each in conversation.board.read().facts]),
        }

    def made() -> dict[str, str]:
        quoting.conversation("t").summaries.make(policy=policy)
        quoting.conversation("t").board.revise()
        conversation.index()
        assert conversation.coverage().complete
        return derived()

    first = made()
    assert all("Bruno" in text for text in first.values())
    await subject("I live in Other.", subject.checkpoint(2))
    assert not any("Bruno" in text for text in derived().values()), "at once"
    branched = made()
    assert not any("Bruno" in text for text in branched.values())
    assert "Other" in branched["chunks"]
    assert "Anton" in branched["summary"]
    await subject("My horse is called Emil.", there)
    assert not any("Other" in text for text in derived().values())
    back = made()
    assert all("Bruno" in text for text in back.values()), "made again"
    assert not any("Other" in text for text in back.values())


async def test_what_is_superseded_can_be_forgotten(memory: SupabaseMemory) -> None:
    subject = Subject(memory, "middleware-sync")
    await subject.talks("one", "two")
    there, gone = subject.graph.get_state(config()).config, subject.state[2]
    await subject("other", subject.checkpoint(2))
    conversation = memory.conversation("t")
    assert conversation.forget_message(str(gone.id), dry_run=True).messages == 1
    assert conversation.forget_message(str(gone.id)).messages == 1
    assert conversation.forget_message(str(gone.id)).messages == 0
    assert [each.state for each in conversation.coverage().ranges] == [
        "verbatim", "forgotten", "superseded", "verbatim",
    ]  # fmt: skip
    await subject("three", there)
    stored = texts([each.message for each in conversation.read()])
    assert stored == ["one", "re one", "re two", "three", "re three"]
    assert conversation.forget().messages == 7


@pytest.mark.parametrize("way", ["middleware-sync", "nodes-async"])
async def test_what_is_superseded_is_listed_and_brought_back(memory: SupabaseMemory, sums: Any, way: str) -> None:
    subject = Subject(memory, way)
    await subject.talks("one", "two", "three")
    await subject("other", subject.checkpoint(2))
    conversation = memory.conversation("t")
    left = conversation.superseded.list()
    assert texts([each.message for each in left if each.message]) == ["two", "re two", "three", "re three"]
    assert [each.sequence for each in conversation.superseded.list()][-2:] == [4, 5]
    ids = [each.message.id for each in left[:2] if each.message]
    assert conversation.superseded.reinstate([str(each) for each in ids] + ["unknown"]) == [2, 3]
    assert await conversation.superseded.areinstate(["unknown"]) == []
    sums()
    expected = ["one", "re one", "two", "re two", "other", "re other"]
    assert texts([each.message for each in conversation.read()]) == expected
    await subject("on")  # who brought them back wants them to stay
    assert texts(content.conversation_messages(subject.chat.shown[-1])) == [*expected, "on"]
    assert texts([each.message for each in await conversation.superseded.alist()]) == [
        "three", "re three",
    ]  # fmt: skip
    with pytest.raises(InvalidInputError, match="list of ids"):
        conversation.superseded.reinstate("one")


async def test_what_is_superseded_ages(memory: SupabaseMemory, conn_string: str) -> None:
    subject = Subject(memory, "middleware-sync")
    await subject.talks("one", "two", "three")
    await subject("other", subject.checkpoint(2))
    memory.forget_expired(retention=Retention(max_turns=1))
    with psycopg.connect(conn_string) as connection:
        left = connection.execute(
            "select count(*) from memory.superseded_messages where user_id = %s", [memory.user_id]
        )
        assert left.fetchone() == (0,)
    assert texts([each.message for each in memory.conversation("t").read()]) == ["other", "re other"]
    assert {each.state for each in memory.conversation("t").coverage().ranges} == {"verbatim", "expired"}


# --- What it costs


def counted(memory: SupabaseMemory) -> list[tuple[str, int]]:
    """The calls of the database from now on: which, and with how many messages."""
    seen: list[tuple[str, int]] = []
    inner: Any = memory._services.transport.perform

    def perform(call: Any) -> Any:
        seen.append((call.function, len(call.arguments.get("p_messages") or [])))
        return inner(call)

    memory._services.transport.perform = perform  # type: ignore[method-assign]
    return seen


@pytest.mark.parametrize("way", ["middleware-sync", "nodes-sync"])
async def test_a_turn_is_stored_in_two_round_trips(memory: SupabaseMemory, way: str) -> None:
    subject = Subject(memory, way)
    await subject.talks("one", "two")
    seen = counted(memory)
    await subject.talks("three", "four")
    assert seen == [("memory_append_context", 1), ("memory_append", 1)] * 2


@pytest.mark.not_on_citus("stores 3,000 messages one by one there, under the deadline of a turn")
async def test_a_fork_of_a_long_conversation_is_bounded(memory: SupabaseMemory, sums: Any) -> None:
    subject = Subject(memory, "middleware-sync")
    await subject("one")
    said = [each for n in range(1500) for each in (HumanMessage(f"q{n}", id=f"q{n}"), AIMessage(f"a{n}", id=f"a{n}"))]
    memory.conversation("t").append(said, metadata={"via": VIA})
    subject.update(*said)
    await subject("last")
    assert memory.conversation("t").count() == 3004
    seen = counted(memory)
    await subject("other", subject.checkpoint(2))
    assert memory.conversation("t").count() == 4
    assert len(seen) <= 8
    assert sum(number for _, number in seen) <= 5
    sums()


# --- Random stories


class Story:
    """A conversation to which anything may happen that a graph can do."""

    def __init__(
        self, memory: SupabaseMemory, way: str, seed: int, savers: Callable[[], dict[str, Any]] = dict
    ) -> None:
        self.memory, self.rng, self.way, self.savers = memory, random.Random(seed), way, savers
        self.before: list[str] = []
        self.number = 0
        self.subject = Subject(memory, way, **savers())

    def text(self) -> str:
        self.number += 1
        return self.rng.choice(["ok", f"question {self.number}"])

    async def ask(self) -> None:
        await self.subject(self.text())

    async def fork(self) -> None:
        history = [
            each
            for each in self.subject.read.get_state_history(config())
            if not each.next and each.values.get("messages") and each.metadata["source"] == "loop"
        ]
        where = self.rng.choice([*history, None])
        await self.subject(self.text(), where.config if where else self.subject.checkpoint(0))

    async def remove(self) -> None:
        state = self.subject.state
        gone = self.rng.sample(state[1:], self.rng.randrange(1, len(state)))
        self.subject.update(*[RemoveMessage(id=str(message.id)) for message in gone])
        await self.ask()

    async def edit(self) -> None:
        message = self.rng.choice(self.subject.state)
        self.subject.update(message.model_copy(update={"content": self.text()}))
        await self.ask()

    async def anew(self) -> None:
        before = [each.config for each in self.subject.read.get_state_history(config()) if "model" in each.next]
        await self.subject(None, self.rng.choice(before))

    async def summarize(self) -> None:
        self.memory.conversation("t").summaries.make(
            model=lambda _: "Something.", policy=SummaryPolicy(keep_messages=2)
        )
        self.memory.conversation("t").index()

    async def wipe(self) -> None:
        self.before = texts([each.message for each in self.memory.conversation("t").read()])
        self.subject = Subject(self.memory, self.way, **self.savers())
        await self.ask()

    async def step(self) -> None:
        does = [self.ask, self.ask, self.fork, self.fork, self.remove, self.edit, self.anew, self.summarize, self.wipe]
        if not self.number:
            await self.ask()
        await self.rng.choice(does)()
        self.subject.agrees(self.before)


@pytest.mark.parametrize("way", ["middleware-sync", "nodes-sync", "load-sync"])
async def test_they_agree_whatever_happens(memory: SupabaseMemory, sums: Any, way: str, fuzz: int) -> None:
    for seed in range(3 * fuzz):
        story = Story(memory, way, seed)
        memory.conversation("t").forget()
        for _ in range(10):
            await story.step()
        sums()


WRONG_STATES: dict[str, tuple[Any, str]] = {
    "a list": (["x"], "p_branch is no object"),
    **{
        f"{key} {json.dumps(value)}": ({"ids": [], key: value}, f"{key} of p_branch is no {kind}")
        for kind, keys, values in (
            ("list of texts", ["ids", "removed", "resent"], ["a", 1, {"a": 1}, [1], [None], ["a", ["b"]]]),
            ("list of texts", ["ids"], [None]),
            ("boolean", ["named", "all"], ["true", 1, []]),
            ("integer", ["waiting"], ["1", 1.5, True, [1], 10**12]),
            ("text", ["token", "expected", "after", "since", "run", "ended", "owner", "database"], [1, ["a"], {}]),
            ("text", ["author"], [1]),
        )
        for key in keys
        for value in values
    },
}
"""What is no state of a graph, and what is said of it."""

UNUSABLE_IDS = {"NUL": "a\0b", "a tab": "a\tb", "too long": "a" * 5_000}
"""What a client may send as a message's id, and is stored under another one."""


@pytest.mark.parametrize("way", [*WAYS, "functional-sync", "functional-async"])
async def test_messages_whose_ids_cannot_be_stored_are_stored_and_remembered(
    memory: SupabaseMemory, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    subject = Subject(memory, way, chat=ScriptedModel(script=lambda given: f"re {given[-1].text}"))
    for what, id_ in UNUSABLE_IDS.items():
        await subject({"messages": [HumanMessage(what, id=id_)]})
    assert texts([each.message for each in memory.conversation("t").read()]) == texts(subject.state)
    assert len(subject.state) == 2 * len(UNUSABLE_IDS)
    await subject("another", subject.checkpoint(4))  # and a fork takes out what it lacks
    assert texts([each.message for each in memory.conversation("t").read()]) == texts(subject.state)
    assert len(subject.state) == 6
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


async def test_half_a_surrogate_pair_in_an_id_stops_no_run(memory: SupabaseMemory) -> None:
    subject = Subject(memory, "middleware-sync", saver=None)  # a saver makes "?" of it
    for text in ("one", "two"):
        await subject({"messages": [HumanMessage(text, id=f"{text} \ud83d")]})
    assert texts([each.message for each in memory.conversation("t").read()]) == ["one", "re one", "two", "re two"]


async def test_half_a_surrogate_pair_makes_an_id_as_well(caller: Caller, user_id: str) -> None:
    """Where a message gets an id from its words: one whose own is taken, or none in a task."""
    conversation = caller.service.for_user(user_id).conversation("t")
    await caller(conversation.append, [HumanMessage("one", id="taken")])
    again = [HumanMessage("half \ud83d", id="\ud83d"), AIMessage("half \ud83d", id="taken")]
    assert (await caller(conversation.append, again)).appended == 2, "with the one under another id"
    scratchpad = {"__pregel_scratchpad": object(), "checkpoint_ns": "task"}
    nameless = HumanMessage("half \ud83d")
    task_ids.name([nameless], {"configurable": scratchpad})
    assert str(nameless.id).startswith("lc_")


async def test_the_database_says_what_is_wrong_with_a_state(caller: Caller, user_id: str) -> None:
    transport = caller.service._services.transport
    stored: Any = {"p_thread_id": "t", "p_user_id": user_id, "p_messages": [to_row(HumanMessage("secret", id="m"))]}

    async def perform(function: str, **given: Any) -> Any:
        call = Call(function, given)
        return transport.perform(call) if caller.color == "sync" else await transport.aperform(call)

    async def refused(message: str, function: str, **given: Any) -> None:
        with pytest.raises(
            InvalidInputError, match=f"(?i){message}.*(what a graph's state holds|ids of the state)"
        ) as raised:
            await perform(function, **given)
        assert raised.value.code == "PT400"

    for state, message in WRONG_STATES.values():
        await refused(message, "memory_append", **stored, p_branch=state)
    await refused("ids of p_branch", "memory_append_context", **stored, p_branch={"ids": 1})
    assert await caller(caller.service.for_user(user_id).conversation("t").count) == 0
    known = {
        **{"token": "s", "expected": None, "after": None, "ids": ["m"], "removed": None, "since": None, "run": None},
        **{"resent": ["m"], "named": False, "all": None, "waiting": 0, "ended": None, "owner": None, "database": None},
        "author": None,
    }
    assert (await perform("memory_append", **stored, p_branch=known))["appended"] == 1
    for ids in ({"m": 1}, [1], [None]):
        await refused("p_branch_ids is no list", "memory_context", p_thread_id="t", p_user_id=user_id, p_branch_ids=ids)
