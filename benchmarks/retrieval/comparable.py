"""The results in the units that others publish, apart for conversations that were tuned on, and beside published rows.

Others count sessions, and mostly a question as answered if one session with evidence is among the first five or ten.
With a few dozen sessions that is an easy task: the share of the turns is the strict measure, so both are shown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.harness import Table
from benchmarks.retrieval.data import ADVERSARIAL
from benchmarks.retrieval.metrics import columns, summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from benchmarks.retrieval.data import Conversation, Question

SHOWN: Final = ("any@5", "any@10", "all@5", "all@10", "session@10", "r@10", "mrr", "ndcg@10")
TUNED_ON: Final = "tuned on"
HELD_OUT: Final = "held out"
_FILE: Final = Path(__file__).with_name("published.json")
_LOCOMO: Final = ("conv-26", "conv-30", "conv-42", "conv-43", "conv-49")
_TUNED: Final = {
    "LoCoMo": frozenset(_LOCOMO),
    "Locomo-Plus": frozenset(f"plus-{name}" for name in _LOCOMO),
    "BEAM": frozenset(f"100K/{number}" for number in range(1, 11)),
}
"""The conversations on which this package's weights and rules were chosen; of other data sets none."""
_DEFINITIONS: Final = (
    "any@k, all@k: one, all of the sessions with evidence are among the first k sessions; session@10: one of the first",
    "10 passages is of a session with evidence; r@10: the share of the turns with evidence in the first 10 passages.",
    f"{TUNED_ON}: this package's weights and rules were chosen on these conversations; the other rankings have none.",
)


@dataclass(frozen=True)
class Published:
    """A number that somebody else measured and published.

    Attributes:
        data: The data set.
        system: Who was measured, with the embedder.
        metric: The column that is nearest to its definition.
        value: The number in percent.
        questions: The number of questions; `None` if unknown.
        definition: How a question counts, as far as the page says.
        address: The page.
    """

    data: str
    system: str
    metric: str
    value: float
    questions: int | None
    definition: str
    address: str


def published() -> list[Published]:
    """Return the published rows, which are never mixed with measured ones."""
    return [Published(**row) for row in json.loads(_FILE.read_text())]


def split(data: str, conversation: str) -> str:
    """Return whether a conversation was tuned on.

    Args:
        data: The name of its data set.
        conversation: Its id, of which BEAM's may begin with folders.
    """
    known = _TUNED.get(data, frozenset())
    return TUNED_ON if any(conversation == each or conversation.endswith(f"/{each}") for each in known) else HELD_OUT


def by_split(
    data: str, conversations: Sequence[Conversation], values: Mapping[str, NDArray[np.float64]]
) -> dict[str, dict[str, Any]]:
    """Return the summary of each ranking for each group of questions.

    Args:
        data: The name of the data set.
        conversations: The conversations.
        values: By ranking, one row for each question in the order of the conversations.
    """
    kinds = np.array([split(data, each.id) for each in conversations for _ in each.questions])
    adversarial = np.array([question.category == ADVERSARIAL for each in conversations for question in each.questions])
    found: dict[str, dict[str, Any]] = {}
    for kind in (TUNED_ON, HELD_OUT):
        mine = kinds == kind
        groups = {kind: mine & ~adversarial}
        if (mine & adversarial).any():
            groups[f"{kind}, with {ADVERSARIAL} ones"] = mine
        sizes = [len({turn.session for turn in each.turns}) for each in conversations if split(data, each.id) == kind]
        for name, inside in groups.items():
            if inside.any():
                found[name] = {
                    "questions": int(inside.sum()),
                    "sessions": float(np.mean(sizes)),
                    "rankings": {
                        ranking: dict(zip(columns(), summary(rows[inside]), strict=True))
                        for ranking, rows in values.items()
                    },
                }
    return found


def missed(
    data: str, conversations: Sequence[Conversation], values: Mapping[str, NDArray[np.float64]]
) -> list[dict[str, Any]]:
    """Return the questions of which evidence is missing in the first ten passages.

    Args:
        data: The name of the data set.
        conversations: The conversations.
        values: By ranking, one row for each question in the order of the conversations.
    """
    asked: list[tuple[Conversation, Question]] = [
        (each, question) for each in conversations for question in each.questions
    ]
    share, session = columns().index("r@10"), columns().index("any@10")
    return [
        {
            "ranking": ranking,
            "conversation": conversation.id,
            "split": split(data, conversation.id),
            "category": question.category,
            "question": question.text,
            "evidence": sorted(question.evidence),
            "r@10": round(float(row[share]), 3),
            "any@10": bool(row[session]),
        }
        for ranking, rows in values.items()
        for (conversation, question), row in zip(asked, rows, strict=True)
        if row[share] < 1
    ]


def comparable_table(data: str, groups: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> Table:
    """Return the results in the units of others.

    Args:
        data: The name of the data set.
        groups: The result of `by_split`.
        names: The rankings to include, if measured.
    """
    rows: list[list[str | float]] = [
        [
            name,
            group_name,
            str(group["questions"]),
            f"{group['sessions']:.0f}",
            *(_interval(group["rankings"][name][column]) for column in SHOWN),
        ]
        for group_name, group in groups.items()
        for name in names
        if name in group["rankings"]
    ]
    notes = ["percent, ± half the 95 % interval; sessions: the mean number of a conversation.", *_DEFINITIONS]
    return Table(
        f"{data}: in the units that others publish",
        ["ranking", "conversations", "questions", "sessions", *SHOWN],
        rows,
        notes,
    )


def published_table(data: str) -> Table | None:
    """Return what others published for a data set; `None` if nothing is known."""
    known = [each for each in published() if each.data == data]
    rows: list[list[str | float]] = [
        [each.system, each.metric, f"{each.value:g}", "unknown" if each.questions is None else str(each.questions)]
        for each in known
    ]
    notes = ["as published and not measured here; other questions, so compare only roughly. How they count, and where:"]
    notes += [f"{each.system}, {each.metric}: {each.definition}; {each.address}" for each in known]
    return (
        Table(f"{data}: published by others", ["system", "metric", "percent", "questions"], rows, notes)
        if known
        else None
    )


def missed_table(
    data: str, categories: Sequence[str], rows: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> Table:
    """Return how many questions miss evidence, by category.

    Args:
        data: The name of the data set.
        categories: The category of every question.
        rows: The result of `missed`.
        names: The rankings to include, if they miss anything.
    """
    lines: list[list[str | float]] = []
    for name in names:
        mine = [row for row in rows if row["ranking"] == name]
        for category in sorted(set(categories)) if mine else ():
            inside = [row for row in mine if row["category"] == category]
            counts = (
                categories.count(category),
                sum(row["r@10"] > 0 for row in inside),
                sum(row["r@10"] == 0 for row in inside),
                sum(not row["any@10"] for row in inside),
            )
            lines.append([name, category, *map(str, counts)])
    head = ["ranking", "category", "questions", "part in 10 passages", "none in 10 passages", "no session in 10"]
    return Table(f"{data}: questions that miss evidence", head, lines, ["each of them is in the file of --json."])


def _interval(value: Mapping[str, float]) -> str:
    return f"{value['mean']:.1f} ±{(value['high'] - value['low']) / 2:.1f}"
