"""Facts that change: a small pack shows what holds now, and never only the old words without a mark."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_supabase_memory import ContextBudget, ExtractiveSummarizer, MemoryConfig, SupabaseMemory
from langchain_supabase_memory.effects import Material
from langchain_supabase_memory.memory.conversation import Conversation
from tests.each_case import each_case

SET: Final = tomllib.loads(Path(__file__).with_name("changed_facts.toml").read_text(encoding="utf-8"))
START: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
BUDGET: Final = ContextBudget(characters=2000)
PAIRS: Final = 6
"""So many questions about other things, with their answers, stand before the change, and as many after it."""

STEP: Final = 5
"""A board is revised when so many messages are new, as a worker does it by default."""


class Knowing:
    """A writer that notes the two facts of a scenario, as an application's model would: the later replaces the other."""

    name = "knowing"

    def __init__(self, old: str, new: str) -> None:
        self.old = old
        self.new = new

    def write(self, material: Material) -> str:
        numbers = {line.text: line.number for line in material.lines}
        facts = [
            {"text": each, "source": numbers[each], "quote": each} for each in (self.old, self.new) if each in numbers
        ]
        gone = next((item["id"] for item in material.items if item["text"] == self.old), None)
        facts = [{**each, "replaces": gone} if each["text"] == self.new else each for each in facts]
        return json.dumps({"summary": "They talk.", "facts": facts, "closed": []})


def talk(number: int) -> list[BaseMessage]:
    """The messages of a scenario: the old words, other talk, the new words, other talk."""
    fact, pool = SET["fact"][number], SET["talk"]
    other = [pool[(number * 7 + place) % len(pool)] for place in range(2 * PAIRS)]
    said = [(each["user"], each["assistant"]) for each in other]
    turns = [(fact["old"], "I see."), *said[:PAIRS], (fact["new"], "Thanks for telling me."), *said[PAIRS:]]
    return [
        kind(text, id=f"{number}-{place}-{kind.__name__}")
        for place, turn in enumerate(turns)
        for kind, text in zip((HumanMessage, AIMessage), turn, strict=True)
    ]


def hold(memory: SupabaseMemory, number: int, *, has_board: bool) -> Conversation:
    """Store a scenario; with a board, it is revised on the way."""
    conversation = memory.conversation(f"fact-{number}")
    messages = talk(number)
    times = [START + timedelta(hours=place) for place in range(len(messages))]
    step = STEP if has_board else len(messages)
    for start in range(0, len(messages), step):
        conversation.append(messages[start : start + step], created_at=times[start : start + step])
        if has_board:
            conversation.board.revise()
    return conversation


@dataclass
class Counted:
    """How many packs show what holds now, and which ones have the old words alone, without a mark."""

    newest: int = 0
    missing: tuple[str, ...] = ()
    old_alone: tuple[str, ...] = ()

    def add(self, fact: Mapping[str, Any], conversation: Conversation) -> None:
        pack = conversation.context(HumanMessage(fact["question"]), budget=BUDGET)
        told = "\n".join(str(each.text) for each in pack.prompt)
        if fact["after"] in told:
            self.newest += 1
        else:
            self.missing += (fact["about"],)
            if fact["before"] in told:
                self.old_alone += (fact["about"],)


# Rules read the words, so each fact is told to them; what knows them, and a profile beside the rules, do not need all.
@each_case(
    "board, every, least, most",
    [("knows both", 4, 10, 0), ("by rules", 1, 40, 0), ("by rules, with a profile", 2, 20, 0), ("none", 1, 28, 10)],
)
def test_a_pack_shows_what_holds_now(
    conn_string: str, user_id: str, board: str, every: int, least: int, most: int
) -> None:
    """Without an embedder, in 2,000 characters: `least` packs at least do, `most` at most have the old words alone."""
    counted = Counted()
    for number, fact in [*enumerate(SET["fact"])][::every]:
        model = Knowing(fact["old"], fact["new"]) if board == "knows both" else ExtractiveSummarizer()
        config = MemoryConfig(profile="profile" in board)
        person = f"{user_id}-{number}"
        with SupabaseMemory.from_conn_string(conn_string, user_id=person, model=model, config=config) as memory:
            counted.add(fact, hold(memory, number, has_board=board != "none"))
    assert counted.newest >= least, counted
    assert len(counted.old_alone) <= most, counted


def test_the_set_tells_the_old_words_from_the_new_ones() -> None:
    said = [each[who] for each in SET["talk"] for who in ("user", "assistant")]
    for fact in SET["fact"]:
        assert fact["before"] in fact["old"]
        assert fact["after"] in fact["new"]
        others = {
            fact["before"]: [fact["new"], fact["question"], *said],
            fact["after"]: [fact["old"], fact["question"], *said],
        }
        assert not [each for words, texts in others.items() for each in texts if words in each], fact["about"]
    assert (len(SET["fact"]), sum(fact["cue"] for fact in SET["fact"])) == (40, 20)
