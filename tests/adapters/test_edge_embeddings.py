"""The embedder in Supabase, against a fake of the Edge Function."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from langchain_supabase_memory.effects import Embed
from langchain_supabase_memory.errors import ConfigurationError, EmbeddingError
from langchain_supabase_memory.models import EdgeEmbeddings, EmbeddingModel
from tests.each_case import each_case
from tests.services.edge_function import KEY, WIDTH, EdgeFunction, vector

COLORS = pytest.mark.parametrize("color", ["sync", "async"])


@pytest.fixture
def function() -> Iterator[EdgeFunction]:
    with EdgeFunction() as function:
        yield function


async def embedded(color: str, embedder: EdgeEmbeddings, texts: list[str]) -> list[list[float]]:
    return embedder.embed_documents(texts) if color == "sync" else await embedder.aembed_documents(texts)


@COLORS
async def test_texts_are_embedded_in_batches_and_in_order(function: EdgeFunction, color: str) -> None:
    embedder = EdgeEmbeddings(function.url + "/", KEY, batch=3)
    texts = ["x" * number + " é 🎹" for number in range(7)]
    assert await embedded(color, embedder, texts) == [*map(vector, texts)]
    assert function.requests == [texts[:3], texts[3:6], texts[6:]]
    question = embedder.embed_query("kiln") if color == "sync" else await embedder.aembed_query("kiln")
    assert question == vector("kiln")
    assert await embedded(color, embedder, []) == []
    model = EmbeddingModel(embedder)
    asked = Embed(("kiln",), is_query=True)
    assert (model.answer(asked) if color == "sync" else await model.aanswer(asked)) == [vector("kiln")]
    assert model.name == "gte-small"
    assert KEY not in repr(embedder)


@COLORS
@pytest.mark.parametrize(
    ("status", "body", "says", "hint"),
    [
        (401, b"{}", "refused the key", "token"),
        (403, b'{"error": "secret words"}', "refused the key", "token"),
        (404, b"", "no such Edge Function", "supabase functions deploy memory-embed"),
        (413, b"", "too much", "smaller batch="),
        (429, b"", "too often", "larger batch="),
        (546, b'{"code": "WORKER_LIMIT"}', "exceeded its time or memory", "smaller batch="),
        (500, b"secret words", "failed", "logs"),
        (302, b"", "failed", "logs"),
        (200, b"<html>secret words</html>", "not the Edge Function", "url"),
        (200, b"", "not the Edge Function", "url"),
        (200, b"\xff\xfe", "not the Edge Function", "url"),
        (200, b'{"embedding": [1]}', "not the Edge Function", "url"),
        (200, b"[" * 100_000, "not the Edge Function", "url"),
        (200, json.dumps({"model": "gte-small", "embeddings": []}).encode(), "did not give 1", "Deploy"),
        (200, json.dumps({"model": "gte-small", "embeddings": [[1.0]]}).encode(), "did not give 1", "Deploy"),
        (200, json.dumps({"model": "gte-small", "embeddings": [["1"] * WIDTH]}).encode(), "did not give 1", "Deploy"),
        (200, json.dumps({"model": "gte-small", "embeddings": [[True] * WIDTH]}).encode(), "did not give 1", "Deploy"),
    ],
)
async def test_a_failure_says_the_next_action(
    function: EdgeFunction, color: str, status: int, body: bytes, says: str, hint: str
) -> None:
    function.answers = [(status, body)]
    with pytest.raises(EmbeddingError, match=says) as refused:
        await embedded(color, EdgeEmbeddings(function.url, KEY), ["secret words"])
    assert hint in refused.value.hint
    assert "secret" not in str(refused.value)
    function.answers = [(status, body)]
    with pytest.raises(EmbeddingError, match=says) as refused:
        EmbeddingModel(EdgeEmbeddings(function.url, KEY), attempts=1).answer(Embed(("a",)))
    assert hint in refused.value.hint


@COLORS
async def test_a_wrong_key_a_wrong_name_and_nobody_there(function: EdgeFunction, color: str) -> None:
    with pytest.raises(EmbeddingError, match="refused the key"):
        await embedded(color, EdgeEmbeddings(function.url, "another"), ["x"])
    with pytest.raises(EmbeddingError, match="no such"):
        await embedded(color, EdgeEmbeddings(function.url, KEY, function="embed"), ["x"])
    with pytest.raises(EmbeddingError, match=r"could not be reached \(ConnectError\)"):
        await embedded(color, EdgeEmbeddings("http://127.0.0.1:1", KEY), ["x"])


async def test_a_failed_batch_is_asked_once_more_by_the_memory(function: EdgeFunction) -> None:
    model = EmbeddingModel(EdgeEmbeddings(function.url, KEY), wait_seconds=0)
    for asked in (Embed(("a",)), Embed(("b",))):
        function.answers = [(546, b"")]
        found = model.answer(asked) if asked.texts == ("a",) else await model.aanswer(asked)
        assert found == [vector("a")]


@each_case(
    "wrong",
    [
        {"url": "project"}, {"url": ""}, {"url": 5}, {"key": ""}, {"key": " "}, {"key": None}, {"key": "é"},
        {"key": "a\nb"}, {"function": ""}, {"batch": 0}, {"batch": True}, {"timeout_seconds": 0},
    ],
)  # fmt: skip
def test_what_is_none_of_the_choices_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        EdgeEmbeddings(**{"url": "https://project.supabase.co", "key": KEY, **wrong})
