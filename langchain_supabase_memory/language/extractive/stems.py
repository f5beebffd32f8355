"""Reduce a text to terms that can be counted: light stems of its words, and its figures in one spelling.

This uses no grammar. A stem is a case-folded word without accents and without the commonest endings. Scripts without
spaces between words give pairs of characters. Words without content in any language of `query_hints` give nothing.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.phrases import phrases
from langchain_supabase_memory.language.query_hints.lexicon import lexicon
from langchain_supabase_memory.language.spelling import DIGIT, WORD, keys

if TYPE_CHECKING:
    from collections.abc import Iterable

FIGURE: Final = re.compile(r"\d+(?:[.,'\u2019\u00a0\u202f]\d+)*")
"""A number in figures, with its separators."""

# Han, kana, Thai, Lao, Khmer, Burmese: spaces do not separate words.
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_MARKS: Final = re.compile(r"[^\d]+")
_GROUP: Final = 3  # digits between two thousands separators
_LONGEST_WORD: Final = 40
_ENDINGS: Final = (
    ("ingly", 4), ("edly", 4), ("ings", 3), ("ing", 3), ("ied", 3), ("ies", 3), ("ed", 3), ("en", 4), ("s", 3),
)  # fmt: skip
_EMPTY: Final = frozenset({"function", "question", "auxiliary"})
_TAILS: Final = frozenset({"s", "d", "m", "t", "re", "ll", "ve", "im", "don", "doesn", "didn", "isn", "ain"})


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return the light stem of a normalized word.

    Args:
        word: A case-folded word without accents.
    """
    if not word.isascii() or len(word) > _LONGEST_WORD:
        return word[:_LONGEST_WORD]
    for ending, least in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least and not (ending == "s" and word[-2] == "s"):
            word = word[: -len(ending)]
            break
    if len(word) > _GROUP and word[-1] in "aeioy":
        word = word[:-1]
    return word[:-1] if len(word) > _GROUP and word[-1] == word[-2] else word


@cache
def _contentless() -> frozenset[str]:
    """Return words without content."""
    spoken = {word for word, kinds in phrases().known.items() if "empty" in kinds}
    return _TAILS | spoken | {word for word, entry in lexicon().entries.items() if entry.kinds & _EMPTY}


def stems(text: str) -> list[str]:
    """Return the stems of the content words of a text, in order, without figures."""
    return stems_of(keys(WORD.findall(text)))


def stems_of(words: Iterable[str]) -> list[str]:
    """Return the stems of normalized words."""
    empty = _contentless()
    found: list[str] = []
    for word in words:
        if word in empty or word[0].isdecimal():
            continue
        if word.isascii():
            if len(word) > 1:
                found.append(stem(word))
        elif _UNSPACED.search(word):
            found.extend(_pairs(word))
        else:
            found.append(stem(word))
    return found


def _pairs(word: str) -> list[str]:
    """Split a word of a script without spaces into pairs of characters; other text in it stays whole."""
    found: list[str] = []
    for run in _UNSPACED.findall(word):
        found.extend([run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)])
    return found + [part for part in _UNSPACED.split(word) if len(part) > 1]


@lru_cache(maxsize=4096)
def readings(figure: str) -> frozenset[str]:
    """Return the possible values of a number: "4.200" is 4200 or 4.2 by locale; "4200" is unambiguous.

    Args:
        figure: A match of `FIGURE`, in the digits of any script.
    """
    if not figure.isascii():
        figure = "".join(str(unicodedata.decimal(each)) if each.isdecimal() else each for each in figure)
    groups = _MARKS.split(figure)
    if len(groups) == 1:
        return frozenset({_plain(figure)})
    marks = _MARKS.findall(figure)
    found: set[str] = set()
    threes = all(len(group) == _GROUP for group in groups[1:])
    if threes and len(groups[0]) <= _GROUP and len(set(marks)) == 1:
        found.add(_plain("".join(groups)))
    if marks[-1] in ".,":
        if len(marks) == 1:
            found.add(_plain(groups[0], groups[1]))
        elif marks[-1] not in marks[:-1] and all(len(group) == _GROUP for group in groups[1:-1]):
            found.add(_plain("".join(groups[:-1]), groups[-1]))
    return frozenset(found or {figure})


def _plain(word: str, fraction: str = "") -> str:
    """Return a number without insignificant zeros."""
    word, fraction = word.lstrip("0") or "0", fraction.rstrip("0")
    return f"{word}.{fraction}" if fraction else word


def figures(text: str) -> list[str]:
    """Return the numbers of a text as terms, in order, each in its shortest possible spelling."""
    if not DIGIT.search(text):
        return []
    return ["#" + min(readings(found), key=lambda read: (len(read), read)) for found in FIGURE.findall(text)]
