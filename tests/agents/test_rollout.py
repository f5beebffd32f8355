"""A rollout: the old and the new context side by side, gradual cut-over, rollback at the next call."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from langchain_supabase_memory import (
    ContextBudget,
    LoadContextNode,
    SummaryPolicy,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo
from langchain_supabase_memory.agents.run.rollout_prompt import COMPARISON
from langchain_supabase_memory.context.recent_messages import recent_messages
from langchain_supabase_memory.deadline import seconds_left
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import (
    ConfigurationError,
    InvalidInputError,
    PermissionDeniedError,
    UnavailableError,
)
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.blocks import NO_RESULT
from langchain_supabase_memory.operations.rollout.stages import STAGES, is_in_share, stage_of
from langchain_supabase_memory.telemetry import Metrics
from langchain_supabase_memory.types import Comparison, ConversationKey, Rollout, RolloutReport
from tests.chat_models import ScriptedModel, asks, calls, look_up, says
from tests.conftest import Caller
from tests.context.test_context_fit import as_request, conversations, turns_under_way, violations
from tests.services.data_api import token

SECRET = "canary-9153"


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    """A memory with an agent of its own: stages are set for agents, and tests keep apart by them."""
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, agent_id=f"agent-of-{user_id}", model=lambda _: f"Summary {SECRET}."
    ) as memory:
        yield memory


def config(memory: SupabaseMemory, thread_id: str = "t") -> Any:
    return {"configurable": {"thread_id": thread_id, "agent_id": memory.agent_id}}


@dataclass
class Agent:
    """An agent in one color, over one thread."""

    graph: Any
    color: str
    settings: Any
    memory: SupabaseMemory

    async def __call__(self, given: Any, **named: Any) -> Any:
        if self.color == "sync":
            return self.graph.invoke(given, self.settings, **named)
        return await self.graph.ainvoke(given, self.settings, **named)


@pytest.fixture(params=["sync", "async"])
def make(request: pytest.FixtureRequest, memory: SupabaseMemory) -> Callable[..., Agent]:
    def make(
        chat: ScriptedModel, rollout: Rollout | None, *, saves: bool = True, thread_id: str = "t", **named: Any
    ) -> Agent:
        middleware = SupabaseMemoryMiddleware(memory, rollout=rollout, agent_id=memory.agent_id, **named)
        saver = InMemorySaver() if saves else None
        graph = create_agent(chat, [look_up], middleware=[middleware], checkpointer=saver)
        return Agent(graph, request.param, config(memory, thread_id), memory)

    return make


def texts(messages: list[BaseMessage]) -> list[str]:
    return [str(message.text).split(" word")[0] for message in messages]


def counting() -> ScriptedModel:
    """A model that numbers its answers, and looks something up at every third question."""
    answers = iter(range(10_000))

    def script(shown: list[BaseMessage]) -> AIMessage | str:
        number = next(answers)
        if number % 4 == 2 and isinstance(shown[-1], HumanMessage):
            return AIMessage("", tool_calls=[{"name": "look_up", "args": {"word": f"w{number}"}, "id": f"c{number}"}])
        return f"answer {number} " + "word " * 20

    return ScriptedModel(script=script)


def said(stage: Any) -> Callable[[ConversationKey], Any]:
    """A flag that always says the same."""
    return lambda _: stage


async def converse(agent: Agent, turns: int) -> None:
    for number in range(turns):
        await agent(asks(f"question {number} " + "word " * 20))
        await agent.memory.aflush()  # a person reads the answer before they ask again


class Watched:
    """A transport that counts calls, and fails or hangs where it is told to."""

    acts_as_user = False
    identity_is_callback = False
    endpoint = EndpointInfo("postgres", "a fake one")

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.functions: list[str] = []
        self.broken: set[str] = set()
        self.hanging: set[str] = set()
        self.ended = 0
        """How many calls that hang have come to their end."""

    def _noted(self, call: Call) -> bool:
        self.functions.append(call.function)
        if call.function in self.broken:
            raise UnavailableError
        return call.function in self.hanging

    def perform(self, call: Call) -> Any:
        if self._noted(call):
            time.sleep(seconds_left(20))  # the real one's waits end with the deadline, too
            seconds_left(20)
            self.ended += 1
        return self.inner.perform(call)

    async def aperform(self, call: Call) -> Any:
        if self._noted(call):
            await asyncio.sleep(20)
            self.ended += 1
        return await self.inner.aperform(call)

    def close(self) -> None:
        self.inner.close()


@pytest.fixture
def watched(memory: SupabaseMemory) -> Watched:
    transport = Watched(memory._services.transport)
    memory._services.transport = transport  # type: ignore[assignment]
    return transport


# The old context.


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(conversations(), st.one_of(st.just([]), turns_under_way()), st.integers(1, 60))
def test_the_last_messages_are_what_every_provider_accepts(
    history: list[BaseMessage], current: list[BaseMessage], most: int
) -> None:
    shown = recent_messages(history, current, most)
    assert violations(as_request(shown)) == {}
    own = {message.id for message in current}
    before = [message for message in shown if message.id not in own and content.source(message) != content.OURS]
    turn = [message for message in shown if message.id in own]
    if before:
        assert len(before) + len(turn) <= most
    order = iter([message.id for message in (*history, *current)])
    assert all(message.id in order for message in shown if content.source(message) != content.OURS)  # in order
    said = [message for message in current if isinstance(message, HumanMessage) and not content.is_empty(message)]
    assert {message.id for message in said} <= {message.id for message in shown}
    assert recent_messages(history, current, most) == shown


def test_the_last_messages_are_exactly_those_that_were_said() -> None:
    history: list[BaseMessage] = []
    for number in range(6):
        history += [
            HumanMessage(f"q{number}"),
            AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": f"c{number}"}]),
            ToolMessage("r", tool_call_id=f"c{number}"),
            AIMessage(f"a{number}"),
        ]
    current = [HumanMessage("now")]
    assert recent_messages(history, current, 100) == [*history, *current]
    assert recent_messages(history, current, 9) == [*history[-8:], *current]
    # A turn that does not fit whole is left out, so that the rest begins with a user's message.
    assert recent_messages(history, current, 8) == [*history[-4:], *current]
    assert recent_messages(history, current, 1) == current
    long_turn = [
        *current,
        AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c9"}]),
        ToolMessage("r", tool_call_id="c9"),
    ]
    assert recent_messages(history, long_turn, 2) == long_turn
    began = recent_messages([AIMessage("Welcome!")], current, 5)
    assert [message.text for message in began[1:]] == ["Welcome!", "now"]
    assert content.source(began[0]) == content.OURS
    assert NO_RESULT in str(recent_messages([*history[:2], HumanMessage("x")], current, 9))


# The stages, as the model sees them.


async def test_off_gives_the_last_messages_and_reads_no_pack(
    memory: SupabaseMemory, make: Any, watched: Watched
) -> None:
    model = counting()
    agent = make(model, Rollout("off", flag=lambda _: "off", last_messages=6))
    await converse(agent, 8)
    state = agent.graph.get_state(agent.settings).values["messages"]
    assert texts(model.shown[0]) == ["question 0"]
    last = model.shown[-1]
    assert len(last) <= 6
    ids = [message.id for message in last]
    assert ids == [message.id for message in state][-len(ids) - 1 : -1]
    assert isinstance(last[0], HumanMessage)
    assert not [name for name in watched.functions if name in ("memory_context", "memory_compare", "memory_rollout")]
    assert "memory_append" in watched.functions
    assert SECRET not in str(model.shown)


async def test_parallel_sends_what_off_sends_and_records_both(memory: SupabaseMemory, make: Any) -> None:
    shown = {}
    for stage in ("off", "parallel"):
        model = counting()
        agent = make(
            model, Rollout(flag=said(stage), last_messages=8), thread_id=stage,
            budget=ContextBudget(characters=800), model=lambda _: f"Summary {SECRET}.", recall=None,
        )  # fmt: skip
        await converse(agent, 10)
        shown[stage] = [[(each.type, each.content, getattr(each, "tool_calls", None)) for each in seen]
                        for seen in model.shown]  # fmt: skip
    assert shown["parallel"] == shown["off"]
    assert SECRET not in str(shown["parallel"])
    assert memory.rollout.comparisons("off") == []
    found = memory.rollout.comparisons("parallel")
    assert len(found) == len(shown["parallel"])
    last = found[-1]
    assert (last.stage, last.error, last.thread_id, last.agent_id) == ("parallel", None, "parallel", memory.agent_id)
    assert last.old_messages == len(shown["parallel"][-1])
    assert last.old_characters == sum(map(content.characters, model.shown[-1]))
    assert last.old_tokens == sum(map(content.tokens, model.shown[-1]))
    assert last.new_ms is not None
    assert last.new_ms > 0
    assert last.only_old is not None
    assert last.shared is not None
    assert last.shared + last.only_old == last.old_messages
    # What only the old context has, a summary covers: nothing was omitted.
    assert (last.covered_by_summary, last.omitted) == (last.only_old, 0)
    assert any(each.only_old and each.covered_by_summary for each in found)
    assert len(memory.conversation("parallel").summaries.list()) >= 1


@pytest.mark.parametrize("stage", [25, 15, 10, 5])
async def test_a_cut_over_shows_at_most_so_many_and_summarizing_keeps_up(
    memory: SupabaseMemory, make: Any, stage: Any
) -> None:
    model = ScriptedModel(script=lambda _: "short answer")
    agent = make(model, Rollout(stage), budget=ContextBudget(characters=50_000))
    conversation = memory.conversation("t")
    conversation.append(
        [each for n in range(20) for each in (HumanMessage(f"question {n} of then"), AIMessage(f"answer {n} to it"))],
        metadata={"via": "elsewhere"},
    )
    for number in range(3):
        await agent(asks(f"question {number}"))
        await memory.aflush()
    for shown in model.shown:
        said = [message for message in shown if content.is_conversation(message)]
        assert len(said) - 1 <= stage  # the question itself comes beside them
        assert SECRET in str(shown[0].content)
    budget = ContextBudget(characters=50_000, max_messages=stage)
    # The last answer was stored since; what it pushed out is said to be omitted until the next pack summarizes it.
    assert not conversation.context(budget=budget).omitted
    assert conversation.coverage(budget=budget).complete
    found = memory.rollout.comparisons(conversation._key.thread_id)
    assert [each.stage for each in found] == [str(stage)] * 3
    assert found[-1].new_messages == len(model.shown[-1])
    assert memory.rollout.report(agent_id=memory.agent_id).stages[0].failures == 0


@pytest.mark.parametrize(
    "keep", [{"characters": 9000, "keep_characters": 9000}, {"tokens": 5000}, {"keep_messages": 30}]
)
def test_what_max_messages_leaves_out_is_summarized_whatever_the_policy_says(
    memory: SupabaseMemory, keep: dict[str, int]
) -> None:
    budget = ContextBudget(characters=40_000, max_messages=5)
    memory.conversation("t").append([HumanMessage(f"question {n} of the thirty that there are") for n in range(30)])
    pack = memory.conversation("t").context(budget=budget, policy=SummaryPolicy(**keep))  # type: ignore[arg-type]
    assert pack.omitted == []
    assert pack.summary is not None
    within = SummaryPolicy(**keep).for_budget(budget)  # type: ignore[arg-type]
    assert within.messages == 5
    assert within.keep_messages is not None
    assert within.keep_messages <= 5
    assert within.for_budget(budget) == within
    without = SummaryPolicy(messages=50).for_budget(ContextBudget())
    assert (without.messages, without.keep_messages) == (50, 25)


async def test_on_is_what_an_agent_without_a_rollout_gets(memory: SupabaseMemory, make: Any) -> None:
    shown = {}
    for name, rollout in (("on", Rollout(flag=lambda _: "on")), ("none", None)):
        model = counting()
        await converse(make(model, rollout, thread_id=name, budget=ContextBudget(characters=1500)), 8)
        shown[name] = [[(each.type, each.content) for each in seen] for seen in model.shown]
    assert shown["on"] == shown["none"]
    assert SECRET in str(shown["on"])
    assert memory.rollout.comparisons("on") == []


async def test_no_rollout_costs_no_call(memory: SupabaseMemory, make: Any, watched: Watched) -> None:
    await converse(make(says("yes"), None), 2)
    assert not [name for name in watched.functions if "rollout" in name or "compar" in name]


# What says the stage.


@pytest.mark.both_colors("a flag of the other color is called differently")
@pytest.mark.parametrize("kind", ["sync flag", "async flag"])
async def test_a_flag_is_asked_anew_at_every_call(memory: SupabaseMemory, make: Any, kind: str) -> None:
    stages: list[Any] = ["off"]
    asked: list[ConversationKey] = []

    def flag(key: ConversationKey) -> Any:
        asked.append(key)
        return stages[0]

    async def aflag(key: ConversationKey) -> Any:
        await asyncio.sleep(0)
        return flag(key)

    model = says("fine " * 100)
    agent = make(model, Rollout(flag=flag if kind == "sync flag" else aflag, last_messages=3),
                 budget=ContextBudget(characters=2000))  # fmt: skip
    for stages[0] in ("off", "off", "off", "5", "OFF", "parallel", 10, "on", "off"):
        await agent(asks("go on " * 40))
        has_summary = SECRET in str(model.shown[-1])
        assert has_summary == (stages[0] in ("5", 10, "on")), stages
    assert asked[0] == ConversationKey("t", memory.user_id, memory.agent_id)
    assert len(asked) == 9
    assert {each.stage for each in memory.rollout.comparisons("t")} == {"5", "parallel", "10"}


@pytest.mark.parametrize("trouble", ["raises", "nonsense", "none", "true", "hangs"])
async def test_a_flag_in_trouble_leaves_the_last_stage_and_is_logged(
    memory: SupabaseMemory, make: Any, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    stages: list[Any] = []
    ended: list[str] = []

    def flag(_: ConversationKey) -> Any:
        if stages[0] == "raises":
            raise RuntimeError(SECRET)
        if stages[0] == "hangs":
            time.sleep(20)
            ended.append("hangs")
        return {"nonsense": SECRET, "none": None, "true": True}.get(stages[0], stages[0])

    memory._services.metrics = Metrics()
    model = says("fine " * 100)
    agent = make(model, Rollout("on", flag=flag, last_messages=3), budget=ContextBudget(characters=2000),
                 deadline_seconds=0.5)  # fmt: skip
    memory.conversation("t").append([HumanMessage("before " * 40, id=f"b{n}") for n in range(20)])
    expected = [(trouble, False), ("on", True), (trouble, True), ("off", False), (trouble, False)]
    with caplog.at_level(logging.DEBUG, "langchain_supabase_memory"):
        for stage, has_pack in expected:
            stages[:] = [stage]
            await agent(asks("go on"))
            assert (SECRET in str(model.shown[-1])) == has_pack, stage
            assert not ended, "the flag is not waited for"
    assert caplog.text.count("stage of the rollout could not be read") == 3
    assert SECRET not in caplog.text
    assert b'memory_alerts_total{kind="rollout"} 3.0' in memory._services.metrics.render()[0]


async def test_the_database_says_the_stage_and_rolls_back_while_an_agent_runs(
    memory: SupabaseMemory, conn_string: str, make: Any
) -> None:
    memory.conversation("t").append([HumanMessage("before " * 40, id=f"b{n}") for n in range(40)])
    model = ScriptedModel(script=lambda _: "fine")
    budget = ContextBudget(characters=2000)
    agent = make(model, Rollout(last_messages=3, cache_seconds=0), budget=budget)

    def has_pack() -> bool:
        return SECRET in str(model.shown[-1])

    await agent(asks("a"))
    assert not has_pack()  # nobody has decided: off
    with SupabaseMemory.from_conn_string(conn_string) as operator:  # another process would do the same
        operator.rollout.set("on", actor="ana", agent_id=memory.agent_id)
        await agent(asks("b"))
        assert has_pack()

        @tool
        def roll_back() -> str:
            """Roll back."""
            operator.rollout.set("off", actor="ben", agent_id=memory.agent_id)
            return "rolled back"

        second = says(calls("roll_back"), "done")
        middleware = SupabaseMemoryMiddleware(memory, rollout=Rollout(cache_seconds=0), budget=budget)
        graph: Any = create_agent(second, [roll_back], middleware=[middleware])
        await Agent(graph, agent.color, agent.settings, memory)(asks("go"))
    assert [SECRET in str(shown) for shown in second.shown] == [True, False]
    assert [str(message.text) for message in second.shown[1][-3:]] == ["go", "", "rolled back"]
    await agent(asks("c"))
    assert not has_pack()
    decisions = memory.rollout.history()
    assert [(each.stage, each.set_by, each.version) for each in decisions] == [("on", "ana", 1), ("off", "ben", 2)]
    assert decisions[0].set_at < decisions[1].set_at <= datetime.now(UTC) + timedelta(minutes=1)
    assert memory.rollout.stage() == "off"


def test_who_decides_is_named_as_everywhere(memory: SupabaseMemory) -> None:
    memory.rollout.set("off", actor=" ana\x00 " + "a" * 300)
    assert memory.rollout.history()[-1].set_by == ("ana\ufffd " + "a" * 300)[:200]
    for nobody in ("", " ", None):
        with pytest.raises(InvalidInputError, match="actor must"):
            memory.rollout.set("off", actor=nobody)  # type: ignore[arg-type]


async def test_what_the_database_said_is_held_for_a_moment_and_outlives_its_absence(
    memory: SupabaseMemory, make: Any, watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    memory.conversation("t").append([HumanMessage("before " * 40, id=f"b{n}") for n in range(40)])
    memory.rollout.set("on", actor="ana")
    watched.functions.clear()
    model = says("fine")
    agent = make(model, Rollout(cache_seconds=0.3), budget=ContextBudget(characters=2000))
    for _ in range(3):
        await agent(asks("go"))
    assert watched.functions.count("memory_rollout") <= 2  # one for each call of the model would be three
    watched.broken.add("memory_rollout")
    time.sleep(0.4)
    with caplog.at_level(logging.ERROR):
        await agent(asks("still on"))
    assert SECRET in str(model.shown[-1])
    assert "stage of the rollout could not be read" in caplog.text
    watched.broken.clear()
    memory.rollout.set("off", actor="ana")
    time.sleep(0.4)
    await agent(asks("back"))
    assert SECRET not in str(model.shown[-1])


async def test_where_nothing_is_known_a_database_that_is_away_means_off(
    memory: SupabaseMemory, make: Any, watched: Watched
) -> None:
    memory.conversation("t").append([HumanMessage("before " * 40, id=f"b{n}") for n in range(40)])
    watched.broken.add("memory_rollout")
    model = says("fine")
    errors: list[Exception] = []
    agent = make(model, Rollout("on"), budget=ContextBudget(characters=2000), on_error=errors.append)
    await agent(asks("go"))
    assert SECRET not in str(model.shown[-1])
    assert [type(error) for error in errors] == [UnavailableError]


def test_the_share_is_stable_grows_monotonously_and_is_near_what_was_said(memory: SupabaseMemory) -> None:
    users = [f"user-{number}@example.com" for number in range(4000)]
    before: set[str] = set()
    for share in (0.0, 0.01, 0.1, 0.5, 0.9, 1.0):
        chosen = {user for user in users if is_in_share(user, share)}
        assert before <= chosen
        assert chosen == {user for user in users if is_in_share(user, share)}
        assert abs(len(chosen) / len(users) - share) < 0.03
        before = chosen
    memory.rollout.set(10, actor="ana", share=0.3, rest="parallel")
    memory._services.user_id = None
    for user in [*users[:60], "Änne 🙂", "用户"]:
        expected = 10 if is_in_share(user, 0.3) else "parallel"
        assert memory.for_user(user).rollout.stage() == expected
        answer = memory._services.run(_standing(memory.agent_id, user))
        assert stage_of(answer["mine"]) == expected  # the database draws as this process does


def _standing(agent_id: str, user_id: str) -> Any:
    from langchain_supabase_memory.operations.rollout.stages import read_decision

    return read_decision(agent_id, user_id)


async def test_users_on_both_sides_of_a_share(conn_string: str, user_id: str) -> None:
    agent_id = f"shared-{user_id}"
    with SupabaseMemory.from_conn_string(conn_string, agent_id=agent_id, model=lambda _: SECRET) as memory:
        memory.rollout.set("on", actor="ana", share=0.5)
        model = says("fine")
        middleware = SupabaseMemoryMiddleware(memory, rollout=Rollout(), budget=ContextBudget(characters=2000))
        graph: Any = create_agent(model, middleware=[middleware])
        for number in range(8):
            user = f"{user_id}-{number}"
            memory.for_user(user).conversation("t").append(
                [HumanMessage("before " * 40, id=f"b{n}") for n in range(20)]
            )
            for _ in range(2):
                graph.invoke(asks("go"), {"configurable": {"thread_id": "t", "user_id": user}})
                assert (SECRET in str(model.shown[-1])) == is_in_share(user, 0.5)


def test_two_decisions_at_once_are_two(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, agent_id=f"raced-{user_id}") as memory:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda n: memory.rollout.set(5, actor=f"p{n}"), range(12)))
        assert [each.version for each in memory.rollout.history()] == list(range(1, 13))
        assert [each.version for each in memory.rollout.history(last=2)] == [11, 12]


# Nothing in the way.


@pytest.mark.parametrize("how", ["fails", "hangs"])
async def test_a_memory_in_trouble_changes_no_answer_and_delays_it_no_longer_than_the_deadline(
    memory: SupabaseMemory, make: Any, watched: Watched, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    getattr(watched, "broken" if how == "fails" else "hanging").update({"memory_context", "memory_turns"})
    shown = {}
    for stage in ("off", "parallel"):
        model = counting()
        agent = make(model, Rollout(flag=said(stage)), thread_id=stage, deadline_seconds=3,
                     on_error="raise")  # fmt: skip
        watched.functions.clear()
        with caplog.at_level(logging.DEBUG, "langchain_supabase_memory"):
            await agent(asks(f"my pin is {SECRET}"))
        in_trouble = [each for each in watched.functions if each in watched.broken | watched.hanging]
        assert (in_trouble, watched.ended) == (["memory_context"] * (stage == "parallel"), 0), "one step is waited for"
        shown[stage] = [texts(seen) for seen in model.shown]
    assert shown["off"] == shown["parallel"] == [[f"my pin is {SECRET}"]]
    if how == "hangs":
        # It is recorded when it comes to an end, after the answer.
        await _eventually(lambda: bool(memory.rollout.comparisons("parallel")), agent.color)
    (found,) = memory.rollout.comparisons("parallel")
    assert (found.error, found.new_tokens, found.old_messages) == ("UnavailableError", None, 1)
    assert found.new_ms is not None
    assert (found.new_ms > 2_900) == (how == "hangs")
    assert SECRET not in caplog.text
    report = memory.rollout.report(agent_id=memory.agent_id)
    assert [(each.comparisons, each.failures, each.saved_percent) for each in report.stages] == [(1, 1, None)]


async def _eventually(check: Callable[[], bool], color: str) -> None:
    for _ in range(100):
        if check():
            return
        await asyncio.sleep(0.1) if color == "async" else time.sleep(0.1)
    assert check()


async def test_the_pack_is_computed_while_the_model_answers(
    memory: SupabaseMemory, make: Any, watched: Watched
) -> None:
    seen: list[bool] = []

    def script(_: list[BaseMessage]) -> str:
        # In the async color the scripted model runs in a thread, so the loop goes on.
        for _wait in range(200):
            if "memory_compare" in watched.functions:
                break
            time.sleep(0.02)
        seen.append("memory_compare" in watched.functions)
        return "fine"

    await make(ScriptedModel(script=script), Rollout(flag=lambda _: "parallel"))(asks("go"))
    assert seen == [True]


async def test_a_comparison_that_cannot_be_recorded_or_heard_costs_nothing(
    memory: SupabaseMemory, make: Any, watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.broken.add("memory_compare")

    def heard(_: Comparison) -> None:
        raise RuntimeError(SECRET)

    agent = make(says("fine"), Rollout(flag=lambda _: 5, on_comparison=heard), on_error="raise")
    answer = await agent(asks("go"))
    assert answer["messages"][-1].text == "fine"
    assert "A comparison could not be recorded" in caplog.text
    assert "A comparison failed (RuntimeError)" in caplog.text
    assert SECRET not in caplog.text


async def test_at_a_cut_over_a_failing_pack_falls_back_to_the_last_messages(
    memory: SupabaseMemory, make: Any, watched: Watched
) -> None:
    model = says("fine")
    agent = make(model, Rollout(flag=lambda _: 10, last_messages=3))
    await converse(agent, 3)
    watched.broken.update({"memory_context", "memory_turns"})
    await agent(asks("and now"))
    assert texts(model.shown[-1]) == ["question 2", "fine", "and now"]
    assert memory.rollout.comparisons("t")[-1].error == "UnavailableError"
    raising = make(model, Rollout(flag=lambda _: 10), on_error="raise")
    with pytest.raises(UnavailableError):
        await raising(asks("x"))


async def test_without_a_checkpointer_the_last_messages_come_from_the_memory(
    memory: SupabaseMemory, make: Any, watched: Watched
) -> None:
    model = says(calls("look_up", word="kiln"), "fine")
    agent = make(model, Rollout(flag=lambda _: "off", last_messages=5), saves=False)
    await converse(agent, 6)
    shown = texts(model.shown[-1])
    assert shown == ["question 3", "fine", "question 4", "fine", "question 5"]
    assert "memory_context" not in watched.functions
    watched.broken.add("memory_read")
    await agent(asks("still there?"))
    assert texts(model.shown[-1]) == ["still there?"]


# Nodes.


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("kind", [LoadContextNode, SupabaseSummarizationNode])
async def test_nodes_follow_the_stage(memory: SupabaseMemory, color: str, kind: Any) -> None:
    stages: list[Any] = ["off"]
    history: list[BaseMessage] = [
        each for n in range(20) for each in (HumanMessage(f"q{n} " * 20), AIMessage(f"a{n} " * 20))
    ]
    node = kind(memory, rollout=Rollout(flag=lambda _: stages[0], last_messages=5),
                budget=ContextBudget(characters=2000), output_messages_key="out")  # fmt: skip
    given = {"messages": [SystemMessage("Be kind."), *history, HumanMessage("now")]}
    memory.conversation("t").append(history, metadata={"via": "graph"})
    made = {}
    for stages[0] in ("off", "parallel", 5, "on"):
        settings = config(memory)
        update = node.invoke(given, settings) if color == "sync" else await node.ainvoke(given, settings)
        made[stages[0]] = update["out"]
    assert made["off"] == made["parallel"] == [given["messages"][0], *history[-4:], given["messages"][-1]]
    for stage in (5, "on"):
        assert SECRET in str(made[stage])
        assert made[stage][0].text == "Be kind."
    assert [each.stage for each in memory.rollout.comparisons("t")] == ["parallel", "5"]


def test_a_state_that_was_replaced_by_the_pack_rolls_back_to_the_whole_history(memory: SupabaseMemory) -> None:
    """The state holds the summary and a few messages by then; the rest is in the database alone."""
    stage: list[Any] = [5]
    node = SupabaseSummarizationNode(
        memory, rollout=Rollout(flag=lambda _: stage[0], last_messages=30), output_messages_key="messages"
    )
    messages: list[Any] = []
    for number in range(20):
        update = node.invoke({"messages": [*messages, HumanMessage(f"q{number}")]}, config(memory))
        messages = [*update["messages"][1:], AIMessage(f"a{number}", id=f"a{number}")]
    assert len(messages) < 12
    stage[0] = "off"
    update = node.invoke({"messages": [*messages, HumanMessage("now")]}, config(memory))
    expected = [text for number in range(20) for text in (f"q{number}", f"a{number}")][-28:]
    assert texts(update["messages"][1:]) == [*expected, "now"]
    assert SECRET not in str(update)


# Records.


async def test_the_numbers_reach_the_stream_the_callback_and_the_log_without_content(
    memory: SupabaseMemory, make: Any, caplog: pytest.LogCaptureFixture, conn_string: str
) -> None:
    heard: list[Comparison] = []
    agent = make(
        says(f"the answer is {SECRET}"), Rollout(flag=lambda _: "parallel", on_comparison=heard.append),
        model=lambda _: f"Summary {SECRET}.", budget=ContextBudget(characters=1500),
    )  # fmt: skip
    events: list[Any] = []
    with caplog.at_level(logging.DEBUG, "langchain_supabase_memory"):
        for number in range(8):
            given = asks(f"{SECRET} {number} " + "word " * 40)
            if agent.color == "sync":
                events += agent.graph.stream(given, agent.settings, stream_mode="custom")
            else:
                events += [each async for each in agent.graph.astream(given, agent.settings, stream_mode="custom")]
    assert [event["type"] for event in events] == [COMPARISON] * 8
    stored = memory.rollout.comparisons("t")
    assert stored == heard
    assert [event["comparison"] for event in events] == [each.to_dict() for each in stored]
    json.dumps(events)
    records = [record for record in caplog.records if "Contexts compared" in record.getMessage()]
    assert len(records) == 8
    assert vars(records[-1])["memory_thread_id"] == "t"
    assert vars(records[-1])["memory_old_tokens"] == stored[-1].old_tokens
    report = memory.rollout.report(agent_id=memory.agent_id)
    for text in (str(events), str(stored), caplog.text, str([vars(record) for record in caplog.records]), str(report)):
        assert SECRET not in text
    with psycopg.connect(conn_string) as connection:
        rows = connection.execute(
            "select to_jsonb(c)::text from memory.context_manifests c where user_id = %s", [memory.user_id]
        ).fetchall()
    assert len(rows) == 8
    assert SECRET not in str(rows)
    ids = [str(each.message_id) for each in memory.conversation("t").read(columns=["message_id"])]
    assert not [each for each in ids if each in str(rows)]


async def test_nothing_is_recorded_on_wish(memory: SupabaseMemory, make: Any) -> None:
    heard: list[Comparison] = []
    agent = make(says("fine"), Rollout(flag=lambda _: "parallel", record=False, on_comparison=heard.append))
    await agent(asks("go"))
    assert [(each.compared_at, each.covered_by_summary) for each in heard] == [(None, None)]
    assert memory.rollout.comparisons("t") == []


def record(memory: SupabaseMemory, thread_id: str = "t", user_id: str | None = None, **numbers: Any) -> Any:
    from langchain_supabase_memory.operations.rollout.comparison import record_comparison

    key = memory._services.key(thread_id, user_id)
    given = {"old_messages": 50, "old_tokens": 1000, "old_characters": 4000, "old_ms": 1.0, "stage": "parallel"}
    comparison = Comparison(thread_id, key.user_id, key.agent_id, **{**given, **numbers})
    return memory._services.run(record_comparison(key, comparison, [], -1))


def test_a_report_has_medians_and_shares(memory: SupabaseMemory) -> None:
    assert str(memory.rollout.report(agent_id=memory.agent_id)) == "No comparisons yet."
    memory.conversation("t").append([HumanMessage("x")])
    for number in range(1, 22):
        record(memory, new_messages=9, new_tokens=200, new_ms=float(number), shared=8, only_old=42, only_new=0,
               omitted=1)  # fmt: skip
    record(memory, error="UnavailableError", new_ms=900.0)
    record(memory, stage="5", new_messages=5, new_tokens=100, new_ms=3.0, only_old=45, shared=5, only_new=1, omitted=0)
    report = memory.rollout.report(agent_id=memory.agent_id)
    assert isinstance(report, RolloutReport)
    parallel, five = report.stages
    assert (parallel.stage, parallel.comparisons, parallel.failures) == ("parallel", 22, 1)
    assert parallel.old_tokens == (1000, 1000)
    assert parallel.new_tokens == (200, 200)
    assert parallel.saved_percent == pytest.approx(80)
    assert parallel.new_ms is not None
    assert parallel.new_ms[0] == pytest.approx(11.5)
    assert (parallel.only_old, parallel.shared, parallel.omitted) == (882, 168, 21)
    assert five.saved_percent == pytest.approx(90)
    shown = str(report)
    assert "80 %" in shown
    assert shown.splitlines()[0].startswith("stage")
    assert ">80 %</td>" in report._repr_html_()
    later = datetime.now(UTC) + timedelta(hours=1)
    assert memory.rollout.report(agent_id=memory.agent_id, since=later).stages == ()
    assert SupabaseMemory(memory._services.transport, user_id="nobody").rollout.report().stages == ()
    with pytest.raises(InvalidInputError, match="time zone"):
        memory.rollout.report(since=datetime(2026, 1, 1))
    assert len(memory.rollout.comparisons("t", last=2)) == 2
    assert memory.rollout.comparisons("t", last=2)[-1].stage == "5"


def test_comparisons_go_with_their_conversation_and_with_time(memory: SupabaseMemory, conn_string: str) -> None:
    def age(thread_id: str) -> None:
        with psycopg.connect(conn_string) as connection:
            connection.execute(
                "update memory.context_manifests x set made_at = made_at - interval '31 days',"
                " expires_at = expires_at - interval '31 days'"
                " from memory.conversations c where c.id = x.conversation_id and c.user_id = %s and c.thread_id = %s",
                [memory.user_id, thread_id],
            )

    for thread_id in ("forgotten", "kept", "swept"):
        memory.conversation(thread_id).append([HumanMessage("x")])
        assert record(memory, thread_id)["recorded"]
    memory.conversation("forgotten").forget()
    memory.conversation("forgotten").append([HumanMessage("x")])
    assert memory.rollout.comparisons("forgotten") == []
    age("kept")
    record(memory, "kept", stage="5")
    assert [each.stage for each in memory.rollout.comparisons("kept")] == ["5"]
    assert len(memory.rollout.comparisons("swept")) == 1
    age("swept")
    memory.forget_expired()
    assert memory.rollout.comparisons("swept") == []
    assert len(memory.rollout.comparisons("kept")) == 1
    assert memory.conversation("swept").count() == 1
    assert record(memory, "no such thread") == {"recorded": False, "covered_by_summary": None}


# Who may what.


async def test_servers_decide_and_users_read_what_holds(caller: Caller, user_id: str) -> None:
    agent_id = f"doors-{user_id}"
    user, stranger = (caller.as_token(token(user_id=each)) for each in (user_id, f"{user_id}-x"))
    assert await caller(user.rollout.stage, agent_id=agent_id) is None
    for who in (user, stranger):
        with pytest.raises(PermissionDeniedError):
            await caller(who.rollout.set, "on", actor="me", agent_id=agent_id)
        with pytest.raises(PermissionDeniedError):
            await caller(who.rollout.history, agent_id=agent_id)
    decision = await caller(caller.service.rollout.set, 15, actor="ana", agent_id=agent_id, share=0.5, rest="parallel")
    assert (decision.stage, decision.share, decision.rest, decision.set_by) == (15, 0.5, "parallel", "ana")
    assert await caller(caller.service.rollout.history, agent_id=agent_id) == [decision]
    for name, who in ((user_id, user), (f"{user_id}-x", stranger)):
        expected = 15 if is_in_share(name, 0.5) else "parallel"
        assert await caller(who.rollout.stage, agent_id=agent_id) == expected  # the token's subject is drawn
    anonymous = caller.as_token(token("anon", user_id))
    with pytest.raises(PermissionDeniedError):
        await caller(anonymous.rollout.stage, agent_id=agent_id)
    for mistake in ({"stage": 7}, {"stage": None}, {"stage": "on", "share": 2}, {"stage": "on", "by": " "}):
        with pytest.raises(InvalidInputError):
            await caller(
                caller.service.rollout.set, mistake["stage"], actor=mistake.get("by", "ana"), share=mistake.get("share", 1),
                agent_id=agent_id,
            )  # fmt: skip


async def test_comparisons_are_their_owners_alone(caller: Caller, user_id: str) -> None:
    from langchain_supabase_memory.operations.arguments import conversation_ids

    owner, stranger = (caller.as_token(token(user_id=each)) for each in (user_id, f"{user_id}-x"))
    numbers = {"stage": "parallel", "old_messages": 1, "old_tokens": 2, "old_characters": 3, "old_ms": 4.0}

    async def compare(memory: SupabaseMemory, **who: Any) -> Any:
        call = Call("memory_compare", {**conversation_ids(memory._services.key("t", **who)), "p_comparison": numbers})
        return (
            await memory._services.transport.aperform(call)
            if caller.color == "async"
            else memory._services.transport.perform(call)
        )

    await caller(owner.conversation("t").append, [HumanMessage("secret")])
    assert (await compare(owner))["recorded"]
    assert not (await compare(stranger, user_id=user_id))["recorded"]
    assert len(await caller(owner.rollout.comparisons, "t")) == 1
    assert await caller(stranger.for_user(user_id).rollout.comparisons, "t") == []
    assert (await caller(stranger.rollout.report)).stages == ()
    assert (await caller(stranger.for_user(user_id).rollout.report)).stages == ()
    assert (await caller(owner.rollout.report)).stages[0].comparisons == 1
    assert (await caller(caller.service.for_user(user_id).rollout.report)).stages[0].comparisons == 1
    anonymous = caller.as_token(token("anon", user_id))
    with pytest.raises(PermissionDeniedError):
        await caller(anonymous.rollout.report)


ATTEMPTS = {
    "see who decided": "select set_by from memory.rollouts",
    "see everything of a decision": "select * from memory.rollouts",
    "decide": "insert into memory.rollouts (agent_id, version, stage, set_by) values ('a', 99, 'on', 'me')",
    "change a decision": "update memory.rollouts set stage = 'on'",
    "delete decisions": "delete from memory.rollouts",
    "decide by the function": "select public.memory_worker_set_rollout('on', 'me')",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_user_decides_nothing_by_sql(conn_string: str, user_id: str, attempt: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string) as service:
        service.rollout.set("on", actor="ana", agent_id=f"sql-{user_id}")
    with psycopg.connect(conn_string) as connection:
        connection.execute("set local role authenticated")
        connection.execute("select set_config('request.jwt.claims', %s, true)", [json.dumps({"sub": user_id})])
        seen = connection.execute(
            "select stage from memory.rollouts where agent_id = %s", [f"sql-{user_id}"]
        ).fetchall()
        assert seen == [("on",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(ATTEMPTS[attempt].encode())


# Settings.


def test_bad_settings_say_what_to_do() -> None:
    for named in ({"stage": 7}, {"stage": "25"}, {"last_messages": 0}, {"cache_seconds": -1}, {"flag": "on"}):
        with pytest.raises(ConfigurationError):
            Rollout(**named)
    assert [stage_of(str(stage)) for stage in STAGES] == list(STAGES)
    assert [stage_of(each) for each in (None, True, 7, "7", 25.0, "", "on!", " ON ")] == [None] * 7 + ["on"]


def test_a_comparison_holds_numbers_and_ids_alone() -> None:
    texts_of = {each.name for each in fields(Comparison) if "str" in str(each.type)}
    assert texts_of == {"thread_id", "user_id", "agent_id", "stage", "error"}
