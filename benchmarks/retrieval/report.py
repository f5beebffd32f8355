"""What was measured, as tables for people and as numbers for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness import Table, verdict
from benchmarks.retrieval.data import ADVERSARIAL
from benchmarks.retrieval.metrics import DEPTH
from benchmarks.retrieval.pack import MEASURES

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN: Final = ("r@5", "r@10", "r@20", "r@2000c", "r@4000c", "r@8000c", "full@4000c", "mrr")
_BY_CATEGORY: Final = ("r@10", "r@2000c", "r@4000c")
TARGETS: Final = {"r@10": 81, "r@2000c": 82, "r@4000c": 87}
PACK_TARGET: Final = ("12000", 93)
"""What this package is to reach: by its ranking, and the evidence that its pack of so many characters keeps."""


@dataclass
class Results:
    """The measures by ranking and category, and the packs by filler and budget, in per cent."""

    name: str
    conversations: int
    questions: int
    rankings: dict[str, dict[str, Any]] = field(default_factory=dict)
    packs: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    gains: dict[str, dict[str, float]] = field(default_factory=dict)
    milliseconds: dict[str, dict[str, float]] = field(default_factory=dict)

    def tables(self, package: str) -> list[Table]:
        found = [self._rankings()]
        if package in self.rankings:
            found.append(self._categories(package))
        if self.packs:
            found.append(self._packs(package))
        if self.gains:
            found.append(self._gains())
        return found

    def _rankings(self) -> Table:
        rows: list[list[str | float]] = [
            [name, *(_interval(groups["all"][column]) for column in _SHOWN)]
            for name, groups in self.rankings.items()
            if "all" in groups
        ]
        notes = [
            f"{self.conversations} conversations; per cent, ± half the 95 % interval over {self.questions} questions, "
            f"{ADVERSARIAL} ones apart."
        ]
        notes += [
            f"{name}: a recall of {DEPTH} chunks took {times['median']:.0f} ms, one in twenty {times['p95']:.0f} ms."
            for name, times in self.milliseconds.items()
        ]
        return Table(f"{self.name}: how much of the evidence comes back", ["ranking", *_SHOWN], rows, notes)

    def _categories(self, package: str) -> Table:
        rows: list[list[str | float]] = [
            [category, str(group["questions"]), *(_interval(group[column]) for column in _BY_CATEGORY)]
            for category, group in self.rankings[package].items()
        ]
        return Table(
            f"{self.name}, by category: {package}",
            ["category", "questions", *_BY_CATEGORY],
            rows,
            self._verdicts(package),
        )

    def _gains(self) -> Table:
        rows: list[list[str | float]] = [
            [measure, f"{gain['mean']:+.2f}", f"{gain['low']:+.2f} to {gain['high']:+.2f}"]
            for measure, gain in self.gains.items()
        ]
        notes = ["points over the same questions without it, and the 95 % interval of the paired differences."]
        return Table("What the second stage gains", ["measure", "gain", "interval"], rows, notes)

    def _verdicts(self, package: str) -> list[str]:
        if self.name != "LoCoMo":  # on which the targets were set
            return []
        means = {column: self.rankings[package]["all"][column]["mean"] for column in TARGETS}
        return [verdict(column, means[column], target, at_least=True) for column, target in TARGETS.items()]

    def _packs(self, package: str) -> Table:
        budgets = list(next(iter(self.packs.values())))
        columns = [f"{int(budget):,}: {what}" for budget in budgets for what in MEASURES]
        rows: list[list[str | float]] = [
            [name, *(f"{packs[budget][what]:.1f}" for budget in budgets for what in MEASURES)]
            for name, packs in self.packs.items()
        ]
        notes = [
            "per cent of the evidence that stands in the pack verbatim; of the answers' words that are grounded in it,",
            "those in a sentence of it that is in the pack; of the answers' words, those anywhere in the pack.",
        ]
        budget, target = PACK_TARGET
        if package in self.packs and self.name == "LoCoMo":
            kept = self.packs[package][budget]["evidence"]
            notes.append(verdict(f"evidence in {int(budget):,} characters", kept, target, at_least=True))
        return Table(f"{self.name}: what a whole context pack keeps", ["pack", *columns], rows, notes)


def together(found: Sequence[Results], names: Sequence[str]) -> Table:
    """One table over several data sets.

    Args:
        found: The results on each.
        names: The rankings that are shown, where they were measured.
    """
    rows: list[list[str | float]] = [
        [each.name, name, str(each.questions), *(_interval(each.rankings[name]["all"][column]) for column in _SHOWN)]
        for each in found
        for name in names
        if "all" in each.rankings.get(name, {})
    ]
    notes = ["per cent, ± half the 95 % interval over the questions of each data set."]
    return Table(
        "Every data set: how much of the evidence comes back", ["data", "ranking", "questions", *_SHOWN], rows, notes
    )


def _interval(value: dict[str, float]) -> str:
    return f"{value['mean']:.1f} ±{(value['high'] - value['low']) / 2:.1f}"


def named(names: Sequence[str], wanted: Sequence[str] | None) -> list[str]:
    """The names of which a part was asked for; all of them if nothing was."""
    return [name for name in names if not wanted or any(part.casefold() in name.casefold() for part in wanted)]
