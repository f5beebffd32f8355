"""Measure whether recall finds the right messages, against common methods with Postgres, Supabase and LangChain.

    make bench-retrieval [DATA="path/to/locomo10.json ..."] [ARGS="--limit 1 --json FILE --before FILE --keep"]

It uses no language model, no key and no network: questions with the turns that hold their evidence (LoCoMo,
LongMemEval, REALTALK, BEAM: one or several paths, and one table over all of them), a small embedder from a package, and
a real Postgres. Vectors are cached in a folder, so a second run takes a few minutes. Three small sets of this project
are always measured; without DATA only these run, in a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import results as kept
from benchmarks.retrieval import baselines, comparable, meant, pack
from benchmarks.retrieval.data import ADVERSARIAL, FormError
from benchmarks.retrieval.data_sets import HOW_TO_GET_THEM, load
from benchmarks.retrieval.embedder import CACHE, MiniLM
from benchmarks.retrieval.held_out import HeldOut
from benchmarks.retrieval.late import Late
from benchmarks.retrieval.metrics import Packer, by_category, columns, gain, measured
from benchmarks.retrieval.package import Package
from benchmarks.retrieval.postgres import Postgres
from benchmarks.retrieval.rankings import STEPS, Scores, Study
from benchmarks.retrieval.report import Results, named, together

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from benchmarks.retrieval.data import DataSet
    from benchmarks.retrieval.metrics import Unit

PACKAGE = "this package"
WORDS_ONLY = "this package, no embedder"
RERANKED = "this package, reranked by late interaction"
LEARNED = "this package, learned second stage"
LEARNED_WORDS = "this package, no embedder, learned second stage"
BOARDED = "this package, with a board"
REFERENCE = list(STEPS)[-1]
NEWEST = "newest turns only"
COMPARED = [*baselines.RIVALS, WORDS_ONLY, LEARNED_WORDS, PACKAGE, LEARNED]
"""The rankings that stand side by side in the units of others, and over all data sets."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description="Measure recall.")
    parser.add_argument("data", type=Path, nargs="*", metavar="DATA", help="files or folders of the data sets")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N conversations of each data set")
    parser.add_argument(
        "--only", action="append", metavar="PART", help="only rankings whose name contains PART; may be repeated"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers and the misses to FILE")
    parser.add_argument("--before", type=Path, metavar="FILE", help="compare with an earlier --json file, by question")
    parser.add_argument("--keep", action="store_true", help="write the tables to results.json and RESULTS.md")
    parser.add_argument(
        "--cache", type=Path, default=CACHE, metavar="FOLDER", help=f"cache of vectors; {CACHE} by default"
    )
    given = parser.parse_args()
    if not given.data:
        print(HOW_TO_GET_THEM, file=sys.stderr)
    try:
        data_sets = [load(path, given.limit) for path in given.data]
    except FormError as error:
        sys.exit(str(error))
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(f"stopped by {signal.Signals(number).name}"))

    before = {} if given.before is None else json.loads(given.before.read_text())
    begun = time.perf_counter()
    own = meant.measured(given.cache, WORDS_ONLY, PACKAGE)
    tables = [meant.table(own)]
    found = []
    for data_set in data_sets:
        results = _results(data_set, given.cache, given.only)
        results.compare(before.get(results.name, {}).get("each", {}))
        found.append(results)
        tables += results.tables(PACKAGE, RERANKED, COMPARED)
    if len(found) > 1:
        tables.append(together(found, COMPARED))
    for table in tables:
        print(table.text() + "\n", flush=True)
    if given.keep:
        part = bool(given.limit or given.only or not given.data)
        now, seconds = datetime.now(UTC).date().isoformat(), time.perf_counter() - begun
        kept.keep("retrieval", kept.Kept(now, part, os.getloadavg()[1], seconds, tables))
    if given.json is not None:
        numbers = {"own sets": own, **{each.name: asdict(each) for each in found}}
        given.json.write_text(json.dumps(numbers, indent=1) + "\n")


def _results(data_set: DataSet, cache: Path, only: Sequence[str] | None) -> Results:
    """Run all measurements on one data set."""
    conversations = data_set.conversations
    with ExitStack() as stack:
        postgres = stack.enter_context(Postgres())
        embedder = MiniLM(cache)
        studies = [Study(conversation, postgres, embedder) for conversation in conversations]
        ours = stack.enter_context(Package(postgres.conn_string, embedder, "by meaning"))
        late = Late(embedder, cache)
        staged = stack.enter_context(Package(postgres.conn_string, embedder, "in two stages", late))
        learned = stack.enter_context(Package(postgres.conn_string, embedder, "in two learned stages", HeldOut()))
        worded = stack.enter_context(Package(postgres.conn_string, None, "by words"))
        learned_words = stack.enter_context(Package(postgres.conn_string, None, "by words, then learned", HeldOut()))
        boarded = stack.enter_context(Package(postgres.conn_string, embedder, "with a board", has_board=True))
        packing = {PACKAGE: ours, RERANKED: staged, BOARDED: boarded}
        rankers: dict[str, Callable[[Study], list[list[Unit]]]] = {
            **baselines.rankers(),
            **{name: partial(_stepped, step) for name, step in STEPS.items()},
            WORDS_ONLY: worded.rank,
            PACKAGE: ours.rank,
            RERANKED: staged.rank,
            LEARNED: learned.rank,
            LEARNED_WORDS: learned_words.rank,
        }
        results = Results(data_set.name, len(conversations), sum(len(pack.asked(each)) for each in conversations))
        kinds = [question.category for study in studies for question in study.conversation.questions]
        values: dict[str, NDArray[np.float64]] = {}
        for name in named(list(rankers), only):
            print(f"... {name}", file=sys.stderr, flush=True)
            values[name] = _measured(studies, rankers[name])
            results.rankings[name] = by_category(values[name], kinds, ADVERSARIAL)
        results.categories = kinds
        results.splits = comparable.by_split(data_set.name, conversations, values)
        ours_alone = {name: values[name] for name in (WORDS_ONLY, PACKAGE) if name in values}
        results.missed = comparable.missed(data_set.name, conversations, ours_alone)
        for name in (WORDS_ONLY, PACKAGE, RERANKED):
            for place, column in enumerate(columns() if name in values else ()):
                shares = values[name][np.array(kinds) != ADVERSARIAL, place]
                results.each[f"{name}, {column}"] = shares.tolist()
        if {PACKAGE, RERANKED} <= values.keys():
            asked = np.array(kinds) != ADVERSARIAL
            for place, column in enumerate(columns()):
                pair = {name: values[name][asked, place] for name in (PACKAGE, RERANKED)}
                results.gains[column] = gain(*pair.values())
        for first, second in ((PACKAGE, LEARNED), (WORDS_ONLY, LEARNED_WORDS)):
            if {first, second} <= values.keys():
                asked = np.array(kinds) != ADVERSARIAL
                for column in ("r@10", "r@2000c", "r@4000c"):
                    place = columns().index(column)
                    gained = gain(values[first][asked, place], values[second][asked, place])
                    results.learned[f"{second}, {column}"] = gained
        for name, package in ((WORDS_ONLY, worded), (PACKAGE, ours), (RERANKED, staged), (LEARNED, learned)):
            if package.seconds:
                median, late = (1000 * np.percentile(package.seconds, [50, 95])).tolist()
                results.milliseconds[name] = {"median": round(median, 1), "p95": round(late, 1)}
        packs: dict[str, dict[str, list[pack.Kept]]] = {}
        for name in named([NEWEST, REFERENCE, *packing], only):
            print(f"... packs: {name}", file=sys.stderr, flush=True)
            packs[name] = _packs(studies, name, packing.get(name))
            results.packs[name] = {budget: _means(kept) for budget, kept in packs[name].items()}
        if {PACKAGE, RERANKED} <= packs.keys():
            for budget in packs[PACKAGE]:
                for name in (PACKAGE, RERANKED):
                    results.each[f"{name}, a pack of {int(budget):,}"] = [each.evidence for each in packs[name][budget]]
                both = (np.array([each.evidence for each in packs[name][budget]]) for name in (PACKAGE, RERANKED))
                results.gains[f"evidence in a pack of {int(budget):,}"] = gain(*both)
    return results


def _stepped(step: Callable[[Study], Scores], study: Study) -> list[list[Unit]]:
    return baselines.ranked(study, step(study))


def _measured(studies: Sequence[Study], ranker: Callable[[Study], list[list[Unit]]]) -> NDArray[np.float64]:
    values = []
    for study in studies:
        packer = Packer(study.conversation)
        for question, units in zip(study.conversation.questions, ranker(study), strict=True):
            values.append(measured(packer, question, units))
    return np.array(values)


def _packs(studies: Sequence[Study], name: str, ours: Package | None) -> dict[str, list[pack.Kept]]:
    found = {}
    for characters in pack.BUDGETS:
        kept = []
        for study in studies:
            conversation, packer = study.conversation, Packer(study.conversation)
            if ours is not None:
                ours.store(conversation)
            ranked = baselines.ranked(study, study.recommended()) if name == REFERENCE else []
            for place in pack.asked(conversation):
                question = conversation.questions[place]
                if ours is not None:
                    text = ours.pack(question.text, conversation.id, characters)
                elif name == REFERENCE:
                    text = pack.reference(packer, ranked[place], characters)
                else:
                    text = pack.newest(packer, characters)
                kept.append(pack.kept(conversation, question, text))
        found[str(characters)] = kept
    return found


def _means(kept: Sequence[pack.Kept]) -> dict[str, float]:
    return {measure: _mean([getattr(each, measure) for each in kept]) for measure in pack.MEASURES}


def _mean(shares: Sequence[float | None]) -> float:
    return round(100 * float(np.mean([share for share in shares if share is not None])), 2)


if __name__ == "__main__":
    main()
