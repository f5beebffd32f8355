"""Name what a statement is about, so that another value for the same thing has the same subject."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.profile.lexicon import profile_phrases
from langchain_supabase_memory.language.spelling import key

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOKEN: Final = re.compile(r"[^\W_]+(?:['\u2019/+-][^\W_]+)*\+{0,2}")
_SAME: Final = {"favourite": "favorite", "paborito": "favorite", "colour": "color", "kulay": "color"}
_MAX_WORDS: Final = 4
_SHORT: Final = 3


def normalize_subject(text: str, *, words: int = _MAX_WORDS) -> str:
    """Return the key of a thing: its words in lower case without accents, articles and plural.

    Args:
        text: The thing, in anybody's words.
        words: How many of its words count.
    """
    known = profile_phrases().known
    kept = [
        _SAME.get(word, word) for word in map(key, _TOKEN.findall(text)) if "words.drops" not in known.get(word, ())
    ]
    kept = kept[:words]
    return " ".join([*kept[:-1], *map(_singular, kept[-1:])])


def either(one: str, other: str) -> str:
    """Return the subject of a choice between two things, in whichever order."""
    return " or ".join(sorted((normalize_subject(one), normalize_subject(other))))


def head(text: str) -> str:
    """Return the subject of what is preferred: the thing without what it is like, "seat" of "aisle seats"."""
    words: Sequence[str] = normalize_subject(text, words=8).split()
    return words[-1] if words else ""


def _singular(word: str) -> str:
    if len(word) <= _SHORT or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > _SHORT + 2:
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("oes", "shes", "ches", "xes", "sses")) else word[:-1]
