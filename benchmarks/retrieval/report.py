"""Report the measurements as tables and as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.harness import Table, verdict
from benchmarks.retrieval import comparable
from benchmarks.retrieval.data import ADVERSARIAL
from benchmarks.retrieval.metrics import DEPTH, gain
from benchmarks.retrieval.pack import MEASURES

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN: Final = ("r@5", "r@10", "r@20", "r@2000c", "r@4000c", "r@8000c", "full@4000c", "mrr")
_TOGETHER: Final = ("any@5", "any@10", "all@5", "all@10", "session@10", "r@10", "r@4000c", "mrr", "ndcg@10")
_BY_CATEGORY: Final = ("r@10", "r@2000c", "r@4000c")
_QUESTIONS: Final = 757
"""The questions in the half of LoCoMo on which the targets were set."""
RANKING: Final = {"r@10": 83.5, "r@2000c": 83.6, "r@4000c": 89.0}
"""The results of this package's ranking when its targets were set; it must not lose a tenth of a point."""
PACK_TARGETS: Final = {"2000": 80.5, "4000": 87.5, "12000": 92.0}
STAGED_TARGETS: Final = {"2000": 82.5, "4000": 88.5, "12000": 94.5}
"""The target share of evidence in packs by budget, without and with a second stage."""


@dataclass
class Results:
    """The measures by ranking and category, and the packs by filler and budget, in percent."""

    name: str
    conversations: int
    questions: int
    rankings: dict[str, dict[str, Any]] = field(default_factory=dict)
    packs: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    gains: dict[str, dict[str, float]] = field(default_factory=dict)
    learned: dict[str, dict[str, float]] = field(default_factory=dict)
    """The gains of the learned second stage, by coefficients that were fitted without the conversation at hand."""
    each: dict[str, list[float]] = field(default_factory=dict)
    """This package's share of the evidence for each question, by measure name, which `--before` compares."""
    changes: dict[str, dict[str, float]] = field(default_factory=dict)
    """The same questions before and now: both means, and the mean gain with its interval."""
    milliseconds: dict[str, dict[str, float]] = field(default_factory=dict)
    splits: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The rankings for conversations that were tuned on, and for others; see `comparable.by_split`."""
    categories: list[str] = field(default_factory=list)
    """The category of every question."""
    missed: list[dict[str, Any]] = field(default_factory=list)
    """The questions of which this package misses evidence; see `comparable.missed`."""

    def tables(self, package: str, staged: str, compared: Sequence[str] = ()) -> list[Table]:
        """Return the results.

        Args:
            package: The name of this package's ranking.
            staged: Its name with a second stage.
            compared: The rankings that are shown in the units of others.
        """
        found = [self._rankings()] if self.rankings else []
        if self.splits:
            found.append(comparable.comparable_table(self.name, self.splits, compared))
            found += [table for table in [comparable.published_table(self.name)] if table is not None]
        if self.missed:
            found.append(comparable.missed_table(self.name, self.categories, self.missed, compared))
        if package in self.rankings:
            found.append(self._categories(package))
        if self.packs:
            found.append(self._packs(package, staged))
        if self.gains:
            found.append(self._gains())
        if self.learned:
            found.append(self._learned())
        if self.changes:
            found.append(self._changes())
        return found

    def compare(self, before: dict[str, list[float]]) -> None:
        """Compare with an earlier run, question by question.

        Args:
            before: Its `each`; other questions in it are ignored.
        """
        for name, now in self.each.items():
            then = before.get(name, [])
            if len(then) == len(now):
                first, second = np.array(then), np.array(now)
                means = {"before": round(100 * float(first.mean()), 2), "now": round(100 * float(second.mean()), 2)}
                self.changes[name] = {**means, **gain(first, second)}

    def _rankings(self) -> Table:
        rows: list[list[str | float]] = [
            [name, *(_interval(groups["all"][column]) for column in _SHOWN)]
            for name, groups in self.rankings.items()
            if "all" in groups
        ]
        notes = [
            f"{self.conversations} conversations; percent, ± half the 95 % interval over {self.questions} questions, "
            f"{ADVERSARIAL} ones excluded."
        ]
        notes += [
            f"{name}: a recall of {DEPTH} chunks took {times['median']:.0f} ms, one in twenty {times['p95']:.0f} ms."
            for name, times in self.milliseconds.items()
        ]
        return Table(f"{self.name}: recall of the evidence", ["ranking", *_SHOWN], rows, notes)

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
        if self._has_targets:
            sure = ("r@10", "r@2000c", "r@4000c", *(name for name in self.gains if name.startswith("evidence")))
            notes += [
                verdict(f"{name}: lower end of the interval", self.gains[name]["low"], 0, at_least=True)
                for name in sure
            ]
        return Table("Gain of the second stage", ["measure", "gain", "interval"], rows, notes)

    def _learned(self) -> Table:
        rows: list[list[str | float]] = [
            [measure, f"{gain['mean']:+.2f}", f"{gain['low']:+.2f} to {gain['high']:+.2f}"]
            for measure, gain in self.learned.items()
        ]
        notes = [
            "points over the same questions without it, and the 95 % interval of the paired differences;",
            "of a conversation in `held_out.json` by coefficients that were fitted without it.",
        ]
        return Table(f"{self.name}: gain of the learned second stage", ["measure", "gain", "interval"], rows, notes)

    def _verdicts(self, package: str) -> list[str]:
        if not self._has_targets:
            return []
        means = {column: round(self.rankings[package]["all"][column]["mean"], 1) for column in RANKING}
        return [
            verdict(f"{column}, previous value", means[column], was, at_least=True) for column, was in RANKING.items()
        ]

    @property
    def _has_targets(self) -> bool:
        """Whether this is the half on which the targets were set."""
        return self.name == "LoCoMo" and self.questions == _QUESTIONS

    def _changes(self) -> Table:
        rows: list[list[str | float]] = []
        for name, each in self.changes.items():
            interval = f"{each['low']:+.2f} to {each['high']:+.2f}"
            rows.append([name, f"{each['before']:.2f}", f"{each['now']:.2f}", f"{each['mean']:+.2f}", interval])
        notes = ["percent of the evidence; the 95 % interval of the paired differences."]
        return Table(f"{self.name}: before and now", ["measure", "before", "now", "gain", "interval"], rows, notes)

    def _packs(self, package: str, staged: str) -> Table:
        budgets = list(next(iter(self.packs.values())))
        columns = [f"{int(budget):,}: {what}" for budget in budgets for what in MEASURES]
        rows: list[list[str | float]] = [
            [name, *(f"{packs[budget][what]:.1f}" for budget in budgets for what in MEASURES)]
            for name, packs in self.packs.items()
        ]
        notes = [
            "percent of the evidence that stands in the pack verbatim; of the answers' words that are grounded in it,",
            "those in a sentence of it that is in the pack; of the answers' words, those anywhere in the pack.",
        ]
        for name, targets in ((package, PACK_TARGETS), (staged, STAGED_TARGETS)):
            if name in self.packs and self._has_targets:
                found = {budget: self.packs[name][budget]["evidence"] for budget in targets}
                notes += [
                    verdict(f"{name}: evidence in {int(budget):,} characters", found[budget], target, at_least=True)
                    for budget, target in targets.items()
                ]
        return Table(f"{self.name}: evidence in a context pack", ["pack", *columns], rows, notes)


def together(found: Sequence[Results], names: Sequence[str]) -> Table:
    """Return one table over several data sets.

    Args:
        found: The results on each.
        names: The rankings to include, if measured.
    """
    rows: list[list[str | float]] = [
        [
            each.name,
            name,
            str(each.questions),
            *(_interval(each.rankings[name]["all"][column]) for column in _TOGETHER),
        ]
        for each in found
        for name in names
        if "all" in each.rankings.get(name, {})
    ]
    notes = ["percent, ± half the 95 % interval over the questions of each data set."]
    return Table("Every data set: recall of the evidence", ["data", "ranking", "questions", *_TOGETHER], rows, notes)


def _interval(value: dict[str, float]) -> str:
    return f"{value['mean']:.1f} ±{(value['high'] - value['low']) / 2:.1f}"


def named(names: Sequence[str], wanted: Sequence[str] | None) -> list[str]:
    """Return the names that contain a requested part; all of them without a request."""
    return [name for name in names if not wanted or any(part.casefold() in name.casefold() for part in wanted)]
