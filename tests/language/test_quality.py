"""The quality of a summary: how many names, numbers, dates and open questions of its source it retains."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_supabase_memory.effects import Material, TranscriptLine
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.language.quality import KINDS, WEIGHTS, Quality, quality
from langchain_supabase_memory.testing import transcript
from tests.each_case import each_case


def said(*texts: str, said_at: str | None = "2026-11-20T09:00:00+00:00") -> list[TranscriptLine]:
    return [TranscriptLine(at, "user", None, text, said_at) for at, text in enumerate(texts, 1)]


NOTHING = dict.fromkeys(KINDS, 0)


@each_case("text", ["", "ok thanks", "\U0001f600", "I like it a lot", "today is nice"])
def test_a_source_with_nothing_to_keep_is_kept(text: str) -> None:
    assert quality(said(text), "") == Quality(1.0, NOTHING, NOTHING)


def test_kinds_are_counted_once_each() -> None:
    lines = said(
        "my sister Ines paid 4,200 euros on 7 May 2026", "yes, Ines paid 4200, and Bea paid two on May 7",
        "How long does the visa for Japan take?",
    )  # fmt: skip
    found = quality(lines, "Ines paid 4.200 euros on 2026-05-07. Asked how long a visa takes.")
    assert found.present == {"names": 3, "numbers": 2, "dates": 1, "questions": 1}
    assert found.kept == {"names": 1, "numbers": 1, "dates": 1, "questions": 1}
    assert found.score == pytest.approx(0.3 / 3 + 0.3 / 2 + 0.2 + 0.2)


def test_the_weights_are_those_of_kinds_that_are_there() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert quality(said("it was 5 and then 7"), "5").score == pytest.approx(0.5)


NUMBERS_KEPT = [
    ("4,200 euros", "4200"), ("4,200", "4.200"), ("4200", "4,200"), ("4.2", "4,2"), ("two dogs", "2 dogs"), ("2 dogs", "two dogs"),
    ("dos perros", "two dogs"), ("1.234,56", "1,234.56"), ("16k", "16,000"), ("12.50", "12.5"), ("٣٤ of them", "34"),
    ("4\u202f200", "4200"), ("fifteen bags", "15 bags"),
]  # fmt: skip
NUMBERS_LOST = [
    ("4,200", "4,300"),
    ("42", "420"),
    ("two dogs", "three dogs"),
    ("1.5", "15"),
    ("18.5 grams", "18 grams"),
]


@each_case(("one", "two"), NUMBERS_KEPT + NUMBERS_LOST)
def test_numbers_are_compared_by_what_they_mean(one: str, two: str) -> None:
    found = quality(said(one), two)
    assert found.present["numbers"] == 1
    assert found.kept["numbers"] == ((one, two) in NUMBERS_KEPT)


DATES_KEPT = [
    ("on 7 May 2026", "May 7"), ("it was on May 7", "7 May 2026"), ("on 7 May 2026", "2026-05-07"), ("yesterday it rained", "on 19 November 2026"),
    ("yesterday it rained", "It rained yesterday."), ("tomorrow we fly", "They fly on Nov 21"), ("el 7 de mayo de 2026", "7 May"),
    ("see you on Thursday", "on Thursday"), ("in May we go", "in May"), ("last Monday", "on Monday"), ("at 10:30", "at 10:30"),
    ("since 1999", "in 1999"), ("kahapon kami umalis", "19 November"),
]  # fmt: skip
DATES_LOST = [
    ("on 7 May 2026", "8 May 2026"), ("on 7 May 2026", "7 May 2025"), ("on 7 May", "in May"), ("see you on Thursday", "on Friday"),
    ("at 10:30", "at 10:45"), ("yesterday it rained", "it rained"), ("in May we go", "in June"),
]  # fmt: skip


@each_case(("one", "two"), DATES_KEPT + DATES_LOST)
def test_dates_are_compared_by_what_they_mean(one: str, two: str) -> None:
    found = quality(said(one), two)
    assert found.present["dates"] == 1, found
    assert found.present["numbers"] == 0
    assert found.kept["dates"] == ((one, two) in DATES_KEPT)


def test_what_is_said_of_today_is_no_date_to_keep() -> None:
    assert quality(said("today I rest", "tonight as well"), "").present["dates"] == 0
    assert quality(said("yesterday I slept", said_at=None), "").present["dates"] == 0


def test_names_are_kept_in_any_case_and_whole() -> None:
    lines = said("the vet is Doc Arlene Quimbo, and Anne-Marie knows her")
    assert quality(lines, "DOC ARLENE QUIMBO, anne-marie").kept["names"] == 2
    assert quality(lines, "Arlene").kept["names"] == 0


def test_german_nouns_are_no_names() -> None:
    text = "Ich habe der Katze ein Haus gebaut und die Tür ist blau, der Garten auch."
    assert quality(said(text), "").present["names"] == 0


def test_an_answered_question_is_not_open() -> None:
    lines = [
        *said("How long does the visa for Japan take?"),
        TranscriptLine(2, "assistant", None, "About ten working days."),
    ]
    assert quality(lines, "").present["questions"] == 0


def test_what_the_summary_before_held_is_to_be_kept() -> None:
    before = "Ana's budget is 4,200 euros and her vet is Doc Lim."
    lines = said("I moved to Manila")
    lost = quality(lines, "They moved to Manila.", before=before)
    kept = quality(lines, "They moved to Manila. The budget is 4,200 euros, the vet Doc Lim.", before=before)
    assert quality(lines, "They moved to Manila.").score == 1
    assert lost.score < 0.5
    assert kept.score == 1


def test_numbers_of_messages_are_no_numbers_of_the_summary() -> None:
    made = ExtractiveSummarizer().write(Material("summary", None, said("", "", "the code is blue"), 500))
    assert "[3]" in made
    assert quality(said("3 dogs"), made).kept["numbers"] == 0


def test_a_blank_summary_keeps_nothing_and_the_source_everything() -> None:
    lines = said("my sister Ines paid 4,200 euros on 7 May 2026", "Bea lives in Cebu")
    assert quality(lines, "").score == 0
    assert quality(lines, "\n".join(line.text for line in lines)).score == 1


def test_an_extractive_summary_is_told_from_a_poor_one() -> None:
    lines = [
        TranscriptLine(
            at, "user" if each.message.type == "human" else "assistant", None, str(each.message.content), None
        )
        for at, each in enumerate(transcript.load()[:307], 1)
    ]
    good = quality(lines, ExtractiveSummarizer().write(Material("summary", None, lines, 2000))).score
    texts = [line.text for line in lines]
    random.Random(7).shuffle(texts)
    assert good > 0.4
    assert quality(lines, "\n".join(texts)[:2000]).score < 0.3
    assert quality(lines, "\n".join(line.text for line in lines)[:2000]).score < 0.3
    assert quality(lines, "The user and the assistant talked about pottery, running and a trip.").score < 0.05


RECORDED = [json.loads(each) for each in Path(__file__).with_name("quality_recorded.jsonl").read_text().splitlines()]
"""Texts in several languages and none, with the counts of the first measure that was ever taken of them."""


@each_case("order", [1, -1])
def test_counts_are_those_that_were_recorded(order: int) -> None:
    for case in RECORDED[::order]:
        lines = [
            TranscriptLine(at, role, None, text, said_at) for at, (role, text, said_at) in enumerate(case["lines"], 1)
        ]
        found = quality(lines, case["summary"], before=case["before"])
        assert ([*found.kept.values()], [*found.present.values()]) == (case["kept"], case["present"]), case


def test_a_text_is_read_anew_for_each_day_on_which_it_was_said() -> None:
    text = "yesterday Ines slept, 2 days ago and last Monday she did not"
    days = ("2026-11-20", None, "2024-03-01", "2026-11-20")
    found = [quality(said(text, said_at=day), "on 19 November 2026").kept["dates"] for day in days]
    assert found == [1, 0, 0, 1]


TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(
        st.sampled_from(
            [
                "Ines",
                "4,200",
                "two",
                "7 May 2026",
                "yesterday",
                "?",
                "How long",
                "\x00",
                "\ud800",
                "9" * 40,
                "٣",
                "²",
                "1.2.3",
                '[1] User: "x"',
                "5/7/2023",
                "\n",
                "k",
                "16k",
                "on",
                "Monday",
                "我喜欢",
                "der",
                "die",
                "Haus",
                "e\u0301",
                "'s",
                "2023-05-07",
                "10:30",
                ".",
            ]
        ),
        max_size=20,
    ).map(" ".join),
)
LINES = st.lists(
    st.builds(
        TranscriptLine, st.integers(1, 9), st.sampled_from(["user", "assistant", "tool"]), st.none(), TEXTS,
        st.sampled_from([None, "", "2026-11-20T09:00:00+00:00", "0001-01-01", "9999-12-31", "x"]),
    ),
    max_size=6,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(LINES, TEXTS, st.one_of(st.none(), TEXTS))
def test_bounds_hold_and_nothing_raises(lines: list[TranscriptLine], summary: str, before: str | None) -> None:
    found = quality(lines, summary, before=before)
    assert found == quality(lines, summary, before=before)
    assert 0 <= found.score <= 1
    assert set(found.kept) == set(found.present) == set(KINDS)
    for kind in KINDS:
        assert 0 <= found.kept[kind] <= found.present[kind]
    if not any(found.present.values()):
        assert found.score == 1


@settings(max_examples=80, deadline=None)
@given(LINES, TEXTS, TEXTS)
def test_a_longer_summary_is_no_worse(lines: list[TranscriptLine], summary: str, more: str) -> None:
    longer = f"{summary}\n\n{more}"
    assert quality(lines, longer).score >= quality(lines, summary).score - 1e-9
