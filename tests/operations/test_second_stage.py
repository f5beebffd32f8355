"""The second stage: a reranker orders the first stage's best results, and nothing is lost whatever it does."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import (
    ContextBudget,
    MemoryConfig,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseMemoryRetriever,
)
from langchain_supabase_memory.adapters.model_timeout import ModelTimeout
from langchain_supabase_memory.effects import Call, Rerank
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.memory.instrumentation import HealthObserver
from langchain_supabase_memory.models import RerankModel
from langchain_supabase_memory.telemetry import Metrics
from langchain_supabase_memory.tools import search_conversation_history_tool
from langchain_supabase_memory.values import Chunk
from tests.chat_models import ScriptedModel
from tests.conftest import Caller
from tests.each_case import each_case
from tests.embedders import WordEmbedder
from tests.memory_keywords import memory_keywords

QUESTION = "kiln glaze?"
TEXTS = [f"kiln glaze number {number} " + "and clay " * (number % 4) for number in range(40)]


def backwards(_: str, documents: Sequence[Document]) -> list[Document]:
    return list(documents)[::-1]


class Backwards(BaseDocumentCompressor):
    """As LangChain's own compressors: copies without ids, the best few alone."""

    top_n: int = 5

    def compress_documents(self, documents: Sequence[Document], query: str, callbacks: Any = None) -> list[Document]:
        last = list(documents)[: -self.top_n - 1 : -1]
        return [
            Document(each.page_content, metadata={**each.metadata, "relevance_score": 1 - place / 10})
            for place, each in enumerate(last)
        ]


class AsyncBackwards(Backwards):
    """With an async side of its own."""

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> list[Document]:
        await asyncio.sleep(0)
        return self.compress_documents(documents, query)


@pytest.fixture
def filled(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=WordEmbedder()) as memory:
        messages = [HumanMessage(text, id=f"m{number}") for number, text in enumerate(TEXTS)]
        memory.conversation("t").append(messages)
        memory.conversation("t").index()
        yield memory


def with_reranker(memory: SupabaseMemory, reranker: Any, **named: Any) -> SupabaseMemory:
    return SupabaseMemory(
        memory._services.transport,
        user_id=memory.user_id,
        embeddings=memory._services.embeddings,
        **memory_keywords({"reranker": reranker, **named}),
    )


def ids(chunks: Sequence[Chunk]) -> list[str]:
    return [each.message_ids[0] for each in chunks]


def everything(chunks: Sequence[Chunk]) -> list[tuple[str, list[str], list[str], float | None]]:
    return [(each.id, ids(each.before), ids(each.after), each.score) for each in chunks]


# Its order


@pytest.mark.parametrize("reranker", [backwards, Backwards(top_n=64), AsyncBackwards(top_n=64)])
async def test_a_recall_comes_in_its_order_at_every_door(caller: Caller, user_id: str, reranker: Any) -> None:
    conversation = caller.service.for_user(user_id).conversation("t")
    await caller(conversation.append, [HumanMessage(text, id=f"m{n}") for n, text in enumerate(TEXTS)])
    await caller(conversation.index)
    first = await caller(conversation.recall, QUESTION, limit=40)
    staged = SupabaseMemory(
        caller.service._services.transport, config=MemoryConfig(reranker=RerankModel(reranker, candidates=8))
    )
    found = await caller(staged.for_user(user_id).conversation("t").recall, QUESTION, limit=20)
    assert ids(found.chunks) == ids([*first.chunks[7::-1], *first.chunks[8:20]])
    assert found.rerank_failed is None
    assert all("rerank" in each.score_parts for each in found.chunks[:8])
    assert not any("rerank" in each.score_parts for each in [*found.chunks[8:], *first.chunks])
    few = await caller(staged.for_user(user_id).conversation("t").recall, QUESTION, limit=3)
    assert ids(few.chunks) == ids(first.chunks[7:4:-1]), "from outside of what the first stage alone would give"


async def test_a_function_may_give_numbers_and_be_a_coroutine_function(filled: SupabaseMemory) -> None:
    def lengths(_: str, documents: Sequence[Document]) -> list[float]:
        return [float(len(each.page_content)) for each in documents]

    async def alengths(query: str, documents: Sequence[Document]) -> list[float]:
        await asyncio.sleep(0)
        return lengths(query, documents)

    for reranker in (lengths, alengths):
        memory = with_reranker(filled, reranker)
        for found in (
            memory.conversation("t").recall(QUESTION, limit=8),
            await memory.conversation("t").arecall(QUESTION, limit=8),
        ):
            assert {len(each.content) for each in found.chunks} == {max(map(len, (text.strip() for text in TEXTS)))}
            scores = [each.score_parts["rerank"] for each in found.chunks]
            assert scores == sorted(scores, reverse=True)


def test_a_reranker_sees_who_spoke_and_when_and_what_the_first_stage_says(filled: SupabaseMemory) -> None:
    seen: list[Document] = []

    def look(query: str, documents: Sequence[Document]) -> list[Document]:
        assert query == QUESTION
        seen.extend(documents)
        return []

    [best, *_] = with_reranker(filled, look).conversation("t").recall(QUESTION).chunks
    assert seen[0].page_content == f"[{best.said_at:%Y-%m-%d}] User: {best.content}"
    assert seen[0].metadata["score"] == pytest.approx(sum(seen[0].metadata["score_parts"].values()), abs=1e-5)
    assert len(seen) == 40


def test_blank_questions_and_single_finds_ask_no_reranker(filled: SupabaseMemory) -> None:
    def never(query: str, documents: Sequence[Document]) -> list[Document]:
        pytest.fail(f"asked {query!r} with {len(documents)} documents")

    memory = with_reranker(filled, never)
    assert len(memory.conversation("t").recall(" ", limit=5).chunks) == 5
    assert memory.conversation("nowhere").recall(QUESTION).chunks == []


async def test_packs_tools_and_the_retriever_use_it(filled: SupabaseMemory) -> None:
    wanted = TEXTS[39].strip()
    found = ids(filled.conversation("t").recall(QUESTION, limit=40).chunks)
    asked: list[int] = []

    def prefer(_: str, documents: Sequence[Document]) -> list[float]:
        asked.append(len(documents))
        return [float(each.page_content.endswith(wanted)) for each in documents]

    memory = with_reranker(filled, RerankModel(prefer, candidates=40))
    assert found[0] != "m39"
    retriever = SupabaseMemoryRetriever(memory=memory, thread_id="t", k=1)
    for documents in (retriever.invoke(QUESTION), await retriever.ainvoke(QUESTION)):
        assert [each.page_content.strip() for each in documents] == [wanted]
        assert documents[0].metadata["score_parts"]["rerank"] == 1
    tool = search_conversation_history_tool(memory, thread_id="t")
    for answer in (tool.invoke({"query": QUESTION, "limit": 1}), await tool.ainvoke({"query": QUESTION, "limit": 1})):
        assert wanted in answer
    budget = ContextBudget(characters=1_200, recalled=0.3)
    long = HumanMessage("Nothing to find here. " * 40, id="long")
    filled.conversation("t").append([long])
    pack = memory.conversation("t").context(QUESTION, budget=budget)
    assert wanted in [each.content.strip() for each in pack.recalled]
    plain = filled.conversation("t").context(QUESTION, budget=budget)
    assert wanted not in [each.content.strip() for each in plain.recalled]
    assert "<recalled>" in pack.prompt[-1].text
    assert set(asked) == {40}


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_an_agent_recalls_in_its_order(filled: SupabaseMemory, color: str) -> None:
    wanted = TEXTS[39].strip()
    seen: list[str] = []

    def answer(messages: Any) -> str:
        seen.append(messages[-1].text)
        return "So it is."

    def prefer(_: str, documents: Sequence[Document]) -> list[float]:
        return [float(each.page_content.endswith(wanted)) for each in documents]

    filled.conversation("t").append([HumanMessage("Nothing to find here. " * 40, id="long")])
    memory = with_reranker(filled, prefer)
    middleware: Any = SupabaseMemoryMiddleware(memory, budget=ContextBudget(characters=1_200, recalled=0.3))
    agent: Any = create_agent(ScriptedModel(script=answer), middleware=[middleware])
    asked = {"messages": QUESTION}, {"configurable": {"thread_id": "t"}}
    _ = agent.invoke(*asked) if color == "sync" else await agent.ainvoke(*asked)
    assert wanted in seen[0]


def test_a_pack_is_one_round_trip_and_without_a_reranker_asks_as_before(
    filled: SupabaseMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[Any] = []
    observe = HealthObserver.step

    def noted(observer: HealthObserver, step: Any) -> Any:
        steps.append(step)
        return observe(observer, step)

    monkeypatch.setattr(HealthObserver, "step", noted)
    budget = ContextBudget(characters=1_000)
    for reranker, pool in ((None, None), (backwards, 64)):
        steps.clear()
        with_reranker(filled, reranker).conversation("t").context(QUESTION, budget=budget, model=None)
        (call,) = [each for each in steps if isinstance(each, Call)]
        assert call.arguments["p_recall"].get("pool") == pool
        assert "more" not in call.arguments["p_recall"]
        assert sum(isinstance(each, Rerank) for each in steps) == (reranker is not None)


def test_the_same_order_is_not_asked_for_twice(filled: SupabaseMemory) -> None:
    asked: list[str] = []

    def note(query: str, documents: Sequence[Document]) -> list[Document]:
        asked.append(query)
        return backwards(query, documents)

    memory = with_reranker(filled, note)
    one, two = (memory.conversation("t").recall(QUESTION, limit=7) for _ in range(2))
    assert everything(one.chunks) == everything(two.chunks)
    memory.conversation("t").recall("clay", limit=7)
    assert asked == [QUESTION, "clay"]


# What goes wrong


def fails(_: str, __: Sequence[Document]) -> list[Document]:
    raise RuntimeError("canary-5521")


def exits(_: str, __: Sequence[Document]) -> list[Document]:
    raise SystemExit(3)


UNUSABLE: dict[str, Any] = {
    "fails": fails,
    "exits": exits,
    "nothing": lambda _, __: None,
    "too few numbers": lambda _, documents: [1.0] * (len(documents) - 1),
    "too many numbers": lambda _, documents: [1.0] * (len(documents) + 1),
}
WITHOUT_AN_ORDER: dict[str, Any] = {
    **UNUSABLE,
    "no documents": lambda _, __: [],
    "foreign documents": lambda _, documents: [Document("canary-5521", id="x") for _ in documents],
    "no documents at all": lambda _, __: [None, "canary-5521", {"chunk_id": 3}],
    "numbers that are none": lambda _, documents: [math.nan for _ in documents],
    "endless numbers": lambda _, documents: [math.inf, *(-math.inf for _ in documents[1:])],
    "emptied": lambda _, documents: documents.clear() or [],
}


@pytest.mark.parametrize("name", WITHOUT_AN_ORDER)
@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"limit": 3},
        {"limit": 40},
        {"characters": 300},
        {"characters": 999, "limit": 12},
        {"limit": 6, "neighbors": 2},
        {"characters": 700, "neighbors": 1},
        {"characters": 900, "episode": True},
        {"limit": 9, "fusion": "rrf"},
        {"limit": 5, "exact_below": 0},
    ],
    ids=str,
)
def test_the_first_stage_stands_to_the_letter(filled: SupabaseMemory, name: str, filters: dict[str, Any]) -> None:
    memory = with_reranker(filled, RerankModel(WITHOUT_AN_ORDER[name], candidates=20))
    first = filled.conversation("t").recall(QUESTION, **filters)
    found = memory.conversation("t").recall(QUESTION, **filters)
    assert everything(found.chunks) == everything(first.chunks)
    assert (found.rerank_failed is not None) == (name in UNUSABLE)


@pytest.mark.parametrize(
    ("spoil", "placed", "said"),
    [
        (lambda documents: documents[:3], 3, "did not come back"),
        (lambda documents: [*documents, Document("canary-5521", id="x")], 10, "were none of them"),
        (lambda documents: [*documents[:2], *documents], 10, "came back twice"),
        (
            lambda documents: [
                each.model_copy(update={"metadata": {**each.metadata, "relevance_score": math.nan}}) if n == 4 else each
                for n, each in enumerate(documents)
            ],
            9,
            "no number",
        ),
    ],
    ids=["fewer", "foreign", "doubled", "nan"],
)
def test_what_a_reranker_does_not_place_stands_behind_in_the_first_order(
    filled: SupabaseMemory, caplog: pytest.LogCaptureFixture, spoil: Any, placed: int, said: str
) -> None:
    memory = with_reranker(filled, RerankModel(lambda _, documents: spoil(list(documents)[::-1]), candidates=10))
    first = ids(filled.conversation("t").recall(QUESTION, limit=15).chunks)
    with caplog.at_level(logging.WARNING):
        found = memory.conversation("t").recall(QUESTION, limit=15)
        memory.conversation("t").recall("clay kiln", limit=15)
    shown = ids(found.chunks)
    assert sorted(shown) == sorted(first), "nothing is lost and nothing doubled"
    order = [each for each in found.chunks if "rerank" in each.score_parts]
    assert len(order) == placed
    assert shown[: len(order)] == ids(order)
    assert ids(order) == [each for each in first[9::-1] if each in ids(order)]
    assert shown[len(order) :] == [each for each in first if each not in ids(order)]
    (line,) = [each.getMessage() for each in caplog.records if "reranker" in each.getMessage()]
    assert said in line
    assert "canary" not in caplog.text
    assert "kiln" not in caplog.text


async def test_one_that_hangs_costs_its_deadline_once_and_blocks_nobody(
    filled: SupabaseMemory, caplog: pytest.LogCaptureFixture
) -> None:
    ended = threading.Event()
    asked: list[str] = []

    def hangs(query: str, _: Sequence[Document]) -> list[Document]:
        asked.append(query)
        ended.wait(60)
        return []

    async def ahangs(query: str, _: Sequence[Document]) -> list[Document]:
        asked.append(query)
        await asyncio.sleep(60)
        return []

    first = everything(filled.conversation("t").recall(QUESTION).chunks)
    try:
        for reranker in (hangs, ahangs):
            for is_async in (False, True):
                memory = with_reranker(filled, RerankModel(reranker, seconds=0.05))
                for query in (QUESTION, QUESTION + " "):
                    conversation = memory.conversation("t")
                    found = await conversation.arecall(query) if is_async else conversation.recall(query)
                    assert everything(found.chunks) == first
                    assert found.rerank_failed == "The reranker failed (TimeoutError)."
                [cause] = memory.health().causes
                assert (cause.part, cause.times) == ("reranker", 2)
    finally:
        ended.set()
    assert asked == [QUESTION] * 4, "after a wait in vain it is left alone for a while"
    assert "kiln" not in caplog.text


def test_it_is_asked_again_after_its_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    patience = ModelTimeout(0.05)
    with pytest.raises(TimeoutError):
        patience.call(lambda: threading.Event().wait(5))
    with pytest.raises(TimeoutError, match="a moment ago"):
        patience.call(lambda: 1)
    monkeypatch.setattr(patience, "_rests_until", 0.0)
    assert patience.call(lambda: 1) == 1


def test_a_failure_is_said_once_counted_and_mended(filled: SupabaseMemory, caplog: pytest.LogCaptureFixture) -> None:
    is_down = True

    def sometimes(query: str, documents: Sequence[Document]) -> list[Document]:
        return fails(query, documents) if is_down else backwards(query, documents)

    metrics = Metrics()
    memory = with_reranker(filled, sometimes, metrics=metrics)
    for query in ("kiln", "glaze"):
        assert memory.conversation("t").recall(query).rerank_failed == "The reranker failed (RuntimeError)."
    assert len([each for each in caplog.records if "first stage" in each.getMessage()]) == 1
    assert "canary" not in caplog.text
    assert memory.conversation("t").context(QUESTION, budget=ContextBudget(characters=600), model=None).rerank_error
    is_down = False
    assert memory.conversation("t").recall("clay").rerank_failed is None
    assert memory.health().causes == ()
    counted = metrics.render()[0].decode()
    assert 'reranks_total{outcome="failed"} 3.0' in counted
    assert 'reranks_total{outcome="ordered"} 1.0' in counted


@each_case("wrong", [3, "cohere", Backwards, {}], ids=str)
def test_what_is_no_reranker_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="reranker"):
        SupabaseMemory.from_conn_string("postgresql://u@127.0.0.1:1/x", config=MemoryConfig(reranker=wrong))


@each_case("wrong", [{"candidates": 1}, {"candidates": 201}, {"candidates": 2.5}, {"seconds": 0}])
def test_numbers_out_of_their_range_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError):
        RerankModel(backwards, **wrong)
