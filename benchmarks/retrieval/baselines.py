"""Common methods with Postgres, Supabase or LangChain, each as its documentation shows it."""

from __future__ import annotations

from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.retrieval.metrics import DEPTH, Unit
from benchmarks.retrieval.rankings import from_0_to_1, over_most

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.retrieval.rankings import Scores, Study

_RRF: Final = 50
"""The default of Supabase's guide to hybrid search."""

BM25: Final = "BM25 of a turn's text, b = 0.75"
RRF: Final = "reciprocal ranks of BM25 and dense, k = 60"
FUSION: Final = "scores of BM25 and dense, half each"
DENSE: Final = "dense, a turn's text (a LangGraph store)"
RIVALS: Final = (DENSE, BM25, RRF, FUSION, "Supabase's hybrid search, all words, vectors of a turn's text")
"""Those that stand beside this package in the table over all data sets."""


def rankers() -> dict[str, Callable[[Study], list[list[Unit]]]]:
    """Return the rankers; each returns the units for every question about a conversation, the best first."""
    return {
        "most recent turns": recent,
        "Postgres text search, all words (websearch_to_tsquery)": lambda study: matching(study, any_word=False),
        "Postgres text search, any word, ts_rank_cd": lambda study: matching(study, any_word=True),
        "BM25 over Postgres' lexemes": lambda study: ranked(study, study.bm25((1.0,), spoken(study))),
        BM25: lambda study: ranked(study, study.bm25((1.0,), b=0.75)),
        RRF: lambda study: ranked(study, _reciprocal(study.cosines()) + _reciprocal(study.bm25((1.0,), b=0.75))),
        FUSION: lambda study: ranked(
            study, 0.5 * over_most(study.bm25((1.0,), b=0.75)) + 0.5 * from_0_to_1(study.cosines())
        ),
        DENSE: lambda study: ranked(study, study.cosines()),
        "dense, '[date] Speaker: text'": lambda study: ranked(study, study.cosines(texts=study.dated)),
        "Supabase's hybrid search, all words, vectors of a turn's text": lambda study: hybrid(study, any_word=False),
        "Supabase's hybrid search, any word, all of 'Speaker: text'": lambda study: hybrid(study, any_word=True),
        "LangChain's splitter, 500/50, dense": lambda study: split(study, 500, 50),
        "LangChain's splitter, 1000/200, dense": lambda study: split(study, 1000, 200),
    }


def ranked(study: Study, scores: Scores, above: float = -np.inf) -> list[list[Unit]]:
    """Rank single turns by score, without those at or below a bound."""
    orders = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    units: list[Unit] = [(turn.id,) for turn in study.conversation.turns]
    return [[units[place] for place in order if row[place] > above] for row, order in zip(scores, orders, strict=True)]


def recent(study: Study) -> list[list[Unit]]:
    newest: list[Unit] = [(turn.id,) for turn in reversed(study.conversation.turns)]
    return [newest[:DEPTH] for _ in study.questions]


def spoken(study: Study) -> list[str]:
    """Return the turns with their speakers: a text search over the text alone finds nobody by name."""
    return [f"{turn.speaker}: {turn.text}" for turn in study.conversation.turns]


def matching(study: Study, *, any_word: bool) -> list[list[Unit]]:
    return ranked(study, study.postgres.ranks(study.questions, spoken(study), any_word=any_word), above=0)


def hybrid(study: Study, *, any_word: bool) -> list[list[Unit]]:
    """Fuse text search and vectors by reciprocal rank, without the guide's limit of 30 results."""
    words = study.postgres.ranks(study.questions, spoken(study), any_word=any_word)
    cosines = study.cosines(texts=spoken(study) if any_word else study.bare)
    found = np.where(words > 0, 1 / (_RRF + _places(words)), 0)
    return ranked(study, found + 1 / (_RRF + _places(cosines)))


def split(study: Study, size: int, overlap: int) -> list[list[Unit]]:
    """Apply `RecursiveCharacterTextSplitter` to each session; a chunk returns the turns that it overlaps."""
    splitter = import_module("langchain_text_splitters").RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=overlap, add_start_index=True
    )
    texts: list[str] = []
    units: list[Unit] = []
    for text, ends in _sessions(study):
        for document in splitter.create_documents([text]):
            first = document.metadata["start_index"]
            last = first + len(document.page_content)
            texts.append(document.page_content)
            units.append(tuple(turn for turn, start, end in ends if start < last and end > first))
    orders = np.argsort(-study.cosines(texts=texts), axis=1, kind="stable")[:, :DEPTH]
    return [[units[place] for place in order] for order in orders]


def _reciprocal(scores: Scores) -> Scores:
    return np.asarray(1 / (60 + _places(scores)))


def _places(scores: Scores) -> Scores:
    """Return the rank of each score in its row, from 1."""
    return np.asarray(np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1) + 1, np.float64)


def _sessions(study: Study) -> Iterator[tuple[str, list[tuple[str, int, int]]]]:
    """Yield the text of each session, and the span of each turn in it."""
    for _, turns in groupby(study.conversation.turns, key=lambda turn: turn.session):
        text, places = "", []
        for turn in turns:
            line = f"{turn.speaker}: {turn.text}\n"
            places.append((turn.id, len(text), len(text) + len(line) - 1))
            text += line
        yield text, places
