"""Measure answers: any chat model over this package's context packs, graded by any judge.

    python -m benchmarks.answers --set locomo --data locomo10.json --model openai:gpt-5.5 --judge openai:gpt-5.5 \
        --output answers.jsonl [--embeddings openai:text-embedding-3-small] [--limit 1] [--at-once 8]

Models and embedders go by LangChain's names. `stand-in` is a model that only quotes, and a judge that counts words, to
try the harness out without a key. A repeated command asks only questions that have no result yet. Postgres runs
embedded; conversations are stored again in each run, without calling a model.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers.judges import Judge, ModelJudge, WordJudge
from benchmarks.answers.questions import SETS, load
from benchmarks.answers.run import ResultsFile, Runner, RunSettings
from benchmarks.harness import Table
from benchmarks.retrieval.data import FormError
from benchmarks.retrieval.metrics import summary
from benchmarks.retrieval.package import Package
from benchmarks.retrieval.postgres import Postgres
from langchain_supabase_memory.adapters.model_loading import load_chat_model, load_embedder
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.testing import OfflineQuotingModel

if TYPE_CHECKING:
    from collections.abc import Sequence

STAND_IN = "stand-in"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command.

    Args:
        arguments: Its arguments; the process's by default.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description="Measure answers.")
    parser.add_argument("--set", required=True, choices=SETS, help="the data set")
    parser.add_argument("--data", required=True, type=Path, metavar="PATH", help="its file, or BEAM's folder")
    parser.add_argument(
        "--model", required=True, metavar="NAME", help=f"who answers, by LangChain's name, or {STAND_IN}"
    )
    parser.add_argument(
        "--judge", required=True, metavar="NAME", help=f"who grades, by LangChain's name, or {STAND_IN}"
    )
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="the results, one line a question")
    parser.add_argument("--embeddings", metavar="NAME", help="an embedder; without one, recall is by words")
    parser.add_argument("--characters", type=int, default=12_000, help="the size of a context pack (12000)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N conversations")
    parser.add_argument("--at-once", type=int, default=4, metavar="N", help="questions at the same time (4)")
    given = parser.parse_args(arguments)
    settings = RunSettings(given.set, given.model, given.judge, given.embeddings, given.characters)
    try:
        model = OfflineQuotingModel() if given.model == STAND_IN else load_chat_model(given.model)
        judge: Judge = (
            WordJudge()
            if given.judge == STAND_IN
            else ModelJudge(load_chat_model(given.judge), has_rubrics=given.set == "beam")
        )
        embedder = None if given.embeddings is None else load_embedder(given.embeddings)
        results = ResultsFile(given.output, settings)
        with Postgres() as postgres, Package(postgres.conn_string, embedder, "answers") as package:
            runner = Runner(package, model, judge, given.characters, given.at_once)
            errors = runner.run(load(given.set, given.data, given.limit), results)
    except (FormError, SupabaseMemoryError, OSError) as error:
        sys.exit(str(error))
    print(table(settings, results).text())
    if errors:
        sys.exit("\n".join([*errors[:5], f"{len(errors)} questions have no result yet: repeat the command"]))


def table(settings: RunSettings, results: ResultsFile) -> Table:
    """Return the scores by category.

    Args:
        settings: What was measured.
        results: The results so far.
    """
    categories = sorted({category for category, _ in results.scores.values()})
    groups = {
        "all": [score for _, score in results.scores.values()],
        **{name: [score for category, score in results.scores.values() if category == name] for name in categories},
    }
    rows: list[list[str | float]] = []
    for name, scores in groups.items():
        if scores:
            (mean,) = summary(np.array(scores)[:, None])
            rows.append([name, str(len(scores)), f"{mean['mean']:.1f} ±{(mean['high'] - mean['low']) / 2:.1f}"])
    notes = [
        f"{settings.model} answers from packs of {settings.characters:,} characters, {settings.judge} grades,"
        f" embeddings: {settings.embeddings or 'none'}; percent, ± half the 95 % interval over the questions."
    ]
    if STAND_IN in (settings.model, settings.judge):
        notes.append("With a stand-in these numbers say that the harness works, and nothing about answers.")
    return Table(f"{settings.data}: graded answers", ["category", "questions", "score"], rows, notes)


if __name__ == "__main__":
    main()
