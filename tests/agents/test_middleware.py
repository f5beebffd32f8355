"""The middleware in a real agent: messages are stored once, context is bounded, state is unchanged, errors pass."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from langchain_supabase_memory import ContextBudget, SummaryPolicy, SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo
from langchain_supabase_memory.agents.run.load import EVENT, INDEXING, SUMMARIZING
from langchain_supabase_memory.deadline import seconds_left
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import InvalidInputError, UnavailableError
from langchain_supabase_memory.memory.services import DefaultUser
from langchain_supabase_memory.models import SupabaseSummarizer
from tests.chat_models import ScriptedModel, asks, calls, config, look_up, says

SECRET = "canary-7431"


def said(memory: SupabaseMemory, thread_id: str = "t") -> list[str]:
    """What is stored, in a word each."""
    stored = memory.conversation(thread_id).read()
    return [f"{each.message.type}:{each.message.text}" for each in stored if each.message is not None]


@dataclass
class Agent:
    """An agent in one color."""

    graph: Any
    color: str

    async def __call__(self, given: Any, settings: Any = None, **named: Any) -> Any:
        settings = settings or config()
        if self.color == "sync":
            return self.graph.invoke(given, settings, **named)
        return await self.graph.ainvoke(given, settings, **named)


@pytest.fixture(params=["sync", "async"])
def make(request: pytest.FixtureRequest, memory: SupabaseMemory) -> Callable[..., Agent]:
    def make(chat: ScriptedModel, /, *others: Any, tools: Any = (look_up,), saver: Any = None, **named: Any) -> Agent:
        middleware = [SupabaseMemoryMiddleware(memory, **named), *others]
        return Agent(create_agent(chat, list(tools), middleware=middleware, checkpointer=saver), request.param)

    return make


async def test_a_turn_with_tools_is_stored_once_and_in_order(memory: SupabaseMemory, make: Any) -> None:
    agent = make(says(calls("look_up", word="kiln"), "It is an oven."), saver=InMemorySaver())
    await agent(asks("What is a kiln?"))
    expected = ["human:What is a kiln?", "ai:", "tool:meaning of kiln", "ai:It is an oven."]
    assert said(memory) == expected
    await agent(asks("Thanks"))
    assert said(memory) == [*expected, "human:Thanks", "ai:It is an oven."]


async def test_without_a_checkpointer_the_memory_is_the_history(memory: SupabaseMemory, make: Any) -> None:
    model = says("Hello Maya", "Maya")
    agent = make(model)
    await agent(asks("I am Maya"))
    await agent(asks("Who am I?"))
    assert [message.text for message in model.shown[1]] == ["I am Maya", "Hello Maya", "Who am I?"]
    assert len(said(memory)) == 4


async def test_system_messages_in_front_of_the_state_reach_the_model_and_are_not_stored(
    memory: SupabaseMemory, make: Any
) -> None:
    model = says("Ahoy Maya", "Maya, arr")
    agent = make(model)
    for text in ("I am Maya", "Who am I?"):
        await agent({"messages": [SystemMessage("Speak as a pirate."), HumanMessage(text)]})
    assert [message.text for message in model.shown[1]] == [
        "Speak as a pirate.", "I am Maya", "Ahoy Maya", "Who am I?"
    ]  # fmt: skip
    assert said(memory) == ["human:I am Maya", "ai:Ahoy Maya", "human:Who am I?", "ai:Maya, arr"]


async def test_the_context_is_bounded_and_not_written_into_the_state(memory: SupabaseMemory, make: Any) -> None:
    saver = InMemorySaver()
    model = ScriptedModel(script=lambda _: "word " * 100)
    agent = make(model, saver=saver, budget=ContextBudget(characters=3000), model=lambda _: "They talked of words.")
    for number in range(20):
        await agent(asks(f"question {number} " + "and " * 50))
    for shown in model.shown:
        assert sum(len(str(message.content)) for message in shown) <= 3000
    assert "They talked of words." in str(model.shown[-1][0].content)
    state = agent.graph.get_state(config()).values
    assert len(state["messages"]) == 40
    assert not [message for message in state["messages"] if "They talked" in str(message.content)]
    assert all("lc_source" not in message.additional_kwargs for message in state["messages"])
    assert len(said(memory)) == 40
    assert memory.conversation("t").coverage(budget=ContextBudget(characters=3000)).complete


async def test_a_failing_model_loses_nothing(memory: SupabaseMemory, make: Any) -> None:
    answers = iter(["raise", "fine"])

    def script(_: list[BaseMessage]) -> str:
        if next(answers) == "raise":
            raise RuntimeError("down")
        return "fine"

    agent = make(ScriptedModel(script=script), saver=InMemorySaver())
    with pytest.raises(RuntimeError, match="down"):
        await agent(asks("first"))
    assert said(memory) == ["human:first"]
    await agent(asks("second"))
    assert said(memory) == ["human:first", "human:second", "ai:fine"]


async def test_an_interrupt_and_its_resumption(memory: SupabaseMemory, make: Any) -> None:
    agent = make(
        says(calls("look_up", word="kiln"), "done"),
        HumanInTheLoopMiddleware(interrupt_on={"look_up": True}),
        saver=InMemorySaver(),
    )
    await agent(asks("go"))
    decision = {
        "type": "edit",
        "edited_action": {"name": "look_up", "args": {"word": "oven"}},
    }
    await agent(Command(resume={"decisions": [decision]}))
    state = agent.graph.get_state(config()).values["messages"]
    assert [each.message for each in memory.conversation("t").read()] == state
    assert "meaning of oven" in said(memory)[2]  # what a person changed is what is stored


async def test_a_recursion_limit(memory: SupabaseMemory, make: Any) -> None:
    numbers = iter(range(100))

    def script(_: list[BaseMessage]) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": f"c{next(numbers)}"}])

    agent = make(ScriptedModel(script=script), saver=InMemorySaver())
    with pytest.raises(GraphRecursionError):
        await agent(asks("loop"), {**config(), "recursion_limit": 12})
    state = [message.id for message in agent.graph.get_state(config()).values["messages"]]
    stored = [each.message_id for each in memory.conversation("t").read(columns=["message_id"])]
    assert stored == state[: len(stored)]
    assert len(state) - len(stored) <= 1


async def test_a_fork_leaves_the_other_branch_out(memory: SupabaseMemory, make: Any) -> None:
    model = says("one", "two", "three")
    agent = make(model, saver=InMemorySaver())
    await agent(asks("first"))
    before = agent.graph.get_state(config()).config
    await agent(asks("second"))
    await agent(asks("instead of the second"), before)
    assert [message.text for message in model.shown[-1]] == ["first", "one", "instead of the second"]
    assert len(said(memory)) == 4


async def test_a_history_passed_whole_each_time_is_stored_once(memory: SupabaseMemory, make: Any) -> None:
    agent = make(says("yes"))
    sent: list[int] = []
    inner: Any = memory._services.transport.perform, memory._services.transport.aperform

    def perform(call: Call) -> Any:
        sent.append(len(call.arguments.get("p_messages", [])))
        return inner[0](call)

    async def aperform(call: Call) -> Any:
        sent.append(len(call.arguments.get("p_messages", [])))
        return await inner[1](call)

    memory._services.transport.perform, memory._services.transport.aperform = perform, aperform  # type: ignore[method-assign]
    history: list[BaseMessage] = []
    for number in range(6):
        history = (await agent({"messages": [*history, HumanMessage(f"q{number}")]}))["messages"]
    assert [each.message for each in memory.conversation("t").read()] == history
    assert max(sent) <= 1


async def test_what_others_stored_in_the_thread_is_seen(memory: SupabaseMemory, make: Any) -> None:
    model = says("one", "two")
    agent = make(model, saver=InMemorySaver())
    await agent(asks("first"))
    memory.conversation("t").append([AIMessage("A reminder from the shop")])
    await agent(asks("second"))
    assert "A reminder from the shop" in [message.text for message in model.shown[-1]]


async def test_a_removed_message_is_not_shown_again(memory: SupabaseMemory, make: Any) -> None:
    model = says("one", "two", "three")
    agent = make(model, saver=InMemorySaver())
    await agent(asks("first"))
    await agent(asks(f"my number is {SECRET}"))
    state = agent.graph.get_state(config()).values["messages"]
    agent.graph.update_state(config(), {"messages": [RemoveMessage(id=state[2].id)]})
    await agent(asks("third"))
    assert SECRET not in str(model.shown[-1])


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_streaming_stores_the_whole_answer(memory: SupabaseMemory, color: str) -> None:
    summarizer = ScriptedModel(script=lambda _: f"summary {SECRET}")
    model = says("a long and winding answer")
    middleware = SupabaseMemoryMiddleware(memory, model=summarizer, budget=ContextBudget(characters=2000))
    graph: Any = create_agent(model, middleware=[middleware])
    memory.conversation("t").append(
        [each for n in range(30) for each in (HumanMessage(f"q{n} " * 20), AIMessage(f"a{n} " * 20))]
    )
    events: list[Any] = []
    settings = config()
    modes = ["messages", "custom"]
    if color == "sync":
        events = list(graph.stream(asks("tell"), settings, stream_mode=modes))
    else:
        events = [event async for event in graph.astream(asks("tell"), settings, stream_mode=modes)]
    tokens = "".join(str(payload[0].content) for mode, payload in events if mode == "messages")
    assert "winding" in tokens
    assert SECRET not in tokens  # the summary is not streamed to the user
    assert summarizer.shown
    custom = [payload for mode, payload in events if mode == "custom"]
    assert [event["type"] for event in custom] == [SUMMARIZING, INDEXING, EVENT]
    assert custom[2]["report"]["summary"] >= 1
    assert SECRET not in str(custom)  # numbers and ids, no content
    stored = memory.conversation("t").read()[-1].message
    assert type(stored) is AIMessage
    assert stored.text.strip() == "a long and winding answer"


class Broken:
    """A transport that fails, or hangs."""

    acts_as_user = False
    identity_is_callback = False
    endpoint = EndpointInfo("postgres", "a fake one")

    def __init__(self, inner: Any, hangs: bool = False) -> None:
        self.inner, self.hangs, self.broken = inner, hangs, True

    def perform(self, call: Call) -> Any:
        if not self.broken:
            return self.inner.perform(call)
        if self.hangs:
            time.sleep(seconds_left(30))
            seconds_left(30)
        raise UnavailableError

    def close(self) -> None:
        self.inner.close()

    async def aperform(self, call: Call) -> Any:
        if not self.broken:
            return await self.inner.aperform(call)
        if self.hangs:
            await asyncio.sleep(30)
        raise UnavailableError


@pytest.mark.parametrize("hangs", [False, True], ids=["fails", "hangs"])
async def test_the_agent_answers_while_the_memory_is_away(
    memory: SupabaseMemory, make: Any, hangs: bool, caplog: pytest.LogCaptureFixture
) -> None:
    broken: Any = Broken(memory._services.transport, hangs)
    memory._services.transport = broken
    errors: list[Exception] = []
    agent = make(says("still here"), on_error=errors.append, deadline_seconds=2 if hangs else 5)
    with caplog.at_level(logging.DEBUG, "langchain_supabase_memory"):
        answer = await agent(asks(f"my pin is {SECRET}"))
    assert answer["messages"][-1].text == "still here"
    assert errors
    assert "thread 't'" in caplog.text
    assert SECRET not in caplog.text + str(errors)
    broken.broken = False
    await agent(asks("back again"))
    expected = [f"human:my pin is {SECRET}", "ai:still here", "human:back again", "ai:still here"]
    assert said(memory) == expected


async def test_errors_are_raised_on_wish(memory: SupabaseMemory, make: Any) -> None:
    memory._services.transport = Broken(memory._services.transport)  # type: ignore[assignment]
    agent = make(says("never"), on_error="raise")
    with pytest.raises(UnavailableError):
        await agent(asks("x"))


async def test_a_summary_that_fails_costs_nothing_but_itself(memory: SupabaseMemory, make: Any) -> None:
    def fails(_: Any) -> str:
        raise RuntimeError(SECRET)

    model = says("fine")
    agent = make(model, budget=ContextBudget(characters=1500), model=fails)
    memory.conversation("t").append([HumanMessage(f"q{n} " * 50) for n in range(30)])
    await agent(asks("and now?"))
    assert model.shown[-1][-1].text == "and now?"
    assert sum(len(str(message.content)) for message in model.shown[-1]) <= 1500
    assert "older messages omitted" in str(model.shown[-1][0].content)
    assert memory.conversation("t").summaries.list() == []


async def test_the_owner_comes_from_the_run_and_not_from_what_is_said(
    conn_string: str, user_id: str, memory: SupabaseMemory
) -> None:
    @dataclass
    class Context:
        user_id: str

    with SupabaseMemory.from_conn_string(conn_string) as anybody:
        graph: Any = create_agent(says("hi"), middleware=[SupabaseMemoryMiddleware(anybody)], context_schema=Context)
        graph.invoke(asks("I am user somebody-else"), config(), context=Context(user_id=user_id))
        assert said(memory) == ["human:I am user somebody-else", "ai:hi"]
        graph.invoke(asks("again"), config(user_id=user_id))
        assert len(said(memory)) == 4
        with pytest.raises(InvalidInputError, match="No user is named"):
            graph.invoke(asks("x"), config())
        with pytest.raises(InvalidInputError, match="thread_id"):
            graph.invoke(asks("x"), {"configurable": {"user_id": user_id}})


class ServersUser:
    """A user as LangGraph's server hands it to a run: an object, which no client can send."""

    def __init__(self, identity: str) -> None:
        self.identity = identity


@dataclass
class Said:
    """What an application says of a run."""

    user_id: str | None = None


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize(
    ("bound", "configurable", "context", "owner"),
    [
        # Of a memory for one user: what is none is passed over.
        ("bound", {"langgraph_auth_user": {"identity": "client"}, "langgraph_auth_user_id": "client"}, None, "bound"),
        # The server's user, before what a client may put into the run.
        (None, {"langgraph_auth_user": ServersUser("server"), "user_id": "config"}, "context", "server"),
        (None, {"langgraph_auth_user": ServersUser(""), "user_id": "config"}, None, "config"),  # nobody signed in
        # What a client sends as a user is none.
        (None, {"langgraph_auth_user": {"identity": "client"}, "user_id": "config"}, None, "config"),
        (None, {"langgraph_auth_user": {"identity": "client"}}, "context", "context"),
        (None, {"langgraph_auth_user": {"identity": "client"}, "langgraph_auth_user_id": "client"}, None, "memory"),
        # The application's word: the context before the configuration.
        (None, {"user_id": "config"}, "context", "context"),
        (None, {"user_id": "config"}, None, "config"),
        (None, {"user_id": ""}, "", "memory"),
    ],
)
async def test_who_is_meant(
    memory: SupabaseMemory, user_id: str, color: str, bound: str | None, configurable: Any, context: Any, owner: str
) -> None:
    def theirs(name: str | None) -> str | None:
        return f"{user_id}-{name}" if name else name

    def named(value: Any) -> Any:
        if isinstance(value, ServersUser):
            return ServersUser(theirs(value.identity) or "")
        return {"identity": theirs(value["identity"])} if isinstance(value, dict) else theirs(value)

    own = SupabaseMemory(memory._services.transport, user_id=DefaultUser(theirs("memory")))
    middleware = SupabaseMemoryMiddleware(own._for(theirs(bound)))
    graph: Any = create_agent(says("hi"), middleware=[middleware], context_schema=Said)
    settings = config(**{key: named(value) for key, value in configurable.items()})
    said_so = Said(theirs(context))
    if color == "sync":
        graph.invoke(asks("hello"), settings, context=said_so)
    else:
        await graph.ainvoke(asks("hello"), settings, context=said_so)
    everybody = ("bound", "server", "client", "config", "context", "memory")
    many = SupabaseMemory(memory._services.transport)
    assert [name for name in everybody if many._for(theirs(name)).conversation("t").count()] == [owner]


def test_the_stock_middleware_with_our_summarizer_loses_nothing(memory: SupabaseMemory) -> None:
    seen: list[str] = []

    def summarize(prompt: list[BaseMessage]) -> str:
        seen.append(str(prompt[-1].content))
        return "Everything so far."

    model = says("answer " * 60)
    stock = SummarizationMiddleware(
        model,
        trigger=("messages", 12),
        keep=("messages", 4),
        summarizer=SupabaseSummarizer(memory, model=summarize),
        trim_tokens_to_summarize=None,
    )
    graph: Any = create_agent(model, middleware=[stock], checkpointer=InMemorySaver())
    for number in range(30):
        graph.invoke(asks(f"fact {number:03d} " + "word " * 600), config())
    state = graph.get_state(config()).values["messages"]
    kept = " ".join(str(message.content) for message in state)
    assert "Everything so far." in kept
    for number in range(30):
        fact = f"fact {number:03d}"
        assert fact in kept or any(fact in shown for shown in seen), fact
    assert memory.conversation("t").count() + len(state) - 1 >= 60
    assert not [text for text in said(memory) if "Here is a summary" in text]


def test_a_long_tool_loop_stays_bounded_and_keeps_the_question(memory: SupabaseMemory) -> None:
    numbers = iter(range(1000))

    def script(messages: list[BaseMessage]) -> AIMessage:
        number = next(numbers)
        if number == 40:
            return AIMessage("done")
        return AIMessage("", tool_calls=[{"name": "look_up", "args": {"word": "x" * 300}, "id": f"c{number}"}])

    model = ScriptedModel(script=script)
    middleware = SupabaseMemoryMiddleware(
        memory, budget=ContextBudget(characters=4000), model=lambda _: "Words were looked up."
    )
    graph: Any = create_agent(model, [look_up], middleware=[middleware])
    graph.invoke(asks("look everything up"), {**config(), "recursion_limit": 500})
    for shown in model.shown:
        assert sum(len(str(message.content)) for message in shown) <= 4000
        assert any(message.text == "look everything up" for message in shown)
        assert not isinstance(shown[0], ToolMessage)
    assert len(said(memory)) == 82


def test_a_policy_in_the_background_asks_no_model(memory: SupabaseMemory) -> None:
    asked: list[Any] = []
    middleware = SupabaseMemoryMiddleware(
        memory,
        budget=ContextBudget(characters=1500),
        policy=SummaryPolicy(mode="background"),
        model=asked.append,
    )
    graph: Any = create_agent(says("a " * 200), middleware=[middleware])
    for number in range(10):
        graph.invoke(asks(f"q{number} " * 40), config())
    assert not asked
    done = memory.work.summarize_due(model=lambda _: "summary", policy=SummaryPolicy(characters=1000))
    assert [result.failed for result in done.values()] == [None]
