"""Coverage: every message has exactly one state after any operation, and violations are reported."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_supabase_memory import ContextBudget, MemoryConfig, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.context.reasons import BEYOND
from langchain_supabase_memory.types import Coverage
from langchain_supabase_memory.values import CoveredRange
from tests.conftest import Caller
from tests.owners import conversation_of

BUDGET = ContextBudget(characters=1500)
POLICY = SummaryPolicy(input_characters=400, max_characters=300, attempts=1, mode="background")


def summary(prompt: Sequence[BaseMessage]) -> str:
    return "What was said."


def failing(prompt: Sequence[BaseMessage]) -> str:
    raise ConnectionError


@pytest.fixture
def direct(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    memory = SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=summary, budget=BUDGET, config=MemoryConfig(policy=POLICY)
    )
    with memory:
        yield memory


def flat(coverage: Coverage, count: int) -> list[CoveredRange]:
    """The range of each sequence, after a look that the ranges follow one another and leave none out."""
    edges = [(each.from_sequence, each.to_sequence) for each in coverage.ranges]
    assert [number for first, last in edges for number in range(first, last + 1)] == list(range(count))
    return [coverage.range_of(number) for number in range(count)]


# --- Random stories


class Story:
    """A conversation to which anything may happen, and what is known of it without asking for its coverage."""

    def __init__(self, memory: SupabaseMemory, seed: int) -> None:
        self.memory = memory
        self.rng = random.Random(seed)
        self.ids: list[str] = []
        self.gone: set[int] = set()

    def message(self) -> BaseMessage:
        words = "word " * self.rng.choice([1, 5, 20, 20, 90])
        kind = self.rng.random()
        if kind < 0.4:
            return HumanMessage(words)
        if kind < 0.7:
            return AIMessage(words)
        if kind < 0.75:
            return SystemMessage(words)
        if kind < 0.8:
            return AIMessage("")
        if kind < 0.9:  # a call that may be answered or not, and an answer that may have been asked for or not
            return AIMessage("", tool_calls=[{"name": "f", "args": {"a": words}, "id": "call"}])
        return ToolMessage(words, tool_call_id="call")

    def append(self) -> None:
        for _ in range(self.rng.randrange(1, 12)):
            message = self.message()
            message.id = f"m{len(self.ids)}"
            self.memory.conversation("t").append([message])
            self.ids.append(message.id)

    def forget(self) -> None:
        number = self.rng.randrange(len(self.ids))
        receipt = self.memory.conversation("t").forget_message(self.ids[number])
        assert receipt.messages == (number not in self.gone)
        self.gone.add(number)

    def edit(self) -> None:
        number = self.rng.randrange(len(self.ids))
        if number not in self.gone:
            self.memory.conversation("t").append([HumanMessage("word " * self.rng.randrange(40), id=self.ids[number])])

    def summarize(self) -> None:
        self.memory.conversation("t").summaries.make()

    def fail(self) -> None:
        self.memory.conversation("t").summaries.make(model=failing)

    def step(self) -> None:
        does = [
            self.append,
            self.append,
            self.append,
            self.summarize,
            self.summarize,
            self.fail,
            self.forget,
            self.edit,
        ]
        (self.rng.choice(does) if self.ids else self.append)()

    def check(self) -> None:
        coverage = self.memory.conversation("t").coverage()
        pack = self.memory.conversation("t").context()
        shown = {number for entry in pack.fitted.recent for number in entry.sequences} - set(pack.clipped)
        segments = self.memory.conversation("t").summaries.list()
        reasons = {why for _, _, why in pack.omitted}
        for number, found in enumerate(flat(coverage, len(self.ids))):
            in_segments = [each.number for each in segments if each.from_sequence <= number <= each.to_sequence]
            assert found.segment == (in_segments[0] if in_segments else None)
            assert len(in_segments) <= 1
            if number in self.gone:
                assert found.state == "forgotten"
            elif number in shown:
                assert (found.state, found.reason) == ("verbatim", None)
            elif in_segments:
                assert found.state == "segment"
            else:
                assert found.state == "omitted"
                assert found.reason in reasons, "the pack says so too"
        assert (coverage.gaps, coverage.overlaps) == ([], [])
        assert coverage.complete is not any(each.state == "omitted" for each in coverage.ranges)


@pytest.mark.parametrize("seed", range(8))
def test_each_message_is_in_exactly_one_state_whatever_happens(direct: SupabaseMemory, seed: int) -> None:
    story = Story(direct, seed)
    for _ in range(25):
        story.step()
        story.check()


# --- Every state, through every caller


async def test_a_conversation_that_does_not_exist_is_covered(caller: Caller, user_id: str) -> None:
    coverage = await caller(caller.service.for_user(user_id).conversation("t").coverage)
    assert coverage == Coverage([])
    assert coverage.complete


async def test_each_state_is_told(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    messages = [HumanMessage("x" * 90, id=f"m{number}") for number in range(60)]
    conversation = conversation_of(caller.service, **where)
    await caller(conversation.append, messages)
    await caller(conversation.forget_message, "m7")
    policy = SummaryPolicy(keep_messages=10, input_characters=2000)
    budget = ContextBudget(characters=1500)
    before = await caller(conversation.coverage, budget=budget)
    assert [each.state for each in before.ranges] == ["omitted", "forgotten", "omitted", "verbatim"]
    assert before.range_of(0) == CoveredRange(0, 6, "omitted", None, BEYOND)
    assert not before.complete

    await caller(conversation.summaries.make, policy=policy, model=summary)
    after = await caller(conversation.coverage, budget=budget)
    assert [each.state for each in flat(after, 60)] == [
        *["segment"] * 7,
        "forgotten",
        *["segment"] * 42,
        *["verbatim"] * 10,
    ]
    assert [each.number for each in await caller(conversation.summaries.list)] == [1, 2, 3]
    assert sorted({each.segment for each in after.ranges if each.segment is not None}) == [1, 2, 3]
    assert after.complete
    assert str(after).splitlines()[1] == "7-7: forgotten 1"
    # Where the budget has room for everything, all is verbatim, and covered none the less.
    whole = await caller(conversation.coverage, budget=ContextBudget(characters=20_000))
    assert {each.state for each in whole.ranges} == {"verbatim", "forgotten"}
    assert whole.range_of(0).segment == 1
    with pytest.raises(KeyError):
        whole.range_of(60)


async def test_it_makes_no_summary(caller: Caller, user_id: str) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, model=failing, budget=BUDGET)
    await caller(memory.conversation("t").append, [HumanMessage("x" * 90) for _ in range(60)])
    coverage = await caller(memory.conversation("t").coverage)
    assert coverage.ranges[0].state == "omitted"
    assert (await caller(memory.conversation("t").context)).summary_error == "ConnectionError"


async def test_what_could_not_be_stored_yet_is_no_part_of_it(caller: Caller, user_id: str) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id)
    await caller(memory.conversation("t").append, [HumanMessage("stored")])
    memory._services.outbox.keep(memory._services.key("t"), [HumanMessage("waiting", id="w")])
    assert flat(await caller(memory.conversation("t").coverage), 1)[0].state == "verbatim"


# --- What is broken by hand is reported


@pytest.fixture
def covered(direct: SupabaseMemory) -> list[tuple[int, int]]:
    """Sixty messages, of which fifty are in five segments of ten."""
    conversation = direct.conversation("t")
    conversation.append([HumanMessage("x" * 90, id=f"m{number}") for number in range(60)])
    conversation.summaries.make(policy=SummaryPolicy(keep_messages=10, input_characters=900))
    segments = [(each.from_sequence, each.to_sequence) for each in conversation.summaries.list()]
    assert segments == [(0, 9), (10, 19), (20, 29), (30, 39), (40, 49)]
    coverage = conversation.coverage()
    assert (coverage.gaps, coverage.overlaps) == ([], [])
    assert coverage.complete
    return segments


OF = "where user_id = %(user)s and number = %(number)s"
GAPS: list[tuple[str, int, list[tuple[int, int]]]] = [
    (f"delete from memory.conversation_summaries {OF}", 2, [(10, 19)]),
    (f"delete from memory.conversation_summaries {OF}", 5, [(40, 49)]),
    ("delete from memory.conversation_summaries where user_id = %(user)s and number in (1, 2, 4)", 0, [(0, 19), (30, 39)]),
    ("delete from memory.conversation_summaries where user_id = %(user)s", 0, [(0, 49)]),
    (f"update memory.conversation_summaries set from_sequence = 22 {OF}", 3, [(20, 21)]),
    (f"update memory.conversation_summaries set to_sequence = 25 {OF}", 3, [(26, 29)]),
    ("update memory.conversations set summarized_through = 54 where user_id = %(user)s", 0, [(50, 54)]),
    (f"update memory.conversation_summaries set message_ids = array_remove(message_ids, 'm14') {OF}", 2, [(14, 14)]),
    (f"update memory.conversation_summaries set message_ids = '{{}}' {OF}", 5, [(40, 49)]),
    # A range that is longer than what the model was shown.
    (f"update memory.conversation_summaries set to_sequence = 52 {OF}", 5, [(50, 52)]),
]  # fmt: skip


@pytest.mark.parametrize("budget", [BUDGET, ContextBudget(characters=20_000)], ids=["tight", "room for all"])
@pytest.mark.parametrize(("statement", "number", "gaps"), GAPS)
def test_a_gap_is_reported(
    direct: SupabaseMemory,
    sql: psycopg.Connection,
    covered: list[tuple[int, int]],
    statement: str,
    number: int,
    gaps: list[tuple[int, int]],
    budget: ContextBudget,
) -> None:
    sql.execute(statement.encode(), {"user": direct.user_id, "number": number})
    coverage = direct.conversation("t").coverage(budget=budget)
    flat(coverage, 60)
    assert coverage.gaps == gaps
    assert not coverage.complete


OVERLAPS: list[tuple[str, int, list[tuple[int, int]]]] = [
    (f"update memory.conversation_summaries set to_sequence = 12 {OF}", 1, [(10, 12)]),
    (f"update memory.conversation_summaries set to_sequence = 49 {OF}", 1, [(10, 49)]),
    (f"update memory.conversation_summaries set to_sequence = 4000 {OF}", 2, [(20, 49)]),
    (f"update memory.conversation_summaries set from_sequence = 0 {OF}", 5, [(0, 39)]),
    (f"update memory.conversation_summaries set from_sequence = 38 {OF}", 5, [(38, 39)]),
    (f"update memory.conversation_summaries set from_sequence = 0, to_sequence = 9 {OF}", 3, [(0, 9)]),
]


@pytest.mark.parametrize(("statement", "number", "overlaps"), OVERLAPS)
def test_an_overlap_is_reported(
    direct: SupabaseMemory,
    sql: psycopg.Connection,
    covered: list[tuple[int, int]],
    statement: str,
    number: int,
    overlaps: list[tuple[int, int]],
) -> None:
    sql.execute(statement.encode(), {"user": direct.user_id, "number": number})
    coverage = direct.conversation("t").coverage()
    flat(coverage, 60)
    assert coverage.overlaps == overlaps
    assert not coverage.complete


def test_a_forgotten_message_is_no_gap(direct: SupabaseMemory, covered: list[tuple[int, int]]) -> None:
    direct.conversation("t").forget_message("m55")
    direct.conversation("t").forget_message("m45")
    coverage = direct.conversation("t").coverage()
    assert (coverage.gaps, coverage.overlaps) == ([], [])
    assert [coverage.range_of(number).state for number in (45, 55)] == ["forgotten", "forgotten"]
    states: list[Any] = [each.state for each in flat(coverage, 60)]
    assert states.count("segment") == 40
