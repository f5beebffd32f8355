"""What the timeline draws: neighboring ranges joined, whole turns, tools folded."""

from __future__ import annotations

from datetime import UTC, datetime

from langchain_supabase_memory.inspector.screens.turns import joined, turns
from langchain_supabase_memory.values import CoveredRange, Role, StoredMessage

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
