"""The embedding model: batches, timeouts, validated answers, and errors that quote no text."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings

from langchain_supabase_memory.adapters.embedder import EmbeddingModel, require_embedder
from langchain_supabase_memory.effects import Embed
from langchain_supabase_memory.errors import ConfigurationError, EmbeddingError
from tests.each_case import each_case
from tests.embedders import ScriptedEmbedder, WordEmbedder

TEXTS = [f"canary {n}" for n in range(5)]
ONE = [0.6, 0.8]


class Own(Embeddings):
    """An embedder with async methods of its own."""

    model_name = "own"

    def __init__(self, script: Callable[[list[str]], Any]) -> None:
        self.script = script
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError("the async one was asked for")

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("the async one was asked for")

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        answer: list[list[float]] = self.script(texts)
        return answer

    async def aembed_query(self, text: str) -> list[float]:
        return (await self.aembed_documents([text]))[0]


def asked(model: EmbeddingModel, embed: Embed, color: str) -> list[list[float]]:
    return model.answer(embed) if color == "sync" else asyncio.run(model.aanswer(embed))


def scripted(script: Callable[[list[str]], Any], color: str) -> Any:
    return Own(script) if color == "own async" else ScriptedEmbedder(script)


COLORS = each_case("color", ["sync", "async", "own async"])


@COLORS
def test_batches_and_long_texts(color: str) -> None:
    inner = scripted(lambda texts: [ONE for _ in texts], color)
    model = EmbeddingModel(inner, batch=2, characters=7)
    assert asked(model, Embed(TEXTS), color) == [ONE] * 5
    assert inner.calls == [["canary "] * 2, ["canary "] * 2, ["canary "]]
    assert asked(model, Embed([]), color) == []


@COLORS
def test_vectors_come_at_length_one(color: str) -> None:
    model = EmbeddingModel(scripted(lambda texts: [[3, 4] for _ in texts], color))
    assert asked(model, Embed(["a"]), color) == [ONE]
    assert asked(model, Embed(["a", "b"], is_query=True), color) == [ONE, ONE]


@COLORS
def test_it_is_tried_again(color: str) -> None:
    tries: list[int] = []

    def script(texts: list[str]) -> Any:
        tries.append(len(texts))
        if len(tries) < 3:
            raise ConnectionError(str(texts))
        return [ONE for _ in texts]

    model = EmbeddingModel(scripted(script, color), attempts=3, wait_seconds=0)
    assert asked(model, Embed(["a"]), color) == [ONE]
    assert len(tries) == 3


BAD: dict[str, Callable[[list[str]], Any]] = {
    "too few": lambda texts: [ONE] * (len(texts) - 1),
    "too many": lambda texts: [ONE] * (len(texts) + 1),
    "counts that add up": lambda texts: [ONE] * ({"canary 0": 3, "canary 2": 1}.get(texts[0], 1)),
    "widths": lambda texts: [[1.0] * (1 + int(text[-1])) for text in texts],
    "widths of batches": lambda texts: [[1.0] * (1 + int(texts[0][-1]))] * len(texts),
    "nan": lambda texts: [[math.nan, 1.0]] * len(texts),
    "infinite": lambda texts: [[math.inf, 1.0]] * len(texts),
    "beyond": lambda texts: [[1.7e308, 1.7e308]] * len(texts),
    "zero": lambda texts: [[0.0, 0.0]] * len(texts),
    "empty": lambda texts: [[]] * len(texts),
    "none": lambda texts: None,
    "no vectors": lambda texts: [None] * len(texts),
    "texts": lambda texts: texts,
    "nested": lambda texts: [[ONE]] * len(texts),
}


@COLORS
@each_case("bad", list(BAD))
def test_what_is_no_vector_is_a_clear_error_without_content(bad: str, color: str) -> None:
    model = EmbeddingModel(scripted(BAD[bad], color), batch=2, attempts=1)
    with pytest.raises(EmbeddingError) as caught:
        asked(model, Embed(TEXTS), color)
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None


@COLORS
def test_a_failure_says_no_content(color: str) -> None:
    def fails(texts: list[str]) -> Any:
        raise RuntimeError(f"cannot embed {texts}")

    with pytest.raises(EmbeddingError, match=r"^The embedder failed \(RuntimeError\)") as caught:
        asked(EmbeddingModel(scripted(fails, color), attempts=2, wait_seconds=0), Embed(TEXTS), color)
    assert caught.value.__suppress_context__
    assert "canary" not in repr(Embed(TEXTS))


@each_case("color", ["sync", "async"])
def test_what_hangs_is_left_alone(color: str) -> None:
    released = threading.Event()

    def hangs(texts: list[str]) -> Any:
        released.wait(60)
        return [ONE for _ in texts]

    model = EmbeddingModel(ScriptedEmbedder(hangs), attempts=1, timeout_seconds=0.05)
    try:
        with pytest.raises(EmbeddingError, match="TimeoutError"):
            asked(model, Embed(["a"]), color)
    finally:
        released.set()


def test_its_name() -> None:
    assert EmbeddingModel(WordEmbedder(4, "words-4")).name == "words-4"
    assert EmbeddingModel(Own(lambda _: [])).name == "own"
    assert EmbeddingModel(Own(lambda _: []), name="mine").name == "mine"
    assert repr(EmbeddingModel(WordEmbedder(4, "words-4"))) == "EmbeddingModel('words-4')"


def test_settings_that_cannot_be() -> None:
    with pytest.raises(ConfigurationError, match="no name of an embedder"):
        EmbeddingModel("text-embedding-3-small")
    for wrong in ({"batch": 0}, {"characters": 0}, {"attempts": 0}, {"timeout_seconds": 0}, {"wait_seconds": -1}):
        with pytest.raises(ConfigurationError):
            EmbeddingModel(WordEmbedder(), **wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="no embedder"):
        require_embedder(None)


@each_case("color", ["sync", "async"])
async def test_nobody_waits_long_for_a_question_s_vector(color: str) -> None:
    released = threading.Event()

    def hangs(texts: list[str]) -> Any:
        released.wait(30)
        return WordEmbedder().embed_documents(texts)

    slow = ScriptedEmbedder(hangs)
    model = EmbeddingModel(slow, question_seconds=0.05)

    async def asked(text: str) -> Any:
        step = Embed([text], is_query=True)
        return model.answer(step) if color == "sync" else await model.aanswer(step)

    try:
        for question in ("the kiln", "the glaze", "the cones"):
            with pytest.raises(EmbeddingError, match="TimeoutError"):
                await asked(question)
        assert len(slow.calls) == 1, "what hangs is not asked again at once"
    finally:
        released.set()
    assert len(model.answer(Embed(["what is indexed"]))) == 1, "indexing asks all the same"


async def test_an_answer_waits_no_longer_for_an_index_than_it_says() -> None:
    released = threading.Event()
    hanging = ScriptedEmbedder(lambda _: released.wait(30))
    try:
        with pytest.raises(EmbeddingError, match="TimeoutError"):
            await EmbeddingModel(hanging).aanswer(Embed(["a", "b"], seconds=0.05))
    finally:
        released.set()
    assert len(hanging.calls) == 1
