"""The chat history, alone and as the store of `RunnableWithMessageHistory`, against the real database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import ConfigurableFieldSpec, Runnable, RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

from langchain_supabase_memory import (
    ContextBudget,
    ExtractiveSummarizer,
    MemoryConfig,
    Retention,
    SummaryPolicy,
    SupabaseChatMessageHistory,
    SupabaseMemory,
)
from langchain_supabase_memory.errors import (
    ConfigurationError,
    InvalidInputError,
    OutboxError,
    SupabaseMemoryError,
    UnavailableError,
)
from langchain_supabase_memory.settings import RetryPolicy
from tests import provider_rules
from tests.conftest import Caller
from tests.counting import recorded_calls
from tests.memory_keywords import memory_keywords
from tests.services.postgres import Cluster

SECRET = "the user's secret words"


def echo() -> Runnable[Any, Any]:
    """A model of its own for each run: it answers with what it was asked."""

    def answer(value: Any) -> AIMessage:
        messages = value.to_messages() if hasattr(value, "to_messages") else value
        return AIMessage(f"heard {messages[-1].text}")

    return RunnableLambda(answer)


def prompted(model: Runnable[Any, Any] | None = None) -> Runnable[Any, Any]:
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])
    return prompt | (model or echo())


def with_history(memory: SupabaseMemory, runnable: Runnable[Any, Any], **keys: Any) -> Runnable[Any, Any]:
    return RunnableWithMessageHistory(runnable, partial(SupabaseChatMessageHistory, memory=memory), **keys)


KEYS = {"input_messages_key": "input", "history_messages_key": "history"}


def session(name: str) -> Any:
    return {"configurable": {"session_id": name}}


def stored(memory: SupabaseMemory, thread_id: str) -> list[str]:
    return [str(each.message.text) for each in memory.conversation(thread_id).read()]


async def test_all_six_methods_in_both_colors(caller: Caller, user_id: str) -> None:
    history = SupabaseChatMessageHistory("any string: ünï/codé", caller.service.for_user(user_id))
    assert isinstance(history, BaseChatMessageHistory)
    if caller.color == "sync":
        history.add_user_message("one")
        history.add_ai_message("two")
        history.add_message(HumanMessage("three"))
        history.add_messages([AIMessage("four")])
        messages = history.messages
        history.clear()
        after = history.messages
    else:
        await history.aadd_messages([HumanMessage("one"), AIMessage("two")])
        await history.aadd_messages([HumanMessage("three"), AIMessage("four")])
        messages = await history.aget_messages()
        await history.aclear()
        after = await history.aget_messages()
    assert [message.text for message in messages] == ["one", "two", "three", "four"]
    assert after == []


def test_repr_and_str_read_nothing_and_the_constructor_neither() -> None:
    memory = SupabaseMemory.from_conn_string("postgresql://x:secret@127.0.0.1:1/x", user_id="u")
    history = SupabaseChatMessageHistory("s", memory)
    for text in (repr(history), str(history), f"{history}", repr(memory)):
        assert "secret" not in text
    assert repr(history) == "SupabaseChatMessageHistory('s', user_id='u', agent_id='default')"


def test_bad_arguments_are_refused_at_once(memory: SupabaseMemory) -> None:
    with pytest.raises(InvalidInputError, match="thread_id"):
        SupabaseChatMessageHistory("", memory)
    with pytest.raises(InvalidInputError, match="No user is named"):
        SupabaseChatMessageHistory("s", SupabaseMemory(memory._services.transport))
    with pytest.raises(ConfigurationError, match="ContextBudget"):
        SupabaseChatMessageHistory("s", memory, budget=4000)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="on_error"):
        SupabaseChatMessageHistory("s", memory, on_error="ignore")  # type: ignore[arg-type]


def test_an_instance_serves_one_snapshot_until_it_writes(memory: SupabaseMemory) -> None:
    first, second = (SupabaseChatMessageHistory("s", memory) for _ in range(2))
    first.add_messages([HumanMessage("a")])
    assert len(first.messages) == 1
    second.add_messages([HumanMessage("b")])
    assert len(first.messages) == 1
    first.add_messages([HumanMessage("c")])
    assert [message.text for message in first.messages] == ["a", "b", "c"]


def test_what_is_handed_out_can_be_changed_without_harm(memory: SupabaseMemory) -> None:
    history = SupabaseChatMessageHistory("s", memory)
    history.add_messages([HumanMessage("a", additional_kwargs={"list": [1]})])
    served = history.messages
    served[0].content = "changed"
    served[0].additional_kwargs["list"].append(2)
    served.clear()
    assert history.messages[0].content == "a"
    assert history.messages[0].additional_kwargs == {"list": [1]}


def test_a_repeated_history_is_not_stored_twice(memory: SupabaseMemory) -> None:
    history = SupabaseChatMessageHistory("s", memory)
    turn = [HumanMessage("q"), AIMessage("a")]
    history.add_messages(turn)
    history.add_messages([*history.messages, HumanMessage("q2"), AIMessage("a2")])
    assert stored(memory, "s") == ["q", "a", "q2", "a2"]


async def run_each_way(runnable: Runnable[Any, Any], make: Callable[[str], Any], config: Any) -> list[Any]:
    return [
        runnable.invoke(make("one"), config),
        await runnable.ainvoke(make("two"), config),
        list(runnable.stream(make("three"), config)),
        [chunk async for chunk in runnable.astream(make("four"), config)],
        runnable.batch([make("five")], [config]),
    ]


@pytest.mark.parametrize("keyed", [True, False])
async def test_every_way_to_run_stores_every_turn_once_and_in_order(memory: SupabaseMemory, keyed: bool) -> None:
    if keyed:
        await run_each_way(with_history(memory, prompted(), **KEYS), lambda text: {"input": text}, session("s"))
    else:
        await run_each_way(with_history(memory, echo()), lambda text: [HumanMessage(text)], session("s"))
    spoken = ["one", "two", "three", "four", "five"]
    assert stored(memory, "s") == [text for said in spoken for text in (said, f"heard {said}")]


def test_a_streamed_turn_is_stored_as_a_message(memory: SupabaseMemory) -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("streamed in several pieces")]))
    pieces = list(with_history(memory, prompted(model), **KEYS).stream({"input": "go"}, session("s")))
    assert len(pieces) > 3
    assert all(isinstance(piece, AIMessageChunk) for piece in pieces)
    messages = SupabaseChatMessageHistory("s", memory).messages
    assert [type(message) for message in messages] == [HumanMessage, AIMessage]
    assert messages[1].content == "streamed in several pieces"


async def test_of_a_stopped_answer_is_stored_what_the_page_says(memory: SupabaseMemory) -> None:
    def chat() -> Runnable[Any, Any]:
        model = GenericFakeChatModel(messages=iter([AIMessage("It is the thermocouple")]))
        return with_history(memory, prompted(model), input_messages_key="input", history_messages_key="history")

    for pieces, kept in ((1, []), (3, ["What is E-47?", "It "])):
        closed = chat().stream({"input": "What is E-47?"}, session(f"closed {pieces}"))
        for _ in range(pieces):
            next(closed)
        closed.close()  # type: ignore[attr-defined]
        assert stored(memory, f"closed {pieces}") == kept

    left = chat().astream({"input": "What is E-47?"}, session("left"))
    await anext(left)
    await left.aclose()  # type: ignore[attr-defined]
    assert stored(memory, "left") == []


def test_several_configuration_keys(memory: SupabaseMemory) -> None:
    of_many = SupabaseMemory(memory._services.transport)

    def history(user_id: str, thread_id: str) -> SupabaseChatMessageHistory:
        return SupabaseChatMessageHistory(thread_id, of_many.for_user(user_id))

    specs = [
        ConfigurableFieldSpec(id=name, annotation=str, name=name, description="", default="", is_shared=True)
        for name in ("user_id", "thread_id")
    ]
    runnable = RunnableWithMessageHistory(prompted(), history, history_factory_config=specs, **KEYS)
    for user in ("several-a", "several-b"):
        runnable.invoke({"input": user}, {"configurable": {"user_id": user, "thread_id": "same"}})
    assert [m.text for m in history("several-a", "same").messages] == ["several-a", "heard several-a"]


async def test_parallel_turns_of_one_session_lose_nothing(memory: SupabaseMemory) -> None:
    runnable = with_history(memory, prompted(), **KEYS)
    await asyncio.gather(*(runnable.ainvoke({"input": str(n)}, session("s")) for n in range(5)))
    runnable.batch([{"input": str(n)} for n in range(5, 10)], [session("s")] * 5)
    texts = stored(memory, "s")
    assert sorted(texts) == sorted([str(n) for n in range(10)] + [f"heard {n}" for n in range(10)])
    for number in range(10):
        assert texts.index(f"heard {number}") == texts.index(str(number)) + 1


async def test_parallel_turns_without_a_history_key_lose_nothing(memory: SupabaseMemory) -> None:
    SupabaseChatMessageHistory("s", memory).add_messages([HumanMessage("old"), AIMessage("older")])
    runnable = with_history(memory, echo())
    await asyncio.gather(*(runnable.ainvoke([HumanMessage(str(n))], session("s")) for n in range(5)))
    assert len(stored(memory, "s")) == 12


def test_an_agent_that_returns_the_whole_list_doubles_nothing(memory: SupabaseMemory) -> None:
    def agent(state: dict[str, list[BaseMessage]]) -> dict[str, list[BaseMessage]]:
        messages = state["messages"]
        return {"messages": [*messages, AIMessage(f"heard {messages[-1].text}")]}

    runnable = with_history(
        memory, RunnableLambda(agent), input_messages_key="messages", output_messages_key="messages"
    )
    for text in ("a", "b", "c"):
        runnable.invoke({"messages": [HumanMessage(text, id=text)]}, session("s"))
    assert stored(memory, "s") == ["a", "heard a", "b", "heard b", "c", "heard c"]


# What is served stays within a budget.

TOKENS = 600
SMALL = ContextBudget(tokens=TOKENS, token_counter=count_tokens_approximately)
RULES = [provider_rules.openai, provider_rules.anthropic, provider_rules.gemini]


@pytest.fixture(params=["sync", "async"])
def color(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def served(history: SupabaseChatMessageHistory, color: str) -> list[BaseMessage]:
    return history.messages if color == "sync" else await history.aget_messages()


def said(count: int) -> list[BaseMessage]:
    """Turns, each third with a tool."""
    messages: list[BaseMessage] = []
    for n in range(count):
        messages.append(HumanMessage(f"Question {n}: how long does kiln {n} take to fire porcelain at cone 6?"))
        if n % 3 == 0:
            call = {"name": "look", "args": {"kiln": n}, "id": f"call-{n}"}
            messages += [AIMessage("", tool_calls=[call]), ToolMessage(f"{n} hours", tool_call_id=f"call-{n}")]
        messages.append(AIMessage(f"Answer {n}: kiln {n} takes {n} hours, says the manual.", id=f"answer-{n}"))
    return messages


def payloads(memory: SupabaseMemory, thread_id: str = "s") -> list[Any]:
    return [each.message.model_dump() for each in memory.conversation(thread_id).read()]


def violations(messages: list[BaseMessage]) -> list[str]:
    return [found for rule in RULES for found in rule([*messages, HumanMessage("And now?")])]


@pytest.fixture
def writing(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    """A memory with a summary model and a small budget."""
    settings: Any = {"model": ExtractiveSummarizer(), "budget": SMALL}
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, retry=QUICK, **memory_keywords(settings)
    ) as memory:
        yield memory


@pytest.fixture
def cutting(writing: SupabaseMemory) -> SupabaseMemory:
    """The same without summaries before an answer, so that what is too long is cut."""
    settings: Any = {"budget": SMALL, "policy": SummaryPolicy(mode="background")}
    return SupabaseMemory(writing._services.transport, user_id=writing.user_id, **memory_keywords(settings))


async def test_a_long_history_stays_within_the_memorys_budget_valid_and_whole(
    writing: SupabaseMemory, color: str
) -> None:
    turns = said(100)
    writing.conversation("s").append(turns)
    messages = await served(SupabaseChatMessageHistory("s", writing), color)
    assert count_tokens_approximately(messages) <= TOKENS
    assert violations(messages) == []
    assert messages[0].additional_kwargs["lc_source"] == "supabase_memory"
    assert "<summary" in messages[0].text
    assert messages[-1].text == turns[-1].text
    coverage = writing.conversation("s").coverage()
    assert coverage.complete, coverage  # what is not shown was summarized before it was served


async def test_a_read_is_one_round_trip(caller: Caller, user_id: str) -> None:
    caller.service.for_user(user_id).conversation("s").append(said(9))
    called = recorded_calls(caller.service)
    history = SupabaseChatMessageHistory("s", caller.service.for_user(user_id))
    assert len(await served(history, caller.color)) == 24
    assert len(await served(history, caller.color)) == 24
    assert called == ["memory_context"]


async def test_a_budget_of_its_own_and_none(writing: SupabaseMemory, color: str) -> None:
    turns = said(41)
    writing.conversation("s").append(turns)
    newest = SupabaseChatMessageHistory("s", writing, budget=ContextBudget(max_messages=2))
    assert [m.text for m in await served(newest, color) if "lc_source" not in m.additional_kwargs] == [
        m.text for m in turns[-2:]
    ]
    whole = await served(SupabaseChatMessageHistory("s", writing, budget=None), color)
    assert [message.model_dump() for message in whole] == [message.model_dump() for message in turns]


async def test_its_own_retention_counts_whatever_the_budget(memory: SupabaseMemory, color: str) -> None:
    memory.conversation("s").append(said(9))
    history = SupabaseChatMessageHistory("s", memory, retention=Retention(max_messages=4))
    assert len(await served(history, color)) <= 4
    assert len(stored(memory, "s")) > 4, "a read writes nothing"
    history.add_message(HumanMessage("And now?"))
    assert len(stored(memory, "s")) == 4


async def test_a_summary_that_fails_costs_the_summary_alone(conn_string: str, user_id: str, color: str) -> None:
    def broken(_: Any) -> str:
        raise RuntimeError

    async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=broken, budget=SMALL) as memory:
        memory.conversation("s").append(said(60))
        messages = await served(SupabaseChatMessageHistory("s", memory, on_error="raise"), color)
        assert "older messages omitted" in messages[0].text
        assert messages[-1].text.startswith("Answer 59")
        assert count_tokens_approximately(messages) <= TOKENS


async def test_in_the_background_a_read_asks_no_model(conn_string: str, user_id: str, color: str) -> None:
    asked: list[Any] = []
    settings: Any = {"model": asked.append, "budget": SMALL, "policy": SummaryPolicy(mode="background")}
    async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, **memory_keywords(settings)) as memory:
        memory.conversation("s").append(said(60))
        assert "omitted" in (await served(SupabaseChatMessageHistory("s", memory), color))[0].text
        assert asked == []


@pytest.mark.parametrize("keyed", [True, False])
async def test_fifty_turns_are_stored_once_each_and_the_prompt_stays_bounded(
    writing: SupabaseMemory, color: str, keyed: bool
) -> None:
    prompts: list[list[BaseMessage]] = []

    def answer(value: Any) -> AIMessage:
        messages = value.to_messages() if keyed else value
        prompts.append(messages)
        return AIMessage(f"heard {messages[-1].text}")

    runnable = RunnableLambda(answer)
    chat = with_history(writing, prompted(runnable), **KEYS) if keyed else with_history(writing, runnable)
    asked = [f"{n}: my kiln number {n} has fired {n * 7} bowls, what about the next one?" for n in range(50)]
    for text in asked:
        given = {"input": text} if keyed else [HumanMessage(text)]
        _ = chat.invoke(given, session("s")) if color == "sync" else await chat.ainvoke(given, session("s"))
    assert stored(writing, "s") == [each for text in asked for each in (text, f"heard {text}")]
    assert all("lc_source" not in payload["additional_kwargs"] for payload in payloads(writing))
    assert [prompt[-1].text for prompt in prompts] == asked
    assert max(count_tokens_approximately(prompt[:-1]) for prompt in prompts) <= TOKENS
    assert [found for prompt in prompts for rule in RULES for found in rule(prompt)] == []
    assert "<summary" in prompts[-1][0].text


def awkward() -> list[BaseMessage]:
    """A history of which a pack shows copies: cut, joined, repaired, in another role, and without a response's id."""
    calls: list[Any] = [{"name": "look", "args": {}, "id": each} for each in ("1", "2")]
    return [
        HumanMessage("one", id="h1", additional_kwargs={"kept": {"by": "the application"}}),
        AIMessage("", id="a1", tool_calls=calls[:1]),
        ToolMessage("word " * 700, tool_call_id="1", id="t1"),
        AIMessage("found", id="a2", response_metadata={"id": "resp_1"}),
        SystemMessage("be brief", id="s1"),
        HumanMessage("two", id="h2"),
        AIMessage("Let me look.", id="a3"),
        AIMessage("", id="a4", tool_calls=calls[1:]),
        ToolMessage("done", tool_call_id="2", id="t2"),
    ]


@pytest.mark.parametrize("is_away", [False, True])
async def test_what_was_served_may_come_back_and_changes_nothing_stored(
    cutting: SupabaseMemory, away: Callable[[bool], None], color: str, is_away: bool
) -> None:
    history = SupabaseChatMessageHistory("s", cutting)
    history.add_messages(awkward())
    before = payloads(cutting)
    messages = await served(history, color)
    shown = {message.id: message.model_dump() for message in messages}
    originals = {message["id"]: message for message in before}
    copies = {each for each in shown.keys() & originals.keys() if shown[each] != originals[each]}
    assert copies == {"t1", "a2", "s1", "a4"}
    away(is_away)
    back = [*messages, HumanMessage("three", id="h3")]
    if color == "sync":
        history.add_messages(back)
    else:
        await history.aadd_messages(back)
    assert history.pending == (1 if is_away else 0)
    away(False)
    assert cutting.flush() == 0
    assert payloads(cutting) == [*before, HumanMessage("three", id="h3").model_dump()]


async def test_nor_does_what_another_instance_served(cutting: SupabaseMemory, color: str) -> None:
    SupabaseChatMessageHistory("s", cutting).add_messages(awkward())
    before = payloads(cutting)
    messages = await served(SupabaseChatMessageHistory("s", cutting), color)
    if color == "sync":
        SupabaseChatMessageHistory("s", cutting).add_messages(messages)
    else:
        await SupabaseChatMessageHistory("s", cutting).aadd_messages(messages)
    assert payloads(cutting) == before


def test_an_agent_that_returns_a_bounded_list_stores_its_answers_alone(writing: SupabaseMemory) -> None:
    def agent(state: dict[str, list[BaseMessage]]) -> dict[str, list[BaseMessage]]:
        return {"messages": [*state["messages"], AIMessage(f"heard {state['messages'][-1].text}")]}

    chat = with_history(writing, RunnableLambda(agent), input_messages_key="messages", output_messages_key="messages")
    asked = [f"{n} " + "word " * (2000 if n % 4 == 0 else 20) for n in range(12)]
    for n, text in enumerate(asked):
        chat.invoke({"messages": [HumanMessage(text, id=f"h{n}")]}, session("s"))
    assert stored(writing, "s") == [each for text in asked for each in (text, f"heard {text}")]


async def test_what_waits_is_served_within_the_budget_and_stays_the_same_until_a_write(
    writing: SupabaseMemory, away: Callable[[bool], None], color: str
) -> None:
    away(True)
    SupabaseChatMessageHistory("s", writing).add_messages(said(60))
    history = SupabaseChatMessageHistory("s", writing)
    messages = await served(history, color)
    assert isinstance(history.last_error, UnavailableError)
    assert messages[-1].text.startswith("Answer 59")
    assert count_tokens_approximately(messages) <= TOKENS
    SupabaseChatMessageHistory("s", writing).add_messages([HumanMessage("by another run")])
    assert await served(history, color) == messages


QUICK = RetryPolicy(attempts=2, wait_seconds=0.01)


@pytest.fixture
def away(cluster: Cluster, conn_string: str) -> Iterator[Callable[[bool], None]]:
    """Switches the database away and back, for new connections and old: `away(True)`, `away(False)`."""
    database = conn_string.rsplit("/", 1)[1]

    def switch(is_away: bool) -> None:
        cluster.execute(f"alter database {database} allow_connections {str(not is_away).lower()}", superuser=True)
        if is_away:
            cluster.execute(
                f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{database}'"
                " and usename = 'postgres'",
                superuser=True,
            )

    yield switch
    switch(False)


def test_a_failed_write_is_kept_in_order_logged_and_shown(
    conn_string: str, user_id: str, away: Callable[[bool], None], caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[SupabaseMemoryError] = []
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, retry=QUICK) as memory:
        history = SupabaseChatMessageHistory("s", memory, on_error=seen.append)
        history.add_messages([HumanMessage("before")])
        away(True)
        with caplog.at_level(logging.DEBUG, "langchain_supabase_memory"):
            history.add_messages([HumanMessage(SECRET), AIMessage("lost?")])
            # A new instance, as RunnableWithMessageHistory makes one for each run.
            again = SupabaseChatMessageHistory("s", memory, on_error=seen.append)
            again.add_messages([HumanMessage("second")])
        assert isinstance(history.last_error, UnavailableError)
        assert len(seen) == 2
        assert again.pending == 3
        errors = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert len(errors) == 2
        assert user_id in errors[0].getMessage()
        assert "'s'" in errors[0].getMessage()
        assert SECRET not in caplog.text
        away(False)
        third = SupabaseChatMessageHistory("s", memory)
        third.add_messages([HumanMessage("third")])
        assert third.pending == 0
        assert third.last_error is None
        assert stored(memory, "s") == ["before", SECRET, "lost?", "second", "third"]


def test_a_run_goes_on_when_the_write_fails_and_flush_catches_up(
    conn_string: str, user_id: str, away: Callable[[bool], None]
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, retry=QUICK) as memory:

        def answer(_: Any) -> AIMessage:
            away(True)
            return AIMessage("answered")

        result = with_history(memory, prompted(RunnableLambda(answer)), **KEYS).invoke({"input": "q"}, session("s"))
        assert result.text == "answered"
        history = SupabaseChatMessageHistory("s", memory)
        assert history.pending == 2
        with pytest.raises(UnavailableError):
            memory.flush()
        away(False)
        assert [message.text for message in history.messages] == ["q", "answered"]  # what waits is read as well
        assert memory.flush() == 0
        assert stored(memory, "s") == ["q", "answered"]


def test_on_error_raise_raises_and_keeps(conn_string: str, user_id: str, away: Callable[[bool], None]) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, retry=QUICK) as memory:
        away(True)
        history = SupabaseChatMessageHistory("s", memory, on_error="raise")
        with pytest.raises(UnavailableError):
            history.add_messages([HumanMessage("x")])
        assert history.pending == 1


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_what_waits_is_let_go_of_only_when_the_database_has_forgotten(
    conn_string: str, user_id: str, away: Callable[[bool], None], color: str
) -> None:
    async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, retry=QUICK) as memory:
        history = SupabaseChatMessageHistory("s", memory)

        async def clear() -> None:
            history.clear() if color == "sync" else await history.aclear()

        history.add_messages([HumanMessage("stored")])
        away(True)
        history.add_messages([HumanMessage("waits")])
        with pytest.raises(UnavailableError):
            await clear()
        assert history.pending == 1
        away(False)
        assert [message.text for message in SupabaseChatMessageHistory("s", memory).messages] == ["stored", "waits"]
        await clear()
        assert history.pending == 0
        assert stored(memory, "s") == []


def test_a_full_outbox_says_so_and_drops_nothing_it_holds(
    conn_string: str, user_id: str, away: Callable[[bool], None]
) -> None:
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, retry=QUICK, config=MemoryConfig(outbox_limit=2)
    ) as memory:
        away(True)
        history = SupabaseChatMessageHistory("s", memory)
        history.add_messages([HumanMessage("1"), HumanMessage("2")])
        with pytest.raises(OutboxError, match="flush"):
            history.add_messages([HumanMessage("3")])
        assert history.pending == 2
        away(False)
        memory.flush()
        assert stored(memory, "s") == ["1", "2"]


def test_what_waits_is_never_stored_as_another_users(
    conn_string: str, user_id: str, away: Callable[[bool], None]
) -> None:
    signed_in = [f"{user_id}-maya"]
    with SupabaseMemory.from_conn_string(conn_string, retry=QUICK) as server:
        anyones = server.for_token(lambda: {"sub": signed_in[0], "role": "authenticated"})
        away(True)
        with pytest.raises(OutboxError, match="nobody is named") as refused:
            SupabaseChatMessageHistory("s", anyones).add_messages([HumanMessage("maya's canary")])
        assert "canary" not in f"{refused.value!r}"
        named = SupabaseChatMessageHistory("s", anyones.for_user(signed_in[0]))
        named.add_messages([HumanMessage("maya's own")])
        assert (named.pending, len(anyones._services.outbox)) == (1, 1)
        away(False)
        # Another is signed in now: what waits for Maya is not theirs.
        maya, signed_in[0] = signed_in[0], f"{user_id}-noor"
        SupabaseChatMessageHistory("s", anyones).add_messages([HumanMessage("noor's")])
        assert stored(anyones, "s") == ["noor's"]
        signed_in[0] = maya
        anyones.flush()
        assert stored(anyones, "s") == ["maya's own"]


def test_what_is_no_message_is_raised_and_never_kept(memory: SupabaseMemory) -> None:
    history = SupabaseChatMessageHistory("s", memory)
    with pytest.raises(InvalidInputError):
        history.add_messages([b"bytes"])  # type: ignore[list-item]
    assert history.pending == 0


async def test_sync_calls_work_inside_a_running_loop(memory: SupabaseMemory) -> None:
    """As in Jupyter."""
    runnable = with_history(memory, prompted(), **KEYS)
    runnable.invoke({"input": "q"}, session("s"))
    assert len(SupabaseChatMessageHistory("s", memory).messages) == 2
