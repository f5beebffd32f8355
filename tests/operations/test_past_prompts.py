"""The prompt of a past answer, rebuilt: equal where nothing changed since, and otherwise it says what did."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import ContextBudget, MemoryConfig, Retention, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.context.pack import ContextPack
from langchain_supabase_memory.errors import InvalidInputError, NotFoundError
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.types import RebuiltPrompt
from tests.conftest import Caller

BUDGETS = [
    ContextBudget(),
    ContextBudget(characters=1_500),
    ContextBudget(characters=2_500, board=0.3),
    ContextBudget(characters=6_500),
    ContextBudget(tokens=700),
    ContextBudget(tokens=2_000, board=0.2),
    ContextBudget(characters=4_000, max_messages=6),
    ContextBudget(characters=9_000, media=1),
    ContextBudget(characters=800),
    ContextBudget(characters=12_000, max_messages=24),
]

FACTS = [
    "I fire porcelain at cone 6.", "The kiln shows E-47 again.", "Please remind me to order a thermocouple by Friday.",
    "My sister Ana lives in Cebu.", "The deadline is March 20.", "The deadline is March 22 now.", "I ordered the clay.",
    "Which shop in Cebu has glaze?", "We switched to oak ash.", "I left Acme.", "What did my kiln show?",
    "What was the deadline?", "Who is Ana?", "And what did I say of porcelain?", "Thanks!", "The invoice is 1,240 pesos.",
]  # fmt: skip


def words(draw: random.Random, longest: int) -> str:
    clay = ["clay", "glaze", "kiln", "cone", "ash", "bisque", "wheel", "E-47", "<b>", "&", "ñandú"]
    return " ".join(draw.choice(clay) for _ in range(draw.randrange(3, longest)))


def question(draw: random.Random, place: str) -> HumanMessage:
    said = f"{draw.choice(FACTS)} {words(draw, 30) if draw.random() < 0.5 else ''}".strip()
    if draw.random() < 0.1:
        picture = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}
        return HumanMessage([{"type": "text", "text": said}, picture], id=f"q{place}")
    return HumanMessage(said, id=f"q{place}")


def shown_text(pack: ContextPack) -> str:
    """All that the model read of the pack."""
    return "\n".join(content.line(each) for each in pack.prompt)


def talk(told: Any, budget: ContextBudget, turns: int, seed: int, **reading: Any) -> list[tuple[int, ContextPack]]:
    """A conversation whose answers are stored with their packs; a turn may have a tool loop."""
    draw = random.Random(seed)
    made: list[tuple[int, ContextPack]] = []
    for turn in range(turns):
        asked = question(draw, f"{seed}.{turn}")
        current: list[BaseMessage] = [asked]
        is_stored = draw.random() < 0.7
        if is_stored:
            told.append(current)
        if draw.random() < 0.25:
            call = {"name": "look_up", "args": {"shelf": words(draw, 12)}, "id": f"c{seed}.{turn}"}
            step = [AIMessage("Let me look.", tool_calls=[call], id=f"s{seed}.{turn}"),
                    ToolMessage(words(draw, 300), tool_call_id=call["id"], id=f"r{seed}.{turn}")]  # fmt: skip
            if is_stored:
                told.append(step)
            current += step
        pack = told.context(current, budget=budget, **reading)
        if turn % 7 == 3:
            told.board.revise()  # between the prompt and its answer
        answer = AIMessage(words(draw, draw.choice([20, 60, 400])), id=f"a{seed}.{turn}")
        stored = told.append([answer] if is_stored else [*current, answer], pack=pack)
        made.append((stored.sequences[-1], pack))
        if turn % 5 == 4:
            told.board.revise()
        if turn % 9 == 8:
            told.board.add("fact", f"Shelf {turn} has {words(draw, 8)}.", actor="ana")
        if turn % 13 == 12:
            told.board.edit_summary(f"They speak of {words(draw, 200)}.", actor="ana")
        if turn % 4 == 3 and told.board.read().items:
            item = told.board.read().items[0]
            told.board.edit(item, text=f"{item.text[:80]} ({turn})", actor="ana", author_kind="application")
    return made


def is_as_read(rebuilt: RebuiltPrompt, pack: ContextPack) -> None:
    """Each part has the words that the pack had."""
    parts = {part.name: part for part in rebuilt.parts}
    assert rebuilt.is_equal, (rebuilt.changes, [(p.was, p.counts) for p in rebuilt.parts if not p.is_equal])
    for name, entries in (("recent", pack.fitted.recent), ("current", pack.fitted.current)):
        said = [content.line(entry.message) for entry in entries if entry.message.id != "lc_supabase_memory_reference"]
        assert (parts[name].text if name in parts else "") == "\n".join(said), name
    own = {"board": pack.board.message, "recalled": pack.remembered.message}
    own["note" if pack.summary is None else "summary"] = pack.fitted.head_message
    for name, message in own.items():
        assert (parts[name].text if name in parts else None) == (None if message is None else message.text), name


@pytest.mark.parametrize("place", range(len(BUDGETS)))
def test_every_prompt_is_rebuilt_word_for_word(conn_string: str, user_id: str, place: int) -> None:
    budget = BUDGETS[place]
    model: Any = ExtractiveSummarizer() if place % 2 else lambda _: f"They spoke of kilns. {'Clay and ash. ' * 40}"
    zone = "Asia/Manila" if place % 3 == 1 else None
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=model, config=MemoryConfig(time_zone=zone or "UTC")
    ) as memory:
        reading: dict[str, Any] = {"recall": "user" if place == 3 else "conversation"}
        if place == 3:
            talk(memory.conversation("other"), budget, 8, 100)
            memory.conversation("other").index()
        told = memory.conversation("studio")
        made = talk(told, budget, 50 if place % 4 == 0 else 6, place, **reading)
        assert len(made) > 5
        for sequence, pack in made:
            is_as_read(told.prompt(sequence), pack)
