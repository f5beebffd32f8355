"""The prompt of a past answer, rebuilt: equal where nothing changed since, and otherwise it says what did."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import ContextBudget, MemoryConfig, Retention, SupabaseMemory
from langchain_supabase_memory.context.pack import ContextPack
from langchain_supabase_memory.context.read_past_prompt import prompt
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


def rebuilt_each(conn_string: str, user_id: str, place: int, turns: int) -> int:
    """Rebuild each prompt of a conversation with one of the budgets; how many there were."""
    budget = BUDGETS[place]
    model: Any = ExtractiveSummarizer() if place % 2 else lambda _: f"They spoke of kilns. {'Clay and ash. ' * 40}"
    zone = "Asia/Manila" if place % 3 == 1 else "UTC"
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=model, config=MemoryConfig(time_zone=zone)
    ) as memory:
        reading: dict[str, Any] = {"recall": "user" if place == 3 else "conversation"}
        if place == 3:
            talk(memory.conversation("other"), budget, 8, 100)
            memory.conversation("other").index()
        told = memory.conversation("studio")
        made = talk(told, budget, turns, place, **reading)
        for sequence, pack in made:
            is_as_read(told.prompt(sequence), pack)
        return len(made)


@pytest.mark.parametrize("place", range(len(BUDGETS)))
def test_a_prompt_is_rebuilt_word_for_word(conn_string: str, user_id: str, place: int) -> None:
    assert rebuilt_each(conn_string, user_id, place, 8) == 8


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(BUDGETS)))
def test_each_of_500_prompts_is_rebuilt_word_for_word(conn_string: str, user_id: str, place: int) -> None:
    assert rebuilt_each(conn_string, user_id, place, 50) == 50


# What has changed since


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    budget = ContextBudget(characters=1_500, board=0.3)
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, budget=budget, model=lambda _: "They spoke of kilns and of clay."
    ) as memory:
        yield memory


def kilns(memory: SupabaseMemory) -> tuple[Any, int]:
    """A conversation whose last prompt has a summary, recent messages, board items and passages."""
    told = memory.conversation("t")
    told.board.add("fact", "The kiln is blue.", actor="ana", begin=True)
    for turn in range(12):
        asked = HumanMessage(f"What of kiln {turn}, {'clay ' * 20}?", id=f"q{turn}")
        pack = told.context(asked)
        told.append([asked, AIMessage(f"Glaze {turn}. {'Fire it. ' * 10}", id=f"a{turn}")], pack=pack)
    rebuilt = told.prompt(23)
    assert {part.name for part in rebuilt.parts} == {"summary", "recent", "board", "recalled", "current"}
    assert rebuilt.changes == {}
    return told, 23


def test_an_edited_message_says_so_and_nothing_else(memory: SupabaseMemory) -> None:
    told, answer = kilns(memory)
    (part,) = (each for each in told.prompt(answer).parts if each.name == "recent")
    place = part.was.last // 2
    told.append([AIMessage("Another glaze.", id=f"a{place}")])
    assert told.prompt(answer).changes["recent"] == ("edited",)
    assert {"board", "current"}.isdisjoint(told.prompt(answer).changes)


def test_a_forgotten_message_says_so_and_nothing_else(memory: SupabaseMemory) -> None:
    told, answer = kilns(memory)
    (part,) = (each for each in told.prompt(answer).parts if each.name == "recent")
    told.forget_message(f"a{part.was.last // 2}")
    rebuilt = told.prompt(answer)
    assert rebuilt.changes["recent"] == ("gone",)
    assert {"board", "current"}.isdisjoint(rebuilt.changes)
    assert "Glaze" not in next(each.text for each in rebuilt.parts if each.name == "current")


def test_expired_messages_say_so(memory: SupabaseMemory) -> None:
    told, answer = kilns(memory)
    kept = memory._services.run(prompt(told._key, answer, retention=Retention(max_messages=2)))
    assert kept.changes["recent"] == ("expired",)
    assert "current" not in kept.changes
    told.append([HumanMessage("Now?")], retention=Retention(max_messages=3))
    assert told.prompt(answer).changes["recent"] == ("expired",)


def test_a_summary_that_was_written_anew_says_so_and_nothing_else(memory: SupabaseMemory) -> None:
    told, answer = kilns(memory)
    number = next(part.number for part in told.prompt(answer).manifest.parts if part.name == "summary")
    told.summaries.edit(number, "They spoke of something else.", actor="ana")
    assert told.prompt(answer).changes == {"summary": ("resummarized",)}


def test_an_item_that_was_edited_is_as_it_was_and_one_that_was_deleted_says_so(memory: SupabaseMemory) -> None:
    told, answer = kilns(memory)
    (item,) = told.board.read().items
    told.board.edit(item, text="The kiln is red.", actor="ana")
    rebuilt = told.prompt(answer)
    assert rebuilt.changes == {}
    assert "The kiln is blue." in rebuilt.text()
    told.board.delete(item, actor="ana")
    assert told.prompt(answer).changes == {"board": ("deleted",)}


def test_a_prompt_of_a_branch_that_was_left_is_rebuilt(memory: SupabaseMemory, sql: psycopg.Connection) -> None:
    told = memory.conversation("t")
    asked = HumanMessage("Which cone?", id="q")
    told.append([HumanMessage("I fire porcelain.", id="p"), AIMessage("Nice.", id="n"), asked])
    pack = told.context(asked)
    told.append([AIMessage("Cone 6.", id="a")], pack=pack)
    kept = told.manifests().manifests[0]
    sql.execute(
        "select memory_private.move_messages(user_id, id, '{2,3}', false) from memory.conversations where user_id = %s",
        [memory.user_id],
    )
    is_as_read(told.prompt(kept), pack)


async def test_both_doors_rebuild_in_one_round_trip_with_a_manifest(caller: Caller, user_id: str) -> None:
    told = caller.service.for_user(user_id).conversation("t")
    await caller(told.append, [HumanMessage("I fire a kiln."), AIMessage("Which cone?")])
    asked = HumanMessage("Cone 6. What now?")
    pack = await caller(told.context, asked)
    await caller(told.append, [asked, AIMessage("Glaze it.")], pack=pack)
    (kept,) = (await caller(told.manifests)).manifests
    for answer in (kept, kept.to_sequence):
        is_as_read(await caller(told.prompt, answer), pack)
    with pytest.raises(NotFoundError):
        await caller(told.prompt, 1)
    with pytest.raises(InvalidInputError):
        await caller(told.prompt, pack.manifest)
    with pytest.raises(InvalidInputError):
        await caller(told.prompt, None)
