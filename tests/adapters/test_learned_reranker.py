"""The learned reranker: its signals by hand, its file of coefficients, and what it does to a real recall."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import MemoryConfig, SupabaseMemory
from langchain_supabase_memory.adapters.learned_reranker.signals import REPLIES, STATEMENT, signals
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.models import LearnedReranker
from tests.embedders import WordEmbedder

KILN, GLAZE = math.log(1 + 0.5 / 2.5), math.log(1 + 1.5 / 1.5)
"""The rarity of a word that both of two candidates have, and of one that one of them has."""


def candidate(text: str, place: int = 0, score: float = 1.0, **metadata: Any) -> Document:
    known = {"thread_id": "t", "place": place, "role": "user", "speaker": None, "score": score, "score_parts": {}}
    known["said_at"] = "2026-05-03T12:00:00+00:00"
    return Document(f"[2026-05-03] User: {text}", metadata={**known, **metadata})


def weights(**of: float) -> dict[str, Any]:
    """Coefficients of both kinds; an underscore stands for a space."""
    made = {name.replace("_", " "): {"coefficient": weight, "mean": 0, "deviation": 1} for name, weight in of.items()}
    return {"words": made, "vectors": made}


def test_the_signals_of_two_candidates() -> None:
    found = signals("kiln glaze?", [candidate("Kiln glazes", 1, 2.0), candidate("the kiln", 7, 1.0)])
    expected: dict[str, list[float]] = {
        "score of the best": [1, 0.5],
        "score over the mean": [1, -1],
        "rank": [0, math.log(2)],
        "coverage": [1, KILN / (KILN + GLAZE)],
        "rarest word": [1, KILN / GLAZE],
        "pairs": [1, 0],
        "share of its words": [1, KILN / (KILN + GLAZE)],
        "length": [math.log(12), math.log(9)],
        "best neighbor": [0, 0],
        "same day": [0.1, 0.1],
        "asks": [0, 0],
        f"coverage, {STATEMENT}": [0, 0],
        f"coverage, {REPLIES}": [0, 0],
    }
    assert {name: found[name] for name in expected} == {
        name: pytest.approx(numbers) for name, numbers in expected.items()
    }
    assert {len(numbers) for numbers in found.values()} == {2}


def test_what_stands_around_a_candidate() -> None:
    asks = candidate("Which glaze did you take?", 4, 2.0, speaker="Maya")
    answers = candidate("Celadon, as always.", 5, 1.0, speaker="Ben")
    other = candidate("The glaze cracked.", 9, 1.0, speaker="Ben")
    found = signals("Which glaze did Ben take?", [asks, answers, other])
    assert found["answers a candidate"] == [0, 1, 0]
    assert found["best neighbor"] == [0.5, 1, 0]
    assert found["coverage with neighbors"][1] == found["coverage"][0] > found["coverage"][1] == 0
    assert found["is of another speaker"] == [1, 0, 0]
    assert found["asks"] == [1, 0, 0]
    elsewhere = candidate("Celadon.", 5, speaker="Ben", thread_id="another")
    assert signals("Which glaze?", [asks, elsewhere])["answers a candidate"] == [0, 0]


def test_what_a_question_asks_for() -> None:
    told = [candidate("We fired it on 3 May."), candidate("We fired it."), candidate("We fired two of them.")]
    when = signals("When did you fire it?", told)
    assert (when["has the time"], when["lacks the time"]) == ([1, 0, 0], [0, 1, 1])
    many = signals("How many did you fire?", told)
    assert (many["has the number"], many["lacks the number"]) == ([1, 0, 1], [0, 1, 0])
    assert signals("Did you fire it?", told)["has the time"] == [0, 0, 0]


def test_statements_and_an_assistants_replies_have_signals_of_their_own() -> None:
    reply = candidate("The kiln is hot.", role="assistant")
    stated = signals("I think of my kiln", [candidate("My kiln"), reply])
    assert stated[f"coverage, {STATEMENT}"] == stated["coverage"] == stated[f"coverage, {REPLIES}"]
    assert stated["reply"] == [0, 1]
    named = signals("Where is my kiln?", [candidate("My kiln"), candidate("Hot.", role="assistant", speaker="Ben")])
    assert not any(named[f"coverage, {REPLIES}"]), "a person"


@pytest.mark.parametrize("vectors", [False, True])
def test_it_gives_each_candidate_a_number(vectors: bool) -> None:
    parts = {"words": 0.2, **({"meaning": 0.5} if vectors else {})}
    texts = ["", "\x00", "a" * 10_000, "kiln " * 2_000, "\ud800 ", "?" * 10_000, "3 May 2026", "窯 كيلن", "\u0301" * 50]
    documents = [candidate(text, place, 1 / (place + 1), score_parts=parts) for place, text in enumerate(texts)]
    reranker = LearnedReranker()
    for question in ("Where is the kiln?", "kiln", "\x00", "\ud800", "kiln " * 2_000, "?"):
        numbers = reranker(question, documents)
        assert len(numbers) == len(texts)
        assert all(map(math.isfinite, numbers))
        assert reranker(question, []) == []
        assert len(reranker(question, documents[:1])) == 1
    assert reranker(" ", documents) == sorted(reranker(" ", documents), reverse=True), "as the first stage has them"
    assert len(reranker("kiln?", [Document("kiln"), Document("glaze")])) == 2, "of another store"


def test_the_coefficients_weigh_deviations_from_the_mean() -> None:
    documents = [candidate("kiln glaze", 1), candidate("kiln", 7)]
    given = {"words": {"coverage": {"coefficient": 3, "mean": 0.5, "deviation": 2}}}
    covered = KILN / (KILN + GLAZE)
    assert LearnedReranker(given)("kiln glaze?", documents) == pytest.approx([0.75, 1.5 * (covered - 0.5)])
    documents[0].metadata["score_parts"] = {"meaning": 0.5}
    assert LearnedReranker(given)("kiln glaze?", documents) == [0, -1], "no coefficients for vectors"
    assert repr(LearnedReranker()) == "LearnedReranker(vectors, words)"


def test_coefficients_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(weights(length=-1)))
    long, short = candidate("kiln " * 9), candidate("kiln")
    for given in (path, str(path), weights(length=-1)):
        first, second = LearnedReranker(given)("kiln?", [long, short])
        assert first < second


@pytest.mark.parametrize(
    "given",
    [
        {},
        [],
        {"words": {}},
        {"words": 1},
        {"word": weights(length=1)["words"]},
        {"words": {"length": 1}},
        {"words": {"length": {"coefficient": 1}}},
        {"words": {"length": {"coefficient": "x", "mean": 0, "deviation": 1}}},
        {"words": {"length": {"coefficient": 1, "mean": 0, "deviation": 0}}},
        {"words": {"length": {"coefficient": math.nan, "mean": 0, "deviation": 1}}},
        {"words": {"length": {"coefficient": 1, "mean": 0, "deviation": 1, "more": 1}}},
    ],
)
def test_malformed_coefficients_are_refused(given: Mapping[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        LearnedReranker(given)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(given))
    with pytest.raises(ConfigurationError):
        LearnedReranker(path)


def test_a_file_that_cannot_be_read_is_said_without_its_contents(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    with pytest.raises(ConfigurationError, match="could not be read"):
        LearnedReranker(path)
    path.write_bytes(b"\xff secret")
    with pytest.raises(ConfigurationError) as raised:
        LearnedReranker(path)
    assert "secret" not in str(raised.value)


def test_a_hundred_candidates_take_milliseconds() -> None:
    documents = [candidate(f"The kiln number {place} had a fine glaze. " * 5, place) for place in range(100)]
    reranker = LearnedReranker()
    times = []
    for _ in range(5):
        begun = time.process_time()
        reranker("Which kiln had the finest glaze in May?", documents)
        times.append(time.process_time() - begun)
    assert min(times) < 0.1  # 10 ms on a quiet machine


@pytest.mark.parametrize("embedder", [None, WordEmbedder()])
def test_it_improves_the_order_of_a_real_recall(conn_string: str, user_id: str, embedder: Any) -> None:
    said = [
        HumanMessage("When do we fire the kiln again, when do we fire it?"),
        AIMessage("On 3 May."),
        *(HumanMessage(f"My bicycle has {number} gears and a bell.") for number in range(4)),
        HumanMessage("We fire the kiln, we fire the kiln."),
    ]
    question = "When do we fire the kiln?"
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=embedder) as memory:
        memory.conversation("t").append(said)
        memory.conversation("t").index()
        first = [each.content for each in memory.conversation("t").recall(question).chunks]
    config = MemoryConfig(reranker=LearnedReranker(weights(has_the_time=5, answers_a_candidate=5)))
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=embedder, config=config) as memory:
        found = memory.conversation("t").recall(question)
        assert found.rerank_failed is None
        assert first[0] != "On 3 May." == found.chunks[0].content
    config = MemoryConfig(reranker=LearnedReranker())
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=embedder, config=config) as memory:
        found = memory.conversation("t").recall(question)
        assert found.rerank_failed is None
        assert sorted(each.content for each in found.chunks) == sorted(first)
        assert all("rerank" in each.score_parts for each in found.chunks)
