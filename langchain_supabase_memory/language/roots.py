"""Reduce an inflected word to its root, in languages whose words change at their beginning: "magbabayad" is "bayad".

A language has these tables in its `affixes.toml`, all optional:

- `[affixes]`: what stands `before` a root, and what is `weak` there: it may as well belong to the root. What stands
  `inside`, behind the root's first consonant, and what stands `after` it.
- `[finals]`: the last letters of roots, with the letters that they become before an affix.
- `[words]`: `markers` are words that say that a text is in the language.

Where a language has affixes before or inside a root, a first syllable that is said twice is dropped, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.lexicon import languages, load, load_once, table_words
from langchain_supabase_memory.language.spelling import key

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from langchain_supabase_memory.language.lexicon import File, Tables

TABLES: Final[Tables] = {
    "affixes": {"before": "", "weak": "", "inside": "", "after": ""},
    "finals": re.compile("[a-z]{1,2}"),
    "words": {"markers": ""},
}
"""The tables of `affixes.toml`, each with its keys."""

_VOWELS: Final = frozenset("aeiou")
_SHORTEST: Final = 4  # letters of a root


@dataclass(frozen=True, eq=False)  # there is one of each language
class Affixes:
    """What one language adds to its roots.

    Attributes:
        before: What stands before a root, the longest first.
        weak: What stands there and may as well belong to the root.
        inside: What stands behind its first consonant.
        after: What stands after it, the longest first.
        finals: The last letter of a root, by what it becomes before an affix.
        markers: Words that say that a text is in the language.
    """

    before: tuple[str, ...]
    weak: tuple[str, ...]
    inside: tuple[str, ...]
    after: tuple[str, ...]
    finals: Mapping[str, str]
    markers: frozenset[str]

    @classmethod
    def of_file(cls, file: File) -> Affixes:
        """Return what a file has."""
        lists = {name: tuple(sorted(map(key, file["affixes"].get(name, ())), key=len, reverse=True)) for name in _LISTS}
        finals = {key(changed): letter for letter, changed in table_words(file["finals"])}
        return cls(**lists, finals=finals, markers=frozenset(map(key, file["words"].get("markers", ()))))

    def is_language_of(self, words: Collection[str]) -> bool:
        """Return whether a text is in the language.

        Args:
            words: Its normalized words.
        """
        return not self.markers.isdisjoint(words)

    def is_affix(self, word: str) -> bool:
        """Return whether a word is an affix, which a hyphen has cut off: "mag-order"."""
        return word in self.before or word in self.weak

    def root(self, word: str) -> str:
        """Return the root of a normalized word; a root stays as it is."""
        return _root(self, word)

    def _find_root(self, word: str) -> str:
        for affix in self.before:
            if word.startswith(affix) and len(word) - len(affix) >= _SHORTEST:
                word = word[len(affix) :]
                break
        else:
            word = self._without_inner(word)
        word = self._without_ending(_said_once(word))
        for affix in self.weak:
            rest = word.removeprefix(affix)
            # "kalsada" begins with no affix: no root begins with two consonants.
            if rest != word and len(rest) >= _SHORTEST and (rest[0] in _VOWELS or rest[1] in _VOWELS):
                return _said_once(rest)
        return word

    def _without_inner(self, word: str) -> str:
        for affix in self.inside:
            at = word.find(affix, 0, len(affix) + 1)  # "umalis", "bumili"
            after = at + len(affix)
            is_inner = at == 0 or (at == 1 and word[0] not in _VOWELS)
            if is_inner and len(word) - len(affix) >= _SHORTEST and word[after] in _VOWELS:
                return word[:at] + word[after:]
        return word

    def _without_ending(self, word: str) -> str:
        for affix in self.after:
            if word.endswith(affix) and len(word) - len(affix) >= _SHORTEST:
                word = word[: -len(affix)]
                final = next((each for each in self.finals if word.endswith(each)), "")
                return word.removesuffix(final) + self.finals[final] if final else word
        return word


@lru_cache(maxsize=8192)
def _root(language: Affixes, word: str) -> str:
    return language._find_root(word)


@load_once
def affixes() -> tuple[Affixes, ...]:
    """Return the affixes of all languages that have some, read when they are first needed."""
    return tuple(Affixes.of_file(load("affixes", language, TABLES)) for language in languages("affixes"))


def language_of(words: Collection[str]) -> Affixes | None:
    """Return the affixes of the language that a text is in; `None` if that has none.

    Args:
        words: The normalized words of the text.
    """
    return next((each for each in affixes() if each.is_language_of(words)), None)


def _said_once(word: str) -> str:
    """Return a word without a first syllable that is said twice: "babayad", "tatrabaho", "aalis"."""
    is_open = word[0] in _VOWELS
    rest = word[1:] if is_open else word[2:]
    if len(rest) < _SHORTEST or rest[0] != word[0]:
        return word
    vowel = next((letter for letter in rest if letter in _VOWELS), "")
    return rest if is_open or vowel == word[1] else word


_LISTS: Final = ("before", "weak", "inside", "after")

KEPT: Final = (affixes,)
"""What is read from files once; see `effects.offload`."""
