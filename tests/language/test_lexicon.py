"""The data files of the languages: found by their folders, read, checked and merged."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, get_args

import pytest

from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.language import lexicon
from langchain_supabase_memory.language.extractive.phrases import TABLES as PHRASES
from langchain_supabase_memory.language.extractive.profile.lexicon import TABLES as PROFILE
from langchain_supabase_memory.language.lexicon import (
    Subject,
    languages,
    load,
    load_once,
    merge_entries,
    multi_word,
    single_word,
)
from langchain_supabase_memory.language.query_hints.lexicon import TABLES as CUES
from langchain_supabase_memory.language.references.lexicon import TABLES as REFERENCES
from langchain_supabase_memory.language.roots import TABLES as AFFIXES
from langchain_supabase_memory.language.signals.lexicon import TABLES as SIGNALS
from tests.each_case import each_case

if TYPE_CHECKING:
    from pathlib import Path

TABLES = {
    "references": REFERENCES,
    "cues": CUES,
    "phrases": PHRASES,
    "affixes": AFFIXES,
    "profile": PROFILE,
    "signals": SIGNALS,
}
SUBJECTS: tuple[Subject, ...] = get_args(Subject)
FILES = [(subject, language) for subject in SUBJECTS for language in languages(subject)]


@each_case(("subject", "language"), FILES)
def test_every_file_says_each_word_once_and_in_lower_case(subject: Subject, language: str) -> None:
    for table, keys in load(subject, language, TABLES[subject]).items():
        for key, listed in keys.items():
            assert len(listed) == len(set(listed)), (table, key)
            assert all(text == text.lower() for text in listed), (table, key)


def test_a_language_is_its_folder_and_needs_no_file_that_it_knows_nothing_for() -> None:
    assert set(TABLES) == set(SUBJECTS)
    assert {"en", "tl"} <= set(languages("references")) <= set(languages("phrases")) <= set(languages("cues"))


def test_a_language_is_added_by_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ceb").mkdir()
    (tmp_path / "ceb" / "phrases.toml").write_text("name = 'Cebuano'\n[phrases]\ngreets = ['maayong buntag']", "utf-8")
    monkeypatch.setattr(lexicon, "_root", lambda: tmp_path)
    assert languages("phrases") == ("ceb",)
    assert languages("cues") == ()
    read = load("phrases", "ceb", PHRASES)
    assert read == {**{table: {} for table in PHRASES}, "phrases": {"greets": ["maayong buntag"]}}


@pytest.mark.parametrize(
    ("subject", "content", "named"),
    [
        ("cues", "[weekends]\n6 = ['x']", "weekends"),
        ("cues", "[words]\nfuncton = ['x']", "words.functon"),
        ("cues", "[months]\nmay = ['may']", "months.may"),
        ("cues", "[units]\ncentury = ['x']", "units.century"),
        ("phrases", "[phrases]\ngreet = ['hi']", "phrases.greet"),
        ("phrases", "[contexts]\nperson_before = 'mr'", "contexts.person_before"),
        ("phrases", "[phrases]\ngreets = ['...']", "phrases.greets"),
        ("phrases", "phrases = ['hi']", "phrases"),
        ("references", "[words]\nturn = ['x'", "could not be read"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, subject: Subject, content: str, named: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(content, "utf-8")
    with pytest.raises(ConfigurationError, match=rf"\b{named}\b"):
        load(subject, path, TABLES[subject])


def test_the_error_names_the_languages_that_are_there() -> None:
    with pytest.raises(ConfigurationError) as failure:
        load("references", "fr", REFERENCES)
    assert "en, tl" in str(failure.value)


def test_what_lists_know_is_joined_and_the_longest_comes_first() -> None:
    first, second = frozenset({"first"}), frozenset({"second"})
    known = merge_entries([(("a",), first), (("a", "b"), first), (("a", "b", "c"), second), (("a",), second)])
    assert single_word(known) == {"a": first | second}
    assert multi_word(known) == {("a", "b"): [(("c",), second), ((), first)]}


def test_what_many_threads_ask_for_at_once_is_made_once() -> None:
    made: list[int] = []
    asked = threading.Barrier(8)

    @load_once
    def thing() -> object:
        made.append(1)
        threading.Event().wait(0.05)  # others come meanwhile
        return object()

    def ask() -> object:
        asked.wait()
        return thing()

    with ThreadPoolExecutor(8) as pool:
        found = [each.result() for each in [pool.submit(ask) for _ in range(8)]]
    assert made == [1]
    assert len({*map(id, found)}) == 1
    assert thing.cache_info().currsize == 1
