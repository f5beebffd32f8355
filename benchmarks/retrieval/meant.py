"""Measure this repository's three small sets, with all conversations of each user in scope."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.harness import Table
from benchmarks.retrieval import sets
from benchmarks.retrieval.embedder import MiniLM
from benchmarks.retrieval.pack import kept
from benchmarks.retrieval.package import Package
from benchmarks.retrieval.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.retrieval.data import Conversation, Question

_UNITS: Final = (3, 5, 10)
_BUDGETS: Final = (1_000, 2_000, 4_000)
_COLUMNS: Final = [*(f"r@{units}" for units in _UNITS), *(f"pack {size:,}" for size in _BUDGETS)]
_NOWHERE: Final = "a new conversation"


def measured(cache: Path, worded: str, embedded: str) -> dict[str, dict[str, dict[str, float]]]:
    """Return the measures in percent by set and setting; also the set of names with correctly spelled names.

    Args:
        cache: The folder of the vectors.
        worded: The name of the setting without an embedder.
        embedded: The name of the other setting.
    """
    talks = {each.id: each for each in sets.conversations()}
    found: dict[str, dict[str, dict[str, float]]] = {}
    with ExitStack() as stack:
        postgres = stack.enter_context(Postgres())
        embedder = MiniLM(cache)
        embedder.warm()
        for setting, given in ((worded, None), (embedded, embedder)):
            package = stack.enter_context(Package(postgres.conn_string, given, setting))
            for talk in talks.values():
                package.store(talk)
            for name in sets.SETS:
                asked = sets.questions(name)
                forms = {name: [each.question.text for each in asked]}
                if any(each.spelled_correctly for each in asked):
                    forms[f"{name}, spelled correctly"] = [
                        each.spelled_correctly or each.question.text for each in asked
                    ]
                for form, texts in forms.items():
                    rows = [
                        _shares(package, talks[each.conversation], each.question, text)
                        for each, text in zip(asked, texts, strict=True)
                    ]
                    means = 100 * np.mean(rows, axis=0)
                    found.setdefault(form, {})[setting] = {
                        column: round(float(value), 1) for column, value in zip(_COLUMNS, means, strict=True)
                    }
    return found


def table(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Table:
    """Return the measures as a table."""
    rows: list[list[str | float]] = [
        [form, setting, *(f"{values[column]:.1f}" for column in _COLUMNS)]
        for form, settings in found.items()
        for setting, values in settings.items()
    ]
    notes = [f"{name}: {about}, {len(sets.questions(name))} questions" for name, about in sets.SETS.items()]
    notes.append(
        "percent of the evidence, searched in all messages of six pairs and groups; the sets are small: 3 points are"
        " one question."
    )
    return Table("The project's own small sets", ["set", "setting", *_COLUMNS], rows, notes)


def _shares(package: Package, talk: Conversation, question: Question, text: str) -> list[float]:
    """Return the shares of the evidence in the top chunks, and in packs."""
    chunks = package.memory.recall(text, limit=max(_UNITS)).chunks
    ids = [set(chunk.message_ids) for chunk in chunks]
    units = [len(question.evidence & set().union(*ids[:most])) / len(question.evidence) for most in _UNITS]
    packs = [
        kept(talk, question, package.pack(text, _NOWHERE, characters, recall="user")).evidence
        for characters in _BUDGETS
    ]
    return [*units, *packs]
