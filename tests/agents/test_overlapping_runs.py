"""Overlapping runs of one thread, retries, and foreign states: no message is hidden or mixed up."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

import psycopg
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, PIIMiddleware, before_model
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import Command, RetryPolicy, Send, interrupt

from langchain_supabase_memory import (
    SaveTurnNode,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.errors import InvalidInputError
from tests.chat_models import ScriptedModel, asks, calls, config, look_up, question, says
from tests.operations.test_branches import Subject, texts

WAYS = ["middleware-sync", "middleware-async", "nodes-sync", "nodes-async"]
ALL_WAYS = [*WAYS, "load-sync", "load-async"]


def echo() -> ScriptedModel:
    return ScriptedModel(script=lambda given: f"re {question(given)}")


def stored(memory: SupabaseMemory, thread: str = "t") -> list[str]:
    return texts([each.message for each in memory.conversation(thread).read()])


def seen_by_everybody(memory: SupabaseMemory, expected: list[str]) -> None:
    """Every message is read, shown in the next prompt and covered, once."""
    assert sorted(stored(memory)) == sorted(expected)
    pack = memory.conversation("t").context()
    assert sorted(texts(pack.messages)) == sorted(expected)
    assert {each.state for each in memory.conversation("t").coverage().ranges} == {"verbatim"}


# --- Overlapping runs


@pytest.mark.parametrize("way", ALL_WAYS)
@pytest.mark.parametrize("saved", [False, True], ids=["none", "checkpointer"])
@pytest.mark.parametrize("runs", [2, 6, 20])
async def test_runs_at_once_take_nothing_from_each_other(
    memory: SupabaseMemory, way: str, saved: bool, runs: int
) -> None:
    subject = Subject(memory, way, saver=InMemorySaver() if saved else None, chat=echo())
    await subject("first")
    questions = [f"question {n}" for n in range(runs)]
    if way.endswith("-sync"):
        with ThreadPoolExecutor(runs) as pool:
            list(pool.map(lambda text: subject.graph.invoke(asks(text), config()), questions))
    else:
        await asyncio.gather(*(subject.graph.ainvoke(asks(text), config()) for text in questions))
    await subject("last")
    expected = [each for text in ("first", *questions, "last") for each in (text, f"re {text}")]
    seen_by_everybody(memory, expected)
    for text in questions:  # each question before its answer
        assert stored(memory).index(text) < stored(memory).index(f"re {text}")
    await subject("and on")
    assert set(expected) <= set(texts(subject.chat.shown[-1]))


@pytest.mark.parametrize("saved", [False, True], ids=["none", "checkpointer"])
async def test_a_turn_that_is_said_during_a_long_answer_stays(memory: SupabaseMemory, saved: bool) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedModel):
        async def _agenerate(self, messages: list[BaseMessage], *more: Any, **settings: Any) -> Any:
            if "report" in messages[-1].text:
                begun.set()
                await go_on.wait()
            return self._generate(messages)

    chat = Slow(script=lambda given: f"re {given[-1].text}")
    agent: Any = create_agent(
        chat, middleware=[SupabaseMemoryMiddleware(memory)], checkpointer=InMemorySaver() if saved else None
    )
    await agent.ainvoke(asks("hello"), config())
    slow = asyncio.create_task(agent.ainvoke(asks("the report"), config()))
    await begun.wait()
    await agent.ainvoke(asks("my dog is called Rex"), config())
    go_on.set()
    await slow
    assert stored(memory) == [
        "hello", "re hello", "the report", "my dog is called Rex", "re my dog is called Rex", "re the report",
    ]  # fmt: skip
    pairs = [
        ("hello", "re hello"), ("the report", "re the report"), ("my dog is called Rex", "re my dog is called Rex"),
    ]  # fmt: skip
    assert [(each.user_query, each.ai_response) for each in memory.conversation("t").turns.list()] == pairs
    await agent.ainvoke(asks("what is it called?"), config())
    assert "re my dog is called Rex" in texts(chat.shown[-1])


@pytest.mark.parametrize("way", WAYS)
async def test_a_run_that_is_retried_after_other_turns_takes_none_of_them(memory: SupabaseMemory, way: str) -> None:
    failing = [True]

    def script(given: list[BaseMessage]) -> str:
        if "report" in given[-1].text and failing:
            failing.clear()
            raise RuntimeError("503")
        return f"re {given[-1].text}"

    subject = Subject(memory, way, saver=None, chat=ScriptedModel(script=script))
    request: Any = {"messages": [HumanMessage("the report", id="request-1")]}
    with pytest.raises(RuntimeError):
        await subject(request)
    await subject.talks("my dog is called Rex", "and my cat Tibbles")
    await subject(request)
    assert stored(memory) == [
        "the report", "my dog is called Rex", "re my dog is called Rex", "and my cat Tibbles",
        "re and my cat Tibbles", "re the report",
    ]  # fmt: skip
    for number, asked in enumerate(["the report", "my dog is called Rex", "and my cat Tibbles"], 1):
        turn = memory.conversation("t").turns.get(number)
        assert turn is not None
        assert (turn.user_query, turn.ai_response) == (asked, f"re {asked}")
    assert {each.state for each in memory.conversation("t").coverage().ranges} == {"verbatim"}


@pytest.mark.parametrize("saved", [False, True], ids=["none", "checkpointer"])
def test_agents_side_by_side_in_one_run_keep_what_each_said(memory: SupabaseMemory, saved: bool) -> None:
    agent: Any = create_agent(echo(), middleware=[SupabaseMemoryMiddleware(memory)])

    def work(state: Any) -> Any:
        return {"messages": agent.invoke({"messages": [HumanMessage(state["part"])]})["messages"]}

    builder = StateGraph(MessagesState)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, lambda _: [Send("work", {"part": f"part {n}"}) for n in range(4)])
    graph: Any = builder.compile(checkpointer=InMemorySaver() if saved else None)
    graph.invoke(asks("all"), config())
    assert sorted(stored(memory)) == sorted(each for n in range(4) for each in (f"part {n}", f"re part {n}"))


def test_a_run_inside_a_run_takes_nothing_of_the_outer_one(memory: SupabaseMemory) -> None:
    inner: Any = create_agent(echo(), middleware=[SupabaseMemoryMiddleware(memory)])

    @tool
    def ask_expert(question: str) -> str:
        """Ask an expert."""
        return str(inner.invoke({"messages": [HumanMessage(question)]}, config())["messages"][-1].text)

    chat = says(calls("ask_expert", question="how hot?"), "done", "bye")
    outer: Any = create_agent(
        chat, [ask_expert], middleware=[SupabaseMemoryMiddleware(memory)], checkpointer=InMemorySaver()
    )
    outer.invoke(asks("go"), config())
    outer.invoke(asks("on"), config())
    assert stored(memory) == ["go", "", "how hot?", "re how hot?", "re how hot?", "done", "on", "bye"]
    assert memory.conversation("t").coverage().complete


def test_results_of_interleaved_runs_stand_beside_their_calls(memory: SupabaseMemory) -> None:
    def call(name: str) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": name}])

    said: list[BaseMessage] = [
        HumanMessage("first"), call("c1"), HumanMessage("second"), call("c2"), ToolMessage("one", tool_call_id="c1"),
        ToolMessage("two", tool_call_id="c2"), AIMessage("answer one"), AIMessage("answer two"),
    ]  # fmt: skip
    for message in said:
        memory.conversation("t").append([message])
    prompt = memory.conversation("t").context("And now?").prompt
    assert {each.tool_call_id: each.text for each in prompt if isinstance(each, ToolMessage)} == {
        "c1": "one",
        "c2": "two",
    }
    for place, each in enumerate(prompt):
        if isinstance(each, ToolMessage):
            before = prompt[place - 1]
            assert isinstance(before, AIMessage)
            assert before.tool_calls[0]["id"] == each.tool_call_id
    assert memory.conversation("t").coverage().complete


class Interleaving:
    """Runs of one thread that are advanced step by step, in any order; what each state held is noted."""

    def __init__(self, memory: SupabaseMemory, seed: int, saved: bool) -> None:
        self.memory, self.rng = memory, random.Random(seed)
        self.turns: dict[str, threading.Event] = {}
        self.begun: dict[str, threading.Event] = {}
        self.held: list[str] = []

        def script(given: list[BaseMessage]) -> str:
            text = given[-1].text
            self.begun[text].set()
            assert self.turns[text].wait(60)
            return f"re {text}"

        self.agent: Any = create_agent(
            ScriptedModel(script=script),
            middleware=[SupabaseMemoryMiddleware(memory)],
            checkpointer=InMemorySaver() if saved else None,
        )

    def run(self, questions: int) -> None:
        waiting = [f"say {letter}" for letter in "abcdefgh"[:questions]]
        under_way: list[tuple[str, Any]] = []
        with ThreadPoolExecutor(questions) as pool:
            while waiting or under_way:
                if waiting and (not under_way or self.rng.random() < 0.5):
                    text = waiting.pop(0)
                    self.turns[text], self.begun[text] = threading.Event(), threading.Event()
                    under_way.append((text, pool.submit(self.agent.invoke, asks(text), config())))
                    assert self.begun[text].wait(60)
                else:
                    text, future = under_way.pop(self.rng.randrange(len(under_way)))
                    self.turns[text].set()
                    self.held += [each for each in texts(future.result()["messages"]) if each not in self.held]


@pytest.mark.parametrize("saved", [False, True], ids=["none", "checkpointer"])
def test_whatever_the_order_of_runs_what_a_state_held_is_stored(memory: SupabaseMemory, saved: bool, fuzz: int) -> None:
    for seed in range(3 * fuzz):
        memory.conversation("t").forget()
        story = Interleaving(memory, seed, saved)
        story.run(6)
        seen_by_everybody(memory, story.held)


# --- What a state held and lost


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("keeps_first", [False, True])
async def test_stock_trimming_forgets_nothing(memory: SupabaseMemory, color: str, keeps_first: bool) -> None:
    @before_model
    def trim(state: Any, runtime: Any) -> Any:
        kept = [*state["messages"][: int(keeps_first)], *state["messages"][-3:]]
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept]} if len(state["messages"]) > 4 else None

    chat = echo()
    for order in ((SupabaseMemoryMiddleware(memory), trim), (trim, SupabaseMemoryMiddleware(memory))):
        memory.conversation("t").forget()
        agent: Any = create_agent(chat, middleware=list(order), checkpointer=InMemorySaver())
        said = ["My dog is called Rex", *(f"Talk of the weather, {n}" for n in "abcdef")]
        for text in said:
            await agent.ainvoke(asks(text), config()) if color == "async" else agent.invoke(asks(text), config())
        assert stored(memory) == [each for text in said for each in (text, f"re {text}")]
        assert "My dog is called Rex" in texts(chat.shown[-1])


def test_without_written_checkpoints_nothing_is_taken_for_removed(memory: SupabaseMemory) -> None:
    subject = Subject(memory, "nodes-sync", chat=echo())
    subject.graph.invoke(asks("one"), config(), durability="exit")
    subject.update(RemoveMessage(id=str(subject.state[-1].id)))
    subject.graph.invoke(asks("two"), config(), durability="exit")
    assert stored(memory) == ["one", "re one", "two", "re two"]


# --- Whose state it is


@pytest.mark.parametrize("way", ALL_WAYS)
@pytest.mark.parametrize("on_error", ["setup", "log"])
async def test_a_state_of_another_user_is_neither_stored_nor_sent(
    conn_string: str, way: str, on_error: Any, user_id: str
) -> None:
    with SupabaseMemory.from_conn_string(conn_string) as everybody:
        saver, others = InMemorySaver(), f"{user_id}-ben"
        mine, theirs = (everybody.for_token({"sub": user, "role": "authenticated"}) for user in (user_id, others))
        chat = echo()
        if way.startswith("middleware"):
            graphs: list[Any] = [
                create_agent(chat, middleware=[SupabaseMemoryMiddleware(each, on_error=on_error)], checkpointer=saver)
                for each in (mine, theirs)
            ]
        else:
            graphs = [Subject(each, way, chat=chat, saver=saver).graph for each in (mine, theirs)]
        run = (lambda graph, text: graph.ainvoke(asks(text), config())) if way.endswith("async") else None
        if run is None:
            graphs[0].invoke(asks("My PIN is 7391"), config())
        else:
            await run(graphs[0], "My PIN is 7391")
        shown = len(chat.shown)
        with pytest.raises(InvalidInputError, match="another user"):
            graphs[1].invoke(asks("hi"), config()) if run is None else await run(graphs[1], "hi")
        assert len(chat.shown) == shown, "the model is not asked"
        assert everybody.for_user(others).conversation("t").read() == []
        assert not everybody._services.outbox.conversations()
        assert not theirs._services.outbox.conversations()


@pytest.mark.parametrize("way", ALL_WAYS)
@pytest.mark.parametrize("saved", [False, True], ids=["none", "checkpointers"])
async def test_users_whom_a_function_signs_in_share_nothing(
    conn_string: str, user_id: str, way: str, saved: bool
) -> None:
    users, signed_in = (user_id, f"{user_id}-ben"), [""]
    with SupabaseMemory.from_conn_string(conn_string, model=None) as everybody:
        memory = everybody.for_token(lambda: {"sub": signed_in[0], "role": "authenticated"})
        subjects = [Subject(memory, way, saver=InMemorySaver() if saved else None, chat=echo()) for _ in users]
        for text in ("one", "two"):
            for user, subject in zip(users, subjects, strict=True):
                signed_in[0] = user
                await subject(f"{text} of {user}")
        for user, subject in zip(users, subjects, strict=True):
            expected = [f"{said}{text} of {user}" for text in ("one", "two") for said in ("", "re ")]
            read = everybody.for_user(user).conversation("t").read()
            assert texts([each.message for each in read if each.message]) == expected
            assert texts(subject.chat.shown[-1]) == expected[:-1]


def copied(saver: InMemorySaver, old: str, new: str) -> None:
    """What a server's copy of a thread comes to."""
    saver.storage[new] = saver.storage[old]
    saver.blobs |= {(new, *key[1:]): blob for key, blob in list(saver.blobs.items()) if key[0] == old}


@pytest.mark.parametrize("way", WAYS)
async def test_a_thread_that_was_copied_is_stored_and_sent(memory: SupabaseMemory, way: str) -> None:
    saver = InMemorySaver()
    subject = Subject(memory, way, saver=saver, chat=echo())
    await subject("My dog is called Rex")
    copied(saver, "t", "copy")
    await subject("What is my dog called?", config(thread_id="copy"))
    assert "My dog is called Rex" in texts(subject.chat.shown[-1])
    expected = ["My dog is called Rex", "re My dog is called Rex"]
    assert stored(memory, "copy")[:2] == expected
    assert stored(memory) == expected


async def test_another_database_behind_the_same_checkpointer_gets_the_state(
    cluster: Any, memory: SupabaseMemory
) -> None:
    saver = InMemorySaver()
    await Subject(memory, "middleware-sync", saver=saver, chat=echo()).talks("My dog is called Rex")
    other = cluster.migrated_database()
    with psycopg.connect(cluster.conn_string(other), autocommit=True) as connection:  # it was copied from a template
        connection.execute("update memory_private.limits set database_id = gen_random_uuid()")
    with SupabaseMemory.from_conn_string(cluster.conn_string(other), user_id=memory.user_id) as elsewhere:
        subject = Subject(elsewhere, "middleware-sync", saver=saver, chat=echo())
        await subject("What is my dog called?")
        assert "My dog is called Rex" in texts(subject.chat.shown[-1])
        assert stored(elsewhere)[0] == "My dog is called Rex"


def test_a_forgotten_conversation_stays_forgotten_though_the_state_has_it(memory: SupabaseMemory) -> None:
    subject = Subject(memory, "middleware-sync", chat=echo())
    subject.graph.invoke(asks("one"), config())
    memory.conversation("t").forget()
    subject.graph.invoke(asks("two"), config())
    assert stored(memory) == ["two", "re two"]


# --- Ids


@pytest.mark.parametrize("saved", [False, True], ids=["none", "checkpointer"])
@pytest.mark.parametrize("color", ["sync", "async"])
async def test_answers_with_one_id_are_two_messages(memory: SupabaseMemory, saved: bool, color: str) -> None:
    chat = says(*(AIMessage(text, id="resp_0") for text in ("one", "two", "two")))
    saver = InMemorySaver() if saved else None
    for number in range(3):
        agent: Any = create_agent(chat, middleware=[SupabaseMemoryMiddleware(memory)], checkpointer=saver)
        given = asks(f"q{number}")
        await agent.ainvoke(given, config()) if color == "async" else agent.invoke(given, config())
    assert stored(memory) == ["q0", "one", "q1", "two", "q2", "two"]


def test_a_history_keeps_answers_with_one_id(memory: SupabaseMemory) -> None:
    for number in (1, 2, 3):
        history = SupabaseChatMessageHistory("t", memory)
        assert len(history.messages) == 2 * number - 2
        history.add_messages([HumanMessage(f"q{number}"), AIMessage(f"answer {number}", id="resp_0")])
    one_by_one = SupabaseChatMessageHistory("t", memory)
    one_by_one.add_message(HumanMessage("q4"))
    one_by_one.add_message(AIMessage("answer 4", id="resp_0"))
    assert stored(memory) == [each for n in range(1, 5) for each in (f"q{n}", f"answer {n}")]


def test_one_call_with_one_id_twice_stores_both(memory: SupabaseMemory) -> None:
    said = [HumanMessage("a"), AIMessage("b", id="x"), HumanMessage("c"), AIMessage("d", id="x")]
    memory.conversation("t").append(said)
    memory.conversation("t").append(said)
    assert stored(memory) == ["a", "b", "c", "d"]


def test_what_stands_before_an_interrupt_is_stored_once(memory: SupabaseMemory) -> None:
    load, save = SupabaseSummarizationNode(memory), SaveTurnNode(memory)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(text: str) -> None:
        for number in range(2):
            asked = HumanMessage(text)
            load.invoke({"messages": [asked]})
            save.invoke({"messages": [asked, AIMessage(interrupt(f"approve {number}?"))]})

    flow.invoke("order the clay", config())
    flow.invoke(Command(resume="approved"), config())
    flow.invoke(Command(resume="approved"), config())
    assert stored(memory) == ["order the clay", "approved", "order the clay", "approved"]


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        *(
            (kind, way)
            for kind in ("messages", "dictionaries", "pairs", "texts", "ids of the client")
            for way in ("resumed", "retried")
        ),
        ("a task", "resumed"),
    ],
)
def test_a_body_that_runs_again_after_its_save_stores_once(memory: SupabaseMemory, kind: str, way: str) -> None:
    load, save, chat, fails = SupabaseSummarizationNode(memory), SaveTurnNode(memory), echo(), [True, True]

    def merged(earlier: list[Any], message: Any) -> list[Any]:
        return list(add_messages(earlier, [message]))

    @task
    def added(earlier: list[Any], text: str) -> list[Any]:
        return merged(earlier, HumanMessage(text))

    @task
    def answered(prompt: list[BaseMessage]) -> BaseMessage:
        return chat.invoke(prompt)

    @entrypoint(
        checkpointer=InMemorySaver(),
        retry_policy=RetryPolicy(initial_interval=0.01, retry_on=lambda _: way == "retried"),
    )
    def flow(text: str, *, previous: Any = None) -> Any:
        made: dict[str, Callable[[], list[Any]]] = {
            "messages": lambda: [*(previous or []), HumanMessage(text)],
            "dictionaries": lambda: [*(previous or []), {"role": "user", "content": text}],
            "pairs": lambda: [*(previous or []), ("user", text)],
            "texts": lambda: [*(previous or []), text],
            "a task": lambda: added(previous or [], text).result(),
            "ids of the client": lambda: merged(previous or [], HumanMessage(text, id=f"id {text}")),
        }
        messages = made[kind]()
        messages.append(answered(load.invoke({"messages": messages})["summarized_messages"]).result())
        save.invoke({"messages": messages})
        if fails:
            fails.pop()
            raise RuntimeError
        return entrypoint.final(value=messages[-1].text, save=messages)

    for text in "one", "two":
        for given in text, None, None:
            try:
                assert flow.invoke(given, config()) == f"re {text}"
            except RuntimeError:
                assert way == "resumed"
            else:
                break
    if way == "retried":  # LangGraph asks a task again
        assert [each for each in stored(memory) if not each.startswith("re ")] == ["one", "two"]
    else:
        assert stored(memory) == ["one", "re one", "two", "re two"]


@pytest.mark.parametrize("said", [{"role": "user", "content": "hello"}, ("user", "hello"), "hello"], ids=str)
def test_nodes_of_a_state_without_a_reducer_store_once(memory: SupabaseMemory, said: Any) -> None:
    class State(TypedDict):
        messages: list[Any]
        summarized_messages: list[Any]

    builder = StateGraph(State)
    builder.add_node("load", SupabaseSummarizationNode(memory))
    builder.add_node("answer", lambda state: {"messages": [*state["messages"], {"role": "ai", "content": "yes"}]})
    builder.add_node("save", SaveTurnNode(memory))
    builder.add_edge(START, "load")
    builder.add_edge("load", "answer")
    builder.add_edge("answer", "save")
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({"messages": [said]}, config())
    assert stored(memory) == ["hello", "yes"]


# --- What other middleware refuses, redacts or cuts short


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("order", ["before", "after"])
async def test_what_is_refused_before_the_model_is_not_stored(memory: SupabaseMemory, color: str, order: str) -> None:
    guard: Any = PIIMiddleware("email", strategy="block", apply_to_input=True)
    ours: Any = SupabaseMemoryMiddleware(memory)
    chat = says("hi")
    agent: Any = create_agent(chat, middleware=[guard, ours] if order == "before" else [ours, guard])
    refused = asks("my mail is bob@example.com")
    with pytest.raises(Exception, match="email"):
        await agent.ainvoke(refused, config()) if color == "async" else agent.invoke(refused, config())
    assert stored(memory) == []
    await agent.ainvoke(asks("hello"), config()) if color == "async" else agent.invoke(asks("hello"), config())
    assert "bob@" not in str(chat.shown)


@pytest.mark.parametrize("order", ["before", "after"])
def test_what_is_redacted_is_redacted_though_the_model_fails(memory: SupabaseMemory, order: str) -> None:
    guard: Any = PIIMiddleware("email", strategy="redact", apply_to_input=True)
    ours: Any = SupabaseMemoryMiddleware(memory)

    def fails(given: list[BaseMessage]) -> str:
        raise RuntimeError("503")

    agent: Any = create_agent(
        ScriptedModel(script=fails), middleware=[guard, ours] if order == "before" else [ours, guard]
    )
    with pytest.raises(RuntimeError):
        agent.invoke(asks("I am eve@example.com"), config())
    assert len(stored(memory)) == 1
    assert "eve@" not in str(stored(memory))


@pytest.mark.parametrize("behavior", ["end", "error"])
def test_a_limit_behind_the_memory_costs_no_result_of_a_tool(memory: SupabaseMemory, behavior: Any) -> None:
    ours: Any = SupabaseMemoryMiddleware(memory)
    limit: Any = ModelCallLimitMiddleware(run_limit=1, exit_behavior=behavior)
    agent: Any = create_agent(says(calls("look_up", word="kiln")), [look_up], middleware=[ours, limit])
    if behavior == "error":
        with pytest.raises(Exception, match="limit"):
            agent.invoke(asks("go"), config())
    else:
        agent.invoke(asks("go"), config())
    assert "meaning of kiln" in stored(memory)
