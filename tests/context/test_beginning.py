"""The prompt's beginning is a function of what is stored and of the budget, and moves only with a segment or a step."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool

from langchain_supabase_memory import (
    ContextBudget,
    MemoryConfig,
    SummaryPolicy,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
)
from langchain_supabase_memory.context.load import _ASKED, _UNASKED
from langchain_supabase_memory.language.query_hints.statement import is_question_or_request
from langchain_supabase_memory.types import Conversation
from tests.chat_models import ScriptedModel, calls
from tests.each_case import each_case

WORDS = [
    "kiln",
    "glaze",
    "cone",
    "shelf",
    "clay",
    "firing",
    "porcelain",
    "cobalt",
    "celadon",
    "bisque",
    "garden",
    "tomato",
    "frost",
    "ferry",
    "hostel",
    "lantern",
]


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        yield memory


def said(draw: random.Random, number: int) -> list[BaseMessage]:
    words = " ".join(draw.choices(WORDS, k=draw.randint(20, 60)))
    more = " ".join(draw.choices(WORDS, k=draw.randint(5, 90)))
    return [HumanMessage(f"Turn {number}: the {words}.", id=f"q{number}"), AIMessage(f"The {more}.", id=f"a{number}")]


def beginning(conversation: Conversation, question: str, budget: ContextBudget) -> list[str]:
    """What stands before what belongs to the turn."""
    pack = conversation.context(question, budget=budget)
    head = [] if pack.fitted.head_message is None else [pack.fitted.head_message]
    return [each.text for each in (*head, *(entry.message for entry in pack.fitted.recent))]


@pytest.mark.parametrize("budget", [ContextBudget(), ContextBudget(tokens=2_500)], ids=["characters", "tokens"])
@pytest.mark.parametrize("writer", ["quotes", "nobody"])
def test_it_moves_only_with_a_segment_or_a_step(
    conn_string: str, user_id: str, writer: str, budget: ContextBudget
) -> None:
    draw, moves, seen = random.Random(7), 0, []
    model: Any = {} if writer == "quotes" else {"model": None}
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, **model) as memory:
        conversation = memory.conversation("t")
        before: list[str] = []
        for number in range(90):
            question = f"What about the {draw.choice(WORDS)}?" if number % 3 else "Good morning."
            now = beginning(conversation, question, budget)
            assert now == beginning(conversation, "Something else entirely, about frost?", budget)
            if now[: len(before)] != before:
                moves += 1
                if writer == "quotes":
                    segment = conversation.context(question, budget=budget).summary
                    assert segment is not None
                    assert segment.number not in seen, "each segment moves it once"
                    seen.append(segment.number)
            before = now
            conversation.append(said(draw, number))
        characters = memory.conversation("t").context("?", budget=budget).full_characters
    step = budget.about_characters * 35 // 100
    assert 3 <= moves <= characters // step + 1


def test_another_process_begins_a_prompt_with_the_same_bytes(
    memory: SupabaseMemory, conn_string: str, user_id: str
) -> None:
    draw, conversation = random.Random(3), memory.conversation("t")
    for number in range(60):
        conversation.append(said(draw, number))
        conversation.context("And now?")
    program = (
        "from langchain_supabase_memory import SupabaseMemory\n"
        f"with SupabaseMemory.from_conn_string({conn_string!r}, user_id={user_id!r}) as memory:\n"
        "    fitted = memory.conversation('t').context('Something else?').fitted\n"
        "    print(repr([fitted.head_message.text, *(entry.message.text for entry in fitted.recent)]), end='')\n"
    )
    theirs = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert theirs == repr(beginning(conversation, "And the frost?", ContextBudget()))


def test_recent_messages_have_the_larger_part(memory: SupabaseMemory) -> None:
    draw, conversation, shares = random.Random(5), memory.conversation("t"), []
    for number in range(80):
        conversation.append(said(draw, number))
        pack = conversation.context("What of the kiln?")
        if number > 30:
            shares.append(sum(entry.counts[1] for entry in pack.fitted.recent) / 12_000)
            assert pack.used <= 12_000
    assert min(shares) >= 0.2
    assert sum(shares) / len(shares) >= 0.4


def test_who_asks_nothing_is_told_little(memory: SupabaseMemory) -> None:
    draw, conversation = random.Random(5), memory.conversation("t")
    for number in range(80):
        conversation.append(said(draw, number))
    conversation.context("Hello.")  # summarizes, so that there is something to recall

    def recalled(**asked: Any) -> int:
        return sum(len(chunk.content) for chunk in conversation.context(**asked).recalled)

    told, asked = recalled(current="The kiln and the glaze."), recalled(current="Remind me of the kiln and the glaze")
    assert told <= _UNASKED < asked <= _ASKED
    assert recalled(current="The kiln and the glaze.", query="the kiln and the glaze") >= asked, "a query always asks"
    conversation.append([HumanMessage(f"And the {word}?") for word in ("kiln", "glaze", "cone")])
    assert recalled(current="And the kiln and the glaze?") <= asked // 2, "questions in a row share it"


@each_case(
    ("text", "does"),
    [
        ("What was the code?", True),
        ("Remind me of the code", True),
        ("By the way, please give me the code again.", True),
        ("I am back. What was the code? I need it now.", True),
        ("Sag mir den Code", True),
        ("Dime el código", True),
        ("Rappelle-moi le code", True),
        ("Dimmi il codice", True),
        ("Me diga o código", True),
        ("Tolong beri tahu kodenya", True),
        ("Sabihin mo ang code", True),
        ("暗証番号は何ですか？", True),
        ("The code is 4812.", False),
        ("I told him the code and he gave me a look.", False),
        ("", False),
        ("a" * 1_000_000, False),
    ],
)
def test_whether_a_message_asks(text: str, does: bool) -> None:
    assert is_question_or_request(text) is does


@tool
def look(what: str) -> str:
    """Look something up."""
    return f"{what}: " + "fired at cone nine. " * 10


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_a_tool_loop_appends_and_seldom_moves_the_window(memory: SupabaseMemory, color: str) -> None:
    draw = random.Random(9)
    for number in range(80):
        memory.conversation("t").append(said(draw, number))
    memory.conversation("t").context("Hello.")
    chat = ScriptedModel(script=lambda prompt: _step(prompt))
    agent: Any = create_agent(chat, [look], middleware=[SupabaseMemoryMiddleware(memory)])
    asked = {"messages": [HumanMessage("What was said of the kiln and the glaze?", id="now")]}
    config = {"configurable": {"thread_id": "t"}}
    if color == "sync":
        agent.invoke(asked, config)
    else:
        await agent.ainvoke(asked, config)
    prompts = [[each.text for each in prompt] for prompt in chat.shown]
    assert len(prompts) == 6
    passages = [{line for text in prompt if "<recalled>" in text for line in text.splitlines()} for prompt in prompts]
    assert passages[0]
    # Nothing new is recalled in a loop. What the summary's own work made anew may be missing.
    assert all(passage <= passages[0] for passage in passages)
    assert all(passage == passages[1] for passage in passages[1:])
    moves = sum(second[: len(first)] != first for first, second in pairwise(prompts))
    assert moves <= 2, "where the loop outgrows the room, the window moves by a step"


def _step(prompt: list[BaseMessage]) -> AIMessage:
    done = sum(each.type == "tool" and each.text.startswith("kiln") for each in prompt)
    return AIMessage("Cone nine.") if done == 5 else calls("look", what=f"kiln {done}")


def test_a_message_longer_than_the_window_is_cut_and_shown(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=None, config=MemoryConfig(policy=SummaryPolicy(mode="background"))
    ) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage("kiln " * 12_000, id="paste"), AIMessage("Read.", id="read")])
        pack = conversation.context("And?")
        assert pack.clipped == [0]
        assert pack.used <= 12_000
