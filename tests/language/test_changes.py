"""Facts that change: the rules replace an earlier fact by a later one, and none that still holds."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from langchain_supabase_memory.language.lexicon import languages
from tests.each_case import each_case
from tests.language.test_extractive import revise, said

SCENARIOS: Final = tomllib.loads(Path(__file__).with_name("changes.toml").read_text(encoding="utf-8"))
RESTATED: Final = tomllib.loads(Path(__file__).with_name("restated.toml").read_text(encoding="utf-8"))
FORTY: Final = tomllib.loads(
    Path(__file__).parents[1].joinpath("operations", "changed_facts.toml").read_text(encoding="utf-8")
)
TALK: Final = (
    ("The soup needs 40 minutes on a low flame.", "That sounds right."),
    ("My sister Nora visits us on Sunday.", "Enjoy the day with her!"),
    ("It rained all afternoon here.", "Then a book is the best company."),
    ("Our neighbor paints boats in the yard.", "What a nice sight."),
    ("The bread came out a bit flat.", "Perhaps the yeast was old."),
    ("I found 3 good pears at the market.", "They are in season."),
)


def board_of(old: str, new: str) -> list[dict[str, Any]]:
    """The facts of a board that is revised once after an old fact and once after a new one, with other talk between."""
    turns = [*TALK[:2], (old, "I see."), *TALK[2:4], (new, "Thanks for telling me."), *TALK[4:]]
    lines = said(*(each for turn in turns for each in (("user", turn[0]), ("assistant", turn[1]))))
    items: list[dict[str, Any]] = []
    for part in (lines[:8], lines[8:]):
        for fact in revise(part, [each for each in items if each["state"] == "current"])["facts"]:
            for each in items:
                each["state"] = "superseded" if each["id"] == fact["replaces"] else each["state"]
            items.append({**fact, "id": str(len(items)), "kind": "fact", "state": "current"})
    return items


def count(rows: Iterable[Sequence[str]]) -> tuple[int, int, int]:
    """How many old facts are superseded, how many are current, and how many others are superseded."""
    superseded = current = wrong = 0
    for old, new in rows:
        items = board_of(old, new)
        states = {each["state"] for each in items if each["quote"] in old}
        superseded += states == {"superseded"}
        current += "current" in states
        wrong += sum(each["state"] == "superseded" and each["quote"] not in old for each in items)
    return superseded, current, wrong


MEASURED: Final = {
    "developed": (93, 6),
    "judged": (17, 1),
    "de": (4, 0),
    "es": (4, 0),
    "fr": (4, 0),
    "id": (4, 0),
    "it": (4, 0),
    "pt": (4, 0),
    "tl": (3, 0),
}
"""For each half, the least number of superseded facts and the most that stay as current ones."""


def test_each_language_with_phrases_has_changes() -> None:
    assert set(SCENARIOS["changed"]) == set(MEASURED) == {"developed", "judged", *languages("phrases")} - {"en"}


@each_case("half", MEASURED)
def test_changed_facts_are_superseded(half: str) -> None:
    superseded, current, wrong = count(SCENARIOS["changed"][half])
    least, most = MEASURED[half]
    assert superseded >= least
    assert current <= most
    assert wrong == 0


@each_case("half", MEASURED)
def test_what_did_not_change_is_not_superseded(half: str) -> None:
    for old, new in SCENARIOS["unchanged"][half]:
        assert [each["quote"] for each in board_of(old, new) if each["state"] == "superseded"] == [], (old, new)


@each_case(
    "name, rows, least, most",
    [
        ("restated, measured once", RESTATED["replaced"], 11, 6),
        ("the forty, developed", [(each["old"], each["new"]) for each in FORTY["fact"]], 36, 2),
    ],
)
def test_what_is_restated_is_superseded(name: str, rows: list[Sequence[str]], least: int, most: int) -> None:
    """`least` old facts at least are superseded, and `most` at most stay as current ones."""
    superseded, current, wrong = count(rows)
    assert superseded >= least, name
    assert current <= most, name
    assert wrong == 0, name


@each_case(("old", "new"), [*RESTATED["kept"], *RESTATED["apart"]])
def test_what_is_said_of_something_else_is_not_superseded(old: str, new: str) -> None:
    assert [each["quote"] for each in board_of(old, new) if each["state"] == "superseded"] == []
