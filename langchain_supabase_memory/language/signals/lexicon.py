"""The words of signals: the `signals.toml` of every language, read once, all used together.

A file has a table for each signal that words tell, with lists that say where in a clause a phrase must stand, and
`[marks]` and `[words]`. Lists that come in pairs, such as `reaches` and `people`, only pair within one file; the
Tagalog file has the English words that Taglish mixes in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.phrases import Phrases
from langchain_supabase_memory.language.lexicon import (
    languages,
    load,
    load_once,
    merge_entries,
    multi_word,
    single_word,
    table_words,
)
from langchain_supabase_memory.language.spelling import LETTERS, keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.language.lexicon import File, Tables

WORD: Final = re.compile(rf"{LETTERS}(?:['\u2019]{LETTERS})*|\d+")
"""A word with its apostrophes, or a number."""

PLACES: Final = {
    "whole": "is all of its clause, but for `fills`: never mind",
    "asked": "is the last clause of a short question: huh",
    "opens": "begins its clause, behind `leads`: I don't understand",
    "ends": "ends its clause, before `fills`: thanks",
    "inside": "anywhere in a clause: waste of time",
    "except": "in the same clause, tells that it is something else: thanks to",
}
"""The lists of each signal, each with where its phrases stand and an example."""

PAIRS: Final = {
    "insists": "begins a clause, and is a correction if one of `contrasts` follows: I said",
    "contrasts": "not, instead of",
    "judges": "a judgment, which ends the clause of one of `subjects`, or stands with one of `addresses`: useless",
    "subjects": "this is, your answers are",
    "addresses": "the other speaker, anywhere in the clause: nyo",
    "reaches": "is near one of `people`, and begins its clause or follows one of `wants`: talk to",
    "people": "a human, an agent",
    "wants": "can I",
}
"""The lists that only count together, each with its meaning or examples."""

MARKS: Final = {
    "supposes": "begins what need not be so: if",
    "reports": "begins what somebody else says, or work on a text: she said, translate",
    "own": "looks like `reports` and is not: I said",
}
"""The lists of `[marks]`, each with its meaning and an example."""

WORDS: Final = {
    "leads": "may stand before a phrase: ok, sorry",
    "fills": "adds nothing at the beginning or the end of a clause: then, na",
    "clitics": "adds nothing anywhere: really, po",
    "light": "does not tell two questions apart: can you, the",
    "directs": "of two questions with the same words, makes their order count: from",
}
"""The lists of `[words]`, each with its meaning and an example."""

_SIGNALS: Final = ("correction", "thanks", "complaint", "confusion", "giving_up", "asks_for_person")
_TELLING: Final = frozenset({"whole", "asked", "opens", "ends", "inside", "insists", "judges", "reaches"})
_LISTS: Final = {**PLACES, **PAIRS}
TABLES: Final[Tables] = {**dict.fromkeys(_SIGNALS, _LISTS), "marks": MARKS, "words": WORDS}


@dataclass(frozen=True, slots=True)
class SignalWords:
    """The words of signals.

    Attributes:
        phrases: All phrases, each with its lists as `thanks.opens`; those of pairs as `complaint.judges@en`.
        languages: The languages.
        clitics: Words that are passed over in texts, as they are in the phrases.
        telling: The lists without which a sentence tells no signal.
        telling_words: The words that are such a phrase, and those that begin one of clitics alone.
        telling_pairs: The first two words of each longer one.
    """

    phrases: Phrases
    languages: tuple[str, ...]
    clitics: frozenset[str]
    telling: frozenset[str]
    telling_words: frozenset[str]
    telling_pairs: frozenset[tuple[str, str]]

    def may_tell(self, words: Sequence[str]) -> bool:
        """Return whether a signal can be in a text: most texts have no phrase of one.

        Args:
            words: The normalized words of the text.
        """
        if not self.telling_words.isdisjoint(words):
            return True
        if not self.clitics.isdisjoint(words):
            words = [word for word in words if word not in self.clitics]
        return not self.telling_pairs.isdisjoint(pairwise(words))


def words_of(text: str) -> tuple[str, ...]:
    """Return the normalized words of a text."""
    return tuple(normalize(WORD.findall(text)))


def normalize(words: list[str]) -> list[str]:
    """Return words as they are compared: "don't" and "dont" are one."""
    normalized = keys(words)
    joined = " ".join(normalized)
    if "'" in joined or "\u2019" in joined:
        return [word.replace("'", "").replace("\u2019", "") for word in normalized]
    return normalized


@load_once
def signal_words() -> SignalWords:
    """Return the words of all languages, loaded on first use."""
    files = {language: load("signals", language, TABLES) for language in languages("signals")}
    clitics = frozenset(word for file in files.values() for word in normalize(file["words"].get("clitics", [])))
    entries = merge_entries(entry for language, file in files.items() for entry in _entries(language, file, clitics))
    opening = merge_entries(((words[0],), kinds) for words, kinds in entries.items())
    telling = frozenset(kind for kinds in entries.values() for kind in kinds if _tells(kind))
    phrases = Phrases(single_word(entries), multi_word(entries), single_word(opening))
    tells = [words for words, kinds in entries.items() if not telling.isdisjoint(kinds)]
    return SignalWords(
        phrases,
        tuple(files),
        clitics,
        telling,
        telling_words=frozenset(words[0] for words in tells if len(words) == 1 or clitics.issuperset(words)),
        telling_pairs=frozenset((words[0], words[1]) for words in tells if len(words) > 1),
    )


def _tells(kind: str) -> bool:
    """Return whether a phrase of a list may tell a signal; those of other lists only support or deny one."""
    name, _, place = kind.partition("@")[0].partition(".")
    return name in _SIGNALS and place in _TELLING


def _entries(language: str, file: File, clitics: frozenset[str]) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    for name, table in file.items():
        for kind, text in table_words(table):
            of_language = f"@{language}" if kind in PAIRS and kind != "wants" else ""
            words = words_of(text)
            if kind not in ("clitics", "light"):
                words = tuple(word for word in words if word not in clitics) or words
            yield words, frozenset({f"{name}.{kind}{of_language}"})
