"""Score texts by the words that they share with a query (BM25), with the texts themselves as the corpus.

Words are compared without inflection: by the beginnings of their light stems, in Tagalog by those of their roots.
"""

from __future__ import annotations

from collections import Counter
from math import log
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language import extractive, roots
from langchain_supabase_memory.language.extractive.stems import figures, stems_of
from langchain_supabase_memory.language.spelling import WORD, compose, keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.language.roots import Affixes

_SATURATION: Final = 1.2  # k1 of BM25
_LENGTH: Final = 0.75  # b of BM25
_BEGINNING: Final = 5  # letters of a stem: "schedule", "scheduling" and "scheduler" are one term

KEPT: Final = (*extractive.KEPT, *roots.KEPT)
"""What is read from files once; see `effects.offload`."""


def shared_word_scores(query: str, texts: Sequence[str]) -> list[float]:
    """Return the BM25 score of each text for a query: from 0, without an upper bound.

    Args:
        query: What is looked for. A word that is said twice counts once.
        texts: The texts, which are the corpus: a word that most of them have counts little.
    """
    compared = _compared(query, texts)
    wanted, counts = [terms for terms, _ in compared], [terms for _, terms in compared]
    spread = Counter(term for each in counts for term in each)
    mean = sum(each.total() for each in counts) / max(len(counts), 1) or 1.0
    scores: list[float] = []
    for terms, query_terms in zip(counts, wanted, strict=True):
        dampened = _SATURATION * (1 - _LENGTH + _LENGTH * terms.total() / mean)
        shared = sorted(query_terms & terms.keys())  # in an order, so that equal texts have equal sums
        weights = (_rarity(len(counts), spread[term]) * terms[term] / (terms[term] + dampened) for term in shared)
        scores.append((_SATURATION + 1) * sum(weights))
    return scores


def shared_word_ratios(query: str, texts: Sequence[str]) -> list[float]:
    """Return how many of a query's terms each text has, from 0 to 1; 0 if the query has no content words.

    Args:
        query: What is looked for.
        texts: The texts.
    """
    return [len(terms & counts.keys()) / len(terms) if terms else 0.0 for terms, counts in _compared(query, texts)]


def shared_terms(query: str, texts: Sequence[str]) -> list[frozenset[str]]:
    """Return which of a query's terms each text has.

    Args:
        query: What is looked for.
        texts: The texts.
    """
    return [terms & counts.keys() for terms, counts in _compared(query, texts)]


def _compared(query: str, texts: Sequence[str]) -> list[tuple[frozenset[str], Counter[str]]]:
    """Return for each text the terms of the query and those of the text, in the language of the pair."""
    asked = _words(query)
    spoken = roots.language_of(asked)
    queries: dict[int, frozenset[str]] = {}
    compared = []
    for text in texts:
        words = _words(text)
        language = spoken or roots.language_of(words)
        if id(language) not in queries:
            queries[id(language)] = frozenset(_terms(query, asked, language))
        compared.append((queries[id(language)], Counter(_terms(text, words, language))))
    return compared


def _rarity(texts: int, having: int) -> float:
    """Return the inverse document frequency of a term, never below 0."""
    return log(1 + (texts - having + 0.5) / (having + 0.5))


def _words(text: str) -> list[str]:
    return keys(WORD.findall(compose(text)))


def _terms(text: str, words: Sequence[str], language: Affixes | None) -> list[str]:
    """Return what is compared of a text: the beginnings of the stems of its content words, and its figures."""
    if language is None:
        found = stems_of(words)
    else:
        kept = [word for word in words if not language.is_affix(word)]
        found = [stem for word in kept if stems_of([word]) for stem in stems_of([language.root(word)]) or [word]]
    return [*(stem[:_BEGINNING] for stem in found), *figures(text)]
