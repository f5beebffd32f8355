"""Complete summaries: every level covers all of the one below once; parts are reused, and deleted when invalid."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import count, pairwise
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage

from langchain_supabase_memory import ContextBudget, MemoryConfig, Retention, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.effects import Material
from langchain_supabase_memory.operations import summaries
from langchain_supabase_memory.operations.summaries.hierarchical import summarize_levels
from langchain_supabase_memory.types import Segment
from langchain_supabase_memory.values import LevelFault
from tests.conftest import Caller
from tests.embedders import WordEmbedder
from tests.memory_keywords import memory_keywords
from tests.owners import conversation_of
from tests.services.data_api import token

WHERE: dict[str, Any] = {"thread_id": "t"}
POLICY = SummaryPolicy(input_characters=100, max_characters=60, attempts=1)
SUMMARY = SummaryPolicy(input_characters=400, max_characters=200, attempts=1, keep_characters=300, min_quality=None)
_threads = count()


class Counting:
    """A writer that counts what it is asked, and says of a summary what it covers."""

    name = "counting"

    def __init__(self, fail_at: int | None = None, meanwhile: Callable[[int], None] | None = None) -> None:
        self.calls = 0
        self.fail_at = fail_at
        self.meanwhile = meanwhile

    def write(self, material: Material) -> str:
        if material.task == "board":
            quotes = [{"text": each.text, "source": each.number, "quote": each.text} for each in material.lines]
            return json.dumps({"summary": "The board.", "facts": quotes, "topics": quotes[:1]})
        self.calls += 1
        if self.meanwhile is not None:
            self.meanwhile(self.calls)
        if self.calls == self.fail_at:
            raise ConnectionError
        if material.task == "condense":
            return f"all of {len((material.previous or '').splitlines())} parts"
        return f"{material.lines[0].number} to {material.lines[-1].number}"


@pytest.fixture(scope="module")
def shared(conn_string: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id="complete") as memory:
        yield memory


def say(memory: SupabaseMemory, number: int, first: int = 0, thread_id: str = "t") -> None:
    memory.conversation(thread_id).append(
        [HumanMessage(f"message {n:03}", id=f"m{n}") for n in range(first, first + number)]
    )


def make(memory: SupabaseMemory, writer: Any, thread_id: str = "t", policy: SummaryPolicy = POLICY) -> Any:
    """The flow over the levels alone, without the board."""
    from langchain_supabase_memory.adapters.summarizer import SummaryModel, asking

    flow = summarize_levels(memory._services.key(thread_id), memory._services.summary_policy(policy))
    return memory._services.run(asking(flow, SummaryModel(writer)))


def levels(memory: SupabaseMemory, thread_id: str = "t") -> list[list[Segment]]:
    found: list[list[Segment]] = []
    for level in count(1):
        there = memory._services.run(summaries.list_segments(memory._services.key(thread_id), level=level))
        if not there:
            return found
        found.append(there)
    raise AssertionError


def sound(memory: SupabaseMemory, last: int, thread_id: str = "t") -> list[list[Segment]]:
    """Every level covers 0 to the last message, each once, and ends in one root."""
    found = levels(memory, thread_id)
    for level in found:
        assert level[0].from_sequence == 0
        assert level[-1].to_sequence == last
        assert all(one.to_sequence + 1 == two.from_sequence for one, two in pairwise(level))
    assert [len(each) for each in found][-1] == 1
    for below, level in pairwise(found):
        assert len(level) < len(below)
        by_number = {each.number: each for each in below}
        assert [part for each in level for part in each.parts or ()] == [each.number for each in below]
        for each in level:
            made_of = [by_number[part] for part in each.parts or ()]
            assert (made_of[0].from_sequence, made_of[-1].to_sequence) == (each.from_sequence, each.to_sequence)
            assert each.message_ids == [name for part in made_of for name in part.message_ids or ()]
    assert memory.conversation(thread_id).coverage().levels == []
    return found


@given(st.integers(1, 120), st.integers(0, 30), st.integers(10, 400), st.integers(10, 200))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_level_covers_everything_once(
    shared: SupabaseMemory, first: int, more: int, input_characters: int, longest: int
) -> None:
    thread_id = f"thread {next(_threads)}"
    policy = SummaryPolicy(input_characters=input_characters, max_characters=longest, attempts=1)
    say(shared, first, thread_id=thread_id)
    assert make(shared, Counting(), thread_id, policy).failed is None
    before = {(each.level, each.number): each for level in sound(shared, first - 1, thread_id) for each in level}
    again = Counting()
    make(shared, again, thread_id, policy)
    assert again.calls == 0
    if more:
        say(shared, more, first, thread_id=thread_id)
        assert make(shared, Counting(), thread_id, policy).failed is None
        after = {
            (each.level, each.number): each for level in sound(shared, first + more - 1, thread_id) for each in level
        }
        for place, each in before.items():
            if place[0] == 1:
                assert after[place] == each, "what was made of messages stays"


def test_one_answer_is_enough_for_a_short_conversation(memory: SupabaseMemory) -> None:
    say(memory, 3)
    writer = Counting()
    assert make(memory, writer).model_calls == writer.calls == 1
    ((root,),) = sound(memory, 2)
    assert (root.level, root.content) == (1, "0 to 2")
    assert make(memory, Counting(), "nowhere").through_sequence == -1


def test_only_the_last_branch_is_written_anew(memory: SupabaseMemory) -> None:
    say(memory, 160)
    whole = Counting()
    make(memory, whole)
    before = sound(memory, 159)
    assert len(before) >= 4
    say(memory, 1, 160)
    again = Counting()
    make(memory, again)
    after = sound(memory, 160)
    assert again.calls <= len(after) < whole.calls
    ids = {each.id for level in after for each in level}
    gone = [each for level in before for each in level if each.id not in ids]
    assert len(gone) <= len(after)


def test_what_failed_in_the_middle_goes_on_from_there(memory: SupabaseMemory) -> None:
    say(memory, 90)
    needed = Counting()
    say(memory, 90, thread_id="other")
    make(memory, needed, "other")
    done = 0
    for fail_at in (4, 9, 3):
        writer = Counting(fail_at)
        result = make(memory, writer)
        if writer.calls == fail_at:
            assert result.failed == "ConnectionError"
        done += writer.calls - 1
        assert conversation_of(memory, **WHERE).coverage().levels == []
    final = Counting()
    assert make(memory, final).failed is None
    sound(memory, 89)
    assert done + final.calls == needed.calls, "nothing was written twice"


def test_what_is_half_made_is_not_taken_for_the_whole(memory: SupabaseMemory) -> None:
    say(memory, 160)
    say(memory, 160, thread_id="other")
    needed = Counting()
    make(memory, needed, "other")
    make(memory, Counting(fail_at=needed.calls))  # all but the root
    assert len(levels(memory)[-1]) > 1
    (top,) = memory._services.run(summaries.list_segments(memory._services.key("t"), last=1, level=None))
    assert (top.from_sequence, top.number) == (0, 1)
    for found in memory.recall_summaries("all parts"):
        assert found.from_sequence == 0
    assert make(memory, Counting()).failed is None
    sound(memory, 159)


@pytest.mark.parametrize("way", ["edit", "forget"])
@pytest.mark.parametrize("place", [0, 40, 89])
def test_a_change_in_the_middle_takes_exactly_what_was_made_from_it(
    memory: SupabaseMemory, way: str, place: int
) -> None:
    say(memory, 90)
    make(memory, Counting())
    before = sound(memory, 89)
    if way == "edit":
        memory.conversation("t").append([HumanMessage("changed", id=f"m{place}")])
    else:
        conversation_of(memory, **WHERE).forget_message(f"m{place}")
    left = [each for level in levels(memory) for each in level]
    assert left == [each for level in before for each in level if each.to_sequence < place]
    assert conversation_of(memory, **WHERE).coverage().levels == []
    assert make(memory, Counting()).failed is None
    root = levels(memory)[-1][0]
    assert (root.from_sequence, len(levels(memory)[-1])) == (0, 1)
    assert conversation_of(memory, **WHERE).coverage().levels == []
    if way == "forget":
        assert f"m{place}" not in (root.message_ids or ())


def test_two_at_once_and_a_change_meanwhile_leave_it_sound(memory: SupabaseMemory) -> None:
    say(memory, 90)
    inner: list[Any] = []

    def meanwhile(calls: int) -> None:
        if calls in (2, 14):
            inner.append(make(memory, Counting()))

    result = make(memory, Counting(meanwhile=meanwhile))
    assert result.conflict
    assert not inner[0].conflict
    assert make(memory, Counting()).failed is None
    sound(memory, 89)

    def editing(calls: int) -> None:
        if calls == 1:
            memory.conversation("t").append([HumanMessage("changed", id="m10")])

    say(memory, 1, 90)
    assert make(memory, Counting(meanwhile=editing)).conflict
    assert make(memory, Counting()).failed is None
    sound(memory, 90)


def test_faults_on_any_level_are_reported(memory: SupabaseMemory, sql: psycopg.Connection) -> None:
    say(memory, 160)
    make(memory, Counting())
    found = sound(memory, 159)
    table = "memory.conversation_summaries"
    mine = f"user_id = '{memory.user_id}'"

    def faults(change: str) -> list[tuple[int, int, str]]:
        with sql.transaction(force_rollback=True):
            sql.execute(change.encode())
            row = sql.execute("select public.memory_coverage('t', %s)", [memory.user_id]).fetchone()
            assert row is not None
            from langchain_supabase_memory.context.coverage import _levels

            stored = [(first, last) for first, last in row[0]["stored"]]
            return [(each.level, each.number, each.kind) for each in _levels(row[0]["levels"], stored)]

    assert faults("select 1") == []
    assert faults(f"delete from {table} where {mine} and level = 1 and number = 2") == [
        (1, 3, "gap"), (2, 1, "parts"),
    ]  # fmt: skip
    assert (1, 3, "overlap") in faults(
        f"update {table} set from_sequence = from_sequence - 1 where {mine} and level = 1 and number = 3"
    )
    assert faults(f"update {table} set to_sequence = to_sequence + 1 where {mine} and level = {len(found)}") == [
        (len(found), 1, "parts")
    ]
    assert faults(
        f"update {table} set parts = parts[2:] || '{{}}'::integer[] where {mine} and level = 2 and number = 1"
    ) == [(2, 1, "parts")]
    assert faults(f"delete from {table} where {mine} and level = 2 and number = 1")[0] == (2, 2, "gap")
    sql.execute(f"delete from {table} where {mine} and level = 1 and number = 2".encode())
    coverage = conversation_of(memory, **WHERE).coverage(budget=ContextBudget(characters=100_000))
    first, last = found[0][1].from_sequence, found[0][1].to_sequence
    assert coverage.levels[0] == LevelFault(1, 3, first, last, "gap")
    assert not coverage.complete


# --- With topics, facts and a vector


async def test_a_complete_summary_has_its_topics_facts_and_vector(caller: Caller, user_id: str) -> None:
    memory = SupabaseMemory(
        caller.service._services.transport,
        user_id=user_id,
        model=Counting(),
        embeddings=WordEmbedder(),
        config=MemoryConfig(policy=POLICY),
    )
    conversation = conversation_of(memory, **WHERE)
    await caller(conversation.append, [HumanMessage(f"message {n:03}", id=f"m{n}") for n in range(40)])
    result = await caller(conversation.summaries.complete)
    assert result.summary is not None
    assert (result.failed, result.embedded, result.levels) == (None, True, result.summary.level)
    assert (result.summary.from_sequence, result.summary.to_sequence) == (0, 39)
    assert result.summary.topics == ["message 000"]
    facts = result.summary.key_facts
    assert facts is not None
    assert len(facts) == 40
    assert {"text": "message 007", "quote": "message 007", "message_ids": ["m7"]} in facts
    (found,) = await caller(memory.recall_summaries, "parts")
    assert found.content == result.summary.content
    assert found.similarity is not None
    # A fact that a person deletes goes from there as well.
    item = next(each for each in (await caller(conversation.board.read)).facts if each.text == "message 007")
    await caller(conversation.board.delete, item, actor="ana")
    top = (await caller(conversation.summaries.complete)).summary
    assert top is not None
    assert "message 007" not in str(top.key_facts)
    stranger = caller.as_token(token(user_id=f"{user_id}-stranger"))
    assert await caller(conversation_of(stranger.for_user(user_id), **WHERE).summaries.list) == []


def test_facts_of_what_a_summary_does_not_cover_are_none_of_its_own(memory: SupabaseMemory, conn_string: str) -> None:
    say(memory, 10)

    def going_on(calls: int) -> None:
        if calls == 1:
            memory.conversation("t").append([HumanMessage("canary", id="late")])
            conversation_of(
                SupabaseMemory(memory._services.transport, user_id=memory.user_id, model=Counting()), **WHERE
            ).board.revise()

    policy = SummaryPolicy(input_characters=1000, max_characters=60)
    summary = (
        conversation_of(memory, **WHERE).summaries.complete(model=Counting(meanwhile=going_on), policy=policy).summary
    )
    assert summary is not None
    assert summary.to_sequence == 9
    assert "canary" not in str(summary.key_facts)
    conversation_of(memory, **WHERE).forget_message("late")
    with psycopg.connect(conn_string) as connection:
        rows = connection.execute(
            "select s::text from memory.conversation_summaries s where user_id = %s", [memory.user_id]
        ).fetchall()
    assert rows
    assert "canary" not in str(rows)


def test_a_fact_forgotten_between_reading_and_writing_is_not_written(memory: SupabaseMemory) -> None:
    say(memory, 5)
    make(memory, Counting())
    top = levels(memory)[-1][0]
    from langchain_supabase_memory.effects import Call

    given = {"p_thread_id": "t", "p_user_id": memory.user_id, "p_id": top.id, "p_topics": ["x"], "p_key_facts": []}
    for revision, described in ((0, True), (1, False)):
        call = Call("memory_describe_summary", {**given, "p_revision": revision})
        assert memory._services.transport.perform(call) == {"described": described}


def test_old_summaries_of_every_level_go(memory: SupabaseMemory) -> None:
    say(memory, 60)
    assert conversation_of(memory, **WHERE).summaries.complete(model=Counting(), policy=POLICY).failed is None
    assert levels(memory)
    memory.forget_expired(retention=Retention(max_summary_age=timedelta(microseconds=1)))
    assert levels(memory) == []
    assert conversation_of(memory, **WHERE).board.read().is_empty
    assert conversation_of(memory, **WHERE).count() == 60


def test_segments_and_levels_do_not_disturb_one_another(memory: SupabaseMemory) -> None:
    say(memory, 60)
    conversation = conversation_of(memory, **WHERE)
    rolling = conversation.summaries.make(model=Counting(), policy=SUMMARY)
    before = conversation.summaries.list()
    assert before
    make(memory, Counting())
    assert conversation.summaries.list() == before
    assert conversation.coverage().gaps == []
    tops = sound(memory, 59)
    # A rolling summary that failed has to wait, whatever becomes of the complete one.
    say(memory, 60, 60)
    failing = conversation.summaries.make(model=Counting(fail_at=1), policy=SUMMARY)
    assert failing.failed
    assert failing.through_sequence == rolling.through_sequence
    assert make(memory, Counting()).failed is None
    from langchain_supabase_memory.effects import Call

    pending = memory._services.transport.perform(
        Call("memory_pending", {"p_thread_id": "t", "p_user_id": memory.user_id, "p_until": 99})
    )
    assert pending["waiting"]
    assert conversation.summaries.make(model=Counting(), policy=SUMMARY).failed is None
    assert sound(memory, 119)[0][: len(tops[0]) - 1] == tops[0][:-1]


# --- A poor summary


@pytest.mark.parametrize("poor", [False, True])
def test_after_a_poor_summary_more_stays_verbatim_and_nothing_falls_between(memory: SupabaseMemory, poor: bool) -> None:
    def talk(first: int, number: int) -> list[BaseMessage]:
        return [
            HumanMessage(f"On {n + 1} May Maria paid {n}00 euros in Riga. {'word ' * 20}") for n in range(first, number)
        ]

    def summary(prompt: Sequence[BaseMessage]) -> str:
        return (
            "They talked." if poor else " ".join(f"On {n + 1} May Maria paid {n}00 euros in Riga." for n in range(60))
        )

    budget = ContextBudget(characters=6000)
    policy = SummaryPolicy(
        characters=3000, keep_characters=500, keep_when_poor=2500, max_characters=2500, mode="background"
    )
    within = {"policy": policy, "model": summary}
    poorly = SupabaseMemory(
        memory._services.transport, user_id=memory.user_id, budget=budget, **memory_keywords(within)
    )
    conversation = conversation_of(poorly, **WHERE)
    conversation.append(talk(0, 20))
    assert conversation.summaries.make().failed is None
    quality = conversation.summaries.list()[-1].quality
    assert quality is not None
    assert (quality < 0.15) is poor
    conversation.append(talk(20, 50))
    through = conversation.summaries.make().through_sequence
    stored = conversation.read(columns=["characters"])
    kept = sum(each.characters or 0 for each in stored if each.sequence > through)
    assert (kept > 2000) is poor
    assert kept <= 2700
    coverage = conversation.coverage()
    assert coverage.complete
    assert coverage.range_of(49).state == "verbatim"


def test_a_poor_summary_never_keeps_less(memory: SupabaseMemory) -> None:
    say(memory, 40)
    policy = SummaryPolicy(keep_messages=10, keep_when_poor=20, max_characters=100, min_quality=1.0)
    conversation_of(memory, **WHERE).summaries.make(model=lambda _: "Nothing.", policy=policy)
    say(memory, 20, 40)
    assert (
        conversation_of(memory, **WHERE).summaries.make(model=lambda _: "Nothing.", policy=policy).through_sequence
        == 49
    )
