"""Sentence boundaries in everyday text."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_supabase_memory.language.sentences import begins_sentence, sentence_ends, sentences
from langchain_supabase_memory.operations.model_calls import shorten
from tests.each_case import each_case

ENDS = [
    "Dr. Lim said no.| It cost 12.5 euros!| 我喜欢茶。|他不喜欢。| Really?",
    "J. Rowling wrote it.| Prof. Santos read it.",
    "We open at 9 a.m. and close at 5 p.m. on weekdays.| Come by at 7 p.m.| Bring clay.",
    "Take glazes, e.g. Celadon, i.e. the green one.| Clay, tools, etc. are there.| Clay, tools, etc.| Ask Ben.",
    "It is room no. 5 vs. room no. 6.| No.| The answer is no.| Ask again.",
    "The U.S. Navy paid.| It cost $4.50.| Version 2.1.3 is out.",
    'He said "stop."| Then he left.| (It was late.)| We slept.',
    "“Come in.”| She sat.| «Bien.»| Y tú?",
    "Wait…| what?| No way!!| Well...| ok",
    "هل أنت هناك؟| نعم.",
    "「行こう。」|彼は言った。|終わり！",
    "see example.com and notes.txt for more",
    "one\n|two\n|three",
]  # fmt: skip


@each_case("marked", ENDS)
def test_sentences_end_where_they_end(marked: str) -> None:
    text = marked.replace("|", "")
    found = [text[span.start : span.end] for span in sentences(text)]
    assert found == [each.strip() for each in re.split(r"\|", marked)]


def test_the_marks_of_a_list_are_left_out_and_places_are_those_of_the_text() -> None:
    text = "# Plan\n- buy clay\n2) fire it\n  3. glaze it. Sell it\n---\n> quoted"
    spans = list(sentences(text))
    assert [text[span.start : span.end] for span in spans] == [
        "Plan", "buy clay", "fire it", "glaze it.", "Sell it", "quoted",
    ]  # fmt: skip


@each_case(
    ("text", "word", "begins"),
    [
        ("Hello. Maya", "Maya", True),
        ("Dr. Maya", "Maya", False),
        ("with Maya", "Maya", False),
        ("“Maya", "Maya", True),
        ("a\nMaya", "Maya", True),
        ("by e.g. Maya", "Maya", False),
    ],
)
def test_a_word_that_begins_a_sentence(text: str, word: str, begins: bool) -> None:
    assert begins_sentence(text, text.index(word)) is begins


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from("abZ .!?\n。é\"'”e.g,-#1😀\u200b"), max_size=120))
def test_sentences_lie_in_order_and_leave_out_nothing_that_is_said(text: str) -> None:
    spans = list(sentences(text))
    places = [place for span in spans for place in (span.start, span.end)]
    assert places == sorted(places)
    assert all(span.start < span.end for span in spans)
    kept = re.sub(r"[\W_\d]", "", "".join(text[span.start : span.end] for span in spans))
    assert kept == re.sub(r"[\W_\d]", "", text)
    found = list(sentence_ends(text))
    assert found == sorted(set(found))
    assert all(0 < end < len(text) for end in found)


@each_case(
    ("text", "characters", "expected"),
    [
        ("One two three. Four five six. Seven eight nine.", 40, "One two three. Four five six. […]"),
        ("One two three\nFour five six\nSeven eight nine ten", 40, "One two three\nFour five six […]"),
        ("It was cheap for Dr. Lim and others", 26, "It was cheap for Dr. L […]"),
        ("我喜欢茶。他不喜欢。我们走吧。再见，明天见", 20, "我喜欢茶。他不喜欢。我们走吧。 […]"),
    ],
)
def test_what_is_too_long_is_cut_after_a_sentence(text: str, characters: int, expected: str) -> None:
    assert shorten(text, characters) == expected
