"""Advice: each planted misconfiguration is named and no other, and a smaller budget saves what was foretold."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import (
    BoardPolicy,
    ChunkPolicy,
    ContextBudget,
    MemoryConfig,
    SummaryPolicy,
    SupabaseMemory,
)
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.operations.advice import RULES, AdviceEvidence, SentPack, advise, replayed, with_texts
from langchain_supabase_memory.operations.manifests.manifest import Manifest, Usage
from langchain_supabase_memory.operations.manifests.parts import ManifestPart, ManifestPassage
from langchain_supabase_memory.types import UsageDay

COUNT = 60


def part(name: str, reason: str, characters: int, first: int | None = None, last: int | None = None) -> ManifestPart:
    return ManifestPart(name, reason, 1, characters, characters // 4, first, last)


def sent(number: int) -> SentPack:
    """A pack as it should be: the budget is used, and the answer uses what is oldest in it."""
    passages = (ManifestPassage(0, 0, 1, score_parts={"words": 0.1, "meaning": 0.5}),)
    found = Manifest(
        "api", "characters", 12_000, 11_000, number, (part("recent", "newest", 8000, 0, 9), part("recalled", "meaning", 2000)),
        passages=passages, full_characters=50_000 + number, full_tokens=12_500, usage=Usage(3000, 100, 3100, 2000),
    )  # fmt: skip
    recent = tuple((800, f"saltmarsh{each} kiln{each}") for each in range(10))
    return SentPack(("default", "t"), found, "saltmarsh0", recent, ((800, 800),) * 5)


def healthy() -> AdviceEvidence:
    day = UsageDay(
        "default", date(2026, 3, 1), turns=60, packs=60, pack_tokens=150_000, whole_tokens=700_000, calls=60,
        input_tokens=180_000, cached_tokens=120_000, recalls=60, recalls_empty=10, boards=30, boards_shown=60, embeds=500,
    )  # fmt: skip
    return AdviceEvidence([day], [sent(number) for number in range(COUNT)], (50, 5), (500, 100, 100_000))


def of_day(**numbers: int) -> Callable[[AdviceEvidence], AdviceEvidence]:
    return lambda found: replace(found, days=[replace(found.days[0], **numbers)])  # type: ignore[arg-type]


def of_packs(change: Callable[[int, SentPack], SentPack]) -> Callable[[AdviceEvidence], AdviceEvidence]:
    return lambda found: replace(found, packs=[change(number, each) for number, each in enumerate(found.packs)])


def with_manifest(each: SentPack, **changes: object) -> SentPack:
    return replace(each, manifest=replace(each.manifest, **changes))  # type: ignore[arg-type]


def moving(number: int, each: SentPack) -> SentPack:
    moved = bool(number % 3)
    first = number if moved else number - 1
    parts = (part("recent", "newest", 8000, first, first + 9), each.manifest.parts[1])
    return with_manifest(each, parts=parts, usage=Usage(3000, 100, 3100, 100 if moved else 2800))


def in_two(number: int, each: SentPack) -> SentPack:
    """One of two conversations."""
    return replace(each, thread=("default", f"t{number % 2}"))


PLANTED: dict[str, Callable[[AdviceEvidence], AdviceEvidence]] = {
    "budget": of_packs(lambda _, each: replace(each, answer="kiln9")),
    "history": of_day(wider=55, whole_tokens=100_000),
    "summaries": lambda found: replace(found, segments=(50, 49)),
    "boards": of_day(boards=400, boards_shown=60),
    "beginning": of_packs(moving),
    "vectors": of_packs(
        lambda _, each: with_manifest(each, passages=(ManifestPassage(0, 0, 1, score_parts={"words": 0.4}),))
    ),
    "chunks": lambda found: replace(found, chunks=(500, 490, 400_000)),
    "recall": lambda found: of_packs(in_two)(of_day(recalls_empty=40)(found)),
    "failures": of_day(failures=10),
    "room": of_packs(lambda _, each: with_manifest(each, items_left_out=7)),
}


def test_there_is_nothing_to_say_of_what_is_as_it_should_be() -> None:
    assert advise(healthy()) == []
    assert advise(AdviceEvidence()) == []


@pytest.mark.parametrize("rule", RULES)
def test_each_misconfiguration_is_named_and_no_other(rule: str) -> None:
    (found,) = advise(PLANTED[rule](healthy()))
    assert found.rule == rule
    assert found.evidence
    assert found.setting in str(found)
    (changed,) = pasted(found.setting).items()
    assert changed == SETTINGS[rule]
    arguments: dict[str, Any] = dict([changed])
    with SupabaseMemory.from_conn_string("postgresql://nobody@localhost/none", user_id="u", **arguments):
        pass  # it is made of it, and connects later


NAMES = {
    each.__name__: each
    for each in (BoardPolicy, ChunkPolicy, ContextBudget, MemoryConfig, SummaryPolicy, timedelta)
}  # fmt: skip

SETTINGS: dict[str, tuple[str, object]] = {
    "budget": ("budget", ContextBudget(characters=6_000)),
    "history": ("budget", ContextBudget(characters=12_000, recalled=0.2)),
    "summaries": ("model", None),
    "boards": ("config", MemoryConfig(board_policy=BoardPolicy(update_frequency=35))),
    "beginning": ("config", MemoryConfig(policy=SummaryPolicy(keep_characters=1_500))),
    "vectors": ("embeddings", None),
    "chunks": ("config", MemoryConfig(chunking=ChunkPolicy(max_age=timedelta(days=90)))),
    "recall": ("config", MemoryConfig(recall="user")),
    "failures": ("config", MemoryConfig(policy=SummaryPolicy(timeout_seconds=120))),
    "room": ("budget", ContextBudget(characters=24_000)),
}
"""What each advice changes in a memory's constructor."""


def pasted(setting: str) -> dict[str, Any]:
    """Return the arguments of a setting, as Python reads them."""
    arguments: dict[str, Any] = eval(f"dict({setting})", dict(NAMES))
    return arguments


def test_recall_is_widened_only_if_there_is_more_and_given_up_only_if_it_hardly_ever_finds_something() -> None:
    few, hardly = of_day(recalls_empty=40)(healthy()), of_day(recalls_empty=55)(healthy())
    assert advise(few) == []
    assert advise(hardly) == [], "there is one conversation"
    everywhere = of_packs(lambda number, each: with_manifest(in_two(number, each), recall="user"))
    assert advise(everywhere(few)) == []
    assert [each.setting for each in advise(everywhere(hardly))] == ["config=MemoryConfig(recall=None)"]


@pytest.mark.parametrize(
    ("change", "rule", "expected"),
    [
        (lambda each: with_manifest(each, recall="agent"), "recall", MemoryConfig(recall="user")),
        (lambda each: with_manifest(each, failed=("rerank",)), "failures", MemoryConfig(reranker=None)),
        (lambda each: with_manifest(each, failed=("recall", "new")), "failures", None),
        (lambda each: with_manifest(each, unit="tokens", budget=3_000), "history", ContextBudget(tokens=3_000, recalled=0.2)),
    ],
)  # fmt: skip
def test_a_setting_follows_from_what_the_packs_say(
    change: Callable[[SentPack], SentPack], rule: str, expected: object
) -> None:
    evidence = of_packs(lambda _, each: change(each))(PLANTED[rule](healthy()))
    (setting,) = [each.setting for each in advise(evidence) if each.rule == rule]
    assert [*pasted(setting).values()] == [expected]


def talk(conn_string: str, user_id: str, budget: int, *, old: bool = False, uneven: bool = False) -> SupabaseMemory:
    """Have the same conversation, with a budget.

    Args:
        conn_string: The database.
        user_id: The owner.
        budget: In characters.
        old: Whether each answer repeats a word of a much older message.
        uneven: Whether some messages are longer than a step of the window, and each answer repeats its question.
    """
    drawn = random.Random(7)
    words = [
        f"{a}{b}" for a in ("clay", "rye", "salt", "moss", "fern", "onyx") for b in ("bank", "field", "gate", "well")
    ]
    memory = SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=None, budget=ContextBudget(characters=budget)
    )
    conversation = memory.conversation("long")
    for turn in range(110):
        said = " ".join(drawn.choices(words, k=24)) if old else f"turn{turn} " * 24
        question = HumanMessage(f"ask{turn} {said}")
        answer = AIMessage(f"ask{max(0, turn - 18)} only" if old else f"ask{turn} reply{turn} " + "noted " * 30)
        if uneven:
            question = HumanMessage(f"ask{turn} {' '.join(drawn.choices(words, k=drawn.choice((5, 20, 60, 300))))}")
            answer = AIMessage(question.text * drawn.choice((1, 1, 3)))
        pack = conversation.context(question)
        conversation.append([question, answer], pack=pack)
    memory.usage.update()
    return memory


@pytest.mark.parametrize(
    ("uneven", "characters"),
    [
        (False, 16_000),
        pytest.param(True, 16_000, marks=pytest.mark.slow),
        pytest.param(True, 40_000, marks=pytest.mark.slow),
    ],
)
def test_a_smaller_budget_saves_what_was_foretold(
    conn_string: str, user_id: str, uneven: bool, characters: int
) -> None:
    memory = talk(conn_string, user_id, characters, uneven=uneven)
    found = {each.rule: each for each in memory.advice()}
    advised = found["budget"]
    assert advised.saving is not None
    assert advised.packs >= 80
    budget = pasted(advised.setting)["budget"].characters
    again = talk(conn_string, f"{user_id} again", budget, uneven=uneven)
    before, after = ((sum(day.pack_tokens for day in each.usage.by_day())) for each in (memory, again))
    happened = 1 - after / before
    assert happened == pytest.approx(advised.saving, rel=0.1), (advised.setting, advised.saving, happened)


def test_a_budget_that_answers_need_stays(conn_string: str, user_id: str) -> None:
    memory = talk(conn_string, user_id, 7_000, old=True)
    assert "budget" not in {each.rule for each in memory.advice()}


def skewed(conn_string: str, user_id: str, budget: int) -> SupabaseMemory:
    """Have the same conversation of many short and a few very long messages, some with a tool, with a budget."""
    drawn = random.Random(20_263)
    words = [
        "the",
        "kiln",
        "cracked",
        "overnight",
        "so",
        "we",
        "need",
        "another",
        "thermostat",
        "stoneware",
        "glaze",
        "and",
        "a",
        "plan",
        "for",
        "saturday",
    ]
    memory = SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=None, budget=ContextBudget(characters=budget)
    )
    conversation = memory.conversation("skewed")

    def said(mean: int) -> str:
        return " ".join(drawn.choices(words, k=int(drawn.paretovariate(1.1) * mean) % 1200 + 3))

    for turn in range(80):
        question = HumanMessage(said(6))
        pack = conversation.context(question)
        rest: list[BaseMessage] = []
        if drawn.random() < 0.3:
            asked = {"name": "look", "args": {"place": "shelf"}, "id": f"c{turn}"}
            rest = [AIMessage("", tool_calls=[asked]), ToolMessage(said(40), tool_call_id=f"c{turn}")]
        conversation.append([question, *rest, AIMessage(said(12))], pack=pack)
    memory.usage.update()
    return memory


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.75])
def test_a_replay_foretells_what_a_skewed_talk_saves(conn_string: str, user_id: str, share: float) -> None:
    memory = skewed(conn_string, user_id, 16_000)

    def packs() -> Flow[list[SentPack]]:
        rows = yield from call("memory_recent_packs", {"p_limit": 200, "p_user_id": user_id})
        return (yield from with_texts(user_id, rows))

    foretold = 1 - replayed(memory._services.run(packs()), share)
    again = skewed(conn_string, f"{user_id} again", int(16_000 * share))
    before, after = ((sum(day.pack_tokens for day in each.usage.by_day())) for each in (memory, again))
    assert 1 - after / before == pytest.approx(foretold, rel=0.1)
