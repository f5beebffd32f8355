"""Retention: the write that exceeds it deletes exactly what is beyond it, and no read returns that."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import (
    ContextBudget,
    LoadContextNode,
    MemoryConfig,
    Retention,
    SummaryPolicy,
    SupabaseChatMessageHistory,
    SupabaseMemory,
)
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError
from langchain_supabase_memory.values import Receipt
from tests.conftest import Caller
from tests.owners import conversation_of
from tests.recount import assert_counted
from tests.services.data_api import token

DAY = timedelta(hours=24)
BUDGET = ContextBudget(characters=1500)
POLICY = SummaryPolicy(input_characters=400, max_characters=300, attempts=1, mode="background")


def summary(prompt: Sequence[BaseMessage]) -> str:
    return "What was said."


def ago(**of: float) -> datetime:
    return datetime.now(UTC) - timedelta(**of)


def said(number: int) -> list[BaseMessage]:
    return [HumanMessage(f"q{number}"), AIMessage(f"a{number}")]


def block(name: str, results: int = 2) -> list[BaseMessage]:
    calls = [{"name": "f", "args": {}, "id": f"{name}-{n}"} for n in range(results)]
    return [AIMessage("", tool_calls=calls), *(ToolMessage("found", tool_call_id=str(call["id"])) for call in calls)]


async def texts(caller: Caller, user_id: str, **bounds: Any) -> list[str]:
    return [
        str(each.message.text)
        for each in await caller(caller.service.for_user(user_id).conversation("t").read, **bounds)
    ]


@pytest.fixture
def direct(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    memory = SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=summary, budget=BUDGET, config=MemoryConfig(policy=POLICY)
    )
    with memory:
        yield memory


def test_a_retention_that_keeps_nothing_is_refused() -> None:
    wrong: list[dict[str, Any]] = [
        {"max_turns": 0},
        {"max_turns": True},
        {"max_messages": -1},
        {"max_age": timedelta()},
        {"max_age": 24},
        {"max_summary_age": timedelta(days=-1)},
    ]
    for settings in wrong:
        with pytest.raises(ConfigurationError):
            Retention(**settings)


# --- The limits, one by one and together


async def test_a_new_complete_turn_at_the_limit_removes_the_oldest(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, retention=Retention(max_turns=2))
    conversation = memory.conversation("t")
    await caller(conversation.append, [AIMessage("Welcome."), *said(1), *said(2)])
    assert await texts(caller, user_id) == ["q1", "a1", "q2", "a2"]
    await caller(conversation.append, [HumanMessage("q3")])
    assert await texts(caller, user_id) == ["q1", "a1", "q2", "a2", "q3"], "it is not complete yet"
    await caller(conversation.append, block("b"))
    assert (await texts(caller, user_id))[0] == "q1", "nor is it with a call and its results"
    await caller(conversation.append, [AIMessage("a3")])
    assert await texts(caller, user_id) == ["q2", "a2", "q3", "", "found", "found", "a3"]
    assert await caller(conversation_of(caller.service, **where).count) == 7
    assert [each.sequence for each in await caller(conversation.read)] == list(range(3, 10))


async def test_the_limit_holds_within_the_call_that_goes_beyond_it(caller: Caller, user_id: str) -> None:
    batch = [message for number in range(8) for message in said(number)]
    result = await caller(
        caller.service.for_user(user_id).conversation("t").append, batch, retention=Retention(max_turns=3)
    )
    assert (result.sequences, result.appended) == (list(range(16)), 16)
    # Nobody has read with a retention, and they are gone.
    assert await texts(caller, user_id) == ["q5", "a5", "q6", "a6", "q7", "a7"]


async def test_questions_that_nobody_answered_count_for_nothing(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    batch = [*said(1), HumanMessage("?"), HumanMessage("??"), *said(2), HumanMessage("???")]
    await caller(conversation_of(caller.service, **where).append, batch, retention=Retention(max_turns=2))
    assert await texts(caller, user_id) == [message.text for message in batch]
    await caller(conversation_of(caller.service, **where).append, [AIMessage("!")], retention=Retention(max_turns=2))
    assert await texts(caller, user_id) == ["q2", "a2", "???", "!"]


@pytest.mark.parametrize("removing", ["append", "forget_expired"])
async def test_what_is_too_old_is_never_returned_and_gone_with_the_next_write(
    caller: Caller, user_id: str, removing: str
) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, retention=Retention(max_age=DAY))
    await caller(conversation_of(caller.service, **where).append, said(1), created_at=ago(hours=25))
    await caller(conversation_of(caller.service, **where).append, said(2), created_at=ago(hours=23))
    assert len(await texts(caller, user_id)) == 4
    assert await texts(caller, user_id, retention=Retention(max_age=DAY)) == ["q2", "a2"]
    assert await caller(memory.conversation("t").count) == 2
    assert [each.message_count for each in await caller(memory.conversations)] == [2]
    assert len(await texts(caller, user_id)) == 4, "a read writes nothing"
    if removing == "append":
        await caller(memory.conversation("t").append, [])
        assert len(await texts(caller, user_id)) == 4, "nor does an append of nothing"
        await caller(memory.conversation("t").append, [HumanMessage("q3")])
        assert await texts(caller, user_id) == ["q2", "a2", "q3"]
    else:
        assert await caller(memory.forget_expired) == Receipt(1, 2)
        assert await texts(caller, user_id) == ["q2", "a2"]


async def test_the_databases_clock_decides(caller: Caller, user_id: str, conn_string: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    await caller(conversation_of(caller.service, **where).append, said(1))
    with psycopg.connect(conn_string) as connection:
        statement = "update memory.conversation_messages set created_at = now() - interval '%s' where user_id = %%s"
        connection.execute((statement % "86399 seconds").encode(), [user_id])
        connection.commit()
        assert len(await texts(caller, user_id, retention=Retention(max_age=DAY + timedelta(hours=1)))) == 2
        connection.execute((statement % "90000.1 seconds").encode(), [user_id])
        connection.commit()
        assert await texts(caller, user_id, retention=Retention(max_age=DAY + timedelta(hours=1))) == []


async def test_what_is_too_old_when_it_is_stored_does_not_stay(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    await caller(conversation_of(caller.service, **where).append, said(1))
    result = await caller(
        conversation_of(caller.service, **where).append,
        said(2),
        created_at=ago(days=2),
        retention=Retention(max_age=DAY),
    )
    assert result.appended == 2
    assert await texts(caller, user_id) == ["q1", "a1"]
    assert (await caller(conversation_of(caller.service, **where).append, said(3))).sequences == [4, 5]


async def test_the_most_messages(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    retention = Retention(max_messages=5)
    for number in range(4):
        await caller(conversation_of(caller.service, **where).append, said(number), retention=retention)
    assert await texts(caller, user_id) == ["a1", "q2", "a2", "q3", "a3"]
    await caller(conversation_of(caller.service, **where).append, said(1))
    assert len(await texts(caller, user_id)) == 7
    assert len(await texts(caller, user_id, retention=retention)) == 5


async def test_no_result_stays_without_its_call(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    batch = [HumanMessage("q"), *block("b", 3), AIMessage("a"), *said(2)]
    await caller(conversation_of(caller.service, **where).append, batch, retention=Retention(max_messages=5))
    assert await texts(caller, user_id) == ["a", "q2", "a2"], "the call would be the sixth, so its results go too"


async def test_the_newest_block_stays_whole_whatever_its_size(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    batch = [*said(1), HumanMessage("q"), *block("b", 4)]
    for retention in (Retention(max_messages=2), Retention(max_messages=1)):
        await caller(conversation_of(caller.service, **where).append, batch, retention=retention)
        assert await texts(caller, user_id) == ["", *["found"] * 4]
        batch = []
    await caller(conversation_of(caller.service, **where).append, [AIMessage("a")], retention=Retention(max_messages=2))
    assert await texts(caller, user_id) == ["a"]


async def test_results_whose_call_is_too_old_go_with_it(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    messages = [HumanMessage("q"), *block("b"), AIMessage("a")]
    times = [ago(hours=25), ago(hours=25), ago(hours=25), ago(hours=23), ago(hours=23)]
    await caller(conversation_of(caller.service, **where).append, messages, created_at=times)
    assert await texts(caller, user_id, retention=Retention(max_age=DAY)) == ["a"]
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, retention=Retention(max_age=DAY))
    for each in (memory, caller.service):
        coverage = await caller(conversation_of(each, **where).coverage)
        assert (coverage.range_of(3).state, coverage.complete) == ("expired", True)
        await caller(memory.forget_expired)


async def test_limits_together_and_per_call(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    both = Retention(max_turns=3, max_age=DAY, max_messages=100)
    for number, hours in enumerate((30, 26, 20, 10, 5, 1)):
        await caller(conversation_of(caller.service, **where).append, said(number), created_at=ago(hours=hours))
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, retention=Retention(max_turns=5))
    assert len(await caller(memory.conversation("t").turns.list)) == 5
    assert len(await caller(memory.conversation("t").turns.list, retention=Retention(max_age=DAY))) == 4, (
        "the call's own instead"
    )
    assert len(await caller(memory.conversation("t").turns.list)) == 5, (
        "and a shorter one of one call takes nothing away"
    )
    assert len(await caller(memory.conversation("t").turns.list, retention=both)) == 3
    assert (
        len(
            await caller(
                memory.conversation("t").turns.list, retention=Retention(max_turns=3, max_age=timedelta(hours=7))
            )
        )
        == 2
    )
    assert len(await caller(memory.conversation("t").turns.list, retention=Retention(max_turns=9, max_messages=1))) == 0


async def test_all_expired_is_an_empty_history_and_no_error(caller: Caller, user_id: str) -> None:
    memory = SupabaseMemory(
        caller.service._services.transport, user_id=user_id, retention=Retention(max_age=DAY), model=summary
    )
    await caller(caller.service.for_user(user_id).conversation("t").append, said(1), created_at=ago(days=3))
    conversation = memory.conversation("t")
    assert await caller(conversation.turns.list) == []
    assert await caller(conversation.read) == []
    assert await caller(conversation.count) == 0
    pack = await caller(conversation.context, "now")
    assert [str(message.text) for message in pack.prompt] == ["now"]
    coverage = await caller(conversation.coverage)
    assert coverage.complete
    assert [(each.state, each.from_sequence, each.to_sequence) for each in coverage.ranges] == [("expired", 0, 1)]
    result = await caller(conversation.summaries.make)
    assert (result.failed, result.segments) == (None, [])
    assert (await caller(conversation.append, said(2))).sequences == [2, 3]
    assert await texts(caller, user_id) == ["q2", "a2"]


async def test_a_context_shows_nothing_that_is_too_old(caller: Caller, user_id: str) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, retention=Retention(max_age=DAY))
    await caller(caller.service.for_user(user_id).conversation("t").append, said(1), created_at=ago(days=3))
    await caller(caller.service.for_user(user_id).conversation("t").append, said(2))
    pack = await caller(memory.conversation("t").context)
    assert [str(message.text) for message in pack.prompt] == ["q2", "a2"]
    assert (pack.omitted, pack.expired, pack.full_messages) == ([], True, 2)
    assert await texts(caller, user_id) == ["q1", "a1", "q2", "a2"], "a read writes nothing"


# --- forget_expired


async def test_forget_expired_goes_over_everybody_or_one(caller: Caller, user_id: str) -> None:
    names = [f"{user_id}-{n}" for n in range(3)]
    for name in names:
        for thread_id in ("t", "s"):
            await caller(
                caller.service.for_user(name).conversation(thread_id).append, said(1), created_at=ago(days=400)
            )
            await caller(caller.service.for_user(name).conversation(thread_id).append, said(2))
    retention = Retention(max_age=timedelta(days=365))
    assert await caller(caller.service.for_user(names[0]).forget_expired, retention=retention) == Receipt(2, 4)
    assert await texts(caller, names[0]) == ["q2", "a2"]
    assert len(await texts(caller, names[1])) == 4
    # The bearer of a token removes what is theirs, also where another is named or nobody.
    owner = caller.as_token(token(user_id=names[1]))
    assert await caller(owner.for_user(names[2]).forget_expired, retention=retention) == Receipt()
    assert await caller(owner.forget_expired, retention=retention) == Receipt(2, 4)
    assert len(await texts(caller, names[2])) == 4
    receipt = await caller(caller.service.forget_expired, retention=retention)
    assert (receipt.conversations, receipt.messages) >= (2, 4)
    assert await texts(caller, names[2]) == ["q2", "a2"]
    assert await caller(caller.service.for_user(names[2]).forget_expired, retention=retention) == Receipt()
    # Without limits no message goes.
    assert await caller(caller.service.for_user(names[2]).forget_expired) == Receipt()
    assert await texts(caller, names[2]) == ["q2", "a2"]


async def test_forget_expired_can_be_limited_and_tried(caller: Caller, user_id: str) -> None:
    talks = [
        caller.service.for_user(user_id).conversation(thread_id, agent_id=agent_id)
        for agent_id in ("billing", "support")
        for thread_id in ("one", "two")
    ]
    for talk in talks:
        await caller(talk.append, [HumanMessage(f"{number}") for number in range(3)])
    within = {"retention": Retention(max_messages=1)}
    theirs = caller.service.for_user(user_id)
    gone = await caller(theirs.forget_expired, **within, dry_run=True)
    assert gone == Receipt(4, 8, dry_run=True)
    assert [await caller(talk.count) for talk in talks] == [3, 3, 3, 3]
    assert [each.sequence for each in await caller(talks[0].read)] == [0, 1, 2]
    assert await caller(theirs.forget_expired, **within, agent_id="billing", thread_id="two") == Receipt(1, 2)
    assert [await caller(talk.count) for talk in talks] == [3, 1, 3, 3]
    assert await caller(theirs.forget_expired, **within, agent_id="billing") == Receipt(1, 2)
    assert await caller(theirs.forget_expired, **within, thread_id="two") == Receipt(1, 2)
    assert [await caller(talk.count) for talk in talks] == [1, 1, 3, 1]
    assert await caller(theirs.forget_expired, **within, dry_run=True) == Receipt(1, 2, dry_run=True)
    for limit in ({"agent_id": ""}, {"thread_id": "a\nb"}):
        with pytest.raises(InvalidInputError, match=next(iter(limit))):
            await caller(theirs.forget_expired, **within, **limit)


def test_forget_expired_goes_over_more_than_a_page(direct: SupabaseMemory, user_id: str) -> None:
    for number in range(230):
        direct.conversation(f"t{number}").append([HumanMessage("old")], created_at=ago(days=2))
    direct.conversation("new").append([HumanMessage("new")])
    assert direct.forget_expired(retention=Retention(max_age=DAY)) == Receipt(230, 230)
    assert direct.forget_expired(retention=Retention(max_age=DAY)) == Receipt()
    assert direct.conversation("new").count() == 1


# --- Summaries


def summarized(direct: SupabaseMemory) -> None:
    """Sixty messages, the first fifty in five segments of ten."""
    direct.conversation("t").append([HumanMessage("x" * 90, id=f"m{number}") for number in range(60)])
    direct.conversation("t").summaries.make(policy=SummaryPolicy(keep_messages=10, input_characters=900))
    assert [each.number for each in direct.conversation("t").summaries.list()] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("way", ["pack", "node", "history"])
def test_nothing_is_made_of_what_has_expired(conn_string: str, user_id: str, way: str) -> None:
    """A read writes nothing, so what it makes before an answer could still find what it hides."""
    prompts: list[str] = []

    def writer(prompt: Sequence[BaseMessage]) -> str:
        prompts.append(" ".join(str(each.content) for each in prompt))
        return "They talked."

    with SupabaseMemory.from_conn_string(
        conn_string,
        user_id=user_id,
        model=writer,
        budget=ContextBudget(characters=1500),
        config=MemoryConfig(policy=SummaryPolicy(characters=400, keep_messages=4)),
        retention=Retention(max_age=DAY),
    ) as memory:
        lasting = SupabaseMemory(
            memory._services.transport, user_id=user_id, model=None, config=MemoryConfig(recall=None)
        ).conversation("t")
        lasting.append([HumanMessage(f"plum {n} " * 9) for n in range(20)], created_at=ago(days=2))
        lasting.append([HumanMessage(f"pear {n} " * 9) for n in range(20)])
        if way == "pack":
            memory.conversation("t").context("And now?")
        elif way == "node":
            run: Any = {"configurable": {"thread_id": "t", "user_id": user_id}}
            LoadContextNode(memory, on_error="raise").invoke({"messages": [HumanMessage("And now?")]}, run)
        else:
            assert SupabaseChatMessageHistory("t", memory, on_error="raise").messages
        assert prompts
        assert not any("plum" in prompt for prompt in prompts)
        chunks = lasting.chunks.list()
        assert bool(chunks) == (way != "history"), "a history is not told what is asked, and recalls nothing"
        assert not any("plum" in each.content for each in chunks)


def test_summaries_have_an_age_of_their_own(direct: SupabaseMemory, sql: psycopg.Connection) -> None:
    conversation = direct.conversation("t")
    summarized(direct)
    retention = Retention(max_age=DAY, max_summary_age=timedelta(days=90))
    age = "update memory.{} set created_at = now() - %s where user_id = %s and {}"

    sql.execute(age.format("conversation_messages", "sequence < 55").encode(), [timedelta(hours=25), direct.user_id])
    assert len(direct.conversation("t").read(retention=retention)) == 5
    direct.forget_expired(retention=retention)
    coverage = direct.conversation("t").coverage()
    assert (coverage.complete, coverage.gaps, coverage.overlaps) == (True, [], [])
    assert {coverage.range_of(number).state for number in range(55)} == {"expired"}
    assert coverage.range_of(12).segment == 2, "what was said is still told by its summary"
    assert "What was said." in str(conversation.context().prompt[0].content)

    sql.execute(age.format("conversation_summaries", "number < 5").encode(), [timedelta(days=91), direct.user_id])
    direct.forget_expired(retention=retention)
    assert len(direct.conversation("t").summaries.list()) == 5, "the newest is built on them and is not too old"
    sql.execute(age.format("conversation_summaries", "number = 5").encode(), [timedelta(days=91), direct.user_id])
    keeping = SupabaseMemory(direct._services.transport, user_id=direct.user_id, retention=retention)
    assert keeping.conversation("t").summaries.list() == []
    assert "What was said." not in str(keeping.conversation("t").context().prompt[0].content)
    assert len(direct.conversation("t").summaries.list()) == 5, "a read writes nothing"
    direct.forget_expired(retention=retention)
    assert direct.conversation("t").summaries.list() == []
    coverage = direct.conversation("t").coverage()
    assert (coverage.complete, coverage.gaps, coverage.overlaps) == (True, [], [])
    # And summarizing goes on with what is left.
    conversation.append([HumanMessage("x" * 90) for _ in range(20)])
    result = conversation.summaries.make()
    assert result.failed is None
    assert conversation.summaries.list()[0].from_sequence == 55
    assert conversation.coverage().complete


def test_when_its_summaries_go_what_is_kept_is_summarized_anew(direct: SupabaseMemory, sql: psycopg.Connection) -> None:
    summarized(direct)
    sql.execute(
        "update memory.conversation_summaries set created_at = now() - interval '91 days' where user_id = %s",
        [direct.user_id],
    )
    assert direct.forget_expired(retention=Retention(max_messages=40)) == Receipt(1, 20, segments=5)
    conversation = direct.conversation("t")
    assert conversation.summaries.list() == []
    result = conversation.summaries.make(policy=SummaryPolicy(keep_messages=10, input_characters=900))
    assert result.failed is None
    assert [(each.from_sequence, each.to_sequence) for each in conversation.summaries.list()] == [
        (20, 29),
        (30, 39),
        (40, 49),
    ]
    coverage = conversation.coverage()
    assert (coverage.complete, coverage.gaps, coverage.overlaps) == (True, [], [])


@pytest.mark.parametrize("kept", [55, 45, 8, 1])
def test_a_summary_under_way_is_not_committed_over_what_expired(direct: SupabaseMemory, kept: int) -> None:
    conversation = direct.conversation("t")
    conversation.append([HumanMessage("x" * 90, id=f"m{number}") for number in range(60)])

    def expiring(prompt: Sequence[BaseMessage]) -> str:
        direct.forget_expired(retention=Retention(max_messages=kept))
        return "What was said."

    conversation.summaries.make(model=expiring, policy=SummaryPolicy(keep_messages=10, input_characters=900))
    for segment in conversation.summaries.list():
        assert segment.from_sequence >= 60 - kept
    coverage = conversation.coverage()
    assert (coverage.complete or kept > 10, coverage.gaps, coverage.overlaps) == (True, [], [])
    assert conversation.summaries.make(policy=SummaryPolicy(keep_messages=10)).failed is None
    assert conversation.coverage().complete


def test_one_that_is_too_old_between_others_leaves_the_sums_right(
    direct: SupabaseMemory, sql: psycopg.Connection
) -> None:
    conversation = direct.conversation("t")
    times = [ago(days=2) if number in (7, 8, 23, 52, 59) else None for number in range(60)]
    conversation.append([HumanMessage("x" * (90 + n), id=f"m{n}") for n in range(60)], created_at=times)
    conversation.summaries.make(policy=SummaryPolicy(keep_messages=10, input_characters=900))
    segments = len(conversation.summaries.list())
    assert len(conversation.read(retention=Retention(max_age=DAY))) == 55
    assert direct.forget_expired(retention=Retention(max_age=DAY)) == Receipt(1, 5)
    assert_counted(sql, str(direct.user_id))
    coverage = conversation.coverage(budget=ContextBudget(characters=100_000))
    assert (coverage.complete, coverage.gaps, coverage.overlaps) == (True, [], [])
    assert [number for number in range(60) if coverage.range_of(number).state == "expired"] == [7, 8, 23, 52, 59]
    assert len(conversation.summaries.list()) == segments
    pack = conversation.context(budget=ContextBudget(characters=100_000))
    assert len(pack.prompt) == 55, "everything that is kept fits"


class Story:
    """A conversation to which anything may happen, and what is known of it without asking for its coverage."""

    def __init__(self, memory: SupabaseMemory, sql: psycopg.Connection, seed: int) -> None:
        self.memory, self.sql = memory, sql
        self.rng = random.Random(seed)
        self.ids: list[str] = []

    def append(self) -> None:
        for _ in range(self.rng.randrange(1, 12)):
            words = "word " * self.rng.choice([1, 5, 20, 20, 90])
            made: list[BaseMessage] = [HumanMessage(words), AIMessage(words), *block("b"), AIMessage(words)]
            message = self.rng.choice(made)
            message.id = f"m{len(self.ids)}"
            time = ago(days=2) if self.rng.random() < 0.1 else None
            self.memory.conversation("t").append([message], created_at=time)
            self.ids.append(str(message.id))

    def forget(self) -> None:
        self.memory.conversation("t").forget_message(self.rng.choice(self.ids))

    def edit(self) -> None:
        stored = self.memory.conversation("t").read(columns=["message_id"])
        if stored:
            chosen = self.rng.choice(stored).message_id
            self.memory.conversation("t").append([HumanMessage("word " * self.rng.randrange(40), id=chosen)])

    def summarize(self) -> None:
        self.memory.conversation("t").summaries.make()

    def expire(self) -> None:
        retention = self.rng.choice(
            [
                Retention(max_turns=self.rng.randrange(1, 8)),
                Retention(max_messages=self.rng.randrange(1, 40)),
                Retention(max_age=DAY),
                Retention(max_age=DAY, max_turns=5, max_messages=30),
            ]
        )
        hidden = self.seen(retention)
        self.memory.forget_expired(retention=retention)
        self.shows(hidden, retention)

    def seen(self, retention: Retention | None) -> list[Any]:
        """All that reads show of the conversation."""
        memory = SupabaseMemory(
            self.memory._services.transport,
            user_id=self.memory.user_id,
            budget=BUDGET,
            config=MemoryConfig(policy=POLICY),
            retention=retention,
        )
        pack = memory.conversation("t").context()
        wide = memory.conversation("t").context(budget=ContextBudget(characters=100_000))
        read = memory.conversation("t").read(columns=["message_id", "text"])
        return [
            [(each.sequence, each.message_id, each.text) for each in read],
            [each.sequence for each in memory.conversation("t").read(last=3, columns=[])],
            memory.conversation("t").turns.list(),
            memory.conversation("t").turns.list(last=2),
            memory.conversation("t").turns.get(1),
            memory.conversation("t").count(),
            [each.message_count for each in memory.conversations()],
            memory.conversation("t").summaries.list(),
            memory.conversation("t").coverage(),
            [
                (each.prompt, each.omitted, each.due, each.due_through, each.through_sequence, each.full_messages)
                for each in (pack, wide)
            ],
            [(each.full_characters, each.full_tokens) for each in (pack, wide)],
        ]

    def shows(self, hidden: list[Any], retention: Retention) -> None:
        """Reads show the same as before it was removed; packs, which leave out what expires next, with the retention."""
        assert hidden == self.seen(retention)
        assert hidden[:8] == self.seen(None)[:8]

    def forget_summaries(self) -> None:
        self.sql.execute(
            "update memory.conversation_summaries set created_at = now() - interval '91 days' where user_id = %s",
            [self.memory.user_id],
        )
        hidden = self.seen(Retention())
        self.memory.forget_expired(retention=Retention())
        self.shows(hidden, Retention())

    def step(self) -> None:
        does = [self.append] * 4 + [self.summarize] * 3 + [self.expire] * 2 + [self.forget, self.edit]
        if self.rng.random() < 0.05:
            does = [self.forget_summaries]
        (self.rng.choice(does) if self.ids else self.append)()

    def check(self) -> None:
        assert_counted(self.sql, str(self.memory.user_id))
        conversation = self.memory.conversation("t")
        stored = {each.sequence for each in conversation.read(columns=[])}
        coverage = conversation.coverage()
        pack = conversation.context()
        shown = {number for entry in pack.fitted.recent for number in entry.sequences} - set(pack.clipped)
        segments = conversation.summaries.list()
        edges = [(each.from_sequence, each.to_sequence) for each in coverage.ranges]
        assert [n for first, last in edges for n in range(first, last + 1)] == list(range(len(self.ids)))
        for number in range(len(self.ids)):
            found = coverage.range_of(number)
            assert (found.state in ("expired", "forgotten")) is (number not in stored)
            if number in stored:
                inside = any(each.from_sequence <= number <= each.to_sequence for each in segments)
                assert found.state == ("verbatim" if number in shown else "segment" if inside else "omitted")
        assert (coverage.gaps, coverage.overlaps) == ([], [])
        assert coverage.complete is not any(each.state == "omitted" for each in coverage.ranges)
        assert conversation.count() == len(stored)


@pytest.mark.parametrize("seed", range(5))
def test_coverage_stays_whole_whatever_expires(direct: SupabaseMemory, sql: psycopg.Connection, seed: int) -> None:
    story = Story(direct, sql, seed)
    for _ in range(30):
        story.step()
        story.check()
    assert direct.conversation("t").summaries.make().failed is None
    story.check()


@pytest.mark.parametrize(
    ("old", "new", "mixed"),
    [(30, 2100, False), (2100, 30, True), (1300, 1300, False), (1300, 1300, True), (2100, 0, False)],
)
def test_a_long_history_shows_the_same_before_it_is_removed(
    direct: SupabaseMemory, sql: psycopg.Connection, old: int, new: int, mixed: bool
) -> None:
    times = [ago(days=2)] * old + [ago(hours=1)] * new
    if mixed:
        random.Random(old).shuffle(times)
    for start in range(0, len(times), 900):
        batch: list[BaseMessage] = [HumanMessage("word " * 5, id=f"m{start + n}") for n in range(900)]
        part = times[start : start + 900]
        direct.conversation("t").append(batch[: len(part)], created_at=part)
    story = Story(direct, sql, 0)
    hidden = story.seen(Retention(max_age=DAY))
    assert direct.forget_expired(retention=Retention(max_age=DAY)).messages == old
    story.shows(hidden, Retention(max_age=DAY))


# --- Many at once


@pytest.mark.both_colors("threads and tasks share a transport in other ways")
async def test_writers_and_readers_at_once_keep_exactly_the_newest(caller: Caller, user_id: str) -> None:
    retention = Retention(max_turns=5, max_age=timedelta(days=1))
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, retention=retention)
    counts: list[int] = []

    conversation = memory.conversation("t")

    async def use(verb: Callable[..., Any], *arguments: Any) -> Any:
        if caller.color == "async":
            return await caller(verb, *arguments)
        return await asyncio.to_thread(verb, *arguments)

    async def write(writer: int) -> None:
        for number in range(8):
            await use(conversation.add_turn, f"{writer}-{number}", f"answer {writer}-{number}")

    async def read() -> None:
        for _ in range(8):
            counts.append(len(await use(conversation.turns.list)))
            await use(conversation.read)
            await use(memory.forget_expired)

    await asyncio.gather(*(write(writer) for writer in range(6)), *(read() for _ in range(4)))
    assert max(counts) <= 5
    found = await caller(caller.service.for_user(user_id).conversation("t").turns.list)
    assert [each.from_sequence for each in found] == list(range(86, 96, 2)), "the newest five of forty-eight"
    for each in found:
        assert each.ai_response == f"answer {each.user_query}"
    assert await caller(caller.service.for_user(user_id).conversation("t").count) == 10


def test_two_writers_never_leave_more_than_the_limit(direct: SupabaseMemory, conn_string: str, user_id: str) -> None:
    """What any reader sees between the commits, who has no retention and so removes nothing."""
    retention = Retention(max_turns=3)
    done: list[bool] = []

    def write(writer: int) -> None:
        for number in range(25):
            direct.conversation("t").add_turn(f"{writer}-{number}", "answer", retention=retention)

    def watch() -> int:
        most = 0
        while not done:
            most = max(most, len(direct.conversation("t").turns.list()))
        return most

    with ThreadPoolExecutor(3) as threads:
        watched = threads.submit(watch)
        writers = [threads.submit(write, writer) for writer in range(2)]
        try:
            for each in writers:
                each.result()
        finally:
            done.append(True)
        assert watched.result() <= 3
    assert [each.from_sequence for each in direct.conversation("t").turns.list()] == [94, 96, 98]


def test_erasing_and_expiring_at_once_do_not_lock_each_other_out(direct: SupabaseMemory, conn_string: str) -> None:
    retention = Retention(max_messages=1)
    with ThreadPoolExecutor(6) as threads:
        for _ in range(6):
            for number in range(12):
                direct.conversation(f"t{number}").append(said(number))
            futures = [threads.submit(direct.forget_expired, retention=retention) for _ in range(3)]
            futures += [threads.submit(direct.forget_user) for _ in range(2)]
            for each in futures:
                each.result()
    assert not direct.conversations()


async def test_what_has_expired_is_not_brought_back_by_a_retry(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    said: list[BaseMessage] = [
        each
        for number in range(3)
        for each in (HumanMessage(f"q{number}", id=f"q{number}"), AIMessage(f"a{number}", id=f"a{number}"))
    ]
    retention = Retention(max_turns=1)
    conversation = conversation_of(caller.service, **where)
    await caller(conversation.append, said, retention=retention)
    again = await caller(conversation.append, [*said, HumanMessage("q3", id="q3")], retention=retention)
    assert again.sequences == [None, None, None, None, 4, 5, 6]
    stored = await caller(conversation.read)
    assert [each.message.text for each in stored] == ["q2", "a2", "q3"]
    assert (await caller(conversation.append, said[:2])).appended == 0


async def test_what_was_forgotten_is_not_brought_back(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    said: list[BaseMessage] = [HumanMessage("secret", id="s"), AIMessage("fine", id="f")]
    conversation = conversation_of(caller.service, **where)
    await caller(conversation.append, said)
    await caller(conversation.forget_message, "s")
    assert (await caller(conversation.append, said)).sequences == [None, 1]
    assert [each.message.text for each in await caller(conversation.read)] == ["fine"]
