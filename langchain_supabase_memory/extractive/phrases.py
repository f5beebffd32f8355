"""What the languages say around what matters: data files, read once, all in use at once.

A file has a `name`, the lists of `[phrases]` that `KINDS` explains, and those of `[contexts]`: what stands before or
after the name of a person, a place or an organization, and (`noun_before`) what stands before a noun that has a capital
and is no name. Phrases are written as people write them and are compared as `cues` compares words: without case and
accents, with any space, apostrophe or hyphen between two words. A language without a file has neutral rules alone: a
number, a name, a question mark, a colon.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.cues.lexicon import WORD, compared, keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NONE: Final[frozenset[str]] = frozenset()

LANGUAGES: Final = ("en", "es", "de", "tl")
"""The languages that have a file."""

KINDS: Final = {
    "greets": "what a line may consist of and say nothing: hi, thanks, ok",
    "self": "who speaks, of themselves: I, we",
    "mine": "before what is the speaker's: my, our",
    "mine_after": "behind it: ko",
    "topic": "opens what is spoken of, in a language that has such a word: ang",
    "copula": "between a thing and what it is: is, costs, ay",
    "determiner": "before a thing: the, this",
    "others": "before what is somebody else's: her, your",
    "now": "beside a thing, says that it is so now: new, current",
    "prefers": "says what somebody likes, wants or cannot stand: prefer, allergic",
    "corrects": "says that something said before no longer holds: actually, no longer",
    "supposes": "says that something is only thought of: if, maybe",
    "residence": "before where somebody lives",
    "called": "before how somebody is called",
    "occupation": "before what somebody does for a living",
    "third": "of those, what is said of somebody else: lives in",
    "being": "before what somebody is or has beside others: I'm a, I have a",
    "age": "beside how old somebody is",
    "birthday": "before when somebody was born",
    "asks_to": "before what is to be done: remind me to, please",
    "reminds": "of those, what is no question even where it is put as one: (can you) remind me to",
    "heads_task": "heads what is to be done, where a colon follows: todo",
    "opens_task": "asks for something where it begins a sentence: need to",
    "promises": "before what the speaker is going to do: I'll",
    "delivers": "of what an assistant promises, what it then still owes: send, find out",
    "idles": "looks like one of the two and asks for nothing: let me know",
    "finishes": "says that something is done: paid, sent",
    "cancels": "says that something need not be done: never mind",
    "empty": "has no content, beside the words of which `cues` knows that",
    "vague": "says too little to be a topic: thing, want",
    "defers": "in the place of an answer: I don't know",
}
"""The lists of `[phrases]`, each with its meaning and examples."""

CONTEXTS: Final = (
    "noun_before", "person_before", "person_after", "place_before", "organization_before", "organization_after",
)  # fmt: skip
"""The lists of `[contexts]`."""


@dataclass(frozen=True, slots=True)
class Found:
    """A phrase in a text.

    Attributes:
        first: Its first word's place among the words.
        end: The place after its last word.
        kinds: The lists it is in.
    """

    first: int
    end: int
    kinds: frozenset[str]


@dataclass(slots=True)
class Phrases:
    """All phrases.

    Attributes:
        known: By their first word, the lists that it is in by itself.
        longer: By their first two words, the longer ones, the longest first.
        opening: By their first word, the lists of all phrases that begin with it.
    """

    known: dict[str, frozenset[str]] = field(default_factory=dict)
    longer: dict[tuple[str, str], list[tuple[tuple[str, ...], frozenset[str]]]] = field(default_factory=dict)
    opening: dict[str, frozenset[str]] = field(default_factory=dict)

    def find(self, words: Sequence[str]) -> Iterator[Found]:
        """Every phrase in a text, in order; of those that begin at one word, the longest of each list.

        Args:
            words: The text's words as `cues` compares them.
        """
        for at, word in enumerate(words):
            if word not in self.opening:
                continue
            seen: frozenset[str] = frozenset()
            for phrase, kinds in self.longer.get((word, words[at + 1]), ()) if at + 1 < len(words) else ():
                if (fresh := kinds - seen) and tuple(words[at : at + len(phrase)]) == phrase:
                    seen |= fresh
                    yield Found(at, at + len(phrase), fresh)
            if fresh := self.known.get(word, _NONE) - seen:
                yield Found(at, at + 1, fresh)


@dataclass(frozen=True, slots=True)
class Reading:
    """A text with its words and the phrases in it.

    Attributes:
        text: The text.
        words: Its words as they are compared.
        starts: Where each begins.
        ends: Where each ends.
        found: The phrases in it, in order.
    """

    text: str
    words: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]
    found: Sequence[Found]

    def all(self, *kinds: str) -> list[Found]:
        """The phrases that are in one of some lists, in order."""
        return [each for each in self.found if not each.kinds.isdisjoint(kinds)]

    def has(self, *kinds: str) -> bool:
        """Whether a phrase of one of some lists is in it."""
        return any(not each.kinds.isdisjoint(kinds) for each in self.found)


def read(text: str) -> Reading:
    """Find the words of a text and the phrases in it."""
    spans = [match.span() for match in WORD.finditer(text)]
    words = keys([text[start:end] for start, end in spans])
    found = tuple(phrases().find(words))
    return Reading(text, words, [start for start, _ in spans], [end for _, end in spans], found)


@cache
def phrases() -> Phrases:
    """The phrases of all languages, read when they are first needed."""
    joined: dict[tuple[str, ...], frozenset[str]] = {}
    for language in LANGUAGES:
        data = load(language)
        for table in ("phrases", "contexts"):
            for kind, listed in data.get(table, {}).items():
                for text in listed:
                    phrase = compared(text)
                    joined[phrase] = joined.get(phrase, frozenset()) | {kind}
    made = Phrases()
    for phrase, kinds in sorted(joined.items(), key=lambda item: (-len(item[0]), item[0])):
        if not phrase:
            continue
        made.opening[phrase[0]] = made.opening.get(phrase[0], _NONE) | kinds
        if len(phrase) == 1:
            made.known[phrase[0]] = kinds
        else:
            made.longer.setdefault((phrase[0], phrase[1]), []).append((phrase, kinds))
    return made


def load(language: str) -> dict[str, Any]:
    """One language's file."""
    return tomllib.loads(files(__package__).joinpath("languages", f"{language}.toml").read_text(encoding="utf-8"))
