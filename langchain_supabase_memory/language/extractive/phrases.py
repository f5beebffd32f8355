"""Phrases that surround important content: the `phrases.toml` of every language, read once and all used together.

A file has the lists of `[phrases]`, which `KINDS` explains, and those of `[contexts]`: words before or after the name
of a person, a place or an organization, words before another name, such as a program's (`other_before`), and words
before a capitalized noun that is not a name (`noun_before`). `[attributes]` has the phrases that give an attribute a
value, `[nouns]` what else an attribute is called, and `[values]` the words that can only be values of an attribute.
Phrases are in ordinary spelling and are compared as `spelling` defines. A language without a file only has neutral
rules: a number, a name, a question mark, a colon.
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
    "greets": "fills a line without content: hi, thanks, ok",
    "self": "the speaker, about themselves: I, we",
    "mine": "before something of the speaker's: my, our",
    "mine_after": "after it: ko",
    "topic": "introduces the topic, in a language with such a word: ang",
    "copula": "between a thing and its value: is, costs, ay",
    "determiner": "before a thing: the, this",
    "others": "before something of somebody else's: her, your",
    "now": "next to a thing, says that it is current: new, current",
    "prefers": "expresses a preference or aversion: prefer, allergic",
    "feels": "`prefers` phrases that often express a mood: love, hate",
    "needs": "`prefers` phrases for permanent needs, which are dangerous to forget: allergic, vegetarian",
    "points": "refers to something present, so that loving it is a mood: it, these",
    "corrects": "says that an earlier statement no longer holds: actually, no longer",
    "newly": "says that a statement holds since a change: now, these days",
    "ends": "before what somebody no longer has or does: quit, sold",
    "leaves": "the same, if a name follows: left (Acme)",
    "contrasts": "before a replaced value; a single word at the start of a clause only: instead of, not",
    "ceases": "in a clause about what is no longer so: no longer, used to",
    "anymore": "the same in a clause with `negates`: anymore",
    "changes": "next to a thing that has another value: moved, raised",
    "renews": "before a thing that replaces the earlier one: (my) new, different",
    "switches": "before a new value, without the old one: switched to",
    "out_of": "before the old value, after `changes`: from",
    "negates": "negates what follows: not, didn't",
    "intends": "before a change that has not happened: will, thinking about",
    "infinitive": "the same, right before it: to",
    "adds": "says that something comes in addition and replaces nothing: also, second",
    "keeps_one": "what a person does with one thing at a time: drive, study",
    "uses": "before what is in use, which `switches` replaces: use, runs on",
    "occasional": "says that something holds for a time only: today, sometimes",
    "lasting": "after a state that has come to stay: (have been in Porto) since",
    "states": "present tense of what somebody or something does for long: runs on, has",
    "single": "of `states`, what has one value at a time: runs on, works at",
    "single_valued": "what has one value, which may be any words: username, hair",
    "consumes": "what a person does with food and drink: eat, drink",
    "groups": "a group that the speaker belongs to, which counts as the speaker: our team",
    "parted": "after the name of a person who is gone: got divorced",
    "habits": "before what the speaker does regularly: I play, I drink",
    "wonders": "requests something, even in a statement: should I, explain",
    "supposes": "marks a hypothetical: if, maybe",
    "residence": "before a place of residence",
    "called": "before a name of a person",
    "occupation": "before an occupation",
    "third": "`residence` and similar phrases about somebody else: lives in",
    "being": "before another attribute of a person: I'm a, I have a",
    "age": "next to an age",
    "birthday": "before a date of birth",
    "asks_to": "before a task: remind me to, please",
    "reminds": "`asks_to` phrases that are requests even as a question: (can you) remind me to",
    "proposes": "`asks_to` phrases that only suggest, unless a time is given: we should",
    "heads_task": "introduces a task, before a colon: todo",
    "advises": "`asks_to` phrases that are advice about `you`, or inside a clause: make sure",
    "opens_task": "requests something at the start of a sentence: need to",
    "promises": "before an action that the speaker promises: I'll",
    "delivers": "promised deliverables, which an assistant still owes: send, find out",
    "does": "promised actions that only a person can do: bring, read",
    "endures": "promised or requested actions that never end: keep, stay, be",
    "recurs": "next to a recurring action, which is never done: every, on Mondays",
    "someday": "next to an action at no particular time: someday",
    "idles": "looks like a request or a promise but is neither: let me know",
    "embeds": "before an embedded statement: (it) says, how",
    "you": "the other speaker: you, your",
    "joins": "between two clauses: and, because",
    "decides": "is a complete answer: yes, no",
    "finishes": "says that a task is done: paid, sent",
    "cancels": "says that a task is obsolete: never mind",
    "empty": "has no content, in addition to the words that `query_hints` lists",
    "vague": "is too vague to be a topic: thing, want",
    "superlative": "a superlative, which is mentioned once and is not a topic: biggest, worst",
    "defers": "replaces an answer: I don't know",
}
"""The lists of `[phrases]`, each with its meaning and examples."""

CONTEXTS: Final = (
    "noun_before", "person_before", "person_after", "place_before", "organization_before", "organization_after",
    "other_before",
)  # fmt: skip
"""The lists of `[contexts]`."""

ATTRIBUTES: Final = {
    "home": "where somebody lives: live in, home is",
    "stays": "the same, if a word of `lasting` follows: have been in",
    "job": "what somebody works as, replaced in a statement that something changed: started as",
    "team": "before the group that somebody belongs to: I'm on the",
    "manager": "who somebody reports to: report to",
    "bank": "where somebody has their money: bank with",
    "school": "where somebody learns: attends, a pupil at",
    "drives": "what somebody gets around in: drive a",
    "commute": "where somebody regularly goes: to work",
    "rises": "when somebody gets up: wake up at",
    "diet": "before what somebody eats or is: I eat, I'm a",
    "marital": "whether somebody is married, with the word that says it: got engaged",
    "email": "where somebody gets their mail: write to me at",
    "size": "before a size of clothes: wear a, need",
    "floor": "behind the number of a floor: floor",
    "price": "what something costs: costs, rent",
    "budget": "what can be spent on something: budget, spend",
    "guests": "how many people come: people are coming",
    "due": "when something must be ready: due, deadline",
    "meets": "when people meet: meets, meeting",
    "travel": "when somebody travels: fly, flight",
    "plan": "which version of a service somebody pays for: upgraded to",
    "named": "what something is called: is called",
    "taste": "what somebody likes most: favorite",
    "venue": "where something takes place: will be at",
    "studies": "what somebody studies: studies",
    "ignored": "words beside a thing that do not tell it from others: put, got",
}
"""The lists of `[attributes]`, each with what it is about and examples; `attributes.py` says what their values are."""

VALUES: Final = {
    "vehicle": "ways to get around: bus, bike",
    "diet": "ways to eat without meat and fish: vegetarian",
    "animal": "what these do without: meat, fish",
    "marital": "single, engaged",
    "size": "medium, large",
    "currency": "euros, dollars",
    "group": "after the name of a group: team, department",
    "plan": "after the name of a plan: plan, tier",
}
"""The lists of `[values]`, each with its meaning or examples."""

TABLES: Final[Tables] = {
    "phrases": KINDS,
    "contexts": CONTEXTS,
    "attributes": ATTRIBUTES,
    "nouns": ATTRIBUTES,
    "values": VALUES,
}
_NAMESPACED: Final = frozenset({"attributes", "nouns", "values"})
"""Tables whose lists share names with others, so that their kinds are written as `attributes.home`."""


class FoundPhrase(NamedTuple):
    """A phrase in a text.

    Attributes:
        first: The index of its first word.
        end: The index after its last word.
        kinds: The lists that contain it.
    """

    first: int
    end: int
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class Phrases:
    """All phrases.

    Attributes:
        known: For each single word, the lists that contain it.
        longer: By their first two words, the rest of each longer phrase with its lists, the longest first.
        opening: By their first word, the lists of all phrases that begin with it.
    """

    known: dict[str, frozenset[str]]
    longer: dict[tuple[str, str], list[tuple[tuple[str, ...], frozenset[str]]]]
    opening: dict[str, frozenset[str]]

    def words_in(self, kind: str) -> Iterator[tuple[str, ...]]:
        """Yield the words of each phrase of a list."""
        yield from ((word,) for word, kinds in self.known.items() if kind in kinds)
        for (one, two), rests in self.longer.items():
            yield from ((one, two, *rest) for rest, kinds in rests if kind in kinds)

    def find(self, words: Sequence[str]) -> Iterator[FoundPhrase]:
        """Yield every phrase in a text, in order; of phrases that begin at one word, the longest of each list.

        Args:
            words: The normalized words of the text.
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
    """A text with its words and phrases, each computed lazily and once."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def words(self) -> Sequence[str]:
        """Its normalized words."""
        return keys(WORD.findall(self.text))

    @cached_property
    def starts(self) -> Sequence[int]:
        """The offset of each word."""
        return [match.start() for match in WORD.finditer(self.text)]

    @cached_property
    def ends(self) -> Sequence[int]:
        """The end offset of each word."""
        return [match.end() for match in WORD.finditer(self.text)]

    @cached_property
    def phrases(self) -> Sequence[FoundPhrase]:
        """The phrases in it, in order."""
        found = phrases().find(self.words)
        return tuple(each for each in found if "copula" not in each.kinds or not self._is_letter(each))

    def _is_letter(self, phrase: FoundPhrase) -> bool:
        """Return whether a phrase is a plain letter, which is no copula: "è" is one, the "E" of "E-47" is not."""
        said = self.text[self.starts[phrase.first] : self.ends[phrase.end - 1]]
        return len(said) == 1 and said.isascii()

    def all(self, *kinds: str) -> list[FoundPhrase]:
        """Return the phrases that are in one of the lists, in order."""
        return [each for each in self.phrases if not each.kinds.isdisjoint(kinds)]

    def has(self, *kinds: str) -> bool:
        """Return whether it contains a phrase of one of the lists."""
        return any(not each.kinds.isdisjoint(kinds) for each in self.phrases)


@load_once
def phrases() -> Phrases:
    """Return the phrases of all languages, loaded on first use."""
    files = [load("phrases", language, TABLES) for language in languages("phrases")]
    known = merge_entries(
        (comparison_form(text), frozenset({f"{name}.{kind}" if name in _NAMESPACED else kind}))
        for file in files
        for name, table in file.items()
        for kind, text in table_words(table)
    )
    opening = merge_entries(((words[0],), kinds) for words, kinds in known.items())
    return Phrases(single_word(known), multi_word(known), single_word(opening))


@cache
def articles() -> frozenset[str]:
    """Return the words before a thing: the, my, her, a; not words that often stand alone, such as "this" and "that"."""
    said = {"determiner", "mine", "others", "topic", "noun_before"}
    spoken = {word for word, kinds in phrases().known.items() if kinds & said and "joins" not in kinds}
    entries = lexicon().entries
    counted = {word for word, entry in entries.items() if entry.kinds & {"one", "some"}}
    return frozenset(word for word in spoken | counted if word not in entries or "this" not in entries[word].kinds)
