"""What the timeline draws: neighboring ranges joined, whole turns, tools folded."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.inspector.screens.turns import fork_of, joined, turns
from langchain_supabase_memory.values import CoveredRange, Role, StoredMessage
from tests.inspector.visiting import Person, memory_of
from tests.operations.test_branches import Subject

MIDNIGHT = datetime(2026, 11, 12, tzinfo=UTC)


def message(sequence: int, role: Role, text: str = "words", day: int = 0) -> StoredMessage:
    return StoredMessage(sequence, role=role, text=text, created_at=MIDNIGHT.replace(day=12 + day))


def test_neighbors_of_one_state_and_one_reason_are_one_range() -> None:
    ranges = [
        CoveredRange(0, 9, "segment", 1),
        CoveredRange(10, 19, "segment", 2),
        CoveredRange(20, 20, "omitted", reason="too long"),
        CoveredRange(21, 21, "omitted", reason="private"),
        CoveredRange(22, 23, "verbatim"),
        CoveredRange(30, 31, "verbatim"),
    ]
    found = joined(ranges)
    assert [(each.first, each.last, each.label, each.segments) for each in found] == [
        (0, 19, "summarized", (1, 2)), (20, 20, "left out", ()), (21, 21, "left out", ()),
        (22, 23, "word for word", ()), (30, 31, "word for word", ()),
    ]  # fmt: skip


def test_a_turn_is_a_question_and_all_up_to_the_next_one_with_its_tools_folded() -> None:
    page = [
        message(0, "user"), message(1, "assistant", ""), message(2, "tool"), message(3, "assistant"),
        message(4, "user", day=1), message(5, "assistant", day=2),
    ]  # fmt: skip
    found = turns(page, joined([CoveredRange(0, 5, "verbatim"), CoveredRange(6, 8, "expired")]), 0, 9)
    assert [[line.message.sequence for line in each.lines] for each in found] == [[0, 1, 2, 3], [4, 5], []]
    steps = [(folded, [line.message.sequence for line in lines]) for folded, lines in found[0].steps]
    assert steps == [(False, [0]), (True, [1, 2]), (False, [3])]
    assert [each.begins_range for each in found] == [True, False, True]
    assert [line.day is not None for line in found[1].lines] == [True, True]
    assert (found[2].first, found[2].last, found[2].range.removed) == (6, 8, "expired")


def test_a_page_of_the_middle_shows_its_part_of_each_range() -> None:
    found = turns(
        [message(3, "assistant")], joined([CoveredRange(0, 2, "forgotten"), CoveredRange(3, 9, "verbatim")]), 1, 4
    )
    assert [(each.first, each.last, len(each.lines)) for each in found] == [(1, 2, 0), (0, 0, 1)]


def test_branches_that_were_left_begin_where_the_graph_forked() -> None:
    left = [replace(message(n, "user"), parent={4: 1, 6: -1, 7: -3}.get(n)) for n in range(2, 8)]
    ranges = joined([CoveredRange(0, 1, "verbatim"), CoveredRange(2, 7, "superseded"), CoveredRange(8, 9, "forgotten")])
    found = turns([message(0, "user"), message(1, "assistant")], ranges, 0, 10, left)
    assert [(each.is_left, each.first, each.last, each.after) for each in found[1:]] == [
        (True, 2, 3, 1), (True, 4, 5, 1), (True, 6, 6, None), (True, 7, 7, 1), (False, 8, 9, None),
    ]  # fmt: skip
    assert [each.begins_range for each in found] == [True, True, False, False, False, True]
    assert [fork_of(parent) for parent in (3, 0, -1, -2, -4)] == [3, 0, None, 0, 2]


async def test_the_timeline_shows_what_was_said_on_a_branch_that_was_left(
    memory: SupabaseMemory, conn_string: str, user_id: str
) -> None:
    subject = Subject(memory, "middleware-sync")
    await subject.talks("one", "two of the old branch")
    for question in ("three of another branch", "four"):
        await subject(question, subject.checkpoint(2))
    async with Person(memory) as person:
        page = await person.page("/conversation", thread="t")
        original = await person.page("/conversation/message", thread="t", number=2)
        opened = await person.page("/conversation", thread="t", at=2)
        await person.page("/conversation/message", 404, thread="t", number=99)
    assert "A branch that was left after message 1: messages 2 to 3 two of the old branch" in page.text
    assert "A branch that was left after message 1: messages 4 to 5 three of another branch" in page.text
    assert "This branch goes on from message 1." in page.text
    assert [attributes.get("open", "shut") for attributes in page.all("details")].count(None) == 0, "both are folded"
    assert [attributes.get("open", "shut") for attributes in opened.all("details")].count(None) == 1
    assert "two of the old branch" in original.text
    async with memory_of(conn_string, f"{user_id}-stranger") as other, Person(other) as stranger:
        await stranger.page("/conversation/message", 404, thread="t", number=2)
    kept = memory.conversation("t").superseded
    assert [each.sequence for each in kept.list(from_sequence=3, to_sequence=4)] == [3, 4]
    assert [each.parent for each in kept.list(columns=["parent"])] == [None, None, 1, None]
