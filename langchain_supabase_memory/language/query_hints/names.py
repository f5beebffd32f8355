"""Words that may be somebody's name, and a question without them.

A name has a capital that it does not owe to the beginning of its sentence; there it is a name if it is no word that is
known to begin sentences.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.query_hints.lexicon import lexicon
from langchain_supabase_memory.language.sentences import begins_sentence
from langchain_supabase_memory.language.spelling import compose, key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_APOSTROPHES: Final = "'\u2019"
_CAPITAL: Final = re.compile(r"[^\W\d_a-z](?<!\w.)\w*(?:['\u2019\u2010\u2011-]\w+)*")
_WORD: Final = re.compile(r"\w+(?:['\u2019\u2010\u2011-]\w+)*")
_MARK: Final = re.compile(r"(['\u2019\u2010\u2011-])")
_QUOTED: Final = re.compile(r"\"[^\"\n]{1,100}\"|\u201c[^\u201d\n]{1,100}\u201d|\u00ab[^\u00bb\n]{1,100}\u00bb")
_LOOSE_COMMA: Final = re.compile(r"(?<![,;:])[,;:]+ ?(?=[.?!])")
_LETTER: Final = re.compile(r"[^\W_]")
_NEGATIONS: Final = ("'t", "\u2019t")
_NOWHERE: Final = (sys.maxsize, sys.maxsize)
_ACRONYM: Final = 5  # letters of the longest word that may be a name in capitals


def has_capitals(text: str) -> bool:
    """Whether a word has a capital and may be a name, wherever it stands."""
    return any(_name_in(match.group())[0] for match in _CAPITAL.finditer(text))


def capitalized(text: str, dated: Sequence[tuple[int, int]] = (), *, inside: bool = False) -> Iterator[str]:
    """The words with a capital that may be names, in order.

    Args:
        text: The text.
        dated: The places of dates in it, in order, whose words are no names.
        inside: Whether only words count that do not begin a sentence.
    """
    if text.isupper():
        return
    places = iter(dated)
    start, end = next(places, _NOWHERE)
    for match in _CAPITAL.finditer(text):
        name, is_first = _name_in(match.group())
        if not name:
            continue
        at = match.start()
        if (inside or is_first) and begins_sentence(text, at):
            continue
        while end <= at:
            start, end = next(places, _NOWHERE)
        if at < start:
            yield name


@lru_cache(maxsize=4096)
def _name_in(word: str) -> tuple[str, bool]:
    """The name in a word with a capital, or nothing; and whether it is none where it begins a sentence."""
    known = lexicon()
    name, rest = _divided(word)
    compared = key(name)
    if compared in known.unnamed or not _is_name(name) or rest in _NEGATIONS:
        return "", False
    return name, compared in known.first and not rest


def _is_name(word: str) -> bool:
    """Whether a word looks like a name: no initial, no figure in it, no long acronym."""
    if len(word) == 1 or not word[0].isupper() or (word.isupper() and len(word) > _ACRONYM):
        return False
    return word.isalpha() or all(part.isalpha() for part in _MARK.split(word)[::2])


def names(text: str, dated: Sequence[tuple[int, int]], limit: int) -> tuple[str, ...]:
    """The words that may be names, each once, without those of a title in quotation marks.

    Args:
        text: The text.
        dated: The places of dates in it.
        limit: How many are returned at most.
    """
    quoted = [match.span() for match in _QUOTED.finditer(text) if " " in match.group()]
    found: dict[str, None] = {}
    for name in capitalized(text, sorted([*dated, *quoted])):
        found.setdefault(name)
        if len(found) == limit:
            break
    return tuple(found)


def _divided(word: str) -> tuple[str, str]:
    """A word as a name and what is tied to it: "Anne-Marie" and "'s"."""
    if word.isalnum():
        return word, ""
    parts = _MARK.split(word)
    name, at = parts[0], 1
    while at < len(parts):
        mark, part = parts[at], parts[at + 1]
        if not part[0].isupper() or (mark in _APOSTROPHES and len(part) == 1):
            break
        name += mark + part
        at += 2
    return name, "".join(parts[at:])


def without(question: str, names: Collection[str]) -> str:
    """A question without some names, for an embedding that is not to be drawn to whoever is named.

    A name goes with its possessive, in any case; but one that is also a common word goes only as it is written.

    Args:
        question: The question.
        names: The names; of one with several words each goes.

    Returns:
        The question with its space tidied. If no word would be left, the question itself.
    """
    text = compose(question)
    exact = {word for name in names for word in compose(name).split()}
    known = lexicon()
    loose = {key(word) for word in exact} - known.entries.keys()
    kept: list[str] = []
    at = 0
    for match in _WORD.finditer(text):
        word = match.group()
        end = match.end()
        if word not in exact and key(word) not in loose:
            bare = word[:-2] if word[-2:-1] in tuple(_APOSTROPHES) and word[-1] in "sS" else ""
            if not bare or (bare not in exact and key(bare) not in loose):
                continue
        if word[-1] in "sS" and text[end : end + 1] in tuple(_APOSTROPHES):
            end += 1
        kept.append(text[at : match.start()].rstrip() + " ")
        at = end
        if text[at : at + 2].strip()[:1] in tuple(",.?!;:"):
            kept[-1] = kept[-1].rstrip()
            at += text[at].isspace()
    tidy = " ".join("".join([*kept, text[at:]]).split())
    if kept:
        tidy = _LOOSE_COMMA.sub("", tidy).lstrip(",;: ")
    return tidy if _LETTER.search(tidy) else question
