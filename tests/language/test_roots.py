"""Words without their inflection, and texts that share words with a query."""

from __future__ import annotations

import pytest

from langchain_supabase_memory.language.roots import affixes, language_of
from langchain_supabase_memory.language.shared_words import shared_word_scores
from tests.each_case import each_case


@each_case(
    ("root", "words"),
    [
        ("bayad", "bayad magbayad nagbayad magbabayad pagbabayad bayaran babayaran binayaran"),
        ("luto", "luto magluto nagluluto niluto pagluluto lutuin"),
        ("bili", "bili bumili bumibili binili bibili"),
        ("hatid", "hatid ihatid maghahatid paghahatid"),
        ("alis", "alis umalis aalis"),
        ("palit", "palit palitan pinalitan papalitan magpalit"),
        ("trabaho", "trabaho nagtatrabaho magtrabaho"),
        ("kain", "kain kumain kakain pagkain"),
        ("kalsada", "kalsada"),
        ("biyahe", "biyahe bumiyahe"),
    ],
)
def test_tagalog_words_are_reduced_to_their_root(root: str, words: str) -> None:
    (tagalog,) = affixes()
    assert {tagalog.root(word) for word in words.split()} == {root}


def test_any_word_has_a_root() -> None:
    (tagalog,) = affixes()
    for word in ("a", "in", "um", "umm", "aa", "aaa", "nini", "inin", "x", "ñ", "字", "mmmmmm", "iiiiiii", "umumum"):
        assert tagalog.root(word)


def test_a_text_is_in_tagalog_by_its_markers() -> None:
    assert language_of(["bayaran", "si", "nena"]) is not None
    assert language_of(["pay", "the", "rent", "at", "noon"]) is None


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("payments and invoices", "Send the invoice"),
        ("scheduling", "The schedule is full"),
        ("allergies", "Allergic to peanuts"),
        ("RÉSUMÉS", "A resume is needed"),
        ("room 4", "Somebody waits in 4"),
        ("pagbabayad ng buwis", "Bayaran ang kuryente"),
        ("nagluluto ng ulam", "Lutuin ang isda"),
        ("bayad, resibo", "Magbayad sa munisipyo"),
    ],
)
def test_words_match_whatever_their_inflection(query: str, text: str) -> None:
    score, none, nothing = shared_word_scores(query, [text, "Nobody came", ""])
    assert score > 0 == none == nothing


def test_in_english_nothing_is_taken_for_an_affix_of_tagalog() -> None:
    assert shared_word_scores("rent and fish", ["Ask a parent", "Finish the fence"]) == [0, 0]


def test_rare_words_count_more_and_long_texts_less() -> None:
    texts = ["the invoice", "the invoice", "the tax", f"the tax {'of the house on the hill ' * 5}", "nothing"]
    invoice, same, tax, long, nothing = shared_word_scores("invoice tax", texts)
    assert invoice == same
    assert tax > long > 0 == nothing
    (once, often, *_) = shared_word_scores("tax", ["tax", "tax tax", "x", "y"])
    assert often > once
    assert shared_word_scores("tax tax tax", ["tax", "y"]) == shared_word_scores("tax", ["tax", "y"])
    rare, common, *_ = shared_word_scores("van boat", ["van", "boat", "boat", "boat"])
    assert rare > common


@pytest.mark.parametrize("query", ["", " ", "the and of", "!?", "🙂"])
def test_a_query_without_content_fits_nothing(query: str) -> None:
    assert shared_word_scores(query, ["the tax", ""]) == [0, 0]
    assert shared_word_scores(query, []) == []
