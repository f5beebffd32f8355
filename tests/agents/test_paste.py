"""A long paste is always available: the cut is marked, indexed for the next answer, and triggers no useless work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import SupabaseMemory, effects
from langchain_supabase_memory.agents.run.fail_open import FailOpen
from langchain_supabase_memory.agents.run.graph_state import graph_state
from langchain_supabase_memory.agents.run.load import Loader
from langchain_supabase_memory.context.reasons import CUT
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.settings import ContextBudget, SummaryPolicy
from tests.embedders import WordEmbedder

FACT = "The reactor in hall seven needs the coolant zirconol."
FILLING = "The minutes of the meeting say nothing about that and go on for a while. "


def paste(characters: int) -> str:
    half = FILLING * (characters // 2 // len(FILLING))
    return half + FACT + " " + half


class Watched:
    """A transport that keeps what was asked and answered."""

    def __init__(self, memory: SupabaseMemory) -> None:
        self.answers: list[tuple[str, Any]] = []
        inner = memory._services.transport.perform

        def perform(call: Any) -> Any:
            answer = inner(call)
            self.answers.append((call.function, answer))
            return answer

        memory._services.transport.perform = perform  # type: ignore[method-assign]

    def of(self, function: str) -> list[Any]:
        return [answer for name, answer in self.answers if name == function]


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=ExtractiveSummarizer(), embeddings=WordEmbedder(width=48, model="paste")
    ) as made:
        yield made


def loaded(memory: SupabaseMemory, messages: list[BaseMessage]) -> Any:
    """The pack as the middleware and the nodes load it."""
    guard = FailOpen(memory, memory._services.model, "raise", 10.0)
    loader = Loader(
        guard,
        memory._services.settings.budget,
        memory._services.config.policy,
        recall=memory._services.config.recall,
    )
    pack = effects.run(loader.load(memory._services.key("t"), graph_state(messages), lambda _: None))
    assert pack is not None
    return pack


@pytest.mark.parametrize("characters", [5_000, 9_000, 20_000, 100_000, 400_000])
def test_the_very_next_answer_knows_what_the_middle_of_a_paste_says(memory: SupabaseMemory, characters: int) -> None:
    said: list[BaseMessage] = [HumanMessage(paste(characters), id="paste"), AIMessage("Read.", id="read")]
    memory.conversation("t").append(said)
    watched = Watched(memory)
    asked = HumanMessage("Which coolant does the reactor in hall seven need?", id="asked")
    pack = loaded(memory, [*said, asked])
    assert any("zirconol" in str(message.content) for message in pack.prompt)
    for sequence in pack.clipped:
        assert (sequence, sequence, CUT) in pack.omitted
    assert all(answer["messages"] for answer in watched.of("memory_pending")), (
        "no model and no database is asked in vain"
    )


def test_what_is_cut_is_named_and_not_complete(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("t")
    conversation.append([HumanMessage(paste(60_000), id="paste"), AIMessage("Read.", id="read")])
    pack = conversation.context(policy=SummaryPolicy(mode="background"))
    assert pack.clipped == [0]
    assert pack.omitted == [(0, 0, CUT)]
    assert (pack.due, pack.due_through, pack.index_due) == (True, 0, False), "nothing is recalled without a question"
    coverage = conversation.coverage()
    assert coverage.complete is False
    assert (coverage.range_of(0).state, coverage.range_of(0).reason) == ("omitted", CUT)
    assert "messages 0 to 0 omitted: cut" in str(pack.report()).replace("message 0", "messages 0 to 0")
    assert conversation.context("And?").omitted == [], "with a summary it is covered"
    assert conversation.coverage().complete is True


@pytest.mark.parametrize(
    "newest",
    [
        [HumanMessage(paste(60_000), id="paste")],
        [
            HumanMessage("Look it up.", id="h"),
            AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c"}], id="a"),
            ToolMessage(paste(60_000), tool_call_id="c", id="r"),
        ],
    ],
    ids=["a paste", "a tool's result"],
)
def test_the_newest_block_alone_asks_for_nothing(memory: SupabaseMemory, newest: list[BaseMessage]) -> None:
    memory.conversation("t").append(newest)
    watched = Watched(memory)
    for _ in range(3):
        pack = memory.conversation("t").context()
        run = loaded(memory, newest)
        assert not run.due
        assert not pack.due or len(newest) > 1, "only what a tool's result answers may be covered"
    assert all(answer["messages"] for answer in watched.of("memory_pending"))
    said = str(newest[0].content)
    assert any(str(message.content).endswith(said) for message in run.prompt), "what the user said is never cut"


def test_over_many_turns_every_answer_can_know_every_paste(memory: SupabaseMemory) -> None:
    """Each fact is in the prompt of a question about it, whatever was pasted since; and each call is of use."""
    said: list[BaseMessage] = []
    watched = Watched(memory)
    words = ["argonite", "borium", "cadmol", "dysprol", "erbion", "fluorane"]
    for number, word in enumerate(words):
        text = paste(9_000).replace("zirconol", word).replace("hall seven", f"hall h{number}")
        said += [HumanMessage(text, id=f"p{number}"), AIMessage("Read.", id=f"r{number}")]
        memory.conversation("t").append(said[-2:])
        for about in range(number + 1):
            asked = HumanMessage(f"Which coolant does the reactor in hall h{about} need?")
            pack = loaded(memory, [*said, asked])
            assert any(words[about] in str(message.content) for message in pack.prompt), (number, about)
    assert all(answer["messages"] for answer in watched.of("memory_pending"))


def test_a_budget_in_tokens_counts_it_the_same(memory: SupabaseMemory) -> None:
    said: list[BaseMessage] = [HumanMessage(paste(30_000), id="paste"), AIMessage("Read.", id="read")]
    memory.conversation("t").append(said)
    memory._services.settings = replace(memory._services.settings, budget=ContextBudget(tokens=2_000))
    asked = HumanMessage("Which coolant does the reactor in hall seven need?", id="asked")
    pack = loaded(memory, [*said, asked])
    assert any("zirconol" in str(message.content) for message in pack.prompt)
