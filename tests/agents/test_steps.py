"""A graph run's memory operations, stepped by hand: no database, no mock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import ContextBudget, SupabaseMemory, effects
from langchain_supabase_memory.adapters.summarizer import SummaryModel
from langchain_supabase_memory.agents.run.fail_open import Attempt, FailOpen, GuardedTask
from langchain_supabase_memory.agents.run.graph_state import Rules, graph_state, store_new
from langchain_supabase_memory.agents.run.load import INDEXING, SUMMARIZING, Loader
from langchain_supabase_memory.context.load import unread_messages
from langchain_supabase_memory.context.pack import ContextPack
from langchain_supabase_memory.effects import Effects, SyncAsync
from langchain_supabase_memory.types import ConversationKey
from langchain_supabase_memory.values import IndexResult, SummaryResult
from tests.each_case import each_case

KEY = ConversationKey("t", "u")
CANARY = "canary-4711"


@pytest.fixture
def memory() -> SupabaseMemory:
    """A memory that was never asked anything."""
    return SupabaseMemory.from_conn_string("postgresql://nobody@127.0.0.1:1/none", user_id="u")


def attempted(step: Any) -> Attempt[Any]:
    assert isinstance(step, Attempt)
    return step


def finish(run: Effects[Any], answer: Any) -> Any:
    with pytest.raises(StopIteration) as stopped:
        run.send(answer)
    return stopped.value.value


def a_pack(**changes: Any) -> ContextPack:
    with pytest.raises(StopIteration) as stopped:
        next(unread_messages(KEY, ContextBudget(characters=10_000), []))
    pack: ContextPack = stopped.value.value
    return replace(pack, **changes)


async def driven(color: str, run: Effects[Any]) -> Any:
    return effects.run(run) if color == "sync" else await effects.arun(run)


@each_case("color", ["sync", "async"])
async def test_a_step_does_itself_in_the_color_of_its_run(color: str) -> None:
    async def later() -> str:
        return "async"

    def fails() -> Any:
        raise KeyError(CANARY)

    def run() -> Effects[list[str]]:
        first = yield SyncAsync(lambda: "sync", later)
        try:
            yield SyncAsync(fails, fails)
        except KeyError as error:
            return [first, str(error.args[0])]
        return []

    assert await driven(color, run()) == [color, CANARY]


def test_a_step_shows_nothing_of_what_it_holds(memory: SupabaseMemory) -> None:
    said = HumanMessage(CANARY, id="m")
    step = next(store_new(FailOpen(memory, None, "log", 5), KEY, graph_state([said]), rules=Rules()))
    assert attempted(step).task.keep == [said]
    assert CANARY not in repr(step)
    assert CANARY not in repr(SyncAsync(lambda: CANARY, [CANARY].__iter__))  # type: ignore[arg-type]


def test_a_pack_that_lacks_nothing_is_read_once(memory: SupabaseMemory) -> None:
    loader = Loader(
        FailOpen(memory, memory._services.model, "log", 5),
        memory._services.settings.budget,
        memory._services.config.policy,
        references=False,
    )
    events: list[Any] = []
    run = loader.load(KEY, graph_state([HumanMessage("And now?")]), events.append)
    read = attempted(next(run))
    assert (read.key, read.seconds) == (KEY, 5)
    pack = a_pack()
    assert finish(run, pack) is pack
    assert events == []


@pytest.mark.parametrize("asks", [False, True], ids=["writer", "model"])
def test_what_is_due_is_done_first_within_the_deadline(memory: SupabaseMemory, asks: bool) -> None:
    model = SummaryModel(lambda _: "a summary") if asks else memory._services.model
    loader = Loader(
        FailOpen(memory, model, "log", 5),
        memory._services.settings.budget,
        memory._services.config.policy,
        recall="conversation",
    )
    events: list[Any] = []
    run = loader.load(KEY, graph_state([HumanMessage("And now?")]), events.append)
    resolve = attempted(next(run))
    assert "reference" in resolve.task.failure
    read = attempted(run.send(None))
    summarize = attempted(run.send(a_pack(due=True, due_through=3, lacks_summary=True, index_due=True)))
    assert [event["type"] for event in events] == [SUMMARIZING]
    # Half of the time is for reading again. A model's own time comes on top of it; a writer's is this machine's.
    assert summarize.seconds == 2.5 + (memory._services.config.policy.timeout_seconds if asks else 0)
    assert summarize.task.can_wait
    index = attempted(run.send(SummaryResult(3)))
    assert [event["type"] for event in events] == [SUMMARIZING, INDEXING]
    assert index.seconds == 2.5
    assert index.task.can_wait
    again = attempted(run.send(IndexResult(1, 1)))
    assert (again.task, again.seconds) == (read.task, 5)
    assert finish(run, pack := a_pack()) is pack


def test_a_pack_that_can_not_be_read_again_is_the_first(memory: SupabaseMemory) -> None:
    loader = Loader(
        FailOpen(memory, memory._services.model, "log", 5),
        memory._services.settings.budget,
        memory._services.config.policy,
        references=False,
    )
    run = loader.load(KEY, graph_state([HumanMessage("And now?")]), lambda _: None)
    next(run)
    first = a_pack(due=True, due_through=3, lacks_summary=True)
    run.send(first)
    run.send(SummaryResult(3))
    assert finish(run, None) is first


def test_a_state_that_is_stored_is_not_stored_again(memory: SupabaseMemory) -> None:
    guard, state = FailOpen(memory, None, "log", 5), [HumanMessage("Hello", id="a"), AIMessage("Hello, Maya", id="b")]
    first = store_new(guard, KEY, graph_state(state), rules=Rules())
    step = attempted(next(first))
    assert step.task == GuardedTask("The messages could not be stored; they wait in the outbox", state)
    call = next(step.flow)
    assert call.function == "memory_append"  # type: ignore[attr-defined]
    with pytest.raises(StopIteration) as stopped:
        step.flow.send({"conversation_id": "c", "sequences": [0, 1], "appended": 2, "updated": []})
    assert finish(first, stopped.value.value) is stopped.value.value
    with pytest.raises(StopIteration) as nothing:
        next(store_new(guard, KEY, graph_state(state), rules=Rules()))
    assert nothing.value.value is None
