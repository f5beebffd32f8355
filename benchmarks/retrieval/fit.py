"""Fit the coefficients of `LearnedReranker` on data sets, and say what they gain on conversations left out.

    python -m benchmarks.retrieval.fit DATA ... [--vectors] [--limit N] [--write]

It is logistic regression within each question: the candidates with evidence against all those without (McFadden 1974,
conditional logit). Each fold leaves out every fifth conversation of each data set, and so its statements, too.
`--write` puts the coefficients of all conversations into the package, and those of the folds into `held_out.json`, from
which the row of the benchmark takes for each conversation those that were fitted without it.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.retrieval import held_out
from benchmarks.retrieval.data import ADVERSARIAL
from benchmarks.retrieval.data_sets import load
from benchmarks.retrieval.embedder import CACHE, MiniLM
from benchmarks.retrieval.metrics import DEPTH, Packer, columns, gain, measured
from benchmarks.retrieval.package import CANDIDATES, Package
from benchmarks.retrieval.postgres import Postgres
from langchain_supabase_memory.adapters import learned_reranker
from langchain_supabase_memory.adapters.learned_reranker.signals import signals
from langchain_supabase_memory.operations.recall.ranking import documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.documents import Document
    from numpy.typing import NDArray

    from benchmarks.retrieval.data import Conversation, DataSet, Question
    from benchmarks.retrieval.metrics import Unit

FOLDS: Final = 5
_SHIPPED: Final = Path(learned_reranker.__file__).with_name("coefficients.json")
_PENALTY: Final = 100.0
_STEPS: Final = 30
_LARGEST: Final = 700.0  # of what `exp` takes
_INNERMOST: Final = re.compile(r"\{\s*\"coefficient\"[^{}]*\}")
"""One coefficient of the file, which takes one line."""
_SHOWN: Final = ("r@10", "r@2000c", "r@4000c")

Coefficients = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Judged:
    """A question with its candidates.

    Attributes:
        data: The name of its data set.
        fold: The fold that leaves it out.
        conversation: Its conversation.
        question: The question.
        candidates: The documents that the reranker orders.
        units: The first stage's ranking, the candidates first.
        names: The names of the signals.
        signals: One row for each candidate.
    """

    data: str
    fold: int
    conversation: Conversation
    question: Question
    candidates: list[Document]
    units: list[Unit]
    names: list[str]
    signals: NDArray[np.float64]

    @property
    def has_evidence(self) -> NDArray[np.bool_]:
        return np.array([not self.question.evidence.isdisjoint(unit) for unit in self.units[: len(self.candidates)]])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval.fit", description="Fit the second stage.")
    parser.add_argument("data", type=Path, nargs="+", metavar="DATA", help="files or folders of the data sets")
    parser.add_argument("--vectors", action="store_true", help="with the embedder; by default by words")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N conversations of each data set")
    parser.add_argument("--write", action="store_true", help="keep the coefficients")
    parser.add_argument("--cache", type=Path, default=CACHE, metavar="FOLDER", help="cache of vectors")
    given = parser.parse_args()
    kind = learned_reranker.KINDS[given.vectors]
    judged = _judged([load(path, given.limit) for path in given.data], MiniLM(given.cache) if given.vectors else None)
    report_and_write(judged, kind, write=given.write)


def report_and_write(judged: Sequence[Judged], kind: str, *, write: bool) -> None:
    """Fit with each fold left out, on all sets and on the first alone; print the gains, and keep the coefficients.

    Args:
        judged: The questions of all data sets.
        kind: The kind of the first stage.
        write: Whether to keep them.
    """
    first = judged[0].data
    left_out: dict[int, Coefficients] = {}
    alone: dict[int, Coefficients] = {}
    for fold in range(FOLDS):
        others = [each for each in judged if each.fold != fold]
        left_out[fold] = fitted(others)
        alone[fold] = fitted([each for each in others if each.data == first])
    _report(f"{kind}, fitted on all sets", judged, left_out)
    _report(f"{kind}, fitted on {first} alone", judged, alone)
    if write:
        _write(_SHIPPED, kind, fitted(judged))
        folds = {each.conversation.id: str(each.fold) for each in judged}
        _write(held_out.FILE, kind, {"folds": folds, **{str(fold): each for fold, each in left_out.items()}})


def _judged(data_sets: Sequence[DataSet], embedder: MiniLM | None) -> list[Judged]:
    """Ask each question of the first stage."""
    found = []
    with Postgres() as postgres, Package(postgres.conn_string, embedder, "fit") as package:
        for data_set in data_sets:
            for place, conversation in enumerate(data_set.conversations):
                package.store(conversation)
                for question in conversation.questions:
                    if question.category == ADVERSARIAL:
                        continue
                    chunks = package.memory.conversation(conversation.id).recall(question.text, limit=DEPTH).chunks
                    candidates = documents(chunks[:CANDIDATES])
                    known = signals(question.text, candidates)
                    units: list[Unit] = [tuple(chunk.message_ids) for chunk in chunks]
                    rows = np.array(list(known.values())).T
                    fold = place % FOLDS
                    found.append(
                        Judged(data_set.name, fold, conversation, question, candidates, units, list(known), rows)
                    )
    return found


def fitted(judged: Sequence[Judged], penalty: float = _PENALTY) -> Coefficients:
    """Return the coefficients that put candidates with evidence before those without, by Newton's method.

    Args:
        judged: The questions; those without both kinds of candidates teach nothing.
        penalty: The weight of the coefficients' squares (ridge).
    """
    taught = [each for each in judged if each.has_evidence.any() and not each.has_evidence.all()]
    rows = np.concatenate([each.signals for each in taught])
    mean, deviation = rows.mean(0), rows.std(0)
    moving = deviation > 1e-9
    deviation = np.where(moving, deviation, 1.0)
    questions = [((each.signals - mean) / deviation, each.has_evidence) for each in taught]
    weights = np.zeros(rows.shape[1])
    loss, slope, curve = _loss(weights, questions, penalty)
    for _ in range(_STEPS):
        step = np.linalg.solve(curve, slope)
        length = 1.0
        while length > 1e-6:
            tried = _loss(weights - length * step, questions, penalty)
            if tried[0] <= loss:
                break
            length /= 2
        else:
            break
        weights, gained = weights - length * step, loss - tried[0]
        loss, slope, curve = tried
        if gained < 1e-6 * abs(loss):
            break
    return {
        name: {
            "coefficient": _short(weights[place]),
            "mean": _short(mean[place]),
            "deviation": _short(deviation[place]),
        }
        for place, name in enumerate(taught[0].names)
        if moving[place]
    }


def _short(number: float) -> float:
    return float(f"{number:.4g}")


def _loss(
    weights: NDArray[np.float64],
    questions: Sequence[tuple[NDArray[np.float64], NDArray[np.bool_]]],
    penalty: float,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the loss, its gradient and its curvature."""
    loss = penalty * float(weights @ weights) / 2
    slope = penalty * weights
    curve = penalty * np.eye(len(weights))
    for rows, right in questions:
        score = rows @ weights
        most = float(score[~right].max())
        others = np.exp(score[~right] - most)
        own = np.exp(np.minimum(score[right] - most, _LARGEST))
        whole = others.sum() + own  # one for each candidate with evidence
        means = (others @ rows[~right] + own[:, None] * rows[right]) / whole[:, None]
        share = 1 / np.sqrt(len(own))  # much evidence counts for more, but not for as many questions
        chances = np.where(right, 0.0, (1 / whole).sum())
        chances[~right] *= others
        chances[right] = own / whole
        loss += share * float((np.log(whole) - np.log(own)).sum())
        slope = slope + share * (means - rows[right]).sum(0)
        curve += share * ((rows * chances[:, None]).T @ rows - means.T @ means)
    return loss, slope, curve


def _report(title: str, judged: Sequence[Judged], folds: dict[int, Coefficients]) -> None:
    """Print the paired gains of each data set, by conversations left out."""
    print(title)
    for data in dict.fromkeys(each.data for each in judged):
        before, after = [], []
        for each in judged:
            if each.data != data:
                continue
            packer = Packer(each.conversation)
            scores = _scores(each, folds[each.fold])
            order = np.argsort(-scores, kind="stable")
            units = [*(each.units[place] for place in order), *each.units[len(order) :]]
            before.append(measured(packer, each.question, each.units))
            after.append(measured(packer, each.question, units))
        first, second = np.array(before), np.array(after)
        for name in _SHOWN:
            place = columns().index(name)
            paired = gain(first[:, place], second[:, place])
            means = f"{100 * first[:, place].mean():.1f} to {100 * second[:, place].mean():.1f}"
            print(
                f"  {data:12} {len(first):4} {name:8} {means}: "
                f"{paired['mean']:+.1f} [{paired['low']:+.1f}, {paired['high']:+.1f}]",
                flush=True,
            )


def _scores(judged: Judged, coefficients: Coefficients) -> NDArray[np.float64]:
    """Return what `LearnedReranker` gives the candidates."""
    total = np.zeros(len(judged.candidates))
    for place, name in enumerate(judged.names):
        if name in coefficients:
            of = coefficients[name]
            total += of["coefficient"] * (judged.signals[:, place] - of["mean"]) / of["deviation"]
    return total


def _write(path: Path, kind: str, value: Any) -> None:
    """Put the coefficients of one kind into a file, and leave the other kind's."""
    known = json.loads(path.read_text()) if path.exists() else {}
    text = json.dumps({**known, kind: value}, indent=1, ensure_ascii=False)
    path.write_text(_INNERMOST.sub(lambda match: " ".join(match.group().split()), text) + "\n")


if __name__ == "__main__":
    main()
