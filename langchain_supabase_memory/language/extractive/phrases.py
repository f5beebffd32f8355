"""What the languages say around what matters: their `phrases.toml`, read once, all in use at once.

A file has the lists of `[phrases]` that `KINDS` explains, and those of `[contexts]`: what stands before or after the
name of a person, a place or an organization, and (`noun_before`) what stands before a noun that has a capital and is no
name. Phrases are written as people write them and are compared as `spelling` says. A language without a file has
neutral rules alone: a number, a name, a question mark, a colon.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from langchain_supabase_memory.language.lexicon import (
    languages,
    load,
    load_once,
    merge_entries,
    multi_word,
    single_word,
    table_words,
)
from langchain_supabase_memory.language.query_hints.lexicon import lexicon
from langchain_supabase_memory.language.spelling import WORD, comparison_form, keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.language.lexicon import Tables

_NONE: Final[frozenset[str]] = frozenset()

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
    "feels": "of those, what as often tells a mood: love, hate",
    "needs": "of those, what is so every day, and is dangerous to forget: allergic, vegetarian",
    "points": "in the place of a thing that is before the speakers: it, these; who loves it tells a mood",
    "corrects": "says that something said before no longer holds: actually, no longer",
    "wonders": "asks for something, in a statement too: should I, explain",
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
    "proposes": "of those, what is but an idea, unless a time is said: we should",
    "heads_task": "heads what is to be done, where a colon follows: todo",
    "advises": "of those, what is advice if it is about `you`, or inside a clause: make sure",
    "opens_task": "asks for something where it begins a sentence: need to",
    "promises": "before what the speaker is going to do: I'll",
    "delivers": "of what is promised, what an assistant then still owes: send, find out",
    "does": "of what is promised, what only a person does: bring, read",
    "endures": "of what is promised or asked, what is never done: keep, stay, be",
    "recurs": "beside what is done again and again, and so never done: every, on Mondays",
    "someday": "beside what is to be done at no time in particular: someday",
    "idles": "looks like one of the two and asks for nothing: let me know",
    "embeds": "before what is not asked for but told of: (it) says, how",
    "you": "the other one: you, your",
    "joins": "between two clauses: and, because",
    "decides": "is an answer by itself: yes, no",
    "finishes": "says that something is done: paid, sent",
    "cancels": "says that something need not be done: never mind",
    "empty": "has no content, beside the words of which `cues` knows that",
    "vague": "says too little to be a topic: thing, want",
    "superlative": "what is more so than all others is told of once, and is no topic: biggest, worst",
    "defers": "in the place of an answer: I don't know",
}
"""The lists of `[phrases]`, each with its meaning and examples."""

CONTEXTS: Final = (
    "noun_before", "person_before", "person_after", "place_before", "organization_before", "organization_after",
)  # fmt: skip
"""The lists of `[contexts]`."""

TABLES: Final[Tables] = {"phrases": KINDS, "contexts": CONTEXTS}


class FoundPhrase(NamedTuple):
    """A phrase in a text.

    Attributes:
        first: Its first word's place among the words.
        end: The place after its last word.
        kinds: The lists it is in.
    """

    first: int
    end: int
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class Phrases:
    """All phrases.

    Attributes:
        known: The lists that a word is in by itself.
        longer: By their first two words, the rest of the longer phrases with their lists, the longest first.
        opening: By their first word, the lists of all phrases that begin with it.
    """

    known: dict[str, frozenset[str]]
    longer: dict[tuple[str, str], list[tuple[tuple[str, ...], frozenset[str]]]]
    opening: dict[str, frozenset[str]]

    def find(self, words: Sequence[str]) -> Iterator[FoundPhrase]:
        """Every phrase in a text, in order; of those that begin at one word, the longest of each list.

        Args:
            words: The text's words as they are compared.
        """
        for at, word in enumerate(words):
            if word not in self.opening:
                continue
            seen: frozenset[str] = frozenset()
            for rest, kinds in self.longer.get((word, words[at + 1]), ()) if at + 1 < len(words) else ():
                end = at + 2 + len(rest)
                if (fresh := kinds - seen) and tuple(words[at + 2 : end]) == rest:
                    seen |= fresh
                    yield FoundPhrase(at, end, fresh)
            if fresh := self.known.get(word, _NONE) - seen:
                yield FoundPhrase(at, at + 1, fresh)


class ParsedText:
    """A text with its words and the phrases in it, each looked for when it is asked for and once.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def words(self) -> Sequence[str]:
        """Its words as they are compared."""
        return keys(WORD.findall(self.text))

    @cached_property
    def starts(self) -> Sequence[int]:
        """Where each begins."""
        return [match.start() for match in WORD.finditer(self.text)]

    @cached_property
    def ends(self) -> Sequence[int]:
        """Where each ends."""
        return [match.end() for match in WORD.finditer(self.text)]

    @cached_property
    def phrases(self) -> Sequence[FoundPhrase]:
        """The phrases in it, in order."""
        return tuple(phrases().find(self.words))

    def all(self, *kinds: str) -> list[FoundPhrase]:
        """The phrases that are in one of some lists, in order."""
        return [each for each in self.phrases if not each.kinds.isdisjoint(kinds)]

    def has(self, *kinds: str) -> bool:
        """Whether a phrase of one of some lists is in it."""
        return any(not each.kinds.isdisjoint(kinds) for each in self.phrases)


@load_once
def phrases() -> Phrases:
    """The phrases of all languages, read when they are first needed."""
    files = [load("phrases", language, TABLES) for language in languages("phrases")]
    tables = [table for file in files for table in file.values()]
    known = merge_entries(
        (comparison_form(text), frozenset({kind})) for table in tables for kind, text in table_words(table)
    )
    opening = merge_entries(((words[0],), kinds) for words, kinds in known.items())
    return Phrases(single_word(known), multi_word(known), single_word(opening))


@cache
def articles() -> frozenset[str]:
    """What stands before a thing: the, my, her, a; not what as often stands alone, "this" and "that"."""
    said = {"determiner", "mine", "others", "topic", "noun_before"}
    spoken = {word for word, kinds in phrases().known.items() if kinds & said and "joins" not in kinds}
    entries = lexicon().entries
    counted = {word for word, entry in entries.items() if entry.kinds & {"one", "some"}}
    return frozenset(word for word in spoken | counted if word not in entries or "this" not in entries[word].kinds)
